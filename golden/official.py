"""The official template or encoder of a model, and its official tokenizer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from golden import reference
from golden.scenario import Scenario


def models() -> frozenset[str]:
    """The models whose official tokenizers are in the assets; none without these."""
    return reference.models()


class Official:
    """One model's reference, from the assets."""

    def __init__(self, model: str) -> None:
        self.model = model
        entry = reference.entry(model)
        self.tokenizer_folder: str = entry["tokenizer"]
        self.template: str | None = reference.template_text(model)
        self.source = f"official template ({entry['confidence']})" if self.template else "the vendor's encoder"
        self.libraries = ("transformers", "tokenizers", "jinja2") if self.template else ("tokenizers",)
        #: OpenAI's library comes before the template, unless the settings ask for that.
        self._has_library = "harmony" in entry.get("encoder", "")
        if self._has_library:
            self.source = f'OpenAI\'s Harmony library; with reference="template" the {self.source}'
            self.libraries = (*self.libraries, "openai-harmony")

    @cached_property
    def tokenizer(self) -> Any:
        """A transformers tokenizer, with the template."""
        return reference.load_tokenizer(self.model)

    @cached_property
    def tokenizer_json(self) -> str:
        """The tokenizer's own file."""
        return (self.folder / "tokenizer.json").read_text(encoding="utf-8")

    @property
    def folder(self) -> Path:
        """The tokenizer's folder."""
        folder: Path = reference.ASSETS / "tokenizers" / self.tokenizer_folder
        return folder

    @property
    def tokenizer_sha256(self) -> str:
        """sha256 of that file."""
        return hashlib.sha256(self.tokenizer_json.encode()).hexdigest()

    @property
    def named_special_tokens(self) -> dict[str, str]:
        """`bos_token`, `eos_token` and the like."""
        return {name: text for name, text in self.tokenizer.special_tokens_map.items() if isinstance(text, str)}

    def text(self, scenario: Scenario, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool) -> str:
        """What the official implementation renders."""
        if scenario.vector is not None and not add_generation_prompt:
            raise ValueError(f"{scenario.name}: a vector has no render with a reply; give `completion`")
        given = [dict(message) for message in messages]
        tools = None if scenario.tools is None else [dict(tool) for tool in scenario.tools]
        settings = dict(scenario.settings)
        if self._has_library and settings.pop("reference", "harmony") == "harmony":
            settings["reference"] = "harmony"
            return self.decode(reference.reference_ids(self.model, given, tools, add_generation_prompt, settings))
        return reference.reference_text(self.model, given, tools, add_generation_prompt, settings)

    def encode(self, text: str) -> list[int]:
        """The official tokenizer over the whole text."""
        return reference.encode(self.model, text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of IDs, special tokens spelled out."""
        text: str = self.tokenizer.decode(
            list(token_ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def role_stop(self, role: str) -> str:
        """The token that ends the assistant's turn where a message of this role follows."""
        return reference.profile_of(self.model).stop_before([{"role": role}])
