"""Replies read by a tokenizer's response template, through transformers' parser."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("transformers.utils.chat_parsing")
from transformers import PreTrainedTokenizerFast

from renderers import CallStatus, DefaultRendererConfig, Region, create_renderer
from renderers.tokenizers.golden import golden_tokenizer

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}<|im_start|>assistant\n"
)
RESPONSES = {
    "start_anchor": "<|im_start|>assistant\n",
    "defaults": {"role": "assistant"},
    "fields": {
        "reasoning_content": {"open": "<think>\n", "close": "\n</think>\n\n"},
        "tool_calls": {
            "open": "<tool_call>\n",
            "close": "\n</tool_call>",
            "content": "json",
            "repeats": True,
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {},
    },
}
CALL = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
PROMPT = "<|im_start|>user\nhi<|im_end|><|im_start|>assistant\n"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    path, _ = golden_tokenizer("golden:qwen3")
    return PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"), eos_token="<|im_end|>")


@pytest.fixture
def renderer(tokenizer: Any) -> Any:
    from renderers.default import DefaultRenderer

    with_template = copy.copy(tokenizer)
    with_template.chat_template, with_template.response_template = TEMPLATE, RESPONSES
    # The pruned tokenizer is refused by create_renderer unless asked for by name; here only its form matters.
    return DefaultRenderer(with_template, DefaultRendererConfig())


def ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def test_reasoning_content_and_calls(renderer: Any, tokenizer: Any) -> None:
    completion = ids(tokenizer, f"<think>\nhm\n</think>\n\nLook.{CALL}<|im_end|>")
    reply = renderer.parse_response(completion, prompt_ids=ids(tokenizer, PROMPT))
    assert (reply.reasoning_content, reply.content, reply.stop) == ("hm", "Look.", "<|im_end|>")
    assert [(call.name, call.arguments, call.status) for call in reply.tool_calls] == [("f", {"x": 1}, CallStatus.OK)]
    assert reply.reasoning_complete is True
    assert [(span.start, span.end) for span in reply.spans][-1][1] == len(completion)
    assert {span.region for span in reply.spans} == set(Region)


def test_reasoning_opened_by_the_prompt(renderer: Any, tokenizer: Any) -> None:
    reply = renderer.parse_response(
        ids(tokenizer, "hm\n</think>\n\nyes<|im_end|>"), prompt_ids=ids(tokenizer, PROMPT + "<think>\n")
    )
    assert (reply.reasoning_content, reply.content) == ("hm", "yes")


@pytest.mark.parametrize("cut", range(1, 24))
def test_a_cut_call_is_never_executable(renderer: Any, tokenizer: Any, cut: int) -> None:
    completion = ids(tokenizer, CALL)[:-cut]
    reply = renderer.parse_response(completion, prompt_ids=ids(tokenizer, PROMPT))
    assert not reply.valid_tool_calls
    assert [span.end for span in reply.spans][:-1] == [span.start for span in reply.spans][1:]


def test_truncated_reasoning_stays_reasoning(renderer: Any, tokenizer: Any) -> None:
    reply = renderer.parse_response(ids(tokenizer, "<think>\nhm and"), prompt_ids=ids(tokenizer, PROMPT))
    assert (reply.reasoning_content, reply.content, reply.reasoning_complete) == ("hm and", "", False)


def test_streaming_gives_the_same(renderer: Any, tokenizer: Any) -> None:
    completion = ids(tokenizer, f"<think>\nhm\n</think>\n\nLook.{CALL}<|im_end|>")
    stream = renderer.stream(prompt_ids=ids(tokenizer, PROMPT))
    deltas = [delta for token_id in completion for delta in stream.feed(token_id)]
    reply = stream.finish()
    deltas += stream.drain()
    assert reply == renderer.parse_response(completion, prompt_ids=ids(tokenizer, PROMPT))
    assert "".join(delta.content or "" for delta in deltas) == reply.content
    assert "".join(delta.arguments or "" for delta in deltas) == reply.tool_calls[0].arguments_text


def test_named_parsers_win(tokenizer: Any) -> None:
    from renderers.default import DefaultRenderer

    with_template = copy.copy(tokenizer)
    with_template.chat_template, with_template.response_template = TEMPLATE, {"nonsense": True}
    renderer = DefaultRenderer(with_template, DefaultRendererConfig(tool_parser="hermes"))
    assert len(renderer.parse_response(ids(tokenizer, CALL + "<|im_end|>")).valid_tool_calls) == 1


def test_the_family_is_unaffected() -> None:
    assert create_renderer("golden:qwen3").family == "qwen3"
