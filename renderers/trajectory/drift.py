"""What a loop that decodes and encodes would have done to the sampled tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from renderers.renderer import Renderer
from renderers.trajectory.sample import Sample


@dataclass(frozen=True, slots=True)
class Drift:
    """A place where the tokens change.

    Attributes:
        turn: the turn ID of its first token.
        start, end: the sample's tokens there, end exclusive.
        ids: these tokens.
        encoded_ids: what stands there after decoding and encoding.
        text: their text.
    """

    turn: int
    start: int
    end: int
    ids: tuple[int, ...]
    encoded_ids: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class DriftReport:
    """What decoding a sample and encoding its text again changes.

    Attributes:
        sampled_tokens: how many tokens were sampled.
        changed_tokens: how many of them are not there any more: a trainer would have trained on others.
        changed_context_tokens: the same of the other tokens.
        places: where, in order.
    """

    sampled_tokens: int
    changed_tokens: int
    changed_context_tokens: int
    places: tuple[Drift, ...]

    def __str__(self) -> str:
        shown = "".join(
            f"\n  turn {place.turn}, token {place.start}: {place.text!r} {list(place.ids)} -> {list(place.encoded_ids)}"
            for place in self.places[:5]
        )
        more = f"\n  and {len(self.places) - 5} more places" if len(self.places) > 5 else ""
        share = self.changed_tokens / self.sampled_tokens if self.sampled_tokens else 0.0
        return f"{self.changed_tokens} of {self.sampled_tokens} sampled tokens would change ({share:.2%}){shown}{more}"


def drift_report(sample: Sample, renderer: Renderer[Any]) -> DriftReport:
    """How many tokens of a sample decoding and encoding its text would have changed, and where.

    This is the harmless half of the naive loop: rendering parsed messages changes more.
    """
    tokenizer = renderer.tokenizer
    ids = sample.ids
    encoded, _ = tokenizer.encode_with_offsets(tokenizer.decode_bytes(ids).decode("utf-8", "replace"))
    lengths = [len(tokenizer.token_bytes(token_id)) for token_id in ids]
    encoded_lengths = [len(tokenizer.token_bytes(token_id)) for token_id in encoded]
    if tokenizer.decode_bytes(ids) == tokenizer.decode_bytes(encoded):
        regions = _regions(ids, lengths, encoded, encoded_lengths)
    else:  # bytes that are no text, or text that the tokenizer normalises
        regions = _aligned(ids, encoded)
    places = []
    changed = changed_context = 0
    for start, end, encoded_start, encoded_end in regions:
        actions = sum(sample.action_mask[start:end])
        changed += actions
        changed_context += end - start - actions
        places.append(
            Drift(
                turn=sample.turn_ids[min(start, len(ids) - 1)],
                start=start,
                end=end,
                ids=tuple(ids[start:end]),
                encoded_ids=tuple(encoded[encoded_start:encoded_end]),
                text=renderer.decode(ids[start:end]),
            )
        )
    return DriftReport(sum(sample.action_mask), changed, changed_context, tuple(places))


def _regions(
    first: Sequence[int], first_lengths: Sequence[int], second: Sequence[int], second_lengths: Sequence[int]
) -> Iterator[tuple[int, int, int, int]]:
    """The ranges in which two segmentations of the same bytes differ, as small as they can be."""
    i = j = at_first = at_second = 0
    while i < len(first) or j < len(second):
        if i < len(first) and j < len(second) and first[i] == second[j]:
            at_first += first_lengths[i]
            at_second += second_lengths[j]
            i, j = i + 1, j + 1
            continue
        start, second_start = i, j
        while (i, j) == (start, second_start) or at_first != at_second:
            if j == len(second) or (i < len(first) and at_first <= at_second):
                at_first += first_lengths[i]
                i += 1
            else:
                at_second += second_lengths[j]
                j += 1
        yield start, i, second_start, j


def _aligned(first: Sequence[int], second: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """The ranges in which two sequences differ, of whatever bytes."""
    shortest = min(len(first), len(second))
    head = next((at for at in range(shortest) if first[at] != second[at]), shortest)
    tail = 0
    while tail < shortest - head and first[-1 - tail] == second[-1 - tail]:
        tail += 1
    matcher = SequenceMatcher(None, first[head : len(first) - tail], second[head : len(second) - tail], autojunk=False)
    for kind, start, end, second_start, second_end in matcher.get_opcodes():
        if kind != "equal":
            yield head + start, head + end, head + second_start, head + second_end
