"""What the tests of DeepSeek V3.2 and V4 share: tokens, messages, renderers, texts."""

from __future__ import annotations

import json
import warnings
from typing import Any

from golden.reference import encode, load_tokenizer, reference_for, vectors
from golden.vendor_encoders import has_encoder
from renderers import DamageWarning, create_renderer

V32 = "deepseek-ai/DeepSeek-V3.2"
V4 = "deepseek-ai/DeepSeek-V4-Flash"
BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
THINKING = {"thinking_mode": "thinking"}
QUESTION = {"role": "user", "content": "q"}
TOOL = {"type": "function", "function": {"name": "f", "description": "Does it.", "parameters": {"type": "object"}}}


def call(call_id: str | None, arguments: Any = "{}", name: str = "f") -> dict[str, Any]:
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made if call_id is None else {"id": call_id, **made}


def calling(*calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **fields}


def answer(content: str, reasoning: str | None = None) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return message if reasoning is None else {**message, "reasoning_content": reasoning}


def result(content: Any, call_id: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": content, **({"tool_call_id": call_id} if call_id else {})}


def make(model: str, switches: dict[str, Any] | None = None, **framework: Any) -> Any:
    """A renderer of a model, with the encoder's arguments and the framework's settings."""
    return create_renderer(load_tokenizer(model), chat_template_kwargs=switches, **framework)


def kit_reference(model: str) -> Any:
    """The vendor's encoder where it is here. Without it the kit compares with the renderer's own renders."""
    return reference_for(model) if has_encoder(model) else None


def text_of(renderer: Any, messages: list[dict[str, Any]], **given: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        return str(renderer.decode(renderer.render_ids(messages, **given)))


def parts_of(renderer: Any, messages: list[dict[str, Any]], **given: Any) -> list[tuple[int, str]]:
    """The text of each run of tokens of one message, with the message's index."""
    tokens = renderer.render(messages, **given)
    parts: list[tuple[int, list[int]]] = []
    for token_id, index in zip(tokens.token_ids, tokens.message_indices, strict=True):
        if not parts or parts[-1][0] != index:
            parts.append((index, []))
        parts[-1][1].append(token_id)
    return [(index, renderer.decode(ids)) for index, ids in parts]


def sampled_text(renderer: Any, messages: list[dict[str, Any]], **given: Any) -> str:
    tokens = renderer.render(messages, **given)
    return str(
        renderer.decode([one for one, sampled in zip(tokens.token_ids, tokens.sampled_mask, strict=True) if sampled])
    )


def bridged(renderer: Any, model: str, prior: list[Any], completion: str, new: list[Any], **given: Any) -> Any:
    """The text that a bridge appends, or the reason of its refusal; from the rendered prompt."""
    prompt = renderer.render(prior, add_generation_prompt=True, **given)
    found = renderer.bridge(prompt, encode(model, completion), new, **given)
    return renderer.decode(found.extension_ids) if hasattr(found, "token_ids") else str(found.reason)


def check_vectors(name: str, model: str) -> None:
    """Every recorded conversation has exactly the recorded IDs."""
    renderers: dict[str, Any] = {}
    recorded = vectors(name)
    assert len(recorded) == 250
    for one in recorded:
        renderer = renderers.setdefault(json.dumps(one["kwargs"]), make(model, one["kwargs"]))
        tokens = renderer.render(
            one["messages"], tools=one["tools"], add_generation_prompt=one["add_generation_prompt"]
        )
        assert tokens.token_ids == one["token_ids"], one["id"]
