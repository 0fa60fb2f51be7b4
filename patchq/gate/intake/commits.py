"""Commits, and work trees, as responses: from a base to a result, in a diff that is read back.

The base is where the work left the target: the commit that both have.  Work that has merged the
target meanwhile has left it at the commit that was merged last, and the change since then holds how
the merges were resolved, once; so a forge's squash has it, too.

A response names the first commit as its base.  Text goes as hunks, so that each is an edit which
can be carried, left out and named in a conflict; what no diff of text tells to the byte goes as
bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unicodedata import category

from msgspec import Struct
from msgspec.structs import replace

from patchq.core import formats
from patchq.core.formats.envelope.front_matter import open_response
from patchq.core.model.values import Envelope, FileChange, Problem
from patchq.core.plan import batch
from patchq.core.plan.targets import PlanRules
from patchq.core.text import unified
from patchq.core.text.lines import is_utf8
from patchq.gate.errors import UsageError
from patchq.gate.git.checkout import Checkout, registered
from patchq.gate.git.command import QUIET, Git, alternate, plain_environment
from patchq.gate.git.merges import changes_with_renames
from patchq.gate.git.objects import SUBMODULE
from patchq.gate.git.repository import Repository
from patchq.gate.pipeline import judge
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.pipeline.session import Session
from patchq.gate.report.message import from_trailers, subject, without_trailer

MOST_COMMITS = 1000  # most commits in one range, or one push


class Range(Struct, frozen=True):
    """A change from the commit `base` to the commit `result`, as ids in hex.

    `commits` are those between them, the oldest first, without `merges` of the target, unless there
    is nothing else.
    """

    base: str
    result: str
    commits: tuple[str, ...] = ()
    merges: tuple[str, ...] = ()


def of_range(repo: Repository, text: str) -> Range:
    """Return the commits of B that A does not have, of `A..B`; raises `UsageError`."""
    first, dots, last = text.partition("..")
    if not dots or last.startswith("."):
        raise UsageError(
            f"expected a range `A..B`, got {text!r}", "name two commits, as in --range main..HEAD"
        )
    return since(repo, _commit(repo, first or "HEAD"), _commit(repo, last or "HEAD"))


def of_branch(context: RepoContext, name: str, target: str) -> Range:
    """Return the change of a branch since it left the target; raises `UsageError`.

    Also where a work tree has changes of it that are not committed.
    """
    repo = context.repo
    tip = repo.branch_tip(name)
    if tip is None:
        raise UsageError(f"there is no branch {name!r}", "see `git branch`")
    for checkout in uncommitted(repo, name):
        raise UsageError(
            f"the work tree {checkout.workdir} has changes of {name} that are not committed",
            f"commit or stash them, or hand in all with --worktree {checkout.workdir}",
        )
    return since(repo, _target_tip(context, target), tip)


def uncommitted(repo: Repository, name: str) -> Iterator[Checkout]:
    """Yield the branch's work trees that have uncommitted changes or new files."""
    for checkout in registered(repo, f"refs/heads/{name}"):
        changes = ("status", "--porcelain", "--untracked-files=normal")
        if not checkout.unseen and checkout.git.output(*changes):
            yield checkout


def of_commit(context: RepoContext, id: str, target: str) -> Range:
    """Return the change of a commit since it left the target; raises `UsageError`."""
    return since(context.repo, _target_tip(context, target), _commit(context.repo, id))


def of_worktree(context: RepoContext, directory: Path, target: str) -> Range:
    """Return the change of a work tree since it left the target.

    It has uncommitted work, too, but no file that git ignores.  Raises `UsageError`.
    """
    repo, place = context.repo, Path(os.path.realpath(directory))
    found = [it for it in registered(repo) if not it.unseen and place.is_relative_to(it.workdir)]
    if not found:
        raise UsageError(
            f"{directory} is in no work tree of this repository", "see `git worktree list`"
        )
    checkout = max(found, key=lambda it: len(it.workdir.parts))
    head = repo.head_commit(checkout.gitdir)
    if not head:
        raise UsageError(f"the work tree {checkout.workdir} has no commit yet", "commit first")
    own = since(repo, _target_tip(context, target), head)
    return replace(own, result=_written(checkout, head))


def since(repo: Repository, old: str, new: str) -> Range:
    """Return the change of `new` since it left `old`.

    Raises `UsageError` where that holds a merge of something that `old` does not have.
    """
    git = _git(repo)
    bases = git.run("merge-base", "--all", old, new).text.split()
    if len(bases) != 1:
        what = "no commit" if not bases else f"{len(bases)} commits to begin from"
        raise UsageError(
            f"{new[:12]} and {old[:12]} have {what} in common", "rebase the work, then hand it in"
        )
    listed = git.output(
        "rev-list", "--topo-order", "--reverse", "--parents", f"-n{MOST_COMMITS + 1}",
        new, f"^{bases[0]}",
    )  # fmt: skip
    rows = [line.split() for line in listed.decode().splitlines()]
    if len(rows) > MOST_COMMITS:
        raise UsageError(
            f"{bases[0][:12]}..{new[:12]} holds more than {MOST_COMMITS} commits",
            "hand it in in parts, with --range",
        )
    own = {commit for commit, *_ in rows}
    merges = {commit: parents for commit, *parents in rows if len(parents) > 1}
    for merge, parents in merges.items():
        if len(own.intersection(parents)) > 1:
            raise UsageError(
                f"{bases[0][:12]}..{new[:12]} holds the merge {merge[:12]} of what "
                f"{old[:12]} does not have",
                "rebase the work, so that it holds no merge but of its target as it is here, then "
                "hand it in",
            )
    commits = tuple(commit for commit, *_ in rows if commit not in merges)
    return Range(bases[0], new, commits or tuple(merges), tuple(merges))


def each(repo: Repository, whole: Range) -> Iterator[Range]:
    """Yield one range for each of its commits, the oldest first.

    Raises `UsageError` where there are merges among them: their resolution belongs to no commit.
    """
    if whole.merges:
        raise UsageError(
            f"{whole.base[:12]}..{whole.result[:12]} holds the merge {whole.merges[0][:12]}, which "
            "has no place in a series",
            "rebase the work, or hand it in as one change, without --series",
        )
    for commit in whole.commits:
        yield Range(repo.parents(commit)[0], commit, (commit,))


def _git(repo: Repository) -> Git:
    place = repo.workdir or repo.gitdir
    environment = plain_environment()
    if repo.borrowed is not None:
        environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = alternate(repo.borrowed)
    # Who pushes may push replacements, too, by which a commit would seem to be another.
    options = (*QUIET, "--literal-pathspecs", "--no-replace-objects")
    return Git(environment, options, place, place)


def _commit(repo: Repository, text: str) -> str:
    done = _git(repo).run("rev-parse", "-q", "--verify", "--end-of-options", f"{text}^{{commit}}")
    if done.code != 0 or "\0" in text:
        raise UsageError(f"there is no commit {text!r} in this repository", "see `git log`")
    return done.text


def _target_tip(context: RepoContext, target: str) -> str:
    tip = context.branches.tip(target)
    if tip is None:
        raise UsageError(f"there is no branch {target!r}", "name another --target")
    return tip


# ---------------------------------------------------------------- work trees


def _written(checkout: Checkout, head: str) -> str:
    """Return a new commit on HEAD of all files in the work tree.

    Ignored files stay out.  It is made on a copy of the index.  Its objects stay in the repository
    until git's next housekeeping, as those of `git add` do.
    """
    for name in ("rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"):
        if (checkout.gitdir / name).exists():
            raise UsageError(
                f"the work tree {checkout.workdir} is in the middle of a rebase, merge or pick",
                "finish or abort it there, then hand it in",
            )
    with TemporaryDirectory(prefix="patchq-index-") as directory:
        index = Path(directory, "index")
        if (checkout.gitdir / "index").exists():
            index.write_bytes((checkout.gitdir / "index").read_bytes())
        checkout.git.output("add", "-A", "--", ".", index=index)
        tree = checkout.git.output("write-tree", index=index).decode().strip()
    commit = checkout.git.output("commit-tree", tree, "-p", head, "-m", "Work in progress")
    return commit.decode().strip()


# ---------------------------------------------------------------- responses

_RULED = ("path.", "result.", "edit.")  # codes of what a rule forbids
_MOST_MESSAGE = 10_000  # characters of a message that are handed in


def as_response(session: Session, change: Range, given: Mapping[str, object]) -> bytes:
    """Return the response that hands a range in.

    Its front matter has the base, the keys that are `given`, and the message of the commits unless
    another one is given.  Raises `UsageError`; of what is too large, no content is read for that.
    """
    repo = session.repo
    changes = repo.changes(change.base, change.result)
    new = (
        (path, after[1]) for path, (_, after) in changes.items() if after and after[0] != SUBMODULE
    )
    sizes = ((path, repo.size(oid)) for path, oid in new)
    for problem in judge.over_limits(len(changes), sizes, session.config.limits):
        raise UsageError(f"{problem.code}: {problem.message}", problem.hint)
    messages = [repo.message(commit) for commit in change.commits]
    keys = {key: value for key, value in given.items() if value} | {"base": change.base}
    keys = {**from_trailers(messages), **keys}
    messages = [plain for message in messages if (plain := _plain(message))]
    if messages and "message" not in keys:
        subjects = [subject(message) for message in messages]
        whole = "\n".join((subjects[-1], "", *(f"- {line}" for line in subjects)))
        keys["message"] = messages[0] if len(messages) == 1 else whole
    data = diff_response(repo, session.rules, change.base, change.result, keys)
    if isinstance(data, Problem):
        raise UsageError(f"{data.code}: {data.message}", data.hint)
    return data


def _plain(message: str) -> str:
    """Return the message without control characters, as front matter may have it."""
    lines = message.replace("\r", "\n" if "\n" not in message else "").split("\n")
    kept = ("".join(c for c in line if c == "\t" or category(c) != "Cc") for line in lines)
    return without_trailer("\n".join(kept)).strip()[:_MOST_MESSAGE]


def diff_response(
    repo: Repository, rules: PlanRules, start: str, end: str, keys: Mapping[str, object]
) -> bytes | Problem:
    """Return the response that turns one commit into another, or a problem."""
    for path, sides in repo.changes(start, end).items():
        if any(leaf[0] == SUBMODULE for leaf in sides if leaf):
            return Problem(
                "path.not_a_file",
                f"{path} is a submodule, which no change may change: its commits are not in this "
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
    wanted = changes_with_renames(repo, start, end)
    if not wanted:
        return Problem("response.no_edits", "nothing was changed", "there is nothing to hand in")
    as_bytes = {path for change in wanted if not _is_text(change) for path in change.paths}
    while True:
        diff = unified.unified(tuple(_parted(wanted, as_bytes)), as_bytes)
        data = f"---\n{header}---\n{diff}".encode("utf-8", "surrogateescape")
        missed = _misread(data, repo, rules, start, tuple(_parted(wanted, as_bytes)))
        if not missed:
            return data
        more = {path for change in missed for path in change.paths}
        if more <= as_bytes:
            path = min(more)
            message = f"the change of {path} cannot be written in a response"
            return Problem("response.unreadable_edit", message, path=path)
        as_bytes |= more


def _is_text(change: FileChange) -> bool:
    if change.link or change.from_link:
        return False
    sides = [side for side in (change.before, change.after) if side is not None]
    return not any(b"\0" in side for side in sides) and all(map(is_utf8, sides))


def _parted(wanted: Iterable[FileChange], as_bytes: Collection[str]) -> Iterable[FileChange]:
    """Yield the changes, with a rename as two if it is sent as bytes."""
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
    """Return the changes that the response is not read as.

    They are all if it cannot be read.  A change that a rule forbids is read well.
    """
    opened, tree = open_response(data), repo.tree(start)
    assert isinstance(opened, Envelope)
    parsed = formats.parse(
        opened.text, lambda path: tree.entry(path) is not None, opened.header, opened.first_line
    )
    if any(problem.severity == "error" for problem in parsed.problems):
        return list(wanted)
    plan = batch.plan(parsed.edits, tree, replace(rules, denied=lambda path: None), declared=True)
    if plan.refused and all(error.code.startswith(_RULED) for error in plan.errors):
        return []
    made = {_identity(change) for change in plan.changes}
    missed = [change for change in wanted if _identity(change) not in made]
    return missed or ([] if len(made) == len(wanted) else list(wanted))


def _identity(change: FileChange) -> tuple[str, bytes | None, str | None, bool | None, bool]:
    bit = None if change.after is None else change.executable
    return change.path, change.after, change.renamed_from, bit, change.link
