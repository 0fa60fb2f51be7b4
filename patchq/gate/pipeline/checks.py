"""Checks that every change has to pass, however it comes in.

A response's plan, what a hook made of it, a mail that `git am` is about to commit and a commit that
is pushed are all judged by `judge`: their paths, their size, secrets in them, their syntax.  How a
change came about (quotes, elisions, bases) is judged before, where it is known.  A commit may hold
what no response can say (submodules); that is refused as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import FileChange, Problem, Tree
from patchq.core.plan import links, syntax, targets
from patchq.core.text import unified
from patchq.gate.config.schema import Limits
from patchq.gate.git.objects import SUBMODULE
from patchq.gate.pipeline.session import Session
from patchq.gate.report import secrecy


class Judgement(Struct, frozen=True):
    """Problems of changes, errors or else warnings, with their diff."""

    problems: tuple[Problem, ...]
    diff: str = ""

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity == "error"]


def judge(changes: Sequence[FileChange], before: Tree, session: Session) -> Judgement:
    """Return what speaks against changes of a tree; the first kind that is found decides."""
    sizes = ((change.path, len(change.after)) for change in changes if change.after is not None)
    if flaws := (
        *over_limits(len(changes), sizes, session.config.limits),
        *targets.misplaced(changes, before, session.rules),
        *links.flaws(changes, before, session.rules),
    ):
        return Judgement(flaws)
    diff = unified.unified(changes)
    if secrets := (
        *secrecy.in_paths(changes),
        *secrecy.in_diff(diff),
        *secrecy.in_bytes(changes),
    ):
        return Judgement(secrets, diff)
    judged = [change for change in changes if session.rules.judged(change.path)]
    return Judgement(syntax.broken(judged), diff)


def over_limits(count: int, sizes: Iterable[tuple[str, int]], limits: Limits) -> Iterator[Problem]:
    """Yield problems with so many files, and with the first that has too many bytes."""
    if count > limits.files:
        yield Problem(
            "response.too_large",
            f"{count} files would change, more than `limits.files` ({limits.files})",
            "send the changes in several parts",
        )
    if problem := targets.too_large(sizes, limits.file_bytes):
        yield problem


def secrets_in_words(text: str, author: str) -> tuple[Problem, ...]:
    """Return the secrets in a commit's message and author."""
    in_message = secrecy.in_text(text, "the commit message")
    return (*in_message, *secrecy.in_text(author, "the author"))


def judge_commit(
    session: Session, parent: str, commit: str, among: Collection[str] | None = None
) -> Judgement:
    """Return the judgement on a commit that patchq did not make, as a change of its parent.

    Of its changes only those of the paths `among` count, if any are given.
    """
    repo = session.repo
    changes = repo.file_changes(parent, commit)
    chosen = tuple(change for change in changes if among is None or change.path in among)
    judgement = judge(chosen, repo.tree(parent), session)
    odd = []
    for path, (_, after) in repo.changes(parent, commit).items():
        if after and after[0] == SUBMODULE and (among is None or path in among):
            message = f"{path} would be a submodule, which no change may make"
            odd.append(Problem("path.not_a_file", message, "leave it out", path=path))
    return replace(judgement, problems=(*odd, *judgement.problems))
