"""What a report is made of: lines, objects and trajectories; bad ones are named, and the rest is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from renderers import ConversationError, Trajectory, create_renderer
from renderers.retention import Failure, retention_report
from renderers.retention.conversations import Item, items_in, read_conversations
from renderers.trajectory import to_json

QUESTION = {"role": "user", "content": "2+2?"}
ANSWER = {"role": "assistant", "content": "4", "reasoning_content": "Easy."}
CHAT = [QUESTION, ANSWER, QUESTION, ANSWER]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def renderer() -> Any:
    return create_renderer("golden:qwen3")


def write(path: Path, *lines: Any) -> Path:
    """A file of lines: bytes as they are, everything else as JSON."""
    path.write_bytes(
        b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    )
    return path


def test_lines_are_numbered_as_an_editor_numbers_them(tmp_path: Path) -> None:
    path = write(tmp_path / "chats.jsonl", CHAT, b"", b"  \t", {"messages": CHAT, "tools": [TOOL]})
    items = list(items_in(path))
    assert [item.line for item in items] == [1, 4]
    assert [read_conversations(item)[0].tools for item in items] == [None, [TOOL]]
    assert sum(item.size for item in items) < path.stat().st_size


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (b'[{"role": "user"', "no JSON: Expecting ',' delimiter at character 17"),
        (b"\xff", "no JSON: 'utf-8'"),
        (b"[" * 100_000, "no JSON: "),
        (b'{"messages": 1' + b"1" * 5000 + b"}", "no JSON: "),
        (b'"text"', "a conversation is a list of messages, found str"),
        (b"null", "found NoneType"),
        (b'{"prompt": "x"}', 'an object needs "messages", found prompt'),
        (b"{}", "found nothing"),
        (b'{"messages": null}', "found NoneType"),
        (b"[1]", "messages[0]"),
        (b'[{"role": "narrator"}]', "messages[0].role"),
        (b'[{"role": "user", "content": "hi"}, {"role": "assistant", "content": 3}]', "messages[1].content"),
        (b'{"messages": [{"role": "user", "content": "hi"}], "tools": [3]}', "tools[0]"),
        (b"[]", "no assistant message follows another"),
        (b'[{"role": "user", "content": "hi"}]', "no assistant message follows another"),
        (b'[{"role": "assistant", "content": "hi"}]', "no assistant message follows another"),
        (b'{"format": "renderers-trajectories-0"}', "trajectories have the format"),
        (b'{"format": "renderers-trajectories-1", "trajectories": [{"steps": [{}]}]}', "a damaged document"),
        (b'{"format": "renderers-trajectories-1", "trajectories": []}', "no assistant message follows another"),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_kept(renderer: Any, tmp_path: Path, given: bytes, problem: str) -> None:
    path = write(tmp_path / "chats.jsonl", CHAT, given, CHAT)
    report = retention_report(path, renderer)
    [failure] = report.failures
    assert (failure.line, failure.model) == (2, None)
    assert problem in failure.problem
    assert (report.conversations, report.failed) == (3, 1)
    assert report.models[0].policies[None].conversations == 2
    with pytest.raises(ConversationError, match=r"^line 2: ") as raised:
        retention_report(path, renderer, strict=True)
    assert raised.value.report.models[0].policies[None].conversations == 1


def test_a_line_cut_off_at_the_end_of_the_file(renderer: Any, tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps(CHAT) + "\n" + json.dumps(CHAT)[:40], encoding="utf-8")
    report = retention_report(str(path), renderer)
    assert [failure.line for failure in report.failures] == [2]
    assert report.models[0].policies["all"].conversations == 1


def test_what_one_model_cannot_take_is_left_out_of_its_figures_alone(renderer: Any) -> None:
    late_system = [QUESTION, ANSWER, {"role": "system", "content": "Be brief."}, QUESTION, ANSWER]
    report = retention_report([CHAT, late_system], {"one": renderer, "other": create_renderer("golden:qwen3.5")})
    [failure] = report.failures
    assert (failure.line, failure.model) == (2, "other")
    assert str(failure).endswith("(other)")
    assert "system" in failure.problem
    assert [model.policies[None].conversations for model in report.models] == [2, 1]


def test_only_the_first_failures_are_kept(renderer: Any) -> None:
    report = retention_report((number for number in range(250)), renderer)
    assert report.failed == 250
    assert [failure.line for failure in report.failures] == list(range(1, 101))
    assert report.failures[0] == Failure(1, "a conversation is a list of messages, found int")


def test_nothing_to_report_on(renderer: Any, tmp_path: Path) -> None:
    with pytest.raises(ConversationError, match="no conversations"):
        retention_report(write(tmp_path / "chats.jsonl", b""), renderer)
    with pytest.raises(FileNotFoundError):
        retention_report(tmp_path / "missing.jsonl", renderer)


def test_conversations_are_read_one_by_one(renderer: Any) -> None:
    """However long the stream, only a few of its conversations are at hand."""
    from renderers.retention.report import make_study
    from renderers.retention.running import tallies

    taken = 0

    def endless() -> Iterator[Item]:
        nonlocal taken
        while True:
            taken += 1
            yield Item(taken, CHAT)

    found = tallies(make_study(renderer), endless(), workers=1)
    for count in range(1, 4):
        next(found)
        assert taken == 16 * count
    found.close()


def test_arguments_keep_long_integers() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": {"x": 2**70}}}
    line = json.dumps([QUESTION, {"role": "assistant", "content": "", "tool_calls": [call]}]).encode()
    [conversation] = read_conversations(Item(1, line))
    assert conversation.messages[1]["tool_calls"][0]["function"]["arguments"] == {"x": 2**70}


def sampled(renderer: Any, text: str) -> list[int]:
    special = renderer.tokenizer.special_tokens
    return [*renderer.tokenizer.encode_ordinary(text), special["<|im_end|>"]]


def test_trajectories(renderer: Any) -> None:
    """A fork counts what it sampled itself, and a replaced history is a conversation of its own."""
    trajectory = Trajectory(renderer)
    trajectory.begin([QUESTION], tools=[TOOL])
    trajectory.add_completion(sampled(renderer, "4"))
    trajectory.add_messages([QUESTION])
    fork = trajectory.fork()
    trajectory.add_completion(sampled(renderer, "four"))
    fork.add_completion(sampled(renderer, "FOUR"))
    trajectory.replace_history([QUESTION, ANSWER, QUESTION])
    trajectory.add_completion(sampled(renderer, "4 again"))
    line = to_json([trajectory, fork]).encode()
    found = read_conversations(Item(1, line))
    assert [[one.messages[place]["content"] for place in one.replies] for one in found] == [
        ["4", "four"],
        ["4 again"],
        ["FOUR"],
    ]
    assert found[0].tools == [TOOL]
    report = retention_report([json.loads(line)], create_renderer("golden:glm45"))
    assert report.conversations == 3
    assert report.models[0].policies["all"].turns == 4
