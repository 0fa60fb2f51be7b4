"""Edits that meet: on one base, one upon the other, and where the base has moved on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.corpus.rewrites.kinds.beside import fenced, sample
from bench.corpus.rewrites.registry import (
    BASE,
    Brief,
    Files,
    Rewrite,
    exact,
    kind,
    nothing_new,
    refuse,
)
from bench.corpus.rewrites.tasks import Change, applied, lines_of, stands

PATH = "notes/list.txt"
OTHER = "notes/other.txt"
LIST = "".join(f"{word}\n" for word in ("one", "two", "three", "four", "five", "six", "seven"))


def _blocks(*pairs: tuple[str, str], path: str = PATH) -> str:
    return "\n".join(
        f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n" for old, new in pairs
    )


def _calls(*pairs: tuple[str, str]) -> str:
    return fenced([{"file_path": PATH, "old_string": old, "new_string": new} for old, new in pairs])


def _patch(body: str) -> str:
    return f"*** Begin Patch\n*** Update File: {PATH}\n{body}*** End Patch\n"


def _rename(old: str, new: str) -> str:
    return f"{old}\n<<<<<<< RENAME\n{new}\n>>>>>>> RENAME\n"


_TWICE = "alpha\nbeta\nalpha\n"
_FOUR = LIST.replace("four", "FOUR")
_READ: tuple[tuple[str, Files, str, Mapping[str, str | None]], ...] = (
    ("insertions at one point keep their order", {PATH: LIST},
     _blocks(("three\n", "three\na\n"), ("three\n", "three\nb\n")),
     {PATH: LIST.replace("three\n", "three\na\nb\n")}),
    ("one edit in two forms", {PATH: LIST},
     _blocks(("four\n", "FOUR\n")) + "\n" + _patch("@@\n-four\n+FOUR\n"), {PATH: _FOUR}),
    ("neighbours that share no line", {PATH: LIST},
     _blocks(("three\n", "THREE\n"), ("four\n", "FOUR\n")),
     {PATH: _FOUR.replace("three", "THREE")}),
    ("quotes that overlap and changes that do not", {PATH: LIST},
     _blocks(("two\nthree\n", "TWO\nthree\n"), ("three\nfour\n", "three\nFOUR\n")),
     {PATH: _FOUR.replace("two", "TWO")}),
    ("a chain of blocks", {PATH: LIST}, _blocks(("four\n", "4\n"), ("4\n", "FOUR\n")),
     {PATH: _FOUR}),
    ("an edit of a file that is created", {},
     _blocks(("", LIST)) + "\n" + _blocks(("four\n", "FOUR\n")), {PATH: _FOUR}),
    ("a claim before the change of its line", {PATH: LIST},
     _blocks(("four\n", "four\n"), ("four\n", "FOUR\n")), {PATH: _FOUR}),
    ("a file at a renamed one's old name", {PATH: LIST},
     _rename(PATH, OTHER) + "\n" + _blocks(("", "new\n")), {PATH: "new\n", OTHER: LIST}),
)  # fmt: skip
_REFUSED: tuple[tuple[str, Files, str], ...] = (
    ("insertions at one point in two forms", {PATH: LIST},
     _blocks(("three\n", "three\na\n")) + "\n" + _patch("@@\n three\n+b\n four\n")),
    ("two changes of one line in two forms", {PATH: LIST},
     _blocks(("four\n", "FOUR\n")) + "\n" + _patch("@@\n-four\n+Four\n")),
    ("a change between another edit's own changes", {PATH: LIST},
     _blocks(("two\nthree\nfour\nfive\n", "TWO\nthree\nfour\nFIVE\n"), ("four\n", "FOUR\n"))),
    ("a claim behind the change of its line", {PATH: LIST},
     _blocks(("three\nfour\n", "three\nFOUR\n"), ("four\nfive\n", "four\nfive\n"))),
    ("a block that is ambiguous on the base alone", {PATH: _TWICE},
     _blocks(("beta\nalpha\n", "beta\ngamma\n"), ("alpha\n", "ALPHA\n"))),
    ("an edit of a file whose creation is refused", {PATH: LIST},
     _blocks(("", "other\n"), ("other\n", "OTHER\n"))),
)  # fmt: skip
for _name, _files, _text, _after in _READ:
    sample(_name, "readings", _files, _text, _after)
for _name, _files, _text in _REFUSED:
    sample(_name, "readings", _files, _text, None)


# ---------------------------------------------------------------- calls alone


def _alone(
    name: str,
    before: str,
    words: Sequence[tuple[str, Mapping[str, object]]],
    after: str | None,
) -> None:  # fmt: skip
    """A kind of calls that stand behind those of the task in an API's answer."""

    @kind(name, "calls in sequence")
    def _write(brief: Brief) -> Rewrite | None:
        if brief.form.name != "messages" or PATH in brief.task.before:
            return None
        value = json.loads(brief.response())
        for number, (tool, own) in enumerate(words):
            use = {"type": "tool_use", "id": f"toolu_more_{number}", "name": tool}
            value["content"].append({**use, "input": {"file_path": PATH, **own}})
        files = {**brief.task.before, PATH: before}
        result = {**brief.task.result(), PATH: before}
        if after is None:
            return refuse(json.dumps(value), before=files, losses=[result], extra=len(words))
        wanted = {**result, PATH: after}
        return exact(json.dumps(value), wanted, before=files, losses=[result], extra=len(words))


def _edit(old: str, new: str, **more: object) -> tuple[str, Mapping[str, object]]:
    return "Edit", {"old_string": old, "new_string": new, **more}


_WRITE = "Write", {"content": LIST + "eight\n"}
_OVERLAP = _edit("three\nfour\n", "three\nFOUR\n"), _edit("four\nfive\n", "four\nFIVE\n")
_MEETING = _edit("beta\nalpha\n", "beta\ngamma\n"), _edit("alpha\n", "ALPHA\n")
_SPREAD = _edit("x = a\n", "x = a\ny = a\n"), _edit("a", "b", replace_all=True)
_WORD = _edit("a", "z", replace_all=True), _edit("b = z\n", "b = z + 1\n")
for _name, _start, _words, _end in (
    ("a chain", LIST, (_edit("four\n", "4\n"), _edit("4\n", "FOUR\n")), _FOUR),
    ("one twice", LIST, (_edit("four", "FOUR"), _edit("four", "FOUR")), _FOUR),
    ("write after edit", LIST, (_edit("four", "FOUR"), _WRITE), LIST + "eight\n"),
    ("edit after write", LIST, (_WRITE, _edit("eight\n", "EIGHT\n")), LIST + "EIGHT\n"),
    ("quotes that overlap", LIST, _OVERLAP, _FOUR.replace("five", "FIVE")),
    ("two readings that differ", "x = a\n", _SPREAD, "x = b\ny = b\n"),
    ("the only place that is left", _TWICE, _MEETING, "ALPHA\nbeta\ngamma\n"),
    ("a word everywhere, then its line", "a = 1\nb = a\nc = a\n", _WORD,
     "z = 1\nb = z + 1\nc = z\n"),
    ("a claim of a line that is gone", LIST,
     (_edit("four\n", "FOUR\n"), _edit("four\n", "four\n")), None),
):  # fmt: skip
    _alone(f"calls: {_name}", _start, _words, _end)


# ---------------------------------------------------------------- there already


@kind("there already, in part", "there already")
def _partly(brief: Brief) -> Rewrite | None:
    """Some of the edits stand already; the others land."""
    able = brief.replacements()
    if brief.form.family == "files" or len(able) != len(brief.changes) or len(able) < 2:
        return None
    done, rest = able[0], able[1:]
    if any(c.path == done.path for c in rest):
        return None
    new, old = lines_of(done.new or ""), lines_of(done.old or "")
    if not {x for x in new if any(map(str.isalnum, x))} - set(old) or not set(new) & set(old):
        return None
    before = applied(brief.task.before, [done])
    if before[done.path].count(done.new or "") != 1:
        return None
    if stands(done.old or "", before[done.path].replace(done.new or "", "")):
        return None
    return exact(brief.response(), brief.task.result(), before=before)


@kind("there already, on a base that has moved", "there already")
def _delivered(brief: Brief) -> Rewrite | None:
    """The same changes landed since the base that the response names."""
    if brief.form.family in {"files", "mail", "api"} or not brief.replacements():
        return None
    text = f"---\nbase: {BASE}\n---\n{brief.response()}"
    rewrite = nothing_new(text, brief.task.before)
    return replace(rewrite, tip=brief.task.result(), after=brief.task.result())


# ---------------------------------------------------------------- a base that has moved


def _moved(brief: Brief, response: str, more: Files) -> Rewrite:
    tip = {**brief.task.before, **more}
    return replace(exact(response, {**brief.task.result(), **more}), tip=tip)


@kind("moved base: another file", "moved base")
def _elsewhere(brief: Brief) -> Rewrite | None:
    if PATH in brief.task.before or brief.form.family == "api":
        return None
    return _moved(brief, f"---\nbase: {BASE}\n---\n{brief.response()}", {PATH: LIST})


@kind("moved base: lines above in the same file", "moved base")
def _above(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if not able or len(able) != len(brief.changes) or brief.form.family in {"api", "files"}:
        return None
    c = able[0]
    if any(x.at < 8 for x in able if x.path == c.path) or c.path.endswith((".py", ".json")):
        return None
    lines = lines_of(brief.task.before[c.path])
    if not lines[0].strip() or lines.count(lines[0]) > 1:
        return None
    own = [x for x in able if x.path == c.path]
    first = Change(c.path, lines[0], lines[0] + "added_above = 1\n", 0)
    tip = applied(brief.task.before, [first])
    after = {**brief.task.result(), c.path: applied(brief.task.before, [first, *own])[c.path]}
    response = f"---\nbase: {BASE}\n---\n{brief.response()}"
    return replace(exact(response, after), tip=tip)


@kind("moved base: the very lines", "moved base")
def _touched(brief: Brief) -> Rewrite | None:
    pairs = [
        (c, line)
        for c in brief.replacements()
        for line in lines_of(c.old or "")
        if line not in lines_of(c.new or "")
    ]
    if not pairs or brief.form.family in {"api", "files"}:
        return None
    c, gone = pairs[0]
    lines = lines_of(c.old or "")
    lines[lines.index(gone)] = "somebody_else = 1\n"
    changed = replace(c, new="".join(lines))
    tip = applied(brief.task.before, [changed])
    response = f"---\nbase: {BASE}\n---\n{brief.response()}"
    return replace(refuse(response), tip=tip)


_X = "x = a\n"
_ALL = {"id": "c1", "type": "modification", "file": PATH, "replacement": "b", "all": True,
        "searchPattern": {"before": "", "target": "a", "after": ""}}  # fmt: skip
_SPREAD_TEXT = _blocks((_X, _X + "y = a\n")) + "\n" + fenced({"contextualEdits": [_ALL]})
_SWAP = f"{_rename(PATH, OTHER)}\n{_rename(OTHER, PATH)}\n"
_BIG = LIST.upper()
sample("two readings that differ, in two forms", "readings", {PATH: _X}, _SPREAD_TEXT, None)
sample("an edit in a swap whose quote stands in both files", "readings",
       {PATH: LIST, OTHER: LIST + "eight\n"}, _SWAP + _blocks(("four\n", "FOUR\n")),
       None)  # fmt: skip
sample("an edit in a swap whose quote stands in one file", "readings",
       {PATH: LIST, OTHER: _BIG}, _SWAP + _blocks(("four\n", "4\n"), path=OTHER),
       {PATH: _BIG, OTHER: LIST.replace("four", "4")})  # fmt: skip
