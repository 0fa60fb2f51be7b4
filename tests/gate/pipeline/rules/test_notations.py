"""Edits in a notation of other tools (docs/formats.md, Envelopes): none of them is left out in
silence beside others, and those that hold blocks are read."""

from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench, Row, check

A = {"src/a.py": "x = 1\ny = 2\n", "src/b.py": "z = 1\n"}
DONE = {"src/a.py": "x = 3\ny = 2\n"}
BLOCK = "src/a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n"
BARE = BLOCK.removeprefix("src/a.py\n")
OTHER = "src/b.py\n<<<<<<< SEARCH\nz = 1\n=======\nz = 3\n>>>>>>> REPLACE\n"
BOTH = {**DONE, "src/b.py": "z = 3\n"}
UNREADABLE = ("response.unreadable_edit",)
WORDS = [
    ("OLD", "NEW"), ("BEFORE", "AFTER"), ("HEAD", "UPDATED"), ("CURRENT", "INCOMING"),
    ("SUCHE", "ERSETZE"), ("BUSCAR", "REEMPLAZAR"), ("搜索", "替换"), ("ПОИСК", "ЗАМЕНА"),
    ("EDIT", "DONE"), ("INSERT", "INSERT"), ("old code", "new code"), ("Original", "Modified"),
]  # fmt: skip
TAGS = [
    ("old", "new"), ("before", "after"), ("original", "updated"), ("SEARCH", "REPLACE"),
    ("find", "replace"), ("old_code", "new_code"), ("oldText", "newText"),
]  # fmt: skip
CALLS = [
    "<write_to_file>\n<path>src/n.py</path>\n<content>\nn = 1\n</content>\n</write_to_file>\n",
    "<insert_content>\n<path>src/b.py</path>\n<line>1</line>\n<content>\nn = 1\n</content>\n"
    "</insert_content>\n",
    "<edit_file>\n<target_file>src/b.py</target_file>\n<code_edit>\n# ...\nz = 3\n</code_edit>\n"
    "</edit_file>\n",
    '<function_calls>\n<invoke name="create_file">\n<parameter name="path">src/n.py</parameter>\n'
    '<parameter name="text">n = 1</parameter>\n</invoke>\n</function_calls>\n',
    '<tool_call>\n{"name": "make", "with": {"where": "src/n.py", "what": "n = 1"}}\n</tool_call>\n',
    '<file path="src/n.py">\nn = 1\n</file>\n',
    '<document file_path="src/b.py">\nz = 3\n</document>\n',
    '<boltAction type="file" filePath="src/n.py">\nn = 1\n</boltAction>\n',
    '<dyad-write path="src/n.py">\nn = 1\n</dyad-write>\n',
]


def marked(old: str, new: str) -> str:
    return f"<<<<<<< {old}\nz = 1\n=======\nz = 3\n>>>>>>> {new}\n"


def tagged(old: str, new: str) -> str:
    return f"<{old}>\nz = 1\n</{old}>\n<{new}>\nz = 3\n</{new}>\n"


def cline(path: str, block: str) -> str:
    return f"<replace_in_file>\n<path>{path}</path>\n<diff>\n{block}</diff>\n</replace_in_file>\n"


LOST = [
    Row(f"{name}: {what}", A, response, codes=UNREADABLE)
    for name, edit in [
        *((f"markers {old}", marked(old, new)) for old, new in WORDS),
        ("dashes", "------- OLD\nz = 1\n=======\nz = 3\n+++++++ NEW\n"),
        *((f"tags {old}", tagged(old, new)) for old, new in TAGS),
        *((f"call {i}", call) for i, call in enumerate(CALLS)),
    ]
    for what, response in [
        ("behind", f"{BLOCK}\nsrc/b.py\n\n{edit}"),
        ("before", f"In `src/b.py`, too:\n\n{edit}\n{BLOCK}"),
        ("fenced", f"{BLOCK}\nAnd then:\n\n```\n{edit}```\n"),
    ]
    if not (what == "fenced" and ("<file path" in edit or " file" in edit or "-write" in edit))
]
LOST += [
    Row(
        "a conflict under a path",
        A,
        f"{BLOCK}\nsrc/b.py\n{marked('HEAD', 'topic')}",
        codes=UNREADABLE,
    ),
    *(
        Row(
            f"markers behind {sign!r}",
            A,
            BLOCK
            + "\nsrc/b.py\n"
            + "".join(f"{sign}{line}\n" for line in marked("SEARCH", "REPLACE").split("\n")[:-1]),
            codes=UNREADABLE,
        )
        for sign in (">> ", "│ ", "┃ ")
    ),
    Row(
        "numeric entities",
        A,
        BLOCK + "\n" + OTHER.replace("<", "&#60;").replace(">", "&#x3E;"),
        codes=UNREADABLE,
    ),
    *(
        Row(f"a draft in <{tag}>", A, f"<{tag}>\n{OTHER}</{tag}>\n\n{BLOCK}", codes=UNREADABLE)
        for tag in ("下書き", "черновик", "ébauche")
    ),
    Row(
        "a command in a call",
        A,
        f"{BLOCK}\n<execute_command>\n<command>rm src/b.py</command>\n</execute_command>\n",
        codes=UNREADABLE,
    ),
]
READ = [
    Row("a call that holds a block", A, cline("src/a.py", BARE), DONE),
    Row(
        "a call each for two files",
        A,
        cline("src/a.py", BARE)
        + "\nAnd the other:\n\n"
        + cline("src/b.py", OTHER.removeprefix("src/b.py\n")),
        BOTH,
    ),
    Row(
        "a call with markers of dashes",
        A,
        cline("src/a.py", "------- SEARCH\nx = 1\n=======\nx = 3\n+++++++ REPLACE\n"),
        DONE,
    ),
    Row(
        "a block that says where it stands",
        A,
        cline("src/a.py", BARE.replace("SEARCH\n", "SEARCH\n:start_line:1\n-------\n")).replace(
            "replace_in_file", "apply_diff"
        ),
        DONE,
    ),
    Row(
        "lines that look so, in both halves",
        {"n.md": ":start_line:1\n-------\nx\n"},
        "n.md\n<<<<<<< SEARCH\n:start_line:1\n-------\nx\n=======\n:start_line:1\n-------\ny\n"
        ">>>>>>> REPLACE\n",
        {"n.md": ":start_line:1\n-------\ny\n"},
    ),
    *(
        Row(f"a path as {dress}", A, f"{dress}\n```python\n{BARE}```\n", DONE)
        for dress in (
            "### 📄 src/a.py",
            "📁 `src/a.py`",
            "[src/a.py](src/a.py)",
            "✅ **src/a.py**",
            "### [`src/a.py`](./src/a.py)",
        )
    ),
    Row("a link to another file", A, f"[src/a.py](src/b.py)\n{BARE}", codes=("path.not_found",)),
    *(
        Row(f"a path as {line}", A, f"{line}\n{text}", DONE)
        for line in ("In src/a.py:", "Then, change src/a.py so:", "src/a.py:1", "`src/a.py:1-2`")
        for text in (BARE, f"```python\n{BARE}```\n")
    ),
    Row("two paths in words", A, f"Not src/b.py but src/a.py:\n{BARE}", codes=UNREADABLE),
    Row("a path in words that is no file", A, f"In src/n.py:\n{BARE}", codes=UNREADABLE),
    Row(
        "a file with a number",
        {**A, "src/a.py:1": "x = 1\n"},
        f"src/a.py:1\n{BARE}",
        {"src/a.py:1": "x = 3\n"},
    ),
    Row("a path in tags", A, f"<path>src/a.py</path>\n{BARE}", DONE),
]
SHOWN = [
    Row(f"{name} that is shown", A, f"{text}\n{BLOCK}\n{text}", DONE)
    for name, text in [
        ("a conflict", "```\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> topic\n```\n"),
        ("a conflict of a stash", marked("ours", "theirs")),
        ("a quoted mail", ">>>>> so\n>>>>> it is\n"),
        ("a call that reads", "<read_file>\n<path>src/b.py</path>\n</read_file>\n"),
        ("an invocation that reads", '<invoke name="view_file">\nsrc/b.py\n</invoke>\n'),
        ("a page", "```html\n<div class='old'>\n</div>\n<form action='/x'>\n</form>\n```\n"),
        ("XML with a path", '```xml\n<module file="src/b.py">\n  <v>1</v>\n</module>\n```\n'),
        ("a tag in a sentence", "Neither `<old>` nor <new> is needed.\n"),
        ("words alone", "<summary>\nOld and new.\n</summary>\n"),
        ("a tag of many words", f"<{'a_' * 100}a>\n</{'a_' * 100}a>\n"),
        ("a tag of many paths", "<a " + "path='x' " * 20_000 + "\n</a>\n"),
    ]
]


@pytest.mark.parametrize("row", [*LOST, *READ, *SHOWN], ids=lambda row: row.name)
def test_notations(bench: Bench, row: Row) -> None:
    check(bench, row)


LABELS = [
    ("Before:", "After:"), ("**Find this:**", "**Replace with:**"),
    ("### Old code", "### New code"),
    ("Replace this:", "With this:"), ("FROM:", "TO:"), ("FIND：", "REPLACE WITH："),
    ("Vorher:", "Nachher:"), ("Avant :", "Après :"), ("查找:", "替换为："), ("Было:", "Стало:"),
    ("1. Original (line 1):", "2. Updated:"), ("<FIND>", "<REPLACE>"),
]  # fmt: skip


HOLDERS = [
    Row(name, A, f"{BLOCK}\n{text}\nz = 3\n</{close}>\n", codes=UNREADABLE)
    for name, text, close in (
        ("a file by its name", '<file name="src/b.py">', "file"),
        (
            "an artifact by its title",
            '<antArtifact identifier="b" title="src/b.py">',
            "antArtifact",
        ),
    )
] + [Row("a field of a form", A, f'{BLOCK}\n<label name="user">\nz\n</label>\n', DONE)]


@pytest.mark.parametrize("row", HOLDERS, ids=lambda row: row.name)
def test_files_in_tags(bench: Bench, row: Row) -> None:
    check(bench, row)


def pair(old: str, new: str, before: str = "z = 1", after: str = "z = 3") -> str:
    return f"{old}\n```python\n{before}\n```\n\n{new}\n```python\n{after}\n```\n"


PAIRS = [
    *(
        Row(f"{old}, {what}", A, response, codes=UNREADABLE)
        for old, new in LABELS
        for what, response in {
            "of a named file": f"{BLOCK}\nAnd in `src/b.py`, the number.\n\n{pair(old, new)}",
            "of the file": f"{pair(old, new, 'y = 2', 'y = 9')}\n{BLOCK}",
        }.items()
    ),
    Row("what the edit does", A, f"{BLOCK}\n{pair('Before:', 'After:', 'x = 1', 'x = 3')}", DONE),
    Row(
        "what it does, with more lines",
        A,
        f"{BLOCK}\n" + pair("Before:", "After:", "x = 1\ny = 2", "x = 3\ny = 2"),
        DONE,
    ),
    Row("what is printed", A, f"{BLOCK}\n{pair('Before:', 'After:', '1 apple', '3 apples')}", DONE),
    Row("of no file that is named", A, f"{BLOCK}\n{pair('Before:', 'After:')}", DONE),
    Row("other labels", A, f"{BLOCK}\n{pair('Input:', 'Output:', 'y = 2', 'y = 9')}", DONE),
]  # fmt: skip


def under(label: str, text: str) -> str:
    return f"{label}\n\n```python\n{text}\n```\n"


TOLD_PLACES = [
    *(
        Row(f"{label} {what}", A, response, codes=UNREADABLE, says=("that no edit makes",))
        for label, text in (
            ("Replace lines 1-2 with:", "y = 9"),
            ("**Change line 2 to this:**", "y = 9"),
            ("Then, insert this after line 2:", "z = 9"),
            ("### Add the following line before line 1", "z = 9"),
            ("Delete this line:", "y = 2"),
            ("Also remove the unused function:", "y = 2"),
        )
        for what, response in {
            "behind": f"{BLOCK}\n{under(label, text)}",
            "before": f"{under(label, text)}\n{BLOCK}",
        }.items()
    ),
    Row("lines that the edit replaces", A, f"{BLOCK}\n{under('Replace line 1 with:', 'x = 3')}",
        DONE),
    Row("a line that the edit deletes", A, f"{under('Delete this line:', 'x = 1')}\n{BLOCK}",
        DONE),
    Row("a line of no file", A, f"{BLOCK}\n{under('Delete this line:', 'q = 9')}", DONE),
    Row("a line of a listing", A, f"{BLOCK}\n{under('See line 2:', 'q = 9')}", DONE),
    Row("what was removed", A, f"{BLOCK}\n{under('Removed the code of line 1:', 'x')}", DONE),
    Row("what goes elsewhere", A, f"{BLOCK}\n{under('Add this to your profile:', 'z = 9')}", DONE),
]  # fmt: skip


@pytest.mark.parametrize("row", [*PAIRS, *TOLD_PLACES], ids=lambda row: row.name)
def test_shown_pairs(bench: Bench, row: Row) -> None:
    check(bench, row)
