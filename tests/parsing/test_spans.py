"""Which region each token is in."""

from __future__ import annotations

from typing import Any

import pytest
from parsing_support import encode, encode_parts, parse_ids, small_adapter

from renderers.formats.hermes import JsonToolCalls
from renderers.parsed import ParsedResponse, Region
from renderers.parsing import BoundReplyGrammar, ReplyGrammar

STRUCTURE, REASONING, CONTENT, CALL = Region.STRUCTURE, Region.REASONING, Region.CONTENT, Region.TOOL_CALL


def regions(adapter: Any, ids: list[int], parsed: ParsedResponse) -> list[tuple[str, Region, int | None]]:
    return [
        (adapter.decode_bytes(ids[span.start : span.end]).decode("utf-8", "replace"), span.region, span.call)
        for span in parsed.spans
    ]


@pytest.fixture
def small() -> Any:
    return small_adapter()


def test_a_whole_reply(adapter: Any, bound: BoundReplyGrammar) -> None:
    text = '<think>\nhm\n</think>\n\nHi\n<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call><|im_end|>'
    ids = encode(adapter, text)
    assert regions(adapter, ids, parse_ids(bound, ids)) == [
        ("<think>\n", STRUCTURE, None),
        ("hm", REASONING, None),
        ("\n</think>\n\n", STRUCTURE, None),
        ("Hi", CONTENT, None),
        ("\n", STRUCTURE, None),
        ("<tool_call>\n", STRUCTURE, 0),
        # Qwen3's tokenizer has a token `}}\n`: its first character is the call's.
        ('{"name": "a", "arguments": {}}' + ("" if adapter is small_adapter() else "\n"), CALL, 0),
        ("\n</tool_call>" if adapter is small_adapter() else "</tool_call>", STRUCTURE, 0),
        ("<|im_end|>", STRUCTURE, None),
    ]


def test_a_token_is_where_its_first_character_is_that_is_no_structure(small: Any) -> None:
    grammar = ReplyGrammar(("<|im_end|>",), tool_calls=JsonToolCalls())
    ids = encode(small, "hi.\n<tool_call>")
    assert [small.token_bytes(token_id) for token_id in ids] == [b"hi", b".\n", b"<tool_call>"]
    parsed = parse_ids(grammar.bind(small), ids)
    assert parsed.content == "hi."
    assert regions(small, ids, parsed)[0] == ("hi.\n", CONTENT, None)


def test_line_feeds_that_share_a_token(small: Any, bound: BoundReplyGrammar) -> None:
    """Of three line feeds in one token, two are the format's and one is content."""
    ids = encode(small, "</think>\n\n\nhi")
    assert len(ids) == 3
    parsed = parse_ids(ReplyGrammar(("<|im_end|>",), bound.grammar.reasoning).bind(small), ids)
    assert parsed.content == "\nhi"
    assert regions(small, ids, parsed) == [("</think>", STRUCTURE, None), ("\n\n\nhi", CONTENT, None)]


@pytest.mark.parametrize("count", [1, 2])
def test_bytes_of_a_cut_character(small: Any, bound: BoundReplyGrammar, count: int) -> None:
    """Each byte of a broken character is in the region of the replacement character that it became."""
    ids = [
        *encode_parts(small, ["<think>"]),
        *small.encode_ordinary("🧿")[:count],
        *encode_parts(small, ["</think>hi"]),
    ]
    parsed = parse_ids(bound.grammar.bind(small), ids)
    assert [span.region for span in parsed.spans] == [STRUCTURE, REASONING, STRUCTURE, CONTENT]
    assert parsed.reasoning_content == "\ufffd"


def test_borders_in_the_middle_of_a_long_run(adapter: Any) -> None:
    """Found by bisection, not by walking: text markers can stand anywhere in a run of ordinary tokens."""
    from renderers.formats.named import named_grammar

    bound = named_grammar("hermes", stop_tokens=("<|im_end|>",)).bind(_without(adapter, "<tool_call>", "</tool_call>"))
    long = "日本 hi " * 60
    call = '<tool_call>\n{"name": "a", "arguments": {"x": "é"}}\n</tool_call>'
    ids = adapter.encode_ordinary(f"{long}{call}{long}{call}{long}")
    parsed = parse_ids(bound, ids, cuts=(7, 300))
    assert [call.status for call in parsed.tool_calls] == ["ok", "ok"]
    assert parsed.content == long * 3
    order = [(span.region, span.call) for span in parsed.spans if span.region is not STRUCTURE]
    assert order == [(CONTENT, None), (CALL, 0), (CONTENT, None), (CALL, 1), (CONTENT, None)]
    for span in parsed.spans:
        text = adapter.decode_bytes(ids[span.start : span.end]).decode("utf-8", "replace")
        assert ('"name"' in text) == (span.region is CALL)


def _without(adapter: Any, *names: str) -> Any:
    """The adapter, as if it had no such special tokens."""

    class Without:
        def __init__(self) -> None:
            self.special_tokens = {
                name: token_id for name, token_id in adapter.special_tokens.items() if name not in names
            }

        def __getattr__(self, name: str) -> Any:
            return getattr(adapter, name)

    return Without()
