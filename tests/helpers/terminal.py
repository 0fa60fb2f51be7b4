"""Commands on a real terminal: what they write, and what a person types."""

from __future__ import annotations

import os
import pty
import re
import struct
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from select import select

from tests.helpers import processes
from tests.helpers.processes import Process

WAIT_SECONDS = 60.0


class Terminal:
    """A command that has a terminal of 100 columns for its input and output, and what it wrote."""

    def __init__(self, process: Process, master: int) -> None:
        self.process = process
        self.text = ""
        self._master = master

    def read_until(self, true: Callable[[str], object]) -> str:
        """What was written by the time that it is true."""
        until = time.monotonic() + WAIT_SECONDS
        while not true(self.text):
            assert time.monotonic() < until, repr(self.text[-2000:])
            assert self._read(), repr(self.text[-2000:])
        return self.text

    def read_all(self) -> str:
        until = time.monotonic() + WAIT_SECONDS
        while self._read():
            assert time.monotonic() < until, repr(self.text[-2000:])
        return self.text

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def _read(self) -> bool:
        if not select([self._master], [], [], 0.1)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # nobody has the other end any more
            return False
        self.text += data.decode("utf-8", "replace")
        return bool(data)


@contextmanager
def on_a_terminal(repo: Path, *words: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = processes.start(*words, cwd=repo, log=Path(os.ttyname(slave)))
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def plain(text: str) -> list[str]:
    """The lines, without what moves the cursor or colours them."""
    return re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text))
