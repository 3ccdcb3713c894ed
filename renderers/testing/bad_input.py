"""Checks of what no renderer can use: each is a typed error that names the place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from renderers.errors import MessageError, RendererError, TokenIdsError
from renderers.testing.support import damage_allowed, fail

if TYPE_CHECKING:
    from collections.abc import Callable

    from renderers.renderer import Renderer

_USER = {"role": "user", "content": "hi"}


def _with_arguments(arguments: Any) -> list[dict[str, Any]]:
    call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return [_USER, {"role": "assistant", "content": "", "tool_calls": [call]}]


#: Messages that are errors in every family, with the index that the error must name (None where there is no message).
_BAD_MESSAGES: dict[str, tuple[Any, int | None]] = {
    "no messages": ([], None),
    "one message instead of a list": (_USER, None),
    "text instead of a list": ("hi", None),
    "a message that is text": ([_USER, "hi"], 1),
    "no role": ([{"content": "hi"}], 0),
    "an unknown role": ([_USER, {"role": "narrator", "content": "hi"}], 1),
    "a number for content": ([{"role": "user", "content": 5}], 0),
    "a mapping for content": ([{"role": "user", "content": {"text": "hi"}}], 0),
    "an image": ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], 0),
    "a part without text": ([{"role": "user", "content": [{"type": "text"}]}], 0),
    "an unknown part": ([{"role": "user", "content": [{"type": "hologram", "text": "hi"}]}], 0),
    "a number for reasoning": ([_USER, {"role": "assistant", "content": "", "reasoning_content": 5}], 1),
    "a number for arguments": (_with_arguments(5), 1),
    "a list for arguments": (_with_arguments([1]), 1),
    "arguments that JSON cannot say": (_with_arguments({"x": {1, 2}}), 1),
    "calls that are no list": ([_USER, {"role": "assistant", "content": "", "tool_calls": {"name": "f"}}], 1),
    "a call without a name": (
        [_USER, {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": {"arguments": {}}}]}],
        1,
    ),
    "a lone surrogate": ([{"role": "user", "content": "a\ud800b"}], 0),
}

_BAD_TOOLS: dict[str, Any] = {
    "a mapping instead of a list": {"name": "f"},
    "a tool that is text": ["f"],
    "a tool that JSON cannot say": [{"type": "function", "function": {"name": "f", "parameters": {1, 2}}}],
}

_BAD_IDS: dict[str, Any] = {
    "a negative number": [1, -1],
    "a fraction": [1.5],
    "text": "hi",
    "a list of text": ["hi"],
    "nothing": None,
    "a list of lists": [[1, 2]],
}


def _expect(what: str, kind: type[RendererError], call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """The error that a call raises, which must be of this kind."""
    try:
        with damage_allowed():
            result = call(*arguments, **named)
    except kind as error:
        if not str(error):
            fail(f"{what}: an error without a text")
        return error
    except Exception as error:
        raise AssertionError(f"{what}: {error!r} is no {kind.__name__}") from error
    return fail(f"{what}: accepted, gave {result!r}")


def check_bad_input(renderer: Renderer[Any]) -> None:
    """Messages, tools and token IDs that cannot be are typed errors, and name the message where one is at fault."""
    for what, (messages, index) in _BAD_MESSAGES.items():
        error = _expect(what, MessageError, renderer.render, messages)
        if error.message_index != index:
            fail(f"{what}: the error names message {error.message_index}, not {index}: {error}")
    for what, tools in _BAD_TOOLS.items():
        _expect(f"tools, {what}", RendererError, renderer.render, [_USER], tools=tools)
    prompt = renderer.render([_USER], add_generation_prompt=True)
    for what, ids in _BAD_IDS.items():
        _expect(f"completion, {what}", TokenIdsError, renderer.parse_response, ids)
        _expect(f"completion to bridge, {what}", TokenIdsError, renderer.bridge, prompt, ids, [_USER])
        _expect(f"prompt to bridge, {what}", TokenIdsError, renderer.bridge, ids, [1], [_USER])
    unknown = renderer.tokenizer.vocabulary_size + 1000
    parsed = renderer.parse_response([unknown])
    if parsed.content.strip("\ufffd") or len(parsed.spans) != 1:
        fail(f"an ID out of the vocabulary gave {parsed}")
