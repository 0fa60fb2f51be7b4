"""The configuration's keys, types, defaults and limits."""

# Annotations are values here: what a key takes is read from them.

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, dataclass_transform, get_args

from patchq.core.model.names import nearest
from patchq.core.model.report import EVENT_KINDS
from patchq.core.text import yamlio
from patchq.core.text.yamlio import Node, Scalar
from patchq.gate.config.kinds import (
    COUNT,
    FLAG,
    NUMBER,
    PORT,
    SECONDS,
    SHARE,
    TEXT,
    Flaw,
    Kind,
    ListOf,
    checked,
    matching,
    maybe,
    one_of,
    values,
    wrong,
)
from patchq.gate.config.policy import pattern_error

Rung = Literal[
    "exact", "line_endings", "trailing_whitespace", "indentation", "edge_blank_lines",
    "typography", "line_numbers", "unescaped", "elided",
]  # fmt: skip
RUNGS: tuple[Rung, ...] = get_args(Rung)
Stage = Literal["pre-apply", "pre-commit", "post-commit", "post-reject"]


def _in_order(rungs: tuple[Rung, ...]) -> str | None:
    if rungs[:1] == ("exact",) and list(rungs) == [rung for rung in RUNGS if rung in rungs]:
        return None
    return f"`exact`, then others in the order {', '.join(RUNGS)}"


_BRANCH = matching(
    r"(?!-)(?!/)(?!.*(?:\.\.|@\{|//|/$))[^\s~^:?*\[\\]+", "the name of a branch"
)  # fmt: skip
_VARIABLE = matching(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable")
_PERSON = matching(r"[^<>\n]*[^<>\s] <[^<>\s]+>", "`Name <mail@example.org>`")

Text = Annotated[str, TEXT]
MaybeText = Annotated[str | None, maybe(TEXT)]
Flag = Annotated[bool, FLAG]
Count = Annotated[int, COUNT]
Number = Annotated[int, NUMBER]
Seconds = Annotated[float, SECONDS]
Share = Annotated[float, SHARE]
Patterns = Annotated[tuple[str, ...], ListOf(checked(pattern_error, "a gitignore pattern"))]
MaybeVariable = Annotated[str | None, maybe(_VARIABLE)]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Section:
    """Keys and values: the class has the defaults, an instance what was given.

    The standard library's frozen dataclasses would do the same, at half a millisecond for each at
    the start of every command.
    """

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} of a configuration is not set; `but` makes another one")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in type(self).__annotations__
        )

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in type(self).__annotations__))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"

    def but(self, **changes: Any) -> Self:
        """The same with other values for some keys."""
        return type(self)(**{**vars(self), **changes})

    @property
    def given(self) -> frozenset[str]:
        """The keys that do not have their defaults by themselves."""
        return frozenset(vars(self))

    @staticmethod
    def misfit(given: Mapping[str, Any]) -> tuple[str, str] | None:
        """A key whose value does not fit the others, and what was expected of it."""
        return None


class SectionOf:
    """Keys and values of these kinds; a section whose keys are all commented out is empty."""

    def __init__(self, section: type[Section]) -> None:
        self._section = section

    def read(self, node: Node, at: str, flaws: list[Flaw]) -> Any:
        if isinstance(node, Scalar) and node.value is None:
            entries = {}
        elif isinstance(node, yamlio.Mapping):
            entries = {key.text: (key, value) for key, value in node.entries}
        else:
            flaws.append(wrong(node, at, "keys and values"))
            return None
        known, given, whole = kinds(self._section), {}, len(flaws)
        for text, (key, value) in entries.items():
            place, before = f"{at}.{text}".removeprefix("."), len(flaws)
            if text not in known:
                flaws.append((key.line, key.column, place, _unknown(text, list(known))))
                continue
            found = known[text].read(value, place, flaws)
            if len(flaws) == before:
                given[attribute(self._section, text)] = found
        for text in known.keys() - entries.keys():
            if not hasattr(self._section, attribute(self._section, text)):
                place = f"{at}.{text}".removeprefix(".")
                flaws.append((node.line, node.column, place, "expected a value, got nothing"))
        if misfit := self._section.misfit(given):
            text, expected = misfit
            flaws.append(wrong(entries[text][1], f"{at}.{text}".removeprefix("."), expected))
        return self._section(**given) if len(flaws) == whole else None

    def schema(self) -> dict[str, Any]:
        """Descriptions are what stands beside the kind of a key."""
        properties, required = {}, []
        for text, kind in kinds(self._section).items():
            name = attribute(self._section, text)
            told = kind.schema()
            notes = getattr(self._section.__annotations__[name], "__metadata__", ())
            for note in notes:
                if isinstance(note, str):
                    told["description"] = note
            if not hasattr(self._section, name):
                required.append(text)
            elif not isinstance(default := getattr(self._section, name), Section):
                told["default"] = default
            properties[text] = told
        needed = {"required": required} if required else {}
        return {
            "type": "object",
            "properties": properties,
            **needed,
            "additionalProperties": False,
        }


def kinds(section: type[Section]) -> dict[str, Kind]:
    """The keys of a section, as they are written, with what each takes."""
    found: dict[str, Kind] = {}
    for name, hint in section.__annotations__.items():
        notes = getattr(hint, "__metadata__", None)
        kind = next(note for note in notes if hasattr(note, "read")) if notes else SectionOf(hint)
        found[name.rstrip("_")] = kind
    return found


def attribute(section: type[Section], key: str) -> str:
    """A key's name in Python, which has other uses for some words."""
    return key if key in section.__annotations__ else f"{key}_"


def _unknown(key: str, known: list[str]) -> str:
    if near := nearest(key, known):
        return f"expected a known key, got an unknown one; did you mean `{near}`?"
    return f"expected one of {', '.join(known)}, got an unknown key"


class Queue(Section):
    path: Annotated[Text, "the queue; relative to the repository's root"] = ".patchq"
    settle_seconds: Annotated[Seconds, "quiet time that makes a file complete"] = 2.0
    watch: Annotated[Literal["auto", "poll"], one_of("auto", "poll")] = "auto"
    poll_seconds: Annotated[Seconds, "time between two looks at the inbox"] = 2.0
    hold_seconds: Annotated[Seconds, "how long a batch may wait for another"] = 3600.0
    retention_days: Annotated[Number, "0 keeps finished batches for ever"] = 30
    group: Annotated[MaybeText, "the group that may read reports"] = None


class Paths(Section):
    deny: Annotated[Patterns, "paths that no batch may touch, beyond the defaults"] = ()
    review: Annotated[Patterns, "paths that auto mode only proposes"] = ()
    new_directories: Annotated[Flag, "whether a batch may make directories"] = True


class Limits(Section):
    response_bytes: Count = 2 * 1024 * 1024
    file_bytes: Count = 4 * 1024 * 1024
    files: Count = 200
    edits: Count = 500


class Match(Section):
    rungs: Annotated[
        tuple[Rung, ...],
        ListOf(one_of(*RUNGS), _in_order),
        "what matching may ignore, in the ladder's order",
    ] = RUNGS
    confidence: Annotated[Share, "edits that state less are left out"] = 0.7


class LargeFile(Section):
    lines: Count = 500
    bytes: Count = 15_000


class Validate(Section):
    syntax: Annotated[Flag, "refuse results that no longer parse"] = True
    syntax_except: Annotated[Patterns, "files that are not parsed"] = ()
    elision: Annotated[Flag, "refuse `... rest unchanged` in new text"] = True
    shrink: Annotated[Share, "share of its lines that a rewritten file keeps"] = 0.5


class Hook(Section):
    id: Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9._-]*", "letters, digits, `.`, `_`, `-`")]
    stage: Annotated[Stage, one_of(*get_args(Stage))]
    run: Annotated[Text, "a shell line, or `patchq:NAME` for a shipped hook"]
    files: Annotated[Patterns, "run only if a changed path matches; empty: always"] = ()
    timeout_seconds: Seconds = 600.0
    env: Annotated[
        tuple[str, ...],
        ListOf(_VARIABLE),
        "variables that the hook gets from the daemon's environment",
    ] = ()
    fixes: Annotated[Flag, "its changes to files become part of the batch"] = False
    network: Annotated[
        bool | None, maybe(FLAG), "default: false before the commit, true after it"
    ] = None
    cache: Annotated[Flag, "remember passes for the same tree"] = True
    visible: Annotated[
        tuple[str, ...],
        ListOf(TEXT),
        "what it sees beside the system and its PATH; relative to the root",
    ] = ()
    unconfined: Annotated[Flag, "may run where no hook can be jailed"] = False
    events: Annotated[
        tuple[str, ...],
        ListOf(one_of("all", *EVENT_KINDS[1:])),
        "what a hook that is told hears of; empty: what its stage says",
    ] = ()

    @property
    def uses_network(self) -> bool:
        return self.stage.startswith("post-") if self.network is None else self.network

    @staticmethod
    def misfit(given: Mapping[str, Any]) -> tuple[str, str] | None:
        if given.get("events") and not given.get("stage", "").startswith("post-"):
            return "events", "nothing, as only hooks of `post-commit` and `post-reject` are told"
        if given.get("fixes") and given.get("stage", "pre-commit") != "pre-commit":
            return "fixes", "false, as only `pre-commit` hooks see files"
        return None


class Commit(Section):
    author: Annotated[str | None, maybe(_PERSON), "default: git's user.name and user.email"] = None
    author_from_response: Flag = False
    prose: Annotated[Flag, "put the response's prose into the commit's body"] = True
    sign: Annotated[
        Literal["auto", True, False],
        values("`auto`, true or false", "auto", True, False),
        "sign commits; auto: as git's commit.gpgSign says",
    ] = "auto"


class Worktree(Section):
    backup: Annotated[Flag, "keep a `.bak` copy of files that are updated"] = False


class Landing(Section):
    remote: Annotated[
        str | None,
        maybe(matching(r"[A-Za-z0-9][A-Za-z0-9._-]*", "the name of a remote, as `git remote` has")),
        "the remote that batches land on, by a push; default: the branches of this repository",
    ] = None
    poll_seconds: Annotated[Seconds, "time between two looks at an idle remote"] = 5.0
    push_timeout_seconds: Annotated[Seconds, "the longest that a push or a fetch may take"] = 60.0


class Llm(Section):
    base_url: Annotated[
        str | None, maybe(matching(r"https?://[^\s/]+\S*", "an http(s) address"))
    ] = None
    model: Annotated[MaybeText, "without one no model is ever asked"] = None
    api_key_env: MaybeVariable = None
    timeout_seconds: Seconds = 120.0
    correct: Annotated[Flag, "ask for quotes that match nothing"] = True
    max_attempts: Count = 3
    auto_retry: Annotated[Number, "how often a refused answer is asked for again"] = 0


class Stats(Section):
    prometheus: Annotated[MaybeText, "a file for the node exporter"] = None


class Review(Section):
    port: Annotated[int, PORT, "of the page on this machine; 0: any that is free"] = 8326


class Cluster(Section):
    """Many machines; without the section, one does everything."""

    database: Annotated[MaybeText, "the queue's; default: what PATCHQ_DATABASE says"] = None
    remote: Annotated[Text, "the repository in which batches land"] = "origin"
    lanes: Annotated[
        tuple[str, ...],
        ListOf(matching(r"(?!-)[^\s~^:\\]+", "a pattern of branch names")),
        "branches that workers of this machine land on",
    ] = ("*",)
    poll_seconds: Annotated[Seconds, "time between two looks at the database"] = 0.25
    takeover_seconds: Annotated[Seconds, "after that a silent worker counts as frozen"] = 10.0
    push_timeout_seconds: Annotated[Seconds, "for one push"] = 60.0


class Log(Section):
    level: Annotated[
        Literal["debug", "info", "warning", "error"], one_of("debug", "info", "warning", "error")
    ] = "info"
    format: Annotated[Literal["text", "json"], one_of("text", "json")] = "text"


def _ids_are_unique(hooks: tuple[Hook, ...]) -> str | None:
    ids = [hook.id for hook in hooks]
    if twice := sorted({id for id in ids if ids.count(id) > 1}):
        return f"an `id` of its own for each hook ({', '.join(twice)} is shared)"
    return None


class Config(Section):
    """All of `.patchq.yaml`; without arguments, the defaults."""

    version: Annotated[int, values("1", 1)] = 1
    target: Annotated[str | None, maybe(_BRANCH), "default: the home branch"] = None
    targets: Annotated[
        tuple[str, ...], ListOf(matching(r"(?!-)[^\s~^:\\]+", "a pattern of branch names"))
    ] = ()
    branches: Annotated[
        tuple[str, ...],
        ListOf(matching(r"(?!-)[^\s~^:\\]+", "a pattern of branch names")),
        "branches that are taken when they move",
    ] = ()
    mode: Annotated[Literal["review", "auto"], one_of("review", "auto")] = "review"
    queue: Queue = Queue()
    paths: Paths = Paths()
    limits: Limits = Limits()
    match: Match = Match()
    large_file: LargeFile = LargeFile()
    validate_: Validate = Validate()
    hooks: Annotated[tuple[Hook, ...], ListOf(SectionOf(Hook), _ids_are_unique)] = ()
    git_hooks: Flag = False
    commit: Commit = Commit()
    worktree: Worktree = Worktree()
    landing: Landing = Landing()
    confirm: Annotated[Flag, "ask before each batch; without a terminal: propose"] = False
    llm: Llm = Llm()
    stats: Stats = Stats()
    review: Review = Review()
    cluster: Cluster = Cluster()
    log: Log = Log()
