"""Trajectories as plain data, without loss: a loaded one goes on where the stored one stopped.

What is stored is the tree's nodes, each once, and the steps of every trajectory. The prompts' state is not: the renderer
makes it again from the messages when it is wanted, and must arrive at exactly the stored tokens.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from renderers.errors import TrajectoryError
from renderers.labels import Runs
from renderers.refusal import RefusalReason
from renderers.renderer import Renderer
from renderers.trajectory.breaks import Break, BreakReason, Limit
from renderers.trajectory.completion import Completion
from renderers.trajectory.steps import Step
from renderers.trajectory.trajectory import Trajectory
from renderers.trajectory.tree import MessageTree, Node

FORMAT = "renderers-trajectories-1"
_ROOT = -1


def to_json(trajectories: Sequence[Trajectory]) -> str:
    """Trajectories of one session as one JSON text.

    Raises:
        TrajectoryError: they are not of one tree, or hold something that JSON cannot say.
    """
    return orjson.dumps(to_document(trajectories)).decode()


def from_json(text: str | bytes, renderer: Renderer[Any]) -> list[Trajectory]:
    """The trajectories of `to_json`, of one tree, for the renderer that they were recorded with.

    Raises:
        TrajectoryError: the text is not such a document, or was recorded with another renderer.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise TrajectoryError(f"this is no JSON: {error}") from None
    return from_document(document, renderer)


def to_document(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """Trajectories of one session as data that JSON can say. Messages, tools and side arrays are JSON texts in it.

    Raises:
        TrajectoryError: see `to_json`.
    """
    trees = {id(trajectory.tree): trajectory.tree for trajectory in trajectories}
    if len(trees) != 1:
        raise TrajectoryError(f"one document holds the trajectories of one tree, these have {len(trees)}")
    [tree] = trees.values()
    numbers = {id(tree.root): _ROOT}
    nodes: list[dict[str, Any]] = []
    for trajectory in trajectories:
        for step in trajectory.steps:
            for node in step.tip.path():
                if id(node) not in numbers:
                    numbers[id(node)] = len(nodes)
                    nodes.append(_dump_node(node, numbers))
    return {
        "format": FORMAT,
        "nodes": nodes,
        "trajectories": [_dump_trajectory(trajectory, numbers) for trajectory in trajectories],
    }


def from_document(document: Mapping[str, Any], renderer: Renderer[Any]) -> list[Trajectory]:
    """The trajectories of `to_document`.

    Raises:
        TrajectoryError: see `from_json`.
    """
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise TrajectoryError(f"this is no document of trajectories: its `format` must be {FORMAT!r}")
    try:
        tree = MessageTree()
        nodes: list[Node] = []
        for stored in document["nodes"]:
            parent = tree.root if stored["parent"] == _ROOT else nodes[stored["parent"]]
            nodes.append(_load_node(stored, parent))
        return [_load_trajectory(stored, renderer, tree, nodes) for stored in document["trajectories"]]
    except TrajectoryError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise TrajectoryError(f"the document is damaged: {error!r}") from error


def identity(renderer: Renderer[Any]) -> dict[str, Any]:
    """What decides the tokens that a renderer makes, whichever library encodes."""
    return {
        "family": renderer.family,
        "config": renderer.config.model_dump(mode="json"),
        "tokenizer_sha256": renderer.tokenizer.fingerprint(),
    }


def _dump_node(node: Node, numbers: Mapping[int, int]) -> dict[str, Any]:
    stored = {
        "parent": numbers[id(node.parent)],
        "ids": node.ids,
        "owners": [[count, label] for count, label in node.owners.items()],
        "role": node.role,
    }
    completion = node.completion
    if completion is not None:
        stored["completion"] = {
            "digest": completion.digest,
            "truncated": completion.truncated,
            "logprobs": None if completion.logprobs is None else completion.logprobs.tolist(),
            "sampled": completion.sampled,
            "approximated": list(completion.approximated),
            "side": _text(completion.side, "side"),
        }
    return stored


def _load_node(stored: Mapping[str, Any], parent: Node) -> Node:
    owners = Runs()
    for count, label in stored["owners"]:
        owners.add(count, label)
    ids = tuple(stored["ids"])
    return parent.grown([ids] if ids else [], owners, stored["role"], _load_completion(stored.get("completion")))


def _load_completion(stored: Mapping[str, Any] | None) -> Completion | None:
    if stored is None:
        return None
    logprobs = stored["logprobs"]
    return Completion(
        digest=stored["digest"],
        truncated=stored["truncated"],
        logprobs=None
        if logprobs is None
        else array("d", [float("nan") if value is None else value for value in logprobs]),  # JSON has no NaN
        sampled=stored["sampled"],
        approximated=tuple(stored["approximated"]),
        side=json.loads(stored["side"]),
    )


def _dump_trajectory(trajectory: Trajectory, numbers: Mapping[int, int]) -> dict[str, Any]:
    return {
        "renderer": _text(identity(trajectory.renderer), "config"),
        "max_length": trajectory.max_length,
        "reserve": trajectory.reserve,
        "max_turns": trajectory.max_turns,
        "side_arrays": _text(trajectory.side_arrays, "side_arrays"),
        "reward": trajectory.reward,
        "ended_by": trajectory.ended_by,
        "inherited": trajectory.inherited,
        "steps": [_dump_step(step, numbers) for step in trajectory.steps],
    }


def _load_trajectory(
    stored: Mapping[str, Any], renderer: Renderer[Any], tree: MessageTree, nodes: Sequence[Node]
) -> Trajectory:
    recorded, given = json.loads(stored["renderer"]), json.loads(_text(identity(renderer), "config"))
    for name, value in recorded.items():
        if given.get(name) != value:
            raise TrajectoryError(
                f"the trajectory was recorded with another {name.partition('_')[0]}: {value}, and this renderer has "
                f"{given.get(name)}"
            )
    trajectory = Trajectory(
        renderer,
        tree=tree,
        max_length=stored["max_length"],
        reserve=stored["reserve"],
        max_turns=stored["max_turns"],
        side_arrays=json.loads(stored["side_arrays"]),
    )
    trajectory.reward = stored["reward"]
    ended_by = None if stored["ended_by"] is None else Limit(stored["ended_by"])
    trajectory.restore([_load_step(one, nodes) for one in stored["steps"]], ended_by, stored["inherited"])
    return trajectory


def _dump_step(step: Step, numbers: Mapping[int, int]) -> dict[str, Any]:
    return {
        "messages": _text(step.messages, "messages"),
        "tools": _text(step.tools, "tools"),
        "end": numbers[id(step.end)],
        "restarts": step.restarts,
        "rendered": step.rendered,
        "foreign": step.foreign,
        "broke": None if step.broke is None else asdict(step.broke),
        "completion": None if step.completion is None else numbers[id(step.completion)],
        "reply": None if step.reply is None else _text(step.reply, "reply"),
        "own": step.own,
    }


def _load_step(stored: Mapping[str, Any], nodes: Sequence[Node]) -> Step:
    broke, reply, completion = stored["broke"], stored["reply"], stored["completion"]
    return Step(
        messages=json.loads(stored["messages"]),
        tools=json.loads(stored["tools"]),
        end=nodes[stored["end"]],
        restarts=stored["restarts"],
        rendered=stored["rendered"],
        foreign=stored["foreign"],
        broke=None if broke is None else load_break(broke),
        completion=None if completion is None else nodes[completion],
        reply=None if reply is None else json.loads(reply),
        own=stored["own"],
    )


def load_break(stored: Mapping[str, Any]) -> Break:
    """The break of `asdict`."""
    name = stored["reason"]
    known = {reason.value: reason for reason in BreakReason}
    return Break(**{**stored, "reason": known.get(name) or RefusalReason(name)})


def _text(value: object, what: str) -> str:
    """JSON by the standard module: it keeps integers of any size, and NaN."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TrajectoryError(f"{what} hold something that JSON cannot say: {error}") from None
