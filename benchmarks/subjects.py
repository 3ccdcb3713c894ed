"""The families that are measured, and their official tokenizers and templates."""

from __future__ import annotations

import tempfile
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from golden import official
from renderers import Renderer, create_renderer


@dataclass(frozen=True)
class Subject:
    """One family.

    Attributes:
        family: its name.
        model: the model whose tokenizer and template are used; or `golden:NAME`, which has no template.
        tml: what `tml-renderers` calls its renderer, or None.
        settings: of our renderer, so that it writes what the others write.
        as_text: whether the template takes arguments as JSON text.
    """

    family: str
    model: str
    tml: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    as_text: bool = False

    @cached_property
    def folder(self) -> Path:
        """The tokenizer's folder."""
        if self.model.startswith("golden:"):
            return GOLDEN / self.model.removeprefix("golden:")
        return official.Official(self.model).folder

    @cached_property
    def template(self) -> str | None:
        """The official chat template."""
        return None if self.model.startswith("golden:") else official.Official(self.model).template

    @cached_property
    def tokenizer(self) -> Any:
        """A transformers tokenizer."""
        from transformers import PreTrainedTokenizerFast

        tokenizer = PreTrainedTokenizerFast.from_pretrained(self.folder)
        tokenizer.chat_template = self.template
        tokenizer.name_or_path = self.model
        return tokenizer

    def new_renderer(self, **settings: Any) -> Renderer[Any]:
        """Our renderer, with empty caches and the fast encoder set up."""
        source = self.model if self.model.startswith("golden:") else self.tokenizer
        renderer = create_renderer(source, chat_template_kwargs=self.settings or None, **settings)
        renderer.tokenizer.warm_up()
        return renderer

    @cached_property
    def ranks_folder(self) -> Path:
        """A folder with gpt-oss's ranks in a file, where OpenAI's library looks for them without a network."""
        folder = Path(tempfile.mkdtemp(prefix="ranks-"))
        ranks = sorted(self.tiktoken._mergeable_ranks.items(), key=lambda item: item[1])  # noqa: SLF001 - no public name
        lines = b"".join([b64encode(token) + b" %d\n" % rank for token, rank in ranks])
        (folder / "o200k_base.tiktoken").write_bytes(lines)
        return folder

    @property
    def environment(self) -> dict[str, str]:
        """The variables that other libraries need."""
        return {"TIKTOKEN_ENCODINGS_BASE": str(self.ranks_folder)} if self.family == "gpt-oss" else {}

    @cached_property
    def tiktoken(self) -> Any:
        """A bare `tiktoken.Encoding`; None where there is none that is equal.

        It has the tokenizer's ranks and its pattern as it stands in its file, DeepSeek's three written as one.
        """
        from tiktoken import Encoding

        from renderers.tokenizers.components import component_list
        from renderers.tokenizers.huggingface import TokenizersAdapter
        from renderers.tokenizers.splitting import Splitting

        adapter = self.new_renderer().tokenizer
        ours = adapter.tiktoken_encoding if isinstance(adapter, TokenizersAdapter) else None
        if ours is None:
            return None
        pattern = Splitting(component_list(self.tokenizer.backend_tokenizer.pre_tokenizer)).plain_pattern
        ranks = ours._mergeable_ranks  # noqa: SLF001 - no public name
        return Encoding(self.family, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def is_known(model: str) -> bool:
    """Whether there is a tokenizer: one of the golden ones, or the official one of a model."""
    name = model.removeprefix("golden:")
    return (GOLDEN / name).is_dir() if name != model else model in official.models()


#: The tokenizers that the package carries.
GOLDEN = Path(official.__file__).parents[1] / "families" / "golden"


SUBJECTS: Sequence[Subject] = (
    Subject("Qwen3", "Qwen/Qwen3-8B", tml="Qwen3"),
    Subject("GLM-4.5", "zai-org/GLM-4.5"),
    Subject("DeepSeek-V3.1", "deepseek-ai/DeepSeek-V3.1", tml="DeepSeekV31", as_text=True),
    Subject("Kimi-K2", "moonshotai/Kimi-K2-Thinking", tml="KimiK2"),
    Subject("gpt-oss", "openai/gpt-oss-20b", tml="GptOss", settings={"conversation_start_date": "2025-08-05"}),
)
