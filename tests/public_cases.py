"""Runs the small cases of faults that users of such libraries reported: `cases/public_faults.jsonl` of the assets."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from golden.reference import ASSETS, encode, load_tokenizer
from renderers.errors import RendererError

#: A case that names a model which `models.json` does not have, by what it needs instead.
_ALTERNATING_TEMPLATE = (
    "{% for message in messages %}"
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}"
    "{% endif %}"
    "<start_of_turn>{{ message.role }}\n{{ message.content }}<end_of_turn>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)

#: Gives a renderer for a model ID and keyword arguments of `create_renderer`.
MakeRenderer = Callable[..., Any]


def make_renderer(model: str, **settings: Any) -> Any:
    """`create_renderer` on the model's official tokenizer and template."""
    from renderers import create_renderer

    return create_renderer(load_tokenizer(model), **settings)


def cases(families: Iterable[str]) -> list[dict[str, Any]]:
    """The cases of these families, by the names that the file uses: `qwen3`, `qwen3.5`, `glm-4.5`, `default`, ..."""
    wanted = set(families)
    lines = (ASSETS.parent / "cases" / "public_faults.jsonl").read_text(encoding="utf-8").splitlines()
    return [case for case in map(json.loads, lines) if case["family"] in wanted]


def check_case(case: dict[str, Any], make: MakeRenderer = make_renderer) -> None:
    """Run every check of a case. An outcome marked `"by": "other"` is sound, but not what the design asks for.

    Raises:
        AssertionError: where a check meets none of its outcomes, saying how each was missed.
    """
    for check in case["checks"]:
        renderer, model = _renderer_for(case, check, make)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of a render that is itself the check are recorded there
            measured = _OPERATIONS[check["op"]](renderer, model, check["input"])
        missed = []
        for outcome in check["accept"]:
            problem = "it is sound, but not what the design asks for" if "by" in outcome else measured.problem(outcome)
            if problem is None:
                break
            missed.append(f"{json.dumps(outcome, ensure_ascii=False)}\n    {problem}")
        else:
            raise AssertionError(f"{case['id']} ({check['op']}): {case['symptom']}\n" + "\n".join(missed))


def _renderer_for(case: dict[str, Any], check: dict[str, Any], make: MakeRenderer) -> tuple[Any, str]:
    model = check.get("model", case["model"])
    settings: dict[str, Any] = {
        name: check[name] for name in ("thinking_retention", "sanitize_control_tokens") if name in check
    }
    if kwargs := check["input"].get("kwargs"):
        settings["chat_template_kwargs"] = kwargs
    if check.get("default"):
        from renderers import DefaultRendererConfig

        settings["config"] = DefaultRendererConfig()
        template = _ALTERNATING_TEMPLATE if model.startswith("google/gemma") else check.get("template")
        if template is not None:
            settings["chat_template"] = template
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said about the choice of a renderer is tested elsewhere
        return make(model, **settings), model


def _completion_ids(renderer: Any, model: str, given: dict[str, Any]) -> list[int]:
    """The completion's tokens: special tokens where they are spelled, except in segments that say otherwise."""
    ids: list[int] = []
    for segment in given.get("segments", [given["completion"]]):
        if isinstance(segment, str):
            ids += encode(model, segment)
        elif "ordinary" in segment:
            ids += renderer.tokenizer.encode_ordinary(segment["ordinary"])
        else:
            ids += renderer.tokenizer.encode_ordinary(segment["cut_last"])[:-1]
    return ids


def _text(renderer: Any, token_ids: Sequence[int]) -> str:
    decoded: str = renderer.tokenizer.decode_bytes(token_ids).decode("utf-8", "replace")
    return decoded


@dataclass
class _Measured:
    """What an operation gave: a result, or a typed error."""

    renderer: Any
    model: str
    result: Any
    error: RendererError | None = None

    def problem(self, outcome: dict[str, Any]) -> str | None:
        """Why the outcome does not hold, or None where it does."""
        if self.error is not None:
            if not outcome.get("raises"):
                return f"raised {self.error!r}"
            missing = outcome.get("mentions", "") not in str(self.error)
            return f"the error does not mention it: {self.error}" if missing else None
        for name, expected in outcome.items():
            check: Callable[[Any], str | None] = getattr(self, f"_check_{name}")
            if (problem := check(expected)) is not None:
                return problem
        return None

    def _check_raises(self, expected: bool) -> str | None:
        return f"raised nothing, gave {self.result!r}" if expected else None

    def _check_mentions(self, expected: str) -> str | None:
        return f"raised nothing that could mention {expected!r}"


def _unless(condition: bool, problem: str) -> str | None:
    return None if condition else problem


@dataclass
class _Rendered(_Measured):
    python_warnings: Sequence[str] = ()

    @property
    def _ids(self) -> list[int]:
        ids: list[int] = self.result.token_ids
        return ids

    def _check_text(self, expected: str) -> str | None:
        return _unless(self._ids == encode(self.model, expected), f"got {_text(self.renderer, self._ids)!r}")

    def _check_warns(self, expected: bool) -> str | None:
        warned = bool(self.result.warnings)
        if warned and not self.python_warnings:
            return "it is in `warnings`, but no Python warning was given"
        return _unless(warned == expected, f"warnings: {self.result.warnings}")

    def _check_token_counts(self, expected: dict[str, int]) -> str | None:
        special = self.renderer.tokenizer.special_tokens
        found = {token: self._ids.count(special[token]) for token in expected}
        return _unless(found == expected, f"counted {found}")

    def _check_decodes_to(self, expected: str) -> str | None:
        found = _text(self.renderer, self._ids)
        return _unless(found == expected, f"decodes to {found!r}")

    def _check_sampled_token(self, expected: dict[str, Any]) -> str | None:
        token_id = self.renderer.tokenizer.special_tokens[expected["token"]]
        places = [place for place, found in enumerate(self._ids) if found == token_id]
        place = places[expected["occurrence"]]
        found = self.result.sampled_mask[place], self.result.message_indices[place]
        return _unless(found == (True, expected["message"]), f"sampled and message are {found}")

    def _check_after_preamble(self, expected: str) -> str | None:
        tail = encode(self.model, expected)
        if self._ids[-len(tail) :] != tail:
            return f"got {_text(self.renderer, self._ids)!r}"
        opener = self._ids[0]
        return _unless(self._ids[: -len(tail)].count(opener) == 1, "what stands before it is more than the system part")

    def _check_contains(self, expected: list[str]) -> str | None:
        found = _text(self.renderer, self._ids)
        missing = [text for text in expected if text not in found]
        return _unless(not missing, f"{missing} not in {found!r}")


def _trimmed(text: str | None) -> str:
    return (text or "").strip()


def _as_json(call: dict[str, Any]) -> str:
    return json.dumps(call, sort_keys=True, ensure_ascii=False)


@dataclass
class _Parsed(_Measured):
    def problem(self, outcome: dict[str, Any]) -> str | None:
        exact = outcome.get("exact", False)
        rest = {name: expected for name, expected in outcome.items() if name != "exact"}
        for name in ("content", "reasoning_content"):
            if exact and name in rest and getattr(self.result, name) != rest[name]:
                return f"{name} is {getattr(self.result, name)!r}"
        return super().problem(rest)

    def _check_content(self, expected: str) -> str | None:
        found = self.result.content
        return _unless(_trimmed(found) == _trimmed(expected), f"content is {found!r}")

    def _check_reasoning_content(self, expected: str | None) -> str | None:
        found = self.result.reasoning_content
        return _unless(_trimmed(found) == _trimmed(expected), f"reasoning is {found!r}")

    def _check_content_startswith(self, expected: str) -> str | None:
        found = self.result.content
        return _unless(found.startswith(expected), f"content is {found!r}")

    def _check_valid(self, expected: list[dict[str, Any]]) -> str | None:
        calls = self.result.valid_tool_calls
        if len(calls) != len(expected):
            return f"{len(calls)} well-formed calls: {self.result.tool_calls}"
        for call, wanted in zip(calls, expected, strict=True):
            found = {name: getattr(call, name) for name in wanted}
            if _as_json(found) != _as_json(wanted):
                return f"found {found}"
        return None

    def _check_flagged(self, expected: bool) -> str | None:
        flagged = len(self.result.tool_calls) > len(self.result.valid_tool_calls)
        return _unless(flagged == expected, f"calls: {self.result.tool_calls}")

    def _check_reasoning_complete(self, expected: bool | None) -> str | None:
        found = self.result.reasoning_complete
        return _unless(found is expected, f"reasoning_complete is {found}")

    def _check_any_call(self, expected: dict[str, Any]) -> str | None:
        fitting = [
            call
            for call in self.result.tool_calls
            if call.name == expected["name"] and expected["raw_contains"] in call.raw
        ]
        return _unless(bool(fitting), f"calls: {self.result.tool_calls}")


@dataclass
class _Bridged(_Measured):
    given: Sequence[int] = ()

    @property
    def _extension(self) -> list[int]:
        ids: list[int] = self.result.token_ids[len(self.given) :]
        return ids

    def problem(self, outcome: dict[str, Any]) -> str | None:
        refused = self.error is None and not hasattr(self.result, "token_ids")
        if refused and not outcome.get("returns_none"):
            return f"refused: {self.result}"
        if not refused and self.error is None and self.result.token_ids[: len(self.given)] != list(self.given):
            return "the result does not begin with prompt + completion"
        return super().problem(outcome)

    def _check_returns_none(self, expected: bool) -> str | None:
        return _unless(hasattr(self.result, "reason") == expected, f"bridged: {self.result!r}")

    def _check_tail(self, expected: str) -> str | None:
        found = _text(self.renderer, self._extension)
        if self.given[-1] in self.renderer.tokenizer.special_tokens.values():  # nothing merges over this border
            return _unless(self._extension == encode(self.model, expected), f"tail is {found!r}")
        return _unless(found == expected, f"tail is {found!r}")

    def _check_tail_startswith(self, expected: str) -> str | None:
        found = _text(self.renderer, self._extension)
        return _unless(found.startswith(expected), f"tail is {found!r}")


def _render(renderer: Any, model: str, given: dict[str, Any]) -> _Measured:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = renderer.render(
                given["messages"],
                tools=given.get("tools"),
                add_generation_prompt=given["add_generation_prompt"],
            )
        except RendererError as error:
            return _Rendered(renderer, model, None, error)
    return _Rendered(renderer, model, result, python_warnings=[str(warning.message) for warning in caught])


def _parse(renderer: Any, model: str, given: dict[str, Any]) -> _Measured:
    ids = _completion_ids(renderer, model, given)
    stopped = given["finish"] == "stop"
    asked: dict[str, Any] = {"tools": given.get("tools")}
    if "prompt_tail" in given:
        asked["prompt_ids"] = encode(model, given["prompt_tail"])
    result = renderer.parse_response(ids, stopped=stopped, **asked)
    by_token = renderer.parse_response(ids, **asked)
    assert by_token == result, "the engine's word that it stopped changes the result, though the stop token is there"
    return _Parsed(renderer, model, result)


def _bridge(renderer: Any, model: str, given: dict[str, Any]) -> _Measured:
    tools = given.get("tools")
    prompt = renderer.render(given["prior_messages"], tools=tools, add_generation_prompt=True)
    completion = _completion_ids(renderer, model, given)
    try:
        result = renderer.bridge(prompt, completion, given["new_messages"], tools=tools)
        or_none = renderer.bridge_to_next_turn(prompt, completion, given["new_messages"], tools=tools)
        from_ids = renderer.bridge(prompt.token_ids, completion, given["new_messages"], tools=tools)
    except RendererError as error:
        return _Bridged(renderer, model, None, error)
    assert (or_none is None) == hasattr(result, "reason"), "bridge and bridge_to_next_turn disagree"
    if hasattr(from_ids, "token_ids"):
        assert from_ids.token_ids == result.token_ids, "a prompt given as plain IDs is bridged otherwise"
    return _Bridged(renderer, model, result, given=[*prompt.token_ids, *completion])


_OPERATIONS: dict[str, Callable[[Any, str, dict[str, Any]], _Measured]] = {
    "render": _render,
    "parse": _parse,
    "bridge": _bridge,
}
