"""Records of the branches that the configuration names (`branches`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from patchq.gate.errors import Fault, RepositoryFault
from patchq.gate.git import records
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue import store
from patchq.gate.report.schema import Report

HEADS = "heads"  # the key by which the store keeps what was taken


class Head(Struct, frozen=True):
    """The record of one branch."""

    tip: str = ""
    """The last one that was taken, or turned away."""
    source: str = ""
    """The digest of the last response that was made of the branch."""
    file: str = ""
    """The name under which that was dropped."""
    retries: str = ""
    """The batch that it takes the place of."""
    why: str = ""
    """The reason that the tip was turned away, and what to do."""
    cure: str = ""
    waits: str = ""
    """The reason that a later tip cannot be taken yet, and what it waits for."""
    until: str = ""


def known(root: Path) -> dict[str, Head]:
    """Return the queue's records of branches, by their names."""
    try:
        found = store.there(root)
        kept = found.recall(HEADS) if found else None
        return {name: Head(**head) for name, head in json.loads(kept or "{}").items()}
    except (Fault, ValueError, TypeError, AttributeError):
        return {}


def matching(context: RepoContext) -> dict[str, str]:
    """Return the tips of the branches that are handed in when they move, by their names.

    Targets, and patchq's own branches, never are.
    """
    config, found = context.config, dict[str, str]()
    kept = config.targets
    for prefix in sorted({_directories(pattern) for pattern in config.branches}):
        for name, tip in context.repo.branches(prefix).items():
            if (
                any(fnmatchcase(name, pattern) for pattern in config.branches)
                and name != context.target
                and not any(fnmatchcase(name, pattern) for pattern in kept)
                and not records.is_branch(name)
            ):
                found[name] = tip
    return found


def _directories(pattern: str) -> str:
    """Return the directories of every branch that matches the pattern."""
    end = next((i for i, letter in enumerate(pattern) if letter in "*?["), len(pattern))
    return pattern[: pattern.rfind("/", 0, end) + 1]


def last(context: RepoContext, head: Head) -> Report | None:
    """Return the report on the last response that was made of a branch."""
    ids = context.queue.by_source(head.source) if head.source else ()
    found = [report for id in reversed(ids) if (report := context.queue.load(id))]
    return next((it for it in found if it.state != "duplicate"), found[0] if found else None)


def standing(context: RepoContext) -> Iterator[dict[str, str | None]]:
    """Yield the state of each branch of the configuration, with its batch, reason and cure.

    `taken`, `waits`, `turned away`, or `gone` while its batch waits.
    """
    heads = known(context.queue_root)
    try:
        tips = matching(context)
    except RepositoryFault:  # of a ref that cannot be read, who takes branches says so
        return
    for name in sorted(heads.keys() | tips.keys()):
        head, report = heads.get(name, Head()), None
        with suppress(Fault):
            report = last(context, head)
        state, why, cure = "taken", "", ""
        if name not in tips:
            state, why = "gone", "there is no such branch any more; its change stays"
        elif head.tip != tips[name]:
            state, why, cure = "waits", head.waits or "not looked at yet", head.until
        elif head.why:
            state, why, cure = "turned away", head.why, head.cure
        yield {
            "branch": name,
            "tip": tips.get(name),
            "state": state,
            "why": why or None,
            "cure": cure or None,
            "batch": report.id if report else None,
            "batch_state": report.state if report else None,
        }
