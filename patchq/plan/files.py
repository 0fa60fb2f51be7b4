"""The files of a batch: which one an edit names, and what becomes of it, as a whole and in part.

An edit may name a file by the path that it has or by the one that a rename of the batch gives it.
What creates, deletes or renames a file is checked against the tree and against the batch itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from patchq.model.ops import Anchored, Create, DeleteFile, InsertAt, Rename, Replace, Write, halves
from patchq.model.values import (
    Collision,
    Edit,
    EditOutcome,
    EditState,
    FileChange,
    Problem,
    Tree,
)
from patchq.plan import guards, targets
from patchq.plan.overlay import Overlay
from patchq.plan.targets import Refused, Rules
from patchq.resolve.ladder import Found, Rewrite, resolve
from patchq.resolve.readings import quoted_lines
from patchq.text.line_diff import whole_lines
from patchq.text.lines import Text, content
from patchq.text.quote import decode

_MOST_SHOWN = 60
_NAMES: dict[type, str] = {
    Create: "create",
    DeleteFile: "delete_file",
    Rename: "rename",
    Write: "write",
    InsertAt: "insert",
}


Deed = Literal["deleted", "renamed", "made", "edited", "written"]
"""What can be done to a file, in the order in which a clash names who did it."""


@dataclass(slots=True)
class File:
    """One file of the batch: where it stood, where it will, and what is made of it."""

    path: str
    text: Text
    """The text on the base; of a file that the batch creates, as it is created."""
    overlay: Overlay
    before: bytes | None
    executable: bool = False
    renamed_from: str | None = None
    by: dict[Deed, str] = field(default_factory=dict)
    """The edits that did something to it."""
    final_newline: bool | None = None
    """How the text ends, where an edit says it; None: as it did."""
    folded: dict[object, EditOutcome] = field(default_factory=dict)
    """The edits that were resolved on what earlier ones wrote."""
    indexed: list[tuple[int, int, str]] = field(default_factory=list)
    """What indexed edits change of the base: the bytes from and to, and the edit."""
    _now: Text | None = None

    def has_base(self, text: Text) -> bool:
        """Whether it is the base's text."""
        return text is self.text and "made" not in self.by

    def now(self) -> Text:
        """The text as the edits so far leave it."""
        whole = self.overlay.text()
        if whole is self.text.whole:
            return self.text
        if self._now is None or self._now.data is not whole:
            self._now = Text(whole)
        return self._now

    def change(self) -> FileChange | None:
        after = None
        if "deleted" not in self.by:
            whole = self.overlay.text()
            ended = whole if self.final_newline else content(whole)
            after = self.text.restored(whole) if self.final_newline is None else ended
        if after == self.before and not self.renamed_from:
            return None
        hunks = None
        if self.before is not None and after is not None and "made" not in self.by:
            hunks = whole_lines(self.before, after, self.overlay.hunks())
        return FileChange(self.path, self.before, after, self.executable, self.renamed_from, hunks)


class Files:
    """The files that a batch speaks of, read from the tree when an edit first names them."""

    def __init__(self, edits: Sequence[Edit], tree: Tree, rules: Rules) -> None:
        self._tree = tree
        self._rules = rules
        self._aliases = {e.op.to: e.path for e in edits if isinstance(e.op, Rename)}
        self._files: dict[str, File] = {}
        self._new_paths = targets.NewPaths()

    def __iter__(self) -> Iterator[File]:
        return iter({id(file): file for file in self._files.values()}.values())

    def named(self, path: str) -> File:
        """The file that an edit names; raises `Refused`."""
        if path not in self._files and path in self._aliases and self._tree.entry(path) is None:
            path = self._aliases[path]
        if path not in self._files:
            data, entry = targets.existing(self._tree, path, self._rules)
            text = Text(data)
            self._files[path] = File(path, text, Overlay(text.whole), data, entry.executable)
        return self._files[path]

    def create(self, edit: Edit, op: Create) -> bool:
        """Make the file; False if it is there already, byte for byte.  Raises `Refused`."""
        if edit.path in self._files or edit.path in self._aliases:
            raise clash(edit, self._files.get(edit.path), "another edit of the batch")
        entry = targets.check_new(self._tree, edit.path, self._rules)
        there = None if entry is None else self._tree.read(edit.path)
        data = op.text.encode("utf-8", "surrogateescape")
        if there == data:
            return False
        if there:
            raise _exists(edit.path, f"{edit.path} exists and is not empty", there)
        if problem := guards.escaped_file(edit, op) or guards.elided(edit, self._rules, None):
            raise Refused(problem)
        self._new_paths.add(edit.path)
        text, executable = Text(data), entry is not None and entry.executable
        self._files[edit.path] = File(
            edit.path, text, Overlay(text.whole), there, executable, by={"made": edit.id}
        )
        return True

    def write(self, edit: Edit, op: Write) -> Found | None:
        """Make the file hold the text: what that changes, None if it is new; raises `Refused`."""
        if edit.path not in self._files and self._tree.entry(edit.path) is None:
            self.create(edit, Create(op.text))
            return None
        file = self.named(edit.path)
        if file.by.keys() & {"edited", "made", "deleted", "written"}:
            raise clash(edit, file, "another edit of the file that this one writes")
        file.by["written"] = edit.id
        if problem := guards.elided(edit, self._rules, file.text):
            raise Refused(problem)
        if file.text.lines:
            targets.check_text(edit.path, file.text.data, self._rules)
        if problem := guards.shrinks(edit, op, self._rules, file.text):
            raise Refused(problem)
        new = op.text.removeprefix("\ufeff" if file.text.offset else "")
        file.final_newline = not new or new.endswith("\n")
        rewrite = Rewrite(file.text.contents, quoted_lines(new))
        return Found("exact", 0, len(file.text.lines), (rewrite.at(file.text, 0),))

    def delete(self, edit: Edit, op: DeleteFile) -> None:
        """Raises `Refused`, also if the edit quotes the file and it holds something else."""
        file = self.named(edit.path)
        if op.old is not None and not self._is_whole(file, op.old):
            raise Refused(
                Problem(
                    "match.none",
                    f"edit {edit.id} deletes {edit.path} and quotes other lines than it has",
                    "read the file again; it has changed or was misremembered",
                    path=edit.path,
                )
            )
        if file.by.keys() & {"edited", "renamed", "made", "deleted"}:
            raise clash(edit, file, "an edit of the file that this one deletes")
        file.by["deleted"] = edit.id

    def _is_whole(self, file: File, quote: str) -> bool:
        if not file.text.lines or not quote:
            return not file.text.lines and not quote
        found = resolve(file.text, Replace(quote, ""), self._rules.rungs)
        return isinstance(found, Found) and (found.start, found.end) == (0, len(file.text.lines))

    def rename(self, edit: Edit, to: str) -> None:
        """Raises `Refused`."""
        file = self.named(edit.path)
        if targets.check_new(self._tree, to, self._rules) is not None:
            raise _exists(to, f"{edit.path} cannot be renamed: {to} exists")
        if file.by.keys() & {"deleted", "renamed", "made"} or to in self._files:
            raise clash(edit, file, "another edit of the batch")
        self._new_paths.add(to)
        file.renamed_from, file.path, file.by["renamed"] = file.path, to, edit.id
        self._files[to] = file


def _exists(path: str, message: str, there: bytes = b"") -> Refused:
    """`there` is what the file holds; its first lines are shown, to be quoted."""
    lines = tuple(map(decode, Text(there).contents[:_MOST_SHOWN])) if there else ()
    return Refused(
        Problem(
            "path.exists",
            message,
            "quote the lines to change in the SEARCH part, or choose another path",
            path=path,
            excerpt=(1, lines) if lines else None,
        )
    )


def clash(edit: Edit, file: File | None, what: str) -> Refused:
    """The refusal of an edit that wants something else of the file than an earlier one."""
    deeds = file.by if file else {}
    other = next((deeds[deed] for deed in get_args(Deed) if deed in deeds), None)
    return Refused(
        Problem(
            "conflict.overlap",
            f"edit {edit.id} ({op_name(edit)} {edit.path}) collides with {what}"
            + (f": edit {other}" if other else ""),
            "say once what shall become of the file",
            path=edit.path,
            conflicts_with=Collision(edit=other, path=edit.path),
        )
    )


def outcome(
    edit: Edit,
    state: EditState,
    cancelled_by: str | None = None,
    match: str | None = None,
    lines: tuple[int, int] | None = None,
) -> EditOutcome:
    """What became of an edit, at which rung and lines."""
    return EditOutcome(
        edit.id, edit.format, edit.at, edit.path, op_name(edit), state, match, lines,
        cancelled_by=cancelled_by, confidence=edit.confidence, description=edit.description,
    )  # fmt: skip


def op_name(edit: Edit) -> str:
    """The operation as reports name it."""
    if type(edit.op) in _NAMES:
        return _NAMES[type(edit.op)]
    if isinstance(edit.op, Anchored):
        return edit.op.action.partition("_")[0]
    return "replace" if halves(edit.op)[1] else "delete"
