"""How the path of an edit is written, and what stands round a block."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import cycle

from bench.corpus.rewrites.forms import PathStyle
from bench.corpus.rewrites.kinds.beside import sample
from bench.corpus.rewrites.registry import Brief, Rewrite, Writer, exact, kind, refuse
from bench.corpus.rewrites.tasks import Change, applied, stands

_PREFIXED = ("unified_diff", "diff_fence", "mail")
"""Forms that put a prefix before each path."""

DRESSES: Mapping[str, Callable[[str], str]] = {
    "backticks": lambda p: f"`{p}`",
    "bold": lambda p: f"**{p}**",
    "bold backticks": lambda p: f"**`{p}`**",
    "heading": lambda p: f"### {p}",
    "heading backticks": lambda p: f"## `{p}`",
    "hash comment": lambda p: f"# {p}",
    "slash comment": lambda p: f"// {p}",
    "File:": lambda p: f"File: {p}",
    "Path:": lambda p: f"Path: {p}",
    "Filename:": lambda p: f"Filename: {p}",
    "colon": lambda p: f"{p}:",
    "backticks colon": lambda p: f"`{p}`:",
    "sentence": lambda p: f"In `{p}` the lines change as follows:",
    "bold File:": lambda p: f"**File:** `{p}`",
}


def _dressed(name: str) -> Writer:
    def make(brief: Brief) -> Rewrite | None:
        if brief.form.family != "blocks":
            return None
        if any("/" not in c.path and "." not in c.path for c in brief.changes):
            return None
        return exact(brief.response(style=PathStyle(line=DRESSES[name])))

    return make


for _name in DRESSES:
    kind(f"path: {_name}", "paths")(_dressed(_name))


def _spelt(brief: Brief, spell: Callable[[str], str]) -> str | None:
    """The changes under other paths; as a diff without prefixes, and never as a mail, whose paths
    git itself has written."""
    if brief.form.family == "mail":
        return None
    response = brief.response(style=PathStyle(spell=spell))
    if brief.form.family == "patch":
        response = re.sub(r"^(---|\+\+\+) [ab]/", r"\1 ", response, flags=re.MULTILINE)
    return response


@kind("path: ./", "paths")
def _dot(brief: Brief) -> Rewrite | None:
    response = _spelt(brief, lambda p: f"./{p}")
    return exact(response) if response else None


@kind("path: backslashes", "paths")
def _backslashes(brief: Brief) -> Rewrite | None:
    if not any("/" in c.path for c in brief.changes):
        return None
    directories = {p.rpartition("/")[0] for p in brief.task.before}
    if any(c.old is None and c.path.rpartition("/")[0] not in directories for c in brief.changes):
        return None
    if any("." not in c.path.rpartition("/")[2] for c in brief.changes):
        return None
    response = _spelt(brief, lambda p: p.replace("/", "\\"))
    return exact(response) if response else None


@kind("path: absolute", "paths")
def _absolute(brief: Brief) -> Rewrite | None:
    if brief.form.family in {"patch", "mail"} and brief.form.name != "v4a":
        return None
    return exact(brief.response(style=PathStyle(spell=lambda p: f"{brief.root}/{p}")))


@kind("path: three spellings in turn", "paths")
def _in_turn(brief: Brief) -> Rewrite | None:
    if brief.form.name in _PREFIXED or any("/" not in c.path for c in brief.changes):
        return None
    directories = {p.rpartition("/")[0] for p in brief.task.before}
    if any(c.old is None and c.path.rpartition("/")[0] not in directories for c in brief.changes):
        return None
    turn = cycle(["./{}", f"{brief.root}/{{}}", "{}"])
    return exact(brief.response(style=PathStyle(spell=lambda p: next(turn).format(p))))


@kind("path: a diff's prefix", "paths")
def _diffs_prefix(brief: Brief) -> Rewrite | None:
    """Files of the base tell what the prefix is."""
    tops = {p.partition("/")[0] for p in brief.task.before}
    known = any(c.path in brief.task.before for c in brief.changes)
    if brief.form.name in _PREFIXED or not known or tops & {"a", "b"}:
        return None
    directories = {p.rpartition("/")[0] for p in brief.task.before} - {""}
    if any(c.old is None and c.path.rpartition("/")[0] not in directories for c in brief.changes):
        return None
    prefix = brief.dice.choice("ab")
    return exact(brief.response(style=PathStyle(spell=lambda p: f"{prefix}/{p}")))


@kind("path: a diff's prefix before a new file alone", "paths")
def _prefix_alone(brief: Brief) -> Rewrite | None:
    directories = sorted({p.rpartition("/")[0] for p in brief.task.before} - {""})
    tops = {p.partition("/")[0] for p in brief.task.before}
    if (
        brief.form.name in _PREFIXED
        or not brief.form.creates
        or not directories
        or tops & {"a", "b"}
    ):
        return None
    path = f"{brief.dice.choice('ab')}/{brief.dice.choice(directories)}/new_part.txt"
    return refuse(brief.response([Change(path, None, "new\n")]))


@kind("path: absolute elsewhere", "paths")
def _outside(brief: Brief) -> Rewrite | None:
    if brief.form.family in {"patch", "mail"} and brief.form.name != "v4a":
        return None
    place = brief.dice.choice(["/home/ada/other", "/usr/src/app", "/workspace", "/repo"])
    return refuse(brief.response(style=PathStyle(spell=lambda p: f"{place}/{p}")))


@kind("path: climbs out", "paths")
def _climbs(brief: Brief) -> Rewrite | None:
    return refuse(brief.response(style=PathStyle(spell=lambda p: f"../{p}")))


def _prefixed(lead: str, first: str | None = None) -> Writer:
    def make(brief: Brief) -> Rewrite | None:
        if brief.form.family != "blocks":
            return None
        lines = brief.response().splitlines()
        blank = lead.rstrip()
        text = "\n".join(lead + line if line else blank for line in lines) + "\n"
        if first is not None:
            text = first + text[len(lead) :]
        return exact(f"The change:\n\n{text}")

    return make


kind("block in a quotation", "paths")(_prefixed("> "))


kind("block in a list", "paths")(_prefixed("    ", "1.  Change this:\n\n    "))


kind("block in a bullet", "paths")(_prefixed("  ", "- This one:\n\n  "))


@kind("two paths above one block", "paths")
def _two_paths(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    others = [p for p in brief.task.before if able and p != able[0].path and "." in p]
    if brief.form.family != "blocks" or not others:
        return None
    both = [able[0]]
    other = brief.dice.choice(others)
    assert able[0].old
    if stands(able[0].old, brief.task.before[other]):
        return None
    text = f"### {other}\n\nNow the lines in `{able[0].path}` change:\n\n"
    block = brief.response(both).partition("\n")[2]
    return exact(text + block, applied(brief.task.before, both))


@kind("two paths above one block that stands in both files", "paths")
def _two_homes(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if brief.form.family != "blocks" or not able:
        return None
    c = able[0]
    folder, _, name = c.path.rpartition("/")
    other = f"{folder}/other_{name}" if folder else f"other_{name}"
    text = f"### {other}\n\nNow the lines in `{c.path}` change:\n\n"
    before = {**brief.task.before, other: brief.task.before[c.path]}
    return refuse(text + brief.response([c]).partition("\n")[2], before=before)


@kind("prose names another file between blocks", "paths")
def _another_file(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if brief.form.family != "blocks" or len(able) < 2:
        return None
    first, second = able[0], able[1]
    others = [p for p in brief.task.before if p not in (first.path, second.path) and "/" in p]
    others = [p for p in others if not stands(second.old or "", brief.task.before[p])]
    if first.path != second.path or not others:
        return None
    text = brief.response([first]) + f"\nNow `{brief.dice.choice(others)}`, which uses it:\n\n"
    return refuse(text + brief.response([second]).partition("\n")[2])


HOME = {"lib/parts/one.txt": "one\ntwo\n"}
_ONE = "a/lib/parts/one.txt\n<<<<<<< SEARCH\ntwo\n=======\nTWO\n>>>>>>> REPLACE\n"


def _creation(path: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n"


sample("prefix: of a creation beside one of an edit", "paths", HOME,
       f"{_ONE}\n{_creation('a/lib/parts/two.txt')}",
       {"lib/parts/one.txt": "one\nTWO\n", "lib/parts/two.txt": "new\n"})  # fmt: skip
sample("prefix: of a creation alone", "paths", HOME, _creation("b/lib/parts/two.txt"), None)
sample("prefix: of a creation in a folder of that name", "paths", {**HOME, "b/x.txt": "x\n"},
       _creation("b/lib/parts/two.txt"), {"b/lib/parts/two.txt": "new\n"})  # fmt: skip
sample("prefix: of a creation in the root", "paths", HOME, _creation("a/two.txt"),
       {"a/two.txt": "new\n"})  # fmt: skip
