"""The doctor on templates of our own: each kind of break with its line, its condition and a change that was tried."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_templates import ARGUMENTS, BY_POSITION, BY_QUERY, KEEPING, LOSING, NULL_ONLY, REFUSING, chatml

from renderers.errors import ConfigError, TemplateError
from renderers.template import Report, describe, diagnose
from renderers.template.doctor import Break, Change, CheckStatus, Flip, Row, RowStatus

TOKENIZER = "golden:qwen3"
ROLES = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + (m.content or '') + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def examine(template: str, tokenizer: str | None = TOKENIZER, **settings: Any) -> Report:
    """The report on a template of our own."""
    return diagnose(tokenizer, chat_template=template, **settings)


def line_of(template: str, text: str) -> int:
    """The first line of a template that holds a text."""
    return next(number for number, line in enumerate(template.splitlines(), start=1) if text in line)


def broken(row: Row) -> Break:
    """The break of a row that has one."""
    assert row.status in {RowStatus.TEXT_DIFFERS, RowStatus.TOKENS_DIFFER}
    assert row.difference is not None
    return row.difference


def statuses(report: Report, group: str) -> dict[str, RowStatus]:
    """The statuses of a group's rows."""
    return {row.code: row.status for row in report.rows if row.group == group}


# Appending ----------------------------------------------------------------------------------------------------------------


def test_a_template_that_keeps_everything_breaks_nowhere() -> None:
    report = examine(KEEPING)
    assert {row.status for row in report.rows} == {RowStatus.PREFIX}
    assert [check.code for check in report.checks if check.is_finding] == []
    assert list(report.findings) == []
    assert report.row("result").difference is None
    with pytest.raises(KeyError):
        report.row("nothing")


def test_a_break_names_the_condition_that_flipped() -> None:
    report = examine(BY_POSITION)
    row = report.row("result-empty")
    found = broken(row)
    line, whole = line_of(BY_POSITION, "loop.last"), "loop.last or m.reasoning_content and true"
    assert found.flips == (Flip(line, "loop.last", whole, 1, earlier=True, later=False),)
    assert found.changes == (
        Change(line, whole, "true", "earlier", enough=True),
        Change(line, whole, "m.reasoning_content", "later", enough=True),
    )
    assert found.common.endswith("<|im_start|>assistant\n")
    assert found.earlier.text.startswith("<think>\n\n</think>")
    assert found.later.text.startswith("<tool_call>get_weather")
    assert found.earlier.place is not None
    assert found.later.place is not None
    assert (found.earlier.place.line, found.later.place.line) == (line, line_of(BY_POSITION, "<tool_call>"))
    assert found.earlier.place.condition == whole
    assert found.earlier.tokens[0][1] == "<think>"
    assert found.later.tokens[0][0] != found.earlier.tokens[0][0]
    assert found.token is not None
    assert "last one" in found.advice
    assert report.row("result-after-reasoning").status is RowStatus.PREFIX


@pytest.mark.parametrize("kept", ["earlier", "later"])
def test_the_changes_that_are_offered_work(kept: str) -> None:
    change = next(change for change in broken(examine(BY_POSITION).row("result")).changes if change.keeps == kept)
    patched = BY_POSITION.replace(change.condition, change.replacement)
    assert patched != BY_POSITION
    assert examine(patched).row("result").status is RowStatus.PREFIX


def test_a_break_names_what_decided_its_condition() -> None:
    report = examine(BY_QUERY)
    assert set(statuses(report, "results").values()) == {RowStatus.PREFIX}
    found = broken(report.row("user-after-reasoning"))
    whole = "loop.index0 > ns.last_user and m.reasoning_content"
    assert found.flips == (
        Flip(line_of(BY_QUERY, whole), "loop.index0 > ns.last_user", whole, 1, earlier=True, later=False),
        Flip(
            line_of(BY_QUERY, "m.role == 'user'"), "m.role == 'user'", None, 2, earlier=None, later=True,
            decides=f"ns.last_user (line {line_of(BY_QUERY, 'set ns.last_user')})",
        ),
    )  # fmt: skip
    assert [change.replacement for change in found.changes] == ["m.reasoning_content"]
    assert "ns.last_user" in found.advice
    assert report.row("user").status is RowStatus.PREFIX


def test_a_message_that_changes_its_loop_is_traced_to_what_cuts_the_list() -> None:
    template = (
        "{% set ns = namespace(end=0) %}\n{% for m in messages %}\n{% if m.role == 'user' %}\n{% set ns.end = loop.index %}\n"
        "{% endif %}\n{% endfor %}\n{% set old = messages[:ns.end] %}\n{% set new = messages[ns.end:] %}\n"
        "{% for m in old %}{{ m.content }}|{% endfor %}\n{% for m in new %}{{ m.reasoning_content }}{{ m.content }}|{% endfor %}"
    )
    found = broken(examine(template).row("user-after-reasoning"))
    assert [(flip.line, flip.condition, flip.earlier, flip.later) for flip in found.flips] == [
        (10, "for m in new", True, False), (9, "for m in old", False, True), (3, "m.role == 'user'", None, True)
    ]  # fmt: skip
    assert found.flips[-1].decides == "ns.end (line 4)"
    assert "loop" in found.advice


def test_a_condition_inside_a_loop_of_a_message_is_found() -> None:
    template = KEEPING.replace(
        "m.content or ''", "m.content or '' }}{% for word in ['a', 'b'] %}{% if loop.last and m is eq(messages[-1]) %}x{% endif %}{% endfor %}{{ ''"
    )  # fmt: skip
    found = broken(examine(template).row("user"))
    assert [(flip.condition, flip.earlier, flip.later) for flip in found.flips] == [
        ("m is eq(messages[-1])", True, False)
    ]


def test_a_loop_that_runs_on_is_named() -> None:
    template = KEEPING.replace(
        "m.content or ''", "m.content or '' }}{% for one in messages[loop.index:] %}+{% endfor %}{{ ''"
    )
    found = broken(examine(template).row("user"))
    assert [(flip.condition, flip.earlier, flip.later) for flip in found.flips] == [
        ("for one in messages[loop.index:]", False, True)
    ]
    assert found.changes == ()


def test_a_system_message_that_moves_to_the_front_is_told() -> None:
    template = "{% for m in messages if m.role == 'system' %}{{ m.content }}|{% endfor %}" + ROLES
    found = broken(examine(template).row("system"))
    assert "printed before" in found.advice
    assert found.later.message_index == 3
    assert found.later.field == "content"


def test_what_is_printed_at_the_end_of_a_conversation_is_told() -> None:
    template = ROLES.replace("{% if add", "{% if messages[-1].role == 'tool' %}<end>{% endif %}{% if add")
    found = broken(
        examine(
            template.replace("(m.content or '')", "(m.content or '') + (m.tool_calls | string if m.tool_calls else '')")
        ).row("second-result")
    )
    assert "end of a conversation" in found.advice
    assert "at once" in found.advice
    assert found.earlier.place is not None
    assert found.earlier.place.condition == "messages[-1].role == 'tool'"


def test_a_reply_must_begin_with_its_generation_prompt() -> None:
    template = ROLES.replace("assistant\n' }}", "assistant\n<think>\n' }}")
    report = examine(template)
    assert statuses(report, "users")["user"] is RowStatus.PREFIX
    found = broken(report.row("reply"))
    assert found.earlier.text == "<think>\n"
    assert "generation prompt" in found.advice


def test_tokens_that_join_over_the_border_are_a_break_of_tokens() -> None:
    template = "{% for m in messages %}{{ m.role + m.content + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '\n' }}{% endif %}"
    row = examine(template).row("user")
    assert row.status is RowStatus.PREFIX
    split = template.replace("{{ m.role", "{{ ('\n' if m.role == 'user' and not loop.first else '') + m.role")
    row = examine(split).row("user")
    assert row.status is RowStatus.TOKENS_DIFFER
    assert broken(row).advice.startswith("The texts agree")
    assert examine(split, None).row("user").status is RowStatus.PREFIX


def test_a_refusal_says_where_and_under_which_condition() -> None:
    row = examine("\n\n" + REFUSING).row("result")
    assert row.status is RowStatus.REFUSED
    assert "No tools here." in row.detail
    assert row.place is not None
    assert (row.place.line, row.place.condition, row.place.condition_held) == (3, "m.tool_calls", True)


def test_lost_calls_are_no_prefix() -> None:
    assert examine(LOSING).row("result").status is RowStatus.CALL_LOST
    report = examine(NULL_ONLY)
    assert report.row("result-empty").status is RowStatus.CALL_LOST
    assert report.row("result-null").status is RowStatus.PREFIX
    # What else there is to know of such a template is asked with null content.
    assert report.row("next-result").status is RowStatus.PREFIX
    assert "with null content" in report.row("next-result").detail


# How messages are treated ---------------------------------------------------------------------------------------------------


def details(template: str, code: str, **settings: Any) -> tuple[CheckStatus, list[str]]:
    """The status and the words of a check."""
    check = examine(template, **settings).check(code)
    return check.status, [detail.text for detail in check.details]


@pytest.mark.parametrize(
    ("template", "code", "status", "words"),
    [
        (ROLES.replace("<|im_end|>", ""), "stop-token", CheckStatus.FOUND, "no stop token (<|im_end|>) stands after an answer"),
        (ROLES.replace("m.content or ''", "m.content | string"), "null-content", CheckStatus.NOTE, "as in transformers 4"),
        (ROLES.replace("m.content or ''", "m.content | default('None')"), "null-content", CheckStatus.FOUND, "prints None"),
        (ROLES.replace("m.content or ''", "m.content"), "null-content", CheckStatus.NOTE, "refuses an answer"),
        (KEEPING.replace("{%- else %}", "{%- elif m.role != 'system' or loop.first %}"), "extra-system", CheckStatus.FOUND, "drops a second"),
        (KEEPING.replace("messages %}", "messages %}{{ raise_exception('Late.') if m.role == 'system' and not loop.first }}"), "extra-system", CheckStatus.NOTE, "Late."),
        (KEEPING.replace(ARGUMENTS, "given | tojson"), "arguments", CheckStatus.FOUND, "as JSON text: encodes them twice"),
        (KEEPING.replace(ARGUMENTS, "given | string"), "arguments", CheckStatus.FOUND, "prints Python's own form"),
        (KEEPING.replace(ARGUMENTS, "given.items() | string"), "arguments", CheckStatus.NOTE, "refuses arguments as JSON text"),
        (ROLES, "lost-text", CheckStatus.FOUND, "drops a tool call"),
        (ROLES, "lost-text", CheckStatus.FOUND, "drops the tools"),
        (KEEPING.replace("m.content or ''", "'' if m.tool_calls else m.content"), "lost-text", CheckStatus.FOUND, "beside a tool call"),
        (KEEPING.replace("in m.tool_calls or []", "in (m.tool_calls or [])[:1]"), "lost-text", CheckStatus.FOUND, "second of two calls"),
        (KEEPING.replace("if m.reasoning_content", "if m.reasoning_content and m.tool_calls"), "lost-text", CheckStatus.FOUND, "the reasoning of an answer"),
        (KEEPING.replace("m.content or ''", "m.content.split('</think>')[-1] if '</think>' in (m.content or '') else m.content"), "split-content", CheckStatus.FOUND, "</think>"),
        (KEEPING.replace("' + m.content + '</tool_response>", "' + m.content | tojson + '</tool_response>"), "tool-text", CheckStatus.NOTE, "in quotes"),
        (ROLES, "special-tokens", CheckStatus.NOTE, "<|im_end|> in a user message"),
    ],
)  # fmt: skip
def test_checks_find_what_a_template_does(template: str, code: str, status: CheckStatus, words: str) -> None:
    found, texts = details(template, code)
    assert any(words in text for text in texts), texts
    assert found is status


def test_a_stop_token_may_open_the_next_message() -> None:
    template = "{% for m in messages %}{{ '<|im_start|>' + m.role + m.content }}{% endfor %}"
    status, texts = details(template, "stop-token", stop_tokens=["<|im_start|>"])
    assert status is CheckStatus.NOTE
    assert "opens the next message" in texts[0]


def test_checks_say_where() -> None:
    template = KEEPING.replace(
        "m.content or ''", "m.content.split('</think>')[-1] if '</think>' in (m.content or '') else m.content"
    )
    (detail,) = examine(template).check("split-content").details
    assert detail.place is not None
    assert detail.place.condition == "'</think>' in (m.content or '')"
    twice = KEEPING.replace(ARGUMENTS, "given | tojson")
    (detail,) = examine(twice).check("arguments").details
    assert detail.place is not None
    assert detail.place.line == line_of(twice, "given | tojson")


# The report -----------------------------------------------------------------------------------------------------------------


def test_without_a_tokenizer_texts_are_compared() -> None:
    report = examine("{{ bos_token }}" + BY_POSITION, None)
    found = broken(report.row("result"))
    assert found.token is None
    assert found.earlier.tokens == ()
    assert found.flips[0].condition == "loop.last"
    assert report.check("special-tokens").status is CheckStatus.UNKNOWN
    assert report.check("stop-token").status is CheckStatus.UNKNOWN
    assert examine(BY_POSITION, None, stop_tokens=["<|im_end|>"]).check("stop-token").status is CheckStatus.OK
    assert any("bos_token" in note for note in report.notes)
    assert not report.has_tokenizer


def test_a_report_is_plain_data_and_text() -> None:
    report = examine(BY_POSITION)
    data = json.loads(json.dumps(report.to_dict()))
    assert data["findings"] == [finding.code for finding in report.findings]
    assert data["rows"][0]["difference"]["flips"][0]["condition"] == "loop.last"
    text = describe(report)
    assert "BREAK    result " in text
    assert f"why: line {line_of(BY_POSITION, 'loop.last')}: `loop.last` was true and is false for message 1" in text
    assert text.count("change: line") < text.count("why: line")  # a cause is explained once
    assert "see result" in text
    assert describe(examine(KEEPING.replace("call.function.arguments | tojson", "call.function.arguments"))).endswith(
        "no findings"
    )


def test_a_template_that_cannot_be_rendered_is_an_error() -> None:
    for template, words in (("{{ x | nonsense }}", "No filter"), ("{% include 'other' %}", "no loader")):
        with pytest.raises(TemplateError, match=words):
            examine(template)
        with pytest.raises(TemplateError, match=words):
            examine(template, None)
    with pytest.raises(ConfigError, match="chat_template"):
        diagnose(None)


def test_switches_are_given_to_the_template() -> None:
    template = chatml("{%- if loop.last and odd %}x{%- endif %}")
    assert examine(template).row("user").status is RowStatus.PREFIX
    assert examine(template, template_kwargs={"odd": True}).row("user").status is RowStatus.TEXT_DIFFERS
