"""The page of a report: what it says in each state, and that quotations stay quotations."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from patchq.core.model.values import Candidate, Collision, HookRun, Problem, StandsOn, State
from patchq.core.text import quote
from patchq.gate.report.page import to_markdown
from tests.helpers.outcomes import COLLIDES, EVIL, GOOD, MISSED, PROPOSED, REFUSED, Outcome, to_json

TELLS = (
    "The response was refused. Nothing of it was applied.",
    "## Error `match.none`, edit `2` (`why`), `b.py` line 7",
    "**To do:** quote the lines shown here",
    "```\ndef f():\n    return 2\n```",
    "```\n 9 | def f():\n10 | \treturn 1\n```",
    "- `b.py` line 3 in `A.f`: `x = 1`",
    "To mean this one, begin the quote and what replaces it with:\n\n```\ndef f():\n```",
    f"It collides with change `other-1`, edit `3`, commit `{'c0' * 20}`, agent `coder`, "
    "path `a.py`, lines 4-5.",
    "**To do:** Nothing to send: a person decides on it.",
    "---\nretries: fix-42\n---",
    "```\nAnswer with one block.\n```",
)


def test_a_refused_page_tells_a_model_what_to_do() -> None:
    page = to_markdown(to_json(REFUSED))
    places = [page.find(f"\n{line}\n") for line in TELLS]
    assert places == sorted(places)
    assert -1 not in places


def test_the_base_is_asked_back_unless_it_is_the_problem() -> None:
    asked = f"base: {'ba5e' * 10}\n---"
    one, both = (
        to_markdown(to_json(replace(REFUSED, problems=all)))
        for all in ((MISSED,), (MISSED, COLLIDES))
    )
    assert asked in one
    assert asked not in both
    good = "Good as they are, and to be repeated: `1`."
    assert good in one
    assert good not in both, "nobody knows which edit the second one is about"


def test_a_failed_hooks_output_is_shown() -> None:
    hook = HookRun("lint", "pre-commit", 1, 0.5, "a.py:3: bad\n")
    page = to_markdown(to_json(replace(PROPOSED, hooks=(hook,))))
    assert "\n## Hook `lint` ended with 1\n\n```\na.py:3: bad\n```\n" in page


DECIDES = re.compile(r"\b(?:accept|discard|send-back|revert|git merge)\b")
BELOW = StandsOn("below", "c0ffee" * 7)
MERGE = "     # or: git merge patchq/fix-42"


@pytest.mark.parametrize(
    ("report", "lines"),
    [
        (PROPOSED, ("git diff main...patchq/fix-42", f"patchq accept fix-42{MERGE}")),
        (
            replace(PROPOSED, stands_on=BELOW),
            ("git diff c0ffeec0ffee...patchq/fix-42", f"patchq accept --stack fix-42{MERGE}"),
        ),
        (replace(PROPOSED, target="main;rm$(x)"), ("git diff 'main;rm$(x)...patchq/fix-42'",)),
    ],
    ids=["proposal", "stack", "odd name"],
)
def test_a_person_is_told_how_to_decide_and_an_agent_is_not(
    report: Outcome, lines: tuple[str, ...]
) -> None:
    page, for_agent = (to_markdown(to_json(report), person=person) for person in (True, False))
    facts = (
        "# `fix-42`: proposed",
        "| `1` | replace | `a.py` | 4-6 | applied | exact | `stop at 3` |",
        "## Warning `path.review`, `ci.yml`",
        "+b",
    )
    for line in (*facts, *lines):
        assert f"\n{line}\n" in f"\n{page}"
        assert (f"\n{line}\n" in f"\n{for_agent}") == (line in facts)
    assert "What to send" not in page
    assert not DECIDES.search(for_agent)


@pytest.mark.parametrize("state", ["rejected", "held"])
def test_no_page_claims_that_a_part_was_applied(state: State) -> None:
    page = to_markdown(to_json(replace(REFUSED, state=state)))
    assert "Nothing of it was applied" in page or "nothing was changed" in page
    assert "| applied |" not in page


def test_a_page_shows_200_lines_of_files_at_most() -> None:
    problem = replace(MISSED, excerpt=(1, ("line",) * 90))
    page = to_markdown(to_json(replace(REFUSED, problems=(problem,) * 5)))
    assert len(re.findall(r"^ *\d+ \| line$", page, re.MULTILINE)) == 200
    assert "… 70 more lines of the file are left out here\n" in page


def outside_of_quotations(page: str) -> str:
    """What a Markdown reader takes for patchq's own words: no fenced block, no code span."""
    kept: list[str] = []
    fence = ""
    for line in page.split("\n"):
        ticks = re.match("`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif ticks:
            fence = ticks[0]
        else:
            kept.append(re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", line))
    assert not fence, "a fence that nothing closes"
    return "\n".join(kept)


@pytest.mark.parametrize("state", ["rejected", "proposed", "held"])
def test_what_others_wrote_never_passes_for_patchqs_words(state: State) -> None:
    evil_edit = replace(GOOD, id=EVIL, path=EVIL, description=EVIL, needs=(EVIL,))
    evil_problem = Problem(
        "match.ambiguous",
        f"no place for `{EVIL}",
        EVIL,
        edit=EVIL,
        path=EVIL,
        line=3,
        candidates=(Candidate(EVIL, 3, EVIL, EVIL, EVIL),),
        conflicts_with=Collision(EVIL, EVIL, EVIL, EVIL, EVIL),
        excerpt=(1, tuple(EVIL.split("\n"))),
    )
    outcome = replace(
        PROPOSED, state=state, target=EVIL, edits=(evil_edit,), problems=(evil_problem,), diff=EVIL
    )
    page = to_markdown(to_json(outcome))
    assert not quote.HIDDEN.search(page.replace("\n", "").replace("\t", ""))
    words = outside_of_quotations(page)
    assert "# Applied" not in words
    assert not re.search(r"(?<!\\)[<`]", words)
