"""How the commands of a shell's script are written: words, quotes, outputs, heredocs.

Nothing is expanded, and of what joins commands only the pipe matters; what they would do is not
asked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from patchq.core.text.patterns import Pattern

Numbered = tuple[int, str]
"""A line's number and its text."""

_TOKEN = Pattern(
    r"(?P<blank>[ \t\r]+|\\\n)"
    r"|(?P<heredoc><<-?[ \t]*(?P<quote>['\"\\]?)(?P<tag>[\w.!-]+)['\"]?)"
    r"|(?P<redirect>\d?&?>>?[|&]?|<<<|<)"
    r"|(?P<end>\n|&&|\|[|&]?|;+|&|[()])"
    r"|(?P<word>(?:\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|[^\s;&|<>()'\"\\]|['\"\\])+)",
    re.DOTALL,
)
_CLOSED = Pattern(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_CLOSES = {
    "": Pattern(""),
    "'": Pattern(r"[^']*'"),
    '"': Pattern(r"(?:[^\"\\]|\\.)*\"", re.DOTALL),
}
"""What is left of a text up to the end of the open quote."""
_PART = Pattern(r"\\(.)|'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|(.)", re.DOTALL)


@dataclass(slots=True)
class ShellCommand:
    """One command, without what it is joined to; `outputs` are where its output goes."""

    line: int
    words: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    heredoc: bool = False
    reads: bool = False
    """Whether a file, or another command, is its input."""


def commands_of(script: Sequence[Numbered], *, windows: bool) -> Iterator[ShellCommand]:
    """The commands of a script in their order; the bodies of its heredocs are none."""
    k = 0
    while k < len(script):
        number, text = script[k]
        k += 1
        parts, quote = [text], _left_open(text)
        while (parts[-1].endswith("\\") or quote) and k < len(script) and not windows:
            parts.append(script[k][1])
            closed = _CLOSES[quote].match(parts[-1])
            quote = _left_open(parts[-1][closed.end() :]) if closed else quote
            k += 1
        text = "\n".join(parts)
        if windows:
            text = text.replace("\\", "\\\\")
        commands, tags = _line(number, text)
        for tag in tags:
            gap = k < len(script) and script[k][0] != script[k - 1][0] + 1
            if gap:  # an edit stands there, which the command only wraps
                commands = [command for command in commands if not command.heredoc]
            end = next((j for j in range(k, len(script)) if script[j][1].strip() == tag), None)
            k = k if end is None and gap else len(script) if end is None else end + 1
        yield from commands


def _left_open(text: str) -> str:
    """The first quote that opens in the text and is not closed there; empty if there is none."""
    found = re.search("['\"]", _CLOSED.sub("", text)) if "'" in text or '"' in text else None
    return found[0] if found else ""


def _line(number: int, text: str) -> tuple[list[ShellCommand], list[str]]:
    """The commands of one line, and the tags of the heredocs that follow it."""
    commands, tags = [ShellCommand(number)], list[str]()
    target = None
    for match in _TOKEN.finditer(text):
        kind, command = match.lastgroup, commands[-1]
        if match["heredoc"]:
            tags.append(match["tag"])
            command.heredoc = True
        elif kind == "redirect":
            target = match["redirect"]
        elif kind == "end":
            piped = match["end"].startswith("|") and match["end"] != "||"
            commands.append(ShellCommand(number, heredoc=piped and command.heredoc, reads=piped))
            target = None
        elif kind == "word":
            word = _plain(match["word"])
            if target is not None:
                command.reads = command.reads or target.startswith("<")
                into = ">" in target and not (target.endswith("&") and word.isdigit())
                command.outputs += [word] if into and not target.startswith("2") else []
                target = None
            elif word.startswith("#") and match["word"].startswith("#"):
                break
            else:
                command.words.append(word)
    return [command for command in commands if command.words or command.outputs], tags


def _plain(word: str) -> str:
    """A word without its quotes."""
    return _PART.sub(lambda part: next((p for p in part.groups() if p is not None), ""), word)
