"""Bytes told by what a file held: git's deltas, as git itself writes them and as nobody should."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from patchq.core.text.binary_patch import BadDelta, patched
from tests.helpers.command import patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo

BASE = b"0123456789" * 30
COPY = b"\x91\x05\x0a"
"""Copy ten bytes from the sixth on."""
MOST = 1000


def delta(of: int, makes: int, pieces: bytes) -> bytes:
    return number(of) + number(makes) + pieces


def number(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + number(value >> 7)


BAD = {
    "nothing": b"",
    "another base": delta(299, 10, COPY),
    "a size without an end": b"\xff" * 20,
    "more than it says": delta(300, 9, COPY),
    "less than it says": delta(300, 11, COPY),
    "an instruction that is none": delta(300, 10, b"\0" + COPY),
    "copied from behind the end": delta(300, 20, b"\x93\x20\x01\x14"),
    "cut in a copy": delta(300, 10, COPY[:2]),
    "very many pieces": delta(300, 200_000, b"\x90\x01" * 200_000),
    "too much": delta(300, MOST + 1, COPY * 101),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_no_delta_of_the_file(data: bytes) -> None:
    with pytest.raises(BadDelta):
        patched(BASE, data, MOST if len(data) < MOST else len(data))


def test_no_bytes_make_more_than_they_may() -> None:
    random, made = Random(5), 0
    for _ in range(3000):
        data = delta(300, random.randrange(900), random.randbytes(random.randrange(12)))
        try:
            made += len(patched(BASE, data, MOST)) <= MOST
        except BadDelta:
            continue
    assert made


def test_what_git_tells_by_a_delta_lands_on_its_base_alone(tmp_path: Path) -> None:
    random = Random(1)
    old = b"\0" + random.randbytes(9000)
    new = old[:3000] + b"another middle" + old[2500:] + random.randbytes(50)
    repo = make_repo(tmp_path / "repo", {"x.bin": old})
    patchq("init", cwd=repo)
    (repo / "x.bin").write_bytes(new)
    diff = git("diff", "--binary", cwd=repo) + "\n"
    assert "\ndelta " in diff.split("literal")[0]
    git("checkout", "-q", ".", cwd=repo)
    patchq("apply", "-", cwd=repo, stdin=diff)
    blob = git("hash-object", "--stdin", cwd=repo, stdin=new)
    assert git("rev-parse", "patchq/response:x.bin", cwd=repo) == blob
    commit_files(repo, {"x.bin": old[:-1]})
    patchq("apply", "-", cwd=repo, stdin=f"---\nid: late\n---\n{diff}", code=1)
    (problem,) = report(repo / ".patchq", "late")["problems"]
    assert (problem["code"], problem["path"]) == ("conflict.base", "x.bin")
