"""V4A patches and unified diffs, as the forms allow them to be written."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bench.corpus.rewrites.kinds.beside import sample
from bench.corpus.rewrites.registry import BASE, Brief, Files, Rewrite, exact, kind, refuse
from bench.corpus.rewrites.tasks import applied

PATH = "notes/list.txt"
OTHER = "notes/other.txt"
LIST = "".join(f"{word}\n" for word in ("one", "two", "three", "four", "five", "six", "seven"))
FOUR = LIST.replace("four\n", "FOUR\n")
UNIT = "begin\nwork\nfinish\n"
UNITS = f"first\n{UNIT}second\n{UNIT}third\n{UNIT}last\n"
_GO = "    def go(self):\n        return 1\n"
CODE = f"class A:\n{_GO}\n\nclass B:\n{_GO}"


def _patch(*sections: str) -> str:
    return "*** Begin Patch\n" + "".join(sections) + "*** End Patch\n"


def _update(body: str, path: str = PATH) -> str:
    return f"*** Update File: {path}\n{body}"


def _chunks(*numbers: int) -> str:
    return "".join(f"@@\n begin\n-work\n+work {n}\n finish\n" for n in numbers)


def _worked(*numbers: int | None) -> str:
    text = UNITS
    for number in numbers:
        text = text.replace("begin\nwork\n", f"begin\nwork_{number or ''}\n", 1)
    return re.sub(r"work_(\d*)", lambda m: f"work {m[1]}" if m[1] else "work", text)


_FOUR = "@@\n three\n-four\n+FOUR\n five\n"
_HEREDOC = f"apply_patch <<'EOF'\n{_patch(_update(_FOUR))}EOF\n"
_V4A: tuple[tuple[str, Files, str, Mapping[str, str | None]], ...] = (
    ("in a heredoc", {PATH: LIST}, f"```bash\n{_HEREDOC}```\n", {PATH: FOUR}),
    ("in a fence", {PATH: LIST}, f"```\n{_patch(_update(_FOUR))}```\n", {PATH: FOUR}),
    ("blanks round its markers", {PATH: LIST},
     _patch(_update(_FOUR)).replace("*** Update", "  *** Update").replace("Patch\n", "Patch  \n"),
     {PATH: FOUR}),
    ("a missing first @@", {PATH: LIST}, _patch(_update(_FOUR.removeprefix("@@\n"))),
     {PATH: FOUR}),
    ("numbers in its @@", {PATH: LIST}, _patch(_update(_FOUR.replace("@@", "@@ -3,3 +3,3 @@"))),
     {PATH: FOUR}),
    ("a bare blank line as context", {PATH: "one\n\ntwo\n"},
     _patch(_update("@@\n one\n\n-two\n+TWO\n")), {PATH: "one\n\nTWO\n"}),
    ("context without its leading space", {PATH: LIST},
     _patch(_update("@@\nthree\n-four\n+FOUR\nfive\n")), {PATH: FOUR}),
    ("a scope", {"tools/go.py": CODE},
     _patch(_update("@@ class B:\n     def go(self):\n-        return 1\n+        return 2\n",
                    "tools/go.py")),
     {"tools/go.py": CODE[:-2] + "2\n"}),
    ("stacked scopes", {"tools/go.py": CODE},
     _patch(_update("@@ class B:\n@@     def go(self):\n-        return 1\n+        return 2\n",
                    "tools/go.py")),
     {"tools/go.py": CODE[:-2] + "2\n"}),
    ("End of File", {PATH: LIST}, _patch(_update("@@\n+eight\n*** End of File\n")),
     {PATH: LIST + "eight\n"}),
    ("additions after a context", {PATH: LIST}, _patch(_update("@@ three\n+three and a half\n")),
     {PATH: LIST.replace("three\n", "three\nthree and a half\n")}),
    ("additions to an empty file", {PATH: ""}, _patch(_update("@@\n+eight\n")),
     {PATH: "eight\n"}),
    ("Move to", {PATH: LIST}, _patch(_update(f"*** Move to: {OTHER}\n{_FOUR}")),
     {PATH: None, OTHER: FOUR}),
    ("Add and Delete", {PATH: LIST},
     _patch(f"*** Add File: {OTHER}\n+one\n+two\n", f"*** Delete File: {PATH}\n"),
     {PATH: None, OTHER: "one\ntwo\n"}),
    ("a last line without its newline", {PATH: LIST[:-1]},
     _patch(_update("@@\n six\n-seven\n+SEVEN\n")), {PATH: LIST[:-6] + "SEVEN\n"}),
    ("chunks of context alone as places", {PATH: UNITS},
     _patch(_update(f"@@\n second\n{_chunks(2)}@@\n third\n{_chunks(3)}")),
     {PATH: UNITS.replace(f"second\n{UNIT}", "second\nbegin\nwork 2\nfinish\n")
                 .replace(f"third\n{UNIT}", "third\nbegin\nwork 3\nfinish\n")}),
    ("as many chunks as places", {PATH: UNITS}, _patch(_update(_chunks(1, 2, 3))),
     {PATH: _worked(1, 2, 3)}),
)  # fmt: skip
for _name, _before, _edit, _after in _V4A:
    sample(f"v4a: {_name}", "v4a", _before, _edit, _after)
_V4A_REFUSED: tuple[tuple[str, Files, str], ...] = (
    ("fewer chunks than places", {PATH: UNITS}, _patch(_update(_chunks(1, 2)))),
    ("more chunks than places", {PATH: UNITS}, _patch(_update(_chunks(1, 2, 3, 4)))),
    ("an update that changes nothing", {PATH: LIST}, _patch(_update("@@\n three\n four\n"))),
    ("additions nowhere", {PATH: LIST}, _patch(_update("@@\n+eight\n"))),
    ("Add over a file", {PATH: LIST}, _patch(f"*** Add File: {PATH}\n+other\n")),
    ("Move onto a file", {PATH: LIST, OTHER: FOUR},
     _patch(_update(f"*** Move to: {OTHER}\n{_FOUR}"))),
    ("Delete of no file", {}, _patch(f"*** Delete File: {PATH}\n")),
    ("Update of no file", {}, _patch(_update(_FOUR))),
    ("no end", {PATH: LIST}, _patch(_update(_FOUR)).removesuffix("*** End Patch\n")),
    ("a scope that stands twice", {"tools/go.py": CODE},
     _patch(_update("@@     def go(self):\n-        return 1\n+        return 2\n",
                    "tools/go.py"))),
)  # fmt: skip
for _name, _before, _edit in _V4A_REFUSED:
    sample(f"v4a: {_name}", "v4a", _before, _edit, None)


# ---------------------------------------------------------------- diffs

_HUNK = " three\n-four\n+FOUR\n five\n"


def _diff(body: str, path: str = PATH, old: str = "a/", new: str = "b/") -> str:
    return f"--- {old}{path}\n+++ {new}{path}\n{body}"


def _fence(diff: str) -> str:
    return f"```diff\n{diff}```\n"


_RENAMED = (
    f"diff --git a/{PATH} b/{OTHER}\nsimilarity index 90%\nrename from {PATH}\n"
    f"rename to {OTHER}\n--- a/{PATH}\n+++ b/{OTHER}\n@@ -3,3 +3,3 @@\n{_HUNK}"
)
_DIFFS: tuple[tuple[str, Files, str, Mapping[str, str | None]], ...] = (
    ("wrong counts", {PATH: LIST}, _diff(f"@@ -3,9 +3,7 @@\n{_HUNK}"), {PATH: FOUR}),
    ("wrong numbers", {PATH: LIST}, _diff(f"@@ -333,3 +333,3 @@\n{_HUNK}"), {PATH: FOUR}),
    ("@@ @@", {PATH: LIST}, _diff(f"@@ @@\n{_HUNK}"), {PATH: FOUR}),
    ("@@ ... @@", {PATH: LIST}, _diff(f"@@ ... @@\n{_HUNK}"), {PATH: FOUR}),
    ("without prefixes", {PATH: LIST}, _diff(f"@@ -3,3 +3,3 @@\n{_HUNK}", old="", new=""),
     {PATH: FOUR}),
    ("a bare blank line as context", {PATH: "one\n\ntwo\n"},
     _diff("@@ -1,3 +1,3 @@\n one\n\n-two\n+TWO\n"), {PATH: "one\n\nTWO\n"}),
    ("a new file", {}, f"--- /dev/null\n+++ b/{PATH}\n@@ -0,0 +1,2 @@\n+one\n+two\n",
     {PATH: "one\ntwo\n"}),
    ("a deleted file", {PATH: "one\ntwo\n"},
     f"--- a/{PATH}\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n", {PATH: None}),
    ("a rename with a change", {PATH: LIST}, _RENAMED, {PATH: None, OTHER: FOUR}),
    ("no newline at the end", {PATH: "one\ntwo"},
     _diff("@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+TWO\n"
           "\\ No newline at end of file\n"), {PATH: "one\nTWO"}),
    ("a newline that it adds", {PATH: "one\ntwo"},
     _diff("@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+two\n"),
     {PATH: "one\ntwo\n"}),
    ("as many hunks as places", {PATH: UNITS},
     _diff("".join(f"@@ @@\n begin\n-work\n+work {n}\n finish\n" for n in (1, 2, 3))),
     {PATH: _worked(1, 2, 3)}),
    ("a removed line that looks like a header", {"notes/a.sql": "select 1;\n-- b/x\nselect 2;\n"},
     _diff("@@ -1,3 +1,2 @@\n select 1;\n--- b/x\n select 2;\n", "notes/a.sql"),
     {"notes/a.sql": "select 1;\nselect 2;\n"}),
)  # fmt: skip
for _name, _before, _edit, _after in _DIFFS:
    sample(f"diff: {_name}", "diffs", _before, _fence(_edit), _after)
for _name, _before, _edit in (
    ("fewer hunks than places", {PATH: UNITS},
     _diff("".join(f"@@ @@\n begin\n-work\n+work {n}\n finish\n" for n in (1, 2)))),
    ("a place that is only near to its number", {PATH: UNITS},
     _diff("@@ -5,3 +5,3 @@\n begin\n-work\n+work 1\n finish\n")),
    ("an old text that is not there", {PATH: LIST},
     _diff("@@ -3,3 +3,3 @@\n three\n-fuor\n+FOUR\n five\n")),
    ("a new file over a file", {PATH: LIST},
     f"--- /dev/null\n+++ b/{PATH}\n@@ -0,0 +1,2 @@\n+one\n+two\n"),
    ("a change of no file", {}, _diff(f"@@ -3,3 +3,3 @@\n{_HUNK}")),
):  # fmt: skip
    sample(f"diff: {_name}", "diffs", _before, _fence(_edit), None)


@kind("diff: its number decides on a declared base", "diffs")
def _stated(brief: Brief) -> Rewrite | None:
    if brief.form.name not in {"unified_diff", "diff_fence"} or PATH in brief.task.before:
        return None
    diff = _diff("@@ -6,3 +6,3 @@\n begin\n-work\n+work 2\n finish\n")
    text = _fence(diff) if brief.form.name == "diff_fence" else diff
    before = {**brief.task.before, PATH: UNITS}
    after = {**brief.task.result(), PATH: _worked(None, 2)}
    return exact(f"---\nbase: {BASE}\n---\n{brief.response()}{text}", after, before=before)


@kind("diff: several mails", "diffs")
def _mails(brief: Brief) -> Rewrite | None:
    if brief.form.family != "mail" or len(brief.changes) < 2:
        return None
    cut = brief.dice.randrange(1, len(brief.changes))
    parts = [brief.changes[:cut], brief.changes[cut:]]
    if brief.dice.random() < 0.3:
        parts = [(change,) for change in brief.changes]
    return refuse("".join(brief.response(part) for part in parts))


@kind("diff: the last hunk is cut", "diffs")
def _cut_hunk(brief: Brief) -> Rewrite | None:
    """A header that states more lines than follow, at the very end."""
    if brief.form.name != "unified_diff" or len(brief.replacements()) < 2:
        return None
    text = brief.response(brief.replacements())
    lines = text.splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if line.startswith("@@"))
    cut = brief.dice.randrange(1, 4)
    if len(lines) - last < 5 or not any(line[0] in "+-" for line in lines[last + 1 : -cut]):
        return None
    lost = applied(brief.task.before, brief.replacements()[:-1])
    return refuse("".join(lines[:-cut]), losses=[lost])


@kind("diff: wrong counts everywhere", "diffs")
def _counts(brief: Brief) -> Rewrite | None:
    if brief.form.name not in {"unified_diff", "diff_fence"}:
        return None
    if any(not change.replaces for change in brief.changes):
        return None
    tail = brief.dice.choice(["1", "99"])
    response = re.sub(r"^(@@ -\d+),\d+ (\+\d+),\d+ @@", rf"\1,{tail} \2,{tail} @@",
                      brief.response(), flags=re.MULTILINE)  # fmt: skip
    return exact(response if brief.form.name == "diff_fence" else f"{response}\nThat is all.\n")
