"""What git keeps in plain files, read as files: the names of refs, and the HEAD of each work tree.

libgit2 reads every ref of a repository to list some of them: 80 ms where 10,000 lie loose.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_BAD_NAME = re.compile(
    r"""[\x00-\x20\x7f~^:?*\[\\]      # a character that git reserves
    | (?:^|/)(?:\.|/|$)              # an empty component, or one that starts with a dot
    | \.\. | @\{ | \.$ | \.lock(?:/|$)
    """,
    re.VERBOSE,
)


def common_directory(gitdir: Path) -> Path:
    """The real path of the git directory that all work trees of a repository share."""
    pointer = gitdir / "commondir"
    common = os.fsdecode(pointer.read_bytes().rstrip(b"\n")) if pointer.exists() else ""
    return Path(os.path.realpath(gitdir / common))


def ref_names(commondir: Path, prefix: str) -> list[str]:
    """The full names of the refs under `prefix` (which ends in a slash), loose and packed."""
    top = commondir / prefix
    names = {
        prefix + os.path.relpath(os.path.join(where, name), top)
        for where, _, files in os.walk(top)
        for name in files
        if not name.endswith(".lock")
    }
    with suppress(FileNotFoundError):
        packed = os.fsdecode((commondir / "packed-refs").read_bytes())
        names.update(re.findall(rf"^[0-9a-f]{{40}} ({re.escape(prefix)}.+)$", packed, re.M))
    return sorted(names)


def heads(commondir: Path) -> Iterator[tuple[Path, str]]:
    """The git directory of each work tree (a bare repository's own included), and the full name
    of the ref that its HEAD stands for; empty when detached."""
    with suppress(FileNotFoundError):
        yield commondir, _head(commondir)
    with suppress(FileNotFoundError):
        for entry in sorted(os.listdir(commondir / "worktrees")):
            gitdir = commondir / "worktrees" / entry
            with suppress(FileNotFoundError, NotADirectoryError):
                yield gitdir, _head(gitdir)


def _head(gitdir: Path) -> str:
    text = os.fsdecode((gitdir / "HEAD").read_bytes())
    return text[4:].strip() if text.startswith("ref:") else ""


def has_below(commondir: Path, name: str) -> bool:
    """Whether a ref has `name` as its directory, which keeps `name` from being a ref."""
    if any(not file.endswith(".lock") for *_, files in os.walk(commondir / name) for file in files):
        return True
    with suppress(FileNotFoundError):
        return os.fsencode(f" {name}/") in (commondir / "packed-refs").read_bytes()
    return False


def is_ref_name(name: str) -> bool:
    """Whether git takes the full name (`git help check-ref-format`)."""
    return _BAD_NAME.search(name) is None and name.count("/") > 1
