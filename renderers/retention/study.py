"""Several models under all policies: what a conversation adds to their figures."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from renderers.errors import ConfigError, RendererError
from renderers.renderer import DamageWarning
from renderers.retention.conversations import Conversation, Failure, Item, read_conversations
from renderers.retention.figures import Figures
from renderers.retention.rollout import Replay, turns_of

if TYPE_CHECKING:
    from renderers.config import ThinkingRetention
    from renderers.renderer import Renderer

#: The policies, as the `thinking_retention` of a config.
POLICIES: tuple[ThinkingRetention | None, ...] = (None, "tool_cycle", "all")
#: Kinds of damage that are none of the template's: the conversation has reasoning, and the model has none; or the prompt
#: of this config does not let it reason, as where a switch turns thinking off.
UNSAMPLED_REASONING, UNINVITED_REASONING = "unsampled_reasoning", "uninvited_reasoning"
#: Failures that a report keeps; the rest is only counted.
FAILURES_KEPT = 100


@dataclass(slots=True)
class ModelTally:
    """One model's counts.

    Attributes:
        policies: the figures of each policy that the model's settings allow.
        damages: conversations by the kinds of damage that the template does to their prompts; as
            `unsampled_reasoning` those with reasoning that this model does not sample, which is left out of them; and as
            `uninvited_reasoning` those with reasoning where the config's prompt lets the model do none.
    """

    policies: dict[ThinkingRetention | None, Figures]
    damages: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Tally:
    """What was counted so far. Tallies of different conversations add up.

    Attributes:
        models: each model's counts, in the study's order.
        conversations: conversations that were looked at, those that failed included.
        failures: what went wrong, the first times.
        failed: conversations that were left out, for one model at least.
        size: bytes of the lines that were read.
    """

    models: list[ModelTally]
    conversations: int = 0
    failures: list[Failure] = field(default_factory=list)
    failed: int = 0
    size: int = 0

    def add(self, other: Tally) -> None:
        """Count other conversations, too."""
        for mine, theirs in zip(self.models, other.models, strict=True):
            mine.damages.update(theirs.damages)
            for policy, figures in theirs.policies.items():
                mine.policies[policy].add(figures)
        self.conversations += other.conversations
        self.failures += other.failures[: FAILURES_KEPT - len(self.failures)]
        self.failed += other.failed
        self.size += other.size


class ModelStudy:
    """One model under every policy.

    Attributes:
        name: what the report calls the model.
        renderers: the renderer under each policy that its settings allow.
        unavailable: why the others are not.

    Raises:
        ConfigError: the renderer does not know what the model samples.
    """

    def __init__(self, name: str, renderer: Renderer[Any]) -> None:
        self.name = name
        self.renderers: dict[ThinkingRetention | None, Renderer[Any]] = {}
        self.unavailable: dict[ThinkingRetention | None, str] = {}
        given = {key: getattr(renderer.config, key) for key in renderer.config.model_fields_set}
        for policy in POLICIES:
            try:
                config = type(renderer.config).create({**given, "thinking_retention": policy})
                self.renderers[policy] = type(renderer)(renderer.tokenizer, config)
            except ConfigError as error:
                self.unavailable[policy] = str(error)
        probe = self.renderers[None].render([{"role": "user", "content": ""}], add_generation_prompt=True)
        if not probe.mask_known:
            raise ConfigError(
                f"{name}: the {renderer.family} renderer does not know which tokens the model samples, and without "
                "that nothing can be said of a policy; a report needs a family's own renderer"
            )
        #: Instruct models of some families do not: to these, reasoning in a reply would be plain text.
        self._reasons = self.renderers[None].parse_response([]).reasoning_complete is not None

    def renewed(self) -> ModelStudy:
        """The same with renderers that remember nothing: what they wrote comes in no other conversation."""
        study = copy(self)
        study.renderers = {policy: type(one)(one.tokenizer, one.config) for policy, one in self.renderers.items()}
        return study

    def empty(self) -> ModelTally:
        """Counts of nothing."""
        return ModelTally({policy: Figures() for policy in self.renderers})

    def measure(self, conversation: Conversation, *, limit: int, block_size: int) -> ModelTally:
        """The counts of one conversation.

        Raises:
            RendererError: the family cannot render it.
        """
        keeper = list(self.renderers.values())[-1]
        asked = conversation if self._reasons else conversation.without_reasoning()
        replays = {policy: Replay(asked, renderer, block_size) for policy, renderer in self.renderers.items()}
        damages: set[str] = set()
        reasoned: list[int] = []
        for turn, prompt in turns_of(asked, self.renderers[None], keeper):
            for one in replays.values():
                one.take(turn, prompt)
            if turn.reasoning:
                reasoned.append(turn.position)
            elif conversation.has_reasoning(turn.position):
                damages.add(UNSAMPLED_REASONING)
            damages.update(damage.kind for damage in prompt.warnings)
        if reasoned and not _continues(keeper, asked, reasoned[0]):
            damages.add(UNINVITED_REASONING)
        return ModelTally({policy: one.finished(limit) for policy, one in replays.items()}, Counter(damages))


def _continues(keeper: Renderer[Any], conversation: Conversation, position: int) -> bool:
    """Whether a reply is written as what a model would sample after the prompt."""
    messages, tools = conversation.messages, conversation.tools
    prompt = keeper.render(messages[:position], tools=tools, add_generation_prompt=True).token_ids
    whole = keeper.render(messages[: position + 1], tools=tools).token_ids
    return whole[: len(prompt)] == prompt or keeper.decode(whole).startswith(keeper.decode(prompt))


@dataclass(frozen=True)
class Study:
    """What is asked of every conversation. Pickles, to be sent to worker processes.

    Attributes:
        models: the models.
        context_limit: conversations longer than this are counted, in tokens.
        block_size: tokens of a block of the prefix cache.
        strict: stop after the first conversation that fails.
    """

    models: Sequence[ModelStudy]
    context_limit: int
    block_size: int
    strict: bool = False

    def empty(self) -> Tally:
        """Counts of nothing."""
        return Tally([model.empty() for model in self.models])

    def measure(self, items: Iterable[Item]) -> Tally:
        """The counts of these conversations. What fails is counted as such, and left out."""
        tally = self.empty()
        study = replace(self, models=[model.renewed() for model in self.models])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)  # a report counts damage itself
            for item in items:
                tally.add(study._measured(item))  # noqa: SLF001 - the same class
                if self.strict and tally.failures:
                    break
        return tally

    def _measured(self, item: Item) -> Tally:
        tally = self.empty()
        tally.size = item.size
        try:
            conversations = read_conversations(item)
        except RendererError as error:
            tally.failures.append(Failure(item.line, str(error)))
            tally.conversations = tally.failed = 1
            return tally
        for conversation in conversations:
            tally.add(self._measured_one(conversation, item.line))
        return tally

    def _measured_one(self, conversation: Conversation, line: int) -> Tally:
        tally = self.empty()
        tally.conversations = 1
        for place, model in enumerate(self.models):
            try:
                tally.models[place] = model.measure(conversation, limit=self.context_limit, block_size=self.block_size)
            except RendererError as error:
                tally.failures.append(Failure(line, str(error), model.name))
        tally.failed = int(bool(tally.failures))
        return tally
