"""What the README and the tutorial show is what their commands print."""

from __future__ import annotations

import pytest

from tests.helpers.pages import ROOT
from tests.helpers.transcript import PAGES, made


@pytest.mark.parametrize("page", PAGES)
def test_page_shows_what_its_commands_print(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert made(page) == text, "run: python -m tests.helpers.transcript"
