"""The report: a closed schema, nothing hidden, never too large."""

from __future__ import annotations

import json
import re

import pytest
from msgspec import convert
from msgspec.structs import replace

from patchq.core.model.values import Problem
from patchq.gate.report.document import MAX_BYTES, dumps, with_state
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import Moment, Report, RetryEntry
from tests.helpers.outcomes import GOOD, MISSED, PROPOSED, REFUSED, SEVERAL, to_json


def test_a_later_state_keeps_the_rest() -> None:
    report = to_json(PROPOSED)
    accepted = with_state(report, "accepted", commit="ac" * 20)
    fields = Report.__struct_fields__
    changed = {key for key in fields if getattr(accepted, key) != getattr(report, key)}
    assert changed == {"state", "decided", "commit", "branch"}
    before = Moment(unix=1.5, iso="1970-01-01T00:00:01Z")
    assert report.decided == before
    assert with_state(accepted, "accepted").decided == accepted.decided
    assert with_state(report, "proposed").branch == "patchq/fix-42"


def test_a_response_with_a_secret_is_quoted_nowhere() -> None:
    secret = Problem("edit.secret", "edit 1 holds a token", edit="1", excerpt=(1, ("hunter2",)))
    problems = (secret, replace(MISSED, excerpt=(1, ("hunter2",))))
    outcome = replace(REFUSED, problems=problems, diff="+hunter2\n", message="Use hunter2")
    report = to_json(outcome)
    assert "hunter2" not in dumps(report) + to_markdown(report)


LONG = '\u202e\\"é' * 20_000
CROWD = (replace(SEVERAL, candidates=SEVERAL.candidates * 5_000, message=LONG, hint=LONG),)
BIG = {
    "diff": replace(PROPOSED, diff="+line é\n" * 200_000),
    "everything": replace(
        REFUSED,
        agent=LONG,
        model=LONG,
        target=LONG,
        retry=RetryEntry(of=LONG),
        edits=(replace(GOOD, path=LONG, id=LONG, description=LONG),) * 1000,
        problems=CROWD * 100,
        diff=LONG,
    ),
}


@pytest.mark.parametrize("name", BIG)
def test_a_report_fits_into_256_kib_and_marks_what_is_cut(name: str) -> None:
    report = to_json(BIG[name])
    text = dumps(report)
    assert len(text.encode()) <= MAX_BYTES
    assert convert(json.loads(text), Report) == report
    page = to_markdown(report)
    assert len(page.encode()) <= MAX_BYTES
    for said in (text, page):
        assert re.search(r"left out here|… and \d+ more", said)
    assert with_state(report, report.state, branch=report.branch) == report


def test_a_page_is_cut_behind_the_fence_of_its_diff() -> None:
    page = to_markdown(BIG["diff"])
    assert MAX_BYTES - 2000 < len(page.encode()) <= MAX_BYTES
    assert page.endswith("+line é\n```\n\n… more is left out here\n")
