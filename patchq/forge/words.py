"""The texts of a pull request; what agents wrote is quoted as code, where it means nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from urllib.parse import quote, unquote

from msgspec import Struct

from patchq.core.text.quote import clip, visible
from patchq.forge.contract import CommitStatus, StatusState
from patchq.gate.report.schema import CommentEntry, CommittedReport, Report, waits_for_its_agent
from patchq.gate.review.risk import risk

FROM, TO = "<!-- patchq: from here -->", "<!-- patchq: to here -->"
_LONGEST_TITLE, _LONGEST_BODY, _LONGEST_STATUS = 200, 20_000, 140
_LONGEST_LINE = 300
_MOST_REASONS = 20
_MARK = re.compile(r"<!-- patchq: queue=(\S+) id=(\S+) state=(\S+) title=(\S+) -->")
_OWN = "<!-- patchq:"
ACCEPTED = CommitStatus("success", "accepted")


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


def title(report: Report) -> str:
    text = visible(" ".join((report.message or report.id).split()))
    return clip(text, _LONGEST_TITLE)


def code(text: str) -> str:
    """Return a text in a line of code, whatever is in it."""
    plain = clip(visible(" ".join(text.split())), _LONGEST_LINE)
    ticks = "`" * (1 + max(map(len, re.findall("`+", plain)), default=0))
    blank = " " * (plain[:1] == "`" or plain[-1:] == "`")
    return f"{ticks}{blank}{_harmless(plain)}{blank}{ticks}" if plain else "``"


def fenced(text: str) -> str:
    """Return a text as a block of code, whatever is in it."""
    plain = _harmless(clip(visible(text.strip(), keep="\n\t"), _LONGEST_BODY))
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", plain)), default=0))
    return f"{ticks}text\n{plain}\n{ticks}"


def _harmless(text: str) -> str:
    """Return a text without what means something in code as well.

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
    rest = message.partition("\n")[2]
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


def status(report: Report) -> CommitStatus:
    refusal = next((one for one in report.problems if one.code.startswith("hook.")), None)
    if report.boarded:
        return _status("success", f"accepted by {report.boarded.by}")
    if waits_for_its_agent(report) and report.review:
        return _status("failure", f"{report.review.by} asks for changes")
    if refusal:
        return _status("failure", refusal.message.split("\n")[0])
    return _status("pending", "waits for review")


def answer(comment: CommentEntry, commit: str) -> str:
    """Return the agent's answer to a comment: what it changed, and its words."""
    own = [one.text for one in comment.replies if one.commit == commit]
    reply = f": {code(own[-1])}" if own else ""
    return f"changed in {commit[:12]}{reply}" if comment.changed else f"not changed{reply}"


def _status(state: StatusState, text: str) -> CommitStatus:
    return CommitStatus(state, clip(visible(text), _LONGEST_STATUS))
