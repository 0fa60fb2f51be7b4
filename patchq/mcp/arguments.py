"""What the tools take and what they give, as JSON Schemas and as types.

What a tool takes is checked before anything is done, and what is unknown is refused by its name: an
argument that is misspelt would else be left out in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from typing_extensions import TypedDict

from patchq.core.model.names import batch_id, nearest
from patchq.core.model.values import State
from patchq.core.text.quote import clip
from patchq.gate.errors import UsageError
from patchq.llm.request import MOST_FILES

LONGEST_WAIT = 600.0
MOST_LISTED = 200
_LONGEST_PATH = 1024
_MOST_FLAWS = 5
_IMPLIED = (("default", None), ("default", False), ("additionalProperties", True))
"""What a schema says by saying nothing."""
A = TypeVar("A", bound="Arguments")


def _one_line(text: str) -> str:
    """A path or a name; what stands behind a line end would be read as something else."""
    if not text or any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("expected text, not empty, and without control characters")
    return text


def _plain_id(text: str) -> str:
    if batch_id(text) != text:
        raise ValueError("no batch has such an id")
    return text


Path = Annotated[str, AfterValidator(_one_line), Field(max_length=_LONGEST_PATH)]
Word = Annotated[str, AfterValidator(_one_line), Field(max_length=500)]
BatchId = Annotated[str, AfterValidator(_plain_id)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST_WAIT)]


class Arguments(BaseModel):
    """What a tool takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EditArguments(Arguments):
    """One change of a file, as the tools take it."""

    path: Path
    old: str | None = Field(default=None, description="exact text of the file, once in it")
    new: str | None = Field(
        default=None, description="what takes its place; without `old`, the whole file"
    )
    replace_all: bool = False
    delete: bool = Field(default=False, description="delete the file")
    rename_to: Path | None = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> EditArguments:
        if self.delete and (self.old is not None or self.new is not None or self.rename_to):
            raise ValueError("`delete` goes with `path` alone")
        if not self.delete and self.new is None and (self.old is not None or not self.rename_to):
            raise ValueError("expected `new`, `delete` or `rename_to`")
        if self.replace_all and not self.old:
            raise ValueError("`replace_all` needs `old`")
        return self


class Change(Arguments):
    """A response, or edits that are made one."""

    response: str | None = Field(
        default=None, description="a response in any form that patchq reads"
    )
    edits: list[EditArguments] | None = Field(default=None, min_length=1)
    base: Word | None = Field(default=None, description="the commit that you read the files from")
    target: Word | None = Field(default=None, description="a branch; default: the configured one")

    @model_validator(mode="after")
    def _has_one_of_them(self) -> Change:
        if (self.response is None) == (self.edits is None):
            raise ValueError("expected one of `response` and `edits`")
        return self


class CheckArguments(Change):
    pass


class SubmitArguments(Change):
    message: str | None = Field(default=None, description="the commit's message")
    id: BatchId | None = Field(
        default=None, description="your own waiting batch of this id is replaced"
    )
    model: Word | None = None
    retries: BatchId | None = Field(
        default=None, description="the refused batch that this one replaces"
    )
    depends_on: list[BatchId] = Field(default=[], description="batches that must land first")
    wait_seconds: Seconds = 60.0


class ReportArguments(Arguments):
    id: BatchId
    full: bool = Field(default=False, description="everything, with the diff")


class StatusArguments(Arguments):
    agent: Word | None = None
    state: State | None = None
    limit: int = Field(default=20, ge=1, le=MOST_LISTED)


class WaitArguments(Arguments):
    id: BatchId
    known: str | None = Field(
        default=None, description="the state that you know; default: no verdict yet"
    )
    wait_seconds: Seconds = 60.0


class AnswerArguments(Arguments):
    files: list[Path] = Field(min_length=1, max_length=MOST_FILES)
    task: str | None = None
    form: Literal["auto", "diff", "edit-script", "indexed", "contextual", "whole"] = "auto"


class WithdrawArguments(Arguments):
    id: BatchId
    token: Word = Field(description="what `submit` returned")


def parsed(takes: type[A], given: Mapping[str, Any], tool: str) -> A:
    """The arguments; `UsageError` names everything that is wrong with them."""
    try:
        return takes.model_validate(dict(given), strict=True)
    except ValidationError as error:
        wrong = [_flaw(flaw, takes) for flaw in error.errors(include_url=False)]
        more = f"; and {len(wrong) - _MOST_FLAWS} more" if len(wrong) > _MOST_FLAWS else ""
        raise UsageError(
            f"{tool}: {'; '.join(wrong[:_MOST_FLAWS])}{more}",
            f"it takes {', '.join(takes.model_fields)}",
        ) from None


def _flaw(flaw: Mapping[str, Any], takes: type[Arguments]) -> str:
    place = clip(".".join(map(str, flaw["loc"])), 100)
    if flaw["type"] == "extra_forbidden":
        known = takes if len(flaw["loc"]) == 1 else EditArguments
        meant = nearest(str(flaw["loc"][-1])[:100], known.model_fields)
        return f"there is no argument `{place}`" + (f"; did you mean `{meant}`?" if meant else "")
    said = flaw["msg"].removeprefix("Value error, ")
    return f"`{place}`: {said}" if place else said


# ---------------------------------------------------------------- what they give


class ProblemAnswer(TypedDict):
    """One problem; an error refuses the batch, a warning does not."""

    code: str
    severity: str
    message: str
    hint: NotRequired[str]
    edit: NotRequired[str]
    path: NotRequired[str]
    line: NotRequired[int]
    conflicts_with: NotRequired[dict[str, Any]]


class EditAnswer(TypedDict):
    """What became of an edit; `match` says how its place was found, `lines` are the first and the
    last."""

    id: str
    path: str
    state: str
    match: NotRequired[str]
    lines: NotRequired[list[int]]


class VerdictAnswer(TypedDict):
    """What is known of a batch; `waiting` is one without a verdict, `error` none at all."""

    id: NotRequired[str]
    state: str
    problems: list[ProblemAnswer]
    edits: NotRequired[list[EditAnswer]]
    left_out: NotRequired[int]
    target: NotRequired[str]
    base: NotRequired[str]
    branch: NotRequired[str]
    commit: NotRequired[str]
    duplicate_of: NotRequired[str]
    note: NotRequired[str]
    token: NotRequired[str]
    risk: NotRequired[str]
    report: NotRequired[dict[str, Any]]


class BatchAnswer(TypedDict):
    """A batch in the answer of `status`."""

    id: str
    state: str
    paths: list[str]
    agent: NotRequired[str]
    target: NotRequired[str]
    why: NotRequired[str]


class StatusAnswer(TypedDict):
    """How the queue stands."""

    daemon: bool
    mode: str
    inbox: int
    troubles: list[str]
    batches: list[BatchAnswer]
    left_out: int
    target: NotRequired[str]
    busy: NotRequired[str]


class PromptAnswer(TypedDict):
    """How to answer."""

    form: str
    base: str
    prompt: str


def schema(of: Any) -> dict[str, Any]:
    """The JSON Schema of a type, without what only repeats its names, or says that what may be left
    out may be null."""
    made: dict[str, Any] = _plain(TypeAdapter(of).json_schema())
    return made


def _plain(value: Any, named: bool = False) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if not named:
        value = {k: v for k, v in value.items() if k != "title" and (k, v) not in _IMPLIED}
        if value.get("type") == "object" and "properties" in value:
            value.pop("description", None)  # a class's, for those who read this file
        some = [one for one in value.get("anyOf", ()) if one != {"type": "null"}]
        if len(some) == 1:
            value = {**some[0], **{k: v for k, v in value.items() if k != "anyOf"}}
    return {k: _plain(v, not named and k in ("properties", "$defs")) for k, v in value.items()}
