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
from itertools import pairwise
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
_QUOTED = 30


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
        self._call = re.compile(f"<{token}invoke")
        self._head = re.compile(rf'<{token}invoke\s+name="([^{token}]*?)"\s*(/?)>')
        self._close = re.compile(rf"\s*</{token}invoke>\Z")
        self._parameter_tag = f"<{token}parameter"
        # A value ends where the next tag of the call follows: any other closing tag is the value's own text.
        self._parameter = re.compile(
            rf'\s*<{token}parameter\s+name="([^{token}]*?)"\s+string="(true|false)"\s*>(.*?)</{token}parameter>'
            rf"(?=\s*(?:<{token}parameter|</{token}invoke>))",
            re.DOTALL,
        )

    def __call__(self, body: str, *, complete: bool, schemas: ToolSchemas) -> list[ReadCall]:
        """The calls with their faults. One reaches from its opening tag to the next one's, the first from the start."""
        cut = None if complete else CallFaultError(CallStatus.INCOMPLETE, "the block was cut before its end")
        openings = [found.start() for found in self._call.finditer(body)]
        if not openings:
            return [self._read(body, schemas, cut)]
        calls = []
        for start, end in pairwise([0, *openings[1:], len(body)]):
            text = body[start:end].strip()
            call = self._read(text, schemas, cut if end == len(body) else None)
            start = body.index(text, start)
            calls.append(replace(call, start=start, end=start + len(text)))
        return calls

    def _read(self, text: str, schemas: ToolSchemas, fault: CallFaultError | None) -> ReadCall:
        """One call. The whole text must be of the format."""
        head = self._head.match(text)
        position = head.end() if head else 0
        parameters: list[Parameter] = []
        while head and (found := self._parameter.match(text, position)):
            key, is_string, value = found.groups()
            if self._parameter_tag in value:
                break  # a parameter without its closing tag, and the one after it
            parameters.append(Parameter(key, self._text(value), is_string == "true"))
            position = found.end()
        closed = position == len(text) if head and head.group(2) else self._close.match(text, position)
        if not closed:
            rest = self._text(text[position : position + _QUOTED])
            fault = fault or CallFaultError(CallStatus.MALFORMED, f"{rest!r} is no tag that can stand here")
        return typed_call(head.group(1) if head else "", parameters, schemas, fault=fault)
