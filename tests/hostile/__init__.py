"""Hostile input, by the rows of `docs/hostile-input.md`."""

from __future__ import annotations

from collections.abc import Mapping
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
