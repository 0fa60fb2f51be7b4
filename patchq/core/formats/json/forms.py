"""The forms of edits in JSON, and how a model is told to write each of them."""

from __future__ import annotations

from patchq.core.formats.format import Format, Sign
from patchq.core.model.ops import CONTEXTUAL, INDEXED

CALLS = "edit_calls"
SCRIPT = "edit_script"

SCRIPT_INSTRUCTIONS = """\
Answer with one JSON object for every file:

{
  "file": "path/to/file.py",
  "edits": [
    {
      "type": "insert_after",
      "anchor": {"type": "line_pattern", "selected": "import os"},
      "content": "import re\\n",
      "description": "what this edit is for"
    }
  ]
}

`type` is `insert_before`, `insert_after`, `replace` or `delete` (without `content`). The anchor's
type is `line_pattern`, `import_statement` or `decorator` with the whole line as `selected`, or
`function_definition` or `class_definition` with the header line as `selected` or with its `name`.
The anchor must occur once; if it does not, add its `line`. For `replace`, `"scope": "line"` or
`"scope": "definition"` says what of a definition is replaced. Edits apply in order. `content` is
whole lines with their indentation.
"""

INDEXED_INSTRUCTIONS = """\
Answer with one JSON object:

{
  "edits": [
    {
      "id": "edit-1",
      "type": "modification",
      "file": "path/to/file.md",
      "target": "the text to change",
      "replacement": "the text that takes its place",
      "occurrences": [1, 3],
      "confidence": 0.95,
      "reason": "what this edit is for"
    }
  ],
  "summary": "what all of them are for"
}

`occurrences` counts where the target stands in the file as it is now, from 1; leave it out for a
target that stands there once. `type` is `modification`, `deletion` (no `replacement`) or `addition`
(`afterText`, `occurrence` and `insertion` instead). Copy all texts exactly.

Group related changes under one id: the same change at several places is one edit with all its
`occurrences`, which people accept or leave out as one. `confidence`, from 0 to 1, says how clear
the context makes the change; edits below the threshold are left out. An edit that must not be made
when another one is names it as `"dependsOn": "edit-1"`. For a complex change, whose places are
hard to count, give both forms: beside the indexed edit, in the same object, a contextual one with
the same id as its backup, which is taken where the indexed one has no place:

  "contextualEdits": [
    {
      "id": "edit-1",
      "type": "modification",
      "file": "path/to/file.md",
      "searchPattern": {
        "before": "the text right before it",
        "target": "the text to change",
        "after": "the text right behind it"
      },
      "replacement": "the text that takes its place"
    }
  ]
"""

CONTEXTUAL_INSTRUCTIONS = """\
Answer with one JSON object:

{
  "contextualEdits": [
    {
      "id": "ctx-1",
      "type": "modification",
      "file": "path/to/file.md",
      "searchPattern": {
        "before": "the text right before it",
        "target": "the text to change",
        "after": "the text right behind it"
      },
      "replacement": "the text that takes its place",
      "confidence": 0.95,
      "reason": "what this edit is for",
      "lineHint": "line 45-50"
    }
  ]
}

`type` is `modification`, `deletion` (no `replacement`) or `addition` (no `target`; the text is the
`insertion`). Copy all texts exactly. Instead of `before` and `after`, `"paragraph": "contains('x')
&& !contains('y')"` seeks the target in such paragraphs, `maxDistance` characters from `x` at most;
without a target, `"sentences": 2` names the two sentences that hold `x`. `"all": true` changes
every match, so that related changes stand under one id; otherwise there must be one. `confidence`,
from 0 to 1, says how clear the context makes the change; edits below the threshold are left out.
"""

CALL_INSTRUCTIONS = """\
Answer with one JSON list, an object for every change:

[
  {
    "file_path": "path/to/file.py",
    "old_string": "the text to change, copied exactly, with enough round it to occur only once",
    "new_string": "the text that takes its place"
  }
]

Add `"expected_replacements": 3` to change exactly so many places, or `"replace_all": true` to
change all of them. An empty `old_string` creates the file. Escape line ends as `\\n` once.
"""

_OLD_NEW = r"(?:old|new)[_-]?(?:string|str|text)"
_KEY = rf"(?i:{_OLD_NEW}|file_?text|insert_?line|contextualEdits|searchPattern)"
_SIGNS = (
    Sign(
        "an edit in another notation",
        rf"\s*(?:- +)?[\"']?{_KEY}[\"']?\s*[:=]",
        languages=frozenset({"yaml", "yml", "toml", "json", "json5", "jsonc"}),
    ),
    Sign("an edit in JSON", rf"[\"']{_KEY}[\"']\s*[:>]", anywhere=True),
)
FORMS = (
    Format(SCRIPT, SCRIPT_INSTRUCTIONS),
    Format(INDEXED, INDEXED_INSTRUCTIONS),
    Format(CONTEXTUAL, CONTEXTUAL_INSTRUCTIONS),
    Format(CALLS, CALL_INSTRUCTIONS, signs=_SIGNS),
)
