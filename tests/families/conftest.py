"""Families are tested against the official templates and tokenizers: without these there is nothing to collect."""

from __future__ import annotations

from reference import HAS_ASSETS

collect_ignore_glob = [] if HAS_ASSETS else ["test_*.py"]
