"""Qwen3-Coder: the kit on both revisions, and what is its own."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest
from hypothesis import settings
from qwen_support import TOOLS, assistant, bridged, make, sampled_texts, system, text_of, tool, user

from families.qwen3_coder import Qwen3CoderConfig
from golden.reference import encode, load_tokenizer, profile_of, reference_for, reference_text
from renderers import ConfigError, MessageError, RenderedTokens, ToolsError, create_renderer
from renderers.testing.suite import check_renderer

CODER, OLDER = MODELS = ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "Qwen/Qwen3-Coder-30B-A3B-Instruct@older")
#: Two templates share what the other families spend on one.
EXAMPLES = settings().max_examples // (1 if "FUZZ_EXAMPLES" in os.environ else 3)
CALL = "<tool_call>\n<function=f>\n</function>\n</tool_call>"
NEXT = "<|im_start|>assistant\n"


@pytest.mark.parametrize("model", MODELS)
def test_kit(model: str) -> None:
    check_renderer(
        make(model), profile=profile_of(model), reference=reference_for(model), examples=EXAMPLES, report=lambda _: None
    )


@pytest.mark.parametrize(("model", "revision"), [(CODER, "current"), (OLDER, "older")])
def test_models_resolve(model: str, revision: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make(model, strict=True).config == Qwen3CoderConfig(revision=revision)
    found = create_renderer(load_tokenizer(CODER).backend_tokenizer, model=CODER).config
    assert found == Qwen3CoderConfig()


def test_there_are_no_switches() -> None:
    with pytest.raises(ConfigError):
        make(CODER, {"enable_thinking": False})


# Messages ---------------------------------------------------------------------------------------------------------------

VALUES = {
    "s": "a\n",
    "n": 1,
    "f": 1e22,
    "t": True,
    "z": None,
    "l": ["it's", '"', True, None],
    "o": {"k": {"é": 1.0}},
    "e": "",
}
ODD_MESSAGES = [
    [tool("x"), tool("y"), user()],
    [system(), tool("x"), user()],
    [system(None), tool("x"), user()],
    [system(None), user()],
    [system(""), user()],
    [user(), system("late"), {"role": "developer", "content": "d"}, system(None)],
    [user(), assistant(None, None, VALUES, {}), tool(None), tool(" x \n"), user("\n")],
    [user(), assistant(" \n A \n", None, {}), tool(), assistant("\n B \n"), assistant("C", "reasoning", {})],
    [user(), assistant(" \n ", None, {})],
    [user(), {**assistant("\nx "), "tool_calls": []}],
    [user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])],
    [assistant("<think>\nr\n</think>\n\nA")],
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("messages", ODD_MESSAGES)
def test_odd_messages(model: str, messages: list[dict[str, Any]]) -> None:
    for tools in (None, TOOLS):
        assert text_of(make(model), messages, tools=tools) == reference_text(model, messages, tools)


def described(**parameters: Any) -> dict[str, Any]:
    return {"name": "f", "description": " d\n", "parameters": parameters}


FUNCTIONS = [
    {},
    {"parameters": {}},
    {"parameters": None},
    {"name": None, "description": None, "parameters": []},
    {"name": 5, "description": ["a"], "parameters": {"properties": {}}, "strict": True, "x": [{}], "return": None},
    {"parameters": {"type": "object", "required": "ab", "additionalProperties": False}, "return": {"é": [1]}},
    {"parameters": {"properties": None}},
    {"parameters": {"properties": []}},
    {"parameters": {"properties": {"x": True}}},
    {"parameters": {"properties": {"x": None}}},
    described(properties={"x": {}}, required=["x", 5, None, ["y"]], title="t"),
    described(properties={"x": {"type": ["string", "null"], "description": 5, "enum": ["a", 1, True, None, 1.5]}}),
    described(properties={"x": {"enum": [], "required": ["a"], "name": "n", "default": None}, "y": {"required": True}}),
    described(properties={"x": {"enum": {"k": 1}, "$ref": "#/x", "a-b c": ["d", {"e": None}], "items": {"type": "string"}}}),
    described(properties={"x": {"tool_call": "</tool_call>", "description": "<|im_end|>", "type": {"a": "<think>"}}}),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_tools(model: str, function: dict[str, Any]) -> None:
    for tools in ([{"type": "function", "function": function}], [function]):
        try:
            expected = reference_text(model, [user()], tools)
        except Exception:  # noqa: BLE001 - whatever Jinja raises
            assert model == CODER
            with pytest.raises(ToolsError, match=r"tools\[0\]"):
                make(model).render([user()], tools=tools)
        else:
            assert text_of(make(model), [user()], tools=tools) == expected
            assert text_of(make(model, sanitize_control_tokens=True), [user()], tools=tools) == expected


def test_a_function_that_is_no_object() -> None:
    tools = [{"type": "function", "function": "f"}]
    assert text_of(make(OLDER), [user()], tools=tools) == reference_text(OLDER, [user()], tools)
    with pytest.raises(ToolsError):
        make(CODER).render([user()], tools=tools)


def test_no_tag_that_a_schema_spells_is_a_token_when_sanitized() -> None:
    tools = [{"name": "f", "parameters": {"properties": {"x": {"tool_call": "<|im_end|>"}}}}]
    plain, sanitized = (
        make(CODER, sanitize_control_tokens=flag).render([user()], tools=tools) for flag in (False, True)
    )
    for marker, extra in (("<tool_call>", 1), ("</tool_call>", 1), ("<|im_end|>", 1)):
        [marker_id] = encode(CODER, marker)
        assert plain.token_ids.count(marker_id) == sanitized.token_ids.count(marker_id) + extra


@pytest.mark.parametrize("arguments", ["", "not JSON", "[1]", "null", '"{}"'])
def test_arguments_that_are_no_object_are_an_error(arguments: str) -> None:
    with pytest.raises(MessageError) as raised:
        make(CODER).render([user(), assistant("", None, arguments)])
    assert (raised.value.message_index, raised.value.field) == (1, "tool_calls[0].function.arguments")


def test_the_default_system_message_stands_before_tools_only() -> None:
    assert "You are Qwen" in text_of(make(CODER), [user()], tools=TOOLS)
    assert "You are Qwen" not in text_of(make(CODER), [system(""), user()], tools=TOOLS)
    assert text_of(make(CODER), [user()]) == "<|im_start|>user\nq<|im_end|>\n"


# What the model samples, bridges, replies -------------------------------------------------------------------------------


def test_sampled() -> None:
    messages = [user(), assistant("Look.", "never printed", {}), tool(), assistant("A")]
    assert sampled_texts(make(CODER), messages) == [f"Look.\n\n{CALL}<|im_end|>", "A<|im_end|>"]
    assert sampled_texts(make(CODER), [user(), assistant("", None, {}, {})]) == [f"{CALL}\n{CALL}<|im_end|>"]


@pytest.mark.parametrize("policy", [None, "tool_cycle", "all"])
def test_there_is_no_reasoning_to_keep(policy: Any) -> None:
    messages = [user(), assistant("A", "r"), user()]
    assert text_of(make(CODER, thinking_retention=policy), messages) == reference_text(CODER, messages)


@pytest.mark.parametrize(
    ("completion", "new", "expected"),
    [
        (f"{CALL}<|im_end|>", [tool("1"), tool("2")],
         f"\n<|im_start|>user\n<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response>\n<|im_end|>\n{NEXT}"),
        ("A<|im_end|>", [system("s"), user("b")], f"\n<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nb<|im_end|>\n{NEXT}"),
        ("A and", [user("b")], f"<|im_end|>\n<|im_start|>user\nb<|im_end|>\n{NEXT}"),
        ("A<|endoftext|>", [user("b")], "wrong_stop"),
        ("A<|im_end|>\n", [user("b")], "tokens_after_close"),
        ("<tool_call>\n<function=f>", [user("b")], "open_tool_call"),
        ("A<|im_end|>", [assistant("b")], "assistant_message"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("model", MODELS)
def test_bridge(model: str, completion: str, new: list[dict[str, Any]], expected: str) -> None:
    assert bridged(make(model), model, [system(), user()], completion, new, tools=TOOLS) == expected


def test_a_long_tool_cycle_is_one_stream() -> None:
    renderer = make(CODER)
    prompt = renderer.render([user("go")], tools=TOOLS, add_generation_prompt=True)
    for number in range(6):
        completion = encode(CODER, f"Step {number}.\n\n{CALL}<|im_end|>")
        result = renderer.bridge(prompt, completion, [tool(f"result {number}")], tools=TOOLS)
        assert isinstance(result, RenderedTokens)
        assert result.token_ids[: len(prompt) + len(completion)] == [*prompt.token_ids, *completion]
        prompt = result


def test_a_think_tag_is_text() -> None:
    parsed = make(CODER).parse_response(encode(CODER, f"<think>\nhm\n</think>\n\n{CALL}<|im_end|>"))
    assert (parsed.reasoning_content, parsed.content) == (None, "<think>\nhm\n</think>")
    assert [call.name for call in parsed.valid_tool_calls] == ["f"]


def test_arguments_come_back_through_pythons_spelling() -> None:
    for model in MODELS:
        renderer = make(model)
        values = {key: value for key, value in VALUES.items() if key not in {"s", "e"}}
        text = renderer.decode(renderer.render_ids([user(), assistant("", None, values)]))
        reply = text.partition("<|im_start|>assistant\n")[2]
        [call] = renderer.parse_response(encode(CODER, reply.removesuffix("\n"))).tool_calls
        assert call.arguments == values
