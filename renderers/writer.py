"""The words in which a family says how a message is written: scaffolding, body text, and where a reply begins."""

from __future__ import annotations

from typing import TypeAlias

from renderers.labels import POLICY, PROMPT, TEMPLATE, TOOL, make_label, with_owner
from renderers.rendered import Damage

#: A text, its label, and whether it is the caller's (only text that the template wrote is trusted with markers).
Piece: TypeAlias = tuple[str, int, bool]


class Writer:
    """Collects the pieces of a conversation's text.

    A family calls `scaffold` for what the template writes, markers included, `body` for the caller's text, and `reply`
    once in each assistant message, where the model's own text begins. Which message a piece belongs to, who owns it
    and what the model would have sampled follow from that.
    """

    __slots__ = ("_body", "_scaffold", "damages", "pieces", "reply_starts")

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        #: Index of the first piece after each `reply` mark of the message.
        self.reply_starts: list[int] = []
        self.damages: list[Damage] = []
        self._scaffold = self._body = make_label(-1, TEMPLATE)

    def begin(self, message_index: int, role: str) -> None:
        """What follows belongs to this message (-1: to none)."""
        self._scaffold = make_label(message_index, TEMPLATE)
        self._body = with_owner(self._scaffold, TOOL if role == "tool" else PROMPT)
        self.reply_starts = []

    def scaffold(self, text: str) -> None:
        """Text that the template writes. Special tokens spelled in it are special tokens."""
        if text:
            self.pieces.append((text, self._scaffold, False))

    def body(self, text: str) -> None:
        """The caller's text: content, reasoning, a name, arguments."""
        if text:
            self.pieces.append((text, self._body, True))

    def schema(self, text: str) -> None:
        """The caller's text inside the tools preamble: untrusted like a body, but nobody's content."""
        if text:
            self.pieces.append((text, self._scaffold, True))

    def reply(self) -> None:
        """The header, and reasoning scaffolding without a source in the message, end here.

        What follows, up to the end of the message or its first stop token, is what the model writes. Where the
        message's text begins with the generation prompt, the framework starts there instead.
        """
        self.reply_starts.append(len(self.pieces))

    def damage(self, kind: str, message_index: int, detail: str) -> None:
        """The official template loses or changes something of this message; so do we, and say it."""
        self.damages.append(Damage(kind, (message_index,), detail))

    def mark_sampled(self, generation_prompt: str) -> None:
        """Label what the model writes of the assistant message whose pieces these are."""
        start = self._after(generation_prompt)
        if start is None:
            start = self.reply_starts[0] if self.reply_starts else len(self.pieces)
        self.reply_starts = [start]
        template, policy = self._scaffold, with_owner(self._scaffold, POLICY)
        header = [(text, template, from_caller) for text, _, from_caller in self.pieces[:start]]
        self.pieces = header + [(text, policy, from_caller) for text, _, from_caller in self.pieces[start:]]

    def _after(self, prompt: str) -> int | None:
        """Index of the piece after `prompt`, where the text of the pieces begins with it.

        A piece in which the prompt ends is cut in two.
        """
        pieces = self.pieces
        position, rest = 0, prompt
        while rest:
            if position == len(pieces):
                return None
            text, label, from_caller = pieces[position]
            if len(text) > len(rest):
                if not text.startswith(rest):
                    return None
                pieces[position : position + 1] = [
                    (text[: len(rest)], label, from_caller),
                    (text[len(rest) :], label, from_caller),
                ]
                return position + 1
            if not rest.startswith(text):
                return None
            rest = rest[len(text) :]
            position += 1
        return position

    def cut_after_body(self) -> None:
        """Drop what follows the last body text of the message whose pieces these are: leave it open.

        A message without any body text ends where its reply begins.
        """
        end = start = self.reply_starts[0] if self.reply_starts else 0
        for position in range(start, len(self.pieces)):  # a name in the header is no body of the reply
            if self.pieces[position][2]:
                end = position + 1
        del self.pieces[end:]
