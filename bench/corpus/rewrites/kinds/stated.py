"""Changes in no form of edits, beside some that are: code, raw tokens, records, commands."""

from __future__ import annotations

import html
from dataclasses import replace

from bench.corpus.rewrites.kinds.beside import sample
from bench.corpus.rewrites.registry import Brief, Rewrite, exact, kind, nothing_new, refuse

BEFORE = {"notes/old_list.txt": "one\ntwo\n", "notes/data.json": '{\n "version": "1"\n}\n'}
PATH = "notes/old_list.txt"
ARGUMENTS = f'{{"path": "{PATH}", "content": "eins\\\\ntwo\\\\n"}}'


def _fenced(info: str, text: str) -> str:
    return f"```{info}\n{text}\n```\n"


for _name, _text in {
    "a tool's code": _fenced(
        "tool_code", f"print(default_api.write_file(path='{PATH}', content='eins\\n'))"
    ),
    "a function's call": _fenced("python", f"write_file('{PATH}', 'eins\\ntwo\\n')"),
    "a file opened to be written": _fenced(
        "python", f"with open('{PATH}', 'w') as out:\n    out.write('eins\\n')"
    ),
    "a path that writes": _fenced("python", f"Path('{PATH}').write_text('eins\\n')"),
    "a script in a shell": _fenced(
        "bash", f"python - <<'EOF'\nopen('{PATH}', 'w').write('eins')\nEOF"
    ),
    "JavaScript": _fenced("js", f"fs.writeFileSync('{PATH}', 'eins\\n');"),
    "tokens of Mistral": f"[TOOL_CALLS]write_file[ARGS]{ARGUMENTS}\n",
    "tokens of Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0"
    f"<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>\n",
    "an action and its input": f"Action: write_file\nAction Input: {ARGUMENTS}\n",
    "TOML": _fenced("toml", f'file = "{PATH}"\nold = "one"\nnew = "eins"'),
    "YAML": _fenced("yaml", f"- path: {PATH}\n  before: one\n  after: eins"),
    "JSON": _fenced("json", f'{{"filename": "{PATH}", "search": "one", "replace": "eins"}}'),
    "files in JSON": _fenced(
        "json", f'{{"files": [{{"path": "{PATH}", "content": "eins\\ntwo\\n"}}]}}'
    ),
    "JSON Patch": _fenced(
        "json", f'[{{"op": "replace", "path": "/{PATH}", "value": "eins\\ntwo\\n"}}]'
    ),
    "JSON Patch of data": "The version in notes/data.json goes up.\n\n"
    + _fenced("json", '[{"op": "replace", "path": "/version", "value": "2"}]'),
    "ed": _fenced("ed", f"{PATH}\n1c\neins\n.\nw"),
    "vim": _fenced("", ":%s/one/eins/\n:wq"),
    "a notebook's cell": _fenced("python", f"%%writefile {PATH}\neins\ntwo"),
    "org": f"#+BEGIN_SRC text :tangle {PATH}\neins\n#+END_SRC\n",
    "AsciiDoc": f".{PATH}\n[source,text]\n----\neins\n----\n",
    "an archive": f"-- {PATH} --\neins\n",
    "CriticMarkup": f"In {PATH}: {{~~one~>eins~~}}\n",
    "words": f"Also change `one` to `eins` in `{PATH}`.\n",
}.items():
    sample(f"stated: {_name}", "stated", BEFORE, f"And more:\n\n{_text}", None)

for _name, _text in {
    "code that reads": _fenced("python", f"open('{PATH}').read()\nPath('{PATH}').exists()"),
    "code of no file": _fenced("python", "open('out.csv', 'w').write('1')"),
    "a traceback of code that writes": _fenced(
        "", f"Traceback (most recent call last):\n    open('{PATH}', 'w')\nOSError: no space"
    ),
    "a linter's report": _fenced(
        "json", f'[{{"filename": "{PATH}", "message": "long", "fix": {{"content": "a\\n"}}}}]'
    ),
    "tokens of a call that reads": f'[TOOL_CALLS]read_file[ARGS]{{"path": "{PATH}"}}\n',
    "an editor's tip": "In vim, `:%s/one/eins/` would do it in any file.\n",
    "words of what could be": f"You could change `one` to `eins` in `{PATH}`, too.\n",
}.items():
    sample(f"shown: {_name}", "stated", BEFORE, f"And more:\n\n{_text}", {})


@kind("entities where no marker needs an escape", "escapes")
def _entities(brief: Brief) -> Rewrite | None:
    """Of the whole response; quotes without a sign resolve, and would land the entities."""
    response = brief.response()
    escaped = html.escape(response, quote=False)
    if brief.form.family == "blocks" and "------- SEARCH" not in response:
        return None
    if escaped == response or all(
        html.escape(c.new or "", quote=False) == c.new for c in brief.changes
    ):
        return None
    return refuse(escaped)


@kind("an entity in a file that has some", "escapes")
def _meant(brief: Brief) -> Rewrite | None:
    able = [c for c in brief.replacements() if c.path.endswith((".md", ".html", ".txt", ".rst"))]
    if not able or brief.form.family == "mail":
        return None
    before = {
        p: t + "Q &amp; A\n" if p == able[0].path else t for p, t in brief.task.before.items()
    }
    added = replace(able[0], new=(able[0].new or "") + "R &amp; D\n")
    if brief.form.family == "files":
        return None
    changes = [added if c is able[0] else c for c in brief.changes]
    result = dict(brief.task.result())
    result[added.path] = (
        result[added.path].replace(able[0].new or "", added.new or "", 1) + "Q &amp; A\n"
    )
    return exact(brief.response(changes), result, before=before)


@kind("a second delivery of edits that build on each other", "there already")
def _chain_again(brief: Brief) -> Rewrite | None:
    able = brief.replacements()
    if not able or brief.form.family in {"patch", "mail", "json", "files"}:
        return None
    c = brief.dice.choice(able)
    middle, last = "middle_step_of_the_chain = 1\n", "last_step_of_the_chain = 1\n"
    first = replace(c, new=(c.old or "") + middle)
    text = brief.task.before[c.path].replace(c.old or "", (c.old or "") + last, 1)
    before = {**brief.task.before, c.path: text}
    return nothing_new(brief.response([first, replace(c, old=middle, new=last)]), before)
