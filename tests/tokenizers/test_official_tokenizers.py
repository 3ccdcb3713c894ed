"""The official tokenizers: our IDs, those of tokenizers, and those of transformers. Needs the assets."""

from __future__ import annotations

import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_texts import TEXTS, fuzzed_text
from tiny_tokenizers import without_added_tokens
from tokenizers import Tokenizer

from golden.reference import ASSETS
from renderers.tokenizers import adapt

FOLDERS = sorted(path.parent for path in (ASSETS / "tokenizers").glob("*/tokenizer.json"))
KIMI = ASSETS / "tokenizers" / "kimi-k2"

pytestmark = pytest.mark.needs_assets

SPELLED = (
    "<think>", "</think>", "<|im_end|>", "<|im_start|>", "<tool_call>", "<|user|>", "/nothink", "<｜User｜>", "｜DSML｜",
    "<|eot_id|>", "<|endoftext|>", "]~b]", "[e~[", "[EOS]", "<|end|>", "<｜begin▁of▁sentence｜>",
)  # fmt: skip

#: For each kind of character that the patterns tell apart one, and the letters whose capital is a surprise.
KINDS = "aAs1 \n\r\t!'/\u0301中é\u00a0\u017f\u01c5\u00bd\U00011dca"

FUZZ = "FUZZ_EXAMPLES" in os.environ

# Loading a tokenizer three times takes long. These stand for the others, except in a fuzz run.
THOROUGH = {path.name for path in FOLDERS} if FUZZ else {"deepseek-v3", "kimi-k2", "qwen3"}


class Official:
    """One tokenizer as transformers loads it, adapted, and without its added tokens."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        self.folder = folder
        self.transformers: Any = AutoTokenizer.from_pretrained(folder)
        self.adapter: Any = adapt(self.transformers)
        self.slow: Any = adapt(self.transformers)
        self.adapter.warm_up()
        backend = self.transformers._tokenizer
        if folder.name in THOROUGH:
            self.plain = without_added_tokens(Tokenizer.from_file(str(folder / "tokenizer.json")))
        else:
            self.plain = Tokenizer(backend.model)
            self.plain.pre_tokenizer = backend.pre_tokenizer
            if backend.normalizer is not None:
                self.plain.normalizer = backend.normalizer

    def plain_ids(self, text: str) -> list[int]:
        return list(self.plain.encode(text, add_special_tokens=False).ids)


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def official(request: pytest.FixtureRequest) -> Official:
    """Each tokenizer in turn; pytest runs all tests of one before it loads the next."""
    return Official(request.param)


def test_tiktoken_encodes_all_of_them(official: Official) -> None:
    assert official.adapter.encoder == "tiktoken"
    assert official.adapter._accelerator._encoder is not None


@pytest.mark.parametrize("official", [path for path in FOLDERS if path.name in THOROUGH], indirect=True)
def test_a_folder_loads_as_transformers_loads_it(official: Official) -> None:
    adapter = adapt(official.folder)
    assert adapter.fingerprint() == official.adapter.fingerprint()
    assert adapter.named_special_tokens == official.adapter.named_special_tokens
    assert adapter.special_tokens == official.adapter.special_tokens


def test_real_text(official: Official) -> None:
    texts = [*TEXTS, *SPELLED, _own_source()]
    expected = [official.plain_ids(text) for text in texts]
    assert official.adapter.encode_ordinary_batch(texts) == expected
    assert official.slow.encode_ordinary_batch(texts) == expected
    for text in texts:
        reference = official.transformers(text, add_special_tokens=False)["input_ids"]
        assert official.adapter.encode_with_offsets(text)[0] == reference


def _own_source() -> str:
    folder = Path(adapt.__code__.co_filename).parent
    return "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))


def test_every_short_text_of_characters_of_all_kinds(official: Official) -> None:
    texts = ["".join(one) for length in range(1, 5 if FUZZ else 4) for one in product(KINDS, repeat=length)]
    encoded = official.plain.encode_batch(texts, add_special_tokens=False)
    assert official.adapter.encode_ordinary_batch(texts) == [list(one.ids) for one in encoded]


@given(text=fuzzed_text(*SPELLED))
def test_fuzz(official: Official, text: str) -> None:
    adapter = official.adapter
    expected = official.plain_ids(text)
    assert adapter.encode_ordinary(text) == expected
    assert not set(adapter.special_tokens.values()) & set(expected)
    reference = official.transformers._tokenizer.encode(text, add_special_tokens=False)
    assert adapter.encode_with_offsets(text)[0] == reference.ids
    assert adapter.encode_batch([text, "x", text]) == [reference.ids, official.plain_ids("x"), reference.ids]
    ids: list[int] = []
    position = 0
    for start, end, token_id in adapter.find_special_tokens(text):
        ids += [*adapter.encode_ordinary(text[position:start]), token_id]
        position = end
    assert ids + adapter.encode_ordinary(text[position:]) == reference.ids
    assert adapter.decode_bytes(reference.ids).decode() == adapter.normalize(text)


@given(text=st.lists(fuzzed_text(*SPELLED), min_size=2, max_size=5).map("\n".join))
def test_a_text_may_be_cut_where_a_line_starts(official: Official, text: str) -> None:
    adapter = official.adapter
    whole = adapter.encode_batch([text])
    for place in range(1, len(text)):
        if text[place - 1] == "\n" and text[place] in adapter.line_starts:
            before, after = adapter.encode_batch([text[:place], text[place:]])
            assert [before + after] == whole


def test_where_lines_start_is_known(official: Official) -> None:
    # DeepSeek's patterns leave characters without a match, and that is more than the proof can say.
    assert bool(official.adapter.line_starts) != official.folder.name.startswith("deepseek")
    assert official.slow.line_starts == "", "nothing is proved for the sake of it"


def test_tokens_that_are_left_out_are_reached_by_no_text(official: Official) -> None:
    left_out = official.adapter._accelerator.verdict.left_out
    for token_id in left_out:
        if token_id in official.adapter.special_tokens.values():
            continue
        text = official.adapter.token_bytes(token_id).decode("utf-8", "ignore")
        for around in (text, f" {text}", f"{text}{text}", f"a{text}."):
            assert official.adapter.encode_ordinary(around) == official.plain_ids(around)


def test_every_token_by_itself(official: Official) -> None:
    """The text of each token (of some, while this is no fuzz run) encodes alike."""
    step = 1 if FUZZ else 31
    texts = []
    for token_id in range(0, official.adapter.vocabulary_size, step):
        token = official.adapter.token_bytes(token_id)
        if token.decode("utf-8", "ignore").encode() == token:
            texts.append(token.decode())
    encodings = official.plain.encode_batch_fast(texts, add_special_tokens=False)
    expected = [encoding.ids for encoding in encodings]
    assert official.adapter.encode_ordinary_batch(texts) == expected


def test_special_tokens(official: Official) -> None:
    adapter = official.adapter
    assert adapter.splits_at_special_tokens
    overlapping = {"deepseek-v3.2", "deepseek-v4", "minimax-m2"}
    assert adapter.special_tokens_can_overlap == (official.folder.name in overlapping)
    everything = "x".join(adapter.special_tokens)
    ids = official.transformers(everything, add_special_tokens=False)["input_ids"]
    found = [token_id for _, _, token_id in adapter.find_special_tokens(everything)]
    assert found == [token_id for token_id in ids if token_id in set(adapter.special_tokens.values())]
    assert adapter.vocabulary_size == 1 + max(official.transformers.get_vocab().values())
    for token_id in (0, 1000, adapter.vocabulary_size - 1):
        assert adapter.decode_bytes([token_id]).decode("utf-8", "replace") == official.transformers.decode([token_id])
    named = {name: text for name, text in official.transformers.special_tokens_map.items() if isinstance(text, str)}
    assert adapter.named_special_tokens == named


@pytest.mark.parametrize("piece", ["a", " ", "中", "\n", "\u200b", "カ・"])
def test_long_runs(official: Official, piece: str) -> None:
    text = piece * 20_000
    assert official.adapter.encode_ordinary(text) == official.plain_ids(text)


def test_kimis_own_vocabulary_file(tmp_path: Path) -> None:
    """A folder with only `tiktoken.model`, as on the hub, encodes as its tokenizer.json."""
    (tmp_path / "tiktoken.model").symlink_to(KIMI / "tiktoken.model")
    official = adapt(KIMI)
    names = {str(token_id): {"content": text} for text, token_id in official.special_tokens.items()}
    config = {"added_tokens_decoder": names}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    adapter = adapt(tmp_path)
    assert adapter.special_tokens == official.special_tokens
    for text in (*TEXTS, *SPELLED, "<|im_user|>user<|im_middle|>中文 <think>x</think>[EOS]"):
        assert adapter.encode_ordinary(text) == official.encode_ordinary(text)
        assert adapter.encode_with_offsets(text) == official.encode_with_offsets(text)
