"""What is special about a repository, among what patchq works with."""

from __future__ import annotations

from patchq.repo import Repository

_EXTENSIONS = ("worktreeconfig", "relativeworktrees", "preciousobjects")


def features(repo: Repository) -> list[str]:
    """Words for people; what patchq does not work with, `Repository.open` refuses."""
    there = repo.commondir
    found = ["SHA-1", "refs in files"]
    found += ["bare"] if repo.bare else []
    found += ["several work trees"] if (there / "worktrees").is_dir() else []
    found += ["shallow"] if (there / "shallow").exists() else []
    found += ["alternates"] if (there / "objects/info/alternates").exists() else []
    return found + [key for key in _EXTENSIONS if repo._setting(f"extensions.{key}") == "true"]
