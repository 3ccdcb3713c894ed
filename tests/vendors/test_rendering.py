"""A vendor's conversation rendered for an open model: what can be read, and never what belongs to the vendor alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from renderers import DefaultRendererConfig, MessageError, create_renderer
from renderers.template import TracedTemplate
from renderers.testing.support import damage_allowed
from renderers.tokenizers.golden import golden_tokenizer
from renderers.vendors import ANTHROPIC, CHAT_COMPLETIONS, GEMINI, RESPONSES

GOLDEN = (
    "qwen3",
    "qwen3.5",
    "glm45",
    "glm5",
    "deepseek-v3",
    "deepseek-v3.1",
    "deepseek-v3.2",
    "deepseek-v4",
    "kimi-k2",
    "gpt-oss",
)
APIS = {api.provider: api for api in (ANTHROPIC, CHAT_COMPLETIONS, GEMINI, RESPONSES)}
#: Prints all that a template can see of a message.
EVERYTHING = "{% for m in messages %}{{ m | tojson }}{% for k in m %}{{ k }}{% endfor %}<|im_end|>{% endfor %}"
#: What stands in the hand-written payloads and is for their own provider alone.
MALFORMED = '{"city": "Bern"'
OPAQUE = (
    "EqQBCkYIBxgC",
    "EmwKAhgBEgy3va3pzix",
    "EosnCkYICxIM",
    "gAAAAA",
    "CpkBAdHtim8",
    "EooBCocBAXLI2nw",
    "encrypted",
)


def conversations() -> list[tuple[str, list[dict[str, Any]], Any]]:
    """The replies of the hand-written payloads, each as a conversation, and their requests without media."""
    found: list[tuple[str, list[dict[str, Any]], Any]] = []
    for path in sorted((Path(__file__).parent / "payloads").glob("*.json")):
        api = APIS[path.stem]
        for case in json.loads(path.read_text(encoding="utf-8")):
            if case["kind"] == "reply":
                message = api.read_reply(case["payload"]).message
                found.append((case["name"], [{"role": "user", "content": "q"}, message], None))
            elif case["kind"] == "request" and "vendor_block" not in json.dumps(case["messages"]):
                read = api.read_request(case["payload"])
                found.append((case["name"], read.messages, read.tools))
    return found


CONVERSATIONS = conversations()


@pytest.mark.parametrize("name", GOLDEN)
def test_families_see_what_can_be_read_and_nothing_else(name: str) -> None:
    golden_tokenizer(f"golden:{name}")
    renderer = create_renderer(f"golden:{name}")
    rendered = 0
    for _, messages, tools in CONVERSATIONS:
        without = [{key: value for key, value in message.items() if key != "vendor_blocks"} for message in messages]
        with damage_allowed():
            try:
                expected = renderer.render(without, tools=tools).token_ids
            except MessageError:
                with pytest.raises(MessageError):
                    renderer.render(messages, tools=tools)
                continue
            assert renderer.render(messages, tools=tools).token_ids == expected
        text = renderer.decode(expected)
        assert not [secret for secret in OPAQUE if secret in text]
        rendered += 1
    assert rendered > len(CONVERSATIONS) / 2


def test_a_template_that_prints_everything_sees_no_block() -> None:
    renderer = create_renderer("golden:qwen3", DefaultRendererConfig(), chat_template=EVERYTHING)
    for _, messages, tools in CONVERSATIONS:
        if any(
            one["function"]["arguments"] == MALFORMED for message in messages for one in message.get("tool_calls") or ()
        ):
            continue  # no template takes it
        with damage_allowed():
            text = renderer.decode(renderer.render(messages, tools=tools).token_ids)
        assert "vendor_blocks" not in text
        assert not [secret for secret in OPAQUE if secret in text]
    author = {"role": "assistant", "content": "a", "written_by": "claude"}
    assert "written_by" not in TracedTemplate(EVERYTHING).render([author]).text


def test_media_are_refused_and_not_passed_over() -> None:
    content = [{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]
    [message] = ANTHROPIC.read_request({"messages": [{"role": "user", "content": content}]}).messages
    with pytest.raises(MessageError, match=r"messages\[0\].content.*images and other media"):
        create_renderer("golden:qwen3").render([message])
