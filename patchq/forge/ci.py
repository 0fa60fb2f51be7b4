"""The forge's own CI as a hook: a candidate is pushed, and its checks are waited for.

The engine of hooks watches the time; what is printed last says what was pending then.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from time import sleep

from msgspec import json

from patchq.core.text.quote import visible
from patchq.forge import connect
from patchq.forge.connect import Project
from patchq.forge.wire import CONTEXT, Absent, Away, CommitCheck, Rejected
from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault
from patchq.gate.git.branches.remote import Remote
from patchq.gate.git.repository import Repository

BRANCHES = "refs/heads/patchq-train/"
_CANNOT_JUDGE = 126  # for the engine a hook that cannot start, which refuses no change


def main() -> int:
    """Return 0 if all checks of the candidate passed, 1 if one failed."""
    config = json.decode(os.environ["PATCHQ_CONFIG"], type=Config)
    pause = config.forge.poll_seconds
    while True:
        try:
            failed = judged(config)
            break
        except Away as away:
            _say(away.message)
            sleep(max(pause, away.seconds))
        except Fault as fault:
            _say(": ".join(filter(None, (fault.message, fault.hint))))
            return _CANNOT_JUDGE
    for check in failed:
        _say(f"{check.name}: {check.state} {check.url}")
    return int(bool(failed))


def judged(config: Config) -> Sequence[CommitCheck]:
    """Push the candidate; return its failed checks, once all have ended or one has failed."""
    target, commit = os.environ["PATCHQ_TARGET"], os.environ["PATCHQ_COMMIT"]
    names = json.decode(os.environ["PATCHQ_CHECKS"], type=list[str])
    repo = Repository.open(Path())
    forge = connect.project_of(repo, config)
    names = names or [name for name in forge.rights(target).required or () if name != CONTEXT]
    remote = Remote(repo, config.forge.remote, config.landing.push_timeout_seconds)
    answer = remote.push({f"{BRANCHES}{target}": (None, commit)}, "--force")
    if answer.kind != "made":
        # Another candidate may be pushed at the same moment.
        fault = Away if answer.kind in ("unsent", "unknown", "stale") else Fault
        raise fault(f"{remote.name} does not take {BRANCHES}{target}: {answer.words}")
    return failures(forge, commit, names, config.forge.poll_seconds)


def failures(
    forge: Project, commit: str, names: Collection[str], pause: float
) -> Sequence[CommitCheck]:
    """Return the failed checks, as soon as there is one; empty if all passed.

    Without `names` all that are there count, once two looks in a row find the same.
    """
    before, pending = list[CommitCheck](), list[str]()
    while True:
        try:
            checks = forge.checks(commit)
        except (Absent, Rejected) as fault:  # the forge does not know the commit yet
            raise Away(fault.message) from None
        others = [one for one in checks if one.name != CONTEXT]
        counted = [one for one in others if not names or one.name in names]
        # A check that is named has to run: one is skipped where another failed before it.
        bad = ("failure", "skipped") if names else ("failure",)
        if failed := [one for one in counted if one.state in bad]:
            return failed
        waits = {one.name for one in counted if one.state == "pending"}
        waits |= {*names} - {one.name for one in counted}
        if not waits and counted and (names or counted == before):
            return ()
        if pending != (pending := sorted(waits) or ["checks"]):
            _say(f"{commit[:12]} waits for {', '.join(pending)}")
        before = counted
        sleep(pause)


def _say(text: str) -> None:
    print(visible(text), flush=True)
