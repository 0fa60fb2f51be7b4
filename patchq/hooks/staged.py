"""The configured hooks before a commit that `git am` is about to make.

The index takes the place of a batch: its difference from HEAD is the plan, its tree the candidate.
What a hook that fixes files would change is not taken over, as git commits the index as it is: it
is a refusal that says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from patchq.config.schema import Config
from patchq.git.command import Git
from patchq.git.repository import Repository
from patchq.hooks import shipped
from patchq.hooks.engine import Engine, HookInput
from patchq.hooks.steps import Step, steps
from patchq.hooks.verdicts import Verdict
from patchq.model.report import EditSummary
from patchq.report import document, secrecy

_SECRETS = (shipped.PREFIX + "pre-apply", shipped.PREFIX + "no-secrets")
_OPS = {"A": "create", "D": "delete_file"}
_DIFF = (
    "-c", "core.quotePath=true", "diff", "--cached", "--no-color", "--no-ext-diff",
    "--no-textconv", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3",
)  # fmt: skip
_ID = "git-am"


def judge_message(config: Config, message: str) -> list[str]:
    """Why a commit message must not be: it holds a secret, and a configured hook looks for them."""
    if not any(hook.run in _SECRETS for hook in config.hooks):
        return []
    look = secrecy.gate().secret_kind
    kinds = [(number, look(line)) for number, line in enumerate(message.split("\n"), 1)]
    return [f"the message, line {number}: looks like {kind}" for number, kind in kinds if kind]


def judge(config: Config, repo: Repository) -> list[str]:
    """Why what is staged in the repository's work tree must not be committed; empty if it may.

    Raises `HookFault` for a hook that cannot be started.
    """
    assert repo.workdir is not None
    known = steps(config, None)
    if not known.before:
        return []
    candidate = _candidate(config, repo, repo.workdir)
    with TemporaryDirectory(prefix="patchq-am-") as scratch:
        root = Path(os.path.realpath(scratch))
        engine = Engine(root, repo.commondir / "objects", repo.commondir / "hooks")
        for stage in (known.plan, (*known.fixing, *known.checking)):
            wanted = [step for step in stage if step.wants(candidate.paths)]
            verdicts = [(step, engine.ask(step, candidate, Event())) for step in wanted]
            if lines := [line for step, verdict in verdicts for line in _lines(step, verdict)]:
                return lines
    return []


def _lines(step: Step, verdict: Verdict) -> Iterator[str]:
    yield from (problem.message for problem in verdict.problems)
    if verdict.fixed:
        yield f"the hook {step.id} would change {', '.join(verdict.fixed)}"


def _candidate(config: Config, repo: Repository, workdir: Path) -> HookInput:
    """What is staged, as a batch whose commit is on no branch."""
    git = partial(_git, workdir)
    head, tree = git("rev-parse", "-q", "--verify", "HEAD").strip(), git("write-tree").strip()
    status = git(*_DIFF, "--name-status", "-z", head).split("\0")[:-1]
    touched = dict(zip(status[1::2], status[::2], strict=True))
    edits: list[EditSummary] = [
        {"id": str(number), "path": path, "op": _OPS.get(letter, "write"), "state": "applied"}
        for number, (path, letter) in enumerate(touched.items(), 1)
    ]
    return HookInput(
        id=_ID,
        target=repo.head_branch() or "",
        base=head,
        parent=head,
        parent_tree=repo.tree(head).root,
        commit=git("commit-tree", tree, "-p", head, "-m", _ID).strip(),
        tree=tree,
        paths=tuple(touched),
        message=_ID,
        plan={
            "schema": document.PLAN,
            "id": _ID,
            "agent": None,
            "model": None,
            "mode": config.mode,
            "target": repo.head_branch(),
            "base": {"commit": head, "how": "tip"},
            "edits": edits,
            "diff": git(*_DIFF, head),
        },
    )


def _git(directory: Path, *words: str) -> str:
    return Git(directory=directory).output(*words).decode("utf-8", "surrogateescape")
