"""`patchq config`: check the configuration, print a sample, print its JSON schema."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from patchq.cli import arguments, opening, output
from patchq.gate.config import config_file
from patchq.gate.report import document
from patchq.gate.service.check.repository import flaws

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
        if wrong := flaws(location.repo, location.home, found):
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
