"""Agent conversations of any length, made of real prose, code and JSON: the standard library's own."""

from __future__ import annotations

import argparse
import email.message
import inspect
import json
import random
import shutil
import statistics
import textwrap
from functools import cache
from typing import Any

Messages = list[dict[str, Any]]

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file, relative to the root of the repository."},
                    "pattern": {"type": "string", "description": "A regular expression; empty matches everything."},
                    "limit": {"type": "integer", "description": "The largest number of lines to return."},
                },
                "required": ["path"],
            },
        },
    }
    for name, description in (
        ("read_file", "Read a file of the repository, or the part of it that matches a pattern."),
        ("search", "Search the repository for a pattern and list the lines that match, with their numbers."),
        ("run_tests", "Run the tests in a file and return the end of what they print."),
        ("list_files", "List the files below a folder, the ones that changed last first."),
    )
]


@cache
def _paragraphs() -> tuple[list[str], list[str]]:
    """Prose (docstrings) and code, in paragraphs."""
    prose: list[str] = []
    code: list[str] = []
    for module in (argparse, email.message, inspect, json, random, statistics, textwrap, shutil):
        code += [part for part in inspect.getsource(module).split("\n\n") if 100 < len(part) < 900]
        documented = [value for value in vars(module).values() if inspect.getdoc(value)]
        for value in documented:
            prose += [" ".join(part.split()) for part in (inspect.getdoc(value) or "").split("\n\n") if len(part) > 80]
    return prose, code


def _words(rng: random.Random, texts: list[str], tokens: int) -> str:
    """A text of about this many tokens, of four characters each."""
    parts: list[str] = []
    length = 0
    while length < 4 * tokens:
        part = rng.choice(texts)
        parts.append(part)
        length += len(part)
    text = "\n\n".join(parts)
    return text[: 4 * tokens]


def make_reply(rng: random.Random, number: int, *, as_text: bool = False, tokens: int = 120) -> dict[str, Any]:
    """An assistant message that reasons and calls a tool.

    Args:
        rng: what chooses the texts.
        number: of the turn; it stands in the call.
        as_text: whether the arguments are JSON text and no object: some templates take the one, some the other.
        tokens: the length, roughly.
    """
    name = rng.choice(TOOLS)["function"]["name"]
    arguments = {
        "path": f"src/module_{number}.py",
        "pattern": rng.choice(["def ", "class .*Error", ""]),
        "limit": number,
    }
    function = {"name": name, "arguments": json.dumps(arguments) if as_text else arguments}
    return {
        "role": "assistant",
        "reasoning_content": _words(rng, _paragraphs()[0], 3 * tokens // 4),
        "content": "",  # gpt-oss's template refuses content beside reasoning and a call
        "tool_calls": [{"id": f"functions.{name}:{number}", "type": "function", "function": function}],
    }


def make_result(rng: random.Random, call: dict[str, Any], tokens: int = 300) -> dict[str, Any]:
    """A tool message that answers the call of a reply."""
    return {
        "role": "tool",
        "tool_call_id": call["tool_calls"][0]["id"],
        "content": _words(rng, _paragraphs()[1], tokens),
    }


def make_conversation(count: int, seed: int = 0, *, as_text: bool = False) -> Messages:
    """`count` messages that end in a user's or a tool's: an agent at work, asked something new at every tenth turn."""
    rng = random.Random(seed)
    prose, _ = _paragraphs()
    messages: Messages = [
        {"role": "system", "content": _words(rng, prose, 250)},
        {"role": "user", "content": _words(rng, prose, 150)},
    ]
    number = 0
    while len(messages) < count:
        number += 1
        if number % 10 == 0:
            messages.append({"role": "assistant", "content": _words(rng, prose, 120)})
            messages.append({"role": "user", "content": _words(rng, prose, 80)})
            continue
        messages.append(make_reply(rng, number, as_text=as_text))
        messages.append(make_result(rng, messages[-1]))
    return messages[:count]
