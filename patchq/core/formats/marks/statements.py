"""Changes that a response states in no form of edits: code that writes a file, a tool's call in a
model's raw tokens or in a tag that closes itself, records of old and new texts, commands of an
editor, files in other markup.

    Path("src/a.py").write_text("x = 2")      file = "src/a.py"       :%s/x = 1/x = 2/
    print(default_api.write_file(path=...))   old = "x = 1"           %%writefile src/a.py
    [TOOL_CALLS]write_file[ARGS]{...}         new = "x = 2"           #+BEGIN_SRC :tangle src/a.py

None of them is made, so beside edits the rest would land without it.  What names a file counts only
if the base has that file, or its directory; what reads or merely shows does not.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate

from patchq.core.formats.format import UnreadableEdit
from patchq.core.formats.marks.lines import fence
from patchq.core.model.frozen import frozen
from patchq.core.model.ops import halves
from patchq.core.model.values import Edit
from patchq.core.text.patterns import Pattern

_SEND = "send the change in the form of the other edits (`patchq formats`), or leave it out"
_PATH = r"(?P<path>[^\"'\s<>|*`{}$]{1,200})"
_READS = Pattern(
    r"(?:read|view|list|search|find|grep|glob|get|open|ls|cat|run|exec\w*|bash|shell|fetch|web)"
    r"(?:_|\b)",
    re.IGNORECASE,
)
_LOGS = frozenset({"console", "log", "logs", "output", "traceback", "pytb", "pycon", "stdout"})
_TRACE = Pattern(r"^\s*(?:Traceback \(|File \"[^\"]+\", line \d|at .+:\d+:\d+\)?$)", re.MULTILINE)

# ---------------------------------------------------------------- code that writes

_ARGUMENT = Pattern(rf"\(\s*(?:\w+\s*=\s*)?[rfb]?[\"']{_PATH}[\"']")
_NAMED_ARGUMENT = Pattern(rf"=(?<=[EeHh =]=)\s?[\"']{_PATH}[\"']")
_ARGUMENT_NAME = Pattern(r"(?:path|file|filename)\s?\Z", re.IGNORECASE)
_BEFORE = Pattern(r"[\w.:]+\Z")
_CALLS = Pattern(r"([\w.:]+)\(")
_MODE = Pattern(r"\s*,\s*(?:mode\s*=\s*)?[\"'][rbt]*[wax+]")
_CHANGES = Pattern(r"\.(?:write_text|write_bytes|unlink|rename|replace|touch)\(")
_WRITES_LATER = Pattern(r"\.(?:write_text|write_bytes|unlink)\(")
_CHANGER = Pattern(
    r"(?:.*[._:])?(?:(?:over)?write|create|edit|replace|insert|apply|delete|remove|rename|move"
    r"|update|modify|patch|append|save|rm|unlink)_?(?:to_?|in_?|into_?)?"
    r"(?:file|text|contents?|code|lines?|all|bytes|sync|string|diff|patch)\w*"
    r"|(?:.*[.:])?str_replace\w*"
    r"|(?:.*[.:])?(?:os|fs|fsp|promises|shutil|FileUtils|Files?|FileSystem|Deno|ioutil)[.:]+"
    r"(?:remove|unlink|rename|replace|move|rm|mv|cp|copy|truncate|write|delete)\w*",
    re.IGNORECASE,
)
"""Functions that change the file whose path they get."""
_PREFIXED = Pattern(r"[./\\]*[ab][/\\]|/")
"""A path that may tell that the response has a diff's prefixes, whatever is called with it."""
_FIRST = Pattern(r"\s*(?:>>> |print\(|await |return |const |let |var |\w+ ?= ?|<[^<>]*>)*[\w.:]*\Z")

# ---------------------------------------------------------------- records

_PATH_KEYS = tuple(
    Pattern(
        rf"{sign}(?<=[EeHhIi\"' ]{sign})[ \t]*[\"']?(?:file://)?(?=[^\s\"']{{0,200}}[./]){_PATH}"
    )
    for sign in ":="
)
"""What may stand behind the key of a path, which is read backwards: most colons are none's."""
_KEY_NAME = Pattern(r"(?:file|path|uri)(?:_?(?:name|path))?[\"']?[ \t]*\Z", re.IGNORECASE)
_MAP = Pattern(rf"\"{_PATH}\"[ \t]*:[ \t]*\"(?:[^\"\\\n]|\\.)*\\n")


def _key(names: str) -> Pattern:
    return Pattern(rf"(?:^|[\s{{,\[-])[\"']?(?:{names})[\"']?[ \t]*[:=]", re.I | re.M)


_OLD_KEY = _key(r"old\w*|original\w*|before|search\w*|find")
_NEW_KEY = _key(r"new\w*|updated\w*|after|replac\w+|modified\w*")
_CONTENT = Pattern(
    r"[\"']?(?:contents?|text|code|body|source|insert\w*)[\"']?[ \t]*[:=][ \t]*"
    r"(?:\"(?:[^\"\\\n]|\\.)*\\n|[|>][-+]?[ \t]*$|\"\"\"|'''|\"[^\"\n]*\"[ \t]*\}?$)",
    re.MULTILINE,
)
_DEED = Pattern(
    r"[\"']?(?:op|operation|action|type|command|mode)[\"']?[ \t]*[:=][ \t]*[\"']?(?:delete|remove"
    r"|replace|add|update|create|insert|modify|edit|rename|move|write|append|overwrite|patch)"
    r"(?:_?(?:file|lines?|text))?\b",
    re.IGNORECASE,
)
_REPORT = _key(
    r"messages?|severity|level|errors?|warnings?|rule\w*|coverage|lineno|column|status|duration"
    r"|summary|encoding|hash|sha\w*"
)
"""What a program's output says of files."""
_POINTER = Pattern(r"\"op\"\s*:\s*\"(?:add|remove|replace|move|copy)\"")
_POINTS = Pattern(r"\"path\"\s*:\s*\"/")
_DATA = (".json", ".yaml", ".yml", ".toml")

# ---------------------------------------------------------------- other lines


@frozen
class _Sign:
    """A line that states a change, of the file `path`, or of a new one, `made`.  One of `needles`
    stands in it, which begins with a letter that is sought as fast as a text is read; `outside` of
    fences alone."""

    what: str
    needles: tuple[str, ...]
    pattern: Pattern
    outside: bool = False


def _sign(what: str, needles: str, pattern: str, *, outside: bool = False) -> _Sign:
    return _Sign(what, tuple(needles.split("␣")), Pattern(pattern, re.M | re.I), outside)


_SIGNS = (
    _sign("a file in a fence with a title", "=",
          rf"^(?:`{{3,}}|~{{3,}})[^\n]*\b(?:title|file|file_?name|path)\s?=\s?[\"']?{_PATH}"),
    _sign("a new file in a fence, by a comment", "<!--␣/*␣--",
          r"^(?:`{3,}|~{3,})[^\n]*\n[ \t]*(?:--|<!--|/\*)[ \t]*(?:file ?(?:path|name)?:[ \t]*)?"
          rf"{_PATH.replace('<path>', '<made>')}[ \t]*(?:-->|\*/)?[ \t]*$"),
    _sign("a file that a notebook writes", "%%", rf"^%%(?:write)?file\s+(?:-a\s+)?{_PATH}"),
    _sign("an editor's command", "%s",
          r"^\s*:(?:%|\d+(?:,(?:\d+|\$))?|g!?/[^/\n]*/)?(?:s([/#|!])[^\n]+\1|d\s*$|normal\b)"),
    _sign("an editor's command", "_of_edit", r"^end_of_edit\s*$"),
    _sign("a tool's command", "_replace_based_␣_replace_editor",
          r"^[$>\s]*str_replace(?:_based)?_edit(?:_tool|or)\s+(?:create|str_replace|insert)\b"),
    _sign("a file in another markup", "+begin_src␣+BEGIN_SRC",
          rf"^\s*#\+begin_src\b[^\n]*:tangle\s+{_PATH}", outside=True),
    _sign("a file in another markup", ".. code␣.. sourcecode",
          r"^\s*\.\. (?:code-block|code|sourcecode)::[^\n]*\n(?:\s+:\w[^\n]*\n)*?"
          rf"\s+:(?:caption|name):[ \t]*{_PATH}[ \t]*$", outside=True),
    _sign("a file in another markup", "[source␣----", rf"^\.{_PATH}\n(?:\[|----)",
          outside=True),
    _sign("a file in another markup", "[source", rf"^\[source[^\]\n]*title=[\"']?{_PATH}",
          outside=True),
    _sign("a file in another markup", ">>=", rf"^<<{_PATH}>>=\s*$", outside=True),
    _sign("a file in an archive", "-- ", rf"^-- {_PATH} --\s*$", outside=True),
    _sign("a file under a rule", "===␣-- ␣*** ",
          rf"^(?:={{3,}}|-{{3,}}|\*{{3,}})\s*(?:file(?:name)?|begin)?\s*:?\s*{_PATH}\s*"
          r"(?:={3,}|-{3,}|\*{3,})\s*$", outside=True),
    _sign("a reviewer's mark", "{~~␣{--",
          r"\{~~[^{}\n]+~>[^{}\n]*~~\}|\{--[^{}\n]+--\}\s*\{\+\+[^{}\n]*\+\+\}"),
    _sign("a tool's call in raw tokens", "[TOOL_CALLS]␣|tool_call␣|python_tag|>␣\u2581call",
          r"(?:\[TOOL_CALLS\]|<\|tool_calls?(?:_section)?(?:_begin)?\|>|<\|python_tag\|>"
          r"|<\uff5ctool\u2581calls?\u2581begin\uff5c>)(?=(?P<call>[^\n]{0,200}))"),
    _sign("a tool's call in words", "Action Input",
          r"^\s*Action\s*:\s*(?P<call>\w+)[^\n]*\n\s*Action Input\s*:"),
)  # fmt: skip
_NAME = Pattern(r"\"name\"\s*:\s*\"(\w+)|functions\.(\w+)|\A\W*([A-Za-z]\w+)")
_EDITORS = frozenset({"ed", "ex"})

_FIELD = r"\s++[\w:-]++\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+')"
_EMPTY = Pattern(
    rf"<(?P<name>[A-Za-z][\w.:-]{{0,60}}+)(?P<fields>(?:{_FIELD}){{1,12}}+)"
    r"\s*+(?:/>|[^\s>/][^>]{0,2000}?/>)"
)
"""A tag that closes itself, with what may follow its first fields: quotes in quotes, braces."""
_VALUE = Pattern(r"=\s*(?:\"([^\"\s<>]{1,200})\"|'([^'\s<>]{1,200})')")
_DOES = Pattern(
    r"(?<![a-z])(?:over)?(?:write|create|edit|insert|replace|delete|remove|rename|move|update"
    r"|modify|patch|append|copy|unlink|rm|mv)(?![a-z])",
    re.IGNORECASE,
)
_CAMEL = Pattern(r"(?<=[a-z])(?=[A-Z])")
_DEED_FIELD = Pattern(r"\b(?:name|action|op|operation|command|type|tool)\s*=\s*[\"'](\w{1,60})")
_PLAIN = frozenset({"", "xml", "text", "txt", "plaintext", "tool", "tool_call", "tool_code"})
"""Fences in which a tag is no part of a page or of a program."""

_CHANGED = Pattern(r"`(?P<old>[^`\n]+)`\s*(?:to|with|by|into|→|->|=>|⇒)\s*`(?P<new>[^`\n]+)`")
_VERB = Pattern(r"\b(?:chang|replac|renam|updat|swap|turn)\w*\b|:\s*`", re.IGNORECASE)
_HEDGE = Pattern(
    r"\b(?:if|could|may|might|would|should|optional\w*|consider|maybe|later|not|already|was|were"
    r"|can|no|never|before|previously|earlier|once)\b|n't\b|\?",
    re.IGNORECASE,
)
_ARROW = Pattern(r"` (?:to|with|by|into|→|->|=>|⇒) `")


@frozen
class Setting:
    """What a statement is held against: the files, the edits, and where fences stand."""

    has: Callable[[str], bool]
    """Whether the base has a file."""
    has_directory: Callable[[str], bool]
    text: Callable[[str], str | None]
    named: Callable[[str], Sequence[str]]
    """The paths that a line names."""
    fences: Sequence[range]
    """From line to line (numbers) and in their order, the fences that hold no edit."""
    edits: Sequence[Edit]

    def is_file(self, token: str) -> bool:
        """Whether it is the path of a file that the base has."""
        return self.has(token) or (token.startswith("/") and self.has(token.lstrip("/")))

    def may_be_made(self, token: str) -> bool:
        """Whether it is one, or could be, in a directory that the base has."""
        directory, _, name = token.rpartition("/")
        return self.is_file(token) or bool(
            directory and "." in name and self.has_directory(directory)
        )


def check_statements(text: str, prose: Sequence[tuple[int, str]], setting: Setting) -> None:
    """Raise `UnreadableEdit` for the first statement of a change in the lines (number, text), which
    make `text`."""
    reader = _Statements(text, prose, setting)
    found = min(reader.found(), default=None)
    if found is not None:
        number, what = found
        raise UnreadableEdit(
            number - 1, f"a change is stated here that cannot be read: {what}", _SEND
        )


@dataclass
class _Statements:
    text: str
    prose: Sequence[tuple[int, str]]
    setting: Setting
    _records: dict[int, bool] = field(default_factory=dict)

    def found(self) -> Iterator[tuple[int, str]]:
        """The statements, by the numbers of their lines."""
        text = self.text
        yield from self._calls()
        yield from self._in_records()
        for sign in _SIGNS:
            if any(needle[0] in text and needle in text for needle in sign.needles):
                yield from self._signed(sign)
        for run in self.setting.fences:
            mark = fence(self._lines.get(run.start, ""))
            if mark and mark.info.lower() in _EDITORS:
                yield run.start, "an editor's commands"
        if "/>" in text:
            yield from self._in_tags()
        if self.setting.edits and _ARROW.search(text):
            yield from self._told()

    @cached_property
    def _lines(self) -> Mapping[int, str]:
        return dict(self.prose)

    def _number(self, at: int) -> int:
        return self.prose[bisect_right(self._starts, at) - 1][0]

    @cached_property
    def _starts(self) -> list[int]:
        """Where the lines begin in the text."""
        return [0, *accumulate(len(line) + 1 for _, line in self.prose)]

    def _fence(self, number: int) -> range | None:
        fences = self.setting.fences
        k = bisect_right(fences, number, key=lambda run: run.start) - 1
        return fences[k] if k >= 0 and number in fences[k] else None

    def _info(self, run: range) -> str:
        mark = fence(self._lines.get(run.start, ""))
        return mark.info.split(" ")[0].lower() if mark else ""

    def _window(self, number: int) -> tuple[int, str]:
        """The fence round a line, or its paragraph: where it begins, and its text."""
        run = self._fence(number)
        if run is None:
            first = last = number
            while self._lines.get(first - 1, "").strip():
                first -= 1
            while self._lines.get(last + 1, "").strip():
                last += 1
            run = range(first, last + 1)
        return run.start, "\n".join(self._lines.get(n, "") for n in run)

    def _is_output(self, number: int) -> bool:
        """Whether a line stands in what a program has printed."""
        run = self._fence(number)
        return run is not None and (
            self._info(run) in _LOGS or _TRACE.search(self._window(number)[1]) is not None
        )

    # ------------------------------------------------------------ code

    def _calls(self) -> Iterator[tuple[int, str]]:
        for pattern in (_ARGUMENT, _NAMED_ARGUMENT):
            for match in pattern.finditer(self.text):
                path = match["path"]
                name = self._called(match, named=pattern is _NAMED_ARGUMENT)
                if not _may_write(name) and not _PREFIXED.match(path):
                    continue
                if self.setting.may_be_made(path) and self._is_written_by(match, name):
                    number = self._number(match.start())
                    if not self._is_output(number):
                        yield number, f"code that changes {path}, and is not run"

    def _called(self, match: re.Match[str], *, named: bool) -> str:
        """The name of the call whose argument, which may have a name as well, is a path."""
        before = self._before(match.start())
        if named:
            calls = _CALLS.findall(before) if _ARGUMENT_NAME.search(before) else []
            name = calls[-1] if calls else ""
        else:
            found = _BEFORE.search(before)
            name = found[0] if found else ""
        return name.removesuffix(".call")

    def _before(self, start: int) -> str:
        """What stands before a place on its line."""
        near = max(start - 200, 0)
        line = self.text.rfind("\n", near, start) + 1
        return self.text[max(line, near) : start]

    def _is_written_by(self, match: re.Match[str], name: str) -> bool:
        """Whether the call of that name, whose argument is a path, changes that file."""
        text, start = self.text, match.start()
        number = self._number(start)
        run = self._fence(number)
        if not name or (run is None and not _FIRST.match(self._before(start).partition("(")[0])):
            return False
        behind = text[match.end() : match.end() + 80].partition("\n")[0]
        last = re.split(r"[.:]", name)[-1]
        if last == "open":
            return _MODE.match(behind) is not None
        if last == "Path":
            window = self._window(number)[1]
            return bool(_CHANGES.search(behind) or _WRITES_LATER.search(window))
        if not _CHANGER.fullmatch(name):
            return False
        called = f"{last}("  # it may be the edits' own
        return not any(called in half for one in self.setting.edits for half in halves(one.op))

    # ------------------------------------------------------------ records

    def _in_records(self) -> Iterator[tuple[int, str]]:
        for pattern in (*_PATH_KEYS, _MAP):
            for match in pattern.finditer(self.text):
                if not self.setting.is_file(match["path"].rstrip(",;")):
                    continue
                before = self.text[max(match.start() - 30, 0) : match.start()]
                if pattern is not _MAP and not _KEY_NAME.search(before):
                    continue
                number = self._number(match.start())
                first, window = self._window(number)
                if first not in self._records:
                    self._records[first] = not self._is_output(number) and (
                        pattern is _MAP or self._is_record(window, fenced=bool(self._fence(number)))
                    )
                if self._records[first]:
                    yield number, f"what a record says of {match['path']}"
        for match in _POINTER.finditer(self.text) if '"op"' in self.text else ():
            first, window = self._window(self._number(match.start()))
            if _POINTS.search(window) and self._names_data():
                yield first, "a JSON Patch"
                return

    def _names_data(self) -> bool:
        """Whether the prose names a file of data that the base has."""
        named = (path for _, line in self.prose for path in self.setting.named(line))
        return any(path.endswith(_DATA) and self.setting.has(path) for path in named)

    def _is_record(self, window: str, *, fenced: bool) -> bool:
        if _OLD_KEY.search(window) and _NEW_KEY.search(window):
            return True
        if not fenced or _REPORT.search(window):
            return False
        return bool(_CONTENT.search(window) or _DEED.search(window))

    # ------------------------------------------------------------ lines

    def _signed(self, sign: _Sign) -> Iterator[tuple[int, str]]:
        for match in sign.pattern.finditer(self.text):
            groups = match.groupdict()
            path, made, call = groups.get("path"), groups.get("made"), groups.get("call")
            at = match.start() + len(match[0]) - len(match[0].lstrip())
            number = self._number(at)
            made = groups.get("made")
            if made is not None and (
                self.setting.is_file(made) or not self.setting.may_be_made(made)
            ):
                continue
            if path is not None and not self.setting.may_be_made(path):
                continue
            if call is not None and (name := _NAME.search(call)) and _READS.match(_any(name)):
                continue
            line = self.text.rfind("\n", 0, at) + 1
            ticked = self.text.count("`", line, at) % 2
            if ticked or (sign.outside and self._fence(number)) or self._is_output(number):
                continue
            yield number, sign.what

    def _in_tags(self) -> Iterator[tuple[int, str]]:
        """Tags that close themselves, and would change a file: `<delete_file path="src/a.py"/>`."""
        for match in _EMPTY.finditer(self.text):
            line = self.text.rfind("\n", 0, match.start()) + 1
            if not _is_deed(match) or self.text.count("`", line, match.start()) % 2:
                continue
            paths = (_any(value) for value in _VALUE.finditer(match["fields"]))
            path = next(filter(self.setting.may_be_made, paths), None)
            number = self._number(match.start())
            run = self._fence(number)
            shown = run is not None and (self._info(run) not in _PLAIN or self._is_output(number))
            if path is not None and not shown:
                yield number, f"a tool's call in a tag, of {path}"
                return

    def _told(self) -> Iterator[tuple[int, str]]:
        """Words that tell of a change of a file that no edit is of."""
        edited = {edit.path for edit in self.setting.edits}
        for number, line in self.prose:
            if not _ARROW.search(line) or not _VERB.search(line):
                continue
            paths = [path for path in self.setting.named(line) if self.setting.has(path)]
            if len(paths) != 1 or paths[0] in edited or _HEDGE.search(line):
                continue
            text = self.setting.text(paths[0]) or ""
            for match in _CHANGED.finditer(line):
                if match["old"] in text and match["new"] not in text and not self._fence(number):
                    yield number, f"words that tell of a change of {paths[0]}"


@lru_cache(256)
def _may_write(name: str) -> bool:
    """Whether a function of that name may change the file whose path it gets."""
    last = re.split(r"[.:]", name)[-1]
    return last in ("open", "Path") or _CHANGER.fullmatch(name) is not None


def _is_deed(tag: re.Match[str]) -> bool:
    """Whether a tag's name, or else its field of what to do, is of a change."""
    field = _DEED_FIELD.search(tag["fields"])
    names = [tag["name"], *([field[1]] if field else [])]
    return any(
        _DOES.search(_CAMEL.sub("_", name).replace("_", " ")) and not _READS.match(name)
        for name in names
    )


def _any(match: re.Match[str]) -> str:
    return next(filter(None, match.groups()), "")
