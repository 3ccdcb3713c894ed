"""Bridging and parsing."""

from __future__ import annotations

import random
import statistics
from typing import Any

from benchmarks.conversations import TOOLS, make_conversation, make_reply, make_result
from benchmarks.peers import Peers
from benchmarks.subjects import Subject
from benchmarks.timing import Round, repeated, seconds
from renderers import Renderer

#: A conversation of this many messages has about 170 tokens a message.
TOKENS_PER_MESSAGE = 170


def measure_bridge(subject: Subject, history: int, rounds: int, peers: Peers) -> tuple[list[Round], int]:
    """Rounds of bridges over a history of so many tokens, with a result of 100 new tokens, and the history's length.

    Names: `result`, from the previous result, its `extension_ids`; `unread`, the same where the completion was not parsed
    before; `lists`, from plain lists, the full `token_ids`; `encode`, of the new text alone; the names of the peers,
    from plain lists.
    """
    renderer = subject.new_renderer(thinking_retention="all")
    rng = random.Random(history)
    messages = make_conversation(max(2, history // TOKENS_PER_MESSAGE // 2 * 2), history)
    reply = make_reply(rng, 1)
    prompt = renderer.render(messages, tools=TOOLS, add_generation_prompt=True)
    prompt_ids, completion = prompt.token_ids, sampled(renderer, reply)
    answered = renderer.parse_response(completion, prompt_ids=prompt, tools=TOOLS).to_message()
    measured: list[Round] = []
    for number in range(rounds):
        results = [make_result(random.Random(1000 * number + k), answered, 100) for k in range(70)]
        new = results[60:]
        renderer.parse_response(completion, prompt_ids=prompt, tools=TOOLS)
        read = [seconds(_bridge, renderer, prompt, completion, result) for result in results[20:40]]
        encoded = [seconds(renderer.tokenizer.encode_ordinary, result["content"]) for result in results[40:60]]
        renderer.__dict__.pop("reader")  # what it remembers of replies
        unread = [seconds(_bridge, renderer, prompt, completion, result) for result in results[:20]]
        one = {
            "result": statistics.median(read),
            "unread": statistics.median(unread),
            "encode": statistics.median(encoded),
            "lists": statistics.median([seconds(_bridge_lists, renderer, prompt_ids, completion, one) for one in new]),
        }
        one |= peers.measured("bridge", prompt=prompt_ids, completion=completion, messages=results[:1], tools=TOOLS)
        measured.append(one)
    return measured, len(prompt)


def _bridge(renderer: Renderer[Any], prompt: Any, completion: list[int], result: dict[str, Any]) -> list[int]:
    bridged = renderer.bridge_to_next_turn(prompt, completion, [result])
    assert bridged is not None
    return bridged.extension_ids


def _bridge_lists(renderer: Renderer[Any], prompt: Any, completion: list[int], result: dict[str, Any]) -> Any:
    bridged = renderer.bridge_to_next_turn(prompt, completion, [result], tools=TOOLS)
    return None if bridged is None else bridged.token_ids


def sampled(renderer: Renderer[Any], reply: dict[str, Any]) -> list[int]:
    """A reply as a model would have sampled it."""
    rendered = renderer.render([{"role": "user", "content": "Go on."}, reply], tools=TOOLS)
    pairs = zip(rendered.token_ids, rendered.sampled_mask, strict=True)
    return [token_id for token_id, is_sampled in pairs if is_sampled]


def measure_parse(subject: Subject, length: int, rounds: int, peers: Peers) -> tuple[list[Round], int]:
    """Rounds of parsing a reply of about so many tokens, and its exact length.

    Names: `parse`; `decode`, one decode by `tokenizers`; `stream` and `decode each`, token by token; the peers' names.
    """
    renderer = subject.new_renderer(thinking_retention="all")
    prompt = renderer.render([{"role": "user", "content": "Go on."}], tools=TOOLS, add_generation_prompt=True)
    measured: list[Round] = []
    completion: list[int] = []
    backend = subject.tokenizer.backend_tokenizer
    for number in range(rounds):
        rng = random.Random(number)
        completion = sampled(renderer, make_reply(rng, number, tokens=int(1.5 * length)))
        one = {
            "parse": repeated(renderer.parse_response, completion, prompt_ids=prompt, tools=TOOLS),
            "decode": repeated(backend.decode, completion, skip_special_tokens=False),
            "stream": repeated(_stream, renderer, completion, prompt),
            "decode each": repeated(_decode_each, backend, completion),
        }
        one |= peers.measured("parse", token_ids=completion, prompt=prompt.token_ids, tools=TOOLS)
        measured.append(one)
    return measured, len(completion)


def _stream(renderer: Renderer[Any], completion: list[int], prompt: Any) -> None:
    stream = renderer.stream(prompt_ids=prompt, tools=TOOLS)
    for token_id in completion:
        stream.feed(token_id)
    stream.finish()


def _decode_each(backend: Any, completion: list[int]) -> list[str]:
    return [backend.decode([token_id], skip_special_tokens=False) for token_id in completion]
