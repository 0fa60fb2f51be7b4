"""Shell commands that stand beside edits: what they would do to files of the tree.

A response is not run, so what a command would change is left out.  Where that is a file of the
tree, the rest would land without it.  Whether a path is one the tree tells; here is only read what
a command removes, moves, rewrites or writes.  Programs that are merely run are prose.

Commands stand in a fence of a shell's language, behind a prompt, alone on a line that begins with
one of the verbs below, or in backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, pairwise
from posixpath import basename, join, normpath
from typing import Literal

from patchq.core.formats.marks.lines import Fence, OpenFences, fence
from patchq.core.formats.marks.paths import BasePaths
from patchq.core.formats.marks.shell_grammar import Numbered, ShellCommand, commands_of
from patchq.core.model.frozen import frozen
from patchq.core.text.patterns import Pattern

Deed = Literal["removes", "moves", "rewrites", "writes", "creates", "patches"]
_WINDOWS = frozenset({"powershell", "pwsh", "ps1", "cmd", "bat", "batch", "dosbatch"})
_SHELLS = frozenset(
    {"bash", "sh", "shell", "console", "zsh", "fish", "ksh", "terminal", "shellsession",
     "shell-session", "sh-session", "bash-session", "session"}
) | _WINDOWS  # fmt: skip
_PLAIN = frozenset({"", "text", "txt", "plain", "plaintext"})

_REMOVE = frozenset(
    {"rm", "git rm", "unlink", "shred", "rimraf", "trash", "del", "erase", "rd", "rmdir",
     "remove-item", "ri"}
)  # fmt: skip
_MOVE = frozenset(
    {"mv", "git mv", "move", "ren", "rename", "move-item", "rename-item", "mi", "rni"}
)
_COPY = frozenset({"cp", "copy", "copy-item", "cpi", "ln", "install"})
_FETCH = {"curl": ("-o", "--output"), "wget": ("-O", "--output-document")}
"""Programs that fetch a file, with the option before its path."""
_IN_PLACE = {
    "sed": Pattern(r"-[a-zA-Z]*i|--in-place"),
    "gsed": Pattern(r"-[a-zA-Z]*i|--in-place"),
    "perl": Pattern(r"-[a-zA-Z0-9]*i"),
    "ruby": Pattern(r"-[a-zA-Z]*i"),
    "awk": Pattern(r"-i\Z|--include=inplace"),
    "gawk": Pattern(r"-i\Z|--include=inplace"),
    "yq": Pattern(r"-[a-zA-Z]*i|--inplace"),
    **dict.fromkeys(("vi", "vim", "nvim"), Pattern(r"-[a-zA-Z]*[ces]|\+.")),
    **dict.fromkeys(("ed", "ex", "sd", "sponge"), Pattern(r"")),
}
"""Programs that rewrite files in place, with the option that makes them do so."""
_NEVER = Pattern(r"(?!)")
_PACKAGES = frozenset({"npm", "pnpm"})
_FIELDS = (["pkg", "set"], ["pkg", "delete"])
"""Programs that change `package.json`, and the words with which they do."""
_PATCH = frozenset({"patch", "git apply", "git am"})
_STATES = frozenset({"", ":", "true", "echo", "printf", "cat", "type", "write-output"})
"""What writes the text that the command itself states, or nothing, where its output goes."""
_WRITE = frozenset(
    {"tee", "touch", "set-content", "add-content", "out-file", "new-item", "ni", "sc"}
)
_DEEDS = frozenset(
    name.removeprefix("git ")
    for name in (
        *_REMOVE,
        *_MOVE,
        *_COPY,
        *_IN_PLACE,
        *_PATCH,
        *_WRITE,
        *_FETCH,
        "truncate",
        "pkg",
        "find",
        "dd",
    )
)
"""What changes files, as a command's last word of its name."""
_WORD = Pattern(r"[\w-]+")
_SPLIT = Pattern(r"(?<![\w-])[\w-]++(?:['\"\\]++[\w-]++)+")
_MARKS = Pattern(r"['\"\\]+")
"""A word with quotes or escapes in it, and what divides it."""
_MOST_PARTS = 8
_PREFIXES = frozenset(
    {"sudo", "env", "time", "nohup", "command", "exec", "builtin", "then", "do", "else", "if",
     "while", "!", "npx", "xargs"}
)  # fmt: skip
_INNER = frozenset({"bash", "sh", "zsh", "dash", "ksh", "cmd", "powershell", "pwsh"})
_TAKES = ("-c", "-lc", "-ec", "/c", "-command")
"""Shells, and their options before the command that they are to run."""
_DRY = frozenset({"--dry-run", "--check", "--stat", "--numstat", "--summary", "-whatif"})
_VERB = (
    r"(?:sudo[ ])?(?:rm|mv|git (?:-C \S+ )?(?:rm|mv|apply|am)|g?sed|perl|cat|tee|echo|printf|touch"
    r"|p?npm pkg|patch|del|(?i:remove|move|rename)-[Ii]tem)[ ]"
)
_LED = Pattern(_VERB)
_LOOSE = Pattern(rf"\s*(?:\$\s|<(?:command|cmd|bash|shell|run)>)|{_VERB}")
"""How a line begins that is a command, outside of a shell's fence."""
_LINE = Pattern(
    rf"\n(?:[ \t]*(?:`{{3,}}|~{{3,}})[ \t]*(?i:{'|'.join(sorted(_SHELLS))})\b"
    rf"|[ \t]*\$[ \t]|[ \t]*<(?:command|cmd|bash|shell|run)>|{_VERB})"
)
_QUOTED = Pattern(rf"`{_VERB}")

_PROMPT = Pattern(
    r"\s*(?:\(\w+\)\s*)?"
    r"(?:[\w.@~:/-]*[$%]|[\w.-]+@[\w.~:/-]*#|PS(?: [^>\n]*)?>|[A-Za-z]:\\[^>\n]*>)\s+(?=\S)"
)
_DOLLAR = Pattern(r"\s*(?:\$\s+|<(?:command|cmd|bash|shell|run)>\s*)(?=\S)")
"""A prompt, or the tag of a tool's call, before a command."""
_TICKED = Pattern(r"(?<!`)`([^`\n]+)`(?!`)")
_SPOKEN = Pattern(r"[,;:.!?]\Z")
_ASSIGNED = Pattern(r"[A-Za-z_]\w*=")
_FOUND = Pattern(r"-(?:delete|exec|execdir|ok)\Z")
_KNOWN = Pattern(
    r"(?:ls|cat|head|tail|e?grep|rg|ag|fd|find|wc|pwd|cd|echo|printf|true|test|\[|which|type|file|stat"
    r"|du|df|tree|sort|uniq|cut|tr|diff|cmp|jq|sleep|date|ps|kill|export|source|mkdir|g?awk|g?sed|yq"
    r"|pytest|mypy|tsc|gh|curl|wget"
    r"|git (?:status|diff|log|show|blame|branch|rev-parse|ls-files|grep|add|commit|fetch|push"
    r"|remote|tag|config|worktree)"
    r"|python[\d.]* -m (?:pytest|mypy|unittest)"
    r"|(?:npm|pnpm|yarn|cargo|go|make)(?: run)? (?:test|check|vet|build|clippy|lint|ls))(?: |\Z)"
)
_MENDS = Pattern(r" (?:--fix|--write|-w|-u|--update\S*|--snapshot-update)(?: |=|\Z)")
"""Programs that look, test or build, as long as they are not told to mend what they find."""
_OPTION = Pattern(r"-|/[A-Za-z]\Z")
_GLOB = Pattern(r"[*?]|\[[^\]/]+\]")
_GLOB_PART = Pattern(r"\*\*/?|[*?]|\[[^\]/\\\[]+\]|.", re.DOTALL)


@frozen
class ShellChange:
    """What a command on a line (number) would do, and to which paths or patterns of paths: it
    `removes`, `moves` or `rewrites` them, `writes` a text that it states there, `creates` what is
    not there yet, or `patches` any."""

    line: int
    text: str
    does: Deed
    paths: tuple[str, ...]


def may_command(text: str) -> bool:
    """Whether a command may stand anywhere in a text."""
    found = _LINE.search(f"\n{text}") or _QUOTED.search(text)
    return found is not None and _may_change((text,))


def changes_beside(prose: Iterable[Numbered]) -> list[ShellChange]:
    """What the commands in the prose would change, as far as they say so."""
    reader = _CommandReader()
    for number, line in prose:
        if mark := fence(line):
            reader.fence(number, mark)
        elif reader.in_script or _LOOSE.match(line) or "`" in line:
            reader.line(number, line)
    reader.flush()
    return reader.found


def changes_of(text: str, line: int = 1) -> list[ShellChange]:
    """What a shell's command or script would change; it begins on line `line`."""
    return list(
        _changes([(line + i, part) for i, part in enumerate(text.split("\n"))], windows=False)
    )


def programs_of(text: str) -> Iterator[str]:
    """The commands of a script of which nobody can tell what they change, as they are written."""
    for command in commands_of(list(enumerate(text.split("\n"))), windows=False):
        words = _bare(command.words)
        shown = " ".join(words)
        judged = bool(words) and words[0].removeprefix("git ") in _DEEDS
        if words and not judged and (not _KNOWN.match(shown) or _MENDS.search(shown)):
            yield " ".join(command.words)


# ---------------------------------------------------------------- where commands stand


class _CommandReader:
    def __init__(self) -> None:
        self.found: list[ShellChange] = []
        self._fences = OpenFences()
        self._language: str | None = None
        """That of the open fence."""
        self._script: list[Numbered] = []
        """The lines of the open fence, where its language is a shell's."""

    @property
    def in_script(self) -> bool:
        """Whether the open fence is a shell's."""
        return self._language in _SHELLS

    def line(self, number: int, line: str) -> None:
        """Take in a line that is no fence's; outside of a script, one that may hold commands."""
        if self.in_script:
            self._script.append((number, line))
        elif self._language is None or self._language in _PLAIN:
            self._loose(number, line)

    def flush(self) -> None:
        """The open fence ends."""
        script = self._script if _may_change(line for _, line in self._script) else []
        if any(_PROMPT.match(line) for _, line in script):  # the other lines are what it printed
            script = [(n, _PROMPT.sub("", x, count=1)) for n, x in _prompted(script)]
        self.found += _changes(script, windows=self._language in _WINDOWS)
        self._script, self._language = [], None

    def fence(self, number: int, mark: Fence) -> None:
        opens = self._fences.read(number, mark)
        self.flush()
        if opens:
            self._language = re.split(r"[\s:{]", mark.info, maxsplit=1)[0].lower()

    def _loose(self, number: int, line: str) -> None:
        """A line that is no shell's by where it stands."""
        if match := _DOLLAR.match(line):
            self.found += _changes([(number, line[match.end() :])], windows=False)
        elif _LED.match(line) and not any(_SPOKEN.search(word) for word in line.split()[1:]):
            self.found += _changes([(number, line)], windows=False)
        elif self._language is None and "`" in line:
            for span in _TICKED.findall(line):
                if _LED.match(span):
                    self.found += [replace(one, line=number) for one in _said(span)]


@lru_cache(256)
def _said(span: str) -> tuple[ShellChange, ...]:
    """What a command in backticks would change."""
    return tuple(_changes([(1, span)], windows="\\" in span))


def _prompted(script: Sequence[Numbered]) -> Iterator[Numbered]:
    """The lines behind a prompt, those that go on with one, and what begins as a command."""
    goes_on = False
    for number, line in script:
        if goes_on or _PROMPT.match(line) or _LED.match(line):
            yield number, line
            goes_on = line.rstrip().endswith("\\") or "<<" in line


# ---------------------------------------------------------------- what they would do


def _may_change(lines: Iterable[str]) -> bool:
    """Whether commands may change anything, by their text alone: a verb that does, quoted in
    part at most, or an output."""
    text = "\n".join(lines)
    if ">" in text or not _DEEDS.isdisjoint(_WORD.findall(text.lower())):
        return True
    quoted = "'" in text or '"' in text or "\\" in text
    return quoted and any(map(_spells_deed, set(_SPLIT.findall(text))))


def _spells_deed(word: str) -> bool:
    """Whether a verb that changes something stands in a word, with quotes or escapes within."""
    parts = [part for part in _MARKS.split(word.lower()) if part]
    runs = combinations(range(len(parts) + 1), 2)
    return len(parts) > _MOST_PARTS or any("".join(parts[i:j]) in _DEEDS for i, j in runs)


def _changes(script: Sequence[Numbered], *, windows: bool) -> Iterator[ShellChange]:
    if not _may_change(line for _, line in script):
        return
    texts = dict(script)
    directory = ""
    for command in commands_of(script, windows=windows):
        words = _bare(command.words)
        if words and words[0] in ("cd", "pushd", "set-location") and len(words) > 1:
            directory = "" if words[1].startswith(("/", "~", "$")) else join(directory, words[1])
            continue
        if (
            len(words) > 2
            and words[0] in _INNER
            and words[1].lower() in ("-c", "-lc", "/c", "-command")
        ):
            inner = " ".join(words[2:]) if words[1].startswith("/") else words[2]
            yield from _changes([(command.line, inner)], windows=windows)
            continue
        for does, paths in _deeds(words, command):
            named = tuple(dict.fromkeys(x for p in paths for x in _spelled(p, directory)))
            if named or does == "patches":
                text = texts.get(command.line, "").strip()[:80]
                yield ShellChange(command.line, text, does, named)


def _bare(words: Sequence[str]) -> list[str]:
    """The words without what only stands before a command; `git` with its verb as one word."""
    k, before = 0, False
    while k < len(words) and (
        words[k] in _PREFIXES or _ASSIGNED.match(words[k]) or (before and words[k][:1] == "-")
    ):
        before, k = True, k + 1
    if k == len(words):
        return []
    verb, rest = basename(words[k].replace("\\", "/")).lower().removesuffix(".exe"), words[k + 1 :]
    if verb != "git":
        return [verb, *rest]
    k = 0
    while k < len(rest) and rest[k].startswith("-"):
        k += 2 if rest[k] in ("-C", "-c") else 1
    return [f"git {rest[k]}", *rest[k + 1 :]] if k < len(rest) else [verb]


def _deeds(words: Sequence[str], command: ShellCommand) -> Iterator[tuple[Deed, list[str]]]:
    """What a command does, and to which paths."""
    verb, rest = (words[0], words[1:]) if words else ("", [])
    paths = [word for word in rest if word and not _OPTION.match(word)]
    options = {word.lower() for word in rest if word.startswith("-")}
    if options & _DRY or (verb in ("git rm", "git mv") and "-n" in options):
        return
    if verb in _REMOVE:
        yield "removes", paths
    elif verb in _MOVE:
        yield "moves", paths
    elif verb in _COPY and len(paths) > 1:
        yield "rewrites", paths[-1:]
    elif verb == "truncate" or any(map(_IN_PLACE.get(verb, _NEVER).match, rest)):
        yield "rewrites", paths
    elif verb in _FETCH:
        yield "rewrites", [b for a, b in pairwise(rest) if a in _FETCH[verb]]
    elif verb == "dd":
        yield "rewrites", [word[3:] for word in rest if word.startswith("of=")]
    elif verb in _PACKAGES and paths[:2] in _FIELDS and len(paths) > 2:
        yield "rewrites", ["package.json"]
    elif verb in _PATCH and (rest or command.heredoc or command.reads):
        yield "patches", []
    elif verb in _WRITE:
        several = verb in ("tee", "touch")
        yield "creates" if verb == "touch" else "writes", paths if several else paths[:1]
    elif verb == "find" and any(map(_FOUND.match, rest)):
        yield from _found(rest)
    if command.outputs:
        states = verb in _STATES and (verb not in ("cat", "type") or command.heredoc or not paths)
        yield "writes" if states else "rewrites", command.outputs


def _found(words: Sequence[str]) -> Iterator[tuple[Deed, list[str]]]:
    """What `find` removes, or has removed, by the names that it looks for."""
    if "-delete" not in words and not _REMOVE.intersection(words):
        return
    top = words[0] if not words[0].startswith("-") else "."
    names = [words[i + 1] for i, word in enumerate(words[:-1]) if word in ("-name", "-iname")]
    yield "removes", [f"{top}/**/{name}" for name in names] or [top]


def _spelled(path: str, directory: str) -> Iterator[str]:
    """A path as it may be meant: below the directory that was gone to, or the root."""
    if path.startswith(("~", "$", "-")) or path in ("/dev/null", "nul", "NUL", "$null"):
        return
    path = path.replace("\\", "/")
    for spelled in (join(directory, path), path):
        yield normpath(spelled)


# ---------------------------------------------------------------- what the tree says of them


def lost_change(changes: Iterable[ShellChange], base: BasePaths) -> ShellChange | None:
    """The first of the changes that files of the tree would miss, with the path that says so."""
    for change in changes:
        if change.does == "patches":
            return change
        for path in change.paths:
            stands = _stands(path, base)
            writes = change.does in ("writes", "creates") and not stands
            if _would_be_kept(path, base) if writes else stands and change.does != "creates":
                return replace(change, paths=(path,))
    return None


def _stands(path: str, base: BasePaths) -> bool:
    """Whether the tree has the path, or one of the pattern's."""
    if path.startswith("/"):
        path = base.below(path) or ""
    if not path or path.startswith("../"):
        return False
    if base.has(path) or base.has_directory(path):
        return True
    if path == "." or _GLOB.search(path):
        matches = _pattern(path).match
        return any(path == "." or matches(one) for one in base.paths())
    return False


def _would_be_kept(path: str, base: BasePaths) -> bool:
    """Whether a new file at the path would be part of the tree."""
    if path.startswith("/"):
        path = base.below(path) or ""
    outside = not path or path.startswith(("../", ".git/")) or path in ("..", ".git")
    return not outside and not base.ignores(path)


@lru_cache(64)
def _pattern(path: str) -> re.Pattern[str]:
    """What a shell's pattern matches, or has above it."""
    translated = "".join(
        {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part)
        or (part if part.startswith("[") else re.escape(part))
        for part in _GLOB_PART.findall(path)
    )
    return re.compile(rf"{translated}(?:/.*)?\Z", re.DOTALL)
