"""Tags round a model's thinking, and the channels of its raw output.

    <think>…</think>   <Seed:Thinking>…   [THINK]…[/THINK]   ◁think▷…◁/think▷
    <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…

What a model says to itself before it answers is no part of the answer.  Drafts of edits stand
there, so it is taken off, and only outside of edits: a file's own text may hold such tags.  So the
reader of the edits, who knows where those stand, does it.  Lines are blanked, never removed; their
numbers stay those of the response.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from patchq.core.formats.format import Document, UnreadableEdit

_NAME = (
    r"(?:[^\W\d_](?:[\w.:-]{0,60}[:-])?)?"
    r"(?:think|thinking|thought|reasoning|reflection|scratchpad|analysis)"
)
_TAG = re.compile(
    rf"<(/?)({_NAME})(?:\s[^<>]{{0,200}}(?<!/))?>"
    rf"|\[(/?)({_NAME})\](?![(\[:])"
    rf"|◁(/?)({_NAME})▷"
    # The names of tags in bars may tell their side: `<|begin_of_thought|>`.
    rf"|<\|(/|(?:begin|start|end)_(?:of_)?)?({_NAME})\|>",
    re.IGNORECASE,
)
_SPAN = re.compile(r"`[^`]*`")
_CHANNEL = re.compile(
    r"\s*(?:<\|(?:end|return|call)\|>\s*)?(?:<\|start\|>\s*assistant[^<\n]*)?"
    r"<\|channel\|>[ \t]*(?P<name>\w+)(?P<to>[^<\n]*)(?:<\|constrain\|>[^<\n]*)?<\|message\|>"
)
_NEXT_CHANNEL = re.compile(
    r"(?:^[ \t]*|<\|end\|>\s*|<\|start\|>\s*assistant[^<\n]*)"
    + _CHANNEL.pattern.removeprefix(r"\s*"),
    re.MULTILINE,
)
_LAST = re.compile(r"<\|(?:end|return)\|>[ \t]*\Z")
_ALONE = "send the answer alone, without the thinking before it"


class Tag(Struct, frozen=True):
    """A tag of thinking, and its place on the line.

    `pair` is its shape and name, which the opening and the closing tag share.
    """

    pair: tuple[int, str]
    closes: bool
    start: int
    end: int


def tags_on(line: str) -> Iterator[Tag]:
    """Yield the tags of thinking on a line, except those in backticks."""
    if "`" in line:
        line = _SPAN.sub(lambda span: " " * len(span[0]), line)
    return map(_tag, _TAG.finditer(line))


def _tag(match: re.Match[str]) -> Tag:
    shape = match.lastindex or 0
    closes = (match[shape - 1] or "").lower().startswith(("/", "end"))
    return Tag((shape, match[shape].lower()), closes, match.start(), match.end())


def may_tag(text: str) -> bool:
    """Return whether a tag may close anywhere in a text."""
    angle = "<" in text and ("</" in text or "<|" in text)
    return angle or "[/" in text or "◁/" in text


def thought_on(line: str) -> Tag | None:
    """Return the tag of a thinking block that the line begins with, blanks aside."""
    match = _TAG.match(line, len(line) - len(line.lstrip()))
    return match and _tag(match)


def opens_channel(line: str) -> bool:
    """Return whether a message of a model's raw output begins on the line."""
    return "<|channel|>" in line and _CHANNEL.match(line) is not None


def blank_thought(doc: Document, start: int, opened: Tag) -> int | None:
    """Blank the thinking block that the tag `opened` begins on line `start`.

    `start` is an index.  Returns the index of the line on which the block ends, of which the text
    behind the closing tag is kept; None if it is never closed, and then nothing is blanked.
    """
    lines, depth, at = doc.lines, 1, opened.end
    for i in range(start, len(lines)):
        for tag in tags_on(lines[i]):
            if tag.start < at or tag.pair != opened.pair:
                continue
            if tag.closes:
                depth -= 1
            elif not lines[i][: tag.start].strip():
                depth += 1
            if not depth:
                lines[start : i + 1] = [""] * (i - start) + [lines[i][tag.end :]]
                doc.fences.look_again(start, i + 1)
                return i
        at = 0
    return None


def blank_channels(doc: Document, start: int) -> int:
    """Blank a model's raw output from line `start` up to its final channel.

    Returns the index of the line on which the final channel's text begins.  Raises
    `UnreadableEdit`.
    """
    lines = doc.lines
    text = "\n".join(lines[start:])
    header = _CHANNEL.match(text)
    while header is not None and header["name"].lower() != "final":
        if "to=" in header["to"]:
            raise UnreadableEdit(
                start + text.count("\n", 0, header.start("to")),
                "a tool is called here in a model's raw output, which cannot be read",
                "hand in the API's own answer, as JSON, or send the edits as text",
            )
        header = _NEXT_CHANNEL.search(text, header.end())
    if header is None:
        raise UnreadableEdit.cut(
            start, "the response ends before the model's final channel begins", _ALONE
        )
    end = start + text.count("\n", 0, header.end())
    rest = header.end() - (text.rfind("\n", 0, header.end()) + 1)
    lines[start : end + 1] = [""] * (end - start) + [lines[end][rest:]]
    last = next((i for i in reversed(range(end, len(lines))) if lines[i].strip()), end)
    lines[last] = _LAST.sub("", lines[last])
    doc.fences.look_again(start, len(lines))
    return end


def stray_end(prose: Iterable[tuple[int, str]]) -> int | None:
    """Return the line (index) on which thinking ends that begins nowhere in the prose."""
    opened = Counter[tuple[int, str]]()
    for number, line in prose:
        for tag in tags_on(line):
            opened[tag.pair] += -1 if tag.closes else 1
            if opened[tag.pair] < 0:
                return number
    return None


def stray(i: int) -> UnreadableEdit:
    """Return the refusal of an unmatched closing tag on line `i` (an index)."""
    return UnreadableEdit(
        i,
        "a thinking block ends here that begins nowhere, so what is before it may be a draft",
        _ALONE,
    )
