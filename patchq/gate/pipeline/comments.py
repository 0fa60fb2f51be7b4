"""Comments on a proposal: carried along when it follows its target, shown with the lines that they
speak of, and held against the answer.

A comment's line is one of the proposal's commit, or of that commit's parent.  When the commit is
made anew, the line goes through the difference between the two, as an edit's lines do; where it is
there no more, the comment stays with its file.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from msgspec.structs import replace

from patchq.core import formats
from patchq.core.model.values import Header, Problem
from patchq.core.text.lines import split_lines
from patchq.core.text.quote import clip, decode, excerpt, fence, inline
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git.merges import changes_with_renames, line_hunks
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline.lines import Lines, image
from patchq.gate.report import document, page, secrecy
from patchq.gate.report.schema import CHANGES, CommentEntry, ReplyEntry, Report, ReviewEntry

_CONTEXT = 3
_SHOWN_LINES = 60  # lines of a file that are shown beside one comment, at most
_MOST_QUOTED = 400  # characters of lines that are there no more
_MOST_REPLY = 2000  # characters of an answer
_MOST_BYTES = 32 * 1024  # of JSON that a review takes with all its replies


def with_review(repo: Repository, report: Report, review: ReviewEntry | None) -> Report:
    """Return the report with a review; while something is asked for, with prompt and warning."""
    others = [problem for problem in report.problems if problem.code != CHANGES]
    if review is None or review.state == "answered" or not review.unresolved:
        ended = replace(review, state="answered") if review and review.comments else None
        retry = replace(report.retry, prompt=None)
        return replace(report, review=ended, problems=others, retry=retry)
    commit = report.commit
    parent = next(iter(repo.parents(commit)), None) if commit else None
    edit = next(iter(report.edits), None)
    instructions = formats.instructions(edit.format if edit else None, edit.path if edit else None)
    shown = [shown_lines(repo, report, one) for one in review.unresolved]
    prompt = page.request(report, review, shown, parent, instructions)
    count, base = len(review.unresolved), f" and `base: {parent[:12]}`" if parent else ""
    warning = Problem(
        CHANGES,
        f"{review.by} asks for changes: {count} comment{'' if count == 1 else 's'}",
        f"answer them by a response with `retries: {report.id}`{base}",
        severity="warning",
    )
    problems = [*others, document.problem_entry(warning)]
    retry = replace(report.retry, prompt=secrecy.without(prompt))
    return document.fitted(replace(report, problems=problems, review=review, retry=retry))


# ---------------------------------------------------------------- from commit to commit


def _text(repo: Repository, commit: str | None, path: str) -> bytes | None:
    with suppress(ObjectDamaged):
        if commit and repo.resolve_commit(commit):
            return repo.tree(commit).text(path)
    return None


def _parent(repo: Repository, commit: str) -> str | None:
    return next(iter(repo.parents(commit)), None) if repo.resolve_commit(commit) else None


def _name(repo: Repository, path: str, there: str | None, here: str | None) -> str:
    """Return the name in `here` of a file that is `path` in `there`."""
    missing = _text(repo, here, path) is None and _text(repo, there, path) is not None
    if not (missing and here and there):
        return path
    changes = changes_with_renames(repo, there, here)
    return next((it.path for it in changes if it.renamed_from == path), path)


def _side(repo: Repository, comment: CommentEntry, commit: str, path: str) -> bytes | None:
    """Return the text of the comment's side of a proposal's commit."""
    return _text(repo, _parent(repo, commit) if comment.side == "base" else commit, path)


_hunks = lru_cache(maxsize=4)(line_hunks)


def _image(lines: Lines, before: bytes | None, after: bytes | None) -> Lines | None:
    """Return the place of lines of one text in another; None where a text is missing."""
    return None if before is None or after is None else image(lines, _hunks(before, after))


def carried(repo: Repository, review: ReviewEntry, old: str, new: str) -> ReviewEntry:
    """Return the review of a proposal whose commit was `old`, for its commit `new`."""
    if old == new or not repo.exists(old):
        return review
    comments = [_carried(repo, one, old, new) for one in review.comments]
    return replace(review, comments=comments)


def _carried(repo: Repository, comment: CommentEntry, old: str, new: str) -> CommentEntry:
    path, span = comment.path, comment.span
    if path is None:
        return comment
    now = _name(repo, path, old, new)
    if span is None:
        return replace(comment, path=now)
    before, after = _side(repo, comment, old, path), _side(repo, comment, new, now)
    start, end = _image(span, before, after) or (0, 0)
    if start >= end:
        gone = split_lines(before or b"")[slice(*span)]
        quote = clip("".join(map(decode, gone)), _MOST_QUOTED)
        return replace(comment, path=now, line=None, lines=None, quote=quote)
    last = end if span[1] - span[0] > 1 else start + 1
    return replace(comment, path=now, line=last, lines=(start + 1, last))


# ---------------------------------------------------------------- what they speak of


def _region(repo: Repository, report: Report, comment: CommentEntry, commit: str) -> Lines | None:
    """Return the lines of the proposal's file that a comment is about.

    None for all of the file, and where the proposal does not have it.
    """
    path, span, begins = comment.path or "", comment.span, _parent(repo, commit)
    if span is not None and comment.side != "base":
        return span
    if span is None:
        edit = next((e for e in report.edits if e.id == comment.edit), None)
        if edit is None or not edit.lines or report.base is None:
            return None
        begins, span = report.base.commit, (edit.lines[0] - 1, edit.lines[1])
    own, now = _name(repo, path, commit, begins), _name(repo, path, begins, commit)
    return _image(span, _text(repo, begins, own), _text(repo, commit, now))


def shown_lines(repo: Repository, report: Report, comment: CommentEntry) -> str:
    """Return the lines around a comment's subject, on its side, as Markdown."""
    path, commit = comment.path, report.commit
    if path is None or commit is None:
        return ""
    where = "base" if comment.side == "base" else "proposal"
    text, region = _side(repo, comment, commit, path), comment.span
    if comment.side != "base":
        region = _region(repo, report, comment, commit)
    if text is None or region is None:
        return ""
    first = max(0, region[0] - _CONTEXT)
    lines = split_lines(text)[first : region[1] + _CONTEXT][:_SHOWN_LINES]
    shown = excerpt([decode(line).removesuffix("\n") for line in lines], first + 1)
    return f"The lines of {inline(path)} in the {where}:\n\n{fence(shown)}"


# ---------------------------------------------------------------- the answer


def answered(repo: Repository, before: Report, new: str, header: Header) -> ReviewEntry | None:
    """Return the review as answered by the commit `new` and its header."""
    review, old = before.review, before.commit
    if review is None or old is None:
        return review
    found: list[CommentEntry] = []
    for comment in review.comments:
        changed = _changed(repo, before, comment, old, new)
        carried = replace(_carried(repo, comment, old, new), changed=changed)
        found.append(_with_words(carried, header, new))
    return bounded(replace(review, state="answered", comments=found))


def _with_words(comment: CommentEntry, header: Header, commit: str) -> CommentEntry:
    replies, words = comment.replies, header.answers.get(comment.id)
    if words:
        at = document.now()
        text = clip(words, _MOST_REPLY)
        agent = header.agent or "its agent"
        replies += (ReplyEntry(by=agent, at=at, text=text, commit=commit),)
    is_answered = comment.state != "resolved" and (words or comment.changed)
    return replace(comment, replies=replies, state="answered" if is_answered else comment.state)


def bounded(review: ReviewEntry) -> ReviewEntry:
    """Return the review with the last replies alone if it is too large."""
    if len(document.printed(review).encode()) <= _MOST_BYTES:
        return review
    last = [replace(one, replies=one.replies[-1:]) for one in review.comments]
    return replace(review, comments=last)


def _changed(
    repo: Repository, report: Report, comment: CommentEntry, old: str, new: str
) -> bool | None:
    """Return True if what a comment speaks of is not as it was.

    A line that comes beside it counts only where it speaks of no line of its own.
    """
    path = comment.path
    if path is None:
        return None
    path = _name(repo, path, _parent(repo, old), old)
    before, after = (_text(repo, commit, path) for commit in (old, new))
    region = _region(repo, report, comment, old)
    if region is None or before is None or after is None:
        return before != after
    first, end = region
    return any(
        (a0 < end and first < a1) or (a0 <= end and first <= a1 and (a0 == a1 or first == end))
        for a0, a1, _, _ in _hunks(before, after)
    )
