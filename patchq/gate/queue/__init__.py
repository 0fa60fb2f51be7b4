"""The queue: how responses come in and verdicts go out.

`ledger.QueueEngine` has what SQLite and PostgreSQL do by the same statements.  Its engines are
`engine.StoreQueue` (one machine, and files for agents and people) and
`postgres.engine.PostgresQueue` (many machines); one contract test covers both.

A claim's life: waiting -> `claim` -> `reserve` an id -> (`intend` before any ref moves) ->
`publish`.  A claim whose owner dies comes back from `recover`, with the intended report if it had
one, so that the owner can find out whether the ref moved and publish exactly that verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from patchq.core.model.names import response_name
from patchq.core.model.values import Generation, Problem, Source, State
from patchq.gate.report.schema import Report


class Past(Struct, frozen=True):
    """A batch whose files are gone.

    `at` is in seconds since the epoch, `other` is the batch that replaces it, `code` the first
    error that refused it.
    """

    state: State
    at: int
    other: str | None = None
    code: str | None = None


class Claim(Struct, frozen=True):
    """One response that this process has taken out of the inbox.

    `data` are the bytes as they were snapshotted: nothing that a writer does later changes them.
    `problem` says why there is nothing to read (a symlink, a fifo, over the size limit, …); `data`
    is then empty.

    Set on recovered claims only: `intended`, with `parcel` the bytes that make its commit in
    another clone (`git.branches.bundles`), and `deaths`, the number of processes that ended while
    they decided on it.

    `held`: it waits for something, claimed earlier, since `held_since` (seconds since the epoch).
    `lane`: the branch that it is for, of a claim from a cluster's database.  `request`: the bytes
    ask for a response, and a model has still to be asked; `generation` is the model's answer, and
    the bytes are then the response in it, if there is one.  `choice`: a person's `Choice`, where it
    differs from what the response says.
    """

    token: str
    source: Source
    data: bytes
    problem: Problem | None = None
    id: str | None = None
    intended: Report | None = None
    held: bool = False
    parcel: bytes | None = None
    held_since: float | None = None
    lane: str = ""
    request: bool = False
    generation: Generation = Generation()
    deaths: int = 0
    choice: Mapping[str, Any] | None = None

    @property
    def stem(self) -> str:
        """Return the name of its file without a suffix, its default id."""
        return PurePath(response_name(self.source.name)).stem


Parcel = Callable[[], bytes]  # returns bytes that make a commit in another clone
