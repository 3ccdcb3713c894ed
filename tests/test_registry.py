"""Which renderer a tokenizer gets, and what `create_renderer` refuses."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import ValidationError
from tokenizers import Tokenizer, models

from families.qwen3 import Qwen3Config, Qwen3Renderer
from golden.reference import HAS_ASSETS, entry, load_tokenizer
from renderers import (
    ConfigError,
    DefaultRenderer,
    DefaultRendererConfig,
    RendererConfig,
    ResolutionError,
    ResolutionWarning,
    TokenizerError,
    create_renderer,
)
from renderers.registry import families, known_revisions

GOLDEN = "golden:qwen3"
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
MESSAGES = [{"role": "user", "content": "hi"}]


def test_the_golden_tokenizer_resolves_to_its_family() -> None:
    assert isinstance(create_renderer(GOLDEN), Qwen3Renderer)


def test_an_explicit_config_wins() -> None:
    renderer = create_renderer(GOLDEN, Qwen3Config(revision="thinking-2507"))
    assert renderer.config.revision == "thinking-2507"
    assert isinstance(create_renderer(GOLDEN, DefaultRendererConfig(), chat_template=TEMPLATE), DefaultRenderer)


def test_the_model_id_chooses_the_revision() -> None:
    assert create_renderer(GOLDEN, model="Qwen/Qwen3-4B-Instruct-2507").config.revision == "instruct-2507"


def test_an_unknown_template_goes_to_the_default_renderer() -> None:
    with pytest.warns(ResolutionWarning, match="no family is known"):
        renderer = create_renderer(GOLDEN, chat_template=TEMPLATE)
    assert renderer.decode(renderer.render_ids(MESSAGES, add_generation_prompt=True)) == "<user>hi<assistant>"
    with pytest.raises(ResolutionError, match="no family is known"):
        create_renderer(GOLDEN, chat_template=TEMPLATE, strict=True)


def test_without_a_template_and_a_known_model_there_is_nothing_to_wrap() -> None:
    with pytest.raises(ResolutionError, match="no chat template"):
        create_renderer(GOLDEN, model="somebody/something")


def test_a_known_model_with_another_template_warns() -> None:
    adapter = create_renderer(GOLDEN).tokenizer
    from renderers.registry import _resolve
    from renderers.tokenizers import adapt

    changed = adapt(adapter, chat_template=TEMPLATE)
    with pytest.warns(ResolutionWarning, match="renderers check"):
        match = _resolve(changed, "Qwen/Qwen3-8B", explicit_template=False)
    assert match is not None


def test_template_kwargs_set_template_fields_only() -> None:
    assert create_renderer(GOLDEN, chat_template_kwargs={"enable_thinking": False}).config.enable_thinking is False
    with pytest.raises(ConfigError, match="enable_thinking"):
        create_renderer(GOLDEN, chat_template_kwargs={"thinking": False})
    with pytest.raises(ConfigError, match="revision"):
        create_renderer(GOLDEN, chat_template_kwargs={"revision": "hybrid"})
    with pytest.raises(ConfigError, match="enable_thinking"):
        create_renderer(GOLDEN, chat_template_kwargs={"enable_thinking": "no"})


def test_contradictions_are_errors() -> None:
    with pytest.raises(ConfigError, match="contradicts"):
        create_renderer(GOLDEN, Qwen3Config(enable_thinking=True), chat_template_kwargs={"enable_thinking": False})
    with pytest.raises(ConfigError, match="contradicts"):
        create_renderer(GOLDEN, model="Qwen/Qwen3-4B-Thinking-2507", chat_template_kwargs={"enable_thinking": False})
    with pytest.raises(ConfigError, match="contradicts"):
        create_renderer(GOLDEN, Qwen3Config(thinking_retention="all"), thinking_retention="tool_cycle")
    with pytest.raises(ConfigError, match="thinking_retention"):
        create_renderer(GOLDEN, thinking_retention="some")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ConfigError, match="thinking_retention"):
        create_renderer(GOLDEN, DefaultRendererConfig(thinking_retention="all"), chat_template=TEMPLATE)


def test_settings_of_the_same_value_are_no_contradiction() -> None:
    config = Qwen3Config(thinking_retention="all", enable_thinking=False)
    renderer = create_renderer(
        GOLDEN, config, thinking_retention="all", chat_template_kwargs={"enable_thinking": False}
    )
    assert renderer.config == config


def test_configs_are_frozen_and_know_their_fields() -> None:
    with pytest.raises(ValidationError):
        Qwen3Config().revision = "hybrid"  # type: ignore[misc]  # the point of the test
    with pytest.raises(ValidationError):
        Qwen3Config(unknown=1)  # type: ignore[call-arg]  # the point of the test
    with pytest.raises(ConfigError, match="unknown"):
        Qwen3Config.create({"unknown": 1})


def test_a_config_of_nobody_is_an_error() -> None:
    class OtherConfig(RendererConfig):
        """A config that no renderer takes."""

    with pytest.raises(ResolutionError, match="OtherConfig"):
        create_renderer(GOLDEN, OtherConfig())


def test_a_tokenizer_of_another_family_is_named() -> None:
    bare = Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    with pytest.raises(TokenizerError, match=r"<\|im_start\|>.*<think>"):
        create_renderer(bare, Qwen3Config())


def test_a_pruned_tokenizer_is_refused_unless_asked_for_by_name() -> None:
    folder = create_renderer(GOLDEN).tokenizer.source
    from renderers.tokenizers.golden import golden_tokenizer

    path, _ = golden_tokenizer(GOLDEN)
    with pytest.raises(TokenizerError, match="pruned"):
        create_renderer(str(path), model="Qwen/Qwen3-8B")
    with pytest.raises(TokenizerError, match="pruned"):
        create_renderer(Tokenizer.from_file(str(path / "tokenizer.json")), model="Qwen/Qwen3-8B")
    with pytest.raises(TokenizerError, match="golden:qwen3"):
        create_renderer("golden:unknown")
    assert folder is not None


def test_renderers_pickle_and_serve_threads() -> None:
    renderer = create_renderer(GOLDEN, thinking_retention="all")
    copy = pickle.loads(pickle.dumps(renderer))  # noqa: S301 - our own bytes
    assert copy.config == renderer.config
    expected = renderer.render(MESSAGES, add_generation_prompt=True)
    assert copy.render(MESSAGES, add_generation_prompt=True) == expected
    assert pickle.loads(pickle.dumps(expected)) == expected  # noqa: S301 - our own bytes

    def work(number: int) -> bool:
        messages = [*MESSAGES, {"role": "assistant", "content": f"answer {number % 7}"}]
        return renderer.render_ids(messages) == copy.render_ids(messages)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(400)))


def test_fingerprints_tell_renderers_apart() -> None:
    plain, other = (
        create_renderer(GOLDEN).fingerprint(),
        create_renderer(GOLDEN, thinking_retention="all").fingerprint(),
    )
    assert plain == create_renderer(GOLDEN).fingerprint()
    assert plain != other
    assert plain["family"] == "qwen3"
    assert plain["tokenizer_sha256"] == other["tokenizer_sha256"]
    wrapped = create_renderer(GOLDEN, DefaultRendererConfig(), chat_template=TEMPLATE).fingerprint()
    patched = create_renderer(GOLDEN, DefaultRendererConfig(), chat_template=TEMPLATE + " ").fingerprint()
    assert wrapped["template_sha256"] != patched["template_sha256"]


def test_families_have_distinct_names_models_and_fingerprints() -> None:
    names = [renderer_class.family for renderer_class in families()]
    assert len(names) == len(set(names))
    models_of = [model for _, revision in known_revisions() for model in (*revision.models, *revision.unverified)]
    assert len(models_of) == len(set(models_of))
    prints = [revision.template for _, revision in known_revisions() if revision.template is not None]
    assert len(prints) == len(set(prints))


if HAS_ASSETS:

    @pytest.mark.parametrize(
        ("renderer_class", "revision", "model"),
        [
            pytest.param(renderer_class, revision, model, id=model)
            for renderer_class, revision in known_revisions()
            for model in revision.models
        ],
    )
    def test_official_templates_resolve_silently(renderer_class: Any, revision: Any, model: str) -> None:
        assert entry(model)["model"] == model or model in entry(model)["also"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            renderer = create_renderer(load_tokenizer(model), model=model)
        assert type(renderer) is renderer_class
        assert renderer.config.revision == revision.name

    def test_a_fine_tune_with_an_unchanged_template_resolves() -> None:
        import copy

        tokenizer = copy.copy(load_tokenizer("Qwen/Qwen3-8B"))
        tokenizer.name_or_path = "/ckpt/step_100"
        assert isinstance(create_renderer(tokenizer), Qwen3Renderer)

    def test_the_template_wins_over_the_name_and_says_so() -> None:
        import copy

        tokenizer = copy.copy(load_tokenizer("Qwen/Qwen3-8B"))
        others = [
            revision.models[0]
            for renderer_class, revision in known_revisions()
            if renderer_class is not Qwen3Renderer and revision.models
        ]
        for model in others[:1]:
            with pytest.warns(ResolutionWarning, match="the template decides"):
                assert isinstance(create_renderer(tokenizer, model=model), Qwen3Renderer)
