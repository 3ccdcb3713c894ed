"""Checks of parsing: no exception, every token in one span, stream equals batch, replies come back."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from renderers.testing.support import damage_allowed, difference, fail, rendered, shown, text_of

if TYPE_CHECKING:
    from renderers.parsed import Delta, ParsedResponse
    from renderers.renderer import Renderer
    from renderers.testing.messages import Conversation

Tools = Sequence[dict[str, Any]] | None


def check_spans(parsed: ParsedResponse, count: int) -> None:
    """Every completion token lies in exactly one span, and calls in spans exist."""
    place = 0
    for span in parsed.spans:
        if span.start != place or span.end <= span.start:
            fail(f"span {span} where token {place} comes next", f"spans {parsed.spans}")
        if span.call is not None and not 0 <= span.call < len(parsed.tool_calls):
            fail(f"span {span} names a call that is none of the {len(parsed.tool_calls)}")
        if span.call is None and str(span.region) == "tool_call":
            fail(f"span {span} is of a tool call, and does not say which")
        place = span.end
    if place != count:
        fail(f"the spans cover {place} of {count} tokens", f"spans {parsed.spans}")
    if not 0 <= parsed.closed_at <= count:
        fail(f"closed_at is {parsed.closed_at} of {count} tokens")


def check_parse_never_raises(
    renderer: Renderer[Any],
    token_ids: Sequence[int],
    *,
    prompt_ids: Sequence[int] | None = None,
    tools: Tools = None,
    stopped: bool | None = None,
) -> ParsedResponse:
    """Parsing these tokens raises nothing and loses none of them; calls are sound in themselves."""
    try:
        parsed = renderer.parse_response(token_ids, prompt_ids=prompt_ids, tools=tools, stopped=stopped)
    except Exception as error:
        text = text_of(renderer, token_ids)
        raise AssertionError(f"parsing raised {error!r}\ntokens {list(token_ids)}\ntext {text!r}") from error
    check_spans(parsed, len(token_ids))
    for call in parsed.tool_calls:
        well_formed = str(call.status) == "ok"
        if well_formed and (not call.name or not isinstance(call.arguments, dict)):
            fail(f"a call with status ok lacks a name or arguments: {call}")
        if well_formed != (call.error is None):
            fail(f"status and error disagree: {call}")
        if well_formed:
            json.dumps(call.arguments, allow_nan=False)
    message = parsed.to_message()
    if message["role"] != "assistant" or len(message.get("tool_calls", [])) != len(parsed.valid_tool_calls):
        fail(f"to_message gave {message}", f"parsed {parsed}")
    return parsed


def joined_deltas(deltas: Sequence[Delta]) -> dict[str, Any]:
    """What a listener has at the end: each field's pieces put together."""
    calls: dict[int, dict[str, str]] = {}
    result: dict[str, Any] = {"reasoning": "", "content": "", "calls": calls}
    for delta in deltas:
        fields = (delta.reasoning, delta.content, delta.name, delta.arguments)
        if sum(value is not None for value in fields) != 1:
            fail(f"a delta has exactly one of reasoning, content, name and arguments: {delta}")
        if delta.reasoning is not None:
            result["reasoning"] += delta.reasoning
        elif delta.content is not None:
            result["content"] += delta.content
        elif delta.call is None:
            fail(f"a delta of a call without its index: {delta}")
        elif delta.name is not None:
            if delta.call in calls:
                fail(f"a call's name comes once, and before its arguments: {delta}")
            calls[delta.call] = {"name": delta.name, "id": delta.call_id or "", "arguments": ""}
        elif delta.call not in calls:
            fail(f"arguments before the name: {delta}")
        else:
            calls[delta.call]["arguments"] += delta.arguments or ""
    return result


def _streamed(
    renderer: Renderer[Any], groups: Sequence[Sequence[int]], prompt_ids: Sequence[int] | None, tools: Tools
) -> tuple[ParsedResponse, dict[str, Any]]:
    stream = renderer.stream(prompt_ids=prompt_ids, tools=tools)
    deltas: list[Delta] = []
    for group in groups:
        deltas += stream.feed(group)
    parsed = stream.finish()
    deltas += stream.drain()
    return parsed, joined_deltas(deltas)


def check_stream_equals_batch(
    renderer: Renderer[Any],
    token_ids: Sequence[int],
    cuts: Sequence[int],
    *,
    prompt_ids: Sequence[int] | None = None,
    tools: Tools = None,
) -> ParsedResponse:
    """Fed in groups that end at `cuts`, the stream gives what one feed gives: the same result, the same deltas.

    The deltas also add up to the result: reasoning, content, and each well-formed call's name and arguments.
    """
    ids = list(token_ids)
    borders = [0, *sorted({cut for cut in cuts if 0 < cut < len(ids)}), len(ids)]
    groups = [ids[start:end] for start, end in itertools.pairwise(borders)]
    batch, batch_deltas = _streamed(renderer, [ids], prompt_ids, tools)
    parsed, deltas = _streamed(renderer, groups, prompt_ids, tools)
    where = (f"groups {groups}", f"text {text_of(renderer, ids)!r}")
    if parsed != batch or repr(parsed) != repr(batch):
        fail("the stream's result differs from one feed's", f"stream {parsed}", f"batch  {batch}", *where)
    if deltas != batch_deltas:
        fail("the stream's deltas add up to something else", f"stream {deltas}", f"batch  {batch_deltas}", *where)
    told = (deltas["reasoning"], deltas["content"])
    if told != (parsed.reasoning_content or "", parsed.content):
        fail(f"the deltas told {told}", f"the result is {parsed}", *where)
    for index, call in enumerate(parsed.tool_calls):
        if str(call.status) == "ok":
            expected = {"name": call.name, "id": call.id, "arguments": call.arguments_text}
            if deltas["calls"].get(index) != expected:
                fail(f"call {index}: the deltas told {deltas['calls'].get(index)}", f"the result is {call}", *where)
    if parsed != renderer.parse_response(ids, prompt_ids=prompt_ids, tools=tools):
        fail("parse_response differs from the stream", *where)
    return parsed


def reply_tokens(
    renderer: Renderer[Any], prompt: Conversation, message: dict[str, Any]
) -> tuple[list[int], list[int]] | None:
    """The prompt's IDs and those of a canonical reply through its stop token; None where it is not canonical.

    A reply is canonical where the prompt is a token prefix of the conversation with the reply.
    """
    start = rendered(renderer, prompt).token_ids
    whole = rendered(renderer, prompt.followed_by([message], add_generation_prompt=False)).token_ids
    if whole[: len(start)] != start:
        return None
    stops = set(renderer.get_stop_token_ids())
    reply = whole[len(start) :]
    end = next((place + 1 for place, token_id in enumerate(reply) if token_id in stops), len(reply))
    return start, reply[:end]


def _survives_normalizer(renderer: Renderer[Any], message: dict[str, Any]) -> bool:
    """Whether the arguments are still the same JSON after the tokenizer's normalizer.

    NFC makes `\\ń`, which is no JSON, of an escaped line feed and a combining accent after it.
    """
    for call in message.get("tool_calls") or []:
        text = renderer.tokenizer.normalize(json.dumps(call["function"]["arguments"], ensure_ascii=False))
        try:
            if json.dumps(json.loads(text), ensure_ascii=False) != text:
                return False
        except ValueError:
            return False
    return True


def check_round_trip(
    renderer: Renderer[Any], prompt: Conversation, message: dict[str, Any], *, exact_arguments: bool = True
) -> ParsedResponse | None:
    """A canonical reply comes back: the same fields, and the parsed message renders to the same tokens.

    Texts are compared as the tokenizer normalises them, and without the white space around them, which formats write
    and remove themselves; the render of the parsed message then shows whether anything was lost. `exact_arguments=False` leaves out the values of arguments,
    for formats that do not tell text from numbers without a schema.

    Returns None where the reply is not canonical, or where the tokenizer's normalizer breaks its arguments.
    """
    tokens = reply_tokens(renderer, prompt, message)
    if tokens is None or not _survives_normalizer(renderer, message):
        return None
    prompt_ids, reply = tokens
    stopped = bool(reply) and reply[-1] in set(renderer.get_stop_token_ids())
    parsed = renderer.parse_response(reply, prompt_ids=prompt_ids, tools=prompt.tools, stopped=stopped or None)
    check_spans(parsed, len(reply))
    where = (f"text {text_of(renderer, reply)!r}", f"parsed {parsed}", shown(message))
    normalize = renderer.tokenizer.normalize
    if parsed.content.strip() != normalize(message.get("content") or "").strip():
        fail("the content came back otherwise", *where)
    reasoning = normalize(message.get("reasoning_content") or "").strip()
    if reasoning not in text_of(renderer, reply):
        reasoning = ""  # the template drops it even of the last answer
    if (parsed.reasoning_content or "").strip() != reasoning:
        fail("the reasoning came back otherwise", *where)
    calls = [call["function"] for call in message.get("tool_calls") or []]
    if [call.name for call in parsed.valid_tool_calls] != [call["name"] for call in calls]:
        fail("the calls came back otherwise", *where)
    if exact_arguments:
        for call, function in zip(parsed.valid_tool_calls, calls, strict=True):
            wanted = normalize(json.dumps(function["arguments"], ensure_ascii=False))
            if json.dumps(call.arguments, ensure_ascii=False) != wanted:
                fail(f"the arguments came back as {call.arguments}", *where)
    _check_renders_again(renderer, prompt, parsed, [*prompt_ids, *reply], where)
    return parsed


def _check_renders_again(
    renderer: Renderer[Any],
    prompt: Conversation,
    parsed: ParsedResponse,
    expected: Sequence[int],
    where: Sequence[str],
) -> None:
    again = parsed.to_message()
    messages = [again]
    if not again["content"] and again.get("tool_calls"):
        messages.append({**again, "content": None})  # formats that print calls beside null content alone
    renders = []
    for candidate in messages:
        with damage_allowed():
            renders.append(rendered(renderer, prompt.followed_by([candidate], add_generation_prompt=False)).token_ids)
    if not any(render[: len(expected)] == list(expected) for render in renders):
        fail("the parsed message renders to other tokens", difference(renderer, renders[0], expected), *where)


def check_spelled_markers_are_text(renderer: Renderer[Any], markers: Sequence[str]) -> None:
    """The characters of a special token, spelled from ordinary tokens, are text: no call, no reasoning border, no stop.

    Looks at those of the markers that are special tokens of the tokenizer.
    """
    adapter = renderer.tokenizer
    for marker in markers:
        if marker not in adapter.special_tokens:
            continue
        ids = adapter.encode_ordinary(f"before {marker} after")
        parsed = check_parse_never_raises(renderer, ids)
        text = (parsed.reasoning_content or "") + parsed.content
        if text.strip() != f"before {marker} after" or parsed.tool_calls or parsed.stop is not None:
            fail(f"{marker!r} spelled from ordinary tokens is not text", f"parsed {parsed}")
