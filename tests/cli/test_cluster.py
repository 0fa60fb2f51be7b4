"""`patchq cluster`, and what it says of a database that is missing, shut, older or newer."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from patchq.gate.queue.database import VERSION
from patchq.gate.queue.postgres.engine import PostgresQueue
from tests.helpers.command import patchq


def test_migrate_makes_the_tables_once_and_status_names_what_nobody_serves(
    repo: Path, bare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHQ_DATABASE", bare)
    assert "patchq cluster migrate" in patchq("cluster", "status", cwd=repo, code=2).err
    for made in (True, False):
        told = patchq("cluster", "migrate", "--json", cwd=repo).json()
        assert told == {"version": VERSION, "made": made}
    feeder = PostgresQueue(bare, lane_of=lambda data, name: data.decode())
    worker = PostgresQueue(bare, name="w1", lanes=["main"], beats=True)
    feeder.submit(b"main", "a.md")
    feeder.submit(b"release/1", "b.md")
    feeder.submit(b"release/1", "c.md")
    assert [claim.data for claim in worker.claim(9)] == [b"main"]
    with psycopg.connect(bare) as connection:
        connection.execute("update responses set came = came - 60")
    state = patchq("cluster", "status", "--json", cwd=repo).json()
    lanes = {lane["lane"]: lane for lane in state["lanes"]}
    assert lanes["main"]["owner"].startswith("w1 on ")
    assert (lanes["main"]["waiting"], lanes["main"]["claimed"]) == (0, 1)
    assert (lanes["release/1"]["owner"], lanes["release/1"]["waiting"]) == (None, 2)
    assert [one["name"] for one in state["workers"]] == ["w1"]
    said = patchq("cluster", "status", cwd=repo).out
    assert "lane release/1: 2 waiting, 0 in hand, 0 held; NOT SERVED" in said
    worker.close()
    feeder.close()


def test_what_keeps_it_from_connecting_is_told_without_the_password(
    repo: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given, code, says in (
        (make_conninfo(database, user="nobody", password="s3cret"), 3, "nobody"),
        (make_conninfo(database, port="1", password="s3cret"), 3, "cannot connect"),
        ("postgres//me:s3cret@host", 2, "connection string"),
        ("", 2, "PATCHQ_DATABASE"),
    ):
        monkeypatch.setenv("PATCHQ_DATABASE", given)
        told = patchq("cluster", "status", cwd=repo, code=code).err
        assert says in told
        assert "s3cret" not in told
