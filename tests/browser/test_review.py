"""The review page as people use it: seen, heard, by keys alone, without a script, and attacked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.page.people import edits
from tests.helpers.command import drop, patchq
from tests.helpers.gitrepo import git

pytestmark = pytest.mark.browser

PAGES = ("/", "/batch/tax", "/history", "/statistics", "/conflicts", "/help")
THEMES = ("light", "dark")
PICTURES = "REVIEW_PICTURES"
"""The variable of the environment that names where pictures are kept, to be looked at."""
Opening = Callable[..., Any]


def state(repo: Path, id: str) -> str:
    return str(patchq("--json", "status", id, cwd=repo).json()["state"])


def fresh(repo: Path, name: str, old: str, new: str) -> None:
    """One more proposal."""
    drop(repo / ".patchq", {f"{name}.md": edits((old, new), path="notes.md")})
    patchq("run", cwd=repo)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(opened: Opening, path: str, theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    tab = opened(path, color_scheme=theme)
    found = axe.Axe().run(tab)
    assert found.violations_count == 0, found.generate_report()
    assert tab.errors == []


@pytest.mark.parametrize("width", [640, 1280])
def test_at_twice_the_size_nothing_is_cut(opened: Opening, width: int) -> None:
    tab = opened(viewport={"width": width, "height": 800})
    for path in PAGES:
        tab.goto(f"{tab.own}{path}")
        wider = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, path


@pytest.mark.parametrize("bypass", [False, True], ids=["policy", "no policy"])
def test_no_text_of_others_runs(opened: Opening, bypass: bool) -> None:
    tab = opened(bypass_csp=bypass)
    for path in (*PAGES, "/batch/hostile", "/batch/rtl", "/batch/wrong"):
        tab.goto(f"{tab.own}{path}")
        tab.wait_for_timeout(50)
        assert tab.title() != "run"
        assert tab.evaluate("document.querySelectorAll('img, main script').length") == 0


def test_accept_by_keys_alone(opened: Opening, repo: Path) -> None:
    fresh(repo, "keys", "a\n", "A\n")
    tab = opened("/")
    for _ in range(10):
        tab.keyboard.press("j")
        if tab.evaluate("document.activeElement.textContent") == "keys":
            break
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/batch/keys")
    tab.keyboard.press("a")
    tab.keyboard.press("Enter")
    tab.locator(".state-accepted").wait_for()
    assert state(repo, "keys") == "accepted"


def test_accept_chosen_by_keys_alone(opened: Opening, repo: Path) -> None:
    tab = opened("/batch/sum")
    tab.keyboard.press("j")
    tab.keyboard.press("x")
    tab.keyboard.press("a")
    tab.keyboard.press("Enter")
    tab.locator("text=What would land").wait_for()
    assert state(repo, "sum") == "proposed"
    tab.locator("text=Accept exactly this").focus()
    tab.keyboard.press("Enter")
    tab.locator(".state-accepted").wait_for()
    code = git("show", "HEAD:shop/cart.py", cwd=repo)
    assert ("import sys" in code, "i.price" in code) == (True, False)


def test_send_back_by_keys_alone(opened: Opening, repo: Path) -> None:
    tab = opened("/batch/other-tax")
    for key in ("j", "c"):
        tab.keyboard.press(key)
    tab.keyboard.type("why one more?")
    tab.keyboard.press("Tab")
    tab.locator("button:text('Send back to')").focus()
    tab.keyboard.press("Enter")
    tab.locator("#asked").wait_for()
    report = patchq("--json", "show", "other-tax", cwd=repo).json()
    (said,) = report["review"]["comments"]
    assert (said["path"], said["line"], said["text"]) == ("shop/cart.py", 6, "why one more?")


def test_all_without_a_script(opened: Opening, repo: Path) -> None:
    fresh(repo, "plain", "z\n", "Z\n")
    tab = opened("/", java_script_enabled=False)
    tab.click("a:text-is('plain')")
    tab.click("[aria-label='Comment on new line 3']")
    tab.fill("textarea[name=words]", "say why")
    tab.click("button:text('Send back to')")
    tab.locator("#asked").wait_for()
    assert tab.locator(".said >> text=say why").count() > 0
    tab.click("#discard")
    tab.locator(".state-discarded").wait_for()
    assert state(repo, "plain") == "discarded"


def test_a_change_is_seen_at_once(opened: Opening, repo: Path) -> None:
    tab = opened("/")
    tab.wait_for_timeout(300)
    fresh(repo, "news", "plain\n", "plainer\n")
    tab.locator("a:text-is('news')").first.wait_for()
    patchq("discard", "news", cwd=repo)
    row = tab.locator("td:nth-child(2) a:text-is('news')")
    row.wait_for(state="detached")
    assert row.count() == 0


def test_what_was_begun_is_not_taken_away(opened: Opening, repo: Path) -> None:
    tab = opened("/batch/rtl")
    tab.fill("#words", "half a sent")
    fresh(repo, "meanwhile", "plain\n", "plainest\n")
    tab.locator("text=Something has changed").wait_for()
    assert tab.input_value("#words") == "half a sent"
    patchq("discard", "meanwhile", cwd=repo)


def test_two_people_decide_at_once(opened: Opening, repo: Path) -> None:
    fresh(repo, "both", "plain\n", "simple\n")
    ada, ben = opened("/batch/both"), opened("/batch/both")
    ada.route("**/changes*", lambda route: route.abort())
    ada.reload()
    ben.click("#discard")
    ben.locator(".state-discarded").wait_for()
    ada.click("#accept")
    ada.locator("[role=alert]").wait_for()
    assert "it is discarded" in ada.inner_text("[role=alert]")
    assert state(repo, "both") == "discarded"


def test_a_page_of_another_site_decides_nothing(opened: Opening, url: str, repo: Path) -> None:
    tab = opened("/batch/rtl")
    commit = tab.get_attribute("input[name=commit]", "value")
    own = url.split("/?")[0]
    tab.goto("data:text/html,<p>elsewhere")
    tab.set_content(
        f"<form method=post action='{own}/batch/rtl/discard'><input name=commit value={commit}>"
        "<button>win</button></form>"
    )
    tab.click("button")
    tab.wait_for_load_state()
    tab.goto("about:blank")
    script = "([u, c]) => fetch(u, {method: 'POST', body: c, credentials: 'include', mode: 'no-cors'}).catch(() => 0)"  # noqa: E501
    tab.evaluate(script, [f"{own}/batch/rtl/discard", f"commit={commit}"])
    time.sleep(0.2)
    assert state(repo, "rtl") == "proposed"


@pytest.mark.parametrize("theme", THEMES)
def test_pictures(opened: Opening, theme: str, tmp_path: Path) -> None:
    room = Path(os.environ.get(PICTURES, tmp_path))
    tab = opened(color_scheme=theme, viewport={"width": 1280, "height": 800})
    for path in PAGES:
        tab.goto(f"{tab.own}{path}")
        name = path.strip("/").replace("/", "-") or "inbox"
        picture = tab.screenshot(path=room / f"{name}-{theme}.png")
        assert len(picture) > 10_000
