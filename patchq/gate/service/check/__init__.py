"""Checks of the place that patchq works in, and of its records: findings, each with a cure.

`doctor` looks at machine, repository and queue, and changes nothing.  `fsck` compares the queue
with the repository; its findings carry a repair where there is one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from errno import EROFS
from pathlib import Path
from typing import Literal

from msgspec import Struct

from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault, ObjectDamaged
from patchq.gate.git.repository import Repository

# `fatal`: patchq cannot work so; `todo`: a person has to act; `weaker`: it works, and a promise
# holds less than elsewhere; `ok`: nothing to do.
Level = Literal["fatal", "todo", "weaker", "ok"]


class Finding(Struct, frozen=True):
    """Result of one check; `what` names it for programs, as in `queue.space`."""

    what: str
    level: Level
    message: str
    cure: str | None = None
    where: str = ""
    """The path, ref or id that is damaged."""
    repair: Callable[[], object] | None = None
    """Rebuilds it; without one, the cure is for a person."""

    @property
    def key(self) -> tuple[str | None, ...]:
        """Fields that are equal when the same damage is found again."""
        return self.what, self.where, self.message, self.cure


class Place(Struct, frozen=True):
    """The repository and queue that are checked; paths in the configuration begin at `home`."""

    repo: Repository
    home: Path
    queue: Path
    config: Config
    target: str
    database: str


class Check(Struct, frozen=True):
    """One row of a table of checks."""

    what: str
    look: Callable[[Place], Iterable[Finding]]
    ok: str = ""
    """The message where `look` finds nothing."""
    level: Level = "fatal"
    """The level of a fault that keeps it from looking."""
    cure: str | None = None
    """The cure of that fault, in place of its own hint."""

    def findings(self, place: Place) -> list[Finding]:
        """Return what the check finds; a fault is a finding, too."""
        try:
            found = list(self.look(place))
        except ObjectDamaged as fault:
            message = f"{fault.message}; changes that need it are held"
            return [Finding(self.what, "todo", message, fault.hint)]
        except Fault as fault:
            return [Finding(self.what, self.level, fault.message, self.cure or fault.hint)]
        return found or ([Finding(self.what, "ok", self.ok)] if self.ok else [])


def try_out(first: Path, second: Path) -> OSError | None:
    """Write, link and rename a file in two directories; return the error if that fails."""
    own, linked = (first / f".patchq-{os.getpid()}.{end}" for end in ("tmp", "part"))
    moved = second / own.name
    try:
        own.write_bytes(b"x")
        os.link(own, linked)
        os.rename(linked, moved)
    except OSError as error:
        return error
    finally:
        for path in (own, linked, moved):
            with suppress(OSError):
                path.unlink()
    return None


def cure_of_writing(error: OSError, path: Path, otherwise: str) -> str:
    """Return the cure for a place that cannot be written."""
    mount = next(each for each in (path, *path.parents) if each.is_mount())
    return f"mount -o remount,rw '{mount}'" if error.errno == EROFS else otherwise


def moment(unix: float | None) -> str:
    """Return the time in words; now, if it is not known."""
    return datetime.fromtimestamp(unix or time.time(), UTC).isoformat(timespec="seconds")
