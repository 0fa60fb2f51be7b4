"""The configuration's keys, types, defaults and limits."""

# No `from __future__ import annotations`: the annotations are read when the program runs.

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, dataclass_transform, get_args

from msgspec import Meta, Struct

from patchq.gate.config.policy import pattern_error
from patchq.gate.report.schema import NotifiedKind

Rung = Literal[
    "exact", "line_endings", "trailing_whitespace", "indentation", "edge_blank_lines",
    "typography", "line_numbers", "unescaped", "elided",
]  # fmt: skip
RUNGS: tuple[Rung, ...] = get_args(Rung)
HookStage = Literal["pre-apply", "pre-commit", "post-commit", "post-reject"]


def takes(expected: str, pattern: str | None = None, **bounds: Any) -> Meta:
    """Return bounds, and the words for what they expect; a pattern matches all of a text."""
    if pattern:
        bounds["pattern"] = rf"^(?:{pattern})$(?!\n)"  # `$` alone matches before a last line's end
    return Meta(**bounds, extra={"expected": expected})


def check(error: Callable[[Any], str | None]) -> Meta:
    """Return a note that has a value checked; `error` returns what was expected of a wrong one."""
    return Meta(extra={"check": error})


def about(description: str) -> Meta:
    return Meta(description=description)


def _in_order(rungs: tuple[Rung, ...]) -> str | None:
    if rungs[:1] == ("exact",) and list(rungs) == [rung for rung in RUNGS if rung in rungs]:
        return None
    return f"`exact`, then others in the order {', '.join(RUNGS)}"


def _is_private(address: str | None) -> str | None:
    """Return what was expected of an address to which a token is sent."""
    local = re.match(r"http://(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?(/|$)", address or "")
    if local or not (address or "").startswith("http://"):
        return None
    return "an https address, as the token goes there"


def _is_pattern(text: str) -> str | None:
    return "a gitignore pattern" if pattern_error(text) else None


Text = Annotated[str, Meta(pattern=r"\S", extra={"expected": "text"})]
Flag = Annotated[bool, takes("true or false")]
Count = Annotated[int, takes("a whole number above 0", gt=0)]
Number = Annotated[int, takes("a whole number, at least 0", ge=0)]
Seconds = Annotated[float, takes("a number above 0, at most 1000000000", gt=0, le=10**9)]
Share = Annotated[float, takes("a number from 0 to 1", ge=0, le=1)]
Patterns = tuple[Annotated[Text, check(_is_pattern)], ...]
Variable = Annotated[str, takes("the name of a variable", r"[A-Za-z_][A-Za-z0-9_]*")]
Branch = Annotated[
    str, takes("the name of a branch", r"(?![-/])(?!.*(?:\.\.|@\{|//|/$))[^\s~^:?*\[\\]+")
]
Branches = tuple[Annotated[str, takes("a pattern of branch names", r"(?!-)[^\s~^:\\]+")], ...]
Person = Annotated[str, takes("`Name <mail@example.org>`", r"[^<>\n]*[^<>\s] <[^<>\s]+>")]
Remote = Annotated[
    str, takes("the name of a remote, as `git remote` has", r"[A-Za-z0-9][A-Za-z0-9._-]*")
]
Name = Annotated[str, takes("letters, digits, `.`, `_`, `-`", r"[A-Za-z0-9][A-Za-z0-9._-]*")]
Address = Annotated[str, takes("an http(s) address", r"https?://[^\s/]+\S*")]
Login = Annotated[str, takes("a login, or a team as `organisation/team`", r"[\w.-]+(?:/[\w.-]+)*")]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Section(
    Struct, frozen=True, forbid_unknown_fields=True, rename=lambda name: name.rstrip("_")
):
    """Keys and values; `_` ends the name of a key that Python has another use for."""

    shorthand: ClassVar[str] = ""  # the key that a lone scalar is the value of

    @staticmethod
    def misfits(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each key whose value does not fit the others, and the expectation."""
        yield from ()


class Queue(Section):
    path: Annotated[Text, about("the queue; relative to the repository's root")] = ".patchq"
    settle_seconds: Annotated[Seconds, about("quiet time that makes a file complete")] = 2.0
    watch: Literal["auto", "poll"] = "auto"
    poll_seconds: Annotated[Seconds, about("time between two looks at the inbox")] = 2.0
    hold_seconds: Annotated[Seconds, about("how long a batch may wait for another")] = 3600.0
    retention_days: Annotated[Number, about("0 keeps finished batches for ever")] = 30
    group: Annotated[Text | None, about("the group that may read reports")] = None
    network_disk: Annotated[Flag, about("work on a network file system, for one machine")] = False


class Paths(Section):
    deny: Annotated[Patterns, about("paths that no batch may touch, beyond the defaults")] = ()
    review: Annotated[Patterns, about("paths that auto mode only proposes")] = ()
    new_directories: Annotated[Flag, about("whether a batch may make directories")] = True


class Limits(Section):
    response_bytes: Count = 2 * 1024 * 1024
    file_bytes: Count = 4 * 1024 * 1024
    files: Count = 200
    edits: Count = 500


class Match(Section):
    rungs: Annotated[
        tuple[Rung, ...],
        check(_in_order),
        about("what matching may ignore, in the ladder's order"),
    ] = RUNGS
    confidence: Annotated[Share, about("edits that state less are left out")] = 0.7


class LargeFile(Section):
    lines: Count = 500
    bytes: Count = 15_000


class Validate(Section):
    syntax: Annotated[Flag, about("refuse results that no longer parse")] = True
    syntax_except: Annotated[Patterns, about("files that are not parsed")] = ()
    elision: Annotated[Flag, about("refuse `... rest unchanged` in new text")] = True
    shrink: Annotated[Share, about("share of its lines that a rewritten file keeps")] = 0.5


class Hook(Section):
    id: Name
    stage: HookStage
    run: Annotated[Text, about("a shell line, or `patchq:NAME` for a shipped hook")]
    files: Annotated[Patterns, about("run only if a changed path matches; empty: always")] = ()
    timeout_seconds: Seconds = 600.0
    env: Annotated[
        tuple[Variable, ...],
        about("variables that the hook gets from the daemon's environment"),
    ] = ()
    fixes: Annotated[Flag, about("its changes to files become part of the batch")] = False
    each: Annotated[
        Flag, about("judges every commit by itself, not the joined tree of a train")
    ] = False
    network: Annotated[Flag | None, about("default: false before the commit, true after it")] = None
    cache: Annotated[Flag, about("remember passes for the same tree")] = True
    visible: Annotated[
        tuple[Text, ...],
        about("what it sees beside the system and its PATH; relative to the root"),
    ] = ()
    unconfined: Annotated[Flag, about("may run where there is no sandbox")] = False
    checks: Annotated[
        tuple[Text, ...],
        about("names that `patchq:ci` waits for; empty: those that the target requires"),
    ] = ()
    events: Annotated[
        tuple[Literal["all", NotifiedKind], ...],
        about("what a hook that is told hears of; empty: what its stage says"),
    ] = ()

    @property
    def uses_network(self) -> bool:
        return self.stage.startswith("post-") if self.network is None else self.network

    @staticmethod
    def misfits(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if given.get("events") and not given.get("stage", "post-").startswith("post-"):
            yield "events", "nothing, as only hooks of `post-commit` and `post-reject` are told"
        if given.get("checks") and given.get("run") != "patchq:ci":
            yield "checks", "nothing, as only `patchq:ci` waits for checks of a forge"
        if given.get("fixes") and given.get("stage", "pre-commit") != "pre-commit":
            yield "fixes", "false, as only `pre-commit` hooks see files"


class Commit(Section):
    author: Annotated[Person | None, about("default: git's user.name and user.email")] = None
    author_from_response: Flag = False
    prose: Annotated[Flag, about("put the response's prose into the commit's body")] = True
    sign: Annotated[
        Literal["auto"] | bool,
        takes("`auto`, true or false"),
        about("sign commits; auto: as git's commit.gpgSign says"),
    ] = "auto"


class Worktree(Section):
    backup: Annotated[Flag, about("keep a `.bak` copy of files that are updated")] = False


class TrainLimits(Section):
    batches: Annotated[
        int,
        takes("a whole number from 1 to 256", ge=1, le=256),
        about("changes that are accepted and checked together, at most"),
    ] = 256
    parallel: Annotated[
        int,
        takes("a whole number from 1 to 8", ge=1, le=8),
        about("runs of the hooks at a time while a refusal is searched for"),
    ] = 1


class Landing(Section):
    remote: Annotated[
        Remote | None,
        about(
            "the remote that batches land on, by a push; default: the branches of this repository"
        ),
    ] = None
    poll_seconds: Annotated[Seconds, about("time between two looks at an idle remote")] = 5.0
    push_timeout_seconds: Annotated[
        Seconds, about("the longest that a push or a fetch may take")
    ] = 60.0


class Llm(Section):
    base_url: Address | None = None
    model: Annotated[Text | None, about("without one no model is ever asked")] = None
    api_key_env: Variable | None = None
    timeout_seconds: Seconds = 120.0
    correct: Annotated[Flag, about("ask for quotes that match nothing")] = True
    max_attempts: Count = 3
    auto_retry: Annotated[Number, about("how often a refused answer is asked for again")] = 0


class Stats(Section):
    prometheus: Annotated[Text | None, about("a file for the node exporter")] = None


class Review(Section):
    port: Annotated[
        int,
        takes("a port from 0 to 65535", ge=0, le=65535),
        about("of the page on this machine; 0: any that is free"),
    ] = 8326


class Cluster(Section):
    """The queue that many machines share; one machine works alone without this section."""

    database: Annotated[Text | None, about("the queue's; default: what PATCHQ_DATABASE says")] = (
        None
    )
    remote: Annotated[Text, about("the repository in which batches land")] = "origin"
    lanes: Annotated[
        Branches,
        about("branches that workers of this machine land on"),
    ] = ("*",)
    poll_seconds: Annotated[Seconds, about("time between two looks at the database")] = 0.25
    takeover_seconds: Annotated[Seconds, about("after that a silent worker counts as frozen")] = (
        10.0
    )
    push_timeout_seconds: Annotated[Seconds, about("for one push")] = 60.0


_NO_CLUSTER = Cluster()


class Forge(Section):
    """The forge that shows proposals as pull requests; without this section none is asked."""

    kind: Annotated[
        Literal["github", "gitlab"] | None, about("default: what the host of the remote tells")
    ] = None
    url: Annotated[
        Address | None,
        check(_is_private),
        about("the address of its API; default: what the URL of the remote tells"),
    ] = None
    remote: Annotated[Remote, about("the remote with the project and its branches")] = "origin"
    token_env: Annotated[Variable, about("the variable that holds the token")] = (
        "PATCHQ_FORGE_TOKEN"
    )
    token_command: Annotated[
        Text | None, about("a command that prints the token, in place of the variable")
    ] = None
    people: Annotated[
        tuple[Login, ...], about("who decides there; default: who may write to the project")
    ] = ()
    on_approve: Annotated[Literal["none", "accept"], about("what an approval there does here")] = (
        "none"
    )
    on_close: Annotated[
        Literal["discard", "keep"], about("what closing a pull request does here")
    ] = "discard"
    land: Annotated[
        Literal["push", "merge"], about("changes land by a push, or by the forge's own merge")
    ] = "push"
    poll_seconds: Annotated[Seconds, about("time between two rounds")] = 30.0
    write_seconds: Annotated[
        Annotated[float, takes("a number from 0 to 60", ge=0, le=60)],
        about("least time between two writes"),
    ] = 1.0


_NO_FORGE = Forge()


class Log(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


def _ids_are_unique(hooks: tuple[Hook, ...]) -> str | None:
    ids = [hook.id for hook in hooks]
    if twice := sorted({id for id in ids if ids.count(id) > 1}):
        return f"an `id` of its own for each hook ({', '.join(twice)} is shared)"
    return None


class Config(Section):
    """The whole of `.patchq.yaml`."""

    version: Literal[1] = 1
    target: Annotated[Branch | None, about("default: the home branch")] = None
    targets: Branches = ()
    branches: Annotated[
        Branches,
        about("branches that are taken when they move"),
    ] = ()
    mode: Literal["review", "auto"] = "review"
    queue: Queue = Queue()
    paths: Paths = Paths()
    limits: Limits = Limits()
    match: Match = Match()
    large_file: LargeFile = LargeFile()
    validate_: Validate = Validate()
    hooks: Annotated[tuple[Hook, ...], check(_ids_are_unique)] = ()
    git_hooks: Flag = False
    commit: Commit = Commit()
    worktree: Worktree = Worktree()
    landing: Landing = Landing()
    train: TrainLimits = TrainLimits()
    confirm: Annotated[Flag, about("ask before each batch; without a terminal: propose")] = False
    llm: Llm = Llm()
    stats: Stats = Stats()
    review: Review = Review()
    cluster: Cluster = _NO_CLUSTER
    forge: Forge = _NO_FORGE
    log: Log = Log()

    @property
    def has_cluster(self) -> bool:
        """True where the file has the section, be it empty."""
        return self.cluster is not _NO_CLUSTER

    @property
    def merges_there(self) -> bool:
        """True where the forge alone lands what is accepted."""
        return self.forge.land == "merge"

    @property
    def has_forge(self) -> bool:
        """True where the file has the section, be it empty."""
        return self.forge is not _NO_FORGE
