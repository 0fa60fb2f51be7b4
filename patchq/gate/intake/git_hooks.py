"""The queue's gate in git's own hooks: for `git am`, and for pushes.

Git's hooks ask here (`patchq hooks check`).  A commit is judged as a batch is: by `gate.judge`, its
message and author, then by the configured hooks.  The index of `git am` is a commit on HEAD.  Of a
push each new commit is judged by itself, since each lands in the history; the hooks that see a work
tree see what the branch would hold, and a commit that landed by the queue has been judged.  Of a
merge that is judged which none of its parents has.

What a hook that fixes files would change is a refusal, as git commits what is there.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from patchq.core.model.values import Problem, Source
from patchq.gate.config.config_file import FILE
from patchq.gate.config.schema import HookStage
from patchq.gate.errors import UsageError
from patchq.gate.git.command import Git
from patchq.gate.hooks.engine import Engine
from patchq.gate.intake.commits import MOST_COMMITS
from patchq.gate.land import presubmit
from patchq.gate.pipeline import history, judge
from patchq.gate.pipeline.progress import Decision
from patchq.gate.pipeline.session import Choice, Session
from patchq.gate.queue import Claim
from patchq.gate.report.schema import LANDED

_MAIL, _PUSH = "git-am", "push"
_PLAN: tuple[HookStage, ...] = ("pre-apply",)
_TREE: tuple[HookStage, ...] = ("pre-commit",)
_BOTH = (*_PLAN, *_TREE)


def _refusal(problem: Problem, commit: str = "") -> str:
    """Return the code and message, and the hint; `commit` is empty for what is staged."""
    where = f"commit {commit[:12]}: " if commit else ""
    hint = "" if problem.code.startswith("hook.") else problem.hint
    return f"{where}{problem.code}: {problem.message}" + (f"\n  {hint}" if hint else "")


def judge_message(message: str) -> list[str]:
    """Return the problems of a commit's message."""
    return [_refusal(problem) for problem in judge.secrets_in_words(message, "")]


def judge_staged(session: Session) -> list[str]:
    """Return the problems of the changes that are staged in the work tree.

    Raises `HookFault` for a hook that cannot be started.
    """
    workdir = session.repo.workdir
    if workdir is None:
        raise UsageError("a bare repository stages nothing", "run this in a work tree")
    git = Git(directory=workdir)
    head = git.output("rev-parse", "-q", "--verify", "HEAD").decode().strip()
    tree = git.output("write-tree").decode().strip()
    commit = git.output("commit-tree", tree, "-p", head, "-m", _MAIL).decode().strip()
    found = [*judge.secrets_in_words("", _author(git, workdir))]
    found += judge.judge_commit(session, head, commit)
    if not found:
        found = _asked(session, _MAIL, session.repo.head_branch() or "", head, commit, _BOTH)
    return [_refusal(problem) for problem in found]


def _author(git: Git, workdir: Path) -> str:
    place = git.output("rev-parse", "--git-path", "rebase-apply/author-script").decode().strip()
    try:
        text = (workdir / place).read_text(encoding="utf-8", errors="replace")
        return " ".join(shlex.split(text))
    except (OSError, ValueError):
        return ""


def judge_push(
    session: Session, branch: str, old: str, new: str, remote: str | None = None
) -> list[str]:
    """Return the problems of moving a branch from `old` (zeros: nothing) to `new`.

    `remote` is the one that is pushed to, None for this repository.

    Raises `HookFault` for a hook that cannot be started.
    """
    # Who pushes may push replacements, too, by which a commit would seem to be another.
    git = Git(
        options=("--no-replace-objects",), directory=session.repo.workdir or session.repo.gitdir
    )
    known = ["--remotes"] if remote is not None else []
    home = session.branches.tip(session.target)
    if old.strip("0"):
        known = [old, *known]
    elif home:
        known = [home, *known]
    listed = git.output(
        "rev-list", "--topo-order", "--reverse", "--parents", f"-n{MOST_COMMITS + 1}", new,
        *(["--not", *known] if known else []),
    )  # fmt: skip
    commits = [line.split() for line in listed.decode().splitlines()]
    if len(commits) > MOST_COMMITS:
        message = f"{branch} would get more than {MOST_COMMITS} commits at once"
        return [_refusal(Problem("response.too_large", message, "push them in parts"))]
    judged = {commit for commit, *_ in commits if _landed(session, commit)}
    found = [
        _refusal(problem, commit)
        for commit, *parents in commits
        if commit not in judged
        for problem in _of_commit(session, git, commit, parents, branch)
    ]
    if found or len(judged) == len(commits):
        return found
    first = commits[0][1:]
    parent = old if old.strip("0") else first[0] if first else _nothing(git)
    asked = _asked(session, _PUSH, branch, parent, new, _TREE)
    return [_refusal(problem, new) for problem in asked]


def _landed(session: Session, commit: str) -> bool:
    """Return True if a report says that a batch landed by this very commit."""
    named = history.trailers(session.repo, commit).get("Patchq-Batch", [])
    reports = filter(None, map(session.queue.load, named))
    return any(it.state in LANDED and it.commit == commit for it in reports)


def _of_commit(
    session: Session, git: Git, commit: str, parents: Sequence[str], branch: str
) -> Iterator[Problem]:
    """Yield the problems of one commit of a push.

    A merge has those that no parent has.
    """
    repo = session.repo
    (info,) = repo.commits(commit, limit=1)
    yield from judge.secrets_in_words(info.message, info.author)
    parent = parents[0] if parents else _nothing(git)
    changed = [set(repo.changes(other, commit)) for other in parents[1:]]
    own = set.intersection(*changed) if changed else set(repo.changes(parent, commit))
    # The rules that count here already are no change: a person committed them.
    home = session.branches.tip(session.target)
    if home and repo.is_ancestor(commit, home):
        own.discard(FILE)
    errors = judge.judge_commit(session, parent, commit, own)
    if not errors and not changed:
        errors = _asked(session, _PUSH, branch, parent, commit, _PLAN)
    yield from errors


def _nothing(git: Git) -> str:
    tree = git.output("hash-object", "-t", "tree", "-w", os.devnull).decode().strip()
    return git.output("commit-tree", tree, "-m", "Nothing").decode().strip()


def _asked(
    session: Session, id: str, branch: str, parent: str, commit: str, stages: Sequence[HookStage]
) -> list[Problem]:
    """Return the problems that the configured hooks of these stages have with a commit."""
    chosen = tuple(hook for hook in session.config.hooks if hook.stage in stages)
    if not chosen:
        return []
    # Git runs its own hooks by itself.
    config = replace(session.config, git_hooks=False, hooks=chosen)
    decision = Decision(
        session=session,
        id=id,
        state="applied",
        target=branch,
        tip=parent,
        claim=Claim("", Source(id, "", 0), b"", id=id),
        choice=Choice(),
        commit=commit,
        tree=session.repo.tree(commit).root,
        paths=tuple(sorted(session.repo.changes(parent, commit))),
    )
    with ExitStack() as scratch:
        asking = replace(session, config=config, engine=_engine(session, scratch))
        (decision,) = presubmit.check([decision], asking, unchanged=True)
    return decision.errors or ([] if decision.lands else list(decision.problems))


def _engine(session: Session, scratch: ExitStack) -> Callable[[], Engine]:
    """Return the queue's hook engine if writable, which keeps passes, or another."""
    if os.access(session.queue_root / "hooks", os.W_OK | os.X_OK):
        return session.engine
    directory = scratch.enter_context(TemporaryDirectory(prefix="patchq-gate-"))
    root, repo = Path(os.path.realpath(directory), "hooks"), session.repo
    home = repo.workdir or repo.commondir
    engine = Engine(root, repo.commondir / "objects", repo.hooks_directory(), home)
    return lambda: engine
