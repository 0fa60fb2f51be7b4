"""Hostile files in the inbox (F03-F18), and a response that kills its reader (P10)."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from patchq.core.text import quote
from patchq.gate.land.worker import MOST_DEATHS
from patchq.gate.queue.events import Events
from tests.helpers.command import block, drop, patchq
from tests.helpers.command import report as told_of
from tests.helpers.gitrepo import git, make_repo, write_config

EDIT = block("a.txt", "two\n", "2\n")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\nthree\n"})
    patchq("init", cwd=repo)
    write_config(repo, "version: 1\nqueue: {settle_seconds: 0.1}\n")
    return repo


def work_off(repo: Path, count: int) -> list[dict[str, Any]]:
    """Run until so many responses have their verdicts."""
    queue = repo / ".patchq"
    for _ in range(50):
        patchq("run", cwd=repo, code=None)
        found = [*queue.glob("done/*.report.json"), *queue.glob("rejected/*.report.json")]
        if len(found) == count:
            break
        time.sleep(0.1)
    assert len(found) == count, found
    git("fsck", "--strict", "--no-dangling", cwd=repo)
    return [json.loads(path.read_bytes()) for path in found]


def new_file(number: int) -> str:
    return block(f"new/{number}.txt", "", "x\n")


@pytest.mark.parametrize("data", [b"", EDIT.encode()[:25], EDIT.encode()[:-8]], ids=repr)
def test_f03_what_a_power_cut_left_is_refused_and_kept(repo: Path, data: bytes) -> None:
    drop(repo / ".patchq", {"f03.md": data})
    (told,) = work_off(repo, 1)
    code = "response.incomplete" if not data else "response.truncated"
    assert [problem["code"] for problem in told["problems"]] == [code]
    assert (repo / ".patchq/rejected/f03.md").read_bytes() == data


@pytest.mark.parametrize("line", ["bytes: 3", f"sha256: {'0' * 64}"])
def test_f04_what_differs_from_its_promise_is_incomplete(repo: Path, line: str) -> None:
    drop(repo / ".patchq", {"f04.md": f"---\n{line}\n---\n{EDIT}"})
    (told,) = work_off(repo, 1)
    assert [problem["code"] for problem in told["problems"]] == ["response.incomplete"]


def _socket(path: Path) -> None:
    # A socket's address is short: the directory's is one that its descriptor gives.
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)


def _device(path: Path) -> None:
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero never ends


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        pytest.param(lambda path: path.symlink_to("/etc/passwd"), "not_text", id="f05-link"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), "not_text", id="f05-device"),
        pytest.param(os.mkfifo, "not_text", id="f06-pipe"),
        pytest.param(_socket, "not_text", id="f06-socket"),
        pytest.param(os.mkdir, "not_text", id="f06-directory"),
        pytest.param(_device, "not_text", id="f06-device", marks=as_root),
        pytest.param(_sparse, "too_large", id="f08-sparse"),
    ],
)
def test_f05_f06_f08_what_is_no_file_is_refused_unopened(
    repo: Path, make: Callable[[Path], None], code: str
) -> None:
    make(repo / ".patchq/inbox/x.md")
    before = os.lstat(repo / ".patchq/inbox/x.md")
    (told,) = work_off(repo, 1)
    assert [problem["code"] for problem in told["problems"]] == [f"response.{code}"]
    assert told["source"]["bytes"] in (before.st_size, 0)
    kept = [path for path in (repo / ".patchq/rejected").iterdir() if ".report." not in path.name]
    assert [os.lstat(path).st_ino for path in kept] == [before.st_ino]


def test_f07_a_hard_link_is_copied_and_its_other_name_left_alone(repo: Path) -> None:
    other = repo.parent / "other.md"
    other.write_text(EDIT)
    os.link(other, repo / ".patchq/inbox/f07.md")
    (told,) = work_off(repo, 1)
    assert told["state"] == "proposed"
    other.write_text("changed later")
    assert (repo / ".patchq/done/f07.md").read_text() == EDIT
    assert other.stat().st_nlink == 1


@as_root
def test_f07_a_hard_link_to_somebody_elses_file_is_refused(repo: Path) -> None:
    other = repo.parent / "other.md"
    other.write_text(EDIT)
    os.chown(other, 12345, 12345)
    os.link(other, repo / ".patchq/inbox/f07.md")
    (told,) = work_off(repo, 1)
    assert [problem["code"] for problem in told["problems"]] == ["response.incomplete"]
    assert other.read_text() == EDIT


HOSTILE = (
    b"new\nline.md", b"\x1b[31mred.md", b"\xff\xfe.md", b"n" * 252 + b".md", b"-rf", b"--help.md",
    "\u202egpj.md".encode(), b"$(touch oops).md", b"a.report.json", b"..md", b"HEAD.lock", b" ",
)  # fmt: skip


def test_f10_a_hostile_name_is_data(repo: Path) -> None:
    inbox = os.fsencode(repo / ".patchq/inbox")
    for number, name in enumerate(HOSTILE):
        if not name.startswith(b"."):
            with open(inbox + b"/" + name, "wb") as file:
                file.write(new_file(number).encode())
    given = [name for name in HOSTILE if not name.startswith(b".")]
    reports = work_off(repo, len(given))
    assert {told["state"] for told in reports} == {"proposed"}
    assert {os.fsencode(told["source"]["name"]) for told in reports} >= {
        name for name in given if name.isascii() and b"\x1b" not in name
    }
    names = [path.name for path in (repo / ".patchq/done").iterdir()]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names), names
    shown = [patchq(*words, cwd=repo).out for words in (["log"], ["status"], ["--json", "log"])]
    shown += [path.read_text() for path in (repo / ".patchq/done").glob("*.report.*")]
    shown.append(git("for-each-ref", cwd=repo))
    for text in shown:
        assert not quote.HIDDEN.search(re.sub(r"[\n\t]", "", text)), ascii(text[:300])
    assert not [*repo.rglob("oops")]


def test_f11_f12_f13_the_same_name_the_same_content_the_same_id(repo: Path) -> None:
    queue = repo / ".patchq"
    drop(queue, {"x.md": EDIT})
    (first,) = work_off(repo, 1)
    drop(queue, {"x.md": new_file(1), "y.md": EDIT, "z.md": f"---\nid: x\n---\n{new_file(2)}"})
    by_name = {(told["source"]["name"], told["id"]): told for told in work_off(repo, 4)}
    assert sorted(by_name) == [("x.md", "x"), ("x.md", "x-2"), ("y.md", "y"), ("z.md", "x-3")]
    assert by_name["y.md", "y"]["state"] == "duplicate"
    assert by_name["y.md", "y"]["duplicate_of"] == first["id"] == "x"


@pytest.mark.parametrize("place", ["done", "rejected", "active", "inbox"])
def test_f15_f18_a_link_in_the_place_of_a_directory_is_not_followed(repo: Path, place: str) -> None:
    outside = repo.parent / "outside"
    outside.mkdir()
    drop(repo / ".patchq", {"x.md": EDIT, "bad.md": block("a.txt", "no\n", "x\n")})
    (repo / ".patchq" / place).rename(repo.parent / "old")
    (repo / ".patchq" / place).symlink_to(outside)
    done = patchq("run", cwd=repo, code=None)
    assert done.code in (2, 3)
    assert [*outside.iterdir()] == []
    (repo / ".patchq" / place).unlink()
    (repo.parent / "old").rename(repo / ".patchq" / place)
    assert {told["state"] for told in work_off(repo, 2)} == {"proposed", "rejected"}


LANDS_LITTLE = """
import os, signal, sys
from patchq.cli import main
from patchq.gate.land import landing
land = landing.land
def deadly(group, *rest):
    names = {one.claim.source.name for one in group if one.state != "held"}
    if len(names) > 1 if sys.argv[1] == "many" else sys.argv[1] in names:
        os.kill(os.getpid(), signal.SIGKILL)
    return land(group, *rest)
landing.land = deadly
sys.exit(main(["run"]))
"""


def ends_before_long(repo: Path, what: str) -> int:
    """How many died over `what` they land, until one came to its end or something is held."""
    for deaths in range(20):
        command = [sys.executable, "-c", LANDS_LITTLE, what]
        done = subprocess.run(command, cwd=repo, check=False, timeout=300).returncode
        if done == 0 or ever_held(repo):
            return deaths
    raise AssertionError("the others do not go on")


def ever_held(repo: Path) -> set[str]:
    told = Events(repo / ".patchq", "").read()
    return {event["batch"] for event in told if event["kind"] == "held"}


def test_p10_who_lands_beside_a_deadly_one_is_not_held_with_it(repo: Path) -> None:
    names = [f"good{n}" for n in range(9)]
    drop(repo / ".patchq", {f"{name}.md": new_file(n) for n, name in enumerate(names)})
    drop(repo / ".patchq", {"deadly.md": EDIT})
    assert ends_before_long(repo, "deadly.md") <= MOST_DEATHS + 2
    assert ever_held(repo) == {"deadly"}
    assert told_of(repo / ".patchq", "deadly")["problems"][-1]["code"] == "fault.crashed"
    assert {told_of(repo / ".patchq", name)["state"] for name in names} == {"proposed"}
    (held,) = patchq("--json", "status", cwd=repo).json()["held"]
    assert (held["id"], held["code"]) == ("deadly", "fault.crashed")
    found = patchq("--json", "doctor", cwd=repo, code=1).json()["findings"]
    assert "fault.crashed" in [each["what"] for each in found]
    patchq("run", cwd=repo)
    assert told_of(repo / ".patchq", "deadly")["state"] == "held"
    patchq("retry", "deadly", cwd=repo)
    assert told_of(repo / ".patchq", "deadly-2")["state"] == "proposed"


def test_p10_who_is_killed_again_and_again_lands_less_at_a_time(repo: Path) -> None:
    names = [f"good{n}" for n in range(6)]
    drop(repo / ".patchq", {f"{name}.md": new_file(n) for n, name in enumerate(names)})
    ends_before_long(repo, "many")
    assert ever_held(repo) == set()
    assert {told_of(repo / ".patchq", name)["state"] for name in names} == {"proposed"}
