"""Front matter: what opens it, what it says, and what it must not say."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from patchq.core.formats.envelope.front_matter import MAX_BYTES, open_response
from patchq.core.model.values import Envelope, Header, Problem

BODY = "a.py\nedits\n"
BLOCK = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"


def opened(text: str | bytes) -> Envelope:
    got = open_response(text.encode() if isinstance(text, str) else text)
    assert isinstance(got, Envelope), got
    return got


def refused(text: str | bytes) -> tuple[Problem, ...]:
    got = open_response(text.encode() if isinstance(text, str) else text)
    assert isinstance(got, tuple), got
    assert got, "a refusal without a reason"
    return got


def front(*lines: str, body: str = BODY) -> str:
    return "\n".join(["---", *lines, "---", body])


def test_every_key_arrives() -> None:
    said: dict[str, Any] = {
        "id": "fix-login-42",
        "target": "main",
        "base": "3f2a9c1",
        "message": "Fix login loop",
        "author": "Ada <ada@x.org>",
        "agent": "claude-code",
        "model": "some-model-1",
        "file": "src/login.py",
        "retries": "fix-login-41",
    }
    text = front(
        *(f"{key}: {value}" for key, value in said.items()),
        "# a line of its own",
        "depends_on: [schema-7, 8]",
        "answers: {c1: 'No: it is used'}",
        "whole_files: true  # a comment",
        f"bytes: {len(BODY)}",
        f"sha256: {hashlib.sha256(BODY.encode()).hexdigest()}",
    )
    more: dict[str, Any] = {"depends_on": ("schema-7", "8"), "answers": {"c1": "No: it is used"}}
    header = Header(**said, **more, whole_files=True)
    assert opened(text) == Envelope(header, BODY, first_line=18)


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("base: 1234567", "base", "1234567"), ("base: 0012345", "base", "0012345"),
        ("id: 2024-01-01", "id", "2024-01-01"), ("id: no", "id", "no"),
        ("message: true", "message", "true"), ("model: 1.10", "model", "1.10"),
        ('message: "Fix\\n\\nthe loop"', "message", "Fix\n\nthe loop"),
        ("message: loop #12", "message", "loop #12"),
        ("message: *all* of it", "message", "*all* of it"), ("message: - a", "message", "- a"),
        ("message: null", "message", "null"), ("message:\n  fix: it", "message", "fix: it"),
        ("message: >-\n  a\n  b", "message", "a b"),
        ("depends_on: [a,\n  b]", "depends_on", ("a", "b")),
        ("depends_on:\n- 7", "depends_on", ("7",)), ("depends_on: []", "depends_on", ()),
        ("sha256: " + hashlib.sha256(BODY.encode()).hexdigest().upper(), "id", None),
    ],
    ids=lambda v: str(v)[:24],
)  # fmt: skip
def test_values_are_as_written(line: str, key: str, value: object) -> None:
    assert getattr(opened(front(line)).header, key) == value


@pytest.mark.parametrize(
    ("text", "body", "first_line"),
    [
        ("---\n---\nplain\n", "plain\n", 3),
        ("---  \r\nid: a\r\n--- \r\nplain\r\n", "plain\r\n", 4),
        ("\ufeffplain", "plain", 1),
        ("\ufeff\u200b\n---\nid: a\n---\nx", "x", 5),
        ("---\nmessage: |\n  text\n\n  ---\n---\nx", "x", 7),
        # in a fence, alone or with the edits, whose fence it is then
        ("```\n---\nid: a\n---\n```\nx", "x", 6),
        ("\n~~~yaml\n\n---\nid: a\n---\n\n~~~\nx", "x", 9),
        (f"````\n---\nid: a\n---\na.py\n```py\n{BLOCK}```\n````\n", None, 4),
        ("````\n---\nid: a\n---\n```py:a.py\nx = 1\n```\n````\n", None, 4),
        # not front matter, so all of it is text
        ("---", "---", 1),
        ("---\nSome words, and the target: dev\n---\nx", None, 1),
        (f"---\nfile: a.py\n```py\n{BLOCK}```\n---\nfile: b.py\n```py\n{BLOCK}```\n", None, 1),
        ("```yaml\n---\nid: 5\nimage: x\n```\nx", None, 1),
        ("```markdown\n---\nauthor: Ada\n---\n# Post\n\n```py\nx\n```\n\n{\n```\nx", None, 1),
        ("```md:post.md\n---\nid: a\n---\n```\nx", None, 1),
    ],
    ids=repr,
)
def test_what_opens_front_matter(text: str, body: str | None, first_line: int) -> None:
    got = opened(text)
    if body is None and first_line == 1:
        body = text
    assert body in (None, got.text)
    assert got.first_line == first_line


@pytest.mark.parametrize(
    ("lines", "code", "line", "message"),
    [
        (["id: a", "titel: x"], "unknown_key", 3, "`titel`"),
        (["- target: dev"], "value", 2, "`key: value`"),
        (["id: a", "just words"], "value", 3, "column"),
        (["<!-- note -->", "target: dev"], "value", 3, "column"),
        (["id: a", "<<: {id: a}"], "unknown_key", 3, "`<<`"),
        (["id: a", "target: b", "id: a"], "duplicate_key", 4, "lines 2 and 4"),
        (["id: a", 'message: "open'], "value", 4, "column 1"),
        (["message:", "id: a"], "value", 2, "`message`: expected text, got nothing"),
        (["id: !!python/name:os.system"], "value", 2, "tag"),
        (["id:"], "value", 2, "`id`: expected text, got nothing"),
        (["id: ''"], "value", 2, "`id`: expected text that is not empty"),
        (["agent: {a: b}"], "value", 2, "`agent`: expected text, got keys and values"),
        (["depends_on: a"], "value", 2, "`depends_on`: expected a list of change ids"),
        (["answers: [a]"], "value", 2, "`answers`: expected a text for each comment"),
        (["depends_on: [a, ]", "bytes: many"], "value", 3, "`bytes`: expected a whole number"),
        (["whole_files: yes"], "value", 2, "`whole_files`: expected `true` or `false`"),
        (["bytes: -1"], "value", 2, "`bytes`: expected a whole number"),
        (["sha256: abc"], "value", 2, "`sha256`: expected 64 hexadecimal digits"),
        (["author: Ada"], "value", 2, "`author`: expected `Name <mail@example.org>`"),
        (['author: "Ada\\nx <a@x>"'], "value", 2, "`author`: expected text without control"),
        (["id: " + "[" * 60], "value", 2, "nested deeper"),
        (["id: a", "# " + "x" * MAX_BYTES], "value", 1, f"longer than {MAX_BYTES} bytes"),
    ],
    ids=lambda v: str(v)[:40],
)
def test_malformed_front_matter(lines: list[str], code: str, line: int, message: str) -> None:
    (problem,) = refused(front(*lines))
    assert (problem.code, problem.line) == (f"frontmatter.{code}", line)
    assert message in problem.message
    assert problem.hint


@pytest.mark.parametrize("line", [f"bytes: {len(BODY) + 1}", f"sha256: {'0' * 64}"])
def test_a_body_that_differs_from_its_promise_is_incomplete(line: str) -> None:
    (problem,) = refused(front(line))
    assert problem.code == "response.incomplete"


@pytest.mark.parametrize(
    ("response", "code", "line", "message"),
    [
        (b"", "response.incomplete", None, "empty"),
        (b" \n\r\n\t", "response.no_edits", None, "no text"),
        (b"---\nbytes: 9\n---\n", "response.incomplete", None, "promises 9 bytes"),
        ("x\n".encode("utf-16"), "response.not_text", 1, "no UTF-8"),
        ("x\n".encode("utf-16-be"), "response.not_text", 1, "NUL"),
        (b"a\n\xff", "response.not_text", 2, "offset 2"),
        (b"\xed\xa0\x80", "response.not_text", 1, "offset 0"),
        (b"---\nid: \xff\n---\nx", "response.not_text", 2, "offset 8"),
        # front matter that may be lost
        ("---\nid: a\nplain\n", "frontmatter.value", 1, "no line `---`"),
        (f"---\ntarget: dev\n\na.py\n{BLOCK}", "frontmatter.value", 1, "line 5"),
        (f"---\ntarget: dev\n```\n---\na.py\n{BLOCK}", "frontmatter.value", 1, "line 3"),
        ("  ---\n  id: a\n  ---\nx", "frontmatter.value", 1, "indented"),
    ],
    ids=lambda v: repr(v)[:30],
)
def test_what_is_not_read(response: bytes | str, code: str, line: int | None, message: str) -> None:
    (problem,) = refused(response)
    assert (problem.code, problem.line) == (code, line)
    assert message in problem.message
    assert problem.hint
