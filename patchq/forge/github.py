"""GitHub and GitHub Enterprise Server, by REST; threads by GraphQL, as REST cannot resolve one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from patchq.forge.wire import (
    CONTEXT,
    Absent,
    CheckState,
    CommitCheck,
    Conversation,
    Denied,
    PullRequest,
    Rejected,
    Remark,
    Rights,
    Stance,
    StatusState,
    Thread,
    Wire,
    as_decision,
)

HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_STANCES: dict[str, Stance] = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "changes",
    "DISMISSED": "dismissed",
}
_State = tuple[str, bool]  # the id of a thread, and True if it is resolved
_METHODS = {"squash": "squash_merge", "rebase": "rebase_merge", "merge": "merge_commit"}
_STATES: dict[str, StatusState] = {"success": "success", "pending": "pending"}
_ENDS: dict[str, CheckState] = {
    "success": "success",
    "neutral": "success",
    "skipped": "skipped",
}
_THREADS = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    mergeable
    reviewThreads(first: 100) {
      nodes { id isResolved comments(first: 1) { nodes { fullDatabaseId } } }
    }
  } }
}"""
_RESOLVE = """
mutation($thread: ID!) {
  resolveReviewThread(input: {threadId: $thread}) { thread { id isResolved } }
}"""


class GitHub:
    """The project `owner/name`."""

    def __init__(self, wire: Wire, project: str) -> None:
        self.wire, self._project = wire, project
        self._owner, _, self._name = project.partition("/")
        self._at = f"repos/{quote(project)}"

    # ------------------------------------------------------------ requests

    def me(self) -> str:
        """Return the login of the token's account, empty for an app."""
        try:
            return str(self.wire.get("user")["login"])
        except (Denied, Absent):  # an app's token belongs to no user
            self.wire.get(self._at)
            return ""

    def rights(self, target: str) -> Rights:
        """Return the token's rights, and the checks that the target requires."""
        project, login = self.wire.get(self._at), self.me()
        branch = quote(target, safe="")
        required: list[str] | None = None
        try:
            shown = self.wire.get(f"{self._at}/branches/{branch}").get("protection") or {}
            rules = self.wire.get(f"{self._at}/rules/branches/{branch}")
            parts = [rule.get("parameters") or {} for rule in rules]
            others = [one for part in parts for one in part.get("required_status_checks", ())]
            known = (shown.get("required_status_checks") or {}).get("contexts", ())
            required = [*known, *(one["context"] for one in others)]
        except (Denied, Absent):  # the token may not see it
            pass
        rights = project.get("permissions") or {}
        return Rights(login, bool(rights.get("push")), required)

    def changed(self, since: str | None) -> Sequence[PullRequest]:
        """Return requests changed since then, newest first; for None all open ones."""
        state = "open" if since is None else "all"
        found: list[PullRequest] = []
        order = {"sort": "updated", "direction": "desc"}
        for page in self.wire.pages(f"{self._at}/pulls", state=state, **order):
            found += filter(None, map(self._request, page))
            if since is not None and any(one["updated_at"] < since for one in page):
                break
        return [one for one in found if since is None or one.updated >= since]

    def of_branch(self, branch: str) -> Sequence[PullRequest]:
        head = f"{self._owner}:{branch}"
        pulls = map(self._request, self.wire.every(f"{self._at}/pulls", state="all", head=head))
        return [one for one in pulls if one and one.branch == branch]

    def _request(self, pull: Any) -> PullRequest | None:
        """Return a request of a branch of the project itself; None for one of a fork."""
        head = pull["head"]
        if not head["repo"] or head["repo"]["full_name"].lower() != self._project.lower():
            return None
        return PullRequest(
            pull["number"],
            pull["html_url"],
            head["ref"],
            pull["base"]["ref"],
            head["sha"],
            pull["state"] == "open",
            bool(pull["merged_at"]),
            pull["title"],
            (pull["body"] or "").replace("\r\n", "\n"),
            _login(pull),
            pull["updated_at"],
        )

    def open(self, branch: str, base: str, title: str, body: str) -> PullRequest | None:
        """Open a request; return None if the branch has one."""
        what = {"title": title, "head": branch, "base": base, "body": body}
        try:
            return self._request(self.wire.write("POST", f"{self._at}/pulls", what))
        except Rejected as refusal:
            if "already exists" in refusal.message:
                return None
            raise

    def edit(self, number: int, **what: str) -> None:
        """Set `title`, `body`, `base` or `state`."""
        self.wire.write("PATCH", f"{self._at}/pulls/{number}", what)

    def closed_by(self, number: int) -> str:
        closer = self.wire.get(f"{self._at}/issues/{number}").get("closed_by")
        return str(closer["login"]) if closer else ""

    # ------------------------------------------------------------ what people say

    def conversation(self, number: int) -> Conversation:
        pull = f"{self._at}/pulls/{number}"
        reviews = self.wire.every(f"{pull}/reviews")
        comments = self.wire.every(f"{pull}/comments")
        notes = self.wire.every(f"{self._at}/issues/{number}/comments")
        conflicts, known = self._states(number)
        remarks = [*map(_review, reviews), *(as_decision(_comment(note)) for note in notes)]
        remarks.sort(key=lambda one: one.at)
        return Conversation(tuple(_threads(comments, known)), tuple(remarks), conflicts)

    def _states(self, number: int) -> tuple[bool, dict[str, _State]]:
        """Return True if the request has conflicts, and the threads by their first comments."""
        named = {"owner": self._owner, "name": self._name, "number": number}
        pull = self.wire.query(_THREADS, **named)["repository"]["pullRequest"]
        states = {
            str(first["fullDatabaseId"]): (thread["id"], thread["isResolved"])
            for thread in pull["reviewThreads"]["nodes"]
            for first in thread["comments"]["nodes"]
        }
        return pull["mergeable"] == "CONFLICTING", states

    def may(self, login: str) -> bool:
        found = self.wire.find(f"{self._at}/collaborators/{quote(login, safe='')}/permission")
        return found.get("permission") in ("admin", "write")

    def is_member(self, team: str, login: str) -> bool:
        organisation, _, name = team.partition("/")
        path = f"orgs/{quote(organisation)}/teams/{quote(name)}/memberships"
        found = self.wire.find(f"{path}/{quote(login, safe='')}")
        return bool(found.get("state") == "active")

    def reply(self, number: int, thread: Thread, text: str) -> None:
        path = f"{self._at}/pulls/{number}/comments/{thread.reply_to}/replies"
        self.wire.write("POST", path, {"body": text})

    def resolve(self, thread: Thread) -> None:
        self.wire.mutate(_RESOLVE, thread=thread.id)

    def note(self, number: int, text: str) -> None:
        self.wire.write("POST", f"{self._at}/issues/{number}/comments", {"body": text})

    def merge(self, number: int, head: str, message: str) -> str:
        """Merge a request with this head; return the resulting commit."""
        project = self.wire.get(self._at)
        allowed = (how for how, key in _METHODS.items() if project.get(f"allow_{key}", True))
        title, _, body = message.partition("\n")
        what = {"sha": head, "merge_method": next(allowed, "merge")}
        what |= {"commit_title": title, "commit_message": body.strip()}
        return str(self.wire.write("PUT", f"{self._at}/pulls/{number}/merge", what)["sha"])

    # ------------------------------------------------------------ commits

    def statuses(self, sha: str) -> list[CommitCheck]:
        """Return the statuses of a commit, patchq's own among them."""
        pages = self.wire.pages(f"{self._at}/commits/{sha}/status")
        return [
            CommitCheck(
                one["context"], _STATES.get(one["state"], "failure"), one["target_url"] or ""
            )
            for page in pages
            for one in page["statuses"]
        ]

    def set_status(self, sha: str, state: StatusState, text: str) -> None:
        what = {"state": state, "description": text, "context": CONTEXT}
        self.wire.write("POST", f"{self._at}/statuses/{sha}", what)

    def checks(self, sha: str) -> list[CommitCheck]:
        """Return all checks of a commit so far, statuses among them."""
        pages = self.wire.pages(f"{self._at}/commits/{sha}/check-runs")
        runs = [_check(one) for page in pages for one in page["check_runs"]]
        return [*runs, *self.statuses(sha)]


def _check(run: Any) -> CommitCheck:
    ended = run["status"] == "completed"
    state = _ENDS.get(run["conclusion"], "failure") if ended else "pending"
    return CommitCheck(run["name"], state, run["html_url"] or "")


def _login(thing: Any) -> str:
    return str(thing["user"]["login"]) if thing.get("user") else ""


def _comment(comment: Any) -> Remark:
    is_bot = (comment.get("user") or {}).get("type") == "Bot"
    review, at = str(comment.get("pull_request_review_id") or ""), comment.get("created_at", "")
    text = comment["body"] or ""
    return Remark(comment["html_url"], _login(comment), text, is_bot, review, at=at)


def _review(review: Any) -> Remark:
    return replace(
        _comment(review),
        review=str(review["id"]),
        what=_STANCES.get(review["state"], "comment"),
        commit=review["commit_id"] or "",
        at=review.get("submitted_at") or "",
    )


def _threads(comments: Sequence[Any], known: dict[str, _State]) -> Iterator[Thread]:
    groups: dict[int, list[Any]] = {}
    for comment in comments:
        groups.setdefault(comment.get("in_reply_to_id") or comment["id"], []).append(comment)
    for group in groups.values():
        first = group[0]
        id, resolved = known.get(str(first["id"]), ("", False))
        line = first.get("original_line") or first.get("line")
        yield Thread(
            id,
            str(first["id"]),
            resolved,
            first["path"],
            line,
            first.get("original_start_line") or line,
            "base" if first.get("side") == "LEFT" else "new",
            first["original_commit_id"],
            tuple(map(_comment, group)),
        )
