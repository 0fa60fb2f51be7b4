"""Hooks as they run: what they see, what they may, and what becomes of what they do.

Most tests run twice: with the hook in the sandbox and without.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from patchq.gate.config.schema import HookStage
from patchq.gate.hooks.sandbox import MEMORY, NO_SANDBOX
from tests.helpers import ending
from tests.helpers.command import block, drop, patchq, report, work
from tests.helpers.gitrepo import commit_files, git, make_repo, write_config

FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n", "d/c.txt": "c\n", ".gitignore": "*.log\n"}
EDIT = block("a.txt", "two\n", "2\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / ".git/info/exclude").write_text("/.patchq/\n/.patchq.yaml\n")
    configure(repo)
    patchq("init", cwd=repo)
    return repo


@pytest.fixture(params=[pytest.param("sandboxed", marks=pytest.mark.sandbox), "plain"])
def sandboxed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """True if hooks run in the sandbox in this test."""
    if request.param == "plain":
        monkeypatch.setenv(NO_SANDBOX, "1")
    return bool(request.param == "sandboxed")


def configure(repo: Path, *hooks: dict[str, Any], mode: str = "review", **more: Any) -> None:
    told = {"version": 1, "target": "main", "mode": mode, "hooks": hooks, **more}
    write_config(repo, json.dumps(told))


def hook(run: str, stage: str = "pre-commit", id: str = "h", **more: Any) -> dict[str, Any]:
    return {"id": id, "stage": stage, "run": run, "unconfined": True, **more}


def codes(told: dict[str, Any]) -> list[str]:
    return [problem["code"] for problem in told["problems"]]


def said(told: dict[str, Any]) -> str:
    return "\n".join(str(run["output"]) for run in told["hooks"])


def running(mark: str) -> list[int]:
    """The processes whose command line has the mark as a word."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(entry.name))
    return found


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A number of seconds that no other process sleeps; nobody may when the test is over."""
    mark = f"1000.{abs(hash(str(tmp_path))) % 10**9:09}"
    yield mark
    left = running(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_h12_the_environment_is_scrubbed(
    repo: Path, sandboxed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    monkeypatch.setenv("WANTED", "yes")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    configure(repo, hook("env; cd ~ && touch x; cat", env=["WANTED", "NOT_THERE"]))
    [told] = work(repo, r=EDIT)
    lines, plan = said(told).split("{", 1)
    there = dict(line.split("=", 1) for line in lines.splitlines())
    assert set(there) - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        "PATH", "LANG", "TZ", "HOME", "WANTED", "PATCHQ_BATCH", "PATCHQ_STAGE", "PATCHQ_TARGET",
        "PATCHQ_BASE", "PATCHQ_COMMIT", "PATCHQ_FILES",
    }  # fmt: skip
    assert there["PATCHQ_BASE"] == git("rev-parse", "main", cwd=repo)
    assert there["PATCHQ_COMMIT"] == told["commit"]
    assert (there["PATCHQ_BATCH"], there["PATCHQ_TARGET"]) == ("r", "main")
    assert there["HOME"] != os.environ["HOME"]
    assert '"schema": "patchq.plan/1"' in "{" + plan


def test_pre_apply_sees_the_plan_and_nothing_else(repo: Path) -> None:
    judge = "import json,sys; p=json.load(sys.stdin); print(p['schema'],p['id'],p['diff'])"
    configure(repo, hook(f'ls -A; python3 -c "{judge}"', "pre-apply"))
    [told] = work(repo, r=EDIT)
    assert said(told).splitlines()[0] == "patchq.plan/1 r diff --git a/a.txt b/a.txt"


@pytest.mark.parametrize(
    ("stage", "run", "how"),
    [
        ("pre-apply", "echo bad; exit 1", "exit 1"),
        ("pre-commit", "echo bad; exit 125", "exit 125"),
        ("pre-commit", "echo bad; kill -9 $$", "exit 137, ended by SIGKILL"),
        ("pre-commit", "seq 300000; echo bad; exit 1", "exit 1"),
    ],
    ids=["plan", "tree", "kills-itself", "long"],
)
def test_a_refusal_says_which_hook_and_why(repo: Path, stage: str, run: str, how: str) -> None:
    configure(repo, hook(run, stage))
    drop(repo / ".patchq", {"r.md": EDIT})
    patchq("run", cwd=repo, code=1)
    told = report(repo / ".patchq", "r")
    assert (told["state"], told["commit"], codes(told)) == ("rejected", None, ["hook.refused"])
    message = told["problems"][0]["message"]
    assert message.startswith(f"the hook h ({stage}) refused the change: ")
    assert how in message
    assert "bad" in told["hooks"][0]["output"]
    assert len(told["hooks"][0]["output"]) < 10_000
    assert "bad" in told["retry"]["prompt"]
    assert git("for-each-ref", "--format=%(refname)", cwd=repo) == "refs/heads/main"


def test_a_change_that_a_hook_cannot_start_with_is_refused(repo: Path, sandboxed: bool) -> None:
    commit_files(repo, {"d/t.sh": "true\n"})
    configure(repo, hook("sh d/t.sh"))
    typo, good = work(repo, r=block("d/t.sh", "true\n", "treu\n"), s=EDIT)
    assert (typo["state"], good["state"]) == ("rejected", "proposed")
    (refusal,) = (one for one in typo["problems"] if one["code"] == "hook.refused")
    assert "exit 127, as it starts without the change" in refusal["message"]
    assert "treu" in said(typo)


@pytest.mark.parametrize("code", [126, 127])
def test_a_hook_that_cannot_start_stops_the_intake(repo: Path, code: int) -> None:
    configure(repo, hook(f"exit {code}"))
    drop(repo / ".patchq", {"r.md": EDIT, "s.md": block("b.txt", "b\n", "B\n")})
    done = patchq("run", cwd=repo, code=3)
    assert re.search(rf"the hook h cannot be started for [rs] \(exit {code}\)", done.err)
    assert "correct its `run`, then start again" in done.err
    assert not list(repo.glob(".patchq/*/*.report.json"))
    configure(repo, hook("true"))
    patchq("run", cwd=repo)
    assert [report(repo / ".patchq", id)["state"] for id in ("r", "s")] == ["proposed"] * 2


@pytest.mark.parametrize(
    ("run", "stage", "expected"),
    [
        ("if true; then", "pre-commit", "a line that the shell can read"),
        ("patchq:nonsense", "pre-commit", "a shipped hook"),
        ("patchq:ruff", "pre-apply", "a hook that sees something at pre-apply"),
        ("patchq:notify", "pre-commit", "a hook that sees something at pre-commit"),
        ("patchq:pre-apply", "post-reject", "a hook that sees something at post-reject"),
    ],
)
def test_config_check_finds_what_cannot_start_or_would_see_nothing(
    repo: Path, run: str, stage: str, expected: str
) -> None:
    configure(repo, hook("A=1 true | cat", id="good"), hook(run, stage))
    said = patchq("config", "check", cwd=repo, code=2).err
    assert expected in said
    assert "patchq.yaml:1:" in said
    assert "hooks[0]" not in said


HANGS = (
    "trap '' TERM INT HUP; (trap '' TERM; setsid sleep {0} &) ; sleep {0} & echo waits; sleep {0}"
)


def test_h01_a_hook_that_hangs_is_ended_with_all_its_processes(
    repo: Path, sandboxed: bool, mark: str
) -> None:
    configure(repo, hook(f"(setsid nohup sleep {mark} >/dev/null 2>&1 &); sleep {mark} & true"))
    assert work(repo, good=EDIT)[0]["state"] == "proposed"
    assert not running(mark)
    configure(repo, hook(HANGS.format(mark), timeout_seconds=1.0))
    [told] = work(repo, r=block("b.txt", "b\n", "B\n"))
    assert codes(told) == ["hook.timeout"]
    assert told["hooks"][0]["exit"] is None
    assert "waits" in told["hooks"][0]["output"]
    assert not running(mark)


def test_h02_the_daemons_death_ends_its_hooks(repo: Path, sandboxed: bool, mark: str) -> None:
    configure(repo, hook(f"(setsid sleep {mark} &); sleep {mark}"))
    drop(repo / ".patchq", {"r.md": EDIT})
    words = [sys.executable, "-m", "patchq", "run"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with ending.running(words, cwd=repo, **quiet) as daemon:
        ending.until(lambda: len(running(mark)) == 2)
        daemon.kill()
        daemon.wait(60)
    ending.until(lambda: not running(mark))
    configure(repo, hook("true"))
    patchq("run", cwd=repo)
    told = report(repo / ".patchq", "r")
    assert (told["state"], len(told["hooks"])) == ("proposed", 1)


HOSTILE = {
    "edits-files": "echo x > a.txt; rm b.txt; rm -r d; mkdir d; echo x > d/new; ln -s / link",
    "commits": "echo x > a.txt; git add -A; git commit -qm x; git update-ref refs/heads/x HEAD",
    "hides": "git update-index --assume-unchanged a.txt; touch -r a.txt r; echo TWO > a.txt; "
    "touch -r r a.txt; echo '*' > .git/info/exclude; mkdir -p .git/info; echo '*' > .gitignore",
    "locks-out": "mkdir x; echo > x/y; chmod 000 x a.txt; chmod 500 .",
}


LOOK = """
git status --porcelain --ignored; git config x.y; git remote; git for-each-ref
git diff --name-only HEAD^ HEAD; tr '\\0' '\\n' < "$PATCHQ_FILES"
test "$(git rev-parse HEAD)" = "$PATCHQ_COMMIT" && echo detached at $(git symbolic-ref -q HEAD)
cat a.txt; ls -A
"""


@pytest.mark.parametrize("run", HOSTILE.values(), ids=HOSTILE)
def test_a_hook_sees_a_clean_work_tree_whatever_the_last_one_left(
    repo: Path, sandboxed: bool, run: str
) -> None:
    configure(repo, hook(f"{{ {run}; }} >&2; true"), mode="auto")
    assert work(repo, r=EDIT)[0]["state"] == "applied"
    configure(repo, hook(LOOK), mode="auto")
    [told] = work(repo, s=block("b.txt", "b\n", "B\n"))
    assert said(told).split() == [
        "b.txt", "b.txt", "detached", "at", "one", "2", "three",
        ".git", ".gitignore", "a.txt", "b.txt", "d",
    ]  # fmt: skip
    git("fsck", "--strict", cwd=repo)
    assert git("status", "--porcelain", cwd=repo) == ""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "run", ["head -c 5G /dev/zero > big", "yes > ~/big"], ids=["its-tree", "home"]
)
def test_h03_a_hook_in_the_sandbox_cannot_fill_the_disk(
    repo: Path, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEMORY, "4")
    configure(repo, hook(f"{run}; echo ended"))
    [told] = work(repo, r=EDIT)
    assert "No space left on device" in said(told)
    assert not list(repo.rglob("big"))


@pytest.mark.sandbox
def test_h12_there_is_no_network_unless_it_is_asked_for(repo: Path, tmp_path: Path) -> None:
    look, here = "pwd; readlink /proc/self/ns/net", os.readlink("/proc/self/ns/net")
    note = f"({look}) > {tmp_path}/$PATCHQ_STAGE"
    configure(
        repo,
        hook(f"grep -c : /proc/net/dev; {look}", id="off"),
        hook(look, id="on", network=True),
        hook(note, "post-commit", "told"),
        hook(note, "post-reject", "told-off", network=False),
    )
    told, _ = work(repo, good=EDIT, bad=block("a.txt", "no\n", "x\n"))
    assert [run["output"].split()[-1] == here for run in told["hooks"][:2]] == [False, True]
    assert told["hooks"][0]["output"].split()[0] == "1"
    seen = [(tmp_path / stage).read_text().split() for stage in ("post-commit", "post-reject")]
    assert [where for where, _ in seen] == [str(repo / ".git")] * 2, "no files of a branch"
    assert [space == here for _, space in seen] == [True, False]


def test_what_a_fixing_hook_changes_becomes_part_of_the_batch(repo: Path, sandboxed: bool) -> None:
    fix = "sed -i 's/$/!/' a.txt; echo new > made.txt; rm b.txt; echo junk > x.log"
    look = "cat a.txt; git status --porcelain"
    configure(repo, hook(fix, id="fix", fixes=True), hook(look, id="see"))
    [told] = work(repo, r=EDIT)
    assert told["state"] == "proposed"
    changed = git("diff", "--name-status", "main", "patchq/r", cwd=repo)
    assert changed.split() == ["M", "a.txt", "D", "b.txt", "A", "made.txt"]
    assert git("show", "patchq/r:a.txt", cwd=repo) == "one!\n2!\nthree!"
    assert told["hooks"][1]["output"] == "one!\n2!\nthree!"
    named = [(edit["path"], edit["description"]) for edit in told["edits"][1:]]
    assert named == [(path, "by hook fix") for path in ("a.txt", "b.txt", "made.txt")]
    assert "+new" in told["diff"]
    assert "Patchq-Batch: r" in git("log", "-1", "--format=%B", "patchq/r", cwd=repo)
    assert git("rev-parse", "patchq/r^{tree}", cwd=repo) == told["tree"]


@pytest.mark.parametrize(
    ("fix", "code"),
    [
        ("echo x > .env", "path.denied"),
        ("echo '{' > x.json", "result.syntax"),
        ("rm a.txt; ln -s /etc/passwd a.txt", "hook.refused"),
        ("rm a.txt; mkfifo a.txt", "hook.refused"),
        ("echo x > b.txt", "path.review"),
    ],
    ids=["denied", "syntax", "link", "fifo", "reviewed"],
)
def test_h04_fixes_pass_the_same_gate(repo: Path, fix: str, code: str) -> None:
    configure(repo, hook(fix, fixes=True), mode="auto", paths={"review": ["b.txt"]})
    asks = code == "path.review"
    [told] = work(repo, r=EDIT)
    assert (told["state"], codes(told)) == ("proposed" if asks else "rejected", [code])


def test_a_pass_is_remembered_and_a_refusal_is_not(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = f"echo x >> {tmp_path}/ran"
    monkeypatch.setenv(NO_SANDBOX, "1")
    configure(repo, hook(f"{count}; exit 1"))
    work(repo, r=EDIT)
    work(repo, s=EDIT)
    assert (tmp_path / "ran").read_text() == "x\n" * 2
    configure(repo, hook(count))
    told = [work(repo, t=f"{EDIT}# t\n")[0], work(repo, u=f"{EDIT}# u\n")[0]]
    assert (tmp_path / "ran").read_text() == "x\n" * 3
    assert said(told[1]) == "passed before, on the same tree"
    configure(repo, hook(count, cache=False))
    work(repo, v=f"{EDIT}# v\n")
    work(repo, w=f"{EDIT}# w\n")
    assert (tmp_path / "ran").read_text() == "x\n" * 5


def test_a_pass_counts_for_the_files_that_the_hook_was_shown(repo: Path) -> None:
    look = "! tr '\\0' '\\n' < $PATCHQ_FILES | grep -qx a.txt"
    a, b = block("a.txt", "two\n", "2\n"), block("b.txt", "b\n", "B\n")
    start = git("rev-parse", "main", cwd=repo)
    configure(repo, hook(look))
    [both] = work(repo, both=a + b)
    assert codes(both) == ["hook.refused"]
    commit_files(repo, {"a.txt": "one\n2\nthree\n"})
    [only] = work(repo, only=b)
    assert only["state"] == "proposed"
    git("reset", "-q", "--hard", start, cwd=repo)
    [again] = work(repo, again=a + b + "# again\n")
    assert codes(again) == ["hook.refused"]


def test_accept_runs_the_hooks_on_a_tree_that_they_have_not_seen(repo: Path) -> None:
    configure(repo, hook("! grep -q B b.txt"))
    work(repo, r=EDIT, s=block("d/c.txt", "c\n", "C\n"))
    assert patchq("accept", "s", cwd=repo)
    commit_files(repo, {"b.txt": "B\n"})
    done = patchq("accept", "r", cwd=repo, code=1)
    assert "the hook h (pre-commit) refused the change" in done.out + done.err
    assert report(repo / ".patchq", "r")["state"] == "proposed"
    assert git("show", "main:a.txt", cwd=repo) == "one\ntwo\nthree"


def test_those_built_on_a_refused_batch_land_without_it(repo: Path) -> None:
    configure(repo, hook("! grep -q BAD *.txt"), mode="auto")
    bad, last = block("b.txt", "b\n", "BAD\n"), block("a.txt", "three\n", "3\n")
    told = work(repo, r1=EDIT, r2=bad, r3=block("d/c.txt", "c\n", "C\n"), r4=last)
    assert [report["state"] for report in told] == ["applied", "rejected", "applied", "applied"]
    files = git("show", "main:a.txt", "main:b.txt", "main:d/c.txt", cwd=repo)
    assert files.split() == ["one", "2", "3", "b", "C"]
    landed = git("log", "-3", "--format=%T", "main", cwd=repo).split()
    assert landed[::-1] == [report["tree"] for report in told if report["tree"]]


def test_a_hook_of_each_stage_runs(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NO_SANDBOX, "1")
    stages = get_args(HookStage)
    note = f"echo $PATCHQ_STAGE >> {tmp_path}/ran"
    configure(repo, *(hook(note, stage, stage) for stage in stages))
    work(repo, good=EDIT, bad=block("a.txt", "no\n", "x\n"))
    assert {*(tmp_path / "ran").read_text().split()} == set(stages)


def test_a_hook_hears_of_the_events_that_it_names(repo: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    note = f'test -s "$PATCHQ_REPORT" && echo $PATCHQ_STAGE $PATCHQ_EVENT $PATCHQ_BATCH >> {log}'
    configure(
        repo,
        hook(note, "post-commit", "all", events=["all"]),
        hook(f"echo some; {note}", "post-reject", "some", events=["discarded"]),
        hook(f"echo usual $PATCHQ_STATE >> {log}", "post-commit", "usual"),
    )
    work(repo, x=EDIT, z=f"---\nagent: w\nid: z\n---\n{EDIT}")
    patchq("discard", "x", cwd=repo)
    again = block("a.txt", "three\n", "III\n")
    drop(repo / ".patchq", {"z2.md": f"---\nagent: w\nid: z\n---\n{again}"})
    patchq("run", cwd=repo)
    patchq("accept", "z-2", cwd=repo)
    heard = Counter(line.removeprefix("post-commit ") for line in log.read_text().splitlines())
    assert heard == Counter(
        ["proposed x", "proposed z", "discarded x", "post-reject discarded x", "proposed z-2",
         "superseded z", "boarded z-2", "accepted z-2", *["usual proposed"] * 3, "usual accepted"]
    )  # fmt: skip


def git_hook(repo: Path, name: str, text: str) -> None:
    path = repo / ".git/hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.sandbox
def test_gits_own_hooks_are_honoured(repo: Path, tmp_path: Path) -> None:
    git_hook(repo, "applypatch-msg", 'sed -i "1s/.*/PROJ-1: edited/" "$1"')
    git_hook(repo, "pre-applypatch", "git diff --cached --name-only HEAD; git log -1 --format=%s")
    git_hook(repo, "post-applypatch", f"echo $PWD >> {tmp_path}/after")
    configure(repo, git_hooks=True, mode="auto")
    [told] = work(repo, r=EDIT)
    assert told["state"] == "applied"
    assert [run["id"] for run in told["hooks"]] == ["applypatch-msg", "pre-applypatch"]
    assert told["hooks"][1]["output"].split() == ["a.txt", "Start"]
    message = git("log", "-1", "--format=%B", cwd=repo)
    assert message.startswith("PROJ-1: edited\n")
    assert "Patchq-Batch: r" in message
    assert (tmp_path / "after").read_text().split() == [str(repo)]


def test_a_batch_that_changes_a_hooks_script_waits_for_review(repo: Path) -> None:
    configure(repo, hook("sh ./check.sh"), mode="auto")
    commit_files(repo, {"check.sh": "true\n"})
    [told] = work(repo, r=block("check.sh", "true\n", "exit 0\n"))
    assert (told["state"], codes(told)) == ("proposed", ["path.review"])
