"""Every golden, replayed through render, parse and bridge with the pruned tokenizer that comes with the package."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from golden.defaults import config_of, is_default, own_template
from golden.files import goldens
from renderers import BridgeRefusal, Renderer, create_renderer

GOLDENS = list(goldens())


def _renderer(golden: dict[str, Any], **config: Any) -> Renderer[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_default(golden["model"]):
            return create_renderer(
                f"golden:{golden['tokenizer']}",
                config_of(golden["model"], golden["settings"], {**golden["config"], **config}),
                chat_template=own_template(golden["model"]),
            )
        return create_renderer(
            f"golden:{golden['tokenizer']}",
            model=golden["model"],
            chat_template_kwargs=golden["settings"],
            **golden["config"],
        )


def _render(renderer: Renderer[Any], golden: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return renderer.render(
            golden["messages"], tools=golden["tools"], add_generation_prompt=golden["add_generation_prompt"]
        )


def _named(*keys: str) -> Any:
    chosen = [golden for golden in GOLDENS if all(key in golden for key in keys)]
    return pytest.mark.parametrize("golden", chosen, ids=[f"{one['family']}-{one['name']}" for one in chosen])


@_named()
def test_render(golden: dict[str, Any]) -> None:
    renderer = _renderer(golden)
    rendered = _render(renderer, golden)
    assert renderer.decode(rendered.token_ids) == renderer.tokenizer.normalize(golden["text"])
    recorded = [list(column) for column in zip(*golden["tokens"], strict=True)]
    assert rendered.token_ids == recorded[0]
    assert renderer.token_texts(rendered.token_ids) == recorded[1]
    assert rendered.message_indices == recorded[2]
    assert rendered.sampled_mask == recorded[3]
    assert sorted({damage.kind for damage in rendered.warnings}) == golden["warnings"]


@_named("parsed")
def test_parse(golden: dict[str, Any]) -> None:
    renderer = _renderer(golden)
    prompt = [token[0] for token in golden["tokens"]]
    completion = [token[0] for token in golden["completion"]]
    parsed = renderer.parse_response(completion, prompt_ids=prompt, tools=golden["tools"])
    found = {
        "content": parsed.content,
        "reasoning_content": parsed.reasoning_content,
        "reasoning_complete": parsed.reasoning_complete,
        "stop": parsed.stop,
        "statuses": [call.status.value for call in parsed.tool_calls],
        "names": [call.name for call in parsed.valid_tool_calls],
        "calls": [{"name": call.name, "arguments": call.arguments} for call in parsed.valid_tool_calls],
    }
    expected = golden["parsed"]
    assert {key: found[key] for key in expected} == expected


@_named("bridge")
def test_bridge(golden: dict[str, Any]) -> None:
    renderer = _renderer(golden)
    rendered = _render(renderer, golden)
    completion = [token[0] for token in golden["completion"]]
    bridge = golden["bridge"]
    for prompt in (rendered, rendered.token_ids):
        result = renderer.bridge(prompt, completion, bridge["new_messages"], tools=golden["tools"])
        if "refusal" in bridge:
            assert isinstance(result, BridgeRefusal)
            assert result.reason == bridge["refusal"]
        else:
            assert not isinstance(result, BridgeRefusal), result
            assert renderer.decode(result.extension_ids) == bridge["tail"]
            assert result.token_ids == [*rendered.token_ids, *completion, *bridge["extension_ids"]]


@pytest.mark.parametrize(
    "golden", [one for one in GOLDENS if is_default(one["model"])], ids=lambda one: f"{one['family']}-{one['name']}"
)
def test_the_default_renderer_without_masks(golden: dict[str, Any]) -> None:
    renderer = _renderer(golden, provenance="plain", bridge="refuse")
    rendered = _render(renderer, golden)
    assert rendered.token_ids == [token[0] for token in golden["tokens"]]
    assert rendered.message_indices == [token[2] for token in golden["tokens"]]
    assert rendered.sampled_mask == []
    if "bridge" in golden:
        completion = [token[0] for token in golden["completion"]]
        assert isinstance(renderer.bridge(rendered, completion, golden["bridge"]["new_messages"]), BridgeRefusal)


def test_goldens_are_json_that_a_person_can_read() -> None:
    for golden in GOLDENS:
        assert set(golden) >= {"name", "family", "model", "tokenizer", "messages", "text", "tokens", "provenance"}
        assert json.dumps(golden)
