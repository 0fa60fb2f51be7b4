"""The judgements of the default gate: pure functions of a plan, on the standard library alone.

A judgement takes a plan (`patchq.plan/1`, as a dict) and the environment, and returns the lines of
its refusal; none lets the batch pass.  patchq calls them in its own process, the scripts beside
this file by a plan on standard input.  Only added lines are looked at: what was in the repository
before is not the batch's doing.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

Plan = Mapping[str, Any]
Judge = Callable[[Plan, Mapping[str, str]], list[str]]

Added = tuple[str, int, str]
"""Path, line number and text of a line that a diff adds."""

CUT = "\N{HORIZONTAL ELLIPSIS} "
"""How the line begins that stands where a diff was cut; no line of a whole diff begins so."""


def main(judge: Judge) -> int:
    """Judge the plan on standard input: 0 passes, 1 refuses, 126 says that nothing was judged."""
    try:
        plan = json.load(sys.stdin)
        if not isinstance(plan, dict):
            raise ValueError("no plan on standard input")
        refusals = judge(plan, os.environ)
    except ValueError as error:
        print(f"cannot judge: {error}", file=sys.stderr)
        return 126
    sys.stderr.writelines(f"{line}\n" for line in refusals)
    return 1 if refusals else 0


def gate(plan: Plan, environ: Mapping[str, str]) -> list[str]:
    """All of them, one after the other."""
    return [*secrets(plan, environ), *protected_paths(plan, environ), *size_limits(plan, environ)]


# ---------------------------------------------------------------- the diff

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_QUOTED = re.compile(r"\\(?:([0-7]{3})|(.))")
_NAMED = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}


def touched_paths(plan: Plan) -> list[str]:
    """Every path that the plan changes, creates, deletes or renames, the old name too."""
    edits = (edit for edit in plan.get("edits") or () if edit["state"] in ("applied", "ready"))
    return list(dict.fromkeys([*(edit["path"] for edit in edits), *_read(plan)[0]]))


def _read(plan: Plan) -> tuple[list[str], list[Added]]:
    """The paths of the plan's diff, and its added lines with their places."""
    paths: list[str] = []
    added: list[Added] = []
    number = old = new = 0
    for line in _diff(plan):
        sign, text = line[:1], line[1:]
        if old > 0 or new > 0:
            if sign == "+":
                added.append((paths[-1], number, text))
            old -= sign != "+"
            new -= sign != "-"
            number += sign != "-"
        elif hunk := _HUNK.match(line):
            old, number, new = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
        elif line.startswith(("--- ", "+++ ")) and line[4:] != "/dev/null":
            paths.append(re.sub("^[ab]/", "", _unquoted(line[4:].rstrip("\t"))))
        elif line.startswith(("rename from ", "rename to ")):
            paths.append(_unquoted(line.split(" ", 2)[2]))
    return paths, added


def _diff(plan: Plan) -> list[str]:
    # Only at line feeds: a line of a file may hold any other of Python's line ends.
    return [line for line in (plan.get("diff") or "").split("\n") if line[:1] != "\\"]


def _unquoted(name: str) -> str:
    """A path as it is, from git's way to print it."""
    if not (name.startswith('"') and name.endswith('"')):
        return name
    plain = _QUOTED.sub(lambda m: chr(int(m[1], 8)) if m[1] else _NAMED.get(m[2], m[2]), name[1:-1])
    return plain.encode("latin-1", "ignore").decode("utf-8", "surrogateescape")


# ---------------------------------------------------------------- no secrets

_FORMATS = {
    "an AWS access key id": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "an AWS secret key": r"(?i:aws.{0,20}(?:secret|key).{0,20}?[:=]\s*[\"']?)[\w/+]{40}(?![\w/+=])",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{40,255})\b",
    "a GitLab token": r"\bgl(?:pat|dt|rt|ptt|ft|soat|cbt)-[\w-]{20,}",
    "a Slack token": r"\bxox[abeoprs]-(?:\d+-)?[\w-]{16,}",
    "a Slack webhook": r"hooks\.slack\.com/services/T\w{6,}/B\w{6,}/\w{20,}",
    "a Google API key": r"\bAIza[\w-]{35}(?![\w-])",
    "a Stripe live key": r"\b[sr]k_live_[A-Za-z0-9]{16,}",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}\b|(?<=_authToken=)[\w-]{20,}",
    "a PyPI token": r"\bpypi-AgE[\w-]{40,}",
    "a model provider's key": r"\bsk-(?:ant|proj|svcacct|or-v1)-[\w-]{32,}",
    "a Hugging Face token": r"\bhf_[A-Za-z]{34}\b",
    "a SendGrid key": r"\bSG\.[\w-]{22}\.[\w-]{43}(?![\w-])",
    "a DigitalOcean token": r"\bdo[opr]_v1_[a-f0-9]{64}\b",
}
_TOKEN = re.compile("|".join(f"({pattern})" for pattern in _FORMATS.values()))
_JWT = re.compile(r"\beyJ[\w-]{10,}\.(eyJ[\w-]{10,})\.[\w-]{20,}")
_KEY_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_KEY_HEADERS = re.compile(r"(?:\\[nr]|[\s\"'+,;>|#*/]|[A-Z][\w-]+: [^\\\n]*)*")
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=]{16}")
_NAME = r"(?i:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|(?:api|access|private)_?key)"
_ASSIGNED = re.compile(
    rf"{_NAME}\w{{0,20}}[\"']?\]?\s*(?::=|=>|[:=])\s*[rbuf]?([\"'`])([^\s\"'`]{{12,200}})\1"
)
_BARE = re.compile(rf"{_NAME}\w{{0,20}}\s*[:=]\s*([\w+/=~!@#%^&*.-]{{16,200}})\s*$")
_BARE_FILES = re.compile(r"(?:^|/)[^/]*\.(?:env|ini|cfg|conf|properties|ya?ml|npmrc)(?:\.\w+)?$")
_IN_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]+://[^\s/:@\"']*:([^\s/@\"']{8,200})@")
_MARKS = (
    "akia", "asia", "aws", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "gl", "xox",
    "slack.com/services/", "aiza", "k_live_", "npm_", "_authtoken", "pypi-", "sk-", "hf_", "sg.",
    "_v1_", "eyj", "private key", "pass", "pwd", "secret", "token", "credential", "key", "://",
)  # fmt: skip
"""A line that holds none of these, in lower case, holds no secret: most need no other look."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"example|placeholder|dummy|fake|sample|change.?me|your|redacted|insert|replace|xxxx|\*\*\*"
    r"|\.\.\.|[<>]|\$\{|\{\{|\$\(|%\(",
    re.IGNORECASE,
)


def secrets(plan: Plan, environ: Mapping[str, str]) -> list[str]:
    """Refuse added lines that hold a private key or what looks like a live token or password.

    A line begins with the code `edit.secret`, says where and what kind, and never repeats any of
    it.  Placeholders pass.
    """
    lines = _read(plan)[1]
    whole = "\n".join(text for *_, text in lines).lower()
    marks = [mark for mark in _MARKS if mark in whole]
    found = []
    for at, (path, number, text) in enumerate(lines):
        lower = text.lower() if marks else ""
        likely = any(mark in lower for mark in marks)
        if likely and (kind := secret_kind(text, path, lines[at + 1 : at + 7])):
            found.append(f"edit.secret: {_shown(path)}:{number}: looks like {kind}")
    if found:
        found.append("Leave secrets out; read them from the environment or a secret store.")
    if any(line.startswith(CUT) for line in _diff(plan)):
        found.append("The change is too large to be searched for secrets; send it in parts.")
    return found


def secret_kind(text: str, path: str = "", behind: Sequence[Added] = ()) -> str | None:
    """What kind of secret a line of the file holds, in words; `behind` are lines added after it."""
    for match in _TOKEN.finditer(text):
        if not _is_placeholder(match[0]):
            return list(_FORMATS)[(match.lastindex or 1) - 1]
    block = _KEY_BLOCK.search(text)
    if block and _has_key(text[block.end() :], *(line for at, _, line in behind if at == path)):
        return "a private key"
    if any(_is_signed(match[1]) for match in _JWT.finditer(text)):
        return "a signed JSON web token"
    assigned = [match[2] for match in _ASSIGNED.finditer(text)]
    if _BARE_FILES.search(path):
        assigned += [match[1] for match in _BARE.finditer(text)]
    if any(_is_random(value) for value in assigned):
        return "a password or key"
    in_address = any(_is_random(match[1]) for match in _IN_ADDRESS.finditer(text))
    return "a password in an address" if in_address else None


def _shown(path: str) -> str:
    return path if path.isprintable() else ascii(path)


def _is_placeholder(token: str) -> bool:
    body = re.sub(r"^[A-Za-z]{2,8}[_-]", "", token)
    return _PLACEHOLDER.search(token) is not None or not set(body) - set("xX0*.-_")


def _has_key(*lines: str) -> bool:
    """Whether a key's body follows its first line, rather than dots, a quote or code."""
    text = "\n".join(lines)
    start = _KEY_HEADERS.match(text)
    body = _KEY_BODY.match(text, start.end() if start else 0)
    return body is not None and not _is_placeholder(body[0])


def _is_signed(payload: str) -> bool:
    """Whether a token's payload is somebody's claims, and not the one that every tutorial shows."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError:
        return False
    return isinstance(claims, dict) and claims.get("sub") != "1234567890"


def _is_random(value: str) -> bool:
    """Whether a text looks drawn by lot: many characters, of kinds that alternate."""
    text = re.sub(r"[-_./: ]", "", value)
    if len(text) < 10 or _is_placeholder(value) or _UUID.fullmatch(value):
        return False
    kinds = ["d" if c.isdigit() else "p" if not c.isalpha() else c.isupper() for c in text]
    turns = sum(a != b for a, b in pairwise(kinds))
    counts = Counter(text).values()
    entropy = -sum(n / len(text) * math.log2(n / len(text)) for n in counts)
    return "d" in kinds and turns >= 0.3 * len(text) and entropy >= 3


# ---------------------------------------------------------------- protected paths

PROTECTED = (
    # credentials that no name in `paths.deny` covers
    ".ssh/", ".gnupg/", ".aws/", ".kube/", ".git-credentials", ".docker/config.json", ".htpasswd",
    "*.jks", "*.keystore", "*.ppk", "*.tfstate", "*.tfstate.backup", "*.ovpn",
    # what tools install and build
    "node_modules/", ".venv/", "site-packages/", "__pycache__/", "*.pyc", "*.class",
    # the terms of use
    "/LICENSE*", "/LICENCE*", "/COPYING*", "/NOTICE*",
)  # fmt: skip


def protected_paths(plan: Plan, environ: Mapping[str, str]) -> list[str]:
    """Refuse changes of the paths in `PROTECTED` and in the variable `PATCHQ_PROTECTED`: gitignore
    patterns between blanks, without case; `!pattern` takes paths out."""
    patterns = [*PROTECTED, *environ.get("PATCHQ_PROTECTED", "").split()]
    compiled = [(pattern, _glob(pattern.removeprefix("!"))) for pattern in patterns]
    found = []
    for path in touched_paths(plan):
        last = next((text for text, glob in reversed(compiled) if glob.fullmatch(path)), "!")
        if not last.startswith("!"):
            found.append(f"{_shown(path)}: is protected by the pattern {last}")
    if found:
        found.append("Leave these files as they are; a person changes them.")
    return found


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """A gitignore pattern as an expression for whole paths of files."""
    parts = pattern.strip("/").split("/")
    anchored = "/" in pattern.rstrip("/")
    found = "" if anchored else "(?:.*/)?"
    for part in parts[:-1]:
        found += "(?:.*/)?" if part == "**" else _component(part) + "/"
    found += ".*" if parts[-1] == "**" else _component(parts[-1])
    return re.compile(found + ("/.*" if pattern.endswith("/") else "(?:/.*)?"), re.I | re.S)


def _component(part: str) -> str:
    found = ""
    for token in re.findall(r"\[!?\]?[^\]]*\]|\\.|.", part, re.DOTALL):
        if token in ("*", "?"):
            found += "[^/]*" if token == "*" else "[^/]"
        elif len(token) > 2 and token.startswith("["):
            inside = token[1:-1].replace("\\", "\\\\")
            found += f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
        else:
            found += re.escape(token[-1])
    return found


# ---------------------------------------------------------------- size limits

LIMITS = {
    "PATCHQ_MAX_FILES": (200, "files touched"),
    "PATCHQ_MAX_LINES": (20_000, "lines added"),
    "PATCHQ_MAX_BYTES": (2_000_000, "bytes added"),
}
"""Variable -> (default, what it limits); 0 switches a limit off."""


def size_limits(plan: Plan, environ: Mapping[str, str]) -> list[str]:
    """Refuse a batch that is larger than a person reviews at once."""
    sizes = [len(line.encode("utf-8", "surrogateescape")) + 1 for *_, line in _read(plan)[1]]
    counts = (len(touched_paths(plan)), len(sizes), sum(sizes))
    found = []
    for (name, (default, what)), count in zip(LIMITS.items(), counts, strict=True):
        most = environ.get(name, str(default))
        if not most.isdecimal():
            raise ValueError(f"{name} is not a number")
        if 0 < int(most) < count:
            found.append(f"{count} {what}, more than {most} ({name})")
    if found:
        found.append("Send the change in several batches.")
    return found
