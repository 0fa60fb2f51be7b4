"""Flaws of the rules that reading them does not show: each thing that they name is tried out."""

from __future__ import annotations

from pathlib import Path

from patchq.gate.errors import CannotSign
from patchq.gate.git.objects import Identity
from patchq.gate.git.repository import Repository
from patchq.gate.git.signing import Signer
from patchq.gate.hooks import dry_start
from patchq.gate.pipeline.rules import GateRules
from patchq.gate.pipeline.session import DEFAULT_IDENTITY
from patchq.gate.service.check import repository


def flaws(repo: Repository, home: Path, rules: GateRules) -> list[str]:
    """Return the flaws, each with its place in the configuration or in git's."""
    config, commit = rules.config, rules.config.commit
    found = [
        *dry_start.flaws(config, repo.commondir, home, home / config.queue.path),
        *repository.flaws(repo, config),
    ]
    wrong = [f"{rules.place(*keys)}: {why}" for keys, why in found]
    try:
        Signer(repo, commit.sign).try_out(repo.identity() or Identity(*DEFAULT_IDENTITY))
    except CannotSign as fault:
        of_git = commit.sign == "auto"
        where = "git's configuration" if of_git else rules.place("commit", "sign")
        wrong.append(f"{where}: {fault.message}; {fault.hint}")
    return wrong
