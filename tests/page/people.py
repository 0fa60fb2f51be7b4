"""A page that is served, and people who look at it without a browser."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from patchq.gate.service.loopback import HOST
from tests.helpers.command import block, drop, patchq
from tests.helpers.ending import MOST_SECONDS, line_of, running
from tests.helpers.gitrepo import git, make_repo

_MOST_SECONDS = 1800.0  # of a page, which all tests of a module look at


class Answer(NamedTuple):
    """What the server said."""

    code: int
    text: str
    headers: dict[str, str]


class Person:
    """Somebody with the printed address, and the cookie that it was exchanged for."""

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urlsplit(url)
        self.host, self.key = parts.netloc, f"{parts.path}?{parts.query}"
        self.port = parts.port or 0
        answer = self.ask("GET", self.key, cookie="")
        self.cookie = answer.headers["set-cookie"].split(";")[0]

    def ask(
        self, method: str, path: str, body: str = "", cookie: str | None = None, **headers: str
    ) -> Answer:
        """One request; a header of None is left out."""
        sent = {"host": self.host, "cookie": self.cookie if cookie is None else cookie}
        if method == "POST":
            sent |= {
                "origin": f"http://{self.host}",
                "content-type": "application/x-www-form-urlencoded",
                "content-length": str(len(body.encode())),
            }
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        with closing(connection):
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name in filter(sent.get, sent):
                connection.putheader(name, sent[name])
            connection.endheaders(body.encode() if sent.get("content-length") else None)
            response = connection.getresponse()
            told = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, response.read().decode(), told)

    def look(self, path: str) -> str:
        """A page that has to be there."""
        answer = self.ask("GET", path)
        assert answer.code == 200, answer.text
        return answer.text

    def send(self, path: str, fields: Sequence[tuple[str, str]], **headers: str) -> Answer:
        """A form."""
        return self.ask("POST", path, urlencode(fields), **headers)


def commit_of(page: str) -> str:
    """The commit that the page's forms carry."""
    found = re.search(r'name="commit" value="([0-9a-f]{40})"', page)
    assert found, page
    return found[1]


def proposals(tmp: Path, responses: dict[str, str], files: dict[str, str] | None = None) -> Path:
    """A repository in which the responses wait for review."""
    repo = make_repo(tmp / "repo", files or {"a.txt": "one\ntwo\nthree\nfour\n"})
    patchq("init", cwd=repo)
    drop(repo / ".patchq", responses)
    patchq("run", cwd=repo, code=None)
    return repo


def state(repo: Path, id: str) -> str:
    """The state of a change."""
    return str(patchq("--json", "status", id, cwd=repo).json()["state"])


def moved(repo: Path, id: str) -> str:
    """The commit of a person on top of a proposal, whose branch it becomes."""
    words = ("-p", f"patchq/{id}", "-m", "by a person")
    ours = git("commit-tree", f"patchq/{id}^{{tree}}", *words, cwd=repo)
    git("update-ref", f"refs/heads/patchq/{id}", ours, cwd=repo)
    return ours


def edits(*pairs: tuple[str, str], agent: str = "writer-1", path: str = "a.txt") -> str:
    """A response with an edit for each pair of old and new text."""
    parts = "\n".join(block(path, old, new) for old, new in pairs)
    return f"---\nagent: {agent}\n---\n{parts}"


@contextmanager
def served(repo: Path, *words: str) -> Iterator[str]:
    """`patchq review` at work; its address.  It has to end well by a signal."""
    command = [sys.executable, "-m", "patchq", "review", "--no-open", "--port", "0", *words]
    pipe = subprocess.PIPE
    with running(command, _MOST_SECONDS, cwd=repo, stdout=pipe, stderr=pipe, text=True) as process:
        line = line_of(process.stdout)
        assert line.startswith("patchq review: "), line
        yield line.removeprefix("patchq review: ").strip()
        process.terminate()
        _, told = process.communicate(timeout=MOST_SECONDS)
        assert (process.returncode, told) == (0, ""), told
