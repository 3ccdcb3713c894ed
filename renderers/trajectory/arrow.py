"""Trajectories and samples as Arrow tables, and so as Parquet. Needs the extra `arrow`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import orjson

from renderers.errors import TrajectoryError
from renderers.labels import Owner
from renderers.optional import load_optional
from renderers.renderer import Renderer
from renderers.trajectory.document import FORMAT, from_document, load_break, to_document
from renderers.trajectory.sample import Approximation, Sample, Turn
from renderers.trajectory.trajectory import Trajectory


def to_table(trajectories: Iterable[Trajectory]) -> Any:
    """Trajectories as a `pyarrow.Table`, a row for each message tree: those of one session share it.

    Tokens, owners and logprobs are Arrow lists; messages and settings are JSON.

    Raises:
        MissingExtraError: pyarrow is not installed.
        TrajectoryError: messages, tools or side arrays hold something that JSON cannot say.
    """
    pa = _pyarrow()
    sessions: dict[int, list[Trajectory]] = {}
    for trajectory in trajectories:
        sessions.setdefault(id(trajectory.tree), []).append(trajectory)
    documents = [to_document(session) for session in sessions.values()]
    rows = [
        {
            "format": document["format"],
            "nodes": [_node_row(node) for node in document["nodes"]],
            "trajectories": orjson.dumps(document["trajectories"]).decode(),
        }
        for document in documents
    ]
    return pa.Table.from_pylist(rows, schema=_trajectory_schema(pa))


def from_table(table: Any, renderer: Renderer[Any]) -> list[Trajectory]:
    """The trajectories of `to_table`, for the renderer that they were recorded with; those of a row share their tree.

    Raises:
        TrajectoryError: the table is not such a table, or was recorded with another renderer.
    """
    missing = {"format", "nodes", "trajectories"} - set(table.column_names)
    if missing:
        raise TrajectoryError(f"this is no table of trajectories: it lacks the column {min(missing)!r}")
    found: list[Trajectory] = []
    for row in table.to_pylist():
        try:
            nodes, trajectories = [_node(node) for node in row["nodes"]], orjson.loads(row["trajectories"])
        except (TypeError, KeyError, ValueError) as error:
            raise TrajectoryError(f"the table is damaged: {error!r}") from None
        document = {"format": row["format"], "nodes": nodes, "trajectories": trajectories}
        found += from_document(document, renderer)
    return found


def write_parquet(path: str | Path, trajectories: Iterable[Trajectory]) -> None:
    """Write trajectories to a Parquet file; see `to_table`."""
    load_optional("pyarrow.parquet", "arrow", "Parquet files").write_table(to_table(trajectories), path)


def read_parquet(path: str | Path, renderer: Renderer[Any]) -> list[Trajectory]:
    """The trajectories of a Parquet file; see `from_table`."""
    return from_table(load_optional("pyarrow.parquet", "arrow", "Parquet files").read_table(path), renderer)


def samples_to_table(samples: Iterable[Sample]) -> Any:
    """Samples as a `pyarrow.Table`, a row each, for a trainer in another process.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    pa = _pyarrow()
    rows = [
        {
            "ids": sample.ids,
            "action_mask": sample.action_mask,
            "logprobs": sample.logprobs,
            "owners": [owner.value for owner in sample.owners],
            "turn_ids": sample.turn_ids,
            "turns": [asdict(turn) for turn in sample.turns],
            "reward": sample.reward,
            "approximations": [asdict(one) for one in sample.approximations],
            "side": json.dumps(sample.side),
            "side_padding": json.dumps(sample.side_padding),
            "began_with": None if sample.began_with is None else json.dumps(asdict(sample.began_with)),
            "truncated": sample.truncated,
        }
        for sample in samples
    ]
    return pa.Table.from_pylist(rows, schema=_sample_schema(pa))


def samples_from_table(table: Any) -> list[Sample]:
    """The samples of `samples_to_table`.

    Raises:
        TrajectoryError: the table is not such a table.
    """
    missing = sorted({field.name for field in fields(Sample)} - set(table.column_names))
    if missing:
        raise TrajectoryError(f"this is no table of samples: it lacks the column {missing[0]!r}")
    return [
        Sample(
            ids=row["ids"],
            action_mask=row["action_mask"],
            logprobs=row["logprobs"],
            owners=[Owner(owner) for owner in row["owners"]],
            turn_ids=row["turn_ids"],
            turns=tuple(Turn(**turn) for turn in row["turns"]),
            reward=row["reward"],
            approximations=tuple(
                Approximation(one["start"], one["end"], tuple(one["what"])) for one in row["approximations"]
            ),
            side=json.loads(row["side"]),
            side_padding=json.loads(row["side_padding"]),
            began_with=None if row["began_with"] is None else load_break(json.loads(row["began_with"])),
            truncated=row["truncated"],
        )
        for row in table.to_pylist()
    ]


def _node_row(node: dict[str, Any]) -> dict[str, Any]:
    counts, labels = zip(*node["owners"], strict=True) if node["owners"] else ((), ())
    return {**node, "owners": {"counts": counts, "labels": labels}}


def _node(row: dict[str, Any]) -> dict[str, Any]:
    owners = list(zip(row["owners"]["counts"], row["owners"]["labels"], strict=True))
    return {**row, "owners": owners}


def _pyarrow() -> Any:
    return load_optional("pyarrow", "arrow", "an Arrow table")


def _trajectory_schema(pa: Any) -> Any:
    completion = {
        "digest": pa.string(),
        "truncated": pa.bool_(),
        "logprobs": pa.list_(pa.float64()),
        "sampled": pa.list_(pa.bool_()),
        "approximated": pa.list_(pa.string()),
        "side": pa.string(),
    }
    node = {
        "parent": pa.int64(),
        "ids": pa.list_(pa.int64()),
        "owners": pa.struct({"counts": pa.list_(pa.int64()), "labels": pa.list_(pa.int64())}),
        "role": pa.string(),
        "completion": pa.struct(completion),
    }
    columns = {"format": pa.string(), "nodes": pa.list_(pa.struct(node)), "trajectories": pa.string()}
    return pa.schema(columns, metadata={"format": FORMAT})


def _sample_schema(pa: Any) -> Any:
    turn = {"start": pa.int64(), "end": pa.int64(), "truncated": pa.bool_(), "digest": pa.string()}
    approximation = {"start": pa.int64(), "end": pa.int64(), "what": pa.list_(pa.string())}
    return pa.schema(
        {
            "ids": pa.list_(pa.int64()),
            "action_mask": pa.list_(pa.bool_()),
            "logprobs": pa.list_(pa.float64()),
            "owners": pa.list_(pa.dictionary(pa.int8(), pa.string())),
            "turn_ids": pa.list_(pa.int64()),
            "turns": pa.list_(pa.struct(turn)),
            "reward": pa.float64(),
            "approximations": pa.list_(pa.struct(approximation)),
            "side": pa.string(),
            "side_padding": pa.string(),
            "began_with": pa.string(),
            "truncated": pa.bool_(),
        }
    )
