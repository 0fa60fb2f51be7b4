"""`retry`: a stored response is decided again, on the branches as they are now.

It is a new attempt with an id of its own, and the report says of which batch; one that waits is
superseded once the new one stands.  With edits left out, only a person can ask for it: never does
patchq take a part of a refused response by itself.
"""

from __future__ import annotations

from dataclasses import replace

from patchq.land import worker
from patchq.model.errors import UsageError
from patchq.model.names import response_name
from patchq.model.report import LANDED, Report
from patchq.pipeline.choice import Choice
from patchq.pipeline.world import World
from patchq.plan import selection
from patchq.review import from_git


def retry(world: World, id: str, without: frozenset[str], tell: worker.Tell) -> None:
    """Decide again on the response of a batch, but for the edits `without` and what needs them.

    `tell` is called with the new report.  `UsageError` for a batch that landed or goes on by
    itself, and where the queue has lost the response.
    """
    report = world.queue.load(id)
    if report is None:
        raise _unknown(world, id)
    _refuse_what_stands(report)
    body = world.queue.body(id)
    if body is None:
        raise UsageError(
            f"the response of {id} was never read, or is gone from the queue", "send it again"
        )
    choice = Choice(target=report["target"], retries=id)
    if without:
        selected = selection.select(report["edits"], None, without)
        choice = replace(choice, edits=selected.taken, left=selected.left)
    name = response_name(report["source"]["name"] or "")
    worker.work([world.queue.adopt(body, name, choice.to_json())], world, tell, choice)


def _unknown(world: World, id: str) -> UsageError:
    if from_git.load(world, id) is None:
        return UsageError(f"there is no batch {id}", "see `patchq log`")
    return UsageError(f"the queue has lost the response of {id}", "send it again")


def _refuse_what_stands(report: Report) -> None:
    id, state = report["id"], report["state"]
    if state in LANDED:
        raise UsageError(
            f"batch {id} has landed: it is {state}", f"to take it back first: patchq revert {id}"
        )
    if state == "duplicate":
        raise UsageError(f"batch {id} is a duplicate: there is nothing to try again")
    if state == "held":
        raise UsageError(f"batch {id} is held, and goes on by itself", f"see `patchq show {id}`")
