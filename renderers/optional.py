"""Libraries that come with an extra, loaded when they are wanted."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from renderers.errors import MissingExtraError


def load_optional(module: str, extra: str, purpose: str) -> Any:
    """A module of an extra.

    Raises:
        MissingExtraError: its package is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(module.partition(".")[0], extra, purpose) from error
