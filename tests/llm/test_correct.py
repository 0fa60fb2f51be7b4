"""Quotes that are in no file, and escapes too many, corrected with a model's help or left alone."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from patchq.core.model.ops import Op, PatchHunk, Replace, ReplaceText
from patchq.core.model.values import Correction, Edit, Problem
from patchq.core.plan import batch
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.spool import create
from patchq.llm.chat import Answer, Cache
from patchq.llm.corrections import (
    ESCAPING,
    NEW,
    OLD,
    PlannedBatch,
    Questioner,
    Repair,
    correct_escapes,
    correct_quotes,
    read,
)
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
Reply = str | Answer | Problem
Tried = tuple[Repair | None, tuple[Problem, ...]]


def said(key: str, text: str) -> str:
    return json.dumps({key: text})


def model(*answers: Reply) -> Scripted:
    return Scripted(answers)


def attempt(
    asked: Scripted,
    *ops: Op,
    file: str = FILE,
    path: str = PATH,
    cache: Cache | None = None,
    correct: Callable[[PlannedBatch, Questioner], Repair | None] = correct_quotes,
) -> Tried:
    """Return what came of asking, and the warnings."""
    tree, rules = DictTree({path: file}), replace(RULES, judged=lambda path: True)
    edits = [Edit(str(n), "edit_calls", (n, n), path, op) for n, op in enumerate(ops, 1)]
    plan = batch.plan(edits, tree, rules)
    assert plan.refused == (correct is correct_quotes)
    questioner = Questioner(asked, cache or Cache(), lambda: None)
    made = correct(PlannedBatch(edits, plan, tree, rules), questioner)
    return made, tuple(questioner.problems.values())


def result(tried: Tried) -> str:
    """Return what the file becomes."""
    made, problems = tried
    assert made
    assert problems == ()
    (change,) = made.batch.plan.changes
    assert change.after is not None
    return change.after.decode()


def test_quote_and_replacement_are_corrected(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "patchq")
    asked = model(said(OLD, THERE), said(NEW, FRESH))
    tried = attempt(asked, CALL)
    assert result(tried) == FILE.replace(THERE, FRESH)
    assert tried[0]
    assert tried[0].corrections == (
        Correction("1", "old", "model"),
        Correction("1", "new", "model"),
    )
    first, second = (messages[-1].text for messages in asked.questions)
    assert FILE in first
    assert OLD_STR in first
    assert all(text in second for text in (OLD_STR, NEW_STR, THERE))
    assert all(repr(text) in caplog.text for text in (OLD_STR, THERE, NEW_STR, FRESH))


PYTHON = "def total(items, tax):\n    value = sum(items)\n    return value * tax\n"
MISQUOTED = PYTHON.replace("items, tax", "rows, tax").replace("(items)", "(rows)")
CHANGED = MISQUOTED.replace("value * tax", "round(value * tax, 2)")
WANTED = PYTHON.replace("value * tax", "round(value * tax, 2)")
BEFORE = MISQUOTED[: MISQUOTED.index("value *")]
OPS: dict[str, Op] = {
    "hunk": PatchHunk(MISQUOTED, CHANGED, 7),
    "contextual": ReplaceText("value * tax", "round(value * tax, 2)", before=BEFORE, after="\n"),
}


@pytest.mark.parametrize("op", OPS.values(), ids=OPS.keys())
def test_every_form_that_quotes(op: Op) -> None:
    asked = model(said(OLD, PYTHON), said(NEW, WANTED))
    file = "import os\n\n{}\nprint(total)\n"
    tried = attempt(asked, op, file=file.format(PYTHON), path="a.py")
    assert result(tried) == file.format(WANTED)


IGNORED: dict[str, tuple[tuple[Reply, ...], str | None]] = {
    "nothing": ((said(OLD, ""),), None),
    "a path beside it": ((json.dumps({OLD: THERE, "path": "b.js"}),), "llm.answer"),
    "cut": ((Answer(said(OLD, THERE), "length", "m"),), "llm.answer"),
    "no answer": ((Problem("llm.server", "away"),), "llm.server"),
    "another line": ((said(OLD, "const RETRIES = 3;"),), None),
    "a replacement with more": ((said(OLD, THERE), said(NEW, FRESH + "; evil()")), None),
}  # fmt: skip


@pytest.mark.parametrize(("answers", "code"), IGNORED.values(), ids=IGNORED.keys())
def test_anything_else_is_ignored(answers: tuple[Reply, ...], code: str | None) -> None:
    made, problems = attempt(model(*answers), CALL)
    assert made is None
    assert [(p.code, p.severity) for p in problems] == ([(code, "warning")] if code else [])


NOT_ASKED: dict[str, tuple[str, tuple[Op, ...]]] = {
    "all places": (FILE, (ReplaceText(OLD_STR, NEW_STR, None),)),
    "an error beside it that stays": (FILE + FILE, (CALL, ReplaceText(THERE, FRESH))),
    "too many misses": (FILE, tuple(ReplaceText(f"{OLD_STR}{n}", NEW_STR) for n in range(11))),
    "a quote of half a character": (FILE, (ReplaceText(OLD_STR + "\udc80", NEW_STR),)),
}


@pytest.mark.parametrize(("file", "ops"), NOT_ASKED.values(), ids=NOT_ASKED.keys())
def test_what_no_model_is_asked(file: str, ops: tuple[Op, ...]) -> None:
    asked = model()
    assert attempt(asked, *ops, file=file) == (None, ())
    assert asked.questions == []


def test_result_that_does_not_parse_is_not_taken() -> None:
    answers = [text.replace("value * tax", "value * tax)") for text in (MISQUOTED, PYTHON)]
    asked = model(said(OLD, PYTHON), said(NEW, answers[1]))
    op = Replace(MISQUOTED, answers[0])
    assert attempt(asked, op, file=PYTHON, path="a.py")[0] is None


def test_same_question_is_asked_once(tmp_path: Path) -> None:
    create(root := tmp_path / "queue")
    with closing(StoreQueue(root)):
        asked, cache = model(said(OLD, THERE), said(NEW, FRESH)), Cache(root)
        for again in (cache, cache, Cache(root)):
            assert result(attempt(asked, CALL, cache=again)) == FILE.replace(THERE, FRESH)
        assert len(asked.questions) == 2
        attempt(asked, CALL, file=FILE + "\n", cache=cache)
        assert len(asked.questions) == 3, "another content is another question"
        other = Scripted([said(OLD, "")], name="other")
        attempt(other, CALL, cache=cache)
        assert len(other.questions) == 1, "and so is another model"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (f" \n{json.dumps({OLD: 'a'})}\n", "a"),
        (f"````\n{json.dumps({OLD: '```'})}\n````", "```"),
        (f"Sure!\n{json.dumps({OLD: 'a'})}", None),
        (json.dumps({OLD: "a", "b": "c"}), None),
        (json.dumps({"b": "c"}), None),
        (json.dumps({OLD: "\udc80"}), None),
        (json.dumps({OLD: "a\0"}), None),
        ("[" * 100_000, None),
    ],
    ids=range(8),
)
def test_answer_is_one_object_with_one_text(answer: str, text: str | None) -> None:
    assert read(answer, OLD) == text


CODE = 'import os\nprint("a")\n'
ESCAPED = 'print(\\"a\\nb\\")\n'
RIGHT = 'print("a\\nb")\n'


def unescaped(asked: Scripted, new: str = ESCAPED, file: str = CODE) -> Tried:
    op = Replace('print("a")\n', new)
    return attempt(asked, op, file=file, path="a.py", correct=correct_escapes)


def test_only_the_wrong_escapes_are_undone() -> None:
    asked = model(said(ESCAPING, RIGHT))
    tried = unescaped(asked)
    assert result(tried) == f"import os\n{RIGHT}"
    assert tried[0]
    assert tried[0].corrections == (Correction("1", "new", "model"),)
    assert ESCAPED in asked.questions[0][-1].text


@pytest.mark.parametrize(
    "answer",
    [ESCAPED, 'print("a\nb")\n', RIGHT + "os.remove('x')\n", ""],
    ids=["as it was", "all undone", "more", "nothing"],
)
def test_any_other_escaping_is_ignored(answer: str) -> None:
    assert unescaped(model(said(ESCAPING, answer))) == (None, ())


@pytest.mark.parametrize(
    ("new", "file"),
    [
        (RIGHT, CODE),
        ("print((\n", CODE),
        ('print(\\"a)\n', CODE),
        (ESCAPED, CODE + "print(\n"),
        (ESCAPED.replace("b", "ghp_" + "a1B2c3D4e5F6" * 3), CODE),
    ],
    ids=["parses", "no-escape-is-to-blame", "none-helps", "never-parsed", "secret"],
)
def test_which_escapes_no_model_is_asked_about(new: str, file: str) -> None:
    asked = model()
    assert unescaped(asked, new, file) == (None, ())
    assert asked.questions == []
