"""The report's type against what builds reports, what reads them, and what the documents list."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from patchq.core.model import report as types_of_report
from patchq.core.model.report import Report
from patchq.core.model.values import (
    Base,
    Candidate,
    Collision,
    EditOutcome,
    HookRun,
    Outcome,
    Problem,
)
from patchq.gate.queue import spool
from patchq.gate.report.document import KEYS, dumps, is_whole, to_json, to_plan
from tests.helpers.outcomes import PROPOSED, REFUSED
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
QUICKLY = settings(max_examples=25, phases=(Phase.reuse, Phase.generate))
"""A report is too large to be made small by trying."""
OUTCOMES = values(
    Outcome,
    timings=st.dictionaries(st.text(max_size=9), NUMBERS, max_size=3),
    received=NUMBERS,
    decided=NUMBERS,
)


class Bare:
    """Stands for `ReadOnly`, which only type checkers know."""

    def __class_getitem__(cls, item: object) -> object:
        return item


def fields(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, localns={"ReadOnly": Bare})


def is_entry(kind: object) -> bool:
    """Whether it is the type of a part of the report."""
    return isinstance(kind, type) and hasattr(kind, "__total__")


def check(value: object, kind: Any, place: str = "report") -> None:
    """Fails unless the value is of the kind: every key of each part, and no other."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_entry(kind):
        assert isinstance(value, dict), place
        assert list(value) == list(fields(kind)), place
        for key, inner in fields(kind).items():
            check(value[key], inner, f"{place}.{key}")
    elif origin in (types.UnionType, typing.Union):
        inner = next(part for part in arguments if part is not types.NoneType)
        if value is not None:
            check(value, inner, place)
    elif origin is typing.Literal:
        assert value in arguments, place
    elif origin is Sequence:
        assert isinstance(value, list), place
        for item in value:
            check(item, arguments[0], place)
    elif origin is Mapping:
        assert isinstance(value, dict), place
        for item in value.values():
            check(item, arguments[1], place)
    else:
        assert isinstance(value, (int, float) if kind is float else kind), place


@QUICKLY
@given(OUTCOMES)
def test_a_report_is_what_its_type_says_and_comes_back_as_it_was(outcome: Outcome) -> None:
    report = to_json(outcome)
    check(report, Report)
    assert json.loads(dumps(report)) == report
    read = spool.report(spool.encode(report))
    assert read == report
    assert list(read) == list(KEYS)
    assert is_whole(report, outcome.id)


@QUICKLY
@given(OUTCOMES)
def test_a_plan_has_the_keys_of_a_report(outcome: Outcome) -> None:
    plan = to_plan(outcome)
    check(plan, types_of_report.BatchDocument)
    assert (plan["schema"], plan["state"], plan["hooks"]) == ("patchq.plan/1", None, [])


def test_a_report_of_an_older_patchq_is_read_with_what_it_does_not_tell_as_null() -> None:
    report = to_json(PROPOSED)
    older = {key: value for key, value in report.items() if key not in types_of_report.ADDED}
    assert is_whole(older, PROPOSED.id)
    read = spool.report(spool.encode(older))
    assert read
    assert dict(read) == {**report, **dict.fromkeys(types_of_report.ADDED)}
    assert list(read) == list(KEYS)
    assert not is_whole({key: value for key, value in older.items() if key != "edits"}, PROPOSED.id)


def test_the_check_sees_what_is_wrong() -> None:
    report = to_json(PROPOSED)
    check(report, Report)
    missing = {key: value for key, value in report.items() if key != "tree"}
    base: Any = {"commit": None, "how": "tip"}
    wrong = [missing, {**report, "more": 1}, {**report, "state": "gone"}, {**report, "base": base}]
    for value in wrong:
        with pytest.raises(AssertionError):
            check(value, Report)


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
    if not is_entry(kind):
        return {key for part in get_args(kind) for key in typed(part, place)}
    inner = (typed(part, f"{place}.{key}") for key, part in fields(kind).items())
    return {f"{place}.{key}" for key in fields(kind)}.union(*inner)


def test_the_documents_list_every_field() -> None:
    page = (ROOT / "docs/feeding.md").read_text(encoding="utf-8")
    _, _, behind = page.partition('```json\n{"schema": "patchq.report/1"')
    example = json.loads('{"schema": "patchq.report/1"' + behind.partition("```")[0])
    assert list(example) == list(KEYS)
    assert listed(example) - {".timings.parse_ms"} == typed(Report)


@pytest.mark.parametrize("outcome", [PROPOSED, REFUSED], ids=lambda outcome: outcome.state)
def test_a_batch_with_a_commit_has_what_goes_with_it(outcome: Outcome) -> None:
    report = to_json(outcome)
    assert types_of_report.has_commit(report) == (outcome.state == "proposed")
    narrower = fields(types_of_report.CommittedReport)
    assert {key: narrower[key] for key in ("commit", "base")} == {
        "commit": str, "base": types_of_report.BaseEntry,
    }  # fmt: skip
    if types_of_report.has_commit(report):
        check(report, types_of_report.CommittedReport)
    assert fields(Base).keys() == fields(types_of_report.BaseEntry).keys()
