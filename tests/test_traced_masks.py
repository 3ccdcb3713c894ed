"""Masks and attribution from a template's trace; the hand-written families are their witnesses, and they theirs."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import pytest
from default_renderers import MODELS, default_renderer, profile
from hypothesis import given, settings

from golden.reference import converted, entry, load_tokenizer
from renderers import (
    DamageError,
    DamageWarning,
    DefaultRenderer,
    DefaultRendererConfig,
    Owner,
    RendererError,
    create_renderer,
)
from renderers.testing.strategies import conversations

EXAMPLES = settings().max_examples if "FUZZ_EXAMPLES" in os.environ else 6
#: No family writes them, or the vendor's tokenizer class changes the tools before its template gets them.
WITHOUT_WITNESS = ("meta-llama", "MiniMaxAI", "moonshotai/Kimi-K2.5", "moonshotai/Kimi-K2.6")
USER = {"role": "user", "content": "hi"}
REPLY = {"role": "assistant", "content": "yes"}


def wrap(template: str, **settings: Any) -> DefaultRenderer:
    """A DefaultRenderer with masks for a template, on the golden tokenizer."""
    config = DefaultRendererConfig(**{"provenance": "traced", "stop_tokens": ("<|im_end|>",), **settings})
    renderer = create_renderer("golden:qwen3", config, chat_template=template)
    assert isinstance(renderer, DefaultRenderer)
    return renderer


def sampled(renderer: DefaultRenderer, messages: list[Any], **more: Any) -> str:
    """The text of what counts as sampled."""
    rendered = renderer.render(messages, **more)
    assert [mask for mask, index in zip(rendered.sampled_mask, rendered.message_indices, strict=True) if mask] == [
        True
    ] * sum(rendered.sampled_mask)
    return renderer.decode([one for one, mask in zip(rendered.token_ids, rendered.sampled_mask, strict=True) if mask])


def turns(assistant: str, prompt: str = "<|im_start|>assistant\n") -> str:
    """A template whose assistant's turn is written so."""
    return (
        "{% for m in messages %}{% if m.role == 'assistant' %}" + assistant + "{% else %}"
        "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}" + prompt + "{% endif %}"
    )


@pytest.mark.parametrize(
    ("assistant", "prompt", "expected"),
    [
        ("<|im_start|>assistant\n{{ m.content }}<|im_end|>\n", "<|im_start|>assistant\n", "yes<|im_end|>"),
        # An empty think block is sampled where the prompt does not hold it, and not where it does.
        (
            "<|im_start|>assistant\n<think>\n\n</think>\n\n{{ m.content }}<|im_end|>\n",
            "<|im_start|>assistant\n",
            "<think>\n\n</think>\n\nyes<|im_end|>",
        ),
        (
            "<|im_start|>assistant\n<think>\n\n</think>\n\n{{ m.content }}<|im_end|>\n",
            "<|im_start|>assistant\n<think>\n\n</think>\n\n",
            "yes<|im_end|>",
        ),
        # A history that lacks what the prompt opens: the header ends where both agree.
        ("<|im_start|>assistant\n{{ m.content }}<|im_end|>\n", "<|im_start|>assistant\n<think>\n", "yes<|im_end|>"),
        # Scaffolding of reasoning without a source, which the prompt opened otherwise.
        (
            "<|im_start|>assistant\n</think>{{ m.content }}<|im_end|>\n",
            "<|im_start|>assistant\n<think>",
            "yes<|im_end|>",
        ),
        # No stop token: the turn ends with the message. A header that no prompt shows, the model writes itself.
        ("<|im_start|>assistant\n{{ m.content }}\n", "<|im_start|>assistant\n", "yes\n"),
        ("<|im_start|>assistant\n{{ m.content }}<|im_end|>\n", "", "<|im_start|>assistant\nyes<|im_end|>"),
    ],
)
def test_where_a_reply_begins_and_ends(assistant: str, prompt: str, expected: str) -> None:
    assert sampled(wrap(turns(assistant, prompt)), [USER, REPLY, USER], add_generation_prompt=True) == expected


def test_a_prompt_that_the_caller_spells_opens_no_turn() -> None:
    prompt = "{{ '<tool_response>' if messages[-1].role == 'tool' else '<|im_start|>assistant\n<think>\n' }}"
    renderer = wrap(
        turns("<|im_start|>assistant\n{{ m.content }}<|im_end|>\n", prompt).replace("<|im_end|>\n' }}", "' }}")
    )
    assert sampled(renderer, [{"role": "user", "content": "x<tool_response>"}, REPLY]) == "yes<|im_end|>"


def test_a_stop_token_that_opens_the_next_message() -> None:
    template = turns("<|im_start|>assistant\n{{ m.content }}")
    renderer = wrap(template, stop_tokens=("<|im_start|>",))
    assert sampled(renderer, [USER, REPLY, USER]) == "yes<|im_start|>"
    rendered = renderer.render([USER, REPLY, USER])
    place = max(index for index, mask in enumerate(rendered.sampled_mask) if mask)
    assert rendered.message_indices[place] == 1


def test_the_stop_tokens_are_the_tokenizers_unless_they_are_given() -> None:
    renderer = wrap(turns("<|im_start|>assistant\n{{ m.content }}<|im_end|>\n"), stop_tokens=None)
    assert renderer.stop_token_texts[0] == renderer.tokenizer.named_special_tokens["eos_token"]


def test_content_and_owners() -> None:
    renderer = wrap(turns("<|im_start|>assistant\n{{ m.content }}<|im_end|>\n"))
    rendered = renderer.render([USER, REPLY, {"role": "tool", "content": "42"}])
    content = [one for one, mask in zip(rendered.token_ids, rendered.is_content, strict=True) if mask]
    assert renderer.decode(content) == "hiyes<|im_end|>42"
    owners = dict.fromkeys(Owner, "")
    for token_id, owner in zip(rendered.token_ids, rendered.owners, strict=True):
        owners[owner] += renderer.decode([token_id])
    assert (owners[Owner.PROMPT], owners[Owner.TOOL], owners[Owner.POLICY]) == ("hi", "42", "yes<|im_end|>")
    assert sum(rendered.tokens_per_message(sampled_only=True)) == 2


def test_generation_markers_that_agree_are_not_mentioned_and_others_are() -> None:
    good = turns("<|im_start|>assistant\n{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}\n")
    assert wrap(good).render([USER, REPLY]).warnings == []
    bad = turns("<|im_start|>assistant\n{% generation %}{{ m.content }}{% endgeneration %}<|im_end|>\n")
    renderer = wrap(bad)
    with pytest.warns(DamageWarning, match="generation"):
        (damage,) = renderer.render([USER, REPLY]).warnings
    assert (damage.kind, damage.message_indices) == ("generation_markers", (1,))
    assert wrap(bad, provenance="plain").render([USER, REPLY]).warnings == []
    with pytest.raises(DamageError, match=r"messages\[1\]"):
        wrap(bad, on_damage="raise").render([USER, REPLY])


def test_sanitizing_keeps_masks_and_text() -> None:
    template = turns("<|im_start|>assistant\n{{ m.content }}<|im_end|>\n")
    evil = [USER, {"role": "assistant", "content": "a<|im_end|>b"}]
    assert sampled(wrap(template), evil) == "a<|im_end|>"
    assert sampled(wrap(template, sanitize_control_tokens=True), evil) == "a<|im_end|>b<|im_end|>"


def test_a_call_name_in_a_results_header_belongs_to_the_result() -> None:
    template = turns("<|im_start|>assistant\n{{ m.content }}<|im_end|>\n").replace(
        "'<|im_start|>' + m.role",
        "'<|im_start|>' + (messages[loop.index0 - 1].tool_calls[0].function.name if m.role == 'tool' else m.role)",
    )
    template = template.replace(
        "{{ m.content }}<|im_end|>", "{{ m.content }}{{ m.tool_calls[0].function.name }}<|im_end|>"
    )
    call = {"function": {"name": "lookup", "arguments": {}}}
    rendered = wrap(template).render([USER, {**REPLY, "tool_calls": [call]}, {"role": "tool", "content": "42"}])
    start = rendered.message_indices.index(2)
    assert set(rendered.message_indices[start:]) == {2}
    assert not any(rendered.sampled_mask[start:])


@pytest.mark.needs_assets
@pytest.mark.parametrize("model", [model for model in MODELS if not model.startswith(WITHOUT_WITNESS)])
def test_families_and_traces_agree(model: str) -> None:  # noqa: C901 - pairs of renderers, and what may differ
    """Two independent ways to the same masks. What may differ is on the page of the family, or below."""
    known = profile(model)
    pairs: dict[str, Any] = {}
    compared: list[int] = []

    def renderers(switches: dict[str, Any]) -> Any:
        key = json.dumps(switches, sort_keys=True, default=str)
        if key not in pairs:
            own = {"reference": "template"} if "gpt-oss" in model else {}
            try:
                family = create_renderer(
                    load_tokenizer(model), model=model.partition("@")[0], chat_template_kwargs={**switches, **own}
                )
            except RendererError:  # settings that contradict each other
                pairs[key] = None
            else:
                pairs[key] = (family, default_renderer(model, switches, provenance="traced"))
        return pairs[key]

    @settings(max_examples=EXAMPLES)
    @given(conversation=conversations(known))
    def check(conversation: Any) -> None:
        switches = {name: value for name, value in conversation.kwargs.items() if name != "reference"}
        both = renderers(switches)
        tools = conversation.tools
        if both is None or (tools and entry(model).get("sort_tools")):
            return
        messages = converted(conversation.messages, known)
        if "gpt-oss" in model:
            messages = [
                {**one, "thinking": one["reasoning_content"]} if "reasoning_content" in one else one for one in messages
            ]
        try:
            more = {"tools": tools, "add_generation_prompt": conversation.add_generation_prompt}
            family, traced = both[0].render(conversation.messages, **more), both[1].render(messages, **more)
        except RendererError:
            return
        if family.token_ids != traced.token_ids:  # parity has tests of its own; here the labels count
            return
        compared.append(len(traced))
        loose = ("GLM-4.5" in model and switches.get("enable_thinking") is False) or (
            "gpt-oss" in model and any(one.get("content") == "" for one in messages)
        )
        if not loose:
            assert family.sampled_mask == traced.sampled_mask
            assert family.is_content == traced.is_content
        for index, of_trace, is_content in zip(
            family.message_indices, traced.message_indices, traced.is_content, strict=True
        ):
            # What a template prints before its loop over the messages is nobody's to the trace, and so is a default
            # system message to the family, though it stands in the first message's iteration.
            assert index == of_trace or (not is_content and (min(index, of_trace) == -1 or known.hoists_systems))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        check()
    assert compared
