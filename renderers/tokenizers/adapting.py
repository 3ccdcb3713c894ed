"""From what the user has to an adapter."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from renderers.errors import TokenizerError
from renderers.tokenizers.base import AdapterBase, TokenizerInfo
from renderers.tokenizers.huggingface import TokenizersAdapter, backend_of
from renderers.tokenizers.loading import chat_templates_of, read_info

if TYPE_CHECKING:
    from renderers.tokenizers.protocol import TokenizerAdapter

_ACCEPTED = (
    "a transformers fast tokenizer, a tokenizers.Tokenizer, a tiktoken.Encoding, a remote-code tokenizer around a "
    "tiktoken.Encoding (like Kimi's), the path of a folder with a tokenizer.json, or a hub id"
)


def adapt(tokenizer: Any, *, chat_template: str | None = None) -> TokenizerAdapter:
    """Give a tokenizer the one interface that the framework uses.

    `tokenizer` is a transformers fast tokenizer, a `tokenizers.Tokenizer`, a `tiktoken.Encoding`, a remote-code
    tokenizer around one (like Kimi's), the path of a folder, or a hub id. `chat_template` takes the place of the
    tokenizer's own templates.

    Raises TokenizerError where the object is none of these or the files cannot be used, and MissingExtraError where
    loading needs a package that is not installed.
    """
    if isinstance(tokenizer, AdapterBase):
        adapter = tokenizer
    elif isinstance(tokenizer, str | os.PathLike):
        adapter = _from_path(os.fspath(tokenizer))
    else:
        adapter = _from_object(tokenizer)
    if chat_template is not None:
        adapter = adapter.with_info(dataclasses.replace(adapter.info, chat_templates={"default": chat_template}))
    return adapter  # type: ignore[return-value]


def _from_object(tokenizer: Any) -> AdapterBase:
    backend = backend_of(tokenizer)
    if backend is None:
        raise TokenizerError(f"cannot use a {type(tokenizer).__name__} as a tokenizer: expected {_ACCEPTED}")
    return TokenizersAdapter(backend, source=tokenizer, info=_info_of(tokenizer))


def _info_of(tokenizer: Any) -> TokenizerInfo:
    named = getattr(tokenizer, "special_tokens_map", None) or {}
    return TokenizerInfo(
        name_or_path=str(getattr(tokenizer, "name_or_path", "") or ""),
        chat_templates=chat_templates_of(getattr(tokenizer, "chat_template", None)),
        named_special_tokens={name: str(text) for name, text in named.items() if isinstance(text, str)},
    )


def _from_path(name: str) -> AdapterBase:
    from tokenizers import Tokenizer  # noqa: PLC0415

    folder = Path(name)
    file = folder / "tokenizer.json"
    if not file.is_file():
        raise TokenizerError(f"{name!r} holds no tokenizer.json")
    return TokenizersAdapter(Tokenizer.from_file(str(file)), source=name, info=read_info(folder, name))
