"""Whether batches can land on the remote that the configuration names, tried out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from patchq.gate.config.schema import Config, Hook
from patchq.gate.errors import Fault
from patchq.gate.git.repository import Repository
from patchq.gate.hooks import shipped
from patchq.gate.pipeline.context import branches_of
from patchq.gate.service.doctor import Finding


def flaws(repo: Repository, config: Config) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What the configuration says of the remote and cannot be, by the places of its keys."""
    remote = config.landing.remote
    if remote is None:
        return
    if not repo.setting(f"remote.{remote}.url"):
        yield ("landing", "remote"), f"expected a remote that `git remote` has, got `{remote}`"
    for number, hook in enumerate(config.hooks):
        if shipped.name_in(hook.run) == shipped.PUBLISH and _publishes_to(hook) == remote:
            yield (
                ("hooks", number, "run"),
                f"expected no `{hook.run}` for `{remote}`: `landing.remote` keeps the proposals' "
                "branches there already",
            )


def _publishes_to(hook: Hook) -> str:
    named = os.environ.get("PATCHQ_REMOTE") if "PATCHQ_REMOTE" in hook.env else None
    return named or "origin"


def look(repo: Repository, config: Config, queue: Path, target: str) -> Iterator[Finding]:
    """A fetch, and a push that moves nothing."""
    remote = config.landing.remote
    if remote is None:
        return
    wrong = list(flaws(repo, config))
    for _, why in wrong:
        yield Finding("landing.remote", "todo", why, "correct it in the configuration")
    if wrong:
        return
    branches = branches_of(repo, queue, config, target)
    try:
        branches.refresh()
        branches.try_out(target)
    except Fault as fault:
        yield Finding("landing.remote", "todo", fault.message, fault.hint)
    else:
        yield Finding("landing.remote", "ok", f"batches land on {remote}, which takes a push")
