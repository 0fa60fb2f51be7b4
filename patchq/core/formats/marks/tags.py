"""Tags that models put round parts of an answer: what they think, and what they name otherwise.

    <think>…</think>   <Seed:Thinking>…   [THINK]…[/THINK]   ◁think▷…◁/think▷
    <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…

What a model says to itself before it answers is no part of the answer.  Drafts of edits stand
there, so it is taken off, and only outside of edits: a file's own text may hold such tags.  So the
reader of the edits, who knows where those stand, does it.  Lines are blanked, never removed; their
numbers stay those of the response.

Tags of other names tell nothing where all edits stand in them, or none.  Where some do, nobody
knows which edits are the draft, unless the tag is known to hold what an answer consists of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from patchq.core.formats.format import Document, UnreadableEdit

_THOUGHTS = (
    "think", "thinking", "thought", "reasoning", "reflection", "scratchpad", "analysis",
)  # fmt: skip
_NAME = r"[^\W\d_][\w.:-]{0,60}"
_TAG = re.compile(
    rf"<(?P<a>/?)(?P<angle>{_NAME})(?:\s[^<>]{{0,200}}(?<!/))?>"
    rf"|\[(?P<b>/?)(?P<square>{_NAME})\](?![(\[:])"
    rf"|◁(?P<c>/?)(?P<triangle>{_NAME})▷"
    rf"|<\|(?P<d>/?)(?P<bar>{_NAME})\|>"
    r"|(?P<comment><!--|-->)"
)
_THOUGHT = re.compile(
    rf"\s*[<\[◁][|/]*[\w.:-]*(?:{'|'.join(_THOUGHTS)})",
    re.IGNORECASE,
)
_SHAPES = {"angle": "a", "square": "b", "triangle": "c", "bar": "d"}
# How the names of tags in bars tell where they stand: `<|begin_of_thought|>`.
_SIDE = re.compile(r"(begin|start|end)_(?:of_)?")
_THINKS = re.compile(rf"(?:.*[:-])?(?:{'|'.join(_THOUGHTS)})")
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
    """A tag on a line: its shape and name, where it ends, and whether it closes."""

    shape: str
    name: str
    closes: bool
    start: int
    end: int

    @property
    def thinks(self) -> bool:
        return _THINKS.fullmatch(self.name) is not None

    @property
    def pairs_as(self) -> tuple[str, str]:
        """What its other half has in common with it."""
        return self.shape, self.name


def tags_on(line: str) -> Iterator[Tag]:
    """The tags on a line, but for those that are quoted in backticks."""
    if not ("<" in line or "]" in line or "▷" in line or "-->" in line):
        return
    if "`" in line:
        line = _SPAN.sub(lambda span: " " * len(span[0]), line)
    for match in _TAG.finditer(line):
        shape = match.lastgroup or ""
        name, closes = match[shape].lower(), match[shape] == "-->"
        if shape == "comment":
            name = "comment"
        else:
            closes = bool(match[_SHAPES[shape]])
            if shape == "bar" and (side := _SIDE.match(name)):
                name, closes = name[side.end() :], side[1] == "end"
        yield Tag(shape, name, closes, match.start(), match.end())


def may_tag(text: str) -> bool:
    """Return whether a tag may close anywhere in a text."""
    angle = "<" in text and ("</" in text or "<|" in text)
    return angle or "[/" in text or "◁/" in text


def thought_on(line: str) -> Tag | None:
    """The tag of a thinking block that the line begins with, blanks aside."""
    if not _THOUGHT.match(line):
        return None
    tag = next(tags_on(line), None)
    first = tag is not None and tag.thinks and not line[: tag.start].strip()
    return tag if first else None


def opens_channel(line: str) -> bool:
    """Whether a message of a model's raw output begins on the line."""
    return "<|channel|>" in line and _CHANNEL.match(line) is not None


def blank_thought(doc: Document, start: int, opened: Tag) -> int | None:
    """Blank the thinking block that opens on line `start` (an index) with the tag `opened`.

    Returns the index of the line on which it ends, which keeps what stands behind the closing tag;
    None if the block is never closed, and then nothing is blanked.
    """
    lines, depth, at = doc.lines, 1, opened.end
    for i in range(start, len(lines)):
        for tag in tags_on(lines[i]):
            if tag.start < at or tag.pairs_as != opened.pairs_as:
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
    """Blank what a model's raw output says from line `start` on, up to its final channel.

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
    opened: dict[tuple[str, str], int] = {}
    for number, line in prose:
        for tag in tags_on(line):
            if not tag.thinks:
                continue
            count = opened.get(tag.pairs_as, 0) + (-1 if tag.closes else 1)
            if count < 0:
                return number
            opened[tag.pairs_as] = count
    return None


def stray(i: int) -> UnreadableEdit:
    """What refuses a closing tag on line `i` (an index) to which none opens."""
    return UnreadableEdit(
        i,
        "a thinking block ends here that begins nowhere, so what stands before it may be a draft",
        _ALONE,
    )
