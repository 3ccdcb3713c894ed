"""Tools as TypeScript declarations, as Harmony tells a model of them: by OpenAI's library, and by its chat template.

    namespace functions {

    // Weather in a city
    type get_weather = (_: {
    // City and country
    city: string,
    unit?: "celsius" | "fahrenheit", // default: "celsius"
    }) => any;

    } // namespace functions

The two agree on little more than this. Fields keep the schema's order. The library writes JSON values as Rust's
serde_json does, which reads numbers first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from renderers.errors import ToolsError
from renderers.messages import Tools, to_json

#: What stands before and after the declarations.
HEAD, TAIL = "# Tools\n\n## functions\n\nnamespace functions {\n\n", "} // namespace functions"


@lru_cache(maxsize=64)
def library_declarations(tools: Tools) -> str:
    """The declarations as OpenAI's library writes them.

    Raises:
        ToolsError: for what it does not take.
    """
    return _declarations(tools, _library_function)


@lru_cache(maxsize=64)
def template_declarations(tools: Tools) -> str:
    """The declarations as the chat template writes them.

    Raises:
        ToolsError: for what it fails on.
    """
    return _declarations(tools, _template_function)


def _declarations(tools: Tools, write: Callable[[str, str, Any], str]) -> str:
    declarations = []
    for index, tool in enumerate(tools.schemas):
        function = tool.get("function", tool)
        try:
            description = function.get("description")
            name, description = function["name"], "" if description is None else description
            declarations.append(write(_text(name), _text(description), function.get("parameters")))
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ToolsError(f"tools[{index}]: Harmony has no form for this tool: {error!r}") from None
    return "".join(declarations)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _get(schema: Any, key: str) -> Any:
    """A field of a schema; None where it has none, or is no object."""
    return schema.get(key) if isinstance(schema, Mapping) else None


def _get_text(schema: Any, key: str) -> str | None:
    value = _get(schema, key)
    return value if isinstance(value, str) else None


# OpenAI's library ----------------------------------------------------------------------------------------------------


def _library_function(name: str, description: str, parameters: Any) -> str:
    lines = re.split(r"\r?\n", description)
    comments = "".join([f"// {line}\n" for line in (lines if lines[-1] else lines[:-1])])
    if parameters is None:
        return f"{comments}type {name} = () => any;\n\n"
    if not isinstance(parameters, Mapping):
        raise TypeError("its parameters are no object")
    return f"{comments}type {name} = (_: {_library_type(parameters, '')}) => any;\n\n"


def _library_type(schema: Any, indent: str) -> str:  # noqa: PLR0911 - one for each kind of schema
    """A schema's type; `indent` is that of the line on which it stands."""
    one_of = _get(schema, "oneOf")
    if isinstance(one_of, list):
        return "".join([f"\n{indent} | {_variant(variant, indent)}" for variant in one_of])
    kind = _get(schema, "type")
    if isinstance(kind, list):
        names = ["number" if name == "integer" else name for name in kind if isinstance(name, str)]
        return " | ".join(names) if names else "any"
    match kind:
        case "object":
            return _library_object(schema, indent)
        case "string":
            values = _get(schema, "enum")
            texts = [f'"{value}"' for value in values if isinstance(value, str)] if isinstance(values, list) else []
            return " | ".join(texts) or "string"
        case "number" | "integer":
            return "number"
        case "boolean":
            return "boolean"
        case "array":
            return f"{_library_type(schema['items'], indent)}[]" if "items" in schema else "Array<any>"
        case _:
            return "any"


def _library_object(schema: Mapping[str, Any], indent: str) -> str:
    description = _get_text(schema, "description")
    parts = ["" if description is None else f"{indent}// {description}\n", "{\n"]
    properties, required = schema.get("properties"), schema.get("required")
    names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    for key, field in properties.items() if isinstance(properties, Mapping) else ():
        name = key if key in names else f"{key}?"
        one_of = _get(field, "oneOf")
        lines = _comments(field)
        if isinstance(one_of, list):
            lines += _union_field(name, field, one_of, indent)
        else:
            shown = f"{name}: {_nullable(field, f'{indent}    ')},"
            has_default = isinstance(field, Mapping) and "default" in field and "oneOf" not in field
            lines.append(f"{shown} // {_default(field)}" if has_default else shown)
        parts += [f"{indent}{line}\n" for line in lines]
    return "".join([*parts, indent, "}"])


def _comments(field: Any) -> list[str]:
    """What stands before a field: its title, its description, examples."""
    title, description, examples = _get_text(field, "title"), _get_text(field, "description"), _get(field, "examples")
    lines = [] if title is None else [f"// {title}", "//"]
    if description is not None and "oneOf" not in field:
        lines.append(f"// {description}")
    if isinstance(examples, list) and examples:
        lines += ["// Examples:", *[f'// - "{example}"' for example in examples if isinstance(example, str)]]
    return lines


def _union_field(name: str, field: Mapping[str, Any], one_of: Sequence[Any], indent: str) -> list[str]:
    """A field of several types, one a line; a description that its first type repeats is written once."""
    description = _get_text(field, "description")
    stands_above = description is not None and not (one_of and _get_text(one_of[0], "description") == description)
    lines = [f"// {description}"] if stands_above else []
    if "default" in field:
        lines.append(f"// {_default(field)}")
    lines.append(f"{name}:")
    for position, variant in enumerate(one_of):
        own = _get_text(variant, "description")
        comments = [own] if own is not None and own != description and (position or not stands_above) else []
        if isinstance(variant, Mapping) and "default" in variant:
            comments.append(_default(variant))
        lines.append(" | " + _nullable(variant, f"{indent}   ") + (f" // {' '.join(comments)}" if comments else ""))
    return [*lines, ","]


def _variant(variant: Any, indent: str) -> str:
    """One of several types outside a field."""
    comments = [text] if (text := _get_text(variant, "description")) is not None else []
    if isinstance(variant, Mapping) and "default" in variant:
        comments.append(_default(variant, quotes_enum=True))
    return _nullable(variant, f"{indent}   ") + (f" // {' '.join(comments)}" if comments else "")


def _nullable(schema: Any, indent: str) -> str:
    text = _library_type(schema, indent)
    return f"{text} | null" if _get(schema, "nullable") is True and "null" not in text else text


def _default(schema: Mapping[str, Any], *, quotes_enum: bool = False) -> str:
    """A default; text as it is, between quotes, which that of an enum lacks."""
    value = schema["default"]
    if not isinstance(value, str):
        return f"default: {_serde_json(value)}"
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return f"default: {_serde_json(value) if quotes_enum else value}"
    return f'default: "{value}"'


def _serde_json(value: Any) -> str:
    """A JSON value as serde_json writes it: compact, numbers as it read them."""
    if isinstance(value, Mapping):
        return "{" + ",".join([f"{to_json(key)}:{_serde_json(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([_serde_json(item) for item in value]) + "]"
    if isinstance(value, float) or (type(value) is int and not -(1 << 63) <= value < 1 << 64):
        return _serde_float(value)
    return to_json(value)


def _serde_float(value: float) -> str:
    """A number that is no 64-bit integer. Its digits and its power of ten are read apart, which rounds twice."""
    sign, read, exponent = Decimal(repr(value)).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is no JSON number")  # noqa: TRY004 - the value is wrong, its type is not
    digits = "".join(map(str, read))
    while int(digits) >= 1 << 64:  # digits beyond 64 bits are cut off
        digits, exponent = digits[:-1], exponent + 1
    found = float(int(digits))
    while exponent < -308:
        found, exponent = found / 1e308, exponent + 308
    found = found * float(f"1e{exponent}") if exponent >= 0 else found / float(f"1e{-exponent}")
    _, read, exponent = Decimal(repr(found)).as_tuple()
    digits = "".join(map(str, read)).rstrip("0") or "0"
    point = len(read) + int(exponent) if found else 1
    text = digits
    if len(digits) <= point <= 16:
        text = digits.ljust(point, "0") + ".0"
    elif 0 < point <= 16:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -5 < point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        text = f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{point - 1}"
    return f"-{text}" if sign else text


# The chat template ---------------------------------------------------------------------------------------------------


def _template_function(name: str, description: str, parameters: Any) -> str:
    head = f"// {description}\ntype {name} = "
    properties = _get(parameters, "properties")
    if not properties:
        return f"{head}() => any;\n\n"
    fields = [_template_field(key, field, _get(parameters, "required")) for key, field in properties.items()]
    return f"{head}(_: {{\n{''.join(fields)}}}) => any;\n\n"


def _template_field(name: str, field: Any, required: Any) -> str:
    """A parameter, on lines of its own."""
    comment = f"// {_text(text)}\n" if (text := _get(field, "description")) else ""
    shown = f"{comment}{name}{'' if name in (required or []) else '?'}: {_template_type(field)}"
    if isinstance(field, Mapping) and "default" in field:
        if field.get("enum"):
            shown += f", // default: {_text(field['default'])}"
        elif field.get("oneOf"):
            shown += f"// default: {_text(field['default'])}"
        else:
            shown += f", // default: {to_json(field['default'])}"
    return f"{shown},\n"


def _template_type(schema: Any) -> str:  # noqa: PLR0911 - one for each kind of schema
    kind, null = _get(schema, "type"), " | null" if _get(schema, "nullable") else ""
    if kind == "array":
        return _template_array(schema["items"], null) if schema.get("items") else f"any[]{null}"
    if isinstance(kind, list) and kind:
        return " | ".join(map(str, kind))
    if one_of := _get(schema, "oneOf"):
        return " | \n".join([_template_variant(variant) for variant in one_of])
    match kind:
        case "string":
            values = schema.get("enum")
            return '"' + '" | "'.join(map(str, values)) + '"' if values else f"string{null}"
        case "number" | "integer":
            return "number"
        case "boolean":
            return "boolean"
        case "object" if properties := schema.get("properties"):
            required = schema.get("required") or []
            fields = [
                f"{name}{'' if name in required else '?'}: \n{' ' * 16}{_template_type(field)}"
                for name, field in properties.items()
            ]
            return "{\n" + ", ".join(fields) + "}"
        case "object":
            return "object"
        case _:
            return "any"


def _template_array(items: Any, null: str) -> str:
    kind = _get(items, "type")
    if kind in ("string", "number", "integer", "boolean"):
        return f"{'number' if kind == 'integer' else kind}[]{null}"
    inner = _template_type(items)
    return f"{'any' if len(inner) > 50 else inner}[]{null}"


def _template_variant(variant: Any) -> str:
    """One of several types; the line of its default is indented as the template's source is."""
    text = _template_type(variant)
    if description := _get(variant, "description"):
        text += f"// {_text(description)}"
    if isinstance(variant, Mapping) and "default" in variant:
        text += f"{' ' * 20}// default: {to_json(variant['default'])}"
    return text


# Tools that the models were trained with -----------------------------------------------------------------------------


def builtin_tools(names: Sequence[str]) -> str:
    """The section of the system message that declares these; nothing where there are none. Both references agree."""
    sections = [text for name, text in (("browser", _BROWSER), ("python", _PYTHON)) if name in names]
    return "".join(["# Tools\n\n", *sections]) if sections else ""


_BROWSER = """\
## browser

// Tool for browsing.
// The `cursor` appears in brackets before each browsing display: `[{cursor}]`.
// Cite information from the tool using the following format:
// `【{cursor}†L{line_start}(-L{line_end})?】`, for example: `【6†L9-L11】` or `【8†L3】`.
// Do not quote more than 10 words directly from the tool output.
// sources=web (default: web)
namespace browser {

// Searches for information related to `query` and displays `topn` results.
type search = (_: {
query: string,
topn?: number, // default: 10
source?: string,
}) => any;

// Opens the link `id` from the page indicated by `cursor` starting at line number `loc`, showing `num_lines` lines.
// Valid link ids are displayed with the formatting: `【{id}†.*】`.
// If `cursor` is not provided, the most recent page is implied.
// If `id` is a string, it is treated as a fully qualified URL associated with `source`.
// If `loc` is not provided, the viewport will be positioned at the beginning of the document or centered on the most \
relevant passage, if available.
// Use this function without `id` to scroll to a new location of an opened page.
type open = (_: {
id?: number | string, // default: -1
cursor?: number, // default: -1
loc?: number, // default: -1
num_lines?: number, // default: -1
view_source?: boolean, // default: false
source?: string,
}) => any;

// Finds exact matches of `pattern` in the current page, or the page given by `cursor`.
type find = (_: {
pattern: string,
cursor?: number, // default: -1
}) => any;

} // namespace browser

"""
_PYTHON = """\
## python

Use this tool to execute Python code in your chain of thought. The code will not be shown to the user. This tool \
should be used for internal reasoning, but not for code that is intended to be visible to the user (e.g. when creating \
plots, tables, or files).

When you send a message containing Python code to python, it will be executed in a stateful Jupyter notebook \
environment. python will respond with the output of the execution or time out after 120.0 seconds. The drive at \
'/mnt/data' can be used to save and persist user files. Internet access for this session is UNKNOWN. Depends on the \
cluster.

"""
