"""The forge that the configuration names: its project and token, what they lack, what it tells.

`ForgeReading` is a process's memory of it: it saves requests, and may be lost at any time.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from functools import cached_property, partial
from typing import Literal
from urllib.parse import unquote, urlsplit

import httpx2

from patchq.forge.github import HEADERS, GitHub
from patchq.forge.gitlab import GitLab
from patchq.forge.wire import CONTEXT, CheckState, Conversation, PullRequest, Wire
from patchq.gate.config.schema import Config, Forge
from patchq.gate.errors import UsageError
from patchq.gate.git import records
from patchq.gate.git.repository import Repository

Project = GitHub | GitLab
_COMMAND_SECONDS = 30.0
_SHORT = re.compile(r"(?:[^@/]+@)?([^/:]+):(?!//)(.+)")
_KINDS: dict[str, Literal["github", "gitlab"]] = {"github.com": "github", "gitlab.com": "gitlab"}
_APIS = {"github": "/api/v3", "gitlab": "/api/v4"}


def project_of(
    repo: Repository, config: Config, transport: httpx2.BaseTransport | None = None
) -> Project:
    """Return the configured project on the forge; raises `UsageError` if there is none."""
    if not config.has_forge:
        raise UsageError(
            "the configuration has no `forge` section", "add it, as docs/forge.md shows"
        )
    section = config.forge
    url = repo.setting(f"remote.{section.remote}.url") or ""
    short, parts = _SHORT.fullmatch(url), urlsplit(url)
    host, path = short.groups() if short else (parts.hostname or "", unquote(parts.path))
    path = path.strip("/").removesuffix(".git")
    if "/" not in path:
        raise UsageError(
            f"there is no remote `{section.remote}` with a URL that ends in owner/name",
            f"git remote add {section.remote} URL, or correct `forge.remote`",
        )
    kind = section.kind or _KINDS.get(host)
    if not kind or not (host or section.url):
        raise UsageError(
            f"it is not known which forge {host or 'the remote'} is",
            "set `forge.kind`, and `forge.url` to the address of its API",
        )
    known = "https://api.github.com" if host == "github.com" else f"https://{host}{_APIS[kind]}"
    base, token = section.url or known, partial(token_of, section)
    if kind == "gitlab":
        # A server below a path has it in addresses of projects, too.
        prefix = urlsplit(base).path.rstrip("/").removesuffix(_APIS[kind]).lstrip("/")
        wire = Wire(base, token, section.write_seconds, transport)
        return GitLab(wire, path.removeprefix(f"{prefix}/"))
    wire = Wire(base, token, section.write_seconds, transport, headers=HEADERS)
    return GitHub(wire, "/".join(path.split("/")[-2:]))


def token_of(section: Forge) -> str:
    """Return the token; raises `UsageError` if there is none."""
    if not section.token_command:
        token, what = os.environ.get(section.token_env, ""), f"{section.token_env} is not set"
    else:
        what = "`forge.token_command` prints no token"
        try:
            token = subprocess.run(
                shlex.split(section.token_command),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_COMMAND_SECONDS,
                check=True,
            ).stdout
        except (OSError, ValueError, subprocess.SubprocessError):
            token = ""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError(what, "set it to a token, or `forge.token_command` to what prints one")
    return token


class ForgeReading:
    """Requests, conversations and statuses of one project; `tell` gets what is done."""

    def __init__(self, forge: Project, tell: Callable[[str], None]) -> None:
        self.forge, self.tell = forge, tell
        self.requests: dict[int, PullRequest] = {}
        self._since: str | None = None
        self._told: set[str] = set()
        self._asked: set[str] = set()
        self._talks: dict[int, tuple[str, Conversation]] = {}
        self.statuses: dict[str, CheckState | None] = {}

    @cached_property
    def me(self) -> str:
        return self.forge.me()

    def warn(self, text: str) -> None:
        """Tell of a problem once."""
        if text not in self._told:
            self._told.add(text)
            self.tell(text)

    def refresh(self) -> bool:
        """Update the requests from the forge; return False if none changed."""
        changed = self.forge.changed(self._since)
        new = {one.number: one for one in changed if records.is_branch(one.branch)}
        moved = any(self.requests.get(number) != one for number, one in new.items())
        self.requests |= new
        self._since = max((one.updated for one in changed), default=self._since)
        return moved

    def request_of(self, branch: str) -> PullRequest | None:
        """Return the request of a branch: the open one, else the newest."""
        found = [one for one in self.requests.values() if one.branch == branch]
        if not found and branch not in self._asked:
            found = list(self.forge.of_branch(branch))
            self._asked.add(branch)
            self.requests |= {one.number: one for one in found}
        return max(found, key=lambda one: (one.is_open, one.number), default=None)

    def add(self, request: PullRequest) -> None:
        self.requests[request.number] = request
        self._since = self._since or request.updated

    def talk(self, request: PullRequest | None) -> Conversation:
        if request is None or not request.is_open:
            return Conversation()
        updated, talk = self._talks.get(request.number, ("", Conversation()))
        if updated != request.updated:
            talk = self.forge.conversation(request.number)
            self._talks[request.number] = request.updated, talk
        return talk

    def status(self, sha: str) -> CheckState | None:
        if sha not in self.statuses:
            known = {one.name: one.state for one in self.forge.statuses(sha)}
            self.statuses[sha] = known.get(CONTEXT)
        return self.statuses[sha]

    def forget(self, number: int | None) -> None:
        """Drop the cached conversation, which is about to change."""
        self._talks.pop(number or 0, None)


def findings(forge: Project, target: str) -> list[tuple[str, str]]:
    """Return findings on the token and the target's protection, each with a level.

    The level is `ok` or `todo`.
    """
    rights = forge.rights(target)
    required = rights.required
    ends = f", and expires at {forge.wire.expires}" if forge.wire.expires else ""
    rows = [
        (True, f"the token belongs to {rights.login or 'an app'}{ends}"),
        (rights.can_write, "it may write to the project"),
        (required is None or CONTEXT in required, f"{target} requires the status {CONTEXT}"),
    ]
    if required is None:
        rows[-1] = True, f"the protection of {target} is not shown to this token"
    return [("ok" if good else "todo", text if good else f"missing: {text}") for good, text in rows]
