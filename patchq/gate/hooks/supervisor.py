"""Supervise one hook outside the sandbox: `python -I -S supervisor.py COMMAND…`.

A hook may fork, detach itself, ignore signals or outlive the daemon.  This program adopts its
orphans where Linux allows it.  It kills the hook and all of them when the hook has ended, on
SIGTERM, and when the thread that started it dies.  It ends with the hook's exit code (128 + n:
ended by signal n).
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress

COMMAND = (sys.executable, "-I", "-S", __file__)  # starts this program
CANNOT_START = 126
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def main(*argv: str) -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        child = os.posix_spawnp(
            argv[0],
            argv,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, 1, 2)],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE,),
        )
    except OSError as error:
        print(f"the hook cannot be started: {error}")
        sys.exit(CANNOT_START)
    # It is not reaped before `_end_all`, so that its number stays taken.
    look = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while signal.sigwait(_SIGNALS) == signal.SIGCHLD and not os.waitid(os.P_PID, child, look):
        pass
    sys.exit(_end_all(child))


def _end_all(child: int) -> int:
    code = 128 + signal.SIGKILL
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            for pid in _children():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            pid, status = os.waitpid(-1, 0)
            if pid == child:
                ended = os.waitstatus_to_exitcode(status)
                code = ended if ended >= 0 else 128 - ended
    return code


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


if __name__ == "__main__":
    main(*sys.argv[1:])
