"""The hunks of a change that is known already: from bytes to lines, and to the diff of a report.

Who made a change knows what it touched, so nobody has to look for it in the two texts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from patchq.model.values import Hunk, LineHunk
from patchq.text.line_diff import line_diff


def whole_lines(before: bytes, after: bytes, hunks: Iterable[Hunk]) -> tuple[LineHunk, ...]:
    """The changed runs of whole lines, in order, with an unchanged line between any two.

    `hunks`, in order and without overlap, make `after` of `before`, but for how the last line ends:
    offsets may count a final newline that the texts lack (see `Text.whole`).
    """
    spans: list[tuple[int, int, int, int]] = []
    shift = 0
    for hunk in hunks:
        start = before.rfind(b"\n", 0, hunk.start) + 1
        new_start = start + shift
        shift += len(hunk.new) - (hunk.end - hunk.start)
        end = hunk.end
        if not (_begins_line(before, end) and _begins_line(after, end + shift)):
            end = before.find(b"\n", end) + 1 or len(before)
        _append(spans, (start, end, new_start, end + shift))
    end, new_end = (spans[-1][1], spans[-1][3]) if spans else (0, 0)
    if end >= len(before) or before[end:] != after[new_end:]:
        start, new_start = len(before), len(before) + shift
        if spans and end >= len(before):
            start, _, new_start, _ = spans.pop()
        if not _begins_line(after, new_start):  # the line before it loses or gets its end
            line = before.rfind(b"\n", 0, max(start - 1, 0)) + 1
            start, new_start = line, new_start - (start - line)
        _append(spans, (start, len(before), new_start, len(after)))
    return tuple(_in_lines(before, after, spans))


def _begins_line(text: bytes, at: int) -> bool:
    return at == 0 or text[at - 1 : at] == b"\n"


def _append(spans: list[tuple[int, int, int, int]], span: tuple[int, int, int, int]) -> None:
    """Add a span, as one with that before it if no line is between them."""
    if spans and span[0] <= spans[-1][1]:
        start, _, new_start, _ = spans.pop()
        span = start, span[1], new_start, span[3]
    spans.append(span)


def _in_lines(
    before: bytes, after: bytes, spans: Iterable[tuple[int, int, int, int]]
) -> Iterable[LineHunk]:
    position = line = shift = 0
    for start, end, new_start, new_end in spans:
        line += before.count(b"\n", position, start)
        count, new_count = _count(before, start, end), _count(after, new_start, new_end)
        if before[start:end] != after[new_start:new_end]:
            yield line, line + count, line + shift, line + shift + new_count
        position, line, shift = end, line + count, shift + new_count - count


def _count(text: bytes, start: int, end: int) -> int:
    """The lines between two offsets; the text's last one may lack its end."""
    return text.count(b"\n", start, end) + (start < end and text[end - 1 : end] != b"\n")


def known_diff(a: Sequence[bytes], b: Sequence[bytes], hunks: Sequence[LineHunk]) -> list[LineHunk]:
    """What `line_diff(a, b)` gives, where all that differs is in `hunks`.

    Where no line that goes away or is new stands anywhere else, only the lines of the hunks are
    compared: all others are alike, and no diff could match more.
    """
    if len(hunks) > 1:
        found: list[LineHunk] = []
        for a0, a1, b0, b1 in hunks:
            parts = line_diff(a[a0:a1], b[b0:b1])
            found += [(a0 + i, a0 + j, b0 + k, b0 + m) for i, j, k, m in parts]
        gone = {line for a0, a1, _, _ in found for line in a[a0:a1]}
        new = {line for _, _, b0, b1 in found for line in b[b0:b1]}
        bounds = zip([0, *(h[1] for h in found)], [*(h[0] for h in found), len(a)], strict=True)
        if gone.isdisjoint(new) and all(map((gone | new).isdisjoint, (a[i:j] for i, j in bounds))):
            return found
    front, back = (hunks[0][0], len(a) - hunks[-1][1]) if hunks else (0, 0)
    return line_diff(a, b, front, back)
