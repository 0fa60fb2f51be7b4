"""The wire of stdio: what comes in pieces, in bulk, or as a file; clients that do not listen."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.gitrepo import git, make_repo

_CLIENT = {"name": "t", "version": "0"}
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT}
_COMMAND = [sys.executable, "-m", "patchq", "mcp"]


def _lines(*calls: tuple[str, dict[str, Any]]) -> bytes:
    """A client's words: the handshake, and calls of tools with the ids 1, 2, …"""
    said: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": _HELLO},
        {"method": "notifications/initialized"},
    ]
    for id, (name, given) in enumerate(calls, 1):
        params = {"name": name, "arguments": given}
        said.append({"id": id, "method": "tools/call", "params": params})
    lines = (json.dumps({"jsonrpc": "2.0", **one}, ensure_ascii=False) for one in said)
    return "".join(f"{line}\n" for line in lines).encode()


def _answers(out: bytes) -> dict[int, dict[str, Any]]:
    return {one["id"]: one for one in map(json.loads, out.splitlines()) if "id" in one}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo", {"ä.txt": "één\n"})
    git("config", "patchq.target", "main", cwd=repo)
    return repo


_CHECK = ("check", {"edits": [{"path": "ä.txt", "old": "één\n", "new": "zwei €\n"}]})
_LARGE = ("check", {"edits": [{"path": "n.txt", "new": "é" * 300_000 + "\n"}]})


def _by_pipe(repo: Path, said: bytes) -> bytes:
    """In pieces that end inside of characters."""
    with subprocess.Popen(
        _COMMAND, cwd=repo, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin
        assert server.stdout
        cut = said.index("é".encode()) + 1
        for part in (said[:5], said[5:cut], said[cut:]):
            server.stdin.write(part)
            server.stdin.flush()
            time.sleep(0.01)
        answers = b""
        while len(_answers(answers)) < said.count(b'"id"'):
            answers += server.stdout.readline()
        server.stdin.close()
        assert server.wait(60) == 0
        return answers


def _by_socket(repo: Path, said: bytes) -> bytes:
    """As Node starts programs; the client ends its words before it hears."""
    ours, theirs = socket.socketpair()
    fd = theirs.fileno()
    with ours, theirs, subprocess.Popen(_COMMAND, cwd=repo, stdin=fd, stdout=fd) as server:
        theirs.close()
        ours.sendall(said)
        answers = b""
        while len(answers.splitlines()) < said.count(b'"id"') or not answers.endswith(b"\n"):
            answers += ours.recv(1 << 16)
        ours.shutdown(socket.SHUT_WR)
        assert server.wait(60) == 0
        return answers


def _by_files(repo: Path, said: bytes) -> bytes:
    """Nothing can be waited for, and there are no answers' readers."""
    asked, told = repo.parent / "asked", repo.parent / "told"
    asked.write_bytes(said)
    with asked.open("rb") as source, told.open("wb") as sink:
        subprocess.run(_COMMAND, cwd=repo, stdin=source, stdout=sink, check=True, timeout=60)
    return told.read_bytes()


@pytest.mark.parametrize("by", [_by_pipe, _by_socket])
def test_every_wire_carries_everything(repo: Path, by: Callable[[Path, bytes], bytes]) -> None:
    answers = _answers(by(repo, _lines(_CHECK, _LARGE, ("how_to_answer", {"files": ["ä.txt"]}))))
    states = [answers[id]["result"]["structuredContent"].get("state") for id in (1, 2)]
    assert states == ["proposed", "proposed"]
    assert "één" in answers[3]["result"]["structuredContent"]["prompt"]


def test_a_file_is_read_to_its_end(repo: Path) -> None:
    assert 0 in _answers(_by_files(repo, _lines()))


def test_nothing_is_said_of_a_client_that_is_gone(repo: Path) -> None:
    """It closes both of its ends while an answer is due."""
    with subprocess.Popen(
        _COMMAND, cwd=repo, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        assert server.stdin
        assert server.stdout
        assert server.stderr
        server.stdin.write(_lines())
        server.stdin.flush()
        server.stdout.readline()
        server.stdout.close()
        server.stdin.write(_lines(_CHECK).splitlines(True)[-1])
        server.stdin.close()
        assert server.wait(60) == 0
        assert server.stderr.read() == b""


def test_a_client_that_reads_late_holds_up_nobody(repo: Path) -> None:
    """Many answers, more than the pipe holds, and a signal: the server still ends."""
    listing = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
    with subprocess.Popen(
        _COMMAND, cwd=repo, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(_lines() + (json.dumps(listing) + "\n").encode() * 20)
        server.stdin.flush()
        time.sleep(0.1)
        assert len([*map(json.loads, (server.stdout.readline() for _ in range(21)))]) == 21
        os.kill(server.pid, 15)
        assert server.wait(60) == 0
