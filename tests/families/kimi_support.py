"""What the tests of Kimi's families share: model IDs, messages, renderers, texts."""

from __future__ import annotations

import warnings
from typing import Any

from golden.reference import load_tokenizer
from renderers import DamageWarning, create_renderer

INSTRUCT = "moonshotai/Kimi-K2-Instruct"
THINKING = "moonshotai/Kimi-K2-Thinking"
K25 = "moonshotai/Kimi-K2.5"
K26 = "moonshotai/Kimi-K2.6"
MODELS = (INSTRUCT, THINKING, K25, K26)
REASONING_MODELS = (THINKING, K25, K26)

DEFAULT_SYSTEM = "<|im_system|>system<|im_middle|>You are Kimi, an AI assistant created by Moonshot AI.<|im_end|>"
HEADER = "<|im_assistant|>assistant<|im_middle|>"
QUESTION = {"role": "user", "content": "q"}
TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "Does it.",
        "parameters": {
            "type": "object",
            "properties": {"b": {"type": "string"}, "a": {"type": "integer"}},
            "required": ["b"],
        },
    },
}


def call(call_id: str | None, name: str = "f", arguments: Any = None) -> dict[str, Any]:
    made = {"type": "function", "function": {"name": name, "arguments": {} if arguments is None else arguments}}
    return made if call_id is None else {"id": call_id, **made}


def calling(*calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **fields}


def result(content: str, call_id: str = "functions.f:0", **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_id": call_id, **fields}


def make(model: str, switches: dict[str, Any] | None = None, **framework: Any) -> Any:
    """A renderer of a model, with the template's switches and the framework's settings."""
    return create_renderer(load_tokenizer(model), chat_template_kwargs=switches, **framework)


def text_of(renderer: Any, messages: list[dict[str, Any]], **given: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        return str(renderer.decode(renderer.render_ids(messages, **given)))


def ids_of(renderer: Any, text: str) -> list[int]:
    """Special tokens where they are spelled."""
    ids: list[int] = []
    position = 0
    for start, end, token_id in renderer.tokenizer.find_special_tokens(text):
        ids += [*renderer.tokenizer.encode_ordinary(text[position:start]), token_id]
        position = end
    return [*ids, *renderer.tokenizer.encode_ordinary(text[position:])]
