"""What leads from one commit to another, as a response: a diff that is read back as exactly that.

It names the first commit as its base.  Text goes as hunks, so that each is an edit which can be
carried, left out and named in a conflict; what no diff of text tells to the byte goes as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from unicodedata import category

from msgspec.structs import replace

from patchq.core import formats
from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.values import Envelope, FileChange, Plan, Problem
from patchq.core.plan import batch
from patchq.core.plan.targets import PlanRules
from patchq.core.text import unified
from patchq.core.text.lines import is_utf8
from patchq.gate.errors import UsageError
from patchq.gate.git.merges import with_renames
from patchq.gate.git.objects import SUBMODULE
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import gate
from patchq.gate.pipeline.session import Session
from patchq.gate.report import sender
from patchq.gate.report.message import subject
from patchq.gate.review.ranges import Range

_MOST_MESSAGE = 10_000
"""Characters of a message that are handed in."""


def of_range(
    repo: Repository, rules: PlanRules, change: Range, said: Mapping[str, object]
) -> bytes:
    """The response that hands a range in: the front matter says its base, what else is `said`, and
    the message of its commits where no other is; raises `UsageError`."""
    messages = [repo.message(commit) for commit in change.commits]
    keys = {**sender.from_trailers(messages).keys(), **_given(said), "base": change.base}
    messages = [plain for message in messages if (plain := _plain(message))]
    if messages and "message" not in keys:
        keys["message"] = messages[0] if len(messages) == 1 else _together(messages)
    data = response(repo, rules, change.base, change.result, keys)
    if isinstance(data, Problem):
        raise UsageError(f"{data.code}: {data.message}", data.hint)
    return data


def _given(said: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in said.items() if value}


def outsized(session: Session, change: Range) -> Problem | None:
    """What is against so many files, or so large ones, before anything of them is read."""
    changes = session.repo.changes(change.base, change.result)
    new = (
        (path, after[1]) for path, (_, after) in changes.items() if after and after[0] != SUBMODULE
    )
    sizes = ((path, session.repo.size(oid)) for path, oid in new)
    return next(gate.too_much(len(changes), sizes, session.config.limits), None)


def _plain(message: str) -> str:
    """The message as front matter may have it: without control characters."""
    lines = message.replace("\r", "\n" if "\n" not in message else "").split("\n")
    kept = ("".join(c for c in line if c == "\t" or category(c) != "Cc") for line in lines)
    return sender.without_trailer("\n".join(kept)).strip()[:_MOST_MESSAGE]


def _together(messages: list[str]) -> str:
    """One message of several: the last one's subject, and all of them."""
    subjects = [subject(message) for message in messages]
    return "\n".join((subjects[-1], "", *(f"- {line}" for line in subjects)))


def response(
    repo: Repository, rules: PlanRules, start: str, end: str, keys: Mapping[str, object]
) -> bytes | Problem:
    """The response that makes of the commit `start` what the commit `end` holds, with
    these keys in its front matter; or why none can."""
    for path, sides in repo.changes(start, end).items():
        if any(leaf[0] == SUBMODULE for leaf in sides if leaf):
            return Problem(
                "path.not_a_file",
                f"{path} is a submodule, which no batch may change: its commits are not in this "
                "repository, and no work tree of it would follow",
                "leave it out",
                path=path,
            )
    header = "".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in keys.items()
    )
    opened = open_response(f"---\n{header}---\nx".encode("utf-8", "surrogateescape"))
    if not isinstance(opened, Envelope):
        return opened[0]
    wanted = with_renames(repo, repo.file_changes(start, end), start, end)
    if not wanted:
        return Problem("response.no_edits", "nothing was changed", "there is nothing to hand in")
    as_bytes = {path for change in wanted if not _is_text(change) for path in change.paths}
    while True:
        told = unified.unified(tuple(_parted(wanted, as_bytes)), as_bytes)
        data = f"---\n{header}---\n{told}".encode("utf-8", "surrogateescape")
        missed = _misread(data, repo, rules, start, tuple(_parted(wanted, as_bytes)))
        if not missed:
            return data
        more = {path for change in missed for path in change.paths}
        if more <= as_bytes:
            path = min(more)
            message = f"the change of {path} cannot be told in a response"
            return Problem("response.unreadable_edit", message, path=path)
        as_bytes |= more


def _is_text(change: FileChange) -> bool:
    if change.link or change.from_link:
        return False
    sides = [side for side in (change.before, change.after) if side is not None]
    return not any(b"\0" in side for side in sides) and all(map(is_utf8, sides))


def _parted(wanted: Iterable[FileChange], as_bytes: Collection[str]) -> Iterable[FileChange]:
    """The changes, with a file that is renamed and changes its bytes as one that goes and one that
    comes."""
    for change in wanted:
        old = change.renamed_from
        if old is None or change.path not in as_bytes or change.before == change.after:
            yield change
        else:
            yield FileChange(old, change.before, None)
            yield FileChange(change.path, None, change.after, change.executable)


def _misread(
    data: bytes, repo: Repository, rules: PlanRules, start: str, wanted: Sequence[FileChange]
) -> list[FileChange]:
    """The changes that the response is not read as; all where it cannot be read.  What a rule
    forbids is read well."""
    opened, tree = open_response(data), repo.tree(start)
    assert isinstance(opened, Envelope)
    parsed = formats.parse(
        opened.text, lambda path: tree.entry(path) is not None, opened.header, opened.first_line
    )
    if any(problem.severity == "error" for problem in parsed.problems):
        return list(wanted)
    plan = batch.plan(parsed.edits, tree, replace(rules, denied=lambda path: None), declared=True)
    if _forbidden(plan):
        return []
    made = {_said(change) for change in plan.changes}
    missed = [change for change in wanted if _said(change) not in made]
    return missed or ([] if len(made) == len(wanted) else list(wanted))


def _forbidden(plan: Plan) -> bool:
    """Whether only the rules on paths and results are against it."""
    ruled = ("path.", "result.", "edit.")
    return plan.refused and all(error.code.startswith(ruled) for error in plan.errors)


def _said(change: FileChange) -> tuple[str, bytes | None, str | None, bool | None, bool]:
    bit = None if change.after is None else change.executable
    return change.path, change.after, change.renamed_from, bit, change.link
