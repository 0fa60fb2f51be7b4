"""One response on its way from bytes to commit, with the values that it really has on it.

`python -m tests.helpers.walk` sends it through the pipeline and writes what the functions of
`STATIONS` returned into `docs/architecture.md`; a test compares the two.  What differs from run to
run (tokens, commits, times) is replaced by words in capitals.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import NODEFAULT, Struct, to_builtins

from tests.helpers.gitrepo import write_config
from tests.helpers.pages import ARCHITECTURE, ROOT, rewrite

FILE = """\
def total(items, tax):
    if tax:
        value = sum(items)
        return value * tax
    return sum(items)
"""
RESPONSE = """\
---
agent: writer-1
message: Round the total
---
The amounts have cents, so the total is rounded.

shop/cart.py
<<<<<<< SEARCH
    value = sum(items)
    return value * tax
=======
    value = sum(items)
    return round(value * tax, 2)
>>>>>>> REPLACE
"""
STATIONS = {
    "patchq.gate.queue.engine.StoreQueue.claim": (
        "The queue moves the file to `active/`, out of reach, and hands out a claim."
    ),
    "patchq.core.formats.envelope.front_matter.open_response": (
        "What surrounds the edits is taken off: the front matter, an API's answer, thinking."
    ),
    "patchq.core.formats.parse": (
        "The formats read the text line by line; what none of them takes is prose."
    ),
    "patchq.core.resolve.match.match": (
        "The quote is looked for, level by level. It stands nowhere exactly, and in one place when "
        "its indentation does not count; what is written has the file's own."
    ),
    "patchq.core.plan.batch.plan": (
        "All edits together are a plan: the files' new bytes, and what became of each edit."
    ),
    "patchq.core.text.unified.unified": "The difference, for the report and for hooks.",
    "patchq.gate.report.message.compose": (
        "The commit's message; only the last paragraph is patchq's."
    ),
    "patchq.gate.git.repository.Repository.write_commit": (
        "The candidate, commit and tree: objects in memory that nothing reaches yet. Hooks would "
        "see it now."
    ),
    "patchq.gate.report.document.to_json": (
        "The intended report is written beside the claim before the ref moves (most keys left out)."
    ),
}
"""Functions in the order of the flow, each with what happens there."""
KEYS = ("id", "state", "target", "base", "commit", "tree", "edits", "problems")


# ---------------------------------------------------------------- recording


def _record(repo: Path) -> dict[str, Any]:
    """What each station returned first while `patchq run` works."""
    from patchq.cli import main

    found: dict[str, Any] = {}

    def look(frame: FrameType, event: str, value: Any) -> None:
        if event == "return":
            code = frame.f_code
            name = f"{frame.f_globals.get('__name__')}.{code.co_qualname}"
            if name in STATIONS and value:
                found.setdefault(name, value)

    sys.setprofile(look)
    try:
        assert main(["-q", "-C", str(repo), "run"]) == 0
    finally:
        sys.setprofile(None)
    assert list(found) == list(STATIONS), f"the way was {list(found)}"
    return found


# ---------------------------------------------------------------- showing


def _shown(value: Any, indent: str = "") -> str:
    """A value as Python would write it, without the fields that have their defaults."""
    inner = indent + "    "
    if isinstance(value, Struct):
        defaults = {
            name: getattr(default, "factory", lambda default=default: default)()
            for name, default in zip(
                reversed(value.__struct_fields__), reversed(value.__struct_defaults__), strict=False
            )
        }
        pairs = [
            f"{name}={_shown(part, inner)}"
            for name in value.__struct_fields__
            if (part := getattr(value, name)) != defaults.get(name, NODEFAULT)
        ]
        return _wrapped(f"{type(value).__name__}(", pairs, ")", indent)
    if isinstance(value, Mapping):
        pairs = [f"{key!r}: {_shown(part, inner)}" for key, part in value.items()]
        return _wrapped("{", pairs, "}", indent)
    if isinstance(value, (list, tuple)):
        opened, closed = ("[", "]") if isinstance(value, list) else ("(", ")")
        parts = [_shown(part, inner) for part in value]
        comma = "," if closed == ")" and len(parts) == 1 else ""
        return _wrapped(opened, parts, comma + closed, indent)
    if isinstance(value, (str, bytes)) and len(value) > 90:
        return f"{value[:60]!r} … {value[-25:]!r}"
    return repr(value)


def _wrapped(opened: str, parts: list[str], closed: str, indent: str) -> str:
    line = opened + ", ".join(parts) + closed
    if len(indent) + len(line) <= 96 and "\n" not in line:
        return line
    inner = "".join(f"{indent}    {part},\n" for part in parts)
    return f"{opened}\n{inner}{indent}{closed.removeprefix(',')}"


def _steady(text: str, repo: Path) -> str:
    """The text without what differs from run to run."""
    commits = _git(repo, "log", "--format=%H", "main").split()
    for oid, word in zip(commits, ("COMMIT", "BASE"), strict=True):
        text = text.replace(oid, word)
    return re.sub(r"\b[0-9a-f]{16}-[0-9a-f-]+|\b[0-9]{8,}-[0-9a-z-]+", "TOKEN", text)


def _git(repo: Path, *words: str) -> str:
    command = ["git", *words]
    done = subprocess.run(
        command, cwd=repo, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def _told(repo: Path) -> str:
    values = _record(repo)
    report = "patchq.gate.report.document.to_json"
    values[report] = {key: to_builtins(values[report])[key] for key in KEYS}
    parts = ["A file `inbox/round.md` arrives:", f"```text\n{RESPONSE}```"]
    for name, what in STATIONS.items():
        module, _, function = name.removeprefix("patchq.").partition(".")
        value = values[name]
        text = value.rstrip("\n") if isinstance(value, str) else _shown(value)
        parts += [f"**`{module}`: `{function}`.** {what}", f"```text\n{text}\n```"]
    parts += [
        "**`land`.** One flush, one compare-and-swap of the ref, one flush; then the claim's files "
        "are renamed to what they say.",
        f"```console\n{_ends(repo)}```",
    ]
    return _steady("\n\n".join(parts), repo)


def _ends(repo: Path) -> str:
    """What git and the queue show in the end."""
    shown = ""
    for words in (
        ("log", "--format=%h %an: %s", "--abbrev=40", "main"),
        ("for-each-ref", "--format=%(refname) %(objectname)"),
        ("show", "--format=", "--stat=72", "main"),
    ):
        command = " ".join(f"'{word}'" if "%" in word else word for word in words)
        shown += f"$ git {command}\n{_git(repo, *words)}"
    listed = sorted(path.name for path in (repo / ".patchq/done").iterdir())
    return shown + "$ ls .patchq/done\n" + "".join(f"{name}\n" for name in listed)


def _followed(at: Path) -> str:
    repo = at / "project"
    (repo / "shop").mkdir(parents=True)
    (repo / "shop/cart.py").write_text(FILE)
    for words in ("init -q -b main", "add .", "commit -q -m Start"):
        _git(repo, *words.split())
    write_config(repo, "version: 1\nmode: auto\n")
    (repo / ".patchq/inbox").mkdir(parents=True)
    (repo / ".patchq/inbox/round.md").write_text(RESPONSE)
    os.utime(repo / ".patchq/inbox/round.md", (1e9, 1e9))
    return _told(repo)


def parts() -> dict[str, str]:
    """What stands on the page between the markers; made by a process with no one's settings."""
    person = {"NAME": "You", "EMAIL": "you@example.org"}
    roles = ("AUTHOR", "COMMITTER")
    named = {f"GIT_{role}_{what}": value for role in roles for what, value in person.items()}
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-m", "tests.helpers.walk", home],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "HOME": home, "GIT_CONFIG_NOSYSTEM": "1", **named},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    return {"walk": json.loads(done.stdout)}


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(_followed(Path(sys.argv[1]))))
    else:
        rewrite(ARCHITECTURE, parts())
