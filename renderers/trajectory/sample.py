"""Samples: what a branch of a trajectory is to a trainer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from renderers.errors import NotOnPolicyError
from renderers.labels import Owner, owner_of
from renderers.trajectory.breaks import Break
from renderers.trajectory.steps import Step
from renderers.trajectory.tree import Node

#: What a sample is used for: `on_policy` needs exact tokens and the logprobs of sampling, `exact` the tokens alone.
Use = Literal["on_policy", "exact", "any"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One completion in a sample.

    Attributes:
        start, end: its tokens, end exclusive.
        truncated: the model did not end its turn.
        digest: of the IDs that were given to `add_completion`.
    """

    start: int
    end: int
    truncated: bool
    digest: str


@dataclass(frozen=True, slots=True)
class Approximation:
    """Tokens that nobody sampled as they stand here: a reply that came as text alone.

    Attributes:
        start, end: the tokens that a model would have sampled, end exclusive.
        what: what was approximated: `segmentation`, `argument_text`, `hidden_reasoning`.
    """

    start: int
    end: int
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One token sequence to train on. Every per-token list is as long as `ids`.

    Attributes:
        ids: the token IDs.
        action_mask: true on the tokens to train on: what the model sampled in this sample's own turns.
        logprobs: the sampling logprob where `action_mask` is true, NaN where it is not known; 0 elsewhere.
        owners: whose each token is; `policy` exactly where `action_mask` is true (but for supervised samples with loss
            on other roles).
        turn_ids: -1 in the prompt, and k for completion k of this sample and what follows it up to the next.
        turns: the sample's completions, by turn ID.
        reward: the trajectory's reward, or None.
        approximations: replies that came as text alone; empty where every token is exact.
        side: further values, one a token, by name; None where there is none.
        side_padding: what `collate` writes in place of None, by name.
        began_with: the break with which this sample began; None for a trajectory's first.
        truncated: the trajectory ended at a limit, or in a completion that was cut off, and this is its last sample.
    """

    ids: list[int]
    action_mask: list[bool]
    logprobs: list[float]
    owners: list[Owner]
    turn_ids: list[int]
    turns: tuple[Turn, ...] = ()
    reward: float | None = None
    approximations: tuple[Approximation, ...] = ()
    side: dict[str, list[Any]] = field(default_factory=dict)
    side_padding: dict[str, Any] = field(default_factory=dict)
    began_with: Break | None = None
    truncated: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        kind = "" if self.exact else ", not exact"
        return f"Sample({len(self)} tokens, {sum(self.action_mask)} to train on, {len(self.turns)} turns{kind})"

    @property
    def exact(self) -> bool:
        """Whether every trained token is the one that was sampled. False where a reply came as text alone."""
        return not self.approximations

    @property
    def missing_logprobs(self) -> int:
        """How many of the tokens to train on have no sampling logprob."""
        return sum(1 for value in self.logprobs if value != value)  # noqa: PLR0124 - NaN, and nothing else

    def require(self, use: Use) -> None:
        """Raise where this sample must not be used so.

        Args:
            use: `on_policy` needs exact tokens with their sampling logprobs, `exact` exact tokens, `any` nothing.

        Raises:
            NotOnPolicyError: saying what was approximated or is missing.
        """
        if use == "any":
            return
        if self.approximations:
            first = self.approximations[0]
            raise NotOnPolicyError(
                f"tokens {first.start} to {first.end} are a reply that came as text alone, its "
                f"{', '.join(first.what).replace('_', ' ')} approximated: nobody sampled these tokens. Use the sample for "
                "supervised training or evaluation (require='any'; `sample.supervised()` puts the loss on such replies)"
            )
        if use == "on_policy" and self.missing_logprobs:
            raise NotOnPolicyError(
                f"{self.missing_logprobs} of {sum(self.action_mask)} sampled tokens have no logprob: give `logprobs` to "
                "add_completion, or ask for exact tokens only (require='exact') and compute the logprobs yourself"
            )

    def supervised(self) -> Sample:
        """The same tokens for supervised training: replies that came as text alone are in the mask, too."""
        mask, owners = list(self.action_mask), list(self.owners)
        logprobs = list(self.logprobs)
        for one in self.approximations:
            for index in range(one.start, one.end):
                mask[index], owners[index], logprobs[index] = True, Owner.POLICY, float("nan")
        return replace(self, action_mask=mask, owners=owners, logprobs=logprobs)


def samples_of(
    steps: Sequence[Step], *, side_padding: dict[str, Any], reward: float | None, truncated: bool
) -> list[Sample]:
    """A sample for each branch of a trajectory in which something was sampled.

    Args:
        steps: the trajectory's steps.
        side_padding: its side arrays.
        reward: its reward.
        truncated: whether it was cut off, which its last sample says.
    """
    branches: list[list[Step]] = []
    for step in steps:
        if step.broke is not None or not branches:
            branches.append([])
        branches[-1].append(step)
    samples = []
    for branch in branches:
        own = {step.completion for step in branch if step.completion is not None and step.own}
        if own:
            cut = truncated and branch is branches[-1]
            about = {"reward": reward, "began_with": branch[0].broke, "truncated": cut}
            samples.append(make_sample(branch[-1].tip.path(), own, side_padding, **about))
    return samples


def make_sample(path: Sequence[Node], own: Collection[Node], side_padding: dict[str, Any], **about: Any) -> Sample:
    """The sample of a branch.

    Args:
        path: the branch's nodes.
        own: those of its completions that this sample trains. Other completions are context here: they are trained in
            the sample in which they were sampled.
        side_padding: the names of side arrays, and what `collate` writes where there is no value.
        about: further fields of the sample.
    """
    ids: list[int] = []
    mask: list[bool] = []
    logprobs: list[float] = []
    owners: list[Owner] = []
    turn_ids: list[int] = []
    side: dict[str, list[Any]] = {name: [] for name in side_padding}
    turns: list[Turn] = []
    approximations: list[Approximation] = []
    for node in path:
        length = node.end - node.start
        completion = node.completion
        if completion is not None and node in own:
            turns.append(Turn(node.start, node.end, completion.truncated, completion.digest))
            mask += completion.mask(length)
            logprobs += completion.logprobs_of(length)
            owners += _owners(node)
            if completion.approximated:
                approximations.append(Approximation(node.start, node.end, completion.approximated))
        else:
            mask += [False] * length
            logprobs += [0.0] * length
            owners += [Owner.PROMPT if owner is Owner.POLICY else owner for owner in _owners(node)]
        ids += node.ids
        turn_ids += [len(turns) - 1] * length
        for name in side:
            given = completion.side.get(name) if completion is not None else None
            side[name] += [None] * length if given is None else given
    return Sample(
        ids=ids,
        action_mask=mask,
        logprobs=logprobs,
        owners=owners,
        turn_ids=turn_ids,
        turns=tuple(turns),
        approximations=tuple(approximations),
        side=side,
        side_padding=dict(side_padding),
        **about,
    )


def _owners(node: Node) -> list[Owner]:
    owners: list[Owner] = []
    for count, label in node.owners.items():
        owners += [owner_of(label)] * count
    return owners
