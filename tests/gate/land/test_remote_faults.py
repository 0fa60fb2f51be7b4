"""A gate of a shared repository dies, or its remote does, on the way: judged by the remote alone,
every response lands once, and its report says so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.gate.land.test_remote import configure, gate, hub, person
from tests.helpers.command import block, drop, report
from tests.helpers.gitrepo import commit_files, git, tip

__all__ = ["gate"]


RESPONSES = {"x.md": block("a.txt", "two\n", "2\n"), "y.md": block("b.txt", "b\n", "B\n")}
ONCE = '#!/bin/sh\n[ -e "{met}" ] && exit 0\n{when}\ntouch "{met}"\n{what}\n'
PROGRAMS = {"git", "git-receive-pac", "pre-receive", "reference-trans", "sh", "sleep", "setsid"}
POINTS = {
    "before anything moved": ("pre-receive", ""),
    "while it moves": ("reference-transaction", '[ "$1" = prepared ] || exit 0'),
    "once all has moved": ("reference-transaction", '[ "$1" = committed ] || exit 0'),
}
VICTIMS = {
    # Whom the remote's hook kills: the gate; the gate and the git that pushes; its own process.
    "gate": "kill -9 $(cat {pid}); sleep 0.3",
    "gate and git": "kill -9 $(cat {pid}); pkill -9 -P $(cat {pid}) git; sleep 0.3",
    "remote": "kill -9 $PPID; sleep 0.3",
}


def trap(gate: Path, where: str, when: str, what: str) -> Path:
    """Have the remote do this, once."""
    met = gate.parent / "met"
    hook = hub(gate) / "hooks" / where
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(ONCE.format(met=met, when=when, what=what))
    hook.chmod(0o755)
    return met


def run(gate: Path) -> int:
    """A gate of its own process, whose id the hooks know."""
    pid = gate.parent / "pid"
    command = f"echo $$ > {pid}; exec {sys.executable} -m patchq run"
    done = subprocess.run(
        ["sh", "-c", command], cwd=gate, capture_output=True, check=False, timeout=120
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.returncode


def judge(gate: Path, ids: tuple[str, ...] = ("x", "y")) -> None:
    """By the remote's trailers against the reports."""
    form = "--format=%H %(trailers:key=Patchq-Batch,valueonly,separator=%x2C)"
    log = git("log", form, "main", cwd=hub(gate))
    there = [line.split() for line in log.splitlines() if " " in line.strip()]
    assert sorted(id for _, id in there) == sorted(ids)
    commits = {id: commit for commit, id in there}
    for id in ids:
        told = report(gate / ".patchq", id)
        assert (told["state"], told["commit"]) == ("applied", commits[id])


@pytest.mark.parametrize(
    ("point", "victim"),
    [
        *((point, victim) for point in POINTS for victim in ("gate", "remote")),
        ("before anything moved", "gate and git"),
    ],
)
def test_a_death_on_the_way_neither_loses_nor_repeats(gate: Path, point: str, victim: str) -> None:
    where, when = POINTS[point]
    met = trap(gate, where, when, VICTIMS[victim].format(pid=gate.parent / "pid"))
    drop(gate / ".patchq", RESPONSES)
    run(gate)
    assert met.exists()
    until(lambda: not outliving(gate))
    for lock in hub(gate).rglob("*.lock"):  # of the remote's own process, which its owner removes
        lock.unlink()
    run(gate)
    judge(gate)


def test_proposals_are_not_pushed_upon_what_never_landed(gate: Path) -> None:
    """They were made upon a batch that was to land by the same push; then somebody else was first.
    Which come after it is the directory's order: hardly ever none."""
    configure(gate, "auto", "paths:\n  review: ['n*.txt']\n")
    git("config", "core.logAllRefUpdates", "always", cwd=hub(gate))
    what = VICTIMS["gate and git"].format(pid=gate.parent / "pid")
    met = trap(gate, "pre-receive", "", f"{what}\nexit 1")
    proposals = {f"p{n}": block(f"n{n}.txt", "", "new\n") for n in range(6)}
    for at, (id, text) in enumerate(proposals.items()):
        drop(
            gate / ".patchq", {f"{id}.md": text, **({"x.md": RESPONSES["x.md"]} if at == 2 else {})}
        )
    run(gate)
    assert met.exists()
    until(lambda: not outliving(gate))
    place = person(gate)
    commit_files(place, {"c.txt": "person\n"})
    git("push", "-q", "origin", "HEAD:main", cwd=place)
    run(gate)
    judge(gate, ("x",))
    for id in proposals:
        told = report(gate / ".patchq", id)
        assert (told["state"], told["commit"]) == ("proposed", tip(hub(gate), f"patchq/{id}"))
        for commit in git("reflog", "--format=%H", f"patchq/{id}", cwd=hub(gate)).split():
            git("merge-base", "--is-ancestor", f"{commit}^", "main", cwd=hub(gate))


def outliving(gate: Path) -> list[str]:
    """The programs at work on the remote, or for it, that are left: git's, and its hooks'."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            name = (process / "comm").read_text().strip()
            if name in PROGRAMS and Path(os.readlink(process / "cwd")).is_relative_to(gate.parent):
                found.append(name)
    return found


def outlive(gate: Path) -> None:
    """Have the remote's process go on when those who push are gone."""
    wrapper = gate.parent / "receive-pack"
    wrapper.write_text('#!/bin/sh\nexec setsid --wait git receive-pack "$@"\n')
    wrapper.chmod(0o755)
    git("config", "remote.origin.receivepack", str(wrapper), cwd=gate)


WAITS = """kill -9 $(cat {place}/pid)
for i in $(seq 3000); do [ -e {place}/go ] && break; sleep 0.1; done"""


def test_what_is_pushed_by_the_dead_is_not_decided_otherwise(gate: Path) -> None:
    """A second decision would be another one, and the push arrives after it."""
    outlive(gate)
    trap(gate, "pre-receive", "", WAITS.format(place=gate.parent))
    drop(gate / ".patchq", {"x.md": RESPONSES["x.md"]})
    run(gate)
    configure(gate, "review")
    run(gate)
    (gate.parent / "go").touch()
    until(lambda: not outliving(gate))
    judge(gate, ("x",))


def test_a_push_that_arrives_late_has_landed(gate: Path) -> None:
    """The gate gives up on a push that the remote goes on with."""
    outlive(gate)
    configure(gate, "auto", "  push_timeout_seconds: 1\n")
    trap(gate, "pre-receive", "", "sleep 2.5")
    drop(gate / ".patchq", RESPONSES)
    run(gate)
    until(lambda: not outliving(gate))
    run(gate)
    judge(gate)


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.05)
