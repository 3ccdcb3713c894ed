"""Checks of rendering: parity, alignment, the sampled mask, sanitizing, and the caller's objects."""

from __future__ import annotations

import contextlib
import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from renderers.errors import RendererError
from renderers.testing.support import difference, fail, rendered, shown, special_ids, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from renderers.rendered import RenderedTokens
    from renderers.renderer import Renderer
    from renderers.testing.messages import Conversation
    from renderers.testing.support import Reference

#: Markers that templates look for in a message's text. Replacing them changes what the template does.
TEMPLATE_LOOKS_FOR = ("<think>", "</think>", "<tool_response>", "</tool_response>", "/nothink")


def check_render_parity(
    renderer: Renderer[Any], reference: Reference, conversation: Conversation
) -> RenderedTokens | None:
    """The render equals the official one, token for token; where that raises, ours raises a typed error.

    Returns the render, or None where both raise.
    """
    try:
        expected = list(reference(conversation))
    except LookupError:  # there is no reference: a gap in the test, not a refusal by the template
        raise
    except Exception as refusal:  # noqa: BLE001 - whatever the template raises
        try:
            found = rendered(renderer, conversation)
        except RendererError:
            return None
        fail(
            f"the official template raises {refusal!r}, the renderer gave tokens",
            repr(text_of(renderer, found.token_ids)),
            shown(conversation),
        )
    try:
        found = rendered(renderer, conversation)
    except RendererError as error:
        fail(f"the official template renders it, the renderer raised {error!r}", shown(conversation))
    if found.token_ids != expected:
        fail(
            "the render differs from the official one",
            difference(renderer, found.token_ids, expected),
            shown(conversation),
        )
    return found


def check_alignment(renderer: Renderer[Any], conversation: Conversation, tokens: RenderedTokens) -> None:
    """Every per-token list fits the tokens, and owners, masks, indices and roles agree with each other."""
    ids, indices, content = tokens.token_ids, tokens.message_indices, tokens.is_content
    sampled, owners = tokens.sampled_mask, tokens.owners
    lengths = {
        "message_indices": len(indices),
        "is_content": len(content),
        "sampled_mask": len(sampled),
        "owners": len(owners),
    }
    if any(length != len(ids) for length in lengths.values()):
        fail(f"{len(ids)} tokens, but {lengths}", shown(conversation))
    roles = [message["role"] for message in conversation.messages]
    if tokens.message_roles != roles:
        fail(f"message_roles are {tokens.message_roles}, the messages' roles {roles}")
    if len(tokens.message_tool_names) != len(roles):
        fail(f"{len(tokens.message_tool_names)} message_tool_names for {len(roles)} messages")
    for place, index in enumerate(indices):
        problem = _label_problem(index, roles, sampled=sampled[place], content=content[place], owner=str(owners[place]))
        if problem is not None:
            fail(
                f"token {place}: {problem}",
                f"text {text_of(renderer, ids[max(place - 8, 0) : place + 1])!r}",
                shown(conversation),
            )
    runs = [place for run in tokens.runs() for place in range(run.start, run.end)]
    if runs != list(range(len(ids))):
        fail("the runs do not cover every token once")
    spans = [place for own in tokens.message_spans() for start, end in own for place in range(start, end)]
    if sorted(spans) != [place for place, index in enumerate(indices) if index >= 0]:
        fail("the message spans are not the tokens of the messages")


def _label_problem(index: int, roles: Sequence[str], *, sampled: bool, content: bool, owner: str) -> str | None:
    """What is wrong with one token's labels, or None."""
    if not -1 <= index < len(roles):
        return f"message index {index} of {len(roles)} messages"
    role = roles[index] if index >= 0 else None
    if sampled and role != "assistant":
        return f"sampled, but of a {role or 'scaffolding'} message"
    if content and role is None:
        return "content outside any message"
    if role == "assistant" and content != sampled:
        return f"of an assistant message, is_content {content}, sampled {sampled}"
    expected = "policy" if sampled else "template" if not content else "tool" if role == "tool" else "prompt"
    return None if owner == expected else f"owner {owner}, expected {expected}"


def check_mask_by_rule(renderer: Renderer[Any], conversation: Conversation, tokens: RenderedTokens) -> None:
    """The sampled part of each assistant message follows the rule, as far as the render alone can tell.

    It is one stretch; it begins right after the generation prompt where the turn's text begins with that; it ends with
    the first stop token, or goes on to the end of the message's tokens where there is none.
    """
    stops = set(renderer.get_stop_token_ids())
    for index, message in enumerate(conversation.messages):
        if message["role"] != "assistant":
            continue
        places = [place for place, owner in enumerate(tokens.message_indices) if owner == index]
        if not places or places != list(range(places[0], places[-1] + 1)):
            continue  # printed nowhere, or in several places: only the family knows what is sampled
        sampled = [place for place in places if tokens.sampled_mask[place]]
        where = f"message {index} of {shown(conversation)}"
        if not sampled:
            if any(tokens.token_ids[place] in stops for place in places):
                fail("nothing of an assistant message is sampled, though it has a stop token", where)
            continue
        if sampled != list(range(sampled[0], sampled[-1] + 1)):
            fail("the sampled part is no single stretch", where)
        _check_begin(renderer, conversation, tokens, (index, places[0], sampled[0]), where)
        after = tokens.token_ids[sampled[0] : places[-1] + 1]
        first_stop = next((place for place, token_id in enumerate(after) if token_id in stops), len(after) - 1)
        if len(sampled) != first_stop + 1:
            end = text_of(renderer, after[len(sampled) - 6 if len(sampled) > 6 else 0 : len(sampled)])
            fail(f"{len(sampled)} tokens are sampled, up to the first stop token there are {first_stop + 1}",
                 f"it ends {end!r}", where)  # fmt: skip


def _generation_prompt(renderer: Renderer[Any], conversation: Conversation, index: int) -> str | None:
    """What the generation prompt adds before message `index`, or None where that cannot be found out."""
    before = conversation.messages[:index] or [{"role": "user", "content": "q"}]
    try:
        without = rendered(renderer, replace(conversation, messages=before, add_generation_prompt=False)).token_ids
        with_prompt = rendered(renderer, replace(conversation, messages=before, add_generation_prompt=True)).token_ids
    except RendererError:
        return None
    if with_prompt[: len(without)] != without:
        return None
    return text_of(renderer, with_prompt[len(without) :])


def _check_begin(
    renderer: Renderer[Any],
    conversation: Conversation,
    tokens: RenderedTokens,
    turn: tuple[int, int, int],
    where: str,
) -> None:
    index, start, first_sampled = turn
    prompt = _generation_prompt(renderer, conversation, index)
    if prompt is None:
        return
    end = start
    while end < len(tokens) and tokens.message_indices[end] == index:
        end += 1
    if not text_of(renderer, tokens.token_ids[start:end]).startswith(prompt):
        return  # the template's own reasoning scaffolding decides, and only the family knows it
    size = len(prompt.encode())
    begun = len(renderer.tokenizer.decode_bytes(tokens.token_ids[start:first_sampled]))
    last = renderer.tokenizer.token_bytes(tokens.token_ids[first_sampled - 1]) if first_sampled > start else b""
    if begun < size or begun - len(last) >= size > 0:
        fail(
            f"the sampled part begins {begun} bytes into the turn, the generation prompt has {size}",
            f"before it stands {text_of(renderer, tokens.token_ids[start:first_sampled])!r}",
            where,
        )


def check_caller_objects_unchanged(renderer: Renderer[Any], conversation: Conversation) -> None:
    """Rendering changes none of the caller's objects, not even the order of keys."""
    before = repr(copy.deepcopy(conversation))
    with contextlib.suppress(RendererError):
        rendered(renderer, conversation)
    if repr(conversation) != before:
        fail("render changed the caller's objects", f"before {before}", f"after  {conversation!r}")


def check_sanitised(
    renderer: Renderer[Any], sanitising: Renderer[Any], conversation: Conversation
) -> RenderedTokens | None:
    """With `sanitize_control_tokens` the text stays, and no special token holds the caller's text.

    Texts are compared as the tokenizer normalises them: a character joins with the end of a marker that is text.
    `renderer` and `sanitising` differ in that switch alone. Special tokens that stay must be the template's: they are
    compared with those of the same conversation in which every marker is broken, where no marker is one that
    templates look for.
    """
    try:
        default = rendered(renderer, conversation)
    except RendererError:
        return None
    sanitised = rendered(sanitising, conversation)
    normalize = renderer.tokenizer.normalize
    expected, found = (normalize(text_of(renderer, tokens.token_ids)) for tokens in (default, sanitised))
    if found != expected:
        fail("sanitizing changed the text", f"default   {expected!r}", f"sanitised {found!r}", shown(conversation))
    check_alignment(sanitising, conversation, sanitised)
    special = special_ids(renderer)
    for place, token_id in enumerate(sanitised.token_ids):
        index = sanitised.message_indices[place]
        role = conversation.messages[index]["role"] if index >= 0 else None
        if token_id in special and sanitised.is_content[place] and role != "assistant":
            fail(
                f"the special token {text_of(renderer, [token_id])!r} holds text of message {index}",
                shown(conversation),
            )
    broken = _without_markers(conversation, renderer.tokenizer.special_tokens)
    if broken is not None:
        kept = [token_id for token_id in sanitised.token_ids if token_id in special]
        written = [token_id for token_id in rendered(renderer, broken).token_ids if token_id in special]
        if kept != written:
            fail(
                "special tokens that the template did not write",
                difference(renderer, kept, written),
                shown(conversation),
            )
    return sanitised


def _without_markers(conversation: Conversation, markers: Iterable[str]) -> Conversation | None:
    """The conversation with every marker in it broken; None where it holds one that templates look for."""
    spellings = [(marker, f"{marker[:1]}\u2060{marker[1:]}") for marker in sorted(markers, key=len, reverse=True)]
    spellings += [(json.dumps(marker)[1:-1], json.dumps(other)[1:-1]) for marker, other in spellings]  # in JSON text

    def broken(value: Any) -> Any:
        if isinstance(value, str):
            if any(marker in value for marker in TEMPLATE_LOOKS_FOR):
                raise LookupError(value)
            for marker, other in spellings:
                value = value.replace(marker, other)
            return value
        if isinstance(value, list):
            return [broken(item) for item in value]
        if isinstance(value, dict):
            return {broken(key): broken(item) for key, item in value.items()}
        return value

    try:
        return replace(conversation, messages=broken(conversation.messages), tools=broken(conversation.tools))
    except LookupError:
        return None
