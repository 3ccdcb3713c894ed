"""Tokenizers from folders and from the hub, without transformers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from renderers.errors import MissingExtraError, TokenizerError
from renderers.tokenizers.base import AdapterBase, TokenizerInfo
from renderers.tokenizers.huggingface import TokenizersAdapter
from renderers.tokenizers.tiktoken_adapter import WrappedTiktokenAdapter
from renderers.tokenizers.tiktoken_files import TIKTOKEN_FILE, read_tiktoken_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
GENERATION_FILE = "generation_config.json"
TEMPLATE_FILE = "chat_template.jinja"
MORE_TEMPLATES_FOLDER = "additional_chat_templates"

# What decides tokens and templates, and nothing of the model's weights.
_HUB_FILES = (
    TOKENIZER_FILE,
    CONFIG_FILE,
    "special_tokens_map.json",
    TIKTOKEN_FILE,
    "tokenization_*.py",
    GENERATION_FILE,
)
_HUB_TEMPLATES = (TEMPLATE_FILE, f"{MORE_TEMPLATES_FOLDER}/*.jinja")


def load_adapter(name: str) -> AdapterBase:
    """The adapter of a tokenizer folder or of a hub id. Raises TokenizerError and MissingExtraError."""
    folder = Path(name)
    if not folder.is_dir():
        if folder.exists():
            raise TokenizerError(f"{name!r} is a file: expected the folder of a tokenizer, or a hub id")
        folder = _download(name)
    return _load_folder(folder, name)


def _load_folder(folder: Path, name: str) -> AdapterBase:
    config = read_json(folder / CONFIG_FILE)
    if config is None:
        config = {}
    if not isinstance(config, dict):
        raise TokenizerError(f"{folder / CONFIG_FILE} holds no JSON object")
    info = _read_info(folder, name, config)
    adapter: AdapterBase
    if (folder / TOKENIZER_FILE).is_file():
        adapter = TokenizersAdapter(_read_tokenizer(folder / TOKENIZER_FILE, config), source=name, info=info)
    elif (folder / TIKTOKEN_FILE).is_file():
        adapter = WrappedTiktokenAdapter(read_tiktoken_folder(folder, config), source=name, info=info)
    else:
        raise TokenizerError(
            f"{name!r} holds neither {TOKENIZER_FILE} nor {TIKTOKEN_FILE}: load its tokenizer yourself and give the object"
        )
    return adapter.loaded_from(name, _digest(folder))


def reload_adapter(name: str, digest: str, info: TokenizerInfo) -> AdapterBase:
    """The adapter of a pickled name. Raises TokenizerError where the files are not those of then."""
    adapter = load_adapter(name)
    if adapter.files_digest != digest:
        raise TokenizerError(f"the tokenizer files of {name!r} differ from those with which the renderer was pickled")
    return adapter.with_info(info)


def _digest(folder: Path) -> str:
    """sha256 of the files that decide token IDs."""
    digest = hashlib.sha256()
    for name in (TOKENIZER_FILE, TIKTOKEN_FILE, CONFIG_FILE):
        if (folder / name).is_file():
            digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def _download(name: str) -> Path:
    """The tokenizer files of a hub id, from the hub or from its cache on disk."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise MissingExtraError("huggingface_hub", "transformers", f"loading {name!r} from the hub") from None
    patterns = [*_HUB_FILES, *_HUB_TEMPLATES]
    try:
        return Path(snapshot_download(name, allow_patterns=patterns))
    except Exception as error:
        # Invalid names, missing repositories, no network, no access: the library has an exception for each.
        raise TokenizerError(
            f"{name!r} is neither a folder nor a tokenizer that the hub or its cache on disk has: {' '.join(str(error).split())}"
        ) from error


def _read_tokenizer(path: Path, config: Mapping[str, Any]) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises a bare Exception
        raise TokenizerError(f"{path} cannot be read: {error}") from error
    _add_tokens_of_config(tokenizer, config)
    return tokenizer


def _add_tokens_of_config(tokenizer: Tokenizer, config: Mapping[str, Any]) -> None:
    """Add the tokens that only the configuration names, as transformers does when it loads a folder."""
    from tokenizers import AddedToken

    present = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    listed = config.get("added_tokens_decoder") or {}
    for token_id, entry in sorted((int(token_id), entry) for token_id, entry in listed.items()):
        if entry["content"] in present:
            continue
        flags = {name: entry.get(name, False) for name in ("single_word", "lstrip", "rstrip", "normalized", "special")}
        tokenizer.add_tokens([AddedToken(entry["content"], **flags)])
        present.add(entry["content"])
        if tokenizer.token_to_id(entry["content"]) != token_id:
            raise TokenizerError(
                f"the token {entry['content']!r} cannot have the ID {token_id} that {CONFIG_FILE} gives it"
            )
    named = [*named_special_tokens_of(config).values(), *_more_special_tokens(config)]
    missing = [text for text in dict.fromkeys(named) if text not in present]
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in missing])


def _more_special_tokens(config: Mapping[str, Any]) -> list[str]:
    """Special tokens that the configuration lists without a name."""
    listed = config.get("additional_special_tokens") or config.get("extra_special_tokens") or []
    entries = listed.values() if isinstance(listed, Mapping) else listed
    return [str(entry["content"] if isinstance(entry, Mapping) else entry) for entry in entries]


def chat_templates_of(value: Any) -> dict[str, str]:
    """Chat templates by name, from a tokenizer's `chat_template`: a text, a dict, or a list of name and template."""
    if not value:
        return {}
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, Mapping):
        return {str(name): str(template) for name, template in value.items()}
    return {str(entry["name"]): str(entry["template"]) for entry in value}


def named_special_tokens_of(config: Mapping[str, Any]) -> dict[str, str]:
    """`bos_token`, `eos_token`, ... of a tokenizer_config.json, where each is a text or the description of a token."""
    named = {}
    for name, value in config.items():
        if not name.endswith("_token"):
            continue
        text = value.get("content") if isinstance(value, Mapping) else value
        if isinstance(text, str):
            named[name] = text
    return named


def _read_info(folder: Path, name_or_path: str, config: Mapping[str, Any]) -> TokenizerInfo:
    """Templates and named tokens of a tokenizer folder."""
    templates = chat_templates_of(config.get("chat_template"))
    # Templates in files of their own win, as in transformers.
    if (folder / TEMPLATE_FILE).is_file():
        templates = {"default": (folder / TEMPLATE_FILE).read_text(encoding="utf-8")}
    for path in sorted((folder / MORE_TEMPLATES_FOLDER).glob("*.jinja")):
        templates[path.stem] = path.read_text(encoding="utf-8")
    return TokenizerInfo(name_or_path, templates, named_special_tokens_of(config), generation_stop_ids_of(folder))


def generation_stop_ids_of(folder: Path) -> tuple[int, ...]:
    """The `eos_token_id` of a folder's `generation_config.json`: one ID or several, or none where there is no file."""
    config = read_json(folder / GENERATION_FILE)
    found = config.get("eos_token_id") if isinstance(config, dict) else None
    ids = found if isinstance(found, list) else [found]
    return tuple(token_id for token_id in ids if isinstance(token_id, int))


def read_json(path: Path) -> Any:
    """The JSON value in a file, or None where there is no such file. Raises TokenizerError where it is not JSON."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerError(f"{path} is not valid JSON: {error}") from error
