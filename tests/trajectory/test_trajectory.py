"""A trajectory's calls, one by one: what they do, and what they refuse."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from trajectory_support import ANSWER, CALL, OTHERWISE, RENDERER, RESULT, THOUGHT, USER, begun, ids_of

from renderers import (
    BridgeRefusal,
    ConfigError,
    MessageError,
    MessageTree,
    Owner,
    RefusalReason,
    RenderedTokens,
    RendererError,
    TokenIdsError,
    TokenIdsTypeError,
    Trajectory,
    TrajectoryError,
    create_renderer,
)
from renderers.renderer import DamageWarning
from renderers.trajectory import BreakReason, Limit


def test_turns_are_bridged() -> None:
    trajectory = begun()
    first = trajectory.next_prompt_ids
    reply = trajectory.add_completion(CALL, [-0.5] * len(CALL))
    assert [call.name for call in reply.valid_tool_calls] == ["f"]
    assert trajectory.add_messages([RESULT])
    second = trajectory.next_prompt_ids
    assert second[: len(first) + len(CALL)] == first + CALL
    assert trajectory.extension_ids == second[len(first) + len(CALL) :]
    trajectory.add_completion(ANSWER, [-0.25] * len(ANSWER))
    [sample] = trajectory.samples()
    assert sample.ids == second + ANSWER
    assert [sample.ids[turn.start : turn.end] for turn in sample.turns] == [CALL, ANSWER]
    assert sample.turn_ids == [-1] * len(first) + [0] * (len(second) - len(first)) + [1] * len(ANSWER)
    assert sample.logprobs[len(first)] == -0.5
    assert sample.exact
    assert trajectory.break_reasons == []
    assert trajectory.messages == [
        USER,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        RESULT,
        {"role": "assistant", "content": "Hello."},
    ]


def test_a_refused_bridge_begins_another_sample() -> None:
    trajectory = begun()
    trajectory.add_completion(THOUGHT, [-0.5] * len(THOUGHT))
    assert trajectory.add_messages([USER])
    assert trajectory.extension_ids == trajectory.next_prompt_ids
    trajectory.add_completion(ANSWER, [-0.25] * len(ANSWER))
    [broke] = trajectory.breaks
    assert (broke.turn, broke.reason) == (1, RefusalReason.RETENTION)
    assert "reasoning" in broke.detail
    assert broke.kept_tokens + broke.lost_tokens == len(trajectory.samples()[0])
    first, second = trajectory.samples()
    assert first.began_with is None
    assert second.began_with == broke
    assert [sum(sample.action_mask) for sample in (first, second)] == [len(THOUGHT), len(ANSWER)]
    # "Hello." of the first reply is context in the second sample, and nobody's policy.
    assert Owner.POLICY not in second.owners[: -len(ANSWER)]
    assert second.turn_ids[: -len(ANSWER)] == [-1] * (len(second) - len(ANSWER))


def test_a_render_that_continues_the_tokens_breaks_nothing() -> None:
    from trajectory_support import model

    renderer = model("default").renderer
    trajectory = Trajectory(renderer)
    trajectory.begin([USER])
    for _ in range(3):
        trajectory.add_completion(ANSWER, [0.0] * len(ANSWER))
        trajectory.add_messages([USER])
    assert trajectory.breaks == []
    assert len(trajectory.samples()) == 1
    # In other tokens than the encoder's it does not continue them.
    trajectory.add_completion(OTHERWISE, [0.0] * len(OTHERWISE))
    trajectory.add_messages([USER])
    assert trajectory.break_reasons == ["unknown_history"]


def test_assistant_messages_are_rendered() -> None:
    trajectory = begun()
    trajectory.add_completion(OTHERWISE)
    trajectory.add_messages([{"role": "assistant", "content": "By the way"}, USER])
    assert trajectory.break_reasons == ["assistant_message"]


def test_messages_may_come_one_after_another() -> None:
    together, apart = begun(), begun()
    for trajectory in (together, apart):
        trajectory.add_completion(CALL)
    second = {**RESULT, "content": "19 C"}
    together.add_messages([RESULT, second])
    apart.add_messages([RESULT])
    apart.add_messages([second])
    assert apart.next_prompt_ids == together.next_prompt_ids
    assert apart.messages == together.messages
    fresh = Trajectory(RENDERER)
    fresh.begin([USER])
    fresh.add_messages([USER])
    assert fresh.next_prompt_ids == RENDERER.render_ids([USER, USER], add_generation_prompt=True)
    assert fresh.turns == 0


def test_a_completion_without_its_stop_token_is_truncated() -> None:
    trajectory = begun()
    trajectory.add_completion(ANSWER[:-1])
    assert trajectory.truncated
    trajectory.add_messages([USER])
    assert not trajectory.break_reasons
    stop = ANSWER[-1]
    assert trajectory.extension_ids[0] == stop  # the close that the model did not sample
    trajectory.add_completion(ANSWER)
    assert not trajectory.truncated
    [sample] = trajectory.samples()
    assert [turn.truncated for turn in sample.turns] == [True, False]
    assert sample.owners[sample.turns[0].end] is Owner.TEMPLATE


@pytest.mark.parametrize(("stopped", "truncated"), [(True, False), (False, True), (None, True)])
def test_the_engines_word_on_stripped_stop_tokens(stopped: bool | None, truncated: bool) -> None:
    trajectory = begun()
    reply = trajectory.add_completion(ANSWER[:-1], stopped=stopped)
    assert (reply.stop is None) == truncated
    assert trajectory.truncated == truncated


def test_forced_tokens_are_the_templates() -> None:
    trajectory = begun()
    mask = [True] * 3 + [False] * (len(THOUGHT) - 3)
    trajectory.add_completion(THOUGHT, [-0.5] * 3 + [float("nan")] * (len(THOUGHT) - 3), sampled=mask)
    [sample] = trajectory.samples()
    assert sample.action_mask[-len(THOUGHT) :] == mask
    assert sample.owners[-len(THOUGHT) :] == [Owner.POLICY] * 3 + [Owner.TEMPLATE] * (len(THOUGHT) - 3)
    assert sample.logprobs[-len(THOUGHT) :] == [-0.5] * 3 + [0.0] * (len(THOUGHT) - 3)
    assert sample.missing_logprobs == 0


def test_missing_logprobs_are_not_zero() -> None:
    trajectory = begun()
    trajectory.add_completion(ANSWER, [None, *[-0.5] * (len(ANSWER) - 1)])
    [sample] = trajectory.samples()
    assert math.isnan(sample.logprobs[-len(ANSWER)])
    assert sample.missing_logprobs == 1
    bare = begun()
    bare.add_completion(ANSWER)
    assert bare.samples()[0].missing_logprobs == len(ANSWER)


def test_arrays_are_taken() -> None:
    trajectory = begun(side_arrays={"expert": -1})
    trajectory.add_completion(
        np.array(ANSWER),
        np.full(len(ANSWER), -0.5, np.float32),  # type: ignore[arg-type]  # arrays come from engines
        sampled=np.ones(len(ANSWER), np.bool_),  # type: ignore[arg-type]  # the same
        side={"expert": np.arange(2 * len(ANSWER)).reshape(-1, 2)},  # type: ignore[dict-item]  # the same
    )
    [sample] = trajectory.samples()
    assert sample.ids[-len(ANSWER) :] == ANSWER
    assert sample.side["expert"][-1] == [2 * len(ANSWER) - 2, 2 * len(ANSWER) - 1]
    assert sample.side["expert"][0] is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"logprobs": [-1.0]}, "logprobs has 1 values for 3 tokens"),
        ({"logprobs": [0.5, 0.5, 0.5]}, "give logprobs, not probabilities"),
        ({"logprobs": [-1.0, float("-inf"), -1.0]}, r"logprobs\[1\] is -inf"),
        ({"logprobs": [-1.0, "x", -1.0]}, r"logprobs\[1\] is 'x', not a number"),
        ({"logprobs": 3}, "logprobs is of type int"),
        ({"sampled": [True]}, "sampled has 1 values for 3 tokens"),
        ({"sampled": [True, 2, True]}, r"sampled\[1\] is 2"),
        ({"side": {"weights": [1, 2, 3]}}, "'weights' was not declared .declared: expert"),
        ({"side": {"expert": [1]}}, r"side\['expert'\] has 1 values for 3 tokens"),
    ],
)
def test_values_that_do_not_fit_add_nothing(arguments: dict[str, Any], problem: str) -> None:
    trajectory = begun(side_arrays={"expert": -1})
    prompt = trajectory.next_prompt_ids
    with pytest.raises(TrajectoryError, match=problem):
        trajectory.add_completion(ANSWER, **arguments)
    assert trajectory.next_prompt_ids == prompt
    assert trajectory.samples() == []


@pytest.mark.parametrize(
    ("ids", "error"), [("text", TokenIdsTypeError), ([1.5], TokenIdsTypeError), ([-1], TokenIdsError), ([1 << 70], TokenIdsError)]
)  # fmt: skip
def test_what_cannot_be_token_ids(ids: Any, error: type[Exception]) -> None:
    trajectory = begun()
    with pytest.raises(error):
        trajectory.add_completion(ids)
    assert trajectory.turns == 0


def test_calls_out_of_turn() -> None:
    trajectory = Trajectory(RENDERER)
    for call in (
        lambda: trajectory.next_prompt_ids,
        lambda: trajectory.add_completion(ANSWER),
        lambda: trajectory.add_messages([USER]),
        lambda: trajectory.replace_history([USER]),
        lambda: trajectory.fork(0),
    ):
        with pytest.raises(TrajectoryError, match=r"begin|no turn 0"):
            call()
    trajectory.begin([USER])
    with pytest.raises(TrajectoryError, match="replace_history"):
        trajectory.begin([USER])
    trajectory.add_completion(ANSWER)
    for call in (lambda: trajectory.next_prompt_ids, lambda: trajectory.add_completion(ANSWER)):
        with pytest.raises(TrajectoryError, match="add_messages"):
            call()
    with pytest.raises(MessageError, match="no new messages"):
        trajectory.add_messages([])
    with pytest.raises(MessageError):
        trajectory.add_messages([{"role": "nobody"}])
    assert trajectory.turns == 1


@pytest.mark.parametrize(
    "settings",
    [{"max_length": 0}, {"max_length": True}, {"max_turns": 0}, {"reserve": -1, "max_length": 9}, {"reserve": 5}],
)
def test_limits_that_make_no_sense(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"max_length|max_turns|reserve"):
        Trajectory(RENDERER, **settings)


def test_messages_that_do_not_fit_end_the_trajectory() -> None:
    free = begun()
    free.add_completion(ANSWER)
    held = len(free)
    free.add_messages([USER])
    needed = len(free)
    for reserve in (0, 4):
        fits = begun(max_length=needed + reserve, reserve=reserve)
        fits.add_completion(ANSWER)
        assert fits.add_messages([USER])
        assert fits.max_new_tokens == reserve
        tight = begun(max_length=needed + reserve - 1, reserve=reserve)
        tight.add_completion(ANSWER)
        messages = tight.messages
        assert not tight.add_messages([USER])
        assert (len(tight), tight.messages, tight.turns) == (held, messages, 1)
        assert tight.ended_by is Limit.MAX_LENGTH
        assert tight.truncated
        [sample] = tight.samples()
        assert sample.truncated
        assert len(sample) == held
        with pytest.raises(TrajectoryError, match="ended by max_length"):
            _ = tight.next_prompt_ids
        with pytest.raises(TrajectoryError, match="ended by max_length"):
            tight.add_messages([USER])


def test_a_compacted_history_revives_a_trajectory_that_was_full() -> None:
    trajectory = begun(max_length=24)
    trajectory.add_completion(ids_of("Hello hello hello<|im_end|>"))
    assert not trajectory.add_messages([{"role": "user", "content": "hi " * 30}])
    assert trajectory.replace_history([USER])
    assert trajectory.ended_by is None
    assert trajectory.break_reasons == ["replaced_history"]
    trajectory.add_completion(ANSWER)
    assert len(trajectory.samples()) == 2


def test_a_first_prompt_that_does_not_fit() -> None:
    trajectory = Trajectory(RENDERER, max_length=5)
    assert not trajectory.begin([USER])
    assert trajectory.ended_by is Limit.MAX_LENGTH
    assert trajectory.samples() == []
    with pytest.raises(TrajectoryError, match="ended by max_length"):
        _ = trajectory.next_prompt_ids


def test_the_last_turn() -> None:
    trajectory = begun(max_turns=1)
    trajectory.add_completion(ANSWER)
    assert not trajectory.add_messages([USER])
    assert trajectory.ended_by is Limit.MAX_TURNS
    with pytest.raises(TrajectoryError, match="max_turns"):
        trajectory.replace_history([USER])


def test_a_completion_beyond_the_limit_is_kept() -> None:
    trajectory = begun(max_length=12)
    trajectory.add_completion(THOUGHT)
    assert trajectory.samples()[0].ids[-len(THOUGHT) :] == THOUGHT


def test_replacing_the_history_is_a_break_and_shares_what_is_alike() -> None:
    trajectory = begun()
    trajectory.add_completion(CALL)
    trajectory.add_messages([RESULT])
    before = trajectory.tree.stored_tokens
    trajectory.replace_history([USER])
    assert trajectory.next_prompt_ids == RENDERER.render_ids([USER], add_generation_prompt=True)
    assert trajectory.tree.stored_tokens == before
    [broke] = trajectory.breaks
    assert broke.reason is BreakReason.REPLACED_HISTORY
    assert broke.kept_tokens == len(trajectory.next_prompt_ids)


def test_a_prompt_that_nothing_answered_is_forgotten() -> None:
    trajectory = begun(max_turns=1)
    assert trajectory.replace_history([USER, USER])  # nothing was sampled: no turn is used up, and nothing breaks
    assert trajectory.breaks == []
    trajectory.add_completion(ANSWER)
    retry = trajectory.fork(0)
    retry.replace_history([USER])
    assert retry.breaks == []
    later = begun()
    later.add_completion(ANSWER)
    later.add_messages([USER])
    later.replace_history([USER])
    assert (later.turns, later.break_reasons) == (1, ["replaced_history"])
    later.add_completion(CALL)
    assert later.fork(1).turns == 1


def test_rewards_are_numbers() -> None:
    trajectory = begun()
    trajectory.reward = np.float32(0.5)  # type: ignore[assignment]  # what reward functions give
    assert trajectory.reward == 0.5
    assert type(trajectory.reward) is float
    for value in ("x", float("nan"), float("inf"), [1, 2]):
        with pytest.raises(TrajectoryError, match="reward is"):
            trajectory.reward = value  # type: ignore[assignment]  # what it refuses
    trajectory.reward = None


def test_tools_stay_or_are_replaced() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    trajectory = Trajectory(RENDERER)
    trajectory.begin([USER], tools=tools)
    assert trajectory.next_prompt_ids == RENDERER.render_ids([USER], tools=tools, add_generation_prompt=True)
    tools.clear()  # the caller's own list
    trajectory.add_completion(CALL)
    trajectory.replace_history([USER])
    assert trajectory.tools is not None
    assert trajectory.tools[0]["function"]["name"] == "f"
    trajectory.replace_history([USER], tools=[])
    assert trajectory.next_prompt_ids == RENDERER.render_ids([USER], add_generation_prompt=True)


def test_the_callers_messages_are_its_own() -> None:
    messages: list[dict[str, Any]] = [copy.deepcopy(USER)]
    trajectory = Trajectory(RENDERER)
    trajectory.begin(messages)
    messages[0]["content"] = "changed"
    trajectory.messages[0]["content"] = "changed"
    trajectory.add_completion(ANSWER)
    assert trajectory.messages[0] == USER


def test_a_retry_trains_only_what_it_sampled() -> None:
    trajectory = begun()
    trajectory.add_completion(CALL)
    trajectory.add_messages([RESULT])
    trajectory.add_completion(ANSWER)
    retry = trajectory.fork(1)
    assert retry.samples() == []
    other = ids_of("No.<|im_end|>")
    retry.add_completion(other)
    retry.reward = 1.0
    [sample] = retry.samples()
    assert (sum(sample.action_mask), sample.reward) == (len(other), 1.0)
    assert sample.ids[: -len(other)] == trajectory.samples()[0].ids[: -len(ANSWER)]
    assert trajectory.tree.stored_tokens == len(trajectory) + len(other)
    for turn in (-1, 5):
        with pytest.raises(TrajectoryError, match=f"no turn {turn}"):
            trajectory.fork(turn)


def test_a_sub_agent_shares_the_system_message() -> None:
    tree = MessageTree()
    system = {"role": "system", "content": "You are an agent."}
    main, sub = Trajectory(RENDERER, tree=tree), Trajectory(RENDERER, tree=tree)
    main.begin([system, USER])
    sub.begin([system, {"role": "user", "content": "other"}])
    shared = len(RENDERER.render_ids([system]))
    assert tree.stored_tokens == len(main) + len(sub) - shared
    assert main.samples() == sub.samples() == []


def test_one_tree_holds_one_tokenizers_tokens() -> None:
    tree = MessageTree()
    Trajectory(RENDERER, tree=tree)
    Trajectory(create_renderer("golden:qwen3", thinking_retention="all"), tree=tree)
    with pytest.raises(TrajectoryError, match="another one need another tree"):
        Trajectory(create_renderer("golden:glm45"), tree=tree)


def test_a_bridge_that_breaks_its_contract_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    trajectory = begun()
    trajectory.add_completion(ANSWER)

    def bridge(*_: Any, **__: Any) -> RenderedTokens | BridgeRefusal:
        return RENDERER.render([USER], add_generation_prompt=True)

    monkeypatch.setattr(RENDERER, "bridge", bridge)
    with pytest.raises(RendererError, match="must extend prompt and completion"):
        trajectory.add_messages([USER])
    assert trajectory.turns == 1


def test_it_pickles() -> None:
    trajectory = begun(max_turns=3)
    trajectory.add_completion(ANSWER, [-0.5] * len(ANSWER))
    other = pickle.loads(pickle.dumps(trajectory))  # noqa: S301 - our own bytes
    for one in (trajectory, other):
        one.add_messages([USER])
    assert other.next_prompt_ids == trajectory.next_prompt_ids
    assert other.max_turns == 3
    again = copy.deepcopy(trajectory)
    assert again.renderer is trajectory.renderer
    again.add_completion(ANSWER)
    assert (again.turns, trajectory.turns) == (2, 1)


def test_damage_is_the_renderers_to_warn_of() -> None:
    renderer = create_renderer("golden:glm45")
    trajectory = Trajectory(renderer)
    with pytest.warns(DamageWarning, match="dropped_message"):
        trajectory.begin([{"role": "developer", "content": "x"}, USER])


def test_reprs_are_short() -> None:
    trajectory = begun()
    trajectory.add_completion(ANSWER)
    assert repr(trajectory) == f"Trajectory(1 turns, 0 breaks, {len(trajectory)} tokens)"
    assert repr(trajectory.samples()[0]).startswith("Sample(")
    assert "nodes" in repr(trajectory.tree)
    assert "completion" in repr(trajectory.steps[0].completion)
