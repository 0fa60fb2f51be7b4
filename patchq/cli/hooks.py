"""`patchq hooks`: the hooks that come with patchq, in its configuration and in git's own places.

What `install` changed is put down in the git directory: `uninstall` restores it to the byte.
`check`, `receive` and `observe` are what git's hooks call.
"""

from __future__ import annotations

import json
import stat
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from patchq.cli import arguments, opening, output
from patchq.cli.arguments import Argument
from patchq.gate.api.location import Location
from patchq.gate.config import config_file
from patchq.gate.errors import UsageError
from patchq.gate.git import files
from patchq.gate.hooks import builtin, install
from patchq.gate.hooks.install import HookFile
from patchq.gate.intake import git_hooks
from patchq.gate.land import reports

RECORD = "patchq-hooks.json"
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
                Argument("--message", metavar="FILE", type=Path, help="judge a message instead"),
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
    return _VERBS[args.what](args, opening.gate(args).location)


# ---------------------------------------------------------------- list


def _list(args: Namespace, location: Location) -> int:
    config = location.rules().config
    shipped_hooks = [
        {
            "name": name,
            "does": does,
            "enabled": install.is_enabled(config, name),
            "path": str(builtin.path(name)),
        }
        for name, does in builtin.SUMMARIES.items()
    ]
    git_hooks = [
        {
            "name": place.name,
            "does": builtin.GIT_SUMMARIES[place.name],
            "state": place.state,
            "path": str(place.file),
        }
        for place in _places(location)
    ]
    answer = {"hooks": shipped_hooks, "git": git_hooks}
    return output.emit(args, answer, *_lines(answer))


def _places(location: Location) -> Iterator[HookFile]:
    """Yield the places of git's own hooks."""
    return install.places(location.repo.workdir or location.repo.commondir)


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


# ---------------------------------------------------------------- install, uninstall


def _install(args: Namespace, location: Location) -> int:
    if args.git:
        return _wire(args, location)
    path = location.draft
    before = config_file.content(path)
    if before is not None and install.is_enabled(config_file.parse(before, path.name)):
        lines = [f"{path}: the gate is on", *location.how_it_counts()]
        return output.emit(args, {"config": str(path), "changed": False}, *lines)
    after = config_file.sample().encode() if before is None else install.enable(before)
    if after is None:
        return output.emit(
            args,
            {"config": str(path), "changed": False, "add": install.GATE},
            f"{path} has hooks of its own, or is written in a way that leaves no room for lines; "
            f"add this to its `hooks`:\n{install.GATE}".rstrip(),
        )
    _record(location, "config", [str(path), before and before.decode(), after.decode()])
    _put(path, after)
    lines = [f"{path}: switched the gate on", *location.how_it_counts()]
    return output.emit(args, {"config": str(path), "changed": True}, *lines)


def _wire(args: Namespace, location: Location) -> int:
    installed: list[HookFile] = []
    directories = _recorded(location).get("directories", [])
    for place in _places(location):
        if not place.file.parent.exists():
            directories.append(str(place.file.parent))
            _record(location, "directories", directories)
        if install.install(place):
            installed.append(place)
    _record(location, "directories", directories)  # its being there says that this one is guarded
    if missing := install.to_set_up(location.repo.commondir):
        _record(location, "settings", [*missing, *_recorded(location).get("settings", [])])
        install.set_up(location.repo.commondir, missing)
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


def _uninstall(args: Namespace, location: Location) -> int:
    restored = [str(place.file) for place in _places(location) if install.uninstall(place)]
    record = _recorded(location)
    for directory in map(Path, record.get("directories", [])):
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
    install.take_down(location.repo.commondir, record.get("settings", []))
    note = None
    if "config" in record:
        name, before, after = record["config"]
        path = Path(name)
        if path.exists() and path.read_bytes() == after.encode():
            if before is None:
                path.unlink()
            else:
                _put(path, before.encode())
            restored.append(name)
        else:
            note = f"{name} was changed since; take the gate out of it by hand, if it has to go"
    (location.repo.commondir / RECORD).unlink(missing_ok=True)
    lines = [*restored, *([note] if note else [])] or ["nothing to restore"]
    return output.emit(args, {"restored": restored, "note": note}, *lines)


def _recorded(location: Location) -> dict[str, Any]:
    path = location.repo.commondir / RECORD
    try:
        found: Any = json.loads(path.read_bytes()) if path.exists() else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UsageError(
            f"{path} cannot be read, and it alone knows what `install` changed",
            "remove it, and take the gate out of the configuration by hand, if it has to go",
        )
    return dict(found)


def _record(location: Location, key: str, value: object) -> None:
    text = json.dumps({**_recorded(location), key: value}, indent=1)
    _put(location.repo.commondir / RECORD, f"{text}\n".encode())


def _put(path: Path, data: bytes) -> None:
    """Replace a file, or what it is a link to, as a whole."""
    path = path.resolve()
    mode = stat.S_IMODE(path.stat().st_mode) & 0o777 if path.exists() else 0
    via = path.with_name(f".{path.name}.tmp")
    files.replace(path, data, via=via, mode=mode or 0o666, grant=mode)


# ---------------------------------------------------------------- what git's hooks call


def _check(args: Namespace, location: Location) -> int:
    if args.message:
        data, _ = arguments.read_response(str(args.message))
        found = git_hooks.judge_message(data.decode("utf-8", "replace"))
    else:
        session = opening.gate(args).session(targeted=False, writes=False)
        if args.push:
            branch, old, new = args.push
            found = git_hooks.judge_push(session, branch, old, new, args.remote)
        else:
            found = git_hooks.judge_staged(session)
    lines = [line for refusal in found[:_MOST_REFUSALS] for line in refusal.lines()]
    if len(found) > _MOST_REFUSALS:
        lines.append(f"and {len(found) - _MOST_REFUSALS} more")
    if lines or args.json:
        output.emit(args, {"refusals": lines}, *lines)
    return 1 if found else 0


def _receive(args: Namespace, location: Location) -> int:
    from patchq.cli import push  # only who takes a push reads trees

    return push.receive(args)


def _observe(args: Namespace, location: Location) -> int:
    changed = reports.reconcile(opening.gate(args).session(targeted=False, writes=False))
    if not args.quiet:
        for report in changed:
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
