"""What the page shows, and what its forms do."""

from __future__ import annotations

import fcntl
import json
import re
import socket
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest

from patchq.gate.hooks.sandbox import NO_SANDBOX
from patchq.page import diff
from tests.helpers.command import block, patchq, work
from tests.helpers.ending import until
from tests.helpers.gitrepo import git, tip, write_config
from tests.page.people import Person, commit_of, moved, proposals, served, state

MADE = "{0}.txt\n<<<<<<< SEARCH\n=======\n{0}\n>>>>>>> REPLACE\n"


def test_the_inbox_says_what_status_says(person: Person, repo: Path) -> None:
    page = person.look("/")
    told = patchq("--json", "status", cwd=repo).json()
    assert f"For you ({len(told['waiting'])})" in page
    (fix,) = (one for one in told["waiting"] if one["id"] == "fix")
    for reason in fix["risk"]["reasons"]:
        assert reason["text"] in person.look("/batch/fix")
    by_risk = patchq("--json", "status", "--by", "risk", cwd=repo).json()["waiting"]
    listed = re.findall('<li data-change="([a-z]+)">', page.split('class="aside"')[0])
    assert listed == [one["id"] for one in by_risk]
    assert "&lt;b&gt;writer&lt;/b&gt;" in page
    assert '<li data-change="other">' in person.look("/?agent=writer-2")
    none = person.look("/?path=b.txt&agent=writer-2")
    assert f"0 of {len(told['waiting'])} match agent writer-2, path b.txt" in none


def test_the_inbox_is_shown_while_a_daemon_starts(person: Person, repo: Path) -> None:
    lock = repo / ".patchq/lock"
    lock.write_bytes(b"")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert "a daemon runs." in person.look("/")


def test_pages_of_what_is_there(person: Person) -> None:
    for path, text in {
        "/history": "match.none",
        "/statistics": "<svg",
        "/conflicts": "lines 1",
        "/help": "<kbd>j k</kbd>",
        "/batch/wrong": "nothing of it",
    }.items():
        assert text in person.look(path), path


def test_text_of_agents_is_data(person: Person) -> None:
    for path in ("/", "/batch/hostile", "/history", "/conflicts", "/statistics"):
        page = person.look(path)
        assert "<script>d" not in page
        assert "<b>writer" not in page
        assert not set("\u202e\x1b\x07") & set(page)
    assert "\\u202e\\x1b[31m\\x07" in person.look("/batch/hostile")


def test_accept_takes_what_was_looked_at(person: Person, repo: Path) -> None:
    page = person.look("/batch/twice")
    done = person.send("/batch/twice/accept", [("commit", commit_of(page))])
    assert done.code == 303
    assert "done=Accepted+twice" in done.headers["location"]
    assert "Accepted twice" in person.look(done.headers["location"])
    assert state(repo, "twice") == "accepted"
    assert git("show", "HEAD:a.txt", cwd=repo).split()[1] == "2"
    again = person.send("/batch/twice/accept", [("commit", commit_of(page))])
    assert again.code == 409
    assert "does not wait for review" in again.text


def test_what_moved_is_shown_again(person: Person, repo: Path) -> None:
    stale = commit_of(person.look("/batch/other"))
    ours = moved(repo, "other")
    for deed in ("accept", "discard"):
        answer = person.send(f"/batch/other/{deed}", [("commit", stale)])
        assert (answer.code, "has moved since it was looked at" in answer.text) == (409, True)
        assert commit_of(answer.text) == ours
    assert state(repo, "other") == "proposed"
    for fields in ([], [("commit", "HEAD")]):
        assert person.send("/batch/other/discard", fields).code == 409
    told = [("commit", ours), ("why", "too <early>")]
    assert person.send("/batch/other/discard", told).code == 303
    assert state(repo, "other") == "discarded"
    assert "too &lt;early&gt;" in person.look("/batch/other")


def test_some_edits_are_previewed_before_they_land(person: Person, repo: Path) -> None:
    commit = commit_of(person.look("/batch/fix"))
    asked = person.send("/batch/fix/choose", [("commit", commit), ("edit", "2")])
    assert "Accept exactly this" in asked.text
    assert "+1" not in asked.text.split("What would land")[1].split("</section>")[0]
    assert state(repo, "fix") == "proposed"
    for fields, why in {(): "no edit was chosen", (("edit", "9"),): "has no edit 9"}.items():
        answer = person.send("/batch/fix/choose", [("commit", commit), *fields])
        assert (answer.code, why in answer.text) == (409, True)
    chosen = [("commit", commit), ("only", "1"), ("edit", "2")]
    assert person.send("/batch/fix/accept", chosen).code == 303
    assert git("show", "HEAD:a.txt", cwd=repo).split()[::3] == ["one", "4"]


def test_a_browser_that_leaves_amid_its_form_is_no_defect(repo: Path) -> None:
    with served(repo) as url:
        person = Person(url)
        head = (
            "POST /batch/moved/viewed HTTP/1.1\r\ncontent-length: 100\r\n"
            "content-type: application/x-www-form-urlencoded\r\n"
            f"host: {person.host}\r\norigin: http://{person.host}\r\ncookie: {person.cookie}\r\n"
        )
        with socket.create_connection(("127.0.0.1", person.port), 60) as stream:
            stream.sendall(f"{head}\r\nkey=".encode())
        assert person.look("/help"), "and a stop finds that nothing was written to the log"


def test_words_go_back(person: Person, repo: Path) -> None:
    commit = commit_of(person.look("/batch/moved"))
    words = "- keep the name\n- say why <b>now</b>"
    fields = [
        ("commit", commit), ("why", "- in general"),
        ("path", "a.txt"), ("side", "new"), ("from", "2"), ("line", "2"), ("words", words),
        ("path", "a.txt"), ("side", "base"), ("from", "1"), ("line", "1"), ("words", ""),
    ]  # fmt: skip
    for number in ("99", "x"):
        wrong = [(name, number if value == "2" else value) for name, value in fields]
        refused = person.send("/batch/moved/send-back", wrong)
        assert refused.code == 409
        assert f"no line {number}" in refused.text
        kept = person.look("/batch/moved")
        assert f"Comment on new line {number} of a.txt</span>" in kept
        assert ">- in general</textarea>" in kept
    assert person.send("/batch/moved/send-back", fields).code == 303
    page = person.look("/batch/moved")
    assert "say why &lt;b&gt;now" in page
    said = patchq("--json", "show", "moved", cwd=repo).json()["review"]["comments"]
    assert [(one["line"], one["text"]) for one in said] == [(None, "- in general"), (2, words)]
    empty = person.send("/batch/moved/send-back", [("commit", commit), ("why", "  ")])
    assert "there is no comment" in empty.text


def test_a_stack_is_shown_and_accepted_as_one(person: Person, repo: Path) -> None:
    top = f"---\ndepends_on: [low]\n---\n{MADE.format('top')}"
    work(repo, low=MADE.format("low"), top=top)
    stack = person.look("/").split('data-group="stack-low"')[1].split("</details>")[0]
    assert re.findall('data-change="([a-z]+)"', stack) == ["low", "top"]
    page = person.look("/batch/top")
    assert "Accept the stack: low, then this" in page
    assert 'on top of <a href="/batch/low">low</a>' in page
    alone = person.send("/batch/top/accept", [("commit", commit_of(page))])
    assert (alone.code, "accept --stack top" in alone.text) == (409, True)
    whole = ("stack", "1")
    assert person.send("/batch/top/accept", [("commit", "0" * 40), whole]).code == 409
    assert state(repo, "low") == "proposed"
    done = person.send("/batch/top/accept", [("commit", commit_of(page)), whole])
    assert (done.code, state(repo, "low"), state(repo, "top")) == (303, "accepted", "accepted")


def test_several_are_decided_alike(person: Person, repo: Path) -> None:
    ids = ["one-more", "two-more"]
    work(repo, **{id: MADE.format(id) for id in ids})
    asked = urlencode([("deed", "accept"), *(("chosen", id) for id in ids)])
    shown = person.look(f"/several?{asked}")
    chosen = [("chosen", both) for both in re.findall(r'name="chosen" value="(\S+ \w{40})"', shown)]
    assert sorted(both.split(" ")[0] for _, both in chosen) == ids
    assert sorted(re.findall('data-change="([a-z-]+)"', shown)) == ids
    back = ("deed", "send-back")
    gone = [back, ("chosen", f"nobody {'0' * 40}"), chosen[0], ("why", "say <why>")]
    for fields in ([back, chosen[0]], gone):
        answer = person.send("/several", fields)
        assert (answer.code, 'role="alert"' in answer.text) == (409, True)
    assert "say &lt;why&gt;" in answer.text
    assert "there is no change nobody" in answer.text
    done = person.send("/several", [back, *chosen, ("why", "shorter")])
    assert (done.code, "Sent+back+2+changes" in done.headers["location"]) == (303, True)
    undo = parse_qs(done.headers["location"])["undo"]
    assert undo == ids
    taken = person.send("/several", [("deed", "take-back"), *(("chosen", id) for id in undo)])
    assert "Taken+back%3A+2+changes" in taken.headers["location"]
    assert patchq("--json", "show", ids[1], cwd=repo).json()["review"] is None
    assert ">shorter</textarea>" in person.look(f"/batch/{ids[1]}")
    stale = ("chosen", f"{ids[1]} {'0' * 40}")
    moved = person.send("/several", [("deed", "accept"), min(chosen), stale])
    assert (moved.code, "has moved since it was looked at" in moved.text) == (409, True)
    assert [state(repo, id) for id in ids] == ["accepted", "proposed"]


def test_a_fold_opens_to_the_lines_of_the_file(person: Person, repo: Path) -> None:
    work(repo, long=block("long.txt", "", "".join(f"line {n}\n" for n in range(1, 201))))
    patchq("accept", "long", cwd=repo)
    work(repo, fold=block("long.txt", "line 100\n", "line one hundred\n"))
    shown = re.findall(r"data-side=new data-line=(\d+)", person.look("/batch/fold"))
    assert [int(number) for number in shown] == list(range(97, 104))
    asked = "/batch/fold/file?path=long.txt&from=1&to=96&open=1-20"
    part = person.ask("GET", asked, x_part="1").text
    found = re.findall(r"data-side=new data-line=\d+>([^<]*)", part)
    assert found == [f"line {n}" for n in range(1, 21)]
    assert 'name="from" value="21"><input type="hidden" name="to" value="96">' in part


def test_a_mark_ends_with_the_text_that_is_shown() -> None:
    assert diff._marked("one", (), ((1, 9),)) == "o<mark>ne</mark>"


def test_accept_leaves_its_train_to_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NO_SANDBOX, "1")
    ids = ("first", "second")
    repo = proposals(tmp_path, {f"{id}.md": MADE.format(id) for id in ids})
    began, go = tmp_path / "began", tmp_path / "go"
    line = f"touch {began}; until test -e {go}; do sleep 0.02; done"
    hook = f"{{id: tests, stage: pre-commit, unconfined: true, run: '{line}'}}"
    write_config(repo, f"version: 1\nhooks: [{hook}]\n")
    with served(repo) as url:
        person = Person(url)
        chosen = [("chosen", f"{id} {tip(repo, f'patchq/{id}')}") for id in ids]
        done = person.send("/several", [("deed", "accept"), *chosen])
        assert done.headers["location"].endswith("undo=first&undo=second"), "they still wait"
        until(began.exists)
        runs = "rain for main, run 1: checks 2 by tests for 0:0"
        for shown in (person.look("/"), patchq("status", cwd=repo).out):
            assert all(says in shown for says in (runs, "For you (0)", "Accepted (2)")), shown
        (train,) = patchq("--json", "status", cwd=repo).json()["trains"]
        assert {"target": "main", "run": 1, "first": 2, "joined": 2}.items() <= train.items()
        go.touch()
        until(lambda: not patchq("--json", "status", cwd=repo).json()["trains"])
        assert {state(repo, id) for id in ids} == {"accepted"}
    events = patchq("--json", "events", cwd=repo).out.splitlines()
    kinds = [json.loads(line)["kind"] for line in events]
    assert kinds[-4:] == ["boarded", "boarded", "accepted", "accepted"]
