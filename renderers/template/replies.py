"""Which characters of a rendered conversation the model would have written, for any template.

The rule is that of every renderer: an assistant's turn is sampled from the end of the generation prompt on, where its
text begins with it; else from the end of its header and of reasoning scaffolding that has no source in the message. What
a generation prompt is and how reasoning is marked, the template says itself: in renders of small probes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from renderers.errors import TemplateError
from renderers.messages import REASONING_FIELDS
from renderers.template.trace import SourceSpan, TracedText

_USER: Mapping[str, Any] = {"role": "user", "content": "probe question"}
_REASONING, _ANSWER = "probe reasoning", "probe answer"
_CALL: Mapping[str, Any] = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "probe", "arguments": {"key": "value"}},
}
# A marker at the end (or the beginning) of scaffolding: `<think>`, `[THINK]`, `<|inner_thinking|>`.
_MARKER_AT_END = re.compile(r"(<[^<>\s][^<>]*>|\[[^\[\]\s]+\])\s*\Z")
_MARKER_AT_START = re.compile(r"\s*(<[^<>\s][^<>]*>|\[[^\[\]\s]+\])")

RenderProbe = Callable[..., TracedText]


@dataclass(frozen=True, slots=True)
class _Markers:
    """How a template marks reasoning, or None where it prints none or marks it in no way."""

    opener: str | None
    closer: str | None


class Replies:
    """Finds the replies in one template's renders.

    Args:
        render: renders messages with the template, under the settings that count:
            `render(messages, add_generation_prompt=...)`.
        find_special_tokens: start, end and ID of each special token in a text.
    """

    def __init__(self, render: RenderProbe, find_special_tokens: Callable[[str], list[tuple[int, int, int]]]) -> None:
        self._render = render
        self._find_special_tokens = find_special_tokens

    def start(
        self, text: str, spans: Sequence[SourceSpan], *, after_result: bool, scaffold_start: int = 0
    ) -> int | None:
        """Where the sampled part of an assistant's turn begins.

        Args:
            text: the whole rendered text.
            spans: the spans of the message, in order.
            after_result: a tool's result stands before it; some templates then open the turn in another way.
            scaffold_start: where the scaffolding begins that stands before the message.

        Returns:
            The character, or None where the template prints nothing of the message.
        """
        if not spans:
            return None
        begin = spans[0].start
        end = next((span.start for span in spans if span.field not in {None, "role"}), spans[-1].end)
        scaffold = text[begin:end]
        likely, others = self._prompts_after_user, self._prompts_after_result
        prompts = (*others, *likely) if after_result else (*likely, *others)
        for prompt in prompts:
            found = scaffold.find(prompt)  # what else is printed at the first message may precede it
            if found >= 0:
                return begin + found + len(prompt)
            for before in range(
                1, min(len(prompt), begin - scaffold_start) + 1
            ):  # the turn may be opened in the iteration before
                if text.startswith(prompt, begin - before):
                    return max(begin, begin - before + len(prompt))
        start = max((self._common(scaffold, prompt) for prompt in prompts), default=0)
        opener, closer = self._markers.opener, self._markers.closer
        reasons = any(is_reasoning(span) for span in spans)
        if reasons and opener is not None and opener in scaffold:
            return begin + min(start, scaffold.index(opener))
        if closer is not None and closer in scaffold:
            start = scaffold.index(closer) + len(closer)
            start += len(scaffold) - start - len(scaffold[start:].lstrip())
        return begin + start

    def _common(self, scaffold: str, prompt: str) -> int:
        """How far a turn's scaffolding is that of a prompt, in whole special tokens."""
        pairs = enumerate(zip(scaffold, prompt, strict=False))
        length = next((place for place, (found, wanted) in pairs if found != wanted), min(len(scaffold), len(prompt)))
        for start, end, _ in self._find_special_tokens(scaffold):
            if start < length < end:
                return start
        return length

    @cached_property
    def _prompts_after_user(self) -> tuple[str, ...]:
        return self._prompts([_USER])

    @cached_property
    def _prompts_after_result(self) -> tuple[str, ...]:
        for content in ({"content": ""}, {}):
            reply = {"role": "assistant", **content, "tool_calls": [_CALL]}
            result = {"role": "tool", "tool_call_id": _CALL["id"], "name": "probe", "content": "probe result"}
            try:
                return self._prompts([_USER, reply, result])
            except TemplateError:
                continue
        return self._prompts_after_user

    def _prompts(self, messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """What opens a reply, the longest form first: all that follows the last message, and what the switch adds."""
        closed = self._render(messages, add_generation_prompt=False).text
        opened = self._render(messages, add_generation_prompt=True)
        last = max((span.end for span in opened.spans if span.message_index >= 0), default=0)
        prompts = {opened.text[last:]}
        if opened.text.startswith(closed):
            prompts.add(opened.text[len(closed) :])
        return tuple(sorted(prompts - {""}, key=len, reverse=True))

    @cached_property
    def _markers(self) -> _Markers:
        """What stands before and after reasoning in the last turn, and not before an answer alone."""
        try:
            plain = self._render([_USER, {"role": "assistant", "content": _ANSWER}], add_generation_prompt=False)
            reasoned = self._render(
                [_USER, {"role": "assistant", "reasoning_content": _REASONING, "content": _ANSWER}],
                add_generation_prompt=False,
            )
        except TemplateError:
            return _Markers(None, None)
        before, found, rest = reasoned.text.partition(_REASONING)
        if not found:  # it prints no reasoning, and may still open or close some in the turn
            opened = [match[1] for prompt in self._prompts_after_user if (match := _MARKER_AT_END.search(prompt))]
            return _Markers(None, opened[0].replace("<", "</", 1).replace("[", "[/", 1) if opened else None)
        opener = _MARKER_AT_END.search(before)
        closer = _MARKER_AT_START.match(rest)
        if opener is not None and closer is None and plain.text.startswith(before):
            opener = None  # it is the turn's own header
        return _Markers(opener and opener[1], closer and closer[1])


def is_reasoning(span: SourceSpan) -> bool:
    """Whether a span holds a message's reasoning."""
    return span.field is not None and span.field.partition("[")[0] in REASONING_FIELDS
