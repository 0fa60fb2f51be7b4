"""What a report says of a batch whose base has moved, as its author reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.command import block, give, patchq
from tests.helpers.gitrepo import commit_files, git, make_repo

IX = block("a.txt", "line 9\n", "line IX\n")
NEW = block("new.txt", "", "new\n")
LINES = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    config = "version: 1\nmode: auto\ntarget: trunk\n"
    repo = make_repo(tmp_path / "repo", {"a.txt": LINES, "b.txt": "b\n", ".patchq.yaml": config})
    git("branch", "trunk", cwd=repo)
    patchq("init", cwd=repo)
    return repo


def commit_on_trunk(repo: Path, files: dict[str, str], message: str, without: str = "") -> str:
    git("checkout", "-q", "trunk", cwd=repo)
    if without:
        (repo / without).unlink()
    made = commit_files(repo, files, message)
    git("checkout", "-q", "main", cwd=repo)
    return made


def test_the_collision_names_who_changed_these_lines(repo: Path) -> None:
    base = git("rev-parse", "trunk", cwd=repo)
    edit = block("a.txt", "line 9\n", "line nine\n")
    first = give(repo, "first", f"---\nagent: ada\nmodel: m1\n---\n{edit}")
    later = LINES.replace("line 9\n", "line nine\n").replace("line 25\n", "line XXV\n")
    commit_on_trunk(repo, {"a.txt": f"line 0\n{later}"}, "Elsewhere in the file")
    second = give(repo, "second", f"---\nbase: {base}\n---\n{IX}", code=1)
    (problem,) = second["problems"]
    assert (problem["code"], problem["line"]) == ("conflict.base", 9)
    assert problem["conflicts_with"] == {
        "batch": "first", "edit": "1", "commit": first["commit"], "agent": "ada",
        "path": "a.txt", "lines": [9, 9],
    }  # fmt: skip
    page = (repo / ".patchq/rejected/second.report.md").read_text()
    assert "10 | line nine" in page, "the lines as they are on the tip"
    tip = git("rev-parse", "trunk", cwd=repo)
    assert f"and send the change with `base: {tip[:12]}`" in page
    assert f"---\nretries: second\nbase: {tip}\n---\n" in page


WRAPPED = """--- a/a.txt
+++ b/a.txt
@@ -9,2 +9,3 @@
 line 9
+}
 line 10
"""


@pytest.mark.parametrize(
    ("line", "by"), [("line 25\n", ""), ("line 9\n}\n", "line 9\n]\n")], ids=["beside", "changed"]
)
def test_a_second_delivery_in_another_form(repo: Path, line: str, by: str) -> None:
    base = git("rev-parse", "trunk", cwd=repo)
    moved = LINES.replace("line 20\n", "")
    commit_on_trunk(repo, {"a.txt": moved}, "Before the change lands")
    edit = block("a.txt", "line 9\n", "line 9\n}\n")
    first = give(repo, "first", f"---\nbase: {base}\n---\n{edit}")
    landed = moved.replace("line 9\n", "line 9\n}\n")
    commit_on_trunk(repo, {"a.txt": landed.replace(line, by)}, "After it has landed")
    second = give(repo, "second", f"---\nbase: {base}\n---\n{WRAPPED}", code=int(bool(by)))
    assert (first["state"], second["state"]) == ("applied", "rejected" if by else "duplicate")
    assert second["duplicate_of"] == (None if by else "first")
    told = [(one["code"], "landed as change first" in one["message"]) for one in second["problems"]]
    assert told == [("conflict.base", True)] * bool(by)


def test_the_same_change_by_a_person_is_named(repo: Path) -> None:
    base = git("rev-parse", "trunk", cwd=repo)
    made = commit_on_trunk(repo, {"a.txt": LINES.replace("line 9\n", "line 9\n}\n")}, "By hand")
    told = give(repo, "r", f"---\nbase: {base}\n---\n{WRAPPED}")
    assert (told["state"], told["duplicate_of"]) == ("duplicate", made)


def test_a_whole_file_for_one_that_was_just_renamed_is_proposed(repo: Path) -> None:
    commit_on_trunk(repo, {"c.txt": "b\n"}, "Rename", without="b.txt")
    told = give(repo, "r", "```text:b.txt\nb\nmore\n```\n")
    assert (told["state"], [p["code"] for p in told["problems"]]) == ("proposed", ["base.unknown"])
    short = git("rev-parse", "--short=12", "trunk", cwd=repo)
    assert f"last touched by {short} (Rename)" in told["problems"][0]["message"]


def test_two_good_changes_that_break_the_file_together_are_refused(repo: Path) -> None:
    before = "f(\n    1,\n    2,\n    3,\n    4,\n    5,\n)\n"
    base = commit_on_trunk(repo, {"a.py": before}, "Python")
    commit_on_trunk(
        repo, {"a.py": before.replace("f(\n", "f(x=1, *[\n").replace(")\n", "])\n")}, "X"
    )
    edit = block("a.py", "    2,\n    3,\n", "    2,\n    y=3,\n")
    told = give(repo, "r", f"---\nbase: {base}\n---\n{edit}", code=1)
    assert [p["code"] for p in told["problems"]] == ["result.syntax"]


def test_what_the_tip_has_already_is_told_edit_by_edit(repo: Path) -> None:
    base = git("rev-parse", "trunk", cwd=repo)
    nine = LINES.replace("line 9\n", "line IX\n")
    commit_on_trunk(repo, {"a.txt": nine, "new.txt": "new\n"}, "Make some of it")
    edits = NEW + IX + block("a.txt", "line 20\n", "line XX\n")
    sent = give(repo, "r", f"---\nbase: {base}\n---\n{edits}")
    assert sent["state"] == "applied"
    states = [edit["state"] for edit in sent["edits"]]
    assert states == ["already_applied", "already_applied", "applied"]
    after = git("show", "trunk:a.txt", cwd=repo) + "\n"
    assert after == nine.replace("line 20\n", "line XX\n")


@pytest.mark.parametrize(
    ("text", "without"), [(NEW, ""), (IX, "a.txt")], ids=["made otherwise", "deleted"]
)
def test_what_is_refused_is_not_said_to_be_there(repo: Path, text: str, without: str) -> None:
    base = git("rev-parse", "trunk", cwd=repo)
    commit_on_trunk(repo, {"new.txt": "other\n"}, "Otherwise", without)
    two = text + block("a.txt", "line 20\n", "line XX\n")
    sent = give(repo, "r", f"---\nbase: {base}\n---\n{two}", code=1)
    assert [problem["code"] for problem in sent["problems"]] == ["conflict.base"]
    assert "already_applied" not in [edit["state"] for edit in sent["edits"]]
