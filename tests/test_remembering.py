"""What a renderer remembers never shows: it renders as one that remembers nothing, and does nothing twice."""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.profiles import PROFILES
from renderers import DamageError, MessageError, Renderer, RendererError, create_renderer
from renderers.conversation import ASKABLE, Sight, Turn
from renderers.family import FamilyRenderer
from renderers.messages import NO_TOOLS, Message
from renderers.registry import known_revisions
from renderers.rendered import RenderedTokens
from renderers.scribe import Scribe
from renderers.testing import conversations
from renderers.tokenizers.huggingface import TokenizersAdapter

#: One revision of each family, and every way to keep reasoning or to treat the caller's text.
MODELS = {
    renderer_class.family: (renderer_class, revision)
    for renderer_class, revision in reversed([*known_revisions()])
    if revision.models
}
GOLDEN = {
    "qwen3": "qwen3", "qwen3.5": "qwen3.5", "qwen3-coder": "qwen3", "kimi-k2": "kimi-k2", "kimi-k2.5": "kimi-k2",
    "glm4.5": "glm45", "glm5": "glm5", "deepseek-v3": "deepseek-v3", "deepseek-v3.1": "deepseek-v3.1",
    "deepseek-v3.2": "deepseek-v3.2", "deepseek-v4": "deepseek-v4", "gpt-oss": "gpt-oss",
}  # fmt: skip
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"sanitize_control_tokens": True},
    {"thinking_retention": "all"},
    {"thinking_retention": "tool_cycle", "sanitize_control_tokens": True},
)


@cache
def remembering(family: str, number: int) -> Renderer[Any]:
    """A renderer that lives as long as the tests, and so remembers all conversations."""
    model = MODELS[family][1].models[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create_renderer(f"golden:{GOLDEN[family]}", model=model, **SETTINGS[number])


def fresh(renderer: Renderer[Any]) -> Renderer[Any]:
    """The same renderer, remembering nothing."""
    return type(renderer)(renderer.tokenizer, renderer.config)


def outcome(renderer: Renderer[Any], messages: Sequence[Any], tools: Any, **settings: bool) -> Any:
    """All that a render says, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            rendered = renderer.render(messages, tools=tools, **settings)
        except RendererError as error:
            return type(error), str(error)
    return (
        rendered.token_ids,
        list(rendered.runs()),
        rendered.warnings,
        rendered.message_roles,
        rendered.message_tool_names,
        rendered.history,
    )


def related(messages: list[dict[str, Any]], others: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Conversations that share messages with one: parts of it, more than it, changed in place, in another order."""
    yield messages
    yield messages[: len(messages) // 2 + 1]
    yield [*messages, {"role": "user", "content": "And now?"}]
    yield [*messages, *others]
    yield [*others, *messages]
    changed = messages[0]
    kept = dict(changed)
    changed["content"] = "another text"
    yield messages
    changed.clear()
    changed.update(kept)
    for message in messages:
        for call in message.get("tool_calls") or ():
            arguments = call.get("function", call).get("arguments")
            if isinstance(arguments, dict):
                arguments["added"] = [1, 1.0, True]
    yield messages
    yield messages[::-1]


@pytest.mark.parametrize("family", sorted(GOLDEN))
@settings(max_examples=max(4, settings().max_examples // 25))
@given(data=st.data())
def test_remembering_never_shows(family: str, data: st.DataObject) -> None:
    renderer = remembering(family, data.draw(st.integers(0, len(SETTINGS) - 1)))
    models = MODELS[family][1].models
    profile = next(PROFILES[model] for model in models if model in PROFILES)
    first, second = data.draw(conversations(profile, maximum=6)), data.draw(conversations(profile, maximum=3))
    opened = first.add_generation_prompt
    for messages in related(copy.deepcopy(first.messages), second.messages):
        for tools in (first.tools, second.tools):
            expected = outcome(fresh(renderer), messages, tools, add_generation_prompt=opened)
            assert outcome(renderer, messages, tools, add_generation_prompt=opened) == expected
            prefilled = outcome(fresh(renderer), messages, tools, continue_final_message=True)
            assert outcome(renderer, messages, tools, continue_final_message=True) == prefilled
        opened = not opened


def test_every_family_is_tested() -> None:
    assert set(GOLDEN) == set(MODELS)


MESSAGES = [
    {"role": "user", "content": "What is 6 times 7?"},
    {"role": "assistant", "reasoning_content": "Easy.", "content": "42"},
    {"role": "user", "content": "And 7 times 8?"},
]


def test_numbers_that_only_look_like_bytes_are_read_anew() -> None:
    import numpy as np

    renderer = create_renderer("golden:qwen3")

    def call(value: Any) -> list[dict[str, Any]]:
        function = {"name": "f", "arguments": {"x": value}}
        return [MESSAGES[0], {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}]

    assert "1.5" in renderer.decode(renderer.render(call(np.float64(1.5))).token_ids)
    assert "2.5" in renderer.decode(renderer.render(call(np.float64(2.5))).token_ids)
    assert '{"x": 1}' in renderer.decode(renderer.render(call(1)).token_ids)
    assert '{"x": true}' in renderer.decode(renderer.render(call(True)).token_ids)
    assert '{"x": 1.0}' in renderer.decode(renderer.render(call(1.0)).token_ids)


def test_bytes_are_no_text_that_another_message_could_be_taken_for() -> None:
    import numpy as np

    renderer = create_renderer("golden:qwen3")
    text = np.str_("ab")  # which is copied as the bytes of its characters
    for field in ("thinking", "reasoning", "prefix"):
        message = {"role": "assistant", "content": "c", field: text.tobytes()}
        with pytest.raises(MessageError, match=rf"messages\[1\]\.{field}.*bytes are no text"):
            renderer.render([MESSAGES[0], message])
    assert "ab" in renderer.decode(
        renderer.render([MESSAGES[0], {**message, "prefix": None, "thinking": text}]).token_ids
    )


def test_many_threads_see_what_one_does() -> None:
    renderer = create_renderer("golden:qwen3")
    made = [[{"role": "user", "content": f"{n % 5} times 7"}, *MESSAGES[1:], *MESSAGES[: n % 3]] for n in range(40)]
    expected = [outcome(fresh(renderer), messages, None) for messages in made]
    found: list[list[Any]] = []

    def work() -> None:
        found.append([outcome(renderer, messages, None) for messages in made])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


# Counts --------------------------------------------------------------------------------------------------------------


class Counter:
    """Counts the calls of the tokenizer and the characters that it is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = self.characters = self.written = 0
        encode = TokenizersAdapter.encode_ordinary_batch
        write = Scribe._write_one

        def counted(adapter: TokenizersAdapter, texts: Sequence[str]) -> list[list[int]]:
            self.calls += 1
            self.characters += sum(map(len, texts))
            return encode(adapter, texts)

        def counted_write(*arguments: Any) -> Any:
            self.written += 1
            return write(*arguments)

        monkeypatch.setattr(TokenizersAdapter, "encode_ordinary_batch", counted)
        monkeypatch.setattr(Scribe, "_write_one", counted_write)

    def take(self) -> tuple[int, int, int]:
        """Calls, characters and messages written since the last time."""
        taken = self.calls, self.characters, self.written
        self.calls = self.characters = self.written = 0
        return taken


def long_conversation(count: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number in range(count // 2):
        messages.append({"role": "user", "content": f"What is {number} times 7? " + "Think. " * 40})
        messages.append({"role": "assistant", "content": f"{7 * number}"})
    return messages


@pytest.mark.filterwarnings("ignore::renderers.DamageWarning")  # V3.1's template prints no tools
@pytest.mark.parametrize("family", ["qwen3", "glm4.5", "deepseek-v3.1", "kimi-k2", "gpt-oss"])
def test_nothing_is_encoded_or_written_twice(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = fresh(remembering(family, 0))
    counter = Counter(monkeypatch)
    messages = long_conversation(100)
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    renderer.render(messages[:99], tools=tools, add_generation_prompt=True)
    calls, characters, written = counter.take()
    assert calls <= 6  # the messages in one batch, and what stands around them
    assert written == 99
    renderer.render(messages[:99], tools=tools, add_generation_prompt=True)
    assert counter.take() == (0, 0, 0)
    rendered = renderer.render(
        [*messages, {"role": "user", "content": "And now?"}], tools=tools, add_generation_prompt=True
    )
    calls, characters, written = counter.take()
    assert characters < 800  # of some 16,000
    assert written <= 4  # the new ones, and those whose neighbours changed
    assert len(rendered.sampled_mask) == len(rendered)
    assert counter.take()[1] == 0  # labels encode nothing


@pytest.mark.filterwarnings("ignore::renderers.DamageWarning")
@pytest.mark.parametrize("family", ["qwen3", "glm4.5", "deepseek-v3.1", "deepseek-v3.2", "kimi-k2", "gpt-oss"])
@pytest.mark.parametrize("retention", [None, "all"])
def test_a_new_question_writes_anew_what_it_changes(
    family: str, retention: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = remembering(family, 0)
    renderer = type(known)(known.tokenizer, known.config.model_copy(update={"thinking_retention": retention}))
    counter = Counter(monkeypatch)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How warm is it?"}]
    for number in range(20):
        call = {"id": f"functions.f:{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        messages.append({"role": "assistant", "reasoning_content": "Hm.", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "18 C"})
    renderer.render(messages, add_generation_prompt=True)
    assert counter.take()[2] == len(messages)
    longer = [*messages, {"role": "assistant", "content": "Warm."}, {"role": "user", "content": "And now?"}]
    renderer.render(longer, add_generation_prompt=True)
    # The question takes the reasoning of all twenty replies away, but changes no result.
    assert counter.take()[2] <= (3 if retention == "all" else 23)
    renderer.render(messages, add_generation_prompt=True)
    renderer.render([*longer, {"role": "assistant", "content": "Warm."}], add_generation_prompt=True)
    assert counter.take()[2] <= 2


def test_what_is_read_of_later_messages_is_recorded() -> None:
    readers = {"side": ("keeps_reasoning", "precedes_floor"), "next_role": ("next_role", "is_last")}
    for place, field in enumerate(Sight._fields[:ASKABLE]):
        for name in readers.get(field, (field,)):
            turn = Turn(Message(role="user"), 0, "", None, None, None, None, NO_TOOLS, Sight())
            getattr(turn, name)
            assert turn.asked == 1 << place


def test_the_rollouts_of_a_group_share_one_render(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = fresh(remembering("qwen3", 0))
    messages = long_conversation(20)[:19]
    first = renderer.render(messages, add_generation_prompt=True)
    monkeypatch.setattr(Scribe, "write", None)
    second = renderer.render(messages, add_generation_prompt=True)
    assert second == first
    assert second.segment.runs is first.segment.runs  # labels are made once for all of them
    second.token_ids.clear()
    second.message_roles.clear()
    third = renderer.render(messages, add_generation_prompt=True)
    assert (third.token_ids, third.message_roles) == (first.token_ids, first.message_roles)


def test_a_damage_is_an_error_also_the_second_time() -> None:
    renderer = create_renderer("golden:deepseek-v3.1", on_damage="raise")
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    for _ in range(2):
        with pytest.raises(DamageError, match="prints no tools"):
            renderer.render(MESSAGES, tools=tools)


def test_a_bridge_costs_the_same_after_any_history(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = fresh(remembering("qwen3", 2))
    reply = renderer.tokenizer.encode_ordinary("42")
    completion = [*reply, renderer.stop_ids[0]]
    counter = Counter(monkeypatch)
    costs: list[tuple[int, int, int]] = []
    for count in (2, 400):
        prompt = renderer.render(long_conversation(count)[:-1], add_generation_prompt=True)
        counter.take()
        bridged = renderer.bridge_to_next_turn(prompt, completion, [{"role": "user", "content": f"After {count:03}."}])
        assert bridged is not None
        assert len(bridged.extension_ids) < 30
        assert "token_ids" not in bridged._lists  # built on request
        assert "token_ids" not in prompt._lists
        assert bridged.segment.parent is not None
        assert bridged.segment.parent.parent is prompt.segment  # the history by reference
        costs.append(counter.take())
    assert costs[0] == costs[1]


def test_a_bridge_reads_a_reply_that_was_parsed_no_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer = fresh(remembering("qwen3", 2))
    assert isinstance(renderer, FamilyRenderer)
    text = '<think>\nEasy.\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call><|im_end|>'
    completion = renderer.tokenizer.encode_batch([text])[0]
    prompt = renderer.render(MESSAGES[:1], add_generation_prompt=True)
    result = [{"role": "tool", "tool_call_id": "call_0", "content": "42"}]
    expected = renderer.bridge_to_next_turn(prompt, completion, result)
    assert expected is not None
    parsed = renderer.parse_response(completion, prompt_ids=prompt.token_ids)
    assert parsed.spans
    parsed.tool_calls.clear()  # the caller's list
    monkeypatch.setattr(type(renderer.grammar), "stream", None)
    bridged = renderer.bridge_to_next_turn(prompt, completion, result)
    assert bridged == expected
    assert bridged is not None
    assert bridged.history == expected.history


def test_a_result_holds_runs_and_not_a_label_a_token() -> None:
    renderer = create_renderer("golden:qwen3")
    short, long = (renderer.render([{"role": "user", "content": "word " * count}]) for count in (10, 1000))
    assert len(list(short.runs())) == len(list(long.runs()))


def test_the_memory_of_a_renderer_is_bounded() -> None:
    renderer = create_renderer("golden:qwen3")
    assert isinstance(renderer, FamilyRenderer)
    renderer._scribe = Scribe(renderer, 100_000)
    for number in range(200):
        renderer.render([{"role": "user", "content": f"{number} " * 50}])
    assert len(renderer._scribe.cache.places) < 60
    assert len(renderer._scribe.cache._renderings) < 20


def test_results_outlive_what_is_forgotten() -> None:
    renderer = create_renderer("golden:qwen3")
    assert isinstance(renderer, FamilyRenderer)
    rendered: RenderedTokens = renderer.render(MESSAGES)
    expected = outcome(fresh(renderer), MESSAGES, None)[:2]
    renderer._scribe = Scribe(renderer, 0)
    renderer.render([{"role": "user", "content": "Something else."}])
    assert (rendered.token_ids, list(rendered.runs())) == expected
