"""Folders with a `tiktoken.model`, as Kimi's on the hub: the tokens in a file, all the rest in a Python class.

The class is not run. What it does is here, and the one thing that differs between classes, their pattern, is read from
their source.
"""

from __future__ import annotations

import ast
import base64
import binascii
from pathlib import Path
from typing import TYPE_CHECKING, Any

from renderers.errors import TokenizerError
from renderers.tokenizers.tiktoken_adapter import MOST_CHARACTERS, cuts_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tiktoken import Encoding

TIKTOKEN_FILE = "tiktoken.model"

# IDs after those of the file, which are special tokens whether the configuration names them or not.
_RESERVED = 256

# The pattern of these classes, where a folder comes without its class.
_CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_PATTERN = "|".join(
    (
        r"[\p{Han}]+",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


class TiktokenFolder:
    """A tokenizer with the interface of the remote-code classes, and their IDs."""

    def __init__(self, model: Encoding, special_tokens: dict[str, int]) -> None:
        self.model = model
        self.special_tokens = special_tokens

    def encode(self, text: str, *, allow_special_tokens: bool = True) -> list[int]:
        """IDs of a text, cut as the remote-code classes cut it."""
        ids: list[int] = []
        for part in _parts(text):
            if allow_special_tokens:
                ids += self.model.encode(part, allowed_special="all")
            else:
                ids += self.model.encode_ordinary(part)
        return ids


def _parts(text: str) -> Iterator[str]:
    for start in range(0, len(text), MOST_CHARACTERS):
        part = text[start : start + MOST_CHARACTERS]
        position = 0
        for place in cuts_in(part):
            yield part[position:place]
            position = place
        yield part[position:]


def read_tiktoken_folder(folder: Path, config: Mapping[str, Any]) -> TiktokenFolder:
    """The tokenizer of a folder with a `tiktoken.model`. Raises TokenizerError."""
    from tiktoken import Encoding

    ranks = _read_ranks(folder / TIKTOKEN_FILE)
    listed = config.get("added_tokens_decoder") or {}
    names = {int(token_id): str(entry["content"]) for token_id, entry in listed.items()}
    reserved = range(len(ranks), len(ranks) + _RESERVED)
    special_tokens = {names.get(token_id, f"<|reserved_token_{token_id}|>"): token_id for token_id in reserved}
    model = Encoding(folder.name, pat_str=_read_pattern(folder), mergeable_ranks=ranks, special_tokens=special_tokens)
    return TiktokenFolder(model, special_tokens)


def _read_ranks(path: Path) -> dict[bytes, int]:
    """Tokens and their ranks: a line each, the token in base64."""
    ranks = {}
    try:
        for line in path.read_bytes().splitlines():
            if line:
                token, rank = line.split()
                ranks[base64.b64decode(token, validate=True)] = int(rank)
    except (ValueError, binascii.Error) as error:
        raise TokenizerError(f"{path} is not a tiktoken vocabulary: {error}") from error
    return ranks


def _read_pattern(folder: Path) -> str:
    """The splitting pattern of the folder's tokenizer class, read without running it."""
    sources = sorted(folder.glob("tokenization_*.py"))
    if not sources:
        return _PATTERN
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == "pat_str" for target in node.targets
            ):
                pattern = _constant_text(node.value)
                if pattern is not None:
                    return pattern
    raise TokenizerError(
        f"the splitting pattern (pat_str) cannot be read from {sources[0]}: load the tokenizer with transformers "
        "(trust_remote_code=True) and give the object"
    )


def _constant_text(node: ast.expr) -> str | None:
    """The text of a string literal, or of a string literal's join of a list of them."""
    try:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
            return str(ast.literal_eval(node.func.value)).join(ast.literal_eval(node.args[0]))
        return str(ast.literal_eval(node))
    except (ValueError, TypeError, IndexError):
        return None
