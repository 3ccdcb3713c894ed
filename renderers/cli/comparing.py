"""Two renderers on the probe set: where do their tokens differ first?"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from renderers.cli.probes import Probe, probes
from renderers.errors import RendererError
from renderers.renderer import Renderer


class Difference(NamedTuple):
    """A probe on which two renderers differ. `position` is None where one of them raised."""

    probe: Probe
    position: int | None
    left: str
    right: str


def differences(left: Renderer[Any], right: Renderer[Any]) -> Iterator[Difference]:
    """Every probe on which the two differ. A conversation that both refuse is no difference."""
    for probe in probes():
        found = [_render(renderer, probe) for renderer in (left, right)]
        if found[0] == found[1] or all(isinstance(one, str) for one in found):
            continue
        shown = [one if isinstance(one, str) else "" for one in found]
        if any(shown):
            yield Difference(probe, None, shown[0] or "renders", shown[1] or "renders")
            continue
        ids: list[list[int]] = [one for one in found if not isinstance(one, str)]
        position = next(
            (place for place, pair in enumerate(zip(*ids, strict=False)) if pair[0] != pair[1]),
            min(len(one) for one in ids),
        )
        yield Difference(probe, position, _around(left, ids[0], position), _around(right, ids[1], position))


def _render(renderer: Renderer[Any], probe: Probe) -> list[int] | str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return renderer.render_ids(
                probe.messages, tools=probe.tools, add_generation_prompt=probe.add_generation_prompt
            )
        except RendererError as error:
            return f"raises: {error}"


def _around(renderer: Renderer[Any], ids: list[int], position: int) -> str:
    before, after = ids[max(0, position - 8) : position], ids[position : position + 8]
    return f"{renderer.decode(before)!r} then {renderer.decode(after)!r} {after}"
