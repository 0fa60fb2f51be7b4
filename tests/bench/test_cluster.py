"""The cluster's bench at its smallest, and its judge before runs that are not right."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest

from bench.cluster import server
from bench.cluster.fleet import Fleet, edit
from bench.cluster.gate import Gate, Statements, Trap, When
from bench.cluster.gated import to_socket
from bench.cluster.ground import ClusterGround
from bench.cluster.judge import Violation, judge
from bench.cluster.points import points
from bench.cluster.server import ServerOnce
from tests.helpers.gitrepo import git

PATCHQ = [sys.executable, "-m", "patchq"]


@pytest.fixture(scope="module")
def own() -> Iterator[ServerOnce]:
    with server.running() as own:
        yield own


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
    assert "nobody sent" in _said(judge(fleet, sent[1:]))
    told = fleet.root / "feeder/.patchq/done" / f"{sent[0].id}.report.json"
    right = told.read_text()
    told.write_text(right.replace('"applied"', '"rejected"'))
    assert "told to be rejected" in _said(judge(fleet, sent))
    told.write_text(right)
    work = fleet.clone("person")
    git("checkout", "-q", "-B", "main", "origin/main", cwd=work)
    git("revert", "--no-edit", "HEAD", cwd=work)
    message = git("log", "-1", "--format=%B", "HEAD^", cwd=work)
    git("commit", "-q", "--amend", "-m", message, cwd=work)
    git("push", "-q", "origin", "main", cwd=work)
    assert "landed 2 times" in _said(judge(fleet, sent))


@pytest.mark.parametrize(
    "rows",
    [
        "^after push, unheard, kill -9$",
        *(
            pytest.param(row, marks=pytest.mark.slow)
            for row in (
                "^[^,]*, kill -9$", "stopped", "cut", "of database", "of remote", "database away",
            )
        ),
    ],
)  # fmt: skip
def test_nothing_is_lost_at_a_point(tmp_path: Path, own: ServerOnce, rows: str) -> None:
    ground = ClusterGround(tmp_path, PATCHQ, own.conninfo, own, 1, quick=True)
    found = points(ground, 1, 0, rows, away=2.0)
    assert found
    assert [(row.times, row.wrong) for row in found] == [(1, [])] * len(found)


@pytest.mark.parametrize("when", ["before", "behind"])
def test_a_gate_keeps_a_statement_or_its_answer(own: ServerOnce, when: When) -> None:
    gate = Gate("me", partial(to_socket, own.conninfo), Statements)
    through = f"host=127.0.0.1 port={gate.port} sslmode=disable gssencmode=disable"
    name = f"gate_{when}"
    with (
        psycopg.connect(own.conninfo, autocommit=True) as beside,
        psycopg.connect(f"{own.conninfo} {through}", autocommit=True) as connection,
    ):
        beside.execute(f"create table {name} (n integer)".encode())
        insert = f"insert into {name} values (%s)".encode()
        for number in range(7):  # prepared from the sixth on
            connection.execute(insert, (number,))
        gate.trap = Trap(re.compile(b"insert into"), when)
        caught = gate.trap
        says = Thread(target=_fails, args=(connection, insert, (7,)))
        says.start()
        assert caught.met.wait(20)
        there = beside.execute(f"select count(*) from {name}".encode()).fetchone()
        assert there == (7 if when == "before" else 8,)
        caught.go(passes=False)
        says.join(20)
        assert connection.closed
    gate.close()


def _fails(connection: psycopg.Connection, *statement: Any) -> None:
    with pytest.raises(psycopg.OperationalError):
        connection.execute(*statement)


def _said(wrong: list[Violation]) -> str:
    return "\n".join(map(str, wrong))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_it_started_ends_with_it(tmp_path: Path, number: signal.Signals) -> None:
    words = ["-m", "bench.cluster", "--only", "many", "--work", str(tmp_path)]
    bench = subprocess.Popen(
        [sys.executable, *words], stderr=subprocess.DEVNULL, start_new_session=True
    )
    until = time.monotonic() + 60
    started = dict[int, str]()
    while not any(" worker" in said for said in started.values()):
        assert bench.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
        started = _below(bench.pid)
    assert any("postgres" in said for said in started.values())
    bench.send_signal(number)
    assert bench.wait(60) == 128 + number
    assert [said for pid, said in started.items() if Path(f"/proc/{pid}").exists()] == []
    assert [*tmp_path.iterdir()] == []


def _below(pid: int) -> dict[int, str]:
    """The command lines of what a process started, and of what that did, by their ids."""
    found = dict[int, str]()
    with suppress(OSError):
        for place in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, place.read_text().split()):
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
                found |= _below(child)
    return found
