"""`patchq instructions`: what teaches an agent to hand its changes in, and to read the verdict.

`text` is what is taught, the same for all; `agents` says which files an agent reads; `installing`
and `merging` what becomes of those, which `patchq init --agents` writes.
"""

from __future__ import annotations

from argparse import Namespace

from patchq.cli import output
from patchq.cli.arguments import Argument
from patchq.cli.instructions.agents import AGENTS, GENERIC

ARGUMENTS = (
    Argument(
        "--for",
        dest="agent",
        choices=tuple(AGENTS),
        default=GENERIC,
        help="the agent that is to read them (generic)",
    ),
)


def run(args: Namespace) -> int:
    agent = AGENTS[args.agent]
    told = {
        "for": args.agent,
        "instructions": agent.instructions,
        "files": [file.path for file in agent.files],
    }
    return output.emit(args, told, agent.instructions.removesuffix("\n"))
