"""Replies read by a tokenizer's `response_template`, transformers' declarative description of a model's output.

transformers' own parser does the reading (extra `transformers`), on text: markers are matched as they are spelled, whatever
tokens spell them. What is kept of our rules: nothing raises, every token has a region, a call that was cut is never
executable, truncated reasoning stays reasoning. Deltas come at the end, because only then a template's transforms are final.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from renderers.errors import MissingExtraError
from renderers.parsed import CallStatus, Delta, ParsedResponse, ParsedToolCall, Region, Span
from renderers.parsing.protocol import Tools
from renderers.token_ids import as_token_ids
from renderers.tokenizers.protocol import TokenizerAdapter

#: The message fields that hold reasoning; every other field but these and the calls counts as content.
_REASONING = ("reasoning_content", "reasoning", "thinking")
_CALLS = "tool_calls"


@dataclass(frozen=True)
class ResponseTemplateGrammar:
    """A reply grammar made of a `response_template`."""

    template: Mapping[str, Any]
    stop_tokens: tuple[str, ...] = ()

    def bind(self, adapter: TokenizerAdapter) -> BoundResponseTemplate:
        """The grammar for one tokenizer.

        Raises:
            MissingExtraError: transformers is not installed, or too old to know response templates.
        """
        try:
            from transformers.utils import chat_parsing  # noqa: F401 - asked for early, for a clear error
        except ImportError:
            raise MissingExtraError("transformers", "transformers", "a tokenizer's response_template") from None
        return BoundResponseTemplate(adapter, self.template, self.stop_tokens)


@dataclass(frozen=True)
class BoundResponseTemplate:
    """A response template and a tokenizer."""

    adapter: TokenizerAdapter
    template: Mapping[str, Any]
    stop_tokens: tuple[str, ...]
    reasoning_ids: tuple[int, int] | None = None
    reasoning_markers: frozenset[int] = frozenset()

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """IDs of the tokens that end a reply, the usual one first."""
        special = self.adapter.special_tokens
        return tuple(special[text] for text in self.stop_tokens if text in special)

    def stream(
        self, tools: Tools | None = None, opening_ids: Sequence[int] = (), opening_reasoning: bool | None = None
    ) -> ResponseTemplateStream:
        """A fresh parser; `opening_ids` are the whole prompt, in which the template finds its own anchor."""
        return ResponseTemplateStream(self, tools, opening_ids)


class ResponseTemplateStream:
    """Collects a reply, and reads it at the end."""

    def __init__(self, bound: BoundResponseTemplate, tools: Tools | None, opening_ids: Sequence[int]) -> None:
        self._bound = bound
        self._tools: list[Any] = list(tools or ())
        self._prefix = bound.adapter.decode_bytes(opening_ids).decode("utf-8", "replace")
        self._ids: list[int] = []
        self._result: ParsedResponse | None = None
        self._deltas: list[Delta] = []

    def feed(self, token_ids: Sequence[int] | int) -> list[Delta]:
        """Take the next tokens. Deltas come with `drain`, after `finish`."""
        self._ids += as_token_ids([token_ids] if isinstance(token_ids, int) else token_ids)
        return []

    def finish(self, stopped: bool | None = None, *, with_spans: bool = True) -> ParsedResponse:
        """End the reply and read it. Its spans cost nothing more."""
        if self._result is None:
            self._result = self._read(stopped)
            self._deltas = list(_deltas(self._result))
        return self._result

    def drain(self) -> list[Delta]:
        """All deltas, once."""
        deltas, self._deltas = self._deltas, []
        return deltas

    def _read(self, stopped: bool | None) -> ParsedResponse:
        bound, ids = self._bound, self._ids
        stop_ids = set(bound.stop_ids)
        end = next((place for place, token_id in enumerate(ids) if token_id in stop_ids), None)
        body = ids if end is None else ids[:end]
        text = bound.adapter.decode_bytes(body).decode("utf-8", "replace")
        stop = bound.adapter.token_bytes(ids[end]).decode() if end is not None else None
        if stop is None and stopped and bound.stop_tokens:
            stop = bound.stop_tokens[0]
        fields, regions, left_open = self._parse(text)
        spans = _spans(bound.adapter, body, text, regions)
        if len(ids) > len(body):
            spans.append(Span(len(body), len(ids), Region.STRUCTURE))
        reasoning = next((fields[name] for name in _REASONING if isinstance(fields.get(name), str)), None)
        content = fields.get("content")
        return ParsedResponse(
            content=content if isinstance(content, str) else "",
            reasoning_content=reasoning,
            tool_calls=_calls(fields.get(_CALLS), cut=left_open == _CALLS, text=text),
            reasoning_complete=None if reasoning is None else left_open not in _REASONING,
            stop=stop,
            spans=spans,
            closed_at=len(ids) if end is None else end + 1,
        )

    def _parse(self, text: str) -> tuple[dict[str, Any], list[tuple[str, str]], str | None]:
        """The message's fields, the (field, text) chunks in order, and the field that was open at the end."""
        from transformers.utils.chat_parsing import ResponseParser

        chunks: list[tuple[str, str]] = []
        left_open: str | None = None
        try:
            parser = ResponseParser(dict(self._bound.template), prefix=self._prefix, tools=self._tools)
            events = [*parser.initial_events, *parser.feed(text)]
            for event in events:
                if event["type"] == "region_open":
                    left_open = event["field"]
                elif event["type"] == "region_close":
                    left_open = None
            fields, last = parser.finalize()
            chunks = [(event["field"], event["text"]) for event in [*events, *last] if event["type"] == "region_chunk"]
        except Exception:  # noqa: BLE001 - a template's parsers raise what they like on malformed replies
            return self._unreadable(text)
        return fields, chunks, left_open

    def _unreadable(self, text: str) -> tuple[dict[str, Any], list[tuple[str, str]], str | None]:
        """What the template cannot read stays text, and says so as a call that nobody may execute."""
        return {"content": text, _CALLS: [{"unreadable": True}]}, [("content", text)], None


def _calls(value: Any, *, cut: bool, text: str) -> list[ParsedToolCall]:
    calls = value if isinstance(value, list) else [value] if value else []
    parsed: list[ParsedToolCall] = []
    for place, call in enumerate(calls):
        function = call.get("function", call) if isinstance(call, Mapping) else {}
        name, arguments = function.get("name"), function.get("arguments")
        if isinstance(arguments, str):
            arguments = _object(arguments)
        status, error = CallStatus.OK, None
        if not isinstance(name, str) or not name:
            status, error = CallStatus.MALFORMED, "the response template could not read the reply"
        elif not isinstance(arguments, dict):
            status, error = CallStatus.INVALID_ARGUMENTS, "the arguments are no object"
        if cut and place == len(calls) - 1:
            status, error = CallStatus.INCOMPLETE, "the reply ended inside the call"
        parsed.append(
            ParsedToolCall(
                id=call.get("id") or f"call_{place}" if isinstance(call, Mapping) else f"call_{place}",
                name=name if isinstance(name, str) else "",
                arguments=arguments if isinstance(arguments, dict) else None,
                raw=text,
                arguments_text=json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else "",
                status=status,
                error=error,
            )
        )
    return parsed


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _spans(adapter: TokenizerAdapter, ids: Sequence[int], text: str, chunks: Sequence[tuple[str, str]]) -> list[Span]:
    """Each token's region: that of the field in which its first character stands, structure outside all fields."""
    starts: list[tuple[int, Region]] = [(0, Region.STRUCTURE)]
    position = 0
    for field, chunk in chunks:
        found = text.find(chunk, position)
        if found < 0:
            continue  # it stands in the prompt, or a character was cut in two
        region = Region.TOOL_CALL if field == _CALLS else Region.REASONING if field in _REASONING else Region.CONTENT
        position = found + len(chunk)
        starts += [(len(text[:found].encode()), region), (len(text[:position].encode()), Region.STRUCTURE)]
    spans: list[Span] = []
    offset, current = 0, 0
    for place, token_id in enumerate(ids):
        while current + 1 < len(starts) and starts[current + 1][0] <= offset:
            current += 1
        region = starts[current][1]
        if spans and spans[-1].region is region:
            spans[-1] = Span(spans[-1].start, place + 1, region)
        else:
            spans.append(Span(place, place + 1, region))
        offset += len(adapter.token_bytes(token_id))
    return spans


def _deltas(reply: ParsedResponse) -> list[Delta]:
    deltas: list[Delta] = []
    if reply.reasoning_content:
        deltas.append(Delta(reasoning=reply.reasoning_content))
    if reply.content:
        deltas.append(Delta(content=reply.content))
    for place, call in enumerate(reply.tool_calls):
        deltas.append(Delta(call=place, call_id=call.id, name=call.name))
        if call.arguments_text:
            deltas.append(Delta(call=place, arguments=call.arguments_text))
    return deltas
