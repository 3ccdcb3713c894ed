"""The two things that a token-in, token-out loop needs of a chat template: that it keeps its prefix, and what it appends.

`is_prefix_preserving` is a property of the template under one probe; `tool_response_delta` is what follows a sampled tool
call in the next prompt. For a whole report, with lines and conditions, see `renderers.template.doctor`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from renderers.errors import MessageError, PrefixError, TemplateError
from renderers.messages import as_dicts, validate_messages
from renderers.template.bound import BoundTemplate
from renderers.template.branches import Recorder
from renderers.template.doctor.rendering import Conversation, Pair, rendered
from renderers.template.doctor.rows import compare
from renderers.template.doctor.syntax import Syntax
from renderers.template.doctor.text import summarize
from renderers.template.trace import TracedText

_QUESTION: Mapping[str, Any] = {"role": "user", "content": "Question."}
_RESULT: Mapping[str, Any] = {"role": "tool", "content": "Result."}
#: Arguments as a dict and as JSON text: templates take one of them, or both.
_ARGUMENTS: tuple[Any, ...] = ({"key": "value"}, '{"key": "value"}')

Messages = Sequence[Mapping[str, Any]]


class PrefixVerdict(StrEnum):
    """What a probe of a template's prefix came to."""

    PRESERVED = "preserved"
    REWRITTEN = "rewritten"
    CALL_LOST = "call lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PrefixTest:
    """A probe of one template: a question and a tool call, and the same with the results.

    Attributes:
        verdict: `preserved`; `rewritten` where the shorter render is no token prefix of the longer one; `call lost` where it
            holds neither the name nor the ID of the call; `refused` where the template raises.
        detail: one sentence for people.
        messages: the longer conversation, as it was rendered.
        earlier: the render of the question and the call.
        later: the render of all, with the generation prompt. Both are None where the template raised.
    """

    verdict: PrefixVerdict
    detail: str
    messages: Messages
    earlier: TracedText | None = None
    later: TracedText | None = None


def is_prefix_preserving(
    tokenizer: object,
    *,
    tool_name: str = "get_weather",
    tools: Sequence[Mapping[str, Any]] | None = None,
    chat_template: str | None = None,
    template_kwargs: Mapping[str, Any] | None = None,
) -> bool:
    """Whether a tool's result leaves the tokens before it as they are.

    The token IDs of a question and a reply that is one tool call (with empty content) must be a prefix of those of the
    same with the tool's result and the generation prompt. Arguments are tried as a dict and as JSON text; of the forms
    that the template takes, all must hold. A template that does not print the call does not preserve it.

    Args:
        tokenizer: whatever `create_renderer` takes.
        tool_name: the name of the tool that is called.
        tools: JSON schemas that the template prints, or None.
        chat_template: takes the place of the tokenizer's own.
        template_kwargs: the template's switches.

    Raises:
        ConfigError: there is no template.
        TemplateError: the template cannot be compiled, or renders nothing at all.
    """
    template = BoundTemplate.of(tokenizer, chat_template=chat_template, template_kwargs=template_kwargs)
    return check_prefix(template, tool_name=tool_name, tools=tools).verdict is PrefixVerdict.PRESERVED


def check_prefix(
    template: BoundTemplate,
    results: Messages = (_RESULT,),
    *,
    tool_name: str,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> PrefixTest:
    """The same with its reasons: the worst of the argument forms that the template takes.

    Args:
        template: the template with its tokenizer.
        results: the tool messages that are appended; the reply before them has as many calls.
        tool_name: the name of the tool, where a message has none of its own.
        tools: JSON schemas, or None.

    Raises:
        TemplateError: the template cannot render the question alone.
    """
    template.render([_QUESTION], tools=tools, convert=False)
    tests = [_check_form(template, _conversation(results, tool_name, form), tools) for form in _ARGUMENTS]
    for verdict in (PrefixVerdict.REWRITTEN, PrefixVerdict.PRESERVED, PrefixVerdict.CALL_LOST, PrefixVerdict.REFUSED):
        for test in tests:
            if test.verdict is verdict:
                return test
    raise AssertionError  # every verdict is in the list


def require_prefix_preserving(
    template: BoundTemplate, *, tool_name: str, tools: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Raise where a tool's result changes the tokens before it: at start-up, and not in the middle of a run.

    Args:
        template: the template with its tokenizer.
        tool_name: the name of a tool.
        tools: JSON schemas, or None.

    Raises:
        PrefixError: saying where the renders part, on which template line, by which condition, and what to change.
    """
    test = check_prefix(template, tool_name=tool_name, tools=tools)
    if test.verdict is not PrefixVerdict.PRESERVED:
        raise PrefixError(_explained(template, test, tools))


def tool_response_delta(
    tokenizer: object,
    results: Messages,
    *,
    tool_name: str,
    tools: Sequence[Mapping[str, Any]] | None = None,
    chat_template: str | None = None,
    template_kwargs: Mapping[str, Any] | None = None,
    stop_tokens: Sequence[str] | None = None,
) -> list[int]:
    """The token IDs that follow a sampled tool call: its results and the next generation prompt.

    They begin right after the stop token that the model sampled, so that prompt + completion + delta is the next prompt.
    They are those of a probe with the same results, not of your conversation: this holds where the template does not look
    further back, which a delta bridge proves and this function does not.

    Args:
        tokenizer: whatever `create_renderer` takes.
        results: the tool messages, in order, as the next turn has them, in any form that `render` takes.
        tool_name: the name of the called tool, which some templates print; a message's own `name` goes first.
        tools: JSON schemas that the template prints, or None.
        chat_template: takes the place of the tokenizer's own.
        template_kwargs: the template's switches.
        stop_tokens: special tokens that end sampling; None means the tokenizer's end-of-sequence token and those of the
            model's `generation_config.json`.

    Raises:
        PrefixError: the template is not prefix-preserving here, or no stop token stands between call and result.
        MessageError: there is no result, or one is no tool message.
    """
    _check_results(results)
    template = BoundTemplate.of(
        tokenizer, chat_template=chat_template, template_kwargs=template_kwargs, stop_tokens=stop_tokens
    )
    converted = template.form.convert(as_dicts(results), validate_messages(results))
    test = check_prefix(template, converted, tool_name=tool_name, tools=tools)
    if test.verdict is not PrefixVerdict.PRESERVED or test.earlier is None or test.later is None:
        raise PrefixError(_explained(template, test, tools))
    ids, offsets = template.tokens(test.later.text)
    begin, end = _gap(test.earlier, test.later)
    stops = {token_id for text, token_id in template.special_tokens.items() if text in template.stop_tokens}
    for position, (token_id, (start, _)) in enumerate(zip(ids, offsets, strict=True)):
        if begin <= start < end and token_id in stops:
            return ids[position + 1 :]
    raise PrefixError(
        f"no stop token stands between the call and its result, so it is not known where sampling ended: the template "
        f"prints {test.later.text[begin:end]!r}, and the stop tokens are {', '.join(template.stop_tokens) or 'not known'}; "
        "give `stop_tokens=`"
    )


def _conversation(results: Messages, tool_name: str, arguments: Any) -> Messages:
    """A question, a reply with a call for each result, and the results."""
    calls, answers = [], []
    for position, result in enumerate(results):
        call_id = str(result.get("tool_call_id") or f"call{position:05}")
        name = str(result.get("name") or tool_name)
        calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}})
        answers.append({"name": name, "tool_call_id": call_id, **{k: v for k, v in result.items() if v is not None}})
    return [_QUESTION, {"role": "assistant", "content": "", "tool_calls": calls}, *answers]


def _check_form(template: BoundTemplate, messages: Messages, tools: Sequence[Mapping[str, Any]] | None) -> PrefixTest:
    try:
        earlier = template.render(messages[:2], tools=tools, convert=False, null_content=False)
        later = template.render(messages, tools=tools, convert=False, null_content=False, add_generation_prompt=True)
    except TemplateError as error:
        return PrefixTest(PrefixVerdict.REFUSED, f"the template refuses a tool call or its result: {error}", messages)
    if not _prints_calls(earlier, messages[1]):
        detail = "the template does not print a tool call beside empty content: the call is lost"
        return PrefixTest(PrefixVerdict.CALL_LOST, detail, messages, earlier, later)
    before, after = template.token_ids(earlier.text), template.token_ids(later.text)
    if after[: len(before)] == before:
        return PrefixTest(PrefixVerdict.PRESERVED, "the tokens before a tool's result stay", messages, earlier, later)
    detail = "a tool's result changes the tokens before it"
    return PrefixTest(PrefixVerdict.REWRITTEN, detail, messages, earlier, later)


def _explained(template: BoundTemplate, test: PrefixTest, tools: Sequence[Mapping[str, Any]] | None) -> str:
    """Why a template is not prefix-preserving, with the doctor's finding where there is one."""
    if test.verdict is not PrefixVerdict.REWRITTEN:
        return f"this chat template is not prefix-preserving: {test.detail}"
    sides = (Conversation(test.messages[:2], tools, False), Conversation(test.messages, tools, True))
    earlier, later = (rendered(template, side, Recorder()) for side in sides)
    difference = compare(template, Syntax(template.source), Pair(sides, earlier, later))
    found = "" if difference is None else f": {summarize(difference)}"
    return f"this chat template is not prefix-preserving: {test.detail}{found}"


def _prints_calls(earlier: TracedText, reply: Mapping[str, Any]) -> bool:
    """Whether a reply's calls are printed, and not only named in the list of tools.

    By their names, or by their IDs: where a format prints only these, they hold the names.
    """
    printed = "".join([earlier.text[span.start : span.end] for span in earlier.spans if _is_call(span.field)])
    return all(call["function"]["name"] in printed or call["id"] in printed for call in reply["tool_calls"])


def _is_call(field: str | None) -> bool:
    return field is not None and field.startswith("tool_calls")


def _gap(earlier: TracedText, later: TracedText) -> tuple[int, int]:
    """The characters between the last of the call's data and the first of the results'."""
    begin = max(span.end for span in earlier.spans if span.message_index == 1 and _is_call(span.field))
    results = [
        span.start
        for span in later.spans
        if span.start >= begin and span.message_index > 1 and span.field not in {None, "role"}
    ]
    return begin, min(results, default=len(later.text))


def _check_results(results: Messages) -> None:
    if not results:
        raise MessageError("there are no results; give at least one tool message")
    for index, result in enumerate(results):
        if not isinstance(result, Mapping) or result.get("role") != "tool":
            raise MessageError("expected a message with the role tool", message_index=index, field="role")
