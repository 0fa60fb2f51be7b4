"""Asking for a response until there is one that can be read.

A cut answer, or one that cannot be read, is answered by asking again, in diff mode and with less
context each time, and at last for whole files.  Every attempt is told; a cut answer is never used,
even if it happens to read well.  The envelope is patchq's: of what the model says of its own
answer, only the message counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from patchq import formats
from patchq.formats.envelope.opening import open_response, read_header, split
from patchq.llm import prompts
from patchq.llm.client import Answer, Message, Model
from patchq.llm.prompts import BUDGET, Prompt, Task
from patchq.model.generation import Generation
from patchq.model.values import Attempt, Envelope, Header, Problem
from patchq.text.quote import clip, visible

AGENT = "patchq"
_LEAST_BUDGET = 4_000
_FENCED_HEADER = re.compile(r"\A\s*(`{3,})[a-z]*\n(---\n(?:.*\n)*?---\n)\1[ \t]*(?:\n|\Z)")
_TRUNCATED_HINT = "ask for less at once: fewer files, or a task in smaller steps"


@dataclass(frozen=True, slots=True)
class Query:
    """What to ask for: a task, or a prompt that is sent as it stands; and what patchq says of the
    response.  `max_attempts` is how often it is asked again in diff mode."""

    task: Task | None
    prompt: str = ""
    base: str | None = None
    target: str | None = None
    retries: str | None = None
    mode: str | None = None
    max_attempts: int = 3
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Reply:
    """The response, None if there is none, and what is told of it."""

    data: bytes | None
    generation: Generation


def ask(query: Query, model: Model) -> Reply:
    """Ask until an answer can be read, or the attempts are used up.  It blocks; it knows neither
    the repository nor the queue, so it may run in a thread of its own."""
    attempts: list[Attempt] = []
    data: bytes | None = None
    problems: tuple[Problem, ...] = ()
    prompt = Prompt("", "diff")
    for form, budget in _forms(query):
        prompt = _prompt(query, form, budget, problems)
        answer = model.complete([Message("user", prompt.text)])
        end = answer.code if isinstance(answer, Problem) else answer.stop
        attempts.append(Attempt(len(attempts) + 1, prompt.form, clip(visible(end), 60)))
        if isinstance(answer, Problem):
            generation = Generation(tuple(attempts), (answer,), by_hand(query), query.mode)
            return Reply(None, generation)
        data = enveloped(answer, query)
        problems = unreadable(data, query.known) if answer.whole else (_cut(answer),)
        if not problems:
            break
    generation = Generation(tuple(attempts), problems, None, query.mode, prompt.candidates)
    return Reply(data, generation)


def by_hand(query: Query) -> str:
    """The prompt as a report can carry it, for who sends it by hand."""
    return (
        query.prompt if query.task is None else prompts.build(query.task, budget=BUDGET // 2).text
    )


def _forms(query: Query) -> Iterator[tuple[str | None, int]]:
    """The form (None: the task's own) and the budget of each attempt."""
    yield None, BUDGET
    budget = BUDGET
    for _ in range(query.max_attempts):
        budget = max(budget // 2, _LEAST_BUDGET)
        yield "diff", budget
    if query.task is not None:
        yield "whole", BUDGET


def _prompt(query: Query, form: str | None, budget: int, problems: Sequence[Problem]) -> Prompt:
    flaw = problems[0].message if problems else ""
    if query.task is not None:
        return prompts.build(query.task, form=form, budget=budget, flaw=flaw)
    again = f"\n\nYour last answer could not be used: {flaw}\n" if flaw else ""
    return Prompt(query.prompt + again, "diff")


def _cut(answer: Answer) -> Problem:
    return Problem(
        "response.truncated",
        f"the model {answer.model} stopped for the reason {answer.stop!r}, before the end of its "
        "answer; nothing of a cut answer is applied",
        _TRUNCATED_HINT,
    )


def unreadable(data: bytes, known: frozenset[str] = frozenset()) -> tuple[Problem, ...]:
    """Why a response cannot be read; empty if it holds edits.  `known` are paths that exist."""
    envelope = open_response(data)
    if not isinstance(envelope, Envelope):
        return envelope
    parsed = formats.parse(envelope.text, known.__contains__, None, envelope.first_line)
    errors = tuple(problem for problem in parsed.problems if problem.severity == "error")
    if errors or parsed.edits:
        return errors
    hint = "ask again, and say what to change where"
    return (Problem("response.no_edits", "the answer holds no edit", hint),)


def enveloped(answer: Answer, query: Query) -> bytes:
    """The answer as a response, with the front matter that says what it answers.

    Half a surrogate pair, which no file can hold, becomes bytes that are no text, and is refused.
    """
    own, text = _own_header(answer.text)
    header: Mapping[str, str | None] = {
        "target": query.target,
        "base": query.base,
        "message": own.message,
        "agent": AGENT,
        "model": visible(clip(answer.model, 200)),
        "retries": query.retries,
    }
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in header.items() if value]
    return f"---\n{''.join(lines)}---\n{text}".encode("utf-8", "surrogatepass")


def _own_header(text: str) -> tuple[Header, str]:
    """What the model put before its edits, and the rest."""
    text = _FENCED_HEADER.sub(r"\2", text, count=1)
    try:
        parts = split(text.lstrip().encode())
    except UnicodeEncodeError:
        return Header(), text
    if parts.block is None:
        return Header(), text
    header = read_header(parts.block, parts.body)
    return header if isinstance(header, Header) else Header(), parts.body.decode()
