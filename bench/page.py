"""How fast is the review page, and how much does it send?

    python -m bench.page [--command CMD] [--work DIR] [--rounds N]

Serves the page of a repository in which 50 proposals wait, then 500: one changes 139 files, one
10,000 lines.  It is asked by HTTP as a browser does.  Milliseconds and kilobytes, each with its
goal; exit 1 when the median of one misses, 3 when it cannot measure.
"""

from __future__ import annotations

import argparse
import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench.console import command_line, work_option
from bench.git import CONFIG, BenchError, environment, find_command, git
from bench.speed.goal import Goal

FEW, MANY, FILES, LINES = 50, 500, 139, 10_000
# Milliseconds and kilobytes of each page at most.
GOALS = {
    f"the inbox of {FEW}": ("/", 60.0, 250.0),
    f"a change of {FILES} files": ("/batch/wide", 300.0, 400.0),
    f"a change of {LINES} lines": ("/batch/long", 500.0, 400.0),
    f"the file of {LINES} lines": ("/batch/long/file?path=long.py", 500.0, None),
}
GOALS_MANY = {f"the inbox of {MANY}": ("/", 150.0, 250.0)}
_CHANGE_MS = 300.0
_SECONDS = 30.0
_HOST = "127.0.0.1"


def _block(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


def repository(room: Path, home: Path, command: Sequence[str]) -> Path:
    """Return a repository in which the first proposals wait."""
    repo = room / "repo"
    git(room, "init", "-q", "-b", "main", "repo", home=home)
    (repo / ".git/config").write_text(CONFIG.format(bare="false"))
    for n in range(MANY + 20):
        (repo / f"f{n}.py").write_text(f"def f{n}(x):\n    return x + {n}\n")
    lines = [f"    total += items[{n}]  # the item of row {n}" for n in range(LINES)]
    (repo / "long.py").write_text("\n".join(["def total(items):", *lines, ""]))
    for n in range(FILES):
        (repo / f"w{n}.py").write_text("\n".join([*lines[:80], ""]))
    for words in (("add", "."), ("commit", "-q", "-m", "Start")):
        git(repo, *words, home=home)
    subprocess.run(
        [*command, "init"], cwd=repo, env=environment(home), check=True, capture_output=True
    )
    changed = [line.replace("total +=", "total -=") for line in lines]
    wide = (
        _block(f"w{n}.py", "\n".join(lines[30:45]), "\n".join(changed[30:45])) for n in range(FILES)
    )
    whole = _block("long.py", "\n".join(lines), "\n".join(changed))
    propose(repo, home, command, {"wide": "\n".join(wide), "long": whole})
    propose(repo, home, command, small(0, FEW - 2))
    return repo


def small(first: int, end: int) -> dict[str, str]:
    """Return responses that change a line each."""
    lines = {n: f"    return x + {n}" for n in range(first, end)}
    return {f"b{n}": _block(f"f{n}.py", line, f"{line} + 1") for n, line in lines.items()}


def propose(repo: Path, home: Path, command: Sequence[str], responses: Mapping[str, str]) -> None:
    for name, text in responses.items():
        (repo / f".patchq/inbox/{name}.md").write_text(text)
    env = environment(home)
    subprocess.run([*command, "run"], cwd=repo, env=env, check=True, capture_output=True)


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
        _next(stream)  # how many wait
        with subprocess.Popen(deed, cwd=report.parents[2], env=environment(home)) as command:
            _next(stream)
            self.page("/")
            now = time.time()
        connection.close()
        if command.returncode:
            raise BenchError(f"{' '.join(deed)} ended with {command.returncode}")
        return (now - report.stat().st_mtime) * 1000


def _next(stream: http.client.HTTPResponse) -> None:
    """Read up to the next event; raises `BenchError` where the stream ends."""
    while not (line := stream.readline()).startswith(b"data:"):
        if not line:
            raise BenchError("the page ended")


@contextmanager
def served(repo: Path, home: Path, command: Sequence[str]) -> Iterator[Browser]:
    words = [*command, "review", "--no-open", "--port", "0"]
    with subprocess.Popen(
        words, cwd=repo, env=environment(home), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            yield Browser(process.stdout.readline().rpartition(" ")[2].strip())
            process.terminate()
            process.wait(_SECONDS)
        finally:
            process.kill()


def _asked(
    browser: Browser, pages: Mapping[str, tuple[str, float, float | None]], rounds: int
) -> Iterator[Goal]:
    for name, (path, most, kilobytes) in pages.items():
        browser.page(path)  # what is made once
        found = [browser.page(path) for _ in range(rounds)]
        yield Goal(f"{name}, ms", [spent for spent, _ in found], most)
        if kilobytes:
            yield Goal(f"{name}, KB", [len(found[0][1].encode()) / 1000], kilobytes)


def measure(room: Path, home: Path, command: Sequence[str], rounds: int) -> list[Goal]:
    repo = repository(room, home, command)
    change = list[float]()
    with served(repo, home, command) as browser:
        goals = [*_asked(browser, GOALS, rounds)]
        for n in range(rounds):
            report = repo / f".patchq/done/b{n}.report.json"
            version = browser.page("/")[1].split('data-version="')[1].split('"')[0]
            deed = [*command, "-q", "discard", f"b{n}"]
            change.append(browser.change(version, deed, report, home))
        goals.append(Goal("a change told, and read again, ms", change, _CHANGE_MS))
        propose(repo, home, command, small(FEW - 2, MANY + rounds - 2))
        return [*goals, *_asked(browser, GOALS_MANY, rounds)]


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.page", __doc__)
    parser.add_argument("--command", default="patchq", metavar="CMD")
    work_option(parser, "where the repository is made")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    try:
        with tempfile.TemporaryDirectory(prefix="patchq-page-", dir=args.work) as place:
            home = Path(place, "home")
            home.mkdir()
            goals = measure(Path(place), home, find_command(args.command), args.rounds)
    except (BenchError, OSError, subprocess.SubprocessError) as error:
        print(f"page: {error}", file=sys.stderr)
        return 3
    print(*(goal.line() for goal in goals), sep="\n")
    return 0 if all(goal.met for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
