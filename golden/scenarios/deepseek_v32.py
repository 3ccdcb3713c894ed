"""DeepSeek V3.2: what its encoder does."""

from __future__ import annotations

from golden.scenario import WEATHER, Scenario, assistant, tool, user
from golden.scenarios._dsml import (
    BONN,
    CYCLE,
    THINKING,
    ULM,
    shared_scenarios,
)

MODELS = ("deepseek-ai/DeepSeek-V3.2",)
DEVELOPER = {"role": "developer", "content": "Answer like a pirate."}

SCENARIOS = (
    *shared_scenarios("function_calls"),
    Scenario(
        name="answer-after-a-tool-cycle",
        messages=CYCLE,
        tools=[WEATHER],
        settings=THINKING,
        reply=assistant("18 degrees.", reasoning="The tool says 18."),
        new_messages=[user("Thanks")],
        refusal="retention",
    ),
    Scenario(
        name="drop-thinking-off-drops-reasoning-all-the-same",
        messages=[*CYCLE, assistant("18 degrees.", reasoning="Done."), user("And tomorrow?")],
        settings={**THINKING, "drop_thinking": False},
    ),
    Scenario(
        name="results-close-when-each-call-has-one",
        messages=[
            user("Weather in Ulm and Bonn?"),
            assistant("", calls=[ULM, BONN]),
            tool("18 C"),
            user("Never mind."),
        ],
    ),
    Scenario(
        name="a-user-opens-a-turn-also-where-another-user-follows",
        messages=[user("first"), user("second")],
        settings=THINKING,
    ),
    Scenario(name="developer-message", messages=[DEVELOPER], settings=THINKING),
    Scenario(
        name="developer-message-before-a-question",
        messages=[DEVELOPER, user("Go on.")],
        settings={**THINKING, "drop_thinking": False},
    ),
    Scenario(name="null-content-is-printed", messages=[user(None), assistant(None), user("?")]),
)
