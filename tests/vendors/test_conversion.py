"""Conversion where something is in the way: edited messages, and those of other models."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

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
    Reply,
    Responses,
    VendorApi,
    approximations,
    restore,
)

Json = dict[str, Any]
APIS = [ANTHROPIC, CHAT_COMPLETIONS, GEMINI, RESPONSES]
USER = {"role": "user", "content": "q"}
SIGNED = {"type": "thinking", "thinking": "Two calls.", "signature": "SIG"}
CALLS = [
    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}},
    {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}, "caller": {"type": "direct"}},
]
CITED = {"type": "text", "text": "It is so.", "citations": [{"cited_text": "so"}]}


def call(call_id: str | None = "call_1", name: str = "f", arguments: Any = "{}") -> Json:
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made if call_id is None else {"id": call_id, **made}


def assistant(*calls: Json, **fields: Any) -> Json:
    message: Json = {"role": "assistant", "content": None if calls else "a", **fields}
    return {**message, "tool_calls": list(calls)} if calls else message


def sent_turn(message: Json) -> list[Json]:
    """The blocks that Anthropic gets for a message."""
    payload = ANTHROPIC.write_request([USER, message]).payload
    blocks: list[Json] = payload["messages"][1]["content"]
    return blocks


# Edited messages -----------------------------------------------------------------------------------------------------


@pytest.fixture
def message() -> Json:
    """A reply with everything that can be kept."""
    reply = ANTHROPIC.read_reply({"role": "assistant", "content": [SIGNED, CITED, *CALLS]})
    assert sent_turn(reply.message) == [SIGNED, CITED, *CALLS]
    return reply.message


def test_an_edited_text_loses_what_stood_on_it_and_nothing_else(message: Json) -> None:
    assert sent_turn({**message, "content": "It may be so."}) == [
        SIGNED,
        {"type": "text", "text": "It may be so."},
        *CALLS,
    ]


def test_edited_reasoning_goes_with_its_signature(message: Json) -> None:
    assert sent_turn({**message, "reasoning_content": "One call."}) == [CITED, *CALLS]
    del message["reasoning_content"]
    assert sent_turn(message) == [CITED, *CALLS]


def test_a_call_that_was_taken_out_or_put_in(message: Json) -> None:
    first, second = message["tool_calls"]
    assert sent_turn({**message, "tool_calls": [second]}) == [SIGNED, CITED, CALLS[1]]
    new = {"type": "tool_use", "id": "n", "name": "h", "input": {}}
    assert sent_turn({**message, "tool_calls": [first, second, call("n", "h")]}) == [SIGNED, CITED, *CALLS, new]
    changed = call("toolu_1", "f", '{"a": 2}')
    fresh = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 2}}
    assert sent_turn({**message, "tool_calls": [changed, second]}) == [SIGNED, CITED, fresh, CALLS[1]]


def test_arguments_that_are_read_otherwise_and_say_the_same(message: Json) -> None:
    message["tool_calls"][0]["function"]["arguments"] = '{ "a": 1 }'
    assert sent_turn(message) == [SIGNED, CITED, *CALLS]


def test_an_edited_chat_message_keeps_its_other_fields() -> None:
    given = {"role": "assistant", "content": "a", "refusal": None, "reasoning_details": [{"type": "reasoning.text"}]}
    [message] = CHAT_COMPLETIONS.read_request({"messages": [given]}).messages
    [written] = CHAT_COMPLETIONS.write_request([{**message, "content": "b"}]).payload["messages"]
    assert written == {**given, "content": "b"}


def test_an_edited_result_is_written_anew() -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": "18 C", "cache_control": {"type": "ephemeral"}}
    [message] = ANTHROPIC.read_request({"messages": [{"role": "user", "content": [block]}]}).messages
    [turn] = ANTHROPIC.write_request([{**message, "content": "19 C"}]).payload["messages"]
    assert turn == {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "19 C"}]}


def test_a_turn_that_lost_its_first_message_begins_anew() -> None:
    payload = {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}, CITED]}]}
    _, text = ANTHROPIC.read_request(payload).messages
    assert ANTHROPIC.write_request([assistant(), text]).payload["messages"][1] == {"role": "user", "content": [CITED]}


# Foreign messages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS, ids=repr)
def test_parallel_results_stand_together_and_in_order(api: VendorApi) -> None:
    messages = [
        USER,
        assistant(call("a1", "f"), call("a2", "g")),
        {"role": "tool", "tool_call_id": "a2", "content": "second"},
        {"role": "tool", "tool_call_id": "a1", "content": "first"},
        USER,
    ]
    text = json.dumps(api.write_request(messages).payload)
    assert text.index("second") < text.index("first")
    if api in (ANTHROPIC, GEMINI):
        turns = api.write_request(messages).payload[api.messages_field]
        assert [turn["role"] for turn in turns] == ["user", api.assistant_role, "user", "user"]


def test_ids_are_made_to_fit_and_pairs_stay_pairs() -> None:
    messages = [
        USER,
        assistant(call("functions.f:0"), call("functions.f:1"), call("x" * 70), call(None), call("")),
        *(
            {"role": "tool", "tool_call_id": one, "content": one}
            for one in ("x" * 70, "functions.f:1", "functions.f:0")
        ),
        {"role": "tool", "content": "the one without"},
        assistant(call("functions.f:0")),
        {"role": "tool", "tool_call_id": "functions.f:0", "content": "again"},
    ]
    written = ANTHROPIC.write_request(messages)
    first, results, second, more = written.payload["messages"][1:]
    ids = [block["id"] for block in first["content"] + second["content"]]
    assert ids == ["call_0", "call_1", "call_2", "call_3", "call_4", "call_5"]
    answered = [block["tool_use_id"] for block in results["content"] + more["content"]]
    assert answered == ["call_2", "call_1", "call_0", "call_3", "call_5"]
    assert restore(ANTHROPIC.read_request(written.payload).messages, written.differences) == messages


def test_a_late_system_message() -> None:
    messages = [{"role": "system", "content": "s"}, USER, {"role": "developer", "content": "late"}]
    newer = ANTHROPIC.write_request(messages).payload
    assert newer["system"] == "s"
    assert newer["messages"][1] == {"role": "system", "content": "late"}
    older = Anthropic(late_system="user").write_request(messages)
    assert older.payload["messages"][1] == {"role": "user", "content": "late"}
    assert [str(one) for one in older.differences] == ["messages[2].role: 'developer' is sent as 'user'"]


def test_several_system_messages_become_one_field() -> None:
    messages = [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, USER]
    for api in (ANTHROPIC, GEMINI):
        written = api.write_request(messages)
        assert [one.place for one in written.differences] == ["messages[0].content", "messages[1]"]
        assert written.differences[1].sent is MISSING
        assert restore(api.read_request(written.payload).messages, written.differences) == messages


def test_a_turn_of_which_nothing_can_be_said_is_left_out() -> None:
    messages = [USER, assistant(content="", reasoning_content="hm"), USER]
    for api in (ANTHROPIC, GEMINI, RESPONSES):
        written = api.write_request(messages)
        assert "hm" not in json.dumps(written.payload)
        assert [one.place for one in written.differences] == ["messages[1]"]


def test_reasoning_of_others_goes_where_it_is_taken() -> None:
    messages = [USER, assistant(reasoning_content="hm")]
    for api in APIS:
        written = api.write_request(messages)
        assert "hm" not in json.dumps(written.payload)
        assert [one.place for one in written.differences] == ["messages[1].reasoning_content"]
    for takes in (ChatCompletions(reasoning_field="reasoning"), Responses(takes_reasoning_text=True)):
        assert "hm" in json.dumps(takes.write_request(messages).payload)
    assert not ChatCompletions(reasoning_field="reasoning_content").write_request(messages).differences


def test_gemini_takes_a_foreign_call_with_a_word_for_its_signature() -> None:
    foreign = assistant(call("a", "f"), call("b", "g"))
    parts = Gemini(unsigned_calls=UNSIGNED).write_request([USER, foreign]).payload["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [UNSIGNED, None]
    own = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "SIG"}
    read = Gemini(unsigned_calls=UNSIGNED).read_request({"contents": [{"role": "model", "parts": [own]}]})
    assert Gemini(unsigned_calls=UNSIGNED).write_request(read.messages).payload["contents"][0]["parts"] == [own]


def test_a_result_goes_back_without_the_id_that_its_call_never_had() -> None:
    own = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "SIG"}
    reply = GEMINI.read_reply({"candidates": [{"content": {"role": "model", "parts": [own, own]}}]})
    results = [{"role": "tool", "tool_call_id": one["id"], "content": "r"} for one in reply.message["tool_calls"]]
    payload = GEMINI.write_request([USER, reply.message, *results]).payload
    assert payload["contents"][1]["parts"] == [own, own]
    assert payload["contents"][2]["parts"] == 2 * [{"functionResponse": {"name": "f", "response": {"output": "r"}}}]


def test_a_custom_tool_is_answered_as_one() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "shell", "input": "ls"}
    reply = RESPONSES.read_reply({"output": [item]})
    result = {"role": "tool", "tool_call_id": "c", "content": "a b"}
    payload = RESPONSES.write_request([USER, reply.message, result]).payload
    assert payload["input"][1:] == [item, {"type": "custom_tool_call_output", "call_id": "c", "output": "a b"}]


def test_an_error_of_a_tool() -> None:
    failed = {"role": "tool", "tool_call_id": "call_1", "content": "boom", "is_error": True}
    messages = [USER, assistant(call()), failed]
    assert ANTHROPIC.write_request(messages).payload["messages"][2]["content"][0]["is_error"] is True
    response = GEMINI.write_request(messages).payload["contents"][2]["parts"][0]["functionResponse"]
    assert response["response"] == {"error": "boom"}
    for api in (CHAT_COMPLETIONS, RESPONSES):
        places = [one.place for one in api.write_request(messages).differences]
        assert places == ["messages[2].is_error"]


def test_tools_are_merged_with_the_apis_own() -> None:
    own = {"type": "web_search_20260318", "name": "web_search"}
    cached = {"name": "f", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    read = ANTHROPIC.read_request({"messages": [], "tools": [own, cached]})
    assert read.tools == [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    again = ANTHROPIC.write_request([USER], tools=read.tools, settings=read.settings).payload
    assert again["tools"] == [own, cached]
    other = {"type": "function", "function": {"name": "g", "description": "d"}}
    changed = ANTHROPIC.write_request([USER], tools=[other], settings=read.settings)
    assert changed.payload["tools"] == [
        {"name": "g", "description": "d", "input_schema": {"type": "object", "properties": {}}},
        own,
    ]
    mixed = {"functionDeclarations": [{"name": "f"}], "googleSearch": {}}
    gemini = GEMINI.read_request({"contents": [], "tools": [mixed]})
    changed = GEMINI.write_request([USER], tools=[other], settings=gemini.settings)
    assert changed.payload["tools"] == [
        {"functionDeclarations": [{"name": "g", "description": "d"}]},
        {"googleSearch": {}},
    ]


def test_the_python_spelling_of_gemini_is_read() -> None:
    args = {"snake_key": 1}
    payload = {
        "system_instruction": {"parts": [{"text": "s"}]},
        "contents": [
            {"role": "model", "parts": [{"function_call": {"name": "f_x", "args": args}, "thought_signature": "SIG"}]},
            {"role": "user", "parts": [{"function_response": {"name": "f_x", "response": {"out_put": 1}}}]},
        ],
        "generation_config": {"max_output_tokens": 5},
        "tools": [{"function_declarations": [{"name": "f_x", "parameters_json_schema": {"a_b": {}}}]}],
    }
    read = GEMINI.read_request(payload)
    assert read.messages[1]["tool_calls"] == [call("call_0", "f_x", args)]
    assert read.tools == [{"type": "function", "function": {"name": "f_x", "parameters": {"a_b": {}}}}]
    written = GEMINI.write_request(read.messages, tools=read.tools, settings=read.settings).payload
    assert written["contents"][0]["parts"] == [
        {"functionCall": {"name": "f_x", "args": args}, "thoughtSignature": "SIG"}
    ]
    assert written["contents"][1]["parts"] == [{"functionResponse": {"name": "f_x", "response": {"out_put": 1}}}]
    assert written["generation_config"] == payload["generation_config"]  # is not read, and stays


# Borders -------------------------------------------------------------------------------------------------------------


class _Block(BaseModel):
    model_config = ConfigDict(extra="allow")
    type: str
    text: str | None = None
    citations: list[Json] | None = None


class _Usage(BaseModel):
    output_tokens: int


class _SdkMessage(BaseModel):
    """A reply as a vendor's SDK holds it, with fields that were never sent."""

    role: str
    content: list[_Block]
    stop_reason: str | None = None
    usage: _Usage
    container: Json | None = None
    usage_field: int | None = Field(None, alias="usageField")


def test_dicts_json_and_sdk_objects_are_the_same() -> None:
    payload = {"role": "assistant", "content": [{"type": "text", "text": "4"}], "usage": {"output_tokens": 3}}
    for given in (payload, json.dumps(payload), json.dumps(payload).encode(), _SdkMessage.model_validate(payload)):
        reply = ANTHROPIC.read_reply(given)
        assert reply.message == {"role": "assistant", "content": "4"}
        assert ANTHROPIC.write_reply(reply).payload == payload


def test_nothing_is_shared_and_nothing_changed() -> None:
    payload = {"role": "assistant", "content": [copy.deepcopy(SIGNED), *copy.deepcopy(CALLS)]}
    before = copy.deepcopy(payload)
    reply = ANTHROPIC.read_reply(payload)
    message = copy.deepcopy(reply.message)
    written = ANTHROPIC.write_request([USER, reply.message]).payload
    written["messages"][1]["content"][0]["cache_control"] = 1
    written["messages"][1]["content"][1]["input"]["a"] = 2
    assert (payload, reply.message) == (before, message)


def test_replies_of_open_models_can_be_said_as_each_apis_own() -> None:
    message = assistant(call(arguments={"a": 1}), content="text")
    for api in APIS:
        written = api.write_reply(Reply(message, stop="stop"))
        assert api.read_reply(written.payload).message["content"] == "text"
        assert {one.place for one in written.differences} <= {"messages[0].tool_calls[0].function.arguments"}


def test_what_a_message_approximates() -> None:
    assert approximations(assistant(call())) == ("segmentation",)
    assert approximations(assistant(call(arguments={}))) == ("segmentation", "argument_text")
    assert approximations(Reply(assistant(), hides_reasoning=True)) == ("segmentation", "hidden_reasoning")
    foreign = {**assistant(), "vendor_blocks": {"x": {"hides": ["blocks", "reasoning"]}}}
    assert approximations(foreign) == ("segmentation", "hidden_reasoning", "hidden_blocks")
