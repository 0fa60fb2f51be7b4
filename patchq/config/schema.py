"""The configuration's keys, types, defaults and limits, as pydantic models.

The models are filled from YAML nodes (`config.py`), so that each leaf decides by itself how a
plain scalar is read: text takes what was written, be it `no` or `2024`; numbers and flags take
the value, and nothing is converted from one into another.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from patchq.config.policy import pattern_error
from patchq.text.yamlio import Scalar

Rung = Literal[
    "exact", "line_endings", "trailing_whitespace", "indentation", "edge_blank_lines",
    "typography", "line_numbers", "unescaped", "elided",
]  # fmt: skip
RUNGS: tuple[Rung, ...] = get_args(Rung)
Stage = Literal["pre-apply", "pre-commit", "post-commit", "post-reject"]


def _text(value: object) -> object:
    if isinstance(value, Scalar):
        return None if value.value is None else value.text
    return value


def _value(value: object) -> object:
    return value.value if isinstance(value, Scalar) else value


def _signing(value: object) -> object:
    """`auto`, or what a flag takes."""
    value = _value(value)
    if value != "auto" and not isinstance(value, bool):
        raise ValueError("`auto`, true or false")
    return value


def _number(value: object) -> object:
    """The value, if it is a whole number: to Python, `true` is 1 as well."""
    return number if type(number := _value(value)) is int else None


def _empty(value: object) -> object:
    """A list whose items are all commented out is an empty one."""
    return () if isinstance(value, Scalar) and value.value is None else value


def _matching(pattern: str, expected: str) -> AfterValidator:
    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(expected)
        return text

    return AfterValidator(check)


def _pattern(text: str) -> str:
    if pattern_error(text):
        raise ValueError("a gitignore pattern")
    return text


T = TypeVar("T")
Maybe = Annotated[T | None, BeforeValidator(_text)]
Text = Annotated[StrictStr, BeforeValidator(_text), _matching(r"(?s).*\S.*", "text")]
Flag = Annotated[StrictBool, BeforeValidator(_value)]
Signing = Annotated[Literal["auto", True, False], BeforeValidator(_signing)]
Count = Annotated[StrictInt, BeforeValidator(_value), Field(gt=0)]
Number = Annotated[StrictInt, BeforeValidator(_value), Field(ge=0)]
Seconds = Annotated[float, BeforeValidator(_value), Field(strict=True, gt=0, le=10**9)]
Share = Annotated[float, BeforeValidator(_value), Field(strict=True, ge=0, le=1)]
Pattern = Annotated[Text, AfterValidator(_pattern)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(_empty)]
Branch = Annotated[
    Text, _matching(r"(?!-)(?!/)(?!.*(?:\.\.|@\{|//|/$))[^\s~^:?*\[\\]+", "the name of a branch")
]
BranchPattern = Annotated[Text, _matching(r"(?!-)[^\s~^:\\]+", "a pattern of branch names")]
EnvName = Annotated[Text, _matching(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable")]
Url = Annotated[Text, _matching(r"https?://[^\s/]+\S*", "an http(s) address")]
Person = Annotated[Text, _matching(r"[^<>\n]*[^<>\s] <[^<>\s]+>", "`Name <mail@example.org>`")]


class Section(BaseModel):
    """Keys that are not known are errors; a section whose keys are all commented out is empty."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_empty(cls, data: Any) -> Any:
        return {} if isinstance(data, Scalar) and data.value is None else data


class Queue(Section):
    path: Text = Field(".patchq", description="the queue; relative to the repository's root")
    settle_seconds: Seconds = Field(2.0, description="quiet time that makes a file complete")
    watch: Annotated[Literal["auto", "poll"], BeforeValidator(_text)] = "auto"
    poll_seconds: Seconds = Field(2.0, description="time between two looks at the inbox")
    hold_seconds: Seconds = Field(3600.0, description="how long a batch may wait for another")
    retention_days: Number = Field(30, description="0 keeps finished batches for ever")
    group: Maybe[Text] = Field(None, description="the group that may read reports")


class Paths(Section):
    deny: Patterns = Field((), description="paths that no batch may touch, beyond the defaults")
    review: Patterns = Field((), description="paths that auto mode only proposes")
    new_directories: Flag = Field(True, description="whether a batch may make directories")


class Limits(Section):
    response_bytes: Count = 2 * 1024 * 1024
    file_bytes: Count = 4 * 1024 * 1024
    files: Count = 200
    edits: Count = 500


class Match(Section):
    rungs: Annotated[
        tuple[Annotated[Rung, BeforeValidator(_text)], ...], BeforeValidator(_empty)
    ] = Field(RUNGS, description="what matching may ignore, in the ladder's order")
    confidence: Share = Field(0.7, description="edits that state less are left out")

    @field_validator("rungs")
    @classmethod
    def _in_order(cls, rungs: tuple[Rung, ...]) -> tuple[Rung, ...]:
        if rungs[:1] != ("exact",) or list(rungs) != [rung for rung in RUNGS if rung in rungs]:
            raise ValueError(f"`exact`, then others in the order {', '.join(RUNGS)}")
        return rungs


class LargeFile(Section):
    lines: Count = 500
    bytes: Count = 15_000


class Validate(Section):
    syntax: Flag = Field(True, description="refuse results that no longer parse")
    syntax_except: Patterns = Field((), description="files that are not parsed")
    elision: Flag = Field(True, description="refuse `... rest unchanged` in new text")
    shrink: Share = Field(0.5, description="share of its lines that a rewritten file keeps")


class Hook(Section):
    id: Annotated[Text, _matching(r"[A-Za-z0-9][A-Za-z0-9._-]*", "letters, digits, `.`, `_`, `-`")]
    stage: Annotated[Stage, BeforeValidator(_text)]
    run: Text = Field(description="a shell line, or `patchq:NAME` for a shipped hook")
    files: Patterns = Field((), description="run only if a changed path matches; empty: always")
    timeout_seconds: Seconds = 600.0
    env: Annotated[tuple[EnvName, ...], BeforeValidator(_empty)] = Field(
        (), description="variables that the hook gets from the daemon's environment"
    )
    fixes: Flag = Field(False, description="its changes to files become part of the batch")
    network: Annotated[StrictBool | None, BeforeValidator(_value)] = Field(
        None, description="default: false before the commit, true after it"
    )
    cache: Flag = Field(True, description="remember passes for the same tree")
    visible: Annotated[tuple[Text, ...], BeforeValidator(_empty)] = Field(
        (), description="what it sees beside the system and its PATH; relative to the root"
    )
    unconfined: Flag = Field(False, description="may run where no hook can be jailed")

    @property
    def uses_network(self) -> bool:
        return self.stage.startswith("post-") if self.network is None else self.network

    @field_validator("fixes")
    @classmethod
    def _only_where_files_are(cls, fixes: bool, info: Any) -> bool:
        if fixes and info.data.get("stage", "pre-commit") != "pre-commit":
            raise ValueError("false, as only `pre-commit` hooks see files")
        return fixes


class Commit(Section):
    author: Maybe[Person] = Field(None, description="default: git's user.name and user.email")
    author_from_response: Flag = False
    prose: Flag = Field(True, description="put the response's prose into the commit's body")
    sign: Signing = Field("auto", description="sign commits; auto: as git's commit.gpgSign says")


class Worktree(Section):
    backup: Flag = Field(False, description="keep a `.bak` copy of files that are updated")


class Llm(Section):
    base_url: Maybe[Url] = None
    model: Maybe[Text] = Field(None, description="without one no model is ever asked")
    api_key_env: Maybe[EnvName] = None
    timeout_seconds: Seconds = 120.0
    correct: Flag = Field(True, description="ask for quotes that match nothing")
    max_attempts: Count = 3
    auto_retry: Number = Field(0, description="how often a refused answer is asked for again")


class Stats(Section):
    prometheus: Maybe[Text] = Field(None, description="a file for the node exporter")


class Log(Section):
    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_text)] = "info"
    format: Annotated[Literal["text", "json"], BeforeValidator(_text)] = "text"


class Config(Section):
    """All of `.patchq.yaml`; without arguments, the defaults."""

    version: Annotated[Literal[1], BeforeValidator(_number)] = 1
    target: Maybe[Branch] = Field(None, description="default: HEAD's branch")
    targets: Annotated[tuple[BranchPattern, ...], BeforeValidator(_empty)] = ()
    mode: Annotated[Literal["review", "auto"], BeforeValidator(_text)] = "review"
    queue: Queue = Queue()
    paths: Paths = Paths()
    limits: Limits = Limits()
    match: Match = Match()
    large_file: LargeFile = LargeFile()
    validate_: Validate = Field(Validate(), alias="validate")
    hooks: Annotated[tuple[Hook, ...], BeforeValidator(_empty)] = ()
    git_hooks: Flag = False
    commit: Commit = Commit()
    worktree: Worktree = Worktree()
    confirm: Flag = Field(False, description="ask before each batch; without a terminal: propose")
    llm: Llm = Llm()
    stats: Stats = Stats()
    log: Log = Log()

    @field_validator("hooks")
    @classmethod
    def _ids_are_unique(cls, hooks: tuple[Hook, ...]) -> tuple[Hook, ...]:
        ids = [hook.id for hook in hooks]
        if twice := sorted({id for id in ids if ids.count(id) > 1}):
            raise ValueError(f"an `id` of its own for each hook ({', '.join(twice)} is shared)")
        return hooks
