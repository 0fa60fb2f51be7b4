"""Show that agents at once over MCP get one verdict each, their own, whatever is ended meanwhile.

Half of the agents have a server each over stdio, the others share one by HTTP.  In the middle the
shared server and then the daemon are ended by SIGTERM and started again; an agent whose call was
cut off calls again with the same words.  Afterwards every file that was dropped has exactly one
report, every agent was told of its own edits, and nothing is left in the queue.  Exit 0 when that
is so, 1 when not, 2 when the bench cannot be used, 3 when it could not run to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.console import command_line, say, work_option
from bench.git import BenchError, environment, find_command, git
from bench.speed.cost.ground import Ground
from bench.speed.serving import watching

_TRIES = 60
"""Half a second apart: a server that is ended tells those who wait, and starts anew."""
_PATIENCE = 120.0


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line("bench.crash.agents", __doc__)
    add = parser.add_argument
    add("--agents", type=int, default=8, metavar="N")
    add("--submissions", type=int, default=200, metavar="N", help="of all together (200)")
    add("--calm", action="store_true", help="end nothing meanwhile")
    add("--seed", type=int, default=1)
    add("--command", default="patchq", metavar="CMD", help="the command to try (patchq)")
    work_option(parser, "where the repository is made")
    return parser.parse_args(words)


@dataclass
class Fair:
    """The repository, what serves it, and what was said to whom."""

    command: list[str]
    repo: Path
    home: Path
    daemon: ExitStack = field(default_factory=ExitStack)
    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    shared: subprocess.Popen[str] | None = None
    done: int = 0
    again: int = 0
    wrong: list[str] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.home) | {"PATCHQ_MCP_TOKEN": self.token}

    def watch(self) -> None:
        """Start the daemon, or end it and start another."""
        self.daemon.close()
        self.daemon.enter_context(watching(self.command, self.repo, environment(self.home)))

    def listen(self) -> None:
        """The same for the shared server, which keeps its address."""
        if self.shared:
            self.shared.terminate()
            self.shared.communicate(timeout=30)
            if code := self.shared.returncode:
                raise BenchError(f"the server by HTTP ended with {code}")
        words = [*self.command, "--json", "mcp", "--http", str(self.port)]
        self.shared = subprocess.Popen(
            words, cwd=self.repo, env=self.environment, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self.shared.stdout
        said = "".join(iter(self.shared.stdout.readline, "}\n")) + "}"
        self.port = int(json.loads(said)["url"].split(":")[2].split("/")[0])

    def close(self) -> None:
        if self.shared:
            self.shared.kill()
            self.shared.communicate()
        self.daemon.close()


class Agent:
    """One that submits, and calls again with the same words where the answer was cut off."""

    def __init__(self, fair: Fair, number: int, rng: random.Random) -> None:
        self._fair, self._number, self._rng = fair, number, rng

    async def submit(self, count: int) -> None:
        """Hand in so many, over as many connections as it takes."""
        import anyio

        kinds = [self._rng.random() for _ in range(count)]
        turn = failed = 0
        while turn < count:
            try:
                async with self._connected() as client:
                    while turn < count:
                        with anyio.fail_after(_PATIENCE):
                            await self._turn(client, turn, kinds[turn])
                        turn, failed = turn + 1, 0
                        self._fair.done += 1
            except Exception as error:
                if turn == count:
                    break
                self._fair.again += 1
                failed += 1
                if failed == _TRIES:
                    self._fair.wrong.append(f"agent {self._number} got no answer: {error!r}")
                    self._fair.done += count - turn
                    return
                await anyio.sleep(0.5)

    async def _turn(self, client: Any, turn: int, kind: float) -> None:
        path = f"agent{self._number}/{turn}.txt"
        edit = {"path": path, "new": f"{path}\n"}
        if kind < 0.2:
            edit = {"path": path, "old": "nowhere\n", "new": "x\n"}
        call = {"edits": [edit], "wait_seconds": 30}
        await self._judge(client, path, call, "rejected" if kind < 0.2 else "proposed")
        if kind > 0.9:
            await self._judge(client, path, call, "duplicate")

    async def _judge(self, client: Any, path: str, call: dict[str, Any], wanted: str) -> None:
        import anyio

        fair = self._fair
        done = (await client.call_tool("submit", call)).structured_content
        while done["state"] in ("waiting", "held"):  # the daemon was ended under it
            given = {"id": done["id"], "wait_seconds": 30}
            seen = (await client.call_tool("wait", given)).structured_content
            done = seen if seen["state"] != "error" else done
            await anyio.sleep(0.1)
        first = done
        if done["state"] == "duplicate":  # only the first one was read
            given = {"id": done["duplicate_of"]}
            first = (await client.call_tool("report", given)).structured_content
        paths = {edit["path"] for edit in first.get("edits", ())}
        fair.states[done["state"]] += 1
        if paths != {path}:
            fair.wrong.append(f"the agent of {path} was told of {sorted(paths)}")
        elif done["state"] not in {wanted, *(["duplicate"] if fair.again else [])}:
            fair.wrong.append(f"{path}: {done['state']}, not {wanted}")

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Any]:
        import httpx2
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        fair, mode = self._fair, "2026-07-28" if self._number % 4 < 2 else "legacy"
        if self._number % 2:
            headers = {"authorization": f"Bearer {fair.token}"}
            url = f"http://127.0.0.1:{fair.port}/mcp"
            async with (
                httpx2.AsyncClient(headers=headers, timeout=_PATIENCE) as http,
                Client(streamable_http_client(url, http_client=http), mode=mode) as client,
            ):
                yield client
            return
        words = [*fair.command[1:], "-C", str(fair.repo), "mcp"]
        server = StdioServerParameters(command=fair.command[0], args=words, env=fair.environment)
        with Path(os.devnull).open("w") as nobody:
            async with Client(stdio_client(server, nobody), mode=mode) as client:
                yield client


async def run(fair: Fair, args: argparse.Namespace) -> None:
    """Let the agents submit, and end what serves them meanwhile."""
    import anyio

    share = -(-args.submissions // args.agents)
    async with anyio.create_task_group() as group:
        for number in range(args.agents):
            agent = Agent(fair, number, random.Random(args.seed * 1000 + number))
            group.start_soon(agent.submit, share)
        ends: list[Callable[[], None]] = [] if args.calm else [fair.listen, fair.watch]
        for step, end in enumerate(ends, 1):
            while fair.done < share * args.agents * step // 3:
                await anyio.sleep(0.05)
            await anyio.to_thread.run_sync(end)


def judge(fair: Fair) -> Iterator[str]:
    """What of the queue is not as it has to be."""
    queue = fair.repo / ".patchq"
    yield from fair.wrong
    reports = [json.loads(path.read_bytes()) for path in queue.glob("*/*.report.json")]
    names = Counter(report["source"]["name"] for report in reports)
    yield from (f"{name} has {count} reports" for name, count in names.items() if count > 1)
    made = Counter(
        edit["path"]
        for report in reports
        if report["state"] == "proposed"
        for edit in report["edits"]
    )
    yield from (f"{path} is proposed {count} times" for path, count in made.items() if count > 1)
    for folder in ("inbox", "active"):
        yield from (f"{folder} holds {path.name}" for path in (queue / folder).iterdir())
    bodies = {path.stem for path in queue.glob("*/*.md") if not path.name.endswith(".report.md")}
    yield from (f"{id} has no report" for id in bodies - {report["id"] for report in reports})
    if len(reports) < sum(fair.states.values()):
        yield f"{sum(fair.states.values())} verdicts were told, and {len(reports)} are there"


def main(words: Sequence[str] | None = None) -> int:
    args = arguments(words)
    try:
        with tempfile.TemporaryDirectory(prefix="patchq-agents-", dir=args.work) as place:
            home = Path(place) / "home"
            home.mkdir()
            command = find_command(args.command)
            repo = Ground(Path(place), home, command, 1, False).repository()
            git(repo, "commit", "-q", "--allow-empty", "-m", "Begin", home=home)
            subprocess.run(
                [*command, "init"], cwd=repo, env=environment(home), check=True, capture_output=True
            )
            fair = Fair(command, repo, home)
            try:
                import anyio

                fair.watch()
                fair.listen()
                anyio.run(run, fair, args)
            finally:
                fair.close()
            found = list(judge(fair))
    except BenchError as error:
        say(f"bench.crash.agents: {error}")
        return 3
    for sentence in found[:20]:
        say(sentence)
    told = ", ".join(f"{count} {state}" for state, count in sorted(fair.states.items()))
    say(f"{args.agents} agents, {fair.done} submissions, {fair.again} calls made again: {told}")
    say(f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
