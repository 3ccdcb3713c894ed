"""Encoding with tiktoken in the place of `tokenizers`, where that is proved to give the same IDs."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from functools import cache, cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from renderers.tokenizers.components import component_list
from renderers.tokenizers.equivalence import Verdict, judge, ranks_of
from renderers.tokenizers.verdicts import load_verdict, store_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tiktoken import Encoding
    from tokenizers import Tokenizer

# Changes when the proof does, so that verdicts of an older one are not used.
_PROOF_REVISION = 5

# Setting tiktoken up costs half a second (a proof, once a machine, some more), and `tokenizers` encodes a million
# characters in that time: a process that renders a few conversations is better off without.
WARM_UP_CHARACTERS = 200_000

_SPACE_ENDS = re.compile(r"\S")
_MARKS = (
    r"!-/:-@\[-`{-~\u00a1-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u2010-\u2027\u2030-\u205e"
    r"\u3001-\u3004\u3008-\u3020\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_MARK = re.compile(f"[{_MARKS}]")
_MARKS_END = re.compile(f"[^{_MARKS}]")
_WORD_ENDS = re.compile(rf"[\s{_MARKS}]")


def has_long_run(text: str, limit: int) -> bool:
    """Whether the text may hold a run of one kind of character (spaces, marks, letters and others) that long.

    One character in half the limit is looked at: a run of the limit covers one of these blocks entirely. Shorter runs
    may be reported, longer ones are never missed.
    """
    if len(text) < limit:
        return False
    block = limit // 2
    for start in range(0, len(text) - block + 1, block):
        first = text[start]
        ends = _SPACE_ENDS if first.isspace() else _MARKS_END if _MARK.match(first) else _WORD_ENDS
        if ends.search(text, start, start + block) is None:
            return True
    return False


@cache
def longest_run() -> int:
    """The longest run of one kind of character for which tiktoken is asked.

    Until 0.12 its merging took quadratic time in the length of a piece. Later releases merge long pieces faster than
    `tokenizers`, but their regex engine gives up (in a panic) on some 900,000 spaces.
    """
    return 50_000 if _release("tiktoken") >= (0, 13) else 1_000


def _release(package: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version(package))[:2])


# Stands between texts that are encoded in one call. No text that holds it goes that way. No beginning of it is its end, or
# a text that ends in the beginning could shift it. In ASCII, which keeps the joined text of ASCII texts in one byte a
# character, as tiktoken takes it.
_BORDER = "\x1d border of texts \x1e"


def _meets_border(token: str) -> bool:
    """Whether a special token can stand over an end of a border, in it, or around it."""
    ends = range(1, min(len(token), len(_BORDER)) + 1)
    if token in _BORDER or _BORDER in token:
        return True
    return any(token.endswith(_BORDER[:end]) or token.startswith(_BORDER[-end:]) for end in ends)


# So many special tokens are told to tiktoken sooner than looked for.
_FEW = 64


class FastEncoder:
    """tiktoken with the ranks, the pattern and the special tokens of one tokenizer."""

    def __init__(self, name: str, pattern: str, ranks: dict[bytes, int], special_tokens: Mapping[str, int]) -> None:
        from tiktoken import Encoding

        self._border = 1 + max(*ranks.values(), *special_tokens.values())
        known = {**special_tokens, _BORDER: self._border}
        self.encoding = Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=known)
        self._all = frozenset(known)
        # Where a special token can take a part of it, a border is not sure to be found.
        self._joins = not any(map(_meets_border, special_tokens))

    def encode(
        self, texts: Sequence[str], special_tokens_in: Callable[[str], frozenset[str]] | None = None
    ) -> list[list[int]] | None:
        """IDs of normalised texts without lone surrogates, in one call; None where tiktoken is not the one to ask.

        Args:
            texts: the texts.
            special_tokens_in: gives the special tokens that a text may hold, for them to be recognised; without it, none
                are. Where one can overlap another, tiktoken may find others than the tokenizer.
        """
        if len(texts) > 1 and not self._joins:
            return None
        joined = _BORDER.join(texts)
        if joined.count(_BORDER) >= len(texts) or has_long_run(joined, longest_run()):
            return None
        allowed = _ONLY_BORDER
        if special_tokens_in is not None:
            # At each call tiktoken takes in all special tokens that it may find. DeepSeek has eight hundred.
            allowed = self._all if len(self._all) < _FEW else allowed | special_tokens_in(joined)
        try:
            ids = self.encoding.encode(joined, allowed_special=allowed, disallowed_special=())
        except BaseException as error:
            # The regex engine can give up on a text in a panic, which is no Exception.
            if type(error).__name__ != "PanicException":
                raise
            return None
        parts: list[list[int]] = []
        start = 0
        for _ in range(len(texts) - 1):
            end = ids.index(self._border, start)
            parts.append(ids[start:end])
            start = end + 1
        parts.append(ids[start:] if start else ids)
        return parts


_ONLY_BORDER = frozenset({_BORDER})
# One for each tokenizer in a process, however many adapters it has: each holds 30 MB and more.
_encoders: WeakValueDictionary[tuple[object, ...], FastEncoder] = WeakValueDictionary()


class Accelerator:
    """Decides whether tiktoken encodes for a tokenizer, and sets it up when there is enough to encode."""

    def __init__(self, tokenizer: Tokenizer, special_tokens: Mapping[str, int]) -> None:
        self._tokenizer = tokenizer
        self._special_tokens = special_tokens
        self._lock, self._process = threading.Lock(), os.getpid()
        self._settled = False
        self._encoder: FastEncoder | None = None
        self._characters = 0

    def encoder_for(self, characters: int) -> FastEncoder | None:
        """The encoder for a text of this length, or None where `tokenizers` is to encode it."""
        if self._settled:
            return self._encoder
        self._characters += characters
        if self._characters < WARM_UP_CHARACTERS:
            return None
        # While one thread sets tiktoken up, the others go on with `tokenizers`.
        lock = self._own_lock()
        if lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                lock.release()
        return self._encoder

    def _own_lock(self) -> threading.Lock:
        """The lock of this process: one that was taken when the process was forked is never released there."""
        if self._process != os.getpid():
            self._lock, self._process = threading.Lock(), os.getpid()
        return self._lock

    @property
    def line_starts(self) -> str:
        """See `Verdict.line_starts`; none before tiktoken is set up."""
        return self.verdict.line_starts if self._encoder is not None else ""

    def warm_up(self) -> None:
        """Set tiktoken up now, if it can be."""
        with self._own_lock():
            self._settle()

    @property
    def encoding(self) -> Encoding | None:
        """tiktoken's own object, set up now if it can be."""
        self.warm_up()
        return None if self._encoder is None else self._encoder.encoding

    def _settle(self) -> None:
        if self._settled:
            return
        if self.verdict.proved:
            # Without a lock, which a process forked meanwhile would find taken for ever: building twice does no harm.
            key = (self.key, *sorted(self._special_tokens.items()))
            encoder = _encoders.get(key)
            self._encoder = encoder if encoder is not None else _encoders.setdefault(key, self._build())
        self._settled = True

    def _build(self) -> FastEncoder:
        ranks = ranks_of(self._tokenizer, self.verdict.left_out)
        return FastEncoder(f"renderers-{self.key[:12]}", self.verdict.pattern, ranks, self._special_tokens)

    @cached_property
    def key(self) -> str:
        """sha256 of all that the verdict depends on: the model, the splitting, the special tokens, the libraries."""
        digest = hashlib.sha256(self._tokenizer.model.__getstate__())
        context = (
            component_list(self._tokenizer.pre_tokenizer),
            sorted(self._special_tokens.values()),
            version("tokenizers"),
            version("tiktoken"),
            _PROOF_REVISION,
        )
        digest.update(repr(context).encode())
        return digest.hexdigest()

    @cached_property
    def verdict(self) -> Verdict:
        """Whether tiktoken gives the same IDs: from disk, or proved now in some seconds."""
        verdict = load_verdict(self.key)
        if verdict is None:
            verdict = judge(self._tokenizer, self._special_tokens.values())
            store_verdict(self.key, verdict)
        return verdict
