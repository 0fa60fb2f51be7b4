"""What the files would be: elided, there already, broken, or less by whole lines."""

from __future__ import annotations

import re
from dataclasses import replace

from bench.corpus.rewrites.kinds.beside import sample
from bench.corpus.rewrites.registry import (
    BASE,
    Brief,
    Rewrite,
    exact,
    kind,
    nothing_new,
    refuse,
)
from bench.corpus.rewrites.tasks import (
    Change,
    applied,
    can_be_parsed,
    is_judged,
    is_plain,
    lines_of,
    stands,
)

COMMENTS = {
    ".py": "# {}",
    ".rs": "// {}",
    ".js": "// {}",
    ".c": "/* {} */",
    ".go": "// {}",
    ".toml": "# {}",
    ".yml": "# {}",
    ".html": "<!-- {} -->",
    ".sh": "# {}",
}
"""How a comment is written in files of each kind."""


RESTS = (
    "rest of the function remains unchanged", "existing code", "remaining methods unchanged",
    "same as before", "... existing code ...", "other code stays the same",
    "previous code here", "rest of file", "… rest unchanged",
)  # fmt: skip


def _elided(change: Change, words: str, drop: bool) -> Change | None:
    sign = next((s for suffix, s in COMMENTS.items() if change.path.endswith(suffix)), None)
    old = lines_of(change.old or "")
    if sign is None or len(old) < 6:
        return None
    lead = re.match(r"\s*", old[0])
    assert lead
    mark = lead[0].rstrip("\n") + sign.format(words) + "\n"
    kept = old[:2] if drop else old
    return replace(change, new="".join([*kept, mark]))


@kind("elision without the lines", "elision")
def _drops(brief: Brief) -> Rewrite | None:
    able = [c for c in brief.replacements() if len(lines_of(c.old or "")) >= 6]
    if not able or brief.form.family == "files":
        return None
    other = _elided(able[0], brief.dice.choice(RESTS), drop=True)
    return None if other is None else refuse(brief.response([other]))


@kind("a comment that is no elision", "elision")
def _keeps(brief: Brief) -> Rewrite | None:
    able = [c for c in brief.replacements() if len(lines_of(c.old or "")) >= 6]
    if (
        not able
        or brief.form.family == "files"
        or not able[0].path.endswith((".py", ".toml", ".yml", ".sh"))
    ):
        return None
    words = brief.dice.choice(["Other settings", "The same as in the base class", "Existing users"])
    other = _elided(able[0], words, drop=False)
    if other is None:
        return None
    return exact(brief.response([other]), applied(brief.task.before, [other]))


@kind("there already", "there already")
def _there(brief: Brief) -> Rewrite | None:
    if (
        brief.form.family == "files"
        or not brief.replacements()
        or len(brief.replacements()) != len(brief.changes)
    ):
        return None
    result = brief.task.result()
    if any(len((c.new or "").strip()) < 8 for c in brief.changes):
        return None
    if any(stands(c.old or "", result[c.path].replace(c.new or "", "")) for c in brief.changes):
        return None
    return nothing_new(brief.response(), result)


@kind("a row again, on a declared base", "there already")
def _again(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if not able or brief.form.family == "files":
        return None
    c = able[0]
    lines = lines_of(c.old or "")
    row = next((x for x in reversed(lines) if x.strip() and not set(x) & set("()[]{}")), None)
    if row is None or c.path.endswith(".py"):  # a row of code again may mean something else
        return None
    other = replace(c, new=(c.old or "") + row)
    text = f"---\nbase: {BASE}\n---\n" + brief.response([other])
    return exact(text, applied(brief.task.before, [other]))


@kind("whole lines out, without the last newline", "deletion")
def _lines_out(brief: Brief) -> Rewrite | None:
    """Some lines of a file, as `Edit` is given them: it takes their newline along."""
    able = [p for p, text in brief.task.before.items() if text.count("\n") > 9]
    if brief.form.name != "messages" or not able:
        return None
    path = brief.dice.choice(able)
    text = brief.task.before[path]
    lines = lines_of(text)
    first = brief.dice.randrange(len(lines) - 4)
    old = "".join(lines[first : first + brief.dice.randrange(1, 4)])
    bare = old.removesuffix("\n")
    if not is_plain(old) or not bare.strip() or bare.endswith("\n") or text.count(bare) != 1:
        return None
    gone = Change(path, bare, "", first)
    return exact(brief.response([gone]), {**brief.task.before, path: text.replace(old, "", 1)})


@kind("syntax: broken Python", "syntax")
def _broken(brief: Brief) -> Rewrite | None:
    able = [c for c in brief.replacements() if c.path.endswith(".py")]
    if not able or brief.form.family == "files":
        return None
    broken = replace(able[0], new=(able[0].new or "") + "def broken(:\n")
    before, after = brief.task.before, applied(brief.task.before, [broken])
    parsed = [can_be_parsed(".py", files[broken.path]) for files in (before, after)]
    if parsed != [True, False] or not all(is_judged(f[broken.path]) for f in (before, after)):
        return None
    return refuse(brief.response([broken]))


TOMORROW = (
    "type Pair[T] = tuple[T, T]\n",
    "def first[T](items: list[T]) -> T:\n    return items[0]\n",
    "class Box[T]:\n    item: T\n",
    'name = "x"\nprint(f"{"nested"} {name}")\n',
)
"""Python that 3.11 does not know, and later versions do."""
MACROS = (
    "#define BEGIN {\n#define END }\n\nint one(void) BEGIN\n  return 1;\nEND\n\nTEST(two) { OK; }\n"
)


@kind("syntax: Python of tomorrow", "syntax")
def _tomorrow(brief: Brief) -> Rewrite | None:
    if not brief.form.creates:
        return None
    text = brief.dice.choice(TOMORROW)
    creation = Change("src_new/tomorrow.py", None, text)
    if not brief.form.expresses(creation):
        return None
    return exact(brief.response([creation]), {**brief.task.before, creation.path: text})


@kind("syntax: C with macros", "syntax")
def _macros(brief: Brief) -> Rewrite | None:
    if brief.form.name == "mail" or brief.form.family == "files":
        return None
    c = Change("src/m.c", "  return 1;\n", "  return 2;\n", 4)
    before = {**brief.task.before, c.path: MACROS}
    return exact(brief.response([c]), applied(before, [c]), before=before)


C = "int one(void) {\n  return 1;\n}\n\nint two(void) {\n  return 2;\n}\n"
PAGE = "# The tool\n\nFirst words.\n\n## Use\n\nMore words.\nAnd others.\nAnd more.\n"
_SHOWN = "First words.\n\n```python\n# ... existing code ...\nrun()\n```\n"


def _at(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


_RESULTS: tuple[tuple[str, str, str, str, str, bool], ...] = (
    ("syntax: a new C file that no grammar takes", "src/new_file.c", "", "",
     "int x = ;\nMACRO(a b c) {\n", True),
    ("syntax: a C file that loses a bracket", "src/lost_file.c", C,
     "  return 1;\n}\n", "  return 1;\n", False),
    ("syntax: Python of long ago", "tools/old_tool.py", "print 'one'\nprint 'two'\n",
     "print 'two'\n", "print 'three'\n", True),
    ("syntax: broken JSON", "notes/conf.json", '{\n  "a": 1,\n  "b": 2\n}\n',
     '  "b": 2\n', '  "b" 2\n', False),
    ("syntax: JSON with comments and trailing commas", "notes/conf.json",
     '{\n  // one\n  "a": 1,\n  "b": 2,\n}\n', '  "b": 2,\n', '  "b": 3,\n', True),
    ("syntax: broken TOML", "notes/conf.toml", "[a]\nx = 1\n", "x = 1\n", "x = = 1\n", False),
    ("syntax: broken YAML", "notes/conf.yml", "a: 1\nb: 2\n", "b: 2\n", "b: [2\n", False),
    ("syntax: tags in YAML", "notes/conf.yml", "a: 1\nb: 2\n", "b: 2\n", "b: !Ref c\n", True),
    ("syntax: a template", "notes/conf.yml", "a: 1\nb: {{ b }}\n", "a: 1\n", "a: {{ a }}\n", True),
    ("syntax: new broken Python", "tools/new_tool.py", "", "", "def f(:\n", False),
    ("elision in code that Markdown shows", "notes/page.md", PAGE, "First words.\n", _SHOWN, True),
    ("elision of Markdown's own lines", "notes/page.md", PAGE,
     "## Use\n\nMore words.\nAnd others.\nAnd more.\n",
     "## Use\n\n<!-- rest of the file unchanged -->\n", False),
    ("an ellipsis that is a value", "tools/types.py", "from typing import Any\n\nF = Any\n",
     "F = Any\n", "F = tuple[Any, ...]\n\n\ndef f() -> None: ...\n", True),
    ("a comment about the rest that stays beside it", "tools/types.py", "a = 1\nb = 2\n",
     "a = 1\n", "a = 1\n# the rest of the values\n", True),
)  # fmt: skip
for _name, _path, _text, _old, _new, _lands in _RESULTS:
    sample(
        _name,
        "elision" if "syntax" not in _name else "syntax",
        {_path: _text} if _text else {},
        _at(_path, _old, _new),
        ({_path: _text.replace(_old, _new, 1) if _old else _new}) if _lands else None,
    )
