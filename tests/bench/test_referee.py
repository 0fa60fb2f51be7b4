"""The referee of storms and replays: he objects to every lie, and to nothing that is true."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bench.storm.intent import Edit, Intent, Record, load_record
from bench.storm.referee import Finding, Storm, judge
from tests.helpers.gitrepo import commit_files, git, make_repo

TEXT = [f"line {number}\n" for number in range(1, 31)]


def edited(lines: list[str], at: int, new: str) -> str:
    """The lines as text, with another one at the 1-based place."""
    return "".join([*lines[: at - 1], new, *lines[at:]])


@dataclass
class Stage:
    """A repository where a commit by hand changed line 5 since the response's base; the response
    changes line `at`, and the test plays the command."""

    root: Path
    at: int = 15
    records: list[Record] = field(default_factory=list)
    by_hand: dict[str, dict[str, str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.repo = make_repo(self.root / "repo", {"f.txt": "".join(TEXT), "other.txt": "x\n"})
        self.base = git("rev-parse", "HEAD", cwd=self.repo)
        self.hand(edited(TEXT, 5, "by hand\n"))
        self.moved = git("rev-parse", "HEAD", cwd=self.repo)

    def hand(self, text: str) -> str:
        oid = commit_files(self.repo, {"f.txt": text})
        self.by_hand[oid] = {"f.txt": text}
        return oid

    def intent(self) -> Intent:
        quote = TEXT[self.at - 2 : self.at + 1]
        new = edited(quote, 2, "asked\n")
        edit = Edit("replace", "f.txt", self.at - 2, "".join(quote), new)
        return Intent("r", self.base, True, (edit,), "search_replace", "free")

    def wanted(self) -> str:
        return edited(edited(TEXT, 5, "by hand\n").splitlines(keepends=True), self.at, "asked\n")

    def land(self, text: str, trailer: str = "Patchq-Batch: r", **more: str) -> str:
        digest = hashlib.sha256(b"r").hexdigest()
        message = f"Land\n\n{trailer}\nPatchq-Source: sha256:{digest}\n"
        return commit_files(self.repo, {"f.txt": text, **more}, message)

    def applied(self, text: str, trailer: str = "Patchq-Batch: r", **more: str) -> None:
        self.report("applied", self.land(text, trailer, **more))

    def report(self, state: str, commit: str | None = None, **more: Any) -> None:
        where = self.repo / ".patchq" / ("rejected" if state == "rejected" else "done")
        where.mkdir(parents=True, exist_ok=True)
        told: dict[str, Any] = {
            "id": "r",
            "state": state,
            "source": {"name": "r.md", "sha256": hashlib.sha256(b"r").hexdigest()},
            "base": {"commit": self.base, "how": "declared"},
            "commit": commit,
            "branch": None,
            "problems": [],
        }
        (where / "r.report.json").write_text(json.dumps(told | more))

    def refuse(self, code: str = "conflict.base", commit: str | None = None) -> None:
        collision = {"commit": commit or self.moved, "batch": None, "path": "f.txt"}
        problem: dict[str, Any] = {"code": code, "severity": "error", "path": "f.txt"}
        problem |= {"message": "collides", "conflicts_with": collision}
        self.report("rejected", problems=[problem])

    def judged(self, home: Path) -> Finding:
        after = git("rev-parse", "main", cwd=self.repo)
        digest = hashlib.sha256(b"r").hexdigest()
        record = Record(self.intent(), "r.md", digest, self.moved, after, 0.0)
        assert load_record(record.dump()) == record
        storm = Storm(self.repo, "main", self.base, [record], self.by_hand)
        return judge(storm, home, self.root / "merges.git")


Play = Callable[[Stage], object]


def lands_right(stage: Stage) -> None:
    stage.applied(stage.wanted())


@pytest.mark.parametrize(("at", "play"), [(15, lands_right), (5, Stage.refuse), (6, Stage.refuse)])
def test_the_referee_has_nothing_against_what_is_right(
    tmp_path: Path, home: Path, at: int, play: Play
) -> None:
    stage = Stage(tmp_path, at)
    play(stage)
    assert stage.judged(home).violations == []


def lets_a_stranger_in(stage: Stage) -> None:
    lands_right(stage)
    commit_files(stage.repo, {"other.txt": "z\n"})


def lands_elsewhere(stage: Stage) -> None:
    commit = stage.land(stage.wanted())
    git("reset", "-q", "--hard", stage.moved, cwd=stage.repo)
    stage.report("applied", commit)


def breaks_the_repository(stage: Stage) -> None:
    lands_right(stage)
    blob = git("rev-parse", f"{stage.base}:other.txt", cwd=stage.repo)
    (stage.repo / ".git/objects" / blob[:2] / blob[2:]).unlink()


def loses_a_commit(stage: Stage) -> None:
    lands_right(stage)
    stage.by_hand["0" * 40] = {"f.txt": "lost\n"}


def changes_a_commit(stage: Stage) -> None:
    lands_right(stage)
    stage.by_hand[stage.moved] = {"f.txt": "meant\n"}


LIES: dict[str, tuple[str, Play, int]] = {
    "other bytes": ("is not what was asked for",
                    lambda s: s.applied(s.wanted().replace("asked", "Asked")), 15),
    "at another place": ("is not what was asked for",
                         lambda s: s.applied(edited(TEXT, 16, "asked\n")), 15),
    "undoes the hand": ("is not what was asked for",
                        lambda s: s.applied(edited(TEXT, 15, "asked\n")), 15),
    "more": ("is not what was asked for",
             lambda s: s.applied(s.wanted(), **{"other.txt": "y\n"}), 15),
    "what collides": ("landed although", lands_right, 5),
    "beside": ("landed although", lands_right, 6),
    "without a trailer": ("lacks the trailer",
                          lambda s: s.applied(s.wanted(), trailer="Patchq-Batch: another"), 15),
    "elsewhere": ("is not on the target", lands_elsewhere, 15),
    "says nothing": ("0 verdicts", lambda s: s.land(s.wanted()), 15),
    "refuses without reason": ("refused without reason", Stage.refuse, 15),
    "refuses for a match": ("refused for", lambda s: s.refuse("match.none"), 5),
    "names an older commit": ("which did not land since", lambda s: s.refuse(commit=s.base), 5),
    "proposes": ("proposed for nothing",
                 lambda s: s.report("proposed", s.land(s.wanted()), branch="main"), 15),
    "loses a commit": ("a commit by hand is lost", loses_a_commit, 15),
    "changes a commit by hand": ("a commit by hand changed", changes_a_commit, 15),
    "lets a stranger in": ("nobody's commit", lets_a_stranger_in, 15),
    "breaks the repository": ("git fsck", breaks_the_repository, 15),
}  # fmt: skip


@pytest.mark.parametrize(("objection", "play", "at"), LIES.values(), ids=LIES)
def test_the_referee_objects_when_the_command(
    tmp_path: Path, home: Path, objection: str, play: Play, at: int
) -> None:
    stage = Stage(tmp_path, at)
    play(stage)
    assert any(objection in said for said in stage.judged(home).violations)
