"""Pairs of neighbouring commits: the later one's change as edits of the earlier one, and a branch
that has moved past that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.storm.facts import Facts
from bench.storm.intent import Edit, Intent, lines_of, on_base, places
from bench.storm.ort import merges, write_commits
from bench.storm.phrase import SAYS
from bench.storm.rule import Judge, carried
from bench.storm.town import SUFFIXES, is_plain

_FORMS = ("search_replace", "unified_diff", "v4a", "edit_calls", "whole_file")
_MOVERS = 6
_MOST_FILES = 20


@dataclass(slots=True)
class Pair:
    """A change from its base, and the tip of the branch that has moved past that."""

    number: int
    intent: Intent
    later: Sequence[str]
    """The commits after it, oldest first."""
    tip: str
    blocked: bool = False

    @property
    def branch(self) -> str:
        return f"pair-{self.number:03d}"


def pairs(facts: Facts, most: int) -> Iterator[Pair]:
    """Neighbouring commits whose difference can be said in responses, the newest first."""
    line = facts.git("rev-list", "--first-parent", "HEAD").split()
    number = 0
    for at in range(1, len(line) - 1):
        edits = list(_edits(facts, line[at + 1], line[at]))
        if not edits:
            continue
        form = _form(edits, _FORMS[number % len(_FORMS)])
        if form == "whole_file":
            edits = list(_written(facts, line[at + 1], edits))
        intent = Intent(f"pair-{number:03d}", line[at + 1], True, tuple(edits), form)
        later = line[max(0, at - _MOVERS) : at][::-1]
        yield Pair(number, intent, later, intent.base)
        number += 1
        if number == most:
            return


def _form(edits: Sequence[Edit], wanted: str) -> str:
    able = SAYS[wanted] | ({"replace"} if wanted == "whole_file" else set())
    return wanted if {edit.op for edit in edits} <= able else "search_replace"


def _edits(facts: Facts, base: str, commit: str) -> Iterator[Edit]:
    """The change as edits; none if some of it cannot be quoted in every format."""
    changes = facts.changed(base, commit)
    if len(changes) > _MOST_FILES:
        return
    made: list[Edit] = []
    for path, change in changes.items():
        before, after = facts.text(base, path), facts.text(commit, path)
        plain = all(text is None or is_plain(text) for text in (before, after))
        if not path.endswith(SUFFIXES) or not plain or (change and change[1] != "100644"):
            return
        if before is None:
            made.append(Edit("create", path, 0, "", after or ""))
        elif after is None:
            made.append(Edit("delete", path, 0, before))
        else:
            made += _line_edits(facts, base, commit, path, before, after)
    yield from made


def _line_edits(
    facts: Facts, base: str, commit: str, path: str, before: str, after: str
) -> Iterator[Edit]:
    """A quote for every changed run of lines, as long as it takes to be unique; those that meet
    are one."""
    old, new = lines_of(before), lines_of(after)
    blobs = facts.blob(base, path) or "", facts.blob(commit, path) or ""
    runs: list[tuple[int, int, int, int]] = []
    for a0, a1, b0, b1 in facts.hunks(*blobs, "myers"):
        first, last = a0 - 2, a1 + 2
        while (first > 0 or last < len(old)) and len(places(old[max(first, 0) : last], old)) != 1:
            first, last = first - 1, last + 1
        first, last = max(first, 0), min(last, len(old))
        run = (first, last, b0 - (a0 - first), b1 + (last - a1))
        while runs and runs[-1][1] >= run[0]:
            met = runs.pop()
            run = (
                min(met[0], run[0]),
                max(met[1], run[1]),
                min(met[2], run[2]),
                max(met[3], run[3]),
            )
        runs.append(run)
    for first, last, start, end in runs:
        yield Edit("replace", path, first, "".join(old[first:last]), "".join(new[start:end]))


def _written(facts: Facts, base: str, edits: Sequence[Edit]) -> Iterator[Edit]:
    """The edits as whole files."""
    for path in dict.fromkeys(edit.path for edit in edits):
        mine = tuple(edit for edit in edits if edit.path == path)
        if mine[0].op == "create":
            yield mine[0]
            continue
        text = facts.text(base, path) or ""
        after = on_base(Intent("", base, True, mine), {path: text})[path]
        yield Edit("write", path, 0, text, after or "")


# ---------------------------------------------------------------- the branches move


def move_on(facts: Facts, found: Sequence[Pair]) -> None:
    """Put later commits on top of each pair's base where git picks them cleanly, and for every
    fourth pair a change of a line that it changes too."""
    for step in range(_MOVERS):
        _pick(facts, [(pair, pair.later[step]) for pair in found if step < len(pair.later)])
    judge = Judge(facts)
    for pair in found[::4]:
        blocking = _blocking(judge, pair)
        if blocking is not None:
            path, text = blocking
            pair.tip = write_commits(facts.repo, [(pair.tip, {path: text})], facts.home)[0]
            pair.blocked = True
    orders = "".join(f"create refs/heads/{pair.branch} {pair.tip}\n" for pair in found)
    facts.git("update-ref", "--stdin", data=orders.encode())


def _pick(facts: Facts, cases: Sequence[tuple[Pair, str]]) -> None:
    ours = [(f"{commit}^", facts.oid(f"{pair.tip}^{{tree}}")) for pair, commit in cases]
    parents = facts.git("rev-parse", *(name for name, _ in ours)).split() if ours else []
    asked = [(parent, tree) for parent, (_, tree) in zip(parents, ours, strict=True)]
    made = write_commits(facts.repo, asked, facts.home)
    trees = merges(
        facts.repo,
        list(zip(made, (commit for _, commit in cases), strict=True)),
        facts.home,
    )
    clean = [
        (pair, tree)
        for (pair, _), tree, (_, old) in zip(cases, trees, asked, strict=True)
        if tree is not None and tree != old
    ]
    tips = write_commits(facts.repo, [(pair.tip, tree) for pair, tree in clean], facts.home)
    for (pair, _), tip in zip(clean, tips, strict=True):
        pair.tip = tip


def _blocking(judge: Judge, pair: Pair) -> tuple[str, str] | None:
    """The text of a file with a change in the way of the pair's first edit of lines."""
    facts = judge.facts
    for edit in pair.intent.edits:
        text = facts.text(pair.tip, edit.path)
        old, now = facts.blob(pair.intent.base, edit.path), facts.blob(pair.tip, edit.path)
        if edit.op not in ("replace", "write") or text is None or old is None or now is None:
            continue
        lines = lines_of(text)
        place = min(carried(edit.span()[0], facts.hunks(old, now, "myers")), len(lines) - 1)
        lines[place] = f"{lines[place].rstrip()} in the way\n"
        return edit.path, "".join(lines)
    return None
