"""Hypothesis profiles and the official tokenizers, for all tests.

`make test` runs the default profile: 200 examples a property, always the same. `make fuzz` sets FUZZ_EXAMPLES, and
with it the number of random examples.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from reference import HAS_ASSETS, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

_SLOW_MACHINES = (HealthCheck.too_slow,)

settings.register_profile(
    "default", max_examples=200, derandomize=True, deadline=None, suppress_health_check=_SLOW_MACHINES
)
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "5000")),
    derandomize=False,
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW_MACHINES,
)
settings.load_profile("fuzz" if "FUZZ_EXAMPLES" in os.environ else "default")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without the official assets, only the golden tier runs."""
    if HAS_ASSETS:
        return
    parity = [
        item
        for item in items
        if item.get_closest_marker("needs_assets") is not None
        or "official_tokenizer" in getattr(item, "fixturenames", ())
    ]
    config.hook.pytest_deselected(items=parity)
    items[:] = [item for item in items if item not in parity]


@pytest.fixture(scope="session")
def official_tokenizer() -> Callable[[str], Any]:
    """Gives the official tokenizer of a model ID, with its template. Each is loaded once."""
    return load_tokenizer
