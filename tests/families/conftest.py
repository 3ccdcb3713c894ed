"""Families are tested against the official templates and tokenizers: without these there is nothing to collect."""

from __future__ import annotations

from golden.reference import HAS_ASSETS
from golden.vendor_encoders import has_encoders

collect_ignore_glob = [] if HAS_ASSETS else ["test_*.py"]
if not has_encoders():
    collect_ignore_glob.append("test_dsml_encoders.py")
