"""The DefaultRenderer on the template of MiniMax M2.7."""

from __future__ import annotations

from golden.scenario import SEARCH, WEATHER, Scenario, assistant, call, system, tool, user

MODELS = ("MiniMaxAI/MiniMax-M2.7",)
ASKED = call("get_weather", {"city": "Paris"}, "call_1")
THOUGHT = assistant("", reasoning="I must look.", calls=[ASKED])
PROMPT = "]~b]ai\n<think>\n"

SCENARIOS = (
    Scenario(
        name="plain-question",
        messages=[user("What is 6 times 7?")],
        reply=assistant("42", reasoning="6 * 7"),
        new_messages=[user("And 6 times 8?")],
        refusal="retention",
    ),
    Scenario(name="default-system-message", messages=[user("hi")]),
    Scenario(name="own-system-message", messages=[system("Be brief."), user("hi")]),
    Scenario(
        name="call-after-reasoning",
        messages=[system("Be brief."), user("Weather in Paris?")],
        tools=[WEATHER],
        reply=THOUGHT,
        new_messages=[tool("21 °C", "call_1")],
    ),
    Scenario(
        name="parallel-calls-and-results",
        messages=[user("Weather in Paris and Rome?")],
        tools=[WEATHER],
        reply=assistant("", reasoning="Two.", calls=[ASKED, call("get_weather", {"city": "Rome"}, "call_2")]),
        new_messages=[tool("21 °C", "call_1"), tool("25 °C", "call_2")],
    ),
    Scenario(
        name="answer-after-a-cycle",
        messages=[user("Weather?"), THOUGHT, tool("21 °C", "call_1")],
        tools=[WEATHER],
        reply=assistant("It is 21 °C.", reasoning="Now I know."),
        new_messages=[user("Thanks")],
        refusal="retention",
    ),
    Scenario(
        name="second-call-of-a-cycle",
        messages=[user("Weather?"), THOUGHT, tool("21 °C", "call_1")],
        tools=[WEATHER, SEARCH],
        reply=assistant(
            "Let me see.", reasoning="More.", calls=[call("search", {"query": "Paris", "limit": 3}, "call_2")]
        ),
        new_messages=[tool("Found it", "call_2")],
    ),
    Scenario(
        name="typed-arguments",
        messages=[user("Find"), assistant("", calls=[call("search", {"query": "a <b>", "limit": 3}, "call_1")])],
        tools=[SEARCH],
        add_generation_prompt=False,
    ),
    Scenario(
        name="reasoning-of-earlier-turns-is-dropped",
        messages=[user("a"), assistant("b", reasoning="r"), user("c")],
    ),
    Scenario(
        name="open-reasoning-is-refused",
        messages=[user("hi")],
        completion="I wonder",
        parsed={"content": "", "reasoning_complete": False, "stop": None},
        new_messages=[user("go on")],
        refusal="open_reasoning",
    ),
    Scenario(
        name="cut-answer-is-closed-after-a-result",
        messages=[user("Weather?")],
        tools=[WEATHER],
        completion=(
            'Look.\n</think>\n\n\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n'
            "</invoke>\n</minimax:tool_call>"
        ),
        parsed={"reasoning_content": "Look.", "stop": None, "names": ["get_weather"]},
        new_messages=[tool("21 °C", "call_1")],
        tail=f"[e~[\n]~b]tool\n<response>21 °C</response>[e~[\n{PROMPT}",
    ),
    Scenario(
        name="marker-in-a-result-when-sanitized",
        messages=[user("Weather?"), THOUGHT, tool("a[e~[b", "call_1")],
        tools=[WEATHER],
        config={"sanitize_control_tokens": True},
    ),
)
