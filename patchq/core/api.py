"""The library: a response and files in, new contents or a refusal out.

Nothing here knows git, reads or writes a file, or asks a clock.  A refusal is a value, `Result`;
who wants it raised calls `raise_for_refusal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from patchq.core import formats as forms
from patchq.core.formats import account
from patchq.core.formats.envelope.front_matter import open_response
from patchq.core.formats.marks.paths import base_paths
from patchq.core.model.listing import Listing, Unreadable
from patchq.core.model.names import deny_secrets
from patchq.core.model.values import (
    Edit,
    EditOutcome,
    Entry,
    Envelope,
    FileChange,
    Header,
    Parsed,
    Plan,
    Problem,
)
from patchq.core.plan import batch, links, syntax, targets
from patchq.core.resolve.levels import LEVELS
from patchq.core.text import retry, unified

# Contents by path: relative to one root, with `/` between directories.
Files = Mapping[str, str | bytes]

_FILE, _DIRECTORY = Entry("file", ""), Entry("tree", "")


class MappedTree:
    """The files of a mapping.  Each is read once, when it is needed.

    Raises `TypeError` or `ValueError` for a key that is no path.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._names: dict[str, dict[str, None]] = {"": {}}  # the names in each directory
        self._contents: dict[str, bytes] = {}
        self._paths = dict.fromkeys(files)
        for path in self._paths:
            _check(path)
            directory, _, name = path.rpartition("/")
            while directory not in self._names:
                self._names[directory] = {name: None}
                directory, _, name = directory.rpartition("/")
            self._names[directory][name] = None

    def entry(self, path: str) -> Entry | None:
        if path in self._paths:
            return _FILE
        return _DIRECTORY if path in self._names else None

    def read(self, path: str) -> bytes:
        if path not in self._contents:
            try:
                data = self._files[path]
                self._contents[path] = data.encode() if isinstance(data, str) else bytes(data)
            except (LookupError, OSError, UnicodeError) as error:
                raise Unreadable(f"{path} cannot be read: {error!r}") from error
        return self._contents[path]

    def names(self, directory: str) -> tuple[str, ...]:
        return tuple(self._names.get(directory, ()))

    def paths(self) -> Iterator[str]:
        return iter(self._paths)

    def listing(self) -> Listing:
        return Listing.of(self.paths())

    def filtered(self, path: str) -> str | None:
        return None  # a mapping has the files' texts


def _check(path: object) -> None:
    if not isinstance(path, str):
        raise TypeError(f"files: expected each key to be a path as str, got {path!r}")
    if not path or any(part in f"/{path}/" for part in ("//", "/./", "/../")):
        raise ValueError(
            f"files: expected each key to be a path below one root, like 'src/a.py', got {path!r}"
        )


class Rules(Struct, frozen=True, kw_only=True):
    """Limits on what edits may do, and on how loosely they may quote.

    Raises `ValueError` for a value that means nothing.
    """

    levels: tuple[str, ...] = LEVELS
    """The ways in which a quote may differ from the file, in the order of trial."""
    deny: Callable[[str], str | None] = deny_secrets
    """Returns the reason why a path may not be changed, or None where it may be."""
    max_file_bytes: int = 4 << 20
    """The most bytes of a file that is edited, and of one that comes of it."""
    elision: bool = True
    """Refuse new text with `... rest unchanged ...` in place of code."""
    min_kept: float = 0.5
    """The share of its lines that a file keeps when it is written as a whole."""
    min_confidence: float = 0.7
    """Leave out edits that state a lower confidence."""
    syntax: bool = True
    """Refuse a file that no longer parses, where it did before."""

    def __post_init__(self) -> None:
        unknown = [level for level in self.levels if level not in LEVELS]
        if unknown or self.levels[:1] != ("exact",):
            raise ValueError(
                f"levels: expected 'exact', and then any of {', '.join(LEVELS[1:])}; "
                f"got {self.levels!r}"
            )
        for name in ("min_kept", "min_confidence"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: expected 0 to 1, got {getattr(self, name)!r}")


class Result(Struct, frozen=True):
    """The new contents that a response makes, or the reasons for a refusal."""

    changes: tuple[FileChange, ...] = ()
    """The files that change, each with its contents before and after; empty in a refusal."""
    edits: tuple[EditOutcome, ...] = ()
    """The outcome of each edit, with its place in the file."""
    problems: tuple[Problem, ...] = ()
    """The errors, which refuse the response, and the warnings."""
    prose: str = ""
    """The text round the edits."""
    header: Header = field(default_factory=Header)
    """The response's front matter."""

    @property
    def ok(self) -> bool:
        """True if nothing was refused."""
        return not self.errors

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that refuse the response."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def files(self) -> dict[str, bytes | None]:
        """The new contents of changed files by path, None for deleted ones."""
        gone = {c.renamed_from: None for c in self.changes if c.renamed_from is not None}
        return {**gone, **{change.path: change.after for change in self.changes}}

    @property
    def diff(self) -> str:
        """The changes as one unified diff, as git writes it."""
        return unified.unified(self.changes)

    def raise_for_refusal(self) -> Result:
        """Return this result, or raise `Refused` if the response was refused."""
        if not self.ok:
            raise Refused(self)
        return self

    def retry_prompt(self) -> str:
        """Return the prompt that asks the model for the response again.

        It is "" if the response was not refused.
        """
        if self.ok:
            return ""
        descriptions = {edit.id: edit.description for edit in self.edits}
        good = [edit.id for edit in self.edits if edit.state == "ready"]
        instructions = forms.instructions_after(self.problems, self.edits)
        return retry.prompt(self.problems, descriptions, retry.what_to_send(instructions, good))


class Refused(ValueError):
    """A response was refused, with its `result`."""

    def __init__(self, result: Result) -> None:
        super().__init__("; ".join(problem.message for problem in result.errors))
        self.result = result


def apply(
    response: str | bytes, files: Files, rules: Rules | None = None, *, exact_base: bool = False
) -> Result:
    """Return what a response makes of `files`: all of its edits, or none.

    `exact_base` says that the author saw the files exactly as they are, so that line numbers may
    be believed and a file may be rewritten without a quote of it.
    """
    tree, opened = MappedTree(files), open_response(_encoded(response))
    if not isinstance(opened, Envelope):
        return Result(problems=opened)
    try:
        parsed = forms.parse(opened.text, base_paths(tree), opened.header, opened.first_line)
        result = _planned(parsed, tree, rules or Rules(), exact_base)
    except Unreadable as error:
        result = Result(problems=(_unreadable(error),))
        parsed = Parsed()
    return replace(result, prose=parsed.prose, header=opened.header)


def parse(response: str | bytes, files: Files | None = None) -> Parsed:
    """Return the edits of a response, with its prose and problems.

    `files` decide which words of the response are paths; no file but those that it names is read.
    """
    opened = open_response(_encoded(response))
    if not isinstance(opened, Envelope):
        return Parsed(problems=opened)
    paths = base_paths(MappedTree(files or {}))
    try:
        return forms.parse(opened.text, paths, opened.header, opened.first_line)
    except Unreadable as error:
        return Parsed(problems=(_unreadable(error),))


def plan(
    edits: Sequence[Edit], files: Files, rules: Rules | None = None, *, exact_base: bool = False
) -> Result:
    """Return the result of all edits on `files`, or of none; see `apply`."""
    try:
        return _planned(Parsed(edits=tuple(edits)), MappedTree(files), rules or Rules(), exact_base)
    except Unreadable as error:
        return Result(problems=(_unreadable(error),))


def formats() -> tuple[str, ...]:
    """Return the names of the forms in which edits are read."""
    from patchq.core.formats.registry import FORMATS

    return tuple(FORMATS)


def instructions(format: str = "search_replace", path: str | None = None) -> str:
    """Return instructions that teach a model to write edits in a format.

    `path` is the path in the example.  Raises `ValueError` for a format that `formats` does not
    have.
    """
    if format not in formats():
        raise ValueError(f"format: expected one of {', '.join(formats())}, got {format!r}")
    return forms.instructions(format, path)


def _planned(parsed: Parsed, tree: MappedTree, rules: Rules, exact_base: bool) -> Result:
    problems = parsed.problems
    if not parsed.edits and not any(problem.severity == "error" for problem in problems):
        hint = "send every change as a SEARCH/REPLACE block"
        problems += (Problem("response.no_edits", "the response holds no edit", hint),)
    if any(problem.severity == "error" for problem in problems):
        return Result(problems=problems)
    limits = targets.PlanRules(
        levels=tuple(level for level in LEVELS if level in rules.levels),
        denied=rules.deny,
        file_bytes=rules.max_file_bytes,
        elision=rules.elision,
        shrink=rules.min_kept,
        confidence=rules.min_confidence,
        judged=lambda path: rules.syntax,
    )
    made = batch.plan(parsed.edits, tree, limits, declared=exact_base)
    flaws = list(_flaws(parsed, made, tree, limits))
    if any(problem.severity == "error" for problem in flaws):
        ready = (replace(e, state="ready") if e.state == "applied" else e for e in made.edits)
        made = replace(made, changes=(), edits=tuple(ready), blind=())
    blind = () if exact_base else map(_rewritten_unseen, made.blind)
    return Result(made.changes, made.edits, (*problems, *flaws, *blind))


def _flaws(
    parsed: Parsed, made: Plan, tree: MappedTree, rules: targets.PlanRules
) -> tuple[Problem, ...]:
    """Return the problems of a plan and of its results.

    A refused plan has only its own.
    """
    if made.refused:
        return made.problems
    beside = account.beside(parsed.shown, parsed.named, parsed.edits, made, tree)
    flaws = (*made.problems, *beside)
    changes = made.changes
    sizes = ((it.path, len(it.after)) for it in changes if it.after is not None)
    large = targets.too_large(sizes, rules.file_bytes)
    misplaced = (*targets.misplaced(changes, tree, rules), *links.flaws(changes, tree, rules))
    judged = [change for change in changes if rules.judged(change.path)]
    results = (*((large,) if large else ()), *misplaced) or syntax.broken(judged)
    return (*flaws, *results)


def _rewritten_unseen(path: str) -> Problem:
    return Problem(
        "base.unknown",
        f"{path} is changed without a quote of what it held, so its author may have seen another",
        "look at the change before you keep it, or pass `exact_base=True` if the file is as its "
        "author saw it",
        severity="warning",
        path=path,
    )


def _unreadable(error: Unreadable) -> Problem:
    hint = "make sure that the mapping gives the text or the bytes of each path that it lists"
    return Problem("file.unreadable", str(error), hint)


def _encoded(response: str | bytes) -> bytes:
    """Return the bytes of a response.

    Half a surrogate pair becomes bytes that are not UTF-8.
    """
    return response.encode("utf-8", "surrogatepass") if isinstance(response, str) else response
