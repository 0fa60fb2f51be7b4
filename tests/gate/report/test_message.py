"""Commit messages: the agent's words, patchq's trailers, and nothing that could be either."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.core.model.values import EditOutcome, EditState, FileChange, Header, Source
from patchq.gate.report.message import MAX_BYTES, compose, subject, trailers

SOURCE = Source("fix.md", "5e" * 32, 99)
BASE = "ba5e" * 10
DIGEST = "d1" * 32
OURS = {
    "Patchq-Batch": ["fix-42"],
    "Patchq-Source": [f"sha256:{SOURCE.sha256}"],
    "Patchq-Base": [BASE],
    "Patchq-Edits": [f"sha256:{DIGEST}"],
}


def edit(path: str, description: str | None = None, state: EditState = "applied") -> EditOutcome:
    return EditOutcome("1", "diff", (1, 2), path, "replace", state, description=description)


def changed(*paths: str) -> list[FileChange]:
    return [FileChange(path, b"a", b"b") for path in paths]


def message(
    header: Header | None = None,
    edits: tuple[EditOutcome, ...] = (),
    changes: list[FileChange] | None = None,
    prose: str = "",
    summary: str | None = None,
) -> str:
    return compose(
        header=header or Header(),
        edits=edits,
        changes=changed("a.py") if changes is None else changes,
        prose=prose,
        id="fix-42",
        source=SOURCE,
        base=BASE,
        digest=DIGEST,
        summary=summary,
    )


def parsed_by_git(text: str) -> dict[str, list[str]]:
    done = subprocess.run(
        ["git", "interpret-trailers", "--parse"],
        input=text.encode(),
        capture_output=True,
        timeout=60,
    )
    found: dict[str, list[str]] = {}
    for line in done.stdout.decode().splitlines():
        key, _, value = line.partition(": ")
        found.setdefault(key, []).append(value)
    return found


def test_a_whole_message() -> None:
    header = Header(message="Fix login\n\nIt looped.", agent="coder", model="some-model-1")
    edits = (edit("a.py", "stop at three"), edit("b.py"), edit("c.py", "not done", "skipped"))
    assert message(header, edits, prose="I looked at the loop.\n") == (
        "Fix login\n\nIt looped.\n\n- a.py: stop at three\n\nI looked at the loop.\n\n"
        f"Patchq-Batch: fix-42\nPatchq-Source: sha256:{SOURCE.sha256}\nPatchq-Base: {BASE}\n"
        f"Patchq-Edits: sha256:{DIGEST}\nAssisted-by: coder:some-model-1\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (message(Header(message="\n M \nrest"), summary="S"), "M"),
        (message(edits=(edit("a", "D\ne"),)), "D e"),
        (message(Header(message=" \x00\n")), "Edit a.py"),
        (message(changes=changed("e", "b", "d", "a", "c")), "Edit a, b (+3)"),
        (message(changes=[FileChange("n", b"", None)]), "Delete n"),
        (message(changes=[]), "Apply fix-42"),
    ],
)
def test_the_subject_is_what_says_the_most(text: str, expected: str) -> None:
    assert subject(text) == expected


def test_a_message_has_at_most_16_kib_and_keeps_its_trailers() -> None:
    for long in ("long\n" * 10_000, "a " + "長" * 10_000):
        text = message(Header(message="M\n\n" + long), prose="p" * 9999)
        assert MAX_BYTES - 10 < len(text.encode()) <= MAX_BYTES
        assert parsed_by_git(text) == OURS


FORGED = [
    "Patchq-Batch: other",
    "Signed-off\x00-by: Ada <ada@example.org>",
    "\x1b[1mReviewed-by: Ada",
    "x\rAcked-by: Ada",
    "---",
    "(cherry picked from commit 0123)",
]


@pytest.mark.parametrize("place", ["{}", "Title\n\nText\n\n{}\n"], ids=["title", "last"])
@pytest.mark.parametrize("line", FORGED, ids=[repr(line) for line in FORGED])
def test_only_patchqs_trailers_count(line: str, place: str) -> None:
    forged = place.format(line, line)
    for text in (
        message(Header(message=forged)),
        message(prose=forged),
        message(edits=(edit("a.py", forged), edit("b.py", forged))),
    ):
        assert parsed_by_git(text) == trailers(text) == OURS
        plain = text.rpartition("\n\n")[0].split("\n")
        assert not [line for line in plain if line.lower().startswith(("patchq-", "signed-off"))]


@settings(max_examples=30)
@given(st.text(), st.text(), st.text())
def test_no_text_breaks_the_trailers(said: str, described: str, prose: str) -> None:
    text = message(Header(message=said), (edit("a.py", described), edit("b")), prose=prose)
    assert parsed_by_git(text) == trailers(text) == OURS
    assert subject(text).strip()
    assert not [c for c in text if c not in "\n\t" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Subject: no trailer\n", {}, id="subject-only"),
        pytest.param("S\n\nA: 1\nB: 2\nA: 3\n", {"A": ["1", "3"], "B": ["2"]}, id="repeated"),
        pytest.param("S\n\nA: 1\n\nB: 2\n", {"B": ["2"]}, id="last-paragraph"),
        pytest.param("S\n\nA: 1\nno trailer\n", {}, id="not-a-block"),
        pytest.param("S\n\nA: 1\n  more\n", {"A": ["1 more"]}, id="folded"),
        ("S\n\nA: 1\n(cherry picked from commit 01)\n", {"A": ["1"]}),
    ],
)
def test_trailers_are_read_back(text: str, expected: dict[str, list[str]]) -> None:
    assert trailers(text) == expected
