"""Verdicts on disk, and when tiktoken is asked."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from sample_texts import TEXTS
from tiny_tokenizers import trained_tokenizer

from renderers.tokenizers import acceleration, adapt
from renderers.tokenizers.acceleration import Accelerator, has_long_run, longest_run
from renderers.tokenizers.equivalence import Verdict
from renderers.tokenizers.verdicts import CACHE_VARIABLE, cache_folder, load_verdict, store_verdict

if TYPE_CHECKING:
    from pathlib import Path

VERDICT = Verdict(pattern=r"\p{L}+|中", left_out=(3, 5))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test, not made yet."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("verdict", [VERDICT, Verdict(reason="no")])
def test_a_verdict_is_kept(folder: Path, verdict: Verdict) -> None:
    assert load_verdict("key") is None
    store_verdict("key", verdict)
    assert load_verdict("key") == verdict
    assert load_verdict("other") is None
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["key.json"]


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"reason": "", "pattern": "", "left_out": []}', "\x00"])
def test_what_cannot_be_understood_is_proved_again(folder: Path, content: str) -> None:
    store_verdict("key", VERDICT)
    path = next(folder.rglob("key.json"))
    path.write_text(content, encoding="utf-8")
    assert load_verdict("key") is None
    store_verdict("key", VERDICT)
    assert load_verdict("key") == VERDICT


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path) -> None:
    folder.write_text("a file where the folder should be", encoding="utf-8")
    store_verdict("key", VERDICT)
    assert load_verdict("key") is None
    assert adapt(trained_tokenizer(size=300)).encoder == "tiktoken"


def test_many_threads_may_keep_the_same_verdict(folder: Path) -> None:
    threads = [threading.Thread(target=store_verdict, args=("key", VERDICT)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load_verdict("key") == VERDICT
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 1


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder().as_posix() == "/x/token-renderers"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/h")
    assert cache_folder().as_posix() == "/h/.cache/token-renderers"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder().as_posix() == "/h/Library/Caches/token-renderers"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/l")
    assert cache_folder().as_posix() == "/l/token-renderers"


def test_a_kept_verdict_is_not_proved_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = trained_tokenizer(size=320)
    assert adapt(tokenizer).encoder == "tiktoken"
    assert folder.exists()

    def judge(*_: Any) -> Verdict:
        raise AssertionError("proved twice")

    monkeypatch.setattr(acceleration, "judge", judge)
    again = adapt(tokenizer)
    assert again.encoder == "tiktoken"
    again.warm_up()
    assert again.encode_ordinary("Hello world") == adapt(tokenizer).encode_ordinary("Hello world")


def test_the_key_covers_what_the_verdict_depends_on() -> None:
    tokenizer = trained_tokenizer(size=320)
    key = Accelerator(tokenizer, {"<a>": 5}).key
    assert key == Accelerator(tokenizer, {"<b>": 5}).key
    assert key == Accelerator(trained_tokenizer(size=320), {"<a>": 5}).key
    others = [Accelerator(tokenizer, {"<a>": 6}), Accelerator(trained_tokenizer(size=330), {"<a>": 5})]
    others.append(Accelerator(trained_tokenizer(size=320, pattern=r"\p{L}+|\s+"), {"<a>": 5}))
    assert len({key, *(other.key for other in others)}) == 4


def test_adapters_of_one_tokenizer_share_the_encoder() -> None:
    adapters: list[Any] = [adapt(trained_tokenizer(size=320)) for _ in range(2)]
    for adapter in adapters:
        adapter.warm_up()
    assert adapters[0]._accelerator._encoder is adapters[1]._accelerator._encoder is not None


@pytest.mark.parametrize("character", ["a", "中", " ", "\n", "=", "！", "\u0301", "\x00"])
def test_long_runs_are_seen(character: str) -> None:
    for before in ("", "x. ", "x. " * 333):
        assert has_long_run(before + character * 3000 + " y.", 2000)
    assert not has_long_run(character * 1999, 2000)


def test_ordinary_texts_have_no_long_runs() -> None:
    for text in TEXTS:
        assert not has_long_run((text + " z.\n") * 200, 1000)


@pytest.mark.parametrize("piece", ["a", " ", "中", "\n", "A", "=", "é", "0", "\u0301", "\x00", "ab", " \n", "a=", "'s"])
def test_long_runs_encode_alike(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter: Any = adapt(trained_tokenizer())
    adapter.warm_up()
    for text in (piece * 20_000, "x" + piece * 20_000 + "y"):
        expected = adapter._ordinary.encode(text, add_special_tokens=False).ids
        assert adapter.encode_ordinary(text) == expected
        monkeypatch.setattr(acceleration, "longest_run", lambda: 1000)
        assert adapter.encode_ordinary(text) == expected
        monkeypatch.undo()


def test_where_tiktoken_panics_the_library_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter: Any = adapt(trained_tokenizer())
    adapter.warm_up()
    expected = adapter.encode_ordinary("Hello")

    class PanicException(BaseException):
        """As pyo3 raises it."""

    def panic(*_: Any, **__: Any) -> list[int]:
        raise PanicException

    monkeypatch.setattr(adapter._accelerator._encoder.encoding, "encode", panic)
    assert adapter.encode_ordinary("Hello") == expected


def test_older_releases_of_tiktoken_get_shorter_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    for release in ("0.9.0", "0.12.1", "0.13.0", "1.0"):
        longest_run.cache_clear()
        monkeypatch.setattr(acceleration, "version", lambda _, release=release: release)
        limits.append(longest_run())
    longest_run.cache_clear()
    assert limits == [1000, 1000, 50_000, 50_000]


def test_a_process_that_was_forked_during_a_set_up_sets_up_its_own() -> None:
    code = """
import os, sys
from renderers import create_renderer
tokenizer = create_renderer("golden:qwen3").tokenizer
tokenizer._accelerator._lock.acquire()
child = os.fork()
if child == 0:
    tokenizer.warm_up()
    tokenizer.encode_ordinary("word " * 50_000)
    os._exit(0 if tokenizer._accelerator._settled else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)
