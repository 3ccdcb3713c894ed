"""The vendor's own parsers of DSML replies, where they are here: a reply that its encoder writes is read as they read it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dsml_support import V4, V32, make
from hypothesis import given

from golden.profiles import PROFILES
from golden.vendor_encoders import has_encoder, parsed_reply
from renderers import RendererError
from renderers.testing import Conversation, replies
from renderers.testing.checks import reply_tokens
from renderers.testing.suite import Variants

MODELS = [model for model in (V32, V4) if has_encoder(model)]


@pytest.mark.parametrize("model", MODELS)
def test_replies_are_read_as_the_vendor_reads_them(model: str) -> None:
    variants = Variants(make(model))

    @given(replies(PROFILES[model]))
    def holds(example: tuple[Conversation, dict[str, Any]]) -> None:
        prompt, message = example
        renderer = variants(prompt.kwargs)
        try:
            tokens = reply_tokens(renderer, prompt, message)
        except RendererError:  # V3.2 takes no answer without reasoning in thinking mode
            return
        assert tokens is not None
        prompt_ids, reply = tokens
        found = renderer.parse_response(reply, prompt_ids=prompt_ids)
        expected = parsed_reply(model, renderer.decode(reply), prompt.kwargs)
        assert found.content == expected["content"]
        assert (found.reasoning_content or "") == expected["reasoning_content"]
        assert [(call.name, call.arguments) for call in found.tool_calls] == [
            (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in expected["tool_calls"]
        ]

    holds()
