"""`patchq config`: check the configuration, print a sample, print its JSON schema."""

from __future__ import annotations

import json
from argparse import Namespace

from patchq.cli import arguments, output, places
from patchq.config import config_file
from patchq.hooks.steps import cannot_start

ARGUMENTS = (arguments.Argument("what", choices=("check", "sample", "schema")),)


def run(args: Namespace) -> int:
    if args.what == "sample":
        text = config_file.sample()
        output.emit(args, {"sample": text}, text.removesuffix("\n"))
    elif args.what == "schema":
        print(json.dumps(config_file.json_schema(), indent=2))
    else:
        site = places.find(args)
        path, config = site.config_path, site.load_config()
        if wrong := cannot_start(config):
            raise config_file.ConfigError(
                [f"{config_file.place(path, 'hooks', n, 'run')}: {why}" for n, why in wrong]
            )
        output.emit(
            args,
            {"config": str(path), "exists": path.exists()},
            f"{path}: {'ok' if path.exists() else 'not there; defaults'}",
        )
    return 0
