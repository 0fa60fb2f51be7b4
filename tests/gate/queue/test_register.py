"""The register of ids: none is given twice, and what is left of a batch outlives its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zlib import crc32

import pytest

from patchq.core.model.values import Outcome, Problem, Source
from patchq.gate.queue.directory import DirectoryQueue
from patchq.gate.queue.layout import create
from patchq.gate.queue.register import Past, Register, shard
from patchq.gate.queue.spool import Folder
from patchq.gate.report.document import to_json
from patchq.gate.report.schema import Report

GONE = Past("rejected", 1_700_000_000, None, "match.none")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create(tmp_path / "queue")
    return tmp_path / "queue"


def register(root: Path) -> Register:
    folders = Folder(root / "known"), Folder(root / "ids", lasting=False)
    return Register(*folders, lambda id: False)


@pytest.fixture
def known(root: Path) -> Iterator[Register]:
    known = register(root)
    yield known
    known.close()


def give(known: Register, *ids: str) -> None:
    for number, id in enumerate(ids):
        assert known.reserve(f"{number:016x}-1", id, again=False) == id


def sync() -> None:
    """What is written is there; nothing dies here."""


class Died(Exception):
    pass


def die() -> None:
    raise Died


def text(root: Path, id: str) -> str:
    return (root / "known" / shard(id)).read_text()


def neighbours(count: int) -> list[str]:
    """Ids that one file knows."""
    ids = (f"id-{number}" for number in range(100 * 256))
    return [id for id in ids if shard(id) == shard("id-0")][:count]


def test_what_is_left_of_a_batch(root: Path, known: Register) -> None:
    give(known, "a", "b")
    assert (known.token("a"), known.past("a")) == ("0000000000000000-1", None)
    pasts = {"a": Past("superseded", 5, "b"), "b": GONE}
    known.bury(pasts, sync)
    known.bury(pasts, sync)
    later = register(root)
    assert {id: later.past(id) for id in pasts} == pasts
    assert (later.past("c"), later.knows("c"), later.next("a")) == (None, False, "a-2")
    assert text(root, "a").count("\n") == 1


def test_many_expire_and_few_lines_stay(root: Path, known: Register) -> None:
    ids = neighbours(60)
    give(known, *ids)
    written = 0
    for first in range(0, 50, 5):
        known.bury(dict.fromkeys(ids[first : first + 5], GONE), sync)
        lines = text(root, "id-0").splitlines()
        written += len(lines)
        assert len(lines) <= 60 * 4 / 3
    assert all(known.past(id) == GONE for id in ids[:50])
    assert [known.past(id) for id in ids[50:]] == [None] * 10
    assert all(map(known.knows, ids))


@pytest.mark.parametrize("again", [False, True])
def test_a_death_before_the_flush_leaves_what_was_known(
    root: Path, known: Register, again: bool
) -> None:
    ids = neighbours(4)
    give(known, *ids)
    with pytest.raises(Died):
        known.bury(dict.fromkeys(ids[:3], GONE), die)
    assert not list((root / "known").glob("*.tmp"))
    if again:  # somebody has an id between the two starts
        give(known, neighbours(5)[4])
    known.bury(dict.fromkeys(ids[:3], GONE), sync)
    assert [known.past(id) for id in ids] == [GONE, GONE, GONE, None]
    assert not known.unknown(ids)
    assert not list((root / "known").glob("*.tmp"))


def test_who_is_given_an_id_meanwhile_keeps_it(root: Path, known: Register) -> None:
    *ids, late = neighbours(5)
    give(known, *ids)
    known.bury(dict.fromkeys(ids, GONE), lambda: give(register(root), late))
    assert known.token(late)
    assert not list((root / "known").glob("*.tmp"))


@pytest.mark.parametrize("cut", [1, 8, 9, 12, 20, -2, -1])
def test_a_torn_line_spoils_no_other(root: Path, known: Register, cut: int) -> None:
    first, second, third = neighbours(3)
    give(known, first, second)
    path = root / "known" / shard(first)
    data = path.read_bytes()
    start = data.index(b"\n") + 1
    path.write_bytes(data[:start] + data[start:][:cut])
    assert known.reserve("000000000000000f-1", third, again=False) == third
    assert [known.token(id) for id in (first, third)] == [
        "0000000000000000-1",
        "000000000000000f-1",
    ]


def test_zeros_of_a_power_cut_go_with_the_next_shortening(root: Path, known: Register) -> None:
    first, second = neighbours(2)
    give(known, first)
    with (root / "known" / shard(first)).open("ab") as file:
        file.write(bytes(40))
    give(known, second)
    known.bury({first: GONE}, sync)
    assert (known.past(first), known.knows(second)) == (GONE, True)
    assert "\0" not in text(root, first)


def test_a_damaged_line_still_takes_its_id(root: Path, known: Register) -> None:
    give(known, "a")
    path = root / "known" / shard("a")
    path.write_text(path.read_text().replace("-1", "-2"))
    assert known.reserve("f-1", "a", again=False) == "a-2"
    path.write_text("")
    assert known.unknown(["a", "a-2"]) == ["a"]
    known.restore("a")
    assert known.unknown(["a", "a-2"]) == []


def test_many_at_once_get_one_each(root: Path) -> None:
    def some(worker: int) -> list[str]:
        own = register(root)
        return [own.reserve(f"{worker}-{n}", "fix", again=False) for n in range(25)]

    with ThreadPoolExecutor(4) as workers:
        ids = [id for each in workers.map(some, range(4)) for id in each]
    assert sorted(ids) == sorted(["fix", *(f"fix-{number}" for number in range(2, 101))])


# ---------------------------------------------------------------- what an older patchq left


def link(root: Path, **tokens: str) -> None:
    (root / "ids").mkdir(exist_ok=True)
    for id, token in tokens.items():
        (root / "ids" / id).symlink_to(token)


def test_links_count_until_they_are_taken_over(root: Path, known: Register) -> None:
    link(root, a="t-1", b="t-2")
    assert (known.token("a"), known.next("a")) == ("t-1", "a-2")
    assert known.reserve("t-3", "a", again=False) == "a-2"
    assert os.readlink(root / "ids/a-2") == "t-3"  # for whom is at work there
    with pytest.raises(Died):
        known.fold(die)
    known.fold(sync)
    assert not (root / "ids").exists()
    assert [known.token(id) for id in ("a", "b", "a-2")] == ["t-1", "t-2", "t-3"]
    assert text(root, "a").count("/a/") == 1
    assert known.reserve("t-3", "a", again=True) == "a-2"
    assert known.reserve("t-4", "a", again=False) == "a-3"
    known.fold(sync)


def test_what_is_no_link_stays_for_fsck(root: Path, known: Register) -> None:
    link(root, a="t-1")
    (root / "ids/b").write_text("what")
    known.fold(sync)
    assert (known.token("a"), known.next("b")) == ("t-1", "b-2")
    assert os.listdir(root / "ids") == ["b"]


# ---------------------------------------------------------------- in the queue


def test_a_batch_without_files_costs_few_bytes(root: Path) -> None:
    def report(id: str, source: Source) -> Report:
        problems = (Problem("match.none", "no"),)
        return to_json(Outcome(id, "rejected", source, "review", problems=problems))

    queue = DirectoryQueue(root)
    for number in range(600):
        claim = queue.adopt(b"%d" % number, "a-name-of-usual-size.md")
        id = queue.reserve(claim, f"fix-login-page-{number:05}")
        queue.publish(claim, report(id, claim.source), "page")
    files = sum(len(names) for *_, names in os.walk(root))
    assert files <= 3 * 600 + 2 * 256 + 1
    for first in range(0, 600, 100):
        queue.forget(*(f"fix-login-page-{number:05}" for number in range(first, first + 100)))
    queue.close()
    paths = [Path(where, name) for where, _, names in os.walk(root) for name in names]
    assert len(paths) <= 2 * 256 + 2
    paths.remove(root / "events")  # which never grows above a size of its own
    assert sum(path.stat().st_size for path in paths) <= 200 * 600
    lines = [line for path in (root / "known").iterdir() for line in path.read_bytes().splitlines()]
    assert all(line[:8] == b"%08x" % crc32(line[9:]) for line in lines)
