"""`patchq submit`: drop a response safely, and wait for its verdict if asked to."""

from __future__ import annotations

import math
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import PurePath

from patchq.cli import arguments, opening, output
from patchq.cli.arguments import Argument
from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.names import COMMITS, REQUEST, response_name
from patchq.core.model.values import Envelope
from patchq.gate.api import submitting
from patchq.gate.errors import TimeIsUp, UsageError
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report import sender
from patchq.gate.report.secrecy import batch_id, file_name
from patchq.gate.service.watcher import Watcher

# One at most may be given, and no file then.
_SOURCES = (
    Argument("--branch", metavar="NAME", help="hand in what a branch has and the target has not"),
    Argument("--range", metavar="A..B", help="hand in the commits of B that A does not have"),
    Argument(
        "--worktree",
        metavar="DIR",
        nargs="?",
        const=".",
        help="hand in what a work tree has, committed or not (this one)",
    ),
)
_SERIES = Argument(
    "--series", action="store_true", help="one change for each commit, each on the one before"
)
ARGUMENTS = (
    (Argument("file", nargs="?", metavar="FILE", help="the response, or -"), *_SOURCES),
    _SERIES,
    Argument("--id", metavar="ID", help="the name of the change"),
    Argument("--agent", metavar="A", help="who wrote it"),
    Argument("--model", metavar="M", help="and by which model"),
    Argument("--target", metavar="B", help="the branch that it is for"),
    Argument("--base", metavar="C", help="the commit that the agent saw"),
    Argument("--message", metavar="M", help="the commit's message"),
    Argument("--retries", metavar="ID", help="the refused change that this one replaces"),
    Argument("--wait", action="store_true", help="wait for the verdict"),
    Argument(
        "--timeout", metavar="S", type=arguments.seconds, help="for so many seconds; then exit 124"
    ),
)
_LOOK_SECONDS = 1.0
_KEYS = ("id", "target", "base", "message", "agent", "model", "retries")


def run(args: Namespace) -> int:
    if args.timeout is not None and not args.wait:
        raise UsageError("--timeout says how long to wait", "say --wait, too")
    gate = opening.gate(args)
    queue = gate.queue(gate.location.rules().config)
    if any(value is not None for value in (args.branch, args.range, args.worktree)):
        return _hand_in(args, queue)
    if args.file is None:
        raise UsageError(
            "expected a response",
            "name a file, - for standard input, or --branch, --range or --worktree",
        )
    data, name = arguments.read_response(args.file)
    if not data:  # the queue would wait for what its writer has still to write
        raise UsageError(f"the response is empty: {name}", "see `patchq formats` for what to send")
    keys = {key: getattr(args, key) for key in _KEYS}
    id, suffix = None, REQUEST
    if not name.endswith(REQUEST):
        data, replaced = sender.with_header(data, keys, sender.from_environment())
        for key in replaced:
            output.notice(args, f"--{key} replaces `{key}` of the front matter")
        opened = open_response(data)
        id = opened.header.id if isinstance(opened, Envelope) else None
        suffix = PurePath(file_name(name)).suffix or ".md"
    elif args.wait or any(keys.values()):  # nor could an answer be waited for by its bytes
        raise UsageError(
            f"a request takes none of --{', --'.join(_KEYS)} and --wait",
            "say `target` and `base` in the request; to wait for the answer, use `patchq ask`",
        )
    free = queue.next_id(batch_id(id or PurePath(response_name(name)).stem))
    dropped = queue.submit(data, free + suffix)
    id = free if id is not None else batch_id(PurePath(response_name(dropped)).stem)
    if not args.wait:
        return output.emit(args, {"id": id, "file": dropped}, id)
    return _wait(args, queue, {id: (data, dropped)})


def _hand_in(args: Namespace, queue: StoreQueue) -> int:
    """Drop commits, or the changes of a work tree, into the inbox."""
    from patchq.cli import commits  # only who hands in commits reads trees

    handed = list(commits.responses(args, queue.next_id))
    data = [one.data for one in handed]
    names = [queue.next_id(one.name) + COMMITS for one in handed]
    dropped = [queue.submit(*each) for each in zip(data, names, strict=True)]
    ids = [batch_id(PurePath(response_name(name)).stem) for name in dropped]
    if args.wait:
        return _wait(args, queue, dict(zip(ids, zip(data, dropped, strict=True), strict=True)))
    answer = [{"id": id, "file": name} for id, name in zip(ids, dropped, strict=True)]
    return output.emit(args, answer if args.series else answer[0], *ids)


def _wait(args: Namespace, queue: StoreQueue, handed: Mapping[str, tuple[bytes, str]]) -> int:
    """Print the verdict on each that was handed in: by its id, its bytes and the name of its file.
    The ids are printed before, on standard error."""
    until = math.inf if args.timeout is None else time.monotonic() + args.timeout
    if not (args.json or args.quiet):
        print(f"patchq: waiting for the verdict on {', '.join(handed)}", file=sys.stderr)
    if lock_owner(queue.root) is None:
        print("patchq: no daemon runs; waiting for `patchq watch` or `patchq run`", file=sys.stderr)
    verdicts = output.Verdicts(args, pages=True, again=_again(args))
    with closing(Watcher(queue.root)) as watcher:
        for id, (data, name) in handed.items():
            digest = sha256(data).hexdigest()
            while (
                report := submitting.report_on(queue, digest, name)
            ) is None or report.state == "held":
                if until <= time.monotonic():
                    raise TimeIsUp(
                        f"no verdict on {id} within {args.timeout:g} s",
                        f"it stays in the queue; `patchq wait {id}` waits on",
                    )
                watcher.wait(min(until - time.monotonic(), _LOOK_SECONDS))
            verdicts(report)
    return verdicts.exit_code


def _again(args: Namespace) -> str:
    """Return the command that hands corrected commits in again; empty for a file."""
    given = ((flag, getattr(args, flag)) for flag in ("worktree", "branch", "range"))
    words = [f"--{flag} {shlex.quote(value)}" for flag, value in given if value is not None]
    return f"patchq submit {words[0]} --retries ID --wait" if words else ""
