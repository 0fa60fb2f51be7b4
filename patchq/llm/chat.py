"""A model behind a server that speaks Chat Completions, asked through the `openai` package.

One number bounds a question: `llm.timeout_seconds` holds for all of it, tries and pauses and the
wait for a free place included.  The call runs in an event loop of its own, since only there can it
be cut short at any moment: by that bound, however slowly the bytes trickle in, or by `Stop`.

The key is read from the environment, sent to the server, and written nowhere: what a server says
about a failure is quoted without it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import BoundedSemaphore
from time import monotonic
from typing import TYPE_CHECKING, Any

from patchq.config.schema import Llm
from patchq.llm.client import Answer, Message, Stop
from patchq.model.values import Problem
from patchq.text.quote import clip, visible

if TYPE_CHECKING:
    import openai

AT_ONCE = 4
"""Calls that may run at the same time."""
_RETRIES = 3
_MOST_BYTES = 4 << 20
_NO_KEY = "none"


class Chat:
    """The model that `config` names; see `client.Model`."""

    def __init__(self, config: Llm, stop: Stop | None = None) -> None:
        self.name = config.model or ""
        self._config = config
        self._stop = stop or Stop()
        self._places = BoundedSemaphore(AT_ONCE)

    def complete(self, messages: Sequence[Message]) -> Answer | Problem:
        deadline = monotonic() + self._config.timeout_seconds
        key = self._key()
        if isinstance(key, Problem):
            return key
        if not self._places.acquire(timeout=self._config.timeout_seconds):
            return self._too_late()
        try:
            return asyncio.run(self._complete(messages, key, deadline))
        finally:
            self._places.release()

    def _key(self) -> str | Problem:
        """The key to send, or what is missing for asking at all."""
        config = self._config
        if not config.model or not config.base_url:
            missing = "model" if not config.model else "base_url"
            return _not_configured(f"`llm.{missing}` is not set", f"set `llm.{missing}`")
        try:
            import openai  # noqa: F401
        except ImportError as error:
            return _not_configured(
                f"the package {error.name!r} is not installed", "pip install 'patchq[llm]'"
            )
        if config.api_key_env is None:
            return _NO_KEY
        key = os.environ.get(config.api_key_env, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            return _not_configured(
                f"the variable {config.api_key_env}, which `llm.api_key_env` names, holds no key",
                f"start patchq with {config.api_key_env} in its environment",
            )
        return key

    async def _complete(
        self, messages: Sequence[Message], key: str, deadline: float
    ) -> Answer | Problem:
        loop, question = asyncio.get_running_loop(), asyncio.current_task()
        assert question is not None

        def cut_short() -> None:
            loop.call_soon_threadsafe(question.cancel)

        try:
            with self._stop.listening(cut_short):
                async with asyncio.timeout(deadline - monotonic()):
                    return await self._ask(messages, key, deadline)
        except TimeoutError:
            return self._too_late()
        except asyncio.CancelledError:
            if not self._stop.is_set:
                raise
            return Problem(
                "llm.timeout", "patchq was told to stop, and waits for no model", "ask again"
            )

    async def _ask(
        self, messages: Sequence[Message], key: str, deadline: float
    ) -> Answer | Problem:
        """Ask until there is an answer, as often and with such pauses as the client has them."""
        import openai

        async def heed(response: Any) -> None:
            if monotonic() + _pause(response.headers) >= deadline:
                response.headers["x-should-retry"] = "false"

        turns: Any = [{"role": message.role, "content": message.text} for message in messages]
        try:
            async with openai.AsyncOpenAI(
                api_key=key,
                base_url=self._config.base_url,
                max_retries=_RETRIES,
                timeout=None,
                http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [heed]}),
            ) as client:
                raw = await client.chat.completions.with_raw_response.create(
                    model=self.name, messages=turns
                )
        except openai.APIStatusError as error:
            return _refusal(error, key)
        except openai.APIConnectionError as error:
            why = type(error.__cause__ or error).__name__
            return Problem(
                "llm.server",
                f"the server at {self._config.base_url} could not be reached, or broke off ({why})",
                "look at `llm.base_url` and at the server, then ask again",
            )
        except (openai.OpenAIError, ValueError) as error:
            why = f"the question could not be sent ({type(error).__name__})"
            return Problem("llm.server", why, "look at `llm` in the configuration")
        return self._read(raw.http_response.content)

    def _read(self, body: bytes) -> Answer | Problem:
        """The answer in the body of a response."""
        if len(body) > _MOST_BYTES:
            return _no_answer(f"it has {len(body)} bytes")
        try:
            completion = json.loads(body)
            choice = completion["choices"][0]
            text, stop = choice["message"]["content"], choice.get("finish_reason")
            model = completion.get("model")
        except (ValueError, RecursionError):
            return _no_answer("it is no JSON")
        except (LookupError, TypeError, AttributeError):
            return _no_answer("it holds no choice with a message")
        if not isinstance(text, str):
            return _no_answer("its message holds no text")
        return Answer(
            text,
            stop if isinstance(stop, str) else "unknown",
            model if isinstance(model, str) else self.name,
        )

    def _too_late(self) -> Problem:
        seconds = self._config.timeout_seconds
        return Problem(
            "llm.timeout",
            f"the model did not answer within {seconds:g} seconds (`llm.timeout_seconds`)",
            "ask again with fewer files, or raise `llm.timeout_seconds`",
        )


def _refusal(error: openai.APIStatusError, key: str) -> Problem:
    """What the server's status says."""
    text = visible(clip(str(error.message), 300).replace(key, "…"))
    if error.status_code == 429:
        return Problem(
            "llm.rate_limited",
            f"the server takes no more requests for now: {text}",
            "ask again later",
        )
    return Problem(
        "llm.server",
        f"the server answered with status {error.status_code}: {text}",
        "look at the server, and at `llm.model` and `llm.api_key_env`, then ask again",
    )


def _pause(headers: Mapping[str, str]) -> float:
    """The seconds that a server asks to wait, a number or a date; one, where it names none."""
    wanted = headers.get("retry-after", "").strip()
    try:
        return float(wanted)
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(wanted) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return 1.0


def _not_configured(what: str, hint: str) -> Problem:
    return Problem("llm.not_configured", f"no model can be asked: {what}", hint)


def _no_answer(why: str) -> Problem:
    return Problem(
        "llm.answer",
        f"what the server sent is not an answer: {why}",
        "ask again; if it stays so, the server does not speak Chat Completions",
    )
