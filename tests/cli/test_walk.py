"""`patchq review --next`: what waits for a person, one after the other."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchq.cli.review import Walk
from patchq.gate.api import Gate
from tests.gate.review.test_send_back import TEXT, Desk, change
from tests.helpers.command import block, patchq
from tests.helpers.gitrepo import git
from tests.helpers.terminal import WAIT_SECONDS, on_a_terminal

QUIET = Namespace(json=False, quiet=False)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path, {"a.txt": TEXT, "b.txt": TEXT, "c.txt": TEXT})
    yield desk
    desk.end()


def walk(desk: Desk, *answers: str) -> list[str]:
    """Answer the questions; those that were asked."""
    asked: list[str] = []
    left = list(answers)

    def ask(question: str) -> str:
        asked.append(question)
        if not left:
            raise EOFError
        answer = left.pop(0)
        if answer == "(the target moves)":
            desk.move(c_txt="moved\n")
            answer = left.pop(0)
        return answer

    with Gate.open(desk.repo) as gate:
        assert Walk(QUIET, gate, ask).all() == 0
    assert left == []
    return asked


def test_each_decision(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    delete = "c.txt\n<<<<<<< DELETE\n>>>>>>> DELETE\n"
    desk.feed(
        s1=change(3), s2=change(10, 20, path="b.txt"), s3=change(6), s4=change(9), s5=change(12),
        risky=delete, asked=change(25),
    )  # fmt: skip
    desk.ask("asked", "a.txt:25: why?")
    walk(desk, "d", "not so", "a", "x", "o", "7", "o", "1", "y", "b", "", "b", "a.txt:99: x", "",
         "b", "a.txt:6: why", "more", "", "s", "q")  # fmt: skip
    told = {id: desk.told(id) for id in ("risky", "s1", "s2", "s3", "s4", "s5")}
    assert {id: report.state for id, report in told.items()} == {
        "risky": "discarded", "s1": "accepted", "s2": "accepted", "s3": "proposed",
        "s4": "proposed", "s5": "proposed",
    }  # fmt: skip
    text = capsys.readouterr().out
    assert "1 of 6" in text
    assert "risk       high: " in text
    assert "it deletes 1 file: c.txt" in text
    assert "    3 LINE 3" in text
    assert "the change has no edit 7" in text
    assert "a.txt has 30 lines in the proposal, and no line 99" in text
    assert told["risky"].reason == "not so"
    assert "LINE 20" not in git("show", "main:b.txt", cwd=desk.repo)
    assert told["s3"].review
    assert told["s3"].review.comments[0].text == "why\nmore"
    assert told["s4"].review is None


def test_what_moved_meanwhile_is_shown_again(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.feed(x=change(3))
    walk(desk, "(the target moves)", "a", "a")
    out, err = capsys.readouterr()
    assert out.count("    3 LINE 3") == 2
    assert "patchq/x has moved since it was looked at" in err
    assert desk.told("x").state == "accepted"
    walk(desk)
    assert capsys.readouterr().out == "nothing waits for a person\n"


def test_on_a_terminal(desk: Desk) -> None:
    desk.feed(y=block("new.txt", "", "new\n"))
    assert "there is no terminal" in patchq("review", "--next", cwd=desk.repo, code=2).err
    with on_a_terminal(desk.repo, "review", "--next") as terminal:
        terminal.read_until(lambda text: text.endswith("[q]uit: "))
        terminal.type("a\n")
        terminal.read_all()
        assert terminal.process.wait(WAIT_SECONDS) == 0
    assert desk.told("y").state == "accepted"


def test_a_stack_comes_from_below_and_lands_as_one(desk: Desk) -> None:
    desk.feed(low=change(3))
    desk.feed(high="---\ndepends_on: [low]\n---\n" + change(20, path="b.txt"))
    asked = walk(desk, "s", "a", "t")
    assert ["s[t]ack" in question for question in asked] == [False, True, True]
    assert [desk.told(id).state for id in ("low", "high")] == ["accepted", "accepted"]
