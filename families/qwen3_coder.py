"""Qwen3-Coder: ChatML turns without reasoning, tools as XML, calls with a parameter a tag.

Two templates, which differ in how they print tools and arguments. See docs/families/qwen3-coder.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from renderers.chatml_turns import ChatMLRenderer
from renderers.config import RendererConfig, Revision
from renderers.conversation import NEVER, Conversation, History, Turn
from renderers.errors import ToolsError
from renderers.formats.spelling import Spelling
from renderers.formats.xml_parameters import XmlParameters, instructions
from renderers.messages import Message, to_json
from renderers.parsing import ReplyGrammar
from renderers.writer import Writer

DEFAULT_SYSTEM = "You are Qwen, a helpful AI assistant that can interact with a computer to solve tasks."
OLDER_RULE = (
    "the tool calling block MUST begin with an opening <tool_call> tag and end with a closing </tool_call> tag."
)


class Qwen3CoderConfig(RendererConfig):
    """Settings of the Qwen3-Coder family. Its templates have no switches.

    Attributes:
        revision: which of the templates.
    """

    name: Literal["qwen3-coder"] = "qwen3-coder"
    revision: Literal["current", "older"] = "current"


class Qwen3CoderRenderer(ChatMLRenderer[Qwen3CoderConfig]):
    """Renders, parses and bridges conversations of Qwen3-Coder."""

    family = "qwen3-coder"
    config_class = Qwen3CoderConfig
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "current",
            "ceede2b04032dff3a3a330a648c03826c7bc77a1ad44e726a8a9d5bcf9aec495",
            models=("Qwen/Qwen3-Coder-30B-A3B-Instruct",),
            retention="no reasoning",
        ),
        Revision(
            "older",
            "eae48a3307931acb10a6fce475a36b711709672ea79ee1a9bc52f083d8b0a2af",
            models=(),
            unverified=("Qwen/Qwen3-Coder-30B-A3B-Instruct@older",),
            retention="no reasoning",
        ),
    )
    arguments_as_objects = True
    splits_content = False
    results_header = "<|im_start|>user\n"
    result_tags = ("<tool_response>\n", "\n</tool_response>\n")

    @property
    def _is_older(self) -> bool:
        return self.config.revision == "older"

    @property
    def calls(self) -> XmlParameters:
        """What is no text is printed as Python does; the older template prints objects and arrays as JSON."""
        return XmlParameters(Spelling.PYTHON_SCALARS if self._is_older else Spelling.PYTHON)

    @property
    def reply_grammar(self) -> ReplyGrammar:
        """Text, then calls."""
        return ReplyGrammar(stop_tokens=self.stop_tokens, tool_calls=self.calls)

    def template_floor(self, history: History) -> int:
        """No reasoning is printed."""
        return NEVER

    def opens_results(self, turn: Turn) -> bool:
        """Results that open the conversation, a system message aside, stand in no turn."""
        opens_conversation = turn.is_first or (turn.index == 1 and turn.previous_role == "system")
        return not opens_conversation and super().opens_results(turn)

    def split_reasoning(self, message: Message) -> tuple[None, str]:
        """Beside calls, the text is stripped."""
        text = self.text_of(message)
        return None, text.strip() if message.tool_calls else text

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The tools follow the system message, or a default one. One without content is none."""
        system = conversation.opening_system
        if system is not None and system.content is None:
            system = None
        if not conversation.tools:
            if system is not None:
                self.write_system(out, system)
            return
        out.scaffold("<|im_start|>system\n")
        if system is None:
            out.scaffold(DEFAULT_SYSTEM)
        else:
            out.begin(0, "system")
            out.body(self.text_of(system))
            out.begin(-1, "")
        noun = (
            "# Tools\n\nYou have access to the following tools"
            if self._is_older
            else "You have access to the following functions"
        )
        out.scaffold(f"\n\n{noun}:\n\n<tools>")
        for index, tool in enumerate(conversation.tools.schemas):
            function = tool.get("function", tool)
            function = function if isinstance(function, dict) else {}
            lines = _older_lines(function) if self._is_older else _lines(function, index)
            out.schema("".join([f"\n{line}" for line in lines]))
        out.scaffold("\n</tools>")
        out.scaffold(instructions(noun="tool", value="value_2", rule=OLDER_RULE) if self._is_older else instructions())
        out.scaffold(self.turn_close)

    def write_message(self, out: Writer, turn: Turn) -> None:
        """A developer's message has a turn of that name."""
        if turn.role == "developer":
            self.write_turn(out, turn.role, turn.content)
        else:
            super().write_message(out, turn)

    def write_reply(self, out: Writer, turn: Turn) -> None:
        """The text; the calls."""
        out.body(turn.content)
        self.calls.write_calls(out, turn)

    def write_generation_prompt(self, out: Writer, state: Any) -> None:
        """The header alone."""
        out.scaffold("<|im_start|>assistant\n")


def _lines(function: dict[str, Any], index: int) -> Iterator[str]:
    """A tool as the current template prints it."""
    if "parameters" not in function:
        raise ToolsError(
            f"tools[{index}]: the template fails on a function without parameters; give it an empty object"
        )
    parameters = function["parameters"]
    parameters = parameters if isinstance(parameters, dict) else {}
    properties = parameters.get("properties", {})
    if not isinstance(properties, dict) or not all(isinstance(fields, dict) for fields in properties.values()):
        raise ToolsError(f"tools[{index}]: the template fails on parameters whose schemas are no objects")
    yield "<function>"
    yield _tagged("name", function.get("name", ""))
    yield _tagged("description", str(function.get("description", "")).strip())
    yield "<parameters>"
    for name, fields in properties.items():
        yield "<parameter>"
        yield from _head(name, fields)
        yield from _listed("enum", fields)
        for key, value in fields.items():
            if key not in {"type", "description", "enum", "required"}:
                tag = key.replace("-", "_").replace(" ", "_").replace("$", "")
                yield _tagged(tag, to_json(value) if isinstance(value, dict) else value)
        yield from _listed("required", fields)
        yield "</parameter>"
    yield from _listed("required", parameters)
    yield "</parameters>"
    if "return" in function:
        value = function["return"]
        yield _tagged("return", to_json(value) if isinstance(value, dict) else value)
    yield "</function>"


def _older_lines(function: dict[str, Any]) -> Iterator[str]:
    """A tool as the older template prints it."""
    yield "<function>"
    yield _tagged("name", function.get("name", ""))
    if "description" in function:
        yield _tagged("description", str(function["description"]).strip())
    yield "<parameters>"
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    for name, fields in properties.items() if isinstance(properties, dict) else ():
        yield "<parameter>"
        yield from _head(name, fields if isinstance(fields, dict) else {})
        yield from _others(fields, "name", "type", "description")
        yield "</parameter>"
    yield from _others(parameters, "type", "properties")
    yield "</parameters>"
    yield from _others(function, "type", "name", "description", "parameters")
    yield "</function>"


def _head(name: str, fields: dict[str, Any]) -> Iterator[str]:
    """How a parameter begins."""
    yield _tagged("name", name)
    if "type" in fields:
        yield _tagged("type", fields["type"])
    if "description" in fields:
        yield _tagged("description", str(fields["description"]).strip())


def _listed(key: str, fields: dict[str, Any]) -> Iterator[str]:
    """A list of which the texts stand in backticks, if there is one."""
    items = fields.get(key)
    if items and isinstance(items, str | list | dict):
        yield _tagged(key, f"[{', '.join([f'`{item}`' if isinstance(item, str) else str(item) for item in items])}]")


def _others(fields: Any, *handled: str) -> Iterator[str]:
    """All other keys of an object."""
    for key, value in fields.items() if isinstance(fields, dict) else ():
        if key not in handled:
            yield _tagged(key, to_json(value) if isinstance(value, dict | list) else value)


def _tagged(tag: str, value: Any) -> str:
    return f"<{tag}>{value}</{tag}>"
