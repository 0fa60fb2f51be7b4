"""One story with every kind of decision, which ends the same whatever comes in between."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from patchq.gate.api import Gate
from patchq.gate.errors import Fault
from tests.forge.conftest import Scene
from tests.helpers.gitrepo import git

CONFIG = "  on_approve: accept\n"
_FAULTS = ("dropped", "lost", "429", "502")


class Killed(BaseException):
    """The process ends here."""


def tell(scene: Scene, between: Callable[[], None]) -> None:
    """Have people and agents do their part, with `between` after each step."""
    fake = scene.fake
    for number, id in enumerate(("one", "two", "three", "four"), 1):
        scene.propose(id, f"a{20 * number} = {20 * number}", f"a{20 * number} = 0")
    between()
    numbers = {
        pull.values["head"]["ref"].removeprefix("patchq/"): number
        for number, pull in fake.pulls.items()
    }
    review = fake.review(numbers["one"], "ada", "CHANGES_REQUESTED", "Not so.")
    fake.comment(numbers["one"], "ada", "a.py", 20, "why?", pull_request_review_id=review)
    fake.comment(numbers["one"], "ada", "b.py", 1, "and here?", pull_request_review_id=review)
    fake.review(numbers["two"], "ada", "APPROVED")
    between()
    fake.close(numbers["three"], "ada")
    fake.merge(numbers["four"], "ada", message="Reworded")
    between()
    scene.propose("answer", "a20 = 20", "a20 = 21", head="---\nretries: one\n---\n")
    between()
    fake.review(numbers["one"], "ada", "APPROVED")
    between()


def quiet(scene: Scene) -> None:
    """Make rounds without a fault until nothing is to be done."""
    scene.fake.fault = lambda what: None
    scene.begin()
    for _ in range(8):
        if not scene.round():
            return
    raise AssertionError(scene.said)


def end(scene: Scene) -> dict[str, Any]:
    """Return what is left of the story on both sides."""
    found: dict[str, Any] = {
        "branches": git("branch", "--format=%(refname:short)", cwd=scene.fake.bare)
    }
    found["a.py"] = git("show", "main:a.py", cwd=scene.fake.bare)
    for number, pull in scene.fake.pulls.items():
        head = pull.values["head"]
        replies = [(one["path"], one["body"][:7]) for one in pull.comments[2:]]
        notes = [one["body"].split(" ")[0] for one in pull.notes]
        found[head["ref"]] = scene.fake.state(number), replies, len(pull.resolved), notes
    for id in ("one", "two", "three", "four", "answer"):
        report = scene.report(id)
        review = report["review"] or {"comments": ()}
        told = [(one["text"], one["path"], one["line"]) for one in review["comments"]]
        found[id] = report["state"], report["duplicate_of"], told
    return found


def with_faults(scene: Scene, seed: int) -> int:
    """Tell the story with faults by a seed; return how many there were."""
    chance, count = random.Random(seed), 0

    def fault(what: str) -> str | None:
        nonlocal count
        if chance.random() >= 0.12:
            return None
        count += 1
        kind = chance.choice((*_FAULTS, "killed"))
        if kind == "killed":
            raise Killed
        return kind

    def say(text: str) -> None:
        nonlocal count
        if chance.random() < 0.05:
            count += 1
            raise Killed

    def between() -> None:
        for _ in range(5):
            scene.fake.fault = fault
            scene.begin(say)
            try:
                scene.sync.rounds(scene.gate)
            except Fault:
                pass
            except Killed:
                scene.gate.close()
                scene.gate = Gate.open(scene.clone)
        quiet(scene)

    tell(scene, between)
    return count
