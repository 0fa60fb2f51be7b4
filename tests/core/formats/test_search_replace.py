"""What SEARCH/REPLACE blocks say, in all the dress that models give them, and what is refused."""

from __future__ import annotations

import pytest

from patchq.core.model.ops import Op, Rename, Replace
from tests.helpers.reading import (
    BLOCK,
    CREATION,
    DELETION,
    MOVE,
    NEW,
    OLD_NEW,
    RENAME,
    block,
    read,
    refused,
    said,
)

A, B = ("src/a.py", OLD_NEW), ("src/b.py", OLD_NEW)
N = ("src/n.py", NEW)
JUST = ("Justfile", NEW)
HEADINGS = block("T\n=====\n", "U\n=========\n")
FENCED = block("```\nx\n```\n")
QUOTING = block(f"```\n{BLOCK}```\n", "x\n")
ODD = block("a\n```\n", "b\n```\n=====\n")


@pytest.mark.parametrize(
    ("info", "path"),
    [
        ("python src/a.py", "src/a.py"), ("python:src/a.py", "src/a.py"),
        ("python: src/a.py", "src/a.py"), ("c++:src/a.cc", "src/a.cc"), ("src/a.py:", "src/a.py"),
        ("md docs/my file.md", "docs/my file.md"), ("md docs/your file.md", None),
        ("md:docs/your file.md", None), ("make Makefile", "Makefile"), ("make Justfile", None),
        ("python:", None), ("objective-c", None), ("ASP.NET", None), ("C/C++", None),
        ("text/plain", None), ("application/vnd.api+json", None), ("text/x.txt", "text/x.txt"),
        ("python html/css", "html/css"), ("shell/run", "shell/run"), ("python.py", "python.py"),
        ("", None),
    ],
)  # fmt: skip
def test_a_path_in_the_info_of_a_fence(info: str, path: str | None) -> None:
    text = f"```{info}\n{BLOCK}```\n"
    if path is None:
        assert refused(text) == ("unreadable_edit", 2)
    else:
        assert said(text) == [(path, OLD_NEW)]


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("And in src/a.py, again.", False), ("And in `./src/a.py`:", False),
        ("see https://example.org/b.html", False), ("Then (lib/b.c)!", True),
        ("Then `lib/tool`", True), ("see docs/my file.md", True), ("a.py", True),
        ("src/b.py:12: error", True),
    ],
)  # fmt: skip
def test_a_path_is_inherited_unless_another_is_mentioned(line: str, other: bool) -> None:
    parsed = read(f"src/a.py\n{BLOCK}\n{line}\n\n{BLOCK}")
    assert ([edit.path for edit in parsed.edits] != ["src/a.py"] * 2) == other


def case(name: str, text: str, *edits: tuple[str, Op]) -> object:
    return pytest.param(text, list(edits), id=name)


@pytest.mark.parametrize(
    ("text", "edits"),
    [
        # the path
        case("unknown-backslash", f"src\\z.py\n{BLOCK}", ("src/z.py", OLD_NEW)),
        case("absolute-is-left-to-the-rules", f"/srv/a.py\n{BLOCK}", ("/srv/a.py", OLD_NEW)),
        case("known-word", f"Makefile:\n{BLOCK}", ("Makefile", OLD_NEW)),
        case("known-word-dressed", f"### `CHANGES`\n{BLOCK}", ("CHANGES", OLD_NEW)),
        case("unknown-word-created", f"Justfile\n{CREATION}", JUST),
        case("word-that-was-created-above", f"Justfile\n{CREATION}\nJustfile\n{BLOCK}", JUST,
             ("Justfile", OLD_NEW)),
        # fences
        case("fence-blank-lines", f"src/a.py\n\n```python\n\n{BLOCK}\n```\n", A),
        case("info-path-alone", f"~~~ src/a.py\n{BLOCK}~~~\n", A),
        case("comment-inside", f"```python\n# src/a.py\n{BLOCK}```\n", A),
        case("same-path-twice", f"**src/a.py**\n```python\n# src/a.py\n{BLOCK}```\n", A),
        case("word-over-info", f"Done\n```py src/n.py\n{CREATION}```\n", N),
        case("language-is-no-path", f"src/a.py\n```Makefile\n{BLOCK}```\n", A),
        *(case(tag, f"src/a.py\n<{tag}>\n{BLOCK}</{tag}>\n", A)
          for tag in ("source", "code", "pre", "codeblock", "sourcecode")),
        case("opened-twice", f"src/a.py\n```\n```python\n{BLOCK}```\n```\n", A),
        case("opened-twice-closed-once", f"src/a.py\n```\n```python\n{BLOCK}```\n", A),
        case("never-closed", f"src/a.py\n```python\n{BLOCK}", A),
        case("never-closed-and-prose", f"src/a.py\n```python\n{BLOCK}\nDone.\n", A),
        case("closed-late", f"src/a.py\n```py\n{BLOCK}\nsrc/b.py\n```py\n{BLOCK}```\n", A, B),
        case("fence-as-separator", f"src/a.py\n```\n{BLOCK}```\n{BLOCK}```\n", A, A),
        case("behind-an-odd-fence", f"```\nsrc/a.py\n```\n{BLOCK}```\n", A),
        # markers
        *(case(f"length-{n}", f"src/a.py\n{block(length=n)}", A) for n in range(5, 10)),
        case("original", f"src/a.py\n{BLOCK}".replace("SEARCH", "ORIGINAL"), A),
        case("updated", f"src/a.py\n{BLOCK}".replace("REPLACE", "UPDATED"), A),
        case("dashes", "src/a.py\n------- SEARCH\nold\n=======\nnew\n+++++++ REPLACE\n", A),
        case("angle-behind", f"src/a.py\n{BLOCK}".replace("SEARCH", "SEARCH>"), A),
        case("no-blank-inside", f"src/a.py\n{BLOCK}".replace(" SEARCH", "SEARCH"), A),
        case("heading-lines-are-text", f"src/a.py\n{HEADINGS}",
             ("src/a.py", Replace("T\n=====\n", "U\n=========\n"))),
        # several blocks
        case("rule-between", f"src/a.py\n{BLOCK}\n---\n\nsrc/b.py\n{BLOCK}\n---\n", A, B),
        case("in-a-fence", f"src/a.py\n```\n{BLOCK}\n{BLOCK}\nsrc/b.py\n{BLOCK}```\n", A, A, B),
        case("inherited-in-fence", f"src/a.py\n```\n{BLOCK}```\nThen:\n```py\n{BLOCK}```\n", A, A),
        case("numbered-list", f"1. `src/a.py`:\n\n```py\n{BLOCK}```\n\n2. **src/b.py**\n\n{BLOCK}",
             A, B),
        # what a block does
        case("create", f"src/n.py\n{CREATION}", N),
        case("rename-fenced", f"src/a.py\n```\n{RENAME}```\n", ("src/a.py", MOVE)),
        case("edit-under-the-new-path",
             f"Makefile\n{RENAME.replace('src/c.py', '`Justfile`')}\nJustfile\n{BLOCK}",
             ("Makefile", Rename("Justfile")), ("Justfile", OLD_NEW)),
        # markers in the text
        case("other-length-in-text", f"README.md\n{block(BLOCK, BLOCK + DELETION, length=9)}",
             ("README.md", Replace(BLOCK, BLOCK + DELETION))),
        case("shorter-fence-in-text", f"README.md\n````\n{QUOTING}````\n",
             ("README.md", Replace(f"```\n{BLOCK}```\n", "x\n"))),
        case("odd-fence-in-text", f"README.md\n````\n{ODD}````\n",
             ("README.md", Replace("a\n```\n", "b\n```\n=====\n"))),
        case("fence-in-text", f"README.md\n```\n{FENCED}```\n",
             ("README.md", Replace("```\nx\n```\n", "new\n"))),
        case("signs-in-text", "src/a.py\n" + block("@@ x @@\n", "*** End Patch\n"),
             ("src/a.py", Replace("@@ x @@\n", "*** End Patch\n"))),
        # wrappers
        case("fence-round", f"```\nHi:\n\nsrc/a.py\n{BLOCK}\nDone\n```\n", A),
        case("fence-round-fences", f"```markdown\nsrc/a.py\n```python\n{BLOCK}```\nDone\n```\n", A),
        case("round-under-a-sentence", f"For you:\n```md\nHi:\n\nsrc/a.py\n{BLOCK}\n```\n", A),
        case("fence-never-closed", f"For you:\n```md\nHi:\n\nsrc/a.py\n{BLOCK}", A),
        case("thought-on-one-line", f"<think>so</think>src/a.py\n{BLOCK}", A),
        case("thought-between-blocks",
             f"src/a.py\n{BLOCK}<think>\n*** Begin Patch\n</think>\nsrc/b.py\n{BLOCK}", A, B),
    ],
)  # fmt: skip
def test_reads(text: str, edits: list[tuple[str, Op]]) -> None:
    assert said(text) == edits
