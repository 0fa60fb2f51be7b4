"""The home branch: the one whose tip has the rules of the gate, as the repository records it.

Only the `config` file of the common git directory counts.  Git's merged view has more (a linked
work tree's `config.worktree`, the user's own file, whatever an `include` names), and libgit2
follows an include even where it reads one file: who can write one of these must not choose whose
rules count.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pygit2
from msgspec import Struct

from patchq.gate.errors import RepositoryFault, UsageError
from patchq.gate.git import records
from patchq.gate.git.command import Git, misconfigured
from patchq.gate.git.refs import head_target, is_ref_name, ref_value
from patchq.gate.git.repository import Repository

_TARGET, _REMOTE = "patchq.target", "patchq.remote"
_HEADS, _ORIGIN = "refs/heads/", f"{records.REMOTES}origin/"
_ANOTHER = "name the branch whose rules count: patchq init --target BRANCH"


class Home(Struct, frozen=True):
    """The home branch, and the remote that has it, if it is not local."""

    branch: str
    remote: str | None = None

    @property
    def ref(self) -> str:
        return (f"{records.REMOTES}{self.remote}/" if self.remote else _HEADS) + self.branch

    def __str__(self) -> str:
        return f"{self.remote}/{self.branch}" if self.remote else self.branch


class HomeGone(UsageError):
    """The home branch does not exist, or is a symbolic ref."""

    def __init__(self, home: Home) -> None:
        why = f"the home branch {home} is gone, or a symbolic ref, which has no rules of its own"
        super().__init__(why, "bring it back, or name another: patchq init --target BRANCH")


def recorded(commondir: Path) -> Home | None:
    """Return the recorded home branch, or None."""
    found = _settings(commondir / "config")
    if _TARGET not in found:
        return None
    home = Home(found[_TARGET], found.get(_REMOTE) or None)
    if not is_ref_name(home.ref):
        raise UsageError(
            f"{_TARGET} in git's configuration is no branch: {home.branch!r}", _ANOTHER
        )
    return home


def _settings(file: Path) -> Mapping[str, str]:
    try:
        text = file.read_bytes()
        if text.isascii() and b"include" not in text.lower():
            config = pygit2.Config(os.fspath(file))
            return {key: config[key] or "" for key in (_TARGET, _REMOTE) if key in config}
    except FileNotFoundError:
        return {}
    except pygit2.GitError as error:
        raise misconfigured(error) from None
    words = ("config", "--file", os.fspath(file), "--no-includes", "-z", "--get-regexp")
    done = Git(directory=file.parent).run(*words, rf"^{_TARGET}$|^{_REMOTE}$")
    if done.code not in (0, 1):
        raise RepositoryFault(f"cannot read {file}: {done.complaint}")
    lines = (line.partition("\n") for line in done.text.split("\0"))
    return {key: value for key, _, value in lines}


def record(repo: Repository, home: Home) -> None:
    """Record the home branch.

    It has to exist, or to be the branch of the first commit.
    """
    if not is_ref_name(home.ref):
        shown = repr(home.branch) if home.branch else "an empty name"
        raise UsageError(f"{shown} cannot be the name of a branch", _ANOTHER)
    if repo.is_symbolic(home.ref):
        raise HomeGone(home)
    if records.is_branch(home.branch):
        raise UsageError(f"{home.branch} is a branch that waits for review", _ANOTHER)
    if not repo.has_ref(home.ref) and home != Home(_branch(repo)):
        why = f"there is no branch {home}"
        fetch = f"git fetch {home.remote}, or name another one" if home.remote else "create it"
        raise UsageError(why, fetch)
    file = repo.commondir / "config"
    for key, value in ((_TARGET, home.branch), (_REMOTE, home.remote)):
        words = ("--replace-all", key, value) if value else ("--unset-all", key)
        done = Git(directory=file.parent).run("config", "--file", os.fspath(file), *words)
        # Nothing to unset is 5; another command may have recorded the same meanwhile.
        if done.code not in (0, 5) and recorded(repo.commondir) != home:
            why = f"cannot record the home branch {home} in {file}: {done.complaint}"
            raise UsageError(why, "let its owner run `patchq init`")


def proposed(repo: Repository) -> tuple[Home, bool]:
    """Return the branch to record by default, and True if HEAD proposes it.

    It is that of the remote `origin` if there is such a local branch, else the main work
    tree's."""
    origin = ref_value(repo.commondir, f"{_ORIGIN}HEAD") or ""
    branch = origin.removeprefix(f"ref: {_ORIGIN}")
    if branch != origin and repo.has_ref(_HEADS + branch):
        return Home(branch), False
    if not (branch := _branch(repo)):
        raise UsageError("HEAD is detached, so no branch is known whose rules count", _ANOTHER)
    return Home(branch), True


def _branch(repo: Repository) -> str:
    target = head_target(repo.commondir)
    return target.removeprefix(_HEADS) if target.startswith(_HEADS) else ""


def refuse(home: Home) -> UsageError:
    return UsageError(f"{home.branch} is checked out, and agents write that branch", _ANOTHER)
