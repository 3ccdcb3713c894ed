"""OpenAI's own Harmony library as the reference of gpt-oss, where the package openai-harmony is installed.

It wants a file `o200k_base.tiktoken`, which is made of the assets' tokenizer, in a temporary folder.
"""

from __future__ import annotations

import base64
import functools
import importlib
import importlib.util
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from renderers.tokenizers.token_bytes import byte_level_bytes

HAS_LIBRARY = importlib.util.find_spec("openai_harmony") is not None


def _library() -> Any:
    return importlib.import_module("openai_harmony")


@functools.cache
def _encoding(assets: Path) -> Any:
    harmony = _library()

    tokenizer = json.loads((assets / "tokenizers" / "gpt-oss" / "tokenizer.json").read_text(encoding="utf-8"))
    special = {token["content"] for token in tokenizer["added_tokens"]}
    ranks = sorted((rank, token) for token, rank in tokenizer["model"]["vocab"].items() if token not in special)
    lines = [f"{base64.b64encode(byte_level_bytes(token)).decode()} {rank}\n" for rank, token in ranks]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "o200k_base.tiktoken").write_text("".join(lines), encoding="ascii")
        before = os.environ.get("TIKTOKEN_ENCODINGS_BASE")
        os.environ["TIKTOKEN_ENCODINGS_BASE"] = folder
        try:
            return harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
        finally:
            del os.environ["TIKTOKEN_ENCODINGS_BASE"]
            if before is not None:
                os.environ["TIKTOKEN_ENCODINGS_BASE"] = before


def library_ids(
    assets: Path,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None,
    add_generation_prompt: bool,
    kwargs: dict[str, Any],
) -> list[int]:
    """What the library makes of converted messages, by the mapping that the recorded vectors have."""
    harmony = _library()

    encoding = _encoding(assets)
    mapped = [_system(kwargs), *_messages(messages, tools)]
    rule = kwargs.get("drop_analysis", "before_last_final")
    if rule == "before_last_final":
        finals = [place for place, one in enumerate(mapped) if one.channel == "final"]
        border = finals[-1] if finals else 0
        if finals and border == len(mapped) - 1 and not add_generation_prompt:
            border -= mapped[border - 1].channel == "analysis"  # the last message keeps its own
        mapped = [one for place, one in enumerate(mapped) if one.channel != "analysis" or place >= border]
    config = harmony.RenderConversationConfig(auto_drop_analysis=rule == "before_first_final")
    conversation = harmony.Conversation.from_messages(mapped)
    if add_generation_prompt:
        found = encoding.render_conversation_for_completion(conversation, harmony.Role.ASSISTANT, config)
    else:
        found = encoding.render_conversation_for_training(conversation, config)
    return list(found)


def library_messages(assets: Path, token_ids: list[int]) -> list[Any]:
    """A reply as the library parses it.

    Raises:
        HarmonyError: for headers that it does not understand.
    """
    harmony = _library()

    return list(_encoding(assets).parse_messages_from_completion_tokens(token_ids, harmony.Role.ASSISTANT))


def _system(kwargs: dict[str, Any]) -> Any:
    harmony = _library()

    content = harmony.SystemContent.new()
    if (effort := kwargs.get("reasoning_effort")) is not None:
        content = content.with_reasoning_effort(harmony.ReasoningEffort[effort.upper()])
    if (date := kwargs.get("conversation_start_date")) is not None:
        content = content.with_conversation_start_date(date)
    if (identity := kwargs.get("model_identity")) is not None:
        content = content.with_model_identity(identity)
    for name in kwargs.get("builtin_tools", ()):
        content = content.with_browser_tool() if name == "browser" else content.with_python_tool()
    return harmony.Message.from_role_and_content(harmony.Role.SYSTEM, content)


def _messages(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> list[Any]:
    harmony = _library()

    said: list[Any] = []
    developer = harmony.DeveloperContent.new()
    instructs = messages[0]["role"] in {"system", "developer"}
    if instructs and messages[0].get("content"):
        developer = developer.with_instructions(messages[0]["content"])
    if tools:
        functions = [tool["function"] for tool in tools]
        developer = developer.with_function_tools(
            [
                harmony.ToolDescription.new(one["name"], one.get("description") or "", one.get("parameters"))
                for one in functions
            ]
        )
    if tools or developer.instructions:
        said.append(harmony.Message.from_role_and_content(harmony.Role.DEVELOPER, developer))
    names: dict[str, str] = {}
    calls: list[dict[str, Any]] = []
    results, last_role = 0, None
    for message in messages:
        role, text = message["role"], message.get("content", "")
        results = results + 1 if role == "tool" else 0
        if role == "user":
            said.append(harmony.Message.from_role_and_content(harmony.Role.USER, text))
        elif role == "assistant":
            calls = message.get("tool_calls") or []
            names |= {call["id"]: call["function"]["name"] for call in calls if "id" in call}
            said += _assistant(message, text, calls)
        elif role == "tool":
            name = _tool_name(message, names, calls, results - 1, last_role)
            author = harmony.Author.new(harmony.Role.TOOL, f"functions.{name}")
            result = harmony.Message.from_author_and_content(author, text)
            said.append(result.with_channel("commentary").with_recipient("assistant"))
        last_role = role
    return said


def _tool_name(
    message: dict[str, Any], names: dict[str, str], calls: list[dict[str, Any]], position: int, last_role: str | None
) -> str:
    """The mapping has no rule for results without a name: by ID, else by position, else the only call."""
    if "name" in message:
        return str(message["name"])
    if "tool_call_id" in message:
        for call in calls:
            if call.get("id") == message["tool_call_id"]:
                return str(call["function"]["name"])
        if message["tool_call_id"] in names:
            return names[message["tool_call_id"]]
    elif position < len(calls):
        return str(calls[position]["function"]["name"])
    if last_role == "assistant" and len(calls) == 1:
        return str(calls[0]["function"]["name"])
    raise ValueError("no call fits this result")


def _assistant(message: dict[str, Any], text: str, calls: list[dict[str, Any]]) -> list[Any]:
    said = []
    if message.get("reasoning_content"):
        said.append(_part(message["reasoning_content"], "analysis"))
    if text or not calls:
        said.append(_part(text, "commentary" if calls else "final"))
    for call in calls:
        arguments = call["function"]["arguments"]
        shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        part = _part(shown, "commentary").with_recipient(f"functions.{call['function']['name']}")
        said.append(part.with_content_type("<|constrain|>json"))
    return said


def _part(text: str, channel: str) -> Any:
    harmony = _library()

    return harmony.Message.from_role_and_content(harmony.Role.ASSISTANT, text).with_channel(channel)
