"""gpt-oss: Harmony, in which one reply is several messages on channels, each with a header and an end token.

Two references, which differ in places: OpenAI's Harmony library, which engines serve the models with, and the chat
template on the hub. See docs/families/gpt-oss.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from renderers.config import RendererConfig, Revision
from renderers.conversation import Conversation, History, Turn
from renderers.errors import UnsupportedMessageError
from renderers.family import FamilyRenderer
from renderers.formats.harmony import BUILTIN, CALL, CHANNEL, CONSTRAIN, END, MESSAGE, START, HarmonyGrammar
from renderers.formats.harmony_tools import HEAD, TAIL, library_declarations, template_declarations
from renderers.messages import Message, Tools, to_json
from renderers.parsed import ParsedResponse
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.writer import Writer

ASSISTANT = f"{START}assistant"
ANALYSIS = f"{CHANNEL}analysis{MESSAGE}"
FINAL = f"{CHANNEL}final{MESSAGE}"
PREAMBLE = f"{CHANNEL}commentary{MESSAGE}"
RETURN = "<|return|>"
IDENTITY = "You are ChatGPT, a large language model trained by OpenAI."
CHANNELS = "# Valid channels: analysis, commentary, final. Channel must be included for every message."
CALLS_GO_TO = "\nCalls to these tools must go to the commentary channel: 'functions'."
BROWSER = """\
## browser

// Tool for browsing.
// The `cursor` appears in brackets before each browsing display: `[{cursor}]`.
// Cite information from the tool using the following format:
// `【{cursor}†L{line_start}(-L{line_end})?】`, for example: `【6†L9-L11】` or `【8†L3】`.
// Do not quote more than 10 words directly from the tool output.
// sources=web (default: web)
namespace browser {

// Searches for information related to `query` and displays `topn` results.
type search = (_: {
query: string,
topn?: number, // default: 10
source?: string,
}) => any;

// Opens the link `id` from the page indicated by `cursor` starting at line number `loc`, showing `num_lines` lines.
// Valid link ids are displayed with the formatting: `【{id}†.*】`.
// If `cursor` is not provided, the most recent page is implied.
// If `id` is a string, it is treated as a fully qualified URL associated with `source`.
// If `loc` is not provided, the viewport will be positioned at the beginning of the document or centered on the most \
relevant passage, if available.
// Use this function without `id` to scroll to a new location of an opened page.
type open = (_: {
id?: number | string, // default: -1
cursor?: number, // default: -1
loc?: number, // default: -1
num_lines?: number, // default: -1
view_source?: boolean, // default: false
source?: string,
}) => any;

// Finds exact matches of `pattern` in the current page, or the page given by `cursor`.
type find = (_: {
pattern: string,
cursor?: number, // default: -1
}) => any;

} // namespace browser

"""
PYTHON = """\
## python

Use this tool to execute Python code in your chain of thought. The code will not be shown to the user. This tool \
should be used for internal reasoning, but not for code that is intended to be visible to the user (e.g. when creating \
plots, tables, or files).

When you send a message containing Python code to python, it will be executed in a stateful Jupyter notebook \
environment. python will respond with the output of the execution or time out after 120.0 seconds. The drive at \
'/mnt/data' can be used to save and persist user files. Internet access for this session is UNKNOWN. Depends on the \
cluster.

"""


@lru_cache(maxsize=64)
def declared(tools: Tools, write: Callable[..., str]) -> str:
    """The tools as one of the references declares them."""
    return write(tools.schemas)


class GptOssConfig(RendererConfig):
    """Settings of the gpt-oss family.

    Attributes:
        reference: which of the two is reproduced: OpenAI's Harmony library, or the chat template.
        drop_analysis: which reasoning a render leaves out: all before the last answer (the template's rule, and vLLM's),
            all before the first one unless a call follows the last (Harmony's own), or none. The template has its own
            rule alone.
        reasoning_effort: None is the references' default, medium.
        conversation_start_date: an ISO date, or "today", which becomes the date on which the config is made. Harmony
            prints no date without it; the template always prints one, and so needs it.
        model_identity: the first sentence of the system message.
        builtin_tools: tools that the model was trained with, which the system message declares.
    """

    name: Literal["gpt-oss"] = "gpt-oss"
    revision: Literal["2025-08"] = "2025-08"
    reference: Literal["harmony", "template"] = "harmony"
    drop_analysis: Literal["before_last_final", "before_first_final", "never"] = "before_last_final"
    reasoning_effort: Literal["low", "medium", "high"] | None = None
    conversation_start_date: str | None = None
    model_identity: str | None = None
    builtin_tools: tuple[Literal["browser", "python"], ...] = ()

    contradictions = (
        ("drop_analysis", "never", "tool_cycle"),
        ("drop_analysis", "before_first_final", "tool_cycle"),
        ("drop_analysis", "before_first_final", "all"),
    )

    @field_validator("builtin_tools", mode="before")
    @classmethod
    def _take_list(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("conversation_start_date")
    @classmethod
    def _resolve_date(cls, value: str | None) -> str | None:
        return value if value is None else (date.today() if value == "today" else date.fromisoformat(value)).isoformat()

    @model_validator(mode="after")
    def _check_template(self) -> GptOssConfig:
        if self.reference == "template" and self.conversation_start_date is None:
            raise ValueError('reference="template" always prints a date: set conversation_start_date, to "today" perhaps')
        if self.reference == "template" and self.drop_analysis != "before_last_final":
            raise ValueError(f'drop_analysis="{self.drop_analysis}": reference="template" has its own rule alone')
        return self


@dataclass(frozen=True, slots=True)
class State:
    """What a message may depend on.

    Attributes:
        count: number of messages.
        first_answer: index of the first assistant message without calls, or -1.
        is_answered: the last assistant message has no calls.
        has_early_reasoning: some message up to the first answer has reasoning.
        names: ID and name of every call.
    """

    count: int = 0
    first_answer: int = -1
    is_answered: bool = False
    has_early_reasoning: bool = False
    names: tuple[tuple[str, str], ...] = field(default=(), compare=False)


class GptOssRenderer(FamilyRenderer[GptOssConfig]):
    """Renders, parses and bridges gpt-oss conversations."""

    family = "gpt-oss"
    config_class = GptOssConfig
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "2025-08",
            "a4c9919cbbd4acdd51ccffe22da049264b1b73e59055fa58811a99efbd7c8146",
            models=("openai/gpt-oss-20b", "openai/gpt-oss-120b"),
        ),
    )
    stop_tokens = (RETURN, CALL, "<|endoftext|>")
    stops_outside_history = frozenset({RETURN, "<|endoftext|>"})
    closing_stops = frozenset({RETURN})
    turn_close = END
    reply_headers = (ASSISTANT,)
    reply_grammar = HarmonyGrammar(stop_tokens)
    required_tokens = (START, CHANNEL, MESSAGE, CONSTRAIN, END, *stop_tokens)
