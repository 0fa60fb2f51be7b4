"""The commands, over HTTP to a fake on this machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from patchq.forge.sync import turn
from tests.forge import day
from tests.forge.conftest import Scene
from tests.forge.fake import TOKEN
from tests.helpers.command import patchq
from tests.helpers.ending import until


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHQ_FORGE_TOKEN", TOKEN)


def test_the_page_shows_a_day(tmp_path: Path) -> None:
    (block,) = day.BLOCK.findall(day.PAGE.read_text("utf-8"))
    assert day.told(tmp_path) == block, "run: python -m tests.forge.day"


def test_lists_name_the_request_and_comments_are_sent_back_by_hand(scene: Scene) -> None:
    with day.served(scene.fake) as url:
        scene.commit_config(f"  url: {url}\n")
        scene.propose("one", "a3 = 3", "a3 = 33")
        patchq("forge", "sync", "--once", cwd=scene.clone)
        scene.fake.review(1, "ada", "APPROVED")
        scene.fake.comment(1, "ada", "a.py", 3, "why 33?")
        scene.fake.say(1, "ada", "Please use a name.")
        scene.fake.say(1, "stranger", "I like it.")
        patchq("forge", "sync", "--once", cwd=scene.clone)
        assert "#1, approved by ada, 2 comments" in patchq("status", cwd=scene.clone).out
        row = patchq("status", "--json", cwd=scene.clone).json()["waiting"][0]
        assert (row["request"]["number"], row["request"]["approved"]) == (1, ["ada"])
        shown = patchq("show", "one", cwd=scene.clone).out
        assert "https://github.com/acme/demo/pull/1" in shown
        patchq("send-back", "one", "--forge", "-m", "See there.", cwd=scene.clone)
        again = patchq("send-back", "one", "--forge", cwd=scene.clone, code=2)
    assert "there is no comment" in again.err
    told = [(one["text"], one["by"]) for one in scene.report("one")["review"]["comments"]]
    assert told[1:] == [("Please use a name.", "ada"), ("why 33?", "ada")]


def test_doctor_looks_at_the_token(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> dict[str, str]:
        rows = patchq("doctor", "--json", cwd=scene.clone, code=None).json()["findings"]
        return {one["what"]: one["message"] for one in rows if one["what"].startswith("forge.")}

    scene.fake.headers = {
        "github-authentication-token-expiration": f"{datetime.now(UTC) + timedelta(3.1):%F %T} UTC",
        "x-ratelimit-remaining": "4987",
    }
    scene.round()
    assert found()["forge.expiry"] == "the token ends in 3 days"
    assert found()["forge.round"].endswith("; the forge takes 4987 more requests")
    monkeypatch.delenv("PATCHQ_FORGE_TOKEN")
    assert found()["forge.token"] == "PATCHQ_FORGE_TOKEN is not set"


MISTAKES = {
    "url: expected an https address": "  url: http://git.example.org/api\n",
    "expected a login, or a team as `organisation/team`": "  people: ['a b']\n",
    "mode: expected `review` beside `forge.land: merge`": "  land: merge\nmode: auto\n",
    "as `forge.remote` says, got `other`": "landing: {remote: other}\n",
    "prints no token": "  token_command: 'false'\n  url: http://localhost:1\n",
    "NOT_SET is not set": "  token_env: NOT_SET\n  url: http://localhost:1\n",
    "no remote `upstream`": "  remote: upstream\n",
    "localhost:1 does not answer": "  url: http://localhost:1\n",
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_named(scene: Scene, message: str) -> None:
    scene.commit_config(MISTAKES[message])
    done = patchq("forge", "check", cwd=scene.clone, code=None)
    assert done.code in (2, 3)
    assert message in done.err
    assert TOKEN not in done.out + done.err


def test_a_forge_that_is_away_is_a_trouble(scene: Scene) -> None:
    scene.propose("one", "a3 = 3", "a3 = 33")
    scene.fake.fault = lambda what: "502"
    rests = [turn(scene.gate, scene.sync, rest) for rest in (0.0, 30.0, 300.0)]
    assert rests == [30.0, 60.0, 300.0]
    assert "api.github.com answers 502" in patchq("status", cwd=scene.clone).out
    scene.fake.fault = lambda what: None
    assert turn(scene.gate, scene.sync, 60.0) == 30.0
    assert "502" not in patchq("status", cwd=scene.clone).out


def test_the_daemon_keeps_the_forge_in_step(scene: Scene) -> None:
    """A child of the daemon opens requests and carries approvals out; no file has the token."""
    with day.served(scene.fake) as url:
        scene.commit_config(f"  url: {url}\n  on_approve: accept\n  poll_seconds: 0.2\n")
        scene.propose("one", "a3 = 3", "a3 = 33")
        patchq("watch", "--detach", cwd=scene.clone)
        try:
            until(lambda: 1 in scene.fake.pulls)
            scene.fake.review(1, "ada", "APPROVED")
            until(lambda: scene.fake.state(1) == "merged")
            until(lambda: scene.report("one")["state"] == "accepted")
        finally:
            patchq("stop", cwd=scene.clone)
    log = (scene.clone / ".patchq/daemon.log").read_text()
    assert "accept one, approved by ada" in log
    for path in scene.clone.parent.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path
