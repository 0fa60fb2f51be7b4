"""The page of certainty has the kinds that the bench has, and other programs are judged fairly."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from bench.corpus import certainty
from bench.corpus.rewrites.cases import Case
from bench.corpus.rewrites.forms import FORMS
from bench.corpus.rewrites.kinds import KINDS
from bench.corpus.rewrites.others import Aider, OtherTrial, Refusal, other_trial
from bench.corpus.rewrites.registry import Brief, Rewrite, exact, refuse
from bench.corpus.rewrites.tasks import Change, Task
from bench.corpus.rewrites.trial import Result
from bench.git import BenchError

TEXT = "one\ntwo\nthree\nfour\nfive\n"
TASK = Task("t", {"a.txt": TEXT}, (Change("a.txt", "two\nthree\nfour\n", "two\nTHREE\nfour\n", 1),))


def case_of(form: str, rewrite: Rewrite | None = None, kind: str = "plain") -> Case:
    (own,) = (f for f in FORMS if f.name == form)
    brief = Brief(TASK, own, random.Random(1), "/x")
    return Case(KINDS[kind], brief, rewrite or exact(brief.response()))


def result(kind: str, outcome: str, allowed: str = "exact") -> Result:
    return Result(kind, KINDS[kind].group, "v4a", "t", (allowed,), outcome, "", (), 0.1)  # type: ignore[arg-type]


# ---------------------------------------------------------------- the page


def test_the_page_has_a_line_for_each_kind() -> None:
    text = certainty.PAGE.read_text().partition(certainty.BEGIN)[2]
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    missing = [name for name in KINDS if certainty._code(name) not in rows]
    assert not missing, "run python -m bench.corpus.certainty"


def test_the_table() -> None:
    found = {
        "patchq": [result("plain", "exact"), result("plain", "refused"),
                   result("two dividers", "refused", "refused")],
        "aider": [result("plain", "wrong")],
    }  # fmt: skip
    text = certainty.table(found)
    assert "| plain | 2 | 1 | 1 | 0 | 0 | 0 | 1 | 50.0 | 0 / 0 / 1 |" in text
    assert "| two dividers | 1 | 0 | 1 | 0 | 0 | 0 | 1 |  |" in text
    assert "| aider | 1 | 0 | 0 | 1 | 1 / 1 / 0 |" in text
    assert "| 3 | 1 | 2 | 0 | 0 | 0 | 2 | 50.0 |" in text


def test_only_the_table_of_the_page_is_written_anew() -> None:
    page = f"Head\n{certainty.BEGIN}old\n{certainty.END}Tail\n"
    again = certainty.rewritten(page, "new\n", "Made of it.")
    assert again == f"Head\n{certainty.BEGIN}\nMade of it.\n\nnew\n\n{certainty.END}Tail\n"
    with pytest.raises(BenchError, match="no place"):
        certainty.rewritten("Head\n", "new\n", "")


def test_names_that_Markdown_would_read_are_escaped() -> None:
    assert certainty._code("a block in <pre>") == "a block in &lt;pre>"


# ---------------------------------------------------------------- other programs


@pytest.mark.parametrize("by", ["git apply", "patch"])
def test_a_diff_by_another_program(by: str, tmp_path: Path) -> None:
    trial = other_trial(by, tmp_path)
    missed = TASK.changes[0].old
    assert missed
    wrong = case_of("unified_diff").rewrite.response.replace("-three", "-tree")
    cases = [
        case_of("unified_diff"),
        case_of("unified_diff", refuse("no patch at all\n")),
        case_of("unified_diff", exact(wrong)),
        case_of("v4a"),
    ]
    outcomes = [found.outcome for found in trial.decide_all(cases)]
    assert outcomes == ["exact", "refused", "refused"]
    trial.close()


def test_what_was_written_before_a_no_has_landed(tmp_path: Path) -> None:
    def half(folder: Path, answer: str, form: str) -> None:
        (folder / "a.txt").write_text("half\n")
        raise Refusal("the rest fails")

    trial = OtherTrial("aider", half, tmp_path)
    (found,) = trial.decide_all([case_of("search_replace")])
    assert (found.outcome, found.why) == ("wrong", "the rest fails")


def test_only_forms_and_kinds_that_it_reads(tmp_path: Path) -> None:
    trial = OtherTrial("aider", lambda *words: None, tmp_path)
    cases = [
        case_of("find_replace"),
        case_of("search_replace", kind="front: an id"),
        case_of("search_replace", exact('{"a": 1}')),
        case_of("search_replace"),
    ]
    assert [found.outcome for found in trial.decide_all(cases)] == ["refused"]


CODER = """
from pathlib import Path

from aider import utils
from ..dump import dump
from .base_coder import Coder
from .{prompts} import {Prompts}


class {Name}(Coder):
    def get_edits(self):
        path, _, text = self.partial_response_content.partition("\\n")
        return [(path, text)]

    def apply_edits(self, edits):
        for path, text in edits:
            full = self.abs_root_path(path)
            if not Path(full).exists():
                raise ValueError(f"no file {{path}} of {{self.get_inchat_relative_files()}}")
            self.io.write_text(full, self.io.read_text(full) + text)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What stands where aider's coders stand, and takes from aider what they take."""
    folder = tmp_path / "checkout/aider/coders"
    folder.mkdir(parents=True)
    for module, prompts, name in (
        ("editblock_coder", "editblock_prompts", "EditBlockCoder"),
        ("patch_coder", "patch_prompts", "PatchCoder"),
    ):
        words = "".join(map(str.title, prompts.split("_"))).replace("Editblock", "EditBlock")
        text = CODER.format(prompts=prompts, Prompts=words, Name=name)
        (folder / f"{module}.py").write_text(text)
    return tmp_path / "checkout"


def test_aider_works_on_a_folder(checkout: Path, tmp_path: Path) -> None:
    trial = other_trial(f"aider:{checkout}", tmp_path)
    cases = [
        case_of("search_replace", exact("a.txt\nsix\n", {"a.txt": TEXT + "six\n"})),
        case_of("v4a", refuse("b.txt\nsix\n")),
        case_of("search_replace", refuse("../b.txt\nsix\n")),
    ]
    results = list(trial.decide_all(cases))
    assert [found.outcome for found in results] == ["exact", "refused", "refused"]
    assert results[1].why == "ValueError: no file b.txt of ['a.txt']"
    assert "outside: ../b.txt" in results[2].why


def test_no_such_program(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="known are aider, git apply, patch"):
        other_trial("guess", tmp_path)
    with pytest.raises(BenchError, match="no checkout of aider"):
        Aider(tmp_path)
