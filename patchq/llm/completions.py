"""One question to a server that speaks Chat Completions, through the `openai` package.

The package takes its time to be imported, so this is imported with the first question.  The call
runs in an event loop of its own, since only there can it be cut short at any moment: by its
deadline, however slowly the bytes trickle in, or by `Stop`.  How often it is tried again, and after
what pauses, is the package's matter.

What a server says about a failure is quoted without the key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import Any

import openai

from patchq.core.model.values import Problem
from patchq.core.text.quote import clip, visible
from patchq.gate.config.schema import Llm
from patchq.llm.client import Answer, Message, Stop

_RETRIES = 3
_MOST_BYTES = 4 << 20


def complete(
    config: Llm, key: str, messages: Sequence[Message], deadline: float, stop: Stop
) -> Answer | Problem:
    return asyncio.run(_bounded(config, key, messages, deadline, stop))


async def _bounded(
    config: Llm, key: str, messages: Sequence[Message], deadline: float, stop: Stop
) -> Answer | Problem:
    loop, question = asyncio.get_running_loop(), asyncio.current_task()
    assert question is not None
    try:
        with stop.listening(partial(loop.call_soon_threadsafe, question.cancel)):
            async with asyncio.timeout(deadline - monotonic()):
                return await _ask(config, key, messages)
    except TimeoutError:
        return too_late(config)
    except asyncio.CancelledError:
        if not stop.is_set:
            raise
        return Problem("llm.timeout", "patchq is stopping, and waits for no model", "ask again")


async def _ask(config: Llm, key: str, messages: Sequence[Message]) -> Answer | Problem:
    turns: Any = [{"role": message.role, "content": message.text} for message in messages]
    try:
        async with openai.AsyncOpenAI(
            api_key=key, base_url=config.base_url, max_retries=_RETRIES, timeout=None
        ) as client:
            raw = await client.chat.completions.with_raw_response.create(
                model=config.model or "", messages=turns
            )
    except openai.APIStatusError as error:
        return _refusal(error, key)
    except openai.APIConnectionError as error:
        why = type(error.__cause__ or error).__name__
        return Problem(
            "llm.server",
            f"the server at {config.base_url} could not be reached, or broke off ({why})",
            "look at `llm.base_url` and at the server, then ask again",
        )
    except (openai.OpenAIError, ValueError) as error:
        return Problem(
            "llm.server",
            f"the question could not be sent ({type(error).__name__})",
            "look at `llm` in the configuration",
        )
    return _read(raw.http_response.content, config.model or "")


def _refusal(error: openai.APIStatusError, key: str) -> Problem:
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


def _read(body: bytes, name: str) -> Answer | Problem:
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
        model if isinstance(model, str) else name,
    )


def too_late(config: Llm) -> Problem:
    return Problem(
        "llm.timeout",
        f"the model did not answer within {config.timeout_seconds:g} seconds "
        "(`llm.timeout_seconds`)",
        "ask again with fewer files, or raise `llm.timeout_seconds`",
    )


def _no_answer(why: str) -> Problem:
    return Problem(
        "llm.answer",
        f"what the server sent is not an answer: {why}",
        "ask again; if it stays so, the server does not speak Chat Completions",
    )
