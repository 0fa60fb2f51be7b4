"""`submit` says what is known of a response; `wait` waits for its verdict, or a later state."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.api import Gate
from patchq.gate.pipeline.context import RepoContext
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.inbox import Pending
from patchq.gate.report.schema import Report
from patchq.gate.review import from_git
from tests.cli.conftest import BAD, EDIT
from tests.helpers import ending
from tests.helpers.command import drop, patchq, work
from tests.helpers.gitrepo import git, write_config


def test_submit_waits_as_long_as_it_is_told(repo: Path) -> None:
    done = patchq("submit", "-", "--timeout", "0.1", cwd=repo, stdin=EDIT, code=124)
    assert done.out == ""
    assert "waiting for the verdict on response" in done.err
    assert "no daemon runs; waiting for `patchq watch`" in done.err
    assert "change response has no verdict after 0.1 s\n  it is " in done.err
    assert [path.name for path in (repo / ".patchq/inbox").iterdir()] == ["response.md"]


def test_what_has_no_verdict_is_waited_for(repo: Path) -> None:
    drop(repo / ".patchq", {"x.md": EDIT})
    done = patchq("--json", "wait", "x", "--timeout", "0.14", cwd=repo, code=124)
    assert '"message": "change x has no verdict after 0.1 s"' in done.err
    for verb in ("accept", "discard", "retry"):
        early = patchq(verb, "x", cwd=repo, code=2)
        assert "change x has no verdict yet; `patchq wait x`" in early.err
    patchq("run", cwd=repo)
    assert patchq("wait", "x", cwd=repo).out.startswith("proposed   x")
    done = patchq("wait", "x", "--for", "accepted", "--timeout", "0.1", cwd=repo, code=124)
    assert "change x is proposed after 0.1 s" in done.err
    git("merge", "-q", "patchq/x", cwd=repo)
    assert patchq("wait", "x", "--for", "accepted", cwd=repo).out.startswith("accepted   x")


def test_a_refusal_says_what_to_send(repo: Path) -> None:
    work(repo, x=BAD)
    done = patchq("wait", "x", cwd=repo, code=1)
    line, _, page = done.out.partition("\n\n")
    assert line.startswith("rejected   x  match.none")
    assert page == patchq("show", "x", cwd=repo).out
    assert patchq("wait", "x", "--json", cwd=repo, code=1).json()["retry"]["prompt"]
    assert patchq("wait", "x", "--for", "rejected", cwd=repo).out == done.out
    assert patchq("wait", "x", "--for", "accepted", cwd=repo, code=1).out  # it cannot come


@pytest.mark.parametrize(
    ("name", "text", "id"),
    [
        ("x.md", EDIT, "x"),
        ("x.md", f"---\nid: own\n---\n{EDIT}", "own"),
        ("job.request.yaml", "files: [a.txt]\ntask: x\n", "job"),
    ],
)
def test_a_batch_is_known_as_soon_as_it_lies_in_the_inbox(
    repo: Path, name: str, text: str, id: str
) -> None:
    drop(repo / ".patchq", {name: text})
    assert "; 1 in the inbox" in patchq("status", cwd=repo).out
    for verb in ("show", "status"):
        assert patchq(verb, id, cwd=repo).out.startswith(f"waiting    {id}  in the inbox for ")
        told = patchq(verb, id, "--json", cwd=repo).json()
        assert (told["id"], told["state"], told["source"]) == (id, "waiting", {"name": name})
    done = patchq("wait", id, "--timeout", "0.05", cwd=repo, code=124)
    assert re.search(f"in the inbox for \\d+ s; `patchq wait {id}` waits on", done.err)


def test_a_verdict_that_comes_between_two_looks_is_waited_for(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, pending, looked = from_git.find, StoreQueue.pending, list[str]()

    def look(context: RepoContext, id: str) -> tuple[Report, str]:
        try:
            return find(context, id)
        finally:
            looked.append(id)

    def ends_before(queue: StoreQueue, id: str) -> Pending | None:
        if looked:
            patchq("run", cwd=repo)
        return pending(queue, id)

    monkeypatch.setattr(from_git, "find", look)
    monkeypatch.setattr(StoreQueue, "pending", ends_before)
    drop(repo / ".patchq", {"x.md": EDIT})
    with Gate.open(repo) as gate:
        assert gate.wait("x", timeout=60).state == "proposed"


def test_what_is_done_with_a_batch_is_told(repo: Path) -> None:
    hook = "{id: slow, stage: pre-apply, run: sleep 60, unconfined: true}"
    write_config(repo, f"version: 1\nhooks: [{hook}]\n")
    drop(repo / ".patchq", {"x.md": f"---\nid: own\n---\n{EDIT}"})

    def told() -> Any:
        return patchq("show", "own", "--json", cwd=repo).json()

    with ending.running([sys.executable, "-m", "patchq", "run"], cwd=repo) as work:
        ending.until(lambda: any(one["hook"] for one in told().get("doing", ())))
        (doing,) = told()["doing"]
        assert (told()["state"], doing["stage"], doing["hook"]) == ("claimed", "checking", "slow")
        assert "\n1 in hand: own checking by slow for " in patchq("status", cwd=repo).out
        line = patchq("status", "own", cwd=repo).out
        assert line.startswith("claimed    own  in hand: checking by slow for ")
        work.kill()
    assert (told()["state"], told()["doing"]) == ("claimed", [])
    assert "\n1 in hand\n" in patchq("status", cwd=repo).out
