"""The reader of `.patchq.yaml`, which reports all errors at once, each with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec.structs import fields, replace

from patchq.core.model.names import suggestion
from patchq.core.text import yamlio
from patchq.core.text.yamlio import Node, Scalar
from patchq.gate.config.schema import Config, Section
from patchq.gate.errors import UsageError

S = TypeVar("S", bound=Section)
# Line and column, and what was expected there, behind the key (`hooks[0].run: …`).
Flaw = tuple[int, int, str]

# The file in the home branch's tree, and the operator's own in the git directory.
FILE, OPERATORS_FILE = ".patchq.yaml", "patchq.yaml"


class ConfigError(UsageError):
    """The configuration cannot be used; `problems` has a line for each reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems), "`patchq config sample` shows every key")
        self.problems = problems


def content(path: Path) -> bytes | None:
    """Return the bytes of a configuration file, None if there is none; raises `ConfigError`."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            [f"{path}: expected a file that can be read, got: {error.strerror}"]
        ) from error


def parse(data: bytes, name: str = FILE) -> Config:
    """Return the configuration in a text that messages call `name`; raises `ConfigError`."""
    config, flaws = read(data, Config)
    if config is None:
        raise ConfigError([f"{name}:{line}:{column} {what}" for line, column, what in flaws])
    return config


def read(data: bytes, kind: type[S]) -> tuple[S | None, list[Flaw]]:
    """Return a YAML text as a `kind`, its defaults if empty; or None and all flaws."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        node = yamlio.parse(data.decode())
    except UnicodeDecodeError as error:
        column = error.start - data.rfind(b"\n", 0, error.start)
        line = data.count(b"\n", 0, error.start) + 1
        return None, [(line, column, "expected UTF-8, got other bytes")]
    except yamlio.YamlError as error:
        return None, [(error.line, error.column, f"expected YAML, got: {error.message}")]
    if node is None:
        return kind(), []
    flaws: list[Flaw] = [
        (key.line, key.column, f"{key.text}: expected once, got it again after line {first.line}")
        for key, first in yamlio.duplicates(node)
    ]
    value: S = _read(node, kind, "", flaws)
    return (None, sorted(flaws)) if flaws else (value, [])


def _read(node: Node, kind: Any, at: str, flaws: list[Flaw]) -> Any:
    """Return the node's value of a kind, or None with a new flaw."""
    bare, checks, before = kind, list[Any](), len(flaws)
    if get_origin(kind) is Annotated:
        bare = get_args(kind)[0]
        checks = [it["check"] for meta in kind.__metadata__ if "check" in (it := meta.extra or {})]
    nothing = isinstance(node, Scalar) and node.value is None
    value: Any = None
    if get_origin(bare) is tuple:
        nodes = () if nothing else node.items if isinstance(node, yamlio.Sequence) else None
        if nodes is None:
            flaws.append(_wrong(node, at, "a list"))
        else:
            item = get_args(bare)[0]
            value = tuple(_read(one, item, f"{at}[{i}]", flaws) for i, one in enumerate(nodes))
    elif isinstance(bare, type) and issubclass(bare, Section):
        if isinstance(node, Scalar) and not nothing and bare.shorthand:
            key = replace(node, text=bare.shorthand)
            node = yamlio.Mapping(node.line, node.column, ((key, node),))
        if nothing or isinstance(node, yamlio.Mapping):
            value = _section(node, bare, at, flaws)
        else:
            flaws.append(_wrong(node, at, "keys and values"))
    else:
        value = _scalar(node, kind, at, flaws)
    if len(flaws) == before:
        flaws += [_wrong(node, at, expected) for check in checks if (expected := check(value))]
    return value if len(flaws) == before else None


def _section(node: Node, section: type[Section], at: str, flaws: list[Flaw]) -> Section | None:
    entries = node.entries if isinstance(node, yamlio.Mapping) else ()
    last = {key.text: (key, value) for key, value in entries}
    known = {field.encode_name: field for field in fields(section)}
    given, before, prefix = dict[str, Any](), len(flaws), f"{at}." if at else ""
    for text, (key, value) in last.items():
        if field := known.get(text):
            flawed = len(flaws)
            found = _read(value, field.type, prefix + text, flaws)
            if len(flaws) == flawed:
                given[field.name] = found
        else:
            unknown = f"{prefix}{text}: {_unknown(text, list(known))}"
            flaws.append((key.line, key.column, unknown))
    for text, field in known.items():
        if field.required and text not in last:
            missing = f"{prefix}{text}: expected a value, got nothing"
            flaws.append((node.line, node.column, missing))
    for text, expected in section.misfits(given):
        flaws.append(_wrong(last[text][1], prefix + text, expected))
    return section(**given) if len(flaws) == before else None


def _scalar(node: Node, kind: Any, at: str, flaws: list[Flaw]) -> Any:
    """Return a scalar's value, as it was written for text (`no`, `1`)."""
    if isinstance(node, Scalar):
        for value in (node.value,) if node.value is None else (node.value, node.text):
            try:
                return msgspec.convert(value, kind)
            except msgspec.ValidationError:
                continue
    flaws.append(_wrong(node, at, _expected(kind)))
    return None


def _expected(kind: Any) -> str:
    for meta in getattr(kind, "__metadata__", ()):
        if expected := (meta.extra or {}).get("expected"):
            return str(expected)
    within = get_args(kind)
    if get_origin(kind) is not Literal:  # a note on another kind, or one that may be nothing
        return _expected(within[0])
    words = [f"`{word}`" if isinstance(word, str) else f"{word}" for word in within]
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _wrong(node: Node, at: str, expected: str) -> Flaw:
    what = f"{at or 'the file'}: expected {expected}, got {yamlio.describe(node)}"
    return node.line, node.column, what


def _unknown(key: str, known: list[str]) -> str:
    if near := suggestion(key, known):
        return f"expected a known key, got an unknown one; {near}"
    return f"expected one of {', '.join(known)}, got an unknown key"


def place(data: bytes, name: str, *steps: int | str) -> str:
    """Return `NAME:LINE:COLUMN KEY` for a key, or its parent's if it is missing."""
    key = node = yamlio.parse(data.decode())
    dotted = ""
    for step in steps:
        dotted += f"[{step}]" if isinstance(step, int) else f".{step}"
        if isinstance(node, yamlio.Mapping):
            found = [entry for entry in node.entries if entry[0].text == step]
            key, node = found[-1] if found else (key, None)
        elif isinstance(node, yamlio.Sequence) and isinstance(step, int):
            key = node = node.items[step]
    line, column = (key.line, key.column) if key else (1, 1)  # of an empty file
    return f"{name}:{line}:{column} {dotted.removeprefix('.')}"


def json_schema() -> dict[str, Any]:
    return msgspec.json.schema(Config)


def sample() -> str:
    """Return a configuration with every key, its default and its purpose."""
    from importlib import resources  # takes long to load

    return resources.files("patchq.gate.config").joinpath("sample.yaml").read_text(encoding="utf-8")
