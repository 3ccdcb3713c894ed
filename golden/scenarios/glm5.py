"""GLM-4.7 and GLM-5: what their four templates do."""

from __future__ import annotations

from golden.scenario import SEARCH, WEATHER, Scenario, assistant, tool, user
from golden.scenarios._glm import CYCLE, OFF, ULM, shared_scenarios

MODELS = ("zai-org/GLM-5", "zai-org/GLM-4.7-Flash", "zai-org/GLM-5.1", "zai-org/GLM-5.2", "zai-org/GLM-4.7")
_, FLASH, GLM51, GLM52, GLM47 = MODELS
KEEP = {"clear_thinking": False}
TWO_CYCLES = (*CYCLE, assistant("18 degrees.", reasoning=" Done.\n"), user("Thanks!"), assistant("Bye."), user("?"))
DEFERRED = {**WEATHER, "function": {**WEATHER["function"], "defer_loading": True}}
STRICT = {**SEARCH, "function": {**SEARCH["function"], "strict": True}}

SCENARIOS = (
    *shared_scenarios("", opened=True),
    Scenario(
        name="thinking-off-closes-the-reasoning-in-the-prompt",
        messages=[user("hi")],
        settings=OFF,
        reply=assistant("Hello!"),
        new_messages=[user("again")],
    ),
    Scenario(
        name="thinking-off-with-a-tool-call",
        messages=[user("Weather in Ulm?")],
        tools=[WEATHER],
        settings=OFF,
        reply=assistant("", calls=[ULM]),
        new_messages=[tool("18 C", "call_0")],
    ),
    Scenario(
        name="clear-thinking-false-keeps-all-reasoning",
        messages=TWO_CYCLES,
        settings=KEEP,
        reply=assistant("Anything else?", reasoning="Ask."),
        new_messages=[user("No.")],
    ),
    *(
        Scenario(
            name=f"{name}-tool-call",
            model=model,
            messages=[user("Weather in Ulm?")],
            tools=[WEATHER],
            reply=assistant("Let me look.", reasoning="I need the tool.", calls=[ULM]),
            new_messages=[tool("18 C", "call_0")],
        )
        for name, model in (("flash", FLASH), ("4-7", GLM47), ("5-1", GLM51), ("5-2", GLM52))
    ),
    Scenario(name="5-1-keeps-the-space-around-reasoning", model=GLM51, messages=TWO_CYCLES, settings=KEEP),
    Scenario(
        name="5-1-has-an-empty-think-block-where-the-cycle-has-reasoning",
        model=GLM51,
        messages=[*CYCLE, assistant("18 degrees."), user("Thanks!"), assistant("Bye."), user("?")],
        settings=KEEP,
    ),
    Scenario(
        name="5-1-bridge-keeps-the-empty-think-block",
        model=GLM51,
        messages=[user("hi")],
        reply=assistant("Hello!"),
        parsed={"content": "Hello!", "reasoning_content": "", "stop": "<|user|>"},
        new_messages=[user("again")],
        tail="again<|assistant|><think>",
    ),
    Scenario(
        name="5-1-shows-functions-alone-and-not-deferred-ones",
        model=GLM51,
        messages=[user("q")],
        tools=[DEFERRED, STRICT],
    ),
    Scenario(name="5-1-shows-no-deferred-tool", model=GLM51, messages=[user("q")], tools=[DEFERRED]),
    Scenario(
        name="5-1-takes-text-parts-and-no-content-in-results",
        model=GLM51,
        messages=[*CYCLE, tool([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]), tool(None)],
    ),
    Scenario(
        name="5-2-reasoning-effort-high",
        model=GLM52,
        messages=[user("hi")],
        tools=[WEATHER],
        settings={"reasoning_effort": "high"},
        reply=assistant("Hello!", reasoning="Greet."),
        new_messages=[tool("?")],
    ),
    Scenario(
        name="5-2-thinking-off-names-no-effort",
        model=GLM52,
        messages=[user("hi")],
        settings=OFF,
        reply=assistant("Hello!"),
        new_messages=[user("again")],
    ),
    Scenario(
        name="5-2-dropped-reasoning-leaves-an-empty-block",
        model=GLM52,
        messages=[*CYCLE, assistant("18 degrees.", reasoning="Done."), user("Thanks!")],
    ),
)
