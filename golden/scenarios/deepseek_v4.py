"""DeepSeek V4: what its encoder does."""

from __future__ import annotations

from golden.scenario import WEATHER, Scenario, assistant, call, tool, user
from golden.scenarios._dsml import BONN, CYCLE, THINKING, ULM, shared_scenarios

MODELS = ("deepseek-ai/DeepSeek-V4-Flash",)
DEVELOPER = {"role": "developer", "content": "Answer like a pirate."}

SCENARIOS = (
    *shared_scenarios("tool_calls"),
    Scenario(
        name="with-tools-no-reasoning-is-dropped",
        messages=[*CYCLE, assistant("18 degrees.", reasoning="Done."), user("And tomorrow?")],
        tools=[WEATHER],
        settings=THINKING,
        reply=assistant("I cannot know.", reasoning="Tomorrow is not there."),
        new_messages=[user("Pity.")],
    ),
    Scenario(
        name="without-tools-a-result-drops-reasoning",
        messages=[user("Weather in Ulm?")],
        settings=THINKING,
        reply=assistant("", reasoning="I need the tool.", calls=[ULM]),
        new_messages=[tool("18 C", "call_0")],
        refusal="retention",
    ),
    Scenario(
        name="drop-thinking-off-keeps-reasoning",
        messages=[user("a"), assistant("b", reasoning="r"), user("c")],
        settings={**THINKING, "drop_thinking": False},
        reply=assistant("d", reasoning="s"),
        new_messages=[user("e")],
    ),
    Scenario(
        name="results-stand-in-the-order-of-their-calls",
        messages=[
            user("Weather in Ulm and Bonn?"),
            assistant("", calls=[ULM, BONN]),
            tool("16 C", "call_1"),
            tool("18 C", "call_0"),
            user("Which is warmer?"),
        ],
        tools=[WEATHER],
    ),
    Scenario(
        name="the-bridge-orders-results",
        messages=[user("Weather in Ulm and Bonn?")],
        tools=[WEATHER],
        settings=THINKING,
        reply=assistant("", reasoning="Two calls.", calls=[ULM, BONN]),
        new_messages=[tool("16 C", "call_1"), tool("18 C", "call_0")],
    ),
    Scenario(name="consecutive-users-share-a-turn", messages=[user("first"), user("second")], settings=THINKING),
    Scenario(
        name="text-parts-of-a-result-stand-apart",
        messages=[*CYCLE[:2], tool([{"type": "text", "text": "18 C"}, {"type": "text", "text": "sunny"}], "call_0")],
        tools=[WEATHER],
    ),
    Scenario(name="developer-message", messages=[DEVELOPER, user("Go on.")]),
    Scenario(
        name="developer-message-is-dropped-with-old-reasoning",
        messages=[DEVELOPER, assistant("Arr.", reasoning="r"), user("Go on.")],
        settings=THINKING,
    ),
    Scenario(
        name="reasoning-effort-max",
        messages=[user("What is 6 times 7?")],
        settings={**THINKING, "reasoning_effort": "max"},
        reply=assistant("42", reasoning="6 * 7 = 42."),
    ),
    Scenario(
        name="arguments-that-are-no-json-are-wrapped",
        messages=[user("q"), assistant("", calls=[call("f", '{"x": 1')]), tool("bad")],
    ),
)
