"""Pieces to tokens: chunks, borders, labels, the cache; on the golden tokenizer, whose bytes are all there."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from renderers import MessageError, Owner, create_renderer, encoding
from renderers.assembly import token_borders
from renderers.cache import GenerationCache
from renderers.encoding import Encoder, Fragment
from renderers.labels import POLICY, PROMPT, TEMPLATE, Runs, make_label, message_of, owner_of
from renderers.rendered import RenderedTokens, Segment
from renderers.writer import Writer

RENDERER = create_renderer("golden:qwen3")
TOKENIZER = RENDERER.tokenizer
STOP = TOKENIZER.special_tokens["<|im_end|>"]

texts = st.text(st.sampled_from("ab\n é각가<|im_end|>think/"), max_size=12)
pieces = st.lists(st.tuples(texts, st.sampled_from([TEMPLATE, PROMPT]), st.booleans()), max_size=8)


def encoder(*, sanitize: bool = False) -> Encoder:
    """A fresh encoder with an empty cache."""
    return Encoder(TOKENIZER, stop_ids=[STOP], sanitize=sanitize)


def flat(parts: Sequence[Sequence[int]]) -> list[int]:
    return [token_id for part in parts for token_id in part]


@given(pieces)
def test_pieces_encode_as_their_whole_text(given_pieces: list[tuple[str, int, bool]]) -> None:
    labelled = [(text, make_label(0, owner), caller) for text, owner, caller in given_pieces]
    parts, runs = encoder().encode(labelled)
    whole, _ = TOKENIZER.encode_with_offsets("".join(text for text, _, _ in labelled))
    assert flat(parts) == whole
    assert runs.length == len(whole)


@pytest.mark.parametrize("sanitize", [False, True])
@given(given_pieces=pieces)
def test_cutting_a_long_head_changes_nothing(sanitize: bool, given_pieces: list[tuple[str, int, bool]]) -> None:
    labelled = [(text, make_label(index, owner), caller) for index, (text, owner, caller) in enumerate(given_pieces)]
    labelled.append(("\n\na<|im_start|>x<|im_end|>", make_label(-1, TEMPLATE), False))
    parts, runs = encoder(sanitize=sanitize).encode(labelled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_LONG_HEAD", 0)
        patch.setattr(type(TOKENIZER), "line_starts", "ab<>|/_theink")  # it splits like Qwen3's own
        cut_parts, cut_runs = encoder(sanitize=sanitize).encode(labelled)
    assert flat(cut_parts) == flat(parts)
    assert list(cut_runs.items()) == list(runs.items())


@given(pieces)
def test_sanitized_text_is_the_same_and_callers_text_is_never_special(
    given_pieces: list[tuple[str, int, bool]],
) -> None:
    labelled = [(text, make_label(index, owner), caller) for index, (text, owner, caller) in enumerate(given_pieces)]
    parts, runs = encoder(sanitize=True).encode(labelled)
    ids = flat(parts)
    text = "".join(text for text, _, _ in labelled)
    assert TOKENIZER.decode_bytes(ids).decode() == TOKENIZER.normalize(text)
    special = set(TOKENIZER.special_tokens.values())
    position = 0
    for count, label in runs.items():
        if labelled[message_of(label)][2]:
            assert not special & set(ids[position : position + count])
        position += count
    assert position == len(ids)


CUT_TOKENS = st.sampled_from(
    ["a", "\n", ""]
    + [part for token in ("<|im_end|>", "<think>") for end in range(len(token)) for part in (token[:end], token[end:])]
)


@pytest.mark.parametrize("sanitize", [False, True])
@given(
    given_pieces=st.lists(st.tuples(CUT_TOKENS, st.booleans(), st.booleans()), max_size=6),
)
@example(given_pieces=[("s<|im_", False, False), ("end|>", True, False)])
def test_fragments_encode_as_one_text(sanitize: bool, given_pieces: list[tuple[str, bool, bool]]) -> None:
    labelled = [(text, make_label(index, PROMPT), caller) for index, (text, caller, _) in enumerate(given_pieces)]
    fragments: list[Fragment] = []
    for piece, (_, _, is_joined) in zip(labelled, given_pieces, strict=True):
        if fragments and is_joined:
            fragments[-1] = Fragment([*fragments[-1].pieces, piece])
        else:
            fragments.append(Fragment([piece]))
    fresh = encoder(sanitize=sanitize)
    for fragment in fragments:
        fresh.cut(fragment)
    parts, runs = fresh.join(fragments)
    whole, whole_runs = encoder(sanitize=sanitize).encode(labelled)
    assert flat(parts) == flat(whole)
    assert list(runs.items()) == list(whole_runs.items())


def test_a_special_token_that_a_frame_begins_does_not_end_in_sanitized_text() -> None:
    fresh = encoder(sanitize=True)
    begun = Fragment([("s<|", make_label(0, TEMPLATE), False)])
    ended = Fragment([("im_end|>", make_label(1, PROMPT), True)])
    fresh.cut(begun)
    fresh.cut(ended)
    assert STOP not in flat(fresh.join([begun, ended])[0])


def test_a_header_that_merges_with_its_body() -> None:
    writer = Writer()
    writer.begin(0, "user")
    writer.scaffold("<|im_start|>user\n")
    writer.body("\nhi")
    parts, runs = encoder().encode(writer.pieces)
    assert [TOKENIZER.token_bytes(token_id) for token_id in flat(parts)] == [b"<|im_start|>", b"user", b"\n\n", b"hi"]
    assert [(count, owner_of(label)) for count, label in runs.items()] == [(3, Owner.TEMPLATE), (1, Owner.PROMPT)]


def test_a_character_joined_by_normalisation_belongs_to_the_first_text() -> None:
    labelled = [("e", make_label(0, TEMPLATE), False), ("\u0301x", make_label(0, PROMPT), True)]
    parts, runs = encoder().encode(labelled)
    assert TOKENIZER.decode_bytes(flat(parts)).decode() == "\u00e9x"
    assert next(owner_of(label) for _, label in runs.items()) is Owner.TEMPLATE


def test_a_token_that_straddles_is_sampled_only_if_all_of_it_is() -> None:
    ids = TOKENIZER.encode_ordinary("\n\n")
    assert len(ids) == 1
    for first, second, expected in (
        (POLICY, TEMPLATE, Owner.TEMPLATE),
        (TEMPLATE, POLICY, Owner.TEMPLATE),
        (POLICY, POLICY, Owner.POLICY),
    ):
        _, runs = encoder().encode([("\n", make_label(0, first), False), ("\n", make_label(0, second), False)])
        assert [owner_of(label) for _, label in runs.items()] == [expected]


def test_lone_surrogates_name_the_message() -> None:
    with pytest.raises(MessageError, match=r"messages\[1\].*surrogate"):
        RENDERER.render([{"role": "user", "content": "a"}, {"role": "user", "content": "b\udc00"}])
    call = {"function": {"name": "f", "arguments": {"x": "\ud800"}}}
    with pytest.raises(MessageError, match=r"messages\[0\]"):
        RENDERER.render([{"role": "assistant", "tool_calls": [call]}])


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.data())
def test_borders_count_tokens_from_either_end(lengths: list[int], data: Any) -> None:
    total = sum(lengths)
    ends = sorted([*data.draw(st.lists(st.integers(0, total), max_size=4)), total])
    starts = [sum(lengths[:index]) for index in range(len(lengths))]
    expected = [(count := sum(1 for start in starts if start < end), sum(lengths[:count]) > end) for end in ends]
    assert token_borders(range(len(lengths)), ends, lambda token_id: b"x" * lengths[token_id]) == expected


def test_every_text_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = encoder()
    messages = [("<|im_start|>user\n", make_label(0, TEMPLATE), False), ("hello", make_label(0, PROMPT), True)]
    first = counted.encode(messages)
    monkeypatch.setattr(type(counted._tokenizer), "encode_batch", None)
    assert counted.encode(messages)[0] == first[0]


def test_the_cache_keeps_to_its_bytes() -> None:
    cache: GenerationCache[int, str] = GenerationCache(1000)
    for key in range(1000):
        cache.put(key, "value", 50)
        assert cache.get(key) == "value"
        assert len(cache) <= 20
    assert cache.get(0) is None
    cache.put(-1, "too large", 5000)
    assert cache.get(-1) is None


def test_a_long_chain_of_bridges_pickles_and_reads_as_one() -> None:
    segment = None
    for number in range(3000):
        runs = Runs()
        runs.add(2, make_label(-1, POLICY if number % 2 else TEMPLATE))
        segment = Segment([(number, number)], runs, segment)
    assert segment is not None
    chained = RenderedTokens(
        segment, message_roles=[], message_tool_names=[], extension_start=segment.total - 2, message_offset=None
    )
    assert chained.token_ids == [number for number in range(3000) for _ in range(2)]
    assert chained.extension_ids == [2999, 2999]
    assert sum(chained.sampled_mask) == 3000
    copy = pickle.loads(pickle.dumps(chained))  # noqa: S301 - our own bytes
    assert copy == chained
    assert copy.extension_ids == chained.extension_ids


def test_what_the_caller_does_to_lists_does_not_reach_the_storage() -> None:
    rendered = RENDERER.render([{"role": "user", "content": "hi"}], add_generation_prompt=True)
    length = len(rendered)
    completion = [*TOKENIZER.encode_ordinary("Hello!"), STOP]
    bridged = RENDERER.bridge(rendered, completion, [{"role": "user", "content": "again"}])
    assert isinstance(bridged, RenderedTokens)
    rendered.token_ids.append(1)
    completion.append(2)
    assert bridged.token_ids[length : length + len(completion) - 1] == completion[:-1]
    assert bridged.token_ids[length + len(completion) - 1 :] == bridged.extension_ids
    again = RENDERER.render([{"role": "user", "content": "hi"}], add_generation_prompt=True)
    assert len(again.token_ids) == length
