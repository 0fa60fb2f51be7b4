"""Many agents at once at two doors: tools over MCP, and `git push` to refs/for/BRANCH.

Each agent sends its share of the submissions, one after the other: lines of a file of its own, now
and then of one that all change, now and then Python that does not parse.  With `--restarts` the
daemon gets SIGTERM so many times and is started again.  In the end each submission must have one
verdict, told to the agent that sent it and to nobody else, and the branch must hold what was told
to be applied, once, and nothing besides.  Half of those who push have a clone, the others a linked
work tree.  Exit 0 when all is so, 1 otherwise, 3 when the bench could not be run to its end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.console import command_line, say, trial_options
from bench.git import BenchError, environment, find_command, git
from tests.helpers.gitrepo import write_config

_CONFIG = "version: 1\ntarget: main\nmode: auto\npaths: {review: ['!*']}\n"
_LINES = 60
_VERDICT = re.compile(r"^remote: (applied|proposed|rejected|duplicate|held) +(\S+)", re.MULTILINE)
_HANDED_IN = re.compile(r"^remote: handed in as (\S+)", re.MULTILINE)
_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Told:
    """What an agent was told of its submission; `late` says that it had to ask again."""

    message: str
    id: str
    state: str
    late: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One submission of an agent: the line `number` of a file becomes `text`, or a file is new."""

    message: str
    path: str
    number: int | None
    text: str

    def made(self, before: str) -> str:
        if self.number is None:
            return self.text
        lines = before.splitlines(keepends=True)
        lines[self.number] = self.text
        return "".join(lines)


@dataclass(slots=True)
class Storm:
    """The repository, the command, and what was told so far."""

    repo: Path
    home: Path
    command: Sequence[str]
    each: int
    told: list[Told] = field(default_factory=list)
    daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.daemon = subprocess.Popen(
            [*self.command, "-q", "watch"], cwd=self.repo, env=environment(self.home),
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + _SECONDS
        while not self.asked("status").get("daemon"):
            if self.daemon.poll() is not None or time.monotonic() > deadline:
                raise BenchError("the daemon does not start")
            time.sleep(0.1)

    def stop(self) -> None:
        if self.daemon is not None:
            self.daemon.send_signal(signal.SIGTERM)
            if code := self.daemon.wait(_SECONDS):
                raise BenchError(f"the daemon ended with {code} on SIGTERM")

    def asked(self, *words: str) -> dict[str, Any]:
        done = subprocess.run(
            [*self.command, "--json", *words], cwd=self.repo, env=environment(self.home),
            capture_output=True, check=False,
        )  # fmt: skip
        told: dict[str, Any] = json.loads(done.stdout or b"{}")
        return told or {"state": f"none: {done.stderr.decode(errors='replace').strip()}"}

    def changes(self, agent: str) -> list[Change]:
        found = []
        for n in range(self.each):
            message = f"{agent} sends {n}"
            if n % 5 == 4:
                found.append(Change(message, f"{agent}_{n}.py", None, f"x = ({n}\n"))
            elif n % 7 == 6:
                found.append(Change(message, "shared.txt", n % 5, f"{message}\n"))
            else:
                found.append(Change(message, f"{agent}.txt", n, f"{message}\n"))
        return found

    def waited(self, message: str, id: str) -> Told:
        report = self.asked("wait", id, "--timeout", str(_SECONDS))
        return Told(message, report.get("id", id), report["state"], late=True)


# ---------------------------------------------------------------- agents


async def by_push(storm: Storm, agent: str, place: Path, remote: str) -> None:
    for change in storm.changes(agent):
        await asyncio.to_thread(_pushed, storm, change, place, remote)


def _pushed(storm: Storm, change: Change, place: Path, remote: str) -> None:
    if remote != ".":
        git(place, "fetch", "-q", "origin", home=storm.home)
    tip = "main" if remote == "." else "origin/main"
    git(place, "reset", "-q", "--hard", tip, home=storm.home)
    file = place / change.path
    file.write_text(change.made(file.read_text() if file.exists() else ""))
    git(place, "add", "-A", home=storm.home)
    git(place, "commit", "-q", "-m", change.message, home=storm.home)
    done = subprocess.run(
        ["git", "push", remote, "HEAD:refs/for/main"], cwd=place, env=environment(storm.home),
        capture_output=True, check=False,
    )  # fmt: skip
    said = done.stderr.decode(errors="replace")
    verdict, named = _VERDICT.search(said), _HANDED_IN.search(said)
    if verdict and verdict[1] != "held":
        state = verdict[1]
        if (state == "rejected") != bool(done.returncode):
            state += f", and git push ended with {done.returncode}"
        storm.told.append(Told(change.message, verdict[2], state))
    elif named:
        storm.told.append(storm.waited(change.message, named[1]))
    else:
        storm.told.append(Told(change.message, "", f"nothing: {said[:300]}"))


async def by_tools(storm: Storm, agent: str) -> None:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=storm.command[0],
        args=[*storm.command[1:], "-C", str(storm.repo), "mcp", "--agent", agent],
        env=environment(storm.home),
    )
    with Path(os.devnull).open("w") as nobody:
        async with Client(stdio_client(server, nobody)) as client:
            for change in storm.changes(agent):
                storm.told.append(await _submitted(storm, client, change))


async def _submitted(storm: Storm, client: Any, change: Change) -> Told:
    shown = await asyncio.to_thread(
        subprocess.run, ["git", "show", f"main:{change.path}"], cwd=storm.repo,
        env=environment(storm.home), capture_output=True, check=False,
    )  # fmt: skip
    before = shown.stdout.decode()
    if change.number is None:
        edit = {"path": change.path, "old": "", "new": change.text}
    else:
        old = before.splitlines(keepends=True)[change.number]
        edit = {"path": change.path, "old": old, "new": change.text}
    asked = {"edits": [edit], "message": change.message, "wait_seconds": 30}
    answer = (await client.call_tool("submit", asked)).structured_content or {}
    late = answer.get("state") == "waiting"
    while answer.get("state") == "waiting":
        await asyncio.sleep(0.1)
        words = {"id": answer["id"], "wait_seconds": 30}
        answer = (await client.call_tool("wait", words)).structured_content or {}
    state = answer.get("state", "none")
    return Told(
        change.message, answer.get("id", ""), state if answer.get("id") else str(answer), late
    )


async def restart(storm: Storm, times: int, wanted: int) -> None:
    """Stop the daemon and start it again, at even parts of the way."""
    for number in range(1, times + 1):
        while len(storm.told) < wanted * number // (times + 1):
            await asyncio.sleep(0.05)
        await asyncio.to_thread(storm.stop)
        await asyncio.sleep(1)
        await asyncio.to_thread(storm.start)
        say(f"restarted after {len(storm.told)} verdicts")


# ---------------------------------------------------------------- the whole


def prepare(args: argparse.Namespace, room: Path) -> tuple[Storm, dict[str, tuple[Path, str]]]:
    """The guarded repository, and for each agent that pushes its place and remote."""
    home, repo = room / "home", room / "repo"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = Bench\nemail = bench@example.org\n")
    git(room, "init", "-q", "-b", "main", str(repo), home=home)
    agents = [f"tool{n}" for n in range(args.agents)] + [f"push{n}" for n in range(args.agents)]
    for name in (*agents, "shared"):
        (repo / f"{name}.txt").write_text("".join(f"{name} {n}\n" for n in range(_LINES)))
    git(repo, "add", "-A", home=home)
    git(repo, "commit", "-q", "-m", "Start", home=home)
    git(repo, "checkout", "-q", "-b", "side", home=home)
    write_config(repo, _CONFIG)
    each = args.submissions // (2 * args.agents)
    storm = Storm(repo, home, find_command(args.command), each)
    storm.asked("init")
    storm.asked("hooks", "install", "--git")
    places = {}
    for number in range(args.agents):
        place, name = room / f"place{number}", f"push{number}"
        if number % 2:
            git(repo, "worktree", "add", "-q", "-b", name, str(place), "main", home=home)
            places[name] = (place, ".")
        else:
            git(room, "clone", "-q", "-b", "main", str(repo), str(place), home=home)
            git(place, "checkout", "-q", "-b", name, home=home)
            places[name] = (place, "origin")
    return storm, places


async def rage(args: argparse.Namespace, storm: Storm, places: dict[str, tuple[Path, str]]) -> None:
    threads = ThreadPoolExecutor(2 * args.agents + 4)
    asyncio.get_running_loop().set_default_executor(threads)
    async with asyncio.TaskGroup() as group:
        for name, (place, remote) in places.items():
            group.create_task(by_push(storm, name, place, remote))
        for number in range(args.agents):
            group.create_task(by_tools(storm, f"tool{number}"))
        group.create_task(restart(storm, args.restarts, 2 * args.agents * storm.each))


def wrongs(storm: Storm, agents: Sequence[str]) -> list[str]:
    """What is not as it should be."""
    reports: dict[str, list[dict[str, Any]]] = {}
    for path in (storm.repo / ".patchq").glob("*/*.report.json"):
        report = json.loads(path.read_bytes())
        reports.setdefault(report["message"], []).append(report)
    wanted = {change.message for agent in agents for change in storm.changes(agent)}
    told = Counter(one.message for one in storm.told)
    found = [f"{message}: told {told[message]} times" for message in wanted if told[message] != 1]
    found += [f"{message}: sent by nobody" for message in reports.keys() - wanted]
    for one in storm.told:
        there = [(it["id"], it["state"]) for it in reports.get(one.message, [])]
        if there != [(one.id, one.state)]:
            found.append(f"{one.message}: told {one.id} {one.state}, there is {there}")
    log = git(storm.repo, "log", "--format=%s", "main", home=storm.home).decode().splitlines()
    landed, applied = Counter(log), {one.message for one in storm.told if one.state == "applied"}
    found += [f"{text}: landed {n} times" for text, n in landed.items() if n > 1]
    found += [f"{text}: not what was told" for text in {*log} - {"Start"} ^ applied]
    refs = git(storm.repo, "for-each-ref", "refs/for", home=storm.home).decode()
    left = [path.name for path in (storm.repo / ".git/objects").glob("tmp_*")]
    return found + [f"left behind: {it}" for it in (refs, *left) if it]


def main(words: Sequence[str] | None = None) -> int:
    parser = command_line("bench.storm.doors", __doc__)
    add = parser.add_argument
    add("--agents", type=int, default=8, metavar="N", help="at each of the two doors (8)")
    add("--submissions", type=int, default=400, metavar="N", help="of all agents together (400)")
    add("--restarts", type=int, default=0, metavar="N", help="of the daemon, by SIGTERM (0)")
    trial_options(parser)
    args = parser.parse_args(words)
    try:
        with tempfile.TemporaryDirectory(prefix="patchq-doors-", dir=args.work) as name:
            storm, places = prepare(args, Path(name).resolve())
            storm.start()
            began = time.monotonic()
            try:
                asyncio.run(rage(args, storm, places))
            finally:
                storm.stop()
            seconds = time.monotonic() - began
            found = wrongs(storm, [*places, *(f"tool{n}" for n in range(args.agents))])
    except (BenchError, OSError, ExceptionGroup) as error:
        print(f"doors: {error!r}", file=sys.stderr)
        return 3
    for state, count in Counter(one.state for one in storm.told).most_common():
        print(f"{count:>6}  {state}")
    late = sum(one.late for one in storm.told)
    print(f"{len(storm.told)} verdicts in {seconds:.0f} s, {late} asked for again")
    print("\n".join(found[:50]) or "each told once, to who sent it")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
