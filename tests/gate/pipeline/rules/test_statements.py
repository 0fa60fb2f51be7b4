"""Changes that are stated in no form of edits (docs/formats.md, Envelopes): refused, with the line,
beside edits and alone; what only shows, reads or reports them is prose."""

from __future__ import annotations

import pytest

from tests.helpers.deciding import Bench, Row, check

A = {
    "src/a.py": "x = 1\ny = 2\n",
    "src/b.py": "p = 1\nq = 2\n",
    "package.json": '{\n "version": "1"\n}\n',
}
DONE = {"src/a.py": "x = 3\ny = 2\n"}
BLOCK = "src/a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n"
UNREADABLE = ("response.unreadable_edit",)


def fenced(info: str, text: str) -> str:
    return f"```{info}\n{text}\n```\n"


ARGUMENTS = '{"path": "src/b.py", "content": "p = 9"}'
CODE = {
    "a tool's code": fenced(
        "tool_code", "print(default_api.write_file(path='src/b.py', content='p = 9'))"
    ),
    "a path that comes last": fenced("python", "api.edit_file(text='p = 9', path='src/b.py')"),
    "write_file": fenced("python", "write_file('src/b.py', 'p = 9\\n')"),
    "open": fenced("python", "with open('src/b.py', 'w') as f:\n    f.write('p = 9\\n')"),
    "open on one line": fenced("python", "open('src/b.py', mode='wb').write(b'p = 9\\n')"),
    "Path": fenced("python", "Path('src/b.py').write_text('p = 9\\n')"),
    "Path by name": fenced("python", "p = Path('src/b.py')\np.write_text('p = 9\\n')"),
    "a new file": fenced("python", "Path('src/new.py').write_text('p = 9\\n')"),
    "in a shell": fenced("bash", "python - <<'EOF'\nopen('src/b.py', 'w').write('p = 9')\nEOF"),
    "JavaScript": fenced("js", "fs.writeFileSync('src/b.py', 'p = 9\\n');"),
    "a removal": fenced("python", "os.remove('src/b.py')"),
    "C#": fenced("csharp", 'File.WriteAllText("src/b.py", "p = 9");'),
    "a title": fenced('python title="src/b.py"', "p = 9\nq = 9"),
    "a title of a new file": fenced('python title="src/new.py"', "p = 9\nq = 9"),
    "an attribute": fenced("{.python file=src/b.py}", "p = 9\nq = 9"),
    "a comment with a label": fenced("python", "# filepath: src/b.py\np = 9\nq = 9"),
    "a comment with File": fenced("python", "# File: src/b.py\np = 9\nq = 9"),
    "a comment of HTML": fenced("html", "<!-- src/new.html -->\n<p>\n</p>"),
    "a notebook": fenced("python", "%%writefile src/b.py\np = 9"),
}
CALLED = {
    "Llama": '<|python_tag|>write_file.call(path="src/b.py", content="p = 9")\n',
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0"
    f"<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>\n",
    "Mistral": f"[TOOL_CALLS]write_file[ARGS]{ARGUMENTS}\n",
    "Mistral's list": f'[TOOL_CALLS][{{"name": "write_file", "arguments": {ARGUMENTS}}}]\n',
    "Granite": f'<|tool_call|>[{{"name": "write_file", "arguments": {ARGUMENTS}}}]\n',
    "words": f"Action: write_file\nAction Input: {ARGUMENTS}\n",
    "an agent's command": "str_replace_editor create --path src/b.py --file_text 'p = 9'\n",
    "an agent's lines": fenced("", "edit 1:1\np = 9\nend_of_edit"),
}
TAGS = {
    "a tag that deletes": '<delete_file path="src/b.py"/>\n',
    "a tag that renames": '<rename_file from="src/b.py" to="src/c.py" />\n',
    "a tag that writes": '<write_file path="src/b.py" content="if p > 1:\n    p = 9\n"/>\n',
    "a tag that makes a file": "I add it: <createFile path='src/c.py' content='p = 9'/>\n",
    "a tag that moves": '<move\n  source="src/b.py"\n  target="src/c.py"\n/>\n',
    "a tag with a prefix": '<fs:remove path="src/b.py"/>\n',
    "a tag with quotes in quotes": r'<write_file path="src/b.py" content="f(\"x\")"/>' + "\n",
    "a tag that names the call": '<tool name="delete_file" path="src/b.py"/>\n',
    "a tag with an action": '<file path="src/b.py" action="delete"/>\n',
    "a tag in a fence": fenced("", '<delete_file path="src/b.py"/>'),
    "a tag in a fence of XML": fenced("xml", '<delete_file path="src/b.py"/>'),
}
RECORDS = {
    "TOML": fenced("toml", 'file = "src/b.py"\nold = "p = 1"\nnew = "p = 9"'),
    "YAML": fenced("yaml", "file: src/b.py\nsearch: p = 1\nreplace: p = 9"),
    "blocks of YAML": fenced(
        "yaml", "edits:\n  - path: src/b.py\n    before: |\n      p = 1\n    after: |\n      p = 9"
    ),
    "a file in YAML": fenced("yaml", "files:\n  - path: src/b.py\n    content: |\n      p = 9"),
    "plain": "file: src/b.py\nold: p = 1\nnew: p = 9\n",
    "JSON": fenced("json", '{"filename": "src/b.py", "original": "p = 1", "replacement": "p = 9"}'),
    "files in JSON": fenced("json", '{"files": [{"path": "src/b.py", "content": "p = 9\\n"}]}'),
    "a map": fenced("json", '{"src/b.py": "p = 9\\nq = 2\\n"}'),
    "a deletion": fenced("json", '{"action": "delete", "path": "src/b.py"}'),
    "JSON Patch of a file": fenced(
        "json", '[{"op": "replace", "path": "/src/b.py", "value": "p = 9"}]'
    ),
    "JSON Patch of data": "The version in package.json goes up.\n\n"
    + fenced("json", '[{"op": "replace", "path": "/version", "value": "9"}]'),
}
OTHERS = {
    "ed": fenced("ed", "src/b.py\n1c\np = 9\n.\nw"),
    "ed in a shell": fenced("bash", "ed -s src/b.py <<'EOF'\n1c\np = 9\n.\nw\nEOF"),
    "ex": fenced("bash", "ex -sc '1c|p = 9' -cx src/b.py"),
    "vim": fenced("", ":%s/p = 1/p = 9/g\n:wq"),
    "yq": fenced("bash", "yq -i '.version = \"9\"' package.json"),
    "npm's fields": fenced("bash", "npm pkg set version=9"),
    "npm's fields in words": "Then `npm pkg delete version` does the rest.\n",
    "sd": fenced("bash", "sd 'p = 1' 'p = 9' src/b.py"),
    "sponge": fenced("bash", "jq '.version = 9' package.json | sponge package.json"),
    "curl": fenced("bash", "curl -o src/b.py https://example.org/b.py"),
    "a link": fenced("bash", "ln -sf a.py src/b.py"),
    "org": "#+BEGIN_SRC python :tangle src/b.py\np = 9\n#+END_SRC\n",
    "reStructuredText": ".. code-block:: python\n   :caption: src/b.py\n\n   p = 9\n",
    "AsciiDoc": ".src/b.py\n[source,python]\n----\np = 9\n----\n",
    "AsciiDoc's title": '[source,python,title="src/b.py"]\n----\np = 9\n----\n',
    "noweb": "<<src/b.py>>=\np = 9\n@\n",
    "an archive": "-- src/b.py --\np = 9\n",
    "a rule": "===== src/b.py =====\np = 9\n",
    "a rule with a word": "--- FILE: src/b.py ---\np = 9\n--- END ---\n",
    "CriticMarkup": "In src/b.py: {~~p = 1~>p = 9~~}\n",
    "CriticMarkup in two": "src/b.py\n{--p = 1--}{++p = 9++}\n",
}
TOLD = {
    "words": "Also change `p = 1` to `p = 9` in `src/b.py`.\n",
    "words of the past": "I changed `p = 1` to `p = 9` in src/b.py, too.\n",
    "an arrow": "src/b.py: `p = 1` → `p = 9`\n",
}
SHELL = {
    "npm's fields",
    "npm's fields in words",
    "ed in a shell",
    "ex",
    "yq",
    "sd",
    "sponge",
    "curl",
    "a link",
}
"""Alone, commands are only talked of."""
STATED = [
    Row(f"{name}: {how}", A, response, codes=UNREADABLE)
    for name, text in {**CODE, **CALLED, **TAGS, **RECORDS, **OTHERS, **TOLD}.items()
    for how, response in {
        "behind": f"{BLOCK}\n{text}",
        "before": f"{text}\n{BLOCK}",
        "alone": text,
    }.items()
    if how != "alone" or name not in SHELL | TOLD.keys()
]
SHOWN = {
    "code that reads": fenced("python", "open('src/b.py').read()\nPath('src/b.py').read_text()"),
    "code of no file": fenced("python", "open('out.txt', 'w').write('1')\nPath('x/y').mkdir()"),
    "a list of paths": fenced("python", "paths.remove('src/b.py')\nx.replace('src/b.py', 'y')"),
    "a test's call": fenced("python", "check('src/b.py', 'p')\nload(path='src/b.py')"),
    "a traceback": fenced(
        "", "Traceback (most recent call last):\n    open('src/b.py', 'w')\nOSError: no space"
    ),
    "a log": fenced("console", "$ pytest\nopen('src/b.py', 'w') failed"),
    "a linter's report": fenced(
        "json",
        '[{"filename": "src/b.py", "fix": {"edits": [{"content": "import a\\n"}]}, '
        '"message": "unused"}]',
    ),
    "a title that is no path": fenced('python title="How to"', "p = 9"),
    "a file that is shown under its title": fenced('python title="src/b.py"', "p = 1\nq = 2"),
    "a comment of SQL": fenced("sql", "-- all.of them\nselect 1"),
    "coverage": fenced("json", '{"files": {"src/b.py": {"summary": {"lines": 2}}}}'),
    "a manifest": fenced("json", '{"files": ["src/b.py"], "main": "src/b.py"}'),
    "a workflow": fenced("yaml", "on:\n  paths:\n    - src/b.py\nwith:\n  path: src/b.py"),
    "an API's body": fenced("http", '[{"op": "replace", "path": "/name", "value": "x"}]'),
    "commands": fenced(
        "bash",
        "npm install\nnpm pkg get version\nvim src/a.py\nyq .a package.json\ncurl https://x.org",
    ),
    "an editor's tip": "In vim, `:%s/a/b/g` does that; `Path('src/b.py').write_text('')`.\n",
    "tokens in words": "It begins with `[TOOL_CALLS]`, or with `Action Input:`.\n",
    "a call that reads": '[TOOL_CALLS]read_file[ARGS]{"path": "src/b.py"}\n',
    "a tag that reads": '<read_file path="src/b.py"/>\n<open_file path="src/b.py"/>\n',
    "a tag in backticks": 'Not by `<delete_file path="src/b.py"/>`.\n',
    "a tag that is not closed": '<move path="src/b.py" slow>\n\nA line <br/>.\n',
    "a tag of no file": '<delete_file path="other/b.py"/>\n<move to="left"/>\n',
    "a tag of HTML": '<img src="src/b.py"/>\n<input type="file" name="src/b.py"/>\n<br/>\n',
    "tags of HTML": fenced("html", '<edit path="src/b.py"/>\n<script src="src/b.py"/>'),
    "tags of JSX": fenced("jsx", '<DeleteFile path="src/b.py" />\n<Move to="src/b.py" />'),
    "an action": "Action: deploy\n\nThen look at the log.\n",
    "a report": fenced("text", "===== src/b.py =====\n2 passed\n-- src/b.py --"),
    "a session": "=============== test session starts ===============\n",
    "an included file": ".. literalinclude:: src/b.py\n   :caption: src/b.py\n",
    "what the edit does": "Changed `x = 1` to `x = 3` in `src/a.py`.\n",
    "what could be done": "You could change `p = 1` to `p = 9` in `src/b.py`, too.\n",
    "what stands there": "Renamed `r = 1` to `p = 1` in `src/b.py` before.\n",
    "braces": fenced("c", "for (;;) {--i; j++;}"),
    "times": "path: src/b.py is unchanged\n",
}
NEW = "".join(
    f"{line}\n"
    for line in (
        "write_file('src/b.py', 'p')", "open('src/b.py', 'w')", "%%writefile src/b.py",
        ":%s/a/b/g", "[TOOL_CALLS]write_file[ARGS]{}", "file: src/b.py", "old: a", "new: b",
        "{~~a~>b~~}", "#+BEGIN_SRC python :tangle src/b.py", "-- src/b.py --",
    )
)  # fmt: skip
PROSE = [
    *(
        Row(f"{name}: {how}", A, response, DONE)
        for name, text in SHOWN.items()
        for how, response in {"behind": f"{BLOCK}\n{text}", "before": f"{text}\n{BLOCK}"}.items()
    ),
    *(
        Row(f"a block under {info}", A, f"```{info}\n{BLOCK.partition(chr(10))[2]}```\n", DONE)
        for info in ('python title="src/a.py"', "python file=src/a.py", "{.python file=src/a.py}")
    ),
    Row(
        "the use of what an edit writes",
        A,
        "src/a.py\n<<<<<<< SEARCH\nx = 1\n=======\ndef write_file(path, t): ...\n>>>>>>> REPLACE\n"
        "\nSo:\n\n" + fenced("python", "write_file('src/b.py', 'p')"),
        {"src/a.py": "def write_file(path, t): ...\ny = 2\n"},
    ),
    Row(
        "all of it in an edit's text",
        {**A, "notes.txt": "one\ntwo\n"},
        f"notes.txt\n<<<<<<< SEARCH\none\n=======\n{NEW}>>>>>>> REPLACE\n",
        {"notes.txt": f"{NEW}two\n"},
    ),
    Row(
        "all of it in a file",
        A,
        f"````markdown:docs/tools.md\n# Tools\n\n```\n{NEW}```\n````\n\n{BLOCK}",
        {**DONE, "docs/tools.md": f"# Tools\n\n```\n{NEW}```\n"},
    ),
]


@pytest.mark.parametrize("row", [*STATED, *PROSE], ids=lambda row: row.name)
def test_statements(bench: Bench, row: Row) -> None:
    check(bench, row)
