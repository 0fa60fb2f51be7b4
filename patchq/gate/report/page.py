"""The report as a page: for a person who reviews, and for a model that has to send again.

The page is made from the JSON report alone, so it can be made anew for every later state.  What a
model needs after a refusal is one text, `prompt`, which the JSON carries as `retry.prompt`; see
`text.retry`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from msgspec import convert
from msgspec.structs import replace

from patchq.core.model.names import COMMITS, PUSH, REQUEST
from patchq.core.model.values import EditOutcome, Problem
from patchq.core.text import retry
from patchq.core.text.quote import fence, inline, visible
from patchq.gate.report.codes import CODES
from patchq.gate.report.schema import CommentEntry, ProblemEntry, Report, ReviewEntry

MAX_BYTES = 256 * 1024
_REQUEST_BYTES = 30 * 1024  # of a request for changes; the comments themselves are always in it
_MOST_ROWS = 100
_CUT = "\n… more is left out here\n"
_AROUND_DIFF = 1024  # bytes of its heading, its fence and what tells of a cut
_DECIDES = re.compile(r"\b(?:accept|discard|send-back|revert|git merge)\b")
_PERSON_DECIDES = "Nothing to send: a person decides on it."
# The lines that a problem shows would be those of an outdated or an unknown base.
BASE_IN_DOUBT = frozenset({"conflict.base", "frontmatter.base", "base.unknown"})


def to_markdown(
    report: Report, *, person: bool = False, send: str | None = None, foreseen: bool = False
) -> str:
    """Return the page for a report, at most 256 KiB of UTF-8.

    It is for agents, or for a `person`, who decides.  `send` is how to answer by the door at which
    the reader is; by default, that of the response.  What is only `foreseen`, by a dry run, is no
    promise.
    """
    send = send or _send_commits(report)
    title = f"# {inline(report.id)}: {'would be ' if foreseen else ''}{report.state}"
    if report.state == "rejected":
        return _joined([title, *_refused(report, send)], "")
    sections = _sections(report, report.problems, person)
    decision = [_FORESEEN] if foreseen else [_verdict(report)]
    decision += ["Why:", fence(report.reason)] if report.reason else []
    decision += _review(report) if person and not foreseen else []
    decision += [_answered_by(send, text) for text in _commented(report)]
    details = [*sections, *_hooks(report), *_corrections(report), *_table(report.edits)]
    return _joined([title, *decision, *details], report.diff)


def _send_commits(report: Report) -> str | None:
    """Return how commits are corrected, by the command that brought them; None for a file."""
    name = report.source.name or ""
    if name.endswith(PUSH):
        return f"Correct the commits and push again: git push … -o retries={report.id}"
    command = f"patchq submit --worktree DIR --retries {report.id} --wait"
    where = "Correct it there (or in its branch, with `--branch BRANCH`), commit it, then:"
    return f"{where}\n\n    {command}" if name.endswith(COMMITS) else None


def _answered_by(send: str | None, text: str) -> str:
    """Return a prompt with `send` in place of how to answer with a file."""
    head, heading, _ = text.rpartition(f"{retry.WHAT_TO_SEND}\n")
    return text if send is None or not heading else f"{head}{heading}\n{send}\n"


def _refused(report: Report, send: str | None) -> list[str]:
    """Return what to send again; where no model answered, that, and the prompt to send by hand."""
    text = _answered_by(send, report.retry.prompt or retry.NOTHING_APPLIED)
    if not all(problem.code.startswith("llm.") for problem in report.errors):
        return [text]
    return [
        *_sections(report, report.errors, person=True),
        "## The prompt, to send by hand",
        fence(text),
    ]


_FORESEEN = (
    "This is what would become of the response now. Nothing was changed and no hook was asked; "
    "what lands or waits meanwhile may change it."
)
_WOULD_BE_REFUSED = "The response would be refused now. Nothing was changed and no hook was asked."


def prompt(
    report: Report,
    problems: Sequence[Problem] = (),
    instructions: str = "",
    *,
    tip: str = "",
    foreseen: bool = False,
) -> str:
    """Return the text that tells a model how to send a refused response again.

    `instructions` tell how edits are written in the form that the response had.  `tip` is the
    target's, on which files are to be read again after a conflict with the base.  A response that
    is only `foreseen` to be refused has no batch that could be tried again.
    """
    ending = [*_hooks(report), *_what_to_send(report, instructions, tip, foreseen)]
    shown = list(map(_with_hint, problems))
    first = _WOULD_BE_REFUSED if foreseen else retry.NOTHING_APPLIED
    return retry.prompt(shown, _descriptions(report), ending, first)


def _descriptions(report: Report) -> dict[str, str | None]:
    return {edit.id: edit.description for edit in report.edits}


def _with_hint(problem: Problem, person: bool = False) -> Problem:
    """Return the problem with its cure; to agents, with none that decides."""
    hint = problem.hint or (CODES[problem.code].cure if problem.code in CODES else "")
    decides = not person and _DECIDES.search(hint)
    return replace(problem, hint=_PERSON_DECIDES if decides else hint)


def _sections(report: Report, problems: Sequence[ProblemEntry], person: bool = False) -> list[str]:
    descriptions = _descriptions(report)
    found = (convert(entry, Problem, from_attributes=True) for entry in problems)
    values = (_with_hint(problem, person) for problem in found)
    return [retry.section(problem, descriptions) for problem in values]


# ---------------------------------------------------------------- the verdict


def _verdict(report: Report) -> str:
    target = inline(report.target or "the target")
    commit = f", as commit {inline(report.commit[:12])}" if report.commit else ""
    other, on = report.duplicate_of, report.stands_on
    below = f" It is on top of change {inline(on.batch)}, which waits, too." if on else ""
    return {
        "applied": f"The edits are on {target}{commit}.",
        "proposed": f"The edits wait for review{commit}, for {target}.{below}",
        "duplicate": f"The same response was handled as {inline(other)}; nothing was changed."
        if other
        else "The files already hold what the edits say; nothing was changed.",
        "held": "The change waits; nothing was changed so far.",
        "accepted": f"The change was accepted; the edits are on {target}{commit}.",
        "discarded": "The change was discarded; its edits are not on the target.",
        "superseded": f"A later response{f', {inline(other)},' if other else ''} took the place of "
        "this change; its edits are not on the target.",
        "reverted": "The edits were on the target and have been reverted"
        + (f" by {inline(other)}." if other else "."),
    }[report.state]


def _review(report: Report) -> list[str]:
    if report.state != "proposed" or not report.branch:
        return []
    id, branch = shlex.quote(report.id), shlex.quote(report.branch)
    on = report.stands_on
    ground = on.commit[:12] if on else report.target or "HEAD"
    stack = "--stack " if on else ""
    compared = shlex.quote(f"{ground}...{report.branch}")
    commands = (
        f"git diff {compared}",
        f"patchq accept {stack}{id}     # or: git merge {branch}",
        f"patchq send-back {id} -m TEXT",
        f"patchq discard {id}",
    )
    return [fence("\n".join(commands), "sh")]


def _table(edits: Sequence[EditOutcome]) -> list[str]:
    if not edits:
        return []
    rows = ["| edit | what | file | lines | state | match | description |", "|---" * 7 + "|"]
    for edit in edits[:_MOST_ROWS]:
        lines = "-".join(map(str, dict.fromkeys(edit.lines or ())))
        state: str = edit.state
        if edit.cancelled_by:
            state += f" by {inline(edit.cancelled_by)}"
        if edit.needs:
            state += f", needs {', '.join(inline(id, 50) for id in edit.needs[:5])}"
        description = inline(edit.description, 1200) if edit.description else ""
        what = (inline(edit.id, 50), edit.op, inline(edit.path))
        cells = (*what, lines, state, edit.match or "", description)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    if len(edits) > _MOST_ROWS:
        rows.append(f"\n… and {len(edits) - _MOST_ROWS} more edits")
    return ["## Edits", "\n".join(rows)]


def _corrections(report: Report) -> Iterator[str]:
    by = {"model": "the configured model", "program": "patchq, which undid its escapes"}
    lines = [
        f"- the {one.what} text of edit {inline(one.edit, 50)}: {by[one.by]}"
        for one in report.corrections
    ]
    if lines:
        yield "## Corrected"
        yield "These texts are not as the response has them; look at the diff:"
        yield "\n".join(lines)


# ---------------------------------------------------------------- what went wrong


def _hooks(report: Report) -> Iterator[str]:
    """Yield the output of failed hooks that no problem has in full."""
    messages = [problem.message for problem in report.problems]
    for hook in report.hooks:
        if hook.exit != 0 and not any(hook.output in message for message in messages):
            how = "was stopped" if hook.exit is None else f"ended with {hook.exit}"
            yield f"## Hook {inline(hook.id)} {how}"
            if hook.output:
                yield fence(hook.output)


# ---------------------------------------------------------------- what to send


def _what_to_send(report: Report, instructions: str, tip: str, foreseen: bool) -> list[str]:
    if (report.source.name or "").endswith(REQUEST) and not report.attempts:
        return [
            retry.WHAT_TO_SEND,
            f"Correct the request, and drop it again under a name that ends in `{REQUEST}`.",
        ]
    codes = {problem.code for problem in report.problems}
    retried = report.retry.of if foreseen else report.id
    header = [f"retries: {retried}"] if retried else []
    if report.base and not codes & BASE_IN_DOUBT:
        header.append(f"base: {report.base.commit}")
    elif tip and "conflict.base" in codes:
        header.append(f"base: {tip}")
    placed = all(problem.edit for problem in report.problems if problem.severity == "error")
    good = [edit.id for edit in report.edits if edit.state == "ready" and placed]
    return retry.what_to_send(instructions, good, header)


# ---------------------------------------------------------------- comments

# A person's words, and not patchq's: they are quoted in fences and code spans, as all that patchq
# did not write.


def request(
    report: Report,
    review: ReviewEntry,
    shown: Sequence[str],
    base: str | None,
    instructions: str,
) -> str:
    """Return the text that asks an agent to answer a review.

    The answer is to be made on the commit `base`.  The text has each comment, with what is
    `shown` of the lines that it speaks of, and how to begin the response.
    """
    comments = review.unresolved
    people = ", ".join(inline(name) for name in dict.fromkeys(one.by for one in comments))
    parts = [
        f"Changes are asked for by {people}. The change {inline(report.id)} waits; "
        "nothing of it is on the target. The comments are quoted as they were written:",
    ]
    texts = list(map(_comment, comments))
    ending = _how_to_answer(report, comments[0].id, base, instructions)
    room = _REQUEST_BYTES - retry.bytes_of([*parts, *texts, *ending])
    for text, section in zip(texts, shown, strict=True):
        parts.append(text)
        if section and (size := retry.bytes_of([section])) <= room:
            parts.append(section)
            room -= size
    return "\n\n".join([*parts, *ending]) + "\n"


def _commented(report: Report) -> list[str]:
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


def _comment(comment: CommentEntry) -> str:
    words = [f"edit {inline(comment.edit, 50)}"] if comment.edit else []
    if comment.path:
        side = {"base": " of the base", "new": " of the proposal"}.get(comment.side or "", "")
        lines = "-".join(map(str, dict.fromkeys(comment.lines or (comment.line,))))
        line = f" line {lines}{side}" if comment.line else ""
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


def _how_to_answer(report: Report, comment: str, base: str | None, instructions: str) -> list[str]:
    header = ["---", f"retries: {report.id}", *([f"base: {base}"] if base else []), "---"]
    answers = f'answers: {{{comment}: "your words"}}'
    return [
        retry.WHAT_TO_SEND,
        "Send the whole change again, with what the comments ask for: your response takes the "
        "place of the one that waits, so what it leaves out is left out. Quote the lines of the "
        "base; those of the proposal are not there yet. Begin it with",
        fence("\n".join(header)),
        f"To answer a comment by words, add its id to that head: {inline(answers)}.",
        *(["and then write the edits like this:", fence(instructions)] if instructions else []),
    ]


def _joined(parts: Sequence[str], diff: str) -> str:
    page, text = "\n\n".join(parts).rstrip("\n") + "\n", visible(diff, keep="\n\t")
    room = max(MAX_BYTES - len(page.encode()) - _AROUND_DIFF, 0)
    kept = text.encode()[:room].decode(errors="ignore")
    if kept != text:  # whole lines, so that the fence ends behind them
        kept = kept[: kept.rfind("\n") + 1]
    page += f"\n## Diff\n\n{fence(kept, 'diff')}\n" if kept else ""
    page += "" if kept == text else _CUT
    data = page.encode()
    if len(data) <= MAX_BYTES:
        return page
    return data[: MAX_BYTES - len(_CUT.encode())].decode(errors="ignore") + _CUT
