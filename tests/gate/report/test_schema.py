"""The report's type against what builds reports, what reads them, and what the documents list."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, TypeVar, cast, get_args

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

from patchq.core.model.values import Candidate, Collision, EditOutcome, HookRun, Problem
from patchq.gate.queue import spool
from patchq.gate.report.document import dumps, plain
from patchq.gate.report.schema import Moment, Report
from tests.helpers.outcomes import Outcome, to_json
from tests.helpers.pages import ROOT

T = TypeVar("T")


def values(kind: type[T], **known: st.SearchStrategy[Any]) -> st.SearchStrategy[T]:
    """Values of a dataclass with something in every field."""
    names = cast(Any, kind).__struct_fields__
    return st.builds(kind, **{name: known.get(name, ...) for name in names})


NUMBERS = st.floats(0, 1e9)
for part in (Candidate, Collision, Problem):
    st.register_type_strategy(part, values(part))
st.register_type_strategy(EditOutcome, values(EditOutcome, confidence=st.none() | NUMBERS))
st.register_type_strategy(HookRun, values(HookRun, seconds=NUMBERS))
st.register_type_strategy(Moment, values(Moment, unix=NUMBERS))
QUICKLY = settings(max_examples=25, phases=(Phase.reuse, Phase.generate))
"""A report is too large to be made small by trying."""
OUTCOMES = values(Outcome, timings=st.dictionaries(st.text(max_size=9), NUMBERS, max_size=3))


@QUICKLY
@given(OUTCOMES)
def test_a_report_comes_back_as_it_was(outcome: Outcome) -> None:
    report = to_json(outcome)
    read = spool.report(spool.encode(report))
    assert read == spool.report(dumps(report).encode("utf-8", "surrogatepass")) == report
    assert list(plain(report)) == list(Report.__struct_fields__)


def listed(value: object, place: str = "") -> set[str]:
    """The places of all keys of the documents' example."""
    if isinstance(value, list):
        return {key for item in value for key in listed(item, place)}
    if not isinstance(value, dict):
        return set()
    inner = (listed(item, f"{place}.{key}") for key, item in value.items())
    return {f"{place}.{key}" for key in value}.union(*inner)


def typed(kind: Any, place: str = "") -> set[str]:
    """The places of all keys of a type."""
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        return {key for part in get_args(kind) for key in typed(part, place)}
    found = fields(kind)
    inner = (typed(part.type, f"{place}.{part.encode_name}") for part in found)
    return {f"{place}.{part.encode_name}" for part in found}.union(*inner)


def test_the_documents_list_every_field() -> None:
    page = (ROOT / "docs/feeding.md").read_text(encoding="utf-8")
    _, _, behind = page.partition('```json\n{"schema": "patchq.report/1"')
    example = json.loads('{"schema": "patchq.report/1"' + behind.partition("```")[0])
    assert list(example) == list(Report.__struct_fields__)
    assert listed(example) - {".timings.parse_ms"} == typed(Report)


def test_reports_are_known_before_threads_read_them() -> None:
    """msgspec that learns a class in two threads at once ends the process."""
    code = (
        "import sys\nfrom patchq.gate.queue import spool\nlearned = []\n"
        "sys.setprofile(lambda frame, event, _: learned.append(frame.f_code.co_name))\n"
        "spool.report(b'{}')\nsys.setprofile(None)\n"
        "print('report' in learned, 'get_class_annotations' in learned)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "True False\n"
