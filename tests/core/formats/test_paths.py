"""How a path may be written on a line, in prose and in a fence's info."""

from __future__ import annotations

import pytest

from patchq.core.formats.marks.paths import (
    KnownPaths,
    mentions_other,
    path_of_info,
)

BASE = {"src/a.py", "Makefile", "docs/my file.md", "docs/x (1).md", "python"}
known = KnownPaths.of(BASE.__contains__)


@pytest.mark.parametrize(
    "line",
    [
        "src/a.py",
        "  src/a.py\t\r",
        "**`src/a.py`**",
        "**`src/a.py`:**",
        "`src/a.py`:",
        "src/a.py:",
        "## src/a.py",
        "### `src/a.py` ###",
        "# src/a.py",
        "// src/a.py",
        "/* src/a.py */",
        "<!-- src/a.py -->",
        "; src/a.py",
        "> src/a.py",
        "- `src/a.py`",
        "File: src/a.py",
        "FILE: `src/a.py`",
        "Path: src/a.py",
        "Filename: src/a.py",
        "File path: src/a.py",
        "**File:** src/a.py",
        "**File**: `src/a.py`",
        '"src/a.py"',
        "_src/a.py_",
    ],
)
def test_path_line(line: str) -> None:
    assert known.on_line(line) == "src/a.py"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("And once more:", False, id="no-path"),
        pytest.param("And in src/a.py, again.", False, id="the-same"),
        pytest.param("And in `./src/a.py`:", False, id="the-same-with-dot"),
        pytest.param("Then utils.py:", True, id="file-name"),
        pytest.param("Then (lib/b.c)!", True, id="in-brackets"),
        pytest.param("Then the Makefile.", True, id="known-word"),
        pytest.param("Then `lib/tool`", True, id="backticks"),
        pytest.param("see docs/my file.md", True, id="half-of-a-path-with-a-blank"),
        pytest.param("docs/my file.md", True, id="known-with-blank"),
        pytest.param("a.py", True, id="short-name"),
        pytest.param("see https://example.org/b.html", False, id="url"),
        pytest.param("src/b.py:12: error", True, id="with-line-number"),
    ],
)
def test_mentions_other(line: str, expected: bool) -> None:
    assert mentions_other(line, "src/a.py", known) is expected


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        pytest.param("python src/a.py", "src/a.py", id="language-and-path"),
        pytest.param("python:src/a.py", "src/a.py", id="colon"),
        pytest.param("python: src/a.py", "src/a.py", id="colon-blank"),
        pytest.param("make:Justfile", "Justfile", id="colon-word"),
        pytest.param(":src/a.py", "src/a.py", id="colon-alone"),
        pytest.param("c++:src/a.cc", "src/a.cc", id="language-with-signs"),
        pytest.param("src/a.py:", "src/a.py", id="path-colon"),
        pytest.param("md docs/my file.md", "docs/my file.md", id="known-with-blank"),
        pytest.param("md docs/your file.md", None, id="unknown-with-blank"),
        pytest.param("md:docs/your file.md", None, id="colon-unknown-with-blank"),
        pytest.param("make Makefile", "Makefile", id="known-word"),
        pytest.param("make Justfile", None, id="unknown-word"),
        pytest.param("python", None, id="language-that-is-a-file"),
        pytest.param("python:", None, id="language-colon"),
        pytest.param("objective-c", None, id="language-with-dash"),
        pytest.param("vb.net", None, id="language-with-dot"),
        pytest.param("ASP.NET", None, id="language-in-capitals"),
        pytest.param("python3.11", None, id="language-with-version"),
        pytest.param("C/C++", None, id="two-languages-with-signs"),
        pytest.param("text/plain", None, id="media-type"),
        pytest.param("application/vnd.api+json", None, id="media-type-with-signs"),
        pytest.param("text/x", None, id="media-type-that-could-be-a-path"),
        pytest.param("text/x.txt", "text/x.txt", id="file-in-a-directory-like-a-media-type"),
        pytest.param("html/css.md", "html/css.md", id="path-of-a-language"),
        pytest.param("python html/css", "html/css", id="language-and-path-of-languages"),
        pytest.param("python:html/css", "html/css", id="colon-and-path-of-languages"),
        pytest.param("shell/run", "shell/run", id="directory-of-a-language"),
        pytest.param("python.py", "python.py", id="file-of-a-language"),
        pytest.param("python {linenos=true}", None, id="braces"),
        pytest.param("", None, id="none"),
    ],
)
def test_path_of_info(info: str, expected: str | None) -> None:
    assert path_of_info(info, known) == expected
