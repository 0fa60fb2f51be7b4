"""`patchq hooks`: the hooks that come with patchq, in its configuration and in git's own places.

`check`, `receive` and `observe` are what git's hooks call.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from patchq.cli import arguments, opening, output
from patchq.cli.arguments import Argument
from patchq.gate.api import Gate, hooks
from patchq.gate.intake import git_hooks

_MOST_REFUSALS = 20  # refusals that one check tells


ARGUMENTS = (
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
            (Argument("objects", metavar="DIR", type=Path, help="where the pushed objects are"),),
        ),
        "observe": ("put down what was merged or rebased by hand", ()),
    },
)


def run(args: Namespace) -> int:
    return _VERBS[args.what](args, opening.gate(args))


def _list(args: Namespace, gate: Gate) -> int:
    answer = hooks.listing(gate.location)
    return output.emit(args, answer, *_lines(answer))


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    yield "In the configuration, as `run: patchq:NAME`:"
    for hook in answer["hooks"]:
        yield _line(hook, hook["enabled"])
    yield "In git's own places, by `patchq hooks install --git`:"
    for hook in answer["git"]:
        yield _line(hook, hook["state"] == "installed")
    yield f"In {Path(answer['hooks'][0]['path']).parent}"


def _line(hook: dict[str, Any], works: bool) -> str:
    return f"  {'on ' if works else 'off'}  {hook['name']:<20}  {hook['does']}"


def _install(args: Namespace, gate: Gate) -> int:
    if args.git:
        return _wire(args, gate)
    path, changed = gate.location.draft, hooks.switch_on(gate.location)
    answer = {"config": str(path), "changed": bool(changed)}
    if changed is None:
        by_hand = (
            f"{path} has hooks of its own, or is written in a way that leaves no room for lines; "
            f"add this to its `hooks`:\n{hooks.GATE}"
        )
        return output.emit(args, {**answer, "add": hooks.GATE}, by_hand.rstrip())
    done = "switched the gate on" if changed else "the gate is on"
    return output.emit(args, answer, f"{path}: {done}", *gate.location.how_it_counts())


def _wire(args: Namespace, gate: Gate) -> int:
    installed = hooks.wire(gate.location)
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
    restored, note = hooks.restore(gate.location)
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
    lines = [line for refusal in found[:_MOST_REFUSALS] for line in refusal.lines()]
    if len(found) > _MOST_REFUSALS:
        lines.append(f"and {len(found) - _MOST_REFUSALS} more")
    if lines or args.json:
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
