"""Verdicts on disk, so that each is proved once a machine and not once a process."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from renderers.tokenizers.equivalence import Verdict

CACHE_VARIABLE = "RENDERERS_CACHE_DIR"


def cache_folder() -> Path:
    """Where verdicts are kept: the folder in `RENDERERS_CACHE_DIR`, else one in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(base)) / "token-renderers"  # noqa: PTH111 - Path.expanduser raises without a home


def load_verdict(key: str) -> Verdict | None:
    """The verdict that is kept under a key, or None; whatever cannot be read or understood is as if it were not there."""
    try:
        return _verdict_of(json.loads(_path(key).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _verdict_of(data: dict[str, Any]) -> Verdict:
    verdict = Verdict(
        reason=str(data["reason"]),
        pattern=str(data["pattern"]),
        left_out=tuple(map(int, data["left_out"])),
        line_starts=str(data["line_starts"]),
    )
    if verdict.proved and not verdict.pattern:
        raise ValueError("a proof without a pattern")
    return verdict


def store_verdict(key: str, verdict: Verdict) -> None:
    """Keep a verdict. A folder that cannot be written is no error: the next process proves again."""
    data = asdict(verdict)
    path = _path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written beside its place and moved there: another process never reads half a verdict.
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file)
            os.replace(temporary, path)  # noqa: PTH105
        except OSError:
            Path(temporary).unlink(missing_ok=True)


def _path(key: str) -> Path:
    return cache_folder() / "tiktoken-verdicts" / f"{key}.json"
