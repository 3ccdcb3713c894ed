"""Exports that are loaded when they are first asked for: heavy modules take most of the time of an import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazy_exports(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """The `__getattr__` of a package.

    Args:
        package: its name.
        modules: the names that each of its modules gives.
    """
    home = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> object:
        module = home.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
