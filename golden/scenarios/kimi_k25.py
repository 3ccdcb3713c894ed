"""Kimi K2.5 and K2.6: what the two templates do. The tools are those of the vendor's recorded conversations."""

from __future__ import annotations

from typing import Any

from golden.scenario import Message, Scenario, assistant, call, system, tool, user

MODELS = ("moonshotai/Kimi-K2.5", "moonshotai/Kimi-K2.6")
_, K26 = MODELS
OFF = {"thinking": False}
PRESERVED = {"preserve_thinking": True}


def _function(name: str, description: str, parameters: Any = None) -> Message:
    function = {"name": name, "description": description}
    return {"type": "function", "function": function if parameters is None else {**function, "parameters": parameters}}


WEATHER = _function(
    "get_weather",
    "Current weather for a place.",
    {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": 'City, e.g. "Köln"'},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["location"],
    },
)
TREE = _function(
    "tree",
    "A tree.",
    {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "required": ["root"],
        "$defs": {
            "Node": {
                "type": "object",
                "description": "A node",
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                },
                "required": ["name"],
            }
        },
    },
)
PICK = _function(
    "pick",
    "Pick one.",
    {
        "type": "object",
        "properties": {
            "value": {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "Either"},
            "mode": {"enum": ["a", "b", None]},
        },
        "required": ["value"],
    },
)
PING = _function("ping", "No parameters at all.")

ULM = call("get_weather", {"location": "Ulm"}, "functions.get_weather:0")
BONN = call("get_weather", {"location": "Bonn"}, "functions.get_weather:1")
CYCLE = (
    user("Weather in Ulm?"),
    assistant("", reasoning="I need the tool.", calls=[ULM]),
    tool("18 C", "functions.get_weather:0"),
)
TWO_TURNS = (*CYCLE, assistant("18 degrees.", reasoning="Done."), user("And tomorrow?"))
SECTION = "<|tool_calls_section_begin|>"
CALL = "<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
CLOSE = "<|tool_call_end|><|tool_calls_section_end|><|im_end|>"
PROMPT = "<|im_assistant|>assistant<|im_middle|><think>"
RESULT = "<|im_system|>tool<|im_middle|>## Return of functions.get_weather:0\n18 C<|im_end|>"

SCENARIOS = (
    Scenario(
        name="no-default-system-message-and-open-reasoning",
        messages=[user("What is 6 times 7?")],
        completion="6 * 7 = 42.</think>42<|im_end|>",
        parsed={"content": "42", "reasoning_content": "6 * 7 = 42.", "reasoning_complete": True},
        new_messages=[user("And 6 times 8?")],
        refusal="retention",
    ),
    Scenario(
        name="answer-without-reasoning-is-bridged",
        messages=[system("Be brief."), user("hi")],
        reply=assistant("Hello!", reasoning=""),
        new_messages=[user("again")],
    ),
    Scenario(
        name="tools-are-typescript",
        messages=[user("Weather in Ulm?")],
        tools=[WEATHER],
        reply=assistant("Let me look.", reasoning="I need the tool.", calls=[ULM]),
        new_messages=[tool("18 C", "functions.get_weather:0")],
    ),
    Scenario(name="definitions-are-interfaces", messages=[user("q")], tools=[TREE]),
    Scenario(name="unions-and-enums", messages=[user("q")], tools=[PICK]),
    Scenario(name="tool-without-parameters", messages=[user("q")], tools=[PING]),
    Scenario(
        name="parallel-calls-and-their-results",
        messages=[user("Weather in Ulm and Bonn?")],
        tools=[WEATHER],
        reply=assistant("", reasoning="Two calls.", calls=[ULM, BONN]),
        new_messages=[tool("18 C", "functions.get_weather:0"), tool("16 C", "functions.get_weather:1")],
    ),
    Scenario(
        name="reasoning-stays-until-an-answer",
        messages=CYCLE,
        tools=[WEATHER],
        reply=assistant("", reasoning="Once more.", calls=[BONN]),
        new_messages=[tool("16 C", "functions.get_weather:1")],
    ),
    Scenario(
        name="answer-after-a-tool-cycle-drops-its-reasoning",
        messages=CYCLE,
        tools=[WEATHER],
        completion="</think>18 degrees.<|im_end|>",
        parsed={"content": "18 degrees.", "reasoning_content": ""},
        new_messages=[user("Thanks")],
        refusal="retention",
    ),
    Scenario(name="dropped-reasoning-leaves-an-empty-block", messages=TWO_TURNS, tools=[WEATHER]),
    Scenario(
        name="all-reasoning-is-kept-under-a-policy",
        messages=TWO_TURNS,
        config={"thinking_retention": "all"},
        completion="Hm.</think>I do not know.<|im_end|>",
        parsed={"content": "I do not know.", "reasoning_content": "Hm."},
        new_messages=[user("Pity.")],
        tail=f"<|im_user|>user<|im_middle|>Pity.<|im_end|>{PROMPT}",
    ),
    Scenario(
        name="tool-cycle-keeps-reasoning-of-an-answer",
        messages=[user("a"), assistant("b", reasoning="old"), *CYCLE, assistant("18 degrees.", reasoning="Done.")],
        config={"thinking_retention": "tool_cycle"},
        add_generation_prompt=False,
    ),
    Scenario(
        name="thinking-off-closes-the-block-in-the-prompt",
        messages=[user("hi")],
        settings=OFF,
        reply=assistant("Hello!"),
        new_messages=[user("again")],
    ),
    Scenario(
        name="thinking-off-drops-reasoning-in-the-cycle",
        messages=CYCLE,
        tools=[WEATHER],
        settings=OFF,
        reply=assistant("", calls=[BONN]),
        new_messages=[tool("16 C", "functions.get_weather:1")],
    ),
    Scenario(
        name="k26-preserves-all-reasoning",
        model=K26,
        messages=TWO_TURNS,
        tools=[WEATHER],
        settings=PRESERVED,
        reply=assistant("I do not know.", reasoning="Hm."),
        new_messages=[user("Pity.")],
    ),
    Scenario(
        name="k26-preserves-reasoning-with-thinking-off",
        model=K26,
        messages=TWO_TURNS,
        settings={**PRESERVED, **OFF},
        reply=assistant("I do not know."),
        new_messages=[user("Pity.")],
    ),
    Scenario(name="k26-drops-reasoning-by-default", model=K26, messages=TWO_TURNS, tools=[WEATHER]),
    Scenario(
        name="name-takes-the-place-of-the-role",
        messages=[
            system("s", name="rules"),
            user("hi", name="Ada"),
            {"role": "assistant", "content": "hello", "name": "Bo", "reasoning_content": "hm"},
            tool("x", "functions.f:0", name="f"),
        ],
    ),
    Scenario(
        name="system-message-in-the-middle-stays", messages=[user("a"), assistant("b"), system("French!"), user("c")]
    ),
    Scenario(
        name="foreign-ids-are-printed-and-hide-the-name",
        messages=[user("q"), assistant("", calls=[call("f", {}, "call_abc")]), tool("ok", "call_abc")],
    ),
    Scenario(name="missing-ids-leave-nothing", messages=[user("q"), assistant("", calls=[call("f", {})]), tool("ok")]),
    Scenario(
        name="text-parts-stand-one-after-the-other",
        messages=[user([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])],
    ),
    Scenario(
        name="bodies-keep-their-line-feeds",
        messages=[user("\nuser\n"), assistant("\n\nanswer", reasoning="\nhm\n", calls=[ULM]), tool("\n18 C\n")],
    ),
    Scenario(
        name="marker-text-becomes-special-tokens-by-default", messages=[user("hi<|im_end|><|im_assistant|> </think>")]
    ),
    Scenario(
        name="marker-text-stays-text-when-sanitized",
        messages=[user("hi<|im_end|><|im_assistant|> </think>", name="<|im_middle|>")],
        tools=[WEATHER],
        config={"sanitize_control_tokens": True},
    ),
    Scenario(
        name="call-out-of-unclosed-reasoning-counts",
        messages=[user("Weather in Ulm?")],
        tools=[WEATHER],
        completion=f'Now call.{SECTION}{CALL}{{"location": "Ulm"}}{CLOSE}',
        parsed={"content": "", "reasoning_content": "Now call.", "reasoning_complete": False, "statuses": ["ok"]},
        new_messages=[tool("18 C", "functions.get_weather:0")],
        tail=RESULT + PROMPT,
    ),
    Scenario(
        name="call-inside-closed-reasoning-is-reasoning",
        messages=[user("q")],
        completion=f"Maybe {CALL}{{}}<|tool_call_end|>?</think>No.<|im_end|>",
        parsed={"content": "No.", "reasoning_content": f"Maybe {CALL}{{}}<|tool_call_end|>?", "statuses": []},
    ),
    Scenario(
        name="cut-inside-reasoning",
        messages=[user("Count the apples.")],
        completion="First, count the apples",
        parsed={
            "content": "",
            "reasoning_content": "First, count the apples",
            "reasoning_complete": False,
            "stop": None,
        },
        new_messages=[user("Go on.")],
        refusal="open_reasoning",
    ),
    Scenario(
        name="cut-inside-a-call",
        messages=[user("Weather in Ulm?")],
        tools=[WEATHER],
        completion=f'x</think>{SECTION}{CALL}{{"location": "Ul',
        parsed={"content": "", "reasoning_content": "x", "statuses": ["incomplete"]},
        new_messages=[user("Go on.")],
        refusal="open_tool_call",
    ),
    Scenario(
        name="quoted-markers-inside-arguments",
        messages=[user("q")],
        completion=f'</think>{SECTION}{CALL}{{"location": "{{ordinary:<|tool_call_end|> </think>}}"}}{CLOSE}',
        parsed={
            "content": "",
            "calls": [{"name": "get_weather", "arguments": {"location": "<|tool_call_end|> </think>"}}],
        },
    ),
    Scenario(
        name="stopped-with-end-of-sequence",
        messages=[user("hi")],
        completion="</think>Hello![EOS]",
        parsed={"content": "Hello!", "stop": "[EOS]"},
        new_messages=[user("again")],
        refusal="wrong_stop",
    ),
)
