"""Front matter (docs/feeding.md): honoured or refused, in several forms, and never lost."""

from __future__ import annotations

import pytest

from bench.corpus.rewrites.forms import AS_IT_IS, FORMS, Form
from bench.corpus.rewrites.tasks import Change
from tests.helpers.deciding import Bench, Row, check

A = {"src/a.py": "x = 1\ny = 2\n"}
BLOCK = "src/a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n"
DONE = {"src/a.py": "x = 3\ny = 2\n"}
CHANGE = Change("src/a.py", "x = 1\n", "x = 3\n", 0)
WHOLE = Change("src/a.py", "x = 1\ny = 2\n", "x = 3\ny = 2\n", 0)


def written(form: Form) -> str:
    return form.write([WHOLE if form.family == "files" else CHANGE], AS_IT_IS)


def rows(*lines: str, form: Form) -> str:
    return "\n".join(["---", *lines, "---", written(form)])


SOME = [form for form in FORMS if form.name in ("search_replace", "v4a", "messages", "mail")]
SEVERAL_FORMS = pytest.mark.parametrize("form", SOME, ids=lambda form: form.name)
LOST = {
    "a line that is no key": ("target: elsewhere", "and do it quickly"),
    "a sentence before it": ("I made the change:", "target: elsewhere"),
    "braces": ('{"target": "elsewhere"}',),
}


@SEVERAL_FORMS
@pytest.mark.parametrize("lines", LOST.values(), ids=LOST)
def test_what_would_be_lost(bench: Bench, form: Form, lines: tuple[str, ...]) -> None:
    verdict = bench.decide(Row("", A, rows(*lines, form=form)))
    assert verdict.files is None
    assert {problem.code.partition(".")[0] for problem in verdict.decision.problems} == {
        "frontmatter"
    }


FURTHER_DOWN = {
    "below prose": "Here it is.\n\n---\ntarget: elsewhere\n---\n",
    "behind a fence": "```sh\nls\n```\n---\n# so\ntarget: b\n\ndepends_on:\n  - a\n---\n",
}


@SEVERAL_FORMS
@pytest.mark.parametrize("head", FURTHER_DOWN.values(), ids=FURTHER_DOWN)
def test_front_matter_further_down(bench: Bench, form: Form, head: str) -> None:
    if form.in_text:
        check(bench, Row("", A, head + written(form), None, ("frontmatter.value",)))


UNFOLLOWED = [
    Row(
        "author",
        A,
        f"---\nauthor: A <a@x.org>\n---\n{BLOCK}",
        DONE,
        warnings=("frontmatter.value",),
        says=("`author` is not used",),
    ),
    Row(
        "retries",
        A,
        f"---\nretries: nobody\n---\n{BLOCK}",
        DONE,
        warnings=("frontmatter.value",),
        says=("'nobody'",),
    ),
]


@pytest.mark.parametrize("row", UNFOLLOWED, ids=lambda row: row.name)
def test_what_is_understood_and_not_followed(bench: Bench, row: Row) -> None:
    check(bench, row)
