"""Reading `.patchq.yaml`: everything that is wrong with it, at once, each with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from patchq.core.model.errors import UsageError
from patchq.core.text import yamlio
from patchq.gate.config.kinds import Flaw
from patchq.gate.config.schema import Config, SectionOf

FILE, OWN_FILE = ".patchq.yaml", "patchq.yaml"
"""The file in the home branch's tree, and the operator's own in the git directory."""


class ConfigError(UsageError):
    """The configuration cannot be used; `problems` has a line for each reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems), "`patchq config sample` shows every key.")
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
    """The configuration in the text, which messages call `name`; raises `ConfigError`."""
    try:
        root = yamlio.parse(data.removeprefix(b"\xef\xbb\xbf").decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise ConfigError([f"{name}:{line}:{column} expected UTF-8, got other bytes"]) from None
    except yamlio.YamlError as error:
        raise ConfigError(
            [f"{name}:{error.line}:{error.column} expected YAML, got: {error.message}"]
        ) from None
    if root is None:
        return Config()
    flaws: list[Flaw] = [
        (key.line, key.column, key.text, f"expected once, got it again after line {first.line}")
        for key, first in yamlio.duplicates(root)
    ]
    config: Config = SectionOf(Config).read(root, "", flaws)
    if flaws:
        raise ConfigError(
            [f"{name}:{line}:{column} {key}: {what}" for line, column, key, what in sorted(flaws)]
        )
    return config


def place(data: bytes, name: str, *steps: int | str) -> str:
    """Where a key stands, or would, as messages name it: `NAME:LINE:COLUMN KEY`."""
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
    """The JSON Schema of the configuration, for editors."""
    return {"title": "patchq", **SectionOf(Config).schema()}


def sample() -> str:
    """A configuration with every key, its default and what it is for."""
    from importlib import resources  # takes long to load

    return resources.files("patchq.gate.config").joinpath("sample.yaml").read_text(encoding="utf-8")
