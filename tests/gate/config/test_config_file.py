"""The configuration: every error at once with its place, and a sample that cannot rot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from patchq.core.resolve import levels
from patchq.gate.config import config_file
from patchq.gate.config.config_file import ConfigError
from patchq.gate.config.schema import RUNGS, Config, Rung

ROOT = Path(__file__).parents[3]


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config_file.parse(text.encode())
    return caught.value.problems


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a file that can be read"):
        config_file.content(tmp_path)


@pytest.mark.parametrize(
    ("text", "read", "value"),
    [
        ("target: no", lambda c: c.target, "no"),
        ("targets: [release/*, 1.0]", lambda c: c.targets, ("release/*", "1.0")),
        ("queue:\n  # path: x\n", lambda c: c.queue, Config().queue),
        ("queue: {poll_seconds: 1}", lambda c: c.queue.poll_seconds, 1.0),
        ("match: {rungs: [exact, elided]}", lambda c: c.match.rungs, ("exact", "elided")),
        ("\ufeffmode: auto\r\n", lambda c: c.mode, "auto"),
    ],
    ids=lambda v: repr(v)[:30] if isinstance(v, str) else None,
)
def test_what_is_read(text: str, read: Any, value: object) -> None:
    assert read(config_file.parse(text.encode())) == value


HOOK = "hooks:\n- {id: a, stage: pre-commit, run: x}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "modus: auto",
            "1:1 modus: expected a known key, got an unknown one; did you mean `mode`?",
        ),
        ("version: 2", "1:10 version: expected 1, got `2`"),
        ("mode: on", "1:7 mode: expected `review` or `auto`, got `on`"),
        ("target: a b", "1:9 target: expected the name of a branch, got `a b`"),
        (
            "queue: {poll_seconds: 0}",
            "1:23 queue.poll_seconds: expected a number above 0, at most 1000000000, got `0`",
        ),
        ("paths: {deny: ['[z-a]']}", "1:16 paths.deny[0]: expected a gitignore pattern, got"),
        ("match: {rungs: [elided, exact]}", "1:16 match.rungs: expected `exact`, then others"),
        ("hooks:\n- {id: a}", "2:3 hooks[0].stage: expected a value, got nothing"),
        (HOOK + HOOK[7:], "2:1 hooks: expected an `id` of its own for each hook (a is shared)"),
        (
            "hooks: [{id: a, stage: post-commit, run: x, fixes: true}]",
            "1:52 hooks[0].fixes: expected false, as only `pre-commit` hooks see files, got `true`",
        ),
        (
            "hooks: [{id: a, stage: pre-commit, run: x, checks: [a]}]",
            "1:52 hooks[0].checks: expected nothing, as only `patchq:ci` waits for checks of",
        ),
        (
            "hooks: [{id: a, stage: pre-apply, run: x, env: [A=1]}]",
            "1:49 hooks[0].env[0]: expected the name of a variable, got `A=1`",
        ),
        ("- a", "1:1 the file: expected keys and values, got a list"),
        ("a: b: c", "1:5 expected YAML, got: mapping values"),
    ],
    ids=lambda v: v[:40],
)
def test_what_is_refused(text: str, problem: str) -> None:
    assert any(p.startswith(f".patchq.yaml:{problem}") for p in problems(text)), problems(text)


def test_other_bytes_than_utf8_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"c\.yaml:2:4 expected UTF-8"):
        config_file.parse(b"a: b\nx: \xff", "c.yaml")


def test_everything_wrong_is_told_at_once_in_order() -> None:
    text = "modus: auto\nqueue:\n  path: []\n  path: x\n  poll: 1\nmatch: {confidence: high}\n"
    found = problems(text)
    assert [p.split(": ")[0].removeprefix(".patchq.yaml:") for p in found] == [
        "1:1 modus",
        "4:3 path",
        "5:3 queue.poll",
        "6:21 match.confidence",
    ]


def keys(schema: object) -> Iterator[str]:
    """The names of all keys of the JSON Schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        for inner in schema.values():
            yield from keys(inner)


def test_the_sample_is_the_defaults_and_the_gate() -> None:
    sample = config_file.parse(config_file.sample().encode())
    assert replace(sample, hooks=()) == Config()
    assert [(hook.stage, hook.run) for hook in sample.hooks] == [("pre-apply", "patchq:pre-apply")]


def test_the_sample_shows_every_key_and_each_is_valid() -> None:
    # `#key:` in place of `# words`; an example in a list stands two blanks behind the `#`.
    text = re.sub(r"(?m)^( *)#(?! )", r"\1", config_file.sample())
    text = re.sub(r"(?m)^#(?=  )", "", text)
    config_file.parse(text.encode())
    shown = set(re.findall(r"[\w-]+(?=:)", text))
    assert [key for key in keys(config_file.json_schema()) if key not in shown] == []


def test_the_example_is_the_sample() -> None:
    assert (ROOT / ".patchq.yaml.example").read_text(encoding="utf-8") == config_file.sample()


def test_the_rungs_are_those_of_the_ladder() -> None:
    assert get_args(Rung) == RUNGS == levels.LEVELS
