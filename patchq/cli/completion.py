"""`patchq completion`: what a shell needs to complete patchq's words.

Ids of batches that wait are looked for in git's own refs, as a shell cannot wait for Python.
"""

from __future__ import annotations

from argparse import Action, Namespace

import shtab

from patchq.cli import arguments, parsing
from patchq.cli.streams import put
from patchq.gate.api.rows import WAITING

_REFS = f"git for-each-ref --format='%(refname:lstrip=3)' {WAITING} 2>/dev/null"
_IDS = {
    "bash": "_patchq_ids",
    "zsh": f"($({_REFS}))",
    "fish": f"({_REFS})",
    "tcsh": f"`{_REFS}`",
}
_PREAMBLE = f'_patchq_ids() {{ compgen -W "$({_REFS})" -- "$1"; }}'
ARGUMENTS = (
    arguments.Argument("shell", choices=tuple(_IDS), metavar="SHELL", help=", ".join(_IDS)),
)


_KINDS = {"ID": _IDS, "FILE": shtab.FILE, "DIR": shtab.DIRECTORY}


def run(args: Namespace) -> int:
    parser = parsing.whole(_complete)
    preamble = _PREAMBLE if args.shell == "bash" else ""
    put(shtab.complete(parser, shell=args.shell, preamble=preamble), end="")
    return 0


def _complete(action: Action) -> None:
    """Say what completes an argument, where its choices do not."""
    if kind := _KINDS.get(str(action.metavar)):
        action.complete = kind  # type: ignore[attr-defined]
