"""Hostile input, by the rows of `docs/hostile-input.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.helpers.command import patchq
from tests.helpers.gitrepo import git, make_repo, write_config


def automatic(place: Path, files: Mapping[str, bytes | str], config: str = "mode: auto\n") -> Path:
    """A repository whose queue lands on `trunk`, which is nowhere checked out."""
    repo = make_repo(place / "repo", files)
    git("branch", "trunk", cwd=repo)
    patchq("init", cwd=repo)
    write_config(repo, f"version: 1\ntarget: trunk\n{config}")
    return repo


def paths_of(repo: Path, commit: str) -> Iterator[tuple[str, str]]:
    """The modes and paths that a commit changes."""
    told = git("diff-tree", "-r", "-z", "--no-commit-id", commit, cwd=repo).split("\0")[:-1]
    for info, path in zip(told[::2], told[1::2], strict=True):
        yield info.split(" ")[1], path
