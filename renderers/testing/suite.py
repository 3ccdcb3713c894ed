"""The whole kit in one call, for a family in this package or in anybody's."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from renderers.errors import ConfigError, UnsupportedMessageError
from renderers.refusal import RefusalReason
from renderers.testing import checks
from renderers.testing.segmentation import Segmenter
from renderers.testing.strategies import continuations, conversations, decided, replies, rollouts, token_sequences
from renderers.testing.support import fail, rendered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import SearchStrategy

    from renderers.renderer import Renderer
    from renderers.testing.choices import Choices
    from renderers.testing.messages import Conversation, Rollout
    from renderers.testing.profile import Profile
    from renderers.testing.support import Reference

_CONTRADICTION = "contradictory settings"
_CUTS = st.lists(st.integers(0, 60), max_size=12)
_DECISIONS = decided(lambda choices: choices, 60)


@dataclass
class Section:
    """How one property fared: on how many examples, with what outcomes, and the failure, if any."""

    name: str
    examples: int
    seconds: float
    outcomes: Counter[str]
    failure: str | None = None

    def __str__(self) -> str:
        verdict = "ok    " if self.failure is None else "FAILED"
        outcomes = ", ".join(f"{name} {count}" for name, count in self.outcomes.most_common() if name)
        line = f"{verdict} {self.name:<34} {self.examples:>6} examples {self.seconds:6.1f} s  {outcomes}".rstrip()
        return line if self.failure is None else f"{line}\n{_indented(self.failure)}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


@dataclass
class Report:
    """What the kit found."""

    title: str
    sections: list[Section] = field(default_factory=list)

    @property
    def failures(self) -> list[Section]:
        """The properties that do not hold."""
        return [section for section in self.sections if section.failure is not None]

    def __str__(self) -> str:
        return "\n".join([self.title, *map(str, self.sections)])


class Variants:
    """The renderers of one family, tokenizer and revision, by their settings. Each is made once."""

    def __init__(self, renderer: Renderer[Any]) -> None:
        self._renderer = renderer
        self._made: dict[str, Renderer[Any]] = {}

    def __call__(self, kwargs: dict[str, Any], **framework_settings: Any) -> Renderer[Any]:
        """The renderer for these template switches and settings of the framework."""
        key = json.dumps([kwargs, framework_settings], sort_keys=True)
        if key not in self._made:
            config = self._renderer.config
            given_settings = {name: getattr(config, name) for name in config.model_fields_set}
            changed = {**given_settings, **config.from_template_kwargs(kwargs), **framework_settings}
            self._made[key] = type(self._renderer)(self._renderer.tokenizer, type(config).create(changed))
        return self._made[key]


def _run(name: str, strategy: SearchStrategy[Any], check: Callable[[Any], object], examples: int) -> Section:
    """One property on generated examples. What the check returns as text is counted."""
    section = Section(name, 0, 0.0, Counter())

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def holds(example: Any) -> None:
        section.examples += 1
        try:
            outcome = check(example)
        except UnsupportedMessageError:  # whether rightly so is the parity's matter
            outcome = "the format refuses it"
        section.outcomes[outcome if isinstance(outcome, str) else ""] += 1

    start = time.monotonic()
    try:
        holds()
    except Exception as error:  # noqa: BLE001 - a failure of any kind belongs in the report
        section.failure = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    section.seconds = time.monotonic() - start
    return section


class _Kit:
    """The properties, each as a function of one generated example."""

    def __init__(self, renderer: Renderer[Any], reference: Reference | None, profile: Profile) -> None:
        self.renderer = renderer
        self.reference = reference
        self.profile = profile
        self.variants = Variants(renderer)
        self.segmenter = Segmenter(renderer.tokenizer)

    def render(self, conversation: Conversation) -> None:
        renderer = self.variants(conversation.kwargs)
        tokens = rendered(renderer, conversation)
        checks.check_alignment(renderer, conversation, tokens)
        checks.check_mask_by_rule(renderer, conversation, tokens)
        checks.check_caller_objects_unchanged(renderer, conversation)

    def parity(self, conversation: Conversation) -> str:
        if self.reference is None:
            return "no reference"
        try:
            tokens = checks.check_render_parity(self.variants(conversation.kwargs), self.reference, conversation)
        except LookupError:
            return "no reference"
        return "" if tokens is not None else "both raise"

    def sanitised(self, conversation: Conversation) -> None:
        sanitising = self.variants(conversation.kwargs, sanitize_control_tokens=True)
        checks.check_sanitised(self.variants(conversation.kwargs), sanitising, conversation)

    def under_policy(self, kwargs: dict[str, Any], retention: str | None) -> Renderer[Any] | None:
        """The renderer with this retention policy; None where that contradicts a switch of the template."""
        try:
            return self.variants(kwargs, **({} if retention is None else {"thinking_retention": retention}))
        except ConfigError:
            return None

    def bridge(
        self, example: tuple[Any, Choices], retention: str | None = None, *, with_reasoning: bool = False
    ) -> str:
        """A bridge under a policy; over the reply as the template shows it, or `with_reasoning` that it drops."""
        continuation, choices = example
        renderer = self.under_policy(continuation.prompt.kwargs, retention)
        if renderer is None:
            return _CONTRADICTION

        def own(conversation: Conversation) -> list[int]:
            return rendered(renderer, conversation).token_ids

        kwargs = continuation.prompt.kwargs
        keeper = self.under_policy(kwargs, "all") or self.under_policy(kwargs, "tool_cycle") or renderer

        def official(conversation: Conversation) -> Sequence[int]:
            if self.reference is not None and retention is None:
                with contextlib.suppress(LookupError):
                    return self.reference(conversation)
            # A policy of the caller's own leaves the template: the reference is the render under the same policy.
            return own(conversation)

        # That policy ends at a user's message (to some formats a developer is one), be there reasoning or not.
        asked = any(message["role"] in {"user", "developer"} for message in continuation.new_messages)
        outcome = checks.check_bridge(
            renderer,
            continuation,
            official,
            self.profile,
            replies=(lambda conversation: rendered(keeper, conversation).token_ids) if with_reasoning else None,
            allowed={RefusalReason.RETENTION} if retention == "tool_cycle" and asked else (),
            segmenter=self.segmenter,
            choices=choices,
        )
        checks.check_policy_kept(outcome, retention, continuation.new_messages)
        return outcome

    def cut_bridge(self, example: tuple[Any, int]) -> str:
        continuation, keep = example
        renderer = self.variants(continuation.prompt.kwargs)
        return checks.check_cut_bridge(
            renderer, continuation, lambda given: rendered(renderer, given).token_ids, self.profile, keep
        )

    def rollout(self, example: tuple[Rollout, Choices], retention: str | None = None) -> str:
        rollout, choices = example
        renderer = self.under_policy(rollout.prompt.kwargs, retention)
        if renderer is None:
            return _CONTRADICTION
        happened = checks.check_rollout(renderer, rollout, segmenter=self.segmenter, choices=choices)
        for outcome, (_, new_messages) in zip(happened, rollout.steps, strict=True):
            checks.check_policy_kept(outcome, retention, new_messages)
        return " + ".join(sorted(set(happened)))

    def round_trip(self, example: tuple[Conversation, dict[str, Any]]) -> str:
        prompt, message = example
        # Some templates drop the reasoning even of the last answer; under this policy a render shows what was sampled.
        renderer = self.under_policy(prompt.kwargs, "all")
        if renderer is None:
            return _CONTRADICTION
        parsed = checks.check_round_trip(renderer, prompt, message, exact_arguments=self.profile.typed_arguments)
        return "" if parsed is not None else "not canonical"

    def truncated(self, example: tuple[tuple[Conversation, dict[str, Any]], list[int]]) -> str:
        (prompt, message), cuts = example
        renderer = self.under_policy(prompt.kwargs, "all") or self.variants(prompt.kwargs)
        tokens = checks.reply_tokens(renderer, prompt, message)
        if tokens is None:
            return "not canonical"
        prompt_ids, reply = tokens
        end = cuts[0] % (len(reply) + 1) if cuts else len(reply)
        checks.check_stream_equals_batch(renderer, reply[:end], cuts, prompt_ids=prompt_ids, tools=prompt.tools)
        parsed = checks.check_parse_never_raises(renderer, reply[:end], prompt_ids=prompt_ids, tools=prompt.tools)
        whole = renderer.parse_response(reply, prompt_ids=prompt_ids, tools=prompt.tools)
        if [(call.name, call.arguments) for call in parsed.valid_tool_calls] != [
            (call.name, call.arguments) for call in whole.valid_tool_calls[: len(parsed.valid_tool_calls)]
        ]:
            fail("a cut reply has well-formed calls that the whole one does not have", str(parsed), str(whole))
        return ""

    def parse(self, example: tuple[list[int], list[int]]) -> None:
        ids, cuts = example
        checks.check_parse_never_raises(self.renderer, ids)
        checks.check_stream_equals_batch(self.renderer, ids, cuts)


def check_renderer(
    renderer: Renderer[Any],
    *,
    profile: Profile,
    reference: Reference | None = None,
    examples: int = 200,
    report: Callable[[str], object] = print,
) -> Report:
    """Check everything that a renderer must hold, and print a report.

    Args:
        renderer: the renderer of a family, as the family configures it. Variants with the profile's switches and the
            framework's settings are made of it.
        profile: what the family's template takes.
        reference: from a conversation to its official token IDs. Without one, and where it raises LookupError because
            it has none, parity is not checked, and bridges are compared with the renderer's own renders.
        examples: how many generated examples each property is checked on.
        report: takes the report's lines.

    Raises:
        AssertionError: where a property does not hold, after all were checked; its text is the report.
    """
    kit = _Kit(renderer, reference, profile)
    special = sorted(renderer.tokenizer.special_tokens.values())
    tokens = token_sequences(renderer.tokenizer.vocabulary_size, special)
    continued = st.tuples(continuations(profile), _DECISIONS)
    rolled = st.tuples(rollouts(profile), _DECISIONS)
    properties: list[tuple[str, SearchStrategy[Any], Callable[[Any], object]]] = [
        ("parity", conversations(profile), kit.parity),
        ("labels, mask, caller's objects", conversations(profile), kit.render),
        ("sanitize_control_tokens", conversations(profile), kit.sanitised),
        ("bridge", continued, kit.bridge),
        (
            "bridge, replies with their reasoning",
            continued,
            lambda example: kit.bridge(example, with_reasoning=True),
        ),
        ('bridge, retention "tool_cycle"', continued, lambda example: kit.bridge(example, "tool_cycle")),
        ('bridge, retention "all"', continued, lambda example: kit.bridge(example, "all")),
        ("bridge after a cut reply", st.tuples(continuations(profile), st.integers(0, 300)), kit.cut_bridge),
        ("rollout", rolled, kit.rollout),
        ('rollout, retention "tool_cycle"', rolled, lambda example: kit.rollout(example, "tool_cycle")),
        ('rollout, retention "all"', rolled, lambda example: kit.rollout(example, "all")),
        ("parse and stream, any tokens", st.tuples(tokens, _CUTS), kit.parse),
        ("parse and stream, cut replies", st.tuples(replies(profile), _CUTS), kit.truncated),
        ("replies come back", replies(profile), kit.round_trip),
    ]
    found = Report(f"{renderer.family}: {profile.name}")
    report(found.title)
    for name, strategy, check in properties:
        found.sections.append(_run(name, strategy, check, examples))
        report(str(found.sections[-1]))
    for name, once in (
        ("spelled markers", lambda _: checks.check_spelled_markers_are_text(renderer, profile.markers)),
        ("bad input", lambda _: checks.check_bad_input(renderer)),
    ):
        found.sections.append(_run(name, st.none(), once, 1))
        report(str(found.sections[-1]))
    if found.failures:
        raise AssertionError(str(found))
    return found
