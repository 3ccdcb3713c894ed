"""The parts of a `tokenizers.Tokenizer`, as plain JSON."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from renderers.tokenizers.special_tokens import AddedToken

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokenizers import AddedToken as LibraryToken
    from tokenizers import Tokenizer

Component = dict[str, Any]
"""One normalizer or pre-tokenizer, with its settings, as tokenizer.json writes it."""

# Components whose lists of parts have different names in the JSON.
_SEQUENCE_FIELDS = ("normalizers", "pretokenizers")


def component_list(component: Any) -> list[Component]:
    """The steps of a normalizer or pre-tokenizer in order, nested sequences opened; empty where there is none.

    One that is written in Python cannot be described: it stands as `{"type": "Custom"}`.
    """
    if component is None:
        return []
    try:
        return _flatten(json.loads(component.__getstate__()))
    except Exception:  # noqa: BLE001 - the library raises a bare Exception for components written in Python
        return [{"type": "Custom"}]


def _flatten(component: Component) -> list[Component]:
    if component.get("type") != "Sequence":
        return [component]
    steps: list[Component] = []
    for field in _SEQUENCE_FIELDS:
        for part in component.get(field, ()):
            steps += _flatten(part)
    return steps


def added_tokens_of(library_tokens: Mapping[int, LibraryToken]) -> list[AddedToken]:
    """The added tokens of a tokenizer in the order of IDs, from those of the library."""
    return [
        AddedToken(
            text=token.content,
            token_id=token_id,
            special=token.special,
            lstrip=token.lstrip,
            rstrip=token.rstrip,
            single_word=token.single_word,
            normalized=token.normalized,
        )
        for token_id, token in sorted(library_tokens.items(), key=itemgetter(0))
    ]


def prepends_to_text(normalizer: list[Component], pre_tokenizer: list[Component]) -> bool:
    """Whether the tokenizer may write something before the text, so that its place in a longer text matters."""
    return (
        any(step["type"] == "Prepend" for step in normalizer)
        or any(step["type"] == "ByteLevel" and step.get("add_prefix_space", True) for step in pre_tokenizer)
        or any(
            step["type"] == "Metaspace"
            and step.get("prepend_scheme", "always" if step.get("add_prefix_space", True) else "never") != "never"
            for step in pre_tokenizer
        )
    )


def model_settings(tokenizer: Tokenizer) -> dict[str, Any]:
    """The model's kind and settings without its vocabulary, with the empty text and None made the same."""
    model = tokenizer.model
    names = (
        "dropout",
        "unk_token",
        "continuing_subword_prefix",
        "end_of_word_suffix",
        "fuse_unk",
        "byte_fallback",
        "ignore_merges",
    )
    settings: dict[str, Any] = {"type": type(model).__name__}
    for name in names:
        value = getattr(model, name, None)
        settings[name] = None if value == "" else value
    return settings
