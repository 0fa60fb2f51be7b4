"""A request: what to ask the configured model for, as `NAME.request.yaml` in the inbox says it; and
asking for a response until there is one that can be read.

    files: [src/login.py, {path: src/big.py, line: 340, reach: 40}]
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from patchq.core import formats
from patchq.core.formats.envelope import front_matter
from patchq.core.formats.envelope.front_matter import Split, read_header
from patchq.core.formats.envelope.opening import open_response
from patchq.core.model.names import suggestion
from patchq.core.model.values import Attempt, Envelope, Generation, Header, Problem
from patchq.core.text import yamlio
from patchq.core.text.quote import clip, visible
from patchq.core.text.yamlio import Misfit
from patchq.llm import prompts
from patchq.llm.client import Answer, Message, Model
from patchq.llm.prompts import BUDGET, FORMS, Prompt, Task

KEYS = ("files", "task", "form", "mode", "target", "base", "tests", "reference", "retries")
MOST_FILES = 50
_LONGEST_TASK = 64 * 1024
_LONGEST_REFERENCE = 1024 * 1024


class RequestedFile(Struct, frozen=True):
    """A file to change: `line` (1-based) is where, and `reach` how many lines before and behind it
    the model is shown, if they are named."""

    path: str
    line: int | None = None
    reach: int | None = None


class Request(Struct, frozen=True):
    """Content of a request file."""

    files: tuple[RequestedFile, ...] = ()
    task: str = ""
    form: str = "auto"
    mode: str | None = None
    target: str | None = None
    base: str | None = None
    tests: tuple[str, ...] = ()
    reference: str = ""
    retries: str | None = None


def write(request: Request) -> bytes:
    """The request as a file; `read` gives it back."""
    files = [
        {key: value for key, value in asdict(file).items() if value is not None}
        for file in request.files
    ]
    lines = asdict(request) | {"files": files}
    return "".join(f"{k}: {json.dumps(v)}\n" for k, v in lines.items() if v).encode()


def read(data: bytes) -> Request | tuple[Problem, ...]:
    """Return the request in a file, or everything that is wrong with it."""
    try:
        root = yamlio.parse(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return (
            Problem(
                "response.not_text",
                f"the request is not UTF-8 text: byte {error.start}",
                "send it as UTF-8",
                line=data.count(b"\n", 0, error.start) + 1,
            ),
        )
    except yamlio.YamlError as error:
        what = f"{error.message} (column {error.column})"
        return (_flaw(f"the request is not YAML: {what}", error.line),)
    if not isinstance(root, yamlio.Mapping):
        return (_flaw("the request is not a list of `key: value` lines", root.line if root else 1),)
    values, flaws = yamlio.read_entries(root, _READ)
    problems = [_problem(flaw) for flaw in flaws]
    if not problems and "retries" not in values:
        problems = [
            _flaw(f"the request says no `{key}`", 1)
            for key in ("files", "task")
            if not values.get(key)
        ]
    return tuple(problems) or Request(**values)


def _problem(flaw: yamlio.EntryFlaw) -> Problem:
    name, line = flaw.key.text, flaw.key.line
    if flaw.expected:
        wanted = f"expected {flaw.expected}, got {yamlio.describe(flaw.value)}"
        return _flaw(f"`{name}`: {wanted}", flaw.value.line)
    if flaw.first is not None:
        return Problem(
            "frontmatter.duplicate_key", f"`{name}` is given twice", "keep one of them", line=line
        )
    return Problem(
        "frontmatter.unknown_key",
        f"a request has no key {yamlio.describe(flaw.key)}",
        suggestion(name, KEYS, f"the keys are {', '.join(KEYS)}"),
        line=line,
    )


def _flaw(message: str, line: int) -> Problem:
    hint = "correct the request and drop it again; its keys are " + ", ".join(KEYS)
    return Problem("frontmatter.value", message, hint, line=line)


def _text(node: yamlio.Node, what: str = "text", most: int = _LONGEST_TASK) -> str:
    if not isinstance(node, yamlio.Scalar) or node.value is None or not node.text.strip():
        raise Misfit(what)
    if len(node.text) > most or "\0" in node.text:
        raise Misfit(f"at most {most} characters, none of them NUL")
    return node.text


def _word(node: yamlio.Node, words: Sequence[str]) -> str:
    if not isinstance(node, yamlio.Scalar) or node.text not in words:
        raise Misfit(f"one of {', '.join(words)}")
    return node.text


def _files(node: yamlio.Node) -> tuple[RequestedFile, ...]:
    found = tuple(map(_file, _items(node)))
    if len({file.path for file in found}) < len(found):
        raise Misfit("each file once")
    return found


def _items(node: yamlio.Node) -> tuple[yamlio.Node, ...]:
    items = node.items if isinstance(node, yamlio.Sequence) else (node,)
    if not 0 < len(items) <= MOST_FILES:
        raise Misfit(f"1 to {MOST_FILES} paths")
    return items


def _file(node: yamlio.Node) -> RequestedFile:
    if not isinstance(node, yamlio.Mapping):
        return RequestedFile(_text(node, "paths"))
    entries = {key.text: value for key, value in node.entries}
    numbers = {key: _number(entries[key]) for key in ("line", "reach") if key in entries}
    if (
        entries.keys() - {"path", "line", "reach"}
        or "path" not in entries
        or None in numbers.values()
        or ("reach" in numbers and "line" not in numbers)
    ):
        raise Misfit("`{path: …, line: …, reach: …}` with numbers from 1, `reach` only with `line`")
    return RequestedFile(_text(entries["path"], "a path"), **numbers)


def _number(node: yamlio.Node) -> int | None:
    value = node.value if isinstance(node, yamlio.Scalar) else None
    is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_number and isinstance(value, int) else None


_READ: dict[str, Callable[[yamlio.Node], Any]] = {
    "files": _files,
    "task": _text,
    "form": partial(_word, words=FORMS),
    "mode": partial(_word, words=("review", "auto")),
    "target": _text,
    "base": _text,
    "reference": partial(_text, most=_LONGEST_REFERENCE),
    "tests": lambda node: tuple(_text(item, "paths") for item in _items(node)),
    "retries": _text,
}


_LEAST_BUDGET = 4_000


class Query(Struct, frozen=True):
    """Question to a model:

    a task, or a prompt that is sent as it is; and the header of the response. `max_attempts` is how
    often it is asked again in diff mode.
    """

    task: Task | None
    prompt: str = ""
    base: str | None = None
    target: str | None = None
    retries: str | None = None
    mode: str | None = None
    max_attempts: int = 3
    known: frozenset[str] = frozenset()


class Reply(Struct, frozen=True):
    """The response, None if there is none, and how it was made."""

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
            return Reply(None, Generation(tuple(attempts), (answer,), by_hand(query), query.mode))
        data = enveloped(answer, query)
        problems = unreadable(data, query.known) if answer.whole else (_cut(answer),)
        if not problems:
            break
    return Reply(data, Generation(tuple(attempts), problems, None, query.mode, prompt.candidates))


def by_hand(query: Query) -> str:
    """The prompt as a report can carry it, for who sends it by hand."""
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
    """Return why a response cannot be read;

    empty if it holds edits. `known` are paths that exist.
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
    """The answer as a response, with the front matter that says what it answers.

    Half a surrogate pair, which no file can hold, becomes bytes that are no text, and is refused.
    """
    own, text = _own_header(answer.text)
    header: Mapping[str, str | None] = {
        "target": query.target,
        "base": query.base,
        "message": own.message,
        "agent": "patchq",
        "model": visible(clip(answer.model, 200)),
        "retries": query.retries,
    }
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in header.items() if value]
    return f"---\n{''.join(lines)}---\n{text}".encode("utf-8", "surrogatepass")


def _own_header(text: str) -> tuple[Header, str]:
    """Return the header that the model put before its edits, and the rest."""
    found = front_matter.split(text)
    if not isinstance(found, Split):
        return Header(), text
    header = read_header(found)
    return header if isinstance(header, Header) else Header(), found.body
