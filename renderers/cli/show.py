"""Token sequences for the eye: coloured text, a table, or a page."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from renderers.labels import Owner
from renderers.parsed import ParsedResponse
from renderers.rendered import RenderedTokens
from renderers.renderer import Renderer

OWNER_STYLES = {"template": "dim", "prompt": "cyan", "policy": "bold green", "tool": "magenta", "unknown": "default"}
OWNER_COLOURS = {
    "template": "#e4e4e7",
    "prompt": "#bae6fd",
    "policy": "#bbf7d0",
    "tool": "#f5d0fe",
    "unknown": "#f4f4f5",
}


class ShownToken(NamedTuple):
    """One token as it is shown."""

    token_id: int
    text: str
    owner: str
    message: int


def shown_tokens(renderer: Renderer[Any], rendered: RenderedTokens, *, start: int = 0) -> Iterator[ShownToken]:
    """The tokens from `start` on. Where the mask is unknown, so is the owner."""
    owners: Sequence[Owner | str] = rendered.owners if rendered.mask_known else ["unknown"] * len(rendered)
    ids = rendered.token_ids
    rows = zip(ids, renderer.token_texts(ids), owners, rendered.message_indices, strict=True)
    for position, row in enumerate(rows):
        if position >= start:
            yield ShownToken(row[0], row[1], str(row[2]), row[3])


def coloured(tokens: Iterator[ShownToken]) -> Text:
    """The text, each token in its owner's colour."""
    text = Text()
    for token in tokens:
        text.append(token.text, style=OWNER_STYLES[token.owner])
    return text


def legend() -> Text:
    """What the colours mean."""
    text = Text("  ".join(OWNER_COLOURS)[:0])
    for owner in ("template", "prompt", "policy", "tool"):
        text.append(owner, style=OWNER_STYLES[owner])
        text.append("  ")
    return text


def token_table(tokens: Iterator[ShownToken]) -> Table:
    """One row a token."""
    table = Table("position", "id", "text", "owner", "message")
    for position, token in enumerate(tokens):
        message = "" if token.message < 0 else str(token.message)
        style = OWNER_STYLES[token.owner]
        table.add_row(str(position), str(token.token_id), Text(repr(token.text), style=style), token.owner, message)
    return table


def rendered_json(renderer: Renderer[Any], rendered: RenderedTokens) -> dict[str, Any]:
    """Rendered tokens as JSON."""
    return {
        "token_ids": rendered.token_ids,
        "message_indices": rendered.message_indices,
        "sampled_mask": rendered.sampled_mask,
        "is_content": rendered.is_content,
        "owners": [str(owner) for owner in rendered.owners] if rendered.mask_known else [],
        "message_roles": rendered.message_roles,
        "message_tool_names": rendered.message_tool_names,
        "warnings": [
            {"kind": damage.kind, "message_indices": list(damage.message_indices), "detail": damage.detail}
            for damage in rendered.warnings
        ],
        "fingerprint": renderer.fingerprint(),
    }


def parsed_json(parsed: ParsedResponse) -> dict[str, Any]:
    """A parsed reply as JSON."""
    return {
        "content": parsed.content,
        "reasoning_content": parsed.reasoning_content,
        "reasoning_complete": parsed.reasoning_complete,
        "stop": parsed.stop,
        "tool_calls": [
            {
                "id": call.id,
                "name": call.name,
                "arguments": call.arguments,
                "arguments_text": call.arguments_text,
                "raw": call.raw,
                "status": str(call.status),
                "error": call.error,
            }
            for call in parsed.tool_calls
        ],
        "spans": [[span.start, span.end, str(span.region)] for span in parsed.spans],
        "message": parsed.to_message(),
    }


def page(title: str, tokens: Iterator[ShownToken]) -> str:
    """A self-contained HTML page: every token in its owner's colour, its ID and message when pointed at."""
    body: list[str] = []
    for token in tokens:
        text = html.escape(token.text).replace("\n", "↵\n")
        where = f"message {token.message}" if token.message >= 0 else "outside any message"
        hint = html.escape(f"{token.token_id} · {token.owner} · {where}")
        body.append(f'<span class="{token.owner}" title="{hint}">{text}</span>')
    colours = "\n".join(f".{owner} {{ background: {colour}; }}" for owner, colour in OWNER_COLOURS.items())
    keys = " ".join(f'<span class="{owner}">{owner}</span>' for owner in OWNER_COLOURS)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{html.escape(title)}</title>
<style>
body {{ font: 15px/1.7 ui-monospace, monospace; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #18181b; }}
main {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
span {{ border-radius: 3px; padding: 1px 0; box-shadow: inset -1px 0 0 rgb(0 0 0 / 15%); }}
header span {{ padding: 1px 8px; box-shadow: none; }}
{colours}
</style>
<header><h1>{html.escape(title)}</h1><p>{len(body)} tokens: {keys}</p></header>
<main>{"".join(body)}</main>
</html>
"""
