"""How Harmony's messages are written, by OpenAI's library and by its chat template.

    <|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.
    Knowledge cutoff: 2024-06

    Reasoning: medium

    # Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>

Where the two differ stands in `Spelling`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from renderers.errors import UnsupportedMessageError
from renderers.formats.harmony import CALL, CHANNEL, CONSTRAIN, END, MESSAGE, START
from renderers.formats.harmony_tools import HEAD, TAIL, builtin_tools, library_declarations, template_declarations
from renderers.messages import Function, Message, Tools, to_json
from renderers.writer import Writer

ASSISTANT = f"{START}assistant"
ANALYSIS, COMMENTARY, FINAL = (f"{CHANNEL}{name}{MESSAGE}" for name in ("analysis", "commentary", "final"))
_IDENTITY = "You are ChatGPT, a large language model trained by OpenAI."
_CHANNELS = "# Valid channels: analysis, commentary, final. Channel must be included for every message."
_CALLS_GO_TO = "\nCalls to these tools must go to the commentary channel: 'functions'."


def write_system(
    out: Writer, *, identity: str | None, date: str | None, effort: str | None, builtin: Sequence[str], has_tools: bool
) -> None:
    """The system message, which no message of the conversation is."""
    dated = "" if date is None else f"Current date: {date}\n"
    out.scaffold(f"{START}system{MESSAGE}{_IDENTITY if identity is None else identity}\nKnowledge cutoff: 2024-06\n")
    out.scaffold(f"{dated}\nReasoning: {effort or 'medium'}\n\n{builtin_tools(builtin)}{_CHANNELS}")
    out.scaffold((_CALLS_GO_TO if has_tools else "") + END)


def write_part(out: Writer, header: str, text: str, end: str = END) -> None:
    """One of an assistant message's parts. The prompt has the role of the first one; the model writes all the rest."""
    out.scaffold(ASSISTANT)
    out.reply()
    out.scaffold(header)
    out.body(text)
    out.scaffold(end)


@dataclass(frozen=True)
class Spelling:
    """What OpenAI's library and its chat template write differently.

    Attributes:
        declare: the declarations of tools.
        after_instructions: what stands after the instructions, where no tools do.
        content_type: that of a call's arguments.
        arguments: the text of a call's arguments.
        result: the text of a tool's result.
    """

    declare: Callable[[Tools], str]
    after_instructions: str
    content_type: str
    arguments: Callable[[Function], str]
    result: Callable[[str], str]

    def write_developer(self, out: Writer, instructions: str, tools: Tools) -> None:
        """The developer message: message 0's text, if it instructs, and the tools."""
        if not (instructions or tools):
            return
        if instructions:
            out.begin(0, "developer")
        out.scaffold(f"{START}developer{MESSAGE}")
        if instructions:
            out.scaffold("# Instructions\n\n")
            out.body(instructions)
            out.scaffold("\n\n" if tools else self.after_instructions)
        if tools:
            out.begin(-1, "")
            out.scaffold(HEAD)
            out.schema(self.declare(tools))
            out.scaffold(TAIL)
        out.scaffold(END)

    def write_call(self, out: Writer, namespace: str, function: Function) -> None:
        """A call: its recipient stands in the role."""
        out.scaffold(ASSISTANT)
        out.reply()
        out.scaffold(f" to={namespace}")
        out.body(function.name)
        out.scaffold(f"{CHANNEL}commentary {self.content_type}{MESSAGE}")
        out.body(self.arguments(function))
        out.scaffold(CALL)

    def write_result(self, out: Writer, namespace: str, tool: str, text: str) -> None:
        """A tool's result, which is the tool's message to the assistant."""
        out.scaffold(START + namespace)
        out.body(tool)
        out.scaffold(f" to=assistant{COMMENTARY}")
        out.body(self.result(text))
        out.scaffold(END)


LIBRARY = Spelling(
    declare=library_declarations,
    after_instructions="",
    content_type=f"{CONSTRAIN}json",
    arguments=lambda function: function.arguments_text,
    result=lambda text: text,
)
TEMPLATE = Spelling(
    declare=template_declarations,
    after_instructions="\n\n",
    content_type="json",
    arguments=lambda function: to_json(function.arguments_object),
    result=to_json,
)


def check_for_template(message: Message, index: int) -> None:
    """Raise where the template refuses an assistant message.

    Raises:
        UnsupportedMessageError: it has reasoning inside its content, or content beside reasoning and calls.
    """
    texts = {"content": message.text or "", "reasoning_content": message.reasoning_text or ""}
    for name, text in texts.items():
        if ANALYSIS in text or FINAL in text:
            problem = f"the template refuses {CHANNEL} tags: put reasoning into reasoning_content"
            raise UnsupportedMessageError(problem, message_index=index, field=name)
    if message.tool_calls and all(texts.values()):
        problem = "the template refuses content beside reasoning and calls; give one of them"
        raise UnsupportedMessageError(problem, message_index=index, field="content")
