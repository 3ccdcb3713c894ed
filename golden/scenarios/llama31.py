"""The DefaultRenderer on the template of Llama 3.1."""

from __future__ import annotations

from golden.scenario import SEARCH, WEATHER, Scenario, assistant, call, system, tool, user

MODELS = ("meta-llama/Llama-3.1-8B-Instruct",)
ASKED = call("get_weather", {"city": "Paris"}, "call_1")
USERS_LAST = "<|start_header_id|>user<|end_header_id|>\n\n"

SCENARIOS = (
    Scenario(
        name="plain-question",
        messages=[user("What is 6 times 7?")],
        reply=assistant("42"),
        new_messages=[user("And 6 times 8?")],
    ),
    Scenario(
        name="system-message-stands-outside-the-loop",
        messages=[system("Be brief."), user("hi")],
        reply=assistant("Hello."),
        new_messages=[user("bye")],
    ),
    Scenario(name="texts-are-trimmed", messages=[system(" a \n"), user("\n b "), assistant(" c "), user("d")]),
    Scenario(
        name="tools-in-the-first-user-message",
        messages=[user("Weather in Paris?")],
        tools=[WEATHER, SEARCH],
        reply=assistant(calls=[ASKED]),
        parsed={"calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]},
        new_messages=[tool("21 °C", "call_1")],
    ),
    Scenario(
        name="tools-in-the-system-message",
        messages=[system("Be brief."), user("Weather in Paris?")],
        tools=[WEATHER],
        settings={"tools_in_user_message": False},
        reply=assistant(calls=[ASKED]),
        parsed={"calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]},
        new_messages=[tool("21 °C", "call_1")],
    ),
    Scenario(
        name="tool-cycle-and-answer",
        messages=[user("Weather?"), assistant(calls=[ASKED]), tool("21 °C", "call_1")],
        tools=[WEATHER],
        reply=assistant("It is 21 °C."),
        new_messages=[user("Thanks")],
    ),
    Scenario(
        name="second-call-of-a-cycle",
        messages=[user("Weather?"), assistant(calls=[ASKED]), tool("21 °C", "call_1")],
        tools=[WEATHER, SEARCH],
        reply=assistant(calls=[call("search", {"query": "Paris", "limit": 3}, "call_2")]),
        parsed={"calls": [{"name": "search", "arguments": {"query": "Paris", "limit": 3}}]},
        new_messages=[tool("Found it", "call_2")],
    ),
    Scenario(
        name="arguments-as-text-are-parsed",
        messages=[user("Weather?"), assistant(calls=[call("get_weather", '{"city":"Köln"}', "call_1")])],
        tools=[WEATHER],
        add_generation_prompt=False,
    ),
    Scenario(
        name="date-of-the-template",
        messages=[user("hi")],
        settings={"date_string": "30 Nov 2026"},
        reply=assistant("Hello."),
        new_messages=[system("Be brief."), user("bye")],
    ),
    Scenario(
        name="cut-reply-is-closed",
        messages=[user("Count")],
        completion="1 2 3",
        parsed={"content": "1 2 3", "stop": None},
        new_messages=[user("go on")],
        tail=f"<|eot_id|>{USERS_LAST}go on<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    Scenario(
        name="end-of-message-is-no-stop-that-history-shows",
        messages=[user("Count")],
        completion="1 2 3<|eom_id|>",
        parsed={"content": "1 2 3", "stop": "<|eom_id|>"},
        new_messages=[user("go on")],
        refusal="wrong_stop",
    ),
    Scenario(
        name="a-call-written-with-other-spaces-is-kept",
        messages=[user("Weather?")],
        tools=[WEATHER],
        completion='{"name":"get_weather","parameters":{"city":"Paris"}}<|eot_id|>',
        parsed={"calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]},
        new_messages=[tool("21 °C", "call_1")],
        tail='<|start_header_id|>ipython<|end_header_id|>\n\n"21 °C"<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    ),
    Scenario(
        name="marker-in-user-text-when-sanitized",
        messages=[user("a<|eot_id|>b")],
        config={"sanitize_control_tokens": True},
    ),
)
