"""Comments on a proposal as text: for its page, for a model, and for the page of the answer.

Comments are a person's words, and not patchq's: they are quoted in fences and code spans, as all
that patchq did not write.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from patchq.core.text.quote import excerpt, fence, inline
from patchq.core.text.retry import WHAT_TO_SEND, bytes_of
from patchq.gate.report.schema import CommentEntry, Report, ReviewEntry

MAX_SHOWN_LINES = 60  # lines of a file that are shown beside one comment, at most
MAX_BYTES = 30 * 1024  # of the prompt; the comments themselves always stand in it


class ShownLines(Struct, frozen=True):
    """Lines of a file, the first of which has the number `first`."""

    first: int = 1
    lines: tuple[str, ...] = ()


class CommentedLines(Struct, frozen=True):
    """The lines round what a comment speaks of, in the proposal and where an answer begins."""

    new: ShownLines = ShownLines()
    base: ShownLines = ShownLines()


def prompt(
    report: Report,
    review: ReviewEntry,
    shown: Sequence[CommentedLines],
    base: str | None,
    instructions: str,
) -> str:
    """Return the text that asks an agent for an answer, made on the commit `base`.

    It has each comment with the lines that it speaks of, and how to begin the response.
    """
    comments = review.unresolved
    people = ", ".join(inline(name) for name in dict.fromkeys(one.by for one in comments))
    parts = [
        f"Changes are asked for by {people}. The change {inline(report.id)} waits; "
        "nothing of it is on the target. The comments are quoted as they were written:",
    ]
    texts = list(map(_comment, comments))
    ending = _what_to_send(report, comments[0].id, base, instructions)
    room = MAX_BYTES - bytes_of([*parts, *texts, *ending])
    for text, comment, some in zip(texts, comments, shown, strict=True):
        parts.append(text)
        section = _lines(comment, some)
        if section and (size := bytes_of([section])) <= room:
            parts.append(section)
            room -= size
    return "\n\n".join([*parts, *ending]) + "\n"


def section(report: Report) -> list[str]:
    """Return the part of a page on a review; empty without one."""
    review = report.review
    if review is None:
        return []
    if report.retry.prompt and report.state == "proposed":
        return ["## Changes are asked for", report.retry.prompt.rstrip("\n")]
    texts = list(map(_comment, review.comments))
    if review.state == "answered":
        of = report.retry.of
        title = f"## What was asked for of {inline(of)}" if of else "## What was asked for"
        return [title, *texts]
    return ["## Changes were asked for", *texts]


def place(comment: CommentEntry) -> str:
    """Return the place that a comment speaks of, on one line, without Markdown."""
    parts = [f"edit {comment.edit}"] if comment.edit else []
    if comment.path:
        line = f":{_lines_of(comment)}" if comment.line else ""
        parts.append(f"{comment.path}{line}{' of the base' * (comment.side == 'base')}")
    return ", ".join(parts) or "the whole"


def _lines_of(comment: CommentEntry) -> str:
    first, last = comment.lines or (comment.line, comment.line)
    return f"{last}" if first == last else f"{first}-{last}"


def _comment(comment: CommentEntry) -> str:
    words = [f"edit {inline(comment.edit, 50)}"] if comment.edit else []
    if comment.path:
        side = {"base": " of the base", "new": " of the proposal"}.get(comment.side or "", "")
        line = f" line {_lines_of(comment)}{side}" if comment.line else ""
        words.append(f"{inline(comment.path)}{line}")
    about = ", ".join(words) or "the whole change"
    became = {True: " (changed here)", False: " (not changed here)", None: ""}[comment.changed]
    state = "" if comment.state == "open" else f", {comment.state}"
    parts = [f"### Comment {comment.id}: {about}{became}{state}", fence(comment.text)]
    if comment.quote:
        parts += ["It was about these lines, which are not there any more:", fence(comment.quote)]
    for reply in comment.replies:
        parts += [f"{inline(reply.by)} replied:", fence(reply.text)]
    return "\n\n".join(parts)


def _lines(comment: CommentEntry, shown: CommentedLines) -> str:
    parts = []
    for some, where in ((shown.new, "in the proposal"), (shown.base, "in the base")):
        if some.lines:
            kept = some.lines[:MAX_SHOWN_LINES]
            parts += [
                f"The lines of {inline(comment.path or '')} {where}:",
                fence(excerpt(kept, some.first)),
            ]
    return "\n\n".join(parts)


def _what_to_send(report: Report, comment: str, base: str | None, instructions: str) -> list[str]:
    header = ["---", f"retries: {report.id}", *([f"base: {base}"] if base else []), "---"]
    answers = f'answers: {{{comment}: "your words"}}'
    return [
        WHAT_TO_SEND,
        "Send the whole change again, with what the comments ask for: your response takes the "
        "place of the one that waits, so what it leaves out is left out. Quote the lines of the "
        "base; those of the proposal are not there yet. Begin it with",
        fence("\n".join(header)),
        f"To answer a comment by words, add its id to that head: {inline(answers)}.",
        *(["and then write the edits like this:", fence(instructions)] if instructions else []),
    ]
