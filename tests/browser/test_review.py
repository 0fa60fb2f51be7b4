"""The review page as people use it: seen, heard, by keys alone, without a script, and attacked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import follow
from tests.helpers.command import block, patchq, work
from tests.helpers.gitrepo import git
from tests.helpers.pages import ROOT
from tests.page.people import served, state

pytestmark = pytest.mark.browser

PAGES = ("/", "/batch/tax", "/history", "/statistics", "/conflicts", "/help")
MORE_PAGES = (
    "/batch/second", "/batch/second?since=1", "/batch/hostile", "/batch/wrong", "/batch/pictures",
    "/several?deed=send-back&chosen=tax&chosen=sum",
)  # fmt: skip
Opening = Callable[..., Any]


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(opened: Opening, large: str, theme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab = opened(color_scheme=theme, viewport={"width": width, "height": 900})
    found = {}
    for path in (*PAGES, *MORE_PAGES, f"/batch/{large}"):
        tab.goto(f"{tab.own}{path}")
        tab.evaluate("document.querySelectorAll('[data-fetch]').forEach(link => link.click())")
        tab.locator("[data-fetch]").first.wait_for(state="detached")
        tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        violations = axe.run(tab).response["violations"]
        if violations:
            found[path] = [(one["id"], one["nodes"][0]["html"][:200]) for one in violations]
    assert found == {}
    assert tab.errors == []


@pytest.mark.parametrize(("width", "height"), [(320, 256), (640, 400)], ids=["400 %", "200 %"])
def test_at_any_size_nothing_is_cut_or_covered(opened: Opening, width: int, height: int) -> None:
    """A window of 1280 pixels, as it is enlarged (WCAG 1.4.10): what is wider scrolls by itself,
    and no bar that stays covers what has the focus."""
    tab = opened(viewport={"width": width, "height": height})
    for path in PAGES:
        tab.goto(f"{tab.own}{path}")
        wider = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, path
        covered = tab.evaluate(COVERED)
        assert covered == [], path


COVERED = """[...document.querySelectorAll("a, button, input, select, textarea")]
    .filter(one => one.checkVisibility() && one.type !== "hidden")
    .filter(one => !one.classList.contains("skip"))
    .filter(one => {
        one.focus();
        const box = one.getClientRects()[0];
        const there = document.elementFromPoint(
            Math.min(box.x + box.width / 2, innerWidth - 1), box.y + Math.min(box.height / 2, 20));
        return there && !one.contains(there) && !there.contains(one)
            && !(one.labels && [...one.labels].some(label => label.contains(there)));
    })
    .map(one => one.outerHTML)"""
"""What cannot be seen once it has the focus, since something else stands before it."""


@pytest.mark.parametrize("bypass", [False, True], ids=["policy", "no policy"])
def test_no_text_of_others_runs(opened: Opening, bypass: bool) -> None:
    tab = opened(bypass_csp=bypass)
    for path in (*PAGES, "/batch/hostile", "/batch/rtl", "/batch/wrong"):
        tab.goto(f"{tab.own}{path}")
        assert tab.title() != "run"
        assert tab.evaluate("document.querySelectorAll('img, main script').length") == 0


def test_accept_chosen_and_send_back_by_keys_alone(opened: Opening, repo: Path) -> None:
    tab = opened("/batch/sum")
    tab.click("summary:has-text('choose which to take')")
    tab.click("[data-edit='1'] input")
    tab.keyboard.press("a")
    tab.keyboard.press("Enter")
    tab.locator("text=What would land").wait_for()
    assert state(repo, "sum") == "proposed"
    tab.locator("text=Accept exactly this").focus()
    tab.keyboard.press("Enter")
    tab.locator("text=Accepted sum").wait_for()
    code = git("show", "HEAD:shop/cart.py", cwd=repo)
    assert ("import sys" in code, "i.price" in code) == (True, False)
    tab.goto(f"{tab.own}/batch/other-tax")
    for key in ("j", "K", "c"):
        tab.keyboard.press(key)
    tab.keyboard.type("why one more?")
    tab.keyboard.press("Tab")
    tab.locator("button:text('Send back to')").focus()
    tab.keyboard.press("Enter")
    tab.locator("text=Sent back other-tax").wait_for()
    (said,) = patchq("--json", "show", "other-tax", cwd=repo).json()["review"]["comments"]
    assert (said["path"], said["lines"], said["text"]) == ("shop/cart.py", [5, 6], "why one more?")


def test_all_without_a_script(opened: Opening, repo: Path) -> None:
    work(repo, plain=block("notes.md", "z\n", "Z\n"))
    tab = opened("/", java_script_enabled=False)
    tab.click("[data-change=plain] a")
    tab.fill("#words", "notes.md:3: say why")
    tab.click("button:text('Send back to')")
    tab.locator("text=Sent back plain").wait_for()
    tab.goto(f"{tab.own}/batch/plain")
    assert "say why" in tab.inner_text("[data-thread=c1]")
    tab.click("[data-thread=c1] summary")
    tab.fill("[data-thread=c1] textarea", "never mind")
    tab.click("button:text('Reply to c1')")
    tab.locator("[data-thread=c1] >> text=never mind").wait_for()
    tab.click("[data-thread=c1] button:text('Resolve')")
    tab.locator("[data-thread=c1][data-state=resolved]").wait_for()
    tab.click("[data-decide=accept]")
    tab.locator("text=Accepted plain").wait_for()
    assert state(repo, "plain") == "accepted"


def test_what_was_begun_is_not_taken_away(opened: Opening, repo: Path) -> None:
    tab = opened("/batch/rtl")
    tab.fill("#words", "half a sent")
    patchq("send-back", "rtl", "-m", "meanwhile", cwd=repo)
    tab.locator("text=Something has changed").wait_for()
    assert tab.input_value("#words") == "half a sent"


def test_two_people_decide_at_once(opened: Opening, repo: Path) -> None:
    work(repo, both=block("notes.md", "plain\n", "simple\n"))
    ada, ben = opened("/batch/both"), opened("/batch/both")
    ada.route("**/changes*", lambda route: route.abort())
    ada.reload()
    ben.click("[data-decide=discard]")
    ben.locator("text=Discarded both").wait_for()
    ada.click("[data-decide=accept]")
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
    follow(tab, "button")
    tab.goto("about:blank")
    script = "([u, c]) => fetch(u, {method: 'POST', body: c, credentials: 'include', mode: 'no-cors'}).catch(() => 0)"  # noqa: E501
    tab.evaluate(script, [f"{own}/batch/rtl/discard", f"commit={commit}"])
    assert state(repo, "rtl") == "proposed"


@pytest.fixture(scope="module")
def large(repo: Path) -> str:
    """The id of a change of many files, one of them long."""
    lines = [f"value_{number} = {number}\n" for number in range(1, 1201)]
    files = {f"src/part_{number:02}.py": "".join(lines[:90]) for number in range(40)}
    made = [block(path, "", text) for path, text in files.items()]
    made.append(block("src/long.py", "", "".join(lines)))
    work(repo, base="\n".join(made))
    patchq("accept", "base", cwd=repo)
    parts = [block(path, lines[44], "value_45 = 'x' * 45\n") for path in files]
    parts += [block("src/long.py", lines[599], "value_600 = 'y' * 600  # " + "z" * 300 + "\n")]
    work(repo, large="\n".join(parts))
    return "large"


FIRST = """[...document.querySelectorAll("[data-changed]")].find(one => one.offsetParent)
    .getBoundingClientRect().top"""


@pytest.mark.parametrize(("width", "height", "most"), [(1440, 900, 600), (390, 844, 844)])
def test_a_large_change_begins_on_the_first_screen(
    opened: Opening, large: str, width: int, height: int, most: int
) -> None:
    tab = opened(f"/batch/{large}", viewport={"width": width, "height": height})
    assert tab.evaluate(FIRST) <= most
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    assert len(tab.content()) < 400_000
    sections = tab.locator("section[data-path]")
    assert sections.count() == 41
    for at in range(41):
        sections.nth(at).scroll_into_view_if_needed()
        sections.nth(at).locator("[data-changed]").first.wait_for()
    assert tab.locator("code[data-line]").evaluate_all(
        "all => all.every(one => one.scrollWidth <= one.clientWidth)"
    )


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_fold_opens(opened: Opening, large: str, script: bool) -> None:
    tab = opened(f"/batch/{large}", java_script_enabled=script)
    part = tab.locator("section[data-path='src/part_00.py']")
    assert part.locator("[data-side=new][data-line='1']").count() == 0
    part.locator("[data-unfold]").first.click()
    first = tab.locator("section[data-path='src/part_00.py'] [data-side=new][data-line='1']")
    first.wait_for()
    assert first.text_content() == "value_1 = 1"
    if script:
        assert part.locator("[data-unfold]").count()
        tab.keyboard.press("O")
        part.locator("[data-unfold]").first.wait_for(state="detached")
        for line in (30, 90):
            part.locator(f"[data-side=new][data-line='{line}']").wait_for()


def test_a_file_is_viewed_until_it_changes(opened: Opening, repo: Path) -> None:
    work(repo, view=block("view.txt", "", "one\n"))
    tab = opened("/batch/view")
    with tab.expect_response("**/viewed"):
        tab.keyboard.press("v")
    tab.reload()
    assert tab.is_checked("[data-viewed]")
    assert tab.locator("[data-changed]").count() == 0, "it is folded"
    with served(repo) as restarted:
        tab.goto(restarted)
        tab.goto(f"{restarted.split('/?')[0]}/batch/view")
        assert tab.is_checked("[data-viewed]"), "after a restart, too"
    tab.goto(f"{tab.own}/batch/view")
    with tab.expect_response("**/viewed"):
        tab.uncheck("[data-viewed]")
    with tab.expect_response("**/viewed"):
        tab.check("[data-viewed]")
    work(repo, view2="---\nretries: view\n---\n" + block("view.txt", "", "two\n"))
    tab.goto(f"{tab.own}/batch/view2")
    assert not tab.is_checked("[data-viewed]")
    follow(tab, "text=What changed since you looked")
    assert tab.locator("[data-changed]").all_inner_texts() == ["one", "two"]


SHOWN = {
    "inbox": ("/", 1280),
    "inbox-phone": ("/", 390),
    "large": ("/batch/large", 1280),
    "large-phone": ("/batch/large", 390),
    "small": ("/batch/rtl", 1280),
    "several": ("/several?deed=accept&chosen=rtl+x&chosen=large+x", 1280),
}
"""The pictures of docs/reviewing.md: their pages and widths."""


@pytest.mark.parametrize("name", SHOWN)
def test_pictures_of_the_docs(opened: Opening, large: str, name: str, tmp_path: Path) -> None:
    """`REVIEW_PICTURES=docs/pictures pytest -m browser -k pictures` makes them anew."""
    path, width = SHOWN[name]
    tab = opened(path, viewport={"width": width, "height": 800})
    room = Path(os.environ.get("REVIEW_PICTURES", tmp_path))
    picture = tab.screenshot(path=room / f"{name}.png")
    assert len(picture) > 10_000
    assert f"pictures/{name}.png" in (ROOT / "docs/reviewing.md").read_text()
