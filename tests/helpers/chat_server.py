"""A server on loopback that speaks the Chat Completions protocol, and says what a test gives it.

Each request takes the next `Reply` of the script; a function is asked for one instead.  Requests
are kept, so that a test can see what left the process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What the server does with one request."""

    text: str | None = ""
    finish: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """The response's whole body, in place of the text's."""
    slow: bool = False
    """Answer only when the server is closed."""
    trickle: bool = False
    """Send the head, then a blank at a time until the server is closed."""
    hang_up: bool = False
    """Close the connection without an answer."""


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def question(self) -> str:
        """The last message."""
        return str(self.body["messages"][-1]["content"])


Script = Sequence[Reply | str] | Callable[[Request], Reply | str]


class ChatServer(ThreadingHTTPServer):
    """The server; `requests` holds what it was asked."""

    daemon_threads = False

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.requests: list[Request] = []
        self.closed = Event()
        self.asked = Event()
        self._lock = Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def begin(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            number = len(self.requests) - 1
        self.asked.set()
        script = self.script
        reply = script(request) if callable(script) else script[min(number, len(script) - 1)]
        return Reply(reply) if isinstance(reply, str) else reply


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    timeout = 30  # a client that connects and asks nothing holds up the server's end so long

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, json.loads(data))
        reply = self.server.begin(request)
        with suppress(OSError):  # the client did not wait
            self._answer(request, reply)

    def _answer(self, request: Request, reply: Reply) -> None:
        if reply.hang_up:
            self.close_connection = True
            return
        if reply.slow:
            self.server.closed.wait(600)
        body = reply.body if reply.body is not None else _completion(request, reply)
        self.send_response(reply.status)
        self.send_header("content-type", "application/json")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body) + (10**6 if reply.trickle else 0)))
        self.end_headers()
        if reply.trickle:
            while not self.server.closed.wait(0.02):
                self.wfile.write(b" ")
            return
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def _completion(request: Request, reply: Reply) -> bytes:
    if reply.status != 200:
        return json.dumps({"error": {"message": reply.text, "type": "error"}}).encode()
    message = {"role": "assistant", "content": reply.text}
    told = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request.body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    return json.dumps(told).encode()


@contextmanager
def serving(script: Script) -> Iterator[ChatServer]:
    """The server, as long as the context lasts."""
    server = ChatServer(script)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.closed.set()
        server.shutdown()
        thread.join(60)
        server.server_close()
