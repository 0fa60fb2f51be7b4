"""Comments on a proposal: carried along when it follows its target, shown with the lines that they
speak of, and held against the answer.

A comment's line is one of the proposal's commit, or of that commit's parent.  When the commit is
made anew, the line goes through the difference between the two, as an edit's lines do; where it is
there no more, the comment stays with its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from patchq.core import formats
from patchq.core.model.values import Header, LineHunk, Problem
from patchq.core.text.lines import split_lines
from patchq.core.text.quote import clip, decode, excerpt, fence, inline
from patchq.gate.errors import ObjectDamaged
from patchq.gate.git.merges import line_hunks, with_renames
from patchq.gate.git.objects import is_regular
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
    shown = shown_lines(repo, report, review)
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


class _Texts(Struct, frozen=True, dict=True):
    repo: Repository

    def of(self, commit: str | None, path: str) -> bytes | None:
        try:
            if commit is None or self.repo.resolve_commit(commit) is None:
                return None
            leaf = self.repo.leaf(self.repo.tree(commit).root, path)
            return self.repo.raw(leaf[1]) if leaf and is_regular(leaf[0]) else None
        except ObjectDamaged:
            return None

    def parent(self, commit: str | None) -> str | None:
        if commit is None or self.repo.resolve_commit(commit) is None:
            return None
        return next(iter(self.repo.parents(commit)), None)

    def sides(self, path: str, old: str | None, new: str) -> tuple[str, str]:
        """Return the file's path in either commit, also where the step between renames it."""
        there = (self.of(old, path) is not None, self.of(new, path) is not None)
        if old is None or all(there) or not any(there):
            return path, path
        for change in with_renames(self.repo, self.repo.file_changes(old, new), old, new):
            if change.renamed_from and path in (change.renamed_from, change.path):
                return change.renamed_from, change.path
        return path, path


@lru_cache(maxsize=4)
def _hunks(old: bytes, new: bytes) -> Sequence[LineHunk]:
    return () if old == new else line_hunks(old, new)


def carried(repo: Repository, review: ReviewEntry, old: str, new: str) -> ReviewEntry:
    """Return the review of a proposal whose commit was `old`, for its commit `new`."""
    if old == new or not repo.exists(old):
        return review
    texts = _Texts(repo)
    comments = [_carried(texts, one, old, new) for one in review.comments]
    return replace(review, comments=comments)


def _carried(texts: _Texts, comment: CommentEntry, old: str, new: str) -> CommentEntry:
    path, span = comment.path, comment.span
    if path is None:
        return comment
    _, now = texts.sides(path, old, new)
    if span is None:
        return replace(comment, path=now)
    if comment.side == "base":
        before, after = texts.of(texts.parent(old), path), texts.of(texts.parent(new), now)
    else:
        before, after = texts.of(old, path), texts.of(new, now)
    start, end = (0, 0)
    if before is not None and after is not None:
        start, end = image(span, _hunks(before, after))
    if start >= end:
        gone = split_lines(before or b"")[slice(*span)]
        quote = clip("".join(map(decode, gone)), _MOST_QUOTED)
        return replace(comment, path=now, line=None, lines=None, quote=quote)
    last = end if span[1] - span[0] > 1 else start + 1
    return replace(comment, path=now, line=last, lines=(start + 1, last))


# ---------------------------------------------------------------- what they speak of


def _region(texts: _Texts, report: Report, comment: CommentEntry, commit: str) -> Lines | None:
    """Return the lines of the proposal's file that a comment is about.

    None for all of the file, and where the proposal does not have it.
    """
    path, span = comment.path or "", comment.span
    if span is not None and comment.side != "base":
        return span
    lines: Lines
    if span is not None:
        begins, lines = texts.parent(commit), span
    else:
        edit = next((e for e in report.edits if e.id == comment.edit), None)
        if edit is None or not edit.lines or report.base is None:
            return None
        begins, lines = report.base.commit, (edit.lines[0] - 1, edit.lines[1])
    own, now = texts.sides(path, begins, commit)
    before, after = texts.of(begins, own), texts.of(commit, now)
    return None if before is None or after is None else image(lines, _hunks(before, after))


def shown_lines(repo: Repository, report: Report, review: ReviewEntry) -> list[str]:
    """Return the lines around the subject of each unresolved comment, as Markdown.

    They are those of the proposal and those of its parent.
    """
    texts, commit = _Texts(repo), report.commit
    if commit is None:
        return [""] * len(review.unresolved)
    parent = texts.parent(commit)
    found = []
    for comment in review.unresolved:
        parts: list[str] = []
        if path := comment.path:
            own, now = texts.sides(path, parent, commit)
            base, new = texts.of(parent, own), texts.of(commit, now)
            region, there = _region(texts, report, comment, commit), None
            if region is not None and base is not None and new is not None:
                back = [(b0, b1, a0, a1) for a0, a1, b0, b1 in _hunks(base, new)]
                there = image(region, back)
            if comment.side == "base" and comment.span:
                there = comment.span
            parts += _excerpt(f"{inline(path)} in the proposal", new, region)
            parts += _excerpt(f"{inline(path)} in the base", base, there)
        found.append("\n\n".join(parts))
    return found


def _excerpt(of: str, text: bytes | None, region: Lines | None) -> Iterator[str]:
    if text is not None and region is not None:
        first = max(0, region[0] - _CONTEXT)
        lines = split_lines(text)[first : region[1] + _CONTEXT][:_SHOWN_LINES]
        if lines:
            yield f"The lines of {of}:"
            yield fence(excerpt([decode(line).removesuffix("\n") for line in lines], first + 1))


# ---------------------------------------------------------------- the answer


def answered(repo: Repository, before: Report, new: str, header: Header) -> ReviewEntry | None:
    """Return the review as answered by the commit `new` and its header."""
    review, old = before.review, before.commit
    if review is None or old is None:
        return review
    texts = _Texts(repo)
    found: list[CommentEntry] = []
    for comment in review.comments:
        changed = _changed(texts, before, comment, old, new)
        carried = replace(_carried(texts, comment, old, new), changed=changed)
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
    """Return the review without its oldest replies if it is too large."""
    most = max((len(one.replies) for one in review.comments), default=0)
    while most and len(document.printed(review).encode()) > _MOST_BYTES:
        most //= 2
        comments = [
            replace(one, replies=one.replies[-most:] if most else ()) for one in review.comments
        ]
        review = replace(review, comments=comments)
    return review


def _changed(
    texts: _Texts, report: Report, comment: CommentEntry, old: str, new: str
) -> bool | None:
    """Return True if what a comment speaks of is not as it was.

    A line that comes beside it counts only where it speaks of no line of its own.
    """
    path = comment.path
    if path is None:
        return None
    _, path = texts.sides(path, texts.parent(old), old)
    before, after = texts.of(old, path), texts.of(new, path)
    region = _region(texts, report, comment, old)
    if region is None or before is None or after is None:
        return before != after
    first, end = region
    return any(
        (a0 < end and first < a1) or (a0 <= end and first <= a1 and (a0 == a1 or first == end))
        for a0, a1, _, _ in _hunks(before, after)
    )
