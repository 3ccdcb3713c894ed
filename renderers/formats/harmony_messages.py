"""How Harmony's messages are written: the system message, and those of the assistant.

    <|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.
    Knowledge cutoff: 2024-06

    Reasoning: medium

    # Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>

Here OpenAI's library and its chat template agree.
"""

from __future__ import annotations

from collections.abc import Sequence

from renderers.formats.harmony import CALL, CHANNEL, END, MESSAGE, START
from renderers.formats.harmony_tools import builtin_tools
from renderers.writer import Writer

ASSISTANT = f"{START}assistant"
DEVELOPER = f"{START}developer{MESSAGE}"
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


def write_call(out: Writer, recipient: str, namespace: str, content_type: str, arguments: str) -> None:
    """A call: its recipient stands in the role."""
    out.scaffold(ASSISTANT)
    out.reply()
    out.scaffold(f" to={namespace}")
    out.body(recipient)
    out.scaffold(f"{CHANNEL}commentary {content_type}{MESSAGE}")
    out.body(arguments)
    out.scaffold(CALL)


def write_result(out: Writer, author: str, namespace: str, text: str) -> None:
    """A tool's result, which is the tool's message to the assistant."""
    out.scaffold(START + namespace)
    out.body(author)
    out.scaffold(f" to=assistant{COMMENTARY}")
    out.body(text)
    out.scaffold(END)
