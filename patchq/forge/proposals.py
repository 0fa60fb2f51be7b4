"""The queue's side of a round: lines of answers, what a commit changes, comments as drafts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.text import unified
from patchq.forge import words
from patchq.forge.contract import Remark, Thread
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git import records
from patchq.gate.git.branches.shown import Copies
from patchq.gate.git.objects import is_regular
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import comments, depends, history
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document
from patchq.gate.report.schema import CommentEntry, CommittedReport, Report, ReviewEntry
from patchq.gate.review.send_back import DraftComment

_MOST_BELOW = 64


class Proposal(Struct, frozen=True):
    """A proposal, and its intended state on the forge.

    Its copy on the remote is named by `root`, ends at `there`, and `pushed` are all its commits
    that came from here.  `known` are origins and texts of all comments so far.
    """

    report: CommittedReport
    commit: str
    root: str
    there: str | None
    pushed: frozenset[str]
    base: str
    title: str
    block: str
    mark: words.Mark
    known: frozenset[tuple[str, str]]
    same: Callable[[str], bool]
    """True of a commit that makes the same change."""
    draft: Callable[[Thread | None, Remark], DraftComment]
    """Returns a comment with its lines as they are in the proposal."""

    @property
    def id(self) -> str:
        return self.report.id


class Lines:
    """Proposals and their later rounds, grouped in lines with one copy each.

    A copy is named by the first change of its line.
    """

    def __init__(self, session: Session, copies: Copies) -> None:
        self._session, self._copies = session, copies
        self._roots = dict[str, str]()
        for root, commit in copies.published().items():
            self._roots[root] = root
            if session.repo.resolve_commit(commit):
                named = history.trailers(session.repo, commit).get("Patchq-Batch", [])
                self._roots |= dict.fromkeys(named, root)

    def earlier(self, report: Report) -> Iterator[Report]:
        seen = set[str]()
        following: Report | None = report
        while following is not None and following.id not in seen:
            seen.add(following.id)
            yield following
            of = following.retry.of
            following = self._session.queue.load(of) if of else None

    def root(self, report: Report) -> str:
        """Return the id of the report's line: its copy's, else its first change's."""
        ids = [id for one in self.earlier(report) for id in (one.id, one.retry.of) if id]
        return next((self._roots[id] for id in ids if id in self._roots), ids[-1])

    def proposal(self, report: CommittedReport, queue: str, urls: Mapping[str, str]) -> Proposal:
        """Return a proposal with its state for the forge; `urls` are those of requests."""
        session, root = self._session, self.root(report)
        stack = [one.report for one in depends.under(session, report).below]
        below = next(iter(stack), None)
        base = records.branch(self.root(below)) if below else report.target
        commit = session.branches.tip(records.branch(report.id)) or report.commit
        title = words.title(report)
        mark = words.Mark(queue, report.id, report.state, words.digest(title))
        rows = [(one.id, urls.get(self.root(one))) for one in reversed([report, *stack])]
        message, wanted = session.repo.message(commit), _content(session.repo, commit, len(stack))
        reviews = [one.review for one in self.earlier(report) if one.review]
        return Proposal(
            report,
            commit,
            root,
            self._copies.there(root),
            frozenset(self._copies.pushed(root)),
            base,
            title,
            words.block(report, mark, _without_trailers(message), rows),
            mark,
            frozenset((c.origin, c.text) for one in reviews for c in one.comments if c.origin),
            lambda other: _is_same(session.repo, other, commit, wanted, len(stack)),
            lambda thread, remark: _draft(session.repo, commit, thread, remark),
        )


def _without_trailers(message: str) -> str:
    body, _, last = message.rstrip().rpartition("\n\n")
    return body if "Patchq-Batch:" in last else message


def _is_same(repo: Repository, other: str, commit: str, wanted: object, below: int) -> bool:
    """Return True if the commit, perhaps abbreviated, makes the same change."""
    found = repo.resolve_commit(other)
    return found is not None and (found == commit or _content(repo, found, below) == wanted)


def _content(repo: Repository, commit: str, below: int) -> object:
    """Return the diffs of a commit and of `below` ancestors, without line numbers.

    A merge, or a commit that is not here, is equal to nothing.
    """
    found = list[object]()
    try:
        for _ in range(min(below, _MOST_BELOW) + 1):
            (parent,) = repo.parents(commit)
            text = unified.unified(repo.file_changes(parent, commit))
            lines = ("@@" if line.startswith("@@ ") else line for line in text.split("\n"))
            found.append(tuple(lines))
            commit = parent
    except (ValueError, ObjectDamaged):  # a merge, or what is not here: a person's
        return object()
    return found


# ---------------------------------------------------------------- comments


def _draft(repo: Repository, commit: str, thread: Thread | None, remark: Remark) -> DraftComment:
    """Return a remark as a comment on `commit`, with its lines mapped to it."""
    draft = DraftComment(remark.text, by=remark.by, origin=remark.id)
    if thread is None:
        return draft
    now = _carried(repo, commit, thread, remark)
    parent = next(iter(repo.parents(commit)), commit)
    sides = (parent,) if now.line and now.side == "base" else (commit, parent)
    if not any(_is_file(repo, side, thread.path) for side in sides):
        return replace(draft, text=f"{thread.path}: {remark.text}")
    side = now.side if now.line else None
    return replace(draft, path=now.path, line=now.line, side=side, lines=now.lines)


def _carried(repo: Repository, commit: str, thread: Thread, remark: Remark) -> CommentEntry:
    known = repo.resolve_commit(thread.commit)
    line = thread.line if known else None
    at = document.now()
    entry = CommentEntry(
        id="c1",
        at=at,
        path=thread.path,
        line=line,
        lines=(thread.first or line, line) if line else None,
        side=thread.side if line else None,
        edit=None,
        text=remark.text,
        by=remark.by,
        changed=None,
    )
    review = ReviewEntry(state="changes_requested", by=remark.by, at=at, comments=[entry])
    return comments.carried(repo, review, known or commit, commit).comments[0]


def _is_file(repo: Repository, commit: str, path: str) -> bool:
    leaf = repo.leaf(repo.tree(commit).root, path) if path and "\0" not in path else None
    return leaf is not None and is_regular(leaf[0])
