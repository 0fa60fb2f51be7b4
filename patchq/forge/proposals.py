"""A proposal as a forge has it: its line of answers, its content, and the texts of its request.

What agents wrote is quoted as code, where it means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.text import unified
from patchq.core.text.quote import clip, fence, inline, visible
from patchq.forge.wire import Remark, StatusState, Thread
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git import records
from patchq.gate.git.branches.shown import Copies
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import comments, depends, history
from patchq.gate.pipeline.session import Session
from patchq.gate.report import document
from patchq.gate.report.schema import (
    CommentEntry,
    CommittedReport,
    Report,
    ReviewEntry,
    waits_for_its_agent,
)
from patchq.gate.review.risk import risk
from patchq.gate.review.rows import rounds

_MOST_BELOW = 64
FROM, TO = "<!-- patchq: from here -->", "<!-- patchq: to here -->"
_LONGEST_TITLE, _LONGEST_BODY = 200, 20_000
_LONGEST_LINE = 300
_MOST_REASONS = 20
_MARK = re.compile(r"<!-- patchq: queue=(\S+) id=(\S+) state=(\S+) title=(\S+) -->")
_OWN = "<!-- patchq:"


class Mark(Struct, frozen=True):
    """The mark in a request as patchq wrote it last: its queue, change, state, and title."""

    queue: str
    id: str
    state: str
    title: str

    def __str__(self) -> str:
        id = quote(self.id, safe="")
        return f"<!-- patchq: queue={self.queue} id={id} state={self.state} title={self.title} -->"


def mark_in(body: str) -> Mark | None:
    found = _MARK.search(body)
    return Mark(found[1], unquote(found[2]), found[3], found[4]) if found else None


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def signed(text: str, key: str) -> str:
    """Return a comment of patchq's own, which is written once for each key."""
    return f"{text}\n\n{_OWN} {quote(key, safe=' ')} -->"


def has_signed(text: str, key: str) -> bool:
    return f"{_OWN} {quote(key, safe=' ')} -->" in text


def is_own(text: str) -> bool:
    return re.search(rf"\n\n{_OWN} [^\n]* -->\s*\Z", text) is not None


def within(body: str, block: str) -> str:
    """Return the body with patchq's own part replaced by `block`.

    A body without that part gets it at its end.
    """
    before, found, rest = body.partition(FROM)
    whole = f"{FROM}\n{block}\n{TO}"
    if not found:
        return f"{body.rstrip()}\n\n{whole}".lstrip()
    return before + whole + rest.partition(TO)[2]


def code(text: str) -> str:
    """Return a text in a line of code, whatever is in it."""
    return _harmless(inline(visible(" ".join(text.split())), _LONGEST_LINE))


def fenced(text: str) -> str:
    """Return a text as a block of code, whatever is in it."""
    shown = visible(text.strip(), keep="\n\t")
    return _harmless(fence(clip(shown, _LONGEST_BODY), "text"))


def _harmless(text: str) -> str:
    """Return code without what means something in code as well.

    Signs that begin patchq's marks, and GitLab's commands, which begin a line.
    """
    plain = text.replace("<!--", "<!\N{MIDDLE DOT}--")
    return re.sub("^/", "\N{MIDDLE DOT}/", plain, flags=re.MULTILINE)


def block(
    report: CommittedReport, mark: Mark, message: str, stack: Sequence[tuple[str, str | None]]
) -> str:
    """Return patchq's part of a request's body; `stack` has the changes of a stack, lowest first.

    It says nothing that changes whenever the target moves.
    """
    found = risk(report)
    by = " ".join(filter(None, (report.agent, report.model and f"({report.model})")))
    lines = [str(mark), f"Change {code(report.id)}{f', by {code(by)}' if by else ''}", ""]
    body, _, last = message.rstrip().rpartition("\n\n")
    rest = (body if "Patchq-Batch:" in last else message).partition("\n")[2]
    lines += [fenced(rest), ""] if rest.strip() else []
    lines.append(f"Risk: **{found.level}**")
    lines += [f"- {code(reason.text)}" for reason in found.reasons[:_MOST_REASONS]]
    named = (one.conflicts_with.batch for one in report.problems if one.conflicts_with)
    if others := sorted(set(filter(None, named))):
        lines += ["", f"Collides with {', '.join(map(code, others[:_MOST_REASONS]))}"]
    if runs := {run.id: run.exit for run in report.hooks}:
        results = (f"{code(id)} {'passed' if exit == 0 else 'failed'}" for id, exit in runs.items())
        lines += ["", f"Checks: {', '.join(results)}"]
    if len(stack) > 1:
        lines += ["", "Stack, lowest first:"]
        lines += [f"1. {code(id)}{f' {url}' if url else ''}" for id, url in stack]
    return "\n".join(lines)


def status(report: Report) -> tuple[StatusState, str]:
    """Return the state of a proposal's status, and its text."""
    refusal = next((one for one in report.problems if one.code.startswith("hook.")), None)
    if report.boarded:
        return "success", f"accepted by {report.boarded.by}"
    if waits_for_its_agent(report) and report.review:
        return "failure", f"{report.review.by} asks for changes"
    if refusal:
        return "failure", refusal.message.partition("\n")[0]
    return "pending", "waits for review"


def answer(comment: CommentEntry, commit: str) -> str:
    """Return the agent's answer to a comment: what it changed, and its words."""
    own = [one.text for one in comment.replies if one.commit == commit]
    reply = f": {code(own[-1])}" if own else ""
    return f"changed in {commit[:12]}{reply}" if comment.changed else f"not changed{reply}"


# ---------------------------------------------------------------- proposals


class Proposal(Struct, frozen=True):
    """A proposal, and its intended state on the forge.

    Its copy on the remote is named by `root`, ends at `there`, and `pushed` are all its commits
    that came from here.  `known` are origins and texts of all comments so far.  `same` is True of a
    commit that makes the same change; `draft` returns a comment with its lines in the proposal.
    """

    report: CommittedReport
    commit: str
    root: str
    there: str | None
    pushed: frozenset[str]
    base: str
    title: str
    block: str
    mark: Mark
    known: frozenset[tuple[str, str]]
    same: Callable[[str], bool]
    draft: Callable[[Thread | None, Remark], CommentEntry]


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

    def earlier(self, report: Report) -> list[Report]:
        """Return the report and those that it answers, newest first."""
        return [report, *reversed(rounds(self._session, report))]

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
        title = clip(visible(" ".join((report.message or report.id).split())), _LONGEST_TITLE)
        mark = Mark(queue, report.id, report.state, digest(title))
        rows = [(one.id, urls.get(self.root(one))) for one in reversed([report, *stack])]
        wanted = _content(session.repo, commit, len(stack))
        reviews = [one.review for one in self.earlier(report) if one.review]
        return Proposal(
            report,
            commit,
            root,
            self._copies.there(root),
            frozenset(self._copies.pushed(root)),
            base,
            title,
            block(report, mark, session.repo.message(commit), rows),
            mark,
            frozenset((c.origin, c.text) for one in reviews for c in one.comments if c.origin),
            lambda other: _is_same(session.repo, other, commit, wanted, len(stack)),
            lambda thread, remark: _draft(session.repo, commit, thread, remark),
        )


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


def _draft(repo: Repository, commit: str, thread: Thread | None, remark: Remark) -> CommentEntry:
    """Return a remark as a comment on `commit`, with its lines mapped to it."""
    draft = CommentEntry(text=remark.text, by=remark.by, origin=remark.id)
    if thread is None:
        return draft
    known = repo.resolve_commit(thread.commit)
    line = thread.line if known else None
    entry = replace(
        draft,
        path=thread.path,
        line=line,
        lines=(thread.first or line, line) if line else None,
        side=thread.side if line else None,
    )
    review = ReviewEntry(
        state="changes_requested", by=remark.by, at=document.now(), comments=[entry]
    )
    now = comments.carried(repo, review, known or commit, commit).comments[0]
    parent = next(iter(repo.parents(commit)), commit)
    sides = (parent,) if now.line and now.side == "base" else (commit, parent)
    entries = [repo.tree(side).entry(thread.path) for side in sides]
    if not any(entry and entry.kind == "file" for entry in entries):
        return replace(draft, text=f"{thread.path}: {remark.text}")
    return now if now.line else replace(draft, path=now.path)
