"""What becomes of the files that agents read: planned as a whole, then written one by one.

Nothing but patchq's own part of a file is touched, and a file that cannot be understood is refused
before anything is written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from patchq.cli.instructions import merging
from patchq.cli.instructions.agents import AGENTS, ALWAYS, ServerFile, TextFile
from patchq.cli.instructions.text import NAME, TEXT
from patchq.core.model.names import nearest
from patchq.gate.errors import UsageError
from patchq.gate.git import files, sharing

_MOST_BYTES = 1 << 20
_BY_HAND = "see to that, or write there by hand what `patchq instructions` prints"
_IMPORTS = (b"@AGENTS.md", b"@./AGENTS.md")
"""Lines by which CLAUDE.md and GEMINI.md take in what AGENTS.md says."""


class Installation(Struct, frozen=True):
    """One file as it is to be; `path` is as the agent names it, `place` where it really is."""

    path: str
    place: Path
    before: bytes | None
    after: bytes
    what: str
    """What is new in it, as a noun with its article."""

    @property
    def changes(self) -> bool:
        return self.before != self.after


def wanted(named: str, root: Path) -> list[TextFile | ServerFile]:
    """The files of the agents named, with commas between, or of those that are used here."""
    chosen = [name.strip() for name in named.split(",") if name.strip()]
    for name in chosen:
        if name not in AGENTS:
            near = nearest(name, AGENTS)
            raise UsageError(
                f"there is no agent {name!r}",
                f"did you mean `{near}`?" if near else "one of " + ", ".join(AGENTS),
            )
    found: list[TextFile | ServerFile] = [] if chosen else list(ALWAYS)
    for name, agent in AGENTS.items():
        if name in chosen or (
            not chosen and any(os.path.lexists(root / trace) for trace in agent.traces)
        ):
            found += agent.files
    return list(dict.fromkeys(found))


def planned(named: str, root: Path) -> list[Installation]:
    """What is to be written below the root of a work tree; raises `UsageError`."""
    found: dict[Path, Installation] = {}
    for file in wanted(named, root):
        place = _place(root, file.path)
        before = _read(file.path, place)
        if isinstance(file, TextFile) and _takes_in_another(before):
            place = _place(root, "AGENTS.md")
            file, before = TextFile("AGENTS.md"), _read("AGENTS.md", place)
        if place not in found:
            found[place] = _installation(file, place, before)
    return list(found.values())


def write(one: Installation) -> None:
    """Put the file where it belongs; its mode stays.  Raises `UsageError`, also where somebody
    changed it while a person was asked."""
    if _read(one.path, one.place) != one.before:
        raise UsageError(f"{one.path} was changed meanwhile", "try again")
    try:
        # They say what runs, so no group may write them that umask keeps out.
        allowed = ~max(sharing.childrens_umask(), 0)
        for folder in reversed(one.place.parents):
            if not folder.is_dir():
                folder.mkdir(0o777 & allowed)
        kept = stat.S_IMODE(one.place.stat().st_mode) if one.before is not None else 0
        via = one.place.with_name(f".{one.place.name}.patchq.tmp")
        mode = kept or 0o666 & allowed
        files.replace(one.place, one.after, via=via, mode=mode, grant=kept, flush=True)
    except OSError as error:
        raise UsageError(f"cannot write {one.path}: {error.strerror}", _BY_HAND) from None


def _installation(file: TextFile | ServerFile, place: Path, before: bytes | None) -> Installation:
    if isinstance(file, TextFile):
        old = before if before is not None else file.head.encode()
        return Installation(
            file.path, place, before, merging.section(file.path, old, TEXT), "a section on patchq"
        )
    merge = merging.toml if file.path.endswith(".toml") else merging.json_entry
    after = merge(file.path, before or b"", file.entry)
    return Installation(file.path, place, before, after, f"the MCP server `{NAME}`")


def _place(root: Path, path: str) -> Path:
    """Where the file really is; raises `UsageError` where links lead out of the work tree."""
    top = os.path.realpath(root)
    real = os.path.realpath(root / path)
    if not real.startswith(f"{top.rstrip('/')}/"):
        raise UsageError(f"{path} leads out of the repository, to {real}", _BY_HAND)
    if real.removeprefix(f"{top.rstrip('/')}/").split("/")[0] == ".git":
        raise UsageError(f"{path} leads into git's own directory, to {real}", _BY_HAND)
    return Path(real)


def _read(path: str, place: Path) -> bytes | None:
    try:
        kind = place.stat().st_mode
        if not stat.S_ISREG(kind) or place.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is no file that patchq would change", _BY_HAND)
        return place.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", _BY_HAND) from None


def _takes_in_another(data: bytes | None) -> bool:
    lines: Sequence[bytes] = (data or b"").splitlines()
    return any(line.strip() in _IMPORTS for line in lines)
