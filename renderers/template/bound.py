"""A chat template with all that a render of it needs: its tokenizer, its variables, a date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from jinja2 import nodes
from jinja2.meta import find_undeclared_variables

from renderers.errors import ConfigError, TokenizerError
from renderers.messages import validate_messages
from renderers.template.branches import Recorder
from renderers.template.conversion import MessageForm
from renderers.template.environment import make_environment, template_errors
from renderers.template.trace import PlainTemplate, TracedTemplate, TracedText, spans_of
from renderers.tokenizers import adapt
from renderers.tokenizers.golden import PREFIX, golden_tokenizer
from renderers.tokenizers.protocol import TokenizerAdapter

#: The day that probes print: both sides of a comparison have the same, so it never matters which.
PROBE_DAY = datetime(2026, 1, 1)  # noqa: DTZ001 - templates print dates, not instants


class BoundTemplate:
    """A chat template, its tokenizer if there is one, and its settings.

    Args:
        source: the template's text.
        tokenizer: the adapter of its tokenizer, or None, where only texts are asked for.
        variables: its variables, special tokens included.
        stop_tokens: special tokens that end sampling; None means the tokenizer's end-of-sequence token and those of the
            model's `generation_config.json`.
        now: the date that it prints.

    Raises:
        TemplateError: the template cannot be compiled.
        TokenizerError: the tokenizer lacks one of the `stop_tokens`.
    """

    def __init__(
        self,
        source: str,
        *,
        tokenizer: TokenizerAdapter | None = None,
        variables: Mapping[str, Any] | None = None,
        stop_tokens: Sequence[str] | None = None,
        now: datetime = PROBE_DAY,
    ) -> None:
        self.source = source
        self.tokenizer = tokenizer
        self.traced = TracedTemplate(source)
        self.variables = dict(variables or {})
        self.now = now
        self.stop_tokens = tuple(stop_tokens) if stop_tokens is not None else _usual_stop_tokens(tokenizer)
        missing = [text for text in self.stop_tokens if text not in self.special_tokens]
        if missing and tokenizer is not None:
            raise TokenizerError(f"stop_tokens: this tokenizer lacks the special tokens {', '.join(missing)}")

    @classmethod
    def of(
        cls,
        tokenizer: object | None,
        *,
        chat_template: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        stop_tokens: Sequence[str] | None = None,
    ) -> BoundTemplate:
        """A tokenizer's own template, or another one for it.

        Args:
            tokenizer: whatever `create_renderer` takes, or None where there is only a template: then its variables for
                special tokens (`bos_token`) print their own names.
            chat_template: takes the place of the tokenizer's own.
            template_kwargs: the template's switches.
            stop_tokens: see the class.

        Raises:
            ConfigError: there is no template.
        """
        if isinstance(tokenizer, str) and tokenizer.startswith(PREFIX):
            tokenizer, _ = golden_tokenizer(tokenizer)
        adapter = None if tokenizer is None else adapt(tokenizer, chat_template=chat_template)
        source = chat_template if adapter is None else adapter.chat_template
        if source is None:
            raise ConfigError("there is no chat template; give `chat_template=`")
        named = _stand_ins(source) if adapter is None else adapter.named_special_tokens
        variables = {**named, **(template_kwargs or {})}
        return cls(source, tokenizer=adapter, variables=variables, stop_tokens=stop_tokens)

    @property
    def notes(self) -> tuple[str, ...]:
        """What limits the answers that can be had of this template."""
        if self.tokenizer is not None:
            return ()
        names = sorted(_stand_ins(self.source))
        stand_ins = (f"the template prints stand-ins for {', '.join(names)}",) if names else ()
        return ("only texts are compared: tokens need a tokenizer", *stand_ins)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        convert: bool = True,
        null_content: bool | None = None,
        recorder: Recorder | None = None,
    ) -> TracedText:
        """The text of a conversation and its sources.

        Args:
            messages: the messages.
            tools: JSON schemas, or None.
            add_generation_prompt: open the assistant's turn at the end.
            convert: give the messages in the form that the template takes (design, 2.2), instead of as they are.
            null_content: give None for null and missing content; None means where the template tests for it.
            recorder: takes the branches, also those before an error.

        Raises:
            TemplateError: the template raised.
        """
        given: Sequence[Mapping[str, Any]] = messages
        if convert:
            given = self.form.convert(messages, validate_messages(messages))
        text = self.traced.render_string(
            given,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            variables=self.variables,
            now=self.now,
            null_content=self.form.takes_null_content if null_content is None else null_content,
            recorder=recorder,
        )
        return spans_of(text, () if recorder is None else recorder.branches)

    @cached_property
    def form(self) -> MessageForm:
        """How the template wants its messages."""
        plain = PlainTemplate(self.source)

        def render(messages: Sequence[Mapping[str, Any]]) -> str:
            null_content = form.takes_null_content
            return plain.render(messages, variables=self.variables, now=self.now, null_content=null_content)

        form = MessageForm(self.tree, render)
        return form

    @cached_property
    def tree(self) -> nodes.Template:
        """The template's syntax tree."""
        return make_environment().parse(self.source)

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The tokenizer's special tokens; none without a tokenizer."""
        return {} if self.tokenizer is None else self.tokenizer.special_tokens

    def token_ids(self, text: str) -> list[int]:
        """The tokenizer over a whole text, special tokens recognised. Raises ConfigError without a tokenizer."""
        return self.tokens(text)[0]

    def tokens(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The same, with each token's character range."""
        if self.tokenizer is None:
            raise ConfigError("token IDs need a tokenizer, and there is only a template")
        return self.tokenizer.encode_with_offsets(text)

    def token_text(self, token_id: int) -> str:
        """The text of one token, for the eye."""
        return "" if self.tokenizer is None else self.tokenizer.token_bytes(token_id).decode(errors="replace")


def _stand_ins(source: str) -> dict[str, str]:
    """Something to print for each special token that a template prints by name."""
    with template_errors():
        names = find_undeclared_variables(make_environment().parse(source))
    return {name: f"<{name}>" for name in names if name.endswith("_token")}


def _usual_stop_tokens(tokenizer: TokenizerAdapter | None) -> tuple[str, ...]:
    if tokenizer is None:
        return ()
    end = tokenizer.named_special_tokens.get("eos_token")
    by_id = {token_id: text for text, token_id in tokenizer.special_tokens.items()}
    of_model = [by_id[token_id] for token_id in tokenizer.generation_stop_ids if token_id in by_id]
    return tuple(dict.fromkeys([*([end] if end is not None else []), *of_model]))
