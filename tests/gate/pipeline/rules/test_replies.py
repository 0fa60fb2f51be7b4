"""What goes back to an agent: in the form that it used, and nothing that a model can echo."""

from __future__ import annotations

import pytest

from bench.corpus.rewrites.forms import AS_IT_IS, FORMS, Form
from bench.corpus.rewrites.tasks import Change
from patchq.core.formats.registry import FORMATS
from tests.helpers.deciding import Bench, Row

FILES = {"src/a.txt": "".join(f"line {n} of the text\n" for n in range(1, 41))}
MISSED = Change("src/a.txt", "no such line, at all\n", "another line\n")


@pytest.mark.parametrize("form", [f for f in FORMS if f.family != "files"], ids=lambda f: f.name)
def test_a_missed_quote_is_shown_and_asked_for_in_its_own_form(bench: Bench, form: Form) -> None:
    decision = bench.decide(Row("", FILES, form.write([MISSED], AS_IT_IS))).decision
    (edit,) = decision.edits
    told = decision.report.retry.prompt
    assert edit.format
    assert told
    own = FORMATS[edit.format].instructions.replace("path/to/file.py", "src/a.txt")
    assert own.replace("path/to/file.md", "src/a.txt").rstrip() in told
    assert "path/to" not in told
    assert "The quote that was not found:\n\n```\nno such line, at all\n" in told


def test_an_error_has_no_follow_up_errors(bench: Bench) -> None:
    creation = "src/a.txt\n<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE\n\n"
    text = creation + creation.replace("=\nnew", "=\nnewer").replace("SEARCH\n", "SEARCH\nnew\n")
    decision = bench.decide(Row("", FILES, text)).decision
    errors = [p for p in decision.problems if p.severity == "error"]
    assert [(p.code, p.edit) for p in errors] == [("path.exists", "1")]
    (said,) = [p for p in decision.problems if p.edit == "2"]
    assert "edit 1 was refused" in said.message
    assert [edit.state for edit in decision.edits] == ["failed", "failed"]
