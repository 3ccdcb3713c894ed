"""Tokenizers from folders and from the hub."""

from __future__ import annotations

import base64
import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import huggingface_hub
import pytest
from tiny_tokenizers import LLAMA_PATTERN, nfc_tokenizer, trained_tokenizer

from renderers.errors import MissingExtraError, TokenizerError
from renderers.tokenizers import adapt
from renderers.tokenizers.equivalence import ranks_of

if TYPE_CHECKING:
    from collections.abc import Callable

TOKENIZER = nfc_tokenizer()


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes a tokenizer folder with this configuration."""

    def write(config: dict[str, Any] | None = None, **templates: str) -> Path:
        TOKENIZER.save(str(tmp_path / "tokenizer.json"))
        if config is not None:
            (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        for name, template in templates.items():
            path = tmp_path / (
                "chat_template.jinja" if name == "default" else f"additional_chat_templates/{name}.jinja"
            )
            path.parent.mkdir(exist_ok=True)
            path.write_text(template, encoding="utf-8")
        return tmp_path

    return write


def test_a_folder(folder: Callable[..., Path]) -> None:
    path = folder(
        {"bos_token": {"content": "<|user|>"}, "eos_token": "<|end|>", "pad_token": None, "chat_template": "T"}
    )
    for name in (path, str(path)):
        adapter = adapt(name)
        assert adapter.name_or_path == str(path)
        assert adapter.chat_template == "T"
        assert adapter.named_special_tokens == {"bos_token": "<|user|>", "eos_token": "<|end|>"}
        assert adapter.source == str(path)
        assert adapter.fingerprint() == adapt(TOKENIZER).fingerprint()
    assert adapt(path, chat_template="U").chat_template == "U"


def test_a_folder_without_a_configuration(folder: Callable[..., Path]) -> None:
    adapter = adapt(folder())
    assert adapter.chat_template is None
    assert adapter.named_special_tokens == {}


@pytest.mark.parametrize(
    "value",
    [{"default": "D", "tool_use": "T"}, [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]],
)
def test_several_templates(folder: Callable[..., Path], value: Any) -> None:
    adapter = adapt(folder({"chat_template": value}))
    assert adapter.chat_template == "D"
    assert adapter.chat_templates == {"default": "D", "tool_use": "T"}
    in_files = adapt(folder({"chat_template": "C"}, default="F", tool_use="T2"))
    assert in_files.chat_templates == {"default": "F", "tool_use": "T2"}


def test_an_object_with_templates_as_transformers_has_them() -> None:
    """transformers tokenizers are told by what they hold."""
    tokenizer = SimpleNamespace(
        backend_tokenizer=TOKENIZER,
        chat_template={"default": "D", "rag": "R"},
        name_or_path="some/model",
        special_tokens_map={"eos_token": "<|end|>", "additional_special_tokens": ["<|user|>"]},
    )
    adapter = adapt(tokenizer)
    assert adapter.chat_templates == {"default": "D", "rag": "R"}
    assert adapter.name_or_path == "some/model"
    assert adapter.named_special_tokens == {"eos_token": "<|end|>"}
    assert adapter.source is tokenizer
    assert adapt(SimpleNamespace(_tokenizer=TOKENIZER)).special_tokens == adapter.special_tokens


def test_tokens_that_only_the_configuration_has_are_added(folder: Callable[..., Path]) -> None:
    size = adapt(TOKENIZER).vocabulary_size
    config = {
        "added_tokens_decoder": {
            str(size + 1): {"content": "<late>", "special": False, "lstrip": True},
            str(size): {"content": "<early>", "special": True},
            "0": {"content": "<|end|>"},
        },
        "pad_token": "<pad>",
        "additional_special_tokens": ["<more>", {"content": "<|user|>"}],
    }
    adapter = adapt(folder(config))
    new = {text: token_id for text, token_id in adapter.special_tokens.items() if token_id >= size}
    assert new == {"<early>": size, "<late>": size + 1, "<pad>": size + 2, "<more>": size + 3}
    assert not adapter.splits_at_special_tokens
    wrong = {"added_tokens_decoder": {str(size + 9): {"content": "<x>"}}}
    with pytest.raises(TokenizerError, match=r"'<x>' cannot have the ID"):
        adapt(folder(wrong))


def test_a_folder_pickles_by_its_name(folder: Callable[..., Path]) -> None:
    path = folder({"chat_template": "T"})
    adapter = adapt(path, chat_template="U")
    data = pickle.dumps(adapter)
    assert len(data) < 1000
    copy = pickle.loads(data)  # noqa: S301
    assert copy.chat_template == "U"
    assert copy.encode_ordinary("Hello <|user|>") == adapter.encode_ordinary("Hello <|user|>")
    trained_tokenizer(size=300).save(str(path / "tokenizer.json"))
    with pytest.raises(TokenizerError, match="differ from those"):
        pickle.loads(data)  # noqa: S301


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "holds neither tokenizer.json nor tiktoken.model"),
        ({"tokenizer.json": "{}"}, "cannot be read"),
        ({"tokenizer.json": "{}", "tokenizer_config.json": "{"}, "not valid JSON"),
        ({"tokenizer.json": "{}", "tokenizer_config.json": "[]"}, "no JSON object"),
        ({"tiktoken.model": "no base64!"}, "not a tiktoken vocabulary"),
        ({"tiktoken.model": "YQ== 0", "tokenization_x.py": "pat_str = make()"}, "pat_str"),
    ],
)
def test_folders_that_cannot_be_used(tmp_path: Path, files: dict[str, str], problem: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(TokenizerError, match=problem):
        adapt(tmp_path)
    with pytest.raises(TokenizerError, match="is a file"):
        adapt(Path(__file__))


FIRST, OTHERS = LLAMA_PATTERN.split(")|", 1)
TIKTOKEN_CLASS = f"""
class TikTokenTokenizer(Base):
    vocab_files_names = {{"vocab_file": "tiktoken.model"}}
    pat_str = "|".join([{FIRST + ")"!r}, {OTHERS!r}])
"""


@pytest.mark.parametrize("source", [TIKTOKEN_CLASS, f"class T:\n    pat_str = {LLAMA_PATTERN!r}", None])
def test_a_folder_like_kimis(tmp_path: Path, source: str | None) -> None:
    ranks = {token: rank for token, rank in ranks_of(trained_tokenizer(), ()).items() if rank < 400}
    lines = [f"{base64.b64encode(token).decode()} {rank}" for token, rank in ranks.items()]
    (tmp_path / "tiktoken.model").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = {
        "added_tokens_decoder": {"400": {"content": "[BOS]"}, "403": {"content": "<think>"}},
        "bos_token": "[BOS]",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    if source is not None:
        (tmp_path / "tokenization_tiny.py").write_text(source, encoding="utf-8")
    adapter = adapt(tmp_path)
    assert adapter.encoder == "custom"
    assert len(adapter.special_tokens) == 256
    assert adapter.special_tokens["<think>"] == 403
    assert adapter.special_tokens["<|reserved_token_401|>"] == 401
    assert adapter.vocabulary_size == 656
    assert adapter.named_special_tokens == {"bos_token": "[BOS]"}
    text = "[BOS]The words, <think>they're 12345</think> " + "中" * 3
    ids, offsets = adapter.encode_with_offsets(text)
    assert ids[0] == 400
    assert 403 in ids
    assert offsets[0] == (0, 5)
    assert adapter.decode_bytes(ids).decode() == text
    long = "x" * 60_000
    parts = ["x" * 25_000, "x" * 25_000, "x" * 10_000]
    assert adapter.encode_ordinary(long) == [token for part in parts for token in adapter.encode_ordinary(part)]
    copy = pickle.loads(pickle.dumps(adapter))  # noqa: S301
    assert copy.encode_with_offsets(text) == (ids, offsets)


def test_a_hub_id(folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder({"chat_template": "T"})
    asked = []

    def snapshot_download(name: str, *, allow_patterns: list[str]) -> str:
        asked.append(name)
        assert "tokenizer.json" in allow_patterns
        assert not any(pattern.endswith("safetensors") for pattern in allow_patterns)
        return str(path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    adapter = adapt("some/model")
    assert asked == ["some/model"]
    assert adapter.name_or_path == adapter.source == "some/model"
    assert pickle.loads(pickle.dumps(adapter)).special_tokens == adapter.special_tokens  # noqa: S301


def test_a_hub_id_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def snapshot_download(name: str, **_: Any) -> str:
        raise ConnectionError(f"no network for {name}")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    with pytest.raises(TokenizerError, match=r"'some/model' is neither a folder nor .* no network for some/model"):
        adapt("some/model")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match="huggingface_hub"):
        adapt("some/model")


def test_the_import_is_light_and_folders_need_no_transformers(folder: Callable[..., Path]) -> None:
    code = (
        "import sys; sys.modules['transformers'] = None; import renderers.tokenizers as t;"
        "heavy = {'tokenizers', 'tiktoken', 'huggingface_hub', 'torch', 'httpx'} & set(sys.modules); assert not heavy, heavy;"
        f"print(t.adapt({str(folder())!r}).encode_ordinary('Hello'))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == str(adapt(TOKENIZER).encode_ordinary("Hello"))
