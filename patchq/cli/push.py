"""Git's `proc-receive` hook: a push to refs/for/BRANCH hands in what BRANCH lacks.

The response that they make holds all that they change, so that the pushed objects are needed no
longer than it takes to make it.  The ref is never stored.  What is printed on standard error, the
pusher sees as `remote:` lines; standard output belongs to git.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Iterable
from contextlib import closing
from hashlib import sha256
from pathlib import PurePath
from types import FrameType

from msgspec.structs import replace

from patchq.cli import opening
from patchq.core.model.names import PUSH
from patchq.core.model.values import Problem
from patchq.core.text.quote import visible
from patchq.core.text.retry import WHAT_TO_SEND
from patchq.gate.api import dry_run, submitting, words
from patchq.gate.api.location import Location
from patchq.gate.errors import Fault, UsageError
from patchq.gate.intake import commits
from patchq.gate.intake import push as receiving
from patchq.gate.intake.push import NAMESPACE, Command, Push, PushOptions
from patchq.gate.pipeline import stages
from patchq.gate.queue.engine import StoreQueue
from patchq.gate.queue.lock import lock_owner
from patchq.gate.report import sender
from patchq.gate.report.message import subject
from patchq.gate.report.page import to_markdown
from patchq.gate.report.schema import Report
from patchq.gate.service.admission import PUSH_BYTES
from patchq.gate.service.watcher import Watcher

_MOST_LINES, _FEW_LINES = 60, 12  # of the page of a refusal, and of any other
_LOOKS_SECONDS = 0.5  # the interval of looking whether a daemon runs, at most
_RESTARTS_SECONDS = 10.0  # for so long a daemon that went away may come back
_HELD_SECONDS = 2.0  # a change that is held for longer is reported as held


class _Ended:
    """True once this process was asked to end: it first reports on the batch."""

    _asked = False

    def asked(self) -> bool:
        return self._asked

    def __enter__(self) -> _Ended:
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self._before = {number: signal.signal(number, self._ask) for number in signals}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True


def receive(args: Namespace, location: Location) -> int:
    """Talk to git; the exit code is 0 once it has its answer."""
    reader, writer = sys.stdin.buffer, sys.stdout.buffer
    push = receiving.hear(reader, writer, PUSH_BYTES)
    try:
        with _Ended() as ended:
            reason = _handed_in(args, location, push, ended)
    except Fault as fault:
        words = fault.message if fault.code == UsageError.code else f"{fault.code}: {fault.message}"
        reason = " ".join(visible(words).split())
        _tell([reason, *([f"  {fault.hint}"] if fault.hint else [])])
    receiving.answer(writer, push, reason)
    return 0


def _handed_in(args: Namespace, location: Location, push: Push, ended: _Ended) -> str | None:
    """Return why the push fails, in one line, or None.

    Raises `Fault` for what never reaches the queue.
    """
    command, target = _only(push)
    options = receiving.push_options(push.options)
    data, words = _response(args, command, target, options)
    shutil.rmtree(args.objects, ignore_errors=True)
    queue = opening.gate(args).queue(location.rules().config)
    if ended.asked():
        raise UsageError("the push was interrupted; nothing was taken", "push again")
    wanted = options.keys.get("id")
    id = queue.next_id(wanted) if isinstance(wanted, str) else None
    name = queue.submit(data, submitting.marked_name(words, PUSH))
    _tell([f"handed in as {id or PurePath(name).stem}"])
    report, why = _wait(queue, sha256(data).hexdigest(), name, options.seconds, ended)
    if report is None:
        id = id or PurePath(name).stem
        _tell([f"no verdict yet: {why}", f"  `patchq wait {id}` waits on"])
        return f"interrupted; {id} stays in the queue" if ended.asked() else None
    return _print_verdict(report)


def _only(push: Push) -> tuple[Command, str]:
    """Return the one ref that is pushed, and the branch that it is for."""
    if len(push.commands) != 1:
        raise UsageError(f"{len(push.commands)} refs are pushed", f"push one {NAMESPACE}BRANCH")
    (command,) = push.commands
    if not command.ref.startswith(NAMESPACE) or command.ref == NAMESPACE:
        raise UsageError(f"{command.ref} is for no branch", f"push to {NAMESPACE}BRANCH")
    if not command.new.strip("0"):
        raise UsageError(
            f"{command.ref} is pushed to and never stored, so it cannot be deleted",
            "to take a proposal back, use `patchq discard`",
        )
    return command, command.ref.removeprefix(NAMESPACE)


def _response(
    args: Namespace, command: Command, target: str, options: PushOptions
) -> tuple[bytes, str]:
    """Return the response of the pushed commits, and words to name it by."""
    session = opening.gate(args).session(writes=False)
    if args.objects.is_dir():
        session.repo.borrow(args.objects.absolute())
    allowed = [session.target, *session.config.targets]
    if problem := stages.not_a_target(target, allowed):
        raise _refusal(replace(problem, hint=f"push to {NAMESPACE}{allowed[0]}"))
    change = commits.of_commit(session, command.new, target)
    if not change.commits:
        raise UsageError(f"{target} has all of it already", "commit something, then push")
    if problem := commits.outsized(session, change):
        raise _refusal(problem)
    keys = {**sender.from_environment().keys(), **options.keys, "target": target}
    data = commits.as_response(session.repo, session.rules, change, keys)
    if problem := dry_run.oversize(session, data):
        raise _refusal(problem)
    return data, str(options.keys.get("message") or subject(session.repo.message(change.result)))


def _refusal(problem: Problem) -> UsageError:
    error = UsageError(problem.message, problem.hint)
    error.code = problem.code
    return error


# ---------------------------------------------------------------- the verdict


def _print_verdict(report: Report) -> str | None:
    """Print the verdict; return why the push fails, or None."""
    refused = report.state == "rejected"
    heading = f"\n{WHAT_TO_SEND}\n" if refused else "\n## Edits\n"
    page, _, send = to_markdown(report).partition(heading)
    lines = page.rstrip().split("\n")[: _MOST_LINES if refused else _FEW_LINES]
    sent = [WHAT_TO_SEND, "", send.strip(), ""] if refused else []
    _tell([words.line(report), "", *lines, "", *sent, f"`patchq show {report.id}` prints it all"])
    return " ".join(words.line(report).split()) if refused else None


def _wait(
    queue: StoreQueue, digest: str, name: str, seconds: float, ended: _Ended
) -> tuple[Report | None, str]:
    """Return the verdict, or the reason why there is none yet."""
    began = served = time.monotonic()
    held = None
    patience = 0.0 if lock_owner(queue.root) is None else _RESTARTS_SECONDS
    with closing(Watcher(queue.root)) as watcher:
        while True:
            watcher.read()
            serves = lock_owner(queue.root) is not None  # before: who has gone has reported
            report, now = submitting.report_on(queue, digest, name), time.monotonic()
            held = (held or now) if report and report.state == "held" else None
            if report and (held is None or now - held > _HELD_SECONDS):
                return report, ""
            if ended.asked():
                return None, "the push was interrupted, and the response stays in the queue"
            if now - began > seconds:
                return None, f"{seconds:g} s are over, and the response stays in the queue"
            if serves:
                served = now
            elif now - served >= patience:
                return None, (
                    "no daemon works on the queue; the response lies in the inbox and gets its "
                    "verdict once `patchq watch` or `patchq run` runs"
                )
            watcher.wait(min(_LOOKS_SECONDS, began + seconds - now + 0.01))


def _tell(lines: Iterable[str]) -> None:
    """Say it to the pusher, as far as there still is one."""
    try:
        for line in lines:
            print(visible(line), file=sys.stderr)
        sys.stderr.flush()
    except OSError:
        pass
