"""What a hook's shell line starts, as far as its text tells.

Only the plain part of the shell is read here: commands in a row, joined by `;`, `&&`, `||`, `|` and
line ends.  Where a line holds more (`$(…)`, `<<`, subshells, functions), nothing is said of what it
starts beyond its first word.  Nobody runs anything for this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

_TOKEN = re.compile(
    r"""[ \t\r]+|\#[^\n]*|\\\n
    |(?P<redirect>\d*(?:>>|>&|<&|>\||<>|[<>]))
    |(?P<joint>&&|\|\||[;&|\n])
    |(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\();<>|&])+)""",
    re.VERBOSE | re.DOTALL,
)
_NOT_PLAIN = re.compile(r"`|\$\(|<<|[<>]\(|;;")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_OPENS = frozenset(["if", "while", "until", "for", "case", "select", "{", "function"])
_INSIDE = frozenset(["then", "elif", "else", "do", "fi", "done", "esac", "}"])
_TESTS = frozenset(["test", "[", "[[", "command", "which", "type", "hash"])
"""What asks whether the next one is there, or wanted."""
_MOVES_PATH = frozenset([".", "source", "eval", "export", "alias"])
"""Behind these a name may mean another program."""
_PASSES_ON = frozenset({"exec", "!", "time"})
_CANNOT_START = (126, 127)


class Called(Struct, frozen=True):
    """A program that the line calls by a word that is plain to see; `surely`: whenever the line
    runs and what stands before it goes well."""

    word: str
    surely: bool


class ShellLine(Struct, frozen=True):
    """What the line calls in its order; `plain` is false where that is not all."""

    called: tuple[Called, ...] = ()
    plain: bool = True
    ends: int | None = None
    """The code of 126 and 127 by which it says, whatever happens, that it cannot start."""


def read(line: str) -> ShellLine:
    tokens = None if _NOT_PLAIN.search(line) else _tokens(line)
    if tokens is None:
        return ShellLine(plain=False)
    state = _Reading()
    for words, joint in _commands(tokens):
        if not state.take(words):
            break
        state.pass_on(joint)
    return ShellLine(tuple(state.called), state.plain, state.ends)


def _tokens(line: str) -> list[re.Match[str]] | None:
    """The tokens; None where something else stands between them."""
    found, at = [], 0
    while at < len(line):
        token = _TOKEN.match(line, at)
        if token is None:
            return None
        at = token.end()
        if token.lastgroup:
            found.append(token)
    return found


def _commands(tokens: list[re.Match[str]]) -> Iterator[tuple[list[str], str]]:
    """Each command's words, without its redirections, and what joins it to the next."""
    words: list[str] = []
    aside = False
    for token in tokens:
        if token.lastgroup == "joint":
            yield words, token.group()
            words, aside = [], False
        elif token.lastgroup == "redirect":
            aside = True
        elif aside:
            aside = False
        else:
            words.append(token.group())
    yield words, ""


@dataclass
class _Reading:
    """How far the line was read, and how sure it is that the next command runs."""

    called: list[Called] = field(default_factory=list)
    plain: bool = True
    ends: int | None = None
    _surely: bool = True
    _here: bool = True
    """The same for the commands that are joined to one another."""
    _joined: bool = False
    """Whether it runs only where the one before it went well."""
    _tests: bool = False

    def take(self, words: list[str]) -> bool:
        """Read one command; False where the line surely ends with it."""
        words = self._behind_what_is_set(words)
        self._tests = bool(words) and words[0] in _TESTS
        if not words:
            return True
        surely = self._surely and self._here
        if words[0] in _MOVES_PATH:
            self._surely = False
        if words[0] == "exit" and surely and not self._joined:
            code = int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0
            self.ends = code if code in _CANNOT_START else None
            return False
        word = _plain(words[0])
        if word is None:
            self.plain = False
        else:
            self.called.append(Called(word, surely))
        return True

    def pass_on(self, joint: str) -> None:
        self._joined = joint == "&&"
        if joint in (";", "\n", "&"):
            self._here = True
        elif joint == "||" or (joint == "&&" and self._tests):
            self._here = False

    def _behind_what_is_set(self, words: list[str]) -> list[str]:
        """Without the words of the shell, and the variables, that stand before a program."""
        while words:
            if words[0] in _OPENS | _INSIDE:
                self._surely = False
                if words[0] in ("for", "case", "select", "function"):
                    return []
            elif match := _ASSIGNMENT.match(words[0]):
                self._surely &= not match.group().startswith("PATH")
            elif words[0] not in _PASSES_ON:
                break
            words = words[1:]
        return words


def _plain(word: str) -> str | None:
    """What the word says without its quotes; None where the shell puts something in its place."""
    bare = re.sub(r"""^(['"])(.*)\1$""", r"\2", word, flags=re.DOTALL)
    return None if not bare or (re.search(r"""[$*?\[\]{}~\\'"]""", bare) and bare != "[") else bare
