"""What is near to another kind, clear today, and to stay so."""

from __future__ import annotations

from collections.abc import Mapping

from bench.corpus.rewrites.forms import language
from bench.corpus.rewrites.registry import Brief, Rewrite, Writer, exact, kind
from bench.corpus.rewrites.tasks import Change


@kind("near: fence of four under its path", "neighbours")
def _four(brief: Brief) -> Rewrite | None:
    if brief.form.name != "search_replace":
        return None
    parts = []
    for c in brief.changes:
        path, _, block = brief.response([c]).partition("\n")
        parts.append(f"{path}\n````{language(c.path)}\n{block}````\n")
    return exact("\n".join(parts))


@kind("near: info with the path over a block", "neighbours")
def _info_block(brief: Brief) -> Rewrite | None:
    if brief.form.name != "search_replace":
        return None
    colon = brief.dice.choice([":", " "])
    parts = []
    for c in brief.changes:
        block = brief.response([c]).partition("\n")[2]
        parts.append(f"```{language(c.path)}{colon}{c.path}\n{block}```\n")
    return exact("\n".join(parts))


@kind("near: details", "neighbours")
def _details(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    aside = "<details>\n<summary>Why</summary>\n\nIt was asked for.\n\n</details>\n"
    return exact(f"{aside}\n{brief.response()}")


@kind("near: a readme in a new folder", "neighbours")
def _readme(brief: Brief) -> Rewrite | None:
    if not brief.form.creates or brief.form.family == "files":
        return None
    creation = Change("examples/new-thing/README.md", None, "# A new thing\n\nSome words.\n")
    after = {**brief.task.result(), creation.path: creation.new or ""}
    if not brief.form.expresses(creation):
        return None
    return exact(brief.response([*brief.changes, creation]), after)


@kind("near: a command in prose", "neighbours")
def _command_prose(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    return exact(f"Run `rm -rf build` first if you like, then `pytest`.\n\n{brief.response()}")


@kind("near: a tag named in prose", "neighbours")
def _inline_tag(brief: Brief) -> Rewrite | None:
    if not brief.form.in_text:
        return None
    return exact(
        f"The `<draft>` tag is not needed. I <b>changed</b> what was asked.\n\n{brief.response()}"
    )


@kind("near: a whole file whose path a sentence names too", "neighbours")
def _info_path(brief: Brief) -> Rewrite | None:
    if brief.form.name != "whole_file":
        return None
    return exact(
        "\n".join(
            f"Here is `{c.path}`:\n\n````{language(c.path)}:{c.path}\n{c.new}````\n"
            for c in brief.changes
        )
    )


PROSE: Mapping[str, tuple[str, str]] = {
    "a heading underlined with =": ("Summary\n=======\n\nOne change.\n\n", ""),
    "a heading underlined with -": ("Summary\n-------\n\nOne change.\n\n", ""),
    "a lone run of = below": ("", "\n=======\n\nDone.\n"),
    "rules between paragraphs": ("First this.\n\n***\n\nThen that.\n\n", ""),
    "a sentence about the target": ("Target audience: everyone who reads it.\n\n", ""),
    "a table": ("| file | change |\n|---|---|\n| one | yes |\n\n", ""),
    "a link": ("See [the file]({path}) for more.\n\n", ""),
    "a marker in a sentence": ("The `<<<<<<< SEARCH` marker opens a block.\n\n", ""),
    "JSON that is no edit": ("", '\n```json\n{"name": "x", "version": 1}\n```\n'),
    "a list in JSON": ("", '\n```json\n["a", "b"]\n```\n'),
    "a folder removed that the base lacks": ("", "\n```bash\nrm -rf build/\n```\n"),
    "folders made": ("", "\n```sh\nmkdir -p out/logs\n```\n"),
    "a line printed": ("", "\n```bash\necho done\n```\n"),
    "output kept elsewhere": ("", "\n```bash\npytest -q > /tmp/out.txt\n```\n"),
    "a commit and a push": ("", '\n```bash\ngit add -A\ngit commit -m "x"\ngit push\n```\n'),
    "a program from a heredoc": ("", "\n```bash\npython - <<'EOF'\nprint(1)\nEOF\n```\n"),
    "a prompt and its output": ("", "\n```console\n$ pytest -q\n3 passed\n```\n"),
    "a traceback": (
        'It failed with\n\n```\nTraceback (most recent call last):\n  File "{path}", line 3\n'
        "KeyError: 1\n```\n\n", ""),
    "a diffstat": ("", "\n```\n {path} | 2 +-\n 1 file changed, 1 insertion(+)\n```\n"),
    "a use of it": ("", "\nNow one can write\n\n```python\nprint(thing(1))\n```\n"),
    "an empty fence": ("", "\n```\n```\n"),
    "a question at the end": ("", "\nShall I change `{path}`, too?\n"),
    "a comment in HTML": ("<!-- as asked -->\n\n", ""),
    "signs of other scripts": ("Das \u00e4ndert \u2014 \u6539\u4e86 \U0001f680.\n\n", ""),
    "a list of what was done": ("1. `{path}`: looked at\n2. tests: run\n\n", ""),
    "a quotation of the task": ("> Change it, please.\n> All of it.\n\n", ""),
    "a diagram": ("", "\n```mermaid\ngraph TD\n  A --> B\n```\n"),
    "a query": ("", "\n```sql\nselect 1;\n```\n"),
    "YAML that configures nothing here": ("", "\n```yaml\nkey: value\n```\n"),
    "a tree of folders": ("", "\n```\n.\n\u251c\u2500\u2500 a.py\n\u2514\u2500\u2500 b.py\n```\n"),
    "boxes that are ticked": ("- [x] read\n- [ ] tested\n\n", ""),
    "bullets of + and -": ("", "\n+ added a test\n- removed the old one\n"),
    "a signature": ("", "\n-- \nThe agent\n"),
    "a commit's subject": ("feat(core): change what was asked\n\n", ""),
    "a trailer": ("", "\nCo-authored-by: Ada <ada@example.org>\n"),
    "a fence of tildes": ("", "\n~~~sh\nmake\n~~~\n"),
    "a fence in a list": ("", "\n- like so:\n\n  ```sh\n  make\n  ```\n"),
    "words that begin like markers": ("I had to search and replace, = is not ==.\n\n", ""),
    "the word thinking": ("I am <thinking> about it, and [THINK] is a word.\n\n", ""),
    "blank lines round all": ("\n\n\n", "\n\n\n"),
    "a footnote": ("It works[^1].\n\n", "\n[^1]: It should.\n"),
    "an admonition": ("> [!NOTE]\n> Read this.\n\n", ""),
    "and/or": ("Change one and/or the other, e.g. a/b or c/d.\n\n", ""),
}  # fmt: skip
"""What may stand above and below the edits; `{path}` is one of the base."""


def _beside(name: str) -> Writer:
    lead, tail = PROSE[name]

    def write(brief: Brief) -> Rewrite | None:
        if not brief.form.in_text or (brief.ends_open and "```" in tail):
            return None
        if brief.form.name == "unified_diff" and tail.startswith("\n--"):
            return None
        path = brief.dice.choice([p for p in brief.task.before if "." in p] or ["README.md"])
        text = f"{lead}{{response}}{tail}".replace("{path}", path)
        return exact(text.replace("{response}", brief.response()))

    return write


for _name in PROSE:
    kind(f"near: {_name}", "neighbours")(_beside(_name))
