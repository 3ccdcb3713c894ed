"""Nothing is lost: canonical messages to each API and back, each API's payloads to canonical messages and back."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import generated
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from renderers.testing import Conversation, Profile, conversations
from renderers.testing.strategies import decided
from renderers.vendors import (
    ANTHROPIC,
    CHAT_COMPLETIONS,
    GEMINI,
    MISSING,
    RESPONSES,
    UNSIGNED,
    Anthropic,
    ChatCompletions,
    Gemini,
    Responses,
    VendorApi,
    restore,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from renderers.testing import Choices

APIS = [ANTHROPIC, CHAT_COMPLETIONS, GEMINI, RESPONSES]
VARIANTS = [
    *APIS,
    Anthropic(late_system="user"),
    ChatCompletions(provider="deepseek", reasoning_field="reasoning_content"),
    Gemini(unsigned_calls=UNSIGNED),
    Responses(takes_reasoning_text=True),
]
BYTES = 400
EXAMPLES = settings(max_examples=settings().max_examples // (1 if "FUZZ_EXAMPLES" in os.environ else 3))

#: Arguments that every API takes: those of Anthropic and Gemini are objects.
OBJECTS = Profile(name="objects", arguments="parsed", needs_call_before_result=True)
TEXTS = Profile(name="texts", needs_call_before_result=True)

#: Fields that an API cannot say, or says otherwise, by API. Everything else must come back without help.
TELLS_OTHERWISE: dict[str, set[str]] = {
    "anthropic": {"reasoning", "name", "arguments", "id", "tool_call_id", "content", "type", "role"},
    "gemini": {"reasoning", "name", "arguments", "id", "tool_call_id", "type", "role", "content"},
    "openai-chat": {"reasoning", "arguments", "id", "tool_call_id", "tool_calls", "type"},
    "deepseek": {"arguments", "id", "tool_call_id", "tool_calls", "type", "reasoning"},
    "openai-responses": {"reasoning", "name", "arguments", "id", "tool_call_id", "content", "tool_calls", "type"},
}


def sendable(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, with an ID and a name for results that no call stands before: some API needs them."""
    made: list[dict[str, Any]] = []
    ids: set[str] = set()
    for message in messages:
        if message["role"] == "assistant":
            ids |= {call["id"] for call in message.get("tool_calls") or () if "id" in call}
        is_result = message["role"] == "tool"
        answers_first = "tool_call_id" not in message and bool(made[-1].get("tool_calls")) if made else False
        if is_result and message.get("tool_call_id") not in ids and not answers_first:
            made.append({"name": "f", "tool_call_id": "call_x", **message})
        else:
            made.append(message)
    return made


def with_secrets(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, each with a block that belongs to another provider."""
    secret = {"another": {"content": [{"type": "thinking", "signature": "SECRET"}], "hides": ["reasoning"]}}
    return [{**message, "vendor_blocks": secret} for message in messages]


def named(difference: Any) -> str:
    """The field that a difference is about."""
    names = [step for step in difference.path if isinstance(step, str)]
    field = names[-1]
    return "reasoning" if field in {"reasoning_content", "thinking", "reasoning"} else field


@pytest.mark.parametrize("api", VARIANTS, ids=repr)
def test_canonical_messages_come_back(api: VendorApi) -> None:
    texts = isinstance(api, ChatCompletions | Responses)

    @EXAMPLES
    @given(conversations(TEXTS if texts else OBJECTS, maximum=8))
    def comes_back(conversation: Conversation) -> None:
        messages = with_secrets(sendable(conversation.messages))
        tools = conversation.tools
        before = json.dumps([messages, tools])
        written = api.write_request(messages, tools=tools, settings={"model": "m"})
        sent = json.dumps(written.payload)
        assert "SECRET" not in sent
        back = api.read_request(sent)
        assert restore(back.messages, written.differences) == messages
        assert restore(back.tools or [], written.differences, root="tools") == (tools or [])
        assert back.settings == {"model": "m"}
        assert json.dumps([messages, tools]) == before
        again = api.write_request(back.messages, tools=back.tools, settings=back.settings)
        assert exactly(again.payload) == exactly(written.payload)
        assert not again.differences

    comes_back()


@pytest.mark.parametrize("api", APIS, ids=repr)
def test_what_an_api_can_say_comes_back_without_help(api: VendorApi) -> None:
    @EXAMPLES
    @given(conversations(OBJECTS, maximum=6))
    def comes_back(conversation: Conversation) -> None:
        messages = sendable(conversation.messages)
        roles = [message["role"] for message in messages]
        if api is RESPONSES and ("assistant", "assistant") in pairwise(roles):
            return  # its items do not tell where one ends and the next begins
        written = api.write_request(messages)
        for difference in written.differences:
            if difference.sent is MISSING and len(difference.path) == 2:  # a message of its own is not there
                message = difference.given
                says_nothing = not message.get("tool_calls") and not "".join(texts_of(message))
                assert message["role"] in {"system", "developer"} or says_nothing
            elif difference.given != difference.sent and not (empty(difference.given) and empty(difference.sent)):
                assert named(difference) in TELLS_OTHERWISE[api.provider] | {"annotations", "vendor_blocks"}, difference

    comes_back()


def exactly(value: Any) -> str:
    """Equal texts are equal values of equal types: 1, 1.0 and True are not."""
    return json.dumps(value, sort_keys=True)


def texts_of(message: dict[str, Any]) -> list[str]:
    content = message.get("content") or ""
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def empty(value: Any) -> bool:
    return value is MISSING or value in (None, "", [])


REQUESTS: list[tuple[VendorApi, Callable[[Choices], dict[str, Any]]]] = [
    (ANTHROPIC, generated.anthropic_request),
    (CHAT_COMPLETIONS, generated.chat_request),
    (ChatCompletions(reasoning_field="reasoning"), generated.chat_request),
    (GEMINI, generated.gemini_request),
    (RESPONSES, generated.responses_request),
]
REPLIES: list[tuple[VendorApi, Callable[[Choices], dict[str, Any]]]] = [
    (ANTHROPIC, generated.anthropic_reply),
    (CHAT_COMPLETIONS, generated.chat_reply),
    (ChatCompletions(reasoning_field="reasoning"), generated.chat_reply),
    (GEMINI, generated.gemini_reply),
    (RESPONSES, generated.responses_reply),
]


@pytest.mark.parametrize(("api", "build"), REQUESTS, ids=lambda value: getattr(value, "__name__", repr(value)))
def test_requests_come_back(api: VendorApi, build: Callable[[Choices], dict[str, Any]]) -> None:
    @EXAMPLES
    @given(decided(build, BYTES))
    def comes_back(payload: dict[str, Any]) -> None:
        sent = json.dumps(payload)
        read = api.read_request(sent)
        written = api.write_request(read.messages, tools=read.tools, settings=read.settings)
        assert exactly(written.payload) == exactly(payload)
        assert not written.differences
        for message in read.messages:
            visible = {name: value for name, value in message.items() if name != "vendor_blocks"}
            assert "SECRET" not in json.dumps(visible)
        assert "SECRET" not in json.dumps(read.tools)

    comes_back()


@pytest.mark.parametrize(("api", "build"), REPLIES, ids=lambda value: getattr(value, "__name__", repr(value)))
def test_replies_come_back(api: VendorApi, build: Callable[[Choices], dict[str, Any]]) -> None:
    @EXAMPLES
    @given(decided(build, BYTES))
    def comes_back(payload: dict[str, Any]) -> None:
        reply = api.read_reply(json.dumps(payload))
        written = api.write_reply(reply)
        assert exactly(written.payload) == exactly(payload)
        assert not written.differences

    comes_back()


@pytest.mark.parametrize(("api", "build"), REPLIES, ids=lambda value: getattr(value, "__name__", repr(value)))
def test_a_reply_goes_back_to_its_own_provider_only(api: VendorApi, build: Callable[[Choices], dict[str, Any]]) -> None:
    others = [other for other in APIS if other.provider != api.provider]

    @EXAMPLES
    @given(decided(build, BYTES), st.sampled_from(others))
    def goes_back(payload: dict[str, Any], other: VendorApi) -> None:
        reply = api.read_reply(payload)
        if reply.malformed_calls:  # some APIs cannot say these
            return
        messages = [{"role": "user", "content": "q"}, reply.message]
        written = other.write_request(messages)
        assert "SECRET" not in json.dumps(written.payload)
        back = other.read_request(written.payload)
        assert restore(back.messages, written.differences) == messages
        own = api.write_request(messages)
        assert json.dumps(own.payload).count("SECRET") == json.dumps(reply.message).count("SECRET")

    goes_back()
