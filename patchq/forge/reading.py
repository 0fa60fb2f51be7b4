"""A process's memory of a forge: it saves requests, and may be lost at any time."""

from __future__ import annotations

from functools import cached_property

from patchq.forge.contract import CommitStatus, Conversation, Project, PullRequest
from patchq.gate.git import records


class ForgeReading:
    """Requests, conversations and statuses of one project."""

    def __init__(self, forge: Project) -> None:
        self._forge = forge
        self.requests: dict[int, PullRequest] = {}
        self._since: str | None = None
        self._asked: set[str] = set()
        self._talks: dict[int, tuple[str, Conversation]] = {}
        self.statuses: dict[str, CommitStatus | None] = {}

    @cached_property
    def me(self) -> str:
        """The account of the token."""
        return self._forge.me()

    def refresh(self) -> bool:
        """Read which requests changed; return False if none did."""
        changed = self._forge.changed(self._since)
        new = {one.number: one for one in changed if records.is_branch(one.branch)}
        moved = any(self.requests.get(number) != one for number, one in new.items())
        self.requests |= new
        self._since = max((one.updated for one in changed), default=self._since)
        return moved

    def request_of(self, branch: str) -> PullRequest | None:
        """Return the request of a branch: the open one, else the newest."""
        found = [one for one in self.requests.values() if one.branch == branch]
        if not found and branch not in self._asked:
            found = list(self._forge.of_branch(branch))
            self._asked.add(branch)
            self.requests |= {one.number: one for one in found}
        return max(found, key=lambda one: (one.is_open, one.number), default=None)

    def add(self, request: PullRequest) -> None:
        """Take note of a request that was opened from here."""
        self.requests[request.number] = request
        self._since = self._since or request.updated

    def talk(self, request: PullRequest | None) -> Conversation:
        """Return the conversation, read again where the request changed."""
        if request is None or not request.is_open:
            return Conversation()
        updated, talk = self._talks.get(request.number, ("", Conversation()))
        if updated != request.updated:
            talk = self._forge.conversation(request.number)
            self._talks[request.number] = request.updated, talk
        return talk

    def status(self, sha: str) -> CommitStatus | None:
        if sha not in self.statuses:
            self.statuses[sha] = self._forge.status(sha)
        return self.statuses[sha]

    def wrote(self, number: int | None = None, sha: str | None = None) -> None:
        """Read anew what something is written to."""
        if number is not None:
            self._talks.pop(number, None)
        if sha is not None:
            self.statuses.pop(sha, None)
