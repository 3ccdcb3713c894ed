"""Where a reply begins in a prompt, and which of the prompt's tokens already belong to it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from renderers.tokenizers.protocol import TokenizerAdapter


def find_reply(tokenizer: TokenizerAdapter, prompt_ids: Sequence[int], headers: Sequence[str]) -> int | None:
    """Number of prompt tokens up to and including the header of the assistant's turn that is open at the end.

    None where the prompt does not end in an assistant's turn. A header begins with a special token; a token that goes
    beyond the header (a newline that merged with the text after it) counts as the header's.
    """
    by_first: dict[int, list[bytes]] = {}
    for header in headers:
        _, end, token_id = tokenizer.find_special_tokens(header)[0]
        by_first.setdefault(token_id, []).append(header[end:].encode())
    for position in range(len(prompt_ids) - 1, -1, -1):
        rests = by_first.get(prompt_ids[position])
        if rests is None:
            continue
        for rest in sorted(rests, key=len, reverse=True):
            end, seen = position + 1, b""
            while len(seen) < len(rest) and end < len(prompt_ids):
                seen += tokenizer.token_bytes(prompt_ids[end])
                end += 1
            if seen.startswith(rest):
                return end
        return None
    return None


def opening_ids(
    tokenizer: TokenizerAdapter,
    prompt_ids: Sequence[int],
    headers: Sequence[str],
    reasoning_markers: Collection[int],
) -> list[int]:
    """The prompt's tokens that already belong to the reply: a prefilled `<think>`, or the start of an answer.

    Of a prompt in which no assistant's turn is open (only its tail was given, perhaps), what stands from the last
    reasoning marker on.
    """
    start = find_reply(tokenizer, prompt_ids, headers)
    if start is not None:
        return list(prompt_ids[start:])
    for position in range(len(prompt_ids) - 1, -1, -1):
        if prompt_ids[position] in reasoning_markers:
            return list(prompt_ids[position:])
    return []
