"""Threads and rounds of a change, what is taken back, and what the page reads anew."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import follow, rows
from tests.helpers.command import block, patchq, work
from tests.page.people import moved, state

pytestmark = pytest.mark.browser
Opening = Callable[..., Any]


def threads(tab: Any) -> dict[str, str]:
    """The state of each thread on the page."""
    pairs: dict[str, str] = tab.evaluate(
        "Object.fromEntries([...document.querySelectorAll('[data-thread][data-state]')]"
        ".map(one => [one.dataset.thread, one.dataset.state]))"
    )
    return pairs


def changed(tab: Any) -> list[str]:
    found: list[str] = tab.locator("[data-changed]").all_inner_texts()
    return found


def test_a_round_shows_what_it_changed_or_the_earlier_result(opened: Opening, repo: Path) -> None:
    tab = opened("/batch/second")
    assert "round 2 of 2" in tab.inner_text("main")
    assert "ROW 20" in changed(tab)
    follow(tab, "a[data-since='1']")
    assert changed(tab) == ["ROW 5", "better 5", "ROW 6", "row 6"]
    follow(tab, "a[data-since=all]")
    assert changed(tab) == ["row 5", "better 5", "row 20", "ROW 20"]
    work(repo, clash1=block("notes.md", "plain\n", "plainer\n"))
    patchq("send-back", "clash1", "-m", "no", cwd=repo)
    work(repo, between=block("notes.md", "plain\n", "simple\n"))
    patchq("accept", "between", cwd=repo)
    work(repo, clash2="---\nretries: clash1\n---\n" + block("notes.md", "simple\n", "easy\n"))
    tab.goto(f"{tab.own}/batch/clash2?since=1")
    assert "Shown against the result of round 1" in tab.inner_text("main")
    assert changed(tab) == ["plainer", "easy"]


def test_threads_are_answered_resolved_and_sent_along(opened: Opening, repo: Path) -> None:
    tab = opened("/batch/second")
    assert threads(tab) == {"c1": "answered", "c2": "answered", "c3": "open"}
    assert "Shorter now" in tab.inner_text("[data-thread=c1]")
    assert "1 open" in tab.inner_text("[data-bar]")
    seen = []
    for _ in range(3):
        tab.keyboard.press("m")
        seen.append(tab.evaluate("document.activeElement.dataset.thread"))
    assert sorted(seen) == ["c1", "c2", "c3"]
    tab.keyboard.press("M")
    assert tab.evaluate("document.activeElement.dataset.thread") == seen[1]
    tab.click("[data-thread=c1] button:text('Resolve')")
    tab.locator("[data-thread=c1][data-state=resolved]").wait_for()
    tab.click("[data-thread=c2] summary")
    with tab.expect_response("**/draft"):
        tab.fill("[data-thread=c2] textarea", "Not quite")
    tab.reload()
    assert tab.input_value("[data-thread=c2] textarea") == "Not quite", "the draft is kept"
    tab.click("[data-thread=c2] button:text('Reply')")
    tab.locator("[data-thread=c2][data-state=open]").wait_for()
    tab.click("button:text('Send back to')")
    tab.locator("text=Sent back second").wait_for()
    review = patchq("--json", "show", "second", cwd=repo).json()["review"]
    states = [(one["id"], one["state"]) for one in review["comments"]]
    assert states == [("c2", "open"), ("c3", "open")]
    assert review["comments"][0]["replies"][-1]["text"] == "Not quite"
    work(repo, third=f"---\nretries: second\nanswers: {{c3: Gone}}\n---\n{rows(5, to='Best')}")
    tab.goto(f"{tab.own}/batch/third")
    assert threads(tab) == {"c2": "answered", "c3": "answered"}
    assert "round 3 of 3" in tab.inner_text("main")


def test_a_range_is_commented_on_by_the_mouse(opened: Opening, repo: Path) -> None:
    text = "".join(f"new {n}\n" for n in range(1, 10))
    work(repo, ranged=block("ranged.txt", "", text))
    tab = opened("/batch/ranged")
    number = "code[data-side=new][data-line='{}']"
    tab.click(number.format(3), position={"x": 20, "y": 5})
    tab.click(number.format(7), position={"x": 20, "y": 5}, modifiers=["Shift"])
    with tab.expect_response("**/draft"):
        tab.locator(".words textarea").last.fill("All of it")
    tab.reload()
    assert tab.input_value(".words textarea") == "All of it"
    tab.click("button:text('Send back to')")
    tab.locator("text=Sent back ranged").wait_for()
    (said,) = patchq("--json", "show", "ranged", cwd=repo).json()["review"]["comments"]
    assert (said["lines"], said["text"], said["state"]) == ([3, 7], "All of it", "open")
    tab.click("button:text('Undo')")
    tab.locator("text=Taken back: ranged").wait_for()
    assert tab.input_value(".words textarea") == "All of it", "the words are a draft again"
    assert patchq("--json", "show", "ranged", cwd=repo).json()["review"] is None


def test_events_of_others_renew_the_numbers_alone_but_on_the_inbox(
    opened: Opening, repo: Path
) -> None:
    inbox, tab = opened("/"), opened("/batch/rtl")
    numbers = tab.locator("[data-waiting]", has_text=re.compile(r"^\d+$"))
    numbers.wait_for()
    before, read = int(numbers.inner_text()), list[str]()
    tab.on("request", lambda request: read.append(request.url))
    for n in range(5):
        work(repo, **{f"event-{n}": block(f"event-{n}.txt", "", "x\n")})
        number = re.compile(f"^{before + n + 1}$")
        tab.locator("[data-waiting]", has_text=number).wait_for()
    assert read == []
    inbox.locator("[data-change=event-4]").wait_for()
    patchq("discard", "event-4", cwd=repo)
    inbox.locator("[data-change=event-4]").wait_for(state="detached")
    patchq("send-back", "rtl", "-m", "shorter", cwd=repo)
    tab.locator("text=shorter").first.wait_for()
    assert read


def test_forty_are_decided_by_keys_alone(opened: Opening, repo: Path) -> None:
    ids = [f"key-{n:02}" for n in range(40)]
    work(repo, **{id: block(f"{id}.txt", "", "x\n") for id in ids})
    tab = opened("/?q=key-")
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"**/batch/{ids[0]}")
    decided: list[str] = []
    for _ in range(200):
        if len(decided) == len(ids):
            break
        id = tab.evaluate("document.documentElement.dataset.id")
        if id not in ids:  # one of another test
            with tab.expect_navigation():
                tab.keyboard.press("n")
            continue
        tab.keyboard.press("ad"[len(decided) % 2])
        with tab.expect_navigation():
            tab.keyboard.press("Enter")
        decided.append(id)
    states = [state(repo, id) for id in decided]
    assert states == ["accepted", "discarded"] * 20


def test_pictures_are_shown_and_run_nothing(opened: Opening) -> None:
    tab = opened("/batch/pictures", viewport={"width": 1280, "height": 2000})
    sizes = {
        one: tab.locator(f"img[alt='{one}']").evaluate(
            "it => it.decode().then(() => it.naturalWidth)"
        )
        for one in ("a.png before", "a.png after", "a.svg before", "a.svg after")
    }
    assert sizes == {"a.png before": 3, "a.png after": 9, "a.svg before": 9, "a.svg after": 9}
    tab.locator("figcaption", has_text="9 × 9").first.wait_for()
    assert tab.locator("section[data-path='a.svg'] [data-changed]").count() == 2
    heads = tab.locator("section h2").all_inner_texts()
    assert "old.txt → new.txt 96 % alike +1 −1" in heads
    assert "tool changed, mode 644 → 755 +0 −0" in heads
    own = tab.get_attribute("img[alt='a.svg after']", "src")
    tab.goto(f"{tab.own}{own}")
    assert tab.title() != "run"


def test_one_that_moved_is_shown_and_the_others_land(opened: Opening, repo: Path) -> None:
    ids = [f"many-{n:02}" for n in range(12)]
    work(repo, **{id: block(f"{id}.txt", "", "x\n") for id in ids})
    tab = opened("/?q=many-")
    tab.check("[data-whole]")
    follow(tab, "[data-bar] button[value=accept]")
    moved(repo, ids[4])
    tab.click("[data-decide=accept]")
    tab.locator("[role=alert]").wait_for()
    assert "has moved since it was looked at" in tab.inner_text("[role=alert]")
    states = [state(repo, id) for id in ids]
    assert (states.count("accepted"), states[4]) == (11, "proposed")
