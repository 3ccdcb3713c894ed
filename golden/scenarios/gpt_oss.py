"""gpt-oss: what OpenAI's Harmony library does, and what the chat template does otherwise."""

from __future__ import annotations

from golden.scenario import SEARCH, WEATHER, Scenario, assistant, call, system, tool, user

MODELS = ("openai/gpt-oss-20b",)
TEMPLATE = {"reference": "template", "conversation_start_date": "2025-06-28"}
HARMONY_RULE = {"drop_analysis": "before_first_final"}
ULM = call("get_weather", {"city": "Ulm"}, "call_a")
BONN = call("get_weather", {"city": "Bonn"}, "call_b")
QUESTION = user("Weather in Ulm?")
CYCLE = (QUESTION, assistant("", reasoning="I need the tool.", calls=[ULM]), tool("18 C", "call_a"))
ANSWERED = (*CYCLE, assistant("18 degrees.", reasoning="Say it."))
NESTED = {
    "type": "function",
    "function": {
        "name": "plan",
        "description": "Plan a trip.\nReturns an ID.",
        "parameters": {
            "type": "object",
            "properties": {
                "stops": {"type": "array", "items": {"type": "string"}, "description": "Cities"},
                "when": {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]},
                "class": {"type": "string", "enum": ["first", "second"], "default": "second"},
                "budget": {"type": ["number", "null"], "default": 1e22},
                "by": {"oneOf": [{"type": "string", "description": "A train"}, {"type": "integer"}]},
            },
            "required": ["stops"],
        },
    },
}
BARE = {"type": "function", "function": {"name": "now", "description": "The time"}}

ANALYSIS = "<|channel|>analysis<|message|>I need the tool.<|end|>"
IN_CHANNEL = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Ulm"}<|call|>'
ULM_PARSED = {"name": "get_weather", "arguments": {"city": "Ulm"}}
RESULT = "<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>18 C<|end|><|start|>assistant"


def parses(name: str, completion: str, **parsed: object) -> Scenario:
    """A reply in a spelling of its own."""
    return Scenario(name=name, messages=[QUESTION], tools=[WEATHER], completion=completion, parsed=parsed)


SCENARIOS = (
    Scenario(
        name="plain-question-ends-in-return",
        messages=[system("Be brief."), user("What is 6 times 7?")],
        reply=assistant("42", reasoning="6 * 7 = 42."),
        new_messages=[user("And 6 times 8?")],
        refusal="retention",
    ),
    Scenario(
        name="return-is-no-history",
        messages=[user("What is 6 times 7?")],
        reply=assistant("42"),
        new_messages=[user("And 6 times 8?")],
        refusal="wrong_stop",
    ),
    Scenario(
        name="all-keeps-return",
        messages=[user("What is 6 times 7?")],
        config={"thinking_retention": "all"},
        reply=assistant("42", reasoning="6 * 7 = 42."),
        new_messages=[user("And 6 times 8?")],
        tail="<|start|>user<|message|>And 6 times 8?<|end|><|start|>assistant",
    ),
    Scenario(
        name="tool-call-and-result",
        messages=[QUESTION],
        tools=[WEATHER],
        reply=assistant("", reasoning="I need the tool.", calls=[ULM]),
        new_messages=[tool("18 C", "call_a")],
    ),
    Scenario(
        name="recipient-in-the-channel-and-no-id",
        messages=[QUESTION],
        tools=[WEATHER],
        completion=f"{ANALYSIS}<|start|>assistant{IN_CHANNEL}",
        parsed={"content": "", "reasoning_content": "I need the tool.", "calls": [ULM_PARSED]},
        new_messages=[tool("18 C", "made-up-id")],
        tail=RESULT,
    ),
    Scenario(
        name="cut-answer-is-closed",
        messages=[user("Tell me more.")],
        completion="<|channel|>final<|message|>Once upon",
        parsed={"content": "Once upon", "stop": None},
        new_messages=[user("Go on.")],
        tail="<|end|><|start|>user<|message|>Go on.<|end|><|start|>assistant",
    ),
    Scenario(
        name="cut-reasoning-is-not-closed",
        messages=[user("q")],
        completion="<|channel|>analysis<|message|>Let me",
        parsed={"content": "", "reasoning_content": "Let me", "reasoning_complete": False},
        new_messages=[user("Go on.")],
        refusal="open_reasoning",
    ),
    Scenario(
        name="cut-call-is-not-closed",
        messages=[QUESTION],
        tools=[WEATHER],
        completion='<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Ulm"}',
        parsed={"content": ""},
        new_messages=[tool("18 C")],
        refusal="open_tool_call",
    ),
    Scenario(
        name="text-beside-a-call-is-commentary",
        messages=[QUESTION],
        tools=[WEATHER],
        reply=assistant("Let me look.", calls=[ULM]),
        new_messages=[tool("18 C", "call_a")],
    ),
    Scenario(name="open-tool-cycle-keeps-its-analysis", messages=CYCLE, tools=[WEATHER]),
    Scenario(name="an-answer-drops-earlier-analysis", messages=ANSWERED, tools=[WEATHER], add_generation_prompt=False),
    Scenario(name="a-question-drops-the-answers-analysis", messages=[*ANSWERED, user("Thanks!")], tools=[WEATHER]),
    Scenario(
        name="first-final-rule-drops-before-the-first-answer",
        messages=[*ANSWERED, user("And?"), assistant("Nothing.", reasoning="Hm."), user("Well?")],
        settings=HARMONY_RULE,
    ),
    Scenario(
        name="first-final-rule-prints-it-again-in-a-later-cycle",
        messages=[*ANSWERED, user("In Bonn?"), assistant("", reasoning="Again.", calls=[BONN]), tool("16 C", "call_b")],
        settings=HARMONY_RULE,
    ),
    Scenario(
        name="never-keeps-all-analysis",
        messages=[*ANSWERED, user("Thanks!")],
        tools=[WEATHER],
        settings={"drop_analysis": "never"},
    ),
    Scenario(name="parallel-calls", messages=[user("q"), assistant("", calls=[ULM, BONN])], tools=[WEATHER]),
    Scenario(
        name="results-find-their-calls-by-id",
        messages=[user("q"), assistant("", calls=[ULM, call("search", {"query": "x"}, "c2")]), tool("news", "c2")],
        tools=[WEATHER, SEARCH],
    ),
    Scenario(name="tools-as-typescript", messages=[system("Be brief."), user("q")], tools=[NESTED, BARE]),
    Scenario(
        name="effort-date-identity-and-builtin-tools",
        messages=[user("q")],
        settings={
            "reasoning_effort": "high",
            "conversation_start_date": "2025-06-28",
            "model_identity": "You are a bot.",
            "builtin_tools": ["python", "browser"],
        },
    ),
    Scenario(name="late-system-message-is-dropped", messages=[user("q"), system("Be brief."), user("well?")]),
    Scenario(name="developer-message", messages=[{"role": "developer", "content": "Be brief."}, user("q")]),
    Scenario(
        name="markers-in-content-are-text",
        messages=[user("What is <|end|>?")],
        config={"sanitize_control_tokens": True},
    ),
    parses("call-on-the-analysis-channel", f"{ANALYSIS}<|start|>assistant<|channel|>analysis to=functions.get_weather "
           'code<|message|>{"city": "Ulm"}<|call|>', content="", reasoning_content="I need the tool.", calls=[ULM_PARSED]),
    parses("recipient-in-the-role", ' to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Ulm"}<|call|>',
           content="", calls=[ULM_PARSED]),
    parses("constrain-without-a-space", "<|channel|>commentary to=functions.get_weather<|constrain|>json<|message|>"
           '{"city": "Ulm"}<|call|>', content="", calls=[ULM_PARSED]),
    parses("repeated-analysis", f"{ANALYSIS}<|start|>assistant{ANALYSIS}<|start|>assistant<|channel|>final<|message|>No."
           "<|return|>", content="No.", reasoning_content="I need the tool.\nI need the tool.", stop="<|return|>"),
    parses("unknown-channel-is-content", "<|channel|>confidence<|message|>90<|return|>", content="90"),
    parses("spelled-markers-are-text", "<|channel|>final<|message|>{ordinary:<|end|>} ends it.<|return|>",
           content="<|end|> ends it."),
    parses("builtin-call-holds-code", "<|channel|>analysis to=python code<|message|>print(1)<|call|>", content=""),
    Scenario(name="template-demo", messages=[system("Be brief."), *CYCLE], tools=[NESTED, WEATHER], settings=TEMPLATE),
    Scenario(
        name="template-call-and-result",
        messages=[QUESTION],
        tools=[WEATHER],
        settings=TEMPLATE,
        reply=assistant("", reasoning="I need the tool.", calls=[ULM]),
        new_messages=[tool("18 C", "call_a")],
    ),
    Scenario(
        name="template-prints-one-of-parallel-calls",
        messages=[user("q"), assistant("", calls=[ULM, call("search", {"query": "x"}, "c2")]), tool("news", "c2")],
        tools=[WEATHER, SEARCH],
        settings=TEMPLATE,
    ),
    Scenario(
        name="template-takes-content-beside-calls-for-analysis",
        messages=[QUESTION, assistant("Let me look.", calls=[ULM]), tool("18 C", "call_a")],
        tools=[WEATHER],
        settings=TEMPLATE,
    ),
    Scenario(name="template-last-answer-keeps-its-analysis", messages=ANSWERED, settings=TEMPLATE, add_generation_prompt=False),
)  # fmt: skip
