"""`events` tells what happens: bounded, or as it comes, and it ends when it is to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.report.schema import EVENT_KINDS
from tests.cli.conftest import BAD, EDIT
from tests.helpers import ending
from tests.helpers.command import block, drop, patchq, work
from tests.helpers.gitrepo import write_config

DOCS = Path(__file__).parents[2] / "docs/events.md"


def events(repo: Path, *words: str) -> list[dict[str, Any]]:
    done = patchq("events", "--json", *words, cwd=repo)
    return [json.loads(line) for line in done.out.splitlines()]


def test_every_kind_of_change_is_told(repo: Path) -> None:
    queue = repo / ".patchq"
    drop(queue, {"x.md": f"---\nagent: w\n---\n{EDIT}"})
    patchq("run", cwd=repo)
    other = block("a.txt", "two\n", "II\n")
    drop(queue, {"y.md": other, "same.md": f"---\nagent: w\n---\n{EDIT}", "bad.md": BAD})
    drop(queue, {"needs.md": f"---\ndepends_on: [y, nobody]\n---\n{block('a.txt', 'one', '1')}"})
    patchq("run", cwd=repo, code=None)
    patchq("discard", "y", cwd=repo)
    drop(queue, {"x2.md": f"---\nretries: x\n---\n{EDIT}"})
    patchq("run", cwd=repo, code=None)
    patchq("accept", "x2", cwd=repo)
    write_config(repo, "version: 1\nmode: auto\n")
    patchq("revert", "x2", cwd=repo)
    told = events(repo, "--since", "0")
    found = {(one["kind"], one["batch"], one["state"]) for one in told}
    assert found >= {
        ("claimed", "x", None), ("proposed", "x", "proposed"), ("duplicate", "same", "duplicate"),
        ("refused", "bad", "rejected"), ("held", "needs", "held"), ("discarded", "y", "discarded"),
        ("refused", "needs", "rejected"), ("superseded", "x", "superseded"),
        ("accepted", "x2", "accepted"), ("applied", "revert-x2", "applied"),
        ("reverted", "x2", "reverted"),
    }  # fmt: skip
    by = {(one["kind"], one["batch"]): one for one in told}
    assert len(by) == len(told), "each of them once"
    assert by["superseded", "x"]["other"] == "x2"
    assert by["refused", "bad"]["codes"] == ["match.none"]
    assert (by["proposed", "x"]["agent"], by["proposed", "x"]["branch"]) == ("w", "patchq/x")


def test_what_an_event_holds_is_what_the_page_says(repo: Path) -> None:
    work(repo, x=EDIT)
    (_, told) = events(repo)
    rows = [line.split("|")[1] for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    named = [name.strip("` ") for row in rows for name in row.split(",")]
    assert sorted([*told, *EVENT_KINDS]) == sorted(named)
    assert told["at"]["iso"].endswith("Z")


def test_it_is_bounded_and_says_what_it_left_out(repo: Path) -> None:
    drop(repo / ".patchq", {f"{number}.md": BAD for number in range(26)})
    patchq("run", cwd=repo, code=1)
    whole = events(repo, "--since", "0")
    done = patchq("events", cwd=repo)
    assert [line.split()[2] for line in done.out.splitlines()] == [e["batch"] for e in whole[-50:]]
    left = len(whole) - 50
    assert done.err == f"patchq: {left} earlier events are left out: see --since 0\n"
    assert events(repo, "--since", whole[1]["id"]) == whole[2:]
    assert events(repo, "--since", whole[-1]["id"]) == []
    for id in ("x", ""):
        assert patchq("events", "--since", id, cwd=repo, code=2).err.count("\n") == 1


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_follows_until_it_is_to_end(repo: Path, how: signal.Signals, code: int) -> None:
    work(repo, first=BAD)
    command = [sys.executable, "-m", "patchq", "events", "--json", "--follow", "--since", "0"]
    with ending.running(command, cwd=repo, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout
        seen = [json.loads(follower.stdout.readline()) for _ in range(2)]
        work(repo, second=BAD)
        seen += [json.loads(follower.stdout.readline()) for _ in range(2)]
        assert [one["batch"] for one in seen] == ["first", "first", "second", "second"]
        follower.send_signal(how)
        assert follower.wait(60) == code
