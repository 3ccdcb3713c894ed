"""The importance ratio at step 0, with the sampled tokens kept and with the conversation re-rendered.

    python examples/importance_ratios.py [--plot FILE.svg] [TOKENIZER TOKENIZER ...]

An unchanged model trains on what it has just sampled, so every ratio should be exactly 1. Needs the extra `local`.
docs/trajectories-experiment.md explains it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import multi_model
import torch

from renderers import Renderer, Trajectory, create_renderer
from renderers.engines import ScriptedReplies, TransformersEngine, tiny_random_model

TOKENIZERS = ["golden:qwen3", "golden:glm45", "golden:gpt-oss"]


@dataclass
class Ratios:
    """Logarithms of the importance ratios of one rollout; 0 is a ratio of 1.

    Attributes:
        family: the model family.
        kept: of each sampled token, in the trajectory's samples.
        rerendered: of each sampled token, against the token at its place in the re-rendered turn.
        survivors: of those alone that the re-render has at the same place: their context has changed.
        sampled: how many tokens were sampled.
        changed: how many of them the re-render has not at their place.
    """

    family: str
    kept: list[float]
    rerendered: list[float]
    survivors: list[float]
    sampled: int
    changed: int


def scored(model: Any, ids: list[int]) -> list[float]:
    """The model's log-probability of each token, all at once; 0 for the first."""
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids])).logits[0, :-1].float()
    found = logits.log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    return [0.0, *found.tolist()]


def measure(renderer: Renderer[Any], *, rollouts: int = 4, freedom: float = 0.03) -> Ratios:
    """Roll the task of `multi_model` out, and score what was sampled in both ways."""
    model = tiny_random_model(renderer.tokenizer.vocabulary_size)
    found = Ratios(renderer.family, [], [], [], 0, 0)
    for seed in range(rollouts):
        trajectory = Trajectory(renderer)
        replies = ScriptedReplies(renderer.tokenizer, multi_model.script(trajectory), freedom=freedom, seed=seed)
        engine = TransformersEngine(model, allowed_tokens=replies, seed=seed)
        asyncio.run(multi_model.rollout(trajectory, engine))
        turns = []
        for sample in trajectory.samples():
            again = scored(model, sample.ids)
            for turn in sample.turns:
                places = [place for place in range(turn.start, turn.end) if sample.action_mask[place]]
                found.kept += [again[place] - sample.logprobs[place] for place in places]
                turns.append([(sample.ids[place], sample.logprobs[place]) for place in places])
        for turn, naive in zip(turns, rerendered_turns(renderer, model, trajectory), strict=True):
            pairs = list(zip(turn, naive, strict=False))
            found.rerendered += [score - logprob for (_, logprob), (_, score) in pairs]
            unchanged = [score - logprob for (token, logprob), (other, score) in pairs if token == other]
            found.survivors += unchanged
            found.sampled += len(turn)
            found.changed += len(turn) - len(unchanged)
    return found


def rerendered_turns(renderer: Renderer[Any], model: Any, trajectory: Trajectory) -> list[list[tuple[int, float]]]:
    """The naive loop: parsed messages, call arguments as objects, everything rendered and encoded again.

    Gives for each assistant message the tokens that a trainer would take for sampled, and their log-probabilities.
    """
    messages = trajectory.messages
    for message in messages:
        for call in message.get("tool_calls") or []:
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    rendered = renderer.render(messages, tools=multi_model.TOOLS)
    again = scored(model, rendered.token_ids)
    replies = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    labels = list(zip(rendered.token_ids, again, rendered.message_indices, rendered.sampled_mask, strict=True))
    return [
        [(token_id, score) for token_id, score, message, sampled in labels if sampled and message == reply]
        for reply in replies
    ]


def table(measured: list[Ratios]) -> str:
    """A line a family."""

    def spread(values: list[float]) -> str:
        return f"{max(map(abs, values), default=0):12.2g}"

    lines = ["family    sampled  changed      kept: largest |log ratio|   re-rendered   of it unchanged tokens"]
    lines += [
        f"{one.family:9} {one.sampled:7}  {one.changed:7}  {spread(one.kept):>28}  {spread(one.rerendered)}  {spread(one.survivors):>22}"
        for one in measured
    ]
    return "\n".join(lines)


WIDTH, HEIGHT, LEFT, TOP, LIMIT = 860, 190, 70, 40, 12.0
COLOURS = ("#2563eb", "#16a34a", "#c026d3", "#ea580c")


def plot(measured: list[Ratios]) -> str:
    """The logarithms of the ratios over the sampled tokens, kept above and re-rendered below, as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {2 * HEIGHT + 80}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{2 * HEIGHT + 80}" fill="#ffffff"/>',
    ]
    panels = (("sampled tokens kept", "kept"), ("decoded, parsed, rendered again", "rerendered"))
    for row, (title, name) in enumerate(panels):
        top = TOP + row * (HEIGHT + 30)
        middle = top + (HEIGHT - 30) / 2
        largest = max(abs(value) for one in measured for value in getattr(one, name))
        parts.append(
            f'<text x="{LEFT}" y="{top - 8}"><tspan font-weight="bold">{title}</tspan>: at most {largest:.2g}</text>'
        )
        for value in (-LIMIT, 0, LIMIT):
            y = middle - value / LIMIT * (HEIGHT - 30) / 2
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d4d4d8"/>')
            parts.append(
                f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{f"{value:+.0f}" if value else "0"}</text>'
            )
        longest = max(len(one.kept) for one in measured)
        for one, colour in zip(measured, COLOURS, strict=False):
            # One path of dots a family: smaller than as many circles.
            dots = []
            for place, value in enumerate(getattr(one, name)):
                x = LEFT + place / longest * (WIDTH - 20 - LEFT)
                y = middle - max(-LIMIT, min(LIMIT, value)) / LIMIT * (HEIGHT - 30) / 2
                dots.append(f"M{x:.0f} {y:.0f}h0")
            parts.append(
                f'<path d="{"".join(dict.fromkeys(dots))}" stroke="{colour}" stroke-width="4" stroke-linecap="round" '
                'stroke-opacity="0.6"/>'
            )
    bottom = 2 * HEIGHT + 66
    parts.append(f'<text x="{LEFT}" y="{bottom}">log importance ratio of each sampled token, in order</text>')
    for place, (one, colour) in enumerate(zip(measured, COLOURS, strict=False)):
        x = WIDTH - 300 + 100 * place
        parts.append(f'<circle cx="{x}" cy="{bottom - 4}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 9}" y="{bottom}">{escape(one.family)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    """Measure, print the table, and write the plot if asked."""
    parser = argparse.ArgumentParser(description="Importance ratios at step 0.")
    parser.add_argument("tokenizers", nargs="*", default=TOKENIZERS, help="model IDs or folders")
    parser.add_argument("--plot", type=Path, help="write an SVG here")
    given = parser.parse_args()
    measured = [measure(create_renderer(one, thinking_retention="all")) for one in given.tokenizers]
    print(table(measured))
    if given.plot:
        given.plot.write_text(plot(measured), encoding="utf-8")


if __name__ == "__main__":
    main()
