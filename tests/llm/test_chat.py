"""The client against a real server: answers, and everything that goes wrong with them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Thread

import pytest

from patchq.core.model.values import Problem
from patchq.gate.config.schema import Llm
from patchq.llm.chat import Answer, Chat, Message, Stop
from tests.helpers.chat_server import ChatServer, Reply, serving

KEY = "sk-very-secret-0123456789"
QUESTION = [Message("system", "Be brief."), Message("user", "What is there?")]


def chat(server: ChatServer, *, seconds: float = 30.0, stop: Stop | None = None) -> Chat:
    config = Llm(
        base_url=server.base_url, model="m-1", api_key_env="TEST_KEY", timeout_seconds=seconds
    )
    return Chat(config, stop)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setenv("TEST_KEY", KEY)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


def said(script: Sequence[Reply | str], seconds: float = 30.0) -> tuple[Answer | Problem, int]:
    """What comes of a question, and how often the server was asked."""
    with serving(script) as server:
        return chat(server, seconds=seconds).complete(QUESTION), len(server.requests)


def test_question_and_answer() -> None:
    with serving(["A file."]) as server:
        answer = chat(server).complete(QUESTION)
    assert answer == Answer("A file.", "stop", "m-1")
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "m-1"
    assert request.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is there?"},
    ]


FAILURES = {
    "rate limited for ever": ([Reply("slow down", status=429)], "llm.rate_limited", 4),
    "connection closed for ever": ([Reply(hang_up=True)], "llm.server", 4),
    "key refused": ([Reply("no such key", status=401)], "llm.server", 1),
    "JSON too deep": ([Reply(body=b"[" * 200_000)], "llm.answer", 1),
}


@pytest.mark.parametrize(("script", "code", "tries"), FAILURES.values(), ids=FAILURES.keys())
def test_failure_is_a_problem(script: list[Reply], code: str, tries: int) -> None:
    answer, asked = said(script)
    assert isinstance(answer, Problem)
    assert (answer.code, asked) == (code, tries)
    assert answer.hint


@pytest.mark.parametrize("reply", [Reply(slow=True), Reply(trickle=True)], ids=["slow", "trickle"])
def test_question_takes_no_longer_than_its_time(reply: Reply) -> None:
    answer, asked = said([reply], seconds=0.3)
    assert isinstance(answer, Problem)
    assert answer.code == "llm.timeout"
    assert asked <= 1  # on a busy machine the time may run out before the server hears of it


WHERE = "http://localhost:1/v1"
MISSING = {
    "llm.model": Llm(base_url=WHERE),
    "TEST_NO_KEY": Llm(base_url=WHERE, model="m-1", api_key_env="TEST_NO_KEY"),
}


@pytest.mark.parametrize("says", MISSING)
def test_what_is_missing_is_named(says: str) -> None:
    answer = Chat(MISSING[says]).complete(QUESTION)
    assert isinstance(answer, Problem)
    assert answer.code == "llm.not_configured"
    assert says in answer.message


def test_no_key_of_another_program_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "somebody-elses")
    with serving(["x"]) as server:
        Chat(Llm(base_url=server.base_url, model="m-1")).complete(QUESTION)
    assert "somebody-elses" not in str(server.requests[0].headers)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(f"Incorrect API key provided: {KEY}", status=401),
        Reply(body=f'{{"error": "{KEY}"}}'.encode()),
    ],
    ids=["401", "malformed"],
)
def test_key_is_in_no_log_and_no_problem(
    reply: Reply, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    answer, _ = said([reply])
    assert isinstance(answer, Problem)
    out, err = capfd.readouterr()
    assert KEY not in f"{answer!r}{caplog.text}{out}{err}"


def test_stop_cuts_a_question_short() -> None:
    stop = Stop()
    with serving([Reply(slow=True)]) as server:

        def tell() -> None:
            server.asked.wait(60)
            stop.set()

        teller = Thread(target=tell)
        teller.start()
        answer = chat(server, stop=stop).complete(QUESTION)
        teller.join(60)
        after = chat(server, stop=stop).complete(QUESTION)
        asked = len(server.requests)
    for cut in (answer, after):
        assert isinstance(cut, Problem)
        assert cut.code == "llm.timeout"
    assert asked == 1
