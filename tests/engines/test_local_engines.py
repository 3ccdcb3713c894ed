"""The stand-in engine, the script, and the parameters that they share with all engines."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from renderers import create_renderer
from renderers.engines import (
    EngineRequestError,
    FinishReason,
    PromptTooLongError,
    RandomEngine,
    SamplingParams,
    ScriptedReplies,
)
from renderers.errors import ConfigError, MissingExtraError

RENDERER = create_renderer("golden:qwen3")
TEXT = "<think>\nLook.\n</think>\n\nhello hello\n<tool_call>\n{}\n</tool_call><|im_end|>"


def reply_ids(text: str = TEXT) -> list[int]:
    """A reply's own tokens."""
    ids: list[int] = RENDERER.tokenizer.encode_with_offsets(text)[0]
    return ids


def test_a_random_engine_samples_uniformly_and_says_so() -> None:
    async def run() -> None:
        engine = RandomEngine(50, seed=1)
        found = await engine.generate([1], SamplingParams(2000))
        assert found.finish_reason is FinishReason.LENGTH
        assert set(found.token_ids) == set(range(50))
        assert set(found.logprobs) == {-math.log(50)}
        assert (await engine.generate([1], SamplingParams(9))) != (await engine.generate([1], SamplingParams(9)))
        seeded = SamplingParams(9, seed=4)
        assert (await engine.generate([1], seeded)) == (await engine.generate([1], seeded))
        stopped = await engine.generate([1], SamplingParams(2000, [7]))
        assert stopped.token_ids.index(7) == len(stopped.token_ids) - 1
        assert stopped.finish_reason is FinishReason.STOP
        assert (await engine.generate([1], SamplingParams(3, temperature=0))).token_ids == [0, 0, 0]

    asyncio.run(run())


def test_the_context_ends() -> None:
    engine = RandomEngine(50, max_context=10)
    assert len(asyncio.run(engine.generate([1] * 8, SamplingParams(9))).token_ids) == 2
    with pytest.raises(PromptTooLongError, match="10 tokens leaves no room in a context of 10"):
        asyncio.run(engine.generate([1] * 10, SamplingParams(9)))


def test_a_local_engine_has_no_parameters_of_its_own() -> None:
    with pytest.raises(ConfigError, match="'logit_bias'"):
        asyncio.run(RandomEngine(5).generate([1], SamplingParams(9, extra={"logit_bias": {}})))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"max_tokens": 0}, "max_tokens must be at least 1, found 0"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": -1}, "None for all tokens"),
        ({"stop_token_ids": ["<|im_end|>"]}, "stop_token_ids"),
    ],
)
def test_parameters_that_no_engine_takes(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        SamplingParams(**{"max_tokens": 1, **fields})


@settings(max_examples=settings().max_examples // 10)
@given(seed=st.integers(0, 2**32), freedom=st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_a_script_is_spelled_exactly_in_other_tokens(seed: int, freedom: float) -> None:
    ids = reply_ids()
    script = ScriptedReplies(RENDERER.tokenizer, [ids, ids], freedom=freedom, seed=seed)
    engine = RandomEngine(RENDERER.tokenizer.vocabulary_size, allowed_tokens=script, seed=seed)
    for _ in range(2):
        found = asyncio.run(engine.generate([1], SamplingParams(500, RENDERER.get_stop_token_ids())))
        assert RENDERER.decode(found.token_ids) == TEXT
        assert found.finish_reason is FinishReason.STOP
        special = set(RENDERER.tokenizer.special_tokens.values())
        assert [one for one in found.token_ids if one in special] == [one for one in ids if one in special]
        assert freedom or found.token_ids == ids
    with pytest.raises(EngineRequestError, match="no further reply"):
        script([1], [])


def test_more_freedom_is_less_canonical() -> None:
    ids = reply_ids("hello " * 40 + "<|im_end|>")
    lengths = []
    for freedom in (0.0, 0.3, 1.0):
        script = ScriptedReplies(RENDERER.tokenizer, [ids], freedom=freedom)
        engine = RandomEngine(RENDERER.tokenizer.vocabulary_size, allowed_tokens=script, seed=7)
        lengths.append(len(asyncio.run(engine.generate([1], SamplingParams(500, RENDERER.stop_ids))).token_ids))
    assert all(shorter < longer for shorter, longer in pairwise(lengths))


def test_engines_are_imported_when_they_are_asked_for() -> None:
    code = (
        "import sys, renderers.engines as e; e.RandomEngine; "
        "print(' '.join({name.split('.')[0] for name in sys.modules} & {'httpx', 'httpx2', 'torch', 'transformers'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
    import renderers.engines

    assert renderers.engines.__all__ == dir(renderers.engines) == sorted(renderers.engines.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = renderers.engines.nothing


@pytest.mark.parametrize(
    ("missing", "engine", "extra"),
    [(["httpx2", "httpx"], "VllmEngine", "engines"), (["torch"], "TransformersEngine", "local")],
)
def test_a_missing_package_is_named(missing: list[str], engine: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({missing}));\n"
        "from renderers.errors import MissingExtraError\n"
        f"try:\n  from renderers.engines import {engine}; {engine}('http://x')\n"
        "except MissingExtraError as error:\n  print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"token-renderers[{extra}]" in found
    assert issubclass(MissingExtraError, ImportError)


def test_the_older_client_of_huggingface_hub_serves_too() -> None:
    """httpx has the same interface: where httpx2 is missing, the engine runs with it."""
    code = (
        "import sys, httpx2; sys.modules['httpx'] = httpx2; sys.modules['httpx2'] = None\n"
        "from renderers.engines import VllmEngine; VllmEngine('http://127.0.0.1:1'); print('made')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "made\n"
