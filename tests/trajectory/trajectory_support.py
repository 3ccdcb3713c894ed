"""A harness that rolls out at random, and remembers what the engine was given and returned."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from golden.profiles import PROFILES
from renderers import DefaultRendererConfig, RendererError, Trajectory, create_renderer
from renderers.labels import is_sampled
from renderers.testing import Choices, Conversation
from renderers.testing.messages import Builder
from renderers.testing.parse_checks import reply_tokens
from renderers.testing.segmentation import Segmenter
from renderers.testing.support import damage_allowed
from renderers.testing.texts import clean_text
from renderers.testing.values import tools as some_tools
from renderers.trajectory import MessageTree, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from renderers import Renderer
    from renderers.testing import Profile
    from renderers.trajectory import Sample

RENDERER = create_renderer("golden:qwen3")
USER = {"role": "user", "content": "hi"}
RESULT = {"role": "tool", "tool_call_id": "call_0", "content": "18 C"}


def ids_of(text: str) -> list[int]:
    """Tokens of a text, special tokens recognised."""
    return RENDERER.tokenizer.encode_with_offsets(text)[0]


ANSWER = ids_of("Hello.<|im_end|>")
#: The same text in other tokens than the encoder's.
OTHERWISE = [*ids_of("H"), *ids_of("ello."), *ids_of("<|im_end|>")]
CALL = ids_of('<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call><|im_end|>')
THOUGHT = ids_of("<think>\nHm.\n</think>\n\nHello.<|im_end|>")


def begun(**settings: Any) -> Trajectory:
    """A trajectory with its first prompt."""
    trajectory = Trajectory(RENDERER, **settings)
    assert trajectory.begin([USER])
    return trajectory


#: A template without a family, for the DefaultRenderer. Its extended conversations continue its prompts.
PLAIN_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% if m.tool_calls %}"
    "{{ m.tool_calls | tojson }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: Renderers on the small tokenizers that come with the package, by a name, each with the model of its profile.
RENDERERS = {
    "qwen3": ("golden:qwen3", "Qwen/Qwen3-8B", {}),
    "qwen3-all": ("golden:qwen3", "Qwen/Qwen3-8B", {"thinking_retention": "all"}),
    "qwen3-cycle": ("golden:qwen3", "Qwen/Qwen3-8B", {"thinking_retention": "tool_cycle"}),
    "qwen3.5": ("golden:qwen3.5", "Qwen/Qwen3.5-35B-A3B", {}),
    "glm45": ("golden:glm45", "zai-org/GLM-4.5", {}),
    "glm5": ("golden:glm5", "zai-org/GLM-5", {}),
    "deepseek-v3": ("golden:deepseek-v3", "deepseek-ai/DeepSeek-V3", {}),
    "deepseek-v3.1": ("golden:deepseek-v3.1", "deepseek-ai/DeepSeek-V3.1", {}),
    "deepseek-v3.2": ("golden:deepseek-v3.2", "deepseek-ai/DeepSeek-V3.2", {}),
    "deepseek-v4": ("golden:deepseek-v4", "deepseek-ai/DeepSeek-V4-Flash", {}),
    "kimi-k2": ("golden:kimi-k2", "moonshotai/Kimi-K2-Instruct", {}),
    "gpt-oss": ("golden:gpt-oss", "openai/gpt-oss-20b", {}),
    "default": ("golden:qwen3", "Qwen/Qwen3-8B", {"default": {}}),
    "default-delta": ("golden:qwen3", "Qwen/Qwen3-8B", {"default": {"bridge": "delta", "provenance": "traced"}}),
}


@dataclass(frozen=True)
class Model:
    """A renderer with what generates conversations and tokens for it."""

    renderer: Renderer[Any]
    profile: Profile
    segmenter: Segmenter
    special_ids: tuple[int, ...]


@functools.cache
def model(name: str) -> Model:
    """One of `RENDERERS`, made once."""
    tokenizer, profile, settings = RENDERERS[name]
    if "default" in settings:
        config = DefaultRendererConfig(stop_tokens=("<|im_end|>",), **settings["default"])
        renderer = create_renderer(tokenizer, config, chat_template=PLAIN_TEMPLATE)
    else:
        renderer = create_renderer(tokenizer, **settings)
    return model_of(renderer, PROFILES[profile])


def model_of(renderer: Renderer[Any], profile: Profile) -> Model:
    """A renderer, ready to be rolled out."""
    return Model(renderer, profile, Segmenter(renderer.tokenizer), tuple(renderer.tokenizer.special_tokens.values()))


@dataclass
class Call:
    """One engine call: what it was given and what it returned. A reply known as text alone has no IDs."""

    prompt: list[int]
    completion: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    sampled: list[bool] = field(default_factory=list)
    text_only: bool = False


@dataclass
class Run:
    """A trajectory and the harness's own record of it."""

    trajectory: Trajectory
    builder: Builder
    calls: list[Call] = field(default_factory=list)
    over: bool = False


class Harness:
    """Rolls out by decisions: samples, answers, retries, sub-agents, compaction, edits, text replies, storing."""

    def __init__(self, subject: Model, choices: Choices, limits: dict[str, Any], *, stores: bool = False) -> None:
        self.subject = subject
        self.choices = choices
        self.limits = limits
        self.stores = stores
        self.tools = some_tools(Choices(self._bytes(40)), subject.profile) if "tool" in subject.profile.roles else None
        self.tree = MessageTree()
        self.runs: list[Run] = []
        self.happened: list[str] = []
        self.begin()

    def _bytes(self, count: int) -> bytes:
        return bytes(self.choices.below(256) for _ in range(count))

    def roll_out(self, most: int = 24) -> None:
        """Act until the decisions run out."""
        for _ in range(most):
            if self.choices.exhausted:
                break
            run = self.choices.pick(self.runs[::-1])
            if not run.over:
                with damage_allowed():
                    self.act(run)
            if self.stores:
                self.store(run)

    def act(self, run: Run) -> None:
        """One action of a run: what its state allows."""
        choices = self.choices
        if run.trajectory.ended_by is not None:
            run.over = True
        elif choices.chance(12):
            choices.pick((self.compact, self.edit, self.fork, self.begin_another, self.store))(run)
        elif run.trajectory.steps[-1].completion is None:
            if choices.chance(8):
                self.reply_as_text(run)
            elif choices.chance(6):
                self.answer(run)
            else:
                self.sample(run)
        else:
            self.answer(run)

    def begin(self) -> None:
        """A rollout or a sub-agent, sharing the session's tree."""
        builder = Builder(self.subject.profile, self.tools)
        if self.choices.chance(40):
            builder.append({"role": "system", "content": "You are an agent."})
        builder.append({"role": "user", "content": self.choices.pick(("Go.", "Look at the file.", "q"))})
        trajectory = Trajectory(
            self.subject.renderer, tree=self.tree, side_arrays={"expert": -1, "vector": 0}, **self.limits
        )
        with damage_allowed():
            goes_on = trajectory.begin(builder.messages, tools=self.tools)
        self.runs.append(Run(trajectory, builder, over=not goes_on))

    def begin_another(self, _: Run) -> None:
        if len(self.runs) < 4:
            self.begin()

    def completion(self, run: Run) -> list[int]:
        """What the engine returns: a reply in other tokens than the encoder's, cut off, garbled, or none of the kind."""
        choices = self.choices
        question = Conversation([{"role": "user", "content": "q"}], self.tools, add_generation_prompt=True)
        message = run.builder.reply(Choices(self._bytes(30)), {})
        run.builder.append(message)
        found = reply_tokens(self.subject.renderer, question, message)
        ids = (
            found[1] if found is not None else self.subject.renderer.tokenizer.encode_ordinary(str(message["content"]))
        )
        ids = self.subject.segmenter.resegmented(ids, Choices(self._bytes(12)))
        kind = choices.below(16)
        if kind == 13:
            return ids[: choices.below(len(ids) + 1)]
        if kind == 14:
            return [*ids, *(choices.below(4000) for _ in range(choices.below(5)))]
        if kind == 15:
            return [choices.pick(self.subject.special_ids) for _ in range(choices.below(4))]
        return ids

    def sample(self, run: Run) -> None:
        """Let the engine sample to the waiting prompt."""
        choices, trajectory = self.choices, run.trajectory
        call = Call(trajectory.next_prompt_ids)
        call.completion = ids = self.completion(run)
        call.sampled = [not choices.chance(20) for _ in ids] if choices.chance(15) else [True] * len(ids)
        given: list[float | None] | None = [-index / 64 for index in range(len(ids))]
        if choices.chance(15):
            given = None
        elif ids and choices.chance(10):
            assert given is not None
            given[0] = None
        known = given or [None] * len(ids)
        call.logprobs = [
            0.0 if not sampled else math.nan if value is None else value
            for value, sampled in zip(known, call.sampled, strict=True)
        ]
        side = {"expert": list(range(len(ids))), "vector": [[index, 1] for index in range(len(ids))]}
        trajectory.add_completion(
            ids,
            given,
            sampled=None if all(call.sampled) else call.sampled,
            stopped=choices.pick((None, None, None, True, False)),
            side=side if choices.chance(30) else None,
        )
        run.calls.append(call)
        self.happened.append("sampled")

    def reply_as_text(self, run: Run) -> None:
        """Let an API answer that returns messages alone."""
        message = run.builder.reply(Choices(self._bytes(30)), {})
        prompt = run.trajectory.next_prompt_ids
        try:
            run.trajectory.add_reply(message)
        except RendererError:
            assert run.trajectory.next_prompt_ids == prompt
            run.over = True
            return
        run.builder.append(message)
        run.calls.append(Call(prompt, text_only=True))
        self.happened.append("text reply")

    def answer(self, run: Run) -> None:
        """The environment answers."""
        count = len(run.builder.messages)
        run.builder.add_from_environment([self._bytes(20) for _ in range(1 + self.choices.below(2))])
        self._grow(run, lambda: run.trajectory.add_messages(run.builder.messages[count:]))

    def compact(self, run: Run) -> None:
        """The harness replaces the history by a summary."""
        run.builder = Builder(self.subject.profile, self.tools)
        run.builder.append({"role": "user", "content": f"Summary: {clean_text(Choices(self._bytes(4)))}"})
        self._grow(run, lambda: run.trajectory.replace_history(run.builder.messages))

    def edit(self, run: Run) -> None:
        """The harness goes back to an earlier message that is not the assistant's, and goes on from there."""
        messages = run.trajectory.messages
        ends = [index + 1 for index, message in enumerate(messages) if message["role"] in {"user", "tool"}]
        messages = messages[: self.choices.pick(ends)]
        run.builder = self._builder(messages)
        self._grow(run, lambda: run.trajectory.replace_history(messages))

    def fork(self, run: Run) -> None:
        """A retry from an earlier turn, or from here."""
        if len(self.runs) >= 4:
            return
        turns = len(run.trajectory.steps)
        try:
            forked = run.trajectory.fork(None if self.choices.chance(30) else self.choices.below(turns))
        except RendererError:
            return
        assert forked.samples() == []
        self.runs.append(Run(forked, self._builder(forked.messages)))
        self.happened.append("forked")

    def store(self, _: Run) -> None:
        """Store the session and load it again."""
        loaded = from_json(to_json([run.trajectory for run in self.runs]), self.subject.renderer)
        for run, trajectory in zip(self.runs, loaded, strict=True):
            run.trajectory = trajectory
            self.tree = trajectory.tree
        self.happened.append("stored")

    def _builder(self, messages: Sequence[dict[str, Any]]) -> Builder:
        builder = Builder(self.subject.profile, self.tools)
        for message in messages:
            builder.append(message)
        return builder

    def _grow(self, run: Run, grow: Any) -> None:
        """Grow a trajectory, which stays as it was where it cannot."""
        before = (len(run.trajectory), run.trajectory.turns, run.trajectory.breaks, run.trajectory.messages)
        try:
            goes_on = grow()
        except RendererError:
            goes_on = False
        if goes_on:
            self.happened.append("grew")
            self._check_prompt(run)
        else:
            run.over = True
            after = (len(run.trajectory), run.trajectory.turns, run.trajectory.breaks, run.trajectory.messages)
            assert after == before

    def _check_prompt(self, run: Run) -> None:
        """What was rendered anew is the whole conversation, replies included."""
        trajectory = run.trajectory
        messages = trajectory.messages
        assert [one["role"] for one in messages] == [one["role"] for one in run.builder.messages]
        if trajectory.steps[-1].rendered:
            whole = self.subject.renderer.render_ids(messages, tools=self.tools, add_generation_prompt=True)
            assert trajectory.next_prompt_ids == whole


def check_samples(harness: Harness) -> list[Sample]:
    """Every completion is trained exactly once, in a sample that holds exactly the prompt that the engine was given."""
    samples: list[Sample] = []
    for run in harness.runs:
        own = run.trajectory.samples()
        calls = iter(run.calls)
        for sample in own:
            expected = [False] * len(sample)
            logprobs = [0.0] * len(sample)
            texts = []
            for turn in sample.turns:
                call = next(calls)
                if call.text_only:
                    texts.append((turn.start, turn.end))
                    continue
                assert sample.ids[: turn.start] == call.prompt
                assert sample.ids[turn.start : turn.end] == call.completion
                expected[turn.start : turn.end] = call.sampled
                logprobs[turn.start : turn.end] = call.logprobs
            assert sample.action_mask == expected
            assert [owner == "policy" for owner in sample.owners] == expected
            assert list(map(str, sample.logprobs)) == list(map(str, logprobs))
            assert [(one.start, one.end) for one in sample.approximations] == texts
            assert sample.exact == (not texts)
            assert {len(sample)} == set(map(len, (sample.turn_ids, *sample.side.values())))
        assert next(calls, None) is None
        samples += own
    trained = sum(sum(sample.action_mask) for sample in samples)
    assert trained == sum(sum(call.sampled) for run in harness.runs for call in run.calls)
    return samples


def check_tree(harness: Harness) -> None:
    """Prompts that begin alike share whole nodes, and the trajectories' prompts hold no second copy of any token."""
    stored = {id(part) for node in harness.tree.nodes() for part in node.parts}
    for node in [harness.tree.root, *harness.tree.nodes()]:
        prompts = [tuple(child.ids) for child in node.children if child.completion is None]
        assert len(prompts) == len(set(prompts))
        assert node.completion is not None or not any(is_sampled(label) for _, label in node.owners.items())
        assert sum(map(len, node.parts)) == node.owners.length == node.end - node.start
    for run in harness.runs:
        for step in run.trajectory.steps:
            if step.prompt is not None:
                for segment in step.prompt.segment.chain():
                    assert stored.issuperset(map(id, segment.parts))
