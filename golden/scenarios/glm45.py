"""GLM-4.5: what its template does."""

from __future__ import annotations

from golden.scenario import WEATHER, Scenario, assistant, tool, user
from golden.scenarios._glm import CYCLE, OFF, ULM, shared_scenarios

MODELS = ("zai-org/GLM-4.5", "zai-org/GLM-4.6")

SCENARIOS = (
    *shared_scenarios("\n", opened=False),
    Scenario(
        name="nothink-ends-every-user-message",
        messages=[user("hi"), assistant("Hello!"), user("again")],
        settings=OFF,
        reply=assistant("Hello again!"),
        new_messages=[user("and again")],
    ),
    Scenario(name="nothink-is-not-doubled", messages=[user("hi/nothink"), user("hi /nothink ")], settings=OFF),
    Scenario(
        name="thinking-off-with-a-tool-call",
        messages=[user("Weather in Ulm?")],
        tools=[WEATHER],
        settings=OFF,
        reply=assistant("", calls=[ULM]),
        new_messages=[tool("18 C", "call_0")],
    ),
    Scenario(
        name="thinking-off-keeps-reasoning-of-the-cycle",
        messages=CYCLE,
        settings=OFF,
        reply=assistant("18 degrees."),
        new_messages=[tool("?")],
        completion="\n18 degrees.<|observation|>",
        parsed={"content": "18 degrees.", "reasoning_content": None},
        tail="\n<tool_response>\n?\n</tool_response><|assistant|>\n<think></think>",
    ),
    Scenario(
        name="glm-4-6-tool-call",
        model="zai-org/GLM-4.6",
        messages=[user("Weather in Ulm?")],
        tools=[WEATHER],
        reply=assistant("Let me look.", reasoning="I need the tool.", calls=[ULM]),
        new_messages=[tool("18 C", "call_0")],
    ),
)
