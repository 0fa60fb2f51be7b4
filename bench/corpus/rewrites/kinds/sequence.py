"""Edits in another order, twice, one upon the other, in chains; renames."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from bench.corpus.rewrites.registry import Brief, Files, Rewrite, exact, kind, refuse
from bench.corpus.rewrites.tasks import Change, applied, is_plain, lines_of


def _without(brief: Brief, change: Change) -> list[Change]:
    return [other for other in brief.changes if other is not change]


def _takes(change: Change) -> bool:
    """Whether it takes a line away: what only adds contradicts nothing."""
    return bool(Counter(lines_of(change.old or "")) - Counter(lines_of(change.new or "")))


@kind("shuffled", "order")
def _shuffled(brief: Brief) -> Rewrite | None:
    changes = list(brief.changes)
    if len(changes) < 2:
        return None
    brief.dice.shuffle(changes)
    return exact(brief.response(changes))


@kind("the same edit twice", "order")
def _twice(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if not able or brief.form.family in {"patch", "mail"}:
        return None
    return exact(brief.response([*brief.changes, brief.dice.choice(able)]))


@kind("two results of one place", "order")
def _contradiction(brief: Brief) -> Rewrite | None:
    able = [change for change in brief.replacements() if _takes(change)]
    if not able or brief.form.family in {"patch", "mail"}:
        return None
    c = brief.dice.choice(able)
    assert c.new is not None
    old, new = lines_of(c.old or ""), lines_of(c.new)
    at = next((i for i, line in enumerate(new) if i >= len(old) or line != old[i]), None)
    if at is None:
        return None
    other = replace(c, new="".join([*new[:at], "another_line = 1\n", *new[at + 1 :]]))
    losses = [brief.task.result(), applied(brief.task.before, [*_without(brief, c), other])]
    return refuse(brief.response([*brief.changes, other]), losses=losses, extra=1)


@kind("a chain of edits", "order")
def _chain(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if not able or brief.form.family in {"patch", "mail", "json"}:
        return None
    c = brief.dice.choice(able)
    assert c.new is not None
    middle = "middle_step_of_the_chain = 1\n"
    rest, first = _without(brief, c), replace(c, new=middle)
    losses = [applied(brief.task.before, [*rest, first])]
    return exact(brief.response([*rest, first, replace(c, old=middle)]), losses=losses, extra=1)


@kind("write after edit", "order")
def _write_after(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if not able or brief.form.family != "api":
        return None
    c = able[0]
    text = brief.task.before[c.path].replace(c.old or "", "rewritten = 1\n" + (c.old or ""), 1)
    own = [x for x in brief.changes if x.path == c.path]
    others = [x for x in brief.changes if x.path != c.path]
    after = {**applied(brief.task.before, others), c.path: text}
    losses = [brief.task.result()]
    return exact(
        brief.response([*others, *own, Change(c.path, None, text)]), after, losses=losses, extra=1
    )


@kind("an unchanged quote beside", "order")
def _claim(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if not able or brief.form.family in {"patch", "mail", "files"}:
        return None
    c = able[0]
    lines = lines_of(brief.task.before[c.path])
    touched = {
        i for x in able if x.path == c.path for i in range(x.at, x.at + len(lines_of(x.old or "")))
    }
    free = [
        i
        for i in range(len(lines) - 3)
        if not touched & set(range(i - 1, i + 4))
        and lines[i].strip()
        and len(set(lines[i : i + 3])) == 3
    ]
    if not free:
        return None
    i = brief.dice.choice(free)
    quote = "".join(lines[i : i + 3])
    if brief.task.before[c.path].count(quote) != 1:
        return None
    if not is_plain(quote):
        return None
    return exact(brief.response([*brief.changes, Change(c.path, quote, quote, i)]))


@kind("an unchanged quote of changed lines", "order")
def _false_claim(brief: Brief) -> Rewrite | None:
    able = [change for change in brief.replacements() if _takes(change)]
    if not able or brief.form.family in {"patch", "mail", "files"}:
        return None
    c = brief.dice.choice(able)
    response = brief.response([*brief.changes, Change(c.path, c.old, c.old, c.at)])
    return refuse(response, losses=[brief.task.result()], extra=1)


@kind("delete and create", "order")
def _replaced(brief: Brief) -> Rewrite | None:
    path = next((c.path for c in brief.task.changes if c.replaces), None)
    if path is None or not (brief.form.deletes and brief.form.creates) or not brief.form.in_text:
        return None
    text = brief.task.result()[path]
    before = brief.task.before[path]
    kept = set(lines_of(before)) & set(lines_of(text or ""))
    if 2 * len(kept) < len(set(lines_of(before))) + 4:
        return None
    rest = [c for c in brief.task.changes if c.path != path]
    parts = [Change(path, before, None)], [Change(path, None, text)], rest
    return exact("\n".join(brief.response(part) for part in parts if part))


@kind("repeated chunks in order", "chains")
def _chained(brief: Brief) -> Rewrite | None:
    """A unit that stands three times; the patch changes the first after a unique line, in order."""
    if brief.form.name not in {"v4a", "unified_diff", "diff_fence"}:
        return None
    unit = "    begin()\n    work()\n    finish()\n"
    text = f"first:\n{unit}second:\n{unit}third:\n{unit}last\n"
    path = "chain.txt"
    first = " first:\n     begin()\n-    work()\n+    work(1)\n     finish()\n"
    other = "     begin()\n-    work()\n+    work(2)\n     finish()\n third:\n"
    if brief.form.name == "v4a":
        body = f"*** Begin Patch\n*** Update File: {path}\n@@\n{first}@@\n{other}*** End Patch\n"
    else:
        body = f"--- a/{path}\n+++ b/{path}\n@@ @@\n{first}@@ @@\n{other}"
        body = f"```diff\n{body}```\n" if brief.form.name == "diff_fence" else body
    after = text.replace("first:\n    begin()\n    work()", "first:\n    begin()\n    work(1)")
    after = after.replace("second:\n    begin()\n    work()", "second:\n    begin()\n    work(2)")
    return exact(body, {**brief.task.before, path: after}, before={**brief.task.before, path: text})


def _rename(old: str, new: str) -> str:
    return f"{old}\n<<<<<<< RENAME\n{new}\n>>>>>>> RENAME\n"


def _moved(files: Files, old: str, new: str) -> Files:
    return {new if path == old else path: text for path, text in files.items()}


@kind("a rename and edits under either name", "renames")
def _renamed(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if brief.form.name not in {"search_replace", "search_replace_fenced"} or not able:
        return None
    old = able[0].path
    folder, _, name = old.rpartition("/")
    new = f"{folder}/renamed_{name}" if folder else f"renamed_{name}"
    under = brief.dice.choice([old, new])
    named = [replace(c, path=under) if c.path == old else c for c in brief.changes]
    parts = [_rename(old, new), brief.response(named)]
    if under == old:
        brief.dice.shuffle(parts)
    losses = [brief.task.result(), _moved(brief.task.before, old, new)]
    return exact("\n".join(parts), _moved(brief.task.result(), old, new), losses=losses, extra=1)


@kind("two files swap their names", "renames")
def _swapped(brief: Brief) -> Rewrite | None:
    paths = list(brief.task.before)
    if brief.form.name != "search_replace" or len(paths) < 2:
        return None
    one, two = brief.dice.sample(paths, 2)
    if one.rpartition(".")[2] != two.rpartition(".")[2]:
        return None
    after = {**brief.task.before, one: brief.task.before[two], two: brief.task.before[one]}
    if after[one] == after[two]:
        return None
    return exact(f"{_rename(one, two)}\n{_rename(two, one)}", after)


@kind("a chain of renames", "renames")
def _rename_chain(brief: Brief) -> Rewrite | None:
    paths = list(brief.task.before)
    if brief.form.name != "search_replace" or len(paths) < 2:
        return None
    one, two = brief.dice.sample(paths, 2)
    if one.rpartition(".")[2] != two.rpartition(".")[2]:
        return None
    three = two + ".old"
    after = {p: x for p, x in brief.task.before.items() if p != one}
    after[three], after[two] = brief.task.before[two], brief.task.before[one]
    parts = [_rename(two, three), _rename(one, two)]
    brief.dice.shuffle(parts)
    losses = [_moved(brief.task.before, two, three)]
    return exact("\n".join(parts), after, losses=losses)
