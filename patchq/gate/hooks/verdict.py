"""The meaning of a hook's end for the batch: a pass, a refusal with its reason, or other files."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from patchq.core.model.values import HookRun, Problem
from patchq.core.text.quote import clip
from patchq.gate.config.schema import Hook
from patchq.gate.errors import HookFault
from patchq.gate.git.checkout import obstacle
from patchq.gate.hooks import builtin
from patchq.gate.hooks.configured import MESSAGE, Step
from patchq.gate.hooks.sandbox import HookExit
from patchq.gate.hooks.warm import ReusableTree

_MOST_SHOWN = 4000  # characters of a hook's output that a report shows, the last ones
_MESSAGE_CHARS = 1000
_FILE_BYTES = 64 * 1024 * 1024
_SECRET = "edit.secret:"

# Files that a hook changed: content and if executable, None where it removed one.
Fixed = Mapping[str, tuple[bytes, bool] | None]


class Verdict(Struct, frozen=True):
    """A hook's answer; `problems` refuse the batch, `fixed` and `message` change it."""

    run: HookRun
    problems: tuple[Problem, ...] = ()
    fixed: Fixed = field(default_factory=dict)
    message: str | None = None


def tail(output: str, most: int) -> str:
    """Return the end of a hook's output, so many characters at most."""
    return output if len(output) <= most else "…" + output[-most:]


def as_run(step: Step, end: HookExit) -> HookRun:
    output = tail(end.output.strip(), _MOST_SHOWN)
    return HookRun(step.hook.id, step.hook.stage, end.code, end.seconds, output)


def verdict(step: Step, message: str, warm: ReusableTree, end: HookExit) -> Verdict:
    """Return the meaning of the end of a hook that saw the commit with this message.

    Raises `HookFault` if it was not started at all."""
    run = as_run(step, end)
    if end.code in (126, 127):
        output = tail(run.output, _MESSAGE_CHARS)
        raise HookFault(
            f"the hook {step.hook.id} cannot be started (exit {end.code})"
            f"{output and f': {output}'}",
            "correct its `run`; `patchq config check` finds what cannot be found",
        )
    if end.code != 0:
        return Verdict(run, (_refusal(step.hook, run),))
    if not step.hook.fixes:
        return Verdict(run)
    tree = Path(f"{end.root}{end.tree}")
    try:
        if step.git:
            written = _content(tree, f".git/{MESSAGE}")
            text = written[0].decode("utf-8", "replace") if written else message
            return Verdict(run, message=text if text.strip() != message.strip() else None)
        fixed = {path: _content(tree, path) for path in warm.changed(end.tree, end.enter)}
    except ValueError as error:
        problem = Problem(
            "hook.refused",
            f"the hook {step.hook.id} {error}, which no change may",
            "nothing to correct in the response: have the hook looked after",
        )
        return Verdict(run, (problem,))
    return Verdict(run, fixed=fixed)


def _content(there: Path, path: str) -> tuple[bytes, bool] | None:
    """Return a file as the hook left it; ValueError if that cannot be committed."""
    if (above := obstacle(there, path)) is not None:
        if os.path.lexists(there / path):
            raise ValueError(f"made {above} something other than a directory")
        return None
    try:
        fd = os.open(there / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"left {path} unreadable ({error.strerror})") from None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _FILE_BYTES:
            raise ValueError(f"made {path} something other than a file of a fair size")
        return file.read(_FILE_BYTES), bool(status.st_mode & 0o100)


def _refusal(hook: Hook, run: HookRun) -> Problem:
    output = f"\n{tail(run.output, _MESSAGE_CHARS)}" if run.output else ""
    if run.exit is None:
        return Problem(
            "hook.timeout",
            f"the hook {hook.id} ({hook.stage}) did not end within "
            f"{hook.timeout_seconds:g} seconds and was stopped{output}",
        )
    how = f"exit {run.exit}"
    if run.exit > 128 and run.exit - 128 in set(signal.Signals):
        how += f", ended by {signal.Signals(run.exit - 128).name}"
    return Problem(
        "hook.refused",
        f"the hook {hook.id} ({hook.stage}) refused the change: {how}{output}",
    )


def judged(step: Step, judge: builtin.Judge, plan: Mapping[str, Any]) -> Verdict:
    """Return a function's answer about a plan."""
    try:
        lines = judge(plan)
    except ValueError as error:
        raise HookFault(f"the hook {step.hook.id} cannot be used: {error}") from None
    output = clip("\n".join(lines), _MOST_SHOWN)
    run = HookRun(step.hook.id, step.hook.stage, 1 if lines else 0, 0.0, output)
    problems = [
        Problem("edit.secret", line.removeprefix(_SECRET).strip())
        for line in lines
        if line.startswith(_SECRET)
    ]
    if others := [line for line in lines if not line.startswith(_SECRET)]:
        message = f"the hook {step.hook.id} ({step.hook.stage}) refused the change\n"
        problems.append(Problem("hook.refused", message + tail("\n".join(others), _MESSAGE_CHARS)))
    return Verdict(run, tuple(problems))
