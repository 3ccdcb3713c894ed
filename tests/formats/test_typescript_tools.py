"""Tools as TypeScript: what the recorded vectors show, and the corners of JSON schema that they do not reach."""

from __future__ import annotations

from typing import Any

import pytest

from renderers.formats.typescript_tools import comment_lines, typescript_tools


def function(parameters: Any = None, **fields: Any) -> dict[str, Any]:
    given = {} if parameters is None else {"parameters": parameters}
    return {"type": "function", "function": {"name": "f", **fields, **given}}


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def declared(*tools: dict[str, Any]) -> str | None:
    """What stands inside the namespace."""
    text = typescript_tools(tools)
    if text is None:
        return None
    head, end = "# Tools\n\n## functions\nnamespace functions {\n", "\n}\n"
    assert text.startswith(head)
    assert text.endswith(end)
    return text[len(head) : -len(end)]


def typed(schema: Any) -> str | None:
    """The type of one optional field, with its comments."""
    text = declared(function(fields(x=schema)))
    if text is None:
        return None
    assert text.startswith("type f = (_: {\n")
    return text.removeprefix("type f = (_: {\n").removesuffix("\n}) => any;")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "  x?: string"),
        ({"type": "integer"}, "  x?: number"),
        ({"type": "null"}, "  x?: null"),
        ({"type": "file"}, "  x?: file"),
        ({}, "  x?: any"),
        (True, "  x?: any"),
        (False, "  x?: null"),
        ({"type": ["string", "integer", "array", "object", "null"]}, "  x?: string | number | Array<any> | {} | null"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}, {}]}, "  x?: string | number | any"),
        ({"anyOf": []}, "  x?: "),
        ({"enum": ["a", 1, 1.5, True, None]}, '  x?: "a" | 1 | 1.5 | True | None'),
        ({"enum": ['q"'], "type": "string"}, '  x?: "q""'),
        ({"enum": ["a", None], "type": ["null", "string"]}, '  x?: "a" | None'),
        ({"enum": [None], "type": ["string"]}, "  x?: None"),
        ({"type": "object"}, "  x?: {}"),
        ({"type": "array"}, "  x?: Array<any>"),
        ({"type": "array", "items": {}}, "  x?: Array<any>"),
        ({"type": "array", "items": {"type": "array", "items": False}}, "  x?: Array<Array<any>>"),
        ({"type": "array", "items": fields(y={"type": "string"})}, "  x?: Array<{\n    y?: string\n  }>"),
        (
            {"type": "array", "items": {"type": "string", "description": "one\n\ntwo", "maxLength": 2}},
            "  x?: Array<\n    // one\n\n    // two\n    // maxLength: 2\n    string\n  >",
        ),
        (
            {"type": "string", "maxLength": 8, "minLength": 1, "pattern": "^a$", "maximum": 3, "format": "date"},
            "  // maxLength: 8, minLength: 1, pattern: ^a$\n  x?: string",
        ),
        (
            {"type": "number", "minimum": 0.5, "maximum": 1e22, "maxLength": 1},
            "  // maximum: 1e+22, minimum: 0.5\n  x?: number",
        ),
        ({"type": "array", "minItems": 1}, "  // minItems: 1\n  x?: Array<any>"),
        ({"type": "boolean", "minimum": 1, "description": "b"}, "  // b\n  x?: boolean"),
        ({"enum": ["a"], "type": "string", "maxLength": 3, "description": "e"}, '  // e\n  x?: "a"'),
        ({"type": "string", "default": "ü"}, '  // Default: "ü"\n  x?: string'),
        ({"type": "string", "default": {"b": [1, None]}}, '  // Default: {"b": [1, null]}\n  x?: string'),
        ({"type": "boolean", "default": False}, "  // Default: False\n  x?: boolean"),
        ({"type": "number", "default": 1e22}, "  // Default: 1e+22\n  x?: number"),
        ({"type": "string", "default": None, "description": ""}, "  x?: string"),
        ({"type": "object", "additionalProperties": True}, "  x?: {\n    [k: string]: any\n  }"),
        ({"type": "object", "additionalProperties": False}, "  x?: {\n    [k: string]: never\n  }"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "  x?: {\n    [k: string]: number\n  }"),
    ],
)
def test_types(schema: Any, expected: str) -> None:
    assert typed(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": []},
        {"description": "no type"},
        {"const": 1},
        "string",
        None,
        5,
        [],
        {"type": ["string", "date"]},
        {"type": "array", "items": [{"type": "string"}]},
        {"anyOf": None},
        {"enum": None},
        {"enum": ["a"], "type": "integer"},
        {"enum": ["a"], "type": ["string", "integer"]},
        {"enum": ["a"], "type": []},
        {"enum": ["a"], "type": ["string", "null", "integer"]},
        {"type": "string", "description": 5},
        {"$ref": "#/$defs/Missing"},
        {"$ref": "#/definitions/Item"},
        {"$ref": "https://example.org/item"},
        {"type": "object", "properties": None},
        {"type": "object", "properties": {}, "required": None},
        {"type": "object", "additionalProperties": "yes"},
    ],
)
def test_what_has_no_form_refuses_all_tools(schema: Any) -> None:
    assert typed(schema) is None
    assert typescript_tools([function(), function(fields(x=schema))]) is None


def test_required_fields_come_first_and_both_groups_are_sorted() -> None:
    schema = {**fields(d={}, b={}, c={}, a={}), "required": ["d", "c", "elsewhere"], "additionalProperties": False}
    assert declared(function(schema)) == (
        "type f = (_: {\n  c: any,\n  d: any,\n  a?: any,\n  b?: any,\n  [k: string]: never\n}) => any;"
    )


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}, fields()])
def test_no_parameters(parameters: Any) -> None:
    assert declared(function(parameters)) == "type f = (_: {}) => any;"


def test_descriptions_keep_their_empty_lines() -> None:
    assert declared(function(description="one\n\ntwo\n")) == "// one\n\n// two\n\ntype f = (_: {}) => any;"
    assert comment_lines("") == [""]


def test_definitions_become_interfaces() -> None:
    node = {**fields(next={"$ref": "#/$defs/Node", "description": "or none"}), "description": "A node"}
    schema = {**fields(root={"$ref": "#/$defs/Node"}), "$defs": {"Node": node, "Name": {"type": "string"}}}
    assert declared(function(schema, description="A list.")) == (
        "// A node\ninterface Node {\n  // or none\n  next?: Node\n}\ninterface Name string\n"
        "// A list.\ntype f = (_: {\n  root?: Node\n}) => any;"
    )


def test_definitions_are_known_from_where_they_stand() -> None:
    inner = {**fields(x={"$ref": "#/$defs/Late"}), "$defs": {"Late": {"type": "integer"}}}
    assert declared(function(fields(a=inner, b={"$ref": "#/$defs/Late"}))) == (
        "interface Late number\ntype f = (_: {\n  a?: {\n    x?: Late\n  },\n  b?: Late\n}) => any;"
    )
    assert declared(function(fields(a={"$ref": "#/$defs/Late"}, b=inner))) is None


def test_parameters_that_refer_to_themselves() -> None:
    """An interface of their own, its fields in the schema's order, without a line for other names."""
    schema = {**fields(b={"type": "string"}, a={"$ref": "#"}), "required": ["b"], "additionalProperties": False}
    assert declared(function(schema)) == (
        "interface parameters {\n  b: string,\n  a?: parameters\n}\ntype f = (_: parameters) => any;"
    )


def test_tools_that_are_no_functions_are_left_out() -> None:
    assert typescript_tools([]) is None
    assert typescript_tools([{"type": "web_search"}, {"type": "function"}]) is None
    assert declared({"type": "web_search"}, function()) == "type f = (_: {}) => any;"
