"""APIs whose conversation is a list of turns, each a list of blocks, with tool results among the user's blocks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import groupby
from typing import Any, ClassVar

from renderers.messages import VENDOR_BLOCKS
from renderers.vendors.api import VendorApi
from renderers.vendors.blocks import BlockForm, keep, keep_blocks, kept_of, read_assistant, write_assistant
from renderers.vendors.payloads import Json

_SYSTEM_ROLES = ("system", "developer")


class TurnApi(VendorApi, BlockForm):
    """An API of turns.

    The results of an assistant's calls are one turn of the user. Every other message is a turn of its own, but for the
    system messages at the beginning, which stand outside.
    """

    #: The role of the assistant's turns.
    assistant_role: ClassVar[str]
    #: The field of a turn that holds its blocks.
    blocks_field: ClassVar[str]
    #: The field of a request that holds the system messages at the beginning.
    system_field: ClassVar[str]

    # What such an API says of itself ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _late_system_role(self) -> str:
        """The role of the turn of a system message that comes later."""

    @abstractmethod
    def _is_result(self, block: Json) -> bool:
        """Whether a block of the user's is a tool's result."""

    @abstractmethod
    def _read_result(self, block: Json, earlier: Sequence[Json]) -> Json:
        """A result as a tool's message, as much as other models can read; `earlier` are the messages before it."""

    @abstractmethod
    def _write_result(self, message: Json, earlier: Sequence[Json]) -> Json:
        """A tool's message as a block."""

    @abstractmethod
    def _read_content(self, content: Any) -> str | list[Json]:
        """The content of a user's or system turn, as a message's."""

    @abstractmethod
    def _write_content(self, content: str | list[Json], kept: Any, index: int) -> Any:
        """The same back, the kept blocks where they say the same."""

    def _as_blocks(self, content: Any) -> list[Json]:
        """The content of a turn as a list of blocks."""
        blocks: list[Json] = content or []
        return blocks

    def _named(self, blocks: list[Json]) -> list[Json]:
        """An assistant's blocks, with IDs for the calls that have none."""
        return blocks

    def _system_turn(self, given: Any) -> Json:
        """What stands in a request's system field, as a turn."""
        turn: Json = given
        return turn

    def _system_value(self, turn: Json) -> Any:
        """A turn, as what stands in a request's system field."""
        return turn

    def _kept_messages(self, kept: Json, role: str) -> list[Any]:
        content = kept.get("content")
        turn = {
            "role": self.assistant_role if role == "assistant" else "user",
            self.blocks_field: [content] if isinstance(content, dict) else content or [],
        }
        return [{**dict(kept.get("turn") or {}), **turn}]

    # Reading ---------------------------------------------------------------------------------------------------------

    def _read_messages(self, request: Json) -> tuple[list[Json], Json]:
        settings = {name: value for name, value in request.items() if name != self.messages_field}
        messages: list[Json] = []
        if settings.get(self.system_field) is not None:
            turn = self._system_turn(settings.pop(self.system_field))
            messages.append(self._read_text("system", turn.get(self.blocks_field)))
            self._keep_turn(messages[0], turn, {})
        for turn in request[self.messages_field]:
            self._read_turn(turn, messages)
        return messages, settings

    def _read_turn(self, turn: Json, messages: list[Json]) -> None:
        """Append the messages of a turn."""
        if turn.get("role") == self.assistant_role:
            messages.append(self._read_assistant(turn))
            return
        content = turn.get(self.blocks_field)
        fragments: list[tuple[bool, Any]] = []
        for are_results, group in groupby(content if isinstance(content, list) else (), key=self._is_result):
            blocks = list(group)
            fragments += [(True, block) for block in blocks] if are_results else [(False, blocks)]
        role = "system" if turn.get("role") == "system" else "user"
        for position, (is_result, given) in enumerate(fragments or [(False, content)]):
            message = self._read_tool_result(given, messages) if is_result else self._read_text(role, given)
            begins = position == 0
            if begins != self._begins_turn(message, messages):
                keep(message, self.provider, begins_turn=begins)
            if begins:
                self._keep_turn(message, turn, {"role": self._role_of(message)})
            messages.append(message)

    def _read_tool_result(self, block: Json, earlier: list[Json]) -> Json:
        message = self._read_result(block, earlier)
        if self._write_result(message, earlier) != block:
            keep(message, self.provider, content=block)
        return message

    def _read_text(self, role: str, content: Any) -> Json:
        message: Json = {"role": role, "content": self._read_content(content)}
        if content is not None and self._write_content(message["content"], None, 0) != content:
            keep(message, self.provider, content=content)
        return message

    def _read_assistant(self, turn: Json) -> Json:
        content = turn.get(self.blocks_field)
        blocks = self._named(self._as_blocks(content))
        message = read_assistant(self, blocks)
        if self._write_assistant(message, 0) != turn:
            if content is not None:
                keep_blocks(self, message, content)
            self._keep_turn(message, turn, {"role": self.assistant_role})
        return message

    def _keep_turn(self, message: Json, turn: Json, usual: Json) -> None:
        """Keep what a turn has beside its blocks, where it is not the usual."""
        beside = {name: value for name, value in turn.items() if name != self.blocks_field}
        if beside != usual:
            keep(message, self.provider, turn=beside)
        if turn.get(self.blocks_field) is None:
            keep(message, self.provider, bare=self.blocks_field in turn)

    # Writing ---------------------------------------------------------------------------------------------------------

    def _write_messages(self, messages: list[Json]) -> tuple[Json, set[int]]:
        leading = 0
        while leading < len(messages) and not self._starts_turns(messages, leading):
            leading += 1
        request: Json = {}
        absent = set(range(1, leading))
        if leading:
            request[self.system_field] = self._write_system(messages[:leading])
        turns: list[Json] = []
        for index in range(leading, len(messages)):
            message = messages[index]
            if message["role"] == "assistant":
                turn = self._write_assistant(message, index)
                if turn is None:
                    absent.add(index)
                else:
                    turns.append(turn)
                continue
            content = self._write_fragment(message, messages[:index])
            kept = kept_of(message, self.provider)
            begins = kept.get("begins_turn", self._begins_turn(message, messages[:index]))
            if begins or not turns or turns[-1].get("role") in {self.assistant_role, "system"}:
                turns.append(
                    self._turn(kept, {"role": self._role_of(message)}, content, empty=not message.get("content"))
                )
            else:
                joined = self._as_blocks(turns[-1].get(self.blocks_field)) + self._as_blocks(content)
                turns[-1][self.blocks_field] = joined
        return {**request, self.messages_field: turns}, absent

    def _starts_turns(self, messages: list[Json], index: int) -> bool:
        """Whether a message at the beginning does not belong into the system field."""
        message = messages[index]
        return message["role"] not in _SYSTEM_ROLES or bool(kept_of(message, self.provider).get("begins_turn"))

    def _write_system(self, messages: list[Json]) -> Any:
        kept = kept_of(messages[0], self.provider)
        contents = [self._write_text(message, index) for index, message in enumerate(messages)]
        content = contents[0]
        if len(contents) > 1:
            content = [block for one in contents for block in self._as_blocks(one)]
        return self._system_value(self._turn(kept, {}, content, empty=not messages[0].get("content")))

    def _write_fragment(self, message: Json, earlier: list[Json]) -> Any:
        """The content of a user's, system or tool's message."""
        if message["role"] != "tool":
            return self._write_text(message, len(earlier))
        kept = kept_of(message, self.provider).get("content")
        if kept is not None and self._readable(message) == self._read_result(kept, earlier):
            return [kept]
        return [self._write_result(message, earlier)]

    def _write_text(self, message: Json, index: int) -> Any:
        content, kept = _content_of(message), kept_of(message, self.provider).get("content")
        if kept is not None and self._read_content(kept) == content:
            return kept
        return self._write_content(content, kept, index)

    def _write_assistant(self, message: Json, index: int) -> Json | None:
        """The assistant's turn; None where there is nothing that it could say."""
        kept = kept_of(message, self.provider)
        content = kept.get("content")
        given = self._as_blocks(content)
        named = self._named(given)
        unnamed = {id(one): other for one, other in zip(named, given, strict=True)}
        blocks = [unnamed.get(id(block), block) for block in write_assistant(self, message, named, index)]
        if not blocks and (given or not kept.keys() & {"content", "bare"}):
            return None
        whole = content if isinstance(content, str) and blocks == given else blocks
        return self._turn(kept, {"role": self.assistant_role}, whole, empty=not blocks)

    def _turn(self, kept: Json, usual: Json, content: Any, *, empty: bool) -> Json:
        """A turn with what is kept of it. `empty`: the message has no content, as when it was read from a bare turn."""
        turn = {**kept.get("turn", usual)}
        if not (empty and "bare" in kept):
            turn[self.blocks_field] = content
        elif kept["bare"]:
            turn[self.blocks_field] = None
        return turn

    def _readable(self, message: Json) -> Json:
        return {name: value for name, value in message.items() if name != VENDOR_BLOCKS}

    def _begins_turn(self, message: Json, earlier: Sequence[Json]) -> bool:
        """Whether a message begins a turn, if nothing else is said: results come together, and system messages first."""
        if message["role"] == "tool":
            return not earlier or earlier[-1]["role"] != "tool"
        return message["role"] not in _SYSTEM_ROLES or any(one["role"] not in _SYSTEM_ROLES for one in earlier)

    def _role_of(self, message: Json) -> str:
        return self._late_system_role if message["role"] in _SYSTEM_ROLES else "user"


def _content_of(message: Json) -> str | list[Json]:
    content: str | list[Json] | None = message.get("content")
    return "" if content is None else content
