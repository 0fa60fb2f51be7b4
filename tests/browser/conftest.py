"""A real Chromium, and a page with what waits."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.gitrepo import identity
from tests.page.people import edits, proposals, served

HOSTILE = (
    "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
    "\"'><svg onload=document.title='run'>\u202e\x1b[31m\u200b"
)
CODE = "import os\n\n\ndef total(items, tax):\n    value = sum(items)\n    return value * tax\n"
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
    files = {"shop/cart.py": CODE, "notes.md": "a\nplain\nz\n", "שלום.txt": "a\nb\n"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in identity(tmp_path_factory.mktemp("home")).items():
            patch.setenv(name, value)
        yield proposals(tmp_path_factory.mktemp("browser"), responses, files)


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
