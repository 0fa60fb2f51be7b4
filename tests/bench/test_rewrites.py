"""The bench of rewrites: it notices what is wrong, and has something of every kind."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from bench.corpus.cases import read_cases
from bench.corpus.rewrites.__main__ import main
from bench.corpus.rewrites.cases import cases_of
from bench.corpus.rewrites.forms import FORMS
from bench.corpus.rewrites.kinds import KINDS
from bench.corpus.rewrites.registry import Brief, Kind, Rewrite, exact, refuse
from bench.corpus.rewrites.tasks import Change, Task, applied, losses, tasks_of
from tests.helpers.benches import bench

TOTAL = "".join(f"total_{name} = 'the {name} of it'\n" for name in ("one", "two", "three", "four"))
SHARES = "".join(
    f"\ndef share_{n}(value, whole):\n    name = 'share {n}'\n    limit = {n}\n"
    f"    part = value * {n}\n    print(name, part)\n    return part / whole\n\n"
    for n in range(9)
)
BEFORE = {
    "pkg/total.py": TOTAL + SHARES,
    "pkg/names.toml": "".join(f"[section_{n}]\nname = 'n{n}'\nsize = {n}\n" for n in range(12)),
    "docs/notes.txt": "".join(f"Note {n}: nothing.\n" for n in range(9)),
    "docs/guide.txt": "".join(f"Line {n} of the guide says {n * n}.\n" for n in range(40)),
}
AFTER = {
    "pkg/total.py": BEFORE["pkg/total.py"]
    .replace("value * 2", "value * 22")
    .replace("value * 6\n    print(name, part)", "value + 6\n    print(name, part, limit)"),
    "pkg/names.toml": BEFORE["pkg/names.toml"].replace("size = 7\n", "size = 77\nage = 'a & b'\n"),
    "docs/guide.txt": BEFORE["docs/guide.txt"]
    .replace("Line 11 ", "Line eleven ")
    .replace("Line 30 of the guide says 900.\n", ""),
    "pkg/extra.py": "extra = 1\n",
}
CHANGES = 6
"""Of one case; its sub-tasks are one, two and three neighbours of them."""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    texts = sorted({TOTAL, *BEFORE.values(), *AFTER.values()})
    lines: list[dict[str, object]] = [{"blob": text, "text": text} for text in texts]
    case = {
        "id": "one",
        "source": "here",
        "format": "any",
        "response": "",
        "before": BEFORE,
        "after": AFTER,
    }
    lines.append({**case, "expect": "exact"})
    lines.append({**case, "id": "the same", "expect": "exact"})
    lines.append({**case, "id": "another", "after": {"pkg/extra.py": TOTAL}, "expect": "refuse"})
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def tasks(corpus: Path) -> list[Task]:
    return tasks_of(read_cases(corpus))


def brief_of(corpus: Path) -> Brief:
    v4a = next(form for form in FORMS if form.name == "v4a")
    return Brief(tasks(corpus)[0], v4a, random.Random(1), "/work tree")


def outcomes(out: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(out.read_text())
    return found


def register(patch: pytest.MonkeyPatch, name: str, rewrite: Rewrite) -> None:
    patch.setitem(KINDS, name, Kind(name, "test", lambda brief: rewrite))


# ---------------------------------------------------------------- tasks


def test_tasks_are_the_case_and_its_parts_and_none_is_there_twice(corpus: Path) -> None:
    found = tasks(corpus)
    assert Counter(len(task.changes) for task in found) == {
        CHANGES: 1,
        1: CHANGES,
        2: CHANGES - 1,
        3: CHANGES - 2,
    }
    assert len({task.changes for task in found}) == len(found)
    assert found[0].result() == {**BEFORE, **AFTER}


def test_every_change_quotes_lines_that_stand_once(corpus: Path) -> None:
    for change in tasks(corpus)[0].changes:
        assert change.old is None or BEFORE[change.path].count(change.old) == 1


def test_what_is_lost_is_some_of_the_changes_but_not_all(corpus: Path) -> None:
    task = tasks(corpus)[0]
    found = list(losses(task.before, task.changes))
    assert len(found) == 2**CHANGES - 2
    assert applied(task.before, task.changes[1:]) in found
    assert task.result() not in found
    assert BEFORE not in found


# ---------------------------------------------------------------- kinds


def test_every_kind_has_a_group_and_a_form(corpus: Path) -> None:
    found = tasks(corpus)
    assert all(kind.name == name and kind.group for name, kind in KINDS.items())
    without = [
        name
        for name, kind in KINDS.items()
        if not any(cases_of(kind, FORMS, found, 1, 1, "/work tree"))
    ]
    assert not without


def test_the_seed_repeats_the_cases(corpus: Path) -> None:
    found = tasks(corpus)
    kind = KINDS["thinking: words"]

    def responses(seed: int) -> list[str]:
        cases = cases_of(kind, FORMS, found, 3, seed, "/work tree")
        return [case.rewrite.response for case in cases]

    assert responses(1) == responses(1) != responses(2)


def test_a_form_without_deletions_gets_no_task_that_deletes() -> None:
    task = Task("one", {"a.txt": "one\n"}, (Change("a.txt", "one\n", None),))
    for form in FORMS:
        cases = list(cases_of(KINDS["plain"], [form], [task], 1, 1, "/work tree"))
        assert bool(cases) == (form.deletes and form.family != "files")


# ---------------------------------------------------------------- the command


def test_plain_is_exact_in_every_form(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert main([str(corpus), "--kind", "plain", "--most", "2", "--json", str(out)]) == 0
    found = outcomes(out)
    assert {result["form"] for result in found} == {form.name for form in FORMS}
    assert {result["outcome"] for result in found} == {"exact"}


def test_an_unknown_key_is_refused(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert main([str(corpus), "--kind", "unknown key", "--most", "1", "--json", str(out)]) == 0
    assert {result["outcome"] for result in outcomes(out)} == {"refused"}


def test_other_bytes_are_wrong(
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    response = KINDS["plain"].write(brief_of(corpus))
    assert response
    register(monkeypatch, "test: other bytes", exact(response.response, {"a.py": "x\n"}))
    register(monkeypatch, "test: must refuse", refuse(response.response))
    out = tmp_path / "out.json"
    words = [str(corpus), "--kind", "test: ", "--form", "v4a", "--most", "1", "--show", "1"]
    assert main([*words, "--json", str(out)]) == 1
    assert [result["outcome"] for result in outcomes(out)] == ["wrong", "wrong"]
    shown = capsys.readouterr().out
    assert "test: other bytes test 1 0 0 1 0 0 0 0" in " ".join(shown.split())
    assert "other content: a.py, docs/guide.txt" in shown
    assert "2 unexpected" in shown


def test_a_part_of_the_changes_is_lost(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief = brief_of(corpus)
    part = exact(brief.response(brief.changes[:-1]))
    monkeypatch.setattr("bench.corpus.rewrites.__main__.tasks_of", lambda cases: [brief.task])
    register(monkeypatch, "test: a part", part)
    out = tmp_path / "out.json"
    words = [str(corpus), "--kind", "test: ", "--form", "v4a", "--most", "1"]
    assert main([*words, "--json", str(out)]) == 1
    assert [result["outcome"] for result in outcomes(out)] == ["lost"]


def test_what_is_there_already_is_a_duplicate(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    words = [str(corpus), "--kind", "there already", "--form", "search_replace", "--most", "1"]
    main([*words, "--json", str(out)])
    found = [result for result in outcomes(out) if result["kind"] == "there already"]
    assert "duplicate" in {result["outcome"] for result in found}
    assert all(result["expected"] for result in found)


def test_a_fault_is_a_crash(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("bench.corpus.rewrites.trial.process", fail)
    out = tmp_path / "out.json"
    words = [str(corpus), "--kind", "plain", "--form", "v4a", "--most", "1"]
    assert main([*words, "--json", str(out)]) == 1
    (result,) = outcomes(out)
    assert result["outcome"] == "crashed"
    assert "boom" in str(result["why"])


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("nothing\n", [], "cases.jsonl:1: not a blob or a case"),
        ("", [], "no case of the corpus has a change"),
        (None, ["--kind", "of another world"], "no case is left to run"),
        (None, ["--form", "of another world"], "no case is left to run"),
    ],
    ids=["not JSON", "empty", "no kind", "no form"],
)
def test_nothing_to_run(
    corpus: Path,
    text: str | None,
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if text is not None:
        corpus.write_text(text)
    assert main([str(corpus), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert main([str(tmp_path / "missing.jsonl")]) == 2


def test_the_command_runs_from_a_checkout(corpus: Path) -> None:
    words = ["--kind", "plain", "--form", "v4a", "--most", "1"]
    ended = bench("corpus.rewrites", corpus.name, *words, cwd=corpus.parent)
    assert ended.returncode == 0, ended.stderr
    assert "plain  plain      1      1" in ended.stdout


# ---------------------------------------------------------------- many cases


def test_the_least_of_a_kind_is_taken_from_all_its_forms(corpus: Path) -> None:
    found = tasks(corpus)
    cases = list(cases_of(KINDS["thinking: words"], FORMS, found, 0, 1, "/x", 40))
    assert len(cases) == 40
    assert len({case.brief.form.name for case in cases}) == sum(form.in_text for form in FORMS)
    assert len({(case.brief.task.name, case.rewrite.response) for case in cases}) == 40


def test_a_kind_that_chance_writes_nothing_of_gives_each_case_once(corpus: Path) -> None:
    v4a = [form for form in FORMS if form.name == "v4a"]
    found = tasks(corpus)
    assert len(list(cases_of(KINDS["plain"], v4a, found, 0, 1, "/x", 999))) == len(found)


def test_what_would_break_a_file_is_no_case() -> None:
    task = Task("one", {"a.py": "a = 1\nb = 2\n"}, (Change("a.py", "b = 2\n", "b = 3\n", 1),))
    broken = Kind("k", "g", lambda brief: exact(brief.response(), {"a.py": "def (:\n"}))
    assert not list(cases_of(broken, FORMS, [task], 9, 1, "/x"))


def test_processes_find_what_one_finds(corpus: Path, tmp_path: Path) -> None:
    words = [str(corpus), "--kind", "front: b", "--most", "1"]
    alone, shared = tmp_path / "alone.json", tmp_path / "shared.json"
    codes = [main([*words, "--json", str(alone)]),
             main([*words, "--jobs", "2", "--json", str(shared)])]  # fmt: skip
    assert codes[0] == codes[1]
    facts = [
        [(r["kind"], r["form"], r["task"], r["outcome"]) for r in outcomes(out)]
        for out in (alone, shared)
    ]
    assert facts[0] == facts[1]
    assert facts[0]


def test_another_tree_is_judged(corpus: Path, tmp_path: Path) -> None:
    """Its own patchq decides, not this one: here, one that cannot."""
    tree = tmp_path / "tree/patchq"
    tree.mkdir(parents=True)
    words = [str(corpus), "--kind", "plain", "--most", "1", "--tree", str(tree.parent)]
    assert main(words) == 2  # no package yet
    (tree / "__init__.py").write_text("raise SystemExit(7)\n")
    assert main(words) == 2


def test_a_branch_that_has_moved_on(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    words = ["--form", "search_replace", "--most", "3", "--json", str(out)]
    assert main([str(corpus), "--kind", "moved base", *words]) == 0
    assert {result["outcome"] for result in outcomes(out)} == {"exact", "refused"}


def test_a_part_that_the_report_names_is_not_lost(corpus: Path) -> None:
    brief = brief_of(corpus)
    case = next(cases_of(KINDS["plain"], [brief.form], [brief.task], 1, 1, "/x"))
    part = applied(brief.task.before, brief.changes[:-1])
    named = len(brief.changes)
    assert (case.outcome_of(part, named - 1), case.outcome_of(part, named)) == ("lost", "wrong")
