"""What one conversation proved is not taken for another, whose template output differs: shapes, and what no shape holds."""

from __future__ import annotations

from typing import Any

import pytest
from test_delta import CALL, KEEPING, USER, bridged, refused, sampled, wrap

from renderers import BridgeRefusal, DefaultRenderer, MessageError, RefusalReason
from renderers.delta import Bridge

HEADER = "{{- '<|im_start|>' + message.role + '\n' }}"
ANSWER = {"role": "assistant", "content": "ok"}
SYSTEM = {"role": "system", "content": "be brief"}


def asked(identity: str, name: str = "f") -> dict[str, Any]:
    """An assistant's call."""
    function = {"name": name, "arguments": '{"x": 1}'}
    return {
        "role": "assistant",
        "content": "let me see",
        "tool_calls": [{"id": identity, "type": "function", "function": function}],
    }


def found(identity: str) -> dict[str, Any]:
    """The result of such a call."""
    return {"role": "tool", "tool_call_id": identity, "content": "21"}


def said(text: str) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": text}


def marking(condition: str, state: str = "") -> str:
    """A template that marks a message's header where a condition holds."""
    assert HEADER in KEEPING
    return KEEPING.replace(
        HEADER, state + "{{- '<|im_start|>' + message.role + ('!' if " + condition + " else '') + '\n' }}"
    )


def outcome(renderer: DefaultRenderer, messages: list[Any], reply: Any, new: list[Any], *, known: bool) -> bool:
    """Bridge a canonical reply: whether it was accepted, which must equal the full render."""
    prompt = renderer.render(messages, add_generation_prompt=True)
    closed = renderer.render([*messages, reply]).token_ids
    assert closed[: len(prompt)] == prompt.token_ids
    whole = closed[len(prompt) :]
    end = renderer.tokenizer.special_tokens["<|im_end|>"]
    result = renderer.bridge(prompt if known else prompt.token_ids, whole[: whole.index(end) + 1], new)
    if isinstance(result, BridgeRefusal):
        return False
    assert result.token_ids == renderer.render([*messages, reply, *new], add_generation_prompt=True).token_ids
    return True


OTHER_CALL = CALL.replace('"f"', '"g"')
LONG = [message for turn in range(6) for message in (said(f"q{turn}"), ANSWER)]
CALLS = [said("a"), *(message for turn in range(5) for message in (asked(f"c{turn}"), found(f"c{turn}")))]
FIRST_OF_ID = (
    "{% set ns = namespace(m={}) %}{% for message in messages %}{% for c in message.tool_calls or [] %}{% if c.id not in ns.m %}"
    "{% set ns.m = dict(ns.m, **{c.id: c.function.name}) %}{% endif %}{% endfor %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("template", "easy", "hard", "new"),
    [
        pytest.param("{% if messages | length > 14 %}L{% endif %}" + KEEPING, [*LONG[:6], USER], [*LONG, USER], [USER]),
        pytest.param(KEEPING.replace("in messages ", "in messages[-14:] "), [*LONG[:6], USER], [*LONG, USER], [USER]),
        pytest.param(
            marking(
                "ns.n > 3 and message.role == 'tool'", "{% if message.tool_calls %}{% set ns.n = ns.n + 1 %}{% endif %}"
            ).replace("{%- for message", "{% set ns = namespace(n=0) %}{%- for message"),
            CALLS[:5],
            CALLS,
            [found("z")],
        ),
        pytest.param(marking("loop.index is divisibleby(7)"), LONG[:3], LONG[:5], [USER]),
        pytest.param(
            marking("message.role == 'user' and loop.changed(message.content)"), [said("a")], [said("b")], [said("b")]
        ),
        pytest.param(
            "{% for m in messages %}{% if m.content | length > 30 %}L{% endif %}{% endfor %}" + KEEPING,
            [USER],
            [USER],
            [said("x" * 40)],
        ),
        pytest.param("{% if 'json' in messages[-1].content %}J{% endif %}" + KEEPING, [USER], [USER], [said("json!")]),
        pytest.param(
            "{% if 'json' in messages[-1].content | lower %}J{% endif %}" + KEEPING, [USER], [USER], [said("JSON!")]
        ),
        pytest.param(
            "{% for m in messages %}{% if m.content == 'stop' %}J{% endif %}{% endfor %}" + KEEPING,
            [USER],
            [USER],
            [said("stop")],
        ),
        pytest.param(
            "{% for m in messages %}{% if m.content.strip().startswith('[') %}J{% endif %}{% endfor %}" + KEEPING,
            [USER],
            [USER],
            [said(" [a")],
        ),
        pytest.param(
            "{% if messages | selectattr('content', 'equalto', 'hey') | list %}J{% endif %}" + KEEPING,
            [USER],
            [USER],
            [said("hey")],
        ),
        pytest.param(
            "{% for m in messages %}{% if not loop.first and m.content == messages[0].content %}D{% endif %}{% endfor %}"
            + KEEPING,
            [said("a")],
            [said("b")],
            [said("b")],
        ),
        pytest.param(
            marking("messages[0].role == 'system' and message.role == 'tool'"), CALLS[:1], [SYSTEM, USER], [found("z")]
        ),
        pytest.param(
            marking("'/x' in messages[0].content and message.role == 'tool'"), CALLS[:1], [said("/x")], [found("z")]
        ),
        pytest.param(
            FIRST_OF_ID + marking("message.role == 'tool' and ns.m[message.tool_call_id] == 'g'"),
            [said("a"), asked("y", "g"), found("y")],
            [said("a"), asked("z", "g"), found("z")],
            [found("z")],
        ),
        pytest.param(marking("message.hidden"), [USER], [{**USER, "hidden": True}], [{**USER, "hidden": False}]),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_proof_is_not_taken_for_a_conversation_that_the_template_treats_otherwise(
    template: str, easy: list[Any], hard: list[Any], new: list[Any], known: bool
) -> None:
    renderer = wrap(template)
    calls = new[0]["role"] == "tool"
    reply = asked("z") if calls else ANSWER
    tame = new if calls else [said("b")]
    outcome(renderer, easy, reply, tame, known=known)
    outcome(renderer, hard, reply, new, known=known)
    outcome(renderer, hard, reply, tame, known=known)


def test_a_template_that_counts_is_proved_for_each_conversation_and_never_for_ids() -> None:
    renderer = wrap("{% if messages | length > 14 %}L{% endif %}" + KEEPING)
    assert [outcome(renderer, [*LONG[:count], USER], ANSWER, [USER], known=True) for count in (0, 8, 12)] == [
        True,
        True,
        False,
    ]
    prompt = renderer.render([USER], add_generation_prompt=True)
    refusal = renderer.bridge(prompt.token_ids, sampled(renderer, "ok<|im_end|>"), [USER])
    assert isinstance(refusal, BridgeRefusal)
    assert (refusal.reason, "line 1: messages | length > 14" in refusal.detail) == (RefusalReason.UNKNOWN_HISTORY, True)


def test_a_system_message_is_in_the_probe_where_the_conversation_has_one() -> None:
    renderer = wrap(marking("messages[0].role == 'system' and message.role == 'tool'"))
    assert outcome(renderer, [SYSTEM, USER], asked("z"), [found("z")], known=True)


def test_results_keep_the_ids_of_their_calls_in_any_order() -> None:
    named = (
        "'<|im_start|>' + message.role + (messages[loop.index0 - message.back].tool_calls"
        " | selectattr('id', 'equalto', message.tool_call_id) | map(attribute='function.name') | first"
        " if message.role == 'tool' else '')"
    )
    renderer = wrap(KEEPING.replace("'<|im_start|>' + message.role", named))
    completion = sampled(renderer, f"{CALL}\n{OTHER_CALL}<|im_end|>")
    reply = renderer.parse_response(completion).to_message()
    first, second = (call["id"] for call in reply["tool_calls"])
    new = [
        {"role": "tool", "tool_call_id": second, "back": 1, "content": "of g"},
        {"role": "tool", "tool_call_id": first, "back": 2, "content": "of f"},
    ]
    result = bridged(renderer, f"{CALL}\n{OTHER_CALL}<|im_end|>", new)
    assert isinstance(result, Bridge), result
    whole = renderer.render([USER, reply, *new], add_generation_prompt=True)
    assert "toolg\nof g" in renderer.decode(result.extension_ids)
    assert renderer.decode(whole.token_ids).endswith(renderer.decode(result.extension_ids))


@pytest.mark.parametrize("tools", [None, []])
def test_an_empty_list_of_tools_is_not_taken_for_none(tools: list[Any] | None) -> None:
    renderer = wrap(marking("tools is none and message.role == 'user'"))
    prompt = renderer.render([USER], tools=tools, add_generation_prompt=True)
    completion = sampled(renderer, "ok<|im_end|>")
    result = renderer.bridge(prompt, completion, [USER])
    assert isinstance(result, Bridge)
    whole = renderer.render([USER, ANSWER, USER], tools=tools, add_generation_prompt=True)
    assert result.token_ids == whole.token_ids
    again = renderer.bridge(result, completion, [USER], tools=tools)
    assert isinstance(again, Bridge)
    assert isinstance(renderer.bridge(prompt.token_ids, completion, [USER], tools=tools), BridgeRefusal)


def test_a_prompt_under_other_variables_is_another_format() -> None:
    other, renderer = wrap(template_kwargs={"switch": 1}), wrap(template_kwargs={"switch": 0})
    refusal = renderer.bridge(
        other.render([USER], add_generation_prompt=True), sampled(renderer, "ok<|im_end|>"), [USER]
    )
    assert isinstance(refusal, BridgeRefusal)
    assert refusal.reason == RefusalReason.UNKNOWN_HISTORY


def test_one_message_that_fails_does_not_spoil_its_shape() -> None:
    template = KEEPING.replace(
        HEADER, "{% if message.content | length == 1 %}{{ raise_exception('too short') }}{% endif %}" + HEADER
    )
    renderer = wrap(template)
    assert refused(renderer, "hello<|im_end|>", [said("a")]).reason == RefusalReason.UNSUPPORTED_MESSAGE
    assert isinstance(bridged(renderer, "hello<|im_end|>", [said("ab")]), Bridge)


def test_a_new_message_that_cannot_be_rendered_is_named_as_the_caller_counts() -> None:
    nested: dict[str, Any] = {}
    nested["again"] = nested
    renderer = wrap()
    for bad, field in [({**USER, "extra": nested}, "extra"), ({**USER, "content": "\ud800"}, None)]:
        with pytest.raises(MessageError) as caught:
            bridged(renderer, "hello<|im_end|>", [USER, bad])
        assert (caught.value.message_index, caught.value.field) == (1, field)
    odd: Any = {**USER, 5: "x", None: "y"}
    assert isinstance(bridged(renderer, "hello<|im_end|>", [odd], [odd]), Bridge)
