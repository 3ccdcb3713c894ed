"""Stored trajectories: without loss, and with clear words where they cannot be loaded."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from trajectory_support import ANSWER, CALL, RENDERER, RESULT, THOUGHT, USER, begun

from renderers import MessageTree, MissingExtraError, Trajectory, TrajectoryError, create_renderer
from renderers.trajectory import (
    from_json,
    from_table,
    read_parquet,
    samples_from_table,
    samples_to_table,
    to_json,
    to_table,
    write_parquet,
)

if TYPE_CHECKING:
    from pathlib import Path


def full() -> Trajectory:
    """A trajectory that holds something of everything."""
    trajectory = Trajectory(
        RENDERER, max_length=500, reserve=3, max_turns=9, side_arrays={"expert": -1, "weight": math.nan}
    )
    trajectory.begin(
        [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        tools=[{"type": "function", "function": {"name": "f", "parameters": {"maximum": 10**30}}}],
    )
    trajectory.add_completion(
        CALL,
        [-0.1, None, *[-1e-300] * (len(CALL) - 2)],
        sampled=[True] * (len(CALL) - 1) + [False],
        side={"expert": [[1, 2]] * len(CALL), "weight": [math.nan, 0.5] + [1e-7] * (len(CALL) - 2)},
    )
    trajectory.add_messages([RESULT])
    trajectory.add_completion(THOUGHT[:-1])
    trajectory.add_messages([USER])
    trajectory.add_reply({"role": "assistant", "content": "Hello.", "x": [10**30]})
    trajectory.replace_history([USER])
    trajectory.add_completion(ANSWER, [-0.5] * len(ANSWER))
    trajectory.reward = 0.1
    return trajectory


def shown(trajectory: Trajectory) -> list[str]:
    """Every field of its samples, NaN included."""
    return [
        repr([getattr(sample, name) for name in sample.__dataclass_fields__]) for sample in trajectory.samples()
    ] + [repr(trajectory.breaks), repr(trajectory.messages), repr(trajectory.tools), repr(trajectory.reward)]


def test_json_keeps_everything() -> None:
    trajectory = full()
    assert len(trajectory.samples()) == 3
    loaded = Trajectory.from_json(trajectory.to_json(), RENDERER)
    assert shown(loaded) == shown(trajectory)
    assert loaded.to_json() == trajectory.to_json()
    assert (loaded.max_length, loaded.reserve, loaded.max_turns) == (500, 3, 9)
    for one in (trajectory, loaded):
        assert one.add_messages([USER])
    assert loaded.next_prompt_ids == trajectory.next_prompt_ids


def test_parquet_keeps_everything(tmp_path: Path) -> None:
    tree = MessageTree()
    trajectories = [full(), Trajectory(RENDERER, tree=tree), full(), Trajectory(RENDERER, tree=tree)]
    for trajectory in trajectories[1::2]:
        trajectory.begin([USER])
    trajectories[1].add_completion(ANSWER)
    write_parquet(tmp_path / "t.parquet", trajectories)
    found = read_parquet(tmp_path / "t.parquet", RENDERER)
    # Those of one tree come together.
    assert list(map(shown, found)) == [shown(trajectories[number]) for number in (0, 1, 3, 2)]
    assert found[1].tree is found[2].tree
    assert found[1].tree.stored_tokens == tree.stored_tokens


def test_samples_as_a_table() -> None:
    samples = [*full().samples(), *begun().samples()]
    found = samples_from_table(samples_to_table(samples))
    for one, other in zip(samples, found, strict=True):
        assert repr([getattr(one, name) for name in one.__dataclass_fields__]) == repr(
            [getattr(other, name) for name in one.__dataclass_fields__]
        )
    assert samples_from_table(samples_to_table([])) == []


def test_a_session_stores_shared_tokens_once() -> None:
    trajectory = begun()
    trajectory.add_completion(ANSWER)
    retry = trajectory.fork(0)
    retry.add_completion(CALL)
    document = json.loads(to_json([trajectory, retry]))
    assert sum(len(node["ids"]) for node in document["nodes"]) == trajectory.tree.stored_tokens
    first, second = from_json(json.dumps(document), RENDERER)
    assert first.tree is second.tree
    assert second.samples()[0].ids == retry.samples()[0].ids
    with pytest.raises(TrajectoryError, match="of one tree, these have 2"):
        to_json([trajectory, begun()])
    with pytest.raises(TrajectoryError, match="holds 2 trajectories"):
        Trajectory.from_json(json.dumps(document), RENDERER)


def test_an_ended_or_empty_trajectory() -> None:
    ended = begun(max_turns=1)
    ended.add_completion(ANSWER)
    ended.add_messages([USER])
    loaded = Trajectory.from_json(ended.to_json(), RENDERER)
    assert loaded.ended_by == ended.ended_by
    empty = Trajectory.from_json(Trajectory(RENDERER).to_json(), RENDERER)
    assert empty.begin([USER])


@pytest.mark.parametrize(
    ("renderer", "problem"),
    [
        (create_renderer("golden:glm45"), "another family: qwen3, and this renderer has glm4.5"),
        (create_renderer("golden:qwen3", thinking_retention="all"), "another config: .*'thinking_retention': None"),
    ],
)
def test_another_renderer(renderer: Any, problem: str) -> None:
    with pytest.raises(TrajectoryError, match=problem):
        Trajectory.from_json(begun().to_json(), renderer)


def test_a_renderer_that_makes_other_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the fingerprint does not tell, such as another version of this library, is found before a token is lost."""
    trajectory = begun()
    trajectory.add_completion(ANSWER)
    loaded = Trajectory.from_json(trajectory.to_json(), RENDERER)
    render = RENDERER.render
    monkeypatch.setattr(RENDERER, "render", lambda _, **more: render([{"role": "user", "content": "no"}], **more))
    with pytest.raises(TrajectoryError, match="does not make the tokens that this trajectory holds"):
        loaded.add_messages([USER])
    assert loaded.samples() == trajectory.samples()


def _damaged(change: Any) -> str:
    document = json.loads(full().to_json())
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "no JSON"),
        ("[]", "no document of trajectories"),
        ('{"format": "other"}', "must be 'renderers-trajectories-1'"),
        (_damaged(lambda document: document.pop("nodes")), "damaged: KeyError"),
        (_damaged(lambda document: document["nodes"][0].update(parent=99)), "damaged: IndexError"),
        (_damaged(lambda document: document["nodes"][1]["ids"].pop()), "ids has .* entries for .* tokens"),
        (_damaged(lambda document: document["trajectories"][0]["steps"][0].update(messages="{")), "damaged: JSON"),
        (_damaged(lambda document: document["trajectories"][0].update(ended_by="x")), "damaged: ValueError"),
    ],
)
def test_damaged_documents(text: str, problem: str) -> None:
    with pytest.raises(TrajectoryError, match=problem):
        from_json(text, RENDERER)


def test_what_json_cannot_say() -> None:
    trajectory = begun(side_arrays={"expert": -1})
    trajectory.add_completion(ANSWER, side={"expert": [object()] * len(ANSWER)})
    with pytest.raises(TrajectoryError, match="side hold something that JSON cannot say"):
        trajectory.to_json()


def test_damaged_tables() -> None:
    table = to_table([begun()])
    row = {**table.to_pylist()[0], "trajectories": "{"}
    with pytest.raises(TrajectoryError, match="table is damaged"):
        from_table(pa.Table.from_pylist([row], schema=table.schema), RENDERER)
    with pytest.raises(TrajectoryError, match="no table of samples: it lacks the column 'action_mask'"):
        samples_from_table(table)


def test_tables_that_are_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrajectoryError, match="lacks the column 'format'"):
        from_table(pa.table({"nodes": []}), RENDERER)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="arrow"):
        to_table([begun()])
