"""DSML calls, as DeepSeek writes them since V3.2: a block of tags, each with the special token `｜DSML｜` in it.

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Ulm</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls>

A parameter says itself whether its text is a string, byte for byte, or JSON. The tags count only where `｜DSML｜` is the
token: spelled in ordinary tokens they are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from renderers.formats.blocks import TaggedCall, read_calls
from renderers.formats.typed_values import Parameter, ToolSchemas
from renderers.messages import Tools, to_json
from renderers.parsing.markers import Marker, MarkerTable
from renderers.parsing.protocol import BlockFactory, CallProgress, Frame, ReadCall
from renderers.writer import Writer

TOKEN = "｜DSML｜"  # noqa: S105 - not a password
#: A value may quote this many parameters that it does not close: with more, it is rather its own end that is missing.
_DEEPEST = 64
_NO_SCHEMAS = ToolSchemas()


@dataclass(frozen=True, slots=True)
class DsmlCalls:
    """The dialect, written and read.

    Attributes:
        block: the name of the tag around all calls of a reply.
        tools_head, tools_tail: the text around the tools' schemas, which says how to call them.
    """

    block: str
    tools_head: str
    tools_tail: str

    @property
    def frame(self) -> Frame:
        """One block holds all calls, and stands after an empty line."""
        opener, closer = (Marker.plain(f"<{slash}{TOKEN}{self.block}>", TOKEN) for slash in ("", "/"))
        return Frame(opener, closer, before="\n\n")

    def bind(self, markers: MarkerTable) -> _Tags:
        """Calls are read when their block closes: only then is it known where each of them ends."""
        return _Tags(markers)

    def write_tools(self, out: Writer, tools: Tools) -> None:
        """What each schema says of its function, a line each."""
        out.scaffold(self.tools_head)
        for function in tools.function_json_texts:
            out.scaffold("\n")
            out.schema(function)
        out.scaffold(self.tools_tail)

    def write(self, out: Writer, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """The calls of one reply, by their names and arguments."""
        out.scaffold(f"\n\n<{TOKEN}{self.block}>")
        for name, arguments in calls:
            out.scaffold(f'\n<{TOKEN}invoke name="')
            out.body(name)
            out.scaffold('">' if arguments else '">\n')
            for key, value in arguments.items():
                is_string = isinstance(value, str)
                out.scaffold(f'\n<{TOKEN}parameter name="')
                out.body(key)
                out.scaffold(f'" string="{"true" if is_string else "false"}">')
                out.body(value if is_string else to_json(value))
                out.scaffold(f"</{TOKEN}parameter>")
            out.scaffold(f"\n</{TOKEN}invoke>")
        out.scaffold(f"\n</{TOKEN}{self.block}>")


class _Tags:
    """The tags for one tokenizer. `｜DSML｜` stands in a body as a code, so that no ordinary text is taken for a tag."""

    def __init__(self, markers: MarkerTable) -> None:
        self.text = markers.text
        token = markers.code(TOKEN)
        self.call_open, self.call_close = f"<{token}invoke", f"</{token}invoke>"
        self.value_open, self.value_close = f"<{token}parameter", f"</{token}parameter>"
        self.call = re.compile(rf'{self.call_open}\s+name="([^{token}]*?)"\s*(/?)>')
        self.call_end = re.compile(rf"\s*{self.call_close}")
        self.parameter = re.compile(rf'\s*{self.value_open}\s+name="([^{token}]*?)"\s+string="(true|false)"\s*>')
        ends = rf"\s*(?:{self.value_open}|{self.call_close})"
        self.in_value = re.compile(rf"(?P<opens>{self.value_open})|{self.value_close}(?=(?P<ends>{ends})?)")
        self.any = re.compile(f"({self.value_open}|{self.value_close}|{self.call_close})")

    def reader(self, tools: Sequence[Mapping[str, Any]] | None) -> BlockFactory:
        """A reader for each block. The parameters say themselves what they are: no schema is asked."""
        return lambda: _BlockReader(self)


class _BlockReader:
    """Reads a block's calls.

    A value ends at a closing tag that the call's next tag follows. It may quote tags: it closes the parameters that it
    opens, and a closing tag with other text after it is its own.
    """

    def __init__(self, tags: _Tags) -> None:
        self._tags = tags
        self._depth = 0  # of parameters that are open
        self._may_end = False  # since the last closing tag came only white space

    def progress(self, text: str) -> Sequence[CallProgress]:
        """Nothing is certain before the end."""
        return ()

    def in_value(self, text: str) -> bool:
        """Whether a value is open after this text."""
        tags = self._tags
        for part in tags.any.split(text):
            if part == tags.value_close and self._depth == 1:
                self._may_end = True
            elif part == tags.value_close:
                self._depth = max(0, self._depth - 1)
            elif self._may_end and part in {tags.value_open, tags.call_close}:
                self._depth, self._may_end = int(part == tags.value_open), False
            elif part.strip():
                self._may_end = False
                self._depth += part == tags.value_open
        return self._depth > 0 and not self._may_end

    def read(self, body: str, *, complete: bool) -> list[ReadCall]:
        """The calls with their faults. What is malformed reaches to the next call's opening tag."""
        tags = self._tags
        return read_calls(
            body, partial(self._read_call, body), tags.call_open, _NO_SCHEMAS, tags.text, complete=complete
        )

    def _read_call(self, body: str, start: int) -> TaggedCall:
        parameters: list[Parameter] = []
        call = self._tags.call.match(body, start)
        if call is None:
            return TaggedCall("", parameters, None)
        name, is_empty = call.groups()
        end = call.end()
        if is_empty:
            return TaggedCall(name, parameters, end)
        while parameter := self._tags.parameter.match(body, end):
            key, is_string = parameter.groups()
            closing = self._value_end(body, parameter.end())
            if closing is None:
                return TaggedCall(name, parameters, None)
            value = self._tags.text(body[parameter.end() : closing.start()])
            parameters.append(Parameter(key, value, is_string == "true"))
            end = closing.end()
        closing = self._tags.call_end.match(body, end)
        return TaggedCall(name, parameters, closing.end() if closing else None)

    def _value_end(self, body: str, start: int) -> re.Match[str] | None:
        """The closing tag of the value that begins at `start`."""
        depth = 0
        for tag in self._tags.in_value.finditer(body, start):
            if tag["opens"]:
                depth += 1
                if depth > _DEEPEST:
                    break
            elif depth:
                depth -= 1
            elif tag["ends"] is not None:
                return tag
        return None
