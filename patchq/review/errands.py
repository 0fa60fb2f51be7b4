"""What a person decides on one machine and a worker carries out on another, and its answer.

Words and answers are JSON.  What is carried out again, since its worker died before it answered,
finds that it is done, and answers with the report as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from patchq.model.errors import Fault
from patchq.model.report import Report
from patchq.model.values import Problem
from patchq.pipeline.world import World
from patchq.report.document import problem_json
from patchq.review import decide, revert, send_back, stacked
from patchq.review.comment_file import DraftComment
from patchq.review.decide import Decided

_STATES = {"accept": "accepted", "discard": "discarded", "revert": "reverted"}


class ErrandDone(NamedTuple):
    """What came of it, with the verdicts on batches that were made for it."""

    decided: Decided
    verdicts: tuple[Report, ...] = ()


class FarFault(Fault):
    """What kept the worker from doing it."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        super().__init__(told["message"], told["hint"])
        self.code, self.exit_status = told["code"], told["exit_status"]
        self.retryable = told["retryable"]


def carry_out(world: World, words: Mapping[str, Any], *, again: bool) -> Mapping[str, Any]:
    """Do it, perhaps once more; the answer, which may be a fault that concerns this alone."""
    try:
        return _answer(*_carried_out(world, words))
    except Fault as fault:
        report = world.queue.load(words["id"])
        if report and report["state"] == _STATES.get(words["verb"]) and again:
            return _answer(Decided(report))
        told = {name: getattr(fault, name) for name in _FAULT}
        return {"fault": told}


_FAULT = ("code", "message", "hint", "exit_status", "retryable")


def _carried_out(world: World, words: Mapping[str, Any]) -> ErrandDone:
    if words["verb"] == "revert":
        verdicts: list[Report] = []
        decided = revert.revert(world, words["id"], verdicts.append)
        return ErrandDone(decided, tuple(verdicts))
    return ErrandDone(_decided(world, words))


def _decided(world: World, words: Mapping[str, Any]) -> Decided:
    id = words["id"]
    if words["verb"] == "send-back":
        drafts = [DraftComment(**one) for one in words["comments"]]
        return send_back.send_back(world, id, drafts, by=words["by"])
    if words["verb"] == "discard":
        return decide.discard(world, id, why=words["why"])
    if words["stack"]:
        return stacked.accept(world, id)
    only = None if words["only"] is None else frozenset(words["only"])
    return decide.accept(world, id, only, frozenset(words["without"]))


def _answer(decided: Decided, verdicts: tuple[Report, ...] = ()) -> Mapping[str, Any]:
    return {
        "verdicts": verdicts,
        "report": decided.report,
        "problems": [problem_json(problem) for problem in decided.problems],
        "back": decided.back,
        "along": decided.along,
        "below": decided.below,
    }


def answered(answer: Mapping[str, Any]) -> ErrandDone:
    """What the answer says; raises the fault that it tells."""
    if fault := answer.get("fault"):
        raise FarFault(fault)
    decided = Decided(
        answer["report"],
        tuple(
            Problem(one["code"], one["message"], one["hint"], severity=one["severity"])
            for one in answer["problems"]
        ),
        tuple(answer["back"]),
        tuple((edit, need) for edit, need in answer["along"]),
        tuple(answer["below"]),
    )
    return ErrandDone(decided, tuple(answer["verdicts"]))
