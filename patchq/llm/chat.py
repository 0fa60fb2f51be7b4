"""One question to a model behind a Chat Completions server, through the `openai` package.

What goes wrong is a value, a `Problem` with one of the `llm.*` codes: a model may be slow, wrong or
away at any time, and no verdict depends on its being there.

One number bounds a question: `llm.timeout_seconds` holds for all of it, tries and pauses and the
wait for a free place included.  The call runs in an event loop of its own, since only there can it
be cut short at any moment: by its deadline, however slowly the bytes trickle in, or by `Stop`.  The
package takes its time to be imported, so that is done with the first question.  The key is read
from the environment, sent to the server, and written nowhere.

Answers are known by the model, the file's content and the text in question: a batch that is decided
again, after a crash or on a moved branch, is corrected as before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore
from time import monotonic
from typing import Any, Literal

from msgspec import Struct, convert

from patchq.core.model.values import Problem
from patchq.core.text.quote import clip, visible
from patchq.gate.config.schema import Llm
from patchq.gate.queue.shelf import Shelf

AT_ONCE = 4  # calls that may run at the same time
_NO_KEY = "none"
_RETRIES = 3
# The stop reasons of an answer that is whole.
NORMAL_ENDS = frozenset({"stop", "end_turn", "stop_sequence"})


class Message(Struct, frozen=True):
    role: Literal["system", "user", "assistant"]
    text: str


class Answer(Struct, frozen=True):
    """Text of the model, the reason why it stopped, and its name.

    `stop` is the reason as the server names it.
    """

    text: str
    stop: str
    model: str

    @property
    def whole(self) -> bool:
        return self.stop in NORMAL_ENDS


class Stop:
    """Signal to ask no more.

    `set` may be called from a signal handler, so it takes no lock; it calls all listeners.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._listeners: dict[object, Callable[[], object]] = {}

    def set(self) -> None:
        self.is_set = True
        for cut_short in tuple(self._listeners.values()):
            cut_short()

    @contextmanager
    def listening(self, cut_short: Callable[[], object]) -> Iterator[None]:
        """Have `cut_short` called if it comes to that, at once if it has."""
        key = object()
        self._listeners[key] = cut_short
        try:
            if self.is_set:
                cut_short()
            yield
        finally:
            del self._listeners[key]


class Chat:
    """The model that `config` names, which may be asked from several threads at once."""

    def __init__(self, config: Llm, stop: Stop | None = None) -> None:
        self.name = config.model or ""
        self._config, self._stop = config, stop or Stop()
        self._places = BoundedSemaphore(AT_ONCE)

    def complete(self, messages: Sequence[Message]) -> Answer | Problem:
        """Return the answer, or why there is none (`llm.*`), within a bounded time."""
        config, variable = self._config, self._config.api_key_env
        if not config.model or not config.base_url:
            missing = "model" if not config.model else "base_url"
            return _not_configured(f"`llm.{missing}` is not set", f"set `llm.{missing}`")
        try:
            import asyncio

            import openai  # noqa: F401
        except ImportError as error:
            return _not_configured(
                f"the package {error.name!r} is not installed", "pip install 'patchq[llm]'"
            )
        # The package's import is none of the model's time.
        deadline = monotonic() + config.timeout_seconds
        key = _NO_KEY if variable is None else os.environ.get(variable, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            return _not_configured(
                f"the variable {variable}, which `llm.api_key_env` names, holds no key",
                f"start patchq with {variable} in its environment",
            )
        if not self._places.acquire(timeout=config.timeout_seconds):
            return _too_late(config)
        try:
            return asyncio.run(_bounded(config, key, messages, deadline, self._stop))
        finally:
            self._places.release()


def _not_configured(what: str, hint: str) -> Problem:
    return Problem("llm.not_configured", f"no model can be asked: {what}", hint)


async def _bounded(
    config: Llm, key: str, messages: Sequence[Message], deadline: float, stop: Stop
) -> Answer | Problem:
    import asyncio

    loop, question = asyncio.get_running_loop(), asyncio.current_task()
    assert question is not None
    try:
        with stop.listening(partial(loop.call_soon_threadsafe, question.cancel)):
            async with asyncio.timeout(deadline - monotonic()):
                return await _ask(config, key, messages)
    except TimeoutError:
        return _too_late(config)
    except asyncio.CancelledError:
        if not stop.is_set:
            raise
        return Problem("llm.timeout", "patchq is stopping, and waits for no model", "ask again")


async def _ask(config: Llm, key: str, messages: Sequence[Message]) -> Answer | Problem:
    import openai

    turns: Any = [{"role": message.role, "content": message.text} for message in messages]
    try:
        async with openai.AsyncOpenAI(
            api_key=key, base_url=config.base_url, max_retries=_RETRIES, timeout=None
        ) as client:
            completion: Any = await client.chat.completions.create(
                model=config.model or "", messages=turns
            )
        choice = completion.choices[0]
        stop, model = choice.finish_reason or "unknown", completion.model or config.model
        return convert({"text": choice.message.content, "stop": stop, "model": model}, Answer)
    except openai.APIStatusError as error:
        # A server may quote the key in what it says.
        text = visible(clip(str(error.message), 300).replace(key, "…"))
        code = "llm.rate_limited" if error.status_code == 429 else "llm.server"
        why = f"the server answered with status {error.status_code}: {text}"
        return Problem(code, why, "look at the server and at `llm`, then ask again")
    except openai.OpenAIError as error:
        what = type(error.__cause__ or error).__name__
        why = f"the server at {config.base_url} could not be asked, or broke off ({what})"
        return Problem(
            "llm.server", why, "look at `llm.base_url` and at the server, then ask again"
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        # The package checks nothing of what a server sends.
        why = "what the server sent is not an answer"
        hint = "ask again; if it stays so, the server does not speak Chat Completions"
        return Problem("llm.answer", why, hint)


def _too_late(config: Llm) -> Problem:
    return Problem(
        "llm.timeout",
        f"the model did not answer within {config.timeout_seconds:g} seconds "
        "(`llm.timeout_seconds`)",
        "ask again with fewer files, or raise `llm.timeout_seconds`",
    )


_MOST_IN_MEMORY = 1000
_MOST_KEPT = 256


class Cache:
    """Answers by their names (`spool.digest`), in memory and in the store of a queue."""

    def __init__(self, root: Path | None = None) -> None:
        self._shelf = Shelf(root, "answer", _MOST_KEPT) if root else None
        self._known: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        if name not in self._known and self._shelf and (kept := self._shelf.get(name)):
            return kept.decode()
        return self._known.get(name)

    def put(self, name: str, text: str) -> None:
        if len(self._known) >= _MOST_IN_MEMORY:
            self._known.clear()
        self._known[name] = text
        if self._shelf:
            self._shelf.put(name, text.encode())
