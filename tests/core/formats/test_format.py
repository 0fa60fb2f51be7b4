"""A format is one file and one line of the registry: what follows from the two, for one more."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.cli import main
from patchq.core import formats
from patchq.core.formats import registry
from patchq.core.formats.catalogue import NOTHING, Catalogue
from patchq.core.formats.format import (
    Document,
    FenceOpening,
    Format,
    Opening,
    Piece,
    Sign,
    UnreadableEdit,
)
from patchq.core.model.ops import Create, Replace
from patchq.core.model.values import Edit, Parsed, Problem
from tests.helpers.blocks import BASE, BLOCK

# ---------------------------------------------------------------- its one file

INSTRUCTIONS = """\
Answer with every new file like this:

KEEP path/to/file.py
| a line of the file
"""


def read(doc: Document, i: int) -> Piece | None:
    """A file whose lines are led by `| `, under its path."""
    path = doc.lines[i].strip(":= ").removeprefix("KEEP").strip(" =")
    if not path:
        raise UnreadableEdit(i, "expected a path behind `KEEP`", "write `KEEP path`")
    end = i + 1
    while end < len(doc.lines) and doc.lines[end].startswith("| "):
        end += 1
    text = "".join(line.removeprefix("| ") + "\n" for line in doc.lines[i + 1 : end])
    return Piece((Edit("", "keep", (i + 1, end), path, Create(text)),), end)


def read_fenced(doc: Document, i: int) -> Piece | None:
    """The same in a fence of its language, with the path on the fence's line."""
    end = doc.lines.index("```", i + 1)
    text = "".join(line + "\n" for line in doc.lines[i + 1 : end])
    path = doc.lines[i].partition(" ")[2]
    return Piece((Edit("", "keep", (i + 1, end + 1), path, Create(text)),), end + 1)


KEEP = Format(
    "keep",
    INSTRUCTIONS,
    openings=(Opening(read, ("KEEP", "==+ KEEP"), lambda line: "KEEP" in line[:9]),),
    fences=(FenceOpening(read_fenced, lambda mark: mark.info.startswith("keep "), turn=0),),
    signs=(
        Sign("a file to keep", r"\s+(?i:keep):"),
        Sign("lines to keep", r"\bkept at ", anywhere=True),
        Sign("a line to keep", r"\| ", languages=frozenset({"keep"})),
    ),
)


# ---------------------------------------------------------------- and its line


@pytest.fixture
def keep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry with one format more, in front of the others."""
    formats = Catalogue((KEEP, *registry.FORMATS.values()))
    monkeypatch.setattr(registry, "FORMATS", formats)
    monkeypatch.setattr("patchq.cli.formats.FORMATS", formats)


def parse(text: str) -> Parsed:
    return formats.parse(text, BASE.__contains__)


def refusal(text: str) -> Problem:
    (problem,) = parse(text).problems
    return problem


LINES = ["KEEP src/new.py", "  KEEP src/new.py", "== KEEP src/new.py ==", "```keep src/new.py"]


@pytest.mark.parametrize("line", LINES[:3])
def test_its_lines_are_prose_without_it(line: str) -> None:
    assert registry.FORMATS.begins(line) is NOTHING
    assert parse(f"{line}\n| x\n").edits == ()


@pytest.mark.usefixtures("keep")
@pytest.mark.parametrize("line", LINES)
def test_it_is_offered_its_lines(line: str) -> None:
    (first, *_) = registry.FORMATS.begins(line).reads
    assert first in (read, read_fenced)


@pytest.mark.usefixtures("keep")
@pytest.mark.parametrize("line", ["Keep src/new.py", "== x", "=", "K", "kept", ")", "Then run it."])
def test_other_lines_stay_prose_at_a_glance(line: str) -> None:
    assert registry.FORMATS.begins(line) is NOTHING


@pytest.mark.usefixtures("keep")
@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("KEEP src/new.py\n| x\n| y\n", (2, 4)),
        ("=== KEEP src/new.py ===\n| x\n| y\n", (2, 4)),
        ("```keep src/new.py\nx\ny\n```\n", (2, 5)),
    ],
)
def test_it_is_read_into_edits_among_others(text: str, at: tuple[int, int]) -> None:
    parsed = parse(f"Two files.\n{text}src/a.py\n{BLOCK}Done.\n")
    assert parsed.problems == ()
    assert parsed.prose == "Two files.\nDone."
    assert parsed.edits == (
        Edit("1", "keep", at, "src/new.py", Create("x\ny\n")),
        Edit("2", "search_replace", (at[1] + 2, at[1] + 6), "src/a.py", Replace("old\n", "new\n")),
    )


@pytest.mark.usefixtures("keep")
def test_what_follows_knows_of_its_edits() -> None:
    parsed = parse("KEEP src/new.py\n| old\n\n" + BLOCK)
    assert [edit.path for edit in parsed.edits] == ["src/new.py"] * 2


@pytest.mark.usefixtures("keep")
def test_a_damaged_one_is_refused() -> None:
    problem = refusal("Look:\nKEEP\n| x\n")
    assert (problem.code, problem.line) == ("response.unreadable_edit", 2)
    assert problem.hint == "write `KEEP path`"


@pytest.mark.usefixtures("keep")
@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("Well.\n  keep: src/new.py\n| x\n", 2, "a file to keep"),
        ("it is kept at src/new.py\n", 1, "lines to keep"),
        ("```keep\nx\n| y\n```\n", 3, "a line to keep"),
    ],
)
def test_one_that_is_nearly_right_is_told_about(text: str, line: int, what: str) -> None:
    problem = refusal(text)
    assert (problem.code, problem.line) == ("response.unreadable_edit", line)
    assert problem.message == (
        f"line {line}, column 1: this looks like {what}, but cannot be read as one"
    )
    hint = "write it as `patchq formats keep` shows, or send every change as a SEARCH/REPLACE block"
    assert problem.hint == hint


@pytest.mark.usefixtures("keep")
@pytest.mark.parametrize("text", ["keep: src/new.py\n", "it is kept\n", "```\n| y\n```\n", "| y\n"])
def test_what_lacks_its_signs_is_prose(text: str) -> None:
    assert parse(text).problems == ()


@pytest.mark.parametrize(
    "text", ["  keep: src/new.py\n", "KEPT\nit is kept at src/new.py\n", "```keep\n| y\n```\n"]
)
def test_nobody_misses_what_is_no_format(text: str) -> None:
    assert parse(text).problems == ()


@pytest.mark.usefixtures("keep")
def test_the_command_lists_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    others = [name for name in registry.FORMATS if name != "keep"]
    assert main(["formats"]) == 0
    assert capsys.readouterr().out.split() == ["keep", *others]
    for name in ("keep", "KEEP"):
        assert main(["formats", name]) == 0
        assert capsys.readouterr().out == INSTRUCTIONS


# ---------------------------------------------------------------- who is asked first


def test_several_are_asked_in_the_order_of_their_turns() -> None:
    def form(name: str, turn: int) -> tuple[Format, FenceOpening]:
        opening = FenceOpening(lambda doc, i: None, turn=turn)
        return Format(name, "", fences=(opening,)), opening

    (a, last), (b, first), (c, second) = form("a", 2), form("b", 0), form("c", 0)
    reads = Catalogue((a, b, c)).begins("```").reads
    assert reads == (first.read, second.read, last.read)


def test_formats_that_are_read_together_are_asked_once() -> None:
    opening = Opening(read, ("KEEP",))
    both = Catalogue((Format("a", "", (opening,)), Format("b", "", (opening,))))
    assert both.begins("KEEP x").reads == (read,)


def test_a_refusal_is_an_error_whatever_it_carries() -> None:
    warning = Problem("path.review", "look at it", severity="warning")
    assert UnreadableEdit.of(warning).problem.severity == "error"
