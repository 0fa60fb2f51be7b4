"""`patchq service`: serve this repository by systemd, from the login or the machine's start on."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
from argparse import Namespace
from importlib.resources import files
from pathlib import Path
from string import Template

from patchq.cli import arguments, opening, output, program
from patchq.core.text.quote import visible
from patchq.gate.errors import UsageError

_SYSTEM = arguments.Argument(
    "--system", action="store_true", help="for the machine, as root; else for your login"
)
ARGUMENTS = (
    {
        "install": ("write the unit of this repository, start it, and keep it enabled", (_SYSTEM,)),
        "remove": ("stop it, and take the unit away", (_SYSTEM,)),
    },
)
_INSTEAD = "use `patchq watch --detach`, or `patchq run` by cron"


def run(args: Namespace) -> int:
    location = opening.gate(args).location
    unit = _folder(args.system) / _name(location.home)
    if args.what == "remove":
        if not unit.exists():
            raise UsageError(f"{unit} is not there", "`patchq service install` writes it")
        _systemctl(args, "disable", "--now", unit.name)
        unit.unlink()
        _systemctl(args, "daemon-reload")
        return output.emit(args, {"removed": str(unit)}, f"removed {unit}")
    if args.system and os.geteuid() != 0:
        raise UsageError("a unit of the machine is root's", "use sudo, or leave out --system")
    location.rules()  # reports here that a service could not start
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(_text(location.home, system=args.system), encoding="utf-8")
    _systemctl(args, "daemon-reload")
    _systemctl(args, "enable", "--now", unit.name)
    state = _systemctl(args, "is-active", unit.name)
    words = shlex.join(["systemctl", *_manager(args), "status", unit.name])
    lines = [f"wrote {unit}", f"{state}; see `{words}`"]
    if not args.system:
        lines.append("`loginctl enable-linger` keeps it running while you are logged out")
    return output.emit(args, {"unit": str(unit), "state": state}, *lines)


def _folder(system: bool) -> Path:
    """Return the directory in which systemd looks for units."""
    if system:
        return Path("/etc/systemd/system")
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(config).expanduser() / "systemd/user"


def _name(home: Path) -> str:
    """Return the unit's name, which is the repository's path as systemd writes paths."""
    escaped = subprocess.run(
        [_found("systemd-escape"), "--path", str(home)], capture_output=True, text=True
    )
    if escaped.returncode:
        raise UsageError(f"no unit can be named after {home}", _INSTEAD)
    return f"patchq-{escaped.stdout.strip()}.service"


def _text(home: Path, *, system: bool) -> str:
    """Return the unit, with the absolute path of this very program."""
    words = program.own_words()
    folder = os.path.dirname(words[0])
    owner = pwd.getpwuid(home.stat().st_uid)
    bins = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    if not system:
        bins.insert(0, os.path.expanduser("~/.local/bin"))
    shape = files(__package__).joinpath("system.service" if system else "user.service")
    return Template(shape.read_text(encoding="utf-8")).substitute(
        directory=str(home).replace("%", "%%"),
        path=":".join(dict.fromkeys([folder, *bins])).replace("%", "%%"),
        program=" ".join(map(_quoted, words)),
        user=owner.pw_name,
    )


def _quoted(word: str) -> str:
    """Return a word of a command as systemd reads it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or " " in word else word


def _manager(args: Namespace) -> list[str]:
    return [] if args.system else ["--user"]


def _systemctl(args: Namespace, *words: str) -> str:
    """Return the output of systemctl; raises `UsageError` with its words where it fails."""
    command = [_found("systemctl"), *_manager(args), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        why = visible(done.stderr.strip() or done.stdout.strip())
        raise UsageError(f"`{shlex.join(['systemctl', *command[1:]])}` failed: {why}", _INSTEAD)
    return done.stdout.strip()


def _found(name: str) -> str:
    """Return the path of a program of systemd."""
    found = shutil.which(name)
    if not found:
        raise UsageError(f"{name} is not here: this machine has no systemd", _INSTEAD)
    return found
