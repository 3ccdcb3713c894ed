"""Other segmentations of the same text: what a sampler may emit and the encoder would never choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from renderers.tokenizers.spellings import LONGEST_SPELLING, ordinary_spellings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from renderers.testing.choices import Choices
    from renderers.tokenizers.protocol import TokenizerAdapter


class Segmenter:
    """Segments text anew, at random. Made once a tokenizer: it looks at every token of the vocabulary.

    Args:
        adapter: the tokenizer.
    """

    def __init__(self, adapter: TokenizerAdapter) -> None:
        self._adapter = adapter
        self._special = frozenset(adapter.special_tokens.values())
        self._ids = ordinary_spellings(adapter)

    def spelled(self, pieces: Sequence[bytes]) -> list[int]:
        """IDs of the tokens with exactly these bytes.

        Raises:
            KeyError: where there is no such token.
        """
        return [self._ids[piece] for piece in pieces]

    def resegmented(self, token_ids: Sequence[int], choices: Choices) -> list[int]:
        """The same bytes in other tokens, in places; special and unknown tokens stay.

        Some tokens are split into smaller ones, down to single bytes; elsewhere the borders of neighbouring tokens
        move. All-zero choices change nothing.
        """
        result: list[int] = []
        run = bytearray()
        for token_id in token_ids:
            spelled = b"" if token_id in self._special else self._adapter.token_bytes(token_id)
            action = choices.below(4) if spelled else 0
            if action == 0:  # the token stays
                result += self._cut(bytes(run), choices)
                run.clear()
                result.append(token_id)
            elif action == 1:  # it is split alone
                result += self._cut(bytes(run), choices)
                run.clear()
                result += self._cut(spelled, choices)
            else:  # it is split together with its neighbours
                run += spelled
        return result + self._cut(bytes(run), choices)

    def _cut(self, text: bytes, choices: Choices) -> list[int]:
        """Some segmentation of `text` into tokens; prefers short ones where the choices run out."""
        ids: list[int] = []
        start = 0
        while start < len(text):
            ends = [
                end
                for end in range(start + 1, min(start + LONGEST_SPELLING, len(text)) + 1)
                if text[start:end] in self._ids
            ]
            if not ends:
                raise ValueError(
                    f"no token begins {text[start : start + LONGEST_SPELLING]!r}: this vocabulary lacks a byte"
                )
            end = choices.pick(ends)
            ids.append(self._ids[text[start:end]])
            start = end
        return ids
