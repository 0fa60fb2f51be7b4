"""What people decide on many machines comes out as on one: stacks, choices, conflicts, lanes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.gate.service.test_cluster_scenarios import Cluster, Make, cluster
from tests.helpers import processes
from tests.helpers.chat_server import serving
from tests.helpers.command import block, drop, patchq, report, seen
from tests.helpers.gitrepo import git, make_repo

__all__ = ["cluster"]
FILES = {f"{name}.txt": "one\ntwo\nthree\n" for name in "abcdef"}


@pytest.fixture
def gate(tmp_path: Path, cluster: Make) -> Callable[..., Cluster]:
    def make(mode: str, more: str = "") -> Cluster:
        repo = make_repo(tmp_path / "repo", FILES)
        git("branch", "release/1", cwd=repo)
        return cluster(repo, f"version: 1\ntargets: [release/*]\nmode: {mode}\n{more}")

    return make


def send(at: Cluster, **responses: str) -> list[str]:
    """Drop the responses, and wait for what is said of them; their states."""
    for id, text in responses.items():
        (at.repo.parent / f"{id}.md").write_text(text)
    drop(at.queue, {f"{id}.md": text for id, text in responses.items()})
    return [at.told_of(f"{id}.md")["state"] for id in responses]


def state(at: Cluster, id: str) -> str:
    told = seen(at.queue, id)
    return str(told and told["state"])


def there(at: Cluster, path: str, branch: str = "main") -> str:
    return git("show", f"{branch}:{path}", cwd=at.shared) + "\n"


def on(*ids: str) -> str:
    return f"---\ndepends_on: [{', '.join(ids)}]\n---\n"


def test_what_is_sent_back_is_answered_and_what_landed_is_taken_back(
    gate: Callable[[str], Cluster],
) -> None:
    at = gate("review")
    assert send(at, x=block("a.txt", "two\n", "2\n")) == ["proposed"]
    (at.repo.parent / "said").write_text("a.txt:2: in words, please\n")
    patchq("send-back", "x", "--comments", "../said", cwd=at.repo)
    [comment] = report(at.queue, "x")["review"]["comments"]
    assert (comment["path"], comment["line"], comment["by"]) == ("a.txt", 2, "Ada Tester")
    answer = "---\nretries: x\n---\n" + block("a.txt", "two\n", "zwei\n")
    assert send(at, y=answer) == ["proposed"]
    at.until(lambda: state(at, "x") == "superseded")
    patchq("accept", "y", cwd=at.repo)
    assert there(at, "a.txt") == "one\nzwei\nthree\n"
    patchq("revert", "y", cwd=at.repo)
    assert there(at, "a.txt") == FILES["a.txt"]
    assert state(at, "y") == "reverted"
    assert "reverted" in patchq("revert", "y", cwd=at.repo, code=2).err
    by = report(at.queue, "y")["duplicate_of"]
    assert f"Patchq-Batch: {by}" in git("show", "-s", "--format=%B", "main", cwd=at.shared)
    assert state(at, by) == "applied"
    assert "-zwei\n+two\n" in patchq("show", by, cwd=at.repo).out
    assert by in patchq("log", cwd=at.repo).out
    patchq("revert", by, cwd=at.repo)
    assert there(at, "a.txt") == "one\nzwei\nthree\n"
    assert state(at, by) == "reverted"
    assert [*(at.queue / "active").iterdir()] == []
    assert patchq("fsck", cwd=at.repo).code == 0


@pytest.mark.slow
def test_apply_waits_for_the_workers_verdict(gate: Callable[..., Cluster]) -> None:
    at = gate("auto")
    at.until(lambda: patchq("status", "--json", cwd=at.repo).json()["daemon"])

    def apply(text: str, code: int = 0) -> Any:
        return patchq("apply", "-", "--json", cwd=at.repo, stdin=text, code=code)

    change = block("b.txt", "two\n", "2\n")
    assert apply(change).json()["state"] == "applied"
    assert there(at, "b.txt") == "one\n2\nthree\n"
    again = apply(change).json()
    assert (again["state"], again["duplicate_of"]) == ("duplicate", "response")
    assert apply(block("b.txt", "no\n", "2\n"), 1).json()["problems"][0]["code"] == "match.none"
    processes.end(at.running[:2])
    late = apply(block("c.txt", "two\n", "2\n"), 3)
    assert "no worker serves the branch 'main'" in late.err
    at.start("worker", "w1")
    at.until(lambda: there(at, "c.txt") == "one\n2\nthree\n")


def test_a_worker_asks_the_model_and_the_feeder_has_the_answers(
    gate: Callable[..., Cluster],
) -> None:
    answer = "a.txt\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n".format
    script = [answer("two", "zwei"), answer("none", "drei"), answer("zwei", "drei")]
    with serving(script) as server:
        llm = f"llm: {{base_url: {server.base_url}, model: m-1, auto_retry: 1, correct: false}}\n"
        at = gate("auto", llm)
        at.until(lambda: patchq("status", "--json", cwd=at.repo).json()["daemon"])
        ask = ("ask", "a.txt", "--json", "--task")
        told = patchq(*ask, "in German", cwd=at.repo).json()
        assert (told["state"], told["model"]) == ("applied", "m-1")
        assert there(at, "a.txt") == "one\nzwei\nthree\n"
        assert (at.queue / "done" / f"{told['id']}.md").read_text().endswith(script[0])
        wrong = patchq(*ask, "three", cwd=at.repo, code=1).json()
        at.until(lambda: [*at.queue.glob(f"done/{wrong['id']}*.report.json")])
    [again] = at.queue.glob(f"done/{wrong['id']}*.report.json")
    assert json.loads(again.read_bytes())["retry"]["of"] == wrong["id"]
    assert there(at, "a.txt") == "one\ndrei\nthree\n"
    body = again.with_name(again.name.replace(".report.json", ".md")).read_text()
    assert body.endswith(script[2])
    assert [*(at.queue / "active").iterdir()] == []
    assert patchq("fsck", cwd=at.repo).code == 0


@pytest.mark.slow
def test_run_feeds_what_waits_and_ends(gate: Callable[..., Cluster]) -> None:
    at = gate("auto")
    processes.end(at.running[2:])
    queue = {"x.md": block("a.txt", "two\n", "2\n"), "y.md": block("a.txt", "no\n", "2\n")}
    drop(at.queue, {**queue, "z.md": on("nobody") + block("b.txt", "two\n", "2\n")})
    done = patchq("run", cwd=at.repo, code=1)
    assert [state(at, id) for id in "xy"] == ["applied", "rejected"]
    assert {line.split()[0] for line in done.out.splitlines()} == {"applied", "rejected", "held"}
    assert there(at, "a.txt") == "one\n2\nthree\n"
    assert patchq("run", cwd=at.repo).out == ""
