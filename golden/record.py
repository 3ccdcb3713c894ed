"""Records the goldens: `python -m golden.record [FAMILY ...]`, with the official assets at RENDERERS_ASSETS.

Text and IDs come from the official template and tokenizer, never from our renderer. Which message a token belongs to and
whether it is sampled is our renderer's word, recorded so that a change of it shows in a review.
"""

from __future__ import annotations

import importlib
import json
import platform
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from golden.defaults import config_of, is_default
from golden.files import DATA, FAMILIES, goldens, write_golden
from golden.official import Official
from golden.prune import pruned
from golden.scenario import Scenario
from renderers import Renderer, create_renderer
from renderers.config import template_sha256


def record(family: str) -> None:
    """Record the goldens of one family."""
    module = importlib.import_module(f"golden.scenarios.{family}")
    today = datetime.now(UTC).date().isoformat()
    folder = DATA / family
    folder.mkdir(parents=True, exist_ok=True)
    names = [scenario.name for scenario in module.SCENARIOS]
    if doubled := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"scenarios of one name: {sorted(doubled)}")
    for stale in folder.glob("*.json"):
        if stale.stem not in names:
            stale.unlink()
    for scenario in module.SCENARIOS:
        official = Official(scenario.model or module.MODELS[0])
        write_golden(folder / f"{scenario.name}.json", _golden(family, scenario, official, today))


def _golden(family: str, scenario: Scenario, official: Official, today: str) -> dict[str, Any]:
    renderer = _renderer(official, scenario)
    text = official.text(scenario, scenario.messages, scenario.add_generation_prompt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rendered = renderer.render(
            list(scenario.messages), tools=scenario.tools, add_generation_prompt=scenario.add_generation_prompt
        )
    ids, source = official.encode(text), official.source
    if rendered.token_ids != ids:
        # No official implementation sanitizes in this way, or keeps reasoning that its template drops.
        if scenario.config.get("sanitize_control_tokens") and renderer.decode(rendered.token_ids) == text:
            source += "; the IDs are our renderer's, sanitized"
        elif "thinking_retention" in scenario.config:
            text, source = renderer.decode(rendered.token_ids), "our renderer's, by its retention policy"
        else:
            raise ValueError(f"{scenario.name}: our render differs from the official one")
        ids = rendered.token_ids
    golden: dict[str, Any] = {
        "name": scenario.name,
        "family": family,
        "model": official.model,
        "tokenizer": official.tokenizer_folder,
        "settings": dict(scenario.settings),
        "config": dict(scenario.config),
        "messages": list(scenario.messages),
        "tools": None if scenario.tools is None else list(scenario.tools),
        "add_generation_prompt": scenario.add_generation_prompt,
        "text": text,
        "tokens": [
            [token_id, token, index, sampled]
            for token_id, token, index, sampled in zip(
                ids, renderer.token_texts(ids), rendered.message_indices, rendered.sampled_mask, strict=True
            )
        ],
        "warnings": sorted({damage.kind for damage in rendered.warnings}),
    }
    if scenario.reply is not None or scenario.completion is not None:
        golden["completion"] = _completion(renderer, scenario, official, ids)
        golden["parsed"] = dict(scenario.parsed) if scenario.parsed is not None else _expected(scenario.reply or {})
    if scenario.new_messages is not None:
        golden["bridge"] = _bridge(scenario, official, ids, golden["completion"])
    golden["provenance"] = {
        "text": source,
        "template_sha256": template_sha256(official.template) if official.template is not None else None,
        "tokenizer_sha256": official.tokenizer_sha256,
        "versions": {name: version(name) for name in official.libraries} | {"python": platform.python_version()},
        "date": today,
    }
    return golden


def _renderer(official: Official, scenario: Scenario) -> Renderer[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_default(official.model):
            return create_renderer(official.tokenizer, config_of(official.model, scenario.settings, scenario.config))
        return create_renderer(
            official.tokenizer,
            model=official.model,
            chat_template_kwargs=scenario.settings,
            **scenario.config,
        )


def _completion(
    renderer: Renderer[Any], scenario: Scenario, official: Official, prompt: Sequence[int]
) -> list[list[Any]]:
    """The completion's tokens: of the official render with the reply, or of the text that the scenario gives."""
    if scenario.completion is not None:
        ids: list[int] = []
        for text, ordinary in _spelled(scenario.completion):
            ids += renderer.tokenizer.encode_ordinary(text) if ordinary else official.encode(text)
    else:
        whole = official.encode(official.text(scenario, [*scenario.messages, scenario.reply or {}], False))
        if whole[: len(prompt)] != list(prompt):
            raise ValueError(f"{scenario.name}: the reply does not continue the prompt; give `completion`")
        ids = whole[len(prompt) :]
        stops = set(renderer.get_stop_token_ids())
        end = next((place for place, token_id in enumerate(ids) if token_id in stops), None)
        if end is None:
            stop = official.role_stop((scenario.new_messages or [{"role": "user"}])[0]["role"])
            ids.append(renderer.tokenizer.special_tokens[stop])
        else:
            ids = ids[: end + 1]
    return [[token_id, token] for token_id, token in zip(ids, renderer.token_texts(ids), strict=True)]


def _spelled(completion: str) -> Iterator[tuple[str, bool]]:
    """The parts of a completion, and whether they are ordinary text."""
    parts = completion.split("{ordinary:")
    yield parts[0], False
    for part in parts[1:]:
        ordinary, _, rest = part.partition("}")
        yield ordinary, True
        yield rest, False


def _expected(reply: Mapping[str, Any]) -> dict[str, Any]:
    """What parsing a canonical reply gives."""
    calls = [call["function"] for call in reply.get("tool_calls") or ()]
    return {
        "content": reply.get("content") or "",
        "reasoning_content": reply.get("reasoning_content"),
        "calls": [
            {
                "name": function["name"],
                "arguments": json.loads(function["arguments"])
                if isinstance(function["arguments"], str)
                else function["arguments"],
            }
            for function in calls
        ],
    }


def _bridge(
    scenario: Scenario, official: Official, prompt: Sequence[int], completion: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    """The extension: the rest of the official render of the extended conversation, or what the scenario says."""
    new_messages = list(scenario.new_messages or ())
    if scenario.refusal is not None:
        return {"new_messages": new_messages, "refusal": scenario.refusal}
    given = [*prompt, *[token[0] for token in completion]]
    if scenario.tail is not None:
        extension, tail = official.encode(scenario.tail), scenario.tail
    else:
        messages = [*scenario.messages, scenario.reply or {}, *new_messages]
        extended = official.encode(official.text(scenario, messages, add_generation_prompt=True))
        if extended[: len(given)] != given:
            raise ValueError(
                f"{scenario.name}: the official render does not extend the reply; give `tail` or `refusal`"
            )
        extension = extended[len(given) :]
        tail = official.decode(extension)
    return {"new_messages": new_messages, "tail": tail, "extension_ids": extension}


def _texts(golden: Mapping[str, Any]) -> Iterator[str]:
    """Every text of a golden that its tokenizer must encode."""
    yield golden["text"]
    if "completion" in golden:
        yield "".join(token[1] for token in golden["completion"])
    if "tail" in golden.get("bridge", {}):
        yield golden["bridge"]["tail"]


def prune_tokenizers() -> None:
    """Prune each official tokenizer to the texts of all goldens that use it, and check it on every one of them."""
    recorded: dict[str, tuple[Official, list[str]]] = {}
    for golden in goldens():
        official = Official(golden["model"])
        recorded.setdefault(official.tokenizer_folder, (official, []))[1].extend(_texts(golden))
    for folder, (official, texts) in recorded.items():
        small = pruned(official.tokenizer_json, texts)
        tokenizer = Tokenizer.from_str(small)
        for text in texts:
            if tokenizer.encode(text, add_special_tokens=False).ids != official.encode(text):
                raise ValueError(f"the pruned tokenizer of {folder} encodes a golden differently: {text!r}")
        target = FAMILIES / folder
        target.mkdir(parents=True, exist_ok=True)
        (target / "tokenizer.json").write_text(small, encoding="utf-8")
        config = {"model": official.model, **official.named_special_tokens}
        (target / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in (Path(__file__).parent / "scenarios").glob("[!_]*.py")):
        record(name)
        print(f"{name}: recorded")  # noqa: T201 - a command's output
    prune_tokenizers()
