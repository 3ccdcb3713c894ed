"""The renderer as users see it: render, parse, bridge."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from renderers.config import RendererConfig, Revision, template_sha256
from renderers.errors import DamageError
from renderers.messages import validate_tools
from renderers.parsed import ParsedResponse
from renderers.parsing import BoundGrammar, Grammar, ReplyStream
from renderers.refusal import BridgeRefusal
from renderers.rendered import Damage, RenderedTokens
from renderers.token_ids import as_token_ids
from renderers.tokenizers import adapt
from renderers.tokenizers.protocol import TokenizerAdapter
from renderers.version import __version__

ConfigT = TypeVar("ConfigT", bound=RendererConfig)


class DamageWarning(UserWarning):
    """The format loses or changes part of a message; the rendered tokens' `warnings` say which and what."""


class Renderer(ABC, Generic[ConfigT]):
    """Owns the border between messages and token IDs for one model family.

    Renderers hold no conversation: one renderer serves any number of them, from many threads, and pickles.

    Args:
        tokenizer: anything that `adapt` accepts: a transformers fast tokenizer, a `tokenizers.Tokenizer`, a
            `tiktoken.Encoding`, a local folder or a hub ID.
        config: the family's config; its defaults where None.
    """

    #: The family's name, the `name` of its config.
    family: ClassVar[str]
    config_class: ClassVar[type[RendererConfig]]
    revisions: ClassVar[tuple[Revision, ...]] = ()
    #: How the format names tool calls, where not every ID will do: `{name}` stands for the tool, `{index}` for the
    #: call's number in the conversation. `renderers.vendors.ToolCallIds` maps other IDs to it.
    tool_call_id_form: ClassVar[str | None] = None

    def __init__(self, tokenizer: object, config: ConfigT | None = None) -> None:
        self.config: ConfigT = config if config is not None else self.config_class()  # type: ignore[assignment]  # each class names its own config
        self.tokenizer: TokenizerAdapter = adapt(tokenizer)
        self._warned: set[str] = set()

    @property
    @abstractmethod
    def stop_token_texts(self) -> Sequence[str]:
        """Texts of the special tokens that end sampling, the usual one first."""

    @property
    @abstractmethod
    def reply_grammar(self) -> Grammar:
        """The grammar of a reply."""

    @abstractmethod
    def opening_ids(self, prompt_ids: Sequence[int] | RenderedTokens | None) -> list[int]:
        """The prompt's tokens that already belong to the reply: a prefilled `<think>`, or the start of an answer."""

    @abstractmethod
    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> RenderedTokens:
        """Messages to token IDs, each attributed to its message.

        Args:
            messages: the conversation, in the OpenAI chat shapes.
            tools: JSON schemas of the tools; None and `[]` are both no tools.
            add_generation_prompt: open the assistant's turn at the end.
            continue_final_message: leave the last message, the assistant's, open for the model to continue.

        Raises:
            MessageError: for messages that cannot be rendered, naming the message and the field.
            ToolsError: for tools that cannot be rendered.
            DamageError: under `on_damage="raise"`, where the format damages a message.
        """

    def render_ids(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> list[int]:
        """The token IDs of `render`."""
        return self.render(
            messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
        ).token_ids

    def parse_response(
        self,
        token_ids: Sequence[int],
        *,
        prompt_ids: Sequence[int] | RenderedTokens | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        stopped: bool | None = None,
    ) -> ParsedResponse:
        """A sampled completion as a structured reply. Loses no token and raises on no sequence of token IDs.

        Args:
            token_ids: the completion, as sampled.
            prompt_ids: the prompt that it continues; tells whether the prompt opened the reasoning. Without it, the
                generation prompt of this config is assumed.
            tools: the tools of the prompt: formats without types read values by their schemas.
            stopped: the engine's word on whether the model ended the turn, for engines that strip the stop token;
                None decides by a stop token in the IDs.

        Raises:
            TokenIdsError: for negative numbers and for anything that is not a sequence of integers.
        """
        stream = self.stream(prompt_ids=prompt_ids, tools=tools)
        stream.feed(token_ids)
        return stream.finish(stopped)

    def stream(
        self,
        *,
        prompt_ids: Sequence[int] | RenderedTokens | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> ReplyStream:
        """A parser that is fed tokens as they are sampled, in any grouping, and gives deltas.

        `parse_response` is this parser, fed once.
        """
        return self.grammar.stream(tools=validate_tools(tools).schemas, opening_ids=self.opening_ids(prompt_ids))

    @abstractmethod
    def bridge(
        self,
        previous_prompt_ids: Sequence[int] | RenderedTokens,
        previous_completion_ids: Sequence[int],
        new_messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> RenderedTokens | BridgeRefusal:
        """Previous prompt + sampled completion, extended with the new messages and the next assistant opener.

        The result begins with exactly the tokens that were given: nothing that was sampled is encoded again.

        Args:
            previous_prompt_ids: the prompt, as the `RenderedTokens` of the previous turn (then the cost is that of the
                new tokens) or as a list of IDs.
            previous_completion_ids: what the model sampled after it, its stop token included.
            new_messages: what the environment adds: tool results, user messages. No assistant messages.
            tools: None means as in the prompt, `[]` means none.

        Returns:
            The extended prompt, or a `BridgeRefusal` that says why the whole conversation must be rendered instead.

        Raises:
            MessageError: for messages that are not messages.
            TokenIdsError: for what cannot be token IDs.
        """

    def bridge_to_next_turn(
        self,
        previous_prompt_ids: Sequence[int] | RenderedTokens,
        previous_completion_ids: Sequence[int],
        new_messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> RenderedTokens | None:
        """`bridge`, with a refusal turned into None."""
        result = self.bridge(previous_prompt_ids, previous_completion_ids, new_messages, tools=tools)
        return None if isinstance(result, BridgeRefusal) else result

    def get_stop_token_ids(self) -> list[int]:
        """IDs of the tokens that end sampling, the usual one first."""
        return list(self.stop_ids)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of token IDs, special tokens spelled out; bytes that are no UTF-8 become U+FFFD."""
        return self.tokenizer.decode_bytes(as_token_ids(token_ids, "token_ids")).decode("utf-8", "replace")

    def token_texts(self, token_ids: Sequence[int]) -> list[str]:
        """The text of each token alone, for looking at; a part of a character shows as U+FFFD."""
        ids = as_token_ids(token_ids, "token_ids")
        return [self.tokenizer.token_bytes(token_id).decode("utf-8", "replace") for token_id in ids]

    def fingerprint(self) -> dict[str, Any]:
        """What belongs into a run's metadata: two renderers with equal fingerprints give equal tokens.

        Keys: `library` and `library_version`, `family`, `config` (all fields), `template_sha256` (of the tokenizer's own
        chat template, or None), `tokenizer_sha256`, `encoder` (which library encodes).
        """
        template = self.tokenizer.chat_template
        return {
            "library": "token-renderers",
            "library_version": __version__,
            "family": self.family,
            "config": self.config.model_dump(mode="json"),
            "template_sha256": template_sha256(template) if template is not None else None,
            "tokenizer_sha256": self.tokenizer.fingerprint(),
            "encoder": self.tokenizer.encoder,
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.tokenizer, self.config))

    @cached_property
    def grammar(self) -> BoundGrammar:
        """The reply grammar, its markers resolved for this tokenizer."""
        return self.reply_grammar.bind(self.tokenizer)

    @cached_property
    def stop_ids(self) -> tuple[int, ...]:
        """IDs of the stop tokens that this tokenizer has."""
        special = self.tokenizer.special_tokens
        return tuple(special[text] for text in self.stop_token_texts if text in special)

    def report(self, damages: Sequence[Damage]) -> list[Damage]:
        """Say what the format damages: a warning once a kind, or an error.

        Raises:
            DamageError: under `on_damage="raise"`.
        """
        for damage in damages:
            if self.config.on_damage == "raise":
                raise DamageError(f"{damage.detail} ({damage.kind})", message_index=damage.message_indices[0])
            if damage.kind not in self._warned:
                self._warned.add(damage.kind)
                warnings.warn(
                    f"messages[{damage.message_indices[0]}]: {damage.detail} ({damage.kind}; said once a renderer, see "
                    "the rendered tokens' warnings)",
                    DamageWarning,
                    stacklevel=4,
                )
        return list(damages)
