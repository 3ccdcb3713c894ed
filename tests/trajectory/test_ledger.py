"""Sessions of several models: every sampled token is kept, everyone sees everything, and nobody another's secrets."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trajectory_support import ANSWER, CALL, OTHERWISE, RENDERER, USER, Model, ids_of, model

from renderers import MessageError, NotOnPolicyError, TrajectoryError, create_renderer
from renderers.ledger import Ledger
from renderers.testing import Choices, Conversation
from renderers.testing.parse_checks import reply_tokens
from renderers.testing.support import damage_allowed
from renderers.vendors import ANTHROPIC, CHAT_COMPLETIONS, GEMINI, RESPONSES, Reply, VendorApi

if TYPE_CHECKING:
    from collections.abc import Callable

    from renderers import Renderer

Json = dict[str, Any]
FUZZ = "FUZZ_EXAMPLES" in os.environ
EXAMPLES = settings(max_examples=settings().max_examples // (10 if FUZZ else 20))
TOOLS = [
    {
        "type": "function",
        "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}},
    }
]
APIS: dict[str, VendorApi] = {"claude": ANTHROPIC, "gpt": RESPONSES, "gemini": GEMINI, "chat": CHAT_COMPLETIONS}
#: Open models of one session, by names of `trajectory_support.RENDERERS`.
CASTS = (
    ("qwen3-all", "kimi-k2"),
    ("qwen3", "glm45"),
    ("kimi-k2", "deepseek-v3.1"),
    ("gpt-oss", "qwen3.5"),
    ("deepseek-v4", "default-delta"),
    ("glm5", "deepseek-v3"),
    ("deepseek-v3.2", "default"),
)


# One session, move by move ---------------------------------------------------------------------------------------------


def session() -> Ledger:
    """A question to a Qwen model and Claude."""
    ledger = Ledger({"qwen": RENDERER, "claude": ANTHROPIC}, tools=TOOLS)
    ledger.add_messages([USER])
    return ledger


def claude(*blocks: Json, text: str = "I think so.") -> Reply:
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "SIGNATURE"}
    return ANTHROPIC.read_reply({"role": "assistant", "content": [signed, {"type": "text", "text": text}, *blocks]})


def test_a_sampled_turn_is_bridged_over_anothers() -> None:
    ledger = session()
    prompt = ledger.next_prompt_ids("qwen")
    ledger.add_completion("qwen", OTHERWISE, [-0.5] * len(OTHERWISE))
    ledger.add_messages([{"role": "user", "content": "And you?"}])
    ledger.add_reply("claude", claude())
    ledger.add_messages([USER])
    following = ledger.next_prompt_ids("qwen")
    assert following[: len(prompt) + len(OTHERWISE)] == [*prompt, *OTHERWISE]
    text = RENDERER.decode(following)
    assert "I think so.<|im_end|>\n<|im_start|>user\n" in text
    assert "SIGNATURE" not in text
    ledger.add_completion("qwen", ANSWER, [-0.1] * len(ANSWER))
    trajectory = ledger.trajectory("qwen")
    assert not trajectory.breaks
    [sample] = trajectory.samples()
    assert sample.exact
    assert sample.ids == [*following, *ANSWER]
    trained = [token for token, mask in zip(sample.ids, sample.action_mask, strict=True) if mask]
    assert trained == [*OTHERWISE, *ANSWER]
    foreign = slice(len(prompt) + len(OTHERWISE), len(following))
    assert "prompt" in sample.owners[foreign]
    assert "policy" not in sample.owners[foreign]
    sample.require("on_policy")


def test_a_vendor_gets_its_own_turn_back_and_the_others_in_its_form() -> None:
    ledger = session()
    reply = claude({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}})
    ledger.add_reply("claude", reply)
    ledger.add_messages([{"role": "tool", "tool_call_id": "toolu_1", "content": "18 C"}])
    ledger.next_prompt_ids("qwen")
    parsed = ledger.add_completion("qwen", CALL)
    ledger.add_messages([{"role": "tool", "tool_call_id": parsed.tool_calls[0].id, "content": "19 C"}])
    request = ledger.request("claude", {"model": "claude-opus-4-8", "max_tokens": 9}).payload
    assert request["tools"][0]["name"] == "f"
    _, own, result, other, second = request["messages"]
    assert own["content"] == ANTHROPIC.write_reply(reply).payload["content"]
    assert result["content"][0]["tool_use_id"] == "toolu_1"
    assert other["content"][0]["input"] == {}
    assert second["content"][0]["tool_use_id"] == other["content"][0]["id"] == "call_0"


def test_each_open_model_sees_calls_under_its_own_ids() -> None:
    kimi = create_renderer("golden:kimi-k2")
    ledger = Ledger({"kimi": kimi, "qwen": RENDERER, "claude": ANTHROPIC}, tools=TOOLS)
    ledger.add_messages([USER])
    ledger.add_reply("claude", claude({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}))
    ledger.add_messages([{"role": "tool", "tool_call_id": "toolu_1", "content": "18 C"}])
    text = kimi.decode(ledger.next_prompt_ids("kimi"))
    assert "toolu_1" not in text
    assert text.count("functions.f:0") == 2
    question = Conversation([USER], TOOLS, add_generation_prompt=True)
    call = {"id": "functions.f:1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    found = reply_tokens(kimi, question, {"role": "assistant", "content": "", "tool_calls": [call]})
    assert found is not None
    parsed = ledger.add_completion("kimi", found[1])
    ledger.add_messages([{"role": "tool", "tool_call_id": parsed.tool_calls[0].id, "content": "19 C"}])
    assert kimi.decode(ledger.next_prompt_ids("kimi")).count("functions.f:1") == 2
    turns = ledger.request("claude").payload["messages"]
    assert [block["id"] for block in turns[3]["content"]] == ["call_1"]
    assert [block["tool_use_id"] for block in turns[4]["content"]] == ["call_1"]
    assert "19 C" in RENDERER.decode(ledger.next_prompt_ids("qwen"))


def test_an_own_id_of_another_form_stays() -> None:
    """Kimi's parser takes `f:0`, too: its result must name what was sampled."""
    kimi = create_renderer("golden:kimi-k2")
    ledger = Ledger({"kimi": kimi}, tools=TOOLS)
    ledger.add_messages([USER])
    ledger.next_prompt_ids("kimi")
    text = (
        "<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
        "<|tool_calls_section_end|><|im_end|>"
    )
    parsed = ledger.add_completion("kimi", kimi.tokenizer.encode_with_offsets(text)[0])
    assert [call.id for call in parsed.tool_calls] == ["f:0"]
    ledger.add_messages([{"role": "tool", "tool_call_id": "f:0", "content": "18 C"}])
    with damage_allowed():
        assert "## Return of f:0\n18 C" in kimi.decode(ledger.next_prompt_ids("kimi"))


def test_a_break_over_anothers_turn_is_recorded() -> None:
    """Qwen3's template drops the reasoning before a user's message: what was sampled cannot stay."""
    ledger = session()
    ledger.next_prompt_ids("qwen")
    ledger.add_completion("qwen", ids_of("<think>\nHm.\n</think>\n\nHello.<|im_end|>"))
    ledger.add_messages([USER])
    ledger.add_reply("claude", claude())
    ledger.add_messages([USER])
    assert "Hm." not in RENDERER.decode(ledger.next_prompt_ids("qwen"))
    assert ledger.trajectory("qwen").break_reasons == ["retention"]


def test_an_open_models_turn_that_came_as_text_is_marked() -> None:
    ledger = session()
    ledger.next_prompt_ids("qwen")
    ledger.add_reply("qwen", {"role": "assistant", "content": "Hello."})
    [sample] = ledger.trajectory("qwen").samples()
    assert not sample.exact
    assert sample.approximations[0].what == ("segmentation",)
    with pytest.raises(NotOnPolicyError, match="segmentation"):
        sample.require("on_policy")
    ledger.add_reply("claude", claude())
    assert [turn.approximated for turn in ledger.turns] == [(), ("segmentation",), ("segmentation", "hidden_reasoning")]


def test_a_vendors_whole_conversation_enters_a_trajectory() -> None:
    """The reply of an API as a sample of an open model: for supervised training, never on-policy."""
    from renderers import Trajectory
    from renderers.vendors import approximations

    reply = claude({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}})
    trajectory = Trajectory(RENDERER)
    trajectory.begin([USER], tools=TOOLS)
    trajectory.add_reply(reply.message, approximated=approximations(reply))
    [sample] = trajectory.samples()
    assert sample.approximations[0].what == ("segmentation", "argument_text", "hidden_reasoning")
    assert "SIGNATURE" not in RENDERER.decode(sample.ids)
    assert sum(sample.supervised().action_mask)


def test_a_skipped_turn_and_a_message_of_the_harness() -> None:
    ledger = session()
    first = ledger.next_prompt_ids("qwen")
    assert ledger.next_prompt_ids("qwen") == first
    ledger.add_messages([{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Go on."}])
    assert RENDERER.decode(ledger.next_prompt_ids("qwen")).endswith("Go on.<|im_end|>\n<|im_start|>assistant\n")
    ledger.add_completion("qwen", ANSWER)
    assert not ledger.trajectory("qwen").breaks
    assert [turn.author for turn in ledger.turns] == [None, None, None, "qwen"]


def test_calls_out_of_turn() -> None:
    ledger = session()
    with pytest.raises(TrajectoryError, match="Ask for `next_prompt_ids` first"):
        ledger.add_completion("qwen", ANSWER)
    with pytest.raises(TrajectoryError, match="no open model 'claude'; there are qwen"):
        ledger.next_prompt_ids("claude")
    with pytest.raises(TrajectoryError, match="no open model 'gpt'"):
        ledger.trajectory("gpt")
    with pytest.raises(TrajectoryError, match="no vendor's model 'qwen'; there are claude"):
        ledger.request("qwen")
    with pytest.raises(TrajectoryError, match="no model 'gpt'; there are qwen, claude"):
        ledger.add_reply("gpt", claude())
    with pytest.raises(MessageError, match="found role 'user'"):
        ledger.add_reply("claude", USER)
    with pytest.raises(MessageError, match=r"messages\[0\].role"):
        ledger.add_messages([{"role": "robot"}])
    assert len(ledger.turns) == 1
    ledger.next_prompt_ids("qwen")
    ledger.add_completion("qwen", ANSWER)
    with pytest.raises(TrajectoryError):
        ledger.next_prompt_ids("qwen")


def test_a_message_that_cannot_be_shown_leaves_everything_as_it_was() -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}
    ledger = session()
    ledger.next_prompt_ids("qwen")
    ledger.add_completion("qwen", ANSWER)
    ledger.add_messages([image])
    for _ in range(2):
        with pytest.raises(MessageError, match="images and other media"):
            ledger.next_prompt_ids("qwen")
    assert ledger.trajectory("qwen").turns == 1


def test_a_limit_ends_one_models_trajectory() -> None:
    ledger = Ledger({"qwen": RENDERER, "claude": ANTHROPIC}, max_length=20)
    ledger.add_messages([USER, {"role": "user", "content": "long " * 40}])
    with pytest.raises(TrajectoryError, match="the trajectory of 'qwen' is over: max_length is reached"):
        ledger.next_prompt_ids("qwen")
    assert ledger.request("claude").payload["messages"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "this is no JSON: Expecting"),
        ("[]", "no ledger of the format"),
        ('{"format": "renderers-ledger-1"}', "no ledger of the format"),
        (
            '{"format": "renderers-ledger-1", "tools": null, "turns": [], "open": {"x": {"seen": 0, "trajectory": null}}}',
            "open models are x; given are qwen",
        ),
        ('{"format": "renderers-ledger-1", "tools": null, "turns": [5], "open": {}}', r"format .*turns\.0: "),
    ],
)
def test_what_cannot_be_loaded(text: str, problem: str) -> None:
    with pytest.raises(TrajectoryError, match=problem):
        Ledger.from_json(text, {"qwen": RENDERER})


# Random sessions -------------------------------------------------------------------------------------------------------


@dataclass
class Session:
    """A ledger, and what its engines were given and returned."""

    cast: tuple[str, ...]
    choices: Choices
    stores: bool = False
    calls: dict[str, list[tuple[list[int], list[int]]]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    own: dict[str, list[Json]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.open: dict[str, Model] = {name: model(name) for name in self.cast}
        self.models: dict[str, Renderer[Any] | VendorApi] = {
            **{name: one.renderer for name, one in self.open.items()},
            **APIS,
        }
        self.ledger = Ledger(self.models, tools=TOOLS)
        self.calls = {name: [] for name in self.cast}
        self.own = {name: [] for name in APIS}
        self.answer()

    def run(self) -> None:
        """Turns of anybody, each followed by what the environment answers."""
        for _ in range(12):
            if self.choices.exhausted:
                break
            with damage_allowed():
                if self.choices.chance(55):
                    self.sample(self.choices.pick(self.cast))
                else:
                    self.ask(self.choices.pick(tuple(APIS)))
                if not self.choices.chance(20) or self.waiting:
                    self.answer()
            if self.stores:
                self.ledger = Ledger.from_json(self.ledger.to_json(), self.models)

    def new_text(self) -> str:
        self.said.append(f"turn-{len(self.said)}.")
        return self.said[-1]

    def answer(self) -> None:
        """Results of the calls of the last turn, in some order, or a user's question."""
        if self.waiting:
            results = [{"role": "tool", "tool_call_id": one, "content": self.new_text()} for one in self.waiting]
            self.ledger.add_messages(results[::-1] if self.choices.chance(30) else results)
            self.waiting = []
        else:
            self.ledger.add_messages([{"role": "user", "content": self.new_text()}])

    def sample(self, name: str) -> None:
        """An open model's turn: its prompt holds what everybody said, and no one's secrets."""
        subject, ledger = self.open[name], self.ledger
        if ledger.turns[-1].author == name:
            self.answer()
        prompt = ledger.next_prompt_ids(name)
        text = subject.renderer.decode(prompt)
        assert "SECRET" not in text
        assert [one for one in self.said if one not in text] == []
        earlier = [turn for turn in ledger.trajectory(name).samples() if turn.turns]
        if self.calls[name] and not ledger.trajectory(name).steps[-1].broke:
            before = [*self.calls[name][-1][0], *self.calls[name][-1][1]]
            assert prompt[: len(before)] == before
        assert sum(sum(sample.action_mask) for sample in earlier) == sum(len(ids) for _, ids in self.calls[name])
        ids = self.completion(subject, len(ledger.turns))
        parsed = ledger.add_completion(name, ids, [-1.0] * len(ids))
        self.calls[name].append((prompt, ids))
        self.waiting = [call.id for call in parsed.valid_tool_calls]

    def completion(self, subject: Model, number: int) -> list[int]:
        """A reply in other tokens than the encoder's."""
        choices = self.choices
        message: Json = {"role": "assistant", "content": ""}
        if choices.chance(40):
            count = 1 + choices.below(2) if subject.profile.parallel_calls else 1
            message["content"] = None if subject.profile.null_content_beside_calls else ""
            message["tool_calls"] = [
                {"id": f"functions.f:{number + index}", "type": "function", "function": {"name": "f", "arguments": {}}}
                for index in range(count)
            ]
        else:
            message["content"] = self.new_text()
        if subject.profile.opens_reasoning:
            message["reasoning_content"] = "Hm."
        question = Conversation([USER], TOOLS, add_generation_prompt=True)
        found = reply_tokens(subject.renderer, question, message)
        if found is None:
            return subject.renderer.tokenizer.encode_ordinary(str(message["content"]))
        return subject.segmenter.resegmented(found[1], Choices(bytes(choices.below(256) for _ in range(12))))

    def ask(self, name: str) -> None:
        """A vendor's model's turn: its request holds its own blocks as they came, and no one else's secrets."""
        api = self.models[name]
        assert isinstance(api, VendorApi)
        sent = json.dumps(self.ledger.request(name, {"model": "m"}).payload)
        assert [one for one in self.said if one not in sent] == []
        assert sent.count("SECRET") == sent.count(f"SECRET-{name}")
        for block in self.own[name]:
            assert json.dumps(block) in sent
        payload, blocks = PAYLOADS[name](self.choices, self.new_text(), len(self.ledger.turns))
        self.own[name] += blocks
        reply = api.read_reply(payload)
        self.ledger.add_reply(name, reply)
        self.waiting = [call["id"] for call in reply.message.get("tool_calls") or ()]


def _claude(choices: Choices, text: str, number: int) -> tuple[Json, list[Json]]:
    blocks: list[Json] = [{"type": "redacted_thinking", "data": "SECRET-claude"}, {"type": "text", "text": text}]
    calls = range(choices.below(3))
    blocks += [{"type": "tool_use", "id": f"toolu_{number}_{index}", "name": "f", "input": {}} for index in calls]
    return {"role": "assistant", "content": blocks}, blocks


def _gpt(choices: Choices, text: str, number: int) -> tuple[Json, list[Json]]:
    items: list[Json] = [
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "SECRET-gpt"},
        {"type": "message", "id": "msg", "role": "assistant", "content": [{"type": "output_text", "text": text}]},
    ]
    for index in range(choices.below(3)):
        call = {
            "type": "function_call",
            "id": "fc",
            "call_id": f"call_{number}_{index}",
            "name": "f",
            "arguments": "{ }",
        }
        items.append(call)
    return {"output": items}, items


def _gemini(choices: Choices, text: str, _: int) -> tuple[Json, list[Json]]:
    parts: list[Json] = [{"text": text, "thoughtSignature": "SECRET-gemini"}]
    parts += [{"functionCall": {"name": "f", "args": {}}} for _ in range(choices.below(3))]
    return {"candidates": [{"content": {"role": "model", "parts": parts}}]}, parts


def _chat(choices: Choices, text: str, number: int) -> tuple[Json, list[Json]]:
    message: Json = {"role": "assistant", "content": text, "reasoning_details": [{"data": "SECRET-chat"}]}
    calls = [
        {"id": f"call-{number}-{index}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for index in range(choices.below(3))
    ]
    if calls:
        message["tool_calls"] = calls
    return {"choices": [{"message": message}]}, calls


PAYLOADS: dict[str, Callable[[Choices, str, int], tuple[Json, list[Json]]]] = {
    "claude": _claude,
    "gpt": _gpt,
    "gemini": _gemini,
    "chat": _chat,
}


def check(session: Session) -> None:
    """Every sampled token stands where it was sampled, once, and only these are trained."""
    for name, calls in session.calls.items():
        expected = iter(calls)
        for sample in session.ledger.trajectory(name).samples():
            assert sample.exact
            mask = [False] * len(sample)
            for turn in sample.turns:
                prompt, ids = next(expected)
                assert sample.ids[: turn.start] == prompt
                assert sample.ids[turn.start : turn.end] == ids
                mask[turn.start : turn.end] = [True] * len(ids)
            assert sample.action_mask == mask
        assert next(expected, None) is None


@pytest.mark.parametrize("cast", CASTS, ids="+".join)
def test_random_sessions(cast: tuple[str, ...]) -> None:
    @EXAMPLES
    @given(decisions=st.binary(min_size=60, max_size=260))
    def keep_everything(decisions: bytes) -> None:
        session = Session(cast, Choices(decisions))
        session.run()
        check(session)

    keep_everything()


@pytest.mark.parametrize("cast", CASTS[:3], ids="+".join)
def test_a_stored_session_goes_on(cast: tuple[str, ...]) -> None:
    @EXAMPLES
    @given(decisions=st.binary(min_size=60, max_size=200))
    def go_on(decisions: bytes) -> None:
        kept, stored = Session(cast, Choices(decisions)), Session(cast, Choices(decisions), stores=True)
        for session in (kept, stored):
            session.run()
        check(stored)
        assert kept.calls == stored.calls
        assert kept.ledger.turns == stored.ledger.turns

    go_on()
