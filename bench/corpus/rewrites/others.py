"""What other programs make of the same cases, judged by the same judge.

aider's coders come from a checkout of its own (github.com/Aider-AI/aider), and see what they see in
aider: the answer's text, a folder with the files, and a way to read and write them.  `git apply`
and GNU patch get the answer as their patch.  A program that says no and has written a part of the
answer by then has landed that part.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.corpus.rewrites.cases import Case
from bench.corpus.rewrites.registry import BASE, Files, Outcome
from bench.corpus.rewrites.trial import Result
from bench.git import BenchError

COMMON = frozenset({
    "plain", "wrappers", "damage", "escapes", "paths", "documents", "talk", "shell", "neighbours",
    "order", "elision", "there already", "syntax",
})  # fmt: skip
"""Groups of kinds that say nothing of patchq's own forms."""
_BLOCKS = COMMON | {"blocks", "readings"}
READS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "aider": {"search_replace": _BLOCKS, "search_replace_fenced": _BLOCKS, "v4a": COMMON},
    "git apply": {"unified_diff": COMMON | {"diffs", "chains"}, "mail": COMMON | {"diffs"}},
    "patch": {"unified_diff": COMMON | {"diffs", "chains"}, "mail": COMMON | {"diffs"}},
}
"""The forms that each reads, and the groups of kinds to try in them."""
MANY = sys.maxsize
_NOISE = (".orig", ".rej")


class Refusal(Exception):
    """The program does not take the answer."""


Program = Callable[[Path, str, str], None]
"""Applies an answer, in a form, to the files of a folder; raises Refusal if it does not."""


@dataclass(frozen=True, slots=True)
class OtherTrial:
    """Decides on cases as `Trial` does, by another program."""

    name: str
    program: Program
    home: Path

    def close(self) -> None:
        """Nothing is held."""

    def decide_all(self, cases: Sequence[Case]) -> Iterator[Result]:
        for case in cases:
            groups = READS[self.name].get(case.brief.form.name, frozenset())
            text = case.rewrite.response
            if case.kind.group in groups and BASE not in text and not text.startswith(("{", "[")):
                yield self._decide(case)

    def _decide(self, case: Case) -> Result:
        folder = self.home / "work"
        shutil.rmtree(folder, ignore_errors=True)
        _write(folder, case.tip)
        began, why = time.perf_counter(), ""
        try:
            self.program(folder, case.rewrite.response, case.brief.form.name)
        except Refusal as refusal:
            why = str(refusal)
        landed = _read(folder)
        outcome: Outcome = "refused"
        if landed != case.tip:
            outcome = case.outcome_of(landed, MANY)
        return Result(
            kind=case.kind.name,
            group=case.kind.group,
            form=case.brief.form.name,
            task=case.brief.task.name,
            allowed=tuple(sorted(case.allowed)),
            outcome=outcome,
            why=why[:200],
            problems=(),
            seconds=time.perf_counter() - began,
        )


def other_trial(words: str, home: Path) -> OtherTrial:
    """By `aider:CHECKOUT`, `git apply` or `patch`."""
    name, _, place = words.partition(":")
    programs: Mapping[str, Callable[[], Program]] = {
        "aider": lambda: Aider(Path(place)),
        "git apply": lambda: _command("git", "apply", "-"),
        "patch": lambda: _command("patch", "-p1", "--batch", "--forward"),
    }
    if name not in programs:
        raise BenchError(f"--by {words}: known are {', '.join(programs)}")
    return OtherTrial(name, programs[name](), home)


def _command(*words: str) -> Program:
    def apply(folder: Path, answer: str, form: str) -> None:
        text = answer.encode("utf-8", "surrogatepass")
        ended = subprocess.run(words, cwd=folder, input=text, capture_output=True, check=False)
        if ended.returncode:
            raise Refusal((ended.stderr or ended.stdout).decode(errors="replace").strip())

    return apply


# ---------------------------------------------------------------- aider


class Aider:
    """aider's own coders, with the few things of aider round them that they use."""

    def __init__(self, checkout: Path) -> None:
        self._folder = checkout / "aider" / "coders"
        if not (self._folder / "editblock_coder.py").is_file():
            raise BenchError(f"no checkout of aider: {checkout}")
        _module("aider", utils=_module("aider.utils"), __path__=[])
        _module("aider.dump", dump=lambda *words: None)
        _module("aider.coders", __path__=[str(self._folder)])
        _module("aider.coders.base_coder", Coder=Desk)
        _module("aider.coders.editblock_prompts", EditBlockPrompts=object)
        _module("aider.coders.patch_prompts", PatchPrompts=object)
        self._blocks = self._coder("editblock_coder", "EditBlockCoder")
        self._patches = self._coder("patch_coder", "PatchCoder")

    def _coder(self, module: str, name: str) -> type[Desk]:
        full = f"aider.coders.{module}"
        spec = importlib.util.spec_from_file_location(full, self._folder / f"{module}.py")
        assert spec
        assert spec.loader
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[full] = loaded
        spec.loader.exec_module(loaded)
        coder: type[Desk] = getattr(loaded, name)
        return coder

    def __call__(self, folder: Path, answer: str, form: str) -> None:
        coder: Any = (self._patches if form == "v4a" else self._blocks)(folder, answer)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                edits = coder.apply_edits_dry_run(coder.get_edits())
                coder.apply_edits(edits)
        except Exception as error:  # whatever it is, aider tells it to the model
            raise Refusal(f"{type(error).__name__}: {error}") from error


class Desk:
    """The base that aider's coders have here: an answer, and the files of a folder."""

    fence = ("```", "```")

    def __init__(self, folder: Path, answer: str) -> None:
        self.root = str(folder)
        self.partial_response_content = answer
        self.io = self
        self.shell_commands: list[str] = []

    @property
    def abs_fnames(self) -> set[str]:
        return {str(path) for path in Path(self.root).rglob("*") if path.is_file()}

    def get_inchat_relative_files(self) -> list[str]:
        return sorted(map(self.get_rel_fname, self.abs_fnames))

    def get_rel_fname(self, path: str) -> str:
        return str(Path(path).relative_to(self.root))

    def abs_root_path(self, path: str) -> str:
        """What stands outside aider asks its user about: that is a no here."""
        full = (Path(self.root) / path).resolve()
        if not full.is_relative_to(Path(self.root).resolve()):
            raise Refusal(f"outside: {path}")
        return str(full)

    def apply_edits_dry_run(self, edits: object) -> object:
        return edits

    def read_text(self, path: str) -> str | None:
        try:
            return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None

    def write_text(self, path: str, text: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8", errors="surrogateescape")

    def tool_output(self, *words: object, **more: object) -> None:
        """Nobody looks."""

    tool_warning = tool_error = tool_output


def _module(name: str, **names: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(names)
    sys.modules[name] = module
    return module


# ---------------------------------------------------------------- files


def _write(folder: Path, files: Files) -> None:
    folder.mkdir(parents=True)
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogateescape"))


def _read(folder: Path) -> Files:
    return {
        str(path.relative_to(folder)): path.read_bytes().decode("utf-8", "surrogateescape")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(_NOISE)
    }
