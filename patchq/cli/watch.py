"""`patchq watch`: the daemon, in the foreground unless detached."""

from __future__ import annotations

import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter

from patchq.cli import common
from patchq.config import Config
from patchq.daemon.serve import Control, serve
from patchq.errors import QueueLocked, RepositoryFault
from patchq.queue import Report
from patchq.queue.directory import lock_owner
from patchq.world import World

HELP = "serve the queue until stopped"
_START_SECONDS = 20.0


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--detach", action="store_true", help="go on in the background")


def run(args: Namespace) -> int:
    world = common.open_world(args)
    if args.detach:
        return _detach(args, world)
    control = Control()
    control.install()
    world.queue.acquire()
    seen: Counter[str] = Counter()

    def tell(told: Report) -> None:
        seen[told["state"]] += 1
        if live is None:
            common.say(args, told)
        else:
            live.tell(common.line(told))
            idle()

    def idle() -> None:
        if live is not None:
            counts = ", ".join(f"{count} {state}" for state, count in sorted(seen.items()))
            place = f"{world.config.queue.path}/inbox"
            live.show(f"watching {place} for {world.target}: {counts or '…'}")

    def reload() -> Config:
        config = common.load_config(args, world.repo)
        common.setup_log(args, config)
        return config

    live = None
    if sys.stdout.isatty() and not args.json and not args.quiet:
        from patchq.cli.live import LiveLine

        live = LiveLine()
    try:
        common.setup_log(args, world.config)
        serve(world, control, tell, reload, idle)
    finally:
        if live is not None:
            live.close()
        world.queue.release()
    return 130 if control.interrupted else 0


def _detach(args: Namespace, world: World) -> int:
    """Start the same command in a session of its own and wait until it holds the queue."""
    owner = lock_owner(world.queue_root)
    if owner is not None:
        raise QueueLocked(f"the queue is served already, by process {owner.pid}", "patchq stop")
    log = world.queue_root / "daemon.log"
    command = [sys.executable, "-m", "patchq", "-C", str(args.directory.resolve())]
    if args.config is not None:
        command += ["--config", str(args.config.resolve())]
    command += ["-q"] * args.quiet + ["-v"] * args.verbose
    with log.open("ab") as out:
        child = subprocess.Popen(
            [*command, "watch"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and child.poll() is None:
        owner = lock_owner(world.queue_root)
        if owner is not None and owner.pid == child.pid:
            told = {"pid": child.pid, "log": str(log)}
            common.emit(args, told, lambda: f"patchq watches as process {child.pid}; log: {log}")
            return 0
        time.sleep(0.02)
    raise RepositoryFault("the daemon did not start", f"see {log}")
