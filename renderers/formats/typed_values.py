"""Values that a format writes as bare text, read by the JSON schema of the tool.

Formats with XML-like parameters write a string as it is and everything else as JSON; the text alone does not tell `5`
the number from `5` the string. The rules, in order:

* Only strings are allowed: the text, byte for byte.
* Strings are not allowed: the text is JSON. What is no JSON is reported (`True`, `None` and the like are not guessed).
* Strings are allowed beside other types: JSON where the text is JSON of one of the other types, else the text. An
  `enum` (or `const`) that lists the text itself as a string decides for the string.
* Nothing is known (no tools, no such tool or parameter, a schema that allows everything): as if every type were
  allowed, so JSON where the text is JSON, else the text. A JSON string in quotes is text with quotes.

Objects and arrays that hold a key twice or a number that is not finite are reported; `NaN` and `1e999` alone are text
where text is allowed. Values are read, not validated: a schema that asks for an integer and a text that is a list give
the list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from renderers.formats.json_text import WHITESPACE, CallFaultError, read_json
from renderers.formats.spelling import PYTHON_WORDS, Spelling
from renderers.parsed import CallStatus
from renderers.parsing.protocol import ReadCall, Tools

_TYPES = frozenset(("string", "number", "integer", "boolean", "null", "object", "array"))
#: Schemas inside schemas are looked at to this depth.
_DEEPEST = 32


def _type_of(value: Any) -> str:
    """The JSON type of a value: `integer` for a whole number without a point."""
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    for kind, name in ((str, "string"), (int, "integer"), (float, "number"), (Mapping, "object")):
        if isinstance(value, kind):
            return name
    return "array"


def _items(value: Any) -> Sequence[Any]:
    """The items of what should be a list in a schema; none where it is something else."""
    return value if isinstance(value, list | tuple) else ()


@dataclass(frozen=True)
class ParameterSchema:
    """The schema of one parameter; `root` is where its references point."""

    schema: Any
    root: Any = None

    @cached_property
    def types(self) -> frozenset[str]:
        """The JSON types that the schema allows. All of them where it does not say, or contradicts itself."""
        return self._types(self.schema, _DEEPEST, {}) or _TYPES

    @cached_property
    def listed_strings(self) -> frozenset[str]:
        """The strings that `enum` or `const` lists."""
        found: set[str] = set()
        self._list_strings(self.schema, _DEEPEST, found, set())
        return frozenset(found)

    def allows(self, value: Any) -> bool:
        """Whether the value's type is one of those allowed."""
        kind = _type_of(value)
        return kind in self.types or (kind == "number" and "integer" in self.types and float(value).is_integer())

    def _types(self, schema: Any, depth: int, known: dict[str, frozenset[str] | None]) -> frozenset[str] | None:
        """The types, or None where the schema says nothing about them. `known` are the references followed so far."""
        if not isinstance(schema, Mapping) or not depth:
            return None
        said = [self._own_types(schema)]
        if isinstance(reference := schema.get("$ref"), str):
            if reference not in known:
                known[reference] = frozenset()  # what a schema that refers to itself adds to itself
                known[reference] = self._types(self._resolve(reference), depth - 1, known)
            said.append(known[reference])
        for key in ("anyOf", "oneOf"):
            if parts := _items(schema.get(key)):
                alternatives = [self._types(part, depth - 1, known) for part in parts]
                stated = [types for types in alternatives if types is not None]
                said.append(frozenset().union(*stated) if len(stated) == len(alternatives) else None)
        said += [self._types(part, depth - 1, known) for part in _items(schema.get("allOf"))]
        if not any(said):
            return frozenset() if frozenset() in said else None
        types = frozenset.intersection(*(types for types in said if types))
        return types | {"null"} if schema.get("nullable") is True else types

    @staticmethod
    def _own_types(schema: Mapping[str, Any]) -> frozenset[str] | None:
        declared = schema.get("type")
        names = [declared] if isinstance(declared, str) else _items(declared)
        types = {name for name in names if isinstance(name, str) and name in _TYPES}
        if not types and "const" in schema:
            types = {_type_of(schema["const"])}
        if not types:
            types = set(map(_type_of, _items(schema.get("enum"))))
        if not types:
            types = {kind for key, kind in (("properties", "object"), ("items", "array")) if key in schema}
        if "number" in types:
            types.add("integer")
        return frozenset(types) or None

    def _list_strings(self, schema: Any, depth: int, found: set[str], followed: set[str]) -> None:
        if not isinstance(schema, Mapping) or not depth:
            return
        found.update(value for value in (*_items(schema.get("enum")), schema.get("const")) if isinstance(value, str))
        parts = [part for key in ("anyOf", "oneOf", "allOf") for part in _items(schema.get(key))]
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in followed:
            followed.add(reference)
            parts.append(self._resolve(reference))
        for part in parts:
            self._list_strings(part, depth - 1, found, followed)

    def _resolve(self, reference: str) -> Any:
        """What a reference into the tool's own schema points to, or None."""
        if not reference.startswith("#"):
            return None
        target = self.root
        for part in reference[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or key not in target:
                return None
            target = target[key]
        return target


_ANYTHING = ParameterSchema(None)
_NO_STRING = ParameterSchema({"type": sorted(_TYPES - {"string"})})


class ToolSchemas:
    """The parameters' schemas of the tools of one prompt, looked up by name. What is missing allows everything."""

    def __init__(self, tools: Tools | None = None) -> None:
        self._tools = tools or ()
        self._found: dict[tuple[str, str], ParameterSchema] = {}

    @cached_property
    def _by_name(self) -> dict[str, Any]:
        by_name: dict[str, Any] = {}
        for tool in self._tools:
            function = tool.get("function") if isinstance(tool, Mapping) else None
            described = function if isinstance(function, Mapping) else tool
            if isinstance(described, Mapping) and isinstance(name := described.get("name"), str):
                by_name.setdefault(name, described.get("parameters"))
        return by_name

    def parameter(self, tool: str, name: str) -> ParameterSchema:
        """The schema of one parameter of one tool."""
        found = self._found.get((tool, name))
        if found is None:
            found = self._found[tool, name] = self._look_up(tool, name)
        return found

    def _look_up(self, tool: str, name: str) -> ParameterSchema:
        root = self._by_name.get(tool)
        if not isinstance(root, Mapping):
            return _ANYTHING
        properties = root.get("properties")
        if isinstance(properties, Mapping) and name in properties:
            return ParameterSchema(properties[name], root)
        return ParameterSchema(root.get("additionalProperties"), root)


def read_value(text: str, schema: ParameterSchema, *, spelling: Spelling = Spelling.JSON) -> Any:
    """The value that `text` stands for, by the rules above.

    With another `spelling`, for formats whose own template writes it, "JSON" in the rules means that spelling or JSON.

    Raises:
        CallFaultError: no string is allowed and the text is no JSON, or JSON with a key twice or a number not finite.
    """
    types = schema.types
    text_allowed = "string" in types
    if text_allowed and (len(types) == 1 or text in schema.listed_strings):
        return text
    try:
        value = _read_spelled(text, spelling)
    except CallFaultError as problem:
        if text_allowed and not _is_flawed_container(text, problem, types):
            return text
        if text in PYTHON_WORDS:
            message = f"{text} is Python's spelling, JSON's is {PYTHON_WORDS[text]}"
            raise CallFaultError(CallStatus.INVALID_ARGUMENTS, message) from None
        if problem.status is CallStatus.INVALID_JSON:
            wanted = " or ".join(sorted(types))
            raise CallFaultError(CallStatus.INVALID_ARGUMENTS, f"not {wanted}: {problem}") from None
        raise
    # A string is written bare: text in quotes is a string that holds quotes.
    if text_allowed and (isinstance(value, str) or not schema.allows(value)):
        return text
    return value


def _read_spelled(text: str, spelling: Spelling) -> Any:
    try:
        return read_json(text)
    except CallFaultError:
        if (translated := spelling.as_json(text)) == text:
            raise
    return read_json(translated)


def _is_flawed_container(text: str, problem: CallFaultError, types: frozenset[str]) -> bool:
    """Whether this is surely an object or array, but one that must be reported: a key twice, a number not finite."""
    kind = {"{": "object", "[": "array"}.get(text.lstrip(WHITESPACE)[:1])
    return kind in types and problem.status is not CallStatus.INVALID_JSON


class Parameter(NamedTuple):
    """A parameter as it was read: its name, its text, and whether it says of itself that it is a string (DSML)."""

    name: str
    text: str
    is_string: bool | None = None


def typed_call(
    name: str,
    parameters: Iterable[Parameter],
    schemas: ToolSchemas,
    *,
    fault: CallFaultError | None = None,
    spelling: Spelling = Spelling.JSON,
) -> ReadCall:
    """The call of a format that types its values by the tools' schemas.

    Args:
        name: the tool's name, as it was read.
        parameters: what was read, in order.
        schemas: the tools' schemas; a parameter that says itself what it is needs none.
        fault: what is wrong with the call's own grammar, or that it was cut; it comes before faults of the values.
        spelling: see `read_value`.
    """
    if fault is None and not name:
        fault = CallFaultError(CallStatus.MISSING_NAME, "the call has no name")
    if fault is None:
        try:
            arguments = _read_parameters(name, parameters, schemas, spelling=spelling)
            return ReadCall(name, arguments, json.dumps(arguments, ensure_ascii=False))
        except CallFaultError as problem:
            fault = problem
        except RecursionError:
            fault = CallFaultError(CallStatus.INVALID_JSON, "nested too deeply")
    return ReadCall(name, None, "", fault.status, str(fault))


def _read_parameters(
    tool: str, parameters: Iterable[Parameter], schemas: ToolSchemas, *, spelling: Spelling
) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name in arguments:
            raise CallFaultError(CallStatus.DUPLICATE_KEY, f"the call has two parameters {parameter.name!r}")
        arguments[parameter.name] = _read_parameter(tool, parameter, schemas, spelling=spelling)
    return arguments


def _read_parameter(tool: str, parameter: Parameter, schemas: ToolSchemas, *, spelling: Spelling) -> Any:
    if parameter.is_string:
        return parameter.text
    schema = schemas.parameter(tool, parameter.name) if parameter.is_string is None else _NO_STRING
    try:
        return read_value(parameter.text, schema, spelling=spelling)
    except CallFaultError as problem:
        raise CallFaultError(problem.status, f"parameter {parameter.name!r}: {problem}") from None
