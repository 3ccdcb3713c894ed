"""The rollout's buffer: it grows by prompts and by what was sampled to them, and never encodes a sampled token again."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from renderers.errors import TrajectoryError
from renderers.messages import as_dicts, validate_messages, validate_tools
from renderers.parsed import ParsedResponse
from renderers.renderer import Renderer
from renderers.token_ids import as_token_ids
from renderers.trajectory.breaks import Break, Limit, check_limits
from renderers.trajectory.completion import Completion, check_logprobs, check_mask, check_side, digest_of
from renderers.trajectory.growth import continued, refitted, restarted, unanswered
from renderers.trajectory.sample import Sample, samples_of
from renderers.trajectory.steps import Messages, Step, Tools, conversation, prompt_of
from renderers.trajectory.text_reply import render_reply
from renderers.trajectory.tree import MessageTree, Node, joined


class Trajectory:
    """One rollout: exactly the tokens that the engine was given and returned.

    It bridges from turn to turn where the renderer can. Where it cannot, the conversation is rendered anew; if that does
    not continue the tokens so far, another sample begins and the reason is recorded in `breaks`.

    Args:
        renderer: the model's renderer.
        tree: the message tree of the session, where several trajectories share their prefixes; a new one if None.
        max_length: longest sequence of prompt and completion, in tokens.
        reserve: tokens of `max_length` that every prompt must leave for its completion.
        max_turns: most completions.
        side_arrays: names of further values that come with completions, one a token, each with what stands for a
            missing value.
    """

    def __init__(
        self,
        renderer: Renderer[Any],
        *,
        tree: MessageTree | None = None,
        max_length: int | None = None,
        reserve: int = 0,
        max_turns: int | None = None,
        side_arrays: Mapping[str, Any] | None = None,
    ) -> None:
        check_limits(max_length, reserve, max_turns)
        self.renderer = renderer
        self.tree = tree if tree is not None else MessageTree()
        self.tree.admit(renderer.tokenizer)
        self.max_length = max_length
        self.reserve = reserve
        self.max_turns = max_turns
        self.side_arrays = dict(side_arrays or {})
        self._reward: float | None = None
        self._steps: list[Step] = []
        self._inherited = 0  # steps that came with a fork
        self._ended_by: Limit | None = None

    def __repr__(self) -> str:
        state = f"ended by {self.ended_by}" if self.ended_by else f"{len(self)} tokens"
        return f"Trajectory({self.turns} turns, {len(self.breaks)} breaks, {state})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles by its document: alone, without the session's other trajectories."""
        from renderers.trajectory.document import from_document, to_document

        return (_first, (from_document, to_document([self]), self.renderer))

    def __deepcopy__(self, _: dict[int, Any]) -> Trajectory:
        """The same, without a copy of the renderer."""
        return copy.copy(self)

    def __len__(self) -> int:
        """Tokens of the branch that grows now."""
        return self._tip.end

    # Growing -------------------------------------------------------------------------------------------------------

    def begin(self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] | None = None) -> bool:
        """Begin with these messages. False where they do not fit `max_length`: the trajectory is then over.

        Raises:
            MessageError, ToolsError: for what cannot be rendered.
            TrajectoryError: it has begun already.
        """
        if self._steps or self._ended_by:
            raise TrajectoryError("this trajectory has begun; `replace_history` gives it another history")
        return self._take([], restarted, _snapshot(messages), _tools_snapshot(tools))

    @property
    def next_prompt_ids(self) -> list[int]:
        """The prompt that waits for its completion: what the engine must be given, token for token. A new list."""
        return joined(self._waiting.end.path())

    @property
    def extension_ids(self) -> list[int]:
        """The end of `next_prompt_ids`: what follows the previous prompt and completion, for engines that keep these.

        The whole prompt where it does not continue them.
        """
        step = self._waiting
        start = self._steps[-2].tip.end if step.broke is None and len(self._steps) > 1 else 0
        return joined(step.end.path(start))

    @property
    def max_new_tokens(self) -> int | None:
        """How long a completion of the waiting prompt may be under `max_length`; None where there is no limit."""
        return None if self.max_length is None else max(self.max_length - self._waiting.end.end, 0)

    def add_completion(
        self,
        token_ids: Sequence[int],
        logprobs: Sequence[float | None] | None = None,
        *,
        sampled: Sequence[bool] | None = None,
        stopped: bool | None = None,
        side: Mapping[str, Sequence[Any]] | None = None,
    ) -> ParsedResponse:
        """Add what was sampled to `next_prompt_ids`, as the engine returned it; gives the parsed reply.

        Args:
            token_ids: the sampled IDs, the stop token included where the engine returns it. They are kept exactly, also
                where they exceed `max_length`.
            logprobs: the sampling logprob of each, None or NaN where it is not known.
            sampled: false on tokens that the harness forced into the completion: they are the template's, not the
                policy's. None: all were sampled.
            stopped: the engine's word on whether the model ended its turn; None decides by a stop token in the IDs.
                A completion that did not end its turn is recorded as truncated.
            side: values of declared side arrays, one a token.

        Raises:
            TokenIdsError: for what cannot be token IDs.
            TrajectoryError: there is no prompt, or values that do not fit the tokens. Nothing is added then.
        """
        step = self._waiting
        ids = as_token_ids(token_ids).copy()
        mask = check_mask(sampled, len(ids))
        reply = self._parse(step, ids, stopped)
        completion = Completion(
            digest=digest_of(ids),
            truncated=reply.stop is None and not stopped,
            logprobs=check_logprobs(logprobs, len(ids), mask),
            sampled=mask,
            side=check_side(side, len(ids), self.side_arrays),
        )
        step.completion = self.tree.add_completion(step.end, ids, completion)
        step.reply = reply.to_message()
        return reply

    def add_reply(self, message: Mapping[str, Any], *, approximated: Collection[str] | None = None) -> None:
        """Add a reply that is known as text alone, in place of a completion: what an API returned.

        It is rendered deterministically. None of its tokens is in the mask, and the sample is not exact.

        Args:
            message: the assistant's message.
            approximated: what of it nobody knows, as `renderers.vendors.approximations` says it. None decides by the
                message: the segmentation; the text of arguments that are no text; hidden reasoning, where the format
                has reasoning and the message none.

        Raises:
            MessageError: for what is no assistant message, or cannot be rendered. Nothing is added then.
            TrajectoryError: there is no prompt.
        """
        step = self._waiting
        [snapshot] = _snapshot([message])
        reply = render_reply(self.renderer, conversation(self._steps), step.tools, snapshot, approximated=approximated)
        if reply.whole is not None:
            step = refitted(self.tree, self._steps, reply.whole, reply.start)
        completion = Completion(digest=digest_of(reply.ids), approximated=reply.approximated)
        step.completion = self.tree.add_completion(step.end, reply.ids, completion)
        step.reply = snapshot
        self._steps[-1] = step

    def add_messages(self, new_messages: Sequence[Mapping[str, Any]]) -> bool:
        """Add what the environment answers, and open the next turn.

        May be called again before a completion: the messages then come one after another. Where the next prompt would
        exceed a limit nothing is added, and the trajectory is over.

        Returns:
            Whether it goes on: `next_prompt_ids` then waits for a completion.

        Raises:
            MessageError: for what cannot be rendered. Nothing is added then.
            TrajectoryError: it has not begun, or is over.
        """
        last = self._last
        if self._ended_by:
            raise TrajectoryError(self._over)
        new = _snapshot(new_messages)
        if last.completion is not None:
            return self._take(self._steps, continued, new)
        # Nothing was sampled to the last prompt: it is made again, with more messages.
        earlier, messages = self._steps[:-1], [*last.messages, *new]
        if last.restarts:
            return self._take(earlier, restarted, messages, last.tools)
        return self._take(earlier, continued, messages)

    def replace_history(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] | None = None
    ) -> bool:
        """Go on from another history: a compacted or edited conversation. An explicit break: another sample begins.

        A prompt that still waits for its completion is forgotten.
        A trajectory that `max_length` ended goes on where the new history fits.

        Args:
            messages: the whole conversation from now on.
            tools: None means as before, `[]` means none.

        Returns:
            Whether it goes on, see `add_messages`.

        Raises:
            MessageError, ToolsError: for what cannot be rendered. Nothing changes then.
            TrajectoryError: it has not begun, or `max_turns` is reached.
        """
        last = self._last
        if self._ended_by is Limit.MAX_TURNS:
            raise TrajectoryError(self._over)
        tools_now = last.tools if tools is None else _tools_snapshot(tools)
        earlier = self._steps if last.completion is not None else self._steps[:-1]
        return self._take(earlier, restarted, _snapshot(messages), tools_now)

    def fork(self, turn: int | None = None) -> Trajectory:
        """Another trajectory of the same session that shares what came before completion `turn`: a retry, for instance.

        The completions so far stay this trajectory's: in the other's samples they are context, trained here alone.

        Args:
            turn: number of the completion that the fork samples anew, from 0; None forks from where this one stands.

        Raises:
            TrajectoryError: there is no such turn.
        """
        steps = self._steps
        forked = self._sibling()
        if turn is not None:
            if not 0 <= turn < len(steps):
                raise TrajectoryError(f"there is no turn {turn} to fork from: this trajectory has {len(steps)}")
            steps = [*steps[:turn], unanswered(self.renderer, self.tree, steps[: turn + 1])]
        forked.restore([replace(step, own=step.completion is None) for step in steps], None, len(steps))
        return forked

    # What it holds ---------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation as messages, replies as they were parsed. A new list."""
        return copy.deepcopy(conversation(self._steps))

    @property
    def tools(self) -> list[dict[str, Any]] | None:
        """The tools of the conversation."""
        return copy.deepcopy(self._steps[-1].tools) if self._steps else None

    @property
    def turns(self) -> int:
        """Number of completions."""
        return sum(1 for step in self._steps if step.completion is not None)

    @property
    def breaks(self) -> list[Break]:
        """Where another sample began, in order; those before a fork are the other trajectory's."""
        return [step.broke for step in self._steps[self._inherited :] if step.broke is not None]

    @property
    def break_reasons(self) -> list[str]:
        """The reason of each break, in order."""
        return [one.reason.value for one in self.breaks]

    @property
    def reward(self) -> float | None:
        """The rollout's reward, for its samples: to be set when it is known.

        Raises:
            TrajectoryError: when it is set to something that is no finite number.
        """
        return self._reward

    @reward.setter
    def reward(self, value: float | None) -> None:
        try:
            reward = None if value is None else float(value)
        except (TypeError, ValueError):
            raise TrajectoryError(f"reward is {value!r}, not a number") from None
        if reward is not None and not math.isfinite(reward):
            raise TrajectoryError(f"reward is {reward!r}: it must be finite, or None where there is none")
        self._reward = reward

    @property
    def ended_by(self) -> Limit | None:
        """The limit that ended the trajectory, or None."""
        return self._ended_by

    @property
    def truncated(self) -> bool:
        """Whether a limit ended the trajectory, or its last completion was cut off."""
        cut = [step.completion.completion for step in self._steps if step.completion is not None][-1:]
        return self._ended_by is not None or any(one is not None and one.truncated for one in cut)

    def samples(self) -> list[Sample]:
        """One sample for each branch in which something was sampled, in order. Each completion is trained in one sample."""
        return samples_of(self._steps, side_padding=self.side_arrays, reward=self._reward, truncated=self.truncated)

    def to_json(self) -> str:
        """The trajectory as JSON, without loss. `from_json` goes on where it stopped.

        `renderers.trajectory.to_json` stores several trajectories of a session with their shared tokens once.

        Raises:
            TrajectoryError: for messages, tools or side arrays that JSON cannot say.
        """
        from renderers.trajectory.document import to_json

        return to_json([self])

    @classmethod
    def from_json(cls, text: str | bytes, renderer: Renderer[Any]) -> Trajectory:
        """The trajectory of `to_json`, for the renderer that it was recorded with.

        Raises:
            TrajectoryError: the text is not one trajectory, or was recorded with another renderer.
        """
        from renderers.trajectory.document import from_json

        found = from_json(text, renderer)
        if len(found) != 1:
            raise TrajectoryError(f"this holds {len(found)} trajectories: use `renderers.trajectory.from_json`")
        return found[0]

    # For storing and forking ------------------------------------------------------------------------------------------

    @property
    def steps(self) -> Sequence[Step]:
        """The steps. Not part of the public surface."""
        return self._steps

    @property
    def inherited(self) -> int:
        """How many of the steps came with a fork. Not part of the public surface."""
        return self._inherited

    def restore(self, steps: list[Step], ended_by: Limit | None, inherited: int) -> None:
        """Give an empty trajectory its steps. Not part of the public surface."""
        self._steps, self._ended_by, self._inherited = steps, ended_by, inherited

    # How it works ----------------------------------------------------------------------------------------------------

    @property
    def _last(self) -> Step:
        if not self._steps:
            raise TrajectoryError(self._over if self._ended_by else "this trajectory has not begun: call `begin` first")
        return self._steps[-1]

    @property
    def _tip(self) -> Node:
        return self._steps[-1].tip if self._steps else self.tree.root

    @property
    def _waiting(self) -> Step:
        """The step whose prompt waits for its completion."""
        last = self._last
        if self._ended_by:
            raise TrajectoryError(self._over)
        if last.completion is not None:
            raise TrajectoryError("the last prompt has its completion: call `add_messages` before the next one")
        return last

    @property
    def _over(self) -> str:
        return f"this trajectory was ended by {self._ended_by}; its samples hold what was sampled"

    def _sibling(self) -> Trajectory:
        """An empty trajectory of the same session, with the same settings."""
        return Trajectory(
            self.renderer,
            tree=self.tree,
            max_length=self.max_length,
            reserve=self.reserve,
            max_turns=self.max_turns,
            side_arrays=self.side_arrays,
        )

    def _parse(self, step: Step, ids: list[int], stopped: bool | None) -> ParsedResponse:
        # What the renderer appended tells how the reply begins: looking at the whole prompt would cost its length.
        opening = prompt_of(self.renderer, self._steps).segment.own_ids()
        return self.renderer.parse_response(ids, prompt_ids=opening, tools=step.tools, stopped=stopped)

    def _take(self, earlier: Sequence[Step], make: Callable[..., Step | None], *arguments: Any) -> bool:
        """Go on from `earlier` with the step that `make` makes, where the limits leave room for it."""
        if self.max_turns is not None and len(earlier) >= self.max_turns:
            self._ended_by = Limit.MAX_TURNS
            return False
        room = None if self.max_length is None else self.max_length - self.reserve
        step = make(self.renderer, self.tree, earlier, *arguments, room=room)
        if step is None:
            self._ended_by = Limit.MAX_LENGTH
            return False
        self._steps, self._ended_by = [*earlier, step], None
        self._inherited = min(self._inherited, len(earlier))
        return True


def _first(load: Callable[..., list[Trajectory]], document: dict[str, Any], renderer: Renderer[Any]) -> Trajectory:
    return load(document, renderer)[0]


def _snapshot(messages: Sequence[Mapping[str, Any]]) -> Messages:
    """The caller's messages as they are now: it may go on changing its own.

    Raises:
        MessageError: for what are no messages.
    """
    validate_messages(messages)
    return copy.deepcopy(as_dicts(messages))


def _tools_snapshot(tools: Sequence[Mapping[str, Any]] | None) -> Tools:
    validate_tools(tools)
    return None if tools is None else copy.deepcopy([dict(tool) for tool in tools])
