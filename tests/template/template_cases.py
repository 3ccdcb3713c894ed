"""Templates, generated conversations for them, and what holds of every traced text."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from golden.reference import ASSETS
from renderers.errors import TemplateError
from renderers.template import PlainTemplate, TracedTemplate, TracedText
from renderers.template.sources import flatten
from renderers.template.strings import TracedString

NOW = datetime(2026, 3, 14)  # noqa: DTZ001 - templates print dates, not instants
VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}

OFFICIAL: dict[str, str] = {
    path.stem: path.read_text(encoding="utf-8") for path in sorted((ASSETS / "templates").glob("*.jinja"))
}
# Small templates that use, between them, everything that official ones use and more.
EMBEDDED: dict[str, str] = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent / "templates").glob("*.jinja"))
}
TEMPLATES = EMBEDDED | OFFICIAL


def check_spans(traced: TracedText) -> None:
    """The spans cover every character, in order, and neighbours differ."""
    position = 0
    for before, span in zip((None, *traced.spans), traced.spans, strict=False):
        assert span.start == position < span.end
        assert span.line >= 1
        assert before is None or before[2:] != span[2:]
        position = span.end
    assert position == len(traced.text)
    assert list(traced.generation_ranges) == sorted(traced.generation_ranges)


# Every template, on generated conversations -----------------------------------------------------------------------------

# Markers that templates look for, whitespace that they strip, and characters that JSON, HTML or case changes touch.
FRAGMENTS = (
    "word", "two words", " ", "\n", "\n\n", "\t", "<think>", "</think>", "\n</think>\n\n", "<tool_response>", "é", "ß", "🙂",
    '"', "\\", "<", "&", "'", "{{", "%s", "|", "\u2028", "<|im_end|>",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(FRAGMENTS), max_size=4).map("".join)
PARTS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXTS), max_size=2)
ANY_CONTENT = TEXTS | PARTS | st.none()
VALUES = TEXTS | st.sampled_from([0, -7, 1.5, True, False, None, [], ["a", 1], {"k": {"n": None}}])
OBJECTS = st.dictionaries(st.sampled_from(["city", "n", "é"]), VALUES, max_size=2)
JSON_TEXTS = st.sampled_from(["{}", '{"city": "Paris"}', "not json"])
TOOL = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Finds <é>.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where?", "enum": ["a", "b"], "default": "a"},
                "n": {"type": ["integer", "null"], "default": 3},
                "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


def message(role: str, content: Any, reasoning: str | None, arguments: list[Any]) -> dict[str, Any]:
    """A message with the fields that its role has."""
    fields: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        fields["reasoning_content"] = reasoning
        if arguments:
            fields["tool_calls"] = [
                {"id": f"find:{n}", "type": "function", "function": {"name": "find", "arguments": given_arguments}}
                for n, given_arguments in enumerate(arguments)
            ]
    if role == "tool":
        fields |= {"tool_call_id": "find:0", "name": "find"}
    return fields


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Mostly of the kind that templates take: a user first, and either objects or JSON text as arguments throughout."""
    wild = draw(st.integers(0, 3)) == 0
    contents = ANY_CONTENT if wild else TEXTS
    arguments = draw(st.sampled_from([OBJECTS, JSON_TEXTS]))
    first = [] if wild else draw(st.sampled_from([["user"], ["system", "user"]]))
    roles = [
        *first,
        *draw(st.lists(st.sampled_from(["assistant", "assistant", "tool", "user"] + ["system"] * wild), max_size=4)),
    ]
    calls = st.lists(arguments, max_size=2 if wild else 1)
    return [message(role, draw(contents), draw(st.none() | TEXTS), draw(calls)) for role in roles]


MESSAGES = conversations()
SETTINGS = st.fixed_dictionaries(
    {"add_generation_prompt": st.booleans(), "tools": st.sampled_from([None, [], [TOOL], [TOOL, TOOL]])}
)


def outcome(template: PlainTemplate | TracedTemplate, messages: list[dict[str, Any]], settings: dict[str, Any]) -> Any:
    """What a template makes of a conversation, or its error."""
    render = template.render if isinstance(template, PlainTemplate) else template.render_string
    try:
        return render(messages, variables=VARIABLES, now=NOW, **settings)
    except TemplateError as error:
        return error


PLAIN = {name: PlainTemplate(source) for name, source in TEMPLATES.items()}
TRACED = {name: TracedTemplate(source) for name, source in TEMPLATES.items()}


def check_runs(text: TracedString, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> None:
    """What counts as a field's character is that character of that field."""
    start = 0
    for end, _, index, path, offset, derived, _ in flatten(text).runs:
        if path is not None and not derived:
            assert offset >= 0
            origins = field_texts(messages[index] if index >= 0 else {"tools": tools}, path)
            assert str.__str__(text)[start:end] in {origin[offset : offset + end - start] for origin in origins}
        start = end


def field_texts(fields: Any, path: str) -> list[str]:
    """The text at a path, or the keys of the dict there."""
    for step in re.findall(r"[^.\[\]]+", path):
        fields = fields[int(step)] if isinstance(fields, list) else fields[step]
    return [fields] if isinstance(fields, str) else list(fields)


def conversation(turns: int) -> list[dict[str, Any]]:
    """Turns of four messages each, as agents have them."""
    text = "Some text of ordinary length, over\nmore than one line.\n" * 5
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": {"city": "Paris", "text": text}}}
    return [
        {"role": "user", "content": text},
        {"role": "assistant", "content": "", "reasoning_content": text, "tool_calls": [call]},
        {"role": "tool", "content": text, "tool_call_id": "1"},
        {"role": "assistant", "content": text},
    ] * turns


def accepted_conversation(name: str, turns: int) -> tuple[list[dict[str, Any]], bool]:
    """The same in the form that a template takes, and whether null content comes as None."""
    if not name.startswith("DeepSeek"):
        return conversation(turns), False
    messages = conversation(1)
    for message in messages:
        for call in message.get("tool_calls", ()):
            message["content"] = None
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    return messages * turns, True
