"""The message tree: the tokens of a session's messages, each stored once, however many branches share them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from renderers.errors import TrajectoryError
from renderers.labels import POLICY, PROMPT, TEMPLATE, Runs, is_sampled, make_label, message_of
from renderers.rendered import Ids, RenderedTokens, Segment
from renderers.tokenizers.protocol import TokenizerAdapter
from renderers.trajectory.completion import Completion


@dataclass(slots=True, eq=False)
class Node:
    """The tokens of one message, of scaffolding between messages, or of one completion.

    Attributes:
        parent: the node whose tokens come before; None for the root, which has no tokens.
        parts: the token IDs, in lists that are shared with what the renderer made and must not be changed.
        owners: whose each token is. Of a completion's, what the model sampled is the policy's; everything else that a
            model might have written is context, and counts as the prompt's.
        role: the message's role; None for scaffolding.
        completion: what is known of the completion, where it is one.
        start, end: where its tokens stand in every branch that it is part of.
    """

    parent: Node | None
    parts: Sequence[Ids]
    owners: Runs
    role: str | None = None
    completion: Completion | None = None
    children: list[Node] = field(default_factory=list)
    start: int = field(init=False)
    end: int = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.parent.end if self.parent is not None else 0
        length = self.owners.length
        self.end = self.start + length
        held = self.completion.lengths() if self.completion is not None else {}
        for name, found in {"ids": sum(map(len, self.parts)), **held}.items():
            if found != length:
                raise TrajectoryError(f"{name} has {found} entries for {length} tokens")

    def __repr__(self) -> str:
        what = "completion" if self.completion is not None else self.role or "scaffolding"
        return f"Node({what}, tokens {self.start} to {self.end}, {len(self.children)} children)"

    @property
    def ids(self) -> list[int]:
        """The token IDs, a new list."""
        return joined([self])

    def ancestry(self) -> Iterator[Node]:
        """This node and those before it, the root left out, the last one first."""
        node = self
        while node.parent is not None:
            yield node
            node = node.parent

    def path(self, start: int = 0) -> list[Node]:
        """The branch that ends here: its nodes, the first one first, or those from token `start` on."""
        nodes = list(takewhile(lambda node: node.start >= start, self.ancestry()))
        nodes.reverse()
        return nodes

    def grown(self, parts: list[Ids], owners: Runs, role: str | None, completion: Completion | None = None) -> Node:
        """A new child of this node."""
        node = Node(self, parts, owners, role, completion)
        self.children.append(node)
        return node

    def stands_in(self, ids: Sequence[int], position: int) -> bool:
        """Whether `ids` has exactly this node's tokens at `position`."""
        if len(ids) - position < self.end - self.start:
            return False
        for part in self.parts:
            if tuple(ids[position : position + len(part)]) != part:
                return False
            position += len(part)
        return True


class MessageTree:
    """What the trajectories of one session share: subagents, retries, compacted conversations.

    A prompt takes the nodes that are there already, as far as whole nodes have exactly its tokens, and forks at the first
    that differs. A completion is an event: it always gets a node of its own.
    """

    def __init__(self) -> None:
        self.root = Node(None, [], Runs())
        self._tokenizer: TokenizerAdapter | None = None

    def __repr__(self) -> str:
        return f"MessageTree({sum(1 for _ in self.nodes())} nodes, {self.stored_tokens} tokens)"

    def admit(self, tokenizer: TokenizerAdapter) -> None:
        """Take trajectories of this tokenizer.

        Raises:
            TrajectoryError: the tree holds another tokenizer's tokens.
        """
        own = self._tokenizer or tokenizer
        if own is not tokenizer and own.fingerprint() != tokenizer.fingerprint():
            raise TrajectoryError("one tree holds one tokenizer's tokens: models of another one need another tree")
        self._tokenizer = own

    def nodes(self) -> Iterator[Node]:
        """Every node but the root, parents before children."""
        waiting = list(reversed(self.root.children))
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    @property
    def stored_tokens(self) -> int:
        """How many tokens the tree holds. Each is stored once, in however many branches it stands."""
        return sum(node.owners.length for node in self.nodes())

    def add_prompt(
        self, base: Node, rendered: RenderedTokens, *, keep: Segment | None = None, upto: int | None = None
    ) -> Node:
        """Add the tokens of a prompt after node `base`, message by message; gives the last node.

        The prompt's own storage is then the nodes' lists, so that its tokens are held once; that of segment `keep` and
        before is the nodes' already.

        Args:
            base: the node after which they come.
            rendered: the prompt. It may hold what stands before, too.
            keep: a segment of it that the tree holds already, with those before it.
            upto: leave out the tokens from here on.
        """
        own = rendered.segment
        offset = own.total - own.runs.length  # where the segment's tokens begin
        ids = own.own_ids()[: None if upto is None else upto - offset]
        node = self._deepest(base, ids, offset)
        for message, owners, parts in _by_message(own, node.end - offset, len(ids)):
            role = rendered.message_roles[message] if message >= 0 else None
            node = node.grown(parts, owners, role)
        if upto is None:
            share_storage(own, node, keep)
        return node

    def add_completion(self, base: Node, ids: Sequence[int], completion: Completion) -> Node:
        """Add what was sampled after node `base`."""
        owners = Runs()
        if completion.approximated:
            owners.add(len(ids), make_label(-1, PROMPT))
        elif completion.sampled is None:
            owners.add(len(ids), make_label(-1, POLICY))
        else:
            for sampled in completion.sampled:
                owners.add(1, make_label(-1, POLICY if sampled else TEMPLATE))
        return base.grown([tuple(ids)] if ids else [], owners, "assistant", completion)

    def _deepest(self, base: Node, ids: Sequence[int], offset: int) -> Node:
        """The last node of the longest chain of whole nodes after `base` that have the tokens of `ids`."""
        best = base
        waiting = [base]
        while waiting:
            node = waiting.pop()
            if node.end > best.end:
                best = node
            waiting += [child for child in reversed(node.children) if child.stands_in(ids, node.end - offset)]
        return best


def joined(nodes: Iterable[Node]) -> list[int]:
    """The token IDs of these nodes, one after another."""
    ids: list[int] = []
    for node in nodes:
        for part in node.parts:
            ids += part
    return ids


def common_length(first: Node, second: Node) -> int:
    """How many tokens two branches of one tree share, as far as they share nodes."""
    seen = set(map(id, first.ancestry()))
    return next((node.end for node in second.ancestry() if id(node) in seen), 0)


def is_prefix(tip: Node, ids: Sequence[int]) -> bool:
    """Whether `ids` begins with exactly the tokens of the branch that ends at `tip`."""
    return all(node.stands_in(ids, node.start) for node in tip.ancestry())


def is_suffix(tip: Node, ids: Sequence[int]) -> bool:
    """Whether the branch that ends at `tip` ends with exactly `ids`, at a border between nodes."""
    start = tip.end - len(ids)
    node = tip
    while node.parent is not None and node.start >= start and node.end > start:
        if not node.stands_in(ids, node.start - start):
            return False
        node = node.parent
    return node.end == start


def _by_message(segment: Segment, start: int, end: int) -> Iterator[tuple[int, Runs, list[Ids]]]:
    """What a segment holds from its token `start` to `end`, message by message: index, owners and IDs."""
    groups: list[tuple[int, Runs]] = []
    position = 0
    for count, label in segment.runs.items():
        length = min(position + count, end) - max(position, start)
        position += count
        if length > 0:
            message = message_of(label)
            if not groups or groups[-1][0] != message:
                groups.append((message, Runs()))
            groups[-1][1].add(length, PROMPT if is_sampled(label) else label - make_label(message, 0))
    stretches = _cut(segment.parts, [start, *(owners.length for _, owners in groups)])
    next(stretches)
    for (message, owners), parts in zip(groups, stretches, strict=True):
        yield message, owners, parts


def _cut(parts: Sequence[Ids], lengths: Sequence[int]) -> Iterator[list[Ids]]:
    """`parts`, cut into stretches of these lengths. A list that lies in one stretch whole is kept, not copied."""
    index = position = 0
    for length in lengths:
        stretch: list[Ids] = []
        missing = length
        while missing:
            part = parts[index]
            end = min(position + missing, len(part))
            if end > position:
                stretch.append(part if end - position == len(part) else part[position:end])
            missing -= end - position
            index, position = (index + 1, 0) if end == len(part) else (index, end)
        yield stretch


def share_storage(segment: Segment, node: Node, keep: Segment | None) -> None:
    """Let segments hold the lists of the nodes that they are equal to, up to node `node`, and no second copy of them."""
    current: Segment | None = segment
    while current is not None and current is not keep:
        start = current.total - current.runs.length
        nodes: list[Node] = []
        while node.parent is not None and node.start >= start and node.end > start:
            nodes.append(node)
            node = node.parent
        if node.end != start:
            return  # a border inside a node: what a renderer of another kind made
        current.parts = [part for one in reversed(nodes) for part in one.parts]
        current = current.parent
