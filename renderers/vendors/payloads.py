"""Payloads at the border: taken as dict, JSON or SDK object, checked against pydantic models, copied.

The models name what the conversion reads. Every other field is the API's own business and stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, ValidationError

from renderers.errors import VendorPayloadError

Json: TypeAlias = dict[str, Any]

_SCALARS = (str, int, float, bool, type(None))


class Shape(BaseModel):
    """A part of a payload."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


def by_type(*known: str, default: str = "other") -> Discriminator:
    """Tells a union's members apart by their `type`: that of an unknown one is `other`, where there is none `default`."""

    def tag(value: Any) -> str:
        found = value.get("type", default) if isinstance(value, Mapping) else default
        return found if found in known else "other"

    return Discriminator(tag)


def as_json_object(given: object, provider: str, place: str) -> Json:
    """A payload as a dict of its own.

    Args:
        given: a dict, JSON text or bytes, or an object of a vendor's SDK.
        provider: for the error.
        place: for the error.

    Raises:
        VendorPayloadError: where it is no JSON object.
    """
    try:
        value = json.loads(given) if isinstance(given, str | bytes | bytearray) else plain(given)
    except (ValueError, TypeError, RecursionError) as error:
        raise VendorPayloadError(provider, place, f"not JSON: {_short(str(error))}") from None
    if not isinstance(value, dict):
        raise VendorPayloadError(provider, place, f"expected an object, found {type(value).__name__}")
    return value


def check(payload: Json, shape: type[Shape], provider: str) -> None:
    """Raise VendorPayloadError, naming the place, where a payload is not of this shape."""
    try:
        shape.model_validate(payload)
    except ValidationError as error:
        details = error.errors(include_url=False)
        # Of a union's branches, the deepest complaint is about the shape that was meant.
        first = max(details, key=lambda detail: len(detail["loc"]))
        found = "" if first["type"] == "missing" else f", found {_short(repr(first['input']))}"
        place = path_text(_steps(first["loc"], payload)) or "payload"
        raise VendorPayloadError(provider, place, f"{first['msg']}{found}") from None


def _steps(location: Sequence[int | str], payload: Any) -> list[int | str]:
    """A pydantic location without the names of union branches: the steps that lead through the payload."""
    steps: list[int | str] = []
    value = payload
    for position, step in enumerate(location):
        if isinstance(value, dict) and (step in value or position == len(location) - 1):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            continue
        steps.append(step)
    return steps


def path_text(path: Sequence[int | str]) -> str:
    """`("messages", 3, "content")` as `messages[3].content`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def plain(value: Any) -> Any:
    """A deep copy made of JSON's types; SDK objects become what they were read from.

    Raises:
        TypeError: for anything that JSON cannot say.
    """
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    dump: Callable[..., Any] | None = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain(dump(mode="json", by_alias=True, exclude_unset=True))
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
