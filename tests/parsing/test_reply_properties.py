"""Properties of every reply: nothing raises, nothing is lost, the grouping does not matter, and time is linear."""

from __future__ import annotations

import json
import pickle
import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from parsing_support import ADAPTERS, QWEN3, check_invariants, encode, encode_parts, feed_in_groups, parse_ids

from renderers.formats.hermes import JsonToolCalls
from renderers.parsed import CallStatus, ParsedResponse
from renderers.parsing import BoundReplyGrammar, Marker, ReplyGrammar

MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>", "<|endoftext|>", "<|vision_start|>")
FRAGMENTS = (
    *MARKERS[:4],
    *MARKERS,
    "\n", "\n\n", "\n\n\n", " ", "hi", "é", "日本", "🧿", "{", "}", '"', "\\", ".\n", "<", "</think", "<tool_",
    '{"name": "run", "arguments": {"code": "x"}}',
    '\n{"name": "run", "arguments": {"a": [1, "}\\"", {"b": null}]}}\n',
    '{"arguments": {"late": "name"}, "name": "run"}',
    '{"name": "run", "arguments": {"a": 1, "a": 2}}',
    '{"name": "run", "arguments": "{}"}',
    '{"name": "", "arguments": {}}',
    '{"name": "cut", "arguments": {"a": ',
)  # fmt: skip


@st.composite
def token_sequences(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A tokenizer's name, and tokens that are mostly fragments of replies, with random IDs among them."""
    name = draw(st.sampled_from(sorted(ADAPTERS)))
    adapter = ADAPTERS[name]()
    size = adapter.vocabulary_size
    ids: list[int] = []
    for _ in range(draw(st.integers(0, 14))):
        kind = draw(st.integers(0, 9))
        if kind == 0:
            ids.append(draw(st.integers(0, size + 300) | st.integers(0, 2**80)))
        elif kind == 1:  # bytes that are no characters: every byte is a token of its own
            ids += adapter.encode_ordinary("🧿é")[: draw(st.integers(1, 3))]
        elif kind == 2:
            ids += adapter.encode_ordinary(draw(st.sampled_from(FRAGMENTS)))
        else:
            ids += encode(adapter, draw(st.sampled_from(FRAGMENTS)))
    return name, ids


@pytest.fixture(scope="module")
def grammars() -> dict[str, BoundReplyGrammar]:
    return {name: QWEN3.bind(make()) for name, make in ADAPTERS.items()}


@given(
    token_sequences(),
    st.lists(st.integers(0, 200)),
    st.sampled_from((None, True, False)),
    st.sampled_from(
        ("", "<think>\n", "<think>\n\n</think>\n\n", "so\n", '<tool_call>\n{"name": "r', "<think>a<tool_call>{")
    ),
)
def test_any_tokens_in_any_grouping(
    grammars: dict[str, BoundReplyGrammar],
    tokens: tuple[str, list[int]],
    cuts: list[int],
    stopped: bool | None,
    opening: str,
) -> None:
    name, ids = tokens
    opening_ids = encode(ADAPTERS[name](), opening)
    cuts = [cut for cut in cuts if cut <= len(ids)]
    parse_ids(grammars[name], ids, stopped, cuts, opening_ids=opening_ids)


@given(token_sequences())
def test_one_token_at_a_time(grammars: dict[str, BoundReplyGrammar], tokens: tuple[str, list[int]]) -> None:
    name, ids = tokens
    bound = grammars[name]
    result = parse_ids(bound, ids)
    stream = bound.stream()
    deltas = [delta for token_id in ids for delta in stream.feed(token_id)]
    assert stream.finish() == result
    check_invariants(result, deltas + stream.drain(), ids)


@given(token_sequences())
def test_no_text_is_lost(grammars: dict[str, BoundReplyGrammar], tokens: tuple[str, list[int]]) -> None:
    """Fields and calls hold the text of the tokens that their spans name, in order."""
    name, ids = tokens
    adapter = ADAPTERS[name]()
    result = parse_ids(grammars[name], ids)
    for region, text in (("content", result.content), ("reasoning", result.reasoning_content or "")):
        spans = [span for span in result.spans if span.region == region]
        spanned = b"".join(adapter.decode_bytes(ids[span.start : span.end]) for span in spans)
        # A token may hold the format's line feeds beside text, and bytes that are no character.
        assert _bare(text) == _bare(spanned.decode("utf-8", "replace"))


def _bare(text: str) -> str:
    return text.replace("\n", "").replace("\ufffd", "")


_json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_plain_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ("\n", "a\n", "\nb", "a\n\nb\n\n", " x ", "é🧿", "<tool_call", "think>")
)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """Assistant messages that Qwen3's templates write without loss."""
    thinks = draw(st.booleans())
    content = draw(_plain_text)
    message: dict[str, Any] = {"content": content.lstrip("\n") if thinks else content}
    if thinks:
        message["reasoning"] = draw(_plain_text).strip("\n")
    message["calls"] = draw(
        st.lists(
            st.tuples(
                st.sampled_from(("run", "get_weather", "a.b")), st.dictionaries(st.text(), _json_values, max_size=3)
            ),
            max_size=3,
        )
    )
    return message


def _reply_parts(message: dict[str, Any]) -> list[str | tuple[str]]:
    """The reply as Qwen3's template writes the message; what stands between two markers in ordinary tokens."""
    parts: list[str | tuple[str]] = []
    if "reasoning" in message:
        parts += ["<think>", (f"\n{message['reasoning']}\n",), "</think>"]
    text = ("\n\n" if parts else "") + message["content"]
    for index, (name, arguments) in enumerate(message["calls"]):
        text += "\n" if index or message["content"] else ""
        body = f'\n{{"name": "{name}", "arguments": {json.dumps(arguments, ensure_ascii=False)}}}\n'
        parts += [(text,), "<tool_call>", (body,), "</tool_call>"]
        text = ""
    return [*parts, (text,), "<|im_end|>"]


def _text(parts: list[str | tuple[str]]) -> str:
    return "".join(part if isinstance(part, str) else part[0] for part in parts)


@given(messages(), st.booleans())
def test_canonical_replies_come_back(
    grammars: dict[str, BoundReplyGrammar], message: dict[str, Any], opened_by_prompt: bool
) -> None:
    name = min(ADAPTERS)
    adapter = ADAPTERS[name]()
    parts = _reply_parts(message)
    text = _text(parts)
    assume(adapter.normalize(text) == text)  # else the tokenizer changes it before anything is sampled
    opening: list[str | tuple[str]] = []
    if opened_by_prompt and "reasoning" in message:
        opening = ["<think>", ("\n",)]
        parts = [(parts[1][0][1:],), *parts[2:]]
    ids = encode_parts(adapter, parts)
    parsed = parse_ids(grammars[name], ids, opening_ids=encode_parts(adapter, opening))
    assert parsed.content == message["content"]
    assert parsed.reasoning_content == message.get("reasoning")
    assert [(call.name, call.arguments) for call in parsed.tool_calls] == message["calls"]
    assert all(call.status is CallStatus.OK for call in parsed.tool_calls)
    assert parsed.stop == "<|im_end|>"
    assert parsed.reasoning_complete
    again = parsed.to_message()
    rebuilt = {"content": again["content"] or "", "calls": message["calls"]}
    rebuilt |= {"reasoning": again["reasoning_content"]} if "reasoning_content" in again else {}
    assert _text(_reply_parts(rebuilt)) == text


@given(messages())
def test_every_prefix_of_a_canonical_reply(grammars: dict[str, BoundReplyGrammar], message: dict[str, Any]) -> None:
    """A cut reply loses only its end: reasoning is never content, and no call is made up."""
    name = max(ADAPTERS)
    bound, ids = grammars[name], encode_parts(ADAPTERS[name](), _reply_parts(message))
    whole = feed_in_groups(bound, ids)[0]
    for end in range(0, len(ids), max(1, len(ids) // 12)):
        cut, deltas = feed_in_groups(bound, ids[:end])
        check_invariants(cut, deltas, ids[:end])
        assert whole.content.startswith(cut.content.rstrip("\ufffd\n"))
        assert (whole.reasoning_content or "").startswith((cut.reasoning_content or "").rstrip("\ufffd\n"))
        for left, right in zip(cut.tool_calls, whole.tool_calls, strict=False):
            assert left == right or left.status is CallStatus.INCOMPLETE
            assert right.arguments_text.startswith(left.arguments_text.rstrip("\ufffd"))
        assert cut.stop is None


TEXT_CALLS = ReplyGrammar(("<|im_end|>",), tool_calls=JsonToolCalls(Marker.plain("<call>"), Marker.plain("</call>")))

ADVERSARIES: dict[str, tuple[str, str]] = {
    "openers": ("<tool_call>", ""),
    "openers in reasoning": ("<think><tool_call>", ""),
    "openers in one reasoning": ("<tool_call>", "<think>"),
    "calls in one reasoning": ('<tool_call>{"name": "r", "arguments": {}}</tool_call>', "<think>"),
    "reasoning and calls": ('<think><tool_call>{"name": "r", "arguments": {}}</tool_call>', "<think>"),
    "closers": ("</tool_call></think>", ""),
    "line feeds": ("\n", ""),
    "line feeds in reasoning": ("\n", "<think>"),
    "one call": ('{"a": "b\\"", ', '<tool_call>{"name": "r", "arguments": {"x": ['),
    "one name": ("x", '<tool_call>{"name": "'),
    "one string": ('\\"', '<tool_call>{"name": "r", "arguments": {"x": "'),
    "backslashes": ("\\", '<tool_call>{"name": "r", "arguments": {"x": "'),
    "brackets": ("[", '<tool_call>{"name": "r", "arguments": {"x": '),
    "ends of text markers": ("</call", ""),
    "text markers": ("<call></call>", ""),
    "broken characters": ("\N{NAZAR AMULET}", ""),
}


@pytest.mark.parametrize("by_token", [False, True], ids=["batch", "stream"])
@pytest.mark.parametrize("case", ADVERSARIES)
def test_time_is_linear(case: str, by_token: bool) -> None:
    """Eight times the tokens take not much more than eight times as long."""
    adapter = ADAPTERS["small"]()
    bound = (TEXT_CALLS if "text markers" in case else QWEN3).bind(adapter)
    unit, start = ADVERSARIES[case]
    one, before = encode(adapter, unit), encode(adapter, start)
    if case == "broken characters":
        one = one[:-1]

    def seconds(count: int) -> float:
        ids = before + one * (count // len(one)) + encode(adapter, "<|im_end|>")
        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            result, _ = feed_in_groups(bound, ids, range(1, len(ids)) if by_token else ())
            best = min(best, time.process_time() - begin)
        assert result.stop == "<|im_end|>"
        return best

    small, large = 1_000, 8_000
    assert seconds(large) < 8 * 3 * max(seconds(small), 0.001)


def test_result_and_grammar_pickle(bound: BoundReplyGrammar, adapter: Any) -> None:
    ids = encode_parts(adapter, ["<think>\na\n</think>\n\nb\n<tool_call>\n", ("{}",), "\n</tool_call><|im_end|>"])
    result = parse_ids(bound, ids)
    copy: ParsedResponse = pickle.loads(pickle.dumps(result))  # noqa: S301 - made here
    assert copy == result
    if adapter is ADAPTERS["small"]():
        again: BoundReplyGrammar = pickle.loads(pickle.dumps(bound))  # noqa: S301 - made here
        assert parse_ids(again, ids) == result
