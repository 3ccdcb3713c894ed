"""What the parsing tests share: a tokenizer, a grammar, and one way to parse that checks every invariant."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from golden.reference import ASSETS, HAS_ASSETS
from renderers.formats.hermes import JsonToolCalls
from renderers.parsed import Delta, ParsedResponse, Region
from renderers.parsing import BoundGrammar, Reasoning, ReplyGrammar
from renderers.tokenizers import adapt

SPECIAL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
    "<|vision_start|>", "<arg_key>", "</arg_key>", "<|section|>", "<|/section|>", "｜DSML｜",
)  # fmt: skip

QWEN3 = ReplyGrammar(
    stop_tokens=("<|im_end|>", "<|endoftext|>"),
    reasoning=Reasoning("<think>", "</think>", after_open="\n", before_close="\n", after_close="\n\n"),
    tool_calls=JsonToolCalls(),
)


@functools.cache
def small_adapter() -> Any:
    """A byte-level tokenizer with a few merges, the markers, and a gap among its IDs."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = ["\n\n", ".\n", "\n\n\n", "hi", " th", "in", "k>", '{"', '":', ' "', "}}", "}\n", "</", "call", "ð\x9f"]
    spelled = ["".join(_spell(word)) for word in words]
    vocabulary = {text: index for index, text in enumerate(alphabet)}
    merges = []
    for text in spelled:
        for end in range(2, len(text) + 1):
            if text[:end] not in vocabulary:
                vocabulary[text[:end]] = len(vocabulary)
                merges.append((text[: end - 1], text[end - 1]))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in SPECIAL_TOKENS])
    return adapt(tokenizer)


def _spell(text: str) -> list[str]:
    """`text` in the characters that byte-level vocabularies write for its bytes (latin-1 text: its bytes)."""
    shift = {byte: chr(byte) for byte in (*range(33, 127), *range(161, 173), *range(174, 256))}
    others = (byte for byte in range(256) if byte not in shift)
    shift |= {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [shift[byte] for byte in text.encode("latin-1")]


@functools.cache
def qwen3_adapter() -> Any:
    """The official Qwen3 tokenizer, where the assets are."""
    return adapt(Tokenizer.from_file(str(ASSETS / "tokenizers" / "qwen3" / "tokenizer.json")))


ADAPTERS = {"small": small_adapter} | ({"qwen3": qwen3_adapter} if HAS_ASSETS else {})


def encode(adapter: Any, text: str) -> list[int]:
    """IDs of `text`, special tokens recognised."""
    ids: list[int] = adapter.encode_with_offsets(text)[0]
    return ids


def encode_parts(adapter: Any, parts: Sequence[str | tuple[str]]) -> list[int]:
    """IDs of parts: text with special tokens, or, as a tuple of one, text in ordinary tokens only."""
    ids: list[int] = []
    for part in parts:
        ids += adapter.encode_ordinary(part[0]) if isinstance(part, tuple) else encode(adapter, part)
    return ids


def feed_in_groups(
    bound: BoundGrammar, ids: Sequence[int], cuts: Sequence[int] = (), stopped: bool | None = None, **options: Any
) -> tuple[ParsedResponse, list[Delta]]:
    """Feed the IDs in groups that end at `cuts`."""
    stream = bound.stream(**options)
    deltas: list[Delta] = []
    for start, end in itertools.pairwise([0, *sorted(cuts), len(ids)]):
        deltas += stream.feed(ids[start:end])
    result = stream.finish(stopped)
    deltas += stream.drain()
    assert stream.drain() == []
    assert stream.finish() is result
    return result, deltas


def joined(deltas: Sequence[Delta]) -> tuple[str, str, list[list[str]]]:
    """Reasoning, content, and each call's ID, name and arguments' text, as deltas tell them."""
    reasoning, content, calls = "", "", []
    for delta in deltas:
        set_fields = [delta.reasoning, delta.content, delta.name, delta.arguments]
        assert sum(field is not None for field in set_fields) == 1, delta
        reasoning += delta.reasoning or ""
        content += delta.content or ""
        if delta.name is not None:
            assert delta.call == len(calls), delta
            assert delta.call_id
            calls.append([delta.call_id, delta.name, ""])
        if delta.arguments is not None:
            assert delta.arguments
            assert delta.call is not None
            calls[delta.call][2] += delta.arguments
    return reasoning, content, calls


def check_invariants(result: ParsedResponse, deltas: Sequence[Delta], ids: Sequence[int]) -> None:
    """What holds for every reply: spans partition it, deltas add up to it."""
    ends = [span.end for span in result.spans]
    assert [span.start for span in result.spans] == [0, *ends][: len(ends)]
    assert (ends[-1] if ends else 0) == len(ids)
    for left, right in itertools.pairwise(result.spans):
        assert (left.region, left.call) != (right.region, right.call), "neighbours are joined"
    for span in result.spans:
        assert span.start < span.end
        assert span.call is None or 0 <= span.call < len(result.tool_calls)
        assert (span.region is not Region.TOOL_CALL) or span.call is not None
        if span.start >= result.closed_at:
            assert span.region is Region.STRUCTURE
    assert 0 <= result.closed_at <= len(ids)
    calls = [[call.id, call.name, call.arguments_text] for call in result.tool_calls]
    assert joined(deltas) == (result.reasoning_content or "", result.content, calls)
    for call in result.tool_calls:
        assert (call.status == "ok") == (call.error is None) == (call.arguments is not None)


def parse_ids(
    bound: BoundGrammar,
    ids: Sequence[int],
    stopped: bool | None = None,
    cuts: Sequence[int] | None = None,
    **options: Any,
) -> ParsedResponse:
    """Parse in one portion and in several (one token each, unless `cuts` says where): the result is the same."""
    result, deltas = feed_in_groups(bound, ids, (), stopped, **options)
    check_invariants(result, deltas, ids)
    other, other_deltas = feed_in_groups(bound, ids, range(1, len(ids)) if cuts is None else cuts, stopped, **options)
    assert other == result
    assert joined(other_deltas) == joined(deltas)
    return result
