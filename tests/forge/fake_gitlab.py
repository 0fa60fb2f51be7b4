"""A fake of GitLab: the same people and repository, told as GitLab tells them.

`gitlab.yaml` has what GitLab's description says, and judges; approvals have no commit, as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.forge import described
from tests.forge.fake import Answer, Fake, Pull
from tests.helpers.gitrepo import git

FULL_PATH = "acme/tools/demo"
_SIGNS = {
    "APPROVED": "approved this merge request",
    "CHANGES_REQUESTED": "requested changes",
    "DISMISSED": "unapproved this merge request",
}


class GitLabFake(Fake):
    """A project with merge requests; what people do is said as for `Fake`."""

    api = staticmethod(described.gitlab)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.people: list[str] = []
        self.versions: dict[int, list[tuple[str, str]]] = {}
        self.jobs: dict[str, list[dict[str, Any]]] = {}
        self.level, self.waits_for_pipelines, self.squash_option = 30, True, "default_off"
        self.page_size = 2
        self.merge_error: str | None = None
        """The reason why a merge that GitLab takes is not made."""

    def _talked(self, pull: Pull) -> None:
        """Keep the time of the request, as GitLab does within a minute after a change."""

    # ------------------------------------------------------------ how GitLab tells it

    def _person(self, login: str) -> dict[str, Any]:
        if login not in self.people:
            self.people.append(login)
        return {"id": self.people.index(login) + 1, "username": login, "state": "active"}

    def _profile(self, login: str) -> dict[str, Any]:
        person = self._person(login)
        return {"id": person["id"], "username": login, "bot": login.endswith("[bot]")}

    def _versions(self, number: int) -> list[tuple[str, str]]:
        """Return heads with their times, the oldest first."""
        values, known = self.pulls[number].values, self.versions.setdefault(number, [])
        if not known or known[-1][1] != values["head"]["sha"]:
            known.append((self._now() if known else values["created_at"], values["head"]["sha"]))
        return known

    def look(self) -> None:
        super().look()
        for number in self.pulls:
            self._versions(number)

    def _request(self, number: int) -> dict[str, Any]:
        pull = self.pulls[number]
        values = pull.values
        states = {"open": "opened", "closed": "merged" if values["merged_at"] else "closed"}
        return {
            "iid": number,
            "project_id": 7,
            "source_project_id": 7,
            "web_url": values["html_url"],
            "source_branch": values["head"]["ref"],
            "target_branch": values["base"]["ref"],
            "sha": values["head"]["sha"],
            "state": states[values["state"]],
            "title": values["title"],
            "description": values["body"],
            "author": self._person(values["user"]["login"]),
            "updated_at": values["updated_at"],
            "has_conflicts": pull.conflicts,
            "closed_by": self._person(pull.closed_by) if pull.closed_by else None,
        }

    def _note(self, id: int, by: str, body: str, at: str, **more: Any) -> dict[str, Any]:
        known = {"id": id, "author": self._person(by), "body": body, "created_at": at}
        return {**known, "system": False, "resolvable": False, **more}

    def _reviewed_at(self, number: int, review: dict[str, Any]) -> str:
        """Return when a review was given: that on an older head before the next one came."""
        times = {sha: at for at, sha in self._versions(number)}
        if review["commit_id"] == self.pulls[number].values["head"]["sha"]:
            return str(review["submitted_at"])
        return times[review["commit_id"]]

    def _discussions(self, number: int) -> Iterator[dict[str, Any]]:
        """Yield threads, comments, and what GitLab notes of decisions, after their comments."""
        pull = self.pulls[number]
        times = {one["id"]: one["submitted_at"] for one in pull.reviews}
        for first in pull.comments:
            if first.get("in_reply_to_id"):
                continue
            notes = []
            for one in pull.comments:
                if first["id"] in (one["id"], one.get("in_reply_to_id")):
                    at = times.get(one["pull_request_review_id"]) or one["created_at"]
                    resolved = first["id"] in pull.resolved
                    more = {"resolvable": True, "resolved": resolved, "position": _position(one)}
                    note = self._note(one["id"], one["user"]["login"], one["body"], at, **more)
                    notes.append(note)
            yield {"id": f"{first['id']:040x}", "individual_note": False, "notes": notes}
        for one in pull.notes:
            note = self._note(one["id"], one["user"]["login"], one["body"], one["created_at"])
            yield {"id": f"{one['id']:040x}", "individual_note": True, "notes": [note]}
        for one in pull.reviews:
            by, at = one["user"]["login"], self._reviewed_at(number, one)
            notes = [self._note(one["id"] + 10**9, by, one["body"], at)] if one["body"] else []
            if sign := _SIGNS.get(one["state"]):
                notes.append(self._note(one["id"] + 2 * 10**9, by, sign, at, system=True))
            for note in notes:
                yield {"id": f"{note['id']:040x}", "individual_note": True, "notes": [note]}

    def _standing(self, number: int, state: str) -> list[dict[str, Any]]:
        """Return the last reviews of people that are of this state."""
        firm = [one for one in self.pulls[number].reviews if one["state"] in _SIGNS]
        latest = {one["user"]["login"]: one for one in firm}
        return [one for one in latest.values() if one["state"] == state]

    def on_me(self, args: Any) -> Answer:
        return 200, self._profile(self.me)

    def on_user(self, id: str, args: Any) -> Answer:
        return 200, self._profile(self.people[int(id) - 1])

    def on_users(self, args: Any) -> Answer:
        return 200, [self._person(args["username"])]

    def on_token(self, args: Any) -> Answer:
        return 200, {"scopes": ["api"], "expires_at": "2027-01-31"}

    def on_project(self, args: Any) -> Answer:
        waits, squash = self.waits_for_pipelines, self.squash_option
        return 200, {"only_allow_merge_if_pipeline_succeeds": waits, "squash_option": squash}

    def on_member(self, id: str, args: Any) -> Answer:
        login = self.people[int(id) - 1]
        if login not in self.writers | {self.me}:
            return 404, "404 Not found"
        return 200, {"access_level": self.level, "state": "active"}

    def on_group(self, group: str, id: str, args: Any) -> Answer:
        if (group, self.people[int(id) - 1]) != ("acme/core", "grace"):
            return 404, "404 Not found"
        return 200, {"access_level": 20, "state": "active"}

    def on_list(self, args: Any) -> Answer:
        state = {"opened": "open", "all": "all"}[args["state"]]
        _, found = self.pulls_list({"state": state, "sort": "updated"})
        rows = [self._request(one["number"]) for one in found]
        rows = [one for one in rows if one["updated_at"] >= args.get("updated_after", "")]
        wanted = args.get("source_branch")
        return 200, [one for one in rows if wanted in (None, one["source_branch"])]

    def on_open(self, body: Any) -> Answer:
        what = {"head": body["source_branch"], "base": body["target_branch"]}
        what |= {"title": body["title"], "body": body["description"]}
        code, found = self.pulls_create(what)
        if code != 201:
            exists = "already exists" in found
            return (409, ["Another open merge request already exists"]) if exists else (400, found)
        self._versions(found["number"])
        return 201, self._request(found["number"])

    def on_get(self, number: str, args: Any) -> Answer:
        return 200, self._request(int(number))

    def on_edit(self, number: str, body: Any) -> Answer:
        names = {"title": "title", "description": "body", "target_branch": "base"}
        what = {names[key]: value for key, value in body.items() if key in names}
        if "state_event" in body:
            what["state"] = {"close": "closed", "reopen": "open"}[body["state_event"]]
        self.pulls_update(number, what)
        return 200, self._request(int(number))

    def on_merge(self, number: str, body: Any) -> Answer:
        if self.merge_error:
            return 200, {**self._request(int(number)), "merge_error": self.merge_error}
        title, _, text = body.get("squash_commit_message", "Merge").partition("\n\n")
        how = "squash" if body["squash"] else "merge"
        what = {"commit_title": title, "commit_message": text, "merge_method": how}
        code, found = self.pulls_merge(number, {**body, **what})
        if code != 200:
            return code, found
        made = "squash_commit_sha" if body["squash"] else "merge_commit_sha"
        return 200, {**self._request(int(number)), made: found["sha"]}

    def on_discussions(self, number: str, args: Any) -> Answer:
        return 200, list(self._discussions(int(number)))

    def on_versions(self, number: str, args: Any) -> Answer:
        known = enumerate(self._versions(int(number)), 1)
        rows = [{"id": id, "head_commit_sha": sha, "created_at": at} for id, (at, sha) in known]
        return 200, rows[::-1]

    def on_approvals(self, number: str, args: Any) -> Answer:
        rows = []
        for one in self._standing(int(number), "APPROVED"):
            at = self._reviewed_at(int(number), one)
            rows.append({"user": self._person(one["user"]["login"]), "approved_at": at})
        return 200, {"approved_by": rows}

    def on_reviewers(self, number: str, args: Any) -> Answer:
        asked = self._standing(int(number), "CHANGES_REQUESTED")
        people = [self._person(one["user"]["login"]) for one in asked]
        rows = [{"user": one, "state": "requested_changes"} for one in people]
        return 200, [*rows, {"user": self._person(self.me), "state": "unreviewed"}]

    def on_reply(self, number: str, talk: str, body: Any) -> Answer:
        code, _ = self.pulls_create_reply_for_review_comment(number, str(int(talk, 16)), body)
        return code, {}

    def on_resolve(self, number: str, talk: str, body: Any) -> Answer:
        assert body == {"resolved": True}
        self.pulls[int(number)].resolved.add(int(talk, 16))
        return 200, {}

    def on_note(self, number: str, body: Any) -> Answer:
        code, _ = self.issues_create_comment(number, body)
        return code, {}

    def on_branches(self, args: Any) -> Answer:
        start = args["search"].removeprefix("^")
        row = "%(objectname) %(refname:lstrip=2)"
        found = git("for-each-ref", f"--format={row}", f"refs/heads/{start}", cwd=self.bare)
        rows = (line.split(" ") for line in found.splitlines())
        return 200, [{"name": name, "commit": {"id": sha}} for sha, name in rows]

    def on_status(self, sha: str, args: Any) -> Answer:
        own = self.statuses.get(sha)
        status = {"id": 1, "name": "patchq/reviewed"}
        found = [{**status, **own["shown"]}] if own else []
        found += self.jobs.get(sha, [])
        return 200, [one for one in found if args.get("name", one["name"]) == one["name"]]

    def on_set_status(self, sha: str, body: Any) -> Answer:
        """A state that a status has is refused, with what else is sent."""
        own = self.statuses.get(sha)
        if own and own["shown"]["status"] == body["state"]:
            return 400, f"Cannot transition status via :x from :{body['state']}"
        state = {"failed": "failure"}.get(body["state"], body["state"])
        shown = {"status": body["state"], "description": body["description"]}
        self.statuses[sha] = {"state": state, "ref": body.get("ref", "main"), "shown": shown}
        return 200, shown


def _position(comment: dict[str, Any]) -> dict[str, Any]:
    side, other = ("old", "new") if comment["side"] == "LEFT" else ("new", "old")
    return {
        "position_type": "text",
        "head_sha": comment["original_commit_id"],
        "old_path": comment["path"],
        "new_path": comment["path"],
        f"{side}_line": comment["line"],
        f"{other}_line": None,
    }
