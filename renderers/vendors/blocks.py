"""Turns as lists of typed blocks: what of a block another model can read, and the way back.

A block is text, reasoning, a tool call, or opaque. An assistant's blocks become one message; where that says less than
the blocks do, they are kept beside it, and each goes back to its own API where the message still says what it says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from renderers.errors import MessageError, UnsupportedMessageError
from renderers.messages import VENDOR_BLOCKS
from renderers.vendors.payloads import Json

#: The type of a content part that only its own provider can read: a part in a user's or a tool's message.
VENDOR_PART = "vendor_block"
#: The names under which a message's reasoning comes.
_REASONING = ("reasoning_content", "thinking", "reasoning")


class Kind(Enum):
    """What another model can read in a block."""

    TEXT = "text"
    REASONING = "reasoning"
    CALL = "call"


class Piece(NamedTuple):
    """A readable piece of a block: a text, or a tool call in the OpenAI shape."""

    kind: Kind
    value: Any


class BlockForm(ABC):
    """How an API writes blocks."""

    #: The tag of what only this API can read.
    provider: str

    @abstractmethod
    def pieces(self, block: Json) -> list[Piece]:
        """What can be read in a block of the assistant's, all of one kind; nothing of an opaque one."""

    @abstractmethod
    def hides_reasoning(self, block: Json) -> bool:
        """Whether a block stands for reasoning of which not every word is shown."""

    @abstractmethod
    def text_blocks(self, texts: Sequence[str]) -> list[Json]:
        """Texts of the assistant's, as blocks."""

    @abstractmethod
    def reasoning_blocks(self, text: str) -> list[Json]:
        """Reasoning that this API did not write itself, as blocks; none where it takes no such thing."""

    @abstractmethod
    def call_block(self, call: Json) -> Json:
        """A tool call. Raises ValueError where its arguments cannot be written."""

    @abstractmethod
    def part_text(self, block: Json) -> str | None:
        """The text of a block in a user's or a tool's message; None where it is no text."""

    @abstractmethod
    def part_block(self, text: str) -> Json:
        """Text in a user's or a tool's message, as a block."""


def make_call(call_id: str | None, name: str, arguments: Json | str) -> Json:
    """A tool call in the OpenAI shape."""
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return call if call_id is None else {"id": call_id, **call}


def function_of(call: Mapping[str, Any]) -> Json:
    """A call's name and arguments, also where there is no `function` around them."""
    function: Json = call.get("function", call)
    return function


def reasoning_of(message: Mapping[str, Any]) -> str:
    """A message's reasoning under whichever name it comes; an empty text where there is none."""
    return next((message[name] for name in _REASONING if isinstance(message.get(name), str)), "")


# What is kept beside a message ---------------------------------------------------------------------------------------


def kept_of(message: Mapping[str, Any], provider: str) -> Json:
    """What is kept beside a message for this provider."""
    found = (message.get(VENDOR_BLOCKS) or {}).get(provider)
    return found if isinstance(found, dict) else {}


def keep(message: Json, provider: str, **what: Any) -> None:
    """Keep something beside a message, for this provider alone."""
    message.setdefault(VENDOR_BLOCKS, {}).setdefault(provider, {}).update(what)


# The assistant's blocks ----------------------------------------------------------------------------------------------


def read_assistant(form: BlockForm, blocks: Sequence[Json]) -> Json:
    """Blocks as an assistant's message."""
    pieces = [piece for block in blocks for piece in form.pieces(block)]
    texts = [piece.value for piece in pieces if piece.kind is Kind.TEXT and piece.value]
    thoughts = [piece.value for piece in pieces if piece.kind is Kind.REASONING and piece.value]
    calls = [piece.value for piece in pieces if piece.kind is Kind.CALL]
    content: str | list[Json] | None = None if calls else ""
    if texts:
        content = texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]
    message: Json = {"role": "assistant", "content": content}
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def keep_blocks(form: BlockForm, message: Json, blocks: Any, **what: Any) -> None:
    """Keep an assistant's blocks beside its message, and note what other models cannot see of them."""
    hides = set()
    for block in blocks if isinstance(blocks, list) else ():
        if form.hides_reasoning(block):
            hides.add("reasoning")
        elif not form.pieces(block):
            hides.add("blocks")
    keep(message, form.provider, content=blocks, **what, **({"hides": sorted(hides)} if hides else {}))


def write_assistant(form: BlockForm, message: Json, kept: Sequence[Json], index: int) -> list[Json]:
    """A message as blocks: the kept ones where the message still says what they say, new ones elsewhere.

    Reasoning is kept whole or not at all: it may be signed. Its signature is worth nothing on another text.

    Raises:
        MessageError: for what the API cannot take, naming the field. `index` is the message's.
    """
    texts = [text for text in _texts(message, index) if text]
    calls = [
        _Call(form, call, f"tool_calls[{position}].function.arguments", index)
        for position, call in enumerate(message.get("tool_calls") or ())
    ]
    reasoning = reasoning_of(message)
    keeps_reasoning = reasoning == (read_assistant(form, kept).get("reasoning_content") or "")
    blocks = form.reasoning_blocks(reasoning) if reasoning and not keeps_reasoning else []
    for block in kept:
        pieces = form.pieces(block)
        kind = pieces[0].kind if pieces else None
        if kind is Kind.TEXT:
            said = [piece.value for piece in pieces if piece.value]
            given, texts = texts[: len(said)], texts[len(said) :]
            blocks += [block] if given == said else form.text_blocks(given) if given else []
        elif kind is Kind.CALL:
            found = next((call for call in calls if call.given.get("id") == pieces[0].value.get("id")), None)
            if found is not None:
                calls.remove(found)
                blocks.append(block if found.block == form.call_block(pieces[0].value) else found.block)
        elif kind is None or keeps_reasoning:
            blocks.append(block)
    return blocks + (form.text_blocks(texts) if texts else []) + [call.block for call in calls]


class _Call:
    """A call of a message, and the block that it becomes."""

    def __init__(self, form: BlockForm, given: Json, field: str, index: int) -> None:
        self.given = given
        try:
            self.block = form.call_block(given)
        except ValueError as error:
            raise MessageError(
                f"{form.provider} takes arguments as an object, and these are none: {error}; leave the call out, or "
                "mend it",
                message_index=index,
                field=field,
            ) from None


def _texts(message: Json, index: int) -> list[str]:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return [content or ""]
    texts = []
    for position, part in enumerate(content):
        if part.get("type") != "text":
            problem = f"an assistant's content is text, found a part of type {part.get('type')!r}"
            raise UnsupportedMessageError(problem, message_index=index, field=f"content[{position}]")
        texts.append(part["text"])
    return texts


# Content of the other roles ------------------------------------------------------------------------------------------


def read_parts(form: BlockForm, blocks: Sequence[Json]) -> list[Json]:
    """Blocks as content parts: text, and parts that only this provider can read."""
    parts = []
    for block in blocks:
        text = form.part_text(block)
        opaque = {"type": VENDOR_PART, "provider": form.provider, "block": block}
        parts.append(opaque if text is None else {"type": "text", "text": text})
    return parts


def write_parts(form: BlockForm, parts: Sequence[Json], kept: Sequence[Json], index: int) -> list[Json]:
    """Content parts as blocks: the kept ones where they say the same.

    Raises:
        UnsupportedMessageError: for a part that this API cannot take, naming it. `index` is the message's.
    """
    blocks = []
    for position, part in enumerate(parts):
        same = position < len(kept) and read_parts(form, kept[position : position + 1]) == [part]
        if same:
            blocks.append(kept[position])
        elif part.get("type") == "text" and isinstance(part.get("text"), str):
            blocks.append(form.part_block(part["text"]))
        elif (part.get("type"), part.get("provider")) == (VENDOR_PART, form.provider) and isinstance(
            part.get("block"), dict
        ):
            blocks.append(part["block"])
        else:
            raise unsupported_part(form.provider, part, index, position)
    return blocks


def unsupported_part(provider: str, part: Json, index: int, position: int) -> UnsupportedMessageError:
    """The error for a content part that an API does not take."""
    whose = part.get("provider") if part.get("type") == VENDOR_PART else part.get("type")
    return UnsupportedMessageError(
        f"{provider} gets text and its own blocks, found a part of {whose!r}; leave it out, or describe it in words",
        message_index=index,
        field=f"content[{position}]",
    )
