"""Hypothesis profiles and the official tokenizers, for all tests.

`make test` runs the default profile: 200 examples a property, always the same. `make fuzz` sets FUZZ_EXAMPLES, and
with it the number of random examples.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from golden.reference import HAS_ASSETS, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

_SLOW_MACHINES = (HealthCheck.too_slow,)

try:
    from transformers.utils import chat_template_utils
except ImportError:
    _PREPARES_INPUTS = False
else:
    _PREPARES_INPUTS = hasattr(chat_template_utils, "_plain_template_data")

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
    """Without the official assets only the golden tier runs; with an old transformers, what that can be compared with."""
    dropped = [
        item
        for item in items
        if (not HAS_ASSETS and _needs_assets(item))
        or (not _PREPARES_INPUTS and item.get_closest_marker("current_transformers") is not None)
    ]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]


def _needs_assets(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return item.get_closest_marker("needs_assets") is not None or "official_tokenizer" in fixtures


@pytest.fixture(scope="session")
def official_tokenizer() -> Callable[[str], Any]:
    """Gives the official tokenizer of a model ID, with its template. Each is loaded once."""
    return load_tokenizer
