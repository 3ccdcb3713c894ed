"""What of the batch tests can run here: Parquet needs pyarrow."""

from __future__ import annotations

from importlib.util import find_spec

#: Modules that are not collected, so that nothing is skipped.
collect_ignore = ["test_render_jsonl.py", "test_killing.py"] if find_spec("pyarrow") is None else []
