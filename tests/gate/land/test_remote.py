"""One machine is the gate of a shared repository: verdicts come true by a push, end to end."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import processes
from tests.helpers.command import block, drop, patchq, report, work
from tests.helpers.ending import until
from tests.helpers.gitrepo import commit_files, git, make_repo, shell, tip, write_config

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}
X, Y = block("a.txt", "two\n", "2\n"), block("b.txt", "b\n", "B\n")
RESPONSES = {"x.md": X, "y.md": Y}


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A clone whose batches land on its remote `origin`, beside it."""
    make_repo(tmp_path / "seed", FILES)
    git("clone", "-q", "--bare", "seed", "hub.git", cwd=tmp_path)
    git("clone", "-q", "hub.git", "gate", cwd=tmp_path)
    configure(tmp_path / "gate", "auto")
    return tmp_path / "gate"


def configure(gate: Path, mode: str, more: str = "") -> None:
    text = f"version: 1\nmode: {mode}\nlanding:\n  remote: origin\n{more}"
    write_config(gate, text)
    patchq("init", cwd=gate)


def hub(gate: Path) -> Path:
    return gate.parent / "hub.git"


def person(gate: Path) -> Path:
    """Somebody's clone of the same remote, as it is now."""
    git("clone", "-q", "hub.git", "person", cwd=gate.parent)
    return gate.parent / "person"


def refs(place: Path) -> set[str]:
    return set(git("for-each-ref", "--format=%(refname)", cwd=place).split())


def there(gate: Path, path: str = "a.txt") -> str:
    return git("show", f"main:{path}", cwd=hub(gate)) + "\n"


def told(gate: Path, id: str) -> dict[str, Any]:
    return report(gate / ".patchq", id)


def states(gate: Path, *ids: str) -> list[str]:
    return [told(gate, id)["state"] for id in ids]


def test_auto_mode_lands_by_a_push_and_leaves_the_clone_alone(gate: Path) -> None:
    before = tip(gate)
    x, y = work(gate, x=X, y=Y)
    assert (x["state"], y["state"], y["commit"]) == ("applied", "applied", tip(hub(gate)))
    assert there(gate) == "one\n2\nthree\n"
    assert refs(hub(gate)) == {"refs/heads/main"}
    assert tip(gate) == before
    assert (gate / "a.txt").read_text() == FILES["a.txt"]
    assert tip(gate, "origin/main") == tip(hub(gate))


def test_review_accept_discard_and_revert(gate: Path) -> None:
    configure(gate, "review")
    work(gate, x=block("a.txt", "one\n", "1\n"), y=block("a.txt", "three\n", "3\n"), z=Y)
    branches = {f"refs/heads/patchq/{id}" for id in "xyz"}
    assert refs(hub(gate)) == {"refs/heads/main", *branches}
    assert not any(ref.startswith("refs/heads/patchq") for ref in refs(gate))
    patchq("accept", "x", cwd=gate)
    # What waits follows its target there.
    assert git("rev-parse", "patchq/y~1", cwd=hub(gate)) == tip(hub(gate))
    patchq("discard", "z", cwd=gate)
    assert refs(hub(gate)) == {"refs/heads/main", "refs/heads/patchq/y"}
    patchq("accept", "y", cwd=gate)
    assert there(gate) == "1\ntwo\n3\n"
    patchq("revert", "x", cwd=gate)
    assert there(gate) == "one\ntwo\n3\n"
    assert refs(hub(gate)) == {"refs/heads/main"}
    assert states(gate, *"xyz") == ["reverted", "accepted", "discarded"]


DEEDS = {
    "accepted": "git merge -q --no-ff -m Merge origin/patchq/x; git push -q origin HEAD:main",
    "discarded": "git push -q origin :patchq/x",
    "proposed": "git checkout -q origin/patchq/x; echo more > b.txt; git commit -qam More"
    "; git push -q origin HEAD:patchq/x",
}


@pytest.mark.parametrize("state", DEEDS)
def test_what_people_do_on_the_remote_is_noticed(gate: Path, state: str) -> None:
    configure(gate, "review")
    work(gate, x=X)
    shell(DEEDS[state], person(gate))
    patchq("run", cwd=gate)
    assert (told(gate, "x")["state"], told(gate, "x")["problems"]) == (state, [])
    assert ("refs/heads/patchq/x" in refs(hub(gate))) == (state == "proposed")
    if state == "proposed":
        patchq("accept", "x", cwd=gate)
        assert there(gate, "b.txt") == "more\n"


def test_a_remote_that_is_away_holds_batches_and_is_named(gate: Path) -> None:
    hub(gate).rename(gate.parent / "elsewhere")
    (held,) = work(gate, x=X)
    assert held["state"] == "held"
    assert "origin cannot be fetched" in held["problems"][0]["message"]
    assert "origin cannot be fetched" in patchq("status", cwd=gate).out
    (gate.parent / "elsewhere").rename(hub(gate))
    patchq("run", cwd=gate)
    assert states(gate, "x") == ["applied"]
    assert "cannot be fetched" not in patchq("status", cwd=gate).out


@pytest.mark.parametrize(
    ("words", "state", "code"),
    [
        ("lines are too long", "rejected", "hook.refused"),
        ("You are not allowed to push to protected branches", "held", "target.busy"),
    ],
)
def test_what_the_remote_refuses_is_told_in_its_words(
    gate: Path, words: str, state: str, code: str
) -> None:
    hook = hub(gate) / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\necho "{words}" >&2\nexit 1\n')
    hook.chmod(0o755)
    (found,) = work(gate, x=X)
    (problem,) = found["problems"]
    assert (found["state"], problem["code"]) == (state, code)
    assert words in problem["message"]
    hook.unlink()
    if state == "held":
        patchq("run", cwd=gate)
        assert states(gate, "x") == ["applied"]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("landing: {remote: upstream}", "landing.remote: expected a remote that `git remote` has"),
        ("target: nope", "target: expected a branch with a commit, got `nope`"),
    ],
)
def test_config_check_names_what_cannot_be(gate: Path, line: str, wrong: str) -> None:
    write_config(gate, f"version: 1\n{line}\n")
    assert wrong in patchq("config", "check", cwd=gate, code=2).err


def test_an_accepted_change_that_the_remote_refuses_is_named_and_left_out(gate: Path) -> None:
    configure(gate, "review")
    work(gate, x=X, y=Y)
    hook = hub(gate) / "hooks/pre-receive"
    hook.write_text(
        "#!/bin/sh\n"
        "while read old new ref; do\n"
        '  [ "$ref" = refs/heads/main ] || continue\n'
        '  git diff --name-only "$old" "$new" | grep -q a.txt || continue\n'
        "  echo no way\n"
        "  exit 1\n"
        "done\n"
    )
    hook.chmod(0o755)
    told = patchq("accept", "x", "y", cwd=gate, code=1)
    assert "hook.refused" in told.out + told.err
    assert "no way" in told.out + told.err
    assert states(gate, "x", "y") == ["proposed", "accepted"]
    hook.unlink()
    patchq("accept", "x", cwd=gate)
    assert states(gate, "x") == ["accepted"]


def test_a_daemon_goes_on_by_itself_after_a_push_in_doubt(gate: Path) -> None:
    gone, log = hub(gate).with_name("gone.git"), gate.with_name("log")
    hook = hub(gate) / "hooks/pre-receive"
    hook.write_text(f"#!/bin/sh\nmv {hub(gate)} {gone}\nkill -9 $PPID\n")
    hook.chmod(0o755)
    daemon = processes.start("watch", cwd=gate, log=log)
    try:
        drop(gate / ".patchq", {"x.md": X})
        until(lambda: "it is unknown if" in log.read_text())
        (gone / "hooks/pre-receive").unlink()
        gone.rename(hub(gate))
        until(lambda: (gate / ".patchq/done/x.report.json").exists())
        assert daemon.poll() is None
        daemon.terminate()
        assert daemon.wait() == 0
    finally:
        processes.end([daemon])
    assert states(gate, "x") == ["applied"]
    assert there(gate) == "one\n2\nthree\n"


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
    done = subprocess.run(["sh", "-c", command], cwd=gate, capture_output=True, timeout=120)
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
    drop(gate / ".patchq", {f"{id}.md": text for id, text in proposals.items()})
    drop(gate / ".patchq", {"x.md": X})
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
    outlive(gate)
    trap(gate, "pre-receive", "", WAITS.format(place=gate.parent))
    drop(gate / ".patchq", {"x.md": X})
    run(gate)
    configure(gate, "review")
    run(gate)
    (gate.parent / "go").touch()
    until(lambda: not outliving(gate))
    judge(gate, ("x",))


def test_a_push_that_arrives_late_has_landed(gate: Path) -> None:
    outlive(gate)
    configure(gate, "auto", "  push_timeout_seconds: 1\n")
    trap(gate, "pre-receive", "", "sleep 2.5")
    drop(gate / ".patchq", RESPONSES)
    run(gate)
    until(lambda: not outliving(gate))
    run(gate)
    judge(gate)
