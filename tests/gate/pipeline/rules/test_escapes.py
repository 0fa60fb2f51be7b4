"""Texts that were escaped on their way (docs/formats.md, Envelopes): read as meant where the quotes
bear it out, else refused."""

from __future__ import annotations

import json

import pytest

from tests.gate.pipeline.rules.test_wrappers import (
    BLOCK,
    DONE,
    FORMS,
    SEARCH,
    UNREADABLE,
    V4A,
    A,
    draft,
    in_every_form,
)
from tests.helpers.deciding import Bench, Row, check

TAGGED = {"a.html": "<p>one</p>\n<p>two &amp; <b></p>\n", "src/a.py": "x = 1\ny = 2\n"}
HTML = "a.html\n<<<<<<< SEARCH\n<p>one</p>\n=======\n<p>1</p>\n>>>>>>> REPLACE\n"
AMP = "a.html\n<<<<<<< SEARCH\n<p>two &amp; <b></p>\n=======\n<p>2 &amp; <i></p>\n>>>>>>> REPLACE\n"


def entities(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


ESCAPED = [
    Row("entities", TAGGED, entities(HTML), {"a.html": TAGGED["a.html"].replace("one", "1")}),
    Row(
        "entities of entities of the file",
        TAGGED,
        entities(AMP),
        {"a.html": "<p>one</p>\n<p>2 &amp; <i></p>\n"},
    ),
    Row(
        "two blocks, one quote with entities",
        TAGGED,
        entities(HTML + "\n" + SEARCH),
        {"a.html": TAGGED["a.html"].replace("one", "1"), **DONE},
    ),
    Row("no quote with entities", TAGGED, entities(SEARCH), None, UNREADABLE),
    Row("a quote that stands nowhere", TAGGED, entities(HTML.replace("one", "none")), None,
        UNREADABLE),
    Row("a creation", TAGGED, entities(HTML + "\nb.html\n" + BLOCK.replace("x = 1\n", "")), None,
        UNREADABLE),
    Row("an ampersand that only the new text has", TAGGED,
        entities(HTML.replace("<p>1", "<p>1 & 2")), None, UNREADABLE),
    Row("escaped beside edits", TAGGED, f"{SEARCH}\n{entities(HTML)}", None, UNREADABLE),
    Row("escaped beside a patch", TAGGED, f"{V4A}\\n{entities(HTML)}", None, UNREADABLE),
    Row("escaped twice", TAGGED, entities(entities(HTML)), None, UNREADABLE),
    Row("lone CR", A, SEARCH.replace("\n", "\r"), DONE),
    Row("lone CR, a quote that stands nowhere", A, SEARCH.replace("x = 1", "z").replace("\n", "\r"),
        None, UNREADABLE),
    Row("lone CR, a creation", A, f"n.py\n{BLOCK.replace('x = 1' + chr(10), '')}".replace(
        "\n", "\r"),
        None, UNREADABLE),
    Row("lone CR beside edits", A, SEARCH + "\nand\n" + SEARCH.replace("\n", "\r"), None,
        UNREADABLE),
    Row("an edit on one line beside edits", A, SEARCH + "\n" + SEARCH.replace("\n", "\\n"), None,
        UNREADABLE),
    Row("backslashes beside edits", A, SEARCH + "\n" + SEARCH.replace("<", "\\<").replace(
        ">", "\\>"),
        None, UNREADABLE),
    Row("wide signs beside edits", A, SEARCH + "\n" + draft("block").translate(
        {ord("<"): "\uff1c", ord(">"): "\uff1e"}), None, UNREADABLE),
    Row("a patch on one line beside edits", A, SEARCH + "\n" + V4A.replace("\n", "\\n"), None,
        UNREADABLE),
    *in_every_form(
        ("words about entities", "Use &lt;b&gt; for <b> and \\n for a line's end.\n\n{}"),
        ("words about markers", "It begins with `&lt;&lt;&lt;&lt;&lt;&lt;&lt; SEARCH`.\n\n{}"),
    ),
]  # fmt: skip


BARE_FORMS = {
    name: text
    for name, text in {
        **FORMS,
        "dashes": SEARCH.replace("<<<<<<< SEARCH", "------- SEARCH").replace(
            ">>>>>>> REPLACE", "+++++++ REPLACE"
        ),
        "call of an API": json.dumps(
            {"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
                {"type": "tool_use", "id": "t", "name": "str_replace_editor", "input":
                    {"command": "str_replace", "path": "src/a.py", "old_str": "x = 1",
                     "new_str": "x = 3"}}]}
        ),
        "script": '{"file": "src/a.py", "edits": [{"type": "replace", "anchor": {"type": '
        '"line_pattern", "selected": "x = 1"}, "content": "x = 3"}]}',
        "indexed": '{"edits": [{"id": "e", "type": "modification", "file": "src/a.py", "target": '
        '"x = 1", "replacement": "x = 3"}]}',
    }.items()
    if "<<<<" not in text
}  # fmt: skip
"""Forms whose own signs need no escape."""


def in_bare_forms(
    name: str, new: str, after: str | None, before: str = A["src/a.py"], around: str = "{}"
) -> list[Row]:
    """A row for each such form, in which `new` stands for what is written as `x = 3`."""
    codes = () if after else UNREADABLE
    return [
        Row(
            f"{form}: {name}",
            {"src/a.py": before},
            around.format(text.replace("x = 3", new).replace("y = 2", before.split("\n")[1])),
            {"src/a.py": after} if after else None,
            codes,
            says=() if after else ("entities",),
        )
        for form, text in BARE_FORMS.items()
    ]


IN_DOUBT = [
    *in_bare_forms("an ampersand", "x = a &amp; b", None),
    *in_bare_forms("a comparison", "x = a &lt; b", None),
    *in_bare_forms("by number", "x = a &#60; b", None),
    *in_bare_forms("quotes", "x = &quot;b&quot;", None),
    *in_bare_forms("talk beside it", "x = a &gt; b", None, around="As it was asked.\n\n{}")[:4],
    *in_bare_forms("a raw sign in it", "x = '&lt;' < y", "x = '&lt;' < y\ny = 2\n"),
    *in_bare_forms("a raw ampersand", "x = a&b | '&amp;'", "x = a&b | '&amp;'\ny = 2\n"),
    *in_bare_forms("the file has some", "x = '&lt;'", "x = '&lt;'\ny = '&amp;'\n",
                   "x = 1\ny = '&amp;'\n"),
    *in_bare_forms("a raw sign beside it", "x = '&lt;'", "x = '&lt;'\ny = 2\n",
                   around="Now 1 < 2 holds.\n\n{}")[:4],
    *(
        Row(f"an ampersand in {name}", {name: "Dogs\nCats\n"}, f"{name}\n------- SEARCH\nDogs\n"
            "=======\nDogs &amp; birds\n+++++++ REPLACE\n", {name: "Dogs &amp; birds\nCats\n"})
        for name in ("a.html", "src/a.vue", "a.xml", "b/a.tsx")
    ),
    *(
        Row(f"{new} in {name}", {name: "Dogs\nCats\n"}, f"{name}\n------- SEARCH\nDogs\n"
            f"=======\n{new}\n+++++++ REPLACE\n", None, UNREADABLE)
        for name, new in (
            ("a.html", "&lt;b&gt;Dogs&lt;/b&gt;"),
            ("a.tsx", "a &amp;&amp; b"),
            ("a.html", "a&amp;nbsp;b"),
            ("a.md", "R&amp;D"),
        )
    ),
    Row("a new file", A, "src/n.py\n```python\nx = a &amp; b\n```\n", None, UNREADABLE),
]  # fmt: skip


@pytest.mark.parametrize("row", [*ESCAPED, *IN_DOUBT], ids=lambda row: row.name)
def test_escapes(bench: Bench, row: Row) -> None:
    check(bench, row)
