"""Messages in the form that a template takes: text or parts, arguments as objects or as JSON text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from jinja2 import nodes

from renderers.errors import MessageError, TemplateError
from renderers.messages import Message

_PROBE_KEY, _PROBE_VALUE = "probe_key", "probe_value"


class MessageForm:
    """How one template wants its messages.

    Args:
        tree: the template's syntax tree, as jinja2 parses it.
        render: renders messages with the template, to try out what it does with arguments.
    """

    def __init__(self, tree: nodes.Template, render: Callable[[Sequence[Mapping[str, Any]]], str]) -> None:
        self._tree = tree
        self._render = render

    def convert(self, given: Sequence[Mapping[str, Any]], messages: Sequence[Message]) -> list[dict[str, Any]]:
        """The caller's messages as the template takes them; extra keys stay, null fields go.

        Raises:
            MessageError: where arguments are JSON text that the template needs as an object, and are not an object.
        """
        return [
            self._convert(index, dict(raw), message)
            for index, (raw, message) in enumerate(zip(given, messages, strict=True))
        ]

    def _convert(self, index: int, plain: dict[str, Any], message: Message) -> dict[str, Any]:
        plain = {key: value for key, value in plain.items() if value is not None}
        if isinstance(message.content, list) and not self.takes_parts:
            plain["content"] = message.text
        if message.tool_calls:
            plain["tool_calls"] = [
                self._convert_call(index, position, call) for position, call in enumerate(plain["tool_calls"])
            ]
        return plain

    def _convert_call(self, index: int, position: int, call: Mapping[str, Any]) -> dict[str, Any]:
        call = {key: value for key, value in call.items() if value is not None}
        function = dict(call.get("function", call))
        arguments = function["arguments"]
        try:
            if isinstance(arguments, str) and not self.takes_text_arguments:
                arguments = json.loads(arguments)
                if not isinstance(arguments, dict):
                    raise ValueError(f"found {type(arguments).__name__}")  # noqa: TRY301 - reported below
            elif not isinstance(arguments, str) and not self.takes_object_arguments:
                arguments = json.dumps(arguments, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise MessageError(
                f"this template needs the arguments as an object, and they are not one: {error}",
                message_index=index,
                field=f"tool_calls[{position}].function.arguments",
            ) from None
        function["arguments"] = arguments
        return {**call, "function": function} if "function" in call else function

    @cached_property
    def _content_names(self) -> set[str]:
        """`content`, and what the template calls it."""
        names = {"content"}
        for assignment in self._tree.find_all(nodes.Assign):
            if isinstance(assignment.target, nodes.Name) and _reads_content(assignment.node):
                names.add(assignment.target.name)
        return names

    @cached_property
    def takes_parts(self) -> bool:
        """Whether the template goes through a content's parts; others get the text parts joined by a newline."""
        return any(
            _names_content(loop.iter) or (isinstance(loop.iter, nodes.Name) and loop.iter.name in self._content_names)
            for loop in self._tree.find_all(nodes.For)
        )

    @cached_property
    def takes_null_content(self) -> bool:
        """Whether the template tests a message's content for none: then null and missing content both are None."""
        return any(test.name == "none" and _names_content(test.node) for test in self._tree.find_all(nodes.Test))

    @property
    def takes_text_arguments(self) -> bool:
        """Whether arguments that are JSON text come out as they are: neither a crash nor encoded twice."""
        return self._argument_forms[0]

    @property
    def takes_object_arguments(self) -> bool:
        """Whether arguments that are an object come out as JSON or in the format's own way: no crash, no Python repr."""
        return self._argument_forms[1]

    @cached_property
    def _argument_forms(self) -> tuple[bool, bool]:
        arguments = {_PROBE_KEY: _PROBE_VALUE}
        text, as_object = self._try(json.dumps(arguments)), self._try(arguments)
        takes_text = text is not None and f'\\"{_PROBE_KEY}' not in text and _PROBE_VALUE in text
        takes_object = as_object is not None and f"{{'{_PROBE_KEY}'" not in as_object and _PROBE_VALUE in as_object
        # A template that prints no arguments in either form gets them as they come.
        return (takes_text, takes_object) if takes_text or takes_object else (True, True)

    def _try(self, arguments: object) -> str | None:
        call = {"id": "call00001", "type": "function", "function": {"name": "probe", "arguments": arguments}}
        for content in ({"content": ""}, {}):
            try:
                text = self._render(
                    [{"role": "user", "content": "probe"}, {"role": "assistant", **content, "tool_calls": [call]}]
                )
            except TemplateError:
                continue
            if _PROBE_VALUE in text:
                return text
        return None


def _names_content(node: nodes.Node) -> bool:
    """`message.content` and `message['content']`."""
    if isinstance(node, nodes.Getattr):
        return node.attr == "content"
    return isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and node.arg.value == "content"


def _reads_content(node: nodes.Node) -> bool:
    """`message.content`, `message['content']`, `message.get('content')`, possibly among other things."""
    return any(_names_content(inner) or _is_get(inner) for inner in _inner_nodes(node))


def _inner_nodes(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    yield from node.find_all(nodes.Node)


def _is_get(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.Call)
        and isinstance(node.node, nodes.Getattr)
        and node.node.attr == "get"
        and bool(node.args)
        and isinstance(node.args[0], nodes.Const)
        and node.args[0].value == "content"
    )
