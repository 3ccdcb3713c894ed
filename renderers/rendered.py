"""Rendered tokens: IDs with their attribution, stored as runs, expanded on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from renderers.errors import UnknownMaskError
from renderers.labels import Owner, Run, Runs, is_content, is_sampled, message_of, owner_of, with_message

if TYPE_CHECKING:
    from renderers.conversation import History

T = TypeVar("T")
#: Token IDs as they are kept: the garbage collector forgets a tuple of integers, and looks at every item of a list.
Ids: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that the format loses or changes, as its official template does.

    Attributes:
        kind: what happens, in a word that stays the same: `dropped_message`, for instance.
        message_indices: the messages that it happens to.
        detail: what is lost, and what to do, in words.
    """

    kind: str
    message_indices: tuple[int, ...]
    detail: str

    def shifted(self, offset: int) -> Damage:
        """The same, where messages count from another one."""
        return replace(self, message_indices=tuple(index + offset for index in self.message_indices))


@dataclass(slots=True)
class Segment:
    """Tokens that were made in one go, and the segment before them: a conversation is a chain of segments.

    A bridge adds one segment and shares all earlier ones.
    """

    parts: Sequence[Ids]
    runs: Runs
    parent: Segment | None = None
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = self.runs.length + (self.parent.total if self.parent else 0)

    def chain(self) -> list[Segment]:
        """This segment and those before it, the first one first."""
        segments: list[Segment] = []
        segment: Segment | None = self
        while segment is not None:
            segments.append(segment)
            segment = segment.parent
        segments.reverse()
        return segments

    def tail(self, markers: frozenset[int]) -> list[int]:
        """The last tokens, at least from the last one of `markers` on. Walks back no further than that."""
        parts: list[Ids] = []
        segment: Segment | None = self
        while segment is not None:
            for part in reversed(segment.parts):
                parts.append(part)
                if not markers.isdisjoint(part):
                    return [token_id for part in reversed(parts) for token_id in part]
            segment = segment.parent
        return [token_id for part in reversed(parts) for token_id in part]

    def own_ids(self) -> list[int]:
        """The IDs of this segment alone."""
        ids: list[int] = []
        for part in self.parts:
            ids += part
        return ids


class RenderedTokens:
    """Token IDs, each attributed to the message that it belongs to, with a mask of what the model sampled.

    Every per-token list is as long as `token_ids`. Lists are built at first access and kept; the storage is runs.

    Attributes:
        message_roles: the role of each message; of the new messages only, where this is a bridge's result.
        message_tool_names: the tool that each tool message answers for, where it is known; None for other messages.
        warnings: what the format damaged.
        message_offset: how many messages precede message 0: 0 for a render; for a bridge the number of messages before
            the new ones, or None where the bridge had only a list of IDs and does not know.
        extension_start: where the tokens begin that a bridge appended to previous prompt + completion; 0 for a render.
    """

    def __init__(
        self,
        segment: Segment,
        *,
        message_roles: Sequence[str],
        message_tool_names: Sequence[str | None],
        warnings: Sequence[Damage] = (),
        mask_known: bool = True,
        message_offset: int | None = 0,
        extension_start: int = 0,
        history: History | None = None,
    ) -> None:
        self.message_roles = list(message_roles)
        self.message_tool_names = list(message_tool_names)
        self.warnings = list(warnings)
        self.message_offset = message_offset
        self.extension_start = extension_start
        self.mask_known = mask_known
        #: What a bridge needs to know of the conversation so far. Not part of the public surface.
        self.history = history
        self._segment = segment
        self._lists: dict[str, list[object]] = {}

    def __len__(self) -> int:
        return self._segment.total

    def __repr__(self) -> str:
        return f"RenderedTokens({len(self)} tokens, {len(self.message_roles)} messages)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RenderedTokens):
            return NotImplemented
        return self.token_ids == other.token_ids and list(self.runs()) == list(other.runs())

    __hash__ = None  # type: ignore[assignment]  # equal by content, and lists can be changed

    @property
    def segment(self) -> Segment:
        """The storage. Not part of the public surface."""
        return self._segment

    def _cached(self, name: str, build: Callable[[], list[T]]) -> list[T]:
        built = self._lists.get(name)
        if built is None:
            built = self._lists[name] = build()  # type: ignore[assignment]  # one list type a name
        return built  # type: ignore[return-value]  # the same

    @property
    def token_ids(self) -> list[int]:
        """The token IDs."""

        def build() -> list[int]:
            ids: list[int] = []
            for segment in self._segment.chain():
                for part in segment.parts:
                    ids += part
            return ids

        return self._cached("token_ids", build)

    @property
    def extension_ids(self) -> list[int]:
        """What a bridge appended after previous prompt + completion; of a render, all IDs. Costs nothing of the history.

        These are the tokens to send to an engine that keeps the sequence.
        """
        return self._cached("extension_ids", self._segment.own_ids) if self.extension_start else self.token_ids

    def runs(self) -> Iterator[Run]:
        """Runs of equally labelled tokens, in order, without gaps."""
        position = 0
        for count, label in self._labels():
            yield Run(position, position + count, message_of(label), owner_of(label))
            position += count

    def _labels(self) -> Iterator[tuple[int, int]]:
        """The runs as (number of tokens, label)."""
        own = self._segment
        for segment in own.chain():
            if segment is own:
                yield from segment.runs.items()
            else:  # messages before a bridge are outside the new ones
                yield from [(count, with_message(label, -1)) for count, label in segment.runs.items()]

    def _expand(self, name: str, value: Callable[[int], T]) -> list[T]:
        """A list of what each token's label says."""

        def build() -> list[T]:
            expanded: list[T] = []
            for count, label in self._labels():
                expanded += [value(label)] * count
            return expanded

        return self._cached(name, build)

    @property
    def message_indices(self) -> list[int]:
        """Index of the message that each token belongs to; -1 outside any message.

        Of a bridge's result: index of the *new* message, and -1 for everything before the new messages.
        """
        return self._expand("message_indices", message_of)

    @property
    def sampled_mask(self) -> list[bool]:
        """True where the model would have produced the token; `[]` where that is not known."""
        return self._expand("sampled_mask", is_sampled) if self.mask_known else []

    @property
    def is_content(self) -> list[bool]:
        """True where the token comes from the caller's text or is sampled; `[]` where that is not known.

        On assistant messages it equals `sampled_mask`.
        """
        return self._expand("is_content", is_content) if self.mask_known else []

    @property
    def owners(self) -> list[Owner]:
        """Whose each token is: policy, tool, prompt or template.

        Raises:
            UnknownMaskError: where the sampled mask is not known.
        """
        if not self.mask_known:
            raise UnknownMaskError(
                "owners need to know which tokens the model sampled: a family's own renderer does, and the DefaultRenderer with "
                'provenance="traced" in its config'
            )
        return self._expand("owners", owner_of)

    def message_spans(self) -> list[list[tuple[int, int]]]:
        """For each message, its token ranges (start, end exclusive), in order; most messages have exactly one."""
        spans: list[list[tuple[int, int]]] = [[] for _ in self.message_roles]
        for run in self.runs():
            if run.message_index >= 0:
                own = spans[run.message_index]
                if own and own[-1][1] == run.start:
                    own[-1] = (own[-1][0], run.end)
                else:
                    own.append((run.start, run.end))
        return spans

    def tokens_per_message(self, *, sampled_only: bool = False) -> list[int]:
        """Number of tokens of each message, or only of those that the model sampled.

        Raises:
            UnknownMaskError: for `sampled_only`, where the sampled mask is not known.
        """
        if sampled_only and not self.mask_known:
            raise UnknownMaskError(
                'this renderer does not know which tokens the model sampled; set provenance="traced" in its config'
            )
        counts = [0] * len(self.message_roles)
        for run in self.runs():
            if run.message_index >= 0 and (run.owner is Owner.POLICY or not sampled_only):
                counts[run.message_index] += run.end - run.start
        return counts

    def __getstate__(self) -> dict[str, object]:
        """Flat: a chain of a thousand bridges pickles as well as one render, and derived lists are built again."""
        state = dict(self.__dict__)
        own = self._segment
        earlier: Segment | None = None
        if own.parent is not None:
            runs = Runs()
            for segment in own.parent.chain():
                runs.extend(segment.runs)
            earlier = Segment([tuple(self.token_ids[: own.parent.total])], runs)
        state["_segment"] = Segment([tuple(own.own_ids())], own.runs, earlier)
        state["_lists"] = {}
        return state
