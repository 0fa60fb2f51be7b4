"""A fake of GitLab: the same people and repository, told as GitLab tells them.

It answers by what GitLab's documentation promises; approvals have no commit, as there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx2

from tests.forge.fake import TOKEN, Answer, Fake
from tests.helpers.gitrepo import git

FULL_PATH = "acme/tools/demo"
_SIGNS = {
    "APPROVED": "approved this merge request",
    "CHANGES_REQUESTED": "requested changes",
    "DISMISSED": "unapproved this merge request",
}


class GitLabFake(Fake):
    """A project with merge requests; what people do is said as for `Fake`."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.people: list[str] = []
        self.versions: dict[int, list[tuple[str, str]]] = {}
        self.jobs: dict[str, list[dict[str, Any]]] = {}
        self.level, self.waits_for_pipelines, self.page_size = 30, True, 2

    def review(self, number: int, *args: Any, **more: Any) -> int:
        return int(self._untouched(number, super().review, *args, **more))

    def comment(self, number: int, *args: Any, **more: Any) -> int:
        return int(self._untouched(number, super().comment, *args, **more))

    def say(self, number: int, *args: Any, **more: Any) -> None:
        self._untouched(number, super().say, *args, **more)

    def _untouched(self, number: int, do: Any, *args: Any, **more: Any) -> Any:
        """Do it as within a minute after a change, when GitLab keeps the time of the request."""
        values = self.pulls[number].values
        before, done = values["updated_at"], do(number, *args, **more)
        values["updated_at"] = before
        return done

    # ------------------------------------------------------------ how GitLab tells it

    def _person(self, login: str) -> dict[str, Any]:
        if login not in self.people:
            self.people.append(login)
        return {"id": self.people.index(login) + 1, "username": login}

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

    # ------------------------------------------------------------ the API

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return httpx2.Response(401, json={"message": "401 Unauthorized"})
        self.look()
        path = request.url.raw_path.decode().partition("?")[0].removeprefix(self.prefix)
        body = json.loads(request.content) if request.content else {}
        args = dict(request.url.params)
        for method, pattern, name in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match and method == request.method:
                what = body if method != "GET" else args
                code, found = getattr(self, f"on_{name}")(*match.groups(), what)
                if code >= 400:
                    return httpx2.Response(code, json={"message": found})
                return self._paged(request, code, found)
        return httpx2.Response(404, json={"error": "404 Not Found"})

    def _paged(self, request: httpx2.Request, code: int, found: Any) -> httpx2.Response:
        headers = {}
        if isinstance(found, list) and "per_page" in request.url.params:
            page = int(request.url.params.get("page", 1))
            if len(found) > page * self.page_size:
                following = request.url.copy_set_param("page", page + 1)
                headers["link"] = f'<{request.url}>; rel="first", <{following}>; rel="next"'
            found = found[(page - 1) * self.page_size : page * self.page_size]
        return httpx2.Response(code, headers=headers, json=found)

    def on_me(self, args: Any) -> Answer:
        return 200, self._person(self.me)

    def on_user(self, id: str, args: Any) -> Answer:
        person = self._person(self.people[int(id) - 1])
        return 200, {**person, "bot": person["username"].endswith("[bot]")}

    def on_users(self, args: Any) -> Answer:
        return 200, [self._person(args["username"])]

    def on_token(self, args: Any) -> Answer:
        return 200, {"scopes": ["api"], "expires_at": "2027-01-31"}

    def on_project(self, args: Any) -> Answer:
        return 200, {"only_allow_merge_if_pipeline_succeeds": self.waits_for_pipelines}

    def on_member(self, id: str, args: Any) -> Answer:
        login = self.people[int(id) - 1]
        if login not in self.writers | {self.me}:
            return 404, "404 Not found"
        return 200, {"access_level": self.level, "state": "active"}

    def on_group(self, group: str, id: str, args: Any) -> Answer:
        if (group, self.people[int(id) - 1]) != ("acme%2Fcore", "grace"):
            return 404, "404 Not found"
        return 200, {"access_level": 20, "state": "active"}

    def on_list(self, args: Any) -> Answer:
        state = {"opened": "open", "all": "all"}[args["state"]]
        _, found = self.list_pulls({"state": state, "sort": "updated"})
        rows = [self._request(one["number"]) for one in found]
        rows = [one for one in rows if one["updated_at"] >= args.get("updated_after", "")]
        wanted = args.get("source_branch")
        return 200, [one for one in rows if wanted in (None, one["source_branch"])]

    def on_open(self, body: Any) -> Answer:
        what = {"head": body["source_branch"], "base": body["target_branch"]}
        what |= {"title": body["title"], "body": body["description"]}
        code, found = self.open_pull(what)
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
        self.edit_pull(number, what)
        return 200, self._request(int(number))

    def on_merge(self, number: str, body: Any) -> Answer:
        assert body["squash"]
        title, _, text = body["squash_commit_message"].partition("\n\n")
        what = {"commit_title": title, "commit_message": text}
        code, found = self.merge_pull(number, {**body, **what, "merge_method": "squash"})
        if code != 200:
            return code, found
        commits = {"merge_commit_sha": None, "squash_commit_sha": found["sha"]}
        return 200, {**self._request(int(number)), **commits}

    def on_discussions(self, number: str, args: Any) -> Answer:
        return 200, list(self._discussions(int(number)))

    def on_versions(self, number: str, args: Any) -> Answer:
        known = enumerate(self._versions(int(number)), 1)
        rows = [{"id": id, "head_commit_sha": sha, "created_at": at} for id, (at, sha) in known]
        return 200, rows[::-1]

    def on_approvals(self, number: str, args: Any) -> Answer:
        given = self._standing(int(number), "APPROVED")
        users = [{"user": self._person(one["user"]["login"])} for one in given]
        return 200, {"approved_by": users}

    def on_reviewers(self, number: str, args: Any) -> Answer:
        asked = self._standing(int(number), "CHANGES_REQUESTED")
        people = [self._person(one["user"]["login"]) for one in asked]
        return 200, [{"user": one, "state": "requested_changes"} for one in people]

    def on_reply(self, number: str, talk: str, body: Any) -> Answer:
        code, _ = self.reply(number, str(int(talk, 16)), body)
        return code, {}

    def on_resolve(self, number: str, talk: str, body: Any) -> Answer:
        assert body == {"resolved": True}
        self.pulls[int(number)].resolved.add(int(talk, 16))
        return 200, {}

    def on_note(self, number: str, body: Any) -> Answer:
        code, _ = self.add_note(number, body)
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
        found = [{**status, "status": own["gitlab"], **own}] if own else []
        found += self.jobs.get(sha, [])
        return 200, [one for one in found if args.get("name", one["name"]) == one["name"]]

    def on_set_status(self, sha: str, body: Any) -> Answer:
        """A state that a status has is refused, with what else is sent."""
        own = self.statuses.get(sha)
        if own and own["gitlab"] == body["state"]:
            return 400, f"Cannot transition status via :x from :{body['state']}"
        state = {"failed": "failure"}.get(body["state"], body["state"])
        known = {"state": state, "gitlab": body["state"], "description": body["description"]}
        known["ref"] = body.get("ref", "main")
        self.statuses[sha] = known
        return 201, {}


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


_PROJECT = "/projects/acme%2Ftools%2Fdemo"
_ONE = rf"{_PROJECT}/merge_requests/(\d+)"
_ROUTES = (
    ("GET", "/user", "me"),
    ("GET", r"/users/(\d+)", "user"),
    ("GET", "/users", "users"),
    ("GET", "/personal_access_tokens/self", "token"),
    ("GET", _PROJECT, "project"),
    ("GET", rf"{_PROJECT}/members/all/(\d+)", "member"),
    ("GET", r"/groups/([^/]+)/members/all/(\d+)", "group"),
    ("GET", f"{_PROJECT}/merge_requests", "list"),
    ("POST", f"{_PROJECT}/merge_requests", "open"),
    ("GET", _ONE, "get"),
    ("PUT", _ONE, "edit"),
    ("PUT", f"{_ONE}/merge", "merge"),
    ("GET", f"{_ONE}/discussions", "discussions"),
    ("GET", f"{_ONE}/versions", "versions"),
    ("GET", f"{_ONE}/approvals", "approvals"),
    ("GET", f"{_ONE}/reviewers", "reviewers"),
    ("POST", rf"{_ONE}/discussions/(\w+)/notes", "reply"),
    ("PUT", rf"{_ONE}/discussions/(\w+)", "resolve"),
    ("POST", f"{_ONE}/notes", "note"),
    ("GET", f"{_PROJECT}/repository/branches", "branches"),
    ("GET", rf"{_PROJECT}/repository/commits/(\w+)/statuses", "status"),
    ("POST", rf"{_PROJECT}/statuses/(\w+)", "set_status"),
)
