"""After a refusal, its retry prompt alone holds what the next response needs.

The reader (`reader.py`) sees the prompt and nothing of the repository.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from patchq.core import formats
from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.values import Envelope
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import git, make_repo, write_config
from tests.helpers.reader import answer

TWINS = """\
class One:
    def run(self):
        value = 1
        return value


class Two:
    def run(self):
        value = 1
        return value
"""
LOGIN = """\
import os


def check(user, password):
    if user.locked:
        return False
    return user.password == password


def name(user):
    return user.name
"""
FILES = {
    "src/login.py": LOGIN,
    "twins.py": TWINS,
    "notes.txt": "one\ntwo\nthree\n",
    "blank.txt": "a\n\nsame\nb\nc\nsame\nd\n",
    "blanks.txt": "a\n\nsame\nb\n\nsame\nd\n",
    "twice.txt": "same\nfirst\nlast\nsame\nsecond\nend\n",
}


class Practice(NamedTuple):
    """A response that is refused, and the file that its author wanted."""

    code: str
    response: str
    path: str
    wanted: str
    line: int = 0


def find_replace(path: str, old: str, new: str) -> str:
    return (
        f"FILE: {path}\n\n### CHANGE 1: it\nFIND:\n```\n{old}```\n\nREPLACE WITH:\n```\n{new}```\n"
    )


def tool_call(path: str, old: str, new: str) -> str:
    call = {"path": path, "old_str": old, "new_str": new, "expected_replacements": 1}
    return json.dumps([call]) + "\n"


def unified(path: str, old: str, new: str) -> str:
    gone = "".join(f"-{line}\n" for line in old.splitlines())
    fresh = "".join(f"+{line}\n" for line in new.splitlines())
    counts = f"-1,{old.count(chr(10))} +1,{new.count(chr(10))}"
    return f"--- a/{path}\n+++ b/{path}\n@@ {counts} @@\n{gone}{fresh}"


def v4a(path: str, old: str, new: str) -> str:
    gone = "".join(f"-{line}\n" for line in old.splitlines())
    fresh = "".join(f"+{line}\n" for line in new.splitlines())
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n{gone}{fresh}*** End Patch\n"


FORMS = {
    "search_replace": block,
    "find_replace": find_replace,
    "edit_file": tool_call,
    "unified_diff": unified,
    "v4a": v4a,
}
MISQUOTES = {
    "a name": ("    return user.passwd == password\n", "    return user.passwd is password\n"),
    "two lines of three": (
        "    if user.is_locked:\n        return None\n    return user.password == password\n",
        "    if user.is_locked:\n        return None\n    return user.password is password\n",
    ),
    "a line in the middle": (
        "def check(user, password):\n    if user.blocked:\n        return False\n"
        "    return user.password == password\n",
        "def check(user, password):\n    if user.blocked:\n        return False\n"
        "    return user.password is password\n",
    ),
    "a new line below it": (
        "def name(person):\n    return user.name\n",
        "def name(person):\n    assert user\n    return user.name\n",
    ),
}
WANTED = {
    "a new line below it": LOGIN.replace(
        "(user):\n    return", "(user):\n    assert user\n    return"
    )
}
PRACTICE: dict[str, Practice] = {
    f"match.none, {slip}, {form}": Practice(
        "match.none",
        write("src/login.py", old, new),
        "src/login.py",
        WANTED.get(slip, LOGIN.replace("== password", "is password")),
    )
    for slip, (old, new) in MISQUOTES.items()
    for form, write in FORMS.items()
}
OLD, NEW = "        value = 1\n        return value\n", "        return 1\n"
SECOND = TWINS[: TWINS.rindex(OLD)] + NEW
FIRST = TWINS.replace(OLD, NEW, 1)
PRACTICE |= {
    f"{code}, place {place}, {form}": Practice(
        code, FORMS[form]("twins.py", OLD, NEW), "twins.py", wanted, line
    )
    for form in ("search_replace", "find_replace", "unified_diff", "v4a", "edit_file")
    for code in ["match.count" if form == "edit_file" else "match.ambiguous"]
    for place, line, wanted in ((1, 3, FIRST), (2, 9, SECOND))
}
PRACTICE |= {
    "path.not_found, another directory": Practice(
        "path.not_found",
        block("lib/login.py", "import os\n", "import sys\n"),
        "src/login.py",
        LOGIN.replace("import os", "import sys"),
    ),
    "path.not_found, a typing error": Practice(
        "path.not_found",
        block("note.txt", "two\n", "2\n"),
        "notes.txt",
        "one\n2\nthree\n",
    ),
    "match.ambiguous, nothing before it": Practice(
        "match.ambiguous",
        block("twice.txt", "same\n", "other\n"),
        "twice.txt",
        "other\nfirst\nlast\nsame\nsecond\nend\n",
        1,
    ),
    "match.ambiguous, a blank line before it": Practice(
        "match.ambiguous",
        block("blank.txt", "same\n", "other\n"),
        "blank.txt",
        "a\n\nother\nb\nc\nsame\nd\n",
        3,
    ),
    "match.ambiguous, a blank line at the end of what is offered": Practice(
        "match.ambiguous",
        block("blanks.txt", "same\n", "other\n"),
        "blanks.txt",
        "a\n\nother\nb\n\nsame\nd\n",
        3,
    ),
    "path.exists, a patch": Practice(
        "path.exists",
        "*** Begin Patch\n*** Add File: notes.txt\n+new\n*** End Patch\n",
        "notes.txt",
        "new\n",
    ),
    "path.exists, an empty SEARCH": Practice(
        "path.exists", block("notes.txt", "", "new\n"), "notes.txt", "new\n"
    ),
}


@pytest.mark.parametrize("case", PRACTICE.values(), ids=PRACTICE)
def test_a_careful_reader_sends_it_right(case: Practice, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, FILES)
    write_config(repo, "version: 1\nmode: auto\n")
    patchq("init", cwd=repo)
    queue = repo / ".patchq"
    drop(queue, {"first.md": case.response})
    patchq("run", cwd=repo, code=1)
    told = report(queue, "first")
    assert {problem["code"] for problem in told["problems"]} == {case.code}
    opened = open_response(case.response.encode())
    assert isinstance(opened, Envelope)
    sent = formats.parse(opened.text, FILES.__contains__).edits

    def choose(path: str, lines: object) -> int:
        assert case.line in lines  # type: ignore[operator]
        return case.line

    drop(queue, {"second.md": answer(told["retry"]["prompt"], sent, choose)})
    patchq("run", cwd=repo, code=None)
    again = report(queue, "second")
    assert again["state"] == "applied", again["problems"]
    assert again["retry"]["of"] == "first"
    assert git("show", f"main:{case.path}", cwd=repo) + "\n" == case.wanted


def test_a_result_that_does_not_parse_is_shown_with_its_line(tmp_path: Path) -> None:
    """What is wrong cannot be read off by rule; where and what it is, can."""
    repo = make_repo(tmp_path, FILES)
    patchq("init", cwd=repo)
    bad = block("src/login.py", "def name(user):\n", "def name(user, short=False)\n")
    drop(repo / ".patchq", {"first.md": bad})
    patchq("run", cwd=repo, code=1)
    prompt = report(repo / ".patchq", "first")["retry"]["prompt"]
    assert "10 | def name(user, short=False)" in prompt
    assert "expected ':'" in prompt


def test_an_edit_that_cannot_be_read_is_told_with_its_line_and_the_form(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, FILES)
    patchq("init", cwd=repo)
    drop(repo / ".patchq", {"first.md": "*** Begin Patch\n*** End Patch\n"})
    patchq("run", cwd=repo, code=1)
    prompt = report(repo / ".patchq", "first")["retry"]["prompt"]
    assert "response line 1" in prompt
    assert "the patch names no file" in prompt
    assert "*** Update File:" in prompt
