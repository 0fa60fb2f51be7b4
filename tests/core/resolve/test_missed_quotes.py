"""What a report says of a quote without a certain place."""

from __future__ import annotations

from random import Random

import pytest

from patchq.core.model.ops import InParagraph, InsertAt, Op, PatchHunk, ReplaceText
from patchq.core.model.values import Problem
from tests.helpers.trees import PATH, edits, planned, told, written
from tests.helpers.trees import batch as ops_of

FILE = """\
import os

class Login:
    def check(self, name):
        if name in self.users:
            return True
        return False

    def leave(self):
        if name in self.users:
            return None
        return False
"""


def problem(old: str, new: str = "new\n", files: dict[str, str] | None = None) -> Problem:
    (found,) = planned({PATH: FILE, **(files or {})}, edits((old, new))).problems
    return found


@pytest.mark.parametrize(
    ("old", "new", "files", "cause"),
    [
        ("    def  check(self, name):\n", "x\n", {}, "whitespace"),
        ("def check(self\n", "x\n", {}, "partial line"),
        ("import os\\n\\nclass Login:\n    def check\n", "x\n", {}, "escaped"),
        ("        if name in self.guests:\n            return True\n", "x\n", {}, "stale"),
        ("class Login:\n    ...\n    def stay(self):\n", "x\n", {}, "elided"),
        ("class Login:\n    # ... existing code ...\n", "x\n", {}, "elided"),
        ("def leave(self): # now\n  if name in self.users:\n",
         "def leave(self):\n  if name in self.users:\n", {}, "already applied"),
        ("    def check(self, name):\n        return False\n",
         "            return  None\n        return False\n", {}, "stale"),
        ("def other():\n    pass\n", "x\n", {"g.txt": "def other():\n    pass\n"}, "other file"),
        ("other = 12\n", "x\n", {"g.txt": "another = 123\n"}, "stale"),
        ("def other():\n    pass\n", "x\n", {"g.py": "def other():\n"}, "stale"),
    ],
)  # fmt: skip
def test_cause(old: str, new: str, files: dict[str, str], cause: str) -> None:
    found = problem(old, new, files)
    assert found.code == "match.none"
    assert f"({cause}" in found.message
    assert found.hint


def test_the_nearest_place_and_the_first_difference_are_shown() -> None:
    found = problem(
        "  def check(self, name):\n      if name of self.users:\n          return True\n"
    )
    assert found.line == 4
    assert "the nearest place is line 4, the first difference at line 5" in found.message
    assert "`······if name of self.users:`" in found.message
    assert "`········if name in self.users:`" in found.message
    assert found.excerpt is not None
    first, lines = found.excerpt
    assert (first, lines[3]) == (1, "    def check(self, name):")


def test_candidates_have_line_symbol_text_and_disambiguator() -> None:
    found = problem("        if name in self.users:\n")
    assert found.code == "match.ambiguous"
    assert [(c.line, c.symbol, c.text, c.disambiguate) for c in found.candidates] == [
        (5, "Login.check", "        if name in self.users:", "    def check(self, name):"),
        (10, "Login.leave", "        if name in self.users:", "    def leave(self):"),
    ]


@pytest.mark.parametrize("slip", ["none", "dedent"])
def test_a_disambiguator_in_front_of_both_halves_makes_the_edit_certain(slip: str) -> None:
    rng, certain = Random(7), 0
    for _ in range(60):
        lines = [
            " " * 4 * rng.randrange(1, 3) + rng.choice(["a", "b", "x = 1", "return"])
            for _ in range(rng.randrange(6, 30))
        ]
        start = rng.randrange(len(lines) - 2)
        quote = lines[start : start + rng.randrange(1, 3)]
        if slip == "dedent":
            quote = [line.removeprefix("    ") for line in quote]
        indent = quote[0][: len(quote[0]) - len(quote[0].lstrip())]
        data = "".join(line + "\n" for line in lines)
        op = ("".join(q + "\n" for q in quote), f"{indent}NEW\n")
        plan = planned(data, edits(op))
        if told(plan) != ["match.ambiguous"]:
            continue
        for candidate in plan.problems[0].candidates:
            if candidate.disambiguate is None:
                continue
            certain += 1
            front = candidate.disambiguate + "\n"
            result = written(data, (front + op[0], front + op[1]))
            assert result is not None
            after = result.decode().split("\n")
            at = candidate.line - 1
            assert after[at].strip() == "NEW"
            assert [*after[:at], *after[at + 1 :]] == [*lines[:at], *lines[at + len(quote) :], ""]
    assert certain > 40


def test_what_diagnosis_may_cost_has_a_bound() -> None:
    text = "".join(f"    x = {i % 50}\n" for i in range(4000))
    many = edits(*((f"    x = {i % 50}\n", f"    y = {i}\n") for i in range(400)))
    problems = planned(text, many).problems
    plain = ["was not looked into" in problem.message for problem in problems]
    assert {problem.code for problem in problems} == {"match.ambiguous"}
    assert all(problem.line for problem in problems)
    assert plain == sorted(plain)
    assert 0 < plain.count(True) < 400


@pytest.mark.parametrize(
    ("op", "code", "said"),
    [
        (ReplaceText("x", "y", 3, stated=True), "match.count", "2 times"),
        (ReplaceText("x", "y", at=(3,)), "match.none", "2 times"),
        (ReplaceText("x", "y"), "match.ambiguous", "2"),
        (InsertAt(9, "y\n"), "match.none", "2 lines"),
        (InParagraph("contains('x')", "x", "y"), "match.ambiguous", "lines 1, 2"),
        (PatchHunk("", "y\n"), "match.none", "quotes none"),
    ],
)
def test_refusal(op: Op, code: str, said: str) -> None:
    [problem] = planned("x a\nx b\n", ops_of(op)).problems
    assert problem.code == code
    assert said in problem.message
    assert problem.hint
    assert problem.edit == "1"
