"""Every command as a user meets it: what it prints, how it exits, what it leaves alone."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patchq.core.formats.registry import FORMATS
from tests.helpers.command import block, drop, fresh, patchq, report
from tests.helpers.ending import running
from tests.helpers.gitrepo import git, make_repo, operators_file, tip, write_config

MINUS = "\N{MINUS SIGN}"
FILES = {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}
EDIT = block("a.txt", "two\n", "2\n")
OTHER = block("b.txt", "b\n", "B\n")
BAD = block("a.txt", "nowhere\n", "x\n")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / ".git/info/exclude").write_text("/.patchq.yaml\n/outside/\n")
    patchq("init", cwd=repo)
    (repo / ".patchq.yaml").rename(operators_file(repo))
    (repo / "outside").mkdir()
    for name, text in (("good", EDIT), ("other", OTHER), ("bad", BAD)):
        (repo / f"outside/{name}.md").write_text(text)
    return repo


def configure(repo: Path, text: str) -> None:
    write_config(repo, text)


def told(repo: Path, id: str) -> dict[str, object]:
    return report(repo / ".patchq", id)


def everything(*roots: Path) -> dict[str, tuple[float, bytes]]:
    """All files below with their times and bytes."""
    files = (path for root in roots for path in root.rglob("*") if not path.is_dir())
    return {str(path): (path.lstat().st_mtime_ns, content(path)) for path in files}


def content(path: Path) -> bytes:
    return bytes(path.readlink()) if path.is_symlink() else path.read_bytes()


# ---------------------------------------------------------------- how it is called


def test_the_real_command_through_a_pipe(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": EDIT, "y.md": BAD})
    done = fresh("run", cwd=repo, code=1)
    first, second = done.out.splitlines()
    assert first == f"proposed   x  patchq/x {tip(repo, 'patchq/x')[:12]}"
    assert second.startswith("rejected   y  match.none: the quote of edit 1 is not found")
    assert "\x1b" not in done.out + done.err
    assert fresh("run", cwd=repo).out == ""


def test_help_and_version() -> None:
    shown = fresh("--help", cwd=Path("/")).out
    verbs = (
        "init", "watch", "stop", "run", "submit", "check", "apply", "status", "log", "show",
        "accept", "discard", "formats", "config",
    )  # fmt: skip
    assert all(f"\n    {verb} " in shown for verb in verbs)
    assert patchq("--version", cwd=Path("/")).out.startswith("patchq ")


WRONG_CALLS = [
    ("nothing",),
    ("run", "--nothing"),
    ("accept",),
    ("accept", "x", "--only", "1", "--without", "2"),
    ("show", "x", "--diff", "--report"),
    ("config", "nothing"),
    ("submit", "nowhere.md"),
    ("check", "nowhere.md"),
    ("apply", "."),
    ("--config", "nowhere.yaml", "run"),
    ("-C", "nowhere", "run"),
    ("formats", "nothing"),
    ("-q", "-v", "status"),
    ("log", "-n", "-1"),
    ("anchors", "a.txt", "--line", "0"),
    ("prompt", "a.txt", "--task", "x", "--budget", "-1"),
    ("prompt", "a.txt", "--task", " "),
    ("ask", "a.txt", "--task", ""),
    ("hooks", "check", "--message", "nowhere"),
    *((verb, "nobody") for verb in ("status", "show", "accept", "discard")),
]


@pytest.mark.parametrize("words", WRONG_CALLS, ids=" ".join)
def test_wrong_call(repo: Path, words: tuple[str, ...]) -> None:
    done = patchq(*words, cwd=repo, code=2)
    assert done.out == ""
    assert done.err


@pytest.mark.parametrize(
    "place", [("-C", "repo"), ("-C", ".", "-C", "repo/sub", "-C", ".."), ("-C", "repo", "-C", "")]
)
def test_relative_files_are_below_the_directory_of_the_command(
    repo: Path, place: tuple[str, ...]
) -> None:
    (repo / "sub").mkdir()
    (repo / "here.md").write_text(EDIT)
    (repo / "here.txt").write_text("a line\n")
    (repo / "other.yaml").write_text("version: 1\nmode: auto\n")
    for words in (
        ("check", "here.md"),
        ("submit", "here.md"),
        ("anchors", "here.txt"),
        ("prompt", "a.txt", "--task", "x"),
        ("--config", "other.yaml", "config", "check"),
        ("apply", "here.md"),
    ):
        told = patchq(*place, *words, cwd=repo.parent)
        assert told.out
    assert patchq(*place, "show", "here", "--report", cwd=repo.parent).json()["edits"]


@pytest.mark.parametrize("verb", ["status", "show", "accept", "discard"])
def test_unknown_batch_is_named(repo: Path, verb: str) -> None:
    done = patchq(verb, "nobody", cwd=repo, code=2)
    assert done.err == "patchq: there is no change nobody; `patchq log` lists them\n"


TAKEN = {
    ".": "which holds the repository",
    "..": "which holds the repository",
    ".git": "which holds the repository",
    "outside": "which holds other files",
    "a.txt": "which is a file",
}


@pytest.mark.parametrize("place", TAKEN)
def test_the_queue_needs_a_directory_of_its_own(repo: Path, place: str) -> None:
    configure(repo, f"queue:\n  path: {place}\n")
    before = everything(repo), sorted(repo.rglob("*"))
    for words in (("config", "check"), ("init",), ("status",), ("run",)):
        assert patchq(*words, cwd=repo, code=2).err.startswith(
            "patchq: patchq.yaml:2:3 queue.path: expected a directory of its own, "
            f"got `{place}`, {TAKEN[place]}; "
        )
    assert (everything(repo), sorted(repo.rglob("*"))) == before


def test_an_empty_directory_may_become_the_queue(repo: Path) -> None:
    (repo / "queue").mkdir()
    configure(repo, "queue: {path: queue}\n")
    for _ in range(2):
        patchq("init", cwd=repo)
    assert (repo / "queue/inbox").is_dir()


def test_outside_a_repository(tmp_path: Path) -> None:
    for words in (("init",), ("run",), ("status",)):
        assert "not in a git repository" in patchq(*words, cwd=tmp_path, code=2).err


def test_no_target(repo: Path) -> None:
    git("config", "--unset", "patchq.target", cwd=repo)
    git("checkout", "-q", "--detach", cwd=repo)
    for words in (("run",), ("watch",), ("check", "outside/good.md")):
        assert "HEAD is detached" in patchq(*words, cwd=repo, code=2).err
    configure(repo, "version: 1\ntarget: main\n")
    patchq("run", cwd=repo)
    configure(repo, "version: 1\ntarget: mian\n")
    assert "'mian' does not exist" in patchq("run", cwd=repo, code=2).err


def test_unborn_branch(tmp_path: Path) -> None:
    git("init", "-q", cwd=tmp_path)
    assert "make a first commit" in patchq("run", cwd=tmp_path, code=2).err


def test_directory_and_configuration_are_chosen(repo: Path, tmp_path: Path) -> None:
    other = tmp_path / "auto.yaml"
    other.write_text("version: 1\nmode: auto\n")
    (repo / "sub").mkdir()
    for words in (("-C", str(repo), "--config"), ("-C", str(repo / "sub"), "--config", "..")):
        config = "/".join((*words[3:], "../auto.yaml"))
        shown = patchq(*words[:3], config, "status", cwd=tmp_path).out
        assert "main, auto mode" in shown
    assert "main, review mode" in patchq("status", cwd=repo / "sub").out
    assert "main, review mode" in patchq("-C", "status", "status", cwd=_sibling(repo)).out


def _sibling(repo: Path) -> Path:
    """A directory in which the repository is named like a command."""
    (repo.parent / "status").symlink_to(repo)
    return repo.parent


# ---------------------------------------------------------------- init, config


def test_init_can_be_repeated(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    (repo / ".git/info/exclude").write_text("*.log")
    first = patchq("init", cwd=repo)
    made = [str(repo / ".patchq"), str(repo / ".patchq.yaml")]
    assert first.out.splitlines() == [*made, "commit it to main: it counts then"]
    assert (repo / ".git/info/exclude").read_text() == "*.log\n/.patchq/\n"
    configure(repo, "version: 1\nmode: auto\n")
    drop(repo / ".patchq", {"x.md": EDIT})
    before = everything(repo)
    patchq("init", cwd=repo)
    assert everything(repo) == before
    names = {path.name for path in (repo / ".patchq").iterdir()}
    assert names >= {"inbox", "active", "done", "rejected"}


def test_init_in_a_bare_repository(repo: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git("clone", "-q", "--bare", str(repo), str(bare), cwd=tmp_path)
    patchq("init", cwd=bare)
    assert (bare / "patchq.yaml").exists()
    assert (bare / ".patchq/inbox").is_dir()


def test_sample_is_what_init_writes_and_it_is_valid(repo: Path) -> None:
    sample = operators_file(repo).read_text()
    assert patchq("config", "sample", cwd=repo).out == sample
    assert patchq("--json", "config", "sample", cwd=repo).json() == {"sample": sample}
    assert patchq("config", "check", cwd=repo).out == f"{operators_file(repo)}: ok\n"
    schema = patchq("config", "schema", cwd=repo).json()
    assert {"mode", "target", "queue", "validate"} <= schema["$defs"]["Config"]["properties"].keys()


def test_every_error_of_the_configuration_has_its_place(repo: Path) -> None:
    configure(repo, "version: 1\nmood: auto\nmode: autom\nqueue:\n  poll_seconds: soon\n")
    for words in (("config", "check"), ("run",), ("status",), ("submit", "outside/good.md")):
        lines = patchq(*words, cwd=repo, code=2).err
        assert "patchq.yaml:2:1 mood: expected" in lines
        assert "patchq.yaml:3:7 mode: expected" in lines
        assert "patchq.yaml:5:17 queue.poll_seconds: expected" in lines


# ---------------------------------------------------------------- submit


def test_submit_prints_the_id_that_the_batch_gets(repo: Path) -> None:
    assert patchq("submit", "outside/good.md", cwd=repo).out == "good\n"
    assert patchq("submit", "outside/other.md", cwd=repo).out == "other\n"
    named = "---\nid: named\n---\n" + block("b.txt", "", "")
    assert patchq("submit", "-", cwd=repo, stdin=named).out == "named\n"
    assert patchq("--json", "submit", "outside/good.md", cwd=repo).json()["id"] == "good-2"
    patchq("run", cwd=repo, code=1)
    assert [told(repo, id)["state"] for id in ("good", "other")] == ["proposed", "proposed"]
    assert told(repo, "named")["state"] == "rejected"
    assert told(repo, "good-2")["state"] == "duplicate"
    assert patchq("submit", "outside/good.md", cwd=repo).out == "good-3\n"


def test_submit_puts_what_it_is_told_into_the_front_matter(repo: Path) -> None:
    words = ("--base", tip(repo), "--message", 'Say "two": 2', "--target", "main")
    id = patchq("submit", "-", *words, cwd=repo, stdin=EDIT).out.strip()
    with_matter = "---\r\nagent: coder\r\n---\r\n" + OTHER
    other = patchq("submit", "-", "--message", "Other", cwd=repo, stdin=with_matter).out.strip()
    patchq("run", cwd=repo)
    assert told(repo, id)["base"] == {"commit": tip(repo), "how": "declared"}
    assert git("log", "-1", "--format=%s", f"patchq/{id}", cwd=repo) == 'Say "two": 2'
    assert told(repo, other)["agent"] == "coder"
    assert git("log", "-1", "--format=%s", f"patchq/{other}", cwd=repo) == "Other"


@pytest.fixture
def daemon(repo: Path) -> Iterator[Path]:
    """The repository, with a daemon that watches."""
    patchq("watch", "--detach", cwd=repo)
    yield repo
    patchq("stop", cwd=repo)


def test_daemon(daemon: Path) -> None:
    assert patchq("submit", "outside/good.md", "--wait", cwd=daemon).out.startswith("proposed")
    done = patchq("submit", "outside/bad.md", "--wait", cwd=daemon, code=1)
    assert done.out.startswith("rejected   bad  match.none")
    assert "\n\n# `bad`: rejected\n" in done.out  # what the agent needs to send it again
    assert done.err == "patchq: waiting for the verdict on bad\n"
    again = patchq("--json", "submit", "outside/good.md", "--wait", cwd=daemon).json()
    assert (again["state"], again["duplicate_of"]) == ("duplicate", "good")
    status = patchq("--json", "status", cwd=daemon).json()
    assert status["daemon"]["pid"] > 0
    assert status["daemon"]["since"]
    assert "; watching for " in patchq("status", cwd=daemon).out
    for words in (("watch",), ("watch", "--detach"), ("run",)):
        assert patchq(*words, cwd=daemon, code=75).err
    assert patchq("apply", "outside/other.md", cwd=daemon).out.startswith("proposed")
    patchq("accept", "good", cwd=daemon)
    assert git("show", "main:a.txt", cwd=daemon) == "one\n2\nthree"
    assert "has stopped" in patchq("stop", cwd=daemon).out
    assert patchq("stop", cwd=daemon).out == "no daemon runs\n"
    assert "; no daemon runs" in patchq("status", cwd=daemon).out
    assert not [*(daemon / ".git").rglob("*.lock")]


def test_configuration_is_read_again_on_sighup_only(repo: Path) -> None:
    command = [sys.executable, "-m", "patchq", "watch"]
    piped: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with running(command, cwd=repo, **piped) as watch:
        assert watch.stdout
        assert watch.stderr
        drop(repo / ".patchq", {"x.md": EDIT})
        assert watch.stdout.readline().startswith("proposed   x")
        configure(repo, "version: 1\nmode: auto\n")
        drop(repo / ".patchq", {"y.md": OTHER})
        assert watch.stdout.readline().startswith("proposed   y")
        watch.send_signal(signal.SIGHUP)
        assert any("configuration read anew" in line for line in watch.stderr)
        drop(repo / ".patchq", {"z.md": block("c.txt", "", "c\n")})
        assert watch.stdout.readline().startswith("applied    z")
        watch.terminate()


# ---------------------------------------------------------------- check, apply


def test_check_writes_nothing(repo: Path) -> None:
    before = everything(repo)
    good = patchq("check", "outside/good.md", cwd=repo)
    assert good.out.startswith("would be proposed   good")
    assert "+2\n" in good.out
    bad = patchq("check", "outside/bad.md", cwd=repo, code=1)
    assert bad.out.startswith("would be rejected   bad  match.none")
    stdin = patchq("--json", "check", "-", cwd=repo, stdin=EDIT).json()
    assert stdin["state"] == "proposed"
    assert stdin["edits"][0]["lines"] == [2, 2]
    assert (stdin["branch"], stdin["commit"], stdin["decided"]) == (None, None, None)
    page = patchq("check", "-", cwd=repo, stdin=EDIT).out
    assert "would be proposed" in page
    assert "This is what would become of the response now." in page
    assert "patchq accept" not in page
    assert patchq("-q", "check", "-", cwd=repo, stdin=EDIT).out.count("\n") <= 1
    assert everything(repo) == before


@pytest.mark.parametrize("verb", ["check", "apply"])
def test_too_large_is_too_large_by_every_way_in(repo: Path, verb: str) -> None:
    configure(repo, "limits: {response_bytes: 40}\n")
    said = patchq("--json", verb, "outside/good.md", cwd=repo, code=1).json()
    assert [problem["code"] for problem in said["problems"]] == ["response.too_large"]
    if verb == "apply":
        assert (repo / ".patchq/rejected/good.md").read_text() == EDIT
        configure(repo, "version: 1\n")
        assert patchq("apply", "outside/good.md", cwd=repo).out.startswith("proposed   good-2")


def test_check_needs_no_queue(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    git("config", "patchq.target", "main", cwd=repo)
    before = everything(repo)
    assert patchq("check", "-", cwd=repo, stdin=EDIT).out.startswith("would be proposed")
    assert everything(repo) == before
    assert not (repo / ".patchq").exists()


def test_apply(repo: Path) -> None:
    assert patchq("apply", "outside/good.md", cwd=repo).out.startswith("proposed   good")
    assert patchq("apply", "outside/bad.md", cwd=repo, code=1).out.startswith("rejected   bad")
    assert patchq("--json", "apply", "-", cwd=repo, stdin=OTHER).json()["state"] == "proposed"
    assert (repo / ".patchq/done/good.md").read_text() == EDIT
    assert (repo / ".patchq/rejected/bad.report.md").exists()
    assert list((repo / ".patchq/active").iterdir()) == []


# ---------------------------------------------------------------- looking


def test_status(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": EDIT, "y.md": f"---\ndepends_on: [z]\n---\n{OTHER}"})
    assert "; 2 in the inbox" in patchq("status", cwd=repo).out
    patchq("run", cwd=repo)
    assert re.sub(r"  \d+s", "  0s", patchq("status", cwd=repo).out).splitlines() == [
        "main, review mode; no daemon runs; inbox empty",
        "For you (1)",
        f"  x  low  +1 {MINUS}1  0s  not run  Edit a.txt",
        "Held (1)",
        "  y  waits for z (unknown)  0s",
    ]
    shown = patchq("--json", "status", cwd=repo).json()
    assert shown["daemon"] is None
    assert (shown["target"], shown["mode"], shown["inbox"]) == ("main", "review", 0)
    assert [held["id"] for held in shown["held"]] == ["y"]
    assert [waiting["id"] for waiting in shown["waiting"]] == ["x"]
    assert patchq("status", "x", cwd=repo).out.startswith("proposed   x  patchq/x ")
    assert patchq("status", "y", cwd=repo).out.startswith("held       y  depends.failed")
    assert patchq("--json", "status", "x", cwd=repo).json()["id"] == "x"


def test_status_is_bounded_and_says_what_it_left_out(repo: Path) -> None:
    new = block("new.txt", "", "new\n")
    news = {f"x{n}": f"---\nagent: of-{n % 2}\n---\n{new}text {n}\n" for n in range(4)}
    holds = {f"h{n}": f"---\ndepends_on: [none{n}]\n---\n{OTHER}" for n in range(2)}
    drop(repo / ".patchq", {f"{id}.md": text for id, text in (news | holds).items()})
    patchq("run", cwd=repo)
    for words, held, waiting, counts, left in (
        ((), ["h0", "h1"], ["x0", "x1", "x2", "x3"], (2, 4), (0, 0)),
        (("--limit", "1"), ["h0"], ["x0"], (2, 4), (1, 3)),
        (("--limit", "4"), ["h0", "h1"], ["x0", "x1", "x2", "x3"], (2, 4), (0, 0)),
        (("--agent", "of-1"), [], ["x1", "x3"], (0, 2), (0, 0)),
        (("--agent", "of-1", "-n", "1"), [], ["x1"], (0, 2), (0, 1)),
        (("--state", "held"), ["h0", "h1"], [], (2, 0), (0, 0)),
        (("--state", "proposed", "-n", "3"), [], ["x0", "x1", "x2"], (0, 4), (0, 1)),
    ):
        shown = patchq("--json", "status", *words, cwd=repo).json()
        assert [it["id"] for it in shown["held"]] == held, words
        assert [it["id"] for it in shown["waiting"]] == waiting, words
        assert (shown["counts"]["held"], shown["counts"]["for_you"]) == counts, words
        assert (shown["left_out"]["held"], shown["left_out"]["waiting"]) == left, words
    lines = patchq("status", "--limit", "1", cwd=repo).out.splitlines()
    assert [line for line in lines if line[0] != " "][1:] == ["For you (4)", "Held (2)"]
    assert [line.split(":")[0] for line in lines if "more" in line] == ["  … 3 more", "  … 1 more"]
    git("branch", "-q", "-D", "patchq/x0", cwd=repo)
    counts = patchq("--json", "status", cwd=repo).json()["counts"]
    assert counts == {"for_you": 3, "accepted": 1, "for_agents": 0, "held": 2}


def test_status_without_a_target(tmp_path: Path) -> None:
    git("init", "-q", cwd=tmp_path)
    assert patchq("--json", "status", cwd=tmp_path).json()["busy"] is None
    git("checkout", "-q", "--detach", cwd=make_repo(tmp_path / "repo", FILES))
    assert "no target, review mode; " in patchq("status", cwd=tmp_path / "repo").out


def test_log_and_show(repo: Path) -> None:
    for name, text in (("x", EDIT), ("y", BAD), ("z", EDIT)):
        drop(repo / ".patchq", {f"{name}.md": text})
        patchq("run", cwd=repo, code=None)
    lines = patchq("log", cwd=repo).out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["duplicate", "z"],
        ["rejected", "y"],
        ["proposed", "x"],
    ]
    assert patchq("log", "-n", "1", cwd=repo).out.splitlines() == lines[:1]
    shown = [json.loads(line) for line in patchq("--json", "log", cwd=repo).out.splitlines()]
    assert [told["id"] for told in shown] == ["z", "y", "x"]
    title, _, page = (repo / ".patchq/done/x.report.md").read_text().partition("\n")
    assert "patchq accept" not in page
    seen = patchq("show", "x", cwd=repo).out
    assert seen.startswith(f"{title}\n\n    what       Edit a.txt\n    when       received 20")
    assert f"\n    size       +1 {MINUS}1 a.txt\n    checks     not run\n" in seen
    assert "\npatchq accept x     # or: git merge patchq/x\n" in seen
    assert seen.endswith(page.partition("## Edits")[2])
    diff = told(repo, "x")["diff"]
    assert patchq("show", "x", "--diff", cwd=repo).out == diff
    assert patchq("--json", "show", "x", "--diff", cwd=repo).json() == {"id": "x", "diff": diff}
    as_report = patchq("show", "y", "--report", cwd=repo)
    assert as_report.json() == told(repo, "y")
    assert patchq("--json", "show", "y", cwd=repo).out == as_report.out


def test_looking_writes_nothing(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": EDIT})
    patchq("run", cwd=repo)
    git("branch", "-q", "-D", "patchq/x", cwd=repo)
    before = everything(repo)
    for words in (("status",), ("status", "x"), ("log",), ("show", "x"), ("formats",)):
        patchq(*words, cwd=repo)
    assert everything(repo) == before


def test_quiet_says_refusals_only(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": EDIT, "y.md": BAD})
    done = patchq("-q", "run", cwd=repo, code=1)
    assert [line.split()[1] for line in done.out.splitlines()] == ["y"]
    assert patchq("-q", "accept", "x", cwd=repo).out == ""


def test_formats(repo: Path) -> None:
    names = patchq("formats", cwd=repo).out.split()
    assert names == list(FORMATS)
    for name in names:
        assert patchq("formats", name, cwd=repo).out.strip()
    assert patchq("--json", "formats", cwd=repo).json() == names
    assert "<<<<<<< SEARCH" in patchq("formats", "SEARCH-REPLACE", cwd=repo).out


def test_hidden_characters_do_not_reach_the_terminal(repo: Path) -> None:
    path = "a\x1b]0;title\x07.txt"
    drop(repo / ".patchq", {"e\x1b[31mvil.md": block(path, "x\n", "y\n")})
    for words in (("run",), ("log",), ("status",), ("show", "e-31mvil")):
        done = patchq(*words, cwd=repo, code=None)
        assert not set("\x1b\x07") & set(done.out + done.err), words


# ---------------------------------------------------------------- deciding

THREE = "\n".join(
    (
        block("a.txt", "two\n", "2\n"),
        block("a.txt", "2\nthree\n", "2\n3\n"),
        block("b.txt", "b\n", "B\n"),
    )
)


def test_batches_are_not_for_branches_that_wait(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": EDIT})
    patchq("run", cwd=repo)
    configure(repo, "target: patchq/x\n")
    drop(repo / ".patchq", {"y.md": OTHER})
    assert "waits for review" in patchq("run", cwd=repo, code=2).err
    configure(repo, "")
    patchq("accept", "x", cwd=repo)
    assert git("show", "main:a.txt", cwd=repo) == "one\n2\nthree"


def test_accept_of_unknown_edits_names_those_that_there_are(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": THREE})
    patchq("run", cwd=repo)
    for word in ("--only", "--without"):
        done = patchq("accept", "x", word, "1,7", cwd=repo, code=2)
        assert "no edit 7" in done.err
        assert "1, 2, 3" in done.err
    done = patchq("accept", "x", "--without", "1,2,3", cwd=repo, code=2)
    assert "discard" in done.err


def test_accept_beside_a_lock_of_somebody_waits_and_says_so(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": EDIT})
    patchq("run", cwd=repo)
    lock = repo / ".git/refs/heads/main.lock"
    lock.touch()
    start = tip(repo)
    with running(
        [sys.executable, "-m", "patchq", "accept", "x"],
        cwd=repo,
        stdout=subprocess.PIPE,
        text=True,
    ) as accept:
        while not [*(repo / ".git").glob("patchq-*")]:  # its own lock, which it cannot link yet
            assert accept.poll() is None
            time.sleep(0.01)
        assert tip(repo) == start
        lock.unlink()
        assert accept.wait(60) == 0
    assert git("show", "main:a.txt", cwd=repo) == "one\n2\nthree"


def test_closed_pipe_is_no_fault(repo: Path) -> None:
    drop(repo / ".patchq", {f"{n}.md": block(f"{n}.txt", "", "x\n" * 2000) for n in range(3)})
    patchq("run", cwd=repo)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "patchq", "show", "1", "--diff"],
        cwd=repo,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
