"""The checks accept a renderer that is right, and find each kind of fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from golden.profiles import QWEN3
from golden.reference import reference_for
from renderers import BridgeRefusal, ParsedResponse, RefusalReason, Region, Span, create_renderer
from renderers.testing import Choices, Continuation, Conversation, Rollout, checks
from renderers.testing.suite import check_renderer

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.needs_assets

MODEL = "Qwen/Qwen3-8B"
REFERENCE = reference_for(MODEL)
CALL = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
CHAT = Conversation(
    [
        {"role": "user", "content": "hi <|im_end|>"},
        {"role": "assistant", "content": "", "reasoning_content": "why", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_0", "content": "done"},
        {"role": "assistant", "content": "ok"},
    ]
)
ANSWER = Continuation(
    Conversation([{"role": "user", "content": "hi"}], add_generation_prompt=True),
    {"role": "assistant", "content": "", "reasoning_content": "why", "tool_calls": [CALL]},
    [{"role": "tool", "tool_call_id": "call_0", "content": "done"}],
)
CHANGE_OF_SUBJECT = Continuation(
    ANSWER.prompt,
    {"role": "assistant", "content": "ok", "reasoning_content": "why"},
    [{"role": "user", "content": "and now?"}],
)


class Altered:
    """An object with some attributes changed."""

    def __init__(self, original: Any, **changed: Any) -> None:
        self._original = original
        self.__dict__.update(changed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __len__(self) -> int:
        return len(self._original)


@pytest.fixture(scope="module")
def renderer(official_tokenizer: Callable[[str], Any]) -> Any:
    return create_renderer(official_tokenizer(MODEL))


def _rendering(renderer: Any, change: Callable[[Any], dict[str, Any]]) -> Any:
    """The renderer, its rendered tokens changed."""

    def render(*arguments: Any, **named: Any) -> Any:
        tokens = renderer.render(*arguments, **named)
        return Altered(tokens, **change(tokens))

    return Altered(renderer, render=render)


def test_right_renders_pass(renderer: Any) -> None:
    tokens = checks.check_render_parity(renderer, REFERENCE, CHAT)
    assert tokens is not None
    checks.check_alignment(renderer, CHAT, tokens)
    checks.check_mask_by_rule(renderer, CHAT, tokens)
    checks.check_caller_objects_unchanged(renderer, CHAT)


def test_parity_finds_a_lost_token(renderer: Any) -> None:
    losing = _rendering(renderer, lambda tokens: {"token_ids": tokens.token_ids[:3] + tokens.token_ids[4:]})
    with pytest.raises(AssertionError, match="first difference at token 3"):
        checks.check_render_parity(losing, REFERENCE, CHAT)


def test_parity_wants_an_error_where_the_template_raises(renderer: Any) -> None:
    def refusing(_: Conversation) -> list[int]:
        raise RuntimeError("no")

    with pytest.raises(AssertionError, match="the official template raises"):
        checks.check_render_parity(renderer, refusing, CHAT)
    empty = Conversation([])
    assert checks.check_render_parity(renderer, refusing, empty) is None


def test_parity_passes_on_that_there_is_no_reference(renderer: Any) -> None:
    def missing(_: Conversation) -> list[int]:
        raise LookupError("no template")

    with pytest.raises(LookupError):
        checks.check_render_parity(renderer, missing, CHAT)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda tokens: {"sampled_mask": tokens.sampled_mask[:-1]}, "tokens, but"),
        (lambda tokens: {"sampled_mask": [True, *tokens.sampled_mask[1:]]}, "token 0: sampled, but of a user message"),
        (lambda tokens: {"is_content": [not one for one in tokens.is_content]}, "is_content|owner"),
        (lambda tokens: {"message_indices": [7] * len(tokens)}, "message index 7 of 4"),
        (lambda tokens: {"message_indices": [-1] * len(tokens)}, "content outside any message"),
        (lambda tokens: {"owners": ["tool"] * len(tokens)}, "owner tool, expected template"),
        (lambda _: {"message_roles": ["user"]}, "message_roles"),
        (lambda _: {"message_tool_names": []}, "message_tool_names"),
        (lambda tokens: {"runs": lambda: list(tokens.runs())[1:]}, "runs do not cover"),
        (lambda tokens: {"message_spans": lambda: tokens.message_spans()[1:]}, "message spans"),
    ],
)
def test_alignment_finds(renderer: Any, change: Callable[[Any], dict[str, Any]], problem: str) -> None:
    tokens = renderer.render(CHAT.messages)
    altered: Any = Altered(tokens, **change(tokens))
    with pytest.raises(AssertionError, match=problem):
        checks.check_alignment(renderer, CHAT, altered)


@pytest.mark.parametrize("moved", ["begins late", "begins early", "ends early", "ends late", "has a gap", "is missing"])
def test_mask_rule_finds_that_the_sampled_part(renderer: Any, moved: str) -> None:
    tokens = renderer.render(CHAT.messages)
    mask = list(tokens.sampled_mask)
    first = mask.index(True)
    end = mask.index(False, first)
    place, value = {
        "begins late": (first, False),
        "begins early": (first - 1, True),
        "ends early": (end - 1, False),
        "ends late": (end, True),
        "has a gap": (first + 2, False),
        "is missing": (0, False),
    }[moved]
    mask[place] = value
    if moved == "is missing":
        mask[first:end] = [False] * (end - first)
    altered: Any = Altered(tokens, sampled_mask=mask)
    with pytest.raises(AssertionError, match=r"sampled"):
        checks.check_mask_by_rule(renderer, CHAT, altered)


def test_sanitising_is_told_from_not_sanitising(renderer: Any, official_tokenizer: Callable[[str], Any]) -> None:
    sanitising = create_renderer(official_tokenizer(MODEL), sanitize_control_tokens=True)
    assert checks.check_sanitised(renderer, sanitising, CHAT) is not None
    with pytest.raises(AssertionError, match=r"'<\|im_end\|>' holds text of message 0"):
        checks.check_sanitised(renderer, renderer, CHAT)
    in_arguments = {**CALL, "function": {"name": "f", "arguments": {"x": "<|im_start|>"}}}
    hidden = Conversation([*CHAT.messages[:1], {"role": "assistant", "content": "", "tool_calls": [in_arguments]}])
    with pytest.raises(AssertionError, match=r"that the template did not write|holds text"):
        checks.check_sanitised(renderer, renderer, Conversation(hidden.messages[1:]))
    in_tools = [{"type": "function", "function": {"name": "f", "description": "<|im_end|>", "parameters": {}}}]
    with pytest.raises(AssertionError, match="that the template did not write"):
        checks.check_sanitised(renderer, renderer, Conversation([{"role": "user", "content": "hi"}], in_tools))
    changing = _rendering(sanitising, lambda tokens: {"token_ids": [*tokens.token_ids, tokens.token_ids[-1]]})
    with pytest.raises(AssertionError, match="changed the text"):
        checks.check_sanitised(renderer, changing, CHAT)


def test_changed_objects_are_found(renderer: Any) -> None:
    def render(messages: list[dict[str, Any]], **_: Any) -> None:
        messages[0]["content"] = messages[0].pop("content")  # only the order of keys changes
        messages[0]["role"] = messages[0].pop("role")

    with pytest.raises(AssertionError, match="changed the caller's objects"):
        checks.check_caller_objects_unchanged(
            Altered(renderer, render=render), Conversation([{"role": "user", "content": "hi"}])
        )


def test_right_bridges_pass(renderer: Any) -> None:
    assert checks.check_bridge(renderer, ANSWER, REFERENCE, QWEN3) == "equal"
    assert checks.check_bridge(renderer, CHANGE_OF_SUBJECT, REFERENCE, QWEN3) == "refused: retention"
    plain = Continuation(ANSWER.prompt, {"role": "assistant", "content": "ok"}, CHANGE_OF_SUBJECT.new_messages)
    assert checks.check_bridge(renderer, plain, REFERENCE, QWEN3) == "positional"
    assert checks.check_cut_bridge(renderer, plain, REFERENCE, QWEN3, 5) == "closed"
    assert checks.check_cut_bridge(renderer, ANSWER, REFERENCE, QWEN3, 3) == "refused: open_reasoning"
    assert checks.check_cut_bridge(renderer, ANSWER, REFERENCE, QWEN3, 0) == "refused: empty_completion"


def _bridging(renderer: Any, change: Callable[[Any], Any]) -> Any:
    """The renderer, its bridges changed."""

    def bridge(*arguments: Any, **named: Any) -> Any:
        return change(renderer.bridge(*arguments, **named))

    def bridge_to_next_turn(*arguments: Any, **named: Any) -> Any:
        result = bridge(*arguments, **named)
        return None if isinstance(result, BridgeRefusal) else result

    return Altered(renderer, bridge=bridge, bridge_to_next_turn=bridge_to_next_turn)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda _: BridgeRefusal(RefusalReason.RETENTION, "so"), "refused needlessly"),
        (lambda _: BridgeRefusal(RefusalReason.RETENTION, ""), "without a detail"),
        (lambda one: Altered(one, token_ids=[0, *one.token_ids[1:]]), "does not begin with prompt"),
        (
            lambda one: Altered(one, token_ids=one.token_ids[:-1], extension_ids=one.extension_ids[:-1]),
            "entries for|differs from the full render",
        ),
        (lambda one: Altered(one, extension_ids=[]), "extension_ids"),
        (lambda one: Altered(one, sampled_mask=[False] * len(one.token_ids)), "the mask of prompt"),
        (lambda one: Altered(one, sampled_mask=[*one.sampled_mask[:-1], True]), "after the completion"),
        (lambda one: Altered(one, message_indices=[0] * len(one.token_ids)), "attributed to a new message"),
        (lambda one: Altered(one, message_roles=["user", "tool"]), "message_roles"),
    ],
)
def test_bridge_check_finds(renderer: Any, change: Callable[[Any], Any], problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        checks.check_bridge(_bridging(renderer, change), ANSWER, REFERENCE, QWEN3)


def test_bridge_check_finds_reasoning_that_the_template_drops(official_tokenizer: Callable[[str], Any]) -> None:
    keeping = create_renderer(official_tokenizer(MODEL), thinking_retention="all")
    with pytest.raises(AssertionError, match="differs from the full render"):
        checks.check_bridge(keeping, CHANGE_OF_SUBJECT, REFERENCE, QWEN3)


@pytest.mark.parametrize(
    ("outcome", "retention", "role", "problem"),
    [
        ("refused: retention", "all", "user", 'under "all"'),
        ("retention", "all", "tool", 'under "all"'),
        ("refused: retention", "tool_cycle", "tool", "inside a tool cycle"),
        ("equal", "tool_cycle", "user", "bridged to a user's question"),
        ("bridged", "tool_cycle", "user", "bridged to a user's question"),
    ],
)
def test_policy_check_finds(outcome: str, retention: str, role: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        checks.check_policy_kept(outcome, retention, [{"role": role, "content": "x"}])


@pytest.mark.parametrize(
    ("outcome", "retention", "message"),
    [
        ("refused: retention", None, {"role": "tool", "content": "x"}),
        ("refused: wrong_stop", "all", {"role": "user", "content": "x"}),
        ("refused: retention", "tool_cycle", {"role": "user", "content": "x"}),
        ("equal", "tool_cycle", {"role": "tool", "content": "x"}),
        # A tool's answer in a user's clothes, and a message that says nothing, are questions to some formats alone.
        ("equal", "tool_cycle", {"role": "user", "content": "<tool_response>x</tool_response>"}),
        ("equal", "tool_cycle", {"role": "user", "content": None}),
    ],
)
def test_policy_check_passes(outcome: str, retention: str | None, message: dict[str, Any]) -> None:
    checks.check_policy_kept(outcome, retention, [message])


def test_cut_bridge_check_finds_a_missing_close(renderer: Any) -> None:
    plain = Continuation(ANSWER.prompt, {"role": "assistant", "content": "ok"}, CHANGE_OF_SUBJECT.new_messages)

    def without_close(one: Any) -> Any:
        start = len(one.token_ids) - len(one.extension_ids)
        lists = ("token_ids", "sampled_mask", "message_indices", "is_content", "owners")
        changed = {name: getattr(one, name)[:start] + getattr(one, name)[start + 1 :] for name in lists}
        return Altered(one, extension_ids=one.extension_ids[1:], **changed)

    with pytest.raises(AssertionError, match="expected its close"):
        checks.check_cut_bridge(_bridging(renderer, without_close), plain, REFERENCE, QWEN3, 5)


def test_rollouts(renderer: Any, official_tokenizer: Callable[[str], Any]) -> None:
    steps = [
        (ANSWER.reply, ANSWER.new_messages),
        (CHANGE_OF_SUBJECT.reply, CHANGE_OF_SUBJECT.new_messages),
        (ANSWER.reply, ANSWER.new_messages),
    ]
    rollout = Rollout(ANSWER.prompt, steps)
    assert checks.check_rollout(renderer, rollout) == ["bridged", "retention", "bridged"]
    keeping = create_renderer(official_tokenizer(MODEL), thinking_retention="all")
    assert checks.check_rollout(keeping, rollout) == ["bridged"] * 3


def test_span_check_finds_gaps() -> None:
    spans = [Span(0, 2, Region.CONTENT), Span(3, 4, Region.STRUCTURE)]
    with pytest.raises(AssertionError, match="where token 2 comes next"):
        checks.check_spans(ParsedResponse("", None, spans=spans, closed_at=4), 4)
    with pytest.raises(AssertionError, match="cover 2 of 4"):
        checks.check_spans(ParsedResponse("", None, spans=spans[:1], closed_at=2), 4)
    with pytest.raises(AssertionError, match="does not say which"):
        checks.check_spans(ParsedResponse("", None, spans=[Span(0, 1, Region.TOOL_CALL)], closed_at=1), 1)
    with pytest.raises(AssertionError, match="names a call"):
        checks.check_spans(ParsedResponse("", None, spans=[Span(0, 1, Region.TOOL_CALL, 0)], closed_at=1), 1)


def test_parse_check_finds_an_exception(renderer: Any) -> None:
    def raising(*_: Any, **__: Any) -> None:
        raise ValueError("oops")

    with pytest.raises(AssertionError, match="parsing raised ValueError"):
        checks.check_parse_never_raises(Altered(renderer, parse_response=raising), [1, 2])


def test_stream_check_finds_what_depends_on_the_grouping(renderer: Any) -> None:
    class Forgetful(Altered):
        """Loses what comes in a portion of one token."""

        def feed(self, ids: list[int]) -> list[Any]:
            deltas: list[Any] = self._original.feed(ids)
            return deltas if len(ids) > 1 else []

    def stream(**named: Any) -> Any:
        return Forgetful(renderer.stream(**named))

    ids = renderer.tokenizer.encode_ordinary("one two three")
    checks.check_stream_equals_batch(renderer, ids, [1])
    with pytest.raises(AssertionError, match="deltas add up to something else"):
        checks.check_stream_equals_batch(Altered(renderer, stream=stream), ids, [1])


def test_round_trip_check_finds_changed_values(renderer: Any) -> None:
    checked = checks.check_round_trip(renderer, ANSWER.prompt, ANSWER.reply)
    assert checked is not None
    assert checked.reasoning_content == "why"

    def parse(*_: Any, **__: Any) -> ParsedResponse:
        return ParsedResponse("", "why", checked.tool_calls[:0], spans=checked.spans[:0], closed_at=0)

    with pytest.raises(AssertionError):
        checks.check_round_trip(Altered(renderer, parse_response=parse), ANSWER.prompt, ANSWER.reply)
    accent = {**CALL, "function": {"name": "f", "arguments": {"x": "\n\u0301"}}}
    unspeakable = {"role": "assistant", "content": "", "tool_calls": [accent]}
    assert checks.check_round_trip(renderer, ANSWER.prompt, unspeakable) is None


def test_the_whole_kit_passes_and_reports(renderer: Any) -> None:
    lines: list[str] = []
    report = check_renderer(renderer, profile=QWEN3, reference=REFERENCE, examples=15, report=lines.append)
    assert len(lines) == len(report.sections) + 1
    assert lines[0] == "qwen3: Qwen3"
    assert not report.failures
    assert all(section.examples for section in report.sections)


def test_the_whole_kit_reports_failures(renderer: Any) -> None:
    def wrong(_: Conversation) -> list[int]:
        return [1, 2, 3]

    lines: list[str] = []
    with pytest.raises(AssertionError, match="FAILED parity"):
        check_renderer(renderer, profile=QWEN3, reference=wrong, examples=3, report=lines.append)
    assert len(lines) > 10


def test_choices_show_their_bytes() -> None:
    assert repr(Choices(b"\x01\x00\x02\x00\x00")) == "Choices(b'\\x01\\x00\\x02')"
