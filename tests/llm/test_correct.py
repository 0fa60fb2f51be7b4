"""Quotes that stand nowhere, corrected with a model's help, or left as they are."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from patchq.core.model.ops import InContext, Occurrences, Op, PatchHunk, Replace, ReplaceText
from patchq.core.model.values import Correction, Edit, Problem
from patchq.core.plan import batch
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.spool import create
from patchq.llm.chat import Answer, Cache, Chat
from patchq.llm.corrections import NEW, OLD, PlannedBatch, Questioner, Repair, correct_quotes
from tests.helpers.scripted import Scripted
from tests.helpers.trees import RULES, DictTree

PATH = "config.js"
FILE = """\
// Where to ask.
const API_URL = "https://old.api/v1" // Note: double quotes, missing semicolon
const RETRIES = 3;
"""
OLD_STR = "const API_URL = 'https://old.api/v1';"
NEW_STR = "const API_URL = 'https://new.api/v2';"
THERE = 'const API_URL = "https://old.api/v1"'
FRESH = 'const API_URL = "https://new.api/v2"'
CALL = ReplaceText(OLD_STR, NEW_STR, 1, stated=True)


def said(key: str, text: str) -> str:
    return json.dumps({key: text})


def model(*answers: str | Answer | Problem) -> Scripted:
    return Scripted(answers)


class Tried(NamedTuple):
    """What came of asking, and the warnings."""

    made: Repair | None
    problems: tuple[Problem, ...]


def attempt(
    asked: Chat,
    *ops: Op,
    files: dict[str, str] | None = None,
    cache: Cache | None = None,
    path: str = PATH,
) -> Tried:
    tree = DictTree(files or {path: FILE})
    edits = [Edit(str(n), "edit_calls", (n, n), path, op) for n, op in enumerate(ops, 1)]
    return corrected(edits, tree, asked, cache or Cache())


def corrected(edits: list[Edit], tree: DictTree, asked: Chat, cache: Cache) -> Tried:
    plan = batch.plan(edits, tree, RULES)
    assert plan.refused
    questioner = Questioner(asked, cache, lambda: None)
    made = correct_quotes(PlannedBatch(edits, plan, tree, RULES), questioner)
    return Tried(made, tuple(questioner.problems.values()))


def result(tried: Tried, path: str = PATH) -> str | None:
    """What the file becomes; None if the first refusal stands."""
    if tried.made is None:
        return None
    (change,) = tried.made.batch.plan.changes
    assert change.path == path
    assert change.after is not None
    return change.after.decode()


def test_quote_and_replacement_are_corrected() -> None:
    asked = model(said(OLD, THERE), said(NEW, FRESH))
    tried = attempt(asked, CALL)
    assert result(tried) == FILE.replace(THERE, FRESH)
    assert tried.made is not None
    assert tried.made.corrections == (
        Correction("1", "old", "model"),
        Correction("1", "new", "model"),
    )
    assert tried.problems == ()
    first, second = (messages[-1].text for messages in asked.questions)
    assert FILE in first
    assert OLD_STR in first
    assert all(text in second for text in (OLD_STR, NEW_STR, THERE))


PYTHON = "def total(items, tax):\n    value = sum(items)\n    return value * tax\n"
MISQUOTED = PYTHON.replace("items, tax", "rows, tax").replace("(items)", "(rows)")
WANTED = PYTHON.replace("value * tax", "round(value * tax, 2)")
OPS: dict[str, Op] = {
    "hunk": PatchHunk(MISQUOTED, MISQUOTED.replace("value * tax", "round(value * tax, 2)"), 7),
    "indexed": Occurrences(MISQUOTED, MISQUOTED.replace("value * tax", "round(value * tax, 2)")),
    "contextual": InContext(
        MISQUOTED[: MISQUOTED.index("value *")], "value * tax", "\n", "round(value * tax, 2)"
    ),
}


@pytest.mark.parametrize("op", OPS.values(), ids=OPS.keys())
def test_every_form_that_quotes(op: Op) -> None:
    asked = model(said(OLD, PYTHON), said(NEW, WANTED))
    files = {"a.py": f"import os\n\n{PYTHON}\nprint(total)\n"}
    tried = attempt(asked, op, files=files, path="a.py")
    assert result(tried, "a.py") == f"import os\n\n{WANTED}\nprint(total)\n"


NO_ANSWER = Problem("llm.server", "away")
IGNORED: dict[str, tuple[tuple[str | Answer | Problem, ...], str | None]] = {
    "nothing": ((said(OLD, ""),), None),
    "a path beside it": ((json.dumps({OLD: THERE, "path": "b.js"}),), "llm.answer"),
    "cut": ((Answer(said(OLD, THERE), "length", "m"),), "llm.answer"),
    "no answer": ((NO_ANSWER,), "llm.server"),
    "another line": ((said(OLD, "const RETRIES = 3;"),), None),
    "a replacement with more": ((said(OLD, THERE), said(NEW, FRESH + "; evil()")), None),
}  # fmt: skip


@pytest.mark.parametrize(("answers", "code"), IGNORED.values(), ids=IGNORED.keys())
def test_anything_else_is_ignored(
    answers: tuple[str | Answer | Problem, ...], code: str | None
) -> None:
    tried = attempt(model(*answers), CALL)
    assert result(tried) is None
    assert [(p.code, p.severity) for p in tried.problems] == ([(code, "warning")] if code else [])


NOT_ASKED: dict[str, tuple[dict[str, str], tuple[Op, ...]]] = {
    "all places": ({PATH: FILE}, (ReplaceText(OLD_STR, NEW_STR, None),)),
    "an error beside it that stays": ({PATH: FILE + FILE}, (CALL, ReplaceText(THERE, FRESH))),
    "more misses than a careful response has": (
        {PATH: FILE},
        tuple(ReplaceText(f"{OLD_STR}{n}", NEW_STR) for n in range(11)),
    ),
    "a quote of half a character": ({PATH: FILE}, (ReplaceText(OLD_STR + "\udc80", NEW_STR),)),
}


@pytest.mark.parametrize(("files", "ops"), NOT_ASKED.values(), ids=NOT_ASKED.keys())
def test_what_no_model_is_asked(files: dict[str, str], ops: tuple[Op, ...]) -> None:
    asked = model()
    assert attempt(asked, *ops, files=files) == (None, ())
    assert asked.questions == []


def test_result_that_does_not_parse_is_not_taken() -> None:
    broken = MISQUOTED.replace("value * tax", "value * tax)")
    asked = model(said(OLD, PYTHON), said(NEW, PYTHON.replace("value * tax", "value * tax)")))
    files = {"a.py": PYTHON}
    assert attempt(asked, Replace(MISQUOTED, broken), files=files, path="a.py").made is None


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Path]:
    """A queue, whose store keeps the answers."""
    create(root := tmp_path / "queue")
    with closing(StoreQueue(root)):
        yield root


def test_same_question_is_asked_once(queue: Path) -> None:
    asked, cache = model(said(OLD, THERE), said(NEW, FRESH)), Cache(queue)
    for again in (cache, cache, Cache(queue)):
        assert result(attempt(asked, CALL, cache=again)) == FILE.replace(THERE, FRESH)
    assert len(asked.questions) == 2
    attempt(asked, CALL, files={PATH: FILE + "\n"}, cache=cache)
    assert len(asked.questions) == 3, "another content is another question"
    attempt(Scripted([said(OLD, "")], name="other"), CALL, cache=cache)


def test_what_changed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "patchq")
    attempt(model(said(OLD, THERE), said(NEW, FRESH)), CALL)
    assert all(repr(text) in caplog.text for text in (OLD_STR, THERE, NEW_STR, FRESH))
