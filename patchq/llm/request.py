"""A request: what to ask the configured model for, as `NAME.request.yaml` in the inbox says it.

    files: [src/login.py, {path: src/big.py, line: 340}]
    task: Lock an account after five wrong passwords
    form: auto            # diff, edit-script, whole
    mode: review          # never apply it unseen; `auto` is the configuration's to allow
    target: main
    base: 3f2a9c1         # default: the target's tip
    tests: [tests/test_login.py]

`retries: ID`, instead of files and a task, sends the retry prompt of a refused batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from patchq.llm.prompts import FORMS
from patchq.model.names import nearest
from patchq.model.values import Problem
from patchq.text import yamlio
from patchq.text.yamlio import Misfit

KEYS = ("files", "task", "form", "mode", "target", "base", "tests", "retries")
MOST_FILES = 50
_LONGEST_TASK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for; `files` are paths with the line that the change is at, if one is named."""

    files: tuple[tuple[str, int | None], ...] = ()
    task: str = ""
    form: str = "auto"
    mode: str | None = None
    target: str | None = None
    base: str | None = None
    tests: tuple[str, ...] = ()
    retries: str | None = None


def write(request: Request) -> bytes:
    """The request as a file; `read` gives it back."""
    files = [{"path": path, "line": line} if line else path for path, line in request.files]
    lines = {**asdict(request), "files": files}
    return "".join(f"{k}: {json.dumps(v)}\n" for k, v in lines.items() if v).encode()


def read(data: bytes) -> Request | tuple[Problem, ...]:
    """What a request says, or everything that is wrong with it."""
    try:
        root = yamlio.parse(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the request is not UTF-8 text: byte {error.start}"
        return (Problem("response.not_text", message, "send it as UTF-8", line=line),)
    except yamlio.YamlError as error:
        message = f"the request is not YAML: {error.message} (column {error.column})"
        return (_flaw(message, error.line),)
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
        got = yamlio.describe(flaw.value)
        return _flaw(f"`{name}`: expected {flaw.expected}, got {got}", flaw.value.line)
    if flaw.first is not None:
        message, code = f"`{name}` stands twice", "frontmatter.duplicate_key"
        return Problem(code, message, "keep one of them", line=line)
    near = nearest(name, KEYS)
    hint = f"did you mean `{near}`?" if near else f"the keys are {', '.join(KEYS)}"
    message = f"a request has no key {yamlio.describe(flaw.key)}"
    return Problem("frontmatter.unknown_key", message, hint, line=line)


def _flaw(message: str, line: int) -> Problem:
    hint = "correct the request and drop it again; its keys are " + ", ".join(KEYS)
    return Problem("frontmatter.value", message, hint, line=line)


def _text(node: yamlio.Node, what: str = "text") -> str:
    if not isinstance(node, yamlio.Scalar) or node.value is None or not node.text.strip():
        raise Misfit(what)
    if len(node.text) > _LONGEST_TASK or "\0" in node.text:
        raise Misfit(f"at most {_LONGEST_TASK} characters, none of them NUL")
    return node.text


def _word(node: yamlio.Node, words: Sequence[str]) -> str:
    if not isinstance(node, yamlio.Scalar) or node.text not in words:
        raise Misfit(f"one of {', '.join(words)}")
    return node.text


def _files(node: yamlio.Node) -> tuple[tuple[str, int | None], ...]:
    found = tuple(map(_file, _items(node)))
    if len({path for path, _ in found}) < len(found):
        raise Misfit("each file once")
    return found


def _items(node: yamlio.Node) -> tuple[yamlio.Node, ...]:
    items = node.items if isinstance(node, yamlio.Sequence) else (node,)
    if not 0 < len(items) <= MOST_FILES:
        raise Misfit(f"1 to {MOST_FILES} paths")
    return items


def _file(node: yamlio.Node) -> tuple[str, int | None]:
    if not isinstance(node, yamlio.Mapping):
        return _text(node, "paths"), None
    entries = {key.text: value for key, value in node.entries}
    line = entries.get("line")
    number = line.value if isinstance(line, yamlio.Scalar) else None
    is_line = isinstance(number, int) and not isinstance(number, bool) and number > 0
    if (
        entries.keys() - {"path", "line"}
        or "path" not in entries
        or (line is not None and not is_line)
    ):
        raise Misfit("`{path: …, line: …}` with a line from 1")
    return _text(entries["path"], "a path"), number if isinstance(number, int) else None


_READ: dict[str, Callable[[yamlio.Node], Any]] = {
    "files": _files,
    "task": _text,
    "form": partial(_word, words=FORMS),
    "mode": partial(_word, words=("review", "auto")),
    "target": _text,
    "base": _text,
    "tests": lambda node: tuple(_text(item, "paths") for item in _items(node)),
    "retries": _text,
}
