"""People whose word on a pull request decides."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from msgspec import Struct

from patchq.forge.contract import Project
from patchq.gate.config.schema import Forge as Section


class Deciders(Struct, frozen=True):
    """People who decide, and what their word does; `named` are accounts of `forge.people`.

    `alone`: no other process serves the queue, so this one lands what it accepts.
    """

    me: str
    section: Section
    alone: bool
    may: Callable[[str], bool]
    is_named: Callable[[str], bool]


def rules_of(forge: Project, section: Section, me: str, alone: bool) -> Deciders:
    """Return whose word counts, as the forge knows these accounts now."""
    logins = {one.casefold() for one in section.people if "/" not in one}
    teams = [one for one in section.people if "/" in one]

    @lru_cache
    def is_named(login: str) -> bool:
        return login.casefold() in logins or any(forge.is_member(team, login) for team in teams)

    @lru_cache
    def may(login: str) -> bool:
        return is_named(login) if section.people else forge.may(login)

    return Deciders(me, section, alone, may, is_named)
