"""`patchq setup`, which connects the clients of this machine, and checks them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from argparse import Namespace
from asyncio.subprocess import PIPE
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from signal import SIGKILL
from typing import Any

from patchq import __version__
from patchq.cli import admin, output
from patchq.cli.arguments import Argument, Table, agreed, known
from patchq.cli.setup import changes
from patchq.cli.setup.changes import PlannedFile
from patchq.cli.setup.clients import CLIENTS, INSTRUCTIONS, NAME, SKILL, TEXT, ServerFile
from patchq.core.text.quote import visible
from patchq.gate.api.location import Location
from patchq.gate.errors import UsageError

ARGUMENTS: Table = {
    "setup": (
        Argument("clients", metavar="CLIENT", nargs="*", help="of those in --list"),
        Argument("--yes", action="store_true", help="write without asking"),
        (
            Argument("--dry-run", action="store_true", help="show what would be written"),
            Argument("--remove", action="store_true", help="take out what setup put in"),
            Argument("--check", action="store_true", help="prove again what is written"),
            Argument("--list", action="store_true", help="list the clients, and which are here"),
        ),
        Argument("--command", metavar="CMD", help="the command, in place of this patchq's path"),
        Argument("--user", action="store_true", help="write the clients' files in your home"),
    ),
}
_UVX = ["uvx", "--from", f"{NAME}[all]", NAME, "mcp"]
_SHOWN = ("problem", "note", "it says", "to do")


def instructions(args: Namespace) -> int:
    return output.emit(args, {"instructions": TEXT}, TEXT.removesuffix("\n"))


def setup(args: Namespace) -> int:
    location = output.gate(args).location
    if location.repo.workdir is None:
        raise UsageError(
            "a bare repository has no work tree in which agents would look",
            "run this in a clone of it, or see `patchq instructions`",
        )
    return _Setup(args, location, location.repo.workdir).run()


class _Setup:
    def __init__(self, args: Namespace, location: Location, root: Path) -> None:
        self.args, self.location, self.root = args, location, root
        own = shlex.split(args.command) if args.command else output.own_words()
        self.own = own if own[-1:] == ["mcp"] else [*own, "mcp"]
        self.failure = cache(self._failure)

    def run(self) -> int:
        args = self.args
        used = [name for name in CLIENTS if args.remove or self.trace(name)]
        named = (known("client", name, CLIENTS) for name in args.clients)
        names = list(dict.fromkeys(named)) or used
        if args.list:
            rows = [self.listed(name) for name in CLIENTS]
            row = "{name:<9} {client:<12} {file:<24} {found}"
            return output.emit(args, rows, *(row.format(**one).rstrip() for one in rows))
        planned = [] if args.check else self.planned(names)
        changed = [one for one in planned if one.before != one.after]
        diffs = [line for one in changed for line in one.diff()]
        paths = [one.path for one in changed]
        if args.dry_run:
            return output.emit(args, {"files": paths}, *(diffs or ["nothing would change"]))
        if changed and not agreed(args, f"change {', '.join(paths)}", *diffs):
            raise UsageError("nothing is changed", "answer y, or say --yes")
        states = {one.path: one.note or "unchanged" for one in planned if one.before is not None}
        if args.remove and not (args.clients or args.user):
            states |= dict.fromkeys(admin.take_back_draft(self.location), "removed")
        elif not (args.remove or args.check):
            admin.make_missing(args, self.location)
        for one in changed:
            one.write(self.root)
            states[one.path] = "removed" if args.remove else "written"
        local = [one.path for one in planned if args.remove or one.is_local]
        self.location.keep_out_of_commits(local, remove=args.remove)
        return self.prove([] if args.remove else names, states)

    def trace(self, name: str) -> str:
        client = CLIENTS[name]
        programs = filter(None, map(shutil.which, client.programs))
        files = (one for one in client.traces if os.path.lexists(self.root / one))
        return [*programs, *files, ""][0]

    def listed(self, name: str) -> dict[str, str]:
        file, _ = self.server(name)
        path, found = file.path if file else "", self.trace(name)
        return {"name": name, "client": CLIENTS[name].title, "file": path, "found": found}

    def server(self, name: str) -> tuple[ServerFile | None, list[str]]:
        """Return the file that configures a client's server, and the command to start it.

        No absolute path goes into a file that git tracks: the command works on any machine, or the
        file in the person's home takes its place.
        """
        args, client = self.args, CLIENTS[name]
        if args.user or not client.files:
            return client.user if args.user else None, self.own
        here = (one for one in client.files if os.path.lexists(self.root / one.path))
        file = next(here, client.files[0])
        tracked = self.location.tracks(self.root / file.path)
        if args.remove:
            return client.user if tracked else file, self.own
        if args.command or not tracked:
            return file, self.own
        held = changes.words_of(self.root, file)
        if held and not os.path.isabs(held[0]) and shutil.which(held[0]):
            return file, held
        words = ["uvx", "--offline", "--from", f"{NAME}[all]=={__version__}", NAME, "--version"]
        found = shutil.which("uvx") and subprocess.run(words, capture_output=True).returncode == 0
        return (file, _UVX) if found else (client.user, self.own)

    def planned(self, names: list[str]) -> Collection[PlannedFile]:
        remove, texts = self.args.remove, [INSTRUCTIONS, SKILL]
        if remove and (self.args.clients or self.args.user):
            texts = []
        rows = list[tuple[ServerFile | None, list[str]]]()
        for name in names:
            client = CLIENTS[name]
            texts += () if remove and self.args.user else client.texts
            rows.append(self.server(name))
            rows += [(file, self.own) for file in client.files if remove and not self.args.user]
        edits = [changes.of_text(self.root, text, remove=remove) for text in texts]
        for file, words in rows:
            edits += [changes.of_server(self.root, file, words, remove=remove)] if file else []
        places = [one.place for one in edits]
        return [one for n, one in enumerate(edits) if one.place not in places[:n]]

    def prove(self, names: list[str], states: Mapping[str, str]) -> int:
        rows = [self.proof(name) for name in names]
        lines = [f"{state:<10} {path}" for path, state in states.items()]
        for row in rows:
            place = ", ".join(filter(None, (CLIENTS[row["client"]].title, row["file"])))
            lines.append(f"{row['state']:<10} {place}")
            lines += [f"           {key}: {visible(row[key])}" for key in _SHOWN if row[key]]
        if names and not shutil.which(NAME):
            lines.append(f"agents without MCP need `{NAME}` on their PATH")
        output.emit(self.args, {"files": states, "clients": rows}, *lines)
        return int(any(row["problem"] for row in rows))

    def proof(self, name: str) -> dict[str, str]:
        client, (file, _) = CLIENTS[name], self.server(name)
        words = changes.words_of(self.root, file) if file else []
        path = file.path if file else ""
        problem = note = ""
        if file is None and self.args.clients and client.user:
            problem = "it has no file in a repository: say --user, too"
        elif words and words not in (self.own, _UVX):  # whoever wrote the repository wrote it
            problem = "its command is none of setup's, so it is not run; name it by --command"
        elif file:
            problem = self.failure(tuple(words))
        if path.startswith("~") and not self.args.user:
            note = f"git tracks {client.files[0].path}, so it is in your home"
        elif os.path.isabs("".join(words[:1])) and not path.startswith("~"):
            note = "kept out of commits: it names a path of this machine"
        says = answer_of(client.verb, NAME, self.root)
        return {
            "client": name,
            "file": path,
            "state": "failed" if problem else "verified" if file else "no server",
            "problem": problem,
            "note": note,
            "it says": says,
            "to do": "" if re.search(r"\b(connected|enabled)\b", says, re.I) else client.first,
        }

    def _failure(self, words: tuple[str, ...]) -> str:
        linked = [path for path in self.location.worktrees() if not path.samefile(self.root)]
        return next(filter(None, (failure(words, place) for place in (self.root, *linked[:1]))), "")


# ---------------------------------------------------------------- the proof

# A handshake from an almost empty environment.
SECONDS = 15.0
_CLIENT_SECONDS = 30.0  # some clients start every server that they know
_WHO = {"name": "patchq-setup", "version": __version__}
_HELLO = {"protocolVersion": "2025-06-18", "clientInfo": _WHO, "capabilities": {}}
_ASKED = (
    {"id": 1, "method": "initialize", "params": _HELLO},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


def failure(words: Sequence[str], directory: Path) -> str:
    """Return the reason why a command starts no MCP server, or ""."""
    program = shutil.which(words[0]) if words else None
    if program is None:
        return f"there is no program {words[0]}" if words else "no entry `patchq` with a command"
    with tempfile.TemporaryFile() as log:
        try:
            asyncio.run(_shake_hands([program, *words[1:]], directory, log.fileno()))
            return ""
        except TimeoutError:
            return f"no answer within {SECONDS:g} s"
        except (OSError, ValueError, LookupError, TypeError, AttributeError):  # it speaks no MCP
            log.seek(0)
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it ends without an answer"


async def _shake_hands(words: Sequence[str], directory: Path, log: int) -> None:
    path = f"{os.path.dirname(words[0])}:/usr/bin:/bin"
    environment = {"HOME": os.environ.get("HOME", "/"), "PATH": path}
    server = await asyncio.create_subprocess_exec(
        *words, cwd=directory, env=environment, stdin=PIPE, stdout=PIPE, stderr=log,
        start_new_session=True, limit=1 << 20,
    )  # fmt: skip
    assert server.stdin
    assert server.stdout
    try:
        async with asyncio.timeout(SECONDS):
            for message in _ASKED:
                server.stdin.write(f"{json.dumps({'jsonrpc': '2.0', **message})}\n".encode())
                answer: dict[str, Any] = {}
                while answer.get("id") != message.get("id"):
                    answer = json.loads(await server.stdout.readline())
            assert answer["result"]["tools"][0]["name"]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, SIGKILL)
        await server.wait()


def answer_of(verb: str, name: str, directory: Path) -> str:
    """Return the client's own answer in one line.

    It is "" if the client is not installed.
    """
    if not shutil.which(verb.partition(" ")[0]):
        return ""
    try:
        done = subprocess.run(
            verb.split(), cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=_CLIENT_SECONDS, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no answer: {error}"
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", done.stdout.decode("utf-8", "replace"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = [line for line in lines if re.match("status|enabled", line, re.IGNORECASE)]
    return next(iter(chosen or [line for line in lines if name in line] or lines), "no answer")
