"""A fake of GitHub over a real bare repository; GitHub's descriptions judge what goes over it.

What people do there are methods; `handle` answers requests.  Pushes are looked at in their order,
as GitHub does: a request whose head gets into its base is merged, one without a head is closed.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from graphql import build_schema, graphql_sync

from tests.forge import described
from tests.helpers.gitrepo import git

TOKEN = "ghp_fake0123456789secret"
PROJECT = "acme/demo"
_HOOK = '#!/bin/sh\nwhile read old new ref; do echo "$old $new $ref" >> "$GIT_DIR/moves"; done\n'
_GONE = "0" * 40
Answer = tuple[int, Any]


@dataclass
class Pull:
    """A pull request, as `values` of the API; the others are what people say of it."""

    values: dict[str, Any]
    reviews: list[dict[str, Any]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    resolved: set[int] = field(default_factory=set)
    closed_by: str | None = None
    conflicts: bool = False


class Fake:
    """A project with its pull requests; `me` owns the token."""

    api = staticmethod(described.github)

    def __init__(self, bare: Path, prefix: str = "", *, judged: bool = True) -> None:
        self.bare, self.prefix, self.judged = bare, prefix, judged
        self.me, self.writers = "patchq-bot", {"ada", "grace"}
        self.pulls: dict[int, Pull] = {}
        self.statuses: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.moved: Counter[str] = Counter()
        self.fault: Callable[[str], str | None] = lambda what: None
        self.required, self.rules = ["patchq/reviewed"], list[str]()
        self.headers, self.page_size = dict[str, str](), 100
        self.mismerges = False
        """The merges of this forge leave out what they merge."""
        self.ci: Callable[[str], list[tuple[str, str | None]]] = lambda commit: []
        """Returns the checks of a commit and their conclusions, None while one runs; a name with a
        slash is that of a status."""
        self._clock, self._number, self._seen = 0, 0, 0
        hook = bare / "hooks/post-receive"
        hook.write_text(_HOOK)
        hook.chmod(0o755)

    @property
    def transport(self) -> httpx2.MockTransport:
        return httpx2.MockTransport(self.handle)

    # ------------------------------------------------------------ what people do there

    def review(self, number: int, by: str, state: str, body: str = "", **more: Any) -> int:
        """Add a review of the head, or of `commit_id`; return its number."""
        pull = self.pulls[number]
        known = {"commit_id": pull.values["head"]["sha"], "submitted_at": self._now()}
        id = self._next()
        values = {"id": id, "user": self._user(by), "state": state, "body": body}
        url = f"{pull.values['html_url']}#pullrequestreview-{id}"
        pull.reviews.append({**values, "html_url": url, **known, **more})
        self._talked(pull)
        return id

    def comment(self, number: int, by: str, path: str, line: int, body: str, **more: Any) -> int:
        """Comment on a line of the head; return the comment's number."""
        pull, id = self.pulls[number], self._next()
        url = f"{pull.values['html_url']}#discussion_r{id}"
        known = {"id": id, "node_id": f"PRRC_{id}", "html_url": url, "user": self._user(by)}
        known |= {"path": path, "line": line, "original_line": line, "side": "RIGHT"}
        known |= {"original_commit_id": pull.values["head"]["sha"], "pull_request_review_id": None}
        pull.comments.append({**known, "body": body, "created_at": self._now(), **more})
        self._talked(pull)
        return id

    def say(self, number: int, by: str, body: str) -> None:
        """Comment on a request, not on a line."""
        pull, id = self.pulls[number], self._next()
        url = f"{pull.values['html_url']}#issuecomment-{id}"
        values = {"id": id, "user": self._user(by), "body": body, "html_url": url}
        pull.notes.append({**values, "created_at": self._now()})
        self._talked(pull)

    def close(self, number: int, by: str) -> None:
        self.pulls[number].values["state"], self.pulls[number].closed_by = "closed", by
        self._touch(self.pulls[number])

    def reopen(self, number: int) -> None:
        self.pulls[number].values["state"] = "open"
        self._touch(self.pulls[number])

    def state(self, number: int) -> str:
        self.look()
        values = self.pulls[number].values
        return "merged" if values["merged_at"] else str(values["state"])

    def status_of(self, number: int) -> str:
        return str(self.statuses[self.pulls[number].values["head"]["sha"]]["state"])

    # ------------------------------------------------------------ its repository

    def look(self) -> None:
        """Take note of the pushes since the last look."""
        file = self.bare / "moves"
        lines = file.read_text().splitlines() if file.exists() else []
        for line in lines[self._seen :]:
            _, new, ref = line.split(" ", 2)
            branch = ref.removeprefix("refs/heads/")
            self.moved[branch] += 1
            for pull in self.pulls.values():
                self._follow(pull, branch, new)
        self._seen = len(lines)

    def _follow(self, pull: Pull, branch: str, new: str) -> None:
        values = pull.values
        if values["state"] != "open":
            return
        if branch == values["head"]["ref"]:
            if new == _GONE:
                values["state"], pull.closed_by = "closed", self.me
            else:
                values["head"]["sha"], pull.conflicts = new, False
            self._touch(pull)
        elif branch == values["base"]["ref"]:
            head = values["head"]["sha"]
            if git("merge-base", head, new, cwd=self.bare) != head:
                return
            values["state"], values["merged_at"] = "closed", self._now()
            self._touch(pull)

    def merge(self, number: int, by: str, how: str = "squash", message: str = "") -> str:
        """Merge by the button; return the commit."""
        self.look()
        values = self.pulls[number].values
        base, head = values["base"]["ref"], values["head"]["sha"]
        tip = git("rev-parse", base, cwd=self.bare)
        tree = git("merge-tree", "--write-tree", tip, head, cwd=self.bare)
        tree = f"{tip}^{{tree}}" if self.mismerges else tree
        text = message or git("log", "-1", "--format=%B", head, cwd=self.bare)
        who = ["-c", f"user.name={by}", "-c", f"user.email={by}@example.org"]
        commit, parents = tip, ["-p", head] if how == "merge" else []
        if how == "rebase":
            for one in git("rev-list", "--reverse", f"{tip}..{head}", cwd=self.bare).split()[:-1]:
                part = git("merge-tree", "--write-tree", commit, one, cwd=self.bare)
                text_of = git("log", "-1", "--format=%B", one, cwd=self.bare)
                words = ["commit-tree", part, "-p", commit, "-m", text_of]
                commit = git(*who, *words, cwd=self.bare)
        words = ["commit-tree", tree, "-p", commit, *parents, "-m", text]
        commit = git(*who, *words, cwd=self.bare)
        git("update-ref", f"refs/heads/{base}", commit, tip, cwd=self.bare)
        with (self.bare / "moves").open("a") as moves:
            moves.write(f"{tip} {commit} refs/heads/{base}\n")
        values["state"], values["merged_at"] = "closed", self._now()
        self._touch(self.pulls[number])
        return commit

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request, unless a fault comes in between."""
        what = f"{request.method} {request.url.path.removeprefix(self.prefix)}"
        self.asked.append(what)
        fault = self.fault(what)
        if fault == "dropped":
            raise httpx2.ConnectError("connection refused")
        if fault in ("429", "502"):
            headers = {"retry-after": "1"} if fault == "429" else {}
            return httpx2.Response(int(fault), headers=headers, json={"message": "later"})
        answer = self._answer(request)
        if fault == "lost":
            raise httpx2.ReadError("connection reset")
        return answer

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return httpx2.Response(401, json={"message": f"Bad credentials {TOKEN}"})
        self.look()
        path = request.url.raw_path.decode().partition("?")[0].removeprefix(self.prefix)
        if path.endswith("/graphql"):
            return self._graphql(json.loads(request.content))
        return self.api().answer(self, request, path)

    def _graphql(self, body: Any) -> httpx2.Response:
        schema = build_schema((described.HERE / "github.graphql").read_text())

        def request(_: Any, number: int) -> Any:
            pull = self.pulls[number]
            first = [one for one in pull.comments if not one.get("in_reply_to_id")]
            nodes = [_thread(one, one["id"] in pull.resolved) for one in first]
            threads = {"nodes": nodes, "pageInfo": {"hasNextPage": False, "endCursor": None}}
            state = "CONFLICTING" if pull.conflicts else "MERGEABLE"
            return {"mergeable": state, "reviewThreads": lambda _, **args: threads}

        def resolve(_: Any, input: Any) -> Any:
            id = int(input["threadId"].removeprefix("PRRT_"))
            pull = next(p for p in self.pulls.values() if any(c["id"] == id for c in p.comments))
            pull.resolved.add(id)
            return {"thread": {"id": input["threadId"], "isResolved": True}}

        root = {
            "repository": lambda _, **args: {"pullRequest": request},
            "resolveReviewThread": resolve,
        }
        done = graphql_sync(schema, body["query"], root, variable_values=body["variables"])
        assert not done.errors, done.errors
        return httpx2.Response(200, json={"data": done.data})

    def users_get_authenticated(self, args: Any) -> Answer:
        return 200, {**self._user(self.me), "user_view_type": "private"}

    def repos_get(self, args: Any) -> Answer:
        rights = {"push": True, "pull": True, "admin": False}
        return 200, {"full_name": PROJECT, "permissions": rights}

    def repos_get_branch(self, branch: str, args: Any) -> Answer:
        checks = {"contexts": self.required, "checks": []}
        return 200, {"name": branch, "protection": {"required_status_checks": checks}}

    def repos_get_branch_rules(self, branch: str, args: Any) -> Answer:
        checks = [{"context": name} for name in self.rules]
        parameters: dict[str, Any] = {"required_status_checks": checks}
        parameters["strict_required_status_checks_policy"] = False
        return 200, [{"type": "required_status_checks", "parameters": parameters}] * bool(checks)

    def pulls_list(self, args: Any) -> Answer:
        found = [pull.values for pull in self.pulls.values()]
        if (state := args.get("state", "open")) != "all":
            found = [one for one in found if one["state"] == state]
        if head := args.get("head"):
            found = [one for one in found if f"acme:{one['head']['ref']}" == head]
        key = "updated_at" if args.get("sort") == "updated" else "created_at"
        return 200, sorted(found, key=lambda one: (one[key], one["number"]), reverse=True)

    def pulls_create(self, body: Any) -> Answer:
        ref = body["head"]
        here = [one.values for one in self.pulls.values() if one.values["head"]["ref"] == ref]
        if any(one["state"] == "open" for one in here):
            return 422, "Validation Failed: A pull request already exists for acme:x."
        sha = git("for-each-ref", "--format=%(objectname)", f"refs/heads/{ref}", cwd=self.bare)
        if not sha:
            return 422, "Validation Failed: head is invalid"
        self._number += 1
        url = f"https://github.com/{PROJECT}/pull/{self._number}"
        values = {"number": self._number, "html_url": url, "state": "open", "merged_at": None}
        values |= {"title": body["title"], "body": body.get("body") or ""}
        values |= {"created_at": self._now(), "updated_at": self._now()}
        values["user"] = self._user(self.me)
        values["head"] = {"ref": ref, "sha": sha, "repo": {"full_name": PROJECT}}
        values["base"] = {"ref": body["base"]}
        self.pulls[self._number] = Pull(values)
        return 201, values

    def pulls_update(self, number: str, body: Any) -> Answer:
        pull = self.pulls[int(number)]
        if "base" in body:
            pull.values["base"] = {"ref": body["base"]}
        if body.get("state") == "closed":
            pull.closed_by = self.me
        pull.values |= {key: body[key] for key in ("title", "body", "state") if key in body}
        self._touch(pull)
        return 200, pull.values

    def pulls_merge(self, number: str, body: Any) -> Answer:
        values = self.pulls[int(number)].values
        if body["sha"] != values["head"]["sha"]:
            return 409, "Head branch was modified. Review and try the merge again."
        if self.status_of(int(number)) != "success":
            return 405, 'Required status check "patchq/reviewed" is expected.'
        message = f"{body['commit_title']}\n\n{body['commit_message']}"
        try:
            commit = self.merge(int(number), self.me, body["merge_method"], message)
        except AssertionError:
            self.pulls[int(number)].conflicts = True
            self._touch(self.pulls[int(number)])
            return 405, "Pull Request is not mergeable"
        return 200, {"sha": commit, "merged": True, "message": "merged"}

    def pulls_list_reviews(self, number: str, args: Any) -> Answer:
        return 200, self.pulls[int(number)].reviews

    def pulls_list_review_comments(self, number: str, args: Any) -> Answer:
        return 200, self.pulls[int(number)].comments

    def pulls_create_reply_for_review_comment(self, number: str, comment: str, body: Any) -> Answer:
        first = next(c for c in self.pulls[int(number)].comments if c["id"] == int(comment))
        id = self.comment(int(number), self.me, first["path"], first["line"], body["body"])
        self.pulls[int(number)].comments[-1]["in_reply_to_id"] = int(comment)
        return 201, {"id": id}

    def issues_get(self, number: str, args: Any) -> Answer:
        by = self.pulls[int(number)].closed_by
        return 200, {"closed_by": self._user(by) if by else None}

    def issues_list_comments(self, number: str, args: Any) -> Answer:
        return 200, self.pulls[int(number)].notes

    def issues_create_comment(self, number: str, body: Any) -> Answer:
        self.say(int(number), self.me, body["body"])
        return 201, self.pulls[int(number)].notes[-1]

    def repos_create_commit_status(self, sha: str, body: Any) -> Answer:
        self.statuses[sha] = {**body, "target_url": body.get("target_url")}
        return 201, self.statuses[sha]

    def repos_get_combined_status_for_ref(self, sha: str, args: Any) -> Answer:
        found = [self.statuses[sha]] if sha in self.statuses else []
        for name, conclusion in self.ci(sha):
            if "/" in name:
                state, url = conclusion or "pending", f"https://ci.example.org/{name}"
                found.append({"context": name, "state": state, "target_url": url})
        part = "simple-commit-status"
        return 200, {"statuses": [self.api().part(part, **one) for one in found]}

    def checks_list_for_ref(self, sha: str, args: Any) -> Answer:
        runs = []
        for name, conclusion in self.ci(sha):
            if "/" not in name:
                status = "completed" if conclusion else "queued"
                run = {"name": name, "status": status, "conclusion": conclusion}
                url = f"https://github.com/{PROJECT}/runs/{name}"
                runs.append(self.api().part("check-run", **run, html_url=url))
        return 200, {"total_count": len(runs), "check_runs": runs}

    def repos_get_collaborator_permission_level(self, login: str, args: Any) -> Answer:
        return 200, {"permission": "write" if login in {*self.writers, self.me} else "read"}

    def teams_get_membership_for_user_in_org(self, login: str, args: Any) -> Answer:
        return (200, {"state": "active"}) if login == "grace" else (404, "Not Found")

    def _next(self) -> int:
        self._clock += 1
        return 3_000_000_000 + self._clock

    def _now(self) -> str:
        """Return a time that no two things share."""
        self._clock += 1
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self._clock))

    def _touch(self, pull: Pull) -> None:
        pull.values["updated_at"] = self._now()

    _talked = _touch

    def _user(self, login: str) -> dict[str, Any]:
        kind = "Bot" if login.endswith("[bot]") else "User"
        user: dict[str, Any] = described.github().part("simple-user", login=login, type=kind)
        return user


def _thread(first: Any, resolved: bool) -> dict[str, Any]:
    nodes = {"nodes": [{"id": first["node_id"], "fullDatabaseId": first["id"]}]}
    comments = lambda _, **args: nodes  # noqa: E731
    return {"id": f"PRRT_{first['id']}", "isResolved": resolved, "comments": comments}
