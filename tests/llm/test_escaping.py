"""Replacements of which some escapes are meant and others are not."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from patchq.core.model.ops import Replace
from patchq.core.model.values import Correction, Edit, Problem
from patchq.core.plan import batch
from patchq.llm.chat import Cache
from patchq.llm.corrections import ESCAPING, PlannedBatch, Questioner, Repair, correct_escapes
from tests.helpers.scripted import Scripted
from tests.helpers.trees import RULES, DictTree

FILE = 'import os\nprint("a")\n'
NEW = 'print(\\"a\\nb\\")\n'
RIGHT = 'print("a\\nb")\n'


def said(text: str) -> str:
    return json.dumps({ESCAPING: text})


def attempt(
    asked: Scripted, new: str = NEW, file: str = FILE, path: str = "a.py"
) -> tuple[Repair | None, tuple[Problem, ...]]:
    rules = replace(RULES, judged=lambda path: True)
    tree = DictTree({path: file})
    edits = [Edit("1", "search_replace", (1, 1), path, Replace('print("a")\n', new))]
    plan = batch.plan(edits, tree, rules)
    assert not plan.refused
    questioner = Questioner(asked, Cache(), lambda: None)
    repair = correct_escapes(PlannedBatch(edits, plan, tree, rules), questioner)
    return repair, tuple(questioner.problems.values())


def test_only_the_wrong_escapes_are_undone() -> None:
    asked = Scripted([said(RIGHT)])
    corrected, problems = attempt(asked)
    assert corrected is not None
    assert problems == ()
    assert corrected.batch.plan.changes[0].after == f"import os\n{RIGHT}".encode()
    assert corrected.corrections == (Correction("1", "new", "model"),)
    assert NEW in asked.questions[0][-1].text


@pytest.mark.parametrize(
    "answer",
    [NEW, 'print("a\nb")\n', RIGHT + "os.remove('x')\n", ""],
    ids=["as it was", "all undone", "more", "nothing"],
)
def test_anything_else_is_ignored(answer: str) -> None:
    assert attempt(Scripted([said(answer)])) == (None, ())


@pytest.mark.parametrize(
    ("new", "file"),
    [
        (RIGHT, FILE),
        ("print((\n", FILE),
        ('print(\\"a)\n', FILE),
        (NEW, FILE + "print(\n"),
        (NEW.replace("b", "ghp_" + "a1B2c3D4e5F6" * 3), FILE),
    ],
    ids=["parses", "no-escape-is-to-blame", "none-helps", "never-parsed", "secret"],
)
def test_what_no_model_is_asked(new: str, file: str) -> None:
    asked = Scripted([])
    assert attempt(asked, new, file) == (None, ())
    assert asked.questions == []
