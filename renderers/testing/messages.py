"""Builds conversations out of decisions, one byte string a message, within what a profile allows."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from renderers.testing.choices import Choices
from renderers.testing.texts import PROSE, WORDS, adversarial_text, clean_text
from renderers.testing.values import TOOL_NAMES, arguments, arguments_by_schema, arguments_object, tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from renderers.testing.profile import Profile

#: Bytes drawn for a message, and for what stands around the messages. More decisions than that are the simplest ones.
MESSAGE_BYTES = 80
FRAME_BYTES = 96


@dataclass(frozen=True)
class Conversation:
    """What one render gets: messages and tools as the caller gives them, and the template's switches."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    add_generation_prompt: bool = False

    def followed_by(self, messages: Sequence[dict[str, Any]], *, add_generation_prompt: bool) -> Conversation:
        """The same conversation with more messages."""
        extended = [*self.messages, *messages]
        return replace(self, messages=extended, add_generation_prompt=add_generation_prompt)


@dataclass(frozen=True)
class Continuation:
    """What a bridge gets: a prompt, the reply that the model sampled to it, and the environment's new messages."""

    prompt: Conversation
    reply: dict[str, Any]
    new_messages: list[dict[str, Any]]

    @property
    def with_reply(self) -> Conversation:
        """The conversation up to and including the reply."""
        return self.prompt.followed_by([self.reply], add_generation_prompt=False)

    @property
    def extended(self) -> Conversation:
        """The conversation with the new messages and the next generation prompt."""
        return self.prompt.followed_by([self.reply, *self.new_messages], add_generation_prompt=True)


@dataclass(frozen=True)
class Rollout:
    """A prompt, and steps: a reply each, and the environment's new messages after it."""

    prompt: Conversation
    steps: list[tuple[dict[str, Any], list[dict[str, Any]]]]


#: What may follow, most likely first: by the state of the conversation, each role as often as it should come up.
_NEXT_ROLES = {
    "start": "user user user user user system system system system developer assistant tool",
    "system": "user user user user user user user assistant system developer",
    "user": "assistant assistant assistant assistant assistant assistant user system developer tool",
    "calls": "tool tool tool tool tool tool tool user assistant system",
    "answered": "assistant assistant assistant assistant assistant user user tool system",
    "assistant": "user user user user user user assistant tool system developer",
}


@functools.lru_cache(maxsize=4096)
def _roles_after(profile: Profile, state: str, last_turn: str) -> tuple[str, ...]:
    """The roles that may come next. `last_turn` is the last role but system and tool, for formats that alternate."""
    allowed = [role for role in _NEXT_ROLES[state].split() if role in profile.roles]
    if not profile.late_system and state != "start":
        allowed = [role for role in allowed if role not in {"system", "developer"}]
    if profile.needs_call_before_result and state not in {"calls", "answered"}:
        allowed = [role for role in allowed if role != "tool"]
    if profile.alternates:
        allowed = [role for role in allowed if role not in {"user", "assistant"} or role != last_turn]
        allowed = [role for role in allowed if role != "assistant" or last_turn]
    return tuple(allowed) or ("user",)


class Builder:
    """A conversation that grows message by message."""

    def __init__(self, profile: Profile, conversation_tools: Sequence[dict[str, Any]] | None) -> None:
        self.profile = profile
        self.messages: list[dict[str, Any]] = []
        functions = [tool["function"] for tool in conversation_tools or ()]
        self._names: list[str] = [function["name"] for function in functions]
        self._parameters = {function["name"]: function.get("parameters") for function in reversed(functions)}
        self._offers_tools = bool(conversation_tools)
        self._open: list[tuple[str, str]] = []  # calls that have no result yet: ID and name
        self._had_calls = False
        self._calls_made = 0

    def _state(self) -> str:
        if not self.messages:
            return "start"
        role: str = self.messages[-1]["role"]
        if role == "tool":
            return "calls" if self._open else "answered"
        if role == "assistant":
            return "calls" if self._open else "assistant"
        return "system" if role in {"system", "developer"} else "user"

    def _last_turn(self) -> str:
        for message in reversed(self.messages):
            if message["role"] in {"user", "assistant"}:
                return str(message["role"])
        return ""

    def next_roles(self) -> tuple[str, ...]:
        """The roles that the next message may have, by likelihood."""
        if self._offers_tools and self.profile.tools_need_system_or_user_first:
            roles = [message["role"] for message in self.messages]
            if not roles:
                return ("user", "system")
            if roles == ["system"]:
                return ("user",)
        return _roles_after(self.profile, self._state(), self._last_turn() if self.profile.alternates else "")

    def add(self, data: bytes) -> None:
        """Append the message that these bytes describe."""
        choices = Choices(data)
        self.append(self.message(choices, choices.pick(self.next_roles())))

    def add_from_environment(self, messages: Sequence[bytes]) -> None:
        """Append messages of any role but the assistant's."""
        for data in messages:
            choices = Choices(data)
            roles = [role for role in self.next_roles() if role != "assistant"]
            self.append(self.message(choices, choices.pick(roles or ("user",))))

    def append(self, message: dict[str, Any]) -> None:
        """Append this message."""
        role = message["role"]
        if role == "assistant":
            calls = message.get("tool_calls") or []
            self._open = [(call.get("id") or "", call["function"]["name"]) for call in calls]
            self._had_calls = bool(calls)
            self._calls_made += len(calls)
        elif role == "tool":
            self._open = self._open[1:]
        else:
            self._open = []
        self.messages.append(message)

    def message(self, choices: Choices, role: str) -> dict[str, Any]:
        """A message of this role."""
        clean = not choices.chance(45)
        if role == "assistant":
            message = self.assistant(choices, clean=clean)
        elif role == "tool":
            message = self.tool_result(choices, clean=clean)
        else:
            message = {"role": role}
            self._set_content(message, choices, clean=clean, optional=role in self.profile.optional_content)
            if self.profile.names and choices.chance(8):
                message["name"] = choices.pick(("bob", "Zoë", "a_b"))
        if choices.chance(4):
            message["annotations"] = []  # a key that APIs add, and that no template reads
        return message

    def _set_content(self, message: dict[str, Any], choices: Choices, *, clean: bool, optional: bool) -> None:
        """Give the message content: text, text parts, or nothing, where that is allowed."""
        kind = choices.below(16)
        if kind == 13 and optional:
            message["content"] = None
        elif kind == 14 and optional:
            message.pop("content", None)
        elif kind == 15:
            message["content"] = [
                {"type": "text", "text": self._text(choices, clean=clean)} for _ in range(choices.pick((1, 2, 3, 0)))
            ]
        else:
            message["content"] = self._text(choices, clean=clean)

    def _text(self, choices: Choices, *, clean: bool) -> str:
        return clean_text(choices) if clean else adversarial_text(choices, self.profile)

    def assistant(self, choices: Choices, *, clean: bool) -> dict[str, Any]:
        """An assistant message: an answer, reasoning, calls, or any of them together."""
        profile = self.profile
        message: dict[str, Any] = {"role": "assistant"}
        with_calls = "tool" in profile.roles and choices.chance(45)
        if with_calls and choices.chance(50):
            content = choices.pick(("", None, ""))
            message["content"] = content
            if content is None and not profile.optional_content_beside_calls:
                message["content"] = ""
        else:
            optional = profile.optional_content_beside_calls if with_calls else "assistant" in profile.optional_content
            self._set_content(message, choices, clean=clean, optional=optional)
        if with_calls:
            count = 1 + choices.pick((0, 0, 0, 1, 2)) if profile.parallel_calls else 1
            message["tool_calls"] = [self._call(choices, index) for index in range(count)]
        elif choices.chance(8):
            message["tool_calls"] = [] if profile.empty_tool_calls else None
        if choices.chance(50 if profile.reasoning else 15) and (
            not with_calls or profile.content_beside_reasoning_and_calls or not message.get("content")
        ):
            self._set_reasoning(message, choices, clean=clean)
        return message

    def _set_reasoning(self, message: dict[str, Any], choices: Choices, *, clean: bool) -> None:
        kind = choices.below(12)
        key = "reasoning" if kind == 8 else "reasoning_content"
        if kind <= 8:
            message[key] = self._text(choices, clean=clean)
        elif kind == 9:
            message[key] = ""
        elif kind == 10:
            message[key] = None
        else:
            message.update(reasoning=choices.pick(WORDS), reasoning_content=choices.pick(PROSE))

    def _call(self, choices: Choices, index: int) -> dict[str, Any]:
        name = self._tool_name(choices)
        function: dict[str, Any] = {"name": name, "arguments": arguments(choices, self.profile)}
        call: dict[str, Any] = {"id": self._call_id(choices, name, index), "type": "function", "function": function}
        if choices.chance(10):
            del call["id"]
        if self.profile.optional_call_type and choices.chance(10):
            del call["type"]
        return call

    def _tool_name(self, choices: Choices) -> str:
        known: Sequence[str] = self._names
        return choices.pick(TOOL_NAMES if not known or choices.chance(20) else known)

    def _call_id(self, choices: Choices, name: str, index: int) -> str:
        number = self._calls_made + index
        if (self.profile.call_ids == "kimi") != choices.chance(10):
            return f"functions.{name}:{number}"
        return f"call_{number}"

    def tool_result(self, choices: Choices, *, clean: bool) -> dict[str, Any]:
        """A tool message, usually for the oldest call that has no result yet."""
        message: dict[str, Any] = {"role": "tool"}
        call_id, name = self._open[0] if self._open else ("call_9", choices.pick(TOOL_NAMES))
        if len(self._open) > 1 and choices.chance(15):  # results out of order
            call_id, name = self._open[-1]
        if call_id and not choices.chance(8):
            message["tool_call_id"] = call_id
        if self.profile.names and choices.chance(25):
            message["name"] = name
        if choices.chance(15):
            message["content"] = choices.pick(('{"temp": 21.5, "unit": "°C"}', "[]", "null", "Error: not found\n", ""))
        else:
            optional = "tool" in self.profile.optional_content and not self.profile.results_need_text
            self._set_content(message, choices, clean=clean, optional=optional)
        return message

    def reply(self, choices: Choices, kwargs: dict[str, Any]) -> dict[str, Any]:
        """An assistant message as a model would give it: no markers in its texts, arguments as objects.

        It has reasoning where the model would reason under these switches.
        """
        profile = self.profile
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        with_calls = "tool" in profile.roles and choices.chance(55)
        if not with_calls or choices.chance(40):
            message["content"] = clean_text(choices)
        switch, off = profile.thinking_off or ("", None)
        thinks = profile.reasoning and not (switch and kwargs.get(switch) == off)
        if choices.chance(95 if profile.opens_reasoning else 70) and thinks:
            reasoning = clean_text(choices)
            message["reasoning_content"] = reasoning if reasoning.strip() and not choices.chance(8) else ""
        if with_calls:
            count = min(choices.pick((1, 1, 1, 2, 3)), profile.most_calls_in_reply) if profile.parallel_calls else 1
            if profile.null_content_beside_calls:
                message["content"] = None
            message["tool_calls"] = [self._clean_call(choices, index) for index in range(count)]
            if not profile.content_beside_reasoning_and_calls:
                message["content"] = ""
        return message

    def _clean_call(self, choices: Choices, index: int) -> dict[str, Any]:
        name = self._tool_name(choices)
        number = self._calls_made + index
        call_id = f"functions.{name}:{number}" if self.profile.call_ids == "kimi" else f"call_{number}"
        if self.profile.typed_arguments:
            found = arguments_object(choices, self.profile, clean=True)
        else:
            found = arguments_by_schema(choices, self.profile, self._parameters.get(name))
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": found}}


def _switches(choices: Choices, profile: Profile) -> dict[str, Any]:
    chosen = {name: choices.pick(values) for name, values in profile.switches if choices.chance(50)}
    return {**dict(profile.fixed_switches), **chosen}


def _frame(profile: Profile, data: bytes) -> tuple[list[dict[str, Any]] | None, dict[str, Any], bool]:
    """What stands around the messages: tools, switches, and whether a generation prompt is asked for."""
    choices = Choices(data)
    add_generation_prompt = choices.chance(50)
    kwargs = _switches(choices, profile)
    return tools(choices, profile), kwargs, add_generation_prompt


def is_query(message: dict[str, Any]) -> bool:
    """Whether a message is a user's question rather than a tool's answer in a user's clothes."""
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    text = text.strip()
    return message["role"] == "user" and not (text.startswith("<tool_response>") and text.endswith("</tool_response>"))


def _finish(builder: Builder) -> list[dict[str, Any]]:
    messages = builder.messages
    if builder.profile.needs_user_query and not any(is_query(message) for message in messages):
        start = 1 if messages[0]["role"] in {"system", "developer"} else 0
        messages.insert(start, {"role": "user", "content": "q"})
    return messages


def build_conversation(profile: Profile, frame: bytes, messages: Sequence[bytes]) -> Conversation:
    """The conversation that these bytes describe."""
    conversation_tools, kwargs, add_generation_prompt = _frame(profile, frame)
    builder = Builder(profile, conversation_tools)
    for data in messages:
        builder.add(data)
    return Conversation(_finish(builder), conversation_tools, kwargs, add_generation_prompt)


def build_continuation(
    profile: Profile, frame: bytes, messages: Sequence[bytes], reply: bytes, new_messages: Sequence[bytes]
) -> Continuation:
    """The prompt, reply and new messages that these bytes describe.

    The prompt ends where an assistant may answer, and the new messages hold what an environment gives: results of the
    reply's calls, or a user's turn.
    """
    conversation_tools, kwargs, _ = _frame(profile, frame)
    builder = Builder(profile, conversation_tools)
    for data in messages:
        builder.add(data)
    if "assistant" not in builder.next_roles():
        builder.append({"role": "user", "content": "q"})
    prior = _finish(builder)
    if not any(is_query(message) for message in prior) and reply[:1] < b"\xd0":  # rollouts without a query are rare
        prior.append({"role": "user", "content": "q"})
    prompt = Conversation(list(prior), conversation_tools, kwargs, add_generation_prompt=True)
    reply_message = builder.reply(Choices(reply[1:]), kwargs)
    builder.append(reply_message)
    count = len(builder.messages)
    builder.add_from_environment(new_messages)
    return Continuation(prompt, reply_message, builder.messages[count:])


def build_rollout(profile: Profile, frame: bytes, turns: Sequence[tuple[bytes, bytes, Sequence[bytes]]]) -> Rollout:
    """The rollout that these bytes describe: a question, then replies and what the environment answers to them."""
    conversation_tools, kwargs, _ = _frame(profile, frame)
    builder = Builder(profile, conversation_tools)
    builder.append({"role": "user", "content": clean_text(Choices(frame[::-1]))})
    prompt = Conversation(list(builder.messages), conversation_tools, kwargs, add_generation_prompt=True)
    steps = []
    for reply, single, more in turns:
        message = builder.reply(Choices(reply), kwargs)
        builder.append(message)
        count = len(builder.messages)
        builder.add_from_environment([single, *more])
        steps.append((message, builder.messages[count:]))
    return Rollout(prompt, steps)


def build_reply(profile: Profile, data: bytes) -> tuple[Conversation, dict[str, Any]]:
    """A short prompt and a reply to it."""
    choices = Choices(data)
    kwargs = _switches(choices, profile)
    reply_tools = tools(Choices(data[::-1]), profile)  # from the other end, so that a reply keeps its bytes
    builder = Builder(profile, reply_tools)
    builder.append({"role": "user", "content": "q"})
    prompt = Conversation(list(builder.messages), reply_tools, kwargs, add_generation_prompt=True)
    return prompt, builder.reply(choices, kwargs)
