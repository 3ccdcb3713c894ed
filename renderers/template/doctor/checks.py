"""How a template treats the shapes that messages come in, apart from what appending does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from renderers.errors import TemplateError
from renderers.template.bound import BoundTemplate
from renderers.template.branches import Recorder
from renderers.template.doctor.places import place_of_character, place_of_error, place_of_message
from renderers.template.doctor.probes import (
    ANSWER,
    CALL,
    EMPTY_CALL,
    LATE_SYSTEM,
    NEXT_QUESTION,
    QUESTION,
    REASONED_ANSWER,
    REASONED_CALL,
    RESULT,
    SYSTEM,
    TOOLS,
    TWO_CALLS,
    Messages,
)
from renderers.template.doctor.report import Check, CheckStatus, Detail, Place
from renderers.template.doctor.syntax import Syntax
from renderers.template.trace import TracedText

OK, FOUND, NOTE, UNKNOWN = CheckStatus.OK, CheckStatus.FOUND, CheckStatus.NOTE, CheckStatus.UNKNOWN

#: What a check finds: how much it matters, in words, and where.
Found = tuple[CheckStatus, str, Place | None]


class Checker:
    """Asks one template.

    Args:
        template: the template.
        syntax: its syntax.
    """

    def __init__(self, template: BoundTemplate, syntax: Syntax) -> None:
        self._template = template
        self._syntax = syntax

    def checks(self) -> Iterator[Check]:
        """Every check."""
        questions: Sequence[tuple[str, str, Callable[[], Iterator[Found]]]] = (
            ("stop-token", "Does a stop token end the assistant's turn in the history?", self._stop_token),
            ("null-content", "Is null content printed as None?", self._null_content),
            ("extra-system", "Are further system messages kept?", self._extra_system),
            ("arguments", "Are tool arguments printed as they are?", self._arguments),
            ("lost-text", "Is everything printed that a message holds?", self._lost_text),
            ("split-content", "Does an answer that spells a marker stay as it is?", self._split_content),
            ("tool-text", "Is the text of a tool's result printed as it is?", self._tool_text),
            ("special-tokens", "Does special-token text in content become special tokens?", self._special_tokens),
        )
        for code, title, question in questions:
            found = list(question())
            present = {status for status, _, _ in found}
            status = next((one for one in (FOUND, UNKNOWN, NOTE) if one in present), OK)
            yield Check(code, title, status, tuple(Detail(text, place) for _, text, place in found))

    # The questions ----------------------------------------------------------------------------------------------------

    def _stop_token(self) -> Iterator[Found]:
        stops = self._template.stop_tokens
        if not stops:
            yield UNKNOWN, "no stop tokens are known: give --tokenizer or --stop-token", None
            return
        for name, reply, following in (("an answer", ANSWER, NEXT_QUESTION), ("a tool call", EMPTY_CALL, RESULT)):
            tools = TOOLS if "tool_calls" in reply else None
            traced = self._render([QUESTION, reply, following], tools=tools)
            if isinstance(traced, TracedText):
                yield from self._stop_after(name, traced, stops)

    def _stop_after(self, name: str, traced: TracedText, stops: Sequence[str]) -> Iterator[Found]:
        next_turn = min((s.start for s in traced.spans if s.message_index > 1), default=0)
        own = [s.end for s in traced.spans if s.message_index == 1 and _is_data(s.field) and s.end <= next_turn]
        after = [s.start for s in traced.spans if s.message_index > 1 and _is_data(s.field)]
        if not own or not after:
            return  # reported as lost text
        begin, end = own[-1], after[0]
        places = [(at, stop) for stop in stops if begin <= (at := traced.text.find(stop, begin)) < end]
        if not places:
            between = traced.text[begin:end]
            text = f"no stop token ({', '.join(stops)}) stands after {name}: the template prints {between!r} there"
            yield FOUND, text, place_of_character(self._syntax, traced, begin)
            return
        at, stop = min(places)
        place = place_of_character(self._syntax, traced, at)
        if any(span.start <= at < span.end and span.message_index > 1 for span in traced.spans):
            yield (
                NOTE,
                f"{stop} after {name} opens the next message: which one is sampled depends on what follows",
                place,
            )

    def _null_content(self) -> Iterator[Found]:
        null_call = {key: value for key, value in EMPTY_CALL.items() if key != "content"}
        for name, reply in (("a tool call", null_call), ("an answer", {"role": "assistant"})):
            messages = [QUESTION, reply, NEXT_QUESTION]
            for as_none, how in (
                (False, "is left out, as transformers 5 does"),
                (True, "comes as None, as in transformers 4"),
            ):
                traced = self._render(messages, tools=TOOLS, null_content=as_none)
                if isinstance(traced, TracedText) and "None" in traced.text:
                    place = place_of_character(self._syntax, traced, traced.text.index("None"))
                    yield (NOTE if as_none else FOUND), f"prints None for {name} where null content {how}", place
                elif not isinstance(traced, TracedText):
                    yield NOTE, f"refuses {name} where null content {how}: {traced[0]}", traced[1]

    def _extra_system(self) -> Iterator[Found]:
        for name, messages in (
            ("a second system message at the beginning", [SYSTEM, LATE_SYSTEM, QUESTION]),
            ("a system message in the middle", [SYSTEM, QUESTION, ANSWER, LATE_SYSTEM, NEXT_QUESTION]),
            ("a system message at the end", [SYSTEM, QUESTION, LATE_SYSTEM]),
        ):
            traced = self._render(messages)
            index = messages.index(LATE_SYSTEM)
            if not isinstance(traced, TracedText):
                yield NOTE, f"refuses {name}: {traced[0]}", traced[1]
            elif not _prints(traced, index, "content"):
                yield FOUND, f"drops {name}", place_of_message(self._syntax, traced, index)

    def _arguments(self) -> Iterator[Found]:
        for name, as_text in (("as an object", False), ("as JSON text", True)):
            given = {"some_key": "some value"}
            function = {"name": "get_weather", "arguments": json.dumps(given) if as_text else given}
            message = {**EMPTY_CALL, "tool_calls": [{"id": "call00001", "type": "function", "function": function}]}
            traced = self._render([QUESTION, message, RESULT], tools=TOOLS, convert=False)
            if not isinstance(traced, TracedText):
                yield NOTE, f"refuses arguments {name}: {traced[0]}", traced[1]
                continue
            for spelled, problem in (
                ('\\"some_key', "encodes them twice"),
                ("{'some_key'", "prints Python's own form"),
            ):
                if spelled in traced.text:
                    place = place_of_character(self._syntax, traced, traced.text.index(spelled))
                    yield FOUND, f"arguments {name}: {problem}", place

    def _lost_text(self) -> Iterator[Found]:
        # A template that prints no reasoning at all belongs to a model that has none.
        reasoned = self._render([QUESTION, REASONED_CALL], tools=TOOLS)
        reasons = isinstance(reasoned, TracedText) and _prints(reasoned, 1, "reasoning_content")
        for name, message, field, how in (
            ("the reasoning of an answer", REASONED_ANSWER, "reasoning_content", FOUND if reasons else NOTE),
            ("the reasoning before a tool call", REASONED_CALL, "reasoning_content", NOTE),
            ("the content beside a tool call", CALL, "content", FOUND),
            ("a tool call beside empty content", EMPTY_CALL, "tool_calls[0]", FOUND),
            ("the second of two calls", TWO_CALLS, "tool_calls[1]", FOUND),
        ):
            tools = TOOLS if "tool_calls" in message else None
            traced = self._render([QUESTION, message], tools=tools)
            if not isinstance(traced, TracedText):
                yield FOUND, f"refuses {name}: {traced[0]}", traced[1]
            elif not _prints(traced, 1, field):
                yield how, f"drops {name}", place_of_message(self._syntax, traced, 1)
        traced = self._render([QUESTION], tools=TOOLS)
        if isinstance(traced, TracedText) and not any((span.field or "").startswith("tools") for span in traced.spans):
            yield FOUND, "drops the tools", None

    def _split_content(self) -> Iterator[Found]:
        for marker in ("</think>", "<think>"):
            content = f"One {marker} two."
            traced = self._render([QUESTION, {"role": "assistant", "content": content}])
            if isinstance(traced, TracedText) and content not in traced.text:
                asked = [b for b in traced.branches if b.value and marker in b.condition.text and b.message_index == 1]
                place = None
                if asked:
                    line, text, *_ = asked[-1].condition
                    place = Place(line, self._syntax.line(line), text, line, condition_held=True)
                yield FOUND, f"an answer {content!r} is taken apart at {marker}", place

    def _tool_text(self) -> Iterator[Found]:
        content = 'Some "text".'
        traced = self._render([QUESTION, EMPTY_CALL, {**RESULT, "content": content}], tools=TOOLS)
        if isinstance(traced, TracedText) and content not in traced.text and json.dumps(content) in traced.text:
            at = traced.text.index(json.dumps(content))
            yield NOTE, "prints it as a JSON string, in quotes", place_of_character(self._syntax, traced, at)

    def _special_tokens(self) -> Iterator[Found]:
        tokenizer = self._template.tokenizer
        if tokenizer is None:
            yield UNKNOWN, "this needs a tokenizer: give --tokenizer", None
            return
        token = next((text for text in (*self._template.stop_tokens, *tokenizer.special_tokens) if text), None)
        if token is None:
            return
        token_id = tokenizer.special_tokens[token]
        for name, messages in (
            ("a user message", [{"role": "user", "content": f"One {token} two."}]),
            ("a tool's result", [QUESTION, EMPTY_CALL, {**RESULT, "content": f"One {token} two."}]),
        ):
            traced = self._render(messages, tools=TOOLS)
            if not isinstance(traced, TracedText):
                continue
            at = traced.text.find(f"One {token}")
            ids, places = self._template.tokens(traced.text)
            if at >= 0 and (token_id, at + 4) in {(one, start) for one, (start, _) in zip(ids, places, strict=True)}:
                yield NOTE, f"{token} in {name} becomes a special token: use sanitize_control_tokens=True", None

    # Rendering --------------------------------------------------------------------------------------------------------

    def _render(
        self, messages: Messages, *, tools: Messages | None = None, **settings: Any
    ) -> TracedText | tuple[str, Place | None]:
        """A render with its branches; or what the template said, and where."""
        recorder = Recorder()
        try:
            return self._template.render(messages, tools=tools, recorder=recorder, **settings)
        except TemplateError as error:
            return str(error), place_of_error(self._syntax, error, recorder.branches)


def _is_data(field: str | None) -> bool:
    """Whether text of a field is what a message says."""
    return field is not None and field != "role"


def _prints(traced: TracedText, index: int, field: str) -> bool:
    """Whether anything of a message's field is printed."""
    return any(span.message_index == index and (span.field or "").startswith(field) for span in traced.spans)
