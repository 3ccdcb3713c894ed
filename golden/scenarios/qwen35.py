"""Qwen3.5, 3.6 and 3.8: what their three templates do."""

from __future__ import annotations

from golden.scenario import WEATHER, Scenario, assistant, call, system, tool, user
from golden.scenarios._qwen_xml import ULM, call_text, shared_scenarios

MODELS = ("Qwen/Qwen3.5-35B-A3B", "Qwen/Qwen3.6-35B-A3B", "Qwen/Qwen3.8")
_, Q36, Q38 = MODELS
OFF = {"enable_thinking": False}
KEEP, DROP = {"preserve_thinking": True}, {"preserve_thinking": False}
OPENING = "<|im_start|>assistant\n<think>\n"
CYCLE = (user("Weather in Ulm?"), assistant("", reasoning="I need the tool.", calls=[ULM]), tool("18 C", "call_0"))
TWO_CYCLES = (*CYCLE, assistant("18 degrees.", reasoning="Done."), user("Thanks!"))
THANKS = f"\n<|im_start|>user\nThanks<|im_end|>\n{OPENING}"

SCENARIOS = (
    *shared_scenarios("x\n</think>\n\n", OPENING),
    Scenario(
        name="plain-question-with-reasoning",
        messages=[user("What is 6 times 7?")],
        reply=assistant("42", reasoning="6 * 7 = 42."),
        new_messages=[user("And 6 times 8?")],
        refusal="retention",
    ),
    Scenario(name="new-user-message-drops-reasoning", messages=TWO_CYCLES, tools=[WEATHER]),
    Scenario(
        name="wrapped-user-message-is-no-query",
        messages=CYCLE,
        reply=assistant("Anything else?", reasoning="Ask."),
        new_messages=[user("<tool_response>\nno\n</tool_response>")],
    ),
    Scenario(
        name="all-reasoning-is-kept",
        messages=TWO_CYCLES,
        config={"thinking_retention": "all"},
        completion="Polite.\n</think>\n\nBye.<|im_end|>",
        parsed={"content": "Bye.", "reasoning_content": "Polite.", "stop": "<|im_end|>"},
        new_messages=[user("Thanks")],
        tail=THANKS,
    ),
    Scenario(
        name="thinking-off-closes-the-reasoning-in-the-prompt",
        messages=[user("Weather in Ulm?")],
        tools=[WEATHER],
        settings=OFF,
        reply=assistant("", calls=[ULM]),
        new_messages=[tool("18 C", "call_0")],
        tail=(
            "\n<|im_start|>user\n<tool_response>\n18 C\n</tool_response><|im_end|>\n"
            "<|im_start|>assistant\n<think>\n\n</think>\n\n"
        ),
    ),
    Scenario(
        name="empty-think-block-keeps-its-two-line-feeds-apart",
        messages=[user("hi")],
        completion="{ordinary:\n}</think>\n\nHello!<|im_end|>",
        parsed={"content": "Hello!", "reasoning_content": "", "stop": "<|im_end|>"},
        new_messages=[user("Thanks")],
        tail=THANKS,
    ),
    Scenario(
        name="empty-think-block-in-the-last-turn",
        messages=[user("hi"), assistant("Hello!")],
        add_generation_prompt=False,
    ),
    Scenario(
        name="cut-inside-reasoning",
        messages=[user("Count the apples.")],
        completion="First, count",
        parsed={"content": "", "reasoning_content": "First, count", "reasoning_complete": False, "stop": None},
        new_messages=[user("Go on.")],
        refusal="open_reasoning",
    ),
    Scenario(
        name="call-inside-closed-reasoning-is-reasoning",
        messages=[user("Weather in Ulm?")],
        tools=[WEATHER],
        completion=f"x{call_text('get_weather', city='Ulm')}no\n</think>\n\nI cannot.<|im_end|>",
        parsed={
            "content": "I cannot.",
            "reasoning_content": f"x{call_text('get_weather', city='Ulm')}no",
            "statuses": [],
        },
    ),
    Scenario(
        name="call-out-of-unclosed-reasoning-counts",
        messages=[user("Weather in Ulm?")],
        tools=[WEATHER],
        completion=f"x\n\n{call_text('get_weather', city='Ulm')}<|im_end|>",
        parsed={"reasoning_content": "x", "reasoning_complete": False, "names": ["get_weather"]},
        new_messages=[tool("18 C", "call_0")],
        tail=f"\n<|im_start|>user\n<tool_response>\n18 C\n</tool_response><|im_end|>\n{OPENING}",
    ),
    Scenario(
        name="system-message-in-the-middle-has-no-place",
        messages=[user("hi")],
        completion="x\n</think>\n\nHello!<|im_end|>",
        parsed={"content": "Hello!"},
        new_messages=[system("French!")],
        refusal="unsupported_message",
    ),
    Scenario(
        name="reasoning-inside-the-content",
        messages=[user("q"), assistant("<think>\nhm\n</think>\n\nyes", calls=[ULM]), tool("ok")],
    ),
    Scenario(
        name="content-with-two-closing-think-tags-loses-text",
        messages=[user("q"), assistant("a</think>b</think>c")],
        add_generation_prompt=False,
    ),
    Scenario(
        name="pythons-true-is-read-where-the-template-writes-it",
        messages=[user("q")],
        completion=f"x\n</think>\n\n{call_text('f', t='True', z='None')}<|im_end|>",
        parsed={"calls": [{"name": "f", "arguments": {"t": True, "z": None}}]},
    ),
    Scenario(name="empty-system-message-has-a-turn", messages=[system(" "), user("hi")]),
    Scenario(
        name="3-6-drops-reasoning-by-default",
        model=Q36,
        messages=TWO_CYCLES,
        reply=assistant("Bye.", reasoning="Polite."),
        new_messages=[user("Wait")],
        refusal="retention",
    ),
    Scenario(
        name="3-6-preserves-thinking",
        model=Q36,
        messages=TWO_CYCLES,
        settings=KEEP,
        reply=assistant("Bye.", reasoning="Polite."),
        new_messages=[user("Thanks")],
    ),
    Scenario(
        name="3-6-preserving-writes-empty-think-blocks",
        model=Q36,
        messages=[user("hi"), assistant("Hello!"), user("again")],
        settings=KEEP,
    ),
    Scenario(
        name="3-6-writes-values-as-json",
        model=Q36,
        messages=[user("q"), assistant("", calls=[call("f", {"t": True, "z": None, "l": [True]})]), tool("ok")],
    ),
    Scenario(
        name="3-8-preserves-thinking-by-default",
        model=Q38,
        messages=TWO_CYCLES,
        tools=[WEATHER],
        reply=assistant("Bye.", reasoning="Polite."),
        new_messages=[user("Thanks")],
    ),
    Scenario(name="3-8-drops-reasoning-when-told", model=Q38, messages=TWO_CYCLES, settings=DROP),
    Scenario(
        name="3-8-low-effort-with-a-system-message",
        model=Q38,
        messages=[system("Be brief."), user("hi")],
        settings={"reasoning_effort": "low"},
        reply=assistant("Hello!", reasoning="Greet."),
        new_messages=[user("Thanks")],
    ),
    Scenario(
        name="3-8-effort-tools-and-system-message-share-a-turn",
        model=Q38,
        messages=[system("Be brief."), user("Weather in Ulm?")],
        tools=[WEATHER],
        reply=assistant("", reasoning="x", calls=[ULM]),
        new_messages=[tool("18 C", "call_0")],
    ),
    Scenario(
        name="3-8-medium-effort-says-nothing",
        model=Q38,
        messages=[system(""), user("hi")],
        settings={"reasoning_effort": "medium"},
    ),
    Scenario(
        name="3-8-thinking-off-names-no-effort",
        model=Q38,
        messages=[user("hi")],
        settings=OFF,
        reply=assistant("Hello!"),
        new_messages=[user("again")],
    ),
    Scenario(
        name="3-8-leaves-think-tags-in-the-content",
        model=Q38,
        messages=[user("q"), assistant("<think>\nhm\n</think>\n\nyes")],
        add_generation_prompt=False,
    ),
)
