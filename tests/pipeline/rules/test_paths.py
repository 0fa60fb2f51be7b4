"""How a response may spell a path, in every form that carries one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from bench.corpus.rewrites.forms import FORMS, Form, PathStyle
from bench.corpus.rewrites.tasks import Change, applied
from tests.helpers.deciding import ROOT, Bench, Row, check

FILES = {
    "src/pages/a.ts": "one\ntwo\nthree\n",
    "src/pages/b.ts": "four\n",
    "lib/b/c.py": "x = 1\n",
    "Makefile": "all:\n",
    "w/x.txt": "w\n",
}
EDIT = Change("src/pages/a.ts", "two\n", "2\n", 1)
NEW = Change("src/pages/n.ts", None, "new\n")

SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "as it is": str,
    "dot": lambda p: f"./{p}",
    "two dots": lambda p: f"././{p}",
    "backslashes": lambda p: p.replace("/", "\\"),
    "dot and backslashes": lambda p: ".\\" + p.replace("/", "\\"),
    "mixed": lambda p: p.replace("/", "\\", 1),
    "absolute": lambda p: f"{ROOT}/{p}",
    "absolute with dots": lambda p: f"{ROOT}/./{p}",
}


def _change(form: Form, change: Change) -> Change:
    if form.family != "files" or change.old is None:
        return change
    return Change(change.path, FILES[change.path], applied(FILES, [change])[change.path])


def _can(form: Form, change: Change, spelling: str) -> bool:
    prefixed = form.name in ("unified_diff", "diff_fence", "mail") and "absolute" in spelling
    return form.expresses(change) and not prefixed


CASES = [
    pytest.param(form, change, spelling, id=f"{form.name}-{what}-{spelling}")
    for form in FORMS
    for what, change in (("edit", EDIT), ("new", NEW))
    for spelling in SPELLINGS
    if _can(form, change, spelling)
]


@pytest.mark.parametrize(("form", "change", "spelling"), CASES)
def test_spellings(bench: Bench, form: Form, change: Change, spelling: str) -> None:
    style = PathStyle(spell=SPELLINGS[spelling])
    text = form.write([_change(form, change)], style)
    check(bench, Row(spelling, FILES, text, applied(FILES, [change])))


ELSEWHERE: Mapping[str, Callable[[str], str]] = {
    "absolute elsewhere": lambda p: f"/home/ada/shop/{p}",
    "climbing": lambda p: f"{ROOT}/../repo/{p}",
    "up": lambda p: f"../{p}",
    "drive": lambda p: "C:\\work\\" + p.replace("/", "\\"),
    "a directory that is not there": lambda p: "old\\" + p.replace("/", "\\"),
    "two slashes": lambda p: f".//{p}",
}


@pytest.mark.parametrize("spelling", ELSEWHERE)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_what_is_elsewhere(bench: Bench, form: Form, spelling: str) -> None:
    style = PathStyle(spell=ELSEWHERE[spelling])
    verdict = bench.decide(Row(spelling, FILES, form.write([_change(form, EDIT)], style)))
    assert verdict.files is None
    if form.creates:
        verdict = bench.decide(Row(spelling, FILES, form.write([NEW], style)))
        assert verdict.files is None
