"""`patchq config`: check the configuration, print a sample, print its JSON schema."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from patchq.cli import arguments, opening, output
from patchq.gate.api.location import Location
from patchq.gate.config import config_file
from patchq.gate.errors import CannotSign
from patchq.gate.git.objects import Identity
from patchq.gate.git.signing import Signer
from patchq.gate.hooks import dry_start
from patchq.gate.pipeline.rules import GateRules
from patchq.gate.pipeline.session import DEFAULT_IDENTITY
from patchq.gate.report import document
from patchq.gate.service.check import repository

ARGUMENTS = (
    {
        "check": (
            "check the rules that count, or a file before it is committed",
            (arguments.Argument("file", metavar="FILE", nargs="?", type=Path),),
        ),
        "sample": ("print a commented configuration", ()),
        "schema": ("print its JSON schema", ()),
    },
)


def run(args: Namespace) -> int:
    if args.what == "sample":
        text = config_file.sample()
        output.emit(args, {"sample": text}, text.removesuffix("\n"))
    elif args.what == "schema":
        print(json.dumps(config_file.json_schema(), indent=2))
    else:
        args.config = args.file or args.config
        location = opening.gate(args).location
        found = location.rules()
        config = found.config
        queue = location.home / config.queue.path
        flaws = dry_start.flaws(config, location.repo.commondir, location.home, queue)
        flaws += repository.flaws(location.repo, config)
        wrong = [f"{found.place(*loc)}: {why}" for loc, why in flaws]
        if wrong := [*wrong, *_unsigned(location, found)]:
            raise config_file.ConfigError(wrong)
        output.emit(
            args,
            {
                "config": found.title,
                "exists": found.data is not None,
                "rules": document.plain(found.origin()),
            },
            f"{found.title}: ok",
        )
        opening.gate(args).notice_difference(found)
    return 0


def _unsigned(location: Location, rules: GateRules) -> list[str]:
    """Return why commits cannot be signed as configured, tried out."""
    commit = rules.config.commit
    try:
        Signer(location.repo, commit.sign).try_out(
            location.repo.identity() or Identity(*DEFAULT_IDENTITY)
        )
    except CannotSign as fault:
        of_git = commit.sign == "auto"
        where = "git's configuration" if of_git else rules.place("commit", "sign")
        return [f"{where}: {fault.message}; {fault.hint}"]
    return []
