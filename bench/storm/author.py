"""What the authors of a storm think up: small edits of a base, some of them in each other's way."""

from __future__ import annotations

import random
from collections.abc import Sequence

from bench.storm.facts import Facts
from bench.storm.intent import Edit, Intent, lines_of, places
from bench.storm.phrase import SAYS
from bench.storm.town import TARGET, is_plain

OLDEST = 30
"""Commits that a base is behind the target, at most."""
_APART = 8
"""Lines between two edits of one file, at least."""
_HOT = 12
_KINDS = ("replace",) * 7 + ("write", "create", "delete", "rename")


class Author:
    """One agent's mind: `think` reads the repository as it is and makes an intent."""

    def __init__(
        self, facts: Facts, files: Sequence[str], name: str, seed: int, calm: bool = False
    ) -> None:
        """`calm`: changes lines of the newest commit, and gets in nobody's way on purpose."""
        self.facts, self.files, self.name, self.calm = facts, files, name, calm
        self.rng = random.Random(f"{seed} {name}")
        self.hot = list(files[:: max(1, len(files) // _HOT)])[:_HOT]

    def think(self, number: int) -> Intent:
        while True:
            intent = self._try(f"{self.name}-{number:03d}")
            if intent is not None:
                return intent

    def _try(self, tag: str) -> Intent | None:
        rng = self.rng
        tip = self.facts.oid(f"refs/heads/{TARGET}")
        age = min(rng.randrange(OLDEST + 1), rng.randrange(OLDEST + 1)) * (not self.calm)
        overlap = rng.random() < 0.34 and not self.calm
        found = self.facts.object(f"{tip}~{max(age, 1) if overlap else age}")
        if found is None:
            return None
        base = found[0]
        declared = rng.random() < 0.85
        kind = rng.choice(_KINDS) if not self.calm else "replace"
        form = rng.choice([name for name, ops in SAYS.items() if kind in ops])
        count = rng.choice((1, 1, 1, 2, 3))
        edits: list[Edit] = []
        if kind == "create":
            edits = self._creation(base, tag, overlap)
        elif kind in ("write", "delete", "rename"):
            edits = self._whole(kind, base, tip, tag, overlap)
        elif count > 1 and rng.random() < 0.3:
            form = "mixed"
        if kind == "replace":
            for step in range(count):
                near = overlap and step == 0
                edit = self._line_edit(base, tip, f"{tag}.{step}", near, edits)
                edits += [edit] if edit else []
        if not edits:
            return None
        aim = f"{'overlapping' if overlap else 'free'} {kind}"
        return Intent(tag, base, declared, tuple(edits), form, aim)

    # ------------------------------------------------------------ edits of lines

    def _line_edit(
        self, base: str, tip: str, tag: str, near: bool, others: Sequence[Edit]
    ) -> Edit | None:
        rng = self.rng
        path, line = self._disputed(base, tip) if near else (None, None)
        if path is None and others and rng.random() < 0.5:
            path = others[0].path
        path = path or rng.choice(self.files)
        text = self.facts.text(base, path)
        if text is None or not is_plain(text):
            return None
        lines = lines_of(text)
        at = rng.randrange(len(lines)) if line is None else min(max(line, 0), len(lines) - 1)
        lo, hi, new = _change(lines, at, rng, tag)
        quote = _quote(lines, lo, hi, rng)
        if quote is None:
            return None
        first, last = quote
        for other in others:
            end = other.at + len(lines_of(other.old))
            if other.path == path and first < end + _APART and other.at < last + _APART:
                return None
        old, after = lines[first:last], [*lines[first:lo], *new, *lines[hi:last]]
        return Edit("replace", path, first, "".join(old), "".join(after))

    def _disputed(self, base: str, tip: str) -> tuple[str | None, int | None]:
        """A line of the base on, beside or near one that was changed since, or of a file that
        everybody likes."""
        rng = self.rng
        changed = [
            path
            for path, change in self.facts.changed(base, tip).items()
            if change and path in self.files
        ]
        if not changed or rng.random() < 0.3:
            return rng.choice(self.hot), rng.randrange(12, 24)
        path = rng.choice(changed)
        old, new = self.facts.blob(base, path), self.facts.blob(tip, path)
        if old is None or new is None:
            return None, None
        first, last, _, _ = rng.choice(self.facts.hunks(old, new, "myers"))
        return path, rng.choice((first - 3, first - 2, first - 1, first, first, last, last + 1))

    # ------------------------------------------------------------ edits of files

    def _creation(self, base: str, tag: str, overlap: bool) -> list[Edit]:
        rng = self.rng
        folder = rng.choice(self.files).rpartition("/")[0]
        name = f"shared_{rng.randrange(40)}.py" if overlap else f"new_{tag.replace('-', '_')}.py"
        path = f"{folder}/{name}" if folder and not overlap else name
        if self.facts.object(f"{base}:{path}") is not None:
            return []
        lines = [f'"""Made by {tag}."""\n', "\n", *(f"v{n} = {n}\n" for n in range(12))]
        return [Edit("create", path, 0, "", "".join(lines))]

    def _whole(self, kind: str, base: str, tip: str, tag: str, overlap: bool) -> list[Edit]:
        path = self._disputed(base, tip)[0] if overlap else None
        path = path or self.rng.choice(self.files)
        text = self.facts.text(base, path)
        if text is None or not is_plain(text) or (kind == "delete" and path in self.hot):
            return []
        if kind == "delete":
            return [Edit("delete", path, 0, text)]
        if kind == "write":
            lines = lines_of(text)
            lo, hi, new = _change(lines, self.rng.randrange(len(lines)), self.rng, tag)
            return [Edit("write", path, 0, text, "".join([*lines[:lo], *new, *lines[hi:]]))]
        stem, dot, suffix = path.rpartition(".")
        moved = Edit("rename", path, 0, "", f"{stem}_{tag.replace('-', '_')}{dot}{suffix}")
        edit = self._line_edit(base, tip, tag, False, [Edit("replace", path, -99)])
        return [edit, moved] if edit and edit.path == path else [moved]


def _change(
    lines: Sequence[str], at: int, rng: random.Random, tag: str
) -> tuple[int, int, list[str]]:
    """A change at a line that keeps a program's grammar: remarks, or whole functions gone."""
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())].strip("\n")
    how = rng.random()
    if how < 0.35:
        remarks = rng.randrange(1, 4)
        return at, at, [f"{indent}# {tag} says {number}\n" for number in range(remarks)]
    if how < 0.45 and lines[at].startswith("def "):
        end = next((n for n in range(at + 1, len(lines)) if lines[n][:1].strip()), len(lines))
        return at, end, []
    if how < 0.5 and lines[at].lstrip().startswith("# "):
        return at, at + 1, []
    hi = min(len(lines), at + rng.choice((1, 1, 1, 2, 3)))
    return at, hi, [_remarked(line, tag) for line in lines[at:hi]]


def _remarked(line: str, tag: str) -> str:
    return f"{line.rstrip().split('  # ')[0]}  # {tag}\n" if line.strip() else f"# {tag}\n"


def _quote(lines: Sequence[str], lo: int, hi: int, rng: random.Random) -> tuple[int, int] | None:
    """Lines round a change that stand nowhere else in the file."""
    first, last = lo - rng.randrange(1, 4), hi + rng.randrange(1, 4)
    while True:
        first, last = max(first, 0), min(last, len(lines))
        quote = lines[first:last]
        if quote and len(places(quote, lines)) == 1:
            return first, last
        if (first, last) == (0, len(lines)):
            return None
        first, last = first - 1, last + 1
