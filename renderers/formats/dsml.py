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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from renderers.formats.blocks import WholeBlocks
from renderers.formats.json_text import CallFaultError
from renderers.formats.typed_values import Parameter, ToolSchemas, typed_call
from renderers.messages import Function, ToolCall, to_json
from renderers.parsed import CallStatus
from renderers.parsing.markers import Marker, MarkerTable
from renderers.parsing.protocol import Frame, ReadCall
from renderers.writer import Writer

TOKEN = "｜DSML｜"  # noqa: S105 - not a password
_SHOWN = 40
#: A value may quote this many parameters that it does not close: with more, it is rather its own end that is missing.
_DEEPEST = 64
_SPACE = re.compile(r"\s*")


def _as_object(function: Function) -> Mapping[str, Any]:
    return function.arguments_object


@dataclass(frozen=True, slots=True)
class DsmlCalls:
    """The dialect, written and read.

    Attributes:
        block: the name of the tag around all calls of a reply.
    """

    block: str

    @property
    def frame(self) -> Frame:
        """One block holds all calls, and stands after an empty line."""
        opener, closer = (Marker.plain(f"<{slash}{TOKEN}{self.block}>", TOKEN) for slash in ("", "/"))
        return Frame(opener, closer, before="\n\n")

    def bind(self, markers: MarkerTable) -> WholeBlocks:
        """Calls are read when their block closes: only then is it known where each of them ends."""
        return WholeBlocks(_BlockReader(markers))

    def write(
        self,
        out: Writer,
        calls: Sequence[ToolCall],
        arguments_of: Callable[[Function], Mapping[str, Any]] = _as_object,
    ) -> None:
        """The calls of one reply."""
        out.scaffold(f"\n\n<{TOKEN}{self.block}>")
        for call in calls:
            out.scaffold(f'\n<{TOKEN}invoke name="')
            out.body(call.function.name)
            arguments = arguments_of(call.function)
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


class _BlockReader:
    """Reads a block's calls. `｜DSML｜` stands in the body as a code, so that no ordinary text is taken for a tag."""

    def __init__(self, markers: MarkerTable) -> None:
        self._text = markers.text
        token = markers.code(TOKEN)
        self._call_tag = f"<{token}invoke"
        self._call = re.compile(rf'<{token}invoke\s+name="([^{token}]*?)"\s*(/?)>')
        self._call_end = re.compile(rf"\s*</{token}invoke>")
        self._parameter = re.compile(rf'\s*<{token}parameter\s+name="([^{token}]*?)"\s+string="(true|false)"\s*>')
        self._in_value = re.compile(
            rf"(?P<opens><{token}parameter)|</{token}parameter>(?=(?P<ends>\s*(?:<{token}parameter|</{token}invoke>))?)"
        )

    def __call__(self, body: str, *, complete: bool, schemas: ToolSchemas) -> list[ReadCall]:
        """The calls with their faults. What is malformed reaches to the next call's opening tag."""
        calls: list[ReadCall] = []
        start = _skip_space(body, 0)
        while start < len(body) or not calls:
            name, parameters, end = self._read(body, start)
            fault = None
            if end is None:
                shown = self._text(body[start : start + _SHOWN])
                fault = CallFaultError(CallStatus.MALFORMED, f"the call that begins {shown!r} breaks the format")
                end = body.find(self._call_tag, start + 1)
                end = end if end >= 0 else len(body)
            following = _skip_space(body, end)
            if following == len(body) and not complete:
                fault = CallFaultError(CallStatus.INCOMPLETE, "the block was cut before its end")
            call = typed_call(name, parameters, schemas, fault=fault)
            if body.startswith(self._call_tag, start):  # otherwise the block as a whole is the call's raw text
                call = replace(call, start=start, end=start + len(body[start:end].rstrip()))
            calls.append(call)
            start = following
        return calls

    def _read(self, body: str, start: int) -> tuple[str, list[Parameter], int | None]:
        """The name and parameters of a call, and where it ends: None where it is not of the format."""
        parameters: list[Parameter] = []
        call = self._call.match(body, start)
        if call is None:
            return "", parameters, None
        name, is_empty = call.groups()
        end = call.end()
        if is_empty:
            return name, parameters, end
        while parameter := self._parameter.match(body, end):
            key, is_string = parameter.groups()
            closing = self._value_end(body, parameter.end())
            if closing is None:
                return name, parameters, None
            value = self._text(body[parameter.end() : closing.start()])
            parameters.append(Parameter(key, value, is_string == "true"))
            end = closing.end()
        closing = self._call_end.match(body, end)
        return name, parameters, closing.end() if closing else None

    def _value_end(self, body: str, start: int) -> re.Match[str] | None:
        """The closing tag of the value that begins at `start`.

        A value may quote tags: it closes the parameters that it opens, and a closing tag after which no tag of the call
        follows is its own text.
        """
        depth = 0
        for tag in self._in_value.finditer(body, start):
            if tag["opens"]:
                depth += 1
                if depth > _DEEPEST:
                    break
            elif depth:
                depth -= 1
            elif tag["ends"] is not None:
                return tag
        return None


def _skip_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position
