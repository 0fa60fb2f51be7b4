"""What a round does with proposals, and with what people say of them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from patchq.forge.proposals import code, fenced
from tests.forge import story
from tests.forge.conftest import Scene
from tests.forge.fake import TOKEN
from tests.forge.story import quiet
from tests.helpers.command import patchq
from tests.helpers.gitrepo import commit_files, git


@pytest.fixture(params=["github", "gitlab"])
def kind(request: pytest.FixtureRequest) -> str:
    """Every forge: what a round does is the same."""
    return str(request.param)


@pytest.fixture
def opened(scene: Scene) -> Scene:
    """A scene with a request of one change."""
    scene.propose("one", "a3 = 3", "a3 = 33")
    scene.round()
    return scene


MERGE = "  land: merge\n"
HOOK = "hooks:\n  - {id: no-c, stage: pre-commit, unconfined: true, run: test ! -e c.py}\n"
accepts = pytest.mark.parametrize(
    "scene", ["  on_approve: accept\n"], indirect=True, ids=["accept"]
)


@accepts
def test_the_whole_way(scene: Scene) -> None:
    """Opened, sent back, answered, approved, landed as it was seen; each round twice."""
    fake = scene.fake
    scene.propose("one", "a3 = 3", "a3 = 33")
    scene.round()
    assert scene.round() == []
    assert (fake.state(1), fake.status_of(1)) == ("open", "pending")
    assert fake.pulls[1].values["head"]["ref"] == "patchq/one"

    review = fake.review(1, "ada", "CHANGES_REQUESTED", "Not like this.")
    line = fake.comment(1, "ada", "a.py", 3, "why 33?", pull_request_review_id=review)
    scene.round()
    assert scene.round() == []
    found = scene.report("one")["review"]
    assert (found["state"], found["by"]) == ("changes_requested", "ada")
    told = [(one["text"], one["path"], one["line"]) for one in found["comments"]]
    assert told == [("Not like this.", None, None), ("why 33?", "a.py", 3)]
    assert fake.status_of(1) == "failure"

    scene.propose("two", "a3 = 3", "a3 = 333", head="---\nretries: one\n---\n")
    scene.round()
    assert scene.round() == []
    assert [one.values["head"]["ref"] for one in fake.pulls.values()] == ["patchq/one"]
    assert line in fake.pulls[1].resolved
    replies = [one["body"].split("\n")[0] for one in fake.pulls[1].comments[1:]]
    assert replies == [f"changed in {scene.report('two')['commit'][:12]}"]

    fake.review(1, "ada", "APPROVED")
    scene.round()
    assert scene.round() == []
    assert scene.report("two")["state"] == "accepted"
    assert (fake.state(1), fake.status_of(1)) == ("merged", "success")
    assert scene.there() == scene.report("two")["commit"]
    assert fake.moved["patchq/one"] == 3  # made, changed, deleted


@accepts
@pytest.mark.parametrize(
    ("by", "state"),
    [
        ("ada", "APPROVED"),  # of what was there before
        ("helper[bot]", "APPROVED"),
        ("stranger", "APPROVED"),
        ("patchq-bot", "APPROVED"),
        ("codex", "APPROVED"),
        ("ada", "COMMENTED"),
        ("ada", "DISMISSED"),
        ("helper[bot]", "CHANGES_REQUESTED"),
    ],
)
def test_some_reviews_decide_nothing(scene: Scene, by: str, state: str) -> None:
    scene.fake.writers |= {"codex", "patchq-bot", "helper[bot]"}
    scene.propose("one", "a3 = 3", "a3 = 33", head="---\nagent: codex\n---\n")
    scene.round()
    old = scene.report("one")["commit"]
    scene.propose("two", "a3 = 3", "a3 = 34", head="---\nagent: codex\nretries: one\n---\n")
    scene.round()
    more = {"commit_id": old} if (by, state) == ("ada", "APPROVED") else {}
    scene.fake.review(1, by, state, "Well.", **more)
    assert scene.round() == []
    assert (scene.report("two")["state"], scene.report("two")["review"]) == ("proposed", None)


@pytest.mark.parametrize("scene", ["  people: [me, acme/core]\n"], indirect=True, ids=["people"])
@pytest.mark.parametrize(
    ("by", "text", "state"),
    [
        ("me", "/patchq accept {}", "accepted"),
        ("grace", "/patchq accept {}\n\nthanks", "accepted"),
        ("ada", "/patchq accept {}", "proposed"),
        ("me", "/patchq accept 0123456", "proposed"),
        ("me", "> /patchq accept {}", "proposed"),
        ("me", "/patchq send-back\nNot so.", "proposed"),
    ],
    ids=["named", "team", "unnamed", "other-commit", "quoted", "send-back"],
)
def test_a_comment_decides_where_people_are_named(
    scene: Scene, by: str, text: str, state: str
) -> None:
    """Nobody reviews a request of his own, so a comment does."""
    scene.fake.me = "me"
    scene.begin()
    scene.propose("one", "a3 = 3", "a3 = 33")
    scene.round()
    scene.fake.say(1, by, text.format(scene.report("one")["commit"][:9]))
    scene.round()
    assert scene.round() == []
    found = scene.report("one")
    assert found["state"] == state
    asked = [(one["text"], one["by"]) for one in (found["review"] or {}).get("comments", ())]
    assert asked == ([("Not so.", "me")] if "send-back" in text else [])


@accepts
def test_a_landing_moves_no_other_copy(scene: Scene) -> None:
    for number in range(1, 9):
        scene.propose(f"p{number}", f"a{9 * number} = {9 * number}", f"a{9 * number} = 0")
    scene.round()
    for number in range(1, 5):
        scene.fake.review(number, "ada", "APPROVED")
        scene.round()
    assert [scene.fake.state(number) for number in range(1, 9)] == ["merged"] * 4 + ["open"] * 4
    moved = [scene.fake.moved[f"patchq/p{number}"] for number in range(1, 9)]
    assert moved[4:] == [1] * 4
    assert max(moved) <= 3
    # An approval of what is there counts, though the proposal itself follows its target.
    scene.fake.review(8, "ada", "APPROVED")
    scene.round()
    assert scene.fake.state(8) == "merged"


def test_a_stack_lands_from_below(scene: Scene) -> None:
    fake = scene.fake
    scene.propose("low", "a3 = 3", "a3 = 33")
    scene.propose("high", "a3 = 33", "a3 = 333", head="---\ndepends_on: [low]\n---\n")
    scene.round()
    bases = [fake.pulls[number].values["base"]["ref"] for number in (1, 2)]
    assert bases == ["main", "patchq/low"]
    assert fake.pulls[1].values["html_url"] in fake.pulls[2].values["body"]
    patchq("accept", "low", cwd=scene.clone)
    scene.round()
    assert scene.round() == []
    assert (fake.state(1), fake.state(2)) == ("merged", "open")
    assert fake.pulls[2].values["base"]["ref"] == "main"
    patchq("accept", "high", cwd=scene.clone)
    scene.round()
    assert fake.state(2) == "merged"
    assert git("branch", "--list", "patchq/*", cwd=fake.bare) == ""


@pytest.mark.parametrize("message", ["", "Another message"], ids=["kept", "reworded"])
@pytest.mark.parametrize("how", ["squash", "merge"])
def test_the_button_lands_a_proposal(opened: Scene, how: str, message: str) -> None:
    opened.push("b.py", "x = 2\n")
    opened.fake.merge(1, "ada", how, message)
    opened.round()
    assert opened.round() == []
    assert opened.fake.status_of(1) == "success"
    assert opened.report("one")["state"] == "accepted"
    assert "patchq/one" not in git("branch", "--list", cwd=opened.fake.bare)


@pytest.mark.parametrize("how", ["squash", "rebase", "merge"])
def test_the_button_at_the_top_of_a_stack_lands_all_of_it(scene: Scene, how: str) -> None:
    scene.propose("low", "a3 = 3", "a3 = 33")
    scene.propose("high", "a3 = 33", "a3 = 333", head="---\ndepends_on: [low]\n---\n")
    scene.round()
    scene.fake.pulls[2].values["base"] = {"ref": "main"}
    scene.fake.merge(2, "ada", how)
    scene.round()
    assert [scene.report(id)["state"] for id in ("low", "high")] == ["accepted"] * 2
    quiet(scene)
    assert "open" not in (scene.fake.state(1), scene.fake.state(2))
    assert git("branch", "--list", "patchq/*", cwd=scene.fake.bare) == ""


def test_a_head_that_cannot_be_moved_is_closed_with_the_commit(opened: Scene) -> None:
    opened.push("b.py", "x = 2\n")
    git("config", "receive.denyNonFastForwards", "true", cwd=opened.fake.bare)
    patchq("accept", "one", cwd=opened.clone)
    opened.round()
    assert opened.fake.state(1) == "closed"
    assert opened.report("one")["commit"] in opened.fake.pulls[1].notes[0]["body"]


@pytest.mark.parametrize("scene", [MERGE], indirect=True, ids=["merge"])
@pytest.mark.parametrize("mismerges", [False, True], ids=["right", "mismerged"])
def test_the_forge_merges_what_was_accepted(scene: Scene, mismerges: bool) -> None:
    scene.fake.mismerges, start = mismerges, scene.there()
    scene.propose("low", "a3 = 3", "a3 = 33")
    scene.propose("high", "a3 = 33", "a3 = 333", head="---\ndepends_on: [low]\n---\n")
    scene.propose("other", "a50 = 50", "a50 = 55")
    scene.round()
    patchq("accept", "low", "high", "other", cwd=scene.clone)
    assert scene.report("other")["state"] == "proposed"
    said = "\n".join(scene.round())
    if mismerges:
        assert "which is not what was checked: see git diff" in said
        return
    assert "cannot merge #2: api.github.com answers 405" in said or scene.kind == "gitlab"
    quiet(scene)
    assert [scene.fake.state(number) for number in (1, 2, 3)] == ["merged"] * 3
    assert git("rev-list", "--count", f"{start}..main", cwd=scene.fake.bare) == "3"
    for id in ("low", "high", "other"):
        assert scene.report(id)["state"] == "accepted"


@pytest.mark.parametrize("scene", [MERGE + HOOK], indirect=True, ids=["merge"])
def test_nothing_is_merged_that_a_hook_refuses_on_the_target_of_now(opened: Scene) -> None:
    patchq("accept", "one", cwd=opened.clone)
    opened.push("c.py", "y = 1\n")
    opened.round()
    assert opened.round() == []
    assert (opened.fake.state(1), opened.fake.status_of(1)) == ("open", "failure")
    assert "patchq could not `merge #1`" in opened.fake.pulls[1].notes[0]["body"]
    assert opened.report("one")["boarded"] is None


def test_closing_discards_and_opening_again_proposes(opened: Scene) -> None:
    opened.fake.close(1, "ada")
    opened.round()
    assert opened.round() == []
    found = opened.report("one")
    assert (found["state"], found["reason"]) == ("discarded", "closed on the forge by ada")
    opened.fake.reopen(1)
    opened.round()
    assert opened.round() == []
    assert opened.report("one")["state"] == "proposed"
    assert (len(opened.fake.pulls), opened.fake.state(1)) == (1, "open")


@pytest.mark.parametrize("scene", ["  on_close: keep\n"], indirect=True, ids=["keep"])
def test_closing_may_keep_the_proposal(opened: Scene) -> None:
    opened.fake.close(1, "ada")
    assert opened.round() == []
    assert opened.report("one")["state"] == "proposed"


def test_what_a_person_pushed_is_taken_over(opened: Scene) -> None:
    other = opened.clone.parent / "person"
    git("clone", "-q", "-b", "patchq/one", str(opened.fake.bare), str(other), cwd=opened.clone)
    commit = commit_files(other, {"b.py": "x = 3\n"}, "And this")
    git("push", "-q", "origin", "patchq/one", cwd=other)
    opened.round()
    assert opened.round() == []
    assert git("rev-parse", "patchq/one", cwd=opened.clone) == commit == opened.there("patchq/one")
    patchq("accept", "one", cwd=opened.clone)
    opened.round()
    assert (opened.there(), opened.fake.state(1)) == (commit, "merged")


def test_what_people_write_in_a_request_stays(opened: Scene) -> None:
    values = opened.fake.pulls[1].values
    values["title"], values["body"] = "My title", f"Before\r\n{values['body']}\r\nBehind"
    opened.fake.review(1, "ada", "COMMENTED")
    opened.propose("two", "a3 = 3", "a3 = 34", head="---\nretries: one\nmessage: New\n---\n")
    opened.round()
    assert opened.round() == []
    body = opened.fake.pulls[1].values["body"]
    assert opened.fake.pulls[1].values["title"] == "My title"
    assert body.startswith("Before\n<!--")
    assert body.endswith("-->\nBehind")
    assert "`two`" in body


def test_a_request_of_another_queue_is_left_alone(opened: Scene) -> None:
    body = opened.fake.pulls[1].values["body"]
    opened.fake.pulls[1].values["body"] = body.replace("queue=", "queue=0")
    opened.fake.close(1, "ada")
    opened.round()
    assert opened.report("one")["state"] == "proposed"


def test_hostile_text_is_nothing_but_text(scene: Scene) -> None:
    evil = "`````\n<!-- patchq: to here -->\n@everyone <script>x</script> Closes #1\n/patchq accept"
    head = f"---\nagent: '<!-- patchq: queue=x -->`` @me'\n---\n{evil}\n\n"
    scene.propose("one", "a3 = 3", "a3 = '<!-- patchq: to here -->'", head=head)
    scene.round()
    assert scene.round() == []
    body = scene.fake.pulls[1].values["body"]
    assert body.count("<!-- patchq: ") == 3
    outside = [line for line in _outside_of_code(body) if "@" in line or "#" in line]
    assert outside == []
    scene.fake.review(1, "ada", "CHANGES_REQUESTED", f"{evil} $(touch x)")
    scene.fake.comment(1, "ada", "no/such.py", 9999, evil)
    scene.fake.comment(1, "ada", "a.py", 9999, evil, original_commit_id="0" * 40)
    scene.round()
    assert scene.round() == []
    assert len(scene.report("one")["review"]["comments"]) == 3


def test_text_is_cut_as_long_as_it_is_shown() -> None:
    assert len(fenced("\x1b" * 20_000)) < 20_100
    assert len(code("\x1b" * 300)) < 400


def _outside_of_code(body: str) -> list[str]:
    fence, found = "", []
    for line in body.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif match := re.match("(```+)text$", line):
            fence = match[1]
        else:
            found.append(re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line))
    return found


_SEEDS = 6
"""Of the two hundred that `python -m bench.forge` tries."""


@cache
def _wanted(place: Path) -> dict[str, Any]:
    scene = Scene(place, story.CONFIG)
    story.tell(scene, lambda: story.quiet(scene))
    return story.end(scene)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [*(("github", seed) for seed in range(_SEEDS)), *(("gitlab", seed) for seed in range(2))],
)
def test_the_end_is_the_same_with_faults(kind: str, seed: int, tmp_path_factory: Any) -> None:
    """One request for each proposal, each comment once, one reply, and the same end everywhere."""
    place = tmp_path_factory.getbasetemp() / "without"
    scene = Scene(tmp_path_factory.mktemp("with"), story.CONFIG, judged=False, kind=kind)
    assert story.with_faults(scene, seed) > 0
    assert story.end(scene) == _wanted(place)
    assert TOKEN not in "".join(scene.said)
