"""Claims of a queue by themselves: taken, reported on, and ended."""

from __future__ import annotations

from typing import Any

from patchq.core.model.values import State
from patchq.gate.queue import Claim, spool
from patchq.gate.queue.ledger import QueueEngine
from patchq.gate.report.schema import Report, SourceEntry


def report(claim: Claim, id: str = "x", state: State = "applied", **more: Any) -> Report:
    name, sha256, size = claim.source.name, claim.source.sha256, claim.source.size
    source = SourceEntry(name=name, sha256=sha256, bytes=size)
    written = spool.encode(Report(id=id, state=state, source=source, **more))
    read = spool.report(written)
    assert read
    return read


def claimed(queue: QueueEngine, data: bytes = b"text", name: str = "fix.md") -> Claim:
    queue.submit(data, name)
    [claim] = queue.claim(1)
    return claim


def finish(queue: QueueEngine, claim: Claim, wanted: str = "fix", state: State = "applied") -> str:
    id = queue.reserve(claim, wanted)
    queue.publish(claim, report(claim, id, state))
    return id


def hold(queue: QueueEngine, claim: Claim, wanted: str = "fix") -> None:
    queue.hold(claim, report(claim, queue.reserve(claim, wanted), "held"))
