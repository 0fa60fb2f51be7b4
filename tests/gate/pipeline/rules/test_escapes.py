"""Texts that were escaped on their way (docs/formats.md, Envelopes): read as meant where the quotes
bear it out, else refused."""

from __future__ import annotations

import pytest

from tests.gate.pipeline.rules.test_wrappers import (
    SEARCH,
    UNREADABLE,
    V4A,
    A,
    in_every_form,
)
from tests.helpers.deciding import Bench, Row, check

TAGGED = {"a.html": "<p>one</p>\n<p>two &amp; <b></p>\n", "src/a.py": "x = 1\ny = 2\n"}
HTML = "a.html\n<<<<<<< SEARCH\n<p>one</p>\n=======\n<p>1</p>\n>>>>>>> REPLACE\n"


def entities(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


ESCAPED = [
    Row("entities", TAGGED, entities(HTML), None, UNREADABLE),
    Row("escaped beside edits", TAGGED, f"{SEARCH}\n{entities(HTML)}", None, UNREADABLE),
    Row("escaped beside a patch", TAGGED, f"{V4A}\\n{entities(HTML)}", None, UNREADABLE),
    Row("escaped twice", TAGGED, entities(entities(HTML)), None, UNREADABLE),
    Row("backslashes beside edits", A, SEARCH + "\n" + SEARCH.replace("<", "\\<").replace(
        ">", "\\>"),
        None, UNREADABLE),
    *in_every_form(
        ("words about entities", "Use &lt;b&gt; for <b> and \\n for a line's end.\n\n{}"),
        ("words about markers", "It begins with `&lt;&lt;&lt;&lt;&lt;&lt;&lt; SEARCH`.\n\n{}"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("row", ESCAPED, ids=lambda row: row.name)
def test_escapes(bench: Bench, row: Row) -> None:
    check(bench, row)
