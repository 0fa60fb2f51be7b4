"""The risk of a batch for its reviewer: a level, and its reasons in words.

A function of the report, and of how far the target has gone on since its base.  Nothing is
hidden in a number: the level is that of the gravest reason, and three that are `medium` make
`high`.  The reasons that are `low` raise nothing, and are there since they help to decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from patchq.core.model.values import EditOutcome, HookRun
from patchq.core.text.quote import visible
from patchq.gate.errors import Fault
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.report import document
from patchq.gate.report.schema import PENDING_CONFLICT, USABLE, Report

Level = Literal["low", "medium", "high"]
LEVELS: tuple[Level, ...] = ("low", "medium", "high")
_MOST_COMMITS = 200  # the age of a base is counted up to this
_ENOUGH = 3  # so many reasons of one level make the next one


class Reason(Struct, frozen=True):
    """A reason for the risk: a code of the report or the name of a rule, and a sentence."""

    code: str
    level: Level
    text: str


class Risk(Struct, frozen=True):
    """A level and its reasons, the gravest first."""

    level: Level
    reasons: tuple[Reason, ...]
    landings: int = 0
    """Landings on its target since its checks."""

    @property
    def order(self) -> tuple[int, ...]:
        """The sort key of batches: the number of reasons of each level."""
        levels = [reason.level for reason in self.reasons]
        return (LEVELS.index(self.level), *(levels.count(level) for level in reversed(LEVELS)))

    def to_json(self) -> dict[str, Any]:
        return {"level": self.level, "reasons": [asdict(reason) for reason in self.reasons]}


def risk_of(context: RepoContext, report: Report) -> Risk:
    """Return the risk of a batch beside its target as it is now."""
    base, tip = report.base, context.branches.tip(report.target) if report.target else None
    behind = _commits_since(context, tip, base.commit) if base else None
    checked = [run.tip for run in report.hooks if run.tip and run.stage == "pre-commit"]
    landings = None
    with suppress(Fault):
        if report.state == "proposed" and report.commit and checked:
            parent = next(iter(context.repo.parents(report.commit)), None)
            landings = _commits_since(context, parent, checked[-1])
    return risk(report, behind, landings or 0)


def _commits_since(context: RepoContext, tip: str | None, old: str) -> int | None:
    with suppress(Fault):
        if tip == old:
            return 0
        if tip and context.repo.exists(old):
            return sum(1 for _ in context.repo.commits(tip, old, _MOST_COMMITS))
    return None


def risk(report: Report, behind: int | None = None, landings: int = 0) -> Risk:
    """Return the risk of a batch.

    `behind` is the number of commits of its target since its base, None if unknown; `landings`,
    those since its checks.
    """
    found = [
        *_warnings(report),
        *_edits(report),
        *_corrections(report),
        *_size(report),
        *_age(behind or 0),
        *_checks(report, landings),
    ]
    found.sort(key=lambda reason: -LEVELS.index(reason.level))
    gravest = found[0].level if found else "low"
    many = sum(reason.level == "medium" for reason in found) >= _ENOUGH
    return Risk("high" if many else gravest, tuple(found), landings)


# ---------------------------------------------------------------- the rules

_OF_WARNINGS: Mapping[str, tuple[Level, str]] = {
    "path.review": ("high", "a person has to look at what it touches"),
    "response.beside": ("high", "code beside its edits was not applied"),
    "base.unknown": ("high", "it changes a file without saying what it has seen of it"),
    "result.syntax": ("high", "a file may not parse any more"),
    "edit.shrinks": ("high", "a file loses most of its lines"),
    "edit.elided": ("high", "the new text may leave code out"),
    "edit.secret": ("high", "the new text may hold a secret"),
    "target.moved": ("medium", "it does not follow its target by itself any more"),
    "review.changes": ("medium", "a person has asked for changes"),
    "worktree.dirty": ("low", "files that it touches have uncommitted changes"),
    "worktree.unseen": ("low", "a work tree of its target is out of reach"),
}
_ROOMS_OF_LITTLE_RISK = ("frontmatter.", "llm.", "worktree.")


def _warnings(report: Report) -> Iterator[Reason]:
    paths: dict[str, list[str]] = {}
    for problem in report.problems:
        if problem.severity == "warning" and problem.code != PENDING_CONFLICT:
            paths.setdefault(problem.code, []).extend(filter(None, [problem.path]))
    for code, named in paths.items():
        level, text = _OF_WARNINGS.get(code, ("medium", f"the report warns of it ({code})"))
        if code not in _OF_WARNINGS and code.startswith(_ROOMS_OF_LITTLE_RISK):
            level = "low"
        yield Reason(code, level, text + (f": {_some(named)}" if named else ""))
    others = {
        other.batch or ""
        for problem in report.problems
        if problem.code == PENDING_CONFLICT and (other := problem.conflicts_with)
    }
    if others:
        count = "1 change" if len(others) == 1 else f"{len(others)} changes"
        text = f"it collides with {_some(sorted(others), count)}"
        yield Reason(PENDING_CONFLICT, "medium", text)


_AS_WRITTEN = frozenset({None, "exact", "line_endings", "trailing_whitespace"})
_LOOSE = frozenset({"unescaped", "elided", "typography"})


def _edits(report: Report) -> Iterator[Reason]:
    counted = [edit for edit in report.edits if edit.state in USABLE]
    by_rung: dict[str, list[EditOutcome]] = {}
    for edit in counted:
        if edit.match not in _AS_WRITTEN:
            by_rung.setdefault((edit.match or "").replace("_", " "), []).append(edit)
    for rung, edits in by_rung.items():
        text = f"the quote of edit {_some([edit.id for edit in edits])} was found by {rung}"
        yield Reason("match", "medium" if rung in _LOOSE else "low", text)
    if gone := [edit.path for edit in counted if edit.op == "delete_file"]:
        level: Level = "high" if len(gone) >= _MANY_GONE else "medium"
        yield Reason("delete_file", level, f"it deletes {_some(gone, _files(len(gone)))}")


def _corrections(report: Report) -> Iterator[Reason]:
    by_model = [one for one in report.corrections if one.by == "model"]
    levels: Mapping[str, Level] = {"new": "high", "old": "medium"}
    for what, level in levels.items():
        if ids := list(dict.fromkeys(one.edit for one in by_model if one.what == what)):
            text = f"a model rewrote the {what} text of edit {_some(ids)}"
            yield Reason("correction", level, text)


_MANY_GONE = 5
_LARGE_LINES, _HUGE_LINES = 200, 1000
_LARGE_FILES, _HUGE_FILES = 10, 50


def _size(report: Report) -> Iterator[Reason]:
    size = report.size or document.size(report.diff)
    if size is None:
        return
    added, deleted, files = size.added, size.deleted, size.files
    lines = added + deleted
    if lines >= _LARGE_LINES or files >= _LARGE_FILES:
        level: Level = "high" if lines >= _HUGE_LINES or files >= _HUGE_FILES else "medium"
        yield Reason("size", level, f"it changes {lines} lines in {_files(files)}")


_OLD_BASE, _VERY_OLD_BASE = 20, 200


def _age(behind: int) -> Iterator[Reason]:
    if behind >= _OLD_BASE:
        level: Level = "high" if behind >= _VERY_OLD_BASE else "medium"
        yield Reason("age", level, f"its target has {behind} commits that its base has not")


# The checks that `patchq init` configures by itself.
_BUILT_IN = ("gate", "secrets", "protected-paths", "size-limits")


def own_checks(report: Report) -> list[HookRun]:
    """Return the runs of the project's own checks, without patchq's."""
    return [run for run in report.hooks if run.id not in _BUILT_IN]


def earlier(report: Report, landings: int) -> str:
    """Return where checks passed that were made before the target moved."""
    ago = "1 landing ago" if landings == 1 else f"{landings} landings ago"
    return f" on an earlier {report.target} ({ago})" if landings else ""


def _checks(report: Report, landings: int) -> Iterator[Reason]:
    passed = [hook.id for hook in own_checks(report) if hook.exit == 0]
    failed = [h.id for h in report.hooks if h.exit != 0 and h.stage.startswith("pre-")]
    if failed:
        yield Reason("checks", "high", f"the check {_some(failed)} did not pass")
    if passed:
        yield Reason("checks", "low", f"passed: {_some(passed)}{earlier(report, landings)}")
    elif not failed:
        yield Reason("checks", "low", "no check has run")


# ---------------------------------------------------------------- words

_NAMED = 3


def _some(names: list[str], count: str = "") -> str:
    """Return the first few of the names and the number of others; `count` begins it."""
    names = list(dict.fromkeys(names))
    more = len(names) - _NAMED
    text = ", ".join(visible(name) for name in names[:_NAMED])
    text += f" and {more} more" if more > 0 else ""
    return f"{count}: {text}" if count else text


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
