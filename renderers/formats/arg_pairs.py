"""Calls of a name and pairs of key and value, each between special tokens, as GLM writes them.

<tool_call>get_weather<arg_key>city</arg_key><arg_value>Ulm</arg_value></tool_call>

A string is written bare, any other value as JSON; reading goes by the tool's schema. The values hold any text, and a
model that quotes a tag in one samples the tag's own token. What is a value's end is therefore told by position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from renderers.conversation import Turn
from renderers.formats.blocks import WholeBlocks
from renderers.formats.json_text import CallFaultError
from renderers.formats.typed_values import Parameter, ToolSchemas, typed_call
from renderers.messages import to_json
from renderers.parsed import CallStatus
from renderers.parsing.markers import MarkerTable
from renderers.parsing.protocol import Frame, ReadCall
from renderers.writer import Writer

_TAGS = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
_NAME = re.compile(r'[^\s<>{}"]+')


@dataclass(frozen=True, slots=True)
class ArgPairs:
    """The dialect, written and read.

    Attributes:
        line: what stands between two tags: a line feed where each has a line of its own, else nothing.
    """

    line: str = ""

    @property
    def frame(self) -> Frame:
        """One block is one call."""
        return Frame("<tool_call>", "</tool_call>", inner=_TAGS, before=self.line, between=self.line)

    def bind(self, markers: MarkerTable) -> WholeBlocks:
        """A call is read when it closes: the text alone does not tell what type a value has."""
        return WholeBlocks(_PairReader(markers))

    def write_tools(self, out: Writer, tools: Iterable[str]) -> None:
        """The tools' schemas, and how to call them."""
        out.scaffold(
            "<|system|>\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
        )
        for tool in tools:
            out.schema(tool)
            out.scaffold("\n")
        pairs = [
            f"<arg_key>{{arg-key-{n}}}</arg_key>{self.line}<arg_value>{{arg-value-{n}}}</arg_value>" for n in (1, 2)
        ]
        out.scaffold(
            "</tools>\n\nFor each function call, output the function name and arguments within the following XML format:\n"
            + self.line.join(["<tool_call>{function-name}", *pairs, "...", "</tool_call>"])
        )

    def write_calls(self, out: Writer, turn: Turn) -> None:
        """The calls of an assistant's message."""
        for call in turn.message.tool_calls or ():
            out.scaffold(f"{self.line}<tool_call>")
            out.body(call.function.name)
            out.scaffold(self.line)
            for key, value in call.function.arguments_object.items():
                out.scaffold("<arg_key>")
                out.body(key)
                out.scaffold(f"</arg_key>{self.line}<arg_value>")
                out.body(value if isinstance(value, str) else to_json(value))
                out.scaffold(f"</arg_value>{self.line}")
            out.scaffold("</tool_call>")

    def write_result(self, out: Writer, turn: Turn, *, loops_over_content: bool) -> None:
        """A tool's result; results that follow each other share a turn.

        Where the template loops over a content that is no text, without content there is a turn
        of its own, and nothing in it.
        """
        has_block = turn.message.content is not None or not loops_over_content
        if turn.previous_role != "tool" or not has_block:
            out.scaffold("<|observation|>")
        if has_block:
            out.scaffold(f"{self.line}<tool_response>{self.line}")
            out.body(turn.content)
            out.scaffold(f"{self.line}</tool_response>")
        else:
            out.damage(
                "dropped_result",
                turn.index,
                "the template prints no tool response for a tool message without content, so the model sees fewer "
                'results than calls; give it the content ""',
            )


class _PairReader:
    """Reads the body of a call: its special tokens stand in it as codes."""

    def __init__(self, markers: MarkerTable) -> None:
        self._markers = markers
        key_open, key_close, value_open, value_close = map(markers.code, _TAGS)
        codes = "".join((key_open, key_close, value_open, value_close))
        self._head = re.compile(f"[^{codes}]*")
        # A value ends where the next pair or the call's end follows: any other closing tag is the value's own text.
        begin = rf"{key_open}([^{codes}]*){key_close}\s*{value_open}"
        self._pair = re.compile(rf"{begin}(.*?){value_close}\s*(?={begin}|\Z)", re.DOTALL)

    def __call__(self, body: str, *, complete: bool, schemas: ToolSchemas) -> Sequence[ReadCall]:
        """The call, with its faults."""
        head = self._head.match(body)
        assert head is not None  # noqa: S101 - it may be empty
        name = head.group().strip()
        fault: CallFaultError | None = None
        parameters: list[Parameter] = []
        try:
            parameters += self._parameters(body, head.end())
        except CallFaultError as problem:
            fault = problem
        if not complete:
            fault = CallFaultError(CallStatus.INCOMPLETE, "the call was cut before its end")
            name = name if head.end() < len(body) else ""  # more of it may have been about to come
        if name and not _NAME.fullmatch(name):
            fault = fault or CallFaultError(CallStatus.MALFORMED, f"a tool cannot be named {name!r}")
            name = ""
        return [typed_call(name, parameters, schemas, fault=fault)]

    def _parameters(self, body: str, position: int) -> Iterator[Parameter]:
        while position < len(body):
            pair = self._pair.match(body, position)
            if pair is None:
                rest = self._markers.text(body[position : position + 20])
                raise CallFaultError(CallStatus.MALFORMED, f"{rest!r} is no pair of <arg_key> and <arg_value>")
            yield Parameter(pair.group(1), self._markers.text(pair.group(2)))
            position = pair.end()
