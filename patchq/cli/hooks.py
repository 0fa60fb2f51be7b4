"""`patchq hooks`: the hooks that come with patchq, in its configuration and in git's own places.

What `install` changed is put down in the git directory: `uninstall` restores it to the byte.
`check` and `observe` are what git's hooks call.
"""

from __future__ import annotations

import json
import stat
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from patchq.cli import arguments, output, places
from patchq.config import config_file
from patchq.config.schema import Config
from patchq.git import files
from patchq.git.repository import Repository
from patchq.hooks import enabling, shipped, staged, wiring
from patchq.model.errors import UsageError
from patchq.review import reconcile

RECORD = "patchq-hooks.json"


def add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    verbs.add_parser("list", help="the shipped hooks, and which are at work")
    install = verbs.add_parser("install", help="switch the default gate on in the configuration")
    install.add_argument("--git", action="store_true", help="wire git's own hooks instead")
    verbs.add_parser("uninstall", help="put back what was there before `install`")
    check = verbs.add_parser("check", help="judge what is staged, as git am is about to commit it")
    check.add_argument("--message", metavar="FILE", type=Path, help="judge a message instead")
    verbs.add_parser("observe", help="put down what was merged or rebased by hand")


def run(args: Namespace) -> int:
    repo = Repository.open(args.directory)
    return int(_VERBS[args.what](args, repo))


def _load(args: Namespace, repo: Repository) -> Config:
    path = places.config_path(args, repo)
    return config_file.load(path, required=args.config is not None)


# ---------------------------------------------------------------- list


def _list(args: Namespace, repo: Repository) -> int:
    config = _load(args, repo)
    places = list(wiring.places(repo.workdir or repo.commondir))
    answer: dict[str, Any] = {
        "hooks": [
            {
                "name": name,
                "does": does,
                "enabled": enabling.is_enabled(config, name),
                "path": str(shipped.path(name)),
            }
            for name, does in shipped.SUMMARIES.items()
        ],
        "git": [
            {
                "name": place.name,
                "does": shipped.GIT_SUMMARIES[place.name],
                "state": place.state,
                "path": str(place.file),
            }
            for place in places
        ],
    }
    output.emit(args, answer, *_lines(answer))
    return 0


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


def _install(args: Namespace, repo: Repository) -> int:
    return _wire(args, repo) if args.git else _enable(args, repo)


def _enable(args: Namespace, repo: Repository) -> int:
    path = places.config_path(args, repo)
    if enabling.is_enabled(_load(args, repo)):
        return _say(args, {"config": str(path), "changed": False}, f"{path}: the gate is on")
    before = path.read_bytes() if path.exists() else None
    made = config_file.sample().encode() if before is None else enabling.enable(before)
    if made is None:
        return _say(
            args,
            {"config": str(path), "changed": False, "add": enabling.GATE},
            f"{path} has hooks of its own, or is written in a way that leaves no room for lines; "
            f"add this to its `hooks`:\n{enabling.GATE}".rstrip(),
        )
    _record(repo, "config", [str(path), before and before.decode(), made.decode()])
    _put(path, made)
    return _say(args, {"config": str(path), "changed": True}, f"{path}: switched the gate on")


def _wire(args: Namespace, repo: Repository) -> int:
    made = []
    directories = _recorded(repo).get("directories", [])
    for place in wiring.places(repo.workdir or repo.commondir):
        if not place.file.parent.exists():
            directories.append(str(place.file.parent))
            _record(repo, "directories", directories)
        if wiring.install(place):
            made.append(place)
    kept = [place for place in made if place.before.exists()]
    lines = [
        str(place.file) + (f"  (runs {place.before.name} first)" if place in kept else "")
        for place in made
    ]
    answer = {
        "installed": [str(place.file) for place in made],
        "kept": [str(place.before) for place in kept],
    }
    return _say(args, answer, "\n".join(lines) or "git's hooks are wired already")


def _uninstall(args: Namespace, repo: Repository) -> int:
    restored = [
        str(place.file)
        for place in wiring.places(repo.workdir or repo.commondir)
        if wiring.uninstall(place)
    ]
    record = _recorded(repo)
    for name in record.get("directories", []):
        directory = Path(name)
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
    note = ""
    if "config" in record:
        name, before, made = record["config"]
        path = Path(name)
        if path.exists() and path.read_bytes() == made.encode():
            _restore(path, before)
            restored.append(name)
        else:
            note = f"{name} was changed since; take the gate out of it by hand, if it has to go"
    (repo.commondir / RECORD).unlink(missing_ok=True)
    lines = [*restored, *([note] if note else [])] or ["nothing to restore"]
    return _say(args, {"restored": restored, "note": note or None}, "\n".join(lines))


def _restore(path: Path, before: str | None) -> None:
    if before is None:
        path.unlink()
    else:
        _put(path, before.encode())


def _recorded(repo: Repository) -> dict[str, Any]:
    path = repo.commondir / RECORD
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


def _record(repo: Repository, key: str, value: object) -> None:
    text = json.dumps({**_recorded(repo), key: value}, indent=1)
    _put(repo.commondir / RECORD, f"{text}\n".encode())


def _put(path: Path, data: bytes) -> None:
    """Replace a file, or what it is a link to, as a whole."""
    path = path.resolve()
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    files.replace(path, data, via=path.with_name(f".{path.name}.tmp"), mode=mode)


def _say(args: Namespace, answer: object, text: str) -> int:
    output.emit(args, answer, text)
    return 0


# ---------------------------------------------------------------- what git's hooks call


def _check(args: Namespace, repo: Repository) -> int:
    if repo.workdir is None:
        raise UsageError("a bare repository stages nothing", "run this in a work tree")
    config = _load(args, repo)
    if args.message:
        data, _ = arguments.read_response(str(args.message))
        lines = staged.judge_message(config, data.decode("utf-8", "replace"))
    else:
        lines = staged.judge(config, repo)
    if lines or args.json:
        output.emit(args, {"refusals": lines}, *lines)
    return 1 if lines else 0


def _observe(args: Namespace, repo: Repository) -> int:
    changed = reconcile.reconcile(places.open_world(args, targeted=False, writes=False))
    if not args.quiet:
        for report in changed:
            output.say(args, report)
    return 0


_VERBS = {
    "list": _list,
    "install": _install,
    "uninstall": _uninstall,
    "check": _check,
    "observe": _observe,
}
