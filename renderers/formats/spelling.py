"""How a template spells a value that is no string, where it writes values as bare text.

Most print JSON. Jinja's `string` filter prints what Python does: `True`, `None`, `['a']`.
"""

from __future__ import annotations

import ast
import json
import re
from enum import Enum
from typing import Any

from renderers.messages import to_json

#: Python's words, and JSON's for the same.
PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
#: Those words, and strings with the escapes that `repr` writes.
_TOKEN = re.compile(
    r"""\b(?:True|False|None)\b|'(?:[^'\\\n]|ESCAPE)*'|"(?:[^"\\\n]|ESCAPE)*\"""".replace(
        "ESCAPE", r"""\\(?:[\\'"abfnrtv]|x[0-9a-f]{2}|u[0-9a-f]{4}|U000[0-9a-f]{5})"""
    )
)


class Spelling(Enum):
    """How values are spelled."""

    JSON = "json"
    #: Numbers, booleans and null as Python prints them, objects and arrays as JSON.
    PYTHON_SCALARS = "python_scalars"
    #: All values as Python prints them.
    PYTHON = "python"

    def write(self, value: Any) -> str:
        """A value as text; a string is bare."""
        if isinstance(value, str):
            return value
        scalar = not isinstance(value, dict | list)
        return str(value) if self is Spelling.PYTHON or (self is Spelling.PYTHON_SCALARS and scalar) else to_json(value)

    def as_json(self, text: str) -> str:
        """The JSON for a text in this spelling; what Python would not print comes back as it is."""
        match self:
            case Spelling.JSON:
                return text
            case Spelling.PYTHON_SCALARS:
                return PYTHON_WORDS.get(text, text)
            case Spelling.PYTHON:
                return _TOKEN.sub(_token_as_json, text)


def _token_as_json(token: re.Match[str]) -> str:
    text = token.group()
    return PYTHON_WORDS.get(text) or json.dumps(ast.literal_eval(text), ensure_ascii=False)
