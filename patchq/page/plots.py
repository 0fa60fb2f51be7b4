"""Plots as inline SVG; each also stands on the page as a table, which says the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from patchq.core.text.quote import clip, visible

_WIDTH, _ROW, _LABEL, _NUMBER = 640, 24, 220, 60
_MOST_BARS = 20
_TEXT = 30


def bars(sums: Mapping[str, float], title: str) -> Markup:
    """A horizontal bar for each value, the longest first; empty where there is none."""
    shown = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:_MOST_BARS]
    if not shown:
        return Markup()
    most, room = max(number for _, number in shown) or 1, _WIDTH - _LABEL - _NUMBER
    parts = [
        Markup(
            '<text x="{}" y="{}" text-anchor="end">{}</text>'
            '<rect x="{}" y="{}" width="{}" height="{}" rx="3"/>'
            '<text x="{}" y="{}">{}</text>'
        ).format(
            _LABEL - 8, y + 16, _label(name),
            _LABEL, y + 4, max(1, round(room * number / most)), _ROW - 8,
            _LABEL + max(1, round(room * number / most)) + 6, y + 16, f"{number:g}",
        )
        for y, (name, number) in zip(range(0, len(shown) * _ROW, _ROW), shown, strict=False)
    ]  # fmt: skip
    return _svg(title, len(shown) * _ROW, parts)


def columns(days: Sequence[tuple[str, Sequence[int]]], title: str) -> Markup:
    """A column for each day, with a part for each number; each part has a class of its own."""
    if not days:
        return Markup()
    height, foot = 180, 24
    most = max(sum(numbers) for _, numbers in days) or 1
    step = (_WIDTH - 40) / max(len(days), 7)
    bar = Markup('<rect class="part-{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>')
    label = Markup('<text x="{:.1f}" y="{}">{}</text>')
    parts = []
    for at, (day, numbers) in enumerate(days):
        left, top = 20 + at * step, float(height)
        for part, number in enumerate(numbers):
            tall = number / most * (height - 10)
            top -= tall
            parts += [bar.format(part, left, top, step * 0.8, tall)] if number else []
        if at % max(1, len(days) // 7) == 0:
            parts.append(label.format(left, height + 16, day[5:]))
    return _svg(title, height + foot, parts)


def ring(names: Sequence[str], pairs: Sequence[tuple[int, int]], title: str) -> Markup:
    """The names on a circle, and a line for each pair that collides."""
    radius, middle, height = 170, _WIDTH / 2, 420
    places = [
        (middle + radius * math.sin(turn), height / 2 - radius * math.cos(turn), turn)
        for turn in (2 * math.pi * n / max(1, len(names)) for n in range(len(names)))
    ]
    lines = [
        Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(
            *places[one][:2], *places[other][:2]
        )
        for one, other in pairs
    ]
    dots = [
        Markup(
            '<circle cx="{:.1f}" cy="{:.1f}" r="6"/>'
            '<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>'
        ).format(
            x, y, x + 12 * math.sin(turn), y - 12 * math.cos(turn) + 4,
            "start" if math.sin(turn) >= -0.01 else "end", _label(name),
        )
        for name, (x, y, turn) in zip(names, places, strict=True)
    ]  # fmt: skip
    return _svg(title, height, [*lines, *dots])


def _label(name: str) -> str:
    return visible(clip(name, _TEXT))


def _svg(title: str, height: int, parts: Sequence[Markup]) -> Markup:
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return head.format(_WIDTH, height, title) + Markup("").join(parts) + Markup("</svg>")
