"""Edits of one file that build on each other, or meet at one point, and are there already for what
they come to.

Each of them alone shows nothing of it: the first may write what the next takes away again, and of
two that put lines at one point each parts what the other quotes and writes.  But where all of them,
the last one first, can be taken back in the text as it is, and they make this very text of what is
left, then it is what they come to, and a second delivery of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from patchq.core.model.frozen import frozen
from patchq.core.model.listing import Listing
from patchq.core.model.ops import (
    InContext,
    Occurrences,
    Op,
    PatchHunk,
    Replace,
    ReplaceText,
    halves,
)
from patchq.core.model.values import Edit, Entry, Plan, Tree
from patchq.core.plan.files import File, Files
from patchq.core.resolve.ladder import Found, replaced
from patchq.core.resolve.match import Hints, match
from patchq.core.text.lines import Text
from patchq.core.text.patterns import Pattern

_WORD = Pattern(r"\w+")
_MOST_AT_ONCE = 100
"""Of a file with more edits only those are taken back together that speak of the same lines."""


@frozen
class _WithFile:
    """A tree in which one file has another text."""

    tree: Tree
    path: str
    data: bytes

    def entry(self, path: str) -> Entry | None:
        return self.tree.entry(path)

    def read(self, path: str) -> bytes:
        return self.data if path == self.path else self.tree.read(path)

    def names(self, directory: str) -> tuple[str, ...]:
        return self.tree.names(directory)

    def paths(self) -> Iterator[str]:
        return self.tree.paths()

    def listing(self) -> Listing:
        return self.tree.listing()

    def filtered(self, path: str) -> str | None:
        return self.tree.filtered(path)


def made(
    edits: Sequence[Edit],
    files: Files,
    done: Plan,
    rungs: Sequence[str],
    plan: Callable[[Sequence[Edit], Tree], Plan],
) -> set[str]:
    """The edits (by id) that build on each other, or meet at one point, and come to what is there
    already.  `done` is what one reading of all of them made of the files; `plan` plans some of
    them on another tree."""
    states = {outcome.id: outcome.state for outcome in done.edits}
    if done.refused or len(edits) < 2:
        return set()
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)

    def comes_to(file: File, chain: Sequence[Edit]) -> bool:
        """Whether the edits of a chain come to the file's text as it is."""
        now = file.text.data
        for before in {_taken_back(file.text, order, rungs) for order in (chain, chain[::-1])}:
            if before is not None and before != now:
                changes = plan(chain, _WithFile(files.tree, file.path, before)).changes
                if len(changes) == 1 and changes[0].after == now:
                    return True
        return False

    return {
        edit.id
        for file in files
        if file.origin and file.stays and file.stated_by is None
        for chain in _chains(by_path.get(file.path, ()), states, file.text.data)
        if comes_to(file, chain)
        for edit in chain
    }


def _chains(edits: Sequence[Edit], states: Mapping[str, str], text: bytes) -> Iterator[list[Edit]]:
    """The edits of one file that speak of the same lines, in their order, if some of them would be
    applied: two at least.  At last all of them: those that put lines at one point need not speak
    of each other's."""
    if len(edits) < 2 or not any(states.get(edit.id) == "applied" for edit in edits):
        return
    groups = list(_groups(edits))
    if len(edits) <= _MOST_AT_ONCE and [len(group) for group in groups] != [len(edits)]:
        groups.append(list(edits))
    there = set(map(bytes.strip, text.split(b"\n"))) if groups else set()
    for chain in groups:
        applied = any(states.get(edit.id) == "applied" for edit in chain)
        if applied and _shows(chain, text, there):
            yield chain


def _shows(chain: Sequence[Edit], text: bytes, there: Set[bytes]) -> bool:
    """Whether a line that one of the edits adds is in the text, without which it holds nothing of
    what they come to.  `there` are its lines.  Where parts of lines change, the whole text has to
    be looked through; then the first and the last edit, one of which came last, tell enough."""
    parts: list[list[bytes]] = []
    for edit in chain:
        old, new = halves(edit.op)
        lines = [
            line.encode("utf-8", "surrogateescape")
            for line in map(str.strip, new.split("\n"))
            if _WORD.search(line) and line not in old
        ]
        if not there.isdisjoint(lines):
            return True
        if lines and not isinstance(edit.op, Replace | PatchHunk):
            parts.append(lines)
    return any(line in text for lines in (*parts[:1], *parts[-1:]) for line in lines)


def _groups(edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """The edits that speak of the same lines as others do, each in one group."""
    groups: list[list[int]] = []
    group_of: list[int] = []
    by_line: dict[str, int] = {}
    for at, edit in enumerate(edits):
        own = at
        groups.append([at])
        group_of.append(at)
        spoken_of = _spoken_of(edit)
        if by_line.keys().isdisjoint(spoken_of):  # most of many are so, which is quick to tell
            by_line.update(dict.fromkeys(spoken_of, at))
            continue
        for line in spoken_of:
            other = group_of[by_line.setdefault(line, at)]
            if other != own:
                small, large = sorted((own, other), key=lambda one: len(groups[one]))
                for member in groups[small]:
                    group_of[member] = large
                groups[large] += groups[small]
                groups[small], own = [], large
    for group in groups:
        if len(group) > 1:
            yield [edits[at] for at in sorted(group)]


def _spoken_of(edit: Edit) -> set[str]:
    """The lines of an edit that say something; the words of one that changes parts of lines."""
    both = halves(edit.op)
    if isinstance(edit.op, ReplaceText) and "\n" not in edit.op.old:
        return {word for half in both for word in _WORD.findall(half)}
    lines = {line.strip() for half in both for line in half.split("\n")}
    return {line for line in lines if line[:1].isalnum() or _WORD.search(line)}


def _taken_back(text: Text, chain: Sequence[Edit], rungs: Sequence[str]) -> bytes | None:
    """The text without what the edits write, taken back in this order; None where one of them has
    no one place.

    What others put beside it at the same point parts new lines from those that were kept with them:
    then they are taken back alone.
    """
    for edit in chain:
        hints = Hints(rungs, edit.path, asked=False)
        backs = (match(text, back, hints) for back in _backwards(edit.op))
        found = next((one for one in backs if isinstance(one, Found)), None)
        if found is None:
            return None
        text = Text(replaced(text.whole, found.hunks, 0, len(text.whole)))
    return text.data


def _backwards(op: Op) -> Iterator[Replace | ReplaceText]:
    """What undoes an operation, the most certain first."""
    match op:
        case Replace(old, new) | PatchHunk(old, new) if old and new:
            yield Replace(new, old)
            before, after = _apart(old.splitlines(True), new.splitlines(True))
            if after and len(after) < new.count("\n"):
                yield Replace("".join(after), "".join(before))
        case ReplaceText(old, new, 1) if old and new:
            yield from _characters(old, new)
        case Occurrences(at=None) | InContext(every=False):
            yield from _characters(*halves(op))


def _characters(old: str, new: str) -> Iterator[ReplaceText]:
    yield ReplaceText(new, old)
    before, after = _apart(old, new)
    if _WORD.search("".join(after)) and len(after) < len(new):
        yield ReplaceText("".join(after), "".join(before))


def _apart(old: Sequence[str], new: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Both without what they begin and end with alike."""
    most = min(len(old), len(new))
    first = next((at for at in range(most) if old[at] != new[at]), most)
    most -= first
    last = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    return old[first : len(old) - last], new[first : len(new) - last]
