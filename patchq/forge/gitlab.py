"""GitLab, on gitlab.com or self-managed, through version 4 of its REST API."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

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
    seconds,
)
from patchq.gate.git import records

_BRANCHES = records.branch("")
_DEVELOPER = 30  # the least access level that may push
# For a minute after a change, comments and approvals leave the time of a request as it is.
_YOUNG_SECONDS = 240.0  # and clocks differ
_FIELDS = {"title": "title", "body": "description", "base": "target_branch"}
_EVENTS = {"closed": "close", "open": "reopen"}
_STATES: dict[str, StatusState] = {
    "success": "success",
    "failed": "failure",
    "canceled": "failure",
}
_SIGNS: dict[str, Stance] = {
    "approved this merge request": "approved",
    "requested changes": "changes",
}


class GitLab:
    """The project with the full path `group/…/name`; see `github.GitHub`."""

    def __init__(self, wire: Wire, project: str) -> None:
        self.wire = wire
        self._at = f"projects/{quote(project, safe='')}"
        self._requests = f"{self._at}/merge_requests"
        self._bots: dict[int, bool] = {}

    # ------------------------------------------------------------ requests

    def me(self) -> str:
        try:
            token = self.wire.get("personal_access_tokens/self")
            self.wire.expires = token.get("expires_at")
        except (Denied, Absent, Rejected):  # a token of OAuth
            pass
        return str(self.wire.get("user")["username"])

    def rights(self, target: str) -> Rights:
        login, project = self.me(), self.wire.get(self._at)
        required = (CONTEXT,) if project.get("only_allow_merge_if_pipeline_succeeds") else ()
        return Rights(login, self.may(login), required)

    def changed(self, since: str | None) -> Sequence[PullRequest]:
        if since is None:
            return list(map(_request, self._listed(state="opened")))
        moment = datetime.fromisoformat(since.partition(" ")[0])
        young = moment - timedelta(seconds=_YOUNG_SECONDS)
        return list(map(_request, self._listed(state="all", updated_after=young.isoformat())))

    def of_branch(self, branch: str) -> Sequence[PullRequest]:
        return list(map(_request, self._listed(state="all", source_branch=branch)))

    def _listed(self, **which: str) -> list[Any]:
        """Return requests of branches of the project itself, not of forks."""
        found = self.wire.every(self._requests, scope="all", order_by="updated_at", **which)
        return [one for one in found if one["source_project_id"] == one["project_id"]]

    def open(self, branch: str, base: str, title: str, body: str) -> PullRequest | None:
        what = {"source_branch": branch, "target_branch": base}
        what |= {"title": title, "description": body}
        try:
            return _request(self.wire.write("POST", self._requests, what))
        except Rejected as refusal:
            if "answers 409" in refusal.message:
                return None
            raise

    def edit(self, number: int, **what: str) -> None:
        fields = {_FIELDS[key]: value for key, value in what.items() if key != "state"}
        if "body" in what:
            # What people wrote is sent by patchq's account: a line of it is no command of patchq.
            fields["description"] = re.sub(r"^\r*/", " /", what["body"], flags=re.MULTILINE)
        if "state" in what:
            fields["state_event"] = _EVENTS[what["state"]]
        self.wire.write("PUT", f"{self._requests}/{number}", fields)

    def closed_by(self, number: int) -> str:
        closer = self.wire.get(f"{self._requests}/{number}").get("closed_by")
        return str(closer["username"]) if closer else ""

    # ------------------------------------------------------------ what people say

    def conversation(self, number: int) -> Conversation:
        at = f"{self._requests}/{number}"
        request, talks = self.wire.get(at), self.wire.every(f"{at}/discussions")
        notes = [note for talk in talks for note in talk["notes"]]
        signs = [note for note in notes if note["system"] and _sign(note)]
        said = [note for note in notes if not note["system"]]
        known = {note["id"]: self._remark(request, note, signs) for note in said}
        beside = [known[note["id"]] for note in said if not note.get("position")]
        remarks = [*map(as_decision, beside), *self._decisions(request, signs)]
        remarks.sort(key=lambda one: seconds(one.at))
        on_lines = [talk for talk in talks if talk["notes"] and talk["notes"][0].get("position")]
        threads = tuple(_thread(number, talk, known) for talk in on_lines)
        return Conversation(threads, tuple(remarks), bool(request.get("has_conflicts")))

    def _decisions(self, request: Any, signs: Sequence[Any]) -> Iterator[Remark]:
        at = f"{self._requests}/{request['iid']}"
        versions = self.wire.every(f"{at}/versions")
        standing: list[tuple[Stance, Any]] = [
            ("approved", one) for one in self.wire.get(f"{at}/approvals")["approved_by"]
        ]
        reviewers = self.wire.get(f"{at}/reviewers")
        standing += [("changes", one) for one in reviewers if one["state"] == "requested_changes"]
        for what, row in standing:
            by = row["user"]["username"]
            own = [one for one in signs if (_login(one), _sign(one)) == (by, what)]
            sign = max(own, key=lambda one: seconds(one["created_at"]), default=None)
            when = row.get("approved_at") or (sign["created_at"] if sign else "")
            # A request for changes of unknown age holds for what is there.
            commit = _head(versions, when) if when or what == "approved" else request["sha"]
            review = str(sign["id"]) if sign else ""
            id = f"{request['web_url']}#{f'note_{review}' if sign else f'{what}-{by}'}"
            yield Remark(id, by, "", self._is_bot(row["user"]), review, what, commit, when)

    def _remark(self, request: Any, note: Any, signs: Sequence[Any]) -> Remark:
        """Return a comment; its review is its author's next request for changes."""
        by, at = _login(note), note["created_at"]
        asked = [one for one in signs if _login(one) == by and _sign(one) == "changes"]
        later = [one["id"] for one in asked if seconds(one["created_at"]) >= seconds(at)]
        review = str(min(later)) if later else ""
        id = f"{request['web_url']}#note_{note['id']}"
        return Remark(id, by, note["body"], self._is_bot(note["author"]), review, at=at)

    def _is_bot(self, user: Any) -> bool:
        """Return True for a bot or an account that does not exist.

        The answer is cached.
        """
        id = user["id"]
        if id not in self._bots:
            found = self.wire.find(f"users/{id}")
            self._bots[id] = not found or bool(found.get("bot"))
        return self._bots[id]

    def may(self, login: str) -> bool:
        return self._level(self._at, login) >= _DEVELOPER

    def is_member(self, team: str, login: str) -> bool:
        return self._level(f"groups/{quote(team, safe='')}", login) > 0

    def _level(self, of: str, login: str) -> int:
        """Return the access level in a project or group, 0 for others than members."""
        found = self.wire.get("users", username=login)
        member = self.wire.find(f"{of}/members/all/{found[0]['id']}") if found else {}
        return int(member["access_level"]) if member.get("state") == "active" else 0

    def reply(self, number: int, thread: Thread, text: str) -> None:
        path = f"{self._requests}/{number}/discussions/{thread.reply_to}/notes"
        self.wire.write("POST", path, {"body": text})

    def resolve(self, thread: Thread) -> None:
        self.wire.write("PUT", f"{self._requests}/{thread.id}", {"resolved": True})

    def note(self, number: int, text: str) -> None:
        self.wire.write("POST", f"{self._requests}/{number}/notes", {"body": text})

    def merge(self, number: int, head: str, message: str) -> str:
        squashes = self.wire.get(self._at).get("squash_option") != "never"
        what = {"sha": head, "squash": squashes}
        what |= {"squash_commit_message": message} if squashes else {}
        made = self.wire.write("PUT", f"{self._requests}/{number}/merge", what)
        if made["state"] != "merged":  # an answer without a fault, as where a merge has to wait
            raise Rejected(made.get("merge_error") or "GitLab has not merged it yet")
        return str(made["merge_commit_sha"] or made["squash_commit_sha"] or made["sha"])

    # ------------------------------------------------------------ commits

    def statuses(self, sha: str) -> list[CommitCheck]:
        found = self.wire.every(f"{self._at}/repository/commits/{sha}/statuses")
        return list(map(_check, sorted(found, key=lambda one: int(one["id"]))))

    checks = statuses

    def set_status(self, sha: str, state: StatusState, text: str) -> None:
        own = {"failure": "failed"}.get(state, state)
        # The pipeline that a request shows is that of its branch, which others may contain.
        branches = self.wire.every(f"{self._at}/repository/branches", search=f"^{_BRANCHES}")
        refs = [one["name"] for one in branches if one["commit"]["id"] == sha]
        what = {"state": own, "name": CONTEXT, "description": text}
        what |= {"ref": refs[0]} if refs else {}
        self.wire.write("POST", f"{self._at}/statuses/{sha}", what)


def _request(one: Any) -> PullRequest:
    """Return a request; a recent one is never equal to an earlier reading.

    It may have changed again without a new time.
    """
    updated, now = one["updated_at"], time.time()
    is_young = now - seconds(updated) < _YOUNG_SECONDS
    return PullRequest(
        one["iid"],
        one["web_url"],
        one["source_branch"],
        one["target_branch"],
        one["sha"] or "",
        one["state"] in ("opened", "locked"),
        one["state"] == "merged",
        one["title"],
        (one["description"] or "").replace("\r\n", "\n"),
        _login(one),
        f"{updated} {now}" if is_young else updated,
    )


def _check(one: Any) -> CommitCheck:
    """Return a job or an external status; one allowed to fail never fails."""
    state: CheckState = _STATES.get(one["status"], "pending")
    if one["status"] == "skipped":
        state = "skipped"
    elif one.get("allow_failure") and one["status"] in ("failed", "canceled", "manual"):
        state = "success"
    return CommitCheck(one["name"], state, one.get("target_url") or "")


def _login(thing: Any) -> str:
    return str(thing["author"]["username"])


def _sign(note: Any) -> Stance | None:
    """Return the decision in a system note of GitLab's own words."""
    return next((what for words, what in _SIGNS.items() if note["body"].startswith(words)), None)


def _head(versions: Sequence[Any], when: str) -> str:
    """Return the head of a request at a time.

    GitLab keeps no commit with an approval.
    """
    before = [one for one in versions if seconds(one["created_at"]) <= seconds(when)]
    newest = max(before, key=lambda one: int(one["id"]), default=None)
    return str(newest["head_commit_sha"]) if newest else ""


def _thread(number: int, talk: Any, remarks: dict[int, Remark]) -> Thread:
    notes = talk["notes"]
    at = notes[0]["position"]
    is_base = bool(at.get("old_line")) and not at.get("new_line")
    side = "old" if is_base else "new"
    line = at.get(f"{side}_line")
    start = (at.get("line_range") or {}).get("start") or {}
    return Thread(
        f"{number}/discussions/{talk['id']}",
        talk["id"],
        all(one.get("resolved") for one in notes if one.get("resolvable")),
        at[f"{side}_path"],
        line,
        start.get(f"{side}_line") or line,
        "base" if is_base else "new",
        at["head_sha"],
        tuple(remarks[one["id"]] for one in notes if one["id"] in remarks),
    )
