"""What the tests of Qwen3.5 and Qwen3-Coder share: messages, and one way to render and to bridge them."""

from __future__ import annotations

import warnings
from typing import Any

from golden.reference import encode, load_tokenizer
from renderers import BridgeRefusal, DamageWarning, RenderedTokens, create_renderer

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "description": "d",
            "parameters": {"type": "object", "properties": {"x": {"type": "string"}, "n": {"type": "integer"}}},
        },
    }
]


def make(model: str, switches: dict[str, Any] | None = None, **framework: Any) -> Any:
    """A renderer of a model, with the template's switches and the framework's settings."""
    return create_renderer(load_tokenizer(model), chat_template_kwargs=switches, **framework)


def system(content: Any = "s") -> dict[str, Any]:
    return {"role": "system", "content": content}


def user(content: Any = "q") -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any = "", reasoning: str | None = None, *arguments: Any) -> dict[str, Any]:
    """A reply; one call of `f` for each of `arguments`."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if arguments:
        message["tool_calls"] = [{"function": {"name": "f", "arguments": given}} for given in arguments]
    return message


def tool(content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "content": content}


def rendered(renderer: Any, messages: list[dict[str, Any]], **given: Any) -> RenderedTokens:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        tokens: RenderedTokens = renderer.render(messages, **given)
        return tokens


def text_of(renderer: Any, messages: list[dict[str, Any]], **given: Any) -> str:
    return str(renderer.decode(rendered(renderer, messages, **given).token_ids))


def sampled_texts(renderer: Any, messages: list[dict[str, Any]], **given: Any) -> list[str]:
    """What the model samples of each assistant message."""
    tokens = rendered(renderer, messages, **given)
    labels = list(zip(tokens.token_ids, tokens.message_indices, tokens.sampled_mask, strict=True))
    return [
        str(renderer.decode([one for one, owner, is_sampled in labels if owner == index and is_sampled]))
        for index, message in enumerate(messages)
        if message["role"] == "assistant"
    ]


def bridged(
    renderer: Any, model: str, messages: list[dict[str, Any]], completion: str, new: list[dict[str, Any]], **given: Any
) -> str:
    """The text of the extension, or the reason of a refusal; the same from the tokens and from their IDs."""
    prompt = rendered(renderer, messages, add_generation_prompt=True, **given)
    ids = encode(model, completion)
    results = []
    for previous in (prompt, prompt.token_ids):
        result = renderer.bridge(previous, ids, new, **given)
        if isinstance(result, BridgeRefusal):
            results.append(str(result.reason))
        else:
            assert result.token_ids[: len(prompt) + len(ids)] == [*prompt.token_ids, *ids]
            results.append(renderer.decode(result.extension_ids))
    assert results[0] == results[1]
    return str(results[0])
