"""The wire of stdio: lines that are too long, signals, files, and clients that do not listen."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.ending import running
from tests.helpers.gitrepo import git, make_repo

_CLIENT = {"name": "t", "version": "0"}
_HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": _CLIENT,
}
_COMMAND = [sys.executable, "-m", "patchq", "mcp"]
_CHECK = {"edits": [{"path": "ä.txt", "old": "één\n", "new": "zwei €\n"}]}
_PEAK_KB = 250_000


def _line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n"


_GREETING = _line(id=0, method="initialize", params=_HELLO) + _line(
    method="notifications/initialized"
)
_CALL = _line(id=1, method="tools/call", params={"name": "check", "arguments": _CHECK})
_LONG = b"x" * 100_000_000


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"ä.txt": "één\n"})
    git("config", "patchq.target", "main", cwd=repo)
    return repo


@contextmanager
def _started(repo: Path, words: bytes) -> Iterator[Any]:
    """The server, with these words in its input."""
    pipe = subprocess.PIPE
    with running(_COMMAND, cwd=repo, stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdin
        server.stdin.write(words)
        server.stdin.flush()
        yield server


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"%s"}', 7),
        (b'{"params":"%s","jsonrpc":"2.0","id":"a-7"}', "a-7"),
        (b'{"params":{"id":7,"x":"%s","id":7},"method":"x"}', None),
        (b"%s", None),
    ],
    ids=["id first", "id last", "id of another", "no JSON"],
)
def test_a_line_that_is_too_long_is_refused(repo: Path, line: bytes, id: object) -> None:
    """The memory is bounded, and what follows is answered."""
    with _started(repo, _GREETING + line % _LONG + b"\n" + _CALL) as server:
        answers = [json.loads(server.stdout.readline()) for _ in range(3)]
        (refusal,) = (one for one in answers if "error" in one)
        assert (refusal["id"], refusal["error"]["code"]) == (id, -32600)
        assert "longer than 4259840 bytes" in refusal["error"]["message"]
        (checked,) = (one for one in answers if one.get("id") == 1)
        assert checked["result"]["structuredContent"]["state"] == "proposed"
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) < _PEAK_KB


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_handshake_agrees_on_the_clients_protocol(repo: Path, version: str) -> None:
    """The newest protocol, which has none, is that of the SDK's client in other tests."""
    greeting = _GREETING.replace(_HELLO["protocolVersion"].encode(), version.encode())
    with _started(repo, greeting + _CALL) as server:
        hello, called = (json.loads(server.stdout.readline())["result"] for _ in range(2))
        assert hello["protocolVersion"] == version
        assert called["structuredContent"]["state"] == "proposed"


def test_nothing_is_said_of_a_client_that_is_gone(repo: Path) -> None:
    """It closes both of its ends while an answer is due."""
    with _started(repo, _GREETING) as server:
        server.stdout.readline()
        server.stdout.close()
        server.stdin.write(_CALL)
        server.stdin.close()
        assert server.wait(60) == 0
        assert server.stderr.read() == b""
