"""Each parsing test runs with the small built-in tokenizer, and with Qwen3's where it is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from parsing_support import ADAPTERS, QWEN3, encode, parse_ids

from renderers.parsed import ParsedResponse
from renderers.parsing import BoundReplyGrammar


@pytest.fixture(scope="session", params=list(ADAPTERS))
def adapter(request: pytest.FixtureRequest) -> Any:
    """A tokenizer."""
    return ADAPTERS[request.param]()


@pytest.fixture(scope="session")
def bound(adapter: Any) -> BoundReplyGrammar:
    """Qwen3's grammar for it."""
    return QWEN3.bind(adapter)


@pytest.fixture(scope="session")
def parse(adapter: Any, bound: BoundReplyGrammar) -> Callable[..., ParsedResponse]:
    """Parses text, with all invariants checked; `opening` is how the prompt ends."""

    def parse_text(text: str, opening: str = "", stopped: bool | None = None, **options: Any) -> ParsedResponse:
        return parse_ids(bound, encode(adapter, text), stopped, opening_ids=encode(adapter, opening), **options)

    return parse_text
