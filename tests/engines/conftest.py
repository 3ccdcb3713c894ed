"""Which engines can be tested here: torch and a real vLLM server are not everywhere."""

from __future__ import annotations

import os
from importlib.util import find_spec

#: Modules that are not collected, so that nothing is skipped: `make engines` has torch, `make vllm` has the server.
collect_ignore = [
    *(["test_transformers_engine.py"] if find_spec("torch") is None else []),
    *(["test_real_vllm.py"] if "VLLM_URL" not in os.environ else []),
]
