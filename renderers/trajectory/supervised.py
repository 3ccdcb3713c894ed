"""Samples for supervised training: rendered conversations, with loss on chosen messages."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from renderers.errors import TrajectoryError, UnknownMaskError
from renderers.labels import Owner
from renderers.messages import REASONING_FIELDS, ROLES, Message, as_dicts, validate_messages
from renderers.rendered import RenderedTokens
from renderers.renderer import Renderer
from renderers.trajectory.sample import Approximation, Sample
from renderers.trajectory.text_reply import SEGMENTATION


class ReasoningLossWarning(UserWarning):
    """The format prints no reasoning even of the last turn, so that none of it is trained."""


@dataclass(frozen=True, slots=True)
class SupervisedSamples:
    """What became of one conversation.

    Attributes:
        samples: one, or one for each prefix after which the template drops reasoning. Each chosen message is trained in
            exactly one of them.
        trained: indices of the messages that each sample trains.
        lost_reasoning: indices of assistant messages whose reasoning stands in no sample, because the format prints
            none.
    """

    samples: list[Sample]
    trained: list[tuple[int, ...]]
    lost_reasoning: tuple[int, ...] = ()


def supervised_samples(
    renderer: Renderer[Any],
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    roles: Collection[str] = ("assistant",),
    indices: Collection[int] | None = None,
) -> SupervisedSamples:
    """Samples for supervised training of one conversation, not exact: their tokens are the encoder's.

    A sample's `action_mask` is where the loss goes: of assistant messages what the model would have sampled, of other
    messages their content. Where the template drops reasoning of earlier turns, the conversation becomes one sample for
    each prefix whose last turns it still shows whole, and every turn is trained with the context that it would have had.

    Args:
        renderer: the model's renderer.
        messages: the conversation.
        tools: its tools.
        roles: roles of the messages to train on.
        indices: train on these messages alone; None trains on all of the chosen roles.

    Raises:
        MessageError: for messages that cannot be rendered.
        TrajectoryError: no message is chosen, or a role or an index does not exist.
        UnknownMaskError: the renderer does not know what a model would have sampled.

    Warns:
        ReasoningLossWarning: the format prints no reasoning even of the last turn.
    """
    validated = validate_messages(messages)
    chosen = _chosen(validated, roles, indices)
    given = as_dicts(messages)
    assistants = [index for index, message in enumerate(validated) if message.role == "assistant"]
    prefixes: list[_Prefix] = []
    lost: list[int] = []
    for last in [len(given) - 1, *(index for index in reversed(assistants) if index < len(given) - 1)]:
        dropped = {index for index in prefixes[-1].without_reasoning if index <= last} if prefixes else set()
        if prefixes and not dropped:
            break  # the rest stands in that prefix as it was
        prefix = _Prefix(renderer, given[: last + 1], validated, tools)
        if last in prefix.without_reasoning:
            lost.append(last)
        if not prefixes or not dropped <= prefix.without_reasoning:
            prefixes.append(prefix)
    prefixes.reverse()
    if lost:
        warnings.warn(
            f"the {renderer.family} template prints no reasoning even of the last turn: that of messages "
            f'{sorted(lost)} is not trained. thinking_retention="all" writes all of it',
            ReasoningLossWarning,
            stacklevel=2,
        )
    result = SupervisedSamples([], [], tuple(sorted(lost)))
    begin = 0
    for prefix in prefixes:
        trained = sorted(chosen.intersection(range(begin, prefix.length)))
        begin = prefix.length
        if trained:
            result.samples.append(prefix.sample(trained))
            result.trained.append(tuple(trained))
    return result


def _chosen(messages: Sequence[Message], roles: Collection[str], indices: Collection[int] | None) -> set[int]:
    unknown = [role for role in roles if role not in ROLES]
    if unknown:
        raise TrajectoryError(f"there is no role {unknown[0]!r}; there are {', '.join(ROLES)}")
    if indices is not None:
        outside = [index for index in indices if not 0 <= index < len(messages)]
        if outside:
            raise TrajectoryError(f"there is no message {outside[0]}: the conversation has {len(messages)}")
    chosen = {
        index
        for index, message in enumerate(messages)
        if message.role in roles and (indices is None or index in indices)
    }
    if not chosen:
        raise TrajectoryError(f"there is no message to train on with role {' or '.join(sorted(roles))}")
    return chosen


class _Prefix:
    """The beginning of a conversation, rendered."""

    def __init__(
        self,
        renderer: Renderer[Any],
        given: list[dict[str, Any]],
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None,
    ) -> None:
        self._renderer = renderer
        self._given = given
        self._messages = messages[: len(given)]
        self._tools = tools
        self.length = len(given)

    @cached_property
    def _rendered(self) -> RenderedTokens:
        rendered = self._renderer.render(self._given, tools=self._tools)
        if not rendered.mask_known:
            raise UnknownMaskError("this renderer does not know which tokens a model would have sampled")
        return rendered

    @cached_property
    def without_reasoning(self) -> frozenset[int]:
        """Assistant messages that have reasoning of which the rendered prefix shows nothing."""
        reasoned = [
            index
            for index, message in enumerate(self._messages)
            if message.role == "assistant" and (message.reasoning_text or "").strip()
        ]
        if not reasoned:
            return frozenset()
        bare = [{key: value for key, value in one.items() if key not in REASONING_FIELDS} for one in self._given]
        with_it, without = self._rendered, self._renderer.render(bare, tools=self._tools)
        shown, dropped = _written(with_it), _written(without)
        return frozenset(index for index in reasoned if shown[index] == dropped[index])

    def sample(self, trained: Collection[int]) -> Sample:
        """The prefix as a sample that trains these messages."""
        rendered = self._rendered
        mask: list[bool] = []
        owners: list[Owner] = []
        turn_ids: list[int] = []
        approximations: list[Approximation] = []
        turn, current = -1, -1
        for run in rendered.runs():
            length = run.end - run.start
            assistant = run.message_index >= 0 and self._messages[run.message_index].role == "assistant"
            wanted = run.owner is Owner.POLICY if assistant else run.owner in {Owner.PROMPT, Owner.TOOL}
            train = wanted and run.message_index in trained
            if train and run.message_index != current:
                turn, current = turn + 1, run.message_index
            if train:
                approximations.append(Approximation(run.start, run.end, (SEGMENTATION,)))
            mask += [train] * length
            owners += [Owner.PROMPT if run.owner is Owner.POLICY and not train else run.owner] * length
            turn_ids += [turn] * length
        return Sample(
            ids=list(rendered.token_ids),
            action_mask=mask,
            logprobs=[float("nan") if trained_on else 0.0 for trained_on in mask],
            owners=owners,
            turn_ids=turn_ids,
            approximations=tuple(approximations),
        )


def _written(rendered: RenderedTokens) -> list[list[int]]:
    """The tokens of each message."""
    ids = rendered.token_ids
    return [[token_id for start, end in spans for token_id in ids[start:end]] for spans in rendered.message_spans()]
