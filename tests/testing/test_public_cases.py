"""The runner of the public cases: it knows every outcome, and can tell right from wrong."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace
from typing import Any

import public_cases
import pytest
from public_cases import cases, check_case

from golden.reference import ASSETS, HAS_ASSETS, NoReferenceError, encode, reference_ids
from renderers.errors import TemplateError
from renderers.parsed import CallStatus, ParsedResponse, ParsedToolCall

pytestmark = pytest.mark.needs_assets


def _all_cases() -> list[dict[str, Any]]:
    if not HAS_ASSETS:
        return []
    lines = (ASSETS.parent / "cases" / "public_faults.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


class OfficialRenderer:
    """Renders as the official template does, and labels nothing."""

    def __init__(self, model: str, kwargs: dict[str, Any]) -> None:
        self._model, self._kwargs = model, kwargs
        special = public_cases.load_tokenizer(model).get_added_vocab()
        decode = public_cases.load_tokenizer(model).decode
        self.tokenizer = SimpleNamespace(special_tokens=special, decode_bytes=lambda ids: decode(ids).encode())

    def render(self, messages: Any, *, tools: Any, add_generation_prompt: bool) -> Any:
        try:
            ids = reference_ids(self._model, messages, tools, add_generation_prompt, self._kwargs)
        except NoReferenceError:
            raise
        except Exception as error:
            raise TemplateError(str(error)) from error
        return SimpleNamespace(token_ids=ids, warnings=[])


def _without(case: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    """The case without these outcomes' parts, and without checks that the official template cannot meet."""
    kept = copy.deepcopy(case)
    kept["checks"] = [
        check
        for check in kept["checks"]
        if check["op"] == "render" and not check.get("default") and "sanitize_control_tokens" not in check
    ]
    for check in kept["checks"]:
        for outcome in check["accept"]:
            for key in keys & set(outcome):
                del outcome[key]
    return kept


def test_every_outcome_is_known() -> None:
    kinds = {"render": public_cases._Rendered, "parse": public_cases._Parsed, "bridge": public_cases._Bridged}
    for case in _all_cases():
        for check in case["checks"]:
            for outcome in check["accept"]:
                for name in set(outcome) - {"by", "exact"}:
                    assert hasattr(kinds[check["op"]], f"_check_{name}"), (case["id"], name)


def test_cases_are_found_by_family() -> None:
    assert len(cases(["qwen3", "default"])) == 24
    assert cases([]) == []
    families = {case["family"] for case in _all_cases()}
    assert sum(len(cases([family])) for family in families) == len(_all_cases())


#: The others' reference is an encoder, no template.
_WITH_TEMPLATE = [case for case in _all_cases() if case["family"] not in {"gpt-oss", "deepseek-v4", "deepseek-v3.2"}]


@pytest.mark.parametrize("case", _WITH_TEMPLATE, ids=lambda case: case["id"])
def test_official_renders_meet_the_expected_text(case: dict[str, Any]) -> None:
    kept = _without(case, {"warns", "sampled_token"})
    check_case(kept, lambda model, **given: OfficialRenderer(model, given.get("chat_template_kwargs", {})))


def test_a_wrong_render_is_found() -> None:
    case = next(case for case in _all_cases() if case["id"] == "qwen3-mid-system-kept")
    wrong = json.loads(json.dumps(case).replace("Now speak French<|im_end|>", "Now speak<|im_end|>"))
    with pytest.raises(AssertionError, match="hoisted, merged or dropped"):
        check_case(wrong, lambda model, **given: OfficialRenderer(model, given.get("chat_template_kwargs", {})))


class FixedParser:
    """Parses everything to the same result."""

    def __init__(self, result: ParsedResponse) -> None:
        self._result = result
        self.seen: list[list[int]] = []
        self.tokenizer = SimpleNamespace(encode_ordinary=lambda text: [-len(text), -1])

    def parse_response(self, token_ids: list[int], **_: Any) -> ParsedResponse:
        self.seen.append(token_ids)
        return self._result


def _parse_case(outcome: dict[str, Any], **given: Any) -> dict[str, Any]:
    asked = {"completion": "x", "finish": "stop", **given}
    checks = [{"op": "parse", "input": asked, "accept": [outcome]}]
    return {"id": "made-up", "model": "Qwen/Qwen3-8B", "symptom": "", "checks": checks}


def test_parse_outcomes() -> None:
    call = ParsedToolCall("call_0", "f", {"x": 1}, raw="raw f", arguments_text='{"x": 1}')
    cut = ParsedToolCall("call_1", "g", None, raw="raw g", status=CallStatus.INCOMPLETE, error="cut")
    parser = FixedParser(ParsedResponse(" text\n", "why", [call, cut], reasoning_complete=True))
    met = {
        "content": "text",
        "reasoning_content": "why ",
        "valid": [{"name": "f", "arguments": {"x": 1}}],
        "flagged": True,
        "reasoning_complete": True,
        "content_startswith": " te",
        "any_call": {"name": "g", "raw_contains": "raw"},
    }
    check_case(_parse_case(met), lambda *_, **__: parser)
    missed: list[dict[str, Any]] = [
        {"content": "texts"},
        {"content": "text", "exact": True},
        {"reasoning_content": None},
        {"valid": []},
        {"valid": [{"name": "f", "arguments": {"x": True}}]},
        {"valid": [{"name": "f", "arguments": {"x": 1.0}}]},
        {"flagged": False},
        {"any_call": {"name": "f", "raw_contains": "g"}},
        {**met, "by": "other"},
    ]
    for outcome in missed:
        with pytest.raises(AssertionError, match="made-up"):
            check_case(_parse_case(outcome), lambda *_, **__: parser)


def test_segments_replace_the_completion() -> None:
    parser = FixedParser(ParsedResponse("", None))
    given = {"segments": ["<think>", {"ordinary": "abc"}, {"cut_last": "de"}]}
    check_case(_parse_case({"valid": []}, **given), lambda *_, **__: parser)
    assert parser.seen[0] == [*encode("Qwen/Qwen3-8B", "<think>"), -3, -1, -2]
