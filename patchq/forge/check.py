"""Checks of the token and of the target's protection, for `patchq forge check`."""

from __future__ import annotations

from patchq.forge.contract import CONTEXT, Project
from patchq.gate.config.schema import Forge as Section


def findings(forge: Project, section: Section, target: str) -> list[tuple[str, str]]:
    """Return levels (`ok`, `todo`) with what was found."""
    rights = forge.rights(target)
    found = [("ok", f"the token belongs to {rights.login or 'an app'}")]
    if rights.can_write:
        found.append(("ok", "it may write to the project"))
    else:
        found.append(("todo", "it may not write to the project: give it pull requests, statuses"))
    if forge.wire.expires:
        found.append(("ok", f"it expires at {forge.wire.expires}"))
    if rights.required is None:
        found.append(("ok", f"the protection of {target} is not shown to this token"))
    elif CONTEXT in rights.required:
        found.append(("ok", f"{target} requires the status {CONTEXT}"))
    else:
        found.append(("todo", f"{target} does not require the status {CONTEXT}"))
    if section.on_approve == "none":
        found.append(("ok", "approvals are shown, and accept nothing (`forge.on_approve`)"))
    return found
