"""Lines of front matter before the edits, and what looks like them."""

from __future__ import annotations

import re

from bench.corpus.rewrites.registry import Brief, Rewrite, exact, kind, refuse


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
