"""Front matter (docs/feeding.md): honoured or refused, and never lost."""

from __future__ import annotations

import pytest

from bench.corpus.rewrites.forms import AS_IT_IS, FORMS, Form
from bench.corpus.rewrites.tasks import Change
from tests.helpers.deciding import Bench, Row, check

A = {"src/a.py": "x = 1\ny = 2\n"}
DONE = {"src/a.py": "x = 3\ny = 2\n"}
CHANGE = Change("src/a.py", "x = 1\n", "x = 3\n", 0)
SOME = [form for form in FORMS if form.name in ("search_replace", "messages")]
LOST = {
    "a line that is no key": "---\ntarget: elsewhere\nand do it quickly\n---\n",
    "a sentence before it": "---\nI made the change:\ntarget: elsewhere\n---\n",
    "braces": '---\n{"target": "elsewhere"}\n---\n',
    "below prose": "Here it is.\n\n---\ntarget: elsewhere\n---\n",
    "behind a fence": "```sh\nls\n```\n---\n# so\ntarget: b\n\ndepends_on:\n  - a\n---\n",
}


@pytest.mark.parametrize("form", SOME, ids=lambda form: form.name)
@pytest.mark.parametrize("head", LOST.values(), ids=LOST)
def test_what_would_be_lost(bench: Bench, form: Form, head: str) -> None:
    if form.in_text or head.startswith("---"):
        verdict = bench.decide(Row("", A, head + form.write([CHANGE], AS_IT_IS)))
        assert verdict.files is None
        kinds = {problem.code.partition(".")[0] for problem in verdict.decision.problems}
        assert kinds == {"frontmatter"}


@pytest.mark.parametrize(
    ("line", "says"),
    [("author: A <a@x.org>", "`author` is not used"), ("retries: nobody", "'nobody'")],
)
def test_what_is_understood_and_not_followed(bench: Bench, line: str, says: str) -> None:
    text = f"---\n{line}\n---\n{SOME[0].write([CHANGE], AS_IT_IS)}"
    check(bench, Row("", A, text, DONE, warnings=("frontmatter.value",), says=(says,)))
