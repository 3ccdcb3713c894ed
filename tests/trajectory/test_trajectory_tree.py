"""The message tree: whole nodes are shared as far as their tokens are alike."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from renderers.labels import PROMPT, Runs, make_label
from renderers.rendered import Ids, RenderedTokens, Segment
from renderers.trajectory.completion import Completion
from renderers.trajectory.tree import MessageTree, Node, common_length, joined


def rendered(*messages: list[int], parts: Sequence[Ids] | None = None) -> RenderedTokens:
    """Tokens of messages, as a renderer gives them: in parts that need not end where messages end."""
    runs = Runs()
    for index, ids in enumerate(messages):
        runs.add(len(ids), make_label(index, PROMPT))
    held = [tuple(ids) for ids in messages] if parts is None else parts
    roles = ["user"] * len(messages)
    return RenderedTokens(Segment(held, runs), message_roles=roles, message_tool_names=[None] * len(messages))


def added(tree: MessageTree, *messages: list[int], parts: Sequence[Ids] | None = None) -> Node:
    """The last node of a prompt that was added."""
    return tree.add_prompt(tree.root, rendered(*messages, parts=parts))


def test_prompts_share_whole_messages() -> None:
    tree = MessageTree()
    first = added(tree, [1, 2], [3, 4])
    second = added(tree, [1, 2], [3, 5], [6])
    assert joined(first.path()) == [1, 2, 3, 4]
    assert joined(second.path()) == [1, 2, 3, 5, 6]
    assert first.path()[0] is second.path()[0]
    assert tree.stored_tokens == 7
    assert common_length(first, second) == 2
    assert added(tree, [1, 2], [3, 4]) is first


def test_nodes_are_shared_whatever_the_messages_borders() -> None:
    """A re-rendered history takes a prompt and its completion for one message."""
    tree = MessageTree()
    tip = tree.add_completion(added(tree, [1], [2]), [3, 4], Completion("digest"))
    again = added(tree, [1], [2, 3, 4, 5], [6])
    assert again.path()[2] is tip
    assert [node.ids for node in again.path()] == [[1], [2], [3, 4], [5], [6]]


def test_a_completion_is_an_event() -> None:
    tree = MessageTree()
    base = added(tree, [1])
    first, second = (tree.add_completion(base, [2], Completion("digest")) for _ in range(2))
    assert first is not second
    assert tree.stored_tokens == 3


def test_the_longest_chain_of_nodes_counts() -> None:
    tree = MessageTree()
    added(tree, [1], [2])
    deep = added(tree, [1, 2], [3], [4])
    assert added(tree, [1], [2], [3], [4]) is deep


def test_parts_are_shared_and_not_copied() -> None:
    tree = MessageTree()
    parts = [(1, 2), (3, 4, 5), (6,)]
    prompt = rendered([1, 2, 3], [4, 5, 6], parts=parts)
    nodes = tree.add_prompt(tree.root, prompt).path()
    assert [node.ids for node in nodes] == [[1, 2, 3], [4, 5, 6]]
    assert nodes[0].parts[0] is parts[0]
    assert nodes[1].parts[1] is parts[2]
    assert list(map(id, prompt.segment.parts)) == [id(part) for node in nodes for part in node.parts]
    assert prompt.token_ids == [1, 2, 3, 4, 5, 6]


MESSAGES = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=3), min_size=1, max_size=5)


@settings(max_examples=max(settings().max_examples // 3, 20))
@given(st.lists(MESSAGES, max_size=8), st.integers(1, 4))
def test_prompts_come_out_as_they_went_in(prompts: list[list[list[int]]], width: int) -> None:
    tree = MessageTree()
    tips = []
    for messages in prompts:
        ids = [token for message in messages for token in message]
        parts = [tuple(ids[start : start + width]) for start in range(0, len(ids), width)]
        tips.append((added(tree, *messages, parts=parts), ids))
    for tip, ids in tips:
        assert joined(tip.path()) == ids
        assert tip.end == len(ids)
    for node in [tree.root, *tree.nodes()]:
        texts = [tuple(child.ids) for child in node.children]
        assert len(texts) == len(set(texts))
        # What two branches have in common beyond their fork is never a whole node of the older one.
        for number, child in enumerate(node.children):
            for later in node.children[number + 1 :]:
                for tip, ids in tips:
                    if later in tip.path():
                        assert ids[child.start : child.end] != child.ids
