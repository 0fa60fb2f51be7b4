"""JSON that says where and what: edit scripts, indexed and contextual edits."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bench.corpus.rewrites.kinds.beside import fenced, sample
from bench.corpus.rewrites.registry import Brief, Rewrite, kind, refuse

SHAPES = '''\
import os
import sys

LIMIT = 10


@cached
def area(width, height):
    """The area."""
    total = width * height
    return total


class Shape:
    name = "shape"

    def scale(self, factor):
        self.size = self.size * factor
        return self


def last(items):
    return items[-1]
'''
PATH = "tools/shapes.py"
_LAST = "def last(items):\n    return items[-1]\n"
_AREA = SHAPES[SHAPES.index("@cached") : SHAPES.index("\n\nclass Shape")]
Anchor = Mapping[str, object]


def _line(text: str) -> Anchor:
    return {"type": "line_pattern", "selected": text}


def _function(name: str) -> Anchor:
    return {"type": "function_definition", "name": name}


def _script(type_: str, anchor: Anchor, content: str = "", **more: object) -> str:
    edit = {"type": type_, "anchor": anchor, "content": content, **more}
    return fenced({"file": PATH, "edits": [edit]})


_IMPORT = {"type": "import_statement", "selected": "import sys"}
_DECORATOR = {"type": "decorator", "selected": "@cached"}
_CLASS = {"type": "class_definition", "name": "Shape"}
_WHOLE = "def last(items, default=None):\n    if not items:\n        return default\n"
_SCRIPTS = (
    ("insert after a line", _script("insert_after", _line("LIMIT = 10"), "MOST = 20\n"),
     SHAPES.replace("LIMIT = 10\n", "LIMIT = 10\nMOST = 20\n")),
    ("content without a final newline", _script("insert_before", _IMPORT, "import re"),
     SHAPES.replace("import sys\n", "import re\nimport sys\n")),
    ("content with a blank line at its end", _script("insert_after", _IMPORT, "import re\n\n"),
     SHAPES.replace("import sys\n", "import sys\nimport re\n\n")),
    ("delete a line", _script("delete", _line('    """The area."""')),
     SHAPES.replace('    """The area."""\n', "")),
    ("replace a line", _script("replace", _line("LIMIT = 10"), "LIMIT = 20\n"),
     SHAPES.replace("LIMIT = 10", "LIMIT = 20")),
    ("replace a decorator", _script("replace", _DECORATOR, "@cached()\n"),
     SHAPES.replace("@cached\n", "@cached()\n")),
    ("insert after a definition",
     _script("insert_after", _function("area"), "\n\ndef side(area):\n    return area / 2\n"),
     SHAPES.replace(_AREA, _AREA + "\n\ndef side(area):\n    return area / 2\n")),
    ("insert before a definition's decorators",
     _script("insert_before", _function("area"), "@property\n"),
     SHAPES.replace("@cached\n", "@property\n@cached\n")),
    ("insert after a class", _script("insert_after", _CLASS, "\n\nEMPTY = None\n"),
     SHAPES.replace("        return self\n", "        return self\n\n\nEMPTY = None\n")),
    ("delete a definition", _script("delete", _function("last")), SHAPES.replace(_LAST, "")),
    ("replace a definition's header",
     _script("replace", _function("area"), "def area(width, height, depth=1):\n"),
     SHAPES.replace("def area(width, height):", "def area(width, height, depth=1):")),
    ("replace a whole definition",
     _script("replace", _function("last"), _WHOLE + "    return items[-1]\n"),
     SHAPES.replace(_LAST, _WHOLE + "    return items[-1]\n")),
    ("replace a definition, as its scope says",
     _script("replace", _function("last"), "def last(items):\n    return None\n",
             scope="definition"),
     SHAPES.replace(_LAST, "def last(items):\n    return None\n")),
    ("content shifted by an anchor that was quoted without its indentation",
     _script("insert_after", _line("total = width * height"), "print(total)\n"),
     SHAPES.replace("height\n", "height\n    print(total)\n")),
    ("content as it stands",
     _script("insert_after", _line("    total = width * height"), "    print(total)\n"),
     SHAPES.replace("height\n", "height\n    print(total)\n")),
    ("two edits of a script",
     fenced([{"file": PATH, "edits": [
         {"type": "insert_after", "anchor": _line("LIMIT = 10"), "content": "MOST = 20\n"},
         {"type": "delete", "anchor": _line('    """The area."""'), "content": ""},
     ]}]),
     SHAPES.replace("= 10\n", "= 10\nMOST = 20\n").replace('    """The area."""\n', "")),
)  # fmt: skip
for _name, _edit, _after in _SCRIPTS:
    sample(f"script: {_name}", "scripts", {PATH: SHAPES}, _edit, {PATH: _after})
for _name, _edit in (
    ("an anchor that is not there", _script("delete", _line("LIMIT = 11"))),
    ("an anchor that stands twice", _script("delete", _line("        return"))),
    ("a definition or its header",
     _script("replace", _function("last"), "def last(items):\n    return None\n")),
):  # fmt: skip
    sample(f"script: {_name}", "scripts", {PATH: SHAPES + "\n\nif LIMIT:\n        return\n"},
           _edit, None)  # fmt: skip
sample(
    "script: a definition where no grammar knows its end",
    "scripts",
    {"tools/shapes.txt": SHAPES},
    _script("delete", {"type": "function_definition", "selected": "def last(items):"}).replace(
        PATH, "tools/shapes.txt"
    ),
    None,
)

# ---------------------------------------------------------------- indexed

NOTE = "notes/words.txt"
WORDS = "alpha beta\ngamma alpha\nalpha delta\nomega\n"


def _indexed(**edit: object) -> dict[str, object]:
    return {"id": "i1", "type": "modification", "file": NOTE, **edit}


def _all(*edits: Mapping[str, object], **more: object) -> str:
    return fenced({"edits": list(edits), **more})


_OMEGA = _indexed(target="omega", replacement="OMEGA")
_BETA = _indexed(target="beta", replacement="BETA", id="i2")
_COMMENTED = f"""\
```json
{{
  // what is to change
  "edits": [
    {{"id": "i1", "type": "modification", "file": "{NOTE}", /* the last */
      "target": "omega", "replacement": "OMEGA",}},
  ]
}}
```
"""
_BIG = WORDS.replace("omega", "OMEGA")
_INDEXED = (
    ("stated occurrences",
     _all(_indexed(target="alpha", replacement="ALPHA", occurrences=[1, 3])),
     "ALPHA beta\ngamma alpha\nALPHA delta\nomega\n"),
    ("a deletion within a line", _all(_indexed(type="deletion", target=" delta")),
     WORDS.replace(" delta", "")),
    ("an addition",
     _all({"id": "i1", "type": "addition", "file": NOTE, "afterText": "gamma alpha",
           "insertion": " and more"}),
     WORDS.replace("gamma alpha", "gamma alpha and more")),
    ("confidence at the threshold", _all({**_OMEGA, "confidence": 0.7}), _BIG),
    ("one of two below the threshold", _all(_OMEGA, {**_BETA, "confidence": 0.3}), _BIG),
    ("an unknown cascade", _all({**_OMEGA, "cascades": ["nobody"]}), _BIG),
    ("comments and trailing commas", _COMMENTED, _BIG),
    ("a cascade of one that is applied", _all({**_OMEGA, "cascades": ["i2"]}, _BETA), _BIG),
    ("the path on the object",
     _all({"id": "i1", "type": "modification", "target": "omega", "replacement": "OMEGA"},
          file=NOTE), _BIG),
)  # fmt: skip
for _name, _edit, _after in _INDEXED:
    sample(f"indexed: {_name}", "indexed", {NOTE: WORDS}, _edit, {NOTE: _after})
for _name, _edit in (
    ("an occurrence that is not there",
     _all(_indexed(target="alpha", replacement="ALPHA", occurrences=[4]))),
    ("a repeated target", _all(_indexed(target="alpha", replacement="ALPHA"))),
    ("an unknown dependence", _all({**_OMEGA, "dependsOn": ["nobody"]})),
):  # fmt: skip
    sample(f"indexed: {_name}", "indexed", {NOTE: WORDS}, _edit, None)


@kind("indexed: all below the threshold", "indexed")
def _unsure(brief: Brief) -> Rewrite | None:
    if brief.form.family != "json":
        return None
    value = json.loads(brief.response())
    for edit in value.get("edits") or value["contextualEdits"]:
        edit["confidence"] = round(brief.dice.uniform(0, 0.6), 2)
    return refuse(json.dumps(value, indent=1))


# ---------------------------------------------------------------- contextual

FOXES = "The red fox runs.\n\nThe blue fox sleeps.\n\nThe red dog barks.\n"
ROWS = "".join(f"row {n}\n" if n not in (3, 9) else "total\n" for n in range(1, 13))


def _contextual(pattern: Mapping[str, object], new: str, **more: object) -> dict[str, object]:
    edit = {"id": "c1", "type": "modification", "file": NOTE, "replacement": new, **more}
    return {**edit, "searchPattern": pattern}


def _contexts(*edits: Mapping[str, object], **more: object) -> str:
    return fenced({**more, "contextualEdits": list(edits)})


_BLUE = {"before": "The blue ", "target": "fox", "after": " sleeps"}
_FOX = {"before": "", "target": "fox", "after": ""}
_CAT = FOXES.replace("blue fox", "blue cat")
_CONTEXTS = (
    ("before, target and after", FOXES, _contexts(_contextual(_BLUE, "cat")), _CAT),
    ("all of several", FOXES, _contexts(_contextual(_FOX, "cat", all=True)),
     FOXES.replace("fox", "cat")),
    ("a paragraph that contains a word", FOXES,
     _contexts(_contextual({"paragraph": "contains('dog')", "target": "red"}, "old")),
     FOXES.replace("red dog", "old dog")),
    ("a paragraph that does not contain another", FOXES,
     _contexts(_contextual(
         {"paragraph": "contains('red') && !contains('dog')", "target": "red"}, "old")),
     FOXES.replace("red fox", "old fox")),
    ("a line hint that holds one of two", ROWS,
     _contexts(_contextual({"before": "", "target": "total", "after": ""}, "sum",
                           lineHint="approximately line 8-10")),
     ROWS.replace("row 8\ntotal", "row 8\nsum")),
    ("an addition between", FOXES,
     _contexts({"id": "c1", "type": "addition", "file": NOTE, "insertion": "old ",
                "searchPattern": {"before": "The blue ", "after": "fox"}}),
     FOXES.replace("blue fox", "blue old fox")),
    ("a backup with the same id", FOXES,
     _contexts(_contextual(_BLUE, "cat", id="i1"),
               edits=[_indexed(target="blue fox", replacement="blue cat")]), _CAT),
    ("a backup whose first choice is not there", FOXES,
     _contexts(_contextual(_BLUE, "cat", id="i1"),
               edits=[_indexed(target="green fox", replacement="green cat")]), _CAT),
    ("a backup of the same place and result", FOXES,
     _contexts(_contextual(_BLUE, "cat"),
               edits=[_indexed(target="blue fox", replacement="blue cat")]), _CAT),
)  # fmt: skip
for _name, _before, _edit, _after in _CONTEXTS:
    sample(f"contextual: {_name}", "contextual", {NOTE: _before}, _edit, {NOTE: _after})
for _name, _before, _edit in (
    ("one of several", FOXES, _contexts(_contextual(_FOX, "cat"))),
    ("a line hint near to one of two", ROWS,
     _contexts(_contextual({"before": "", "target": "total", "after": ""}, "sum",
                           lineHint="approximately line 10-11"))),
    ("a backup of another intent", FOXES,
     _contexts(_contextual(_BLUE, "bear"),
               edits=[_indexed(target="blue fox", replacement="blue cat")])),
):  # fmt: skip
    sample(f"contextual: {_name}", "contextual", {NOTE: _before}, _edit, None)


_DOG = {"paragraph": "contains('dog')"}
_FAR = {"paragraph": "contains('barks')", "target": "The", "maxDistance": 2}
for _name, _pattern, _new, _result in (
    ("a sentence of a paragraph", {**_DOG, "sentences": 1}, "It sleeps.",
     FOXES.replace("The red dog barks.", "It sleeps.")),
    ("a distance that is kept", {**_DOG, "target": "red", "maxDistance": 20}, "old",
     FOXES.replace("red dog", "old dog")),
    ("a distance that is not kept", _FAR, "A", ""),
):  # fmt: skip
    sample(f"contextual: {_name}", "contextual", {NOTE: FOXES},
           _contexts(_contextual(_pattern, _new)),
           {NOTE: _result} if _result else None)  # fmt: skip
