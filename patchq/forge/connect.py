"""The forge that the configuration names: its address, project and token, and what they lack."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from functools import partial
from typing import Literal
from urllib.parse import unquote, urlsplit

import httpx2

from patchq.forge import github
from patchq.forge.contract import CONTEXT, Project
from patchq.forge.gitlab import GitLab
from patchq.forge.wire import Wire
from patchq.gate.config.schema import Config, Forge
from patchq.gate.errors import UsageError
from patchq.gate.git.repository import Repository

_COMMAND_SECONDS = 30.0
_SHORT = re.compile(r"(?:[^@/]+@)?([^/:]+):(?!//)(.+)")
_KINDS: dict[str, Literal["github", "gitlab"]] = {"github.com": "github", "gitlab.com": "gitlab"}
_APIS = {"github": "/api/v3", "gitlab": "/api/v4"}


def place_of(url: str) -> tuple[str, str]:
    """Return the host of a remote's URL, and the path of the project."""
    short = _SHORT.fullmatch(url)
    parts = urlsplit(url)
    host, path = short.groups() if short else (parts.hostname or "", unquote(parts.path))
    return host, path.strip("/").removesuffix(".git")


def project_of(
    repo: Repository, config: Config, transport: httpx2.BaseTransport | None = None
) -> Project:
    """Return the configured project on the forge; raises `UsageError` if there is none."""
    if not config.has_forge:
        raise UsageError(
            "the configuration has no `forge` section", "add it, as docs/forge.md shows"
        )
    section = config.forge
    url = repo.setting(f"remote.{section.remote}.url")
    if not url:
        raise UsageError(
            f"there is no remote `{section.remote}`, which `forge.remote` names",
            f"git remote add {section.remote} URL, or correct `forge.remote`",
        )
    host, path = place_of(url)
    if "/" not in path:
        raise UsageError(
            f"the URL of the remote `{section.remote}` does not end in owner/name",
            "give it the URL of the project on the forge",
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
    wire = Wire(base, token, section.write_seconds, transport, headers=github.HEADERS)
    return github.GitHub(wire, "/".join(path.split("/")[-2:]))


def token_of(section: Forge) -> str:
    """Return the token; raises `UsageError` if there is none."""
    if section.token_command:
        return _printed(section.token_command)
    if token := os.environ.get(section.token_env, "").strip():
        return token
    raise UsageError(
        f"there is no token: {section.token_env} is not set",
        "set it, or `forge.token_command` to a command that prints one",
    )


def _printed(command: str) -> str:
    try:
        done = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        done = None
    token = done.stdout.strip() if done and done.returncode == 0 else ""
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError(
            "`forge.token_command` prints no token", "run it by hand to see what is wrong"
        )
    return token


def findings(forge: Project, section: Forge, target: str) -> list[tuple[str, str]]:
    """Return findings on the token and the target's protection, each with a level.

    The level is `ok` or `todo`.
    """
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
