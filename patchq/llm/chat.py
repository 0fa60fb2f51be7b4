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
from collections.abc import Sequence
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
_TRIES = 4
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 20.0
_MOST_BYTES = 4 << 20
_NO_KEY = "none"
_BUSY = {408, 409}
"""Client errors that servers mean as "not now"."""


class _Failed(Exception):
    """A try that failed; `again` is how many seconds to wait before the next (True: as ever)."""

    def __init__(self, problem: Problem, again: float | bool = False) -> None:
        super().__init__(problem.code)
        self.problem = problem
        self.again = again


class Chat:
    """The model that `config` names; see `client.Model`."""

    def __init__(self, config: Llm, stop: Stop | None = None, pause: float = _FIRST_PAUSE) -> None:
        """`pause` is the seconds before the second try; later ones wait longer."""
        self.name = config.model or ""
        self._config = config
        self._stop = stop or Stop()
        self._pause = pause
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
            import stamina  # noqa: F401
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

        failed: list[Problem] = []
        try:
            with self._stop.listening(cut_short):
                async with asyncio.timeout(deadline - monotonic()):
                    return await self._tries(messages, key, deadline, failed)
        except _Failed as error:
            return error.problem
        except TimeoutError:
            return failed[0] if failed else self._too_late()
        except asyncio.CancelledError:
            if not self._stop.is_set:
                raise
            return Problem(
                "llm.timeout", "patchq was told to stop, and waits for no model", "ask again"
            )

    async def _tries(
        self, messages: Sequence[Message], key: str, deadline: float, failed: list[Problem]
    ) -> Answer:
        """Ask until there is an answer; raises `_Failed`.  Between two tries, `failed` holds what
        was wrong with the last."""
        import openai
        import stamina

        def again(error: Exception) -> bool | float:
            if not isinstance(error, _Failed) or monotonic() + error.again >= deadline:
                return False
            return error.again

        client = openai.AsyncOpenAI(
            api_key=key, base_url=self._config.base_url, max_retries=0, timeout=None
        )
        tries = stamina.retry_context(
            again,
            attempts=_TRIES,
            timeout=None,
            wait_initial=self._pause,
            wait_max=_LONGEST_PAUSE,
            wait_jitter=self._pause,
        )
        async with client:
            async for attempt in tries:
                failed.clear()
                with attempt:
                    try:
                        return await self._try(client, messages, key)
                    except _Failed as error:
                        failed.append(error.problem)
                        raise
        raise AssertionError("the tries end with an answer or an error")

    async def _try(
        self, client: openai.AsyncOpenAI, messages: Sequence[Message], key: str
    ) -> Answer:
        import openai

        turns: Any = [{"role": message.role, "content": message.text} for message in messages]
        try:
            raw = await client.chat.completions.with_raw_response.create(
                model=self.name, messages=turns
            )
        except openai.APIStatusError as error:
            raise self._refused(error, key) from None
        except openai.APIConnectionError as error:
            why = type(error.__cause__ or error).__name__
            raise _Failed(
                Problem(
                    "llm.server",
                    f"the server at {self._config.base_url} could not be reached, or broke off "
                    f"({why})",
                    "look at `llm.base_url` and at the server, then ask again",
                ),
                again=True,
            ) from None
        except (openai.OpenAIError, ValueError) as error:
            why = f"the question could not be sent ({type(error).__name__})"
            raise _Failed(
                Problem("llm.server", why, "look at `llm` in the configuration")
            ) from None
        return self._read(raw.http_response.content)

    def _refused(self, error: openai.APIStatusError, key: str) -> _Failed:
        """What the server's status says, and whether to ask again."""
        status = error.status_code
        said = visible(clip(str(error.message), 300).replace(key, "…"))
        if status == 429:
            pause = _retry_after(error.response.headers)
            problem = Problem(
                "llm.rate_limited",
                f"the server takes no more requests for now: {said}",
                "ask again later",
            )
            return _Failed(problem, again=True if pause is None else pause)
        problem = Problem(
            "llm.server",
            f"the server answered with status {status}: {said}",
            "look at the server, and at `llm.model` and `llm.api_key_env`, then ask again",
        )
        if status < 500 and status not in _BUSY:
            return _Failed(problem)
        pause = _retry_after(error.response.headers)
        return _Failed(problem, again=True if pause is None else pause)

    def _read(self, body: bytes) -> Answer:
        """The answer in the body of a response; raises `_Failed`."""
        if len(body) > _MOST_BYTES:
            raise _Failed(_no_answer(f"it has {len(body)} bytes"))
        try:
            told = json.loads(body)
            choice = told["choices"][0]
            text, stop = choice["message"]["content"], choice.get("finish_reason")
            model = told.get("model")
        except (ValueError, RecursionError):
            raise _Failed(_no_answer("it is no JSON")) from None
        except (LookupError, TypeError, AttributeError):
            raise _Failed(_no_answer("it holds no choice with a message")) from None
        if not isinstance(text, str):
            raise _Failed(_no_answer("its message holds no text"))
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


def _retry_after(headers: Any) -> float | None:
    """The seconds that the server asks to wait: a number, or a date."""
    said = headers.get("retry-after", "").strip()
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if seconds == seconds else None


def _not_configured(what: str, hint: str) -> Problem:
    return Problem("llm.not_configured", f"no model can be asked: {what}", hint)


def _no_answer(why: str) -> Problem:
    return Problem(
        "llm.answer",
        f"what the server sent is not an answer: {why}",
        "ask again; if it stays so, the server does not speak Chat Completions",
    )
