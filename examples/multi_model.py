"""One tool-using task on models of three families, side by side: a harness in 60 lines. docs/tutorial.md explains it.

    python examples/multi_model.py [TOKENIZER TOKENIZER ...]

Runs offline on a CPU. Tokenizers are model IDs or folders; without any, those of the golden texts are taken.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from renderers import ParsedToolCall, Renderer, Trajectory, create_renderer
from renderers.engines import Engine, RandomEngine, SamplingParams, ScriptedReplies, reply_ids, tiny_random_model
from renderers.errors import MissingExtraError
from renderers.trajectory import drift_report

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather in a city", "parameters": CITY}}
]
QUESTIONS = ["Weather in Ulm?", "And in Bonn?"]
WEATHER = {"Ulm": "18 C, sunny", "Bonn": "12 C, rain"}


# The harness: nothing in it knows a model family. -----------------------------------------------------------------------


def execute(call: ParsedToolCall) -> dict[str, Any]:
    """The environment: a tool call's result, as a message."""
    city = str((call.arguments or {}).get("city"))
    return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": WEATHER.get(city, "no such city")}


async def rollout(trajectory: Trajectory, engine: Engine) -> Counter[str]:
    """Ask every question, run the tools that the model calls, until it answers. Counts tokens of prompts."""
    sampling = SamplingParams(max_tokens=500, stop_token_ids=trajectory.renderer.get_stop_token_ids())
    counts: Counter[str] = Counter()
    for question in QUESTIONS:
        new: list[dict[str, Any]] = [{"role": "user", "content": question}]
        while new:
            fits = trajectory.add_messages(new) if trajectory.turns else trajectory.begin(new, tools=TOOLS)
            if not fits:  # a limit of the trajectory, and with it the rollout's end
                return counts
            prompt = trajectory.next_prompt_ids
            counts["prompts"] += len(prompt)
            counts["encoded"] += len(trajectory.extension_ids)
            completion = await engine.generate(prompt, sampling)
            reply = trajectory.add_completion(completion.token_ids, completion.logprobs, sampled=completion.sampled)
            new = [execute(call) for call in reply.valid_tool_calls]
    return counts


async def compare(renderers: list[Renderer[Any]], rollouts: int) -> list[str]:
    """Roll out every model at once, and say what came of it: a line a model."""
    groups = [[Trajectory(renderer, max_turns=20) for _ in range(rollouts)] for renderer in renderers]
    engines = [[actor(one, seed) for seed, one in enumerate(group)] for group in groups]
    runs = [asyncio.gather(*map(rollout, group, actors)) for group, actors in zip(groups, engines, strict=True)]
    lines = ["family    retention  samples  encoded of prompt tokens  sampled  drift  breaks"]
    for renderer, group, counts in zip(renderers, groups, await asyncio.gather(*runs), strict=True):
        samples = [sample for trajectory in group for sample in trajectory.samples()]
        total = sum(counts, Counter())
        drift = [drift_report(sample, renderer) for sample in samples]
        changed, sampled = sum(one.changed_tokens for one in drift), sum(one.sampled_tokens for one in drift)
        saved = f"{total['encoded']} of {total['prompts']} ({1 - total['encoded'] / total['prompts']:.0%} saved)"
        breaks = Counter(f"{one.reason} at turn {one.turn}" for trajectory in group for one in trajectory.breaks)
        shown = ", ".join(f"{name} (x{count})" for name, count in breaks.items()) or "none"
        retention = renderer.config.thinking_retention or "template"
        per_rollout = len(samples) / rollouts
        lines.append(
            f"{renderer.family:9} {retention:10} {per_rollout:7.1f}  {saved:24}  {sampled:7}  {changed / sampled:5.0%}  {shown}"
        )
    return lines


# The model: tiny and random, so a script holds it to the task; each token is still its own choice. ------------------------


def script(trajectory: Trajectory) -> Iterator[list[int]]:
    """What the model says, in its family's format, with the conversation so far before it."""
    for city, weather in WEATHER.items():
        call = {"id": "call_0", "type": "function", "function": {"name": "get_weather", "arguments": {"city": city}}}
        calling = {"role": "assistant", "reasoning_content": "I need the tool.", "content": "", "tool_calls": [call]}
        answer = {"role": "assistant", "reasoning_content": "Now I know.", "content": f"{weather} in {city}."}
        for reply, role in ((calling, "tool"), (answer, "user")):
            after = {"role": role, "content": "", **({"tool_call_id": "call_0"} if role == "tool" else {})}
            yield reply_ids(trajectory.renderer, trajectory.messages, reply, [after], tools=TOOLS)


MODELS: dict[str, Any] = {}


def actor(trajectory: Trajectory, seed: int) -> Engine:
    """An engine for one rollout: a tiny model of transformers, or where torch is missing, one that throws dice."""
    tokenizer = trajectory.renderer.tokenizer
    replies = ScriptedReplies(tokenizer, script(trajectory), freedom=0.3, seed=seed)
    try:
        from renderers.engines import TransformersEngine

        family = trajectory.renderer.family
        MODELS[family] = MODELS.get(family) or tiny_random_model(tokenizer.vocabulary_size)
        return TransformersEngine(MODELS[family], allowed_tokens=replies, seed=seed)
    except MissingExtraError:
        return RandomEngine(tokenizer.vocabulary_size, allowed_tokens=replies, seed=seed)


def main(tokenizers: list[Any], rollouts: int = 2) -> str:
    """The comparison, under each template's own retention and with all reasoning kept."""
    chosen = tokenizers or ["golden:qwen3", "golden:glm45", "golden:gpt-oss"]
    renderers: list[Renderer[Any]] = []
    for one in chosen:
        templates = create_renderer(one)
        config = templates.config.changed({"thinking_retention": "all"})
        renderers += [templates, type(templates)(templates.tokenizer, config)]
    lines = asyncio.run(compare(renderers, rollouts))
    return "\n".join(
        [*lines, "", f"engine: {'a tiny random transformers model' if MODELS else 'dice; torch is missing'}"]
    )


if __name__ == "__main__":
    print(main(sys.argv[1:]))
