"""Tools as TypeScript declarations, as Kimi's models since K2.5 are told of them.

    # Tools

    ## functions
    namespace functions {
    // Weather in a city
    type get_weather = (_: {
      // minLength: 1
      city: string,
      // Default: "celsius"
      unit?: "celsius" | "fahrenheit"
    }) => any;
    }

Within an object the required fields come first, both groups sorted by name. What TypeScript cannot say stands in a
comment before the field: its description, its constraints, its default. Definitions (`$defs`) become interfaces
before the function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

INDENT = "  "
_HEAD = "# Tools\n\n## functions\nnamespace functions {"

#: A JSON schema: an object, or true (anything) or false (nothing).
Schema: TypeAlias = Mapping[str, Any] | bool

_CONSTRAINTS: dict[str, tuple[str, ...]] = {
    "string": ("maxLength", "minLength", "pattern"),
    "number": ("maximum", "minimum"),
    "integer": ("maximum", "minimum"),
    "array": ("maxItems", "minItems"),
}
#: What a list of types (`["string", "null"]`) is made of.
_IN_UNION = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "{}",
    "array": "Array<any>",
}
_ENUM_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
}
_SELF = "parameters"
#: What reading a schema that is none can raise.
_NOT_A_SCHEMA = (AttributeError, LookupError, RecursionError, TypeError, ValueError)


def typescript_tools(tools: Sequence[Mapping[str, Any]]) -> str | None:
    """The declarations of all tools of type `function`.

    Keys must have been sorted before: the order of definitions, and of a default's keys, is the schema's.

    Returns None where there are none, or where one schema has no TypeScript form here.
    """
    functions = [tool["function"] for tool in tools if tool.get("type") == "function" and tool.get("function")]
    try:
        declarations = [_declaration(function) for function in functions]
    except _NOT_A_SCHEMA:
        return None
    return "\n".join([_HEAD, *declarations, "}\n"]) if declarations else None


def comment_lines(text: str) -> list[str]:
    """A text as comment lines; its empty lines stay empty."""
    return [f"// {line}" if line else "" for line in text.split("\n")]


def _declaration(function: Mapping[str, Any]) -> str:
    """One function, its interfaces before it."""
    schema = function.get("parameters") or {}
    types = _Types()
    parameters = types.object(schema, "")
    lines = []
    if types.refers_to_itself:
        fields = ",\n".join(types.fields(schema, INDENT).values())
        lines.append(f"interface {_SELF} {{\n{fields}\n}}" if fields else f"interface {_SELF} {{}}")
        parameters = _SELF
    for name, definition in list(types.definitions.items()):
        text = types.text(definition, "")
        lines += [*_description(definition), f"interface {name} {text}"]
    lines += [*_description(function), f"type {function.get('name', 'function')} = (_: {parameters}) => any;"]
    return "\n".join(lines)


def _description(described: Mapping[str, Any]) -> list[str]:
    description = described.get("description")
    return comment_lines(description) if description else []


def _comments(schema: Schema) -> list[str]:
    """What stands before a field or an array's item: its description and its constraints."""
    if isinstance(schema, bool):
        return []
    lines = _description(schema)
    if not {"$ref", "anyOf", "enum"} & schema.keys() and isinstance(kind := schema.get("type"), str):
        constraints = [f"{key}: {schema[key]}" for key in _CONSTRAINTS.get(kind, ()) if key in schema]
        if constraints:
            lines.append("// " + ", ".join(constraints))
    return lines


def _indented(lines: Sequence[str], indent: str) -> str:
    return "".join([f"{indent}{line}\n" if line else "\n" for line in lines])


class _Types:
    """The types of one function's parameters. Definitions are known from where they were read on."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}
        self.refers_to_itself = False

    def text(self, schema: Schema, indent: str) -> str:  # noqa: PLR0911 - one for each kind of schema
        """A schema's type. `indent` is that of the line on which it begins."""
        if isinstance(schema, bool):
            return "any" if schema else "null"
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if "anyOf" in schema:
            return " | ".join([self.text(part, indent) for part in schema["anyOf"]])
        if "enum" in schema:
            return _enum(schema)
        if schema == {}:
            return "any"
        kind = schema["type"]
        if isinstance(kind, list):
            return " | ".join([_IN_UNION[name] for name in kind])
        if kind == "object":
            return self.object(schema, indent)
        if kind == "array":
            return self._array(schema, indent)
        return "number" if kind == "integer" else kind

    def object(self, schema: Mapping[str, Any], indent: str) -> str:
        """An object's type, whatever the schema says of its own type."""
        self.definitions.update((schema.get("$defs") or {}).items())
        others = self._other_fields(schema.get("additionalProperties"), indent + INDENT)
        fields = self.fields(schema, indent + INDENT)
        required = set(schema.get("required", ())) if fields else set()
        lines = [fields[name] for name in sorted(fields, key=lambda name: (name not in required, name))] + others
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"

    def fields(self, schema: Mapping[str, Any], indent: str) -> dict[str, str]:
        """An object's fields with their comments, by name, in the schema's order."""
        if "properties" not in schema:
            return {}
        optional = schema["properties"].keys() - set(schema.get("required", ()))
        return {
            name: self._field(f"{name}?" if name in optional else name, field, indent)
            for name, field in schema["properties"].items()
        }

    def _field(self, name: str, schema: Schema, indent: str) -> str:
        text = self.text(schema, indent)
        comments = _comments(schema)
        default = None if isinstance(schema, bool) else schema.get("default")
        if default is not None:
            # Numbers and booleans as Python prints them: `Default: False`.
            shown = repr(default) if isinstance(default, int | float) else json.dumps(default, ensure_ascii=False)
            comments.append(f"// Default: {shown}")
        return f"{_indented(comments, indent)}{indent}{name}: {text}"

    def _other_fields(self, schema: Schema | None, indent: str) -> list[str]:
        """The line for fields of any other name, where the schema says something of them."""
        if schema is None:
            return []
        if isinstance(schema, bool):
            return [f"{indent}[k: string]: {'any' if schema else 'never'}"]
        return [f"{indent}[k: string]: {self.text(schema, indent)}"]

    def _array(self, schema: Mapping[str, Any], indent: str) -> str:
        items = schema.get("items") or {}
        comments = _comments(items)
        if not comments:
            return f"Array<{self.text(items, indent)}>"
        inner = indent + INDENT
        return "Array<\n" + _indented(comments, inner) + inner + self.text(items, inner) + f"\n{indent}>"

    def _reference(self, reference: str) -> str:
        if reference == "#":
            self.refers_to_itself = True
            return _SELF
        name = reference.rpartition("/")[-1]
        if not reference.startswith("#/$defs/") or not isinstance(self.definitions[name], Mapping):
            raise ValueError(f"reference {reference!r}")
        return name


def _enum(schema: Mapping[str, Any]) -> str:
    """The values of an enum, of which its type must be true."""
    values, kinds = schema["enum"], schema.get("type")
    if not isinstance(kinds, list):
        kinds = [kinds]
    elif len(kinds) != 1 and not (len(kinds) == 2 and "null" in kinds):
        raise ValueError(f"enum of types {kinds}")
    kind = next((name for name in kinds if name != "null"), "null")
    expected = _ENUM_TYPES.get(kind, object) if isinstance(kind, str) else object
    if not all(value is None or isinstance(value, expected) for value in values):
        raise ValueError(f"enum of type {kind} with the values {values}")
    return " | ".join([f'"{value}"' if isinstance(value, str) else str(value) for value in values])
