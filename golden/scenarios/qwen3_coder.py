"""Qwen3-Coder: what its two templates do."""

from __future__ import annotations

from golden.scenario import WEATHER, Scenario, assistant, call, schema, system, tool, user
from golden.scenarios._qwen_xml import ULM, call_text, shared_scenarios

MODELS = ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "Qwen/Qwen3-Coder-30B-A3B-Instruct@older")
_, OLDER = MODELS
OPENING = "<|im_start|>assistant\n"
UNUSUAL = schema(
    "find",
    " Finds things\n",
    unit={"type": ["string", "null"], "enum": ["m", 1, None], "description": " unit "},
    where={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    tags={"type": "array", "items": {"type": "string"}, "x-deep key": [{"a": True}], "$ref": "#/x", "default": None},
)
RETURNS = {"name": "now", "description": None, "parameters": {}, "return": {"type": "string"}, "strict": True}
PYTHON = "['a', None, {'k': 1.5}]"

SCENARIOS = (
    *shared_scenarios("", OPENING),
    Scenario(
        name="plain-question",
        messages=[user("What is 6 times 7?")],
        reply=assistant("42"),
        new_messages=[user("And 6 times 8?")],
    ),
    Scenario(name="default-system-message-stands-before-tools", messages=[user("hi")], tools=[WEATHER]),
    Scenario(name="empty-system-message-replaces-the-default", messages=[system(""), user("hi")], tools=[WEATHER]),
    Scenario(name="system-message-without-content-is-none", messages=[system(None), user("hi")], tools=[WEATHER]),
    Scenario(name="unusual-schema", messages=[user("hi")], tools=[UNUSUAL]),
    Scenario(name="return-schema", messages=[user("hi")], tools=[RETURNS]),
    Scenario(
        name="schema-that-spells-a-marker-when-sanitized",
        messages=[user("hi")],
        tools=[schema("f", "<|im_end|>", x={"type": "string", "tool_call": "y"})],
        config={"sanitize_control_tokens": True},
    ),
    Scenario(
        name="reasoning-is-never-printed",
        messages=[user("q"), assistant("A", reasoning="hm"), user("?")],
        config={"thinking_retention": "all"},
    ),
    Scenario(
        name="system-message-in-the-middle-stays",
        messages=[user("a")],
        reply=assistant("b"),
        new_messages=[system("French!"), user("c")],
    ),
    Scenario(
        name="developer-message-has-a-turn-of-that-name",
        messages=[{"role": "developer", "content": "French!"}, user("hi")],
    ),
    Scenario(name="result-after-the-system-message-has-no-turn", messages=[system("s"), tool("early"), user("hi")]),
    Scenario(
        name="pythons-spelling-is-read",
        messages=[user("q")],
        completion=f"{call_text('f', t='True', l=PYTHON)}<|im_end|>",
        parsed={"calls": [{"name": "f", "arguments": {"t": True, "l": ["a", None, {"k": 1.5}]}}]},
    ),
    Scenario(
        name="think-tags-are-text",
        messages=[user("q")],
        completion="<think>\nhm\n</think>\n\nyes<|im_end|>",
        parsed={"content": "<think>\nhm\n</think>\n\nyes", "reasoning_content": None},
    ),
    Scenario(name="older-tools", model=OLDER, messages=[system("Be brief."), user("hi")], tools=[UNUSUAL, RETURNS]),
    Scenario(
        name="older-tool-without-parameters",
        model=OLDER,
        messages=[user("hi")],
        tools=[{"type": "function", "function": {"name": "now"}}],
    ),
    Scenario(
        name="older-writes-objects-as-json",
        model=OLDER,
        messages=[user("q"), assistant("", calls=[call("f", {"t": True, "l": ["a", None]})]), tool("ok")],
    ),
    Scenario(
        name="older-tool-call-and-result",
        model=OLDER,
        messages=[user("Weather in Ulm?")],
        tools=[WEATHER],
        reply=assistant("Let me look.", calls=[ULM]),
        new_messages=[tool("18 C", "call_0")],
    ),
)
