"""How the path of an edit is written, and what stands round a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.corpus.rewrites.forms import PathStyle
from bench.corpus.rewrites.registry import Brief, Rewrite, Writer, either, exact, kind, refuse
from bench.corpus.rewrites.tasks import applied

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


@kind("path: ./", "paths")
def _dot(brief: Brief) -> Rewrite | None:
    return exact(brief.response(style=PathStyle(spell=lambda p: f"./{p}")))


@kind("path: backslashes", "paths")
def _backslashes(brief: Brief) -> Rewrite | None:
    if not any("/" in c.path for c in brief.changes):
        return None
    directories = {p.rpartition("/")[0] for p in brief.task.before}
    if any(c.old is None and c.path.rpartition("/")[0] not in directories for c in brief.changes):
        return None
    return exact(brief.response(style=PathStyle(spell=lambda p: p.replace("/", "\\"))))


@kind("path: absolute", "paths")
def _absolute(brief: Brief) -> Rewrite | None:
    if brief.form.family in {"patch", "mail"} and brief.form.name != "v4a":
        return None
    return exact(brief.response(style=PathStyle(spell=lambda p: f"{brief.root}/{p}")))


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


kind("block in a list", "paths")(_prefixed("    ", "1.  "))


kind("block in a bullet", "paths")(_prefixed("  ", "- "))


@kind("two paths above one block", "paths")
def _two_paths(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    others = [p for p in brief.task.before if able and p != able[0].path and "." in p]
    if brief.form.family != "blocks" or not others:
        return None
    both = [able[0]]
    other = brief.dice.choice(others)
    assert able[0].old
    if able[0].old in brief.task.before[other]:
        return None
    text = f"### {other}\n\nNow the lines in `{able[0].path}` change:\n\n"
    block = brief.response(both).partition("\n")[2]
    after = {**brief.task.before, able[0].path: applied(brief.task.before, both)[able[0].path]}
    return either(text + block, after)


@kind("prose names another file between blocks", "paths")
def _another_file(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if brief.form.family != "blocks" or len(able) < 2:
        return None
    first, second = able[0], able[1]
    others = [p for p in brief.task.before if p not in (first.path, second.path) and "/" in p]
    if first.path != second.path or not others:
        return None
    text = brief.response([first]) + f"\nNow `{brief.dice.choice(others)}`, which uses it:\n\n"
    return refuse(text + brief.response([second]).partition("\n")[2])
