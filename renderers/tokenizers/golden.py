"""The pruned tokenizers that come with the package: right for the golden conversations, wrong for other texts."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from renderers.errors import TokenizerError
from renderers.tokenizers.protocol import TokenizerAdapter

#: The special token by which a pruned tokenizer is known.
GOLDEN_ONLY = "<|golden-only: this tokenizer encodes only the golden texts as the official one does|>"
#: How to ask for one: `golden:qwen3`.
PREFIX = "golden:"


def golden_tokenizer(name: str) -> tuple[Path, str]:
    """The folder of the pruned tokenizer that `golden:NAME` means, and the model ID that it belongs to.

    Raises:
        TokenizerError: there is none of this name; the message lists those that exist.
    """
    root = Path(str(files("families"))) / "golden"
    folder = root / name.removeprefix(PREFIX)
    if not (folder / "tokenizer.json").is_file():
        known = sorted(PREFIX + path.parent.name for path in root.glob("*/tokenizer.json"))
        raise TokenizerError(f"there is no golden tokenizer {name!r}; there are {', '.join(known) or 'none'}")
    model: str = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))["model"]
    return folder, model


def refuse_golden(tokenizer: TokenizerAdapter) -> None:
    """Raise for a pruned tokenizer that was not asked for by name.

    Raises:
        TokenizerError: saying what it is, and how to ask for it.
    """
    if GOLDEN_ONLY in tokenizer.special_tokens:
        raise TokenizerError(
            "this is a pruned tokenizer: it encodes the golden conversations as the official one does, and other texts "
            "wrongly. Give the model's own tokenizer, or ask for this one by its name, such as 'golden:qwen3'"
        )
