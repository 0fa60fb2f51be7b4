"""Find configured hooks that could not be started, without running any.

The program that a hook's line begins with is started with `--version`, in a sandbox like the
hook's; the others that the line calls (`shell_line`) are only looked for: what is not on the PATH,
or where hooks do not see it, would stop the daemon.  A program that ends well outside and not in
the sandbox is taken for one that misses something, and its complaint is shown.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from msgspec import Struct

from patchq.gate.config.schema import Config, Hook
from patchq.gate.hooks import builtin, mounts, shell_line
from patchq.gate.hooks.configured import SHELL, environment, parts, shell_words
from patchq.gate.hooks.sandbox import HookExit, Job, can_sandbox, no_sandbox, run

_SECONDS = 20.0
_MOST_SAID = 300
_NEEDS = {"ruff": ("ruff",), "pre-commit-framework": ("prek", "pre-commit")}
"""What shipped hooks cannot do without: the first of these that there is."""

Flaw = tuple[tuple[str | int, ...], str]
"""The place of a key in the configuration, and what is wrong with it."""


class DryStart(Struct, frozen=True):
    """Where hooks are tried: they see the repository of `gitdir`, whose configured paths are below
    `home`, and its `queue`, which need not be there."""

    gitdir: Path
    home: Path
    queue: Path

    def flaws(self, config: Config) -> list[Flaw]:
        """What keeps hooks from starting."""
        return self.tried(config)[0]

    def tried(self, config: Config) -> tuple[list[Flaw], list[Flaw]]:
        """What keeps hooks from starting; and of the others what was not tried."""
        if not config.hooks:
            return [], []
        # Where the queue's file system takes nothing, `doctor` says so.
        below = self.queue / "hooks" if os.access(self.queue, os.W_OK | os.X_OK) else None
        if below:
            below.mkdir(exist_ok=True)
        with TemporaryDirectory(prefix="probe-", dir=below) as own:
            root = Path(os.path.realpath(own))
            sandboxes = can_sandbox(below or root)
            flaws: list[Flaw] = []
            notes: list[Flaw] = []
            for number, hook in enumerate(config.hooks):
                wrong = list(self._of(hook, root, sandboxes=sandboxes))
                flaws += [(("hooks", number, key), why) for key, why in wrong]
                path = environment(hook.env)["PATH"]
                if not wrong and (note := _Start(root, path, (), False).note(hook)):
                    notes.append((("hooks", number, "run"), note))
            return flaws, notes

    def _of(self, hook: Hook, root: Path, *, sandboxes: bool) -> Iterator[tuple[str, str]]:
        judges = hook.stage.startswith("pre-")
        visible = []
        for place in (mounts.located(place, self.home) for place in hook.visible):
            if why := mounts.unfit(place, (self.gitdir, self.queue)):
                yield "visible", f"expected what programs need, got `{place}`, which {why}"
            elif not os.path.exists(place):
                yield "visible", f"expected a path that is there, got `{place}`"
            else:
                visible.append(place)
        if hook.stage == "pre-commit" and not (sandboxes or hook.unconfined):
            why, cure = no_sandbox()
            yield (
                "unconfined",
                "expected true for a hook that runs what batches hold, as there is no sandbox: "
                f"{why} ({cure})",
            )
        path = environment(hook.env)["PATH"]
        seen = mounts.seen(os.pathsep.join((path, *parts(hook))), visible) if sandboxes else ()
        yield from (
            ("run", why)
            for why in filter(None, [_Start(root, path, seen, sandboxes and judges).flaw(hook)])
        )


class _Start(Struct, frozen=True):
    """How a program is started below `root`: by this PATH, with what it sees, sandboxed or not."""

    root: Path
    path: str
    seen: Sequence[str]
    sandboxed: bool

    def flaw(self, hook: Hook) -> str | None:
        name = builtin.name_in(hook.run)
        if name is not None:
            if why := builtin.misfit(name, hook.stage):
                return why
            needed = _NEEDS.get(name, ())
            found = [program for program in needed if shutil.which(program, path=self.path)]
            if needed and not found:
                return f"expected {' or '.join(needed)}, which it runs, on the PATH"
            judged = builtin.judge(name) and hook.stage == "pre-apply"
            own = [] if judged else [sys.executable]
            return next(filter(None, (self._missing(word) for word in (*own, *found))), None)
        if shutil.which(SHELL) is None:
            return f"expected {SHELL} to run it, and there is none"
        syntax = self._run([SHELL, "-n", "-c", hook.run], sandboxed=False)
        if syntax.code:
            last = syntax.output.strip().split("\n")[-1]
            return f"expected a line that the shell can read, got: {last}"
        line, word = shell_line.read(hook.run), _first_word(hook.run)
        if word is not None and _in_tree(word) and hook.stage.startswith("post-"):
            return f"expected a full path or a program on the PATH, got `{word}`: {_NO_TREE}"
        if line.ends is not None:
            return f"expected a line that can pass, and it always ends with {line.ends}: {_ENDS}"
        surely = [one.word for one in line.called if one.surely and one.word != word]
        why = None if word is None or _in_tree(word) else self._missing(word, hook.run)
        absent = (self._absent(one) for one in dict.fromkeys(surely) if not _in_tree(one))
        return why or next(filter(None, absent), None)

    def note(self, hook: Hook) -> str | None:
        """What of the hook's line was not tried; None where nothing of it is left."""
        if builtin.name_in(hook.run) is not None:
            return None
        line, word = shell_line.read(hook.run), _first_word(hook.run)
        own = [one.word for one in line.called if _in_tree(one.word)]
        rest = dict.fromkeys(one.word for one in line.called if one.word != word)
        unsure = [one for one in rest if one not in own and self._absent(one)]
        said = [f"`{one}`, which is not on the PATH, if the line comes to it" for one in unsure]
        if own:
            said.append(f"{_quoted(own)}, in the tree of each batch")
        if there := [one for one in rest if one not in (*own, *unsure)]:
            said.append(f"{_quoted(there)}, beyond being there")
        if not line.plain:
            said.append("what the shell puts together only when it runs the line")
        return "; ".join(said) or None

    def _absent(self, word: str) -> str | None:
        """Why the shell would not find the program."""
        find = [SHELL, "-c", 'command -v -- "$1"', SHELL, word]
        outside = self._run(find, sandboxed=False)
        if outside.code:
            return f"expected a program to run, and there is no `{word}` on the PATH"
        if self.sandboxed and self._run(find, sandboxed=True).code:
            where = outside.output.strip()
            return f"expected a program that hooks see, which `{where}` is not: {_CURE}"
        return None

    def _missing(self, word: str, line: str = "") -> str | None:
        """Why the program, with which the line begins, would not start."""
        if (why := self._absent(word)) or not self.sandboxed:
            return why
        find = [SHELL, "-c", 'command -v -- "$1"', SHELL, word]
        if not self._run(find, sandboxed=True).output.startswith("/"):
            return None  # the shell itself does that
        module = _module(line, word)
        attempt = [word, *module, "--version"]
        end = self._run(attempt, sandboxed=True)
        if end.code in (0, None):
            return None
        if end.code not in (126, 127) and self._run(attempt, sandboxed=False).code != 0:
            return None
        said = end.output.strip()[-_MOST_SAID:]
        return (
            f"expected a program that starts in the sandbox, where `{' '.join(attempt)}` ends with "
            f"{end.code}, {said or 'and says nothing'}: {_CURE}"
        )

    def _run(self, argv: Sequence[str], *, sandboxed: bool) -> HookExit:
        room, tree = self.root / "room", self.root / "tree"
        room.mkdir(exist_ok=True)
        (tree / ".git").mkdir(parents=True, exist_ok=True)
        with open(os.devnull) as nothing:
            job = Job(
                argv=argv,
                env={"PATH": self.path, "LANG": "C.UTF-8", "HOME": str(room / "home")},
                where=tree,
                room=room,
                lock=nothing.fileno(),
                timeout=_SECONDS,
                sandboxed=sandboxed,
                shown=self.seen,
                tree=tree,
                network=not sandboxed,
            )
            with run(job, Event()) as end:
                return end


_NO_TREE = "it starts in the git directory, where no branch has a file"
_ENDS = "by 126 and 127 a hook says that it cannot start; refuse with 1 to 125"
_CURE = "name what it is made of in `visible`, or put it on the PATH"


def _in_tree(word: str) -> bool:
    """Whether it is a file of the candidate's own tree."""
    return "/" in word and not word.startswith("/")


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _module(line: str, word: str) -> list[str]:
    """`-m NAME` behind the line's first word, where that is a Python."""
    words = shell_words(line)
    behind = words[words.index(word) + 1 :][:2] if word in words else []
    is_python = os.path.basename(word).startswith("python")
    return behind if is_python and len(behind) == 2 and behind[0] == "-m" else []


def _first_word(line: str) -> str | None:
    """The program that a simple shell line starts with; None where that is not plain to see."""
    word = next((word for word in shell_words(line) if "=" not in word), None)
    return None if word is None or any(char in word for char in "$`(){};&|<>*?[]!~") else word
