"""The demo: one tool-using conversation, rendered, parsed, bridged, refused, and what the naive loop does to it.

It runs on the pruned Qwen3 tokenizer that comes with the package, so its texts are those of a golden.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from renderers.cli.loading import completion_ids
from renderers.cli.show import ShownToken, coloured, legend, shown_tokens
from renderers.refusal import BridgeRefusal
from renderers.registry import create_renderer
from renderers.rendered import RenderedTokens
from renderers.renderer import Renderer

TOKENIZER = "golden:qwen3"
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather in a city",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather in Ulm?"},
]
#: What the model samples: JSON without spaces, which no `tojson` writes, and "Ulm" in three tokens instead of two.
COMPLETION = (
    '<think>\nI need the tool.\n</think>\n\nLet me look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city":"',
    "U",
    "l",
    "m",
    '"}}\n</tool_call><|im_end|>',
)
ANSWER = "<think>\nDone.\n</think>\n\n18 degrees.<|im_end|>"
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "call_0", "content": "18 C, sunny"}
QUESTION: dict[str, Any] = {"role": "user", "content": "Thanks! And tomorrow?"}


def sampled_ids(renderer: Renderer[Any]) -> list[int]:
    """The completion's tokens, as this model happened to sample them."""
    return [token_id for part in COMPLETION for token_id in completion_ids(renderer, part)]


def naive_ids(renderer: Renderer[Any], completion: list[int]) -> list[int]:
    """What the naive loop conditions on: the parsed reply as a message, and everything encoded again."""
    reply = renderer.parse_response(completion, tools=TOOLS).to_message()
    for call in reply["tool_calls"]:
        arguments = next(
            one.arguments for one in renderer.parse_response(completion).tool_calls if one.id == call["id"]
        )
        call["function"]["arguments"] = arguments  # most harnesses keep the object
    return renderer.render_ids([*MESSAGES, reply, RESULT], tools=TOOLS, add_generation_prompt=True)


def run_demo(console: Console) -> None:
    """Print the demo."""
    renderer = create_renderer(TOKENIZER)
    _title(console, "1. render: every token belongs to a message and an owner")
    prompt = renderer.render(MESSAGES, tools=TOOLS, add_generation_prompt=True)
    console.print(legend())
    tokens = list(shown_tokens(renderer, prompt))
    console.print(coloured(iter(_shortened(tokens))))

    completion = sampled_ids(renderer)
    _title(console, "2. parse: the sampled tokens as a reply, the tokens untouched")
    parsed = renderer.parse_response(completion, prompt_ids=prompt.token_ids, tools=TOOLS)
    console.print(f"reasoning  {parsed.reasoning_content!r}", markup=False)
    console.print(f"content    {parsed.content!r}", markup=False)
    for call in parsed.tool_calls:
        console.print(f"tool call  {call.name}({call.arguments_text})  status {call.status}", markup=False)

    _title(console, "3. bridge: the next prompt is exactly those tokens, and only what is new")
    bridged = renderer.bridge(prompt, completion, [RESULT], tools=TOOLS)
    assert isinstance(bridged, RenderedTokens)  # noqa: S101 - the demo's own texts
    console.print(coloured(shown_tokens(renderer, bridged, start=len(prompt))))
    kept = bridged.token_ids[: len(prompt) + len(completion)] == prompt.token_ids + completion
    console.print(
        f"{len(prompt)} prompt + {len(completion)} sampled + {len(bridged.extension_ids)} new tokens; "
        f"prefix kept exactly: {kept}"
    )

    _title(console, "4. refusal: a bridge that the template would contradict is not made")
    answer = completion_ids(renderer, ANSWER)
    refused = renderer.bridge(bridged, answer, [QUESTION])
    assert isinstance(refused, BridgeRefusal)  # noqa: S101 - the same
    console.print(f"{refused.reason}: {refused.detail}", markup=False)

    _title(console, "5. the naive loop on the same input: decode, parse, render everything again")
    naive = naive_ids(renderer, completion)
    exact = bridged.token_ids
    position = next(place for place, pair in enumerate(zip(exact, naive, strict=False)) if pair[0] != pair[1])
    console.print(f"sampled      {renderer.token_texts(exact[position : position + 7])}", markup=False)
    console.print(f"trained on   {renderer.token_texts(naive[position : position + 7])}", markup=False)
    console.print(
        f"from token {position} on the trainer sees tokens that were never sampled ({len(exact)} became {len(naive)})"
    )


def _shortened(tokens: list[ShownToken]) -> list[ShownToken]:
    """Without the middle of the tools preamble, to fit a screen."""
    start = next(place for place, token in enumerate(tokens) if token.text == "#")
    end = max(place for place, token in enumerate(tokens) if token.text == "</tool_call>")
    gap = ShownToken(-1, f" … {end - start - 12} tokens of tools … ", "template", -1)
    return [*tokens[: start + 6], gap, *tokens[end:]]


def _title(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))
