"""One page for the tests that change nothing of what others look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.gitrepo import identity
from tests.page.people import Person, edits, proposals, served

HOSTILE = '<script>document.title="run"</script>"\'>\u202e\x1b[31m\x07'


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    responses = {
        "fix.md": edits(("one\n", "1\n"), ("four\n", "4\n")),
        "other.md": edits(("one\n", "eins\n"), agent="writer-2"),
        "hostile.md": edits(("three\n", f"{HOSTILE}\n"), agent="<b>writer</b>"),
        "wrong.md": edits(("nothing of it\n", "x\n")),
        "twice.md": edits(("two\n", "2\n")),
        "moved.md": edits(("two\n", "zwei\n")),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in identity(tmp_path_factory.mktemp("page-home")).items():
            patch.setenv(name, value)
        yield proposals(tmp_path_factory.mktemp("page"), responses)


@pytest.fixture(scope="module")
def person(repo: Path) -> Iterator[Person]:
    with served(repo) as url:
        yield Person(url)
