"""The files of a tree, listed once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from patchq.core.model.listing import Listing
from patchq.gate.errors import ObjectDamaged

PATHS = ("a/b/c.py", "a/c.py", "c.py", "c.pyx", "d/C.py", "d/xc.py", "e/cafe\u0301", "e/n\nl")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("c.py", ["a/b/c.py", "a/c.py", "c.py"]),
        ("b/c.py", ["a/b/c.py"]),
        ("a/b/c.py", ["a/b/c.py"]),
        ("l", []),
        ("n\nl", ["e/n\nl"]),
    ],
)
def test_paths_by_their_last_names(path: str, found: list[str]) -> None:
    assert list(Listing.of(iter(PATHS)).ending(path)) == found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("C.PY", ["a/b/c.py", "a/c.py", "c.py", "d/C.py"]),
        ("caf\u00e9", ["e/cafe\u0301"]),
        ("cafe", []),
    ],
)
def test_names_that_differ_in_case_or_composition_only(name: str, found: list[str]) -> None:
    assert list(Listing.of(iter(PATHS)).alike(name)) == found


def test_the_paths_beside_one() -> None:
    listing = Listing.of(f"{i:03}" for i in range(100))
    assert listing.near("050x", 4) == ["049", "050", "051", "052"]
    assert len(listing.near("", 200)) == 100


def test_a_listing_follows_what_differs() -> None:
    old = Listing.of(iter(PATHS))
    old.contents.update({"c.py": b"old", "c.pyx": b"kept"})
    new = old.followed(gone={"c.py", "a/c.py"}, come={"c.py", "b.py"})
    assert new.paths == sorted({*PATHS, "b.py"} - {"a/c.py"})
    assert new.contents == {"c.pyx": b"kept"}
    assert list(new.ending("b.py")) == ["b.py"]
    assert old.paths == sorted(PATHS)


def test_a_listing_of_a_part_says_so() -> None:
    part = Listing.of(iter(PATHS), most=3)
    assert (part.paths, part.whole) == (list(PATHS[:3]), False)
    # What stands behind its end is not of it.
    assert part.followed(gone=set(), come={"b", "z"}).paths == ["a/b/c.py", "a/c.py", "b", "c.py"]
    assert Listing.of(iter(PATHS), most=len(PATHS)).whole


def test_what_cannot_be_read_is_left_out() -> None:
    def paths() -> Iterator[str]:
        yield "a"
        raise ObjectDamaged("a directory is missing")

    listing = Listing.of(paths())
    assert (listing.paths, listing.whole, listing.damaged) == (["a"], False, True)
