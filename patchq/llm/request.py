"""A request to the configured model: the file `NAME.request.yaml` in the inbox.

The model is asked until there is a response that can be read.

    files: [src/login.py, {path: src/big.py, line: 340}]
    task: Lock an account after five wrong passwords
    form: auto            # diff, edit-script, indexed, contextual, whole
    mode: review          # never apply it unseen; `auto` is the configuration's to allow
    target: main
    base: 3f2a9c1         # default: the target's tip
    tests: [tests/test_login.py]
    reference: |          # a patch that shows what is meant
      --- a/src/login.py
      ...

`retries: ID`, instead of files and a task, sends the retry prompt of a refused batch.

A cut answer, or one that cannot be read, is answered by asking again, in diff mode and with less
context each time, and at last for whole files.  Every attempt is reported; a cut answer is never
used, even if it happens to read well.  The envelope is patchq's: of what the model says of its own
answer, only the message counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, to_builtins

from patchq.core import formats
from patchq.core.formats.envelope import front_matter
from patchq.core.formats.envelope.front_matter import Split, open_response, read_header
from patchq.core.model.values import Attempt, Envelope, Generation, Header, Problem
from patchq.core.text.quote import clip, visible
from patchq.gate.config import config_file
from patchq.gate.config.schema import Count, Section, Text, check, takes
from patchq.llm import prompts
from patchq.llm.chat import Answer, Chat, Message
from patchq.llm.prompts import BUDGET, FormChoice, Prompt, Task

MOST_FILES = 50


def _words(most: int) -> Meta:
    return takes(f"text of at most {most} characters", r"(?!\s*\Z)[^\0]*", max_length=most)


class RequestedFile(Section):
    """A file to change, and the line of the change, if known."""

    shorthand = "path"
    path: Text
    line: Count | None = None


def _each_once(files: tuple[RequestedFile, ...]) -> str | None:
    once = 0 < len({file.path for file in files}) == len(files) <= MOST_FILES
    return None if once else f"1 to {MOST_FILES} paths, each once"


class Request(Section):
    files: Annotated[tuple[RequestedFile, ...], check(_each_once)] = ()
    task: Annotated[str, _words(64 * 1024)] = ""
    form: FormChoice = "auto"
    mode: Literal["review", "auto"] | None = None
    target: Text | None = None
    base: Text | None = None
    tests: tuple[Text, ...] = ()
    reference: Annotated[str, _words(1024 * 1024)] = ""
    retries: Text | None = None


def write(request: Request) -> bytes:
    values = to_builtins(request).items()
    return "".join(f"{k}: {json.dumps(v)}\n" for k, v in values if v).encode()


def read(data: bytes) -> Request | tuple[Problem, ...]:
    """Return the request in a file, or all problems with it."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the request is not UTF-8 text: byte {error.start}"
        return (Problem("response.not_text", message, "send it as UTF-8", line=line),)
    request, flaws = config_file.read(data, Request)
    if request and (request.retries or (request.files and request.task)):
        return request
    keys = ", ".join(Request.__struct_fields__)
    hint = f"correct the request and drop it again; its keys are {keys}"
    return tuple(
        Problem("frontmatter.value", f"the request is wrong: {what}", hint, line=line)
        for line, _, what in flaws or [(1, 1, "it lacks `files` or `task`")]
    )


_LEAST_BUDGET = 4_000


class Query(Struct, frozen=True):
    """A question to a model: a task or a prompt, and the response's header.

    `prompt` is sent as it is.  `max_attempts` is the number of times it is asked again in diff
    mode.
    """

    task: Task | None
    prompt: str = ""
    base: str | None = None
    target: str | None = None
    retries: str | None = None
    mode: str | None = None
    max_attempts: int = 3
    known: frozenset[str] = frozenset()


Reply = tuple[bytes | None, Generation]


def ask(query: Query, model: Chat) -> Reply:
    """Ask until an answer can be read, or the attempts are used up.

    It blocks; it knows neither the repository nor the queue, so it may run in a thread of its own.
    """
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
            return None, Generation(tuple(attempts), (answer,), by_hand(query), query.mode)
        data = enveloped(answer, query)
        problems = unreadable(data, query.known) if answer.whole else (_cut(answer),)
        if not problems:
            break
    return data, Generation(tuple(attempts), problems, None, query.mode, prompt.candidates)


def by_hand(query: Query) -> str:
    """Return the prompt for a report, to be sent by hand."""
    return (
        query.prompt if query.task is None else prompts.build(query.task, budget=BUDGET // 2).text
    )


def _forms(query: Query) -> Iterator[tuple[str | None, int]]:
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
        "ask for less at once: fewer files, or a task in smaller steps",
    )


def unreadable(data: bytes, known: frozenset[str] = frozenset()) -> tuple[Problem, ...]:
    """Return the problems of an unreadable response; empty if it holds edits.

    `known` are paths that exist.
    """
    envelope = open_response(data)
    if not isinstance(envelope, Envelope):
        return envelope
    parsed = formats.parse(envelope.text, known.__contains__, envelope.header, envelope.first_line)
    errors = tuple(problem for problem in parsed.problems if problem.severity == "error")
    if errors or parsed.edits:
        return errors
    return (
        Problem(
            "response.no_edits",
            "the answer holds no edit",
            "ask again, and say what to change where",
        ),
    )


def enveloped(answer: Answer, query: Query) -> bytes:
    """Return the answer as a response, with front matter from the query.

    Half a surrogate pair, which no file can hold, becomes bytes that are no text, and is refused.
    """
    found = front_matter.split(answer.text)
    text = found.body if isinstance(found, Split) else answer.text
    own = read_header(found) if isinstance(found, Split) else None
    header: Mapping[str, str | None] = {
        "target": query.target,
        "base": query.base,
        "message": own.message if isinstance(own, Header) else None,
        "agent": "patchq",
        "model": visible(clip(answer.model, 200)),
        "retries": query.retries,
    }
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in header.items() if value]
    return f"---\n{''.join(lines)}---\n{text}".encode("utf-8", "surrogatepass")
