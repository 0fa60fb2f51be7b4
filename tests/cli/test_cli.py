"""Every command as a user meets it: what it prints, how it exits, what it leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import BAD, EDIT, FILES, everything
from tests.helpers import ending
from tests.helpers.command import block, drop, fresh, patchq, report, work
from tests.helpers.gitrepo import git, make_repo, operators_file, tip, write_config

MINUS = "\N{MINUS SIGN}"
OTHER = block("lib/b.txt", "b\n", "B\n")


@pytest.fixture
def repo(repo: Path) -> Path:
    for name, text in (("good", EDIT), ("bad", BAD)):
        (repo / f"{name}.md").write_text(text)
    return repo


def test_the_real_command_through_a_pipe(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": EDIT, "y.md": BAD})
    done = fresh("run", cwd=repo, code=1)
    first, second = done.out.splitlines()
    assert first == f"proposed   x  patchq/x {tip(repo, 'patchq/x')[:12]}"
    assert second.startswith("rejected   y  match.none: the quote of edit 1 is not found")
    assert "\x1b" not in done.out + done.err
    assert patchq("-q", "accept", "x", cwd=repo).out == ""
    drop(repo / ".patchq", {"x2.md": OTHER, "y2.md": BAD + "!"})
    assert patchq("-q", "run", cwd=repo, code=1).out.split()[1] == "y2"


def test_relative_files_are_below_the_directory_of_the_command(repo: Path) -> None:
    place = ("-C", ".", "-C", "repo/sub", "-C", "..", "-C", "")
    (repo / "sub").mkdir()
    (repo / "other.yaml").write_text("version: 1\nmode: auto\n")
    for words in (
        ("check", "good.md"),
        ("submit", "good.md"),
        ("prompt", "a.txt", "--task", "x"),
        ("--config", "other.yaml", "config", "check"),
        ("apply", "good.md"),
    ):
        assert patchq(*place, *words, cwd=repo.parent).out


TAKEN = {
    "..": "which holds the repository",
    ".git": "which holds the repository",
    "lib": "which holds other files",
    "a.txt": "which is a file",
}


def test_the_queue_needs_a_directory_of_its_own(repo: Path) -> None:
    for place, why in TAKEN.items():
        write_config(repo, f"queue:\n  path: {place}\n")
        before = everything(repo), sorted(repo.rglob("*"))
        for words in (("config", "check"), ("init",), ("status",), ("run",)):
            said = patchq(*words, cwd=repo, code=2).err
            assert "patchq.yaml:2:3 queue.path: expected a directory of its own, " in said
            assert f"got `{place}`, {why}; " in said
        assert (everything(repo), sorted(repo.rglob("*"))) == before
    (repo / "queue").mkdir()
    write_config(repo, "queue: {path: queue}\n")
    for _ in range(2):
        patchq("init", cwd=repo)
    assert (repo / "queue/inbox").is_dir()


def test_without_a_repository_or_a_target(repo: Path, tmp_path: Path) -> None:
    for words in (("init",), ("run",), ("status",)):
        assert "not in a git repository" in patchq(*words, cwd=tmp_path, code=2).err
    unborn = tmp_path / "unborn"
    git("init", "-q", str(unborn), cwd=tmp_path)
    assert patchq("--json", "status", cwd=unborn).json()["busy"] is None
    assert "make a first commit" in patchq("run", cwd=unborn, code=2).err
    git("config", "--unset", "patchq.target", cwd=repo)
    git("checkout", "-q", "--detach", cwd=repo)
    operators_file(repo).unlink()
    assert "HEAD is detached" in patchq("check", "good.md", cwd=repo, code=2).err
    assert "no target, review mode; " in patchq("status", cwd=repo).out
    write_config(repo, "version: 1\ntarget: mian\n")
    assert "'mian' does not exist" in patchq("run", cwd=repo, code=2).err


def test_init_can_be_repeated(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    bare = tmp_path / "bare.git"
    git("clone", "-q", "--bare", str(repo), str(bare), cwd=tmp_path)
    patchq("init", cwd=bare)
    assert (bare / "patchq.yaml").exists()
    (repo / ".git/info/exclude").write_text("*.log")
    first = patchq("init", cwd=repo)
    made = [str(repo / ".patchq"), str(repo / ".patchq.yaml")]
    assert first.out.splitlines() == [*made, "commit it to main: it counts then"]
    assert (repo / ".git/info/exclude").read_text() == "*.log\n/.patchq/\n"
    write_config(repo, "version: 1\nmode: auto\n")
    drop(repo / ".patchq", {"x.md": EDIT})
    before = everything(repo)
    patchq("init", cwd=repo)
    assert everything(repo) == before


def test_sample_is_what_init_writes_and_it_is_valid(repo: Path) -> None:
    sample = operators_file(repo).read_text()
    assert patchq("config", "sample", cwd=repo).out == sample
    assert patchq("--json", "config", "sample", cwd=repo).json() == {"sample": sample}
    assert patchq("config", "check", cwd=repo).out == f"{operators_file(repo)}: ok\n"


def test_daemon(repo: Path) -> None:
    command = [sys.executable, "-m", "patchq", "--json", "watch"]
    with ending.running(command, cwd=repo, stdout=subprocess.PIPE, text=True) as watch:
        done = patchq("submit", "bad.md", "--wait", cwd=repo, code=1)
        assert done.out.startswith("rejected   bad  match.none")
        assert "\n\n# `bad`: rejected\n" in done.out  # what the agent needs to send it again
        assert done.err.startswith("patchq: waiting for the verdict on bad\n")
        assert json.loads(ending.line_of(watch.stdout))["state"] == "rejected"
        write_config(repo, "version: 1\nmode: auto\n")  # SIGHUP would have it read
        assert patchq("submit", "good.md", "--wait", cwd=repo).out.startswith("proposed")
        again = patchq("--json", "submit", "good.md", "--wait", cwd=repo).json()
        assert (again["state"], again["duplicate_of"]) == ("duplicate", "good")
        watches = patchq("--json", "status", cwd=repo).json()["daemon"]
        assert watches["pid"] == watch.pid
        assert watches["since"]
        assert patchq("watch", "--detach", cwd=repo, code=75).err
        assert "has stopped" in patchq("stop", cwd=repo).out
        assert watch.wait(60) == 0
    assert not [*(repo / ".git").rglob("*.lock")]


def test_check_writes_nothing(repo: Path) -> None:
    before = everything(repo)
    good = patchq("check", "good.md", cwd=repo)
    assert good.out.startswith("would be proposed   good")
    assert "+2\n" in good.out
    bad = patchq("check", "bad.md", cwd=repo, code=1)
    assert bad.out.startswith("would be rejected   bad  match.none")
    stdin = patchq("--json", "check", "-", cwd=repo, stdin=EDIT).json()
    assert stdin["state"] == "proposed"
    assert (stdin["branch"], stdin["commit"], stdin["decided"]) == (None, None, None)
    assert "This is what would become of the response now." in good.out
    assert "patchq accept" not in good.out
    new = make_repo(repo.parent / "new", FILES)
    git("config", "patchq.target", "main", cwd=new)
    assert patchq("check", "-", cwd=new, stdin=EDIT).out.startswith("would be proposed")
    assert not (new / ".patchq").exists()
    assert everything(repo) == before


def test_status_is_bounded_and_says_what_it_left_out(repo: Path) -> None:
    new = block("new.txt", "", "new\n")
    news = {f"x{n}": f"{new}text {n}\n" for n in range(4)}
    holds = {f"h{n}": f"---\ndepends_on: [none{n}]\n---\n{OTHER}" for n in range(2)}
    work(repo, **news, **holds)
    for words, held, waiting, left in (
        (("--limit", "1"), ["h0"], ["x0"], {"held": 1, "waiting": 3}),
        (("--state", "proposed", "-n", "3"), [], ["x0", "x1", "x2"], {"held": 0, "waiting": 1}),
    ):
        shown = patchq("--json", "status", *words, cwd=repo).json()
        assert [it["id"] for it in shown["held"]] == held
        assert [it["id"] for it in shown["waiting"]] == waiting
        assert left.items() <= shown["left_out"].items()
    git("branch", "-q", "-D", "patchq/x0", cwd=repo)
    counts = patchq("--json", "status", cwd=repo).json()["counts"]
    assert counts == {"for_you": 3, "accepted": 0, "for_agents": 0, "held": 2, "with_git": 1}


def test_log_and_show(repo: Path) -> None:
    for name, text in (("x", EDIT), ("y", BAD), ("z", EDIT)):
        work(repo, **{name: text})
    lines = patchq("log", cwd=repo).out.splitlines()
    assert [line[:12] for line in lines] == ["duplicate  z", "rejected   y", "proposed   x"]
    title, _, page = (repo / ".patchq/done/x.report.md").read_text().partition("\n")
    assert "patchq accept" not in page
    seen = patchq("show", "x", cwd=repo).out
    assert seen.startswith(f"{title}\n\n    what       Edit a.txt\n    when       received 20")
    assert f"\n    size       +1 {MINUS}1 a.txt\n    checks     not run\n" in seen
    assert "\npatchq accept x     # or: git merge patchq/x\n" in seen
    assert seen.endswith(page.partition("## Edits")[2])
    diff = report(repo / ".patchq", "x")["diff"]
    assert patchq("show", "x", "--diff", cwd=repo).out == diff
    assert patchq("--json", "show", "x", "--diff", cwd=repo).json() == {"id": "x", "diff": diff}
    git("branch", "-q", "-D", "patchq/x", cwd=repo)
    before = everything(repo)
    for words in (("status",), ("status", "x"), ("log",), ("show", "x"), ("formats",)):
        patchq(*words, cwd=repo)
    assert everything(repo) == before
    as_report = patchq("show", "y", "--report", cwd=repo)
    assert as_report.json() == report(repo / ".patchq", "y")
    assert patchq("--json", "show", "y", cwd=repo).out == as_report.out
