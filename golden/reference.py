"""The parity reference: each model's official template and tokenizer, and the conversions that come before them.

The assets (templates and tokenizers) are no part of this repository: they are found through the environment variable
RENDERERS_ASSETS, or beside the repository.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from golden.harmony_library import HAS_LIBRARY, library_ids
from golden.profiles import GPT_OSS_HARMONY, PROFILES
from golden.vendor_encoders import encoded_text, has_encoder, module_at

if TYPE_CHECKING:
    from renderers.testing import Conversation, Profile

_REPOSITORY = Path(__file__).resolve().parent.parent
ASSETS = Path(os.environ.get("RENDERERS_ASSETS") or _REPOSITORY.parent / "shared" / "assets")
HAS_ASSETS = (ASSETS / "models.json").is_file()

_OLDER_CODER = "Qwen/Qwen3-Coder-30B-A3B-Instruct@older"
_DATE_SWITCH = "conversation_start_date"


class NoReferenceError(LookupError):
    """There is no template for this: the vendor ships an encoder, and only recorded vectors say what it does."""


@functools.cache
def _assets_module() -> Any:
    return module_at(ASSETS / "assets.py")


def models() -> frozenset[str]:
    """The models of the assets; none without these."""
    return frozenset(_assets_module().models()) if HAS_ASSETS else frozenset()


@functools.cache
def entry(model: str) -> dict[str, Any]:
    """What `models.json` says of a model; model IDs that it does not know get the nearest one's entry."""
    models: dict[str, dict[str, Any]] = _assets_module().models()
    if model == _OLDER_CODER:
        return {**models["Qwen/Qwen3-Coder-30B-A3B-Instruct"], "template": "Qwen3-Coder.rev-llamacpp.jinja"}
    if model.startswith("Qwen/Qwen3.5-"):
        return models["Qwen/Qwen3.5-35B-A3B"]
    return models.get(model, models["Qwen/Qwen3-8B"])


def template_text(model: str) -> str | None:
    """The model's official template, or None where the vendor ships an encoder instead."""
    name = entry(model)["template"]
    return None if name is None else (ASSETS / "templates" / name).read_text(encoding="utf-8")


def profile_of(model: str) -> Profile:
    """The profile of a model, also of one that shares another's template."""
    return PROFILES[model] if model in PROFILES else PROFILES[entry(model)["model"]]


@functools.cache
def _shared_tokenizer(folder: str) -> Any:
    # AutoTokenizer looks for the class that transformers 5 saved; this one is every version's.
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast.from_pretrained(ASSETS / "tokenizers" / folder)


@functools.cache
def load_tokenizer(model: str) -> Any:
    """A transformers tokenizer with the model's template and name. Made once; those of one vocabulary share it."""
    import copy

    tokenizer = copy.copy(_shared_tokenizer(entry(model)["tokenizer"]))
    tokenizer.chat_template = template_text(model)
    tokenizer.name_or_path = model.partition("@")[0]
    return tokenizer


def encode(model: str, text: str) -> list[int]:
    """The official tokenizer over the whole text, nothing added."""
    ids: list[int] = load_tokenizer(model).backend_tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def _joined(content: Any) -> Any:
    return "\n".join([part["text"] for part in content]) if isinstance(content, list) else content


def _converted_call(call: dict[str, Any], profile: Profile) -> dict[str, Any]:
    function = call["function"]
    arguments = function["arguments"]
    if profile.arguments == "parsed" and isinstance(arguments, str):
        arguments = json.loads(arguments)
        if not isinstance(arguments, dict):
            raise TypeError("the arguments are JSON, but no object")
    elif profile.arguments == "text" and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": arguments}}


def converted(messages: list[dict[str, Any]], profile: Profile) -> list[dict[str, Any]]:
    """The messages as the official template gets them (design, 2.2).

    - null fields are absent ones;
    - `reasoning` and `thinking` are other names of `reasoning_content`;
    - text parts become one text, joined by a newline, where the template takes only text;
    - null and missing content become "" where the template crashes on them; where it tests content for none they
      become None (done when it is rendered);
    - arguments are parsed where the template needs an object, and dumped where it needs text.
    """
    result = []
    for index, original in enumerate(messages):
        message = {key: value for key, value in original.items() if value is not None}
        role = message["role"]
        reasoning = [message.pop(name) for name in profile.reasoning_names if name in message]
        if reasoning:
            message["reasoning_content"] = reasoning[0]
        if "content" in message and role not in profile.parts:
            message["content"] = _joined(message["content"])
        place = "late_system" if role == "system" and index else role
        if "content" not in message and {role, place} & set(profile.empty_content):
            message["content"] = ""
        if "tool_calls" in message:
            message["tool_calls"] = [_converted_call(call, profile) for call in message["tool_calls"]]
        result.append(message)
    return result


@functools.cache
def _recorded_tools() -> dict[str, str]:
    """The TypeScript of each list of tools in Kimi's vectors, by its JSON."""
    head, end = "<|im_system|>tool_declare<|im_middle|>", "<|im_end|>"
    return {
        json.dumps(one["tools"], sort_keys=True): one["text"].partition(head)[2].partition(end)[0]
        for one in vectors("kimi-k2.5")
        if one["tools"]
    }


def _recorded_declarations(tools: list[dict[str, Any]]) -> str:
    """What the vendor's tokenizer class makes of these tools, which its template gets as `tools_ts_str`."""
    found = _recorded_tools().get(json.dumps(tools, sort_keys=True))
    if found is None:
        raise NoReferenceError("Kimi K2.5 gets its tools as TypeScript, and no vector has these: pass tools_ts_str")
    return found


def reference_text(
    model: str,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None = None,
    add_generation_prompt: bool = False,
    kwargs: dict[str, Any] | None = None,
) -> str:
    """What the official template makes of these messages, after the conversions.

    Raises:
        NoReferenceError: where there is no template, or it lacks what the tokenizer class adds (Kimi K2.5's tools,
            where no vector has them).
        Exception: whatever the template raises.
    """
    template, about = template_text(model), entry(model)
    kwargs = dict(kwargs or {})
    if template is None:
        if not has_encoder(model):
            raise NoReferenceError(f"{model} has no template, and its encoder is not here")
        return encoded_text(model, converted(messages, profile_of(model)), tools, add_generation_prompt, kwargs)
    if tools and about["family"] == "kimi-k2.5" and "tools_ts_str" not in kwargs:
        kwargs["tools_ts_str"] = _recorded_declarations(tools)
    if tools and about.get("sort_tools"):
        tools = json.loads(json.dumps(tools, sort_keys=True))
    messages = converted(messages, profile_of(model))
    tokenizer = load_tokenizer(model)
    if not about.get("null_content") and _DATE_SWITCH not in kwargs:
        text: str = tokenizer.apply_chat_template(
            messages, tools=tools, add_generation_prompt=add_generation_prompt, tokenize=False, **kwargs
        )
        return text
    if about.get("null_content"):
        messages = [{**message, "content": message.get("content")} for message in messages]
    return _rendered_directly(tokenizer, messages, tools, add_generation_prompt, kwargs)


def _rendered_directly(
    tokenizer: Any,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None,
    add_generation_prompt: bool,
    kwargs: dict[str, Any],
) -> str:
    """Render past `apply_chat_template`, which takes None out of messages and lets nobody set the clock."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    date = kwargs.pop(_DATE_SWITCH, None)
    if date is not None:
        kwargs["strftime_now"] = lambda _: date
        messages = [
            {"thinking": message["reasoning_content"], **message} if "reasoning_content" in message else message
            for message in messages
        ]
    text: str = _compile_jinja_template(tokenizer.chat_template).render(
        messages=messages,
        tools=tools,
        documents=None,
        add_generation_prompt=add_generation_prompt,
        **{**tokenizer.special_tokens_map, **kwargs},
    )
    return text


def reference_ids(
    model: str,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None = None,
    add_generation_prompt: bool = False,
    kwargs: dict[str, Any] | None = None,
) -> list[int]:
    """The official template and the official tokenizer over the whole text: what the deployment would see.

    Of gpt-oss, `kwargs` may ask for the other reference with `reference="harmony"`.
    """
    kwargs = dict(kwargs or {})
    if kwargs.pop("reference", "template") == "harmony":
        if not HAS_LIBRARY:
            raise NoReferenceError("the package openai-harmony is not installed")
        return library_ids(ASSETS, converted(messages, GPT_OSS_HARMONY), tools, add_generation_prompt, kwargs)
    return encode(model, reference_text(model, messages, tools, add_generation_prompt, kwargs))


def reference_for(model: str) -> Any:
    """The reference as the checks of `renderers.testing` take it: a function from a conversation to token IDs."""

    def reference(conversation: Conversation) -> list[int]:
        return reference_ids(
            model,
            conversation.messages,
            conversation.tools,
            conversation.add_generation_prompt,
            conversation.kwargs,
        )

    return reference


def vectors(name: str) -> list[dict[str, Any]]:
    """The recorded conversations of `vectors/<name>.jsonl`, such as `deepseek-v4`."""
    lines = (ASSETS.parent / "vectors" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
