"""Qwen3.5, 3.6 and 3.8: the kit, the public cases, and what is theirs."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest
from hypothesis import settings
from public_cases import cases, check_case
from qwen_support import TOOLS, assistant, bridged, make, rendered, sampled_texts, system, text_of, tool, user

from families.qwen35 import Qwen35Config
from golden.reference import encode, load_tokenizer, profile_of, reference_for, reference_text
from renderers import (
    ConfigError,
    DamageError,
    DamageWarning,
    MessageError,
    RefusalReason,
    RenderedTokens,
    UnsupportedMessageError,
    create_renderer,
)
from renderers.testing.suite import check_renderer

Q35, Q36, Q38 = MODELS = ("Qwen/Qwen3.5-35B-A3B", "Qwen/Qwen3.6-35B-A3B", "Qwen/Qwen3.8")
OFF = {"enable_thinking": False}
KEEP, DROP = {"preserve_thinking": True}, {"preserve_thinking": False}
CASES = cases(["qwen3.5"])
#: Three templates share what the other families spend on one.
EXAMPLES = settings().max_examples // (1 if "FUZZ_EXAMPLES" in os.environ else 4)
#: Two questions; the first was answered with the help of a tool.
HISTORY = [user("a"), assistant("", "r1", {}), tool(), assistant("A", "r2"), user("b"), assistant("B", "r3")]
CALL = "<tool_call>\n<function=f>\n</function>\n</tool_call>"
NEXT = "<|im_start|>assistant\n<think>\n"


@pytest.mark.parametrize("model", MODELS)
def test_kit(model: str) -> None:
    check_renderer(
        make(model), profile=profile_of(model), reference=reference_for(model), examples=EXAMPLES, report=lambda _: None
    )


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_public_case(case: dict[str, Any]) -> None:
    check_case(case)


# Choice and settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "revision"),
    [(Q35, "3.5"), ("Qwen/Qwen3.5-4B", "3.5"), (Q36, "3.6"), ("Qwen/Qwen3.6-27B", "3.6"), (Q38, "3.8")],
)
def test_models_resolve_by_template_and_by_name(model: str, revision: Any) -> None:
    assert make(model, strict=True).config == Qwen35Config(revision=revision)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = create_renderer(load_tokenizer(model).backend_tokenizer, model=model).config
    assert found == Qwen35Config(revision=revision)


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (Q35, {"chat_template_kwargs": KEEP}),
        (Q35, {"chat_template_kwargs": DROP}),
        (Q36, {"chat_template_kwargs": {"reasoning_effort": "low"}}),
        (Q38, {"chat_template_kwargs": {"reasoning_effort": "high"}}),
        (Q36, {"chat_template_kwargs": KEEP, "thinking_retention": "tool_cycle"}),
        (Q38, {"chat_template_kwargs": DROP, "thinking_retention": "all"}),
    ],
)
def test_settings_that_do_nothing_or_contradict_are_errors(model: str, given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        create_renderer(load_tokenizer(model), **given)


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (Q36, {"chat_template_kwargs": KEEP, "thinking_retention": "all"}),
        (Q38, {"chat_template_kwargs": DROP, "thinking_retention": "tool_cycle"}),
        (Q38, {"thinking_retention": "tool_cycle"}),
    ],
)
def test_settings_that_agree_are_fine(model: str, given: dict[str, Any]) -> None:
    create_renderer(load_tokenizer(model), **given)


# Messages ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("messages", "index"),
    [
        ([user(), system()], 1),
        ([system(), user(), {"role": "developer", "content": "d"}], 2),
        ([{"role": "developer", "content": "d"}, user()], 0),
        ([system(), assistant("hello"), tool()], 2),
        ([user("<tool_response>x</tool_response>")], 0),
        ([user(" <tool_response>x</tool_response>\n")], 0),
    ],
)
def test_what_the_template_refuses(model: str, messages: list[dict[str, Any]], index: int) -> None:
    with pytest.raises(Exception, match=r"System message|Unexpected message role|No user query"):
        reference_text(model, messages)
    with pytest.raises(UnsupportedMessageError) as raised:
        make(model).render(messages)
    assert raised.value.message_index == index


@pytest.mark.parametrize("arguments", ["", "not JSON", "[1]", "null", '"{}"'])
def test_arguments_that_are_no_object_are_an_error(arguments: str) -> None:
    with pytest.raises(MessageError) as raised:
        make(Q35).render([user(), assistant("", None, arguments)])
    assert (raised.value.message_index, raised.value.field) == (1, "tool_calls[0].function.arguments")


def test_38_takes_an_empty_text_for_no_arguments() -> None:
    messages = [user(), assistant("", "r", ""), tool()]
    expected = load_tokenizer(Q38).apply_chat_template(messages, tokenize=False)
    assert text_of(make(Q38), messages) == expected
    assert "<function=f>\n</function>" in expected
    with pytest.raises(MessageError):
        make(Q38).render([user(), assistant("", "r", "[]")])


ODD_MESSAGES = [
    [tool("x"), user()],
    [system(), tool("x"), tool("y"), user()],
    [user(None), assistant(None, None, {"x": None, "b": True, "f": 1e22, "l": [True, None, "é"], "o": {}, "s": " \n"})],
    [user(), assistant("<think>\n r \n</think>\n\n  A", None, {}), tool()],
    [user(), assistant("</think>", None, {}), tool()],
    [user(), assistant("a</think>b</think>\n c", "r", {}, {}), tool()],
    [user(), assistant("a <think>b"), user("<tool_response>\nx\n</tool_response>"), assistant("c", " \n")],
    [system("  "), user("\u3000q\u2003"), assistant("\x1f A \x85", "\u2028r")],
    [system([{"type": "text", "text": " a"}, {"type": "text", "text": "b "}]), user([]), tool([])],
    [system(None), user("a"), user("b"), assistant("A"), assistant("B", "")],
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("messages", ODD_MESSAGES)
def test_odd_messages(model: str, messages: list[dict[str, Any]]) -> None:
    switches: list[dict[str, Any]] = [{}, OFF]
    switches += [KEEP, DROP] if model != Q35 else []
    switches += [{"reasoning_effort": effort} for effort in ("low", "medium")] if model == Q38 else []
    for chosen in switches:
        for tools in (None, TOOLS):
            expected = reference_text(model, messages, tools, kwargs=chosen)
            assert text_of(make(model, chosen), messages, tools=tools) == expected


def test_text_lost_with_inline_reasoning_is_damage() -> None:
    messages = [user(), assistant("a</think>b</think>c")]
    with pytest.warns(DamageWarning, match="dropped_text"):
        tokens = make(Q35).render(messages)
    assert [(damage.kind, damage.message_indices) for damage in tokens.warnings] == [("dropped_text", (1,))]
    with pytest.raises(DamageError):
        make(Q35, on_damage="raise").render(messages)
    assert not rendered(make(Q38), messages).warnings  # it leaves the content alone


@pytest.mark.parametrize(("switches", "own"), [({}, -1), (OFF, 0)])
def test_the_effort_is_no_messages_own(switches: dict[str, Any], own: int) -> None:
    tokens = rendered(make(Q38, switches), [system("Brief."), user()])
    assert tokens.message_indices[0] == own
    texts = [one for one, index in zip(tokens.token_ids, tokens.message_indices, strict=True) if index == 0]
    assert "Brief." in make(Q38).decode(texts)
    assert "Reasoning effort" not in make(Q38).decode(texts)


# What the model samples -------------------------------------------------------------------------------------------------


def test_sampled() -> None:
    assert sampled_texts(make(Q35), HISTORY) == [f"{CALL}<|im_end|>", "A<|im_end|>", "r3\n</think>\n\nB<|im_end|>"]
    kept = [f"r1\n</think>\n\n{CALL}<|im_end|>", "r2\n</think>\n\nA<|im_end|>", "r3\n</think>\n\nB<|im_end|>"]
    assert sampled_texts(make(Q36, KEEP), HISTORY) == kept
    assert sampled_texts(make(Q38), HISTORY) == kept


def test_an_empty_think_block_belongs_to_the_prompt_where_thinking_is_off() -> None:
    messages = [user(), assistant("A")]
    assert sampled_texts(make(Q35, OFF), messages) == ["A<|im_end|>"]
    # Its two line feeds are one token, and the first of them is the prompt's.
    assert sampled_texts(make(Q35), messages) == ["</think>\n\nA<|im_end|>"]


# Retention --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "switches", "policy", "kept"),
    [
        (Q35, {}, None, ["r3"]),
        (Q35, {}, "tool_cycle", ["r3"]),
        (Q35, {}, "all", ["r1", "r2", "r3"]),
        (Q36, {}, None, ["r3"]),
        (Q36, KEEP, None, ["r1", "r2", "r3"]),
        (Q38, {}, None, ["r1", "r2", "r3"]),
        (Q38, DROP, None, ["r3"]),
        (Q38, {}, "tool_cycle", ["r3"]),
    ],
)
def test_policies(model: str, switches: dict[str, Any], policy: Any, kept: list[str]) -> None:
    text = text_of(make(model, switches, thinking_retention=policy), HISTORY)
    assert [name for name in ("r1", "r2", "r3") if f"<think>\n{name}\n</think>\n\n" in text] == kept
    equal = {"all": {} if model == Q35 else KEEP, "tool_cycle": {} if model == Q35 else DROP, None: switches}[policy]
    assert (text == reference_text(model, HISTORY, kwargs=equal)) == ((model, policy) != (Q35, "all"))


def test_all_is_what_preserve_thinking_prints() -> None:
    assert text_of(make(Q35, thinking_retention="all"), HISTORY) == reference_text(Q36, HISTORY, kwargs=KEEP)


def test_a_new_question_keeps_the_bridge_where_reasoning_is_preserved() -> None:
    expected = f"\n<|im_start|>user\nb<|im_end|>\n{NEXT}"
    for model, switches, policy in ((Q35, {}, None), (Q36, {}, None), (Q38, DROP, None), (Q38, {}, "tool_cycle")):
        renderer = make(model, switches, thinking_retention=policy)
        assert bridged(renderer, model, [user("a")], "r\n</think>\n\nA<|im_end|>", [user("b")]) == "retention"
    for model, switches, policy in ((Q35, {}, "all"), (Q36, KEEP, None), (Q38, {}, None)):
        renderer = make(model, switches, thinking_retention=policy)
        assert bridged(renderer, model, [user("a")], "r\n</think>\n\nA<|im_end|>", [user("b")]) == expected


# Bridges ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("completion", "new", "expected"),
    [
        (f"r\n</think>\n\n{CALL}<|im_end|>", [tool(" 1 "), tool("2")],
         f"\n<|im_start|>user\n<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response><|im_end|>\n{NEXT}"),
        ("r\n</think>\n\nA<|im_end|>", [user("<tool_response>x</tool_response>")],
         f"\n<|im_start|>user\n<tool_response>x</tool_response><|im_end|>\n{NEXT}"),
        ("r\n</think>\n\nA and", [user("<tool_response></tool_response>")],
         f"<|im_end|>\n<|im_start|>user\n<tool_response></tool_response><|im_end|>\n{NEXT}"),
        (f"r{CALL}<|im_end|>", [tool()], f"\n<|im_start|>user\n<tool_response>\nok\n</tool_response><|im_end|>\n{NEXT}"),
        ("r\n</think>\n\nA<|im_end|>", [system()], "unsupported_message"),
        ("r\n</think>\n\nA<|im_end|>", [{"role": "developer", "content": "d"}], "unsupported_message"),
        ("r\n</think>\n\nA<|im_end|>", [assistant("x")], "assistant_message"),
        ("r\n</think>\n\nA<|endoftext|>", [tool()], "wrong_stop"),
        ("r\n</think>\n\nA<|im_end|>\n", [tool()], "tokens_after_close"),
        ("r<|im_end|>", [tool()], "open_reasoning"),
        ("r\n</think>\n\n<tool_call>\n<function=f>", [tool()], "open_tool_call"),
    ],
)  # fmt: skip
def test_bridge(completion: str, new: list[dict[str, Any]], expected: str) -> None:
    assert bridged(make(Q35), Q35, [user()], completion, new, tools=TOOLS) == expected


@pytest.mark.parametrize(
    "completion", ["\n</think>\n\nA<|im_end|>", "</think>\n\nA<|im_end|>", " \n</think>\n\nA<|im_end|>"]
)
def test_exception_the_bridge_keeps_the_empty_think_block_that_the_model_saw(completion: str) -> None:
    """The template drops it once a new question comes. Its line feeds stay the tokens that were sampled."""
    assert bridged(make(Q35), Q35, [user("a")], completion, [user("b")]) == f"\n<|im_start|>user\nb<|im_end|>\n{NEXT}"
    again = text_of(make(Q35), [user("a"), assistant("A", ""), user("b")])
    assert again == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\nb<|im_end|>\n"


def test_exception_the_bridge_keeps_the_empty_think_block_of_a_prompt_without_thinking() -> None:
    expected = "\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    assert bridged(make(Q35, OFF), Q35, [user("a")], "A<|im_end|>", [user("b")]) == expected


def test_end_of_text_is_kept_and_closed_under_all() -> None:
    renderer = make(Q35, thinking_retention="all")
    expected = f"<|im_end|>\n<|im_start|>user\nb<|im_end|>\n{NEXT}"
    assert bridged(renderer, Q35, [user()], "r\n</think>\n\nA<|endoftext|>", [user("b")]) == expected


def test_tools_belong_to_the_prompt() -> None:
    renderer = make(Q38)
    other = [{"type": "function", "function": {"name": "g", "parameters": {}}}]
    for tools, wrong in ((TOOLS, other), (TOOLS, []), (None, TOOLS)):
        prompt = renderer.render([system(), user()], tools=tools, add_generation_prompt=True)
        completion = encode(Q38, "r\n</think>\n\nA<|im_end|>")
        for given in (prompt, prompt.token_ids):
            assert renderer.bridge(given, completion, [user()], tools=wrong).reason == RefusalReason.HISTORY_REWRITE
            assert isinstance(renderer.bridge(given, completion, [user()], tools=tools or []), RenderedTokens)


@pytest.mark.parametrize("model", MODELS)
def test_twelve_messages_are_one_stream(model: str) -> None:
    """Bridged turn by turn with tokens that no encoder would choose: nothing is ever encoded again."""
    renderer = make(model)
    prompt = renderer.render([user("go")], tools=TOOLS, add_generation_prompt=True)
    special = renderer.tokenizer.special_tokens
    for number in range(6):
        text = f"step {number}\n</think>\n\n<tool_call>\n<function=f>\n<parameter=n>\n{number}\n</parameter>\n</function>\n</tool_call>"
        completion: list[int] = []
        for token_id in encode(model, text):
            data = renderer.tokenizer.token_bytes(token_id)
            whole = token_id in special.values()
            completion += [token_id] if whole else [renderer.tokenizer.encode_ordinary(chr(byte))[0] for byte in data]
        completion.append(special["<|im_end|>"])
        result = renderer.bridge(prompt, completion, [tool(f"result {number}")], tools=TOOLS)
        assert isinstance(result, RenderedTokens)
        given = [*prompt.token_ids, *completion]
        assert result.token_ids[: len(given)] == given
        assert sum(result.sampled_mask) == sum(prompt.sampled_mask) + len(completion)
        prompt = result


# Replies ----------------------------------------------------------------------------------------------------------------


def test_a_reply_is_read_as_the_prompt_left_it() -> None:
    for switches, prompt, reply, reasoning in (
        ({}, NEXT, "r\n</think>\n\nA", "r"),
        ({}, None, "r\n</think>\n\nA", "r"),
        (OFF, None, "A", None),
        ({}, f"{NEXT}\n</think>\n\n", "A", None),
        ({}, "<|im_start|>assistant\n", "<think>\nr\n</think>\n\nA", "r"),
    ):
        given = {} if prompt is None else {"prompt_ids": encode(Q35, prompt)}
        parsed = make(Q35, switches).parse_response(encode(Q35, f"{reply}<|im_end|>"), **given)
        assert (parsed.reasoning_content or None, parsed.content) == (reasoning, "A")


def test_calls_and_reasoning() -> None:
    renderer = make(Q35)
    drafted = renderer.parse_response(encode(Q35, f"maybe {CALL} no\n</think>\n\nA<|im_end|>"))
    assert (drafted.tool_calls, drafted.reasoning_content) == ([], f"maybe {CALL} no")
    swallowed = renderer.parse_response(encode(Q35, f"so:\n\n{CALL}<|im_end|>"))
    assert [call.name for call in swallowed.valid_tool_calls] == ["f"]
    assert (swallowed.reasoning_content, swallowed.reasoning_complete) == ("so:", False)
    cut = renderer.parse_response(encode(Q35, f"so:\n\n{CALL}"))
    assert (cut.tool_calls, cut.reasoning_complete) == ([], False)


def test_prefills_equal_transformers() -> None:
    tokenizer = load_tokenizer(Q35)
    for reply in (assistant("Well"), assistant("Well", "hm")):
        expected = tokenizer.apply_chat_template(
            [user(), reply], continue_final_message=True, tokenize=True, return_dict=False
        )
        assert make(Q35).render_ids([user(), reply], continue_final_message=True) == expected
