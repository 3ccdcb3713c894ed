"""The delta bridge over every official template: never accepted where the full render differs."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from default_renderers import MODELS, default_renderer, profile
from hypothesis import given, settings

from golden.reference import converted
from renderers import BridgeRefusal, DamageWarning, DefaultRenderer, RendererError
from renderers.testing.strategies import continuations, rollouts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from renderers.testing import Conversation

pytestmark = pytest.mark.needs_assets
EXAMPLES = settings().max_examples if "FUZZ_EXAMPLES" in os.environ else 3
#: Templates that a tool's result makes rewrite what stands before, or that print results by their place.
NOT_PREFIX_PRESERVING = ("DeepSeek-V3-", "DeepSeek-R1")


class Renderers:
    """The bridging renderers of one model, by their switches."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._made: dict[str, DefaultRenderer] = {}

    def __call__(self, switches: Mapping[str, Any]) -> DefaultRenderer:
        key = json.dumps(switches, sort_keys=True, default=str)
        if key not in self._made:
            self._made[key] = default_renderer(self.model, switches, provenance="traced", bridge="delta")
        return self._made[key]


def _rendered(renderer: DefaultRenderer, conversation: Conversation) -> Any:
    """The render, or None where the template refuses the conversation."""
    try:
        return renderer.render(
            conversation.messages, tools=conversation.tools, add_generation_prompt=conversation.add_generation_prompt
        )
    except RendererError:
        return None


def _canonical(renderer: DefaultRenderer, prompt: Any, whole: Any, extended: Any) -> list[int] | None:
    """The rest of the reply's turn through its stop token; where that opens the next message, as the next render has it."""
    if prompt is None or whole is None or whole.token_ids[: len(prompt)] != prompt.token_ids:
        return None
    stops = set(renderer.get_stop_token_ids())
    completion: list[int] = whole.token_ids[len(prompt) :]
    for place, token_id in enumerate(completion):
        if token_id in stops:
            return completion[: place + 1]
    if extended is None or extended.token_ids[: len(whole)] != whole.token_ids:
        return None
    stop = extended.token_ids[len(whole)]
    return [*completion, stop] if stop in stops else None


def _spells_markers(reply: Mapping[str, Any], model: str) -> bool:
    return any(marker.strip() in repr(reply) for marker in profile(model).markers)


@pytest.mark.parametrize("model", MODELS)
def test_what_is_bridged_equals_the_full_render(model: str) -> None:
    renderers, found, needless = Renderers(model), Counter[str](), list[str]()

    @settings(max_examples=EXAMPLES)
    @given(continuation=continuations(profile(model)))
    def check(continuation: Any) -> None:
        renderer = renderers(continuation.prompt.kwargs)
        new = converted(continuation.new_messages, profile(model))
        prompt, whole, extended = (
            _rendered(renderer, replace(one, messages=converted(one.messages, profile(model))))
            for one in (
                replace(continuation.prompt, add_generation_prompt=True),
                continuation.with_reply,
                continuation.extended,
            )
        )
        completion = _canonical(renderer, prompt, whole, extended)
        if not completion:
            return
        ids = [*prompt.token_ids, *completion]
        keeps = extended is not None and extended.token_ids[: len(ids)] == ids
        for how, given_prompt in (("known", prompt), ("ids", prompt.token_ids)):
            result = renderer.bridge(given_prompt, completion, new, tools=continuation.prompt.tools)
            kind = f"{how} {new[0]['role']}"
            if isinstance(result, BridgeRefusal):
                found[f"{kind} refused {'needlessly' if keeps else 'for cause'}"] += 1
                # A reply whose own text spells markers is parsed for what it then is, which is not what was rendered; a
                # call that normalisation made unreadable is no call; and empty reasoning may stand in a harness's
                # history as none, which GLM-5.1 prints otherwise.
                parsed = renderer.parse_response(completion, prompt_ids=prompt, tools=continuation.prompt.tools)
                is_read = parsed.tool_calls == parsed.valid_tool_calls and parsed.reasoning_content != ""
                if keeps and kind == "known tool" and is_read and not _spells_markers(continuation.reply, model):
                    needless.append(result.detail)
            else:
                assert extended is not None, "bridged, and the template refuses the extended conversation"
                assert renderer.decode(result.token_ids) == renderer.decode(extended.token_ids)
                assert result.token_ids == extended.token_ids
                found[f"{kind} bridged"] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        check()
    if not model.partition("/")[2].startswith(NOT_PREFIX_PRESERVING):
        assert not needless, found


@pytest.mark.parametrize("model", MODELS)
def test_rollouts_that_are_bridged_from_one_result_to_the_next(model: str) -> None:
    """Certificates are kept by shape: what one conversation proved must hold in the next."""
    renderers = Renderers(model)

    @settings(max_examples=max(2, EXAMPLES // 3))
    @given(rollout=rollouts(profile(model), maximum=5))
    def check(rollout: Any) -> None:
        renderer = renderers(rollout.prompt.kwargs)
        messages = converted(rollout.prompt.messages, profile(model))
        about = replace(rollout.prompt, messages=messages)
        prompt = _rendered(renderer, replace(about, add_generation_prompt=True))
        for reply, new_messages in rollout.steps:
            before, new = messages, converted(new_messages, profile(model))
            messages = [*before, *converted([reply], profile(model)), *new]
            extended = _rendered(renderer, replace(about, messages=messages, add_generation_prompt=True))
            with_reply = _rendered(
                renderer, replace(about, messages=messages[: len(before) + 1], add_generation_prompt=False)
            )
            completion = _canonical(renderer, prompt, with_reply, extended)
            if completion and new:
                result = renderer.bridge(prompt, completion, new)
                if not isinstance(result, BridgeRefusal):
                    assert extended is not None
                    assert result.token_ids == extended.token_ids
                    prompt = result
                    continue
            prompt = extended

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        check()
