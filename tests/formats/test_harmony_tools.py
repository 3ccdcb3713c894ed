"""Tools as OpenAI's Harmony library and as its chat template declare them. The texts were recorded from both."""

from __future__ import annotations

from typing import Any

import pytest

from renderers import ToolsError
from renderers.formats.harmony_tools import builtin_tools, library_declarations, template_declarations
from renderers.messages import validate_tools


def tool(properties: dict[str, Any] | None, description: str | None = "d", **fields: Any) -> Any:
    parameters = None if properties is None else {"type": "object", "properties": properties, **fields}
    return validate_tools(
        [{"type": "function", "function": {"name": "f", "description": description, "parameters": parameters}}]
    )


def library(schema: Any) -> str:
    """A field's type, and what stands around it."""
    text = library_declarations(tool({"x": schema}))
    return text.removeprefix("// d\ntype f = (_: {\n").removesuffix("}) => any;\n\n")


def template(schema: Any) -> str:
    text = template_declarations(tool({"x": schema}))
    return text.removeprefix("// d\ntype f = (_: {\n").removesuffix("}) => any;\n\n")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "x?: string,\n"),
        ({"type": "integer", "description": "n\nm"}, "// n\nm\nx?: number,\n"),
        ({"type": "string", "enum": ["a", "b"], "default": "a"}, 'x?: "a" | "b", // default: a\n'),
        ({"type": "string", "default": 'a"'}, 'x?: string, // default: "a""\n'),
        ({"type": "string", "nullable": True}, "x?: string | null,\n"),
        ({"type": ["integer", "null"]}, "x?: number | null,\n"),
        ({"type": "array", "items": {"type": "boolean"}}, "x?: boolean[],\n"),
        ({"type": "array"}, "x?: Array<any>,\n"),
        ({"$ref": "#/x"}, "x?: any,\n"),
        ({"title": "T", "examples": ["e", 1]}, '// T\n//\n// Examples:\n// - "e"\nx?: any,\n'),
        ({"type": "object", "description": "o"}, "// o\nx?:     // o\n{\n    },\n"),
        (
            {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]},
            "x?: {\n    y: string,\n    },\n",
        ),
        (
            {
                "description": "u",
                "oneOf": [{"type": "string", "description": "s"}, {"type": "null", "description": "n"}],
            },
            "// u\nx?:\n | string\n | any // n\n,\n",
        ),
        (
            {"type": "array", "items": {"oneOf": [{"type": "string", "description": "s"}]}},
            "x?: \n     | string // s[],\n",
        ),
        (True, "x?: any,\n"),
    ],
)
def test_library_types(schema: Any, expected: str) -> None:
    assert library(schema) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"), (1.0, "1.0"), (1e22, "1e22"), (1e15, "1000000000000000.0"), (0.1, "0.1"), (1e-5, "0.00001"),
        (1e-7, "1e-7"), (-0.0, "-0.0"), (2**63, "9223372036854775808"), (-(2**63) - 1, "-9.223372036854776e18"),
        (10**30, "1e30"), (3e100, "3.0000000000000002e100"), (5e-324, "5e-324"), (None, "null"), (True, "true"),
        ({"k": ["é", 1.5]}, '{"k":["é",1.5]}'),
    ],
)  # fmt: skip
def test_library_defaults_are_as_serde_json_writes_them(value: Any, expected: str) -> None:
    assert library({"default": value}) == f"x?: any, // default: {expected}\n"


@pytest.mark.parametrize(
    ("description", "comments"),
    [("", ""), (None, ""), ("a\n\nb\n", "// a\n// \n// b\n"), ("a\r\nb\r", "// a\n// b\r\n")],
)
def test_library_descriptions(description: str | None, comments: str) -> None:
    assert library_declarations(tool(None, description)) == f"{comments}type f = () => any;\n\n"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "x?: string,\n"),
        ({"type": "integer", "description": "n"}, "// n\nx?: number,\n"),
        ({"type": "string", "enum": ["a", "b"], "default": "a"}, 'x?: "a" | "b", // default: a,\n'),
        ({"type": "string", "default": "a"}, 'x?: string, // default: "a",\n'),
        ({"type": ["integer", "null"]}, "x?: integer | null,\n"),
        ({"type": "array", "items": {"type": "integer"}, "nullable": True}, "x?: number[] | null,\n"),
        ({"type": "array"}, "x?: any[],\n"),
        ({"type": "array", "items": {"type": "string", "enum": ["a" * 60]}}, "x?: string[],\n"),
        ({"type": "array", "items": {"type": ["a" * 30, "b" * 30]}}, "x?: any[],\n"),
        ({"type": "object"}, "x?: object,\n"),
        ({"type": "object", "properties": {"y": {"type": "string"}}}, "x?: {\ny?: \n                string},\n"),
        (
            {"oneOf": [{"type": "string", "description": "s"}, {"type": "number", "default": 1}]},
            "x?: string// s | \nnumber                    // default: 1,\n",
        ),
        (True, "x?: any,\n"),
    ],
)
def test_template_types(schema: Any, expected: str) -> None:
    assert template(schema) == expected


def test_template_without_parameters() -> None:
    assert template_declarations(tool(None, "a\nb")) == "// a\nb\ntype f = () => any;\n\n"
    assert template_declarations(tool({})) == "// d\ntype f = () => any;\n\n"


@pytest.mark.parametrize(
    "broken",
    [{"type": "function"}, {"function": 1}, {"function": {"name": 1}}, {"function": {"name": "f", "description": 1}}],
)
@pytest.mark.parametrize("declare", [library_declarations, template_declarations])
def test_what_is_no_tool(declare: Any, broken: Any) -> None:
    with pytest.raises(ToolsError, match=r"tools\[0\]"):
        declare(validate_tools([broken]))


def test_library_takes_objects_only_for_parameters() -> None:
    with pytest.raises(ToolsError, match=r"tools\[0\]"):
        library_declarations(validate_tools([{"function": {"name": "f", "parameters": []}}]))
    with pytest.raises(ToolsError, match=r"tools\[0\]"):
        library_declarations(tool({"x": {"default": float("nan")}}))


def test_builtin_tools() -> None:
    assert builtin_tools([]) == ""
    both = builtin_tools(["python", "browser"])
    assert both.startswith("# Tools\n\n## browser\n\n// Tool for browsing.\n")
    assert both.endswith("Depends on the cluster.\n\n")
