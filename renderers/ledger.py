"""One session of several models: turns of open models hold tokens, turns of vendors' models hold messages.

>>> from renderers import create_renderer
>>> from renderers.ledger import Ledger
>>> from renderers.vendors import ANTHROPIC
>>> ledger = Ledger({"qwen": create_renderer("golden:qwen3"), "claude": ANTHROPIC})
>>> ledger.add_messages([{"role": "user", "content": "hi"}])
>>> request = ledger.request("claude", {"model": "claude-opus-4-8", "max_tokens": 99})  # to the API; here is its reply
>>> reply = {"role": "assistant", "content": [{"type": "text", "text": "Hello."}], "stop_reason": "end_turn"}
>>> ledger.add_reply("claude", ANTHROPIC.read_reply(reply))
>>> ledger.add_messages([{"role": "user", "content": "hi"}])
>>> prompt = ledger.next_prompt_ids("qwen")  # to the engine; here is what it sampled
>>> parsed = ledger.add_completion("qwen", [14990, 151645])
>>> [turn.author for turn in ledger.turns]
[None, 'claude', None, 'qwen']
>>> [sample] = ledger.trajectory("qwen").samples()
>>> sample.ids == [*prompt, 14990, 151645], sum(sample.action_mask)
(True, 2)
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from renderers.errors import MessageError, TrajectoryError
from renderers.parsed import ParsedResponse
from renderers.renderer import Renderer
from renderers.trajectory import Trajectory
from renderers.vendors.api import Reply, VendorApi, Written
from renderers.vendors.approximations import approximations
from renderers.vendors.call_ids import ToolCallIds
from renderers.vendors.canonical import canonical

FORMAT: Literal["renderers-ledger-1"] = "renderers-ledger-1"
#: The author of an assistant's message that the harness gave.
HARNESS = "harness"


@dataclass(frozen=True, slots=True)
class LedgerTurn:
    """One message of the session.

    Attributes:
        message: the canonical message; of a vendor's model with what goes back to its API alone.
        author: the model whose turn it is; None for messages of the environment.
        approximated: what nobody knows of the tokens, where the turn came as text; empty where tokens came, and for
            messages of the environment.
    """

    message: dict[str, Any]
    author: str | None = None
    approximated: tuple[str, ...] = ()


@dataclass(slots=True)
class _Open:
    """An open model: its trajectory, and how much of the session stands in it."""

    trajectory: Trajectory
    ids: ToolCallIds
    seen: int = 0


class _Stored(BaseModel):
    seen: int
    trajectory: str | None


class _Document(BaseModel):
    format: Literal["renderers-ledger-1"]
    tools: list[dict[str, Any]] | None
    turns: list[tuple[dict[str, Any], str | None, list[str]]]
    open: dict[str, _Stored]


class Ledger:
    """A session in which several models take turns.

    Every message is there once. Each model gets all of it in its own form: an open model as tokens, with the turns of
    others rendered in its format; a vendor's as a request of its API, its own earlier turns as it wrote them. What an
    open model sampled stays exactly as it was sampled, in a trajectory of its own, which is bridged over the turns of
    others where the format allows, and otherwise broken, with the reason on record.

    Args:
        models: renderers and vendor APIs, by the names of the models.
        tools: JSON schemas of the tools, the same for all.
        settings: further arguments of each `Trajectory` (`max_length`, ...).
    """

    def __init__(
        self,
        models: Mapping[str, Renderer[Any] | VendorApi],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **settings: Any,
    ) -> None:
        self.models: dict[str, Renderer[Any] | VendorApi] = dict(models)
        self.tools = None if tools is None else [copy.deepcopy(dict(tool)) for tool in tools]
        self._turns: list[LedgerTurn] = []
        self._open = {
            name: _Open(Trajectory(model, **settings), ToolCallIds(model.tool_call_id_form))
            for name, model in self.models.items()
            if isinstance(model, Renderer)
        }

    def __repr__(self) -> str:
        return f"Ledger({len(self._turns)} turns of {', '.join(self.models)})"

    @property
    def turns(self) -> Sequence[LedgerTurn]:
        """The session's messages with their authors, in order."""
        return tuple(self._turns)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The session's messages alone. A new list."""
        return copy.deepcopy([turn.message for turn in self._turns])

    def trajectory(self, name: str) -> Trajectory:
        """The trajectory of an open model.

        Raises:
            TrajectoryError: there is no open model of this name.
        """
        return self._model(name).trajectory

    def add_messages(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Add what the environment says: to every model.

        Raises:
            MessageError: for what are no messages. Nothing is added then.
        """
        self._turns += [LedgerTurn(message) for message in canonical(messages)]

    # Open models -----------------------------------------------------------------------------------------------------

    def next_prompt_ids(self, name: str) -> list[int]:
        """The prompt of an open model's next turn: what the engine must be given, token for token.

        Raises:
            MessageError: for a message that its format cannot say.
            TrajectoryError: there is no open model of this name, nothing for it to answer, or a limit ended its
                trajectory.
        """
        one = self._model(name)
        if one.seen < len(self._turns):
            self._show(name, one)
        if one.trajectory.ended_by is not None:
            raise TrajectoryError(f"the trajectory of {name!r} is over: {one.trajectory.ended_by.value} is reached")
        return one.trajectory.next_prompt_ids

    def add_completion(
        self, name: str, token_ids: Sequence[int], logprobs: Sequence[float | None] | None = None, **about: Any
    ) -> ParsedResponse:
        """Add an open model's turn: what was sampled to its prompt, see `Trajectory.add_completion`.

        Raises:
            TokenIdsError: for what cannot be token IDs.
            TrajectoryError: its prompt was not asked for since the last message.
        """
        one = self._up_to_date(name)
        parsed = one.trajectory.add_completion(token_ids, logprobs, **about)
        self._append(name, parsed.to_message(), ())
        return parsed

    # Vendors' models -------------------------------------------------------------------------------------------------

    def request(self, name: str, settings: Mapping[str, Any] | None = None) -> Written:
        """The request for a vendor's model's next turn.

        Args:
            name: the model's name.
            settings: further fields of the request, such as `model`.

        Raises:
            MessageError: for a message that the API cannot say.
            TrajectoryError: there is no vendor's model of this name.
        """
        api = self.models.get(name)
        if not isinstance(api, VendorApi):
            raise TrajectoryError(f"there is no vendor's model {name!r}; there are {self._names(VendorApi)}")
        return api.write_request([turn.message for turn in self._turns], tools=self.tools, settings=settings)

    def add_reply(self, name: str, reply: Reply | Mapping[str, Any]) -> None:
        """Add a turn that came as text: a vendor's model's, or an open one's whose engine returned no tokens.

        An open model's trajectory gets it rendered, and its sample is not exact.

        Raises:
            MessageError: for what is no assistant's message.
            TrajectoryError: there is no model of this name, or an open one's prompt was not asked for.
        """
        if name not in self.models:
            raise TrajectoryError(f"there is no model {name!r}; there are {self._names(object)}")
        message = reply.message if isinstance(reply, Reply) else reply
        [copied] = canonical([message])
        if copied["role"] != "assistant":
            raise MessageError(f"a reply is a message of the assistant, found role {copied['role']!r}", field="role")
        approximated = tuple(str(what) for what in approximations(reply))
        if name in self._open:
            self._up_to_date(name).trajectory.add_reply(copied, approximated=approximated)
        self._append(name, copied, approximated)

    # Storing ---------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The session as JSON, without loss. `from_json` goes on where it stopped.

        Raises:
            TrajectoryError: for messages or tools that JSON cannot say.
        """
        stored = {
            name: {"seen": one.seen, "trajectory": one.trajectory.to_json() if one.trajectory.steps else None}
            for name, one in self._open.items()
        }
        turns = [[turn.message, turn.author, turn.approximated] for turn in self._turns]
        return json.dumps({"format": FORMAT, "tools": self.tools, "turns": turns, "open": stored})

    @classmethod
    def from_json(cls, text: str | bytes, models: Mapping[str, Renderer[Any] | VendorApi], **settings: Any) -> Ledger:
        """The session of `to_json`, for the models that it was recorded with.

        Raises:
            TrajectoryError: the text is no such session, or was recorded with other models.
        """
        try:
            document = _Document.model_validate(json.loads(text))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "the text"
            raise TrajectoryError(f"this is no ledger of the format {FORMAT!r}: {place}: {first['msg']}") from None
        except (ValueError, RecursionError) as error:
            raise TrajectoryError(f"this is no JSON: {error}") from None
        ledger = cls(models, tools=document.tools, **settings)
        if document.open.keys() != ledger._open.keys():
            known = ", ".join(document.open)
            raise TrajectoryError(f"the session's open models are {known}; given are {ledger._names(Renderer)}")
        ledger._turns = [LedgerTurn(message, author, tuple(what)) for message, author, what in document.turns]
        for name, one in ledger._open.items():
            stored = document.open[name]
            if stored.trajectory is not None:
                one.trajectory = Trajectory.from_json(stored.trajectory, one.trajectory.renderer)
            ledger._shown(name, one, stored.seen)
        return ledger

    # How it works ----------------------------------------------------------------------------------------------------

    def _model(self, name: str) -> _Open:
        one = self._open.get(name)
        if one is None:
            raise TrajectoryError(f"there is no open model {name!r}; there are {self._names(Renderer)}")
        return one

    def _names(self, kind: type) -> str:
        return ", ".join([name for name, model in self.models.items() if isinstance(model, kind)]) or "none"

    def _up_to_date(self, name: str) -> _Open:
        one = self._model(name)
        if one.seen < len(self._turns):
            raise TrajectoryError(
                f"messages were added since the last prompt of {name!r}: what was sampled does not answer them. Ask for "
                "`next_prompt_ids` first"
            )
        return one

    def _append(self, name: str, message: dict[str, Any], approximated: tuple[str, ...]) -> None:
        """Add a model's turn; it stands in its own trajectory already."""
        self._turns.append(LedgerTurn(message, name, approximated))
        if name in self._open:
            self._shown(name, self._open[name], len(self._turns))

    def _shown(self, name: str, one: _Open, end: int) -> list[dict[str, Any]]:
        """The turns up to `end` that an open model has not seen, in its form; its own stand in its trajectory already."""
        shown = []
        for turn in self._turns[one.seen : end]:
            if turn.author == name:
                one.ids.keep([turn.message])
                continue
            message = turn.message
            if message["role"] == "assistant":
                message = {**message, "written_by": turn.author or HARNESS}
            shown += one.ids.to_model([message])
        one.seen = end
        return shown

    def _show(self, name: str, one: _Open) -> None:
        """Add to an open model's trajectory what it has not seen; where that cannot be, it has still not seen it."""
        before, ids = one.seen, copy.deepcopy(one.ids)
        shown = self._shown(name, one, len(self._turns))
        try:
            if one.trajectory.steps:
                one.trajectory.add_messages(shown)
            else:
                one.trajectory.begin(shown, tools=self.tools)
        except Exception:
            one.seen, one.ids = before, ids
            raise
