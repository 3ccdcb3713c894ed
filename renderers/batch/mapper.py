"""A picklable function over batches of columns: one renderer in each worker process."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from renderers.batch.columns import COLUMNS, NullFields, conversation_of
from renderers.errors import ConfigError, ConversationError, RendererError
from renderers.registry import create_renderer
from renderers.renderer import Renderer


class RenderMapper:
    """Maps a batch with a column of messages to columns of tokens.

    For `datasets.Dataset.map(mapper, batched=True, num_proc=N)` and `ray.data.Dataset.map_batches(mapper)`; depends on
    neither. What is sent to the workers is the recipe of the renderer; each process makes it once.

    Args:
        tokenizer: as for `create_renderer`; a model ID or a folder is cheapest to send.
        messages: the column with the messages: lists of objects, or JSON text.
        tools: the column with the tools, the same; a batch without it has no tools.
        columns: the columns to make, of `COLUMNS`.
        add_generation_prompt: open the assistant's turn at the end.
        null_fields: what to do with null fields inside tools and arguments, which Arrow may have added.
        options: further arguments of `create_renderer`: `config`, `model`, `thinking_retention`, ...

    Raises:
        ConfigError: for a column that does not exist.
    """

    def __init__(
        self,
        tokenizer: object,
        *,
        messages: str = "messages",
        tools: str = "tools",
        columns: Sequence[str] = ("token_ids", "sampled_mask", "message_indices"),
        add_generation_prompt: bool = False,
        null_fields: NullFields = "refuse",
        **options: Any,
    ) -> None:
        for name in columns:
            if name not in COLUMNS:
                raise ConfigError(f"there is no column {name!r}; there are {', '.join(COLUMNS)}")
        self._recipe = pickle.dumps(partial(create_renderer, tokenizer, **options))
        self._messages = messages
        self._tools = tools
        self._columns = tuple(columns)
        self._add_generation_prompt = add_generation_prompt
        self._null_fields: NullFields = null_fields

    @property
    def renderer(self) -> Renderer[Any]:
        """This process's renderer, made when it is first asked for."""
        return renderer_of(self._recipe)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """The columns of a batch.

        Raises:
            ConversationError: a row cannot be rendered; says which of the batch and why.
        """
        if self._messages not in batch:
            raise ConversationError(f"the batch has no column {self._messages!r}; it has {', '.join(batch)}")
        messages = batch[self._messages]
        tools = batch.get(self._tools)
        made: dict[str, list[Any]] = {name: [] for name in self._columns}
        for row, given in enumerate(messages):
            try:
                conversation, own_tools = conversation_of(
                    given, None if tools is None else tools[row], self._null_fields
                )
                rendered = self.renderer.render(
                    conversation, tools=own_tools, add_generation_prompt=self._add_generation_prompt
                )
            except RendererError as error:
                raise ConversationError(f"row {row} of the batch: {error}") from error
            for name, values in made.items():
                values.append(COLUMNS[name](rendered))
        return made


@lru_cache(maxsize=16)
def renderer_of(recipe: bytes) -> Renderer[Any]:
    """The renderer of a pickled recipe, a function without arguments; one a process."""
    renderer: Renderer[Any] = pickle.loads(recipe)()  # noqa: S301 - made by this module or its caller
    return renderer
