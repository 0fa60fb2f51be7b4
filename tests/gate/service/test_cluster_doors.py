"""The page, the walk on a terminal and MCP decide on many machines as the command line does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.gate.service.test_cluster_scenarios import Cluster
from tests.gate.service.test_cluster_verbs import FILES, gate, on, send, state, there
from tests.helpers.command import block, report
from tests.page.people import Person, commit_of, served

__all__ = ["gate"]
MOVED = "has moved since it was looked at"


@pytest.mark.slow
def test_the_pages_buttons_have_the_workers_do_it(gate: Callable[[str], Cluster]) -> None:
    at = gate("review")
    two = block("c.txt", "one\n", "1\n") + block("d.txt", "one\n", "1\n")
    told = send(
        at,
        whole=block("a.txt", "two\n", "2\n"),
        part=two,
        no=block("b.txt", "two\n", "2\n"),
        low=block("e.txt", "two\n", "2\n"),
        top=on("low") + block("e.txt", "2\n", "zwei\n"),
        more=block("f.txt", "one\n", "1\n"),
        less=block("f.txt", "three\n", "3\n"),
    )
    assert told == ["proposed"] * 7
    with served(at.repo) as url:
        person = Person(url)

        def press(id: str, deed: str, *fields: tuple[str, str]) -> int:
            """Look, and press; look again where it has followed its target in between."""
            while True:
                seen = ("commit", commit_of(person.look(f"/batch/{id}")))
                answer = person.send(f"/batch/{id}/{deed}", [seen, *fields])
                if MOVED not in answer.text:
                    return answer.code

        assert press("whole", "accept") == 303
        assert person.send("/batch/whole/accept", [("commit", "0" * 40)]).code == 409
        commit = commit_of(person.look("/batch/part"))
        shown = person.send("/batch/part/choose", [("commit", commit), ("edit", "2")])
        assert (shown.code, "d.txt" in shown.text) == (200, True)
        assert press("part", "accept", ("edit", "2"), ("chosen", "yes")) == 303
        assert press("no", "discard", ("why", "not now")) == 303
        unseen = person.send("/batch/top/accept-stack", [("commit", "0" * 40)])
        assert (unseen.code, MOVED in unseen.text) == (409, True)
        assert press("top", "accept-stack") == 303
        place = [("path", "f.txt"), ("side", "new"), ("line", "1"), ("words", "say why")]
        assert press("more", "send-back", *place) == 303
        assert "say why" in person.look("/batch/more")
    ids = ("whole", "part", "no", "low", "top", "more", "less")
    assert [state(at, id) for id in ids] == [
        "accepted", "accepted", "discarded", "accepted", "accepted", "proposed", "proposed",
    ]  # fmt: skip
    assert report(at.queue, "no")["reason"] == "not now"
    assert [there(at, f"{name}.txt") for name in "abcde"] == [
        "one\n2\nthree\n", FILES["b.txt"], FILES["c.txt"], "1\ntwo\nthree\n", "one\nzwei\nthree\n",
    ]  # fmt: skip
    [comment] = report(at.queue, "more")["review"]["comments"]
    assert (comment["text"], comment["by"]) == ("say why", "Ada Tester")
