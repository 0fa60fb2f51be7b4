"""Reading `.patchq.yaml`: everything that is wrong with it, at once, each with its place."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from patchq.config.schema import Config
from patchq.model.errors import UsageError
from patchq.model.names import nearest
from patchq.text import yamlio

# What the schema's checks say, by pydantic's names for them; a test knows that these are all.
_EXPECTED = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "tuple_type": "a list",
    "model_type": "keys and values",
    "literal_error": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "value_error": "{error}",
}

_Key = tuple[int | str, ...]


class ConfigError(UsageError):
    """The configuration cannot be used; `problems` has a line for each reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems), "`patchq config sample` shows every key.")
        self.problems = problems


def load(path: Path, *, required: bool = False) -> Config:
    """The configuration in the file, or the defaults if there is none; raises `ConfigError`.

    A file that is `required` (because somebody named it) must be there.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        if required:
            raise ConfigError([f"{path}: expected a file, got nothing"]) from error
        return Config()
    except OSError as error:
        raise ConfigError(
            [f"{path}: expected a file that can be read, got: {error.strerror}"]
        ) from error
    return parse(data, path.name)


def parse(data: bytes, name: str = ".patchq.yaml") -> Config:
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
    found = [
        (key.line, key.column, key.text, f"expected once, got it again after line {first.line}")
        for key, first in yamlio.duplicates(root)
    ]
    try:
        config = Config.model_validate(_tree(root))
        if not found:
            return config
    except ValidationError as error:
        found += [_explain(detail, root) for detail in error.errors(include_url=False)]
    raise ConfigError(
        [f"{name}:{line}:{column} {key}: {what}" for line, column, key, what in sorted(found)]
    )


def place(path: Path, *loc: int | str) -> str:
    """Where a key stands, as messages name it: `FILE:LINE:COLUMN KEY`."""
    root = yamlio.parse(path.read_bytes().decode())
    assert root is not None
    key, _ = _find(root, loc)
    return f"{path.name}:{key.line}:{key.column} {_dotted(loc)}"


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the configuration, for editors."""
    return Config.model_json_schema()


def sample() -> str:
    """A configuration with every key, its default and what it is for."""
    return resources.files("patchq.config").joinpath("sample.yaml").read_text(encoding="utf-8")


def _tree(node: yamlio.Node) -> object:
    """Dicts and lists of the nodes' scalars, which the schema's leaves read."""
    if isinstance(node, yamlio.Mapping):
        return {key.text: _tree(value) for key, value in node.entries}
    if isinstance(node, yamlio.Sequence):
        return [_tree(item) for item in node.items]
    return node


def _explain(detail: ErrorDetails, root: yamlio.Node) -> tuple[int, int, str, str]:
    """Line, column, key and sentence of one of pydantic's errors."""
    kind, loc = detail["type"], detail["loc"]
    key, node = _find(root, loc[:-1] if kind == "missing" else loc)
    if kind == "extra_forbidden":
        return key.line, key.column, _dotted(loc), _unknown(loc)
    if kind == "missing":
        return node.line, node.column, _dotted(loc), "expected a value, got nothing"
    expected = _EXPECTED[kind].format(**detail.get("ctx", {})).replace("'", "`")
    what = f"expected {expected}, got {yamlio.describe(node)}"
    return node.line, node.column, _dotted(loc) or "the file", what


def _find(root: yamlio.Node, loc: _Key) -> tuple[yamlio.Node, yamlio.Node]:
    """The key's node and the value's node at a place that pydantic names."""
    key = node = root
    for step in loc:
        if isinstance(node, yamlio.Mapping):
            matching = [entry for entry in node.entries if entry[0].text == step]
            if not matching:
                break
            key, node = matching[-1]
        elif isinstance(node, yamlio.Sequence) and isinstance(step, int):
            key = node = node.items[step]
    return key, node


def _unknown(loc: _Key) -> str:
    known = _keys_beside(loc)
    if near := nearest(str(loc[-1]), known):
        return f"expected a known key, got an unknown one; did you mean `{near}`?"
    return f"expected one of {', '.join(known)}, got an unknown key"


def _keys_beside(loc: _Key) -> list[str]:
    """The keys that the schema has where the unknown key at `loc` stands."""
    schema = json_schema()
    node: dict[str, Any] = schema
    for step in loc[:-1]:
        node = node["items"] if isinstance(step, int) else node["properties"][step]
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return list(node["properties"])


def _dotted(loc: _Key) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)
    return "".join(steps).removeprefix(".")
