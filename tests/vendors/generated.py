"""Payloads of each API, generated: its documented blocks in any mixture, and fields and blocks that nobody knows yet."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from renderers.testing import Profile
from renderers.testing.texts import clean_text
from renderers.testing.values import arguments_object

if TYPE_CHECKING:
    from collections.abc import Callable

    from renderers.testing import Choices

Json = dict[str, Any]
PLAIN = Profile(name="plain")
NAMES = ("f", "get_weather", "search")


def unknown(choices: Choices, block: Json) -> Json:
    """The block, at times with fields that no version of the documentation names."""
    if choices.chance(10):
        block["new"] = choices.pick((None, 1, "x", {"a": [1.0, True]}))
    return block


def some(choices: Choices, make: Callable[[Choices], Json], most: int = 4) -> list[Json]:
    """Up to `most` of them, one at least in most cases."""
    return [make(choices) for _ in range((choices.below(most + 1) + 1) % (most + 1))]


def text(choices: Choices) -> str:
    """Any text, at times an empty one."""
    return "" if choices.chance(6) else clean_text(choices)


def arguments(choices: Choices) -> Json:
    """A call's arguments as an object."""
    return arguments_object(choices, PLAIN, clean=False)


def argument_text(choices: Choices) -> str:
    """The same as a model writes them, or something that is no JSON."""
    if choices.chance(8):
        return choices.pick(("", '{"x": 1', "[1]", "null", '{"x": 1, "x": 2}', " {}\n"))
    return json.dumps(arguments(choices), ensure_ascii=choices.chance(50), indent=choices.pick((None, 2)))


def schema(choices: Choices) -> Json:
    """The parameters of a tool."""
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in choices.subset(("x", "città", "type"), 50)},
    }


# Anthropic -----------------------------------------------------------------------------------------------------------


def anthropic_text(choices: Choices) -> Json:
    block: Json = {"type": "text", "text": text(choices)}
    if choices.chance(15):
        block["citations"] = choices.pick((None, [{"type": "char_location", "cited_text": "c", "document_index": 0}]))
    if choices.chance(10):
        block["cache_control"] = {"type": "ephemeral"}
    return unknown(choices, block)


def anthropic_block(choices: Choices, number: list[int]) -> Json:
    """A block of the assistant's."""
    kind = choices.below(10)
    number[0] += 1
    if kind <= 3:
        return anthropic_text(choices)
    if kind <= 5:
        block: Json = {
            "type": "tool_use",
            "id": f"toolu_{number[0]}",
            "name": choices.pick(NAMES),
            "input": arguments(choices),
        }
        if choices.chance(10):
            block["caller"] = {"type": "direct"}
        return unknown(choices, block)
    if kind == 6:
        return unknown(choices, {"type": "thinking", "thinking": text(choices), "signature": "SECRET"})
    if kind == 7:
        return {"type": "redacted_thinking", "data": "SECRET"}
    if kind == 8:
        return {
            "type": "server_tool_use",
            "id": f"srvtoolu_{number[0]}",
            "name": "web_search",
            "input": {"query": "SECRET"},
        }
    return unknown(
        choices, {"type": choices.pick(("web_search_tool_result", "block_of_2030")), "content": [{"data": "SECRET"}]}
    )


def anthropic_user_block(choices: Choices, number: list[int]) -> Json:
    kind = choices.below(8)
    if kind <= 2:
        return anthropic_text(choices)
    if kind == 3:
        return {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    block: Json = {"type": "tool_result", "tool_use_id": f"toolu_{1 + choices.below(number[0] + 1)}"}
    shape = choices.below(5)
    if shape <= 1:
        block["content"] = text(choices)
    elif shape <= 3:
        block["content"] = some(choices, anthropic_text)
    if choices.chance(25):
        block["is_error"] = choices.chance(50)
    if choices.chance(10):
        block["cache_control"] = {"type": "ephemeral"}
    return unknown(choices, block)


def anthropic_turn(choices: Choices, number: list[int]) -> Json:
    kind = choices.below(9)
    if kind == 8:
        return unknown(choices, {"role": "system", "content": choices.pick(("s", [{"type": "text", "text": "s"}]))})
    assistant = kind % 2 == 1
    make = anthropic_block if assistant else anthropic_user_block
    content: Any = text(choices) if choices.chance(25) else some(choices, lambda one: make(one, number))
    return unknown(choices, {"role": "assistant" if assistant else "user", "content": content})


def anthropic_tool(choices: Choices) -> Json:
    if choices.chance(20):
        return {"type": "web_search_20260318", "name": "web_search", "max_uses": 3}
    tool: Json = {"name": choices.pick(NAMES), "input_schema": schema(choices)}
    if choices.chance(50):
        tool["description"] = text(choices)
    if choices.chance(20):
        tool |= choices.pick(({"type": "custom"}, {"cache_control": {"type": "ephemeral"}}, {"strict": True}))
    return unknown(choices, tool)


def anthropic_request(choices: Choices) -> Json:
    number = [0]
    request: Json = {"model": "claude", "max_tokens": 64}
    if choices.chance(50):
        request["system"] = choices.pick((text(choices), some(choices, anthropic_text)))
    request["messages"] = [anthropic_turn(choices, number) for _ in range(1 + choices.below(6))]
    if choices.chance(50):
        request["tools"] = some(choices, anthropic_tool)
    if choices.chance(30):
        request |= {"tool_choice": {"type": "auto"}, "thinking": {"type": "adaptive"}}
    return unknown(choices, request)


def anthropic_reply(choices: Choices) -> Json:
    number = [0]
    content = some(choices, lambda one: anthropic_block(one, number), 5)
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": content,
        "stop_reason": choices.pick(("end_turn", "tool_use", "max_tokens", "refusal")),
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 5},
    }
    return unknown(choices, reply)


# Gemini --------------------------------------------------------------------------------------------------------------


def _signed(choices: Choices, part: Json) -> Json:
    return {**part, "thoughtSignature": "SECRET"} if choices.chance(30) else unknown(choices, part)


def gemini_part(choices: Choices, number: list[int]) -> Json:
    """A part of the model's."""
    kind = choices.below(9)
    if kind <= 3:
        return _signed(choices, {"text": text(choices)})
    if kind <= 5:
        number[0] += 1
        call: Json = {"name": choices.pick(NAMES), "args": arguments(choices)}
        if choices.chance(10):
            del call["args"]
        if choices.chance(40):
            call["id"] = f"id{number[0]}"
        return _signed(choices, {"functionCall": call})
    if kind == 6:
        return _signed(choices, {"text": text(choices), "thought": True})
    if kind == 7:
        return {"executableCode": {"language": "PYTHON", "code": "SECRET"}}
    return choices.pick(
        ({"thoughtSignature": "SECRET"}, {"toolCall": {"toolType": "GOOGLE_SEARCH", "args": {"q": "SECRET"}}})
    )


def gemini_user_part(choices: Choices, number: list[int]) -> Json:
    kind = choices.below(7)
    if kind <= 2:
        return unknown(choices, {"text": text(choices)})
    if kind == 3:
        return {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    value: Any = choices.pick((text(choices), [text(choices), "b"], arguments(choices), 3))
    response: Json = choices.pick(({"output": value}, {"error": value}, {"temp": value}, {}))
    given: Json = {"name": choices.pick(NAMES), "response": response}
    if choices.chance(40):
        given["id"] = f"id{1 + choices.below(number[0] + 1)}"
    if choices.chance(10):
        given["parts"] = [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]
    if choices.chance(10):
        given["willContinue"] = False
    return unknown(choices, {"functionResponse": given})


def gemini_content(choices: Choices, number: list[int]) -> Json:
    model = choices.below(2) == 1
    make = gemini_part if model else gemini_user_part
    content: Json = {"role": "model" if model else "user", "parts": some(choices, lambda one: make(one, number))}
    if choices.chance(6) and not model:
        content["role"] = "function"
    if choices.chance(5) and not model:
        del content["role"]
    if choices.chance(4):
        del content["parts"]
    return unknown(choices, content)


def gemini_declaration(choices: Choices) -> Json:
    declaration: Json = {"name": choices.pick(NAMES)}
    if choices.chance(60):
        declaration["description"] = text(choices)
    if choices.chance(60):
        declaration["parametersJsonSchema"] = schema(choices)
    elif choices.chance(60):
        declaration["parameters"] = {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}, "required": ["type"]}
    return unknown(choices, declaration)


def gemini_tool(choices: Choices) -> Json:
    tool: Json = {} if choices.chance(20) else {"functionDeclarations": some(choices, gemini_declaration)}
    return tool | {"googleSearch": {}} if choices.chance(15) or not tool else tool


def gemini_request(choices: Choices) -> Json:
    number = [0]
    request: Json = {}
    if choices.chance(50):
        request["systemInstruction"] = {"parts": some(choices, lambda one: unknown(one, {"text": text(one)}))}
        if choices.chance(30):
            request["systemInstruction"]["role"] = "system" if choices.chance(0) else "user"
    request["contents"] = [gemini_content(choices, number) for _ in range(1 + choices.below(6))]
    if choices.chance(50):
        request["tools"] = some(choices, gemini_tool, 2)
    if choices.chance(30):
        request["generationConfig"] = {"thinkingConfig": {"includeThoughts": True}, "temperature": 1.0}
    return unknown(choices, request)


def gemini_reply(choices: Choices) -> Json:
    number = [0]
    candidate: Json = {"index": 0, "finishReason": choices.pick(("STOP", "MAX_TOKENS", "SAFETY"))}
    if not choices.chance(8):
        candidate["content"] = {"role": "model", "parts": some(choices, lambda one: gemini_part(one, number), 5)}
        if choices.chance(6):
            del candidate["content"]["parts"]
    usage = {"promptTokenCount": 4, "thoughtsTokenCount": choices.below(3)}
    return unknown(choices, {"candidates": [candidate], "usageMetadata": usage, "responseId": "r1"})


# Chat Completions ----------------------------------------------------------------------------------------------------


def chat_call(choices: Choices) -> Json:
    if choices.chance(10):
        return {"id": "call_c", "type": "custom", "custom": {"name": "shell", "input": text(choices)}}
    function = unknown(choices, {"name": choices.pick(NAMES), "arguments": argument_text(choices)})
    call: Json = {"id": f"call_{choices.below(9)}", "type": "function", "function": function}
    if choices.chance(10):
        call["extra_content"] = {"google": {"thought_signature": "SECRET"}}
    return call


def chat_part(choices: Choices) -> Json:
    part: Json = {"type": "text", "text": text(choices)}
    if choices.chance(15):
        part["cache_control"] = {"type": "ephemeral"}
    if choices.chance(10):
        return {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    return part


def chat_assistant(choices: Choices) -> Json:
    message: Json = {"role": "assistant", "content": choices.pick((text(choices), None))}
    if choices.chance(10):
        message["content"] = [
            choices.pick(({"type": "text", "text": text(choices)}, {"type": "refusal", "refusal": "no"}))
        ]
    if choices.chance(5):
        del message["content"]
    if choices.chance(40):
        message["refusal"] = choices.pick((None, "I will not."))
    if choices.chance(40):
        message["tool_calls"] = choices.pick((some(choices, chat_call), None, []))
    if choices.chance(25):
        message[choices.pick(("reasoning_content", "reasoning"))] = choices.pick((text(choices), None))
    if choices.chance(15):
        message["reasoning_details"] = [{"type": "reasoning.encrypted", "data": "SECRET"}]
    if choices.chance(10):
        message["annotations"] = []
    return unknown(choices, message)


def chat_message(choices: Choices) -> Json:
    role = choices.pick(("user", "assistant", "tool", "assistant", "system", "developer"))
    if role == "assistant":
        return chat_assistant(choices)
    message: Json = {"role": role, "content": choices.pick((text(choices), some(choices, chat_part)))}
    if role == "tool":
        message["tool_call_id"] = f"call_{choices.below(9)}"
    if choices.chance(10):
        message["name"] = choices.pick(("bob", None))
    return unknown(choices, message)


def chat_tool(choices: Choices) -> Json:
    if choices.chance(15):
        return {"type": "custom", "custom": {"name": "shell", "description": "d", "format": {"type": "text"}}}
    function: Json = {"name": choices.pick(NAMES), "parameters": schema(choices)}
    if choices.chance(30):
        function |= {"description": text(choices), "strict": True}
    return unknown(choices, {"type": "function", "function": function})


def chat_request(choices: Choices) -> Json:
    request: Json = {"model": "gpt", "messages": [chat_message(choices) for _ in range(1 + choices.below(6))]}
    if choices.chance(50):
        request["tools"] = some(choices, chat_tool)
    return unknown(choices, request)


def chat_reply(choices: Choices) -> Json:
    made = []
    for index in range(1 + choices.chance(15)):
        finish = choices.pick(("stop", "tool_calls", "length"))
        choice = {"index": index, "message": {"content": None, **chat_assistant(choices)}, "finish_reason": finish}
        made.append(unknown(choices, {**choice, "logprobs": None}))
    usage = {"completion_tokens_details": {"reasoning_tokens": choices.below(3)}}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt", "choices": made, "usage": usage}


# Responses -----------------------------------------------------------------------------------------------------------


def responses_item(choices: Choices, number: list[int]) -> Json:
    """An item of the assistant's."""
    kind = choices.below(9)
    number[0] += 1
    about = {"id": f"x_{number[0]}", "status": "completed"}
    if kind <= 2:
        if choices.chance(25):
            return {"role": "assistant", "content": text(choices)}
        part: Json = {"type": "output_text", "text": text(choices), "annotations": []}
        parts = [choices.pick((part, {"type": "refusal", "refusal": "no"})) for _ in range(choices.pick((1, 1, 2, 0)))]
        return unknown(
            choices, {**about, "type": "message", "role": "assistant", "content": parts, "phase": "commentary"}
        )
    if kind <= 4:
        call = {"type": "function_call", "call_id": f"call_{number[0]}", "name": choices.pick(NAMES)}
        call["arguments"] = argument_text(choices)
        return {**about, **call} if choices.chance(60) else call
    if kind == 5:
        return {"type": "custom_tool_call", "call_id": f"call_{number[0]}", "name": "shell", "input": text(choices)}
    if kind == 6:
        return unknown(choices, {"type": "web_search_call", **about, "action": {"query": "SECRET"}})
    summary = [{"type": "summary_text", "text": text(choices)} for _ in range(choices.below(3))]
    item: Json = {"type": "reasoning", "id": about["id"], "summary": summary}
    if choices.chance(60):
        item["encrypted_content"] = "SECRET"
    if choices.chance(30):
        item["content"] = [{"type": "reasoning_text", "text": text(choices)}]
    return item


def responses_input(choices: Choices, number: list[int]) -> Json:
    kind = choices.below(8)
    if kind >= 4:
        return responses_item(choices, number)
    texts = [{"type": "input_text", "text": text(choices)} for _ in range(choices.below(3))]
    if choices.chance(10):
        texts.append({"type": "input_image", "image_url": "https://example.com/a.png"})
    content: Any = choices.pick((text(choices), texts))
    if kind <= 1:
        message: Json = {"role": choices.pick(("user", "system", "developer")), "content": content}
        return unknown(choices, {"type": "message", **message} if choices.chance(50) else message)
    output: Json = {"type": choices.pick(("function_call_output", "custom_tool_call_output")), "output": content}
    output["call_id"] = f"call_{1 + choices.below(number[0] + 1)}"
    return unknown(choices, output)


def responses_tool(choices: Choices) -> Json:
    if choices.chance(25):
        return choices.pick(({"type": "web_search"}, {"type": "custom", "name": "shell", "description": "d"}))
    tool: Json = {"type": "function", "name": choices.pick(NAMES), "parameters": schema(choices), "strict": True}
    return unknown(choices, tool)


def responses_request(choices: Choices) -> Json:
    number = [0]
    request: Json = {"model": "gpt", "store": False}
    if choices.chance(40):
        request["instructions"] = choices.pick((text(choices), None))
    request["input"] = [responses_input(choices, number) for _ in range(choices.below(8))]
    if choices.chance(15):
        request["input"] = text(choices)
    if choices.chance(5):
        del request["input"]
    if choices.chance(50):
        request["tools"] = some(choices, responses_tool)
    return unknown(choices, request)


def responses_reply(choices: Choices) -> Json:
    number = [0]
    output = [responses_item(choices, number) for _ in range(choices.below(6))]
    reply: Json = {"id": "resp_1", "object": "response", "output": output, "status": "completed", "error": None}
    if choices.chance(10):
        reply |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    usage = {"output_tokens_details": {"reasoning_tokens": choices.below(3)}}
    return unknown(choices, {**reply, "usage": usage})
