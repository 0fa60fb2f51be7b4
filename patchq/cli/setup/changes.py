"""The changes of files that `patchq setup` makes: planned as a whole, then written one by one."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from patchq.cli.instructions import SECTION, SKILL_HEAD, TEXT
from patchq.cli.setup import writers
from patchq.cli.setup.clients import AIDER, INSTRUCTIONS, NAME, ServerFile
from patchq.core.text.quote import visible
from patchq.gate.errors import UsageError
from patchq.gate.git import files

_MOST_BYTES = 8 << 20
_IMPORTS = {f"@{INSTRUCTIONS}", f"@./{INSTRUCTIONS}", f"read: {INSTRUCTIONS}"}


class PlannedFile(Struct, frozen=True):
    """A file as it is and as it is to be; None: there is none."""

    path: str
    place: Path
    before: bytes | None
    after: bytes | None
    note: str = ""

    def diff(self) -> Iterator[str]:
        """Yield the lines of what is new in it."""
        old, new = (
            (data or b"").decode("utf-8", "replace").splitlines()
            for data in (self.before, self.after)
        )
        for line in difflib.unified_diff(old, new, self.path, self.path, lineterm="", n=1):
            yield visible(line, keep="\t")

    def write(self, root: Path) -> None:
        """Write or remove the file; raises `UsageError`, also if it changed since."""
        if read(self.path, self.place) != self.before:
            raise UsageError(f"{self.path} was changed meanwhile", "try again")
        try:
            if self.after is None:
                self.place.unlink()
                with suppress(OSError):  # raised by a folder that is not empty
                    for folder in self.place.parents:
                        if folder in (Path(os.path.realpath(root)), Path.home()):
                            break
                        folder.rmdir()
                return
            # They say what runs, so no group may write them that umask keeps out.
            allowed = ~max(files.childrens_umask(), 0)
            for folder in reversed(self.place.parents):
                if not folder.is_dir():
                    folder.mkdir(0o777 & allowed)
            kept = stat.S_IMODE(self.place.stat().st_mode) if self.before is not None else 0
            via = self.place.with_name(f".{self.place.name}.patchq.tmp")
            mode = kept or 0o666 & allowed
            files.replace(self.place, self.after, via=via, mode=mode, grant=kept, flush=True)
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror}", "mend that") from None


def of_text(root: Path, path: str, *, remove: bool) -> PlannedFile:
    """Return the change of a text that agents read."""
    place = place_of(root, path)
    before = read(path, place)
    lines = {line.strip() for line in (before or b"").decode("utf-8", "replace").splitlines()}
    text, head, marks = SECTION, "", writers.HTML
    if path == AIDER:
        text, marks = f"read: {INSTRUCTIONS}\n", writers.HASH
    elif path.endswith("SKILL.md"):
        text, head = TEXT, SKILL_HEAD
    elif path == "CLAUDE.md" and before is None:
        text = f"@{INSTRUCTIONS}\n"
    if remove:
        after = before if before is None else writers.remove_section(path, before, marks, head)
        return PlannedFile(path, place, before, after)
    if path != INSTRUCTIONS and _IMPORTS & lines:
        return PlannedFile(path, place, before, before)
    if path == AIDER and any(line.startswith("read:") for line in lines):
        return PlannedFile(
            path, place, before, before, f"add {INSTRUCTIONS} to its `read:` by hand"
        )
    after = writers.write_section(path, before, text, marks, head)
    return PlannedFile(path, place, before, after)


def of_server(root: Path, file: ServerFile, words: list[str], *, remove: bool) -> PlannedFile:
    """Return the change of a client's file of servers; an entry that a person changed stays."""
    place, keys = place_of(root, file.path), (file.servers, NAME)
    before = read(file.path, place)
    held, old = _opened(file, before)
    new, after = file.entry(words), before
    ours = file.wrote(old) and (isinstance(held, writers.JsonFile) or held.marked)
    if old is not None and not ours and old != new:
        return PlannedFile(file.path, place, before, before, f"left: a person changed its `{NAME}`")
    if remove and old is not None:
        after = held.remove(keys)
    elif not remove and old != new:
        after = held.write(keys, new)
    return PlannedFile(file.path, place, before, after)


def words_of(root: Path, file: ServerFile) -> list[str]:
    """Return the words that start the server as the file has it; none where it has none."""
    return file.words(_opened(file, read(file.path, place_of(root, file.path)))[1])


def _opened(
    file: ServerFile, data: bytes | None
) -> tuple[writers.TomlFile | writers.JsonFile, object]:
    """Return the file in its own syntax, and its entry or None."""
    toml = file.path.endswith(".toml")
    held = writers.TomlFile(file.path, data) if toml else writers.JsonFile(
        file.path, data, file.comments
    )  # fmt: skip
    servers = held.value.get(file.servers) if isinstance(held.value, dict) else None
    return held, servers.get(NAME) if isinstance(servers, dict) else None


def place_of(root: Path, path: str) -> Path:
    """Return the file's real place; raises `UsageError` where links lead out of the work tree."""
    if path.startswith("~/"):
        return Path(path).expanduser()
    top = Path(os.path.realpath(root))
    real = Path(os.path.realpath(root / path))
    if not real.is_relative_to(top) or real.relative_to(top).parts[:1] == (".git",):
        raise UsageError(f"{path} leads out of the work tree, to {real}", "mend the link")
    return real


def read(path: str, place: Path) -> bytes | None:
    """Return the file's bytes, or None; raises `UsageError` for what is no plain file."""
    try:
        status = place.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise UsageError(f"{path} is no file that patchq would change", "mend that")
        return place.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "mend that") from None
