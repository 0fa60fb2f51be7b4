"""Quotes that are not quite what the file has."""

from __future__ import annotations

import html
import random
import re
from collections.abc import Callable
from dataclasses import replace

from bench.corpus.rewrites.registry import Brief, Rewrite, either, exact, kind, refuse
from bench.corpus.rewrites.tasks import Change, applied, is_plain, lines_of, stands

Damage = Callable[[Change, random.Random], Change | None]


def _damaged(brief: Brief, damage: Damage) -> Rewrite | None:
    """The task with one of its changes damaged, which still means one thing."""
    able = brief.replacements()
    if not able:
        return None
    c = brief.dice.choice(able)
    other = damage(c, brief.dice)
    if other is None:
        return None
    return exact(brief.response([other if x is c else x for x in brief.changes]))


def _is_diff(brief: Brief) -> bool:
    """Whether each line of an edit stands behind a sign, and numbers state its place."""
    return brief.form.family in {"patch", "mail"} and brief.form.name != "v4a"


@kind("damage: trailing blanks", "damage")
def _trailing(brief: Brief) -> Rewrite | None:
    if _is_diff(brief):
        return None

    def damage(c: Change, dice: random.Random) -> Change | None:
        lines = lines_of(c.old or "")
        able = [i for i, line in enumerate(lines) if line.strip()]
        if not able or not c.replaces or len(lines) < 2:
            return None
        i = dice.choice(able)
        changed = [*lines]
        changed[i] = lines[i].rstrip("\n") + "  \n"
        return replace(c, old="".join(changed))

    return _damaged(brief, damage)


@kind("damage: dedented", "damage")
def _dedented(brief: Brief) -> Rewrite | None:
    if brief.form.family in {"patch", "mail", "json"}:
        return None

    def damage(c: Change, dice: random.Random) -> Change | None:
        both = lines_of((c.old or "") + (c.new or ""))
        if len(lines_of(c.old or "")) < 2 or not all(
            x.startswith("  ") or not x.strip() for x in both
        ):
            return None
        old, new = (
            "".join(x[2:] if x.strip() else x for x in lines_of(half or ""))
            for half in (c.old, c.new)
        )
        # One that stands so, behind its line's indentation, is meant literally.
        return None if old in brief.task.before[c.path] else replace(c, old=old, new=new)

    return _damaged(brief, damage)


@kind("damage: line numbers", "damage")
def _numbered(brief: Brief) -> Rewrite | None:
    if brief.form.family in {"patch", "mail", "json"}:
        return None

    def damage(c: Change, dice: random.Random) -> Change | None:
        if len(lines_of(c.old or "")) < 2:
            return None
        sign = dice.choice([" | ", "→"])
        old, new = (
            "".join(f"{n}{sign}{line}" for n, line in enumerate(lines_of(half or ""), c.at + 1))
            for half in (c.old, c.new)
        )
        return replace(c, old=old, new=new)

    return _damaged(brief, damage)


@kind("damage: a word misremembered", "damage")
def _misremembered(brief: Brief) -> Rewrite | None:
    def damage(c: Change, dice: random.Random) -> Change | None:
        lines = lines_of(c.old or "")
        words = [(i, m) for i, line in enumerate(lines) for m in re.finditer(r"[A-Za-z]{4,}", line)]
        if not words:
            return None
        i, m = dice.choice(words)
        line = lines[i]
        changed = [*lines]
        changed[i] = line[: m.start()] + m[0][::-1] + "x" + line[m.end() :]
        rest = [other for other in brief.changes if other is not c]
        # What the edit would give must not stand there: that would be an edit applied already.
        if any(
            stands(c.new or "", f[c.path])
            for f in (brief.task.before, applied(brief.task.before, rest))
        ):
            return None
        return replace(c, old="".join(changed))

    rewrite = _damaged(brief, damage)
    return rewrite and refuse(rewrite.response)


@kind("damage: quoted twice in the file", "damage")
def _ambiguous(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if not able or brief.form.family == "files" or len(brief.changes) != 1:
        return None
    c = able[0]
    if _is_diff(brief):
        return None
    before = dict(brief.task.before)
    before[c.path] = before[c.path] + "\n" + (c.old or "")
    if before[c.path].count(c.old or "") < 2:
        return None
    return refuse(brief.response(), before=before)


@kind("escaped entities", "escapes")
def _entities(brief: Brief) -> Rewrite | None:
    """The markers too; only a quote that the entities stand for shows that it was on the way."""
    if brief.form.family != "blocks":
        return None
    response = html.escape(brief.response(), quote=False)
    if response == brief.response():
        return None
    if brief.form.name == "search_replace_dashes" or any(c.new is None for c in brief.changes):
        return either(response)
    shown = any(html.escape(c.old or "", quote=False) != c.old for c in brief.replacements())
    known = shown and len(brief.replacements()) == len(brief.changes)
    return exact(response) if known else refuse(response)


@kind("lone CR", "escapes")
def _lone_cr(brief: Brief) -> Rewrite | None:
    if brief.form.family not in {"blocks", "patch", "find"}:
        return None
    return either(brief.response().replace("\n", "\r"))


def _indented(text: str) -> str:
    return "".join("    " + line if line.strip() else line for line in lines_of(text))


@kind("damage: indented further", "damage")
def _overindented(brief: Brief) -> Rewrite | None:
    if brief.form.family in {"patch", "mail", "json"}:
        return None

    def damage(c: Change, dice: random.Random) -> Change | None:
        if len(lines_of(c.old or "")) < 2:
            return None
        return replace(c, old=_indented(c.old or ""), new=_indented(c.new or ""))

    return _damaged(brief, damage)


@kind("damage: a blank line too many in both halves", "damage")
def _edge_blank(brief: Brief) -> Rewrite | None:
    if brief.form.family in {"patch", "mail", "json", "calls", "api"}:
        return None

    def damage(c: Change, dice: random.Random) -> Change | None:
        at = c.at
        lines = lines_of(brief.task.before[c.path])
        if at > 0 and not lines[at - 1].strip():
            return None
        return replace(c, old="\n" + (c.old or ""), new="\n" + (c.new or ""))

    return _damaged(brief, damage)


@kind("damage: curly quotes", "damage")
def _curly(brief: Brief) -> Rewrite | None:
    def damage(c: Change, dice: random.Random) -> Change | None:
        old, new = lines_of(c.old or ""), lines_of(c.new or "")
        able = [
            i
            for i, x in enumerate(old)
            if "'" in x and x in new and old.count(x) == 1 and new.count(x) == 1
        ]
        if not able or len(old) < 2:
            return None
        line = old[dice.choice(able)]
        curly = line.replace("'", "\u2019")
        return replace(
            c,
            old="".join(curly if x == line else x for x in old),
            new="".join(curly if x == line else x for x in new),
        )

    if _is_diff(brief):
        return None
    return _damaged(brief, damage)


@kind("damage: elided on both sides", "damage")
def _dots(brief: Brief) -> Rewrite | None:
    if brief.form.family not in {"blocks", "find"}:
        return None

    def damage(c: Change, dice: random.Random) -> Change | None:
        lines, new = lines_of(brief.task.before[c.path]), lines_of(c.new or "")
        old = lines_of(c.old or "")
        at = c.at
        more = lines[max(0, at - 9) : at]
        if len(more) < 9 or any(not x.strip() or lines.count(x) > 1 for x in more[:2] + more[-1:]):
            return None
        touched = {
            i
            for x in brief.replacements()
            if x.path == c.path
            for i in range(x.at, x.at + len(lines_of(x.old or "")))
        }
        if touched & set(range(at - 9, at)):
            return None
        if not is_plain("".join(more)):
            return None
        head = "".join(more[:2]) + "...\n" + "".join(more[-1:])
        return replace(c, old=head + "".join(old), new=head + "".join(new))

    return _damaged(brief, damage)


@kind("escaped twice in JSON", "escapes")
def _overescaped(brief: Brief) -> Rewrite | None:
    if brief.form.family != "calls":
        return None

    def damage(c: Change, dice: random.Random) -> Change | None:
        both = (c.old or "") + (c.new or "")
        if "\\" in both or (c.old or "").count("\n") < 2:
            return None
        return replace(
            c, old=(c.old or "").replace("\n", "\\n"), new=(c.new or "").replace("\n", "\\n")
        )

    return _damaged(brief, damage)


def _kept_as(brief: Brief, change_file: Callable[[str], str]) -> Rewrite | None:
    """The files are written in another way than the response; what it changes is so, too."""
    changes = brief.changes
    if brief.form.family == "files" or any(not c.replaces for c in changes):
        return None
    paths = {c.path for c in changes}
    before, after = (
        {path: change_file(text) if path in paths else text for path, text in files.items()}
        for files in (brief.task.before, brief.task.result())
    )
    return exact(brief.response(), after, before=before)


@kind("damage: the file has CRLF", "damage")
def _crlf_file(brief: Brief) -> Rewrite | None:
    return _kept_as(brief, lambda text: text.replace("\n", "\r\n"))


@kind("damage: the file has no newline at its end", "damage")
def _no_final(brief: Brief) -> Rewrite | None:
    """Where the response does not touch the last lines."""
    if any(brief.task.before[c.path].endswith(c.old or "?") for c in brief.replacements()):
        return None
    return _kept_as(brief, lambda text: text.removesuffix("\n"))


@kind("damage: the file has a byte order mark", "damage")
def _bom_file(brief: Brief) -> Rewrite | None:
    if any(c.at == 0 for c in brief.changes):
        return None
    return _kept_as(brief, lambda text: "\ufeff" + text)


@kind("damage: dashes and blanks of typography", "damage")
def _typography(brief: Brief) -> Rewrite | None:
    signs = brief.dice.choice([("-", "\u2013"), (" ", "\u00a0")])

    def damage(c: Change, dice: random.Random) -> Change | None:
        old, new = lines_of(c.old or ""), lines_of(c.new or "")
        able = [x for x in old if signs[0] in x.strip() and old.count(x) == new.count(x) == 1]
        if not able or len(old) < 2:
            return None
        line = dice.choice(able)
        lead = line[: len(line) - len(line.lstrip())]
        other = lead + line.strip().replace(*signs) + "\n"
        return replace(
            c,
            old="".join(other if x == line else x for x in old),
            new="".join(other if x == line else x for x in new),
        )

    return None if _is_diff(brief) else _damaged(brief, damage)
