"""Many conversations at once: in this process, as a mapper for `datasets` and Ray Data, or from JSONL to Parquet.

>>> from renderers import create_renderer
>>> from renderers.batch import render_batch
>>> renderer = create_renderer("golden:qwen3")
>>> conversations = [[{"role": "user", "content": text}] for text in ("hi", "hello")]
>>> [len(rendered) for rendered in render_batch(renderer, conversations, add_generation_prompt=True)]
[9, 10]
"""

from renderers.batch.columns import COLUMNS, NullFields
from renderers.batch.conversations import render_batch
from renderers.batch.mapper import RenderMapper
from renderers.batch.run import Summary, render_jsonl

__all__ = ["COLUMNS", "NullFields", "RenderMapper", "Summary", "render_batch", "render_jsonl"]
