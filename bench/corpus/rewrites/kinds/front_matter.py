"""Lines of front matter before the edits, and what looks like them."""

from __future__ import annotations

import re
from hashlib import sha256

from bench.corpus.rewrites.registry import BASE, Brief, Rewrite, Writer, exact, kind, refuse


def _fronted(brief: Brief, *lines: str) -> str:
    return "---\n" + "".join(f"{line}\n" for line in lines) + "---\n" + brief.response()


@kind("front: subject with colon", "front matter")
def _subject(brief: Brief) -> Rewrite | None:
    subject = brief.dice.choice(
        ["fix(auth): loop", "feat!: drop it", "loop #12", "`a` is b", "*all* of it", "@ada: look",
         "100% of it", "{curly} things", "a: b: c", "fix: 'quoted' # not a comment"]
    )  # fmt: skip
    return exact(_fronted(brief, "agent: tester", f"message: {subject}"))


@kind("front: comments and blank lines", "front matter")
def _comments(brief: Brief) -> Rewrite | None:
    return exact(
        _fronted(brief, "# who", "agent: tester", "", "model: some-model-1   # the newest", "")
    )


@kind("front: block scalar", "front matter")
def _scalar(brief: Brief) -> Rewrite | None:
    sign = brief.dice.choice("|>")
    return exact(_fronted(brief, f"message: {sign}", "  Do it", "", "  At length.", "agent: x"))


@kind("front: several lines", "front matter")
def _folded(brief: Brief) -> Rewrite | None:
    return exact(_fronted(brief, "message: Do it at some length", "  and then some", "agent: x"))


@kind("front: blank lines before", "front matter")
def _late(brief: Brief) -> Rewrite | None:
    return exact("\n" * brief.dice.randrange(1, 4) + _fronted(brief, "agent: x", "target: main"))


@kind("front: in a fence", "front matter")
def _front_fence(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text and brief.form.family != "api":
        return None
    fence = brief.dice.choice(["```", "```yaml", "````markdown"])
    tail = re.match("`+", fence)
    assert tail
    text = f"{fence}\n---\nagent: x\ntarget: main\n---\n{tail[0]}\n\n{brief.response()}"
    return exact(text) if brief.form.in_text else None


@kind("front: garbage line, another target", "front matter")
def _garbage(brief: Brief) -> Rewrite | None:
    junk = brief.dice.choice(
        [
            "and do it quickly",
            "- ",
            "just words",
            "<!-- note -->",
            "key without colon",
            "*bold* words",
        ]
    )
    lines = ["agent: x", "target: elsewhere"]
    lines.insert(brief.dice.randrange(3), junk)
    return refuse(_fronted(brief, *lines))


@kind("front: unknown key", "front matter")
def _unknown(brief: Brief) -> Rewrite | None:
    return refuse(_fronted(brief, "agent: x", "taget: main"))


@kind("front: duplicate key", "front matter")
def _double(brief: Brief) -> Rewrite | None:
    return refuse(_fronted(brief, "target: main", "agent: x", "target: main"))


@kind("front: without a marker", "front matter")
def _unmarked(brief: Brief) -> Rewrite | None:
    """Both markers, or one, are missing, or are none to YAML."""
    before, behind = brief.dice.choice(
        [("", "---\n"), ("", "\n"), ("---\n", ""), ("---\n", "...\n"), ("----\n", "----\n"),
         ("---yaml\n", "---\n"), ("```yaml\n", "```\n\n"), ("\u2014\n", "\u2014\n")]
    )  # fmt: skip
    return refuse(f"{before}target: elsewhere\nagent: x\n{behind}{brief.response()}")


@kind("front: below prose", "front matter")
def _below(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    head = "Here is the change.\n\n"
    return refuse(head + _fronted(brief, "agent: x", "target: elsewhere"))


@kind("rules round prose", "front matter")
def _rules(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    return exact(f"---\nSome words about it.\n---\n\n{brief.response()}")


LINES = {
    "a base": [f"base: {BASE}"],
    "an id": ["id: fix-login-42"],
    "the message in quotes": ['message: "Fix: the loop"'],
    "an author without leave": ["author: Ada <ada@example.org>"],
    "a batch that nobody knows": ["retries: fix-login-41"],
    "an empty list": ["depends_on: []", "agent: x"],
    "a target and a comment": ["target: main   # as usual"],
    "a value in quotes": ["agent: 'claude: code'", 'model: "m-1"'],
}
"""Lines that are understood, whether or not they are followed."""
BROKEN = {
    "a key of YAML that is a trap": ["on: push", "target: main"],
    "an unknown target": ["target: no-such-branch"],
    "an unknown base": ["base: 0123456789abcdef0123456789abcdef01234567"],
    "a list where a text belongs": ["target: [main, other]"],
    "an open quote": ['target: "main', "agent: x"],
    "a tab for indentation": ["agent: x", "\ttarget: main"],
    "a number of bytes that is not true": ["bytes: 3", f"sha256: {'0' * 64}"],
    "a key in capitals beside a known one": ["agent: x", "Target: elsewhere"],
}
"""Lines that cannot be followed as they stand."""


def _with(lines: list[str], understood: bool) -> Writer:
    def write(brief: Brief) -> Rewrite | None:
        response = _fronted(brief, *lines)
        return exact(response) if understood else refuse(response)

    return write


for _name, _lines in LINES.items():
    kind(f"front: {_name}", "front matter")(_with(_lines, understood=True))
for _name, _lines in BROKEN.items():
    kind(f"front: {_name}", "front matter")(_with(_lines, understood=False))


@kind("front: its bytes and their sum", "front matter")
def _sum(brief: Brief) -> Rewrite | None:
    body = brief.response()
    raw = body.encode()
    head = f"bytes: {len(raw)}\nsha256: {sha256(raw).hexdigest()}\n"
    return exact(f"---\n{head}---\n{body}")


@kind("front: another sum", "front matter")
def _false_sum(brief: Brief) -> Rewrite | None:
    body = brief.response()
    head = f"bytes: {len(body.encode())}\nsha256: {sha256(b'other').hexdigest()}\n"
    return refuse(f"---\n{head}---\n{body}")


@kind("front: in one fence with the edits", "front matter")
def _one_fence(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text or brief.form.family == "files":
        return None
    info = brief.dice.choice(["", "text", "markdown"])
    return exact(f"``````{info}\n{_fronted(brief, 'agent: x', 'target: main')}``````\n")


@kind("front: shown in a fence below prose", "front matter")
def _shown(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    shown = "It may begin so:\n\n```yaml\n---\ntarget: elsewhere\n---\n```\n\nHere it does not.\n\n"
    return exact(shown + brief.response())


@kind("front: a key in capitals alone", "front matter")
def _capital(brief: Brief) -> Rewrite | None:
    """No key is known, so it is Markdown."""
    if not brief.form.in_text:
        return None
    return exact(f"---\nTarget: everybody\n---\n\n{brief.response()}")


@kind("front: with CRLF", "front matter")
def _front_crlf(brief: Brief) -> Rewrite | None:
    return exact(_fronted(brief, "agent: x", "message: Do it").replace("\n", "\r\n", 4))


@kind("front: another target below prose, with more text", "front matter")
def _not_front(brief: Brief) -> Rewrite | None:
    """Lines between rules that are sentences, too, are no front matter."""
    if not brief.form.in_text:
        return None
    words = "Some words.\n\n---\n\nThis is about the\ntarget: it is elsewhere.\n\n---\n\n"
    return exact(words + brief.response())
