"""JSON for generated messages: arguments of tool calls, and schemas of tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from renderers.testing.texts import PROSE, UNICODE, WORDS, adversarial_text, clean_text

if TYPE_CHECKING:
    from renderers.testing.choices import Choices
    from renderers.testing.profile import Profile

TOOL_NAMES = ("f", "get_weather", "search", "read_file", "now", "fs.write-all", "天気", "__init__", "getWeatherV2")
KEYS = ("x", "city", "path", "unit", "n", "options", "q", "città", "键", "a b", "content", "type", "$ref")
PLAIN_KEYS = KEYS[:7]

NUMBERS: tuple[int | float, ...] = (
    0, 1, -7, 42, 2.5, 0.1, 1.0, -0.0, 1e22, 1e-7, 3.0e100, 2**53 + 1, 2**63, -(2**70), 10**30,
)  # fmt: skip


def scalar(choices: Choices, profile: Profile, *, clean: bool) -> Any:
    """Text mostly; else a number of any size, a boolean or null."""
    kind = choices.below(8)
    if kind <= 3:
        return clean_text(choices) if clean else adversarial_text(choices, profile)
    if kind == 4:
        return choices.pick(("5", "true", "null", "00420", "[1]", '{"a": 1}', "1e5", ""))
    if kind <= 6:
        return choices.pick(NUMBERS)
    return choices.pick((True, False, None))


def value(choices: Choices, profile: Profile, *, clean: bool, depth: int = 2) -> Any:
    """A JSON value, at most `depth` deep."""
    kind = choices.below(8) if depth and not choices.exhausted else 0
    if kind <= 5:
        return scalar(choices, profile, clean=clean)
    count = choices.below(4)
    if kind == 6:
        return [value(choices, profile, clean=clean, depth=depth - 1) for _ in range(count)]
    return {choices.pick(KEYS): value(choices, profile, clean=clean, depth=depth - 1) for _ in range(count)}


def arguments_object(choices: Choices, profile: Profile, *, clean: bool) -> dict[str, Any]:
    """The arguments of a call, as an object; replies use keys without surprises."""
    keys = PLAIN_KEYS if clean else KEYS
    return {choices.pick(keys): value(choices, profile, clean=clean) for _ in range(choices.below(4))}


def arguments_by_schema(choices: Choices, profile: Profile, parameters: Any) -> dict[str, Any]:
    """Arguments of the types that a tool's schema names, for formats that read values by it.

    Parameters whose schema leaves the type open are left out. Where there is no schema, a text that is no JSON.
    """
    properties: dict[str, Any] = parameters.get("properties", {}) if isinstance(parameters, dict) else {}
    if not properties:
        return {choices.pick(PLAIN_KEYS): choices.pick(PROSE)} if choices.chance(50) else {}
    found: dict[str, Any] = {}
    for key, schema in properties.items():
        kind = schema.get("type") if choices.chance(75) else None
        if kind == "string":
            found[key] = choices.pick(schema["enum"]) if "enum" in schema else clean_text(choices)
        elif kind in ("integer", "number"):  # a tuple: a list of types has no hash
            found[key] = choices.pick([number for number in NUMBERS if kind == "number" or isinstance(number, int)])
        elif kind == "boolean":
            found[key] = choices.chance(50)
        elif kind == "array":
            found[key] = [value(choices, profile, clean=True, depth=1) for _ in range(choices.below(3))]
        elif kind == "object":
            found[key] = arguments_object(choices, profile, clean=True)
    return found


def arguments(choices: Choices, profile: Profile) -> dict[str, Any] | str:
    """The arguments of a call: an object, JSON text in one of several spellings, or text that is no JSON.

    The last only where the template prints text as it comes.
    """
    found = arguments_object(choices, profile, clean=choices.chance(50))
    kind = choices.below(8)
    if kind <= 3:
        return found
    if kind == 4:
        return json.dumps(found, ensure_ascii=False)
    if kind == 5:
        return json.dumps(found, separators=(",", ":"))
    if kind == 6 or profile.arguments == "parsed":
        return json.dumps(found, ensure_ascii=False, indent=2)
    return choices.pick(("{}", "", '{"x": 1', "[1, 2]", "not JSON", '{"x": 1, "x": 2}', "null", '{"x": NaN}', " {} "))


_TYPES = ("string", "integer", "number", "boolean")


def property_schema(choices: Choices, profile: Profile, depth: int = 2) -> dict[str, Any]:
    """The schema of one parameter."""
    schema: dict[str, Any]
    kind = choices.below(8) if depth and not choices.exhausted else 0
    if kind <= 3:
        schema = {"type": choices.pick(_TYPES)}
    elif kind == 4:
        schema = {"type": "string", "enum": ["celsius", "fahrenheit", "K"][: 1 + choices.below(3)]}
    elif kind == 5:
        schema = {"type": "array", "items": property_schema(choices, profile, depth - 1)}
    elif kind == 6:
        schema = object_schema(choices, profile, depth - 1)
    else:
        schema = unusual_schema(choices) if profile.any_schema else {"type": "object"}
    if choices.chance(50):
        schema["description"] = choices.pick(WORDS + PROSE + UNICODE)
    if profile.any_schema and choices.chance(20):
        schema["default"] = choices.pick(("x", 1, None, [], {"k": "é"}, 1.0, True))
    return schema


def unusual_schema(choices: Choices) -> dict[str, Any]:
    """A schema that converters stumble over."""
    schemas: tuple[dict[str, Any], ...] = (
        {},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": ["string", "null"]},
        {"$ref": "#/$defs/Item"},
        {"type": "string", "pattern": '^[a-z"<>]+$', "minLength": 1},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "number", "minimum": 0.5, "maximum": 1e22, "x-beschreibung": "größer"},
        {"const": "<|im_end|>"},
    )
    return dict(choices.pick(schemas))


def object_schema(choices: Choices, profile: Profile, depth: int) -> dict[str, Any]:
    """The schema of an object, its fields in some order."""
    keys = KEYS if profile.any_schema else PLAIN_KEYS
    properties = {choices.pick(keys): property_schema(choices, profile, depth) for _ in range(choices.below(4))}
    fields: dict[str, Any] = {"type": "object", "properties": properties}
    if choices.chance(50):
        fields["required"] = choices.subset(list(properties), 60)
    if profile.any_schema and choices.chance(15):
        fields["additionalProperties"] = False
    return {name: fields[name] for name in choices.shuffled(list(fields))}


def tool(choices: Choices, profile: Profile) -> dict[str, Any]:
    """One tool, in the shape of OpenAI's API."""
    function: dict[str, Any] = {"name": choices.pick(TOOL_NAMES)}
    if not profile.optional_description or not choices.chance(15):
        function["description"] = choices.pick(WORDS + PROSE + UNICODE + ("",))
    if not profile.optional_parameters or not choices.chance(15):
        function["parameters"] = object_schema(choices, profile, 2)
    if profile.any_schema and choices.chance(15):
        function["strict"] = choices.pick((False, True, None))
    if profile.any_schema and choices.chance(5):
        function["defer_loading"] = choices.pick((False, True))
    function = {name: function[name] for name in choices.shuffled(list(function))}
    parts: dict[str, Any] = {"type": "function", "function": function}
    return {name: parts[name] for name in choices.shuffled(list(parts))}


def tools(choices: Choices, profile: Profile) -> list[dict[str, Any]] | None:
    """A list of tools: none, an empty one, or up to three."""
    if not profile.tools:
        return None
    kind = choices.below(8)
    if kind <= 2:
        return None
    if kind == 3:
        return []
    return [tool(choices, profile) for _ in range(1 + choices.below(3))]
