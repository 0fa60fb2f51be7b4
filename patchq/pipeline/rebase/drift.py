"""What a branch changed since the commit that a batch was made for, and how a collision with it is
told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath

from patchq.git.repository import Repository
from patchq.model.report import Report
from patchq.model.values import Base, Collision, FileChange, Problem
from patchq.pipeline.rebase import history
from patchq.pipeline.rebase.lines import Lines, Touch, in_words, inclusive

_EXCERPT = 3


@dataclass(frozen=True)
class Move:
    """From the commit (hex) that a batch was made for to the one that it shall land on."""

    repo: Repository
    origin: Base
    tip: str
    load: Callable[[str], Report | None]
    """The report of a batch, by its id."""

    @property
    def base(self) -> str:
        return self.origin.commit

    @cached_property
    def changes(self) -> dict[str, tuple[object, object]]:
        """Path -> what stood there, and what stands there now."""
        return dict(self.repo.changes(self.base, self.tip))

    @property
    def since(self) -> str:
        """When, for people."""
        how = " that its quotes fit" if self.origin.how == "inferred" else ""
        return f"since the base {self.base[:12]}{how}"

    @property
    def cure(self) -> str:
        tip = self.tip[:12]
        return f"read the files again as they are in {tip}, and send the change with `base: {tip}`"

    def leaves_alone(self, changes: Sequence[FileChange]) -> bool:
        """Whether no path of the batch changed, nor anything that a new file could meet."""
        return all(
            path not in self.changes and not (change.before is None and self._meets_new(path))
            for change in changes
            for path in (change.path, change.renamed_from)
            if path is not None
        )

    def _meets_new(self, path: str) -> bool:
        """Whether the branch made a file where the new one needs a directory, or the reverse."""
        above = {str(parent) for parent in PurePosixPath(path).parents}
        return any(name in above or name.startswith(f"{path}/") for name in self.changes)

    def may_meet(self, changes: Sequence[FileChange]) -> bool:
        """Whether a merge could have anything to say: a file that both sides change, or, as a
        renamed directory takes new files with it, deletions on one side and creations on the
        other."""
        ours = {path for c in changes for path in (c.path, c.renamed_from) if path}
        if ours & self.changes.keys():
            return True
        their_gone = any(now is None for _, now in self.changes.values())
        their_new = any(was is None for was, _ in self.changes.values())
        our_new = any(c.before is None or c.renamed_from for c in changes)
        our_gone = any(c.after is None or c.renamed_from for c in changes)
        return (their_gone and our_new) or (our_gone and their_new)

    def problem(self, what: str, path: str, edit: str | None) -> Problem:
        """The problem with an edit of a file of which as a whole something is said."""
        collision = self._who(path, None)
        return Problem(
            "conflict.base",
            f"{path} {what} {self.since} by {history.named(collision)}",
            self.cure,
            edit=edit,
            path=path,
            conflicts_with=collision,
        )

    def collision(self, touch: Touch, path: str, now: bytes, edit: str | None) -> Problem:
        """The problem with an edit that changes lines which were changed since."""
        collision = self._who(path, touch.now)
        ours, theirs = inclusive(touch.ours), inclusive(touch.theirs)
        where = in_words(theirs) + (", right beside," if touch.beside else "")
        return Problem(
            "conflict.base",
            f"{f'edit {edit}' if edit else 'the batch'} changes {in_words(ours)} of {path}, and "
            f"{history.named(collision)} changed {where} {self.since}",
            self.cure,
            edit=edit,
            path=path,
            line=ours[0],
            conflicts_with=replace(collision, lines=theirs),
            excerpt=_excerpt(now, touch.now),
        )

    def elsewhere(self, path: str, edit: str, lines: Lines, there: Lines, now: Lines) -> Problem:
        """The problem with an edit of `lines` of the base, which stand `there` on the tip, and that
        means the lines `now` if it is read on the tip."""
        return Problem(
            "conflict.base",
            f"edit {edit} means {in_words(lines)} of {path} on its base {self.base[:12]}, which is "
            f"{in_words(there)} today, and what it quotes stands at {in_words(now)} today",
            self.cure,
            edit=edit,
            path=path,
            line=lines[0],
            conflicts_with=self._who(path, None),
        )

    def _who(self, path: str, lines: Lines | None) -> Collision:
        collision = history.collides_with(self.repo, self.base, self.tip, path, lines)
        return replace(collision, edit=_edit_of(collision, self.load))


def _edit_of(collision: Collision, load: Callable[[str], Report | None]) -> str | None:
    """The edit of another batch that changed the path, if it is the only one."""
    report = load(collision.batch) if collision.batch else None
    ids = (
        [edit["id"] for edit in report["edits"] if edit["path"] == collision.path] if report else []
    )
    return ids[0] if len(ids) == 1 else None


def _excerpt(text: bytes, lines: Lines) -> tuple[int, tuple[str, ...]]:
    """What stands there on the tip, with some lines around it."""
    first = max(lines[0] - _EXCERPT, 0)
    shown = text.decode("utf-8", "backslashreplace").split("\n")[first : lines[1] + _EXCERPT]
    return first + 1, tuple(shown[:40])
