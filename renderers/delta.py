"""The delta bridge: what a template writes for new messages, appended once it is proved that nothing else changes.

A template does not say which of its earlier output depends on later messages. So the bridge renders a small probe
conversation that ends in the real reply and the real new messages, and takes what stands after the reply's stop token:
the delta. That it may be appended is proved once for every shape of conversation, and the proof is kept. Any doubt is a
refusal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from renderers.bridging import labelled, refuse_input, refuse_reply
from renderers.cache import GenerationCache
from renderers.conversation import History, tool_names
from renderers.delta_proof import OUTSIDE, SYSTEM, USER, Case, Certificate, Delta, measure_delta, prove
from renderers.errors import TemplateError
from renderers.labels import POLICY, Runs, make_label, message_of
from renderers.messages import NO_TOOLS, Tools, as_dicts, check_arguments, validate_messages, validate_tools
from renderers.opening import since_last_marker
from renderers.parsed import ParsedResponse
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.rendered import RenderedTokens, Segment
from renderers.shapes import Shape, message_shape
from renderers.template.bound import BoundTemplate
from renderers.template.inputs import plain_messages
from renderers.template.looks import looks_of
from renderers.token_ids import as_token_ids

if TYPE_CHECKING:
    from renderers.default import DefaultRenderer

_CERTIFICATE_BYTES, _BYTES_EACH = 4 << 20, 2000
_POLICY = make_label(-1, POLICY)


class Bridge(RenderedTokens):
    """The result of a delta bridge.

    Attributes:
        certificate: the premises that were checked.
    """

    def __init__(self, segment: Segment, *, certificate: Certificate, **about: Any) -> None:
        super().__init__(segment, **about)
        self.certificate = certificate


class Messages:
    """A conversation's messages, shared with the conversations that it was extended from."""

    __slots__ = ("earlier", "own")

    def __init__(self, own: Sequence[Mapping[str, Any]], earlier: Messages | None = None) -> None:
        self.own = tuple(own)
        self.earlier = earlier

    def all(self) -> list[Mapping[str, Any]]:
        """Every message, the first one first."""
        parts: list[tuple[Mapping[str, Any], ...]] = []
        chain: Messages | None = self
        while chain is not None:
            parts.append(chain.own)
            chain = chain.earlier
        return [message for part in reversed(parts) for message in part]

    def __reduce__(self) -> tuple[object, ...]:
        return (Messages, (self.all(),))  # flat: a chain of thousands would be too deep


@dataclass(frozen=True, slots=True)
class DeltaState:
    """What a delta bridge knows of the conversation before it.

    Attributes:
        messages: the messages, replies as they were parsed.
        shape: their shape.
        no_tools: what stands for no tools: the template got none, or an empty list, which it may tell apart.
        is_open: whether the assistant's turn is open at the end.
    """

    messages: Messages
    shape: Shape
    no_tools: Tools
    is_open: bool


class DeltaBridges:
    """The delta bridges of one DefaultRenderer, with the certificates that they rest on."""

    def __init__(self, renderer: DefaultRenderer, template: BoundTemplate) -> None:
        self._renderer = renderer
        self._looks = looks_of(template.tree, template.variables)
        self._certificates: GenerationCache[Any, Certificate | BridgeRefusal] = GenerationCache(_CERTIFICATE_BYTES)

    def state_of(self, own: Sequence[Mapping[str, Any]], no_tools: Tools, *, is_open: bool) -> DeltaState:
        """What a render's result carries to its bridges; the messages are kept, and must be copies."""
        return DeltaState(Messages(own), self._folded(Shape(), own), no_tools, is_open)

    def bridge(
        self,
        previous_prompt: Sequence[int] | RenderedTokens,
        completion_ids: Sequence[int],
        new_messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
    ) -> Bridge | BridgeRefusal:
        """See `Renderer.bridge`."""
        messages = validate_messages(new_messages)
        check_arguments(messages)
        new = plain_messages(as_dicts(new_messages))
        completion = as_token_ids(completion_ids, "previous_completion_ids")
        given_tools = None if tools is None else validate_tools(tools)
        if isinstance(previous_prompt, RenderedTokens):
            previous, history = previous_prompt, previous_prompt.history
        else:
            previous = _as_rendered(as_token_ids(previous_prompt, "previous_prompt_ids"))
            history = None
        refusal = refuse_input(previous, completion, messages)
        if refusal is None:
            refusal = self._refuse_history(history, given_tools)
        if refusal is not None:
            return refusal
        state: DeltaState | None = None if history is None else history.state
        known_tools = history.tools if history is not None else given_tools or NO_TOOLS

        tail = previous.token_ids if state is None else _open_turn(previous)
        opening = since_last_marker(tail, self._renderer.grammar.reasoning_markers)
        stream = self._renderer.grammar.stream(tools=known_tools.schemas, opening_ids=opening)
        stream.feed(completion)
        parsed = stream.finish()
        refusal = refuse_reply(parsed, len(completion))
        if refusal is not None:
            return refusal
        case_tools = known_tools or (NO_TOOLS if state is None else state.no_tools)
        case = self._case(parsed, new, case_tools, completion, opening)
        probe = [SYSTEM, USER] if state is not None and state.shape.first_role == "system" else [USER]
        delta = measure_delta(self._renderer, probe, case)
        # What the template does with the text of one reply is nothing about the shape.
        keeps = isinstance(delta, Delta)
        knows_tools = history is not None or given_tools is not None
        certificate = self._certificate(state, case, knows_tools=knows_tools, keeps=keeps)
        if isinstance(certificate, BridgeRefusal):
            return certificate
        if isinstance(delta, BridgeRefusal):
            return delta
        if state is None and not self._is_open(previous.token_ids, probe, known_tools):
            detail = "the previous prompt does not end in the template's generation prompt"
            return BridgeRefusal(RefusalReason.UNKNOWN_HISTORY, detail)
        return self._extended(previous, state, case, delta, certificate)

    def _refuse_history(self, history: History | None, tools: Tools | None) -> BridgeRefusal | None:
        if history is None:
            return None
        if history.family != self._renderer.format_name:
            detail = f"the previous prompt was rendered in another format ({history.family})"
            return BridgeRefusal(RefusalReason.UNKNOWN_HISTORY, detail)
        if tools is not None and tools.key != history.tools.key:
            return BridgeRefusal(RefusalReason.HISTORY_REWRITE, "the tools are not those of the previous prompt")
        if not history.state.is_open:
            detail = "the previous prompt was rendered without a generation prompt: no assistant's turn is open"
            return BridgeRefusal(RefusalReason.UNKNOWN_HISTORY, detail)
        return None

    def _case(
        self,
        parsed: ParsedResponse,
        new: Sequence[Mapping[str, Any]],
        tools: Tools,
        completion: list[int],
        opening: list[int],
    ) -> Case:
        """The reply in the forms that a history may hold it in, its calls under the IDs that the results name."""
        form = parsed.to_message()
        own_ids = {call.id for call in parsed.valid_tool_calls}
        results = [message for message in new if message["role"] == "tool"]
        for sampled, call, result in zip(parsed.valid_tool_calls, form.get("tool_calls") or (), results, strict=False):
            named = result.get("tool_call_id")
            if named is not None and named not in own_ids and sampled.id not in sampled.raw:
                call["id"] = named  # the harness has IDs of its own
        if form["content"] is None and not self._takes_null_content:
            form["content"] = ""
        equal: list[Mapping[str, Any]] = []
        if form.get("reasoning_content") == "":
            equal.append({name: value for name, value in form.items() if name != "reasoning_content"})
        elif "reasoning_content" not in form:
            equal.append({**form, "reasoning_content": ""})
        assumed = None
        if self._renderer.config.tool_parser is None and results and not form.get("tool_calls"):
            assumed = {**form, "content": "", "tool_calls": [_answered_call(result) for result in results]}
        return Case(parsed, form, equal, assumed, new, tools, completion, opening)

    def _certificate(
        self, state: DeltaState | None, case: Case, *, knows_tools: bool, keeps: bool
    ) -> Certificate | BridgeRefusal:
        counts = self._looks.counts
        if state is None and counts is not None:
            detail = f"the template counts or compares what a list of IDs does not tell ({counts})"
            return BridgeRefusal(RefusalReason.UNKNOWN_HISTORY, detail)
        own = None if state is None else state.messages.all()
        new = tuple(message_shape(message, self._looks) for message in case.new)
        reply = message_shape(case.form, self._looks)
        shape = None if state is None else state.shape
        key = (shape, reply, new, _answers(own or (), case), case.parsed.stop, case.tools.key, knows_tools)
        found = None if counts is not None else self._certificates.get(key)
        if found is None:
            found = prove(self._renderer, own, case, self._looks, knows_tools=knows_tools)
            if counts is None and keeps:
                self._certificates.put(key, found, _BYTES_EACH)
        return found

    def _extended(
        self,
        previous: RenderedTokens,
        state: DeltaState | None,
        case: Case,
        delta: Delta,
        certificate: Certificate,
    ) -> Bridge:
        segment = labelled(case.completion, _POLICY, previous.segment)
        ids, runs = delta.ids, Runs()
        if case.parsed.stop is None:  # the model was cut off: the template closes its turn
            whole, cut = delta.reply, case.completion
            close = whole[len(cut) :] if whole[: len(cut)] == cut else whole[-1:]
            ids = [*close, *ids]
            runs.add(len(close), OUTSIDE)
        runs.extend(delta.runs)
        history, offset = previous.history, None
        if history is not None and state is not None:
            own = [case.form, *case.new]
            known = DeltaState(
                Messages(own, state.messages), self._folded(state.shape, own), state.no_tools, is_open=True
            )
            offset = history.length + 1
            history = history._replace(length=offset + len(case.new), state=known)
        validated = validate_messages([case.form, *case.new])
        return Bridge(
            Segment([tuple(ids)], runs, segment),
            certificate=certificate,
            message_roles=[message.role for message in validated[1:]],
            message_tool_names=tool_names(validated)[1:],
            mask_known=self._renderer.config.provenance == "traced",
            message_offset=offset,
            extension_start=segment.total,
            history=history,
        )

    # What the template is like --------------------------------------------------------------------------------------

    def _folded(self, shape: Shape, messages: Sequence[Mapping[str, Any]]) -> Shape:
        for message in messages:
            shape = shape.followed_by(message_shape(message, self._looks))
        return shape

    @cached_property
    def _takes_null_content(self) -> bool:
        """Whether the template takes calls without content."""
        call = {"id": "call00001", "type": "function", "function": {"name": "probe", "arguments": {"key": "value"}}}
        try:
            text = self._renderer.encoded([USER, {"role": "assistant", "tool_calls": [call]}], NO_TOOLS).traced.text
        except TemplateError:
            return False
        return "value" in text

    def _is_open(self, ids: Sequence[int], probe: Sequence[Mapping[str, Any]], tools: Tools) -> bool:
        """Whether a prompt ends in the template's generation prompt."""
        whole = self._renderer.encoded(probe, tools, add_generation_prompt=True)
        end = _open_turn(RenderedTokens(Segment(whole.parts, whole.runs), message_roles=[], message_tool_names=[]))
        return list(ids[len(ids) - len(end) :]) == end


def _answers(own: Sequence[Mapping[str, Any]], case: Case) -> tuple[tuple[int | None, bool], ...]:
    """Of each new message: which call of the reply it answers by ID, and whether an earlier call has that ID too."""
    wanted = [message.get("tool_call_id") for message in case.new]
    calls = [call.get("id") for call in case.form.get("tool_calls") or ()]
    asked = {one for one in wanted if one is not None}
    earlier = (
        {call.get("id") for message in own for call in message.get("tool_calls") or ()} & asked if asked else set()
    )
    return tuple((calls.index(one) if one in calls else None, one in earlier) for one in wanted)


def _answered_call(result: Mapping[str, Any]) -> dict[str, Any]:
    function: dict[str, Any] = {"name": result.get("name") or "probe", "arguments": {}}
    return {"id": result.get("tool_call_id") or "call00001", "type": "function", "function": function}


def _as_rendered(ids: list[int]) -> RenderedTokens:
    return RenderedTokens(labelled(ids, OUTSIDE, None), message_roles=[], message_tool_names=[])


def _open_turn(previous: RenderedTokens) -> list[int]:
    """The tokens of a prompt after its last message: the generation prompt."""
    segment = previous.segment
    count, label = ([(0, OUTSIDE), *segment.runs.items()])[-1]
    return segment.own_ids()[-count:] if count and message_of(label) < 0 else []
