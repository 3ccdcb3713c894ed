"""Tool-call IDs: to the form that a model needs and back, pairs kept, whatever the portions."""

from __future__ import annotations

import itertools
import os
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from renderers import create_renderer
from renderers.testing import Conversation, Profile, conversations
from renderers.vendors import ToolCallIds

KIMI = "functions.{name}:{index}"
EXAMPLES = settings(max_examples=settings().max_examples // (1 if "FUZZ_EXAMPLES" in os.environ else 4))
BOTH = st.sampled_from(("openai", "kimi"))
PROFILES: dict[str, Profile] = {kind: Profile(name=kind, call_ids=kind) for kind in ("openai", "kimi")}


def call(call_id: str | None, name: str = "f") -> dict[str, Any]:
    made = {"type": "function", "function": {"name": name, "arguments": "{}"}}
    return made if call_id is None else {"id": call_id, **made}


def calls(*ids: str | None) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(one) for one in ids]}


def result(call_id: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": "r", **fields} | ({} if call_id is None else {"tool_call_id": call_id})


def ids_in(messages: list[dict[str, Any]]) -> list[Any]:
    found: list[Any] = []
    for message in messages:
        found += [one.get("id") for one in message.get("tool_calls") or ()]
        if message["role"] == "tool":
            found.append(message.get("tool_call_id"))
    return found


def test_a_family_says_its_form() -> None:
    assert create_renderer("golden:kimi-k2").tool_call_id_form == KIMI
    assert create_renderer("golden:qwen3").tool_call_id_form is None


@EXAMPLES
@given(BOTH.flatmap(lambda kind: conversations(PROFILES[kind])))
def test_there_and_back(conversation: Conversation) -> None:
    messages = conversation.messages
    ids = ToolCallIds(KIMI)
    mapped = ids.to_model(messages)
    back = ids.from_model(mapped)
    for message, given_message in zip(back, messages, strict=True):
        if message["role"] == "tool" and "tool_call_id" not in given_message:
            message.pop("tool_call_id", None)
    assert back == messages
    for message in mapped:
        for one in message.get("tool_calls") or ():
            assert re.fullmatch(r"functions\." + re.escape(one["function"]["name"]) + ":[0-9]+", one["id"])
    assert ToolCallIds(None).to_model(messages) == messages


@EXAMPLES
@given(conversations(PROFILES["openai"]), st.lists(st.integers(0, 12)))
def test_portions_make_no_difference(conversation: Conversation, cuts: list[int]) -> None:
    messages, ids = conversation.messages, ToolCallIds(KIMI)
    borders = [0, *sorted(cuts), len(messages)]
    portions = [messages[start:end] for start, end in itertools.pairwise(borders)]
    assert [one for portion in portions for one in ids.to_model(portion)] == ToolCallIds(KIMI).to_model(messages)


def test_results_find_their_calls() -> None:
    mapped = ToolCallIds(KIMI).to_model([
        calls("a", "b", None),
        result("b"),
        result(),
        result(),
        calls("a"),
        result("a"),
        result("b"),
        result("stranger", name="g"),
    ])  # fmt: skip
    numbers = [one.rsplit(":", 1)[1] for one in ids_in(mapped)]
    assert numbers == ["0", "1", "2", "1", "0", "2", "3", "3", "1", "4"]
    assert mapped[-1]["tool_call_id"].startswith("functions.g:")


def test_a_number_that_is_taken_is_not_given_again() -> None:
    mapped = ToolCallIds(KIMI).to_model([calls("functions.f:1"), calls("x")])
    assert ids_in(mapped) == ["functions.f:1", "functions.f:2"]


def test_ids_of_the_models_own_stay() -> None:
    ids = ToolCallIds(KIMI)
    ids.keep([calls("f:0")])
    assert ids_in(ids.to_model([result("f:0"), calls("f:0"), result("f:0")])) == [
        "f:0",
        "functions.f:1",
        "functions.f:1",
    ]


def test_an_api_may_want_them_unique() -> None:
    messages = [calls("call_0"), result("call_0"), calls("call_0"), result("call_0")]
    assert ids_in(ToolCallIds("call_{index}", unique=True).to_model(messages)) == 2 * ["call_0"] + 2 * ["call_1"]
    assert ToolCallIds("call_{index}").to_model(messages) == messages


def test_nothing_that_was_given_is_changed() -> None:
    messages = [calls("a"), result("a")]
    mapped = ToolCallIds(KIMI).to_model(messages)
    assert ids_in(messages) == ["a", "a"]
    assert mapped[0] is not messages[0]
    assert ToolCallIds(KIMI).to_model([{"role": "user", "content": "q"}])
