"""Verbs that serve a queue, and those that tell how it is served."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
import sys
import time
from argparse import SUPPRESS, Namespace
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from patchq.cli import output
from patchq.cli.arguments import Argument, Table
from patchq.core.text.quote import visible
from patchq.gate.api import Gate
from patchq.gate.errors import (
    Interrupted,
    QueueLocked,
    RepositoryFault,
    UsageError,
)
from patchq.gate.report import logs

_SYSTEM = Argument(
    "--system", action="store_true", help="for the machine, as root; else for your login"
)
# Of the daemon: it ends with that.
_CHILD = Argument("--child", action="store_true", help=SUPPRESS)
ARGUMENTS: Table = {
    "run": (
        Argument(
            "--target", dest="home", metavar="B", help="the home branch, as `patchq init` has it"
        ),
    ),
    "watch": (Argument("--detach", action="store_true", help="go on in the background"),),
    "stop": (
        Argument(
            "--now",
            action="store_true",
            help="end its hooks, and leave the change to the next start",
        ),
    ),
    "service": (
        {
            "install": (
                "write the unit of this repository, start it, and keep it enabled",
                (_SYSTEM,),
            ),
            "remove": ("stop it, and take the unit away", (_SYSTEM,)),
        },
    ),
    "train": (_CHILD,),
    "worker": (
        Argument("--lanes", metavar="PATTERN", action="append", help="only these target branches"),
        Argument("--name", metavar="N", help="what `patchq cluster status` calls it"),
    ),
    "cluster": (
        {
            "migrate": ("make the database's tables", ()),
            "status": ("show the lanes, who owns them, what waits, and the workers", ()),
        },
    ),
    "forge": (
        {
            "check": ("see if the token may do what is needed, and what protects the target", ()),
            "sync": (
                "keep proposals and pull requests in step, until stopped",
                (
                    Argument("--once", action="store_true", help="one round, then exit"),
                    Argument(
                        "--dry-run",
                        action="store_true",
                        help="print what a round would do, then exit",
                    ),
                    _CHILD,
                ),
            ),
        },
    ),
    "review": (
        Argument("--port", metavar="N", help="of the page; 0 for any that is free"),
        Argument("--no-open", action="store_true", help="print the address, and open no browser"),
    ),
    "mcp": (
        Argument(
            "--http", metavar="PORT", nargs="?", const="8325", help="by HTTP on this machine (8325)"
        ),
        Argument("--read-only", action="store_true", help="offer only what changes nothing"),
        Argument("--agent", metavar="NAME", help="who submits, in every response"),
    ),
}


def run(args: Namespace) -> int:
    from patchq.cli import decide

    gate = output.gate(args)
    config = gate.session().config
    ask = decide.asker(args, config)
    with gate.service(partial(output.say, args), ask, lasting=False) as service:
        gate.setup_log(config)
        gate.notice_difference(service.session.judged_by)
        with suppress(decide.Quit, Interrupted):  # what was in hand waits for the next run
            service.drain()
    if service.control.interrupted:
        return 130
    return 1 if service.upkeep.verdicts["rejected"] else 0


# ---------------------------------------------------------------- watch


_START_SECONDS = 20.0


def watch(args: Namespace) -> int:
    gate = output.gate(args)
    session = gate.session()
    if args.detach:
        return _detach(args, gate, session.queue_root)
    from patchq.cli import decide
    from patchq.gate.service.children import ForgeChild, TrainChild

    words = output.command(args)
    children = (
        TrainChild([*words, "train", "--child"]),
        ForgeChild([*words, "forge", "sync", "--child"]),
    )
    ask = decide.asker(args, session.config)
    with gate.service(partial(output.log_and_say, args), ask, lasting=True) as daemon:
        if sys.stderr.isatty():
            inbox = f"{session.config.queue.path}/inbox"
            output.notice(args, f"watching {inbox} for {session.target}")
        gate.setup_log(session.config)
        gate.notice_difference(session.judged_by)
        with suppress(decide.Quit):
            return daemon.serve(gate.reload, children)
    return 130 if daemon.control.interrupted else 0


def _detach(args: Namespace, gate: Gate, root: Path) -> int:
    owner = gate.owner()
    if owner is not None:
        raise QueueLocked(f"the queue is served already, by process {owner.pid}", "patchq stop")
    log = root / logs.FILE
    with log.open("ab") as out:
        child = subprocess.Popen(
            [*output.command(args), "watch"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and child.poll() is None:
        owner = gate.owner()
        if owner is not None and owner.pid == child.pid:
            return output.emit(
                args,
                {"pid": child.pid, "log": str(log)},
                f"patchq watches as process {child.pid}; log: {log}",
            )
        time.sleep(0.02)
    raise RepositoryFault("the daemon did not start", f"see {log}")


# ---------------------------------------------------------------- stop


def stop(args: Namespace) -> int:
    def say(text: str) -> None:
        output.notice(args, f"waiting for {text}; `--now` ends that")

    pid = output.gate(args).stop(say, now=args.now)
    text = f"process {pid} has stopped" if pid else "no daemon runs"
    return output.emit(args, {"stopped": pid}, text)


# ---------------------------------------------------------------- service


_INSTEAD = "use `patchq watch --detach`, or `patchq run` by cron"


def service(args: Namespace) -> int:
    location = output.gate(args).location
    path = _output("systemd-escape", "--path", str(location.home))  # as systemd writes paths
    unit = _unit_folder(args.system) / f"patchq-{path}.service"
    if args.what == "remove":
        if not unit.exists():
            raise UsageError(f"{unit} is not there", "`patchq service install` writes it")
        _remove(args, unit)
        return output.emit(args, {"removed": str(unit)}, f"removed {unit}")
    if args.system and os.geteuid() != 0:
        raise UsageError("a unit of the machine is root's", "use sudo, or leave out --system")
    location.rules()  # reports here that a service could not start
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(unit_text(location.home, system=args.system), encoding="utf-8")
    try:
        _systemctl(args, "daemon-reload")
        _systemctl(args, "enable", "--now", unit.name)
        state = _systemctl(args, "is-active", unit.name)
    except UsageError:
        with suppress(UsageError):
            _remove(args, unit)
        unit.unlink(missing_ok=True)
        raise
    words = shlex.join(["systemctl", *_manager(args), "status", unit.name])
    lines = [f"wrote {unit}", f"{state}; see `{words}`"]
    if not args.system:
        lines.append("`loginctl enable-linger` keeps it running while you are logged out")
    return output.emit(args, {"unit": str(unit), "state": state}, *lines)


def _remove(args: Namespace, unit: Path) -> None:
    _systemctl(args, "disable", "--now", unit.name)
    unit.unlink()
    _systemctl(args, "daemon-reload")


def _unit_folder(system: bool) -> Path:
    if system:
        return Path("/etc/systemd/system")
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(config).expanduser() / "systemd/user"


def unit_text(home: Path, *, system: bool) -> str:
    """Return the unit, with the absolute path of this very program."""
    words = output.own_words()
    folder = os.path.dirname(words[0])
    owner = pwd.getpwuid(home.stat().st_uid)
    bins = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    if not system:
        bins.insert(0, os.path.expanduser("~/.local/bin"))
    from importlib.resources import files
    from string import Template

    shape = files(__package__).joinpath("system.service" if system else "user.service")
    return Template(shape.read_text(encoding="utf-8")).substitute(
        directory=str(home).replace("%", "%%"),
        path=":".join(dict.fromkeys([folder, *bins])).replace("%", "%%"),
        program=" ".join(map(_quoted, words)),
        user=owner.pw_name,
    )


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or " " in word else word


def _manager(args: Namespace) -> list[str]:
    return [] if args.system else ["--user"]


def _systemctl(args: Namespace, *words: str) -> str:
    return _output("systemctl", *_manager(args), *words)


def _output(name: str, *words: str) -> str:
    """Return the output of a program of systemd.

    Raises `UsageError`, with the program's message, if it fails.
    """
    program = shutil.which(name)
    if not program:
        raise UsageError(f"{name} is not here: this machine has no systemd", _INSTEAD)
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode:
        why = visible(done.stderr.strip() or done.stdout.strip())
        raise UsageError(f"`{shlex.join([name, *words])}` failed: {why}", _INSTEAD)
    return done.stdout.strip()


# ---------------------------------------------------------------- train


def train(args: Namespace) -> int:
    from patchq.cli import decide

    if args.child:
        from patchq.gate.service.children import end_with_parent

        end_with_parent()
    gate = output.gate(args)
    gate.setup_log(gate.context().config)
    progress = decide.Progress(args)
    decided = gate.run_trains(progress.say)
    codes = [decide.print_decision(args, one, 2) for one in decided]
    progress.end()
    return max(codes, default=0)


# ---------------------------------------------------------------- worker


def worker(args: Namespace) -> int:
    tell = partial(output.log_and_say, args)
    return output.gate(args).work(tell, name=args.name, lanes=args.lanes)


# ---------------------------------------------------------------- cluster


def cluster(args: Namespace) -> int:
    from patchq.gate.service import cluster as database

    gate = output.gate(args)
    config = gate.reload().config
    if args.what == "migrate":
        version, made, text = database.migrate(config)
        return output.emit(args, {"version": version, "made": made}, text)
    state = database.look(config)
    return output.emit(args, state, *map(visible, _cluster_lines(state)))


def _cluster_lines(state: Mapping[str, Any]) -> Iterator[str]:
    yield f"queue in {state['database']}, version {state['version']}"
    for lane in state["lanes"]:
        owner = lane["owner"] or ("NOT SERVED" if lane["lane"] in state["unserved"] else "free")
        beat = f", beat {lane['beat']:.0f} s ago" if lane["beat"] is not None else ""
        counts = f"{lane['waiting']} waiting, {lane['claimed']} in hand, {lane['held']} held"
        yield f"lane {lane['lane'] or '(default)'}: {counts}; {owner}{beat}"
    for worker in state["workers"]:
        yield (
            f"worker {worker['name']} on {worker['host']}, process {worker['pid']}: "
            f"for {worker['began']:.0f} s, beat {worker['beat']:.0f} s ago"
        )
    if state["unserved"]:
        named = ", ".join(state["unserved"])
        yield f"start `patchq worker` where `cluster.lanes` lets it serve {named}"
    if not state["lanes"] and not state["workers"]:
        yield "nothing was ever submitted, and no worker is there"


# ---------------------------------------------------------------- forge


def forge(args: Namespace) -> int:
    if args.what == "sync" and args.child:
        from patchq.gate.service.children import end_with_parent

        end_with_parent()
    gate = output.gate(args)
    sync = output.synced(args, gate)
    context = gate.context(targeted=True, writes=args.what == "sync")
    if args.what == "check":
        from patchq.forge.connect import findings

        found = findings(sync.forge, context.target)
        lines = [f"{level:<5} {text}" for level, text in found]
        answer = [{"level": level, "message": text} for level, text in found]
        return output.emit(args, answer, *lines) or int(any(one != "ok" for one, _ in found))
    if args.once or args.dry_run:
        sync.rounds(gate, dry_run=args.dry_run)
        return 0
    from patchq.forge.sync import serve
    from patchq.gate.api.shared import SharedGate

    serve(SharedGate(output.options(args)), sync)
    return 0


# ---------------------------------------------------------------- review, mcp


def review(args: Namespace) -> int:
    from patchq import page

    return page.serve(args, output.options(args))


def mcp(args: Namespace) -> int:
    from patchq import mcp

    return mcp.serve(args, output.options(args))
