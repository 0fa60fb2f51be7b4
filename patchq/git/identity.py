"""Who makes a commit: names and addresses that stay inside their header line.

libgit2 writes a line end in an address into the commit's header, and with one in a name it makes a
commit that it cannot read itself, so identities are cleaned here, where they come in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_CRUD = re.compile(r"[\x00-\x1f\x7f<>]")
_EDGES = " .,:;\"\\'"

Role = Literal["AUTHOR", "COMMITTER"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who and when: `when` in seconds since the epoch, `offset` from UTC in minutes."""

    name: str
    email: str
    when: int = 0
    offset: int = 0

    def __str__(self) -> str:
        """As in a commit's header and in a reflog."""
        sign, minutes = "-" if self.offset < 0 else "+", abs(self.offset)
        zone = f"{sign}{minutes // 60:02}{minutes % 60:02}"
        return f"{self.name} <{self.email}> {self.when} {zone}"


def make_identity(name: str, email: str, when: int = 0, offset: int = 0) -> Identity | None:
    """An identity without what would break out of a header line, or None if no name is left.

    Like git (`ident.c`), angle brackets and line ends vanish and punctuation at the edges goes;
    unlike git, so do all control characters.
    """
    name, email = (_CRUD.sub("", text).strip(_EDGES) for text in (name, email))
    return Identity(name, email, when, offset) if name else None


def parse_identity(text: str) -> Identity | None:
    """`Ada <ada@example.org>`, or None; the time is the epoch."""
    match = re.fullmatch(r"\s*([^<>]*?)\s*<([^<>]*)>\s*", text)
    return make_identity(match[1], match[2]) if match else None
