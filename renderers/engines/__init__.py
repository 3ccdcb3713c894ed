"""Engines: token-in/token-out generation with vLLM, SGLang, or a transformers model in this process.

>>> import asyncio
>>> from renderers import create_renderer
>>> from renderers.engines import RandomEngine, SamplingParams
>>> renderer = create_renderer("golden:qwen3")
>>> prompt = renderer.render([{"role": "user", "content": "hi"}], add_generation_prompt=True)
>>> engine = RandomEngine(renderer.tokenizer.vocabulary_size)  # a stand-in; VllmEngine("http://...") is the real thing
>>> sampling = SamplingParams(max_tokens=4, stop_token_ids=renderer.get_stop_token_ids())
>>> completion = asyncio.run(engine.generate(prompt.token_ids, sampling))
>>> len(completion.token_ids), len(completion.logprobs), completion.finish_reason
(4, 4, <FinishReason.LENGTH: 'length'>)
"""

from typing import TYPE_CHECKING

from renderers.lazy import lazy_exports

if TYPE_CHECKING:
    from renderers.engines.errors import (
        EngineAbortedError,
        EngineError,
        EngineReplyError,
        EngineRequestError,
        EngineTimeoutError,
        EngineUnavailableError,
        MissingStopError,
        PromptTooLongError,
        StopRestoredWarning,
        TextOnlyError,
    )
    from renderers.engines.json_http import Retries
    from renderers.engines.local import TransformersEngine
    from renderers.engines.protocol import AllowedTokens, Engine, FinishReason, Generation, SamplingParams
    from renderers.engines.scripted import ScriptedReplies, reply_ids
    from renderers.engines.sglang import SglangEngine
    from renderers.engines.standin import RandomEngine
    from renderers.engines.tiny import tiny_random_model
    from renderers.engines.vllm import VllmEngine

__all__ = [
    "AllowedTokens",
    "Engine",
    "EngineAbortedError",
    "EngineError",
    "EngineReplyError",
    "EngineRequestError",
    "EngineTimeoutError",
    "EngineUnavailableError",
    "FinishReason",
    "Generation",
    "MissingStopError",
    "PromptTooLongError",
    "RandomEngine",
    "Retries",
    "SamplingParams",
    "ScriptedReplies",
    "SglangEngine",
    "StopRestoredWarning",
    "TextOnlyError",
    "TransformersEngine",
    "VllmEngine",
    "reply_ids",
    "tiny_random_model",
]

# Names are loaded when they are first asked for: each engine needs its own extra, and the others do not.
_MODULES = {
    "errors": (
        "EngineAbortedError",
        "EngineError",
        "EngineReplyError",
        "EngineRequestError",
        "EngineTimeoutError",
        "EngineUnavailableError",
        "MissingStopError",
        "PromptTooLongError",
        "StopRestoredWarning",
        "TextOnlyError",
    ),
    "json_http": ("Retries",),
    "local": ("TransformersEngine",),
    "protocol": ("AllowedTokens", "Engine", "FinishReason", "Generation", "SamplingParams"),
    "scripted": ("ScriptedReplies", "reply_ids"),
    "sglang": ("SglangEngine",),
    "standin": ("RandomEngine",),
    "tiny": ("tiny_random_model",),
    "vllm": ("VllmEngine",),
}
__getattr__ = lazy_exports(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
