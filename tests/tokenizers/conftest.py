"""Verdicts of the tests stay out of the user's cache, and are proved anew when the proof changes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import renderers.tokenizers.equivalence
from renderers.tokenizers.verdicts import CACHE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROOF = ("equivalence.py", "splitting.py", "patterns.py", "character_sets.py", "components.py", "token_bytes.py")


@pytest.fixture(scope="session", autouse=True)
def verdict_cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of pytest's own for verdicts."""
    folder = Path(renderers.tokenizers.equivalence.__file__).parent
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in _PROOF)).hexdigest()
    cache = getattr(request.config, "cache", None)  # absent under `-p no:cacheprovider`
    name = f"tokenizer-verdicts-{digest[:16]}"
    chosen = cache.mkdir(name) if cache is not None else tmp_path_factory.mktemp(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(chosen))
        yield Path(chosen)
