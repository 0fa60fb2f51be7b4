"""`patchq setup`: have the clients of this machine find patchq here, and prove that they can."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from patchq import __version__
from patchq.cli import init, opening, output, program
from patchq.cli.arguments import Argument
from patchq.cli.setup import changes
from patchq.cli.setup.changes import PlannedFile
from patchq.cli.setup.clients import CLIENTS, INSTRUCTIONS, NAME, SKILL, ServerFile
from patchq.cli.setup.handshake import answer_of, failure
from patchq.core.model.names import suggestion
from patchq.core.text.quote import visible
from patchq.gate.errors import UsageError
from patchq.gate.git.command import Git

ARGUMENTS = (
    Argument("clients", metavar="CLIENT", nargs="*", help="one of --list, installed or not"),
    Argument("--yes", action="store_true", help="write without asking"),
    (
        Argument("--dry-run", action="store_true", help="show what would be written"),
        Argument("--remove", action="store_true", help="take out what setup put in"),
        Argument("--check", action="store_true", help="prove again what is written"),
        Argument("--list", action="store_true", help="list the clients, and which are here"),
    ),
    Argument("--command", metavar="CMD", help="the command, in place of this patchq's path"),
    Argument("--user", action="store_true", help="write the clients' files in your home"),
)
_UVX = ["uvx", "--from", f"{NAME}[all]", NAME, "mcp"]
_UNTRIED = "its command is not one that setup writes, so it is not run; name it by --command"


def run(args: Namespace) -> int:
    location = opening.gate(args).location
    root = location.repo.workdir
    if root is None:
        raise UsageError(
            "a bare repository has no work tree in which agents would look",
            "run this in a clone of it, or see `patchq instructions`",
        )
    names = _chosen(args, root)
    if args.list:
        return _list(args, root)
    if args.check:
        return _verify(args, root, names, {})
    planned = _planned(args, root, names)
    changed = [one for one in planned if one.before != one.after]
    if args.dry_run:
        lines = (line for one in changed for line in one.diff())
        return output.emit(args, {"files": [one.path for one in changed]}, *lines)
    if changed:
        _agree(args, changed)
    states = {one.path: one.note or "unchanged" for one in planned if one.before is not None}
    if not args.remove:
        config = location.rules().config
        new = not (location.home / config.queue.path).is_dir()
        for line in init.make(args, location, config) if new else ():
            output.notice(args, line)
    elif not (args.clients or args.user) and (draft := init.take_back_draft(location)):
        states[draft.name] = "removed"
    for one in changed:
        one.write(root)
        states[one.path] = "removed" if args.remove else "written"
    return _verify(args, root, [] if args.remove else names, states)


def _chosen(args: Namespace, root: Path) -> list[str]:
    """Return the clients that are named, or those that are used here."""
    for name in args.clients:
        if name not in CLIENTS:
            hint = suggestion(name, CLIENTS, "one of " + ", ".join(CLIENTS))
            raise UsageError(f"there is no client {name!r}", hint)
    used = (name for name in CLIENTS if args.remove or _trace(name, root))
    return list(dict.fromkeys(args.clients or used))


def _trace(name: str, root: Path) -> str:
    """Return the program or the file by which a client is used here, or nothing."""
    client = CLIENTS[name]
    programs = (path for one in client.programs if (path := shutil.which(one)))
    return next(programs, next((one for one in client.traces if os.path.lexists(root / one)), ""))


def _list(args: Namespace, root: Path) -> int:
    rows = []
    for name, client in CLIENTS.items():
        file, found = _file(args, name, root), _trace(name, root)
        path = file.path if file else ""
        rows.append({"name": name, "client": client.title, "file": path, "found": found})
    row = "{name:<9} {client:<12} {file:<24} {found}"
    return output.emit(args, rows, *(row.format(**one).rstrip() for one in rows))


def _file(args: Namespace, name: str, root: Path) -> ServerFile | None:
    """Return the file that names the server to a client, or is to."""
    client = CLIENTS[name]
    here = [one for one in client.files if os.path.lexists(root / one.path)]
    if args.user or not client.files:
        return client.user if args.user else None
    file = (here or client.files)[0]
    stays = args.command or args.remove or not _is_tracked(root, file) or _portable(root, file)
    return file if stays else client.user


def _is_tracked(root: Path, file: ServerFile) -> bool:
    return file.path[0] != "~" and bool(Git(directory=root).output("ls-files", "--", file.path))


def _portable(root: Path, file: ServerFile) -> list[str]:
    """Return words that start the server on other machines, too, or none."""
    held = changes.words_of(root, file)
    if held and not os.path.isabs(held[0]) and shutil.which(held[0]):
        return held
    words = ["uvx", "--offline", "--from", f"{NAME}[all]=={__version__}", NAME, "--version"]
    found = shutil.which("uvx") and subprocess.run(words, capture_output=True).returncode == 0
    return _UVX if found else []


def _own(args: Namespace) -> list[str]:
    """Return the words that are asked for, or those of this very command."""
    words = shlex.split(args.command) if args.command else program.own_words()
    return words if words[-1:] == ["mcp"] else [*words, "mcp"]


def _words(args: Namespace, root: Path, file: ServerFile) -> list[str]:
    """Return the words that are to start the server: no absolute path in a tracked file."""
    tracked = not (args.command or args.remove) and _is_tracked(root, file)
    return _portable(root, file) if tracked else _own(args)


def _planned(args: Namespace, root: Path, names: Iterable[str]) -> Iterable[PlannedFile]:
    """Return the changes, one for each file, by whatever names it goes."""
    texts = [] if args.remove and args.clients else [INSTRUCTIONS, SKILL]
    files = list[ServerFile]()
    for name in names:
        texts += CLIENTS[name].texts
        files += CLIENTS[name].files if args.remove and not args.user else ()
        files += [file] if (file := _file(args, name, root)) else []
    if args.remove and args.user:
        texts = []
    edits = [changes.of_text(root, path, remove=args.remove) for path in texts]
    for file in files:
        words = _words(args, root, file)
        edits.append(changes.of_server(root, file, words, remove=args.remove))
    found = dict[Path, PlannedFile]()
    for one in edits:
        found.setdefault(one.place, one)
    return found.values()


def _agree(args: Namespace, changed: list[PlannedFile]) -> None:
    """Ask a person; raises `UsageError` without a yes."""
    if args.yes:
        return
    paths = ", ".join(one.path for one in changed)
    if args.json or args.quiet or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            f"this would change {paths}, and there is no terminal to ask on", "add --yes"
        )
    for one in changed:
        print(*one.diff(), sep="\n")
    print(f"change {paths}? [y]es, [n]o: ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing is changed", "answer y, or say --yes")


def _verify(args: Namespace, root: Path, names: list[str], states: dict[str, str]) -> int:
    """Prove each client's file by a handshake, ask the clients, and print how all is."""
    git = Git(directory=root)
    trees = git.output("worktree", "list", "--porcelain", "-z").decode("utf-8", "surrogateescape")
    linked = [
        path for line in trees.split("\0") if line.startswith("worktree ")
        and (path := Path(line[9:])).is_dir() and not path.samefile(root)
    ]  # fmt: skip
    trusted = (tuple(_own(args)), tuple(_UVX))
    failures, rows, local = dict[tuple[str, ...], str](), [], []
    lines = [f"{state:<10} {path}" for path, state in states.items()]
    for name in names:
        client, file = CLIENTS[name], _file(args, name, root)
        words = tuple(changes.words_of(root, file)) if file else ()
        if words and words not in trusted:  # whoever wrote the repository wrote it
            failures[words] = _UNTRIED
        elif file and words not in failures:
            whys = (failure(words, place) for place in (root, *linked[:1]))
            failures[words] = next(filter(None, whys), "")
        why = failures[words] if file else ""
        if file is None and args.clients and client.user:
            why = failures[name,] = "it has no file in a repository: say --user, too"
        state = "failed" if why else "verified" if file else "no server"
        answer = answer_of(client.verb, NAME, root)
        first = "" if re.search(r"\b(connected|enabled)\b", answer, re.I) else client.first
        moved = file and file.path[0] == "~" and not args.user
        more = {
            "problem": why,
            "note": f"git tracks {client.files[0].path}, so it is in your home" if moved else "",
            "it says": answer,
            "to do": first,
        }
        rows.append({"client": name, "file": file and file.path, "state": state, **more})
        lines += [f"{state:<10} {client.title}" + (f", {file.path}" if file else "")]
        lines += [f"           {key}: {visible(text)}" for key, text in more.items() if text]
        if file and file.path[0] != "~" and os.path.isabs("".join(words[:1])):
            local.append(file.path)
    if local:
        paths = ", ".join(dict.fromkeys(local))
        lines.append(f"not to be committed, since they name a path of this machine: {paths}")
    if names and not shutil.which(NAME):
        lines.append(f"agents without MCP need `{NAME}` on their PATH")
    output.emit(args, {"files": states, "clients": rows}, *lines)
    return int(any(failures.values()))
