"""How fast is the review page?

    python -m bench.speed.review [--command CMD] [--work DIR] [--rounds N]

Serves the page of a repository in which 200 proposals wait, one of them a change of 10,000 lines,
and asks it by HTTP as a browser does.  Milliseconds, each with its goal; exit 1 when the median of
one misses, 3 when it cannot measure.
"""

from __future__ import annotations

import argparse
import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench.console import command_line, work_option
from bench.git import CONFIG, BenchError, environment, find_command, git
from bench.speed.goal import Goal

PROPOSALS = 200
LINES = 10_000
INBOX_MS, DIFF_MS, CHANGE_MS = 60.0, 1000.0, 300.0
_SECONDS = 30.0
_HOST = "127.0.0.1"


def _response(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


def repository(room: Path, home: Path, command: Sequence[str]) -> Path:
    """What the page is of."""
    repo = room / "repo"
    git(room, "init", "-q", "-b", "main", "repo", home=home)
    (repo / ".git/config").write_text(CONFIG.format(bare="false"))
    for n in range(PROPOSALS):
        (repo / f"f{n}.py").write_text(f"def f{n}(x):\n    return x + {n}\n")
    lines = [f"    total += items[{n}]  # the item of row {n}" for n in range(LINES)]
    (repo / "large.py").write_text("\n".join(["def total(items):", *lines, ""]))
    for words in (("add", "."), ("commit", "-q", "-m", "Start")):
        git(repo, *words, home=home)
    env = environment(home)
    subprocess.run([*command, "init"], cwd=repo, env=env, check=True, capture_output=True)
    inbox = repo / ".patchq/inbox"
    for n in range(PROPOSALS - 1):
        old = f"    return x + {n}"
        (inbox / f"b{n}.md").write_text(_response(f"f{n}.py", old, f"{old} + 1"))
    changed = [line.replace("total +=", "total -=") for line in lines]
    whole = "\n".join(["def total(items):", *changed])
    whole_old = "\n".join(["def total(items):", *lines])
    (inbox / "large.md").write_text(_response("large.py", whole_old, whole))
    subprocess.run([*command, "run"], cwd=repo, env=env, check=True, capture_output=True)
    return repo


class Browser:
    """One connection to the page, with its cookie."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._port = parts.port
        self._headers = {"host": parts.netloc}
        answer, _ = self._ask(f"/?{parts.query}")
        self._headers["cookie"] = (answer.getheader("set-cookie") or "").split(";")[0]

    def _ask(self, path: str) -> tuple[http.client.HTTPResponse, str]:
        connection = http.client.HTTPConnection(_HOST, self._port, timeout=_SECONDS)
        connection.request("GET", path, headers=self._headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def page(self, path: str) -> tuple[float, str]:
        """Milliseconds, and the page."""
        start = time.perf_counter()
        answer, text = self._ask(path)
        spent = (time.perf_counter() - start) * 1000
        if answer.status != 200:
            raise BenchError(f"{path} answered {answer.status}")
        return spent, text

    def change(self, version: str, deed: Sequence[str], report: Path, home: Path) -> float:
        """Milliseconds from the writing of a report until the page with it was there: the change
        is told, and the inbox is read again."""
        connection = http.client.HTTPConnection(_HOST, self._port, timeout=_SECONDS)
        connection.request("GET", f"/changes?since={version}", headers=self._headers)
        stream = connection.getresponse()
        stream.readline()
        with subprocess.Popen(deed, cwd=report.parents[2], env=environment(home)) as command:
            while not stream.readline().startswith(b"data:"):
                pass
            self.page("/")
            now = time.time()
        connection.close()
        if command.returncode:
            raise BenchError(f"{' '.join(deed)} ended with {command.returncode}")
        return (now - report.stat().st_mtime) * 1000


@contextmanager
def served(repo: Path, home: Path, command: Sequence[str]) -> Iterator[Browser]:
    words = [*command, "review", "--no-open", "--port", "0"]
    with subprocess.Popen(
        words, cwd=repo, env=environment(home), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            yield Browser(process.stdout.readline().rpartition(" ")[2].strip())
        finally:
            process.terminate()


def measure(room: Path, home: Path, command: Sequence[str], rounds: int) -> list[Goal]:
    repo = repository(room, home, command)
    inbox, diff, change = list[float](), list[float](), list[float]()
    with served(repo, home, command) as browser:
        browser.page("/")  # what is made once
        for n in range(rounds):
            spent, text = browser.page("/")
            inbox.append(spent)
            spent, large = browser.page("/batch/large")
            diff.append(spent)
            if f"{PROPOSALS - n} for you" not in text or "lines are not shown" not in large:
                raise BenchError("the pages do not show what is there")
            report = repo / f".patchq/done/b{n}.report.json"
            version = browser.page("/")[1].split('data-version="')[1].split('"')[0]
            change.append(
                browser.change(version, [*command, "-q", "discard", f"b{n}"], report, home)
            )
    return [
        Goal(f"the inbox with {PROPOSALS} proposals, ms", inbox, INBOX_MS),
        Goal(f"a change of {LINES} lines, folded, ms", diff, DIFF_MS),
        Goal("a change told, and read again, ms", change, CHANGE_MS),
    ]


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.speed.review", __doc__)
    parser.add_argument("--command", default="patchq", metavar="CMD")
    work_option(parser, "where the repository is made")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    try:
        with tempfile.TemporaryDirectory(prefix="patchq-review-", dir=args.work) as place:
            home = Path(place, "home")
            home.mkdir()
            goals = measure(Path(place), home, find_command(args.command), args.rounds)
    except (BenchError, OSError, subprocess.SubprocessError) as error:
        print(f"review: {error}", file=sys.stderr)
        return 3
    print(*(goal.line() for goal in goals), sep="\n")
    return 0 if all(goal.met for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
