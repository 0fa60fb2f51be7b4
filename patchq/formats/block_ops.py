"""What a block says: the operation that its two halves stand for."""

from __future__ import annotations

from patchq.formats.marks.blocks import Block
from patchq.formats.marks.paths import Known, path_line, word_line
from patchq.formats.unreadable import Unreadable
from patchq.model.ops import Create, DeleteFile, Op, Rename, Replace


def op_of(block: Block, known: Known) -> Op:
    """The operation of a block; raises `Unreadable` if its halves say nothing certain."""
    if block.word == "RENAME":
        return Rename(_new_path(block, known))
    if block.word == "DELETE":
        return _deletion(block)
    if block.creates:
        return Create(_joined(block.new))
    if not any(line.strip() for line in block.old):
        raise Unreadable(
            block.start + 1,
            "the SEARCH part holds blank lines only",
            "leave it empty to create the file, or quote lines with text",
        )
    return Replace(_joined(block.old), _joined(block.new))


def _new_path(block: Block, known: Known) -> str:
    named = [line for line in block.old if line.strip()]
    path = None
    if len(named) == 1:
        path = path_line(named[0], known) or word_line(named[0])
    if path is None:
        raise Unreadable(
            block.start,
            "expected one line with the new path, and nothing else, between the RENAME markers",
            "send `<<<<<<< RENAME`, the new path, `>>>>>>> RENAME`, each on a line of its own",
        )
    return path


def _deletion(block: Block) -> DeleteFile:
    for i, line in enumerate(block.old, block.start + 1):
        if line.strip():
            raise Unreadable(
                i,
                "expected nothing between the DELETE markers",
                "to delete lines, use a SEARCH block with an empty REPLACE part",
            )
    return DeleteFile()


def _joined(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)
