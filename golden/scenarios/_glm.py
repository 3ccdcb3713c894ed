"""What all GLM formats do. GLM-4.5 differs from the later ones in its line feeds, and in who opens the reasoning."""

from __future__ import annotations

from golden.scenario import SEARCH, WEATHER, Scenario, assistant, call, system, tool, user

OFF = {"enable_thinking": False}
ULM = call("get_weather", {"city": "Ulm"}, "call_0")
BONN = call("get_weather", {"city": "Bonn"}, "call_1")
CYCLE = (user("Weather in Ulm?"), assistant("", reasoning="I need the tool.", calls=[ULM]), tool("18 C", "call_0"))
PARTS = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]


def call_text(line: str, name: str, **values: str) -> str:
    """A call as it is sampled, its values spelled out."""
    pairs = [f"<arg_key>{key}</arg_key>{line}<arg_value>{text}</arg_value>{line}" for key, text in values.items()]
    return f"{line}<tool_call>{name}{line}{''.join(pairs)}</tool_call>"


def shared_scenarios(line: str, *, opened: bool) -> tuple[Scenario, ...]:
    """The scenarios of a format with `line` between its parts; `opened` where the prompt opens the reasoning."""

    def thought(text: str) -> str:
        return f"{text}</think>" if opened else f"{line}<think>{text}</think>"

    def weather(city: str) -> str:
        return call_text(line, "get_weather", city=city)

    return (
        Scenario(
            name="plain-question-with-reasoning",
            messages=[user("What is 6 times 7?")],
            reply=assistant("42", reasoning="6 * 7 = 42."),
            new_messages=[user("And 6 times 8?")],
            refusal="retention",
        ),
        Scenario(
            name="tool-call-and-result",
            messages=[user("Weather in Ulm?")],
            tools=[WEATHER],
            reply=assistant("", reasoning="I need the tool.", calls=[ULM]),
            new_messages=[tool("18 C", "call_0")],
        ),
        Scenario(
            name="tools-have-a-system-turn-of-their-own",
            messages=[system("Be brief."), user("Weather in Ulm?")],
            tools=[WEATHER, SEARCH],
            reply=assistant("Let me look.", reasoning="Use the tool.", calls=[ULM]),
            new_messages=[tool("18 C, sunny", "call_0")],
        ),
        Scenario(
            name="parallel-calls",
            messages=[user("Weather in Ulm and Bonn?")],
            tools=[WEATHER],
            reply=assistant("", reasoning="Two calls.", calls=[ULM, BONN]),
            new_messages=[tool("18 C", "call_0"), tool("16 C", "call_1")],
        ),
        Scenario(
            name="second-call-in-a-tool-cycle-keeps-reasoning",
            messages=CYCLE,
            tools=[WEATHER, SEARCH],
            reply=assistant(
                "Now the news.", reasoning="Search, too.", calls=[call("search", {"query": "Ulm", "limit": 3}, "call_1")]
            ),
            new_messages=[tool("nothing new", "call_1")],
        ),
        Scenario(
            name="new-user-message-drops-reasoning",
            messages=[*CYCLE, assistant("18 degrees.", reasoning="Done."), user("Thanks! And tomorrow?")],
            tools=[WEATHER],
        ),
        Scenario(
            name="answer-after-a-tool-cycle",
            messages=CYCLE,
            tools=[WEATHER],
            reply=assistant("18 degrees.", reasoning="The tool says 18."),
            new_messages=[user("Thanks")],
            refusal="retention",
        ),
        Scenario(
            name="role-marker-belongs-to-the-turn-before-it",
            messages=[*CYCLE, assistant("18 degrees.", reasoning="Done."), user("Thanks!")],
            tools=[WEATHER],
            add_generation_prompt=False,
        ),
        Scenario(
            name="all-reasoning-is-kept",
            messages=[user("6*7?"), assistant("42", reasoning="easy"), user("and 6*8?")],
            config={"thinking_retention": "all"},
            completion=f"{thought('hm')}{line}48<|user|>",
            parsed={"content": "48", "reasoning_content": "hm", "stop": "<|user|>"},
            new_messages=[user("and 6*9?")],
            tail=f"{line}and 6*9?<|assistant|>{'<think>' if opened else ''}",
        ),
        Scenario(
            name="tool-cycle-keeps-reasoning-within",
            messages=CYCLE,
            config={"thinking_retention": "tool_cycle"},
            completion=f"{thought('One more.')}{weather('Bonn')}<|observation|>",
            parsed={"reasoning_content": "One more.", "calls": [{"name": "get_weather", "arguments": {"city": "Bonn"}}]},
            new_messages=[tool("16 C", "call_1")],
        )
        if False
        else Scenario(
            name="stopped-at-another-roles-marker",
            messages=[user("Weather in Ulm?")],
            tools=[WEATHER],
            completion=f"{thought('x')}{weather('Ulm')}<|observation|>",
            parsed={"reasoning_content": "x", "stop": "<|observation|>", "statuses": ["ok"]},
            new_messages=[user("Stop, never mind.")],
            refusal="wrong_stop",
        ),
    )
