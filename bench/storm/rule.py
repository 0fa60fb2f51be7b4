"""The rule of moved bases, by git's differences and by counting lines alone.

On a target that has moved past a response's base, its changed spans
are carried through the difference.  A span that was touched must not land, nor one next to a line
that was (unless the quote, with that line in it, stands on the target), nor one whose quote stands
once on the target, but elsewhere.  Everything else must land, and nothing but that.

Where repeated lines let a difference be told in several ways, each way may excuse, and none alone
accuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.storm.facts import ALGORITHMS, Facts, Hunk
from bench.storm.intent import Edit, Intent, lines_of, places, replaced

Result = dict[str, str | None]
"""The text of every path that changes, None where it is gone."""


def gap(lo: int, hi: int, hunk: Hunk) -> int:
    """Untouched lines between a span and a change of the same text; -1 where they overlap."""
    a0, a1 = hunk[:2]
    if a0 < hi and lo < a1:
        return -1
    return max(a0 - hi, lo - a1)


def carried(lo: int, hunks: Sequence[Hunk]) -> int:
    """Where a line that no hunk touches is on the other side."""
    return lo + sum((b1 - b0) - (a1 - a0) for a0, a1, b0, b1 in hunks if a1 <= lo)


def _beside(lo: int, hi: int, hunks: Sequence[Hunk]) -> list[Hunk]:
    return [hunk for hunk in hunks if gap(lo, hi, hunk) == 0]


def _without_edge(edit: Edit) -> Iterator[Edit]:
    """The edit, and then without blank lines that both its halves begin and end with."""
    old, new = lines_of(edit.old), lines_of(edit.new)
    fronts = _blanks(old, new)
    ends = _blanks(old[::-1], new[::-1])
    for front in range(fronts + 1):
        for end in range(ends + 1):
            quote, after = old[front : len(old) - end], new[front : len(new) - end]
            if any(map(str.strip, quote)):
                yield Edit(edit.op, edit.path, edit.at, "".join(quote), "".join(after))


def _blanks(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((n for n, pair in enumerate(pairs) if any(map(str.strip, pair))), 0)


class Judge:
    """Applies the rule to intents, on the commits of one repository."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def results(self, intent: Intent, base: str, tip: str) -> Iterator[Result]:
        """What an intent, with its lines counted on `base`, may make of that tip."""
        for algorithm in ALGORITHMS:
            result = self._result(intent, base, tip, algorithm)
            if result is not None:
                yield result

    def refusal(self, intent: Intent, base: str, tip: str) -> str | None:
        """Why the intent may be refused on that tip; None: it has to land."""
        for edit in intent.edits:
            why = self._changed_file(edit, base, tip)
            ways = (self._refusal(edit, base, tip, algorithm) for algorithm in ALGORITHMS)
            why = why or next(filter(None, ways), None)
            if why is not None:
                return why
        return None

    def ambiguous(self, intent: Intent, tip: str) -> bool:
        """Whether a quote stands at several places of the tip, so that it tells no base."""
        return any(
            edit.op == "replace"
            and len(places(lines_of(edit.old), lines_of(self.facts.text(tip, edit.path) or ""))) > 1
            for edit in intent.edits
        )

    def relocated(self, intent: Intent, base: str) -> Intent | None:
        """The intent with its quotes' lines as they stand on another commit; None where one does
        not stand there exactly once, blank lines at its ends aside."""
        moved = [self._relocated(edit, self.facts.text(base, edit.path)) for edit in intent.edits]
        known = tuple(edit for edit in moved if edit is not None)
        if len(known) < len(moved):
            return None
        return Intent(intent.name, base, intent.declared, known, intent.form, intent.aim)

    def _relocated(self, edit: Edit, text: str | None) -> Edit | None:
        if (edit.op == "create") != (text is None):
            return None
        if edit.op in ("write", "delete"):
            return Edit(edit.op, edit.path, 0, text or "", edit.new)
        if edit.op != "replace":
            return edit
        for less in _without_edge(edit):
            found = places(lines_of(less.old), lines_of(text or ""))
            if found:
                same = Edit(edit.op, edit.path, found[0], less.old, less.new)
                return same if len(found) == 1 else None
        return None

    # ------------------------------------------------------------ what may land

    def _result(self, intent: Intent, base: str, tip: str, algorithm: str) -> Result | None:
        """What the intent makes of the tip, or None where it must not land."""
        result: Result = {}
        for path in dict.fromkeys(edit.path for edit in intent.edits):
            edits = [edit for edit in intent.edits if edit.path == path]
            text = self.facts.text(tip, path)
            if edits[0].op == "create":
                if text is not None:
                    return None
                result[path] = edits[0].new
                continue
            if text is None:
                return None
            if edits[0].op == "delete":
                if self.facts.blob(tip, path) != self.facts.blob(base, path):
                    return None
                result[path] = None
                continue
            to = next((edit.new for edit in edits if edit.op == "rename"), None)
            if to is not None:
                if self.facts.text(tip, to) is not None:
                    return None
                result[path] = None
            changes = [edit for edit in edits if edit.op != "rename"]
            spans = [self._span_on_tip(edit, base, tip, text, algorithm) for edit in changes]
            known = [span for span in spans if span is not None]
            after = replaced(text, known) if len(known) == len(spans) else None
            if after is None:
                return None
            result[to or path] = after
        return result

    def _span_on_tip(
        self, edit: Edit, base: str, tip: str, text: str, algorithm: str
    ) -> tuple[int, int, list[str]] | None:
        lo, hi, new = edit.span()
        hunks = self._hunks(edit, base, tip, algorithm)
        gaps = [gap(lo, hi, hunk) for hunk in hunks]
        if -1 in gaps:
            return None
        found = places(lines_of(edit.old), lines_of(text)) if edit.op == "replace" else []
        front, size = lo - edit.at, hi - lo
        place = carried(lo, hunks)
        if 0 in gaps:
            above = front > 0 or not any(hunk[1] <= lo for hunk in _beside(lo, hi, hunks))
            below = edit.at + len(lines_of(edit.old)) > hi
            below = below or not any(hunk[0] >= hi for hunk in _beside(lo, hi, hunks))
            if len(found) != 1 or not (above and below):
                return None
            place = found[0] + front
        elif len(found) == 1 and found[0] + front != place:
            return None
        return place, place + size, new

    # ------------------------------------------------------------ what may be refused

    def _changed_file(self, edit: Edit, base: str, tip: str) -> str | None:
        """Why an edit may be refused for what became of its file as a whole."""
        old, now = self.facts.blob(base, edit.path), self.facts.blob(tip, edit.path)
        if edit.op == "create":
            return f"{edit.path} exists" if now is not None else None
        if now is None:
            return f"{edit.path} is gone"
        if edit.op in ("delete", "rename") and old != now:
            return f"{edit.path} changed"
        if edit.op == "rename" and self.facts.blob(tip, edit.new) is not None:
            return f"{edit.new} exists"
        return None

    def _refusal(self, edit: Edit, base: str, tip: str, algorithm: str) -> str | None:
        text = self.facts.text(tip, edit.path)
        if edit.op not in ("replace", "write") or text is None:
            return None
        lo, hi, _ = edit.span()
        hunks = self._hunks(edit, base, tip, algorithm)
        for hunk in hunks:
            if gap(lo, hi, hunk) <= 0:
                return f"{edit.path}: lines {hunk[0] + 1}-{hunk[1]} were touched ({algorithm})"
        if edit.op == "replace":
            place = carried(lo, hunks) - (lo - edit.at)
            return self._elsewhere(edit, lines_of(text), place)
        return None

    def _elsewhere(self, edit: Edit, lines: Sequence[str], place: int) -> str | None:
        """Whether the quote stands at another place alone, blanks at the lines' ends aside."""
        quote = lines_of(edit.old)
        if lines[place : place + len(quote)] == quote:
            return None
        bare = places([line.strip() for line in quote], [line.strip() for line in lines])
        others = [at for at in bare if at != place]
        return f"{edit.path}: the quote stands at line {others[0] + 1} too" if others else None

    def _hunks(self, edit: Edit, base: str, tip: str, algorithm: str) -> tuple[Hunk, ...]:
        old, new = self.facts.blob(base, edit.path), self.facts.blob(tip, edit.path)
        return self.facts.hunks(old, new, algorithm) if old and new else ()
