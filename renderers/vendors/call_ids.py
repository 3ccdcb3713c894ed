"""Tool-call IDs in the form that one model or API takes, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from renderers.messages import as_dicts
from renderers.vendors.blocks import function_of
from renderers.vendors.payloads import Json


class ToolCallIds:
    """Maps the IDs of a conversation's tool calls to the form that a model needs, and back.

    IDs that already have the form stay. A result gets the ID of the call that it answers: the last one before it with
    its ID, or where it has none the next call of its tool in the message before it. The messages may be given in portions, in order:
    each portion is mapped as if it had come with those before it.

    >>> ids = ToolCallIds("functions.{name}:{index}")
    >>> call = {"id": "toolu_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    >>> conversation = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "toolu_1"}]
    >>> mapped = ids.to_model(conversation)
    >>> mapped[0]["tool_calls"][0]["id"], mapped[1]["tool_call_id"]
    ('functions.get_weather:0', 'functions.get_weather:0')
    >>> ids.from_model(mapped) == conversation
    True

    Args:
        form: how an ID is made: `{name}` stands for the tool's name, `{index}` for the call's number in the
            conversation. None leaves all IDs as they are. A renderer says it: `renderer.tool_call_id_form`.
        pattern: regular expression of the IDs that need no mapping; those of `form` if None.
        unique: map an ID that an earlier call has already.
    """

    def __init__(self, form: str | None, *, pattern: str | None = None, unique: bool = False) -> None:
        self.form = form
        self._pattern = pattern
        self._unique = unique
        self._count = 0
        self._used: set[str] = set()
        self._open: list[
            tuple[str, str | None, str]
        ] = []  # unanswered calls of the last turn: name, ID given, ID mapped
        self._latest: dict[str, str] = {}
        self._given: dict[str, str | None] = {}

    def to_model(self, messages: Sequence[Mapping[str, Any]]) -> list[Json]:
        """The messages with mapped IDs; those without any are passed on as they are."""
        plain = as_dicts(messages)
        return plain if self.form is None else [self._map(message) for message in plain]

    def keep(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Take note of messages that the model itself wrote: their IDs stay as they are."""
        for message in as_dicts(messages):
            self._open = []
            for call in message.get("tool_calls") or ():
                self._note(call.get("id"), str(function_of(call).get("name", "")), str(call.get("id")))

    def from_model(self, messages: Sequence[Mapping[str, Any]]) -> list[Json]:
        """The messages with the IDs as they were before `to_model`; IDs that it never gave stay.

        A result that came without an ID then has that of its call.
        """
        return [self._map_back(message) for message in as_dicts(messages)]

    def _map(self, message: Json) -> Json:
        if message.get("role") == "assistant":
            self._open = []
            calls = [self._map_call(call) for call in message.get("tool_calls") or ()]
            return message if calls == (message.get("tool_calls") or []) else {**message, "tool_calls": calls}
        if message.get("role") == "tool":
            given = message.get("tool_call_id")
            mapped = self._answered(given, message)
            return message if mapped == given else {**message, "tool_call_id": mapped}
        return message

    def _map_call(self, call: Json) -> Json:
        given, name = call.get("id"), str(function_of(call).get("name", ""))
        mapped = given if given is not None and self._fits(given, name) else self._make(name)
        self._note(given, name, mapped)
        return call if mapped == given else {**call, "id": mapped}

    def _note(self, given: str | None, name: str, mapped: str) -> None:
        self._count += 1
        self._used.add(mapped)
        self._given[mapped] = given
        self._open.append((name, given, mapped))
        if given is not None:
            self._latest[given] = mapped

    def _answered(self, given: str | None, message: Json) -> str | None:
        tool = message.get("name")
        for position, (name, one, mapped) in enumerate(self._open):
            if one == given if given is not None else tool in {None, name}:
                del self._open[position]
                return mapped
        if given is None:
            return None
        if given in self._latest:
            return self._latest[given]
        name = str(tool or "unknown")  # a result whose call is not in the conversation
        if self._fits(given, name):
            return given
        mapped = self._latest[given] = self._make(name)
        self._used.add(mapped)
        self._given[mapped] = given
        return mapped

    def _fits(self, given: str, name: str) -> bool:
        if given in self._used and (self._unique or self._given[given] != given):  # it stands for another one already
            return False
        pattern = self._pattern
        if pattern is None:
            template = re.escape(self.form or "")
            pattern = template.replace(r"\{name\}", re.escape(name)).replace(r"\{index\}", "[0-9]+")
        return re.fullmatch(pattern, given, re.DOTALL) is not None

    def _make(self, name: str) -> str:
        assert self.form is not None  # noqa: S101 - nothing is mapped without one
        index = self._count
        while (made := self.form.format(name=name, index=index)) in self._used:
            index += 1
        return made

    def _map_back(self, message: Json) -> Json:
        if message.get("role") == "assistant" and message.get("tool_calls"):
            calls = [self._restored(call, "id") for call in message["tool_calls"]]
            return message if calls == message["tool_calls"] else {**message, "tool_calls": calls}
        if message.get("role") == "tool":
            return self._restored(message, "tool_call_id")
        return message

    def _restored(self, holder: Json, field: str) -> Json:
        mapped = holder.get(field)
        given = self._given.get(mapped, mapped) if isinstance(mapped, str) else mapped
        if given == mapped:
            return holder
        if given is None:
            return {key: value for key, value in holder.items() if key != field}
        return {**holder, field: given}
