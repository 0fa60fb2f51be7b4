"""What a round does with proposals, and with what people say of them."""

from __future__ import annotations

import pytest

from tests.forge.conftest import Scene

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
    told = [
        (one["text"], one["path"], one["line"], one["origin"][-5:]) for one in found["comments"]
    ]
    assert [one[:3] for one in told] == [("Not like this.", None, None), ("why 33?", "a.py", 3)]
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
    assert fake.state(1) == "merged"
    assert scene.there() == scene.report("two")["commit"]
    assert fake.moved["patchq/one"] == 3  # made, changed, deleted
