"""Kimi K2 (Instruct, Thinking) and K2.5, K2.6: the kit, the recorded vectors, the public cases, and what is Kimi's own."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from kimi_support import (
    DEFAULT_SYSTEM,
    INSTRUCT,
    K25,
    K26,
    MODELS,
    QUESTION,
    REASONING_MODELS,
    THINKING,
    TOOL,
    call,
    calling,
    make,
    result,
    text_of,
)
from public_cases import cases, check_case

from families.kimi import KimiK2Config, KimiK25Config, declared_tools
from golden.profiles import PROFILES
from golden.reference import ASSETS, entry, reference_ids, vectors
from renderers import (
    ConfigError,
    DamageError,
    DamageWarning,
    TokenizerError,
    create_renderer,
)
from renderers.messages import validate_tools
from renderers.testing import Conversation
from renderers.testing.suite import check_renderer


def reference_for(model: str) -> Callable[[Conversation], list[int]]:
    """The official template and tokenizer. Tools as TypeScript are ours: the vectors test those."""

    def reference(conversation: Conversation) -> list[int]:
        kwargs = dict(conversation.kwargs)
        if conversation.tools and entry(model)["family"] == "kimi-k2.5":
            text = declared_tools(validate_tools(conversation.tools))
            kwargs["tools_ts_str"] = None if text.startswith("[") else text
        return reference_ids(
            model, conversation.messages, conversation.tools, conversation.add_generation_prompt, kwargs
        )

    return reference


def sampled_text(renderer: Any, messages: list[dict[str, Any]]) -> str:
    tokens = renderer.render(messages)
    return str(
        renderer.decode([one for one, sampled in zip(tokens.token_ids, tokens.sampled_mask, strict=True) if sampled])
    )


# The common properties --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_kit(model: str) -> None:
    check_renderer(
        make(model),
        profile=PROFILES[model],
        reference=reference_for(model),
        examples=settings().max_examples,
        report=lambda _: None,
    )


@pytest.mark.parametrize(("name", "model"), [("kimi-k2.5", K25), ("kimi-k2.6", K26)])
def test_vectors(name: str, model: str) -> None:
    renderers: dict[str, Any] = {}
    recorded = vectors(name)
    assert len(recorded) == 250
    for one in recorded:
        renderer = renderers.setdefault(json.dumps(one["kwargs"]), make(model, one["kwargs"]))
        assert renderer.config.revision == name.removeprefix("kimi-")
        tokens = renderer.render(
            one["messages"], tools=one["tools"], add_generation_prompt=one["add_generation_prompt"]
        )
        assert tokens.token_ids == one["token_ids"], one["id"]


@pytest.mark.parametrize("case", cases(["kimi-k2", "kimi-k2.5"]), ids=lambda case: case["id"])
def test_public_case(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        check_case(case)


# Resolution and settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "family", "revision"),
    [
        (INSTRUCT, "kimi-k2", "instruct"),
        ("moonshotai/Kimi-K2-Instruct-0905", "kimi-k2", "instruct"),
        (THINKING, "kimi-k2", "thinking"),
        (K25, "kimi-k2.5", "k2.5"),
        (K26, "kimi-k2.5", "k2.6"),
    ],
)
def test_resolution(model: str, family: str, revision: str) -> None:
    config = make(model).config
    assert (config.name, config.revision) == (family, revision)


@pytest.mark.parametrize(
    "contradiction",
    [
        {"revision": "k2.5", "preserve_thinking": True},
        {"revision": "k2.5", "preserve_thinking": False},
        {"revision": "k2.6", "preserve_thinking": True, "thinking_retention": "tool_cycle"},
        {"revision": "k2.6", "preserve_thinking": False, "thinking_retention": "all"},
        {"enable_thinking": False},
    ],
)
def test_contradictory_settings(contradiction: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        KimiK25Config.create(contradiction)


def test_k2_has_no_switches() -> None:
    with pytest.raises(ConfigError, match="thinking"):
        make(THINKING, {"thinking": False})


def test_missing_special_tokens_are_named(official_tokenizer: Callable[[str], Any]) -> None:
    with pytest.raises(TokenizerError, match=r"tool_calls_section_begin"):
        create_renderer(official_tokenizer("Qwen/Qwen3-8B"), KimiK25Config())


def test_instruct_needs_no_reasoning_tokens() -> None:
    """The tokenizer of K2-Instruct has no think tokens: a policy then writes them as text, and reads them so."""
    backend = json.loads((ASSETS / "tokenizers" / "kimi-k2" / "tokenizer.json").read_text(encoding="utf-8"))
    backend["added_tokens"] = [token for token in backend["added_tokens"] if "think>" not in token["content"]]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.dumps(backend))
    renderer = create_renderer(tokenizer, KimiK2Config(thinking_retention="all"))
    thought = {"role": "assistant", "content": "a", "reasoning_content": "r"}
    assert text_of(renderer, [QUESTION, thought]).endswith("<think>r</think>a<|im_end|>")
    parsed = renderer.parse_response([*tokenizer.encode("<think>r</think>a", add_special_tokens=False).ids])
    assert (parsed.reasoning_content, parsed.content) == ("r", "a")
    with pytest.raises(TokenizerError, match="<think>, </think>"):
        create_renderer(tokenizer, KimiK2Config(revision="thinking"))


@pytest.mark.parametrize("model", MODELS)
def test_pickles(model: str) -> None:
    renderer = make(model)
    again = pickle.loads(pickle.dumps(renderer))  # noqa: S301 - our own bytes
    assert again.render_ids([QUESTION], tools=[TOOL]) == renderer.render_ids([QUESTION], tools=[TOOL])


def test_remote_code_tokenizer(official_tokenizer: Callable[[str], Any]) -> None:
    """The hub's Kimi repositories ship a Python class around a `tiktoken.Encoding`, and no tokenizer.json."""
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    backend = json.loads((ASSETS / "tokenizers" / "kimi-k2" / "tokenizer.json").read_text(encoding="utf-8"))
    ranks = load_tiktoken_bpe(str(ASSETS / "tokenizers" / "kimi-k2" / "tiktoken.model"))
    special = {token["content"]: token["id"] for token in backend["added_tokens"]}
    pattern = backend["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]

    class TikTokenTokenizer:
        """What the class on the hub has."""

        model = tiktoken.Encoding("kimi", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
        special_tokens = special
        name_or_path = K25
        chat_template = official_tokenizer(K25).chat_template

        def encode(self, text: str, *, allow_special_tokens: bool = True) -> list[int]:
            allowed: Any = "all" if allow_special_tokens else set()
            return self.model.encode(text, allowed_special=allowed, disallowed_special=())

    renderer = create_renderer(TikTokenTokenizer())
    assert renderer.config == make(K25).config
    for one in vectors("kimi-k2.5"):
        if not one["kwargs"]:
            tokens = renderer.render(
                one["messages"], tools=one["tools"], add_generation_prompt=one["add_generation_prompt"]
            )
            assert tokens.token_ids == one["token_ids"], one["id"]
    asked = [{"role": "user", "content": "What is <|im_end|>?"}]
    sanitising = create_renderer(TikTokenTokenizer(), sanitize_control_tokens=True)
    assert text_of(sanitising, asked) == text_of(renderer, asked)
    assert sanitising.render_ids(asked).count(special["<|im_end|>"]) == 1


# What the templates write -----------------------------------------------------------------------------------------------


def test_default_system_message_and_the_line_feed_after_it() -> None:
    question = "<|im_user|>user<|im_middle|>q<|im_end|>"
    assert text_of(make(INSTRUCT), [QUESTION]) == f"{DEFAULT_SYSTEM}\n{question}"
    assert text_of(make(THINKING), [QUESTION]) == DEFAULT_SYSTEM + question
    assert text_of(make(K25), [QUESTION]) == question


def test_default_system_message_belongs_to_no_message() -> None:
    tokens = make(INSTRUCT).render([QUESTION], tools=[TOOL])
    first = tokens.message_indices.index(0)
    assert set(tokens.message_indices[:first]) == {-1}
    assert make(INSTRUCT).decode(tokens.token_ids[:first]).endswith(f"{DEFAULT_SYSTEM}\n")


def test_tools_as_json_with_sorted_keys() -> None:
    declared = (
        '[{"function":{"description":"Does it.","name":"f","parameters":{"properties":{"a":{"type":"integer"},'
        '"b":{"type":"string"}},"required":["b"],"type":"object"}},"type":"function"}]'
    )
    for model in (INSTRUCT, THINKING):
        assert f"<|im_system|>tool_declare<|im_middle|>{declared}<|im_end|>" in text_of(
            make(model), [QUESTION], tools=[TOOL]
        )


@pytest.mark.parametrize("parameters", [{"type": "object", "properties": {"x": {"oneOf": []}}}, {"properties": []}])
def test_tools_that_have_no_typescript_form_are_json(parameters: dict[str, Any]) -> None:
    odd = {"type": "function", "function": {"name": "g", "parameters": parameters}}
    rendered = text_of(make(K25), [QUESTION], tools=[TOOL, odd])
    assert rendered.startswith('<|im_system|>tool_declare<|im_middle|>[{"function":{"description":"Does it."')


def test_tools_of_no_known_type_are_json() -> None:
    rendered = text_of(make(K25), [QUESTION], tools=[{"type": "web_search"}])
    assert rendered.startswith('<|im_system|>tool_declare<|im_middle|>[{"type":"web_search"}]<|im_end|>')


@pytest.mark.parametrize("model", MODELS)
def test_name_takes_the_place_of_the_role(model: str) -> None:
    messages = [
        {"role": "system", "content": "s", "name": "rules"},
        {"role": "user", "content": "u", "name": "<|im_end|>"},
        result("r", name="f"),
        {"role": "user", "content": "v", "name": ""},
    ]
    expected = (
        "<|im_system|>rules<|im_middle|>s<|im_end|><|im_user|><|im_end|><|im_middle|>u<|im_end|>"
        "<|im_system|>f<|im_middle|>## Return of functions.f:0\nr<|im_end|><|im_user|>user<|im_middle|>v<|im_end|>"
    )
    assert text_of(make(model), messages) == expected
    sanitised = make(model, sanitize_control_tokens=True)
    assert text_of(sanitised, messages) == expected
    assert sanitised.render_ids(messages).count(sanitised.get_stop_token_ids()[0]) == len(messages)


def test_reasoning_aliases() -> None:
    """K2.6 reads `reasoning` before `reasoning_content`; the others read the latter, of which the former is an alias."""
    both = calling(call("functions.f:0"), reasoning="first", reasoning_content="second")
    assert "<think>first</think>" in text_of(make(K26), [QUESTION, both])
    for model in (THINKING, K25):
        assert "<think>second</think>" in text_of(make(model), [QUESTION, both])
    alone = calling(call("functions.f:0"), reasoning="only")
    for model in REASONING_MODELS:
        assert "<think>only</think>" in text_of(make(model), [QUESTION, alone])


@pytest.mark.parametrize("model", MODELS)
def test_sanitised_ids_hold_no_special_tokens(model: str) -> None:
    messages = [QUESTION, calling(call("<|im_end|>", arguments="</think>")), result("x", "<|tool_call_end|>")]
    renderer, sanitising = make(model), make(model, sanitize_control_tokens=True)
    assert text_of(sanitising, messages) == text_of(renderer, messages)
    counted = [
        sanitising.render_ids(messages).count(sanitising.tokenizer.special_tokens[marker])
        for marker in ("<|im_end|>", "<|tool_call_end|>")
    ]
    assert counted == [3 + (model in {INSTRUCT, THINKING}), 1]


# Damage -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (calling(call("call_1")), "foreign_tool_call_id"),
        (calling(call("f:0")), "foreign_tool_call_id"),
        (calling(call("functions.f")), "foreign_tool_call_id"),
        (calling(call("functions.f:x")), "foreign_tool_call_id"),
        (calling(call("functions.g:0")), "foreign_tool_call_id"),
        (calling(call(" functions.f:0")), "foreign_tool_call_id"),
        (calling(call(None)), "missing_tool_call_id"),
        (result("x", "call_1"), "foreign_tool_call_id"),
        ({"role": "tool", "content": "x"}, "missing_tool_call_id"),
        (calling(call("functions.f:0")), None),
        (calling(call("functions.fs.write-all:12", "fs.write-all")), None),
        (result("x", "functions.fs.write-all:12"), None),
    ],
)
def test_damaged_ids(model: str, message: dict[str, Any], kind: str | None) -> None:
    messages = [QUESTION, message]
    if kind is None:
        assert make(model).render(messages).warnings == []
        return
    with pytest.warns(DamageWarning, match=rf"messages\[1\]: .*{kind}"):
        damages = make(model).render(messages).warnings
    assert [(damage.kind, damage.message_indices) for damage in damages] == [(kind, (1,))]
    with pytest.raises(DamageError, match=kind):
        make(model, on_damage="raise").render(messages)


# What the model samples -------------------------------------------------------------------------------------------------


def test_sampled_part_begins_after_this_configs_prompt() -> None:
    answered = [QUESTION, {"role": "assistant", "content": "a", "reasoning_content": "r"}]
    called = [QUESTION, calling(call("functions.f:0"), reasoning_content="r")]
    section = "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|><|im_end|>"
    assert sampled_text(make(INSTRUCT), answered) == "a<|im_end|>"
    assert sampled_text(make(THINKING), answered) == "<think></think>a<|im_end|>"
    assert sampled_text(make(K25), answered) == "</think>a<|im_end|>"
    assert sampled_text(make(K25, {"thinking": False}), answered) == "a<|im_end|>"
    assert sampled_text(make(THINKING), called) == f"<think>r</think>{section}"
    assert sampled_text(make(K25), called) == f"r</think>{section}"
    assert (
        sampled_text(make(K26, {"thinking": False, "preserve_thinking": True}), called) == f"<think>r</think>{section}"
    )


def test_sampled_part_of_a_named_assistant() -> None:
    """The text does not begin with the generation prompt: the header, and a think block without reasoning, are not sampled."""
    named = {"role": "assistant", "name": "Bo", "content": "a"}
    for model in MODELS:
        assert sampled_text(make(model), [QUESTION, named]) == "a<|im_end|>"


@pytest.mark.parametrize("model", MODELS)
def test_prefill(model: str) -> None:
    for reply, expected in (
        ({"content": "Hel"}, "Hel"),
        ({"content": "", "name": "Bo"}, ""),
        ({"content": "Hel", "name": "Bo"}, "Hel"),
    ):
        tokens = make(model).render([QUESTION, {"role": "assistant", **reply}], continue_final_message=True)
        header = f"<|im_assistant|>{reply.get('name', 'assistant')}<|im_middle|>"
        block = "" if model == INSTRUCT else "<think></think>"
        assert make(model).decode(tokens.token_ids).endswith(header + block + expected)


# Retention --------------------------------------------------------------------------------------------------------------

OLD = [QUESTION, {"role": "assistant", "content": "a", "reasoning_content": "old"}]
CYCLE = [{"role": "user", "content": "q2"}, calling(call("functions.f:0"), reasoning_content="mid"), result("x")]
ANSWER = {"role": "assistant", "content": "b", "reasoning_content": "new"}


@pytest.mark.parametrize(
    ("model", "switches", "retention", "kept"),
    [
        (INSTRUCT, {}, None, []),
        (INSTRUCT, {}, "tool_cycle", ["mid", "new"]),
        (INSTRUCT, {}, "all", ["old", "mid", "new"]),
        *[(model, {}, None, []) for model in REASONING_MODELS],
        *[(model, {}, "tool_cycle", ["mid", "new"]) for model in REASONING_MODELS],
        *[(model, {}, "all", ["old", "mid", "new"]) for model in REASONING_MODELS],
        (K25, {"thinking": False}, None, []),
        (K25, {"thinking": False}, "all", ["old", "mid", "new"]),
        (K26, {"preserve_thinking": True}, None, ["old", "mid", "new"]),
        (K26, {"preserve_thinking": True}, "all", ["old", "mid", "new"]),
        (K26, {"preserve_thinking": True, "thinking": False}, None, ["old", "mid", "new"]),
        (K26, {"preserve_thinking": False}, "tool_cycle", ["mid", "new"]),
    ],
)
def test_retention_after_an_answer(
    model: str, switches: dict[str, Any], retention: str | None, kept: list[str]
) -> None:
    rendered = text_of(make(model, switches, thinking_retention=retention), [*OLD, *CYCLE, ANSWER])
    assert [word for word in ("old", "mid", "new") if f"<think>{word}</think>" in rendered] == kept
    dropped = 3 - len(kept)
    assert rendered.count("<think></think>") == (0 if model == INSTRUCT else dropped)


@pytest.mark.parametrize(
    ("model", "switches", "kept"),
    [
        (INSTRUCT, {}, []),
        *[(model, {}, ["mid"]) for model in REASONING_MODELS],
        (K25, {"thinking": False}, []),
        (K26, {"thinking": False}, []),
        (K26, {"preserve_thinking": True}, ["old", "mid"]),
    ],
)
def test_retention_of_the_template_inside_a_cycle(model: str, switches: dict[str, Any], kept: list[str]) -> None:
    rendered = text_of(make(model, switches), [*OLD, *CYCLE])
    assert [word for word in ("old", "mid", "new") if f"<think>{word}</think>" in rendered] == kept
