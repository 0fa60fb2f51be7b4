"""Plots as inline SVG; each is also on the page as a table, which says the same."""

from __future__ import annotations

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


def _label(name: str) -> str:
    return visible(clip(name, _TEXT))


def _svg(title: str, height: int, parts: Sequence[Markup]) -> Markup:
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">')
    return head.format(_WIDTH, height, title) + Markup("").join(parts) + Markup("</svg>")
