"""From what the user has to an adapter."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from renderers.errors import TokenizerError
from renderers.tokenizers.base import AdapterBase, TokenizerInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from renderers.tokenizers.protocol import TokenizerAdapter

_ACCEPTED = (
    "a transformers fast tokenizer, a tokenizers.Tokenizer, a tiktoken.Encoding, a remote-code tokenizer around a "
    "tiktoken.Encoding (like Kimi's), the path of a tokenizer's folder, or a hub id"
)


def adapt(
    tokenizer: Any, *, chat_template: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> TokenizerAdapter:
    """Give a tokenizer the one interface that the framework uses.

    `tokenizer` is a transformers fast tokenizer, a `tokenizers.Tokenizer`, a `tiktoken.Encoding`, a remote-code
    tokenizer around one (like Kimi's), the path of a folder, or a hub id. The tokenizer of a folder is what its files
    say: `tokenizer.json` with the tokens that `tokenizer_config.json` adds, or `tiktoken.model`. It is the tokenizer
    of this moment that counts: tokens that are added to the object later are not seen.

    `chat_template` takes the place of the tokenizer's own templates. `special_tokens` (text and ID) takes the place of
    the special tokens of a `tiktoken.Encoding`.

    Raises TokenizerError where the object is none of these or the files cannot be used, and MissingExtraError where
    loading needs a package that is not installed.
    """
    adapter = _adapter_of(tokenizer, special_tokens)
    if chat_template is not None:
        adapter = adapter.with_info(dataclasses.replace(adapter.info, chat_templates={"default": chat_template}))
    return adapter  # type: ignore[return-value] # mypy: the subclasses fulfil the protocol, the base class does not


def _adapter_of(tokenizer: Any, special_tokens: Mapping[str, int] | None) -> AdapterBase:
    # Imported here, and not above, so that `import renderers` stays light.
    from renderers.tokenizers.huggingface import TokenizersAdapter, backend_of
    from renderers.tokenizers.loading import load_adapter
    from renderers.tokenizers.tiktoken_adapter import (
        TiktokenAdapter,
        WrappedTiktokenAdapter,
        is_encoding,
        is_wrapped_encoding,
    )

    if is_encoding(tokenizer):
        return TiktokenAdapter(tokenizer, source=tokenizer, info=TokenizerInfo(), special_tokens=special_tokens)
    if special_tokens is not None:
        raise TokenizerError(
            "special_tokens can only be given for a tiktoken.Encoding: other tokenizers have their own"
        )
    if isinstance(tokenizer, AdapterBase):
        return tokenizer
    if isinstance(tokenizer, str | os.PathLike):
        return load_adapter(os.fspath(tokenizer))
    backend = backend_of(tokenizer)
    if backend is not None:
        return TokenizersAdapter(backend, source=tokenizer, info=_info_of(tokenizer))
    if is_wrapped_encoding(tokenizer):
        return WrappedTiktokenAdapter(tokenizer, source=tokenizer, info=_info_of(tokenizer))
    slow = " (a slow tokenizer)" if getattr(tokenizer, "is_fast", None) is False else ""
    raise TokenizerError(f"cannot use a {type(tokenizer).__name__}{slow} as a tokenizer: expected {_ACCEPTED}")


def _info_of(tokenizer: Any) -> TokenizerInfo:
    """What a transformers tokenizer knows beside its tokens."""
    from renderers.tokenizers.loading import chat_templates_of, generation_stop_ids_of

    named = getattr(tokenizer, "special_tokens_map", None) or {}
    name = str(getattr(tokenizer, "name_or_path", "") or "")
    return TokenizerInfo(
        name_or_path=name,
        chat_templates=chat_templates_of(getattr(tokenizer, "chat_template", None)),
        named_special_tokens={name: str(text) for name, text in named.items() if isinstance(text, str)},
        generation_stop_ids=generation_stop_ids_of(_model_folder(name)) if name else (),
    )


def _model_folder(name: str) -> Path:
    """Where a tokenizer's model has its files: the folder of that name, or of that hub ID in the cache on disk."""
    from renderers.tokenizers.loading import GENERATION_FILE

    folder = Path(name)
    hub = sys.modules.get("huggingface_hub")  # whoever loaded a tokenizer from the hub has imported it
    if hub is None or folder.is_dir():
        return folder
    try:
        cached = hub.try_to_load_from_cache(name, GENERATION_FILE)
    except ValueError:  # no name that the hub could have
        return folder
    return Path(cached).parent if isinstance(cached, str) else folder
