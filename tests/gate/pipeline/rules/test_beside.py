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
FENCES = {
    "a heading over a fence": f"### src/b.py\n\n{fenced('python', 'p = 9')}",
    "a sentence over a fence": f"And in `src/b.py`:\n\n{fenced('python', 'p = 9')}",
    "a path over a fence": f"src/b.py\n{fenced('python', 'p = 9')}",
    "a new path over a fence": f"src/c.py\n{fenced('python', 'p = 9')}",
    "a label over a fence": f"File: src/b.py\n{fenced('python', 'p = 9')}",
    "a path as the info": fenced("src/b.py", "p = 9"),
    "a comment": fenced("python", "# src/b.py\np = 9"),
    "a fence of tildes": "In src/b.py:\n~~~python\np = 9\n~~~\n",
    "a fence in a list": "- In src/b.py:\n\n  ```python\n  p = 9\n  ```\n",
    "a fence in a quotation": "> In src/b.py:\n>\n> ```python\n> p = 9\n> ```\n",
    "a fence of tags": "In src/b.py:\n<code>\np = 9\n</code>\n",
    "an open fence": "In src/b.py:\n\n```python\np = 9\n",
    "a fence without a language": f"Set it in src/b.py:\n\n{fenced('', 'p = 9')}",
    "a diff without a header": fenced("diff", "-p = 1\n+p = 9"),
}
CODE = {
    "a tool's code": fenced(
        "tool_code", "print(default_api.write_file(path='src/b.py', content='p = 9'))"
    ),
    "open": fenced("python", "with open('src/b.py', 'w') as f:\n    f.write('p = 9\\n')"),
    "a notebook": fenced("python", "%%writefile src/b.py\np = 9"),
}
CALLED = {
    "Llama's call": '<|python_tag|>write_file.call(path="src/b.py", content="p = 9")\n',
    "Kimi's call": "<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0"
    f"<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>\n",
    "Mistral's call": f"[TOOL_CALLS]write_file[ARGS]{ARGUMENTS}\n",
    "Hermes's call": f'<tool_call>\n{{"name": "write_file", "arguments": {ARGUMENTS}}}\n</tool_call>\n',
    "a call of an unknown tool": f'{{"name": "put", "arguments": {ARGUMENTS}}}\n',
    "a bare file in JSON": f"{ARGUMENTS}\n",
    "Cline's tags": "<write_to_file>\n<path>src/n.py</path>\n<content>\nn = 1\n</content>\n"
    "</write_to_file>\n",
    "Cursor's tags": "<edit_file>\n<target_file>src/b.py</target_file>\n<code_edit>\n# ...\n"
    "p = 9\n</code_edit>\n</edit_file>\n",
    "a file's tag": '<file path="src/n.py">\nn = 1\n</file>\n',
    "a tag that deletes": '<delete_file path="src/b.py"/>\n',
    "a command in a tag": "<execute_command>\n<command>rm src/b.py</command>\n</execute_command>\n",
    "a shell's call": '{"name": "bash", "arguments": {"command": "rm src/b.py"}}\n',
}
RECORDS = {
    "TOML": fenced("toml", 'file = "src/b.py"\nold = "p = 1"\nnew = "p = 9"'),
    "YAML": fenced("yaml", "file: src/b.py\nsearch: p = 1\nreplace: p = 9"),
    "JSON": fenced("json", '{"filename": "src/b.py", "original": "p = 1", "replacement": "p = 9"}'),
    "JSON over lines": '{\n  "target_file": "src/b.py",\n  "code_edit": "p = 9"\n}\n',
    "Windsurf's object": fenced(
        "json", '{"TargetFile": "src/b.py", "ReplacementChunks": [{"TargetContent": "p = 1"}]}'
    ),
    "a map": fenced("json", '{"src/b.py": "p = 9\\nq = 2\\n"}'),
    "JSON Patch without a fence": '[{"op": "replace", "path": "/version", "value": "9"}]\n',
    "half a call": '{"path": "src/b.py", "new_string": "p = 9"}\n',
    "a broken call": '{"path": "src/b.py", "old_string": "p = 1", "new_string": "p = "9""}\n',
}
OTHERS = {
    "ed": fenced("ed", "src/b.py\n1c\np = 9\n.\nw"),
    "a patch for git": "*** Update File: src/b.py\n@@\n-p = 1\n+p = 9\n*** End Patch\n",
    "a context diff": "*** src/b.py\n--- src/b.py\n***************\n*** 1,2 ****\n! p = 1\n--- 1,2 ----\n! p = 9\n",
    "a hunk without a file": "@@ -1,2 +1,2 @@\n-p = 1\n+p = 9\n q = 2\n",
    "a FILE line that never ends": "FILE: src/b.py\np = 9\n",
    "half a pair": f"FILE: src/b.py\n\nFIND:\n{fenced('', 'p = 1')}",
    "lines under a path": "src/b.py:\np = 9\nq = 9\n",
    "org": "#+BEGIN_SRC python :tangle src/b.py\np = 9\n#+END_SRC\n",
    "an archive": "-- src/b.py --\np = 9\n",
    "words that change": "Also change `p = 1` to `p = 9` in `src/b.py`.\n",
    "a table": "| file | old | new |\n|---|---|---|\n| src/b.py | `p = 1` | `p = 9` |\n",
}
MARKERS = {
    f"markers {old!r}": marked(old, new)
    for old, new in (
        ("SEARCH", "REPLAC"), ("Search", "Replace"), ("SEARCH src/b.py", "REPLACE"),
    )
} | {
    "dashes": "src/b.py\n------- SEARCH\np = 1\n=======\np = 9\n+++++++ NEW\n",
    "a block in bold": "src/b.py\n**<<<<<<< SEARCH**\np = 1\n**=======**\np = 9\n**>>>>>>> REPLACE**\n",
    "a block of entities": marked("SEARCH", "REPLACE").replace("<", "&lt;").replace(">", "&gt;"),
    "a block without its end": marked("SEARCH", "REPLACE").replace(">>>>>>> REPLACE\n", ""),
    "a block without its beginning": marked("SEARCH", "REPLACE").replace("<<<<<<< SEARCH\n", ""),
    "a block without a divider": marked("SEARCH", "REPLACE").replace("=======\n", ""),
    "a block with two dividers": marked("SEARCH", "REPLACE").replace("p = 9", "=======\np = 9"),
    "a block without a path": "Now `src/b.py`, see src/c.py:\n\n"
    + marked("SEARCH", "REPLACE").removeprefix("src/b.py\n"),
    "a fence with text behind its block": fenced(
        "", marked("SEARCH", "REPLACE") + "and q = 9"
    ),
    "a block behind bars": "".join(f"│ {line}\n" for line in marked("SEARCH", "REPLACE").splitlines()),
    "an open patch": "*** Begin Patch\n*** Update File: src/b.py\n@@\n-p = 1\n+p = 9\n",
}  # fmt: skip
PAIRS = {
    f"tags {old!r}": tagged(old, new)
    for old, new in (
        ("old", "new"), ("old_str", "new_str"),
    )
} | {
    f"a pair {old!r}": pair(old, new)
    for old, new in (
        ("Before:", "After:"), ("**Find this:**", "**Replace with:**"), ("查找:", "替换为："),
    )
} | {
    f"a part of the edits in <{tag}>": f"<{tag}>\n{BLOCK.replace('x = 1', 'y = 2')}</{tag}>\n"
    for tag in ("draft", "черновик")
}  # fmt: skip
COMMANDS = {
    f"$ {command}": fenced("bash", command)
    for command in (
        "rm src/b.py", "git rm src/b.py", "git mv src/b.py src/c.py", "cd src && rm b.py",
        "if true; then rm src/b.py; fi", "sed -Ei s/a/b/ src/b.py", "perl -pi -e s/a/b/ src/b.py",
        "git apply fix.patch", "patch -p1 < fix.patch", "echo x >> src/b.py",
        "cat > new.txt <<'EOF'\nx\nEOF", "echo 1 | tee new.txt", "npm pkg set version=9",
        "git checkout HEAD~1 -- src/b.py", "git reset --hard HEAD~1", "ed -s src/b.py",
        "find src -name '*.pyc' | xargs rm ", "curl -o src/b.py https://example.org/b.py",
    )
} | {
    "a prompt": "Then run\n\n$ rm src/b.py\n",
    "a console": fenced("console", "$ rm src/b.py"),
    "PowerShell that writes": fenced("pwsh", "'p = 9' | Out-File src/b.py"),
    "cmd": fenced("bat", "C:\\x> del src\\b.py"),
    "a command in a plain fence": fenced("", "rm src/b.py"),
    "a command in backticks": "Then run `rm src/b.py` once.\n",
}  # fmt: skip
WAYS = {**FENCES, **CODE, **CALLED, **RECORDS, **OTHERS, **MARKERS, **PAIRS, **COMMANDS}
SILENT = {
    "Mistral's call", "org", "an archive", "words that change", "a table", "tags 'old'",
    "$ curl -o src/b.py https://example.org/b.py", "a command in backticks",
}  # fmt: skip
"""Words, odd markups and programs: only a person can tell these from talk."""


@pytest.mark.parametrize("name", WAYS)
def test_no_second_change_is_lost_unseen(bench: Bench, name: str) -> None:
    for text in (f"{WAYS[name]}\n{BLOCK}", f"{BLOCK}\n{WAYS[name]}"):
        decision = bench.decide(Row(name, A, text, config=AUTO)).decision
        assert (decision.state == "applied") == (name in SILENT), decision.problems


def test_few_ways_are_silent() -> None:
    assert len(SILENT) <= 0.1 * len(WAYS)


RUNS = (
    "pytest -q", "mkdir -p build", "git commit -am done", "python src/b.py", "echo a >&2",
    "rm -rf out", "echo done > run.log", "git checkout -b topic", "sed s/a/b/ src/b.py",
    "ls src/b.py > /dev/null", "pip install 'x>=2'",
)  # fmt: skip
LANDS = {
    **{f"$ {command}": fenced("bash", command) for command in RUNS},
    "lines of the base": f"In src/b.py:\n\n{fenced('python', 'p = 1')}",
    "lines of the base under their path": f"src/b.py\n{fenced('python', 'p = 1')}",
    "the result": f"Now it reads:\n\n{fenced('python', 'x = 3')}",
    "what the edit does": fenced("", "-x = 1\n+x = 3"),
    "a list of files": "Files:\n- src/a.py\n- src/b.py\n",
    "words": "It sets `x` to 3; see src/b.py, docs/x.md and `foo()`.\n",
    "a tag of HTML in words": "A <b>bold</b> step, as List<String> is.\n",
    "a rule": "Above\n=======\n\nBelow\n-------\n\nEnd.\n",
}
SHOWN = {
    "usage": fenced("python", "from src.a import x\nprint(x)"),
    "a traceback": fenced("", "Traceback (most recent call last):\nOSError: no space"),
    "data": fenced("json", '{"name": "x", "n": 1}'),
    "a nested fence": f"````markdown\nRun:\n\n{fenced('sh', 'make')}````\n",
    "a conflict": fenced("", "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> topic"),
    "a fence with two ends": f"src/b.py\n{fenced('md', 'p')}{fenced('', 'q')}",
}
"""May be shown or meant, so a person looks; nothing of it refuses the edit."""


@pytest.mark.parametrize("text", LANDS.values(), ids=LANDS)
def test_what_changes_nothing_lets_the_edits_land(bench: Bench, text: str) -> None:
    for response in (f"{text}\n{BLOCK}", f"{BLOCK}\n{text}"):
        check(bench, Row("", A, response, DONE, state="applied", config=AUTO))


@pytest.mark.parametrize("text", SHOWN.values(), ids=SHOWN)
def test_what_is_shown_refuses_nothing(bench: Bench, text: str) -> None:
    for response in (f"{text}\n{BLOCK}", f"{BLOCK}\n{text}"):
        check(bench, Row("", A, response, DONE, warnings=("response.beside",)))


def test_a_place_is_told_with_its_line_and_what_to_do(bench: Bench) -> None:
    text = f"{BLOCK}\nAnd:\n\n{fenced('python', 'x = 3' + chr(10) + 'TIMEOUT = 5')}"
    problem = bench.decide(Row("", A, text)).decision.problems[0]
    assert (problem.line, problem.severity) == (12, "warning")
    assert problem.message.startswith("line 12: code stands beside the edits and went nowhere: ")
    assert "`TIMEOUT = 5`" in problem.message
