"""The making and keeping of a queue: `init`, `config`, `hooks`, `doctor`, `fsck`, `backup`, …"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from patchq.cli import arguments, command, output
from patchq.cli.arguments import Argument, Table
from patchq.core.text.quote import visible
from patchq.gate.api import Gate
from patchq.gate.api import hooks as shipped
from patchq.gate.api.location import Location
from patchq.gate.api.rows import WAITING
from patchq.gate.config import config_file
from patchq.gate.config.config_file import FILE
from patchq.gate.errors import UsageError
from patchq.gate.intake import git_hooks
from patchq.gate.report import document

# ---------------------------------------------------------------- init


# A shell cannot wait for Python: ids of changes that wait are looked for in git's own refs.
_REFS = f"git for-each-ref --format='%(refname:lstrip=3)' {WAITING} 2>/dev/null"
_IDS = {
    "bash": "_patchq_ids",
    "zsh": f"($({_REFS}))",
    "fish": f"({_REFS})",
    "tcsh": f"`{_REFS}`",
}
_PREAMBLE = f'_patchq_ids() {{ compgen -W "$({_REFS})" -- "$1"; }}'
ARGUMENTS: Table = {
    "init": (
        Argument("--target", dest="home", metavar="B", help="the home branch, whose rules count"),
        Argument(
            "--remote", dest="home_remote", metavar="R", help="it is that branch of the remote"
        ),
    ),
    "config": (
        {
            "check": (
                "check the rules that count, or a file before it is committed",
                (Argument("file", metavar="FILE", nargs="?", type=Path),),
            ),
            "sample": ("print a commented configuration", ()),
            "schema": ("print its JSON schema", ()),
        },
    ),
    "hooks": (
        {
            "list": ("the shipped hooks, and which are at work", ()),
            "install": (
                "switch the default gate on in the configuration",
                (Argument("--git", action="store_true", help="wire git's own hooks instead"),),
            ),
            "uninstall": ("put back what was there before `install`", ()),
            "check": (
                "judge what is staged, as git am is about to commit it",
                (
                    Argument("--message", metavar="FILE", help="judge a message instead"),
                    Argument(
                        "--push",
                        nargs=3,
                        metavar=("BRANCH", "OLD", "NEW"),
                        help="judge what a push would bring to a branch instead",
                    ),
                    Argument("--remote", metavar="NAME", help="where that branch is, if not here"),
                ),
            ),
            "receive": (
                "hand in what is pushed to refs/for/BRANCH",
                (
                    Argument(
                        "objects", metavar="DIR", type=Path, help="where the pushed objects are"
                    ),
                ),
            ),
            "observe": ("put down what was merged or rebased by hand", ()),
        },
    ),
    "completion": (Argument("shell", choices=tuple(_IDS), metavar="SHELL", help=", ".join(_IDS)),),
    "doctor": (
        Argument(
            "--before-start",
            action="store_true",
            help="fail only for what keeps the daemon from working (for service managers)",
        ),
    ),
    "fsck": (Argument("--repair", action="store_true", help="rebuild what can be derived"),),
    "backup": (Argument("file", metavar="FILE", help="a file that is not there yet"),),
}


def init(args: Namespace) -> int:
    location = output.gate(args).location
    found = location.rules()
    queue, path = location.home / found.config.queue.path, location.draft
    answer = {"queue": str(queue), "config": str(path), "home": found.home and str(found.home)}
    return output.emit(args, answer, *output.gate(args).make(found.config))


def make_missing(args: Namespace, location: Location) -> None:
    """Make the queue if there is none, and print what was made."""
    config = location.rules().config
    if not (location.home / config.queue.path).is_dir():
        for line in output.gate(args).make(config):
            output.notice(args, line)


def take_back_draft(location: Location) -> list[str]:
    """Remove the sample configuration if it is neither changed nor tracked.

    Returns its name in a list, which is empty if nothing was removed.
    """
    path, sample = location.draft, config_file.sample().encode()
    if location.workdir is None or not path.is_relative_to(location.workdir):
        return []
    if path.name != FILE or location.tracks(path) or config_file.content(path) != sample:
        return []
    path.unlink()
    return [path.name]


# ---------------------------------------------------------------- config


def config(args: Namespace) -> int:
    if args.what == "sample":
        text = config_file.sample()
        output.emit(args, {"sample": text}, text.removesuffix("\n"))
    elif args.what == "schema":
        print(json.dumps(config_file.json_schema(), indent=2))
    else:
        args.config = args.file or args.config
        location = output.gate(args).location
        found = location.rules()
        from patchq.gate.service.check.doctor import flaws

        if wrong := flaws(location.repo, location.home, found):
            raise config_file.ConfigError(wrong)
        output.emit(
            args,
            {
                "config": found.name,
                "exists": found.data is not None,
                "rules": document.plain(found.origin()),
            },
            f"{found.name}: ok",
        )
        output.gate(args).notice_difference(found)
    return 0


# ---------------------------------------------------------------- hooks


_MOST_REFUSALS = 20  # refusals that one check tells


def hooks(args: Namespace) -> int:
    return _VERBS[args.what](args, output.gate(args))


def _list(args: Namespace, gate: Gate) -> int:
    answer = shipped.listing(gate.location)
    return output.emit(args, answer, *_hook_lines(answer))


def _hook_lines(answer: dict[str, Any]) -> Iterator[str]:
    for title, hooks, state in (
        ("In the configuration, as `run: patchq:NAME`:", answer["hooks"], "enabled"),
        ("In git's own places, by `patchq hooks install --git`:", answer["git"], "state"),
    ):
        yield title
        for hook in hooks:
            works = hook[state] in (True, "installed")
            yield f"  {'on ' if works else 'off'}  {hook['name']:<20}  {hook['does']}"
    yield f"In {Path(answer['hooks'][0]['path']).parent}"


def _install(args: Namespace, gate: Gate) -> int:
    if args.git:
        return _wire(args, gate)
    path, changed = gate.location.draft, shipped.switch_on(gate.location)
    answer = {"config": str(path), "changed": bool(changed)}
    if changed is None:
        by_hand = (
            f"{path} has hooks of its own, or is written in a way that leaves no room for lines; "
            f"add this to its `hooks`:\n{shipped.GATE}"
        )
        return output.emit(args, {**answer, "add": shipped.GATE}, by_hand.rstrip())
    done = "switched the gate on" if changed else "the gate is on"
    return output.emit(args, answer, f"{path}: {done}", *gate.location.how_it_counts())


def _wire(args: Namespace, gate: Gate) -> int:
    installed = shipped.wire(gate.location)
    kept = [place for place in installed if place.before.exists()]
    answer = {
        "installed": [str(place.file) for place in installed],
        "kept": [str(place.before) for place in kept],
    }
    lines = [
        str(place.file) + (f"  (runs {place.before.name} first)" if place in kept else "")
        for place in installed
    ]
    return output.emit(args, answer, *(lines or ["git's hooks are wired already"]))


def _uninstall(args: Namespace, gate: Gate) -> int:
    restored, note = shipped.restore(gate.location)
    lines = [*restored, *([note] if note else [])] or ["nothing to restore"]
    return output.emit(args, {"restored": restored, "note": note}, *lines)


def _check(args: Namespace, gate: Gate) -> int:
    if args.message:
        message = arguments.read(args.message).decode("utf-8", "replace")
        found = git_hooks.judge_message(message)
    elif args.push:
        branch, old, new = args.push
        session = gate.session(targeted=False, writes=False)
        found = git_hooks.judge_push(session, branch, old, new, args.remote)
    else:
        found = git_hooks.judge_staged(gate.session(targeted=False, writes=False))
    lines = found[:_MOST_REFUSALS]
    if len(found) > _MOST_REFUSALS:
        lines.append(f"and {len(found) - _MOST_REFUSALS} more")
    output.emit(args, {"refusals": lines}, *lines)
    return 1 if found else 0


def _receive(args: Namespace, gate: Gate) -> int:
    from patchq.cli import push  # only who takes a push reads trees

    return push.receive(args)


def _observe(args: Namespace, gate: Gate) -> int:
    for report in gate.reconcile():
        if not args.quiet:
            output.say(args, report)
    return 0


_VERBS = {
    "list": _list,
    "install": _install,
    "uninstall": _uninstall,
    "check": _check,
    "receive": _receive,
    "observe": _observe,
}


# ---------------------------------------------------------------- completion


def completion(args: Namespace) -> int:
    import shtab

    parser = command.whole()
    parser.complete({"ID": _IDS, "FILE": shtab.FILE, "DIR": shtab.DIRECTORY})
    preamble = _PREAMBLE if args.shell == "bash" else ""
    output.put(shtab.complete(parser, shell=args.shell, preamble=preamble), end="")
    return 0


# ---------------------------------------------------------------- doctor


_WORDS = {"fatal": "FATAL", "todo": "TO DO", "weaker": "weaker", "ok": "ok"}


def doctor(args: Namespace) -> int:
    found = list(output.gate(args).checks())
    failing = ("fatal",) if args.before_start else ("fatal", "todo")
    wrong = any(finding.level in failing for finding in found)
    shown = [f for f in found if not args.quiet or f.level != "ok"]
    rows = [{"what": f.what, "level": f.level, "message": f.message, "cure": f.cure} for f in shown]
    lines = (
        _found(_WORDS[f.level], f.what, f.message, "" if f.level == "ok" else f.cure) for f in shown
    )
    output.emit(args, {"ok": not wrong, "findings": rows}, *lines)
    return 1 if wrong else 0


def _found(word: str, what: str, message: str, cure: str | None) -> str:
    line = visible(f"{word:<8} {what:<19} {message}")
    return f"{line}\n{'':<28} -> {visible(cure)}" if cure else line


# ---------------------------------------------------------------- fsck


def fsck(args: Namespace) -> int:
    from patchq.gate.service.check.fsck import check, repair, set_aside_store

    gate = output.gate(args)
    queue = gate.location.rules().config.queue.path
    aside = set_aside_store(gate.location.home / queue) if args.repair else []
    session = gate.session(targeted=False, writes=args.repair)
    if not session.queue_root.is_dir():
        return output.emit(args, {"ok": True, "damage": []}, "there is no queue yet")
    found = [*aside, *check(session)]
    left = repair(session) if args.repair else found
    damaged = {finding.key for finding in left}
    rows: list[dict[str, Any]] = [
        {
            "kind": finding.what,
            "where": visible(finding.where),
            "message": visible(finding.message),
            "cure": "patchq fsck --repair" if finding.repair else finding.cure,
            "repaired": finding.key not in damaged,
        }
        for finding in {finding.key: finding for finding in [*found, *left]}.values()
    ]
    lines = [
        _found("repaired", row["kind"], f"{row['where']}: {row['message']}", "")
        if row["repaired"]
        else _found("DAMAGED", row["kind"], f"{row['where']}: {row['message']}", row["cure"])
        for row in rows
    ]
    answer = {"ok": not left, "damage": rows}
    output.emit(args, answer, *(lines or ["queue and repository agree"]))
    return 1 if left else 0


# ---------------------------------------------------------------- backup


def backup(args: Namespace) -> int:
    file = Path(args.file)
    if file.exists():
        raise UsageError(f"{file} is there already", "name a file that is not there")
    gate = output.gate(args)
    gate.queue(gate.location.rules().config).store.backup(file)
    return output.emit(args, {"file": str(file)}, str(file))
