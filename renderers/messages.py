"""Messages and tools: the OpenAI chat shapes, validated once at the border.

The caller's objects are read and never changed. Null fields count as absent, as transformers 5 treats them; unknown
keys are ignored.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Strict, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass as validated_dataclass

from renderers.errors import MessageError, ToolsError

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
#: The names under which a message's reasoning comes; the first is the one that templates read, the first filled counts.
REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")
#: The key of a message under which `renderers.vendors` keeps what a vendor's API said and the OpenAI shapes cannot.
VENDOR_BLOCKS = "vendor_blocks"
#: Keys of a message that are about it, and that no template sees.
UNSEEN_KEYS = frozenset({VENDOR_BLOCKS, "written_by"})
ROLES: tuple[str, ...] = ("system", "developer", "user", "assistant", "tool")

#: Without a conversion: a number is no text, and below a tuple is no list.
PlainText: TypeAlias = Annotated[str, Strict()]
KNOWN_KEYS = ConfigDict(extra="ignore")


def _refuse_bytes(value: Any) -> Any:
    """As bytes, what is no plain data (numpy's texts) would be remembered for them: see `content_of`."""
    if isinstance(value, bytes):
        raise ValueError("bytes are no text")  # noqa: TRY004 - for pydantic
    return value


#: Whatever templates take, but for bytes.
NoBytes: TypeAlias = Annotated[Any, AfterValidator(_refuse_bytes)]


# In slots: of a message that is remembered, no dict lives on.
@validated_dataclass(frozen=True, slots=True, config=KNOWN_KEYS)
class TextPart:
    """A part of a message's content. Only text parts exist: images and other media are an error."""

    type: Literal["text"]
    text: PlainText


class _Printed:
    """Room for what a call's arguments look like as text, once that is known."""

    __slots__ = ("_arguments_text",)
    _arguments_text: str


@validated_dataclass(frozen=True, slots=True, config=KNOWN_KEYS)
class Function(_Printed):
    """What a tool call calls: a tool's name, and its arguments as an object or as JSON text."""

    name: PlainText
    arguments: Annotated[dict[PlainText, Any], Strict()] | PlainText

    @property
    def arguments_text(self) -> str:
        """The arguments as text: JSON text as it came, an object as `tojson` prints it."""
        if isinstance(self.arguments, str):
            return self.arguments
        try:
            return self._arguments_text
        except AttributeError:
            text = to_json(self.arguments)
            object.__setattr__(self, "_arguments_text", text)
            return text

    @property
    def arguments_object(self) -> dict[str, Any]:
        """The arguments as an object: as it came, or read from JSON text.

        Raises:
            ValueError: where the text is no JSON, or no object.
        """
        arguments = json.loads(self.arguments) if isinstance(self.arguments, str) else self.arguments
        if not isinstance(arguments, dict):
            raise ValueError(f"this format needs an object, found {_excerpt(arguments)}")  # noqa: TRY004 - for callers
        return arguments


@validated_dataclass(frozen=True, slots=True, config=KNOWN_KEYS)
class ToolCall:
    """A call of a tool by the assistant."""

    function: Function
    id: PlainText | None = None
    type: PlainText | None = None

    @model_validator(mode="before")
    @classmethod
    def _accept_bare_function(cls, value: Any) -> Any:
        """Some harnesses write `{"name": ..., "arguments": ...}` without the `function` around it."""
        if isinstance(value, dict) and "function" not in value and "name" in value:
            return {**value, "function": value}
        return value


@validated_dataclass(frozen=True, slots=True, config=KNOWN_KEYS)
class Message:
    """One validated message.

    `reasoning_content` has two aliases, `thinking` and `reasoning`; the first of the three that is not null counts.
    `prefix` marks an assistant message that the model continues, as DeepSeek's API has it. `written_by` names the author
    of an assistant message that is another model's: its text was never sampled by the model that is rendered for.
    """

    role: Role
    content: PlainText | Annotated[list[TextPart], Strict()] | None = None
    reasoning_content: PlainText | None = None
    thinking: NoBytes = None
    reasoning: NoBytes = None
    tool_calls: Annotated[list[ToolCall], Strict()] | None = None
    tool_call_id: PlainText | None = None
    name: PlainText | None = None
    prefix: NoBytes = None
    written_by: PlainText | None = None

    @property
    def text(self) -> str | None:
        """The content as one text, its parts joined by a newline as vLLM joins them; None where there is none."""
        return self.text_joined("\n")

    def text_joined(self, separator: str) -> str | None:
        """The content as one text, its parts joined by `separator`; None where there is none."""
        content = self.content
        if content is None or isinstance(content, str):
            return content
        return separator.join([part.text for part in content])

    @property
    def reasoning_text(self) -> str | None:
        """The reasoning under whichever of its three names it came, or None."""
        if self.reasoning_content is not None:
            return self.reasoning_content
        for alias in (self.thinking, self.reasoning):
            if alias is not None:
                return alias if isinstance(alias, str) else None
        return None


_MESSAGES = TypeAdapter(list[Message]).validator


def _path(location: Sequence[int | str]) -> str:
    """`("tool_calls", 0, "function", "name")` as `tool_calls[0].function.name`, without pydantic's union branches."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step not in {"str", "list[TextPart]", "dict[str,any]"}:
            path += f".{step}" if path else step
    return path


_ADVICE = {
    "role": f"use one of {', '.join(ROLES)}",
    "content": "content is text, a list of text parts, or null; images and other media are not supported",
    "arguments": "arguments are an object or JSON text",
}


def message_error(error: ValidationError, *, first_index: int = 0) -> MessageError:
    """Pydantic's first complaint as ours: which message, which field, what was found, what to do."""
    details = error.errors(include_url=False)
    # Of a union's branches, the deepest complaint is about the shape that the caller meant.
    first = max(details, key=lambda detail: (-int(detail["loc"][0]) if detail["loc"] else 0, len(detail["loc"])))
    location = first["loc"]
    if not location:
        return MessageError(f"expected a list of messages, found {type(first['input']).__name__}")
    index, field = first_index + int(location[0]), _path(location[1:])
    found = first["input"]
    if first["type"] == "missing":
        problem = "this field is required"
    elif first["type"] == "string_unicode":
        problem = "the text holds a lone surrogate, which no tokenizer can encode; replace it before rendering"
    else:
        problem = f"{first['msg']}, found {_excerpt(found)}"
    named = [word for word in field.replace("[", ".").split(".") if word in _ADVICE]
    if named:
        problem += f" ({_ADVICE[named[-1]]})"
    return MessageError(problem, message_index=index, field=field or None)


def _excerpt(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - nested too deeply, an integer of too many digits, or an object's own fault
        return type(value).__name__
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def validate_messages(messages: Sequence[Mapping[str, Any]], *, first_index: int = 0) -> list[Message]:
    """The caller's messages, validated. Errors count them from `first_index`.

    Raises:
        MessageError: for anything that is not a list of messages, naming the message and the field.
    """
    require_list(messages)
    validated: list[Message] = validate_with(_MESSAGES, as_dicts(messages, first_index=first_index), first_index)
    return validated


def validate_with(validator: Any, messages: list[dict[str, Any]], first_index: int = 0) -> Any:
    """What pydantic's validator of a list of messages makes of these.

    Raises:
        MessageError: naming the message and the field.
    """
    try:
        try:
            return validator.validate_python(messages)
        except ValidationError as error:
            if all(detail["type"] != "invalid_key" for detail in error.errors(include_url=False)):
                raise
        return validator.validate_python(_with_text_keys(messages))
    except ValidationError as error:
        raise message_error(error, first_index=first_index) from None


def _with_text_keys(value: Any) -> Any:
    """Messages without the keys that are no text: unknown ones, which are ignored. Arguments stay as they are."""
    if isinstance(value, list):
        return [_with_text_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    known = {key: item for key, item in value.items() if isinstance(key, str)}
    return {key: item if key == "arguments" else _with_text_keys(item) for key, item in known.items()}


def require_list(messages: object) -> None:
    """Raise MessageError for what is no list of anything."""
    if type(messages) is list:
        return
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise MessageError(f"expected a list of messages, found {type(messages).__name__}")


def content_of(message: object) -> bytes | None:
    """A message's content byte for byte, key order and number types included; None where it is no plain data.

    Two messages with equal content are equal in all that a format can see.
    """
    if type(message) is not dict:
        return None
    try:
        return marshal.dumps(message, 2)
    except ValueError:  # an object of another type, or nested too deeply
        return None


def contents_of(messages: Sequence[Mapping[str, Any]]) -> tuple[list[bytes], list[dict[str, Any]]]:
    """The content of each message and a copy made of it, up to the first message that has none."""
    contents: list[bytes] = []
    copies: list[dict[str, Any]] = []
    for message in messages:
        if type(message) is dict:
            copy = dict(message)
            if {*map(type, copy), *map(type, copy.values())} == {str}:  # which nobody can change
                contents.append(marshal.dumps(copy, 2))
                copies.append(copy)
                continue
        content = content_of(message)
        if content is None:
            break
        copy = marshal.loads(content)  # noqa: S302 - our own bytes
        try:
            # What only looks like bytes (numpy's numbers) became bytes, and another thread may change the message.
            is_same = copy == message
        except Exception:  # noqa: BLE001 - an object's own comparison
            is_same = False
        if not is_same:
            break
        contents.append(content)
        copies.append(copy)
    return contents, copies


def as_dicts(messages: Sequence[object], *, first_index: int = 0) -> list[dict[str, Any]]:
    """Each message as a dict: as it came, or made of a mapping or of a message object of the OpenAI SDK.

    Raises:
        MessageError: where one is none of these.
    """
    return [_as_dict(message, index) for index, message in enumerate(messages, first_index)]


def _as_dict(message: object, index: int) -> dict[str, Any]:
    if type(message) is dict:
        return message
    if isinstance(message, Mapping):
        return dict(message)
    dump = getattr(message, "model_dump", None)
    if callable(dump) and not isinstance(message, type):  # the message objects of the OpenAI SDK
        dumped = dump()
        if isinstance(dumped, dict):
            return dumped
    raise MessageError(f"a message is a dict, found {_excerpt(message)}", message_index=index)


_AS_TOJSON = json.JSONEncoder(ensure_ascii=False)


def to_json(
    value: Any,
    *,
    ensure_ascii: bool = False,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """`value` as transformers' `tojson` filter prints it: the standard json module, non-ASCII characters as they are."""
    if not (ensure_ascii or separators or sort_keys or default):
        return _AS_TOJSON.encode(value)  # the same, without an encoder made for each call
    return json.dumps(value, ensure_ascii=ensure_ascii, separators=separators, sort_keys=sort_keys, default=default)


def check_arguments(
    messages: Sequence[Message],
    *,
    as_objects: bool = False,
    empty_text: bool = False,
    default: Callable[[Any], Any] | None = None,
    first_index: int = 0,
) -> None:
    """Raise MessageError where a call's arguments hold something that JSON cannot say, or are no object but must be.

    With `empty_text`, an empty text stands for no arguments. `default` makes JSON's types of other values, or raises
    TypeError, as the json module's own does.
    """
    for index, message in enumerate(messages, first_index):
        for position, call in enumerate(message.tool_calls or ()):
            if empty_text and call.function.arguments == "":
                continue
            function = call.function
            try:
                if isinstance(function.arguments, str):
                    if as_objects:
                        to_json(function.arguments_object, default=default)
                elif default is not None:
                    to_json(function.arguments, default=default)
                else:
                    _ = function.arguments_text  # kept for whoever writes it
            except (TypeError, ValueError, RecursionError) as error:
                raise MessageError(
                    f"the arguments cannot be read or written as JSON: {error}",
                    message_index=index,
                    field=f"tool_calls[{position}].function.arguments",
                ) from None


def check_reasoning(messages: Sequence[Message], *, first_index: int = 0) -> None:
    """Raise MessageError where the assistant's reasoning is no text. A template of any model may take more than that."""
    for index, message in enumerate(messages, first_index):
        if message.role != "assistant":
            continue
        for name, value in (("thinking", message.thinking), ("reasoning", message.reasoning)):
            if value is not None and not isinstance(value, str):
                problem = f"reasoning is text, found {_excerpt(value)}"
                raise MessageError(problem, message_index=index, field=name)


def check_prefill(messages: Sequence[Message], *, add_generation_prompt: bool) -> None:
    """Raise MessageError unless the last message is the assistant's and can be continued by the model."""
    index = len(messages) - 1
    if add_generation_prompt:
        raise MessageError(
            "continue_final_message and add_generation_prompt exclude each other: the last message is the open turn",
            message_index=index,
        )
    if messages[-1].role != "assistant":
        raise MessageError(
            f"continue_final_message needs an assistant message at the end, found {messages[-1].role}",
            message_index=index,
            field="role",
        )
    if messages[-1].tool_calls:
        raise MessageError(
            "a message that the model continues cannot hold finished tool calls",
            message_index=index,
            field="tool_calls",
        )


@dataclass(frozen=True)
class Tools:
    """The tools of a conversation: a snapshot of the caller's schemas, equal by content.

    `key` is the schemas' content byte for byte, key order and number types included, which `==` on dicts is not.
    """

    key: bytes

    def __bool__(self) -> bool:
        return bool(self.schemas)

    @cached_property
    def schemas(self) -> list[dict[str, Any]]:
        """The schemas, as the caller gave them. Not to be changed."""
        loaded: list[dict[str, Any]] = marshal.loads(self.key)  # noqa: S302 - our own bytes, made by `validate_tools`
        return loaded

    @cached_property
    def json_texts(self) -> list[str]:
        """Each schema as `tojson` prints it."""
        return [to_json(schema) for schema in self.schemas]

    @cached_property
    def function_json_texts(self) -> list[str]:
        """The same of what each schema says of its function, without the `function` around it."""
        return [to_json(schema.get("function", schema)) for schema in self.schemas]


NO_TOOLS = Tools(marshal.dumps([], 2))


@lru_cache(maxsize=256)
def _printable_tools(key: bytes) -> Tools:
    """The tools with this content, looked at once: marshal takes more than JSON can say (sets, bytes)."""
    tools = Tools(key)
    json.dumps(tools.schemas)
    return tools


def validate_tools(tools: Sequence[Mapping[str, Any]] | None) -> Tools:
    """A snapshot of the caller's tools; None and an empty list are both no tools.

    Raises:
        ToolsError: where a tool is not an object that JSON can say.
    """
    if tools is None or (isinstance(tools, list | tuple) and not tools):
        return NO_TOOLS
    if type(tools) is not list or {*map(type, tools)} != {dict}:
        if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Sequence):
            raise ToolsError(f"tools: expected a list of tool schemas, found {type(tools).__name__}")
        for index, tool in enumerate(tools):
            if not isinstance(tool, Mapping):
                raise ToolsError(f"tools[{index}]: a tool is a JSON schema (a dict), found {_excerpt(tool)}")
    try:
        return _printable_tools(marshal.dumps(list(tools), 2))
    except (TypeError, ValueError, RecursionError):
        pass  # A Mapping, an enum, a str subclass: make plain JSON of it, or say what cannot be.
    try:
        return Tools(marshal.dumps([json.loads(json.dumps(dict(tool))) for tool in tools], 2))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolsError(f"tools cannot be written as JSON: {error}") from None
