"""Runs of patchq as forked children: importing it takes longer than a whole landing.

A child does what `python -m patchq` does, once its parent says so, and ends without the
interpreter's farewell.  `switch_off` takes a safeguard out of the children made afterwards, for
the negative controls; the product itself has no such switch.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 120.0
"""Seconds for one run; longer is a violation."""
_PDEATHSIG = 1
SAFEGUARDS = ("barrier", "shown", "healing", "intent", "dedupe")


@dataclass
class Child:
    """A run of patchq that waits for `begin`."""

    pid: int
    gate: int
    said: Path

    def begin(self) -> None:
        os.write(self.gate, b"!")
        os.close(self.gate)

    def wait(self) -> int | None:
        """Its exit code, negative for a signal; None if it had to be ended."""
        until = time.monotonic() + PATIENCE
        pause = 0.001
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                return None
            time.sleep(pause)
            pause = min(pause * 1.5, 0.01)


def fork(
    words: Sequence[str], said: Path, without: str = "", files: int = 0, few: bool = False
) -> Child:
    """A child that will run `patchq WORDS`, its output appended to the file `said`; `without` one
    of the `SAFEGUARDS`, with so many open `files` at most, and where `few` packs are too many
    already."""
    reads, writes = os.pipe()
    waits, tells = os.pipe()
    pid = os.fork()
    if pid:
        os.close(reads)
        os.close(tells)
        os.read(waits, 1)  # what is injected from now on meets patchq, and not what is below
        os.close(waits)
        return Child(pid, writes, said)
    try:
        os.close(writes)
        os.close(waits)
        os.setsid()
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
        _redirect(said)
        os.close(tells)
        os.read(reads, 1)
        os.close(reads)
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        if few:
            _keep_few()
        _leave(_run(words, without))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(70)


def run(
    words: Sequence[str], said: Path, without: str = "", files: int = 0, few: bool = False
) -> int | None:
    """Fork, begin and wait."""
    child = fork(words, said, without, files, few)
    child.begin()
    return child.wait()


def _keep_few() -> None:
    from patchq.gate.git import tidying

    tidying.MANY = tidying.MOST = 2


def _redirect(said: Path) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for fd, stream in ((null, 0), (log, 1), (log, 2)):
        os.dup2(fd, stream)
    os.close(null)
    os.close(log)


def _run(words: Sequence[str], without: str) -> int:
    from patchq.cli import main

    if without:
        switch_off(without)
    try:
        return main(words)
    except SystemExit as stop:
        return int(stop.code or 0)


def _leave(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def load(words: Sequence[str], home: Path) -> None:
    """Import what a run with these words imports, as another process found out."""
    script = (
        "import sys, json; from patchq.cli import main; code = main(sys.argv[1:]);"
        "print(json.dumps(sorted(sys.modules)), file=sys.__stderr__); sys.exit(code > 1)"
    )
    command = [sys.executable, "-c", script, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=home)
    if done.returncode:
        raise RuntimeError(f"patchq {' '.join(words)}: {done.stdout}{done.stderr}")
    for name in json.loads(done.stderr.splitlines()[-1]):
        with suppress(ImportError):  # some modules are only names
            importlib.import_module(name)


# ---------------------------------------------------------------- negative controls


def switch_off(safeguard: str) -> None:
    """Take one safeguard out of this process."""
    {
        "barrier": _no_barrier,
        "shown": _shown_at_once,
        "healing": _no_healing,
        "intent": _no_intent,
        "dedupe": _no_dedupe,
    }[safeguard]()


def _replace(owner: object, name: str, by: Callable[..., object]) -> None:
    getattr(owner, name)  # a control that controls nothing must not pass
    setattr(owner, name, by)


def _no_barrier() -> None:
    from patchq.gate.git import files

    _replace(files, "barrier", lambda *paths: None)
    _replace(files, "syncfs", lambda fd: None)
    _replace(files.LockFile, "flush", lambda lock: None)


def _shown_at_once() -> None:
    """Mark files as shown without a flush that came behind them."""
    from patchq.gate.queue.engine import StoreQueue

    show = StoreQueue._show

    def marking(archive: StoreQueue, numbers: Sequence[int]) -> None:
        show(archive, numbers)
        written, archive._written = archive._written, []
        archive.store.each(
            "update responses set shown = 1 where number = :number",
            [{"number": number} for number in written],
        )

    _replace(StoreQueue, "_show", marking)


def _no_healing() -> None:
    import pygit2

    from patchq.gate.git.object_buffer import ObjectBuffer

    write = ObjectBuffer.write_to

    def sparing(buffer: ObjectBuffer, objects: Path, flush: Callable[[], None]) -> None:
        on_disk = pygit2.Odb(str(objects))
        for oid in [oid for oid in buffer._objects if on_disk.exists(pygit2.Oid(hex=oid))]:
            del buffer._objects[oid]
        write(buffer, objects, flush)

    _replace(ObjectBuffer, "write_to", sparing)


def _no_intent() -> None:
    from patchq.gate.queue.engine import StoreQueue

    _replace(StoreQueue, "intend", lambda *what: None)


def _no_dedupe() -> None:
    from patchq.gate.pipeline import process

    _replace(process, "refuse_duplicate", lambda response: None)
