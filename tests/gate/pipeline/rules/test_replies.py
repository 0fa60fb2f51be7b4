"""What goes back to an agent: in the form that it used, and nothing that a model can echo."""

from __future__ import annotations

import pytest

from bench.corpus.rewrites.forms import AS_IT_IS, FORMS, Form
from bench.corpus.rewrites.tasks import Change
from patchq.core.formats.registry import FORMATS
from tests.helpers.deciding import Bench, Row

TEXT = "".join(f"line {n} of the text\n" for n in range(1, 41))
MISSED = Change("src/a.txt", "no such line, at all\n", "another line\n")


def prompt(bench: Bench, response: str, text: str = TEXT) -> str:
    decision = bench.decide(Row("", {"src/a.txt": text}, response)).decision
    assert decision.state == "rejected"
    told = decision.report().retry.prompt
    assert told is not None
    return told


def response(form: Form) -> str:
    """A change of a line that the file lacks."""
    return form.write([MISSED], AS_IT_IS)


@pytest.mark.parametrize("form", [f for f in FORMS if f.family != "files"], ids=lambda f: f.name)
def test_a_missed_quote_is_shown_and_asked_for_in_its_own_form(bench: Bench, form: Form) -> None:
    text = response(form)
    row = Row("", {"src/a.txt": TEXT}, text)
    (edit,) = bench.decide(row).decision.edits
    told = prompt(bench, text)
    assert edit.format
    own = FORMATS[edit.format].instructions.replace("path/to/file.py", "src/a.txt")
    assert own.replace("path/to/file.md", "src/a.txt").rstrip() in told
    assert "path/to" not in told
    assert "The quote that was not found:\n\n```\nno such line, at all\n" in told


def block(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n\n"


FOLLOW_UPS = {
    "a creation over a file": (
        block("src/a.txt", "", "new\n") + block("src/a.txt", "new\n", "newer\n"),
        "path.exists",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code"), FOLLOW_UPS.values(), ids=FOLLOW_UPS)
def test_an_error_has_no_follow_up_errors(bench: Bench, text: str, code: str) -> None:
    row = Row("", {"src/a.txt": TEXT, "src/b.txt": "b\n"}, text)
    decision = bench.decide(row).decision
    errors = [p for p in decision.problems if p.severity == "error"]
    assert [(p.code, p.edit) for p in errors] == [(code, "1")]
    (said,) = [p for p in decision.problems if p.edit == "2"]
    assert "edit 1 was refused" in said.message
    assert [edit.state for edit in decision.edits] == ["failed", "failed"]
