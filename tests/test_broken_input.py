"""Input that broke the library once: each is a typed error that names the place, or works."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from renderers import (
    BridgeRefusal,
    ConfigError,
    DefaultRenderer,
    DefaultRendererConfig,
    MessageError,
    Renderer,
    TokenIdsTypeError,
    TokenizerError,
    ToolsError,
    create_renderer,
)

np = pytest.importorskip("numpy")

USER = {"role": "user", "content": "hi"}
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
    "{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}<|im_end|>{% endfor %}"
)


class _Function(BaseModel):
    name: str = "f"
    arguments: str = '{"a": 1}'


class _Call(BaseModel):
    id: str = "1"
    function: _Function = _Function()


class _Reply(BaseModel):
    """A message as the OpenAI SDK gives it."""

    role: str = "assistant"
    content: str | None = None
    tool_calls: list[_Call] = [_Call()]
    refusal: str | None = None


def wrap(template: str = TEMPLATE, **settings: Any) -> DefaultRenderer:
    """A DefaultRenderer for a template, on the golden tokenizer."""
    renderer = create_renderer("golden:qwen3", DefaultRendererConfig(**settings), chat_template=template)
    assert isinstance(renderer, DefaultRenderer)
    return renderer


@pytest.fixture(scope="module")
def qwen() -> Renderer[Any]:
    return create_renderer("golden:qwen3")


def nested(depth: int = 50_000) -> dict[str, Any]:
    """A value that is nested too deeply to be walked through."""
    top: dict[str, Any] = {}
    inner = top
    for _ in range(depth):
        inner["a"] = {}
        inner = inner["a"]
    return top


def call(arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}


def test_message_objects_of_an_sdk_are_taken_by_every_renderer(qwen: Renderer[Any]) -> None:
    for renderer in (qwen, wrap()):
        messages: list[Any] = [USER, _Reply()]
        assert "f" in renderer.decode(renderer.render_ids(messages))
        classes: list[Any] = [USER, _Reply]
        with pytest.raises(MessageError, match=r"messages\[1\]: a message is a dict"):
            renderer.render(classes)


def test_an_error_about_a_value_that_has_no_repr_is_still_that_error(qwen: Renderer[Any]) -> None:
    for content in ([nested()], [10**5000]):
        with pytest.raises(MessageError, match=r"messages\[0\].content"):
            qwen.render([{"role": "user", "content": content}])
    with pytest.raises(ToolsError, match=r"tools\[0\]"):
        qwen.render([USER], tools=[10**5000])  # type: ignore[list-item]  # wrong on purpose


@pytest.mark.parametrize(
    ("field", "value"), [("thinking", {"text": "Hm."}), ("reasoning", ["Hm."]), ("reasoning", 5), ("thinking", b"Hm.")]
)
def test_reasoning_that_is_no_text_is_refused_under_every_name(qwen: Renderer[Any], field: str, value: Any) -> None:
    if not isinstance(value, bytes):  # which no field takes
        qwen.render([{**USER, field: value}])  # no template prints a user's reasoning
    for text_before in ({}, {"reasoning": None}, {"reasoning_content": None}, {"reasoning_content": "Hm."}):
        reply = {"role": "assistant", "content": "Hi.", **text_before, field: value}
        with pytest.raises(MessageError, match=field) as caught:
            qwen.render([USER, reply])
        assert (caught.value.message_index, caught.value.field) == (1, field)
        prompt = qwen.render([USER], add_generation_prompt=True)
        with pytest.raises(MessageError, match=field):
            qwen.bridge(prompt, [13048, 151645], [USER, {**reply, "written_by": "another"}, USER])


def test_the_default_renderer_gives_such_reasoning_to_the_template() -> None:
    renderer = wrap("{% for m in messages %}{{ m.thinking.text }}{{ m.content }}{% endfor %}")
    reply = {"role": "assistant", "content": "Hi.", "thinking": {"text": "Hm. "}}
    assert renderer.decode(renderer.render([reply]).token_ids) == "Hm. Hi."


def test_the_default_renderer_names_the_field_that_is_nested_too_deeply() -> None:
    cyclic: dict[str, Any] = {}
    cyclic["a"] = cyclic
    for value in (nested(), cyclic):
        with pytest.raises(MessageError, match=r"messages\[1\].tool_calls\[0\].function.arguments"):
            wrap().render([USER, call(value)])
        with pytest.raises(MessageError, match=r"messages\[0\].extra"):
            wrap().render([{**USER, "extra": value}])


def test_the_default_renderer_writes_no_placeholders_for_arguments() -> None:
    for value in ({1}, b"x", object()):
        with pytest.raises(MessageError, match=r"arguments: .*not JSON serializable"):
            wrap().render([USER, call({"a": value})])
    renderer = wrap()  # rich objects that stand for JSON go in, as with transformers
    assert '{"a": 3}' in renderer.decode(renderer.render_ids([USER, call({"a": np.int64(3)})]))


def test_arrays_for_tools_and_numbers_for_prompts_are_typed_errors(qwen: Renderer[Any]) -> None:
    with pytest.raises(ToolsError, match="ndarray"):
        qwen.render([USER], tools=np.array([]))
    prompts: list[Any] = [np.array(5), iter([1])]
    for prompt in prompts:
        with pytest.raises(TokenIdsTypeError, match="prompt_ids"):
            qwen.parse_response([5], prompt_ids=prompt)


@pytest.mark.parametrize("template", [5, {"default": TEMPLATE}])
def test_a_template_is_text(template: Any) -> None:
    with pytest.raises(ConfigError, match="chat_template"):
        create_renderer("golden:qwen3", chat_template=template)


def test_template_variables_that_would_do_nothing_or_cannot_be_printed_are_refused() -> None:
    for name in ("messages", "tools", "add_generation_prompt", "strftime_now"):
        with pytest.raises(ConfigError, match=name):
            create_renderer("golden:qwen3", DefaultRendererConfig(), chat_template_kwargs={name: []})
    with pytest.raises(ConfigError, match="plain data"):
        create_renderer("golden:qwen3", DefaultRendererConfig(), chat_template_kwargs={"f": print})


def test_unknown_stop_tokens_are_named_at_once() -> None:
    with pytest.raises(TokenizerError, match=r"stop_tokens.*<\|nope\|>"):
        wrap(stop_tokens=("<|nope|>",))


def test_long_runs_of_combining_marks_take_linear_time() -> None:
    # The marks reorder, and one of them composes with the template's ">": no border inside the run is one.
    renderer = wrap()
    message = {"role": "user", "content": "\u0301" * 10_000 + "\u0338"}
    began = time.perf_counter()
    rendered = renderer.render([message])
    assert time.perf_counter() - began < 4  # it took eight
    assert len(rendered.message_indices) == len(rendered)


@pytest.mark.parametrize("text", [b"\xff\xfe", b"[" * 100_000], ids=["no UTF-8", "nested too deeply"])
def test_commands_refuse_unreadable_files_in_one_line(text: bytes, tmp_path: Path) -> None:
    testing = pytest.importorskip("typer.testing")
    from renderers.cli.app import app

    (tmp_path / "input.json").write_bytes(text)
    result = testing.CliRunner().invoke(app, ["render", "-m", "golden:qwen3", str(tmp_path / "input.json")])
    assert result.exit_code == 2
    assert "is no JSON" in result.output
    (tmp_path / "t.jinja").write_bytes(b"\xff")
    (tmp_path / "input.json").write_text(json.dumps([USER]), encoding="utf-8")
    arguments = ["render", "-m", str(tmp_path / "t.jinja"), "--tokenizer", "golden:qwen3", str(tmp_path / "input.json")]
    result = testing.CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "UTF-8" in result.output


def test_surrogates_in_a_bridges_tools_are_tools_that_the_prompt_does_not_show(qwen: Renderer[Any]) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    prompt = qwen.render([USER], tools=tools, add_generation_prompt=True)
    result = [{"role": "tool", "content": "18"}]
    completion = qwen.tokenizer.encode_ordinary("hi")
    broken = [{"type": "function", "function": {"name": "\ud800"}}]
    for previous in (prompt, prompt.token_ids):
        refusal = qwen.bridge(previous, completion, result, tools=broken)
        assert isinstance(refusal, BridgeRefusal)
        assert refusal.reason == "history_rewrite"
