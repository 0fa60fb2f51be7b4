"""The files of a batch: which each edit names, and where each ends.

An edit may name a file by the path that it has or by the one that a rename of the batch gives it.
Text states renames, deletions and creations together: a path that one of them frees is free for the
others, wherever they stand; it may then name two files, the one that leaves it and the one that
comes.  Calls do one thing after the other: a path names the file that has it by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

from patchq.core.model.ops import (
    WHOLE,
    Anchored,
    Create,
    DeleteFile,
    InsertAt,
    Rename,
    SetMode,
    Write,
    WriteBytes,
    halves,
)
from patchq.core.model.values import (
    Collision,
    Edit,
    EditOutcome,
    EditState,
    Entry,
    ErrorProblem,
    FileChange,
    Hunk,
    Tree,
    WarningProblem,
)
from patchq.core.plan import targets
from patchq.core.plan.edited_text import ChangedRange, EditedText, Patch
from patchq.core.plan.targets import EditRefused, PlanRules
from patchq.core.resolve.ladder import Found
from patchq.core.text.line_diff import line_diff
from patchq.core.text.lines import Text, content, split_lines
from patchq.core.text.quote import line_words

_NAMES: dict[type, str] = {
    Create: "create",
    DeleteFile: "delete_file",
    Rename: "rename",
    Write: "write",
    WriteBytes: "write",
    SetMode: "mode",
    InsertAt: "insert",
}


# What can be done to a file, in the order in which a clash names who did it.
FileOperation = Literal["deleted", "renamed", "made", "edited", "written"]


@dataclass(slots=True)
class File:
    """One file of a batch: its paths before and after, and its new content."""

    path: str  # the path after the edits so far
    text: Text  # the text on the base; of a file that the batch creates, as it is created
    # The base's content at the path; for a file that the batch makes, the one it replaces.
    before: bytes | None
    executable: bool = False
    origin: str | None = None  # the path that it has on the base; None for one that the batch makes
    # The executable bit on the base; None for a file that the batch makes.
    was_executable: bool | None = None
    link: bool = False  # true for a file that is, or becomes, a symbolic link
    was_link: bool = False  # true if the base has a symbolic link there
    stated: bytes | None = None  # the whole new content, if an edit states it in bytes
    # The id of an edit for each operation on it.
    by: dict[FileOperation, str] = field(default_factory=dict)
    edits: list[str] = field(default_factory=list)  # the ids of the edits of its content
    # True if an edit wants a newline at the end, False if none; None keeps the end.
    final_newline: bool | None = None
    # Outcomes of the edits resolved on text that earlier ones wrote, by meaning.
    folded: dict[int, EditOutcome] = field(default_factory=dict)
    placed: set[int] = field(default_factory=set)  # meanings of the edits placed on the base
    # Changes of the base by indexed edits, in runs, by their ids.
    indexed: dict[str, tuple[tuple[Hunk, ...], ...]] = field(default_factory=dict)
    edited: EditedText = field(init=False)

    def __post_init__(self) -> None:
        self.edited = EditedText(self.text)

    @property
    def mode_before(self) -> bool | None:
        """Return the file's old executable bit; None if the batch keeps it."""
        return self.was_executable if self.was_executable != self.executable else None

    @property
    def link_before(self) -> bool | None:
        """Return the file's old link state; None if the batch keeps it."""
        turned = self.before is not None and self.link != self.was_link
        return self.was_link if turned else None

    @property
    def stated_by(self) -> str | None:
        """Return the edit that states the file's whole content."""
        return self.by.get("written") or self.by.get("made")

    def cleared(self, text: Text) -> None:
        """Discard the edits of the file, and restart it from `text`."""
        self.text, self.edited = text, EditedText(text)
        self.folded, self.placed, self.indexed, self.final_newline = {}, set(), {}, None
        self.by = {operation: by for operation, by in self.by.items() if operation == "renamed"}

    def after(self) -> bytes | None:
        """Return the file's new bytes; None if it is deleted."""
        if "deleted" in self.by:
            return None
        if self.stated is not None:
            return self.stated
        whole = self.edited.data()
        if self.final_newline is None:
            return self.text.restored(whole)
        return whole if self.final_newline else content(whole)


class Files:
    """The files of a batch, each read when an edit first names it."""

    def __init__(
        self, edits: Sequence[Edit], tree: Tree, rules: PlanRules, suggestions: int = 0
    ) -> None:
        # Whether what is done to whole files is done in the order of the edits.
        self.in_order = bool(edits) and all(edit.called for edit in edits)
        self.tree = tree
        self._rules = rules
        self._suggestions = suggestions  # for so many more wrong paths a better one is looked for
        self.renames: dict[str, Edit] = {}  # the edits that rename a file, by its new path
        self.renamed: dict[str, Edit] = {}  # the same by the path that it had
        self.leaving: set[str] = set()
        # The edits of whole files.
        self.whole = [edit for edit in edits if isinstance(edit.op, WHOLE)]
        for edit in self.whole:
            if isinstance(edit.op, Rename):
                self.renames.setdefault(edit.op.to, edit)
                self.renamed.setdefault(edit.path, edit)
            if isinstance(edit.op, Rename | DeleteFile):
                self.leaving.add(edit.path)
        self.by_path: dict[str, list[Edit]] = {}  # all edits by the path that they name
        for edit in edits:
            self.by_path.setdefault(edit.path, []).append(edit)
        self.base: dict[str, File] = {}  # the files of the base, by their paths there
        # The files that the batch puts at a path where they were not.
        self.placed: dict[str, File] = {}
        self._all: dict[int, File] = {}  # by `id`
        self._new_paths = targets.NewPaths()

    def __iter__(self) -> Iterator[File]:
        return iter(self._all.values())

    # ------------------------------------------------------------ which one is meant

    def named(self, path: str) -> tuple[File, ...]:
        """Return the file that an edit's path names, or both candidates.

        The file that leaves the path comes first, then the one that gets it.  Raises `EditRefused`.
        """
        placed = self.placed.get(path)
        if self.in_order and placed is not None:
            return (placed,)
        if placed is None and path in self.base and path not in self.renames:
            return (self.of_base(path),)
        files = [self.of_base(path)] if self.tree.entry(path) is not None else []
        coming = placed or self._coming(path)
        if coming is not None and coming not in files:
            files.append(coming)
        return tuple(files) or (self.of_base(path),)

    def of_base(self, path: str, *, link: bool = False) -> File:
        """Return the base's file, or symbolic link, at the path; raises `EditRefused`."""
        if path not in self.base or self.base[path].was_link != link:
            data, entry = self._existing(path, link=link)
            bit = entry.executable
            text = Text(data, searches=len(self.by_path.get(path, ())))
            self.base[path] = file = File(
                path, text, data, bit, path, was_executable=bit, link=link, was_link=link
            )
            self._all[id(file)] = file
        return self.base[path]

    def _existing(self, path: str, *, link: bool) -> tuple[bytes, Entry]:
        suggests = self._suggestions > 0
        try:
            return targets.existing(self.tree, path, self._rules, suggests=suggests, link=link)
        except EditRefused as refused:
            self._suggestions -= refused.problem.code == "path.not_found"
            raise

    def _coming(self, path: str) -> File | None:
        """Return the base file that a chain of renames moves to the path."""
        met = {path}
        while (rename := self.renames.get(path)) and rename.path not in met:
            path = rename.path
            if self.tree.entry(path) is not None:
                return self.of_base(path)
            met.add(path)
        return None

    def is_free(self, path: str) -> bool:
        """Return True if the base's file at the path is deleted or moved away."""
        if self.in_order:
            file = self.base.get(path)
            return file is not None and ("deleted" in file.by or file.path != path)
        return path in self.leaving and self.tree.entry(path) is not None

    def check_new(self, path: str) -> Entry | None:
        """Return the result of `targets.check_new`, with paths that the batch frees.

        In calls only earlier ones free a path; elsewhere any edit does.
        """
        leaving = () if self.in_order else self.leaving
        return targets.check_new(self.tree, path, self._rules, leaving)

    def place(self, file: File, path: str) -> None:
        """Put the file at a new path; raises `EditRefused`."""
        if self.tree.entry(path) is None:
            self._new_paths.add(path)
        if self.placed.get(file.path) is file:
            del self.placed[file.path]
        file.path = path
        self.placed[path] = file
        if file.origin is None:
            self._all.setdefault(id(file), file)

    # ------------------------------------------------------------ what becomes of them

    def changes(self) -> Iterator[FileChange]:
        """Yield the changes of the tree, one for each path."""
        ends = {file.path for file in self if "deleted" not in file.by}
        for file in self:
            yield from self._changes(file, ends)

    def _changes(self, file: File, ends: Collection[str]) -> Iterator[FileChange]:
        origin, after = file.origin, file.after()
        left = origin is not None and origin not in ends
        if after is None:
            if origin is not None and left:
                yield FileChange(origin, file.before, None, file.executable, link=file.link)
            return
        made = partial(
            FileChange,
            file.path,
            file.before,
            after,
            file.executable,
            was_executable=file.mode_before if file.link_before is None else None,
            link=file.link,
            was_link=file.link_before,
        )
        if origin in (None, file.path):
            turned = (file.mode_before, file.link_before) != (None, None)
            if after != file.before or turned:
                yield made()
        elif left and self.tree.entry(file.path) is None:
            yield made(renamed_from=origin)
        else:
            there = self.tree.entry(file.path)
            covered = None if there is None else self.tree.read(file.path)
            if covered != after:
                yield FileChange(file.path, covered, after, file.executable)
            if left and origin is not None:
                yield FileChange(origin, file.before, None, file.executable)


def clash(edit: Edit, file: File | None, what: str) -> EditRefused:
    """Return the collision with the edit that deleted, renamed, made or changed the file."""
    by = file.by if file else {}
    return collision(edit, what, next((by[it] for it in get_args(FileOperation) if it in by), None))


def collision(
    edit: Edit, what: str, other: str | None, code: str = "conflict.overlap"
) -> EditRefused:
    """Return the refusal of a whole-file edit that collides with another edit."""
    return EditRefused(
        ErrorProblem(
            code,
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
    """Return the outcome of an edit, with its match level and lines."""
    return EditOutcome(
        edit.id, edit.format, edit.at, edit.path, op_name(edit), state, match, lines, (),
        cancelled_by, edit.confidence, edit.description,
    )  # fmt: skip


def op_name(edit: Edit) -> str:
    """Return the operation's name in reports."""
    if type(edit.op) in _NAMES:
        return _NAMES[type(edit.op)]
    if isinstance(edit.op, Anchored):
        return edit.op.action.partition("_")[0]
    return "replace" if halves(edit.op)[1] else "delete"


def unmade(edit: Edit, cause: ErrorProblem, problem: ErrorProblem) -> EditRefused:
    """Return the refusal of an edit whose file a refused edit should have left.

    The refused edit was to create, rename or change the file.
    """
    return EditRefused(
        cause,
        WarningProblem(
            problem.code,
            f"edit {edit.id} is of {edit.path} as edit {cause.edit} was to leave it, and edit "
            f"{cause.edit} was refused",
            f"correct edit {cause.edit}; this one may be right as it is",
            edit=edit.id,
            path=edit.path,
        ),
    )


def in_both(edit: Edit, coming: File, rename: Edit | None) -> EditRefused:
    """Return the refusal of a quote found in both files of one path."""
    return EditRefused(
        ErrorProblem(
            "conflict.order",
            f"edit {edit.id} quotes what is in two files of the name {edit.path}: read "
            "before the files move, it changes the one that "
            + (f"edit {rename.id} renames" if rename else "leaves")
            + "; read after that, the one that comes from "
            + (coming.origin or f"edit {coming.by.get('made')}"),
            "name the file by a path that only one of them has, or quote what only one holds",
            path=edit.path,
            conflicts_with=Collision(edit=rename.id if rename else None, path=edit.path),
        )
    )


def there_already(
    outcomes: Sequence[EditOutcome], changes: Sequence[FileChange], *, declared: bool
) -> list[ErrorProblem]:
    """Return a problem for each already applied edit within lines the batch changes.

    On a declared base, a batch without changes gets one for each of these edits: it was written
    with their lines in view.
    """
    there = [one for one in outcomes if one.state == "already_applied" and one.lines]
    paths = {one.path for one in there}
    changed = {
        it.path: line_diff(split_lines(it.before or b""), split_lines(it.after or b""))
        for it in changes
        if it.path in paths
    }
    return [
        ErrorProblem(
            "match.none",
            f"edit {one.id} of {one.path} is already there, line {one.lines[0]}",
            "leave this edit out; if a second one is meant, quote the lines round it",
            edit=one.id,
            path=one.path,
            line=one.lines[0],
        )
        for one in there
        if one.lines
        if (declared and not changes)
        or any(a < one.lines[1] and b >= one.lines[0] for a, b, *_ in changed.get(one.path, ()))
    ]


def contradiction(edit: Edit, file: File, found: Found, patch: Patch) -> EditRefused:
    """Return the refusal of an edit that claims lines an earlier one changes."""
    there = file.text.line_at(patch.start)
    return EditRefused(
        ErrorProblem(
            "conflict.overlap",
            f"edit {edit.id} says that lines {found.start + 1}-{found.end} of {file.path} stay "
            f"as they are, and edit {patch.edits[0]} before it changes line {there}",
            "leave one of the two out; what shall stay need not be quoted",
            path=file.path,
            line=found.start + 1,
            conflicts_with=Collision(edit=patch.edits[0], path=file.path, lines=(there, there)),
        )
    )


def overlap(edit: Edit, file: File, found: Found, other: ChangedRange) -> EditRefused:
    """Return the refusal of an edit that changes the same bytes as another."""
    here = _changed_lines(file.text, ChangedRange(edit.id, edit.format, found.hunks))
    there = _changed_lines(file.text, other)
    return EditRefused(
        ErrorProblem(
            "conflict.overlap",
            f"edits {other.edit} and {edit.id} both change {file.path}: "
            f"{line_words(there)} and {line_words(here)}",
            "join the two edits into one that quotes all these lines",
            path=file.path,
            line=here[0],
            conflicts_with=Collision(edit=other.edit, path=file.path, lines=there),
        )
    )


def void(outcomes: Sequence[EditOutcome], changes: Sequence[FileChange]) -> list[ErrorProblem]:
    """Return the problem of a batch whose edits together leave every file unchanged.

    A batch with a failed or an already applied edit has none.
    """
    if changes or not outcomes or any(o.state in ("failed", "already_applied") for o in outcomes):
        return []
    return [
        ErrorProblem(
            "match.identical",
            "all edits together leave every file as it is: nothing would change",
            "send what the files shall become, once, and different from what they are",
            edit=outcomes[0].id,
            path=outcomes[0].path,
        )
    ]


def _changed_lines(text: Text, changed: ChangedRange) -> tuple[int, int]:
    return text.line_at(changed.start), text.line_at(max(changed.start, changed.end - 1))
