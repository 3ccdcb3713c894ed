"""A tool call's arguments: text as a model wrote it, or an object."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from renderers.formats.json_text import CallFaultError, JsonReader
from renderers.messages import to_json
from renderers.parsed import CallStatus, ParsedToolCall
from renderers.vendors.payloads import Json


def arguments_text(arguments: Json | str) -> str:
    """Arguments for an API that takes text: text as it came."""
    return arguments if isinstance(arguments, str) else to_json(arguments)


def arguments_object(arguments: Json | str) -> Json:
    """Arguments for an API that takes an object. An empty text is none.

    Raises:
        ValueError: where the text is no JSON object.
    """
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}
    try:
        value = json.loads(arguments, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"found {type(value).__name__}")  # noqa: TRY004 - one kind of error for callers
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def malformed_call(call_id: str | None, name: str, text: str) -> ParsedToolCall | None:
    """A call whose arguments are no sound JSON object, with what is wrong; None where they are one."""
    reader = JsonReader(text or "{}")
    try:
        value, end = reader.value(reader.skip(0))
        reader.end(end)
    except CallFaultError as fault:
        return _malformed(call_id, name, text, fault.status, str(fault))
    if not isinstance(value, dict):
        return _malformed(call_id, name, text, CallStatus.INVALID_ARGUMENTS, f"found {type(value).__name__}")
    return _malformed(call_id, name, text, reader.flaw.status, str(reader.flaw)) if reader.flaw else None


def cut_call(call_id: str | None, name: str, text: str) -> ParsedToolCall:
    """A call that was cut off: never to be executed, whatever its text."""
    return _malformed(call_id, name, text, CallStatus.INCOMPLETE, "the stream ended inside this call")


def _malformed(call_id: str | None, name: str, text: str, status: CallStatus, problem: str) -> ParsedToolCall:
    fields: dict[str, Any] = {"raw": text, "arguments_text": text, "status": status, "error": problem}
    return ParsedToolCall(id=call_id or "", name=name, arguments=None, **fields)
