"""Rendering: cold, again (the rollouts of a group), and after one more turn."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from benchmarks.conversations import TOOLS, Messages, make_conversation, make_reply, make_result
from benchmarks.peers import Peers
from benchmarks.subjects import Subject
from benchmarks.timing import Round, repeated, seconds
from renderers import Renderer


def measure_render(subject: Subject, count: int, rounds: int, peers: Peers) -> tuple[list[Round], int]:
    """Rounds over conversations of `count` messages, each seen for the first time, and the tokens of the last one.

    Names: `cold`; `again`, the same prompt once more; `turn`, one more turn of it; `masks`, what the mask and the
    attribution of a cold render take on top; `tiktoken` and `tokenizers`, bare encoders over the text; `template`
    and `template turn`, transformers' `apply_chat_template`; `harmony`; the names of the peers.
    """
    renderer, another = subject.new_renderer(), subject.new_renderer()
    harmony = harmony_renderer(subject) if subject.family == "gpt-oss" else None
    works: dict[str, Callable[[Messages, Messages, str], Mapping[str, float]]] = {
        "ours": lambda messages, longer, _: _ours(renderer, messages, longer),
        "tokenizers": lambda _, __, text: {"tokenizers": seconds(_encode, subject, text)},
        "peers": lambda messages, _, __: peers.measured("render", messages=messages, tools=TOOLS),
    }
    if (tiktoken := subject.tiktoken) is not None:
        works["tiktoken"] = lambda _, __, text: {"tiktoken": seconds(tiktoken.encode_ordinary, text)}
    if subject.template is not None:
        works["template"] = lambda messages, longer, _: {
            "template": seconds(_apply_template, subject, messages),
            "template turn": seconds(_apply_template, subject, longer),
        }
    if harmony is not None:
        works["harmony"] = lambda messages, _, __: {"harmony": seconds(harmony, messages)}
    rng = random.Random(count)
    measured: list[Round] = []
    tokens = 0
    for number in range(rounds):
        # To each its own conversation, made before any is measured: libraries keep words, and so does the processor.
        seeds = {name: (1000 * count + number) * len(works) + place for place, name in enumerate(works)}
        given = {name: make_conversation(count, seed, as_text=subject.as_text) for name, seed in seeds.items()}
        ids = {name: _render(another, messages) for name, messages in given.items()}
        one: dict[str, float] = {}
        for name in rng.sample([*works], len(works)):
            longer = _longer(subject, given[name], number)
            one |= works[name](given[name], longer, another.decode(ids[name]))
        tokens = len(ids["ours"])
        measured.append(one)
    return measured, tokens


def _ours(renderer: Renderer[Any], messages: Messages, longer: Messages) -> dict[str, float]:
    """Our times of one round."""
    cold = seconds(_render, renderer, messages)
    rendered = renderer.render(messages, tools=TOOLS, add_generation_prompt=True)
    return {
        "cold": cold,
        "masks": seconds(lambda result: (result.sampled_mask, result.message_indices), rendered),
        "again": repeated(_render, renderer, messages),
        "turn": seconds(_render, renderer, longer),
    }


def _encode(subject: Subject, text: str) -> Any:
    return subject.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)


def _render(renderer: Renderer[Any], messages: Messages) -> list[int]:
    return renderer.render(messages, tools=TOOLS, add_generation_prompt=True).token_ids


def _apply_template(subject: Subject, messages: Messages) -> Any:
    return subject.tokenizer.apply_chat_template(messages, tools=TOOLS, add_generation_prompt=True)


def _longer(subject: Subject, messages: Messages, seed: int) -> Messages:
    """The conversation with one more turn: a reply with a call, and its result."""
    rng = random.Random(seed)
    reply = make_reply(rng, 1000 + seed, as_text=subject.as_text)
    return [*messages, reply, make_result(rng, reply, 100)]


def harmony_renderer(subject: Subject) -> Callable[[Messages], Any] | None:
    """OpenAI's library, which gets its messages ready made; None where it is not installed."""
    try:
        library: Any = import_module("openai_harmony")
    except ImportError:
        return None
    os.environ.update(subject.environment)
    encoding = library.load_harmony_encoding(library.HarmonyEncodingName.HARMONY_GPT_OSS)

    def render(messages: Messages) -> Any:
        return encoding.render_conversation_for_completion(_as_harmony(library, messages), library.Role.ASSISTANT)

    return render


def _as_harmony(library: Any, messages: Messages) -> Any:
    """The conversation in the library's own objects."""
    made = []
    for message in messages:
        match message["role"]:
            case "system":
                content = library.DeveloperContent.new().with_instructions(message["content"])
                made.append(library.Message.from_role_and_content(library.Role.DEVELOPER, content))
            case "user":
                made.append(library.Message.from_role_and_content(library.Role.USER, message["content"]))
            case "assistant":
                made += _as_harmony_reply(library, message)
            case "tool":
                author = library.Author.new(library.Role.TOOL, "functions.tool")
                result = library.Message.from_author_and_content(author, message["content"])
                made.append(result.with_channel("commentary").with_recipient("assistant"))
    return library.Conversation.from_messages(made)


def _as_harmony_reply(library: Any, message: dict[str, Any]) -> list[Any]:
    def part(text: str, channel: str) -> Any:
        return library.Message.from_role_and_content(library.Role.ASSISTANT, text).with_channel(channel)

    parts = [part(message["reasoning_content"], "analysis")] if "reasoning_content" in message else []
    calls = message.get("tool_calls", ())
    if message["content"]:
        parts.append(part(message["content"], "commentary" if calls else "final"))
    for call in calls:
        arguments = json.dumps(call["function"]["arguments"])
        parts.append(part(arguments, "commentary").with_recipient(f"functions.{call['function']['name']}"))
    return parts
