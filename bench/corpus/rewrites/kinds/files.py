"""Files written whole, and what only looks like one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from bench.corpus.rewrites.forms import language
from bench.corpus.rewrites.kinds.beside import sample
from bench.corpus.rewrites.registry import Brief, Files, Rewrite, exact, kind, refuse
from bench.corpus.rewrites.tasks import Change, Task, is_plain, lines_of

NEW = "tools/extra_thing.py"
TEXT = "def extra():\n    return 1\n"
NOTE = "notes/plan.md"
PLAN = "# The plan\n\nFirst this.\n\nThen that.\n"
LIST = "".join(f"{word}\n" for word in ("one", "two", "three", "four", "five", "six", "seven"))


def _fence(info: str, text: str = TEXT, size: int = 4) -> str:
    return f"{'`' * size}{info}\n{text}{'`' * size}\n"


_BLOCK = "<<<<<<< SEARCH\nfour\n=======\nFOUR\n>>>>>>> REPLACE\n"
_MIXED = _fence("python", f"Some words.\n{_BLOCK}", 6)
_READ: tuple[tuple[str, Files, str, Mapping[str, str | None]], ...] = (
    ("by a colon in the info", {}, _fence(f"python:{NEW}"), {NEW: TEXT}),
    ("by FILE:", {}, f"FILE: {NEW}\n{_fence('python')}", {NEW: TEXT}),
    ("by FILE: up to END FILE", {}, f"FILE: {NEW}\n{TEXT}END FILE\n", {NEW: TEXT}),
    ("Markdown in a long fence", {}, _fence(f"markdown:{NOTE}", f"{PLAN}\n```sh\nmake\n```\n"),
     {NOTE: f"{PLAN}\n```sh\nmake\n```\n"}),
    ("edits in a fence whose info names their path", {"notes/list.txt": LIST},
     _fence("text:notes/list.txt", _BLOCK), {"notes/list.txt": LIST.replace("four", "FOUR")}),
    ("edits in a longer fence under their path", {"notes/list.txt": LIST},
     f"notes/list.txt\n{_fence('text', _BLOCK, 6)}",
     {"notes/list.txt": LIST.replace("four", "FOUR")}),
    ("thinking tags in its text", {},
     _fence(f"markdown:{NOTE}", "Some models write\n\n<think>\nso\n</think>\n\nand go on.\n"),
     {NOTE: "Some models write\n\n<think>\nso\n</think>\n\nand go on.\n"}),
    ("front matter in its text", {}, _fence(f"markdown:{NOTE}", "---\ntarget: x\n---\nWords.\n"),
     {NOTE: "---\ntarget: x\n---\nWords.\n"}),
)  # fmt: skip
_REFUSED: tuple[tuple[str, Files, str], ...] = (
    ("by a comment beside edits", {}, _fence("python", f"# {NEW}\n{TEXT}")),
    ("a FILE: whose text runs to the end", {}, f"FILE: {NEW}\n{TEXT}"),
    ("a FILE: that the response edits too", {"notes/list.txt": LIST},
     f"notes/list.txt\n{_BLOCK}\nFILE: notes/list.txt\n{_fence('text', LIST)}"),
    ("a new file that is an elision", {}, _fence(f"python:{NEW}", "# ... existing code ...\n")),
    ("a file that shrinks to its head", {"notes/list.txt": LIST * 5},
     _fence("text:notes/list.txt", "one\ntwo\n")),
    ("a file with its rest elided", {"tools/list.py": "".join(f"x{n} = {n}\n" for n in range(40))},
     _fence("python:tools/list.py", "x0 = 1\n# ... existing code ...\n")),
    ("a path that climbs out", {}, _fence("python:../extra.py")),
    ("other text beside edits in a fence of code", {"tools/list.py": LIST},
     f"tools/list.py\n{_MIXED}"),
    ("Markdown whose end is in doubt", {},
     f"FILE: {NOTE}\n```markdown\n{PLAN}```\n\n```\nmake\n```\n"),
)  # fmt: skip
for _name, _before, _edit, _after in _READ:
    sample(f"file: {_name}", "whole files", _before, _edit, _after)
for _name, _before, _edit in _REFUSED:
    sample(f"file: {_name}", "whole files", _before, _edit, None)
for _name, _edit, _written in (
    ("by a path line beside edits", f"{NEW}\n{_fence('python')}", None),
    ("by the info without a colon beside edits", _fence(f"python {NEW}"), None),
    ("by a sentence beside edits", f"Put this into `{NEW}`:\n\n{_fence('python')}", None),
    ("a log that a sentence names",
     "This is what `out/run.log` says:\n\n" + _fence("log", "all is well\n"), {}),
    ("output that a sentence names",
     "It prints, into `out/run.txt`:\n\n" + _fence("console", "all is well\n"), {}),
):  # fmt: skip
    sample(f"file: {_name}", "whole files", {}, _edit, _written, apart_from={"files"})


# ---------------------------------------------------------------- alone

Header = Callable[[str], tuple[str, str]]
TIES: Mapping[str, Header] = {
    "path line": lambda p: (f"{p}\n", language(p)),
    "path in backticks": lambda p: (f"`{p}`\n", language(p)),
    "heading": lambda p: (f"### {p}\n\n", language(p)),
    "sentence": lambda p: (f"Here is `{p}` as it is to be:\n\n", language(p)),
    "info without a colon": lambda p: ("", f"{language(p)} {p}"),
}


def _tied(name: str, brief: Brief, changes: tuple[Change, ...]) -> str:
    parts = []
    for c in changes:
        lead, info = TIES[name](c.path)
        parts.append(f"{lead}````{info}\n{c.new}````\n")
    return "\n".join(parts)


def _keeps(task: Task) -> bool:
    """Whether every file keeps its first line, its last, and nearly all others."""
    for c in task.whole_files:
        old = [line for line in lines_of(task.before.get(c.path, "")) if line.strip()]
        new = [line for line in lines_of(c.new or "") if line.strip()]
        kept = sum((Counter(old) & Counter(new)).values())
        if not old or old[0] != new[0] or old[-1] != new[-1] or kept * 20 < len(old) * 19:
            return False
        if "/" not in c.path and "." not in c.path:
            return False
    return True


def _whole(name: str) -> None:
    @kind(f"file: alone, by {name}", "whole files")
    def _write(brief: Brief) -> Rewrite | None:
        if brief.form.name != "whole_file" or not _keeps(brief.task):
            return None
        return exact(_tied(name, brief, brief.changes))

    @kind(f"file: an excerpt alone, by {name}", "whole files")
    def _excerpt(brief: Brief) -> Rewrite | None:
        if brief.form.name != "whole_file":
            return None
        path = brief.dice.choice([p for p in brief.task.before if "." in p] or [""])
        lines = lines_of(brief.task.before.get(path, ""))
        if len(lines) < 40:
            return None
        first = brief.dice.randrange(5, len(lines) - 30)
        part = "".join(lines[first : first + brief.dice.randrange(5, 12)])
        if not is_plain(part) or not part.strip() or part.strip() in {lines[0], lines[-1]}:
            return None
        return refuse(_tied(name, brief, (Change(path, None, part),)))

    @kind(f"file: a new one alone, by {name}", "whole files")
    def _create(brief: Brief) -> Rewrite | None:
        if brief.form.name != "whole_file":
            return None
        after = {**brief.task.before, NEW: TEXT}
        return exact(_tied(name, brief, (Change(NEW, None, TEXT),)), after)

    @kind(f"file: a root twin, by {name}", "whole files")
    def _twin(brief: Brief) -> Rewrite | None:
        names = [path.rpartition("/")[2] for path in brief.task.before]
        able = [p for p in brief.task.before if "/" in p and names.count(p.rpartition("/")[2]) == 1]
        if brief.form.name != "whole_file" or not able:
            return None
        twin = brief.dice.choice(able).rpartition("/")[2]
        if "." not in twin:
            return None
        return refuse(_tied(name, brief, (Change(twin, None, TEXT),)))

    @kind(f"file: another case, by {name}", "whole files")
    def _case(brief: Brief) -> Rewrite | None:
        able = [p for p in brief.task.before if "." in p and p.upper() != p]
        if brief.form.name != "whole_file" or not able:
            return None
        folder, slash, last = brief.dice.choice(able).rpartition("/")
        other = f"{folder}{slash}{last[0].swapcase()}{last[1:]}"
        same = [p for p in brief.task.before if p.rpartition("/")[2].lower() == last.lower()]
        if other in brief.task.before or last[0].swapcase() == last[0] or len(same) > 1:
            return None
        return refuse(_tied(name, brief, (Change(other, None, TEXT),)))


for _name in TIES:
    _whole(_name)


@kind("file: alone, by a comment with a directory", "whole files")
def _comment(brief: Brief) -> Rewrite | None:
    if brief.form.name != "whole_file":
        return None
    text = f"# {NEW}\n{TEXT}"
    return exact(f"A new tool:\n\n```python\n{text}```\n", {**brief.task.before, NEW: text})


@kind("file: alone, by a comment without a directory", "whole files")
def _bare_comment(brief: Brief) -> Rewrite | None:
    if brief.form.name != "whole_file":
        return None
    return refuse(f"A new tool:\n\n```python\n# extra_thing.py\n{TEXT}```\n")


@kind("file: the rest of the file it quotes, beside edits", "documents")
def _border(brief: Brief) -> Rewrite | None:
    """The head of a file that no edit touches: the rest may go, or is only quoted."""
    able = brief.replacements()
    touched = {c.path for c in brief.changes}
    free = [p for p in brief.task.before if p not in touched and "." in p]
    if not able or not brief.form.in_text or brief.ends_open or not free:
        return None
    path = brief.dice.choice(free)
    lines = lines_of(brief.task.before[path])
    head = "".join(lines[:6])
    if len(lines) < 20 or not is_plain(head) or not lines[0].strip():
        return None
    tail = f"{path}\n````{language(path)}\n{head}````\n"
    return refuse(f"{brief.response()}\n{tail}", losses=[brief.task.result()], extra=1)


@kind("an excerpt of another file beside the edits", "documents")
def _inner(brief: Brief) -> Rewrite | None:
    """Lines from the middle of a file that no edit touches are a quotation."""
    touched = {c.path for c in brief.changes}
    free = [p for p in brief.task.before if p not in touched and "." in p]
    if not brief.form.in_text or brief.ends_open or brief.form.family == "files" or not free:
        return None
    path = brief.dice.choice(free)
    lines = lines_of(brief.task.before[path])
    if len(lines) < 20:
        return None
    first = brief.dice.randrange(3, len(lines) - 9)
    part = "".join(lines[first : first + 5])
    bare = [line.strip() for line in lines if line.strip()]
    if not is_plain(part) or {bare[0], bare[-1]} & {x.strip() for x in lines_of(part)}:
        return None
    if not part.strip():
        return None
    quote = f"This uses it, in `{path}`:\n\n````{language(path)}\n{part}````\n"
    return exact(f"{quote}\n{brief.response()}")
