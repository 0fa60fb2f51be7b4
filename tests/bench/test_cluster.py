"""The cluster's bench at its smallest, and its judge before runs that are not right."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.cluster.fleet import Fleet, edit
from bench.cluster.judge import judge, same_bytes
from tests.helpers.gitrepo import git

PATCHQ = [sys.executable, "-m", "patchq"]


@pytest.fixture
def fleet(tmp_path: Path, bare: str) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path / "fleet", PATCHQ, bare, files=4)
    yield fleet
    fleet.close()


def test_it_judges_the_reports_by_what_landed(fleet: Fleet) -> None:
    sent = [edit(0, "main"), edit(1, "main", good=False), edit(2, "main")]
    fleet.workers(1)
    fleet.drop(sent)
    fleet.verdicts(sent)
    assert judge(fleet, sent) == []
    assert judge(fleet, [*sent, edit(3, "main")]) != [], "lost"
    assert "nobody sent" in "".join(judge(fleet, sent[1:]))
    told = fleet.root / "feeder/.patchq/done" / f"{sent[0].id}.report.json"
    right = told.read_text()
    told.write_text(right.replace('"applied"', '"rejected"'))
    assert "told to be rejected" in "".join(judge(fleet, sent))
    told.write_text(right)
    work = fleet.clone("person")
    git("checkout", "-q", "-B", "main", "origin/main", cwd=work)
    git("revert", "--no-edit", "HEAD", cwd=work)
    message = git("log", "-1", "--format=%B", "HEAD^", cwd=work)
    git("commit", "-q", "--amend", "-m", message, cwd=work)
    git("push", "-q", "origin", "main", cwd=work)
    assert "landed 2 times" in "".join(judge(fleet, sent))


@pytest.mark.parametrize(
    ("firsts", "right"),
    [
        ({"a": None, "b": "a", "c": "a"}, True),
        ({"a": None, "b": "a", "c": "b"}, True),  # `b` was held when `c` came
        ({"a": None, "b": "a", "c": "d"}, False),
        ({"a": None, "b": "c", "c": "b"}, False),
        ({"a": None, "b": None, "c": "b"}, False),
    ],
)
def test_of_the_same_bytes_one_is_applied_and_the_others_lead_to_it(
    firsts: dict[str, str | None], right: bool
) -> None:
    sent = [replace(edit(0, "main"), id=id) for id in firsts]
    told = {
        id: [{"id": id, "state": "duplicate" if other else "applied", "duplicate_of": other}]
        for id, other in firsts.items()
    }
    assert (same_bytes(sent, told) == []) is right
