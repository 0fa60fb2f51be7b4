from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.gate.git.objects import (
    BLOB,
    EXECUTABLE,
    FILE,
    TREE,
    Identity,
    Leaf,
    Node,
    Trees,
    differences,
    graft,
    make_identity,
    nest,
    object_id,
    parse_identity,
    parse_tree,
)
from patchq.gate.git.reffiles import is_ref_name

Files = Mapping[str, Leaf]

LEAVES = st.tuples(st.sampled_from([FILE, EXECUTABLE]), st.sampled_from([c * 40 for c in "0af"]))
NAMES = st.lists(st.sampled_from(["a", "b", "c", "\udcff", "ü"]), min_size=1, max_size=4)


@st.composite
def trees(draw: st.DrawFn) -> Files:
    """Paths of files, none of which is another's directory."""
    files: dict[str, Leaf] = {}
    for names, leaf in draw(st.lists(st.tuples(NAMES, LEAVES), max_size=12)):
        path = "/".join(names)
        if not any(f"{one}/".startswith(f"{two}/") for one, two in _pairs(path, files)):
            files[path] = leaf
    return files


def _pairs(path: str, files: Files) -> list[tuple[str, str]]:
    return [pair for other in files for pair in ((path, other), (other, path))]


def store(files: Files, objects: dict[str, bytes]) -> str | None:
    """Write the files as git's tree objects; the root's id."""

    def write(node: object) -> Leaf:
        if not isinstance(node, dict):
            assert isinstance(node, tuple)
            return node
        raw = b"".join(
            b"%o %s\0%s"
            % (leaf[0], name.encode("utf-8", "surrogateescape"), bytes.fromhex(leaf[1]))
            for name, leaf in sorted((name, write(child)) for name, child in node.items())
        )
        oid = hashlib.sha1(raw).hexdigest()
        objects[oid] = raw
        return TREE, oid

    return write(nest(files))[1] if files else None


@given(trees(), trees())
def test_differences_are_what_differs(old: Files, new: Files) -> None:
    objects: dict[str, bytes] = {}
    kept = Trees(objects.__getitem__)
    found = differences(kept, store(old, objects), store(new, objects))
    paths = {path for path, _ in old.items() ^ new.items()}
    assert found == {path: (old.get(path), new.get(path)) for path in paths}


@given(trees(), trees())
def test_graft_makes_what_is_declared(old: Files, new: Files) -> None:
    objects: dict[str, bytes] = {}
    kept = Trees(objects.__getitem__)

    def keep(raw: bytes) -> str:
        oid = object_id(2, raw)
        objects[oid] = raw
        return oid

    def made(base: str | None, changes: Mapping[str, Leaf | None]) -> str | None:
        return graft(kept, keep, base, nest(changes))

    whole = made(None, new)
    assert differences(Trees(objects.__getitem__), None, whole) == {p: (None, new[p]) for p in new}
    assert made(made(None, old), {path: new.get(path) for path in {**old, **new}}) == whole


def test_graft_sorts_as_git_does_and_keeps_the_rest() -> None:
    odd = b"0100664 a.b\0" + b"x" * 20
    raw = odd + b"40000 a\0" + b"y" * 20 + b"100644 a0\0" + b"z" * 20
    kept: list[bytes] = []

    def keep(data: bytes) -> str:
        kept.append(data)
        return ""

    changes: list[Node] = [{"a": None}, {"b": None}, {"a": (FILE, "00" * 20)}]
    for change in changes:
        graft(Trees({"base": raw}.__getitem__), keep, "base", change)
    assert kept == [
        odd + b"100644 a0\0" + b"z" * 20,
        raw,
        b"100644 a\0" + b"\0" * 20 + odd + b"100644 a0\0" + b"z" * 20,
    ]


def test_equal_directories_are_not_read() -> None:
    objects: dict[str, bytes] = {}
    same = {"big/x": (FILE, "0" * 40), "big/y": (FILE, "a" * 40)}
    roots = [store({**same, "a": (FILE, digit * 40)}, objects) for digit in "0a"]
    read: list[str] = []

    def reader(oid: str) -> bytes:
        read.append(oid)
        return objects[oid]

    assert set(differences(Trees(reader), roots[0], roots[1])) == {"a"}
    assert read == roots


def test_leaf_is_what_stands_at_a_path() -> None:
    objects: dict[str, bytes] = {}
    lib = store({"a.py": (FILE, "0a" * 20), "run": (0o100775, "0b" * 20)}, objects)
    assert lib
    raw = b"0100664 old\0" + b"\x0c" * 20 + b"40000 lib\0" + bytes.fromhex(lib)
    objects["root"] = raw + b"120000 \xff\0" + b"\x0d" * 20
    found = {
        "lib": (TREE, lib), "lib/": (TREE, lib), "lib/a.py": (FILE, "0a" * 20),
        "lib/run": (EXECUTABLE, "0b" * 20), "old": (FILE, "0c" * 20),
        "\udcff": (0o120000, "0d" * 20),
    }  # fmt: skip
    none = ["", "/", "/lib", "lib//a.py", "old/", "old/x", "li", "lib/a.py/", "\ud800", "lib\0"]
    trees = Trees(objects.__getitem__)
    assert {path: trees.leaf("root", path) for path in [*found, *none]} == {
        **found,
        **dict.fromkeys(none),
    }


def test_only_so_many_trees_are_kept() -> None:
    read: list[str] = []

    def reader(oid: str) -> bytes:
        read.append(oid)
        return b"".join(b"100644 %s-%d\0%b" % (oid.encode(), n, b"x" * 20) for n in range(1000))

    trees = Trees(reader)
    for _ in range(2):
        for n in range(60):
            assert trees.leaf(str(n), f"{n}-999")
    assert len(read) == 2 * 60


def test_what_was_found_in_a_tree_is_forgotten_with_it() -> None:
    objects = {"root": b"100644 a\0" + b"\x0a" * 20}
    trees = Trees(objects.__getitem__)
    assert [trees.leaf("root", path) for path in "aab"] == [(FILE, "0a" * 20)] * 2 + [None]
    del objects["root"]
    assert trees.leaf("root", "b") is None
    trees.clear()
    with pytest.raises(KeyError):
        trees.leaf("root", "a")
    with pytest.raises(KeyError):
        trees.leaf("root", "b")


def test_parse_tree_keeps_nul_and_odd_bytes() -> None:
    oid = bytes(range(20))
    raw = b"100755 \xff odd\0" + oid + b"40000 dir\0" + b"\n" * 20
    assert parse_tree(raw) == {"\udcff odd": (EXECUTABLE, oid.hex()), "dir": (TREE, "0a" * 20)}


def test_blob_id_is_gits() -> None:
    assert object_id(BLOB, b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada <ada@x.org>", ("Ada", "ada@x.org")),
        ("  Ada  Lovelace   <ada@x.org> ", ("Ada  Lovelace", "ada@x.org")),
        ("Ada\nInjected: x <ada@x.org>", ("AdaInjected: x", "ada@x.org")),
        ("Ada <ada@x.org\nparent 123>", ("Ada", "ada@x.orgparent 123")),
        ("Ada\0 <a@x>", ("Ada", "a@x")),
        ("Ada <>", ("Ada", "")),
        ('"Ada," <a@x>', ("Ada", "a@x")),
        ("<a@x>", None),
        (".,; <a@x>", None),
        ("Ada", None),
        ("Ada <a@x> <b@x>", None),
        ("Ada >< <a@x>", None),
        ("", None),
    ],
)
def test_parse_identity(text: str, expected: tuple[str, str] | None) -> None:
    found = parse_identity(text)
    assert (found and (found.name, found.email)) == expected


@pytest.mark.parametrize(
    ("offset", "zone"), [(0, "+0000"), (90, "+0130"), (-90, "-0130"), (-720, "-1200")]
)
def test_identity_as_in_a_header(offset: int, zone: str) -> None:
    assert str(Identity("Ada", "a@x", 5, offset)) == f"Ada <a@x> 5 {zone}"


@given(st.text(), st.text())
def test_no_identity_breaks_out_of_its_line(name: str, email: str) -> None:
    identity = make_identity(name, email)
    line = str(identity) if identity else "x <> 0 +0000"
    assert not set("\n\r\0") & set(line)
    assert (line.count("<"), line.count(">")) == (1, 1)


@pytest.mark.parametrize("name", ["refs/heads/main", "refs/heads/a/b-c_d.e", "refs/patchq/ü"])
def test_ref_names(name: str) -> None:
    assert is_ref_name(name)
