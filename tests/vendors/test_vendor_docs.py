"""The page's examples run, one after another."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from renderers import create_renderer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "vendors.md"
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}}
REPLY = {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}, CALL], "stop_reason": "tool_use"}
EVENTS = [
    {"type": "message_start", "message": {**REPLY, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": CALL},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_stop"},
]


def test_the_examples_of_the_page() -> None:
    renderer = create_renderer("golden:qwen3")
    answer = [*renderer.tokenizer.encode_ordinary("Hello."), renderer.get_stop_token_ids()[0]]
    names: dict[str, Any] = {
        "renderer": renderer,
        "tools": TOOLS,
        "post": lambda _: json.dumps(REPLY),
        "response": SimpleNamespace(iter_lines=lambda: [f"data: {json.dumps(event)}" for event in EVENTS]),
        "sample": lambda _: (answer, [-0.5] * len(answer)),
    }
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 6
    for block in blocks:
        exec(block, names)  # noqa: S102 - the page's own examples
    assert sum(names["on_policy"].action_mask) == 2 * len(answer)
