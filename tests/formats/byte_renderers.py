"""A renderer for trying parsers out, whose tokenizer knows single bytes and the special tokens that it is given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from renderers import DefaultRendererConfig, ParsedResponse
from renderers.default import DefaultRenderer
from renderers.testing.checks import check_parse_never_raises, check_stream_equals_batch

STOP = "<|stop|>"


@functools.cache
def byte_renderer(special_tokens: tuple[str, ...] = (), stops: tuple[str, ...] = (STOP,), **parsers: Any) -> Any:
    """A DefaultRenderer with these special tokens, stop tokens and named parsers."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={text: index for index, text in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in dict.fromkeys([*stops, *special_tokens])])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template="{{ messages[0].content }}")
    return DefaultRenderer(wrapped, DefaultRendererConfig(stop_tokens=stops, **parsers))


def ids(renderer: Any, text: str) -> list[int]:
    """The tokens of a text."""
    found: list[int] = renderer.tokenizer.encode_with_offsets(text)[0]
    return found


def parser(renderer: Any) -> Callable[..., ParsedResponse]:
    """Parses a text whole and in pieces, with all invariants checked."""

    def parse(text: str, prompt: str | None = None, step: int = 1, **given: Any) -> ParsedResponse:
        sampled = ids(renderer, text)
        given["prompt_ids"] = None if prompt is None else ids(renderer, prompt)
        parsed = check_parse_never_raises(renderer, sampled, **given)
        given.pop("stopped", None)
        check_stream_equals_batch(renderer, sampled, range(0, len(sampled), step), **given)
        return parsed

    return parse


def outcomes(parsed: ParsedResponse) -> list[tuple[str, Any, str]]:
    """Each call's name, arguments and status."""
    return [(call.name, call.arguments, call.status.value) for call in parsed.tool_calls]
