"""Files of a batch for people and agents, in done/, rejected/ and active/.

They are made from the store, each by rename, the report last, and made again where they may be
lost.  The response that came stays in active/ until they are there.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from patchq.gate.git.files import umask
from patchq.gate.queue import spool
from patchq.gate.queue.spool import PAGE, PUBLIC, REPORT, Folder, extension
from patchq.gate.report.schema import Report


class BatchFiles(Struct, frozen=True):
    """The files of a batch.

    `body` is None for a response that was not read, whose entry moves.
    """

    token: str
    name: str
    id: str
    state: str
    """`held`, `rejected`, another verdict, or `gone` where there is no file any more."""
    report: bytes
    page: bytes
    body: bytes | None


class Published(Struct, frozen=True):
    """A batch as its files tell it."""

    report: Report
    body: bytes | None
    ended: float


class Outbox:
    """The directories of the queue at `root` that patchq alone writes to."""

    def __init__(self, root: Path, *, lasting: bool) -> None:
        self.active, self.done, self.rejected = (
            Folder(root / name, lasting=lasting) for name in PUBLIC[1:]
        )
        self._made = 0o666 & ~umask()  # the permissions of what is made

    def close(self) -> None:
        for folder in (self.active, self.done, self.rejected):
            folder.close()

    def files(self, batch: BatchFiles) -> list[tuple[Folder, str, bytes]]:
        """Return the files of a batch, in the order in which they are made."""
        place, id = self._place(batch), batch.id
        found = [(place, id + PAGE, batch.page), (place, id + REPORT, batch.report)]
        if batch.body is None or place is self.active:
            return found
        return [(place, f"{id}{extension(batch.name)}", batch.body), *found]

    def _place(self, batch: BatchFiles) -> Folder:
        return {"held": self.active, "rejected": self.rejected}.get(batch.state, self.done)

    def show(self, batch: BatchFiles) -> None:
        """Write the missing files of a batch, or remove those of a gone one."""
        if batch.state == "gone":
            self._remove(batch)
            return
        id, entry, place = batch.id, entry_name(batch.token, batch.name), self._place(batch)
        if batch.body is None and place is not self.active:
            self.active.move(entry, place, f"{id}{extension(batch.name)}")
        for folder, name, data in self.files(batch):
            if self.is_published(folder, name, data):
                folder.remove(f"{name}.tmp")
            else:
                self._put(folder, name, data, batch)
        if place is not self.active:
            for name in (entry, id + PAGE, id + REPORT):
                self.active.remove(name)
        elif batch.body is not None and self.active.status(entry) is None:
            self.active.put(entry, batch.body, mode=0o600)

    def _remove(self, batch: BatchFiles) -> None:
        response = f"{batch.id}{extension(batch.name)}"
        for folder in (self.done, self.rejected):
            status = folder.status(response)
            if status and stat.S_ISDIR(status.st_mode):  # as it was dropped
                shutil.rmtree(response, dir_fd=folder.fd)
            elif status:
                folder.remove(response)
            for end in (PAGE, REPORT):
                folder.remove(batch.id + end)

    def is_published(self, folder: Folder, name: str, data: bytes) -> bool:
        """Return true if the file is there with this content."""
        with suppress(OSError):
            return folder.read(name) == data
        return False

    def wrong(self, batch: BatchFiles) -> Iterator[Path]:
        """Give the files of a batch that are not there as they should be."""
        for folder, name, data in self.files(batch):
            if not self.is_published(folder, name, data):
                yield folder.path / name

    def paths(self, batch: BatchFiles) -> list[Path]:
        """Return the places of a batch's files.

        A response that was not read has its entry's place.
        """
        body = self._place(batch).path / f"{batch.id}{extension(batch.name)}"
        return [body, *(folder.path / name for folder, name, _ in self.files(batch))]

    def published(self) -> Iterator[Published]:
        """Give the batches whose reports can be read in done/ and rejected/."""
        for folder in (self.done, self.rejected):
            for name in folder.names():
                if name.endswith(REPORT) and (found := self.published_as(folder.path / name)):
                    yield found

    def published_as(self, path: Path) -> Published | None:
        """Return the batch that a report in done/ or rejected/ tells of."""
        folder = self.done if path.parent == self.done.path else self.rejected
        id, status = path.name.removesuffix(REPORT), folder.status(path.name)
        report = spool.report(_content(folder, path.name))
        if status is None or report is None or report.id != id:
            return None
        body = _content(folder, f"{id}{extension(report.source.name)}")
        return Published(report, body, status.st_mtime)

    def _put(self, folder: Folder, name: str, data: bytes, batch: BatchFiles) -> None:
        _ = folder.fd  # its mode is read with that
        mode = self._made & folder.mode | 0o600 | folder.grant
        if b'"edit.secret"' in batch.report and not name.endswith((PAGE, REPORT)):
            mode &= 0o660 if folder.grant else 0o600
        folder.put(name, data, mode=mode)


def entry_name(token: str, name: str) -> str:
    """Return the name in active/ of the response that came under that name."""
    room = 255 - len(token) - 1
    return f"{token}.{os.fsdecode(os.fsencode(name)[-room:])}"


def _content(folder: Folder, name: str) -> bytes | None:
    status = folder.status(name)
    return folder.read(name) if status and stat.S_ISREG(status.st_mode) else None
