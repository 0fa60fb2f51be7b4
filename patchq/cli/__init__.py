"""The command line, with a module per group of verbs.

`command` finds, parses and calls them.
Every command begins here, so nothing is imported before it is needed.
"""

import gc
import sys

from patchq import __version__

TYPE_CHECKING = False  # as type checkers know it; the module that has it takes long to load
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command, and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:
        try:
            print("patchq", __version__, flush=True)
            return 0
        except OSError:
            pass  # the reader is gone: the long way knows what to do then
    gc.disable()  # until all is imported, which `command` ends
    try:
        from patchq.cli import command

        return command.call(words)
    except KeyboardInterrupt:
        return 130
