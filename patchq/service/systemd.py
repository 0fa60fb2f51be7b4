"""What a service manager is told: sd_notify(3), by datagrams to the socket in NOTIFY_SOCKET.

The watchdog's ping comes from the main loop and from nowhere else: a thread of its own would go on
pinging for a daemon that hangs.  Without a manager every call does nothing.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic

_STATUS_SECONDS = 1.0
_SEND_SECONDS = 1.0


class Manager:
    """The service manager that started this process, by what the environment says of it."""

    def __init__(
        self, environ: Mapping[str, str] = os.environ, clock: Callable[[], float] = monotonic
    ) -> None:
        self._clock = clock
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._pause = _watchdog(environ) / 3 if self._address else 0.0
        self._pinged = self._told = float("-inf")
        self._status = ""

    @property
    def there(self) -> bool:
        return bool(self._address)

    def ready(self) -> None:
        self._send("READY=1")
        self.alive()

    def reloading(self) -> None:
        """The configuration is being read anew; `ready` ends that."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(self._clock() * 1_000_000)}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`, sent when it is another one, once a second at most."""
        now = self._clock()
        if self._address and text != self._status and now - self._told >= _STATUS_SECONDS:
            self._status, self._told = text, now
            self._send(f"STATUS={' '.join(text.split())}")

    def alive(self) -> None:
        """Ping the watchdog, three times within its time; cheap to call often."""
        now = self._clock()
        if self._pause and now - self._pinged >= self._pause:
            self._pinged = now
            self._send("WATCHDOG=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        # A manager that is gone, or does not listen, is no reason to stop the work.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.settimeout(_SEND_SECONDS)
            out.sendto(text.encode(), self._address)


def _address(named: str) -> bytes:
    """The socket's address: a path, or a name in Linux' abstract space."""
    if named.startswith("@"):
        return b"\0" + os.fsencode(named[1:])
    return os.fsencode(named) if named.startswith("/") else b""


def _watchdog(environ: Mapping[str, str]) -> float:
    """The seconds within which the manager wants to hear of this process; 0: it does not."""
    try:
        seconds = int(environ.get("WATCHDOG_USEC", "0")) / 1_000_000
        meant = int(environ.get("WATCHDOG_PID", os.getpid()))
    except ValueError:
        return 0.0
    return seconds if meant == os.getpid() else 0.0
