"""What a hook's end means for the batch: a pass, a refusal with its reason, or other files."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from patchq.git.checkout import obstacle
from patchq.hooks import shipped
from patchq.hooks.running import Ended, HookFault
from patchq.hooks.steps import Step
from patchq.hooks.warm import MESSAGE, Warm
from patchq.model.report import HookPlan
from patchq.model.values import HookRun, Problem
from patchq.text.quote import clip

MOST_SHOWN = 4000
"""Characters of a hook's output that a report shows, the last ones."""
_MOST_TOLD = 1000
_MOST_FILE = 64 * 1024 * 1024
_SECRET = "edit.secret:"

Fixed = Mapping[str, tuple[bytes, bool] | None]
"""What a hook made of files: content and whether executable, None where it removed one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a hook said; `problems` refuse the batch, `fixed` and `message` change it."""

    run: HookRun
    problems: tuple[Problem, ...] = ()
    fixed: Fixed = field(default_factory=dict)
    message: str | None = None


def as_run(step: Step, ended: Ended) -> HookRun:
    output = ended.output.rstrip()
    if len(output) > MOST_SHOWN:
        output = "…" + output[-MOST_SHOWN:]
    return HookRun(step.id, step.stage, ended.code, ended.seconds, output)


def verdict(step: Step, message: str, warm: Warm, ended: Ended) -> Verdict:
    """What the end of a hook that saw the commit with this message means.  Raises `HookFault` if it
    was not started at all."""
    done = as_run(step, ended)
    if ended.code in (126, 127):
        said = f": {ended.output.strip()[-_MOST_TOLD:]}" if ended.output.strip() else ""
        raise HookFault(
            f"the hook {step.id} cannot be started (exit {ended.code}){said}",
            "correct its `run`; `patchq config check` finds what cannot be found",
        )
    if ended.code != 0:
        return Verdict(done, (_refusal(step, done),))
    if not step.fixes:
        return Verdict(done)
    if step.git:
        written = _content(Path(f"{ended.root}{warm.gitdir}"), MESSAGE)
        text = written[0].decode("utf-8", "replace") if written else message
        return Verdict(done, message=text if text.strip() != message.strip() else None)
    try:
        there = Path(f"{ended.root}{warm.tree}")
        return Verdict(
            done, fixed={path: _content(there, path) for path in warm.changed(ended.jail)}
        )
    except ValueError as error:
        return Verdict(done, (_unusable(step, str(error)),))


def _content(there: Path, path: str) -> tuple[bytes, bool] | None:
    """What a hook left at a path; ValueError if that is nothing that can be committed."""
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
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_FILE:
            raise ValueError(f"made {path} something other than a file of a fair size")
        return file.read(_MOST_FILE), bool(status.st_mode & 0o100)


def _unusable(step: Step, why: str) -> Problem:
    return Problem(
        "hook.refused",
        f"the hook {step.id} {why}, which no batch may",
        "nothing to correct in the response: have the hook looked after",
    )


def _refusal(step: Step, done: HookRun) -> Problem:
    said = f"\n{_last_lines(done.output)}" if done.output else ""
    if done.exit is None:
        return Problem(
            "hook.timeout",
            f"the hook {step.id} ({step.stage}) did not end within {step.timeout:g} seconds and "
            f"was stopped{said}",
        )
    how = f"exit {done.exit}"
    if done.exit > 128 and done.exit - 128 in set(signal.Signals):
        how += f", ended by {signal.Signals(done.exit - 128).name}"
    return Problem(
        "hook.refused", f"the hook {step.id} ({step.stage}) refused the batch: {how}{said}"
    )


def _last_lines(output: str) -> str:
    return output if len(output) <= _MOST_TOLD else "…" + output[-_MOST_TOLD:]


def judged(step: Step, judge: shipped.Judge, plan: HookPlan) -> Verdict:
    """What a function says of a plan."""
    try:
        lines = judge(plan)
    except ValueError as error:
        raise HookFault(f"the hook {step.id} cannot be used: {error}") from None
    code = 1 if lines else 0
    done = HookRun(step.id, step.stage, code, 0.0, clip("\n".join(lines), MOST_SHOWN))
    return Verdict(done, tuple(_line_problems(step, lines)))


def _line_problems(step: Step, lines: Iterable[str]) -> list[Problem]:
    secrets = [line for line in lines if line.startswith(_SECRET)]
    others = [line for line in lines if not line.startswith(_SECRET)]
    found = [Problem("edit.secret", line.removeprefix(_SECRET).strip()) for line in secrets]
    if others:
        text = "\n".join(others)
        message = f"the hook {step.id} ({step.stage}) refused the batch"
        found.append(Problem("hook.refused", f"{message}\n{_last_lines(text)}"))
    return found
