"""What the tests of DeepSeek V3, R1 and V3.1 share: model IDs, messages, renderers, texts."""

from __future__ import annotations

import warnings
from typing import Any

from golden.reference import load_tokenizer
from renderers import BridgeRefusal, DamageWarning, create_renderer

V3, R1, V31 = "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3.1"
MODELS = (V3, R1, V31)
BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
CALLS, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
OUTPUTS, OUTPUTS_END = "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"
QUESTION = {"role": "user", "content": "q"}
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


def make(model: str, switches: dict[str, Any] | None = None, **framework: Any) -> Any:
    return create_renderer(load_tokenizer(model), chat_template_kwargs=switches, **framework)


def call(name: str = "f", arguments: Any = '{"x": 1}', **fields: Any) -> dict[str, Any]:
    return {"id": "call_0", "type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def calling(*calls: dict[str, Any], content: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **fields}


def answer(content: str, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def result(content: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "call_0", "content": content}


def printed(text: str) -> str:
    """How V3 and R1 write a call of this name."""
    return f'<｜tool▁call▁begin｜>function<｜tool▁sep｜>{text}\n```json\n{{"x": 1}}\n```<｜tool▁call▁end｜>'


def output(text: str = "ok") -> str:
    return f"<｜tool▁output▁begin｜>{text}<｜tool▁output▁end｜>"


def render(renderer: Any, messages: list[dict[str, Any]], **given_settings: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        return renderer.render(messages, **given_settings)


def text_of(renderer: Any, messages: list[dict[str, Any]], **given_settings: Any) -> str:
    return str(renderer.decode(render(renderer, messages, **given_settings).token_ids))


def sampled_text(renderer: Any, messages: list[dict[str, Any]]) -> str:
    tokens = render(renderer, messages)
    return str(
        renderer.decode([one for one, sampled in zip(tokens.token_ids, tokens.sampled_mask, strict=True) if sampled])
    )


def ids_of(renderer: Any, text: str) -> list[int]:
    """Special tokens where they are spelled."""
    ids: list[int] = []
    position = 0
    for start, end, token_id in renderer.tokenizer.find_special_tokens(text):
        ids += [*renderer.tokenizer.encode_ordinary(text[position:start]), token_id]
        position = end
    return [*ids, *renderer.tokenizer.encode_ordinary(text[position:])]


def bridged(
    renderer: Any, messages: list[dict[str, Any]], completion: str, new_messages: list[dict[str, Any]], **tools: Any
) -> str:
    """The text that a bridge appends, or the reason for which it is refused; alike from tokens and from plain IDs."""
    prompt = render(renderer, messages, add_generation_prompt=True, **tools)
    ids = ids_of(renderer, completion)
    found = []
    for previous in (prompt, prompt.token_ids):
        one = renderer.bridge(previous, ids, new_messages, **tools)
        if isinstance(one, BridgeRefusal):
            found.append(str(one.reason))
        else:
            assert one.token_ids[: len(prompt) + len(ids)] == [*prompt.token_ids, *ids]
            found.append(renderer.decode(one.extension_ids))
    assert found[0] == found[1]
    return found[0]


def kinds(tokens: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(damage.kind, damage.message_indices) for damage in tokens.warnings]
