"""What the verbs share: finding the repository, the configuration and the queue; saying things."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any

from patchq.cli.streams import put
from patchq.config import reading
from patchq.config.reading import Config
from patchq.formats.envelope.opening import open_response
from patchq.git import backup
from patchq.git.repository import Repository
from patchq.model.errors import UsageError
from patchq.model.report import Report
from patchq.model.values import Envelope, Problem, Source
from patchq.pipeline import traces
from patchq.pipeline.draft import Draft
from patchq.pipeline.overrides import WHOLE, Choice
from patchq.pipeline.process import process
from patchq.pipeline.world import Tips, World
from patchq.queue import Claim, directory
from patchq.queue.directory import DirectoryQueue
from patchq.queue.inbox import too_large
from patchq.queue.memory import MemoryQueue
from patchq.report import logs
from patchq.report.document import printed
from patchq.report.secrecy import batch_id
from patchq.review import from_git
from patchq.text.quote import visible

REFS = (
    "refs/heads/patchq/", "refs/patchq/waiting/", "refs/patchq/batches/", "refs/patchq/discarded/",
)  # fmt: skip
"""Where an id that was ever given to a commit is found, whatever the queue remembers."""


def root_of(repo: Repository) -> Path:
    """Where the queue's default place and the configuration are: the work tree's root, or the git
    directory of a bare repository."""
    return main_workdir(repo) or repo.commondir


def main_workdir(repo: Repository) -> Path | None:
    """The main work tree, whichever linked one the repository was opened from; None when bare."""
    if repo.bare or repo.gitdir == repo.commondir:
        return repo.workdir
    return Repository.open(repo.commondir).workdir


def config_path(args: Namespace, repo: Repository) -> Path:
    if args.config is not None:
        return Path(args.config)
    return root_of(repo) / (".patchq.yaml" if main_workdir(repo) else "patchq.yaml")


def load_config(args: Namespace, repo: Repository) -> Config:
    """The configuration; raises `ConfigError` for one that cannot be used."""
    path = config_path(args, repo)
    config = reading.load(path, required=args.config is not None)
    reading.check_kept(path, config)
    if "path" in config.queue.model_fields_set and (why := _not_a_queue(repo, config)):
        where = reading.place(path, "queue", "path")
        raise reading.ConfigError([f"{where}: expected a directory of its own, {why}"])
    return config


def _not_a_queue(repo: Repository, config: Config) -> str | None:
    """Why the queue cannot be where the configuration has it, though a directory is there."""
    root = (root_of(repo) / config.queue.path).resolve()
    if any(place.resolve().is_relative_to(root) for place in (root_of(repo), repo.commondir)):
        return f"got `{config.queue.path}`, which holds the repository"
    if root.is_file():
        return f"got `{config.queue.path}`, which is a file"
    there = {name for name in os.listdir(root) if name[0] != "."} if root.is_dir() else set()
    if there - {"lost+found"} and not there.intersection(directory.PUBLIC):
        return f"got `{config.queue.path}`, which holds other files"
    return None


def open_queue(args: Namespace, repo: Repository, config: Config) -> DirectoryQueue:
    """The queue, made if need be; the end of the command closes it."""

    def taken(id: str) -> bool:
        return any(repo.ref_target(prefix + id) for prefix in REFS)

    root = root_of(repo) / config.queue.path
    if not root.is_dir():
        keep_out_of_status(repo, root)
    directory.create(root)
    queue = DirectoryQueue(
        root,
        response_bytes=config.limits.response_bytes,
        settle_seconds=config.queue.settle_seconds,
        taken=taken,
    )
    args.opened.callback(queue.close)
    return queue


def keep_out_of_status(repo: Repository, queue: Path) -> None:
    """Have `git status` pass over the queue, without touching a file of the repository."""
    workdir = main_workdir(repo)
    if workdir is None or not queue.is_relative_to(workdir):
        return
    backup.exclude(repo.commondir, [f"/{queue.relative_to(workdir).as_posix()}/"])


def open_world(args: Namespace, *, targeted: bool = True, writes: bool = True) -> World:
    """The repository, its configuration and its queue.

    Raises `UsageError` where the default target cannot be told, unless the command only speaks of
    batches that have theirs (`targeted=False`).  A command that only looks (`writes=False`) does
    not even make the queue: a missing one is an empty one.
    """
    repo = Repository.open(args.directory)
    config = load_config(args, repo)
    setup_log(args, config)
    target = _target(repo, config) if targeted else config.target or repo.head_branch() or ""
    root = root_of(repo) / config.queue.path
    looks = not writes and not root.is_dir()
    queue = MemoryQueue() if looks else open_queue(args, repo, config)
    world = World(repo, queue, root, config, target)
    args.opened.callback(world.close)
    return world


def _target(repo: Repository, config: Config) -> str:
    target = config.target or repo.head_branch()
    if target is None:
        raise UsageError(
            "HEAD is on no branch that has a commit, so there is no default target",
            "check out a branch, or set `target` in .patchq.yaml",
        )
    if repo.branch_tip(target) is None:
        raise UsageError(
            f"the target branch {target!r} does not exist", "create it, or set another `target`"
        )
    if target.startswith("patchq/"):
        raise UsageError(
            f"{target!r} is a branch that waits for review, so batches cannot be for it",
            "check out another branch, or set `target` in .patchq.yaml",
        )
    return target


def preview(world: World, claim: Claim, choice: Choice = WHOLE) -> Draft:
    """What would become of a response now; nothing is written, and no id is taken."""
    opened = open_response(claim.data)
    named = opened.header.id if isinstance(opened, Envelope) else None
    id = claim.id or batch_id(named or PurePath(claim.source.name).stem)
    if claim.id is None and isinstance(world.queue, DirectoryQueue):
        id = world.queue.next_id(id)
    return process(replace(claim, id=id), world, Tips(world), replace(choice, dry_run=True))


def unread(world: World, data: bytes, name: str) -> Claim:
    """A response that the queue does not have, to look at."""
    source = Source(name, sha256(data).hexdigest(), len(data))
    return Claim("", source, data, oversize(world, data))


def oversize(world: World, data: bytes) -> Problem | None:
    """Why a response that does not come through the inbox would not be read there."""
    most = world.config.limits.response_bytes
    return too_large(len(data), most) if len(data) > most else None


def find(world: World, id: str) -> tuple[Report, str]:
    """The batch's report, and where it is from if not from the queue; `UsageError` if neither the
    queue nor git knows the batch."""
    if report := world.queue.load(id):
        return report, ""
    if report := from_git.load(world, id):
        return report, from_git.SAYS_SO
    raise UsageError(f"there is no batch {id}", "see `patchq log`")


def seen(world: World, report: Report, *notes: str) -> tuple[Report, str]:
    """The report with the state that the repository shows now, and how it came to it."""
    now = traces.observe(world, report)
    said = "; ".join(filter(None, (now.note, *notes)))
    return {**report, "state": now.state}, said


def setup_log(args: Namespace, config: Config, file: Path | None = None) -> None:
    """Send the log to standard error or to the file, in the configured form."""
    level = "debug" if args.verbose else "error" if args.quiet else config.log.level
    key = os.environ.get(config.llm.api_key_env or "", "")
    logs.setup(level, config.log.format, file, [key])


def positive(text: str) -> int:
    """An argument that is a whole number from 1."""
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < 1:
        raise ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)


# ---------------------------------------------------------------- what is said


def line(report: Mapping[str, Any]) -> str:
    """One plain line for a verdict: state, id, and where it is or why it is not."""
    state, id = report["state"], report["id"]
    text = f"{state:<10} {id}"
    errors = [p for p in report["problems"] if p["severity"] == "error"]
    warnings = [p for p in report["problems"] if p["severity"] == "warning"]
    if state in ("rejected", "held"):
        told = errors or warnings
        text += f"  {told[0]['code']}: {told[0]['message']}" if told else ""
        text += f" (and {len(told) - 1} more)" if len(told) > 1 else ""
    elif state == "duplicate":
        text += f"  of {report['duplicate_of']}" if report["duplicate_of"] else "  nothing to do"
    else:
        where = report["branch"] or report["target"]
        text += f"  {where} {(report['commit'] or '')[:12]}"
        text += f"  by {report['duplicate_of']}" if report["duplicate_of"] else ""
        text += "".join(f"  [{code}]" for code in dict.fromkeys(p["code"] for p in warnings))
    return visible(text)


def say(args: Namespace, report: Mapping[str, Any]) -> None:
    """Print a verdict: a JSON object a line, or one plain line."""
    if args.json:
        put(printed(report))
    elif not args.quiet or report["state"] == "rejected":
        put(line(report))


def emit(args: Namespace, value: object, text: Callable[[], str]) -> None:
    """Print an answer: as JSON, or as `text` says it."""
    put(printed(value, indent=1) if args.json else text())


def read_response(name: str) -> tuple[bytes, str]:
    """The bytes of FILE or, for `-`, of standard input, and the response's name."""
    if name == "-":
        return sys.stdin.buffer.read(), "response.md"
    try:
        return Path(name).read_bytes(), Path(name).name
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
