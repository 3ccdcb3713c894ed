"""Streams: put together to the reply in one piece; cut, broken or ended by an error, they keep what came before."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import generated
import pytest
import streamed
from hypothesis import given, settings

from renderers.errors import VendorError, VendorPayloadError, VendorReplyError, VendorStreamError
from renderers.parsed import CallStatus
from renderers.testing.strategies import decided
from renderers.vendors import ANTHROPIC, CHAT_COMPLETIONS, Anthropic, ChatCompletions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from renderers.testing import Choices

Json = dict[str, Any]
EXAMPLES = settings(max_examples=settings().max_examples // (1 if "FUZZ_EXAMPLES" in os.environ else 3))
Api = Anthropic | ChatCompletions


def anthropic(choices: Choices) -> tuple[Json, list[Json]]:
    reply = generated.anthropic_reply(choices)
    return reply, streamed.anthropic_events(choices, reply)


def chat(choices: Choices, alternatives: int = 2) -> tuple[Json, list[Json]]:
    reply = generated.chat_reply(choices)
    reply["choices"] = reply["choices"][:alternatives]
    for choice in reply["choices"]:
        if isinstance(choice["message"]["content"], list):  # requests have them, streams do not
            choice["message"]["content"] = None
    return reply, streamed.chat_events(choices, reply)


def one_chat(choices: Choices) -> tuple[Json, list[Json]]:
    return chat(choices, 1)


STREAMS: list[tuple[Api, Callable[[Choices], tuple[Json, list[Json]]]]] = [
    (ANTHROPIC, anthropic),
    (CHAT_COMPLETIONS, chat),
]


def exactly(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def with_objects(message: Json) -> str:
    """A message whose arguments are compared as what they say."""
    calls = []
    for call in message.get("tool_calls") or ():
        arguments = call["function"]["arguments"]
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
        calls.append({**call, "function": {**call["function"], "arguments": parsed}})
    return exactly({**message, "tool_calls": calls})


@pytest.mark.parametrize(("api", "build"), STREAMS, ids=["anthropic", "chat"])
def test_a_stream_gives_the_reply_in_one_piece(api: Api, build: Callable[[Choices], tuple[Json, list[Json]]]) -> None:
    @EXAMPLES
    @given(decided(build, 500))
    def same(case: tuple[Json, list[Json]]) -> None:
        payload, events = case
        reply = api.read_stream(events)
        whole = api.read_reply(payload)
        if api is ANTHROPIC:  # a stream shows the arguments' text, and a whole reply does not
            assert with_objects(reply.message) == with_objects(whole.message)
            assert all(isinstance(call["function"]["arguments"], str) for call in reply.message.get("tool_calls") or ())
        else:
            assert exactly(reply.message) == exactly(whole.message)
            assert reply.malformed_calls == whole.malformed_calls
        assert exactly(api.write_reply(reply).payload) == exactly(payload)

    same()


@pytest.mark.parametrize(("api", "build"), [STREAMS[0], (CHAT_COMPLETIONS, one_chat)], ids=["anthropic", "chat"])
def test_a_cut_stream_keeps_what_came(api: Api, build: Callable[[Choices], tuple[Json, list[Json]]]) -> None:
    @EXAMPLES
    @given(decided(build, 400))
    def keeps(case: tuple[Json, list[Json]]) -> None:
        payload, events = case
        whole = api.read_reply(payload)
        last = next(index for index in reversed(range(len(events))) if _ends(events[index]))
        for cut in range(last + 1):
            with pytest.raises(VendorStreamError) as caught:
                api.read_stream(events[:cut])
            assert f"event {cut}" in str(caught.value) or cut == 0
            partial = caught.value.partial
            if cut == 0:
                assert partial is None
                continue
            if partial is None:  # chunks without a choice say nothing yet
                continue
            known = {call["id"] for call in whole.message.get("tool_calls") or ()}
            assert {call["id"] for call in partial.message.get("tool_calls") or ()} <= known
            assert "".join(texts(whole.message)).startswith("".join(texts(partial.message)))
            reasoning = partial.message.get("reasoning_content") or ""
            assert (whole.message.get("reasoning_content") or "").startswith(reasoning)

    keeps()


def _ends(event: Json) -> bool:
    if event.get("type") == "message_stop":
        return True
    return any(choice.get("finish_reason") for choice in event.get("choices") or ())


def texts(message: Json) -> Iterator[str]:
    content = message.get("content") or ""
    yield from [content] if isinstance(content, str) else [part["text"] for part in content]


START = {
    "type": "message_start",
    "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": {"output_tokens": 1}},
}
TEXT = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
]
CALL = [
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"path": "/tm'}},
]
END = [{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, {"type": "message_stop"}]


def stop(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def chunk(**delta: Any) -> Json:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def test_a_call_in_a_cut_stream_is_never_executable() -> None:
    """Not even where its arguments happen to be whole: more might have come."""
    whole = {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": 'p"}'}}
    for events in ([START, *TEXT, stop(0), *CALL], [START, *TEXT, stop(0), *CALL, whole]):
        with pytest.raises(VendorStreamError, match=r"after event \d: the stream ends inside block 1") as caught:
            ANTHROPIC.read_stream(events)
        partial = caught.value.partial
        assert partial.message == {"role": "assistant", "content": "Hel"}
        [call] = partial.malformed_calls
        assert (call.id, call.name, call.status) == ("t", "f", CallStatus.INCOMPLETE)
        assert call.arguments is None
        assert call.arguments_text.startswith('{"path": "/tm')

    first = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    second = {"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": '{"x": 1}'}}
    with pytest.raises(VendorStreamError, match="before choice 0 is finished") as caught:
        CHAT_COMPLETIONS.read_stream([chunk(role="assistant"), chunk(tool_calls=[first]), chunk(tool_calls=[second])])
    assert [call["id"] for call in caught.value.partial.message["tool_calls"]] == ["a"]
    assert [call.id for call in caught.value.partial.malformed_calls] == ["b"]


def test_a_call_that_the_model_did_not_finish_is_left_out() -> None:
    reply = ANTHROPIC.read_stream([START, *TEXT, stop(0), *CALL, stop(1), *END])
    assert reply.stop == "max_tokens"
    assert reply.message == {"role": "assistant", "content": "Hel"}
    [call] = reply.malformed_calls
    assert (call.status, call.arguments_text) == (CallStatus.INVALID_JSON, '{"path": "/tm')


def test_a_malformed_call_of_chat_completions_stays_and_is_named() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reply = CHAT_COMPLETIONS.read_reply({"choices": [{"message": message, "finish_reason": "length"}]})
    assert reply.message["tool_calls"] == [call]
    assert [one.status for one in reply.malformed_calls] == [CallStatus.INVALID_JSON]


def test_an_error_in_the_middle_keeps_what_came() -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}
    with pytest.raises(VendorReplyError, match=r"anthropic: event 4: overloaded_error: Overloaded") as caught:
        ANTHROPIC.read_stream([START, *TEXT, overloaded])
    assert caught.value.kind == "overloaded_error"
    assert caught.value.payload == overloaded
    assert caught.value.partial.message["content"] == "Hel"

    failed = {"error": {"message": "The server had an error", "type": "server_error", "param": None, "code": None}}
    lines = [f"data: {json.dumps(chunk(content='Hel'))}", "", json.dumps(failed)]  # as a bare line, as it was seen
    with pytest.raises(VendorReplyError, match=r"openai-chat: event 2 \(line 3\): server_error") as caught:
        CHAT_COMPLETIONS.read_stream(lines)
    assert caught.value.partial.message["content"] == "Hel"


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        (TEXT, r"event 1: order: content_block_start before message_start"),
        ([START, START], r"event 2: order: a second message_start"),
        ([START, TEXT[1]], r"event 2: order: block 0 is not open"),
        ([START, TEXT[0], TEXT[0]], r"event 3: order: a second content_block_start of block 0"),
        ([START, *TEXT, END[1]], r"event 4: order: message_stop while block 0 is open"),
        ([START, *END, *TEXT], r"event 4: order: content_block_start after message_stop"),
        ([START, {"type": "content_block_delta", "index": 0}], r"event 2: delta: Field required"),
        ([START, {"type": "content_block_start", "index": "0", "content_block": {}}], r"event 2: "),
        ([{"type": "message_start", "message": None}], r"event 1: message: Input should be .*, found None"),
        ([START, 7], r"event 2: expected an object, found int"),
        (["data: {}", "data: {"], r"event 1 \(line 1\): type: missing: this is no event"),
        (["<html>502 Bad Gateway</html>"], r"event 1 \(line 1\): neither an event nor a comment: '<html>502"),
    ],
)
def test_broken_events_are_named(events: list[Any], problem: str) -> None:
    with pytest.raises(VendorPayloadError, match=problem) as caught:
        ANTHROPIC.read_stream(events)
    begun = bool(events) and events[0] is START
    assert (caught.value.partial is not None) == begun


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([chunk(content=5)], r"event 1: choices\[0\].delta.content: Input should be a valid string, found 5"),
        ([chunk(tool_calls=[{"id": "a"}])], r"event 1: choices\[0\].delta.tool_calls\[0\].index: Field required"),
        (["data: " + json.dumps(chunk(content="H")), "", 'data: {"choices": [{"ind'], r"event 2 \(line 3\): not JSON"),
        ([{"choices": {}}], r"event 1: choices: Input should be a valid list"),
    ],
)
def test_broken_chunks_are_named(events: list[Any], problem: str) -> None:
    with pytest.raises(VendorPayloadError, match=problem):
        CHAT_COMPLETIONS.read_stream(events)


def test_a_broken_connection_is_a_cut_stream() -> None:
    def lines() -> Iterator[str]:
        yield f"data: {json.dumps(chunk(content='Hel'))}"
        raise ConnectionResetError(104, "reset by peer")

    with pytest.raises(
        VendorStreamError, match=r"after event 1 \(line 1\): the stream broke: ConnectionResetError"
    ) as caught:
        CHAT_COMPLETIONS.read_stream(lines())
    assert caught.value.partial.message["content"] == "Hel"
    assert isinstance(caught.value.__cause__, ConnectionResetError)


def test_an_empty_stream_is_cut() -> None:
    for api in (ANTHROPIC, CHAT_COMPLETIONS):
        with pytest.raises(VendorStreamError, match="the stream: the stream ends before the reply begins") as caught:
            api.read_stream([])
        assert caught.value.partial is None


def test_lines_may_hold_the_line_ends_that_json_may_hold() -> None:
    text = json.dumps(chunk(content="a\u2028b\x85c"), ensure_ascii=False)
    end = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    reply = CHAT_COMPLETIONS.read_stream([f": comment\r\ndata: {text}\r\n\r\ndata:{end}\r\n\r\ndata: [DONE]\r\n"])
    assert reply.message["content"] == "a\u2028b\x85c"


def test_events_of_another_year_are_kept() -> None:
    stranger = {"type": "new_event", "x": 1}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "summary_delta", "summary": "s"}}
    reply = ANTHROPIC.read_stream([START, *TEXT, delta, delta, stranger, stop(0), *END])
    assert reply.unread_events == (stranger,)
    assert reply.message["vendor_blocks"]["anthropic"]["content"] == [{"type": "text", "text": "Hel", "summary": "ss"}]
    assert CHAT_COMPLETIONS.read_stream([chunk(), {"object": "x"}, _end()]).unread_events == ({"object": "x"},)


def _end() -> Json:
    return {"choices": [{"index": 0, "finish_reason": "stop"}]}


def test_a_stream_can_be_fed_one_by_one() -> None:
    stream = ANTHROPIC.stream()
    assert stream.partial() is None
    for event in (START, *TEXT):
        stream.feed(event)
    partial = stream.partial()
    assert partial is not None
    assert partial.message["content"] == "Hel"
    for event in (stop(0), *END):
        stream.feed(event)
    assert stream.finish().message["content"] == "Hel"


def test_alternatives_are_kept_apart() -> None:
    chunks = [
        {"choices": [{"index": 1, "delta": {"content": "b"}}]},
        {"choices": [{"index": 0, "delta": {"content": "a"}}]},
        {"choices": [{"index": index, "delta": {}, "finish_reason": "stop"} for index in (0, 1)]},
    ]
    reply = CHAT_COMPLETIONS.read_stream(chunks)
    payload = CHAT_COMPLETIONS.write_reply(reply).payload
    assert [CHAT_COMPLETIONS.read_reply(payload, choice=one).message["content"] for one in (0, 1)] == ["a", "b"]


def test_errors_survive_pickling() -> None:
    import pickle

    with pytest.raises(VendorError) as caught:
        ANTHROPIC.read_stream([START, *TEXT])
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert str(again) == str(caught.value)
    assert again.partial == caught.value.partial
