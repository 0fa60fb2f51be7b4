"""Real repositories for tests, made by the git command.

Only the first commit of a plain repository, with which most tests begin, is libgit2's, as one call
takes a quarter of what four processes do.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pygit2
from pygit2.enums import ConfigLevel

GITCONFIG = """\
[user]
    name = Ada Tester
    email = ada@example.org
[init]
    defaultBranch = main
    defaultObjectFormat = sha1
    defaultRefFormat = files
[core]
    autocrlf = false
[gc]
    auto = 0
[maintenance]
    auto = false
[advice]
    detachedHead = false
"""
"""What every test finds in its home."""


def git(*args: str, cwd: Path, stdin: str | bytes | None = None) -> str:
    """Run git; its standard output without the last newline.  A failure fails the test."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(["git", *args], cwd=cwd, input=data, capture_output=True, timeout=120)
    if done.returncode:
        message = done.stderr.decode(errors="replace")
        raise AssertionError(f"git {' '.join(args)} exited {done.returncode}: {message}")
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


def shell(script: str, cwd: Path) -> None:
    """Run what a person types; a failure fails the test."""
    done = subprocess.run(["sh", "-ec", script], cwd=cwd, capture_output=True, timeout=120)
    assert done.returncode == 0, f"{script}: {done.stderr.decode(errors='replace')}"


def identity(home: Path) -> dict[str, str]:
    """The environment of somebody at a home without a configuration, who may commit."""
    names = {"HOME": str(home), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        names |= {f"GIT_{who}_NAME": "Ada", f"GIT_{who}_EMAIL": "ada@example.org"}
    return names


def write_files(root: Path, files: Mapping[str, bytes | str]) -> None:
    """Write the files, with the directories that they need; text as UTF-8, byte for byte."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def commit_files(
    repo: Path, files: Mapping[str, bytes | str], message: str = "Change files"
) -> str:
    """Write and commit the files on what is checked out; the new commit's id."""
    write_files(repo, files)
    git("add", "--all", cwd=repo)
    git("commit", "-q", "--allow-empty", "-m", message, cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo)


def make_repo(path: Path, files: Mapping[str, bytes | str] | None = None) -> Path:
    """A repository at `path` with one commit on `main` that holds the files."""
    path.mkdir(parents=True, exist_ok=True)
    if not _is_plain(path, files or {}):
        git("init", "-q", cwd=path)
        commit_files(path, files or {}, "Start")
        return path
    write_files(path, files or {})
    repo = pygit2.init_repository(str(path))
    repo.index.add_all()
    tree = repo.index.write_tree()
    repo.index.write()
    who = repo.default_signature
    repo.create_commit("HEAD", who, who, "Start\n", tree, [])
    return path


def _is_plain(path: Path, files: Mapping[str, bytes | str]) -> bool:
    """Whether libgit2 makes there what git would: with the configuration that every test gets, in
    an empty directory, of files that say nothing to git."""
    if any("/.git" in f"/{name}" for name in files) or any(path.iterdir()):
        return False
    home = pygit2.settings.search_path[ConfigLevel.GLOBAL]
    own = os.path.join(home, ".gitconfig")
    if os.environ.get("GIT_CONFIG_GLOBAL") != own or os.environ.get("HOME") != home:
        return False
    more = {"GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_TERMINAL_PROMPT"}
    if any(name.startswith("GIT_") and name not in more for name in os.environ):
        return False
    return Path(own).read_text() == GITCONFIG


def tip(repo: Path, ref: str = "main") -> str:
    """The id of the commit that the ref names."""
    return git("rev-parse", ref, cwd=repo)


def operators_file(repo: Path) -> Path:
    """The operator's own configuration, which counts whatever is committed or checked out."""
    dot = repo / ".git"
    if not dot.is_dir():
        dot = repo / git("rev-parse", "--git-common-dir", cwd=repo)
    return dot / "patchq.yaml"


def write_config(repo: Path, text: str) -> None:
    """Set the configuration of a repository, as its operator does."""
    operators_file(repo).write_text(text, encoding="utf-8")
