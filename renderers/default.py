"""The DefaultRenderer: any chat template, wrapped.

Parity with the template, message attribution by tracing it, parsing with named parsers. Which tokens the model would
have sampled it does not know, so its `sampled_mask` is empty and it never bridges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator
from pydantic_core import to_jsonable_python

from renderers.config import RendererConfig
from renderers.conversation import History
from renderers.encoding import Encoder
from renderers.errors import ConfigError, MessageError, TokenizerError
from renderers.formats.named import named_grammar
from renderers.formats.response_template import ResponseTemplateGrammar
from renderers.labels import PROMPT, TEMPLATE, TOOL, make_label
from renderers.messages import Message, as_dicts, check_arguments, check_prefill, validate_messages, validate_tools
from renderers.opening import opening_ids
from renderers.parsing import Grammar
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.rendered import RenderedTokens, Segment
from renderers.renderer import Renderer
from renderers.template import TracedTemplate, TracedText
from renderers.template.conversion import MessageForm
from renderers.template.damage import find_damage
from renderers.template.environment import make_environment
from renderers.template.inputs import plain_data
from renderers.token_ids import as_token_ids
from renderers.writer import Piece

#: Variables of a template that `render` sets.
_ARGUMENTS_OF_RENDER = frozenset({"messages", "tools", "add_generation_prompt", "strftime_now"})


class DefaultRendererConfig(RendererConfig):
    """Settings of the DefaultRenderer.

    Attributes:
        tool_parser: the name of a tool-call parser, as vLLM calls it (`hermes`, ...); None finds no calls.
        reasoning_parser: the name of a reasoning parser (`qwen3`, `deepseek_r1`, ...); None finds no reasoning.
        stop_tokens: special tokens that end sampling; None means the tokenizer's end-of-sequence token.
        template_kwargs: variables of the template, such as `enable_thinking`. `chat_template_kwargs` go here.
        date: the day that `strftime_now` prints, as YYYY-MM-DD; "today" is resolved once, when the config is made.
    """

    name: Literal["default"] = "default"
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    stop_tokens: tuple[str, ...] | None = None
    template_kwargs: dict[str, Any] = Field(default_factory=dict)
    date: str = Field(default="today", validate_default=True)

    framework_fields: ClassVar[frozenset[str]] = RendererConfig.framework_fields | {
        "tool_parser",
        "reasoning_parser",
        "stop_tokens",
    }

    @field_validator("stop_tokens", mode="before")
    @classmethod
    def _accept_list(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("date")
    @classmethod
    def _resolve_today(cls, value: str) -> str:
        if value == "today":
            return datetime.now(UTC).astimezone().date().isoformat()
        datetime.fromisoformat(value)
        return value

    @field_validator("template_kwargs")
    @classmethod
    def _check_variables(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name in _ARGUMENTS_OF_RENDER:
                raise ValueError(f"{name!r} is set by each render and cannot be a setting; give it to `render`")
        try:
            to_jsonable_python(value)  # the fingerprint prints them
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"a template's variables are plain data: {error}") from None
        return value

    @classmethod
    def from_template_kwargs(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Any name may be a variable of a template."""
        return {"template_kwargs": dict(given)} if given else {}


class DefaultRenderer(Renderer[DefaultRendererConfig]):
    """Wraps a tokenizer's chat template.

    Raises:
        ConfigError: the tokenizer has no chat template, or a retention policy was asked for, which only a family's own
            renderer can keep.
        TokenizerError: the tokenizer lacks one of the config's `stop_tokens`.
        TemplateError: the template cannot be compiled.
    """

    family = "default"
    config_class = DefaultRendererConfig

    def __init__(self, tokenizer: object, config: DefaultRendererConfig | None = None) -> None:
        super().__init__(tokenizer, config)
        template = self.tokenizer.chat_template
        if template is None:
            raise ConfigError(
                "the DefaultRenderer wraps a chat template, and this tokenizer has none; give `chat_template=`"
            )
        if self.config.thinking_retention is not None:
            raise ConfigError(
                f"thinking_retention={self.config.thinking_retention!r} needs a family's own renderer: the DefaultRenderer "
                "does what the template does"
            )
        missing = [text for text in self.config.stop_tokens or () if text not in self.tokenizer.special_tokens]
        if missing:
            raise TokenizerError(f"stop_tokens: this tokenizer lacks the special tokens {', '.join(missing)}")
        _ = self.reply_grammar  # an unknown parser's name is an error now, not in the middle of a rollout
        self._template = TracedTemplate(template)
        self._encoder = Encoder(self.tokenizer, stop_ids=(), sanitize=self.config.sanitize_control_tokens)
        self._now = datetime.fromisoformat(self.config.date)

    @property
    def stop_token_texts(self) -> Sequence[str]:
        """See `Renderer.stop_token_texts`."""
        if self.config.stop_tokens is not None:
            return self.config.stop_tokens
        end = self.tokenizer.named_special_tokens.get("eos_token")
        return (end,) if end is not None else ()

    @property
    def reply_grammar(self) -> Grammar:
        """The grammar of the named parsers, else of the tokenizer's `response_template` where it has one."""
        stops = tuple(self.stop_token_texts)
        if self._response_template is not None:
            return ResponseTemplateGrammar(self._response_template, stops)
        return named_grammar(self.config.tool_parser, self.config.reasoning_parser, stops)

    @property
    def _response_template(self) -> Mapping[str, Any] | None:
        if self.config.tool_parser is not None or self.config.reasoning_parser is not None:
            return None
        template = getattr(self.tokenizer.source, "response_template", None)
        return template if isinstance(template, Mapping) else None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> RenderedTokens:
        """See `Renderer.render`. What the template refuses is a TemplateError with the template's own words."""
        validated = validate_messages(messages)
        if not validated:
            raise MessageError("there are no messages; give at least one")
        if continue_final_message:
            check_prefill(validated, add_generation_prompt=add_generation_prompt)
        check_arguments(validated, default=_json_value)
        given = as_dicts(messages)
        _check_depth(given)
        tool_list = validate_tools(tools)
        traced = self._trace(
            self._form.convert(given, validated),
            tools=None if tools is None else tool_list.schemas,
            add_generation_prompt=add_generation_prompt,
            null_content=self._form.takes_null_content,
        )
        end = _prefill_end(traced, len(validated) - 1) if continue_final_message else len(traced.text)
        parts, runs = self._encoder.encode(_pieces(traced, validated, end))
        return RenderedTokens(
            Segment(parts, runs),
            message_roles=[message.role for message in validated],
            message_tool_names=_tool_names(validated),
            warnings=self.report(list(find_damage(traced, validated, has_tools=bool(tool_list)))),
            mask_known=False,
        )

    def bridge(
        self,
        previous_prompt_ids: Sequence[int] | RenderedTokens,
        previous_completion_ids: Sequence[int],
        new_messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> RenderedTokens | BridgeRefusal:
        """Always a refusal: a template alone does not say what of its history the new messages change."""
        validate_messages(new_messages)
        validate_tools(tools)
        as_token_ids(previous_completion_ids, "previous_completion_ids")
        if not isinstance(previous_prompt_ids, RenderedTokens):
            as_token_ids(previous_prompt_ids, "previous_prompt_ids")
        return BridgeRefusal(
            RefusalReason.UNKNOWN_HISTORY,
            "the DefaultRenderer does not know what its template rewrites; render the whole conversation",
        )

    def opening_ids(self, prompt_ids: Sequence[int] | RenderedTokens | None) -> list[int]:
        """See `Renderer.opening_ids`: what stands from the last reasoning marker of the last turn on.

        Without a prompt a reply begins in content: which prompt was meant is not known.
        """
        if prompt_ids is None:
            return []
        ids = prompt_ids.token_ids if isinstance(prompt_ids, RenderedTokens) else as_token_ids(prompt_ids, "prompt_ids")
        if self._response_template is not None:
            return list(ids)  # the template finds its own anchor in the prompt
        return opening_ids(self.tokenizer, ids, (), self.grammar.reasoning_markers)

    def _trace(self, messages: Sequence[Mapping[str, Any]], **arguments: Any) -> TracedText:
        variables = {**self.tokenizer.named_special_tokens, **self.config.template_kwargs}
        return self._template.render(messages, variables=variables, now=self._now, **arguments)

    @cached_property
    def _form(self) -> MessageForm:
        def render(messages: Sequence[Mapping[str, Any]]) -> str:
            return self._trace(messages, null_content=form.takes_null_content).text

        form = MessageForm(make_environment().parse(self._template.source), render)
        return form


def _json_value(value: Any) -> Any:
    """A rich object in arguments (numpy scalar, pydantic model, dataclass) as JSON's types, as the template gets it."""
    plain = plain_data(value)
    if isinstance(plain, str):  # a placeholder: text never comes here
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return plain


def _check_depth(messages: Sequence[Mapping[str, Any]]) -> None:
    """The template gets every field, unknown ones too: raise where one cannot be copied."""
    for index, message in enumerate(messages):
        for field, value in message.items():
            if isinstance(value, dict | list | tuple):
                try:
                    plain_data(value)
                except RecursionError:
                    problem = "the value is nested too deeply, or holds itself"
                    raise MessageError(problem, message_index=index, field=str(field)) from None


def _pieces(traced: TracedText, messages: Sequence[Message], end: int) -> list[Piece]:
    """The traced text as labelled pieces, up to character `end`."""
    pieces: list[Piece] = []
    for span in traced.spans:
        if span.start >= end:
            break
        # Text whose exact source was lost may be the caller's: it is never trusted with markers.
        from_caller = span.field is not None or span.derived
        owner = TEMPLATE
        if span.message_index >= 0 and from_caller and span.field != "role":
            owner = TOOL if messages[span.message_index].role == "tool" else PROMPT
        text = traced.text[span.start : min(span.end, end)]
        pieces.append((text, make_label(span.message_index, owner), from_caller))
    return pieces


def _prefill_end(traced: TracedText, index: int) -> int:
    """Where the text of the last message ends that the model continues."""
    ends = [
        span.end
        for span in traced.spans
        if span.message_index == index and (span.field or "").split("[")[0] in {"content", "reasoning_content"}
    ]
    if not ends:
        raise MessageError(
            "continue_final_message: the template prints no text of this message that could be continued",
            message_index=index,
        )
    return max(ends)


def _tool_names(messages: Sequence[Message]) -> list[str | None]:
    names: list[str | None] = []
    history, results = History(), 0
    for message in messages:
        is_result = message.role == "tool"
        names.append(history.tool_name(message, results) if is_result else None)
        results = results + 1 if is_result else 0
        history = history.followed_by(message, is_query=False, state=None)
    return names
