"""Where a reply begins in a prompt, and which of the prompt's tokens already belong to it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from renderers.tokenizers.protocol import TokenizerAdapter


class ReplyHeaders:
    """How the assistant's turn begins in the prompts of a format.

    Args:
        tokenizer: the tokenizer of the prompts.
        headers: the texts, each of which begins with a special token.
    """

    def __init__(self, tokenizer: TokenizerAdapter, headers: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._rests: dict[int, list[bytes]] = {}
        for header in sorted(headers, key=len, reverse=True):
            _, end, token_id = tokenizer.find_special_tokens(header)[0]
            self._rests.setdefault(token_id, []).append(header[end:].encode())
        #: The special tokens with which a header begins.
        self.first_ids = frozenset(self._rests)

    def find(self, prompt_ids: Sequence[int]) -> int | None:
        """Number of prompt tokens up to and including the header of the assistant's turn that is open at the end.

        None where the prompt does not end in an assistant's turn. A token that goes beyond the header (a newline that
        merged with the text after it) counts as the header's.
        """
        for position in range(len(prompt_ids) - 1, -1, -1):
            rests = self._rests.get(prompt_ids[position])
            if rests is None:
                continue
            for rest in rests:
                end, seen = position + 1, b""
                while len(seen) < len(rest) and end < len(prompt_ids):
                    seen += self._tokenizer.token_bytes(prompt_ids[end])
                    end += 1
                if seen.startswith(rest):
                    return end
            return None
        return None


def since_last_marker(prompt_ids: Sequence[int], reasoning_markers: Collection[int]) -> list[int]:
    """What stands from the last reasoning marker on: all that is known of a reply whose header is not."""
    for position in range(len(prompt_ids) - 1, -1, -1):
        if prompt_ids[position] in reasoning_markers:
            return list(prompt_ids[position:])
    return []
