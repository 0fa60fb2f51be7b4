"""`patchq config`: check the configuration, print a sample, print its JSON schema."""

from __future__ import annotations

import json
from argparse import Namespace

from patchq.cli import arguments, output, places
from patchq.core.model.errors import CannotSign
from patchq.gate.config import config_file
from patchq.gate.config.schema import Config
from patchq.gate.git.objects import Identity
from patchq.gate.git.signing import Signer
from patchq.gate.hooks.trial import Trial
from patchq.gate.pipeline.world import NOBODY
from patchq.gate.service.doctor import landing

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
        trial = Trial(site.repo.commondir, site.home, site.home / config.queue.path)
        flaws, notes = trial.tried(config)
        flaws = [*flaws, *landing.flaws(site.repo, config)]
        wrong = [f"{config_file.place(path, *loc)}: {why}" for loc, why in flaws]
        if wrong := [*wrong, *_unsigned(site, config)]:
            raise config_file.ConfigError(wrong)
        not_tried = [f"{config_file.place(path, *loc)}: {why}" for loc, why in notes]
        output.emit(
            args,
            {"config": str(path), "exists": path.exists(), "not_tried": not_tried},
            f"{path}: {'ok' if path.exists() else 'not there; defaults'}",
            *(f"not tried: {note}" for note in not_tried),
        )
    return 0


def _unsigned(site: places.Site, config: Config) -> list[str]:
    """Why commits that are to be signed cannot be, tried out."""
    try:
        Signer(site.repo, config.commit.sign).try_out(site.repo.identity() or Identity(*NOBODY))
    except CannotSign as fault:
        if "sign" in config.commit.given:
            where = config_file.place(site.config_path, "commit", "sign")
        else:
            where = "git's configuration"
        return [f"{where}: {fault.message}; {fault.hint}"]
    return []
