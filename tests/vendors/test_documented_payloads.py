"""Payloads written by hand after each API's documentation: what is read of them, and that they come back as they came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from renderers.vendors import (
    ANTHROPIC,
    CHAT_COMPLETIONS,
    GEMINI,
    RESPONSES,
    Anthropic,
    ChatCompletions,
    VendorApi,
    approximations,
)

APIS = {api.provider: api for api in (ANTHROPIC, CHAT_COMPLETIONS, GEMINI, RESPONSES)}
CASES = [
    (path.stem, case)
    for path in sorted((Path(__file__).parent / "payloads").glob("*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))
]


def cases(kind: str) -> pytest.MarkDecorator:
    """The cases of one kind, each with its API."""
    chosen = [(stem, case) for stem, case in CASES if case["kind"] == kind]
    ids = [f"{stem}: {case['name']}" for stem, case in chosen]
    return pytest.mark.parametrize(("api", "case"), [(APIS[stem], case) for stem, case in chosen], ids=ids)


def visible(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What another model can read of the messages."""
    return [{name: value for name, value in message.items() if name != "vendor_blocks"} for message in messages]


def exactly(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def server_sent(events: list[dict[str, Any]]) -> str:
    """The events as an HTTP response."""
    return "".join([f"event: {event.get('type', 'chunk')}\ndata: {json.dumps(event)}\n\n" for event in events])


@cases("request")
def test_requests(api: VendorApi, case: dict[str, Any]) -> None:
    read = api.read_request(case["payload"])
    assert exactly(visible(read.messages)) == exactly(case["messages"])
    assert exactly(read.tools) == exactly(case.get("tools"))
    written = api.write_request(read.messages, tools=read.tools, settings=read.settings)
    assert exactly(written.payload) == exactly(case["payload"])
    assert not written.differences


@cases("reply")
def test_replies(api: VendorApi, case: dict[str, Any]) -> None:
    reply = api.read_reply(case["payload"])
    assert exactly(visible([reply.message])) == exactly(case["messages"])
    assert reply.stop == case["stop"]
    assert reply.usage == case["payload"].get(api.usage_field)
    assert [str(one) for one in approximations(reply)] == case["approximates"]
    written = api.write_reply(reply)
    assert exactly(written.payload) == exactly(case["payload"])
    assert not written.differences


@cases("events")
def test_streams(api: Anthropic | ChatCompletions, case: dict[str, Any]) -> None:
    events = case["events"]
    text = server_sent(events) + "data: [DONE]\n\n"
    for given in (events, [json.dumps(event) for event in events], text.split("\n"), [text], [text.encode()]):
        reply = api.read_stream(given)
        assert exactly(visible([reply.message])) == exactly(case["messages"])
        assert reply.stop == case["stop"]
        assert not reply.malformed_calls
        assert not reply.unread_events
        assert [str(one) for one in approximations(reply)] == case["approximates"]
        assert exactly(api.write_reply(reply).payload) == exactly(case["payload"])
