"""`patchq submit`: drop a response safely, and wait for its verdict if asked to."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from hashlib import sha256
from pathlib import PurePath

from patchq.cli import arguments, commits, output, places
from patchq.cli.arguments import Argument
from patchq.formats.envelope import front_matter
from patchq.formats.envelope.opening import open_response
from patchq.model.errors import UsageError
from patchq.model.names import REQUEST, response_name
from patchq.model.report import Report
from patchq.model.values import Envelope, Problem
from patchq.queue.directory import DirectoryQueue
from patchq.queue.lock import lock_owner
from patchq.report.secrecy import batch_id, file_name

ARGUMENTS = (
    (Argument("file", nargs="?", metavar="FILE", help="the response, or -"), *commits.SOURCES),
    commits.SERIES,
    Argument("--target", metavar="B", help="the branch that it is for"),
    Argument("--base", metavar="C", help="the commit that the agent saw"),
    Argument("--message", metavar="M", help="the commit's message"),
    Argument("--wait", action="store_true", help="wait for the verdict"),
)


def run(args: Namespace) -> int:
    site = places.find(args)
    queue = places.open_queue(args, site, site.load_config())
    if commits.is_named(args):
        return _hand_in(args, queue)
    if args.file is None:
        raise UsageError(
            "expected a response",
            "name a file, - for standard input, or --branch, --range or --worktree",
        )
    data, name = arguments.read_response(args.file)
    keys = {key: getattr(args, key) for key in ("target", "base", "message")}
    id, suffix = None, REQUEST
    if not name.endswith(REQUEST):
        data = with_header(data, {key: value for key, value in keys.items() if value is not None})
        opened = open_response(data)
        id = opened.header.id if isinstance(opened, Envelope) else None
        suffix = PurePath(file_name(name)).suffix or ".md"
    elif args.wait or any(keys.values()):  # nor could an answer be waited for by its bytes
        raise UsageError(
            "a request takes none of --target, --base, --message and --wait",
            "say `target` and `base` in the request; to wait for the answer, use `patchq ask`",
        )
    free = queue.next_id(batch_id(id or PurePath(response_name(name)).stem))
    dropped = queue.submit(data, free + suffix)
    if not args.wait:
        id = free if id is not None else batch_id(PurePath(response_name(dropped)).stem)
        return output.emit(args, {"id": id, "file": dropped}, id)
    if lock_owner(queue.root) is None:
        print("patchq: no daemon runs; waiting for `patchq watch` or `patchq run`", file=sys.stderr)
    report = _verdict(queue, sha256(data).hexdigest(), dropped)
    output.say(args, report)
    return 1 if report["state"] == "rejected" else 0


def _hand_in(args: Namespace, queue: DirectoryQueue) -> int:
    """Drop what somebody committed, or has in a work tree."""
    handed = list(commits.responses(args, queue.next_id))
    dropped = [queue.submit(one.data, f"{queue.next_id(one.name)}.md") for one in handed]
    if not args.wait:
        ids = [batch_id(PurePath(response_name(name)).stem) for name in dropped]
        told = [{"id": id, "file": name} for id, name in zip(ids, dropped, strict=True)]
        return output.emit(args, told if args.series else told[0], *ids)
    reports = [
        _verdict(queue, sha256(one.data).hexdigest(), name)
        for one, name in zip(handed, dropped, strict=True)
    ]
    for report in reports:
        output.say(args, report)
    return 1 if any(report["state"] == "rejected" for report in reports) else 0


def with_header(data: bytes, said: dict[str, str]) -> bytes:
    """The response with more keys in its front matter, which is made if there is none."""
    if not said:
        return data
    opened = open_response(data)
    for key in said if isinstance(opened, Envelope) else ():
        if getattr(opened.header, key) is not None:  # type: ignore[union-attr]
            raise UsageError(
                f"the response's front matter says `{key}` already", f"leave --{key} out"
            )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data  # which is refused
    lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in said.items())
    found = front_matter.split(text)
    if isinstance(found, Problem):
        return data
    if found is None:
        return f"---\n{lines}---\n{text}".encode()
    return (text[: found.block_at] + lines + text[found.block_at :]).encode()


def _verdict(queue: DirectoryQueue, digest: str, name: str) -> Report:
    while True:
        for id in reversed(queue.by_source(digest)):
            report = queue.load(id)
            if report and report["source"]["name"] == name and report["state"] != "held":
                return report
        time.sleep(0.02)
