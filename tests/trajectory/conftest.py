"""Tensors can be tested where torch is: `make engines` has it."""

from importlib.util import find_spec

collect_ignore = ["test_trajectory_torch.py"] if find_spec("torch") is None else []
