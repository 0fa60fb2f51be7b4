"""Threads of comments over several rounds, and decisions that are taken back."""

from __future__ import annotations

from contextlib import closing

import pytest

from patchq.gate.api import Gate, deciding
from patchq.gate.errors import UsageError
from patchq.gate.git import records
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import Report
from patchq.gate.review import errands
from patchq.gate.review.decide import Discard
from patchq.gate.review.errands import Discuss, TakeBack
from tests.gate.review.test_send_back import Desk, change, desk
from tests.helpers.gitrepo import git

__all__ = ["desk"]


def line(number: int, word: str) -> str:
    """An edit that makes a line begin with a word."""
    return change(number, to=f"{word} {{}}\n")


def threads_of(report: Report) -> dict[str, tuple[str, list[str]]]:
    """The state and the replies of each comment, by its id."""
    assert report.review
    return {one.id: (one.state, [r.text for r in one.replies]) for one in report.review.comments}


def test_what_is_not_resolved_goes_along(desk: Desk) -> None:
    desk.feed(x=change(10, 20))
    prompt = desk.ask("x", "In short.\na.txt:10: say why\na.txt:20: and this\n").retry.prompt or ""
    assert "Comment c1: the whole change" in prompt
    desk.feed(y=f"---\nretries: x\nanswers: {{c1: Shortened}}\n---\n{line(10, 'why')}")
    answered = desk.told("y")
    silent = ("answered", list[str]())
    assert threads_of(answered) == {"c1": ("answered", ["Shortened"]), "c2": silent, "c3": silent}
    for comment, text, resolves in (("c1", "", True), ("c2", "Not yet", False)):
        Discuss("y", comment, text, "Ann", resolves=resolves).carry_out(desk.session)
    again = desk.ask("y", "a.txt:11: new\n")
    assert threads_of(again) == {"c2": ("open", ["Not yet"]), "c3": silent, "c4": ("open", [])}
    asked = again.retry.prompt or ""
    assert "`Ann` replied:\n\n```\nNot yet" in asked
    assert "Comment c1" not in asked
    desk.feed(z=f"---\nretries: y\nanswers: {{c9: x}}\n---\n{line(11, 'other')}")
    last = desk.told("z")
    states = {id: state for id, (state, _) in threads_of(last).items()}
    assert states == dict.fromkeys(("c2", "c3", "c4"), "answered")
    (wrong,) = [one.message for one in last.problems if one.code == "frontmatter.value"]
    assert "c9" in wrong
    assert "Not yet" in to_markdown(last)


def test_the_lines_of_a_comment_whose_place_is_gone_are_quoted(desk: Desk) -> None:
    desk.feed(x=change(10))
    desk.ask("x", "a.txt:10: why?\n")
    wrong = {"has no comment c2": ("c2", "x"), "empty": ("c1", " "), "longer": ("c1", "x" * 4001)}
    for why, (on, text) in wrong.items():
        with pytest.raises(UsageError, match=why):
            Discuss("x", on, text, "Ann", resolves=False).carry_out(desk.session)
    desk.feed(y=f"---\nretries: x\n---\n{change(9, 10, 11, to='')}")
    review = desk.told("y").review
    assert review
    (comment,) = review.comments
    assert (comment.path, comment.line, comment.quote) == ("a.txt", None, "LINE 10\n")


def test_a_request_is_taken_back(desk: Desk) -> None:
    desk.feed(x=change(10))
    desk.ask("x", "why?\n")
    report = TakeBack("x").carry_out(desk.session).report
    assert (report.review, report.retry.prompt, list(report.problems)) == (None, None, [])
    desk.ask("x", "why?\n")
    desk.feed(y=f"---\nretries: x\n---\n{line(10, 'y')}")
    desk.ask("y", "And now?\n")
    report = TakeBack("y").carry_out(desk.session).report
    assert threads_of(report) == {"c1": ("open", [])}
    assert report.review
    assert report.review.state == "answered"
    with pytest.raises(UsageError, match="was not accepted"):
        TakeBack("y").carry_out(desk.session)


def test_a_discarded_proposal_is_proposed_again(desk: Desk) -> None:
    desk.feed(x=change(10))
    before = desk.told("x")
    Discard("x", why="too early").carry_out(desk.session)
    desk.move(b_txt="moved\n")
    report = TakeBack("x").carry_out(desk.session).report
    assert (report.state, report.branch, report.reason) == ("proposed", before.branch, None)
    main = git("rev-parse", "main", cwd=desk.repo)
    assert git("rev-parse", f"{report.commit}^", cwd=desk.repo) == main, "it followed its target"
    assert desk.session.repo.ref_target(records.DISCARDED + "x") is None
    assert git("rev-parse", "patchq/x", cwd=desk.repo).strip() == report.commit


def test_a_repeated_command_that_was_refused_is_not_said_to_be_done(desk: Desk) -> None:
    desk.feed(x=change(10))
    accept = {"verb": "accept", "ids": ["x"]}
    assert "decided" in errands.carry_out(desk.session, accept, again=False)
    assert "decided" in errands.carry_out(desk.session, accept, again=True)
    discuss = {"verb": "discuss", "comment": "c1", "text": "keep", "by": "Ann"}
    send_back = {"verb": "send-back", "comments": [{"text": "no"}]}
    for words in (discuss, send_back, {"verb": "discard"}, {"verb": "take-back"}):
        assert "fault" in errands.carry_out(desk.session, {"id": "x", **words}, again=True), words


def test_only_what_accepts_starts_a_train(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[object]()
    monkeypatch.setattr(deciding, "start_train", started.append)
    desk.feed(x=change(10))
    desk.ask("x", "say why\n")
    with closing(Gate.open(desk.repo)) as gate:
        assert gate.accept(["x"], wait=False).report.boarded
        assert gate.discuss("x", "c1", resolves=True).report.boarded
    assert len(started) == 1
