"""Kinds of rewrites: what one gets, what it gives, and the list of them all.

A kind gets a `Brief`, and gives a `Rewrite`: the response, and what may come of it.  It gives None
where the brief's form or task has nothing to do it with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.corpus.rewrites.forms import AS_IT_IS, Form, PathStyle
from bench.corpus.rewrites.tasks import Change, Task

Outcome = Literal["exact", "refused", "wrong", "lost", "crashed", "duplicate"]
Files = Mapping[str, str]

BASE = "BASE-OF-THE-CASE"
"""Stands in a response for the commit that the files are in, which nobody knows before."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A response, and what may come of it.  `before` and `after` are all files, where they are not
    those of the task; `losses` are results that leave out something that is none of its changes,
    `extra` is how many edits the response holds beside them."""

    response: str
    allowed: frozenset[Outcome]
    before: Files | None = None
    after: Files | None = None
    losses: tuple[Files, ...] = ()
    extra: int = 0
    tip: Files | None = None
    """Where the branch has moved on since `before`, the files of its newest commit."""


def exact(
    response: str,
    after: Files | None = None,
    *,
    before: Files | None = None,
    losses: Sequence[Files] = (),
    extra: int = 0,
) -> Rewrite:
    """The files are to be as in `after`, byte for byte."""
    return Rewrite(response, frozenset({"exact"}), before, after, tuple(losses), extra)


def refuse(
    response: str,
    *,
    before: Files | None = None,
    losses: Sequence[Files] = (),
    extra: int = 0,
) -> Rewrite:
    """Nothing may land."""
    return Rewrite(response, frozenset({"refused"}), before, None, tuple(losses), extra)


def either(
    response: str,
    after: Files | None = None,
    *,
    before: Files | None = None,
    losses: Sequence[Files] = (),
    extra: int = 0,
) -> Rewrite:
    """What lands is as in `after`, or nothing does."""
    allowed: frozenset[Outcome] = frozenset({"exact", "refused"})
    return Rewrite(response, allowed, before, after, tuple(losses), extra)


def nothing_new(response: str, before: Files) -> Rewrite:
    """The files are so already, and stay so, whether that is seen or refused."""
    return Rewrite(response, frozenset({"refused", "duplicate"}), before, before)


@dataclass(frozen=True, slots=True)
class Brief:
    """What a kind has to work with: a task, the form to write it in, and its own luck."""

    task: Task
    form: Form
    dice: random.Random
    root: str
    """The absolute path of the repository's work tree."""

    @property
    def changes(self) -> tuple[Change, ...]:
        return self.task.whole_files if self.form.family == "files" else self.task.changes

    def replacements(self) -> list[Change]:
        """The changes that replace lines of a file."""
        return [change for change in self.changes if change.replaces]

    @property
    def ends_open(self) -> bool:
        """Whether the last edit is fenced Markdown, whose end a further fence puts in doubt."""
        return self.form.family == "find" and self.changes[-1].path.endswith(".md")

    def response(self, changes: Sequence[Change] | None = None, style: PathStyle = AS_IT_IS) -> str:
        """The changes, or all of the task, in the form."""
        return self.form.write(self.changes if changes is None else changes, style)


Writer = Callable[[Brief], Rewrite | None]


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    group: str
    write: Writer


KINDS: dict[str, Kind] = {}
"""Every kind by its name; `bench.corpus.rewrites.kinds` fills it."""


def kind(name: str, group: str) -> Callable[[Writer], Writer]:
    """Register a kind."""

    def register(writer: Writer) -> Writer:
        if name in KINDS:
            raise ValueError(f"there are two kinds {name!r}")
        KINDS[name] = Kind(name, group, writer)
        return writer

    return register
