"""A real Chromium, and a page with what waits."""

from __future__ import annotations

import shutil
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import block, patchq, work
from tests.helpers.gitrepo import commit_files, git, identity
from tests.page.people import edits, proposals, served

HOSTILE = (
    "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
    "\"'><svg onload=document.title='run'>\u202e\x1b[31m\u200b"
)
CODE = "import os\n\n\ndef total(items, tax):\n    value = sum(items)\n    return value * tax\n"
ROWS = "".join(f"row {number}\n" for number in range(1, 31))
# Black pictures of three and nine pixels in either direction.
HEAD = "iVBORw0KGgoAAAANSUhEUgAAAA"
THREE = b64decode(HEAD + "MAAAADCAAAAABzQ+pjAAAAC0lEQVR4nGNgQAAAAAwAAXxMRMIAAAAASUVORK5CYII=")
NINE = b64decode(HEAD + "kAAAAJCAAAAADF+lnMAAAADElEQVR4nGNgoBUAAABaAAFUw4NUAAAAAElFTkSuQmCC")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no Chromium on this machine")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    tax = ("    return value * tax\n", "    return round(value * tax, 2)\n")
    long = f"{HOSTILE}{'x' * 5000}\n"
    responses = {
        "tax.md": edits(tax, path="shop/cart.py"),
        "sum.md": edits(("    value = sum(items)\n", "    value = sum(i.price for i in items)\n"),
                        ("import os\n", "import sys\n"), path="shop/cart.py"),
        "other-tax.md": edits((tax[0], "    return value * (1 + tax)\n"), agent="writer-2",
                              path="shop/cart.py"),
        "hostile.md": edits(("plain\n", long), agent=HOSTILE[:60], path="notes.md"),
        "rtl.md": edits(("b\n", "c\n"), path="שלום.txt"),
        "wrong.md": edits(("nothing of it\n", "x\n"), path="notes.md"),
    }  # fmt: skip
    files = {"shop/cart.py": CODE, "notes.md": "a\nplain\nz\n", "שלום.txt": "a\nb\n",
             "rows.txt": ROWS}  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in identity(tmp_path_factory.mktemp("home")).items():
            patch.setenv(name, value)
        repo = proposals(tmp_path_factory.mktemp("browser"), responses, files)
        discussed(repo)
        drawn(repo)
        yield repo


def discussed(repo: Path) -> None:
    """Two rounds of a change; the target moves in its file, and the later one follows.

    The comment c1 is answered by words, c2 by a change of its lines, c3 is open.
    """
    work(repo, first=rows(5, 6, 20))
    said = "In short, please\nrows.txt:5: say why\nrows.txt:20: and this?\n"
    comments = repo / "comments"
    comments.write_text(said)
    patchq("send-back", "first", "--comments", str(comments), cwd=repo)
    comments.unlink()
    answer = f"---\nretries: first\nanswers: {{c1: Shorter now}}\n---\n{rows(5, 20, to='better')}"
    work(repo, second=answer.replace("better 20", "ROW 20"))
    commit_files(repo, {"rows.txt": ROWS.replace("row 12\n", "row twelve\n")})
    patchq("run", cwd=repo)


def rows(*numbers: int, to: str = "ROW") -> str:
    """A response that changes these rows."""
    return "\n".join(block("rows.txt", f"row {n}\n", f"{to} {n}\n") for n in numbers)


def drawn(repo: Path) -> None:
    """A change of a PNG and of an SVG that holds a script, a rename, and a change of a mode."""
    svg = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'>{}</svg>\n"
    commit_files(repo, {"a.svg": svg.format(""), "a.png": THREE, "old.txt": ROWS, "tool": "x\n"})
    git("checkout", "-q", "-b", "pictures", cwd=repo)
    run = "<script>parent.document.title='run';document.title='run'</script><circle r='4'/>"
    (repo / "old.txt").unlink()
    (repo / "tool").chmod(0o755)
    renamed = ROWS.replace("row 9\n", "row nine\n")
    commit_files(repo, {"a.svg": svg.format(run), "a.png": NINE, "new.txt": renamed})
    git("checkout", "-q", "-", cwd=repo)
    patchq("submit", "--branch", "pictures", "--id", "pictures", cwd=repo)
    patchq("run", cwd=repo)


@pytest.fixture(scope="module")
def url(repo: Path) -> Iterator[str]:
    with served(repo) as url:
        yield url


@pytest.fixture
def opened(chromium: Any, url: str) -> Iterator[Callable[..., Any]]:
    """Opens a page in a browser of its own: `opened("/history", color_scheme="dark")`."""
    contexts = []

    def opening(path: str = "/", **options: Any) -> Any:
        context = chromium.new_context(**options)
        contexts.append(context)
        tab = context.new_page()
        tab.own, tab.errors = url.split("/?")[0], []
        tab.on("pageerror", lambda error: tab.errors.append(str(error)))
        tab.goto(url)
        if path != "/":
            tab.goto(f"{tab.own}{path}")
        return tab

    yield opening
    for context in contexts:
        context.close()


def follow(tab: Any, query: str) -> None:
    """Clicks what leads to another page, and waits until that has loaded."""
    with tab.expect_navigation():
        tab.click(query)
