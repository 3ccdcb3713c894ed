"""The DefaultRenderer: any chat template, wrapped.

Parity with the template, message attribution by tracing it, parsing with named parsers. What the model would have
sampled it says where the config asks for it (`provenance="traced"`), and so it bridges (`bridge="delta"`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from renderers.config import template_sha256
from renderers.conversation import History, tool_names
from renderers.default_config import DefaultRendererConfig
from renderers.delta import DeltaBridges
from renderers.delta_proof import EMPTY_TOOLS
from renderers.encoding import Encoder
from renderers.errors import ConfigError, MessageError
from renderers.formats.named import named_grammar
from renderers.formats.response_template import ResponseTemplateGrammar
from renderers.labels import POLICY, PROMPT, TEMPLATE, TOOL, Runs, make_label
from renderers.messages import (
    NO_TOOLS,
    Message,
    Tools,
    as_dicts,
    check_arguments,
    check_prefill,
    validate_messages,
    validate_tools,
)
from renderers.opening import since_last_marker
from renderers.parsing import Grammar
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.rendered import Damage, Ids, RenderedTokens, Segment
from renderers.renderer import Renderer
from renderers.template import SourceSpan, TracedText
from renderers.template.bound import BoundTemplate
from renderers.template.branches import Recorder
from renderers.template.damage import find_damage, generation_differences
from renderers.template.inputs import plain_data, plain_messages
from renderers.template.prefix import require_prefix_preserving
from renderers.template.replies import Replies
from renderers.token_ids import as_token_ids
from renderers.writer import Piece


class Encoded(NamedTuple):
    """A conversation, traced and encoded.

    Attributes:
        traced: the text with its sources.
        replies: the character at which the sampled part of each assistant message begins; None where nobody asks.
        parts: the token IDs.
        runs: their labels.
    """

    traced: TracedText
    replies: Mapping[int, int] | None
    parts: list[Ids]
    runs: Runs


class DefaultRenderer(Renderer[DefaultRendererConfig]):
    """Wraps a tokenizer's chat template.

    Raises:
        ConfigError: the tokenizer has no chat template, or a retention policy was asked for, which only a family's own
            renderer can keep.
        TokenizerError: the tokenizer lacks one of the config's `stop_tokens`.
        TemplateError: the template cannot be compiled.
        PrefixError: under `strict`, with `bridge="delta"` and `tools`: a tool's result would change the tokens before it.
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
        self._template = BoundTemplate(
            template,
            tokenizer=self.tokenizer,
            variables={**self.tokenizer.named_special_tokens, **self.config.template_kwargs},
            stop_tokens=self.config.stop_tokens,
            now=datetime.fromisoformat(self.config.date),
        )
        _ = self.grammar  # what a parser lacks is an error now, not in the middle of a rollout
        labels_replies = self.config.provenance == "traced" or self.config.bridge == "delta"
        self._replies = Replies(self._template.render, self.tokenizer.find_special_tokens) if labels_replies else None
        self._encoder = Encoder(
            self.tokenizer,
            stop_ids=() if self._replies is None else self.stop_ids,
            sanitize=self.config.sanitize_control_tokens,
        )
        self._deltas = DeltaBridges(self, self._template) if self.config.bridge == "delta" else None
        if self._deltas is not None and self.config.strict:
            self._require_prefixes()

    def _require_prefixes(self) -> None:
        """Fail at start-up, and not in the middle of a run, where a tool's result would rewrite what stands before it."""
        schemas = validate_tools(self.config.tools).schemas
        for schema in schemas:
            name = str(schema.get("function", schema).get("name", ""))
            require_prefix_preserving(self._template, tool_name=name, tools=schemas)

    @property
    def stop_token_texts(self) -> Sequence[str]:
        """See `Renderer.stop_token_texts`."""
        return self._template.stop_tokens

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
        given = plain_messages(as_dicts(messages))
        tool_list = validate_tools(tools)
        whole = self._encoded(
            given,
            validated,
            None if tools is None else tool_list.schemas,
            add_generation_prompt=add_generation_prompt,
            is_open=continue_final_message,
        )
        history = None
        if self._deltas is not None and not continue_final_message:
            no_tools = NO_TOOLS if tools is None else EMPTY_TOOLS
            state = self._deltas.state_of(given, no_tools, is_open=add_generation_prompt)
            history = History(length=len(given), tools=tool_list, family=self.format_name, state=state)
        return RenderedTokens(
            Segment(whole.parts, whole.runs),
            message_roles=[message.role for message in validated],
            message_tool_names=tool_names(validated),
            warnings=self.report(self._damages(whole, validated, has_tools=bool(tool_list))),
            mask_known=self.config.provenance == "traced",
            history=history,
        )

    def encoded(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Tools,
        *,
        add_generation_prompt: bool = False,
        branches: bool = False,
    ) -> Encoded:
        """Messages in OpenAI's form, traced (with the conditions that were evaluated, if asked for) and encoded.

        Not part of the public surface.
        """
        return self._encoded(
            messages,
            validate_messages(messages),
            None if tools == NO_TOOLS else list(tools.schemas),
            add_generation_prompt=add_generation_prompt,
            branches=branches,
        )

    def _encoded(
        self,
        given: Sequence[Mapping[str, Any]],
        validated: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None,
        *,
        add_generation_prompt: bool,
        is_open: bool = False,
        branches: bool = False,
    ) -> Encoded:
        traced = self._template.render(
            self._template.form.convert(given, validated),
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            convert=False,
            recorder=Recorder() if branches else None,
        )
        traced = _with_own_headers(traced)
        end = _prefill_end(traced, len(validated) - 1) if is_open else len(traced.text)
        replies = self._reply_starts(traced, validated)
        parts, runs = self._encoder.encode(_pieces(traced, validated, end, replies))
        return Encoded(traced, replies, parts, runs)

    def _reply_starts(self, traced: TracedText, messages: Sequence[Message]) -> dict[int, int] | None:
        """Where the sampled part of each assistant message begins that the template prints; None where nobody asks."""
        if self._replies is None:
            return None
        spans: dict[int, list[SourceSpan]] = defaultdict(list)
        scaffold_starts: dict[int, int] = {}
        scaffold_start = 0
        for span in traced.spans:
            spans[span.message_index].append(span)
            scaffold_starts.setdefault(span.message_index, scaffold_start)
            if span.field is not None or span.derived:
                scaffold_start = span.end
        starts: dict[int, int] = {}
        for index, message in enumerate(messages):
            if message.role == "assistant" and message.written_by is None:
                after_result = index > 0 and messages[index - 1].role == "tool"
                start = self._replies.start(
                    traced.text,
                    spans[index],
                    after_result=after_result,
                    scaffold_start=scaffold_starts.get(index, 0),
                )
                if start is not None:
                    starts[index] = start
        return starts

    def _damages(self, whole: Encoded, messages: Sequence[Message], *, has_tools: bool) -> list[Damage]:
        damages = list(find_damage(whole.traced, messages, has_tools=has_tools))
        if whole.replies is not None and whole.traced.generation_ranges:
            damages += generation_differences(whole.traced, whole.replies, self.stop_token_texts)
        return damages

    def bridge(
        self,
        previous_prompt_ids: Sequence[int] | RenderedTokens,
        previous_completion_ids: Sequence[int],
        new_messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> RenderedTokens | BridgeRefusal:
        """See `Renderer.bridge`. A refusal, unless the config has `bridge="delta"`: then a `Bridge` with its certificate.

        Where the prompt came as a list of IDs, the proof rests on other histories only; give the `RenderedTokens`.
        """
        if self._deltas is not None:
            return self._deltas.bridge(previous_prompt_ids, previous_completion_ids, new_messages, tools)
        validate_messages(new_messages)
        validate_tools(tools)
        as_token_ids(previous_completion_ids, "previous_completion_ids")
        if not isinstance(previous_prompt_ids, RenderedTokens):
            as_token_ids(previous_prompt_ids, "previous_prompt_ids")
        return BridgeRefusal(
            RefusalReason.UNKNOWN_HISTORY,
            "the DefaultRenderer does not know what its template rewrites; render the whole conversation, or set "
            'bridge="delta" in its config',
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
        return since_last_marker(ids, self.grammar.reasoning_markers)

    @cached_property
    def format_name(self) -> str:
        """What bridges know this template's prompts by, under its variables and on its day."""
        variables = json.dumps(plain_data(self._template.variables), sort_keys=True)
        about = f"{self._template.source}\n{variables}\n{self.config.date}"
        return f"{self.family} {template_sha256(about)}"


def _json_value(value: Any) -> Any:
    """A rich object in arguments (numpy scalar, pydantic model, dataclass) as JSON's types, as the template gets it."""
    plain = plain_data(value)
    if isinstance(plain, str):  # a placeholder: text never comes here
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return plain


def _with_own_headers(traced: TracedText) -> TracedText:
    """The text, where a field of one message inside another message's header belongs to that one.

    A template may print the name of the call in the header of its result.
    """
    spans = list(traced.spans)
    for before, place, after in zip(traced.spans, range(1, len(spans)), traced.spans[2:], strict=False):
        span = spans[place]
        is_inside = before.message_index == after.message_index != span.message_index
        if is_inside and span.field is not None and min(before.message_index, span.message_index) >= 0:
            spans[place] = span._replace(message_index=after.message_index)
    return replace(traced, spans=tuple(spans))


def _pieces(
    traced: TracedText, messages: Sequence[Message], end: int, replies: Mapping[int, int] | None
) -> list[Piece]:
    """The traced text as labelled pieces, up to character `end`; `replies` says where each reply begins."""
    pieces: list[Piece] = []
    for span in traced.spans:
        if span.start >= end:
            break
        # Text whose exact source was lost may be the caller's: it is never trusted with markers.
        from_caller = span.field is not None or span.derived
        index, border = span.message_index, None
        owner = TEMPLATE
        if index >= 0 and replies is not None and messages[index].role == "assistant":
            border = replies.get(index, 0)
        elif index >= 0 and from_caller and span.field != "role":
            owner = TOOL if messages[index].role == "tool" else PROMPT
        stop = min(span.end, end)
        for begin, finish, of_part in (
            ((span.start, stop, owner),)
            if border is None
            else ((span.start, min(border, stop), TEMPLATE), (max(span.start, border), stop, POLICY))
        ):
            if begin < finish:
                pieces.append((traced.text[begin:finish], make_label(index, of_part), from_caller))
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
