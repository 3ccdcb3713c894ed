"""Many conversations in memory, and the mapper for columns of data sets."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from renderers import DefaultRendererConfig, create_renderer
from renderers.batch import COLUMNS, RenderMapper, render_batch
from renderers.errors import ConfigError, ConversationError

GOLDEN = "golden:qwen3"
RENDERER = create_renderer(GOLDEN)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALL = {"type": "function", "function": {"name": "look", "arguments": {"place": "hello"}}}
CONVERSATIONS: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": "hi"}],
    [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
    [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": [CALL]}],
]


def test_render_batch_renders_each() -> None:
    for prompt in (False, True):
        found = render_batch(RENDERER, CONVERSATIONS, add_generation_prompt=prompt)
        assert found == [RENDERER.render(one, add_generation_prompt=prompt) for one in CONVERSATIONS]


def test_render_batch_takes_tools_of_all_or_of_one() -> None:
    own = {"messages": CONVERSATIONS[0], "tools": [TOOL]}
    with_tools = RENDERER.render(CONVERSATIONS[0], tools=[TOOL])
    assert render_batch(RENDERER, [own]) == [with_tools]
    assert render_batch(RENDERER, [CONVERSATIONS[0], {**own, "tools": []}], tools=[TOOL]) == [
        with_tools,
        RENDERER.render(CONVERSATIONS[0]),
    ]


def test_render_batch_says_which() -> None:
    with pytest.raises(ConversationError, match=r"conversations\[1\]: messages\[0\]\.role"):
        render_batch(RENDERER, [CONVERSATIONS[0], [{"role": "narrator"}]])
    with pytest.raises(ConversationError, match=r"conversations\[0\]: an object needs 'messages', found 'turns'"):
        render_batch(RENDERER, [{"turns": []}])


def expected(name: str, rendered: Any) -> Any:
    """A column's value, from the rendered tokens."""
    value = getattr(rendered, name)
    return [f"{one.kind}: {one.detail}" for one in value] if name == "warnings" else [*map(_plain, value)]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def as_json(rows: list[Any]) -> list[str]:
    """Each row as JSON text."""
    return [json.dumps(row) for row in rows]


def as_arrays(rows: list[Any]) -> Any:
    """Nested object arrays, as Ray's batches hold them."""

    def nested(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: nested(one) for name, one in value.items()}
        if isinstance(value, list):
            array = np.empty(len(value), dtype=object)
            array[:] = [nested(one) for one in value]
            return array
        return value

    return nested(rows)


@pytest.mark.parametrize("shape", [list, as_json, as_arrays])
def test_a_mapper_makes_columns(shape: Any) -> None:
    mapper = RenderMapper(GOLDEN, columns=list(COLUMNS), add_generation_prompt=True)
    batch = {"messages": shape(CONVERSATIONS), "tools": shape([[TOOL]] * 3), "id": [1, 2, 3]}
    made = mapper(batch)
    rendered = [RENDERER.render(one, tools=[TOOL], add_generation_prompt=True) for one in CONVERSATIONS]
    assert made == {name: [expected(name, one) for one in rendered] for name in COLUMNS}


def test_a_mapper_needs_no_tools_and_takes_other_columns() -> None:
    mapper = RenderMapper(GOLDEN, messages="chat", columns=["token_ids"])
    assert mapper({"chat": CONVERSATIONS})["token_ids"] == [RENDERER.render_ids(one) for one in CONVERSATIONS]


def test_options_are_those_of_create_renderer() -> None:
    mapper = RenderMapper(GOLDEN, thinking_retention="all", chat_template_kwargs={"enable_thinking": False})
    assert mapper.renderer.config.thinking_retention == "all"
    with pytest.raises(ConfigError, match="no column 'ids'"):
        RenderMapper(GOLDEN, columns=["ids"])


def test_a_mapper_pickles_as_its_recipe() -> None:
    """The renderer is made once in each process; a used mapper is as small, and has the same hash, as a new one."""
    mapper = RenderMapper(GOLDEN)
    before = pickle.dumps(mapper)
    assert mapper.renderer is pickle.loads(before).renderer  # noqa: S301 - our own
    assert pickle.dumps(mapper) == before
    assert len(before) < 1000
    code = (
        "import sys, pickle; mapper = pickle.load(sys.stdin.buffer);"
        "print(mapper({'messages': [[{'role': 'user', 'content': 'hi'}]]})['token_ids'])"
    )
    found = subprocess.run([sys.executable, "-c", code], input=before, capture_output=True, check=True).stdout
    assert json.loads(found) == [RENDERER.render_ids(CONVERSATIONS[0])]


def test_a_mapper_takes_a_tokenizer_object() -> None:
    tokenizer = Tokenizer(models.BPE({"h": 0, "i": 1}, []))
    config = DefaultRendererConfig()
    mapper = RenderMapper(tokenizer, config=config, chat_template="{% for m in messages %}{{ m.content }}{% endfor %}")
    again = pickle.loads(pickle.dumps(mapper))  # noqa: S301 - our own
    assert again({"messages": CONVERSATIONS[:1]})["token_ids"] == [[0, 1]]


def test_null_fields_of_messages_are_absent() -> None:
    row = [{"role": "user", "content": "hi", "tool_calls": None, "name": None, "reasoning_content": None}]
    assert RenderMapper(GOLDEN)({"messages": [row], "tools": [None]})["token_ids"] == [
        RENDERER.render_ids(CONVERSATIONS[0])
    ]


def with_nulls() -> dict[str, Any]:
    """A batch as Arrow unifies it: every object has the fields of all."""
    call = {"id": None, **CALL, "function": {"name": "look", "arguments": {"place": "hello", "time": None}}}
    messages = [*CONVERSATIONS[2][:1], {**CONVERSATIONS[2][1], "tool_calls": [call]}]
    function = {**TOOL["function"], "description": None}  # type: ignore[dict-item]  # a dict
    return {"messages": [messages], "tools": [[{**TOOL, "function": function}]]}


def test_null_fields_of_arguments_and_tools_are_refused_unless_said() -> None:
    batch = with_nulls()
    with pytest.raises(ConversationError, match=r"row 0 of the batch: arguments\.time is null.*JSON text"):
        RenderMapper(GOLDEN)({"messages": batch["messages"]})
    with pytest.raises(ConversationError, match=r"tools\[0\]\.function\.description is null"):
        RenderMapper(GOLDEN)({"messages": CONVERSATIONS[:1], "tools": batch["tools"]})
    dropped = RenderMapper(GOLDEN, null_fields="drop")(batch)["token_ids"]
    assert dropped == [RENDERER.render_ids(CONVERSATIONS[2], tools=[TOOL])]
    kept = RenderMapper(GOLDEN, null_fields="keep")(batch)["token_ids"]
    assert kept == [RENDERER.render_ids(batch["messages"][0], tools=batch["tools"][0])]
    assert kept != dropped


@pytest.mark.parametrize(
    ("batch", "problem"),
    [
        ({"chat": []}, "no column 'messages'; it has chat"),
        ({"messages": ["hi"]}, "row 0 of the batch: messages is text, but no JSON"),
        ({"messages": [[{"role": "user", "content": "hi"}], [{"role": "user"}, 5]]}, "row 1 of the batch"),
        ({"messages": [None]}, "row 0 of the batch"),
        ({"messages": [CONVERSATIONS[0]], "tools": ["{"]}, "tools is text, but no JSON"),
    ],
)
def test_a_row_that_cannot_be_rendered_is_named(batch: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConversationError, match=problem):
        RenderMapper(GOLDEN)(batch)
