"""What cannot be read or sent is a typed error that names the place; an API's own error is one of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from renderers import MessageError, ToolsError, UnsupportedMessageError
from renderers.errors import VendorPayloadError, VendorReplyError
from renderers.vendors import ANTHROPIC, CHAT_COMPLETIONS, GEMINI, RESPONSES, VendorApi

Json = dict[str, Any]
APIS = [ANTHROPIC, CHAT_COMPLETIONS, GEMINI, RESPONSES]
USER = {"role": "user", "content": "q"}


def called_with(arguments: Any) -> Json:
    """An assistant's message with one call."""
    function = {"name": "f", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }


@pytest.mark.parametrize(
    ("api", "payload", "kind", "text"),
    [
        (
            ANTHROPIC,
            {"type": "error", "error": {"type": "not_found_error", "message": "no such model"}, "request_id": "req_1"},
            "not_found_error",
            "anthropic: payload: not_found_error: no such model",
        ),
        (
            CHAT_COMPLETIONS,
            {
                "error": {
                    "message": "bad key",
                    "type": "invalid_request_error",
                    "param": None,
                    "code": "invalid_api_key",
                }
            },
            "invalid_request_error",
            "openai-chat: payload: invalid_request_error: bad key",
        ),
        (CHAT_COMPLETIONS, {"error": "overloaded"}, None, "overloaded"),
        (
            RESPONSES,
            {"status": "failed", "error": {"code": "server_error", "message": "no"}, "output": []},
            "server_error",
            "server_error: no",
        ),
        (
            GEMINI,
            {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}},
            "RESOURCE_EXHAUSTED",
            "RESOURCE_EXHAUSTED: quota",
        ),
        (
            GEMINI,
            {"promptFeedback": {"blockReason": "SAFETY"}},
            "SAFETY",
            "promptFeedback: the prompt was blocked: SAFETY",
        ),
    ],
)
def test_the_apis_own_errors(api: VendorApi, payload: Json, kind: str | None, text: str) -> None:
    with pytest.raises(VendorReplyError) as caught:
        api.read_reply(json.dumps(payload))
    assert text in str(caught.value)
    assert caught.value.kind == kind
    assert caught.value.payload == payload


@pytest.mark.parametrize(
    ("api", "payload", "problem"),
    [
        (ANTHROPIC, "{", "anthropic: payload: not JSON: Expecting property name"),
        (ANTHROPIC, [], "anthropic: payload: expected an object, found list"),
        (ANTHROPIC, {"role": "assistant"}, "anthropic: content: Field required"),
        (
            ANTHROPIC,
            {"role": "assistant", "content": [{"type": "text"}]},
            r"anthropic: content\[0\].text: Field required",
        ),
        (
            ANTHROPIC,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": "{}"}]},
            r"anthropic: content\[0\].input: Input should be a valid dictionary, found '{}'",
        ),
        (ANTHROPIC, {"role": "assistant", "content": ["x"]}, r"anthropic: content\[0\]: "),
        (
            ANTHROPIC,
            {"role": "assistant", "content": [object()]},
            "anthropic: payload: not JSON: object is no JSON value",
        ),
        (CHAT_COMPLETIONS, {"choices": []}, "openai-chat: choices: no choice 0 among 0"),
        (CHAT_COMPLETIONS, {}, "openai-chat: choices: Field required"),
        (
            CHAT_COMPLETIONS,
            {"choices": [{"message": {"role": "assistant", "function_call": {"name": "f", "arguments": ""}}}]},
            r"openai-chat: choices\[0\].message.function_call: Input should be None",
        ),
        (
            CHAT_COMPLETIONS,
            {"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]}}]},
            r"openai-chat: choices\[0\].message.tool_calls\[0\].function: Field required",
        ),
        (
            RESPONSES,
            {"output": [{"type": "function_call", "name": "f"}]},
            r"openai-responses: output\[0\].call_id: Field",
        ),
        (RESPONSES, {"output": None}, "openai-responses: output: Input should be a valid list, found None"),
        (GEMINI, {"candidates": []}, "gemini: candidates: no candidate 0 among 0"),
        (
            GEMINI,
            {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"args": {}}}]}}]},
            r"gemini: candidates\[0\].content.parts\[0\].functionCall.name: Field required",
        ),
        (
            GEMINI,
            {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": "{}"}}]}}]},
            r"gemini: candidates\[0\].content.parts\[0\].functionCall.args: Input should be a valid dictionary",
        ),
    ],
)
def test_payloads_that_are_none(api: VendorApi, payload: Any, problem: str) -> None:
    with pytest.raises(VendorPayloadError, match=problem):
        api.read_reply(payload)


def test_requests_that_are_none() -> None:
    with pytest.raises(VendorPayloadError, match=r"anthropic: messages\[1\].role: Input should be"):
        ANTHROPIC.read_request({"messages": [{"role": "user", "content": ""}, {"role": "tool", "content": ""}]})
    with pytest.raises(VendorPayloadError, match=r"openai-responses: input\[0\].content: "):
        RESPONSES.read_request({"input": [{"role": "user"}]})
    with pytest.raises(VendorPayloadError, match=r"gemini: tools\[0\].functionDeclarations\[0\].name: Field required"):
        GEMINI.read_request({"contents": [], "tools": [{"functionDeclarations": [{}]}]})
    deep: Json = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(VendorPayloadError, match=r"nested|recursion"):
        ANTHROPIC.read_request({"messages": [], "x": deep})


@pytest.mark.parametrize(
    ("api", "messages", "problem"),
    [
        (
            ANTHROPIC,
            [USER, called_with('{"a": 1')],
            r"messages\[1\].tool_calls\[0\].function.arguments: anthro",
        ),
        (GEMINI, [USER, called_with("[1]")], r"messages\[1\].tool_calls\[0\].function.arguments: gemini"),
        (ANTHROPIC, [USER, called_with('{"a": NaN}')], "NaN is no JSON number"),
        (CHAT_COMPLETIONS, [USER, called_with({"a": {1}})], r"messages\[1\].*arguments cannot be"),
        (ANTHROPIC, [{"role": "tool", "content": "r"}], r"messages\[0\].tool_call_id: a result needs the ID"),
        (RESPONSES, [{"role": "tool", "content": "r"}], r"messages\[0\].tool_call_id: a result needs the ID"),
        (GEMINI, [{"role": "tool", "tool_call_id": "x", "content": "r"}], r"messages\[0\].name: Gemini takes a result"),
        (RESPONSES, [{"role": "robot", "content": ""}], r"messages\[0\].role: "),
        (RESPONSES, [{"role": "user", "content": 5}], r"messages\[0\].content: "),
        (RESPONSES, "text", "expected a list of messages, found str"),
        (RESPONSES, [USER, 5], r"messages\[1\]: a message is a dict"),
        (RESPONSES, [{**USER, "x": object()}], r"messages\[0\]: cannot be written as JSON: object"),
    ],
)
def test_messages_that_cannot_be_sent(api: VendorApi, messages: Any, problem: str) -> None:
    with pytest.raises(MessageError, match=problem):
        api.write_request(messages)


@pytest.mark.parametrize(
    ("api", "kept"),
    [
        (ANTHROPIC, {"content": [5]}),
        (ANTHROPIC, {"content": [{"type": "text"}]}),
        (ANTHROPIC, {"turn": 5, "content": []}),
        (GEMINI, {"content": [{"functionCall": {}}]}),
        (RESPONSES, {"content": [{"role": "assistant", "content": [5]}]}),
        (RESPONSES, {"content": 5}),
        (CHAT_COMPLETIONS, {"fields": {"tool_calls": [{}]}}),
        (CHAT_COMPLETIONS, {"fields": 5}),
        (CHAT_COMPLETIONS, {"absent": 5}),
    ],
)
def test_kept_blocks_that_are_none(api: VendorApi, kept: Json) -> None:
    broken = {"role": "assistant", "content": "a", "vendor_blocks": {api.provider: kept}}
    with pytest.raises(MessageError, match=rf"messages\[1\].vendor_blocks.{api.provider}: what is kept here"):
        api.write_request([USER, broken])
    with pytest.raises(MessageError, match=r"messages\[0\].vendor_blocks.*valid dictionary"):
        api.write_request([{**USER, "vendor_blocks": {"x": 5}}])


def test_settings_that_are_none() -> None:
    with pytest.raises(VendorPayloadError, match="anthropic: settings: not JSON: set is no JSON value"):
        ANTHROPIC.write_request([USER], settings={"metadata": {1}})
    with pytest.raises(VendorPayloadError, match=r"anthropic: system: .*found 5"):
        ANTHROPIC.write_request([USER], settings={"system": 5})
    with pytest.raises(VendorPayloadError, match=r"gemini: tools\[0\]: "):
        GEMINI.write_request([USER], tools=[], settings={"tools": [5]})


def test_tools_that_cannot_be_sent() -> None:
    for api in (ANTHROPIC, GEMINI, RESPONSES):
        with pytest.raises(ToolsError, match=r"tools\[1\]: .* takes functions with a name"):
            api.write_request([USER], tools=[{"function": {"name": "f"}}, {"type": "web_search"}])


@pytest.mark.parametrize("api", APIS, ids=repr)
def test_media_go_to_their_own_provider_only(api: VendorApi) -> None:
    image = {"type": "vendor_block", "provider": "elsewhere", "block": {"type": "image"}}
    with pytest.raises(UnsupportedMessageError, match=r"messages\[0\].content\[0\]: .*'elsewhere'"):
        api.write_request([{"role": "user", "content": [image]}])
    if api is not CHAT_COMPLETIONS:  # its own shape
        with pytest.raises(UnsupportedMessageError, match=r"content\[0\]: .*'image_url'"):
            api.write_request([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}])
