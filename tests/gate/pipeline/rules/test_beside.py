# ruff: noqa: E501
"""A second change beside a good edit (docs/formats.md, Beside the edits): never lost unseen.

Each way of writing it is refused, or the batch waits for a person.  What only shows or runs something
is never refused for it.
"""

from __future__ import annotations

import pytest

from patchq.gate.config.schema import Config
from tests.helpers.deciding import Bench, Row, check

AUTO = Config(mode="auto")
A = {
    "src/a.py": "x = 1\ny = 2\n",
    "src/b.py": "p = 1\nq = 2\n",
    "package.json": '{\n "version": "1"\n}\n',
    ".gitignore": "out/\n*.log\n",
}
DONE = {"src/a.py": "x = 3\ny = 2\n"}
BLOCK = "src/a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n"


def fenced(info: str, text: str) -> str:
    return f"```{info}\n{text}\n```\n"


def marked(old: str, new: str) -> str:
    return f"src/b.py\n<<<<<<< {old}\np = 1\n=======\np = 9\n>>>>>>> {new}\n"


def tagged(old: str, new: str) -> str:
    return f"In `src/b.py`:\n\n<{old}>\np = 1\n</{old}>\n<{new}>\np = 9\n</{new}>\n"


def pair(old: str, new: str) -> str:
    return (
        f"In `src/b.py`:\n\n{old}\n{fenced('python', 'p = 1')}\n{new}\n{fenced('python', 'p = 9')}"
    )


ARGUMENTS = '{"path": "src/b.py", "content": "p = 9"}'
OTHERS = {
    "a heading over a fence": f"### src/b.py\n\n{fenced('python', 'p = 9')}",
    "a path over a fence": f"src/b.py\n{fenced('python', 'p = 9')}",
    "a new path over a fence": f"src/c.py\n{fenced('python', 'p = 9')}",
    "a citation": fenced("1:2:src/b.py", "p = 9"),
    "a suggestion": fenced("suggestion", "p = 9"),
    "a fence of tildes": "In src/b.py:\n~~~python\np = 9\n~~~\n",
    "a tool's code": fenced("tool_code", "print(api.write_file(path='src/b.py', content='p = 9'))"),
    "Llama's call": '<|python_tag|>write_file.call(path="src/b.py", content="p = 9")\n',
    "Hermes's call": f'<tool_call>\n{{"name": "write_file", "arguments": {ARGUMENTS}}}\n</tool_call>\n',
    "a call in JSON": f'{{"name": "write_file", "arguments": {ARGUMENTS}}}\n',
    "a file's tag": '<file path="src/n.py">\nn = 1\n</file>\n',
    "a tag that deletes": '<delete_file path="src/b.py"/>\n',
    "a command in a tag": "<execute_command>\n<command>rm src/b.py</command>\n</execute_command>\n",
    "a shell's call": '{"name": "bash", "arguments": {"command": "rm src/b.py"}}\n',
    "JSON": fenced("json", '{"filename": "src/b.py", "original": "p = 1", "replacement": "p = 9"}'),
    "Cursor's object": fenced(
        "json", '{"target_file": "src/b.py", "instructions": "up", "code_edit": "p = 9"}'
    ),
    "JSON Patch": fenced("json", '[{"op": "replace", "path": "/src/b.py", "value": "p = 9"}]'),
    "a patch for git": "*** Update File: src/b.py\n@@\n-p = 1\n+p = 9\n*** End Patch\n",
    "a normal diff": fenced("diff", "1c1\n< p = 1\n---\n> p = 9"),
    "a hunk without a file": "@@ -1,2 +1,2 @@\n-p = 1\n+p = 9\n q = 2\n",
    "words that change": "Also change `p = 1` to `p = 9` in `src/b.py`.\n",
}
MARKERS = {
    f"markers {old!r}": marked(old, new)
    for old, new in (
        ("SEARCH", "REPLAC"), ("Search", "Replace"), ("SEARCH:", "REPLACE:"),
        ("ORIGINAL", "CHANGED"), ("SEARCH src/b.py", "REPLACE"),
    )
} | {
    "a block in bold": "src/b.py\n**<<<<<<< SEARCH**\np = 1\n**=======**\np = 9\n**>>>>>>> REPLACE**\n",
    "a block of entities": marked("SEARCH", "REPLACE").replace("<", "&lt;").replace(">", "&gt;"),
    "a block behind backslashes": marked("SEARCH", "REPLACE").replace("<", r"\<").replace(">", r"\>"),
    "a block without its end": marked("SEARCH", "REPLACE").replace(">>>>>>> REPLACE\n", ""),
    "a block without its beginning": marked("SEARCH", "REPLACE").replace("<<<<<<< SEARCH\n", ""),
    "a block without a divider": marked("SEARCH", "REPLACE").replace("=======\n", ""),
    "a block with two dividers": marked("SEARCH", "REPLACE").replace("p = 9", "=======\np = 9"),
    "a block without a path": "Now `src/b.py`, see src/c.py:\n\n"
    + marked("SEARCH", "REPLACE").removeprefix("src/b.py\n"),
    "a fence with text behind its block": fenced(
        "", marked("SEARCH", "REPLACE") + "and q = 9"
    ),
    "an open patch": "*** Begin Patch\n*** Update File: src/b.py\n@@\n-p = 1\n+p = 9\n",
}  # fmt: skip
PAIRS = {
    f"tags {old!r}": tagged(old, new)
    for old, new in (
        ("old", "new"), ("before", "after"), ("find", "replace"), ("old_str", "new_str"),
        ("old_code", "new_code"),
    )
} | {
    f"a pair {old!r}": pair(old, new)
    for old, new in (
        ("Before:", "After:"), ("**Find this:**", "**Replace with:**"), ("### Old code", "### New"),
        ("FROM:", "TO:"), ("Vorher:", "Nachher:"), ("查找:", "替换为："), ("<FIND>", "<REPLACE>"),
    )
} | {
    f"a part of the edits in <{tag}>": f"<{tag}>\n{BLOCK.replace('x = 1', 'y = 2')}</{tag}>\n"
    for tag in ("draft", "option", "черновик", "v1")
}  # fmt: skip
COMMANDS = {
    f"$ {command}": fenced("bash", command)
    for command in (
        "rm src/b.py", "rm -rf src", "git rm src/b.py", "git -C . rm --cached src/b.py",
        "mv src/b.py src/c.py", "cd src && rm b.py", "sudo rm src/b.py", "pytest && rm src/b.py",
        "if true; then rm src/b.py; fi", "sed -Ei s/a/b/ src/b.py", "perl -pi -e s/a/b/ src/b.py",
        "git apply fix.patch", "patch -p1 < fix.patch", "git am < a.mbox", "echo x >> src/b.py",
        "cat > new.txt <<'EOF'\nx\nEOF", "echo 1 | tee new.txt", "touch new.txt",
        "cp src/a.py src/b.py", "ln -sf a.py src/b.py", "chmod +x src/b.py",
        "yq -i '.version = 9' package.json", "npm pkg set version=9",
        "git checkout HEAD~1 -- src/b.py", "git restore -- src/b.py", "git reset --hard HEAD~1",
        "ed -s src/b.py", "curl -o src/b.py https://example.org/b.py",
        "jq '.version = 9' package.json | sponge package.json",
    )
} | {
    "a console": fenced("console", "$ rm src/b.py"),
    "a command in a plain fence": fenced("", "rm src/b.py"),
    "a command in backticks": "Then run `rm src/b.py` once.\n",
}  # fmt: skip
WAYS = {**OTHERS, **MARKERS, **PAIRS, **COMMANDS}
SILENT = {
    "words that change", "tags 'old'", "tags 'before'", "tags 'find'",
    "tags 'old_code'", "$ curl -o src/b.py https://example.org/b.py",
    "$ jq '.version = 9' package.json | sponge package.json", "a command in backticks",
}  # fmt: skip
"""Words, odd markups and programs: only a person can tell these from talk."""


@pytest.mark.parametrize("name", WAYS)
def test_no_second_change_is_lost_unseen(bench: Bench, name: str) -> None:
    for text in (f"{WAYS[name]}\n{BLOCK}", f"{BLOCK}\n{WAYS[name]}"):
        decision = bench.decide(Row(name, A, text, config=AUTO)).decision
        assert (decision.state == "applied") == (name in SILENT), decision.problems


RUNS = (
    "pytest -q", "npm install", "mkdir -p build", "git commit -am done", "git add src/b.py",
    "pip install flask", "python src/b.py", "cat src/b.py", "ls -la | grep b", "echo a >&2",
    "rm -rf out", "echo done > run.log", "rm -f out/x run.log", "git checkout main",
    "git checkout -b topic", "sed s/a/b/ src/b.py", "grep -rn foo .", "ls src/b.py > /dev/null",
    "python -m black src/b.py", "npm run build 2>&1", "git status", "pip install 'x>=2'",
)  # fmt: skip
LANDS = {
    **{f"$ {command}": fenced("bash", command) for command in RUNS},
    "lines of the base": f"In src/b.py:\n\n{fenced('python', 'p = 1')}",
    "lines of the base under their path": f"src/b.py\n{fenced('python', 'p = 1')}",
    "the result": f"Now it reads:\n\n{fenced('python', 'x = 3')}",
    "what the edit does": fenced("", "-x = 1\n+x = 3"),
    "paths line by line": "Files:\nsrc/a.py\nsrc/b.py\n\nDone.\n",
    "words": "It sets `x` to 3; see src/b.py, docs/x.md and `foo()`.\n",
    "a heading": "### src/b.py\n\nis as it was.\n",
}
SHOWN = {
    "a traceback": fenced("", "Traceback (most recent call last):\nOSError: no space"),
    "a nested fence": f"````markdown\nRun:\n\n{fenced('sh', 'make')}````\n",
    "a fence with two ends": f"src/b.py\n{fenced('md', 'p')}{fenced('', 'q')}",
}
"""May be shown or meant, so a person looks; nothing of it refuses the edit."""


@pytest.mark.parametrize("name", [*LANDS, *SHOWN])
def test_what_is_no_change_refuses_nothing(bench: Bench, name: str) -> None:
    text = {**LANDS, **SHOWN}[name]
    for response in (f"{text}\n{BLOCK}", f"{BLOCK}\n{text}"):
        row = Row(name, A, response, DONE, state="applied", config=AUTO)
        if name in SHOWN:
            row = Row(name, A, response, DONE, warnings=("response.beside",))
        check(bench, row)


def test_a_place_is_told_with_its_line_and_what_to_do(bench: Bench) -> None:
    text = f"{BLOCK}\nAnd:\n\n{fenced('python', 'x = 3' + chr(10) + 'TIMEOUT = 5')}"
    problem = bench.decide(Row("", A, text)).decision.problems[0]
    assert (problem.line, problem.severity) == (12, "warning")
    assert problem.message.startswith("line 12: code stands beside the edits and went nowhere: ")
    assert "`TIMEOUT = 5`" in problem.message
