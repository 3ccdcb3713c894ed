"""Values written as bare text, read by the tools' schemas."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderers.formats.json_text import CallFaultError
from renderers.formats.spelling import Spelling
from renderers.formats.typed_values import Parameter, ParameterSchema, ToolSchemas, read_value, typed_call
from renderers.parsed import CallStatus

DEFINITIONS = {
    "$defs": {
        "Color": {"enum": ["red", "green"]},
        "Point": {"type": "object"},
        "a/b~c": {"type": "integer"},
        "Loop": {"$ref": "#/$defs/Loop"},
        "Tree": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Tree"}]},
    }
}
STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))


def read(text: str, schema: Any, **options: Any) -> Any:
    return read_value(text, ParameterSchema(schema, DEFINITIONS), **options)


@pytest.mark.parametrize(
    "text", ["", "00420", "true", "null", "1", '"quoted"', "  a &amp; b\n\n", "{}", "NaN", "1e999", "é"]
)
@pytest.mark.parametrize(
    "schema",
    [STRING, {"type": ["string"]}, {"$ref": "#/$defs/Color"}, {"enum": ["a", "b"]}, {"const": "x"},
     {"anyOf": [STRING, {"enum": ["x"]}]}, {"allOf": [{"$ref": "#/$defs/Color"}], "description": "d"}],
)  # fmt: skip
def test_strings_stay_byte_for_byte(text: str, schema: Any) -> None:
    assert read(text, schema) == text


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("5", INTEGER, 5),
        (" 5\n", INTEGER, 5),
        ("5.0", INTEGER, 5.0),
        ("123456789012345678901234567890", INTEGER, 123456789012345678901234567890),
        ("5", NUMBER, 5),
        ("1.5e3", NUMBER, 1500.0),
        ("true", BOOLEAN, True),
        ("null", {"type": "null"}, None),
        ('{"a": [1, "x"]}', {"type": "object"}, {"a": [1, "x"]}),
        ("[1]", {"items": {}}, [1]),
        ("{}", {"properties": {}}, {}),
        ("{}", {"$ref": "#/$defs/Point"}, {}),
        ("7", {"$ref": "#/$defs/a~1b~0c"}, 7),
        ("3", {"enum": [1, 2, 3]}, 3),
        # Read, not validated.
        ("[1]", INTEGER, [1]),
        ('"x"', INTEGER, "x"),
    ],
)
def test_other_types_are_json(text: str, schema: Any, value: Any) -> None:
    found = read(text, schema)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("null", {"anyOf": [STRING, {"type": "null"}]}, None),
        ("null", {"type": "string", "nullable": True}, None),
        ("None", {"type": ["string", "null"]}, "None"),
        ("5", {"type": ["string", "integer"]}, 5),
        ("05", {"type": ["string", "integer"]}, "05"),
        ("5.0", {"type": ["string", "integer"]}, 5.0),
        ("5.5", {"type": ["string", "integer"]}, "5.5"),
        ("5", {"oneOf": [STRING, NUMBER]}, 5),
        ("5", {"oneOf": [STRING, BOOLEAN]}, "5"),
        ("true", {"oneOf": [STRING, BOOLEAN]}, True),
        ("True", {"oneOf": [STRING, BOOLEAN]}, "True"),
        ('"x"', {"type": ["string", "object"]}, '"x"'),
        ("{}", {"type": ["string", "object"]}, {}),
        ("{", {"type": ["string", "object"]}, "{"),
        ('{"a": 1, "a": 2}', {"type": ["string", "null"]}, '{"a": 1, "a": 2}'),
        ("1", {"enum": ["1", 1]}, "1"),
        ("2", {"enum": ["1", 2]}, 2),
        ("1e999", {"type": ["string", "number"]}, "1e999"),
    ],
)
def test_strings_beside_other_types(text: str, schema: Any, value: Any) -> None:
    found = read(text, schema)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "schema",
    [None, True, {}, {"description": "d"}, {"$ref": "#/$defs/Missing"}, {"$ref": "http://else"}, {"$ref": "#/$defs/Loop"},
     {"type": "unheard of"}, {"type": []}, {"enum": []}, {"anyOf": [STRING, {}]}, {"anyOf": "x"}, [1], "string"],
)  # fmt: skip
def test_nothing_known(schema: Any) -> None:
    for text, value in (
        ("5", 5),
        ("00420", "00420"),
        ("[1]", [1]),
        ("None", "None"),
        ('"x"', '"x"'),
        ("", ""),
        ("NaN", "NaN"),
    ):
        assert read(text, schema) == value


@pytest.mark.parametrize(
    ("text", "schema", "status"),
    [
        ("abc", INTEGER, CallStatus.INVALID_ARGUMENTS),
        ("", INTEGER, CallStatus.INVALID_ARGUMENTS),
        ("007", INTEGER, CallStatus.INVALID_ARGUMENTS),
        ("True", BOOLEAN, CallStatus.INVALID_ARGUMENTS),
        ("None", {"type": ["integer", "null"]}, CallStatus.INVALID_ARGUMENTS),
        ("{'a': 1}", {"type": "object"}, CallStatus.INVALID_ARGUMENTS),
        ("NaN", NUMBER, CallStatus.NON_FINITE_NUMBER),
        ("[1e999]", {"type": "array"}, CallStatus.NON_FINITE_NUMBER),
        ('{"a": 1, "a": 1}', {"type": "object"}, CallStatus.DUPLICATE_KEY),
        ('{"a": 1, "a": 1}', None, CallStatus.DUPLICATE_KEY),
        ("[" * 100_000, {"type": "array"}, CallStatus.INVALID_ARGUMENTS),
    ],
)
def test_reported_not_guessed(text: str, schema: Any, status: CallStatus) -> None:
    with pytest.raises(CallFaultError) as caught:
        read(text, schema)
    assert caught.value.status is status


def test_pythons_spellings_are_read_only_where_a_format_writes_them() -> None:
    assert read("True", BOOLEAN, spelling=Spelling.PYTHON_SCALARS) is True
    assert read("None", {"type": ["integer", "null"]}, spelling=Spelling.PYTHON_SCALARS) is None
    assert read("True", STRING, spelling=Spelling.PYTHON_SCALARS) == "True"
    with pytest.raises(CallFaultError, match="Python's spelling"):
        read("True", BOOLEAN)


def test_references_that_go_round() -> None:
    assert ParameterSchema({"$ref": "#/$defs/Tree"}, DEFINITIONS).types == {"integer"}
    twice = {"anyOf": [{"$ref": "#/$defs/Twice"}, {"$ref": "#/$defs/Twice"}, STRING]}
    assert ParameterSchema(twice, {"$defs": {"Twice": twice}}).types == {"string"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=3) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ("type", "anyOf", "oneOf", "allOf", "enum", "const", "$ref", "nullable", "items", "properties")
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=8,
    )
)
def test_no_schema_raises(schema: Any) -> None:
    parameter = ParameterSchema(schema, schema)
    assert parameter.types
    with contextlib.suppress(CallFaultError):
        read_value("5", parameter)


FIND = {"type": "object", "properties": {"zip": STRING, "n": INTEGER}, "additionalProperties": BOOLEAN}


class TestToolSchemas:
    @pytest.mark.parametrize("wrap", [lambda tool: {"type": "function", "function": tool}, lambda tool: tool])
    def test_both_shapes_of_a_tool(self, wrap: Any) -> None:
        schemas = ToolSchemas([wrap({"name": "find", "parameters": FIND})])
        assert schemas.parameter("find", "zip").types == {"string"}
        assert schemas.parameter("find", "other").types == {"boolean"}
        assert len(schemas.parameter("nothing", "zip").types) == 7

    @pytest.mark.parametrize(
        "tools", [None, [], [{}], [{"function": None}], ["x"], [{"name": "find", "parameters": [1]}]]
    )
    def test_what_is_missing_allows_everything(self, tools: Any) -> None:
        assert len(ToolSchemas(tools).parameter("find", "zip").types) == 7

    def test_references_point_into_the_tools_own_schema(self) -> None:
        root = {"properties": {"c": {"$ref": "#/$defs/C"}}, "$defs": {"C": STRING}}
        assert ToolSchemas([{"name": "f", "parameters": root}]).parameter("f", "c").types == {"string"}


class TestTypedCall:
    SCHEMAS = ToolSchemas([{"name": "find", "parameters": FIND}])

    def test_a_call(self) -> None:
        call = typed_call("find", [Parameter("zip", "00420"), Parameter("n", "5")], self.SCHEMAS)
        assert (call.arguments, call.arguments_text) == ({"zip": "00420", "n": 5}, '{"zip": "00420", "n": 5}')

    def test_no_parameters(self) -> None:
        assert typed_call("now", [], self.SCHEMAS).arguments == {}

    def test_parameters_that_say_what_they_are(self) -> None:
        parameters = [Parameter("n", "5", is_string=True), Parameter("zip", "5", is_string=False)]
        assert typed_call("find", parameters, self.SCHEMAS).arguments == {"n": "5", "zip": 5}
        assert typed_call("find", [Parameter("x", "a", is_string=False)], self.SCHEMAS).status == "invalid_arguments"

    @pytest.mark.parametrize(
        ("name", "parameters", "fault", "status"),
        [
            ("", [], None, "missing_name"),
            ("find", [Parameter("n", "1"), Parameter("n", "1")], None, "duplicate_key"),
            ("find", [Parameter("n", "one")], None, "invalid_arguments"),
            ("find", [Parameter("n", "1")], CallFaultError(CallStatus.INCOMPLETE, "cut"), "incomplete"),
        ],
    )
    def test_faults(self, name: str, parameters: list[Parameter], fault: CallFaultError | None, status: str) -> None:
        call = typed_call(name, parameters, self.SCHEMAS, fault=fault)
        assert (call.status, call.name, call.arguments, call.arguments_text) == (status, name, None, "")
        assert call.error

    def test_the_error_names_the_parameter(self) -> None:
        call = typed_call("find", [Parameter("n", "True")], self.SCHEMAS)
        assert call.error == "parameter 'n': True is Python's spelling, JSON's is true"
