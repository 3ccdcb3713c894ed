"""Runs another library in its own environment, asked line by line: `python peer.py renderers|tml`.

Each line is a JSON object with `op` and its arguments; each answer a JSON object with the processor seconds that the work
took and the number of tokens, or an error. This file imports nothing of the project.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
from typing import Any


class Renderers:
    """The package `renderers`."""

    def __init__(self, folder: str, model: str, template: str | None, **_: Any) -> None:
        transformers: Any = importlib.import_module("transformers")
        library: Any = importlib.import_module("renderers")
        tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
        tokenizer.chat_template, tokenizer.name_or_path = template, model
        self._renderer = library.create_renderer(tokenizer)

    def render(self, messages: Any, tools: Any) -> Any:
        return self._renderer.render(messages, tools=tools, add_generation_prompt=True).token_ids

    def bridge(self, prompt: Any, completion: Any, messages: Any, tools: Any) -> Any:
        return self._renderer.bridge_to_next_turn(prompt, completion, messages, tools=tools).token_ids

    def parse(self, token_ids: Any, prompt: Any, tools: Any) -> Any:
        self._renderer.parse_response(token_ids, tools=tools, prompt_ids=prompt)
        return token_ids


class Tml:
    """The package `tml-renderers`, which has tokenizers of its own. It is spared the declarations of tools."""

    def __init__(self, tml: str | None, **_: Any) -> None:
        library: Any = importlib.import_module("tml_renderers")
        if tml is None:
            raise LookupError("tml-renderers does not have this family")
        self._renderer = getattr(library.renderers, tml)()
        self._from_dicts = library.chat.OpenAIMessage.from_oss_messages

    def render(self, messages: Any, tools: Any) -> Any:
        for call in [call for message in messages for call in message.get("tool_calls", ())]:
            if isinstance(call["function"]["arguments"], dict):
                call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
        spans, _ = self._renderer.render_for_completion(self._from_dicts(messages))
        return [token_id for one in spans for token_id in one.span.tokens]


def main() -> None:
    """Answer until there are no more lines."""
    make = {"renderers": Renderers, "tml": Tml}[sys.argv[1]]
    peer: Renderers | Tml | None = None
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        operation = asked.pop("op")
        try:
            if operation == "load":
                peer = make(**asked)
                answer: dict[str, Any] = {}
            else:
                begin = time.process_time()
                token_ids = getattr(peer, operation)(**asked)
                answer = {"seconds": time.process_time() - begin, "tokens": len(token_ids)}
        except Exception as error:  # noqa: BLE001 - whatever the other library raises is its answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        with contextlib.redirect_stdout(answers):
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
