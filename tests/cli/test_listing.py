"""Lists of batches: which, in which order, what a line says, and what a terminal makes of them."""

from __future__ import annotations

import json
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, patchq, work
from tests.helpers.stores import edit_report
from tests.helpers.terminal import WAIT_SECONDS, on_a_terminal, plain

HEAD = "---\nagent: {}\nmessage: {}\n---\n"
RESPONSES = {
    "big": HEAD.format("writer", "Add much") + block("lib/new.txt", "", "x\n" * 30),
    "two": HEAD.format("coder", "Change two files")
    + block("a.txt", "one\n", "1\n") + block("lib/b.txt", "b\n", "B\nBB\n"),
    "nobodys": block("lib/b.txt", "c\n", "C\n"),
    "bad": HEAD.format("coder", "Never lands") + block("a.txt", "seven\n", "7\n"),
}  # fmt: skip


@pytest.fixture
def repo(repo: Path) -> Path:
    """Three proposals of three sizes and ages, and a refusal."""
    for name, text in RESPONSES.items():
        work(repo, **{name: text})
    for days, name in enumerate(("two", "big", "nobodys")):
        edit_report(repo / ".patchq", name, partial(age, days=3 - days))
    return repo


def age(report: dict[str, Any], days: int) -> None:
    for key in ("received", "decided"):
        report[key]["unix"] -= days * 86400


def waiting(repo: Path, *words: str) -> list[str]:
    return [one["id"] for one in patchq("--json", "status", *words, cwd=repo).json()["waiting"]]


def logged(repo: Path, *words: str) -> list[str]:
    lines = patchq("--json", "log", *words, cwd=repo).out.splitlines()
    return [json.loads(line)["id"] for line in lines]


ORDERS = (
    ("", "two big nobodys", "bad nobodys two big"),
    ("--by age", "two big nobodys", "two big nobodys bad"),
    ("--by size", "big two nobodys", "big two nobodys bad"),
    ("--by agent", "two big nobodys", "two bad big nobodys"),
    ("--agent coder", "two", "bad two"),
    ("--path a.txt", "two", "bad two"),
    ("--path lib", "two big nobodys", "nobodys two big"),
    ("--path ./lib/ --by age -n 1", "two", "two"),
    ("--path li", "", ""),
    ("--since 36h", "nobodys", "bad nobodys"),
    ("--state proposed --by size", "big two nobodys", "big two nobodys"),
)


def test_which_and_in_which_order(repo: Path) -> None:
    for words, status, log in ORDERS:
        assert waiting(repo, *words.split()) == status.split(), words
        assert logged(repo, *words.split()) == log.split(), words


def test_a_line_says_who_what_when_how_old_how_large_and_which_checks(repo: Path) -> None:
    patchq("send-back", "big", "-m", "why?", cwd=repo)
    work(repo, held="---\ndepends_on: [z]\n---\n" + block("new.txt", "", "x\n"))
    said = patchq("status", "--by", "age", cwd=repo).out
    minus = "\N{MINUS SIGN}"
    assert re.sub(r"  \d+s\n", "  0s\n", said).splitlines() == [
        "main, review mode; no daemon runs; inbox empty",
        "For you (2)",
        f"  two  low  +3 {minus}2  3d  coder  not run  Change two files",
        f"  nobodys  low  +1 {minus}1  24h  not run  Edit lib/b.txt",
        "For their agents (1)",
        f"  big  medium  +30 {minus}0  2d  writer  not run  sent back: why?",
        "Held (1)",
        "  held  waits for z (unknown)  0s",
        "1 refused in the last 24 h: `patchq log --state rejected`",
    ]
    assert patchq("status", "held", cwd=repo).out.startswith("held       held  depends.failed")
    (bad,) = patchq("log", "--state", "rejected", cwd=repo).out.splitlines()
    assert re.fullmatch(r"rejected   bad  \d+s  a.txt  match.none: .*  coder: Never lands", bad)
    told = patchq("--json", "status", cwd=repo).json()
    assert (told["target"], told["mode"], told["inbox"]) == ("main", "review", 0)
    (two,) = (one for one in told["waiting"] if one["id"] == "two")
    assert two["message"] == "Change two files"
    assert two["size"] == {"files": 2, "added": 3, "deleted": 2}
    assert two["checks"] == [{"id": "gate", "stage": "pre-apply", "exit": 0}]
    assert two["received"]["unix"] < time.time() - 3 * 86400


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("PAGER", raising=False)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_PAGER", "cat")
    return monkeypatch


def seen(repo: Path, *words: str) -> str:
    with on_a_terminal(repo, *words) as terminal:
        text = terminal.read_all()
        assert terminal.process.wait(WAIT_SECONDS) == 0
    return text


def test_a_terminal_gets_colours_lines_of_its_width_and_gits_pager(
    repo: Path, screen: pytest.MonkeyPatch
) -> None:
    text = seen(repo, "log")
    assert "\x1b[31mrejected   bad" in text
    assert all(len(line) <= 100 for line in plain(text))
    assert "4 shown: 3 proposed, 1 rejected" in plain(text)
    screen.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", seen(repo, "log"))
    screen.setenv("GIT_PAGER", "sed 's/^/| /'; echo LESS=$LESS")
    lines = plain(seen(repo, "show", "two", "--diff"))
    assert "| +BB" in lines
    assert "LESS=FRX" in lines
    screen.setenv("TERM", "dumb")  # neither colours nor a pager
    text = seen(repo, "show", "two", "--diff")
    assert "\x1b" not in text
    assert "\r\n+BB\r\n" in text


@pytest.mark.usefixtures("screen")
def test_a_screen_shows_what_fits_and_says_what_does_not(repo: Path) -> None:
    work(repo, **{f"p{n}": block(f"new/{n}.txt", "", "x\n") for n in range(57)})
    lines = [line for line in plain(seen(repo, "status")) if line]
    assert len(lines) <= 29
    _, heading, *rows, left, refused = lines
    assert heading == "For you (60)"
    assert left == f"  … {60 - len(rows)} more: `patchq status --all`, or `patchq review`"
    assert refused.startswith("1 refused")
    assert sum(line.startswith("  ") for line in plain(seen(repo, "status", "--all"))) == 60
    piped = patchq("status", cwd=repo).out.splitlines()
    assert len(piped) <= 24
    assert piped[-2].startswith("  … ")
    assert len(waiting(repo)) == 50
