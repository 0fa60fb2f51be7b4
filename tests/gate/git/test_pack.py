"""Packs as git reads them: the index is the one that git makes of the pack."""

from __future__ import annotations

import hashlib
import subprocess
import zlib
from pathlib import Path

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.gate.git import pack as packs
from patchq.gate.git.objects import BLOB, object_id
from patchq.gate.git.pack import New, pack

TREE_KIND = 2
LONG = bytes(range(256)) * 1000


def chain(length: int) -> list[bytes]:
    """Texts, each of which is the one before with another line in its middle."""
    lines = [b"line %d\n" % n for n in range(40)]
    texts = []
    for n in range(length):
        lines[20] = b"changed %d\n" % n
        texts.append(b"".join(lines))
    return texts


TEXTS = {
    "one": [b""],
    "a chain that is deeper than git allows": chain(120),
    "copies of more than one instruction": [LONG, LONG[:70_000] + b"!" * 300 + LONG[70_000:]],
    "nothing but what was there": [b"ab" * 200, b"ab" * 199, b"ab" * 201],
    "nothing in common": [b"a" * 500, b"b" * 500],
}


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_git_reads_what_is_written(tmp_path: Path, texts: list[bytes]) -> None:
    oids = [object_id(BLOB, text) for text in texts]
    origins = [None, *oids]
    news = {o: New(BLOB, text, of) for o, text, of in zip(oids, texts, origins, strict=False)}
    body, index = pack(news)
    assert len(body) < 1.1 * sum(map(len, {texts[0], *texts[50::51]})) + 400 * len(texts)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/pack-1.pack").write_bytes(body)
    (tmp_path / "pack/pack-1.idx").write_bytes(index)
    words = ["git", "index-pack", "--strict", "-o", "git.idx", "pack/pack-1.pack"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "git.idx").read_bytes() == index
    odb = pygit2.Odb(str(tmp_path))
    assert [odb.read(pygit2.Oid(hex=oid))[1] for oid in oids] == texts


@pytest.mark.parametrize("entries", [1, 3, 10, 50, 100, 1000])
def test_a_tree_is_compressed_as_one(entries: int) -> None:
    """In parts it takes longer, and more room, than in one piece with tables of any size."""
    ids = (hashlib.sha1(b"%d" % number).digest() for number in range(entries))
    data = b"".join(b"100644 mod%03d.py\0%b" % item for item in enumerate(ids))
    body, _ = pack({object_id(TREE_KIND, data): New(TREE_KIND, data)})
    assert len(body) <= 12 + 3 + len(zlib.compress(data, 1)) + 20


def test_places_that_take_more_than_31_bits() -> None:
    """They stand in a table of their own, behind all others."""
    places = {"00" * 20: 12, "ff" * 20: 5 << 31}
    index = packs.index(places, dict.fromkeys(places, 0), b"x" * 20)
    near = 8 + 4 * 256 + 2 * 20 + 2 * 4
    assert index[near : near + 16] == bytes.fromhex("0000000c 80000000 0000000280000000")


@given(st.binary(max_size=300), st.binary(max_size=300), st.binary(max_size=300))
def test_delta_makes_the_new_of_the_old(first: bytes, middle: bytes, last: bytes) -> None:
    old, new = first + last, first + middle + last
    assert _applied(packs.delta(old, new), old) == new
    assert _applied(packs.delta(new, old), new) == old


def _applied(delta: bytes, old: bytes) -> bytes:
    """As git's `patch_delta` does."""
    at, sizes = 0, []
    for _ in range(2):
        size = shift = 0
        while True:
            byte = delta[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        sizes.append(size)
    assert sizes[0] == len(old)
    made = b""
    while at < len(delta):
        code = delta[at]
        at += 1
        if code & 0x80:
            place = length = 0
            for bit in range(7):
                if code >> bit & 1:
                    value = delta[at] << 8 * (bit % 4)
                    at += 1
                    place, length = (place + value, length) if bit < 4 else (place, length + value)
            length = length or 1 << 16
            made += old[place : place + length]
        else:
            made += delta[at : at + code]
            at += code
    assert len(made) == sizes[1]
    return made
