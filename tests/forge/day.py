"""The day that docs/forge.md shows: its commands, and what they print beside the fake.

`python -m tests.forge.day` writes the block of the page anew.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx2

from tests.forge.conftest import Scene
from tests.forge.fake import TOKEN, Fake
from tests.helpers.command import patchq
from tests.helpers.gitrepo import GITCONFIG
from tests.helpers.pages import ROOT
from tests.helpers.transcript import WIDTH

PAGE = ROOT / "docs/forge.md"
BLOCK = re.compile(
    r"(?<=<!-- day: from here -->\n```text\n).*?(?=```\n<!-- day: to here -->)", re.S
)


@contextmanager
def served(fake: Fake) -> Iterator[str]:
    """Serve the fake on this machine; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 60

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

        def answer(self) -> None:
            size = int(self.headers.get("content-length", 0))
            url = f"http://{self.headers['host']}{self.path}"
            data, headers = self.rfile.read(size), dict(self.headers.items())
            try:
                found = fake.handle(
                    httpx2.Request(self.command, url, headers=headers, content=data)
                )
            except Exception as error:
                found = httpx2.Response(418, json={"message": repr(error)})
            self.send_response(found.status_code)
            for name in ("link", "etag"):
                if name in found.headers:
                    self.send_header(name, found.headers[name])
            self.send_header("content-length", str(len(found.content)))
            self.end_headers()
            self.wfile.write(found.content)

        do_GET = do_POST = do_PATCH = do_PUT = answer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{fake.prefix}"
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()


def told(place: Path) -> str:
    """Return the commands of the day with what they print, and what people do there."""
    scene = Scene(place, "  on_approve: accept\n", prefix="/api/v3")
    fake, lines = scene.fake, list[str]()

    def run(*words: str) -> None:
        done = patchq(*words, cwd=scene.clone, code=None)
        lines.append(f"$ patchq {' '.join(words)}")
        lines.extend((done.out + done.err).splitlines())

    with served(fake) as url:
        scene.commit_config(f"  url: {url}\n  on_approve: accept\n")
        os.environ["PATCHQ_FORGE_TOKEN"] = TOKEN
        run("forge", "check")
        scene.propose("retry-login", "a3 = 3", "a3 = 4", head="---\nagent: codex\n---\n")
        run("forge", "sync", "--once")
        lines.append("# ada asks for changes in #1")
        review = fake.review(1, "ada", "CHANGES_REQUESTED", "Once is enough.")
        fake.comment(1, "ada", "a.py", 3, "why 4?", pull_request_review_id=review)
        run("forge", "sync", "--once")
        lines.append("# codex answers with `retries: retry-login`")
        answer = "---\nagent: codex\nretries: retry-login\n---\n"
        scene.propose("retry-once", "a3 = 3", "a3 = 1", head=answer)
        run("forge", "sync", "--once")
        lines.append("# ada approves")
        fake.review(1, "ada", "APPROVED")
        run("forge", "sync", "--dry-run")
        run("forge", "sync", "--once")
        run("forge", "sync", "--once")
        assert (fake.state(1), scene.report("retry-once")["state"]) == ("merged", "accepted")
    text = "\n".join(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in lines)
    commits: dict[str, str] = {}

    def steady(found: re.Match[str]) -> str:
        return commits.setdefault(found[0], f"{len(commits) + 1:x}" * 12)

    return re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12}\b", steady, text) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        os.environ |= {"HOME": name, "GIT_CONFIG_NOSYSTEM": "1"}
        Path(name, ".gitconfig").write_text(GITCONFIG)
        text = told(Path(name))
    PAGE.write_text(BLOCK.sub(lambda _: text, PAGE.read_text("utf-8")), "utf-8")
