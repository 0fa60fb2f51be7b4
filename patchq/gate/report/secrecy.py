"""Private keys and live tokens: what holds one does not land, and is not repeated.

The formats are those of the shipped gate (`hooks/gate.py`).  What they recognise beyond doubt is
refused whatever hooks are configured; passwords, which can only be guessed at, are left to the
hook `no-secrets`.  The response itself stays in the queue byte for byte: nothing else does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from msgspec import Struct, convert, to_builtins

from patchq.core.model import names
from patchq.core.model.values import FileChange, Header, Problem

T = TypeVar("T")

_CODE = "edit.secret: "
_GUESSED = frozenset({"a password or key", "a password in an address"})
_HINT = "read it from the environment or a secret store; a person has to commit what must be there"
# A text without any of these, in lower case, holds no secret of a known format.
_MARKS = (
    "akia", "asia", "aws", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-",
    "glrt-", "glptt-", "glft-", "glsoat-", "glcbt-", "xox", "slack.com/services/", "aiza",
    "k_live_", "npm_", "_authtoken", "pypi-", "sk-", "hf_", "sg.", "_v1_", "eyj", "private key",
)  # fmt: skip
_END = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
# What may be a line of a key's body, quoted, numbered or behind a sign; rather too much.
_KEY_LINE = re.compile(r"[\w+/=:,.|>#*\"'\\; \t-]{0,120}")
_KEY_TAIL = re.compile(rf"(?=.*[A-Za-z0-9+/]{{16}}){_KEY_LINE.pattern}")
_KEY = "a private key"
# A token that an excerpt may have cut: too short to refuse it, long enough not to repeat it.
_BEGUN = re.compile(
    r"\b(?:A[KS]IA|gh[pousr]_|github_pat_|gl(?:pat|[dr]t|ptt|ft|soat|cbt)-|xox[abeoprs]-|AIza|hf_"
    r"|[sr]k_live_|npm_|pypi-|sk-(?:ant|proj|svcacct|or-v1)-|SG\.|do[opr]_v1_|eyJ)"
    r"(?=[A-Za-z_-]*[0-9])[\w-]{8,}"
)
_UNPRINTABLE = re.compile(rb"[^\t\r -~]+")
_SUFFIX = re.compile(r"(?:\.request)?\.[A-Za-z0-9]{1,10}\Z")


@cache
def directory() -> Path:
    """Return the directory of the shipped hooks, in a wheel or in the checkout."""
    packaged = Path(__file__).parents[1] / "hooks/scripts"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "hooks"


@cache
def gate() -> ModuleType:
    """The module of the gate's judgements."""
    spec = spec_from_file_location("patchq_gate", directory() / "gate.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _may_hold(text: str) -> bool:
    return any(map(text.lower().__contains__, _MARKS))


def in_diff(diff: str) -> list[Problem]:
    """Return a problem for each added line that holds a secret.

    `diff` has to be whole.
    """
    if not _may_hold(diff):
        return []
    lines: list[str] = gate().secrets({"diff": diff}, {})
    return [
        _problem(line.removeprefix(_CODE))
        for line in lines
        if line.startswith(_CODE) and line.rpartition("looks like ")[2] not in _GUESSED
    ]


def in_text(text: str, what: str) -> list[Problem]:
    """Return a problem for each line of a text that holds a secret.

    The text is about to be kept, such as a commit message; `what` names it.
    """
    return [_problem(f"{what}, line {number}: looks like {kind}") for number, kind in _kinds(text)]


def in_bytes(changes: Iterable[FileChange]) -> list[Problem]:
    """Return a problem for each binary file that gets a secret.

    No diff shows these.
    """
    return [
        _problem(f"{change.path} holds what looks like {kind}")
        for change in changes
        if change.after is not None and (b"\0" in change.after or b"\0" in (change.before or b""))
        for kind in sorted(_kinds_among(change.after) - _kinds_among(change.before or b""))
    ]


def _kinds_among(data: bytes) -> set[str]:
    text = _UNPRINTABLE.sub(b"\n", data).decode("ascii")
    return {kind for _, kind in _kinds(text)}


def in_header(header: Header, name: str) -> list[Problem]:
    """Return a problem for each value of a front matter that holds a secret.

    The `name` counts, too: it gives an id where there is none.  All of them end in refs, commits,
    reports and other batches' reports.
    """
    fields = Header.__struct_fields__
    values = {key: value for key in fields if (value := getattr(header, key))}
    return [
        _problem(f"the response's `{key}` looks like {kind}")
        for key, value in {"id": name, **values}.items()
        if (kind := _kind(" ".join(value) if isinstance(value, tuple) else str(value)))
    ]


def in_paths(changes: Iterable[FileChange]) -> list[Problem]:
    """A problem for each path that the changes add and that holds a secret."""
    paths = [c.path for c in changes if c.before is None or c.renamed_from is not None]
    return [_problem(f"a path looks like {kind}") for path in paths if (kind := _kind(path))]


def batch_id(text: str) -> str:
    """The id that a text asks for (`names.batch_id`); if that would repeat a secret, another."""
    id = names.batch_id(text)
    secret = _kind(text) or (_kind(id) if id != text else None)
    return names.nameless_id(text) if secret else id


def file_name(name: str) -> str:
    """A file's name; if it holds a secret, words with the same suffix."""
    kind, suffix = _kind(name), _SUFFIX.search(name)
    return f"(left out: it looks like {kind}){suffix[0] if suffix else ''}" if kind else name


def begun(text: str) -> str | None:
    """Return the kind of secret whose beginning a text holds.

    The text may be cut, and a secret with it.
    """
    return "a token's beginning" if _BEGUN.search(text) else None


def without(value: T) -> T:
    """Return the value; each line of a text in it that holds a secret says so in its place."""
    plain = to_builtins(value)
    if not _may_hold(json.dumps(plain, ensure_ascii=False)):
        return value
    redacted = _without(plain)
    return convert(redacted, type(value)) if isinstance(value, Struct) else cast(T, redacted)


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without(item) for item in value]
    return _text(value) if isinstance(value, str) and _may_hold(value) else value


def _text(text: str) -> str:
    lines = text.split("\n")
    found = {number: kind for number, line in enumerate(lines, 1) if (kind := begun(line))}
    for number, kind in sorted({**found, **dict(_kinds(text))}.items()):
        lines[number - 1] = f"(left out: it looks like {kind})"
        if kind == _KEY:
            _leave_out(lines, range(number, len(lines)), _KEY_LINE)
    for index, line in enumerate(lines):
        if _END.search(line):  # an excerpt may begin in the middle of a key
            _leave_out(lines, range(index - 1, -1, -1), _KEY_TAIL)
    return "\n".join(lines)


def _leave_out(lines: list[str], indices: Iterable[int], of_key: re.Pattern[str]) -> None:
    """Replace the lines of a key's body, up to the line that ends it.

    `indices` are the lines in the order to go through.
    """
    for index in indices:
        line = lines[index]
        if not of_key.fullmatch(line):
            break
        lines[index] = "(left out)"
        if _END.search(line):
            break


def _kinds(text: str) -> Iterator[tuple[int, str]]:
    lines = text.split("\n") if _may_hold(text) else []
    for number, line in enumerate(lines, 1):
        if _may_hold(line):
            behind = [("", 0, text.lstrip(" +-|0123456789")) for text in lines[number : number + 6]]
            kind = gate().secret_kind(line, "", behind)
            if kind and kind not in _GUESSED:
                yield number, kind


def _kind(text: str) -> str | None:
    return next((kind for _, kind in _kinds(text)), None)


def _problem(where: str) -> Problem:
    return Problem("edit.secret", where, _HINT)
