"""Plots as inline SVG: bars and lines, in the page's own colours, readable without any script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import log2
from typing import NamedTuple

_WIDTH, _LEFT, _RIGHT, _TOP = 560, 92, 78, 10
_INNER = _WIDTH - _LEFT - _RIGHT
_BAR, _GAP = 24, 14
_HEIGHT = 240


class Part(NamedTuple):
    """A part of a stacked bar. `style` is a class of the page's style sheet."""

    name: str
    value: float
    style: str


class Series(NamedTuple):
    """Points of one line, or heights of one group of bars, by place."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]


def stacked_bars(title: str, bars: Sequence[tuple[str, Sequence[Part]]]) -> str:
    """Horizontal bars, each of several parts, with its total at its end."""
    most = max((sum(part.value for part in parts) for _, parts in bars), default=0) or 1
    marks: list[str] = []
    for place, (label, parts) in enumerate(bars):
        y = _TOP + place * (_BAR + _GAP)
        marks.append(_text(_LEFT - 10, y + _BAR / 2, label, "end"))
        x = float(_LEFT)
        for part in parts:
            width = part.value / most * _INNER
            hint = f"{label}, {part.name}: {part.value:,.0f}"
            marks.append(_rect(x, y, width, _BAR, part.style, hint))
            x += width
        marks.append(_text(x + 8, y + _BAR / 2, short(sum(part.value for part in parts)), "start", "value"))
    names = {part.name: part.style for _, parts in bars for part in parts}
    return _figure(title, marks, _TOP + len(bars) * (_BAR + _GAP), names)


def grouped_bars(title: str, groups: Sequence[str], series: Sequence[Series]) -> str:
    """Upright bars of shares: a group for each place, in it a bar of each series."""
    marks = list(_share_axis())
    step = _INNER / max(len(groups), 1)
    width = min(step * 0.8 / max(len(series), 1), 28)
    for place, group in enumerate(groups):
        middle = _LEFT + (place + 0.5) * step
        marks.append(_text(middle, _HEIGHT + 16, group, "middle"))
        for number, one in enumerate(series):
            height = one.points[place][1] * (_HEIGHT - _TOP)
            x = middle + (number - len(series) / 2) * width
            hint = f"{one.name}, {group}: {one.points[place][1]:.1%}"
            marks.append(_rect(x + 1, _HEIGHT - height, width - 2, height, one.style, hint))
    return _figure(title, marks, _HEIGHT + 28, {one.name: one.style for one in series})


def share_lines(title: str, series: Sequence[Series], *, marked: float, marked_as: str) -> str:
    """Falling steps of shares over a logarithmic axis of tokens, one value of which is marked."""
    values = [x for one in series for x, share in one.points if 0 < share < 1] + [marked]
    low, high = log2(min(values)) - 0.5, log2(max(values)) + 0.5

    def across(x: float) -> float:
        return _LEFT + (min(max(log2(x), low), high) - low) / (high - low) * _INNER

    marks = list(_share_axis())
    every = 1 + int(high - low) // 7
    ticks = [2**power for power in range(int(low) + 1, int(high) + 1) if power % every == 0]
    marks += [_text(across(tick), _HEIGHT + 16, short(tick), "middle") for tick in ticks]
    place = across(marked)
    marks += [_line(place, _TOP, place, _HEIGHT, "marked"), _text(place + 4, _TOP + 6, marked_as, "start", "value")]
    for number, one in enumerate(series):
        before = one.points[0][1] if one.points else 0.0
        steps: list[str] = []
        for x, share in one.points:  # a share holds up to the next value, and falls there
            steps += [f"{across(x):.1f},{_up(before):.1f}", f"{across(x):.1f},{_up(share):.1f}"]
            before = share
        path = " ".join(steps)
        width = 2 * (len(series) - number)  # lines that lie on each other all show
        style = f'class="line {one.style}" stroke-width="{width}"'
        marks.append(f'<polyline {style} points="{path}"><title>{escape(one.name)}</title></polyline>')
    return _figure(title, marks, _HEIGHT + 28, {one.name: one.style for one in series})


def short(value: float) -> str:
    """A number of tokens in few characters; sizes of contexts as people call them.

    >>> short(32768), short(1_234_567)
    ('32k', '1.2M')
    """
    if value >= 1024 and value % 1024 == 0:
        return f"{value / 1024:.0f}k"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}{unit}" if value < 10 * size else f"{value / size:.0f}{unit}"
    return f"{value:.0f}"


def _up(share: float) -> float:
    return _HEIGHT - share * (_HEIGHT - _TOP)


def _share_axis() -> Iterator[str]:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield _line(_LEFT, _up(share), _LEFT + _INNER, _up(share), "grid")
        yield _text(_LEFT - 10, _up(share), f"{share:.0%}", "end")


def _rect(x: float, y: float, width: float, height: float, style: str, hint: str) -> str:
    return (
        f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}">'
        f"<title>{escape(hint)}</title></rect>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, style: str = "label") -> str:
    return (
        f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="middle">'
        f"{escape(text)}</text>"
    )


def _figure(title: str, marks: Sequence[str], height: float, names: dict[str, str]) -> str:
    keys = "".join(f'<span><i class="{style}"></i>{escape(name)}</span>' for name, style in names.items())
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><div class="keys">{keys}</div>'
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">{"".join(marks)}</svg></figure>'
    )
