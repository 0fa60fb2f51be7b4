"""Install patchq's hooks: the default gate in `.patchq.yaml`, and scripts beside git's own.

The configuration file is its owner's: comments, order and spelling stay.  Lines are put in only
where no hook is configured yet, and only if the file then means the same as before, and the gate.

In the place of a hook of git's goes a small script that runs the one which was there before, and
then patchq's.  The old one is kept beside it under another name; if it is a shell script, it still
sees its old name as `$0`, by which some find their other parts.  Each step is one rename over the
hook: there is no moment without one.  `core.hooksPath` decides where: a relative one is another
directory for each work tree, and for the hooks of a push one in each work tree's git directory,
where git starts them.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from patchq.gate.config import config_file
from patchq.gate.config.config_file import ConfigError
from patchq.gate.config.schema import Config
from patchq.gate.errors import UsageError
from patchq.gate.git import files
from patchq.gate.git.command import Git
from patchq.gate.hooks import configured

# An entry of `hooks`.
GATE = """\
  - id: gate
    stage: pre-apply
    run: patchq:pre-apply
"""

_NO_HOOKS = re.compile(r"(?m)^hooks:[ \t]*(?:\[[ \t]*\]|~|null)?(?P<comment>[ \t]+#.*)?$\n?")


def is_enabled(config: Config, name: str = configured.GATE) -> bool:
    return any(hook.run == configured.PREFIX + name for hook in config.hooks)


def enable(data: bytes) -> bytes | None:
    """Return the configuration file with the gate, or None.

    It is None if its own hooks, or its form, leave no room for lines that are surely right.  Raises
    `ConfigError` for a file that cannot be read.
    """
    before = config_file.parse(data)
    if before.hooks:
        return None
    text, found = _NO_HOOKS.subn(
        lambda at: f"hooks:{at['comment'] or ''}\n{GATE}", data.decode(), count=1
    )
    if not found:
        gap = "" if not text or text.endswith("\n") else "\n"
        text = f"{text}{gap}\nhooks:\n{GATE}"
    try:
        after = config_file.parse(text.encode())
    except ConfigError:
        return None
    unchanged = replace(after, hooks=()) == before
    return text.encode() if unchanged and is_enabled(after) else None


# By which git asks `proc-receive`, and lets a push have options.
SETTINGS = {"receive.procReceiveRefs": "refs/for", "receive.advertisePushOptions": "true"}


def to_set_up(directory: Path) -> list[str]:
    git = Git(directory=directory)
    return [
        key
        for key, value in SETTINGS.items()
        if value not in git.run("config", "--local", "--get-all", key).text.splitlines()
    ]


def set_up(directory: Path, keys: Iterable[str]) -> None:
    """Make those settings in the repository's configuration; what is there stays."""
    for key in keys:
        _git(directory, "config", "--local", "--add", key, SETTINGS[key])


def take_down(directory: Path, keys: Iterable[str]) -> None:
    """Undo the settings, as far as they still are what was made."""
    for key in keys:
        Git(directory=directory).run("config", "--local", "--unset-all", key, f"^{SETTINGS[key]}$")


SUFFIX = ".before-patchq"
MARK = "# Made by `patchq hooks install --git`"


class HookFile(Struct, frozen=True):
    name: str
    file: Path

    @property
    def before(self) -> Path:
        return self.file.with_name(self.file.name + SUFFIX)

    @property
    def state(self) -> Literal["installed", "absent", "other"]:
        """The hook that is there: patchq's, none, or another one."""
        if not os.path.lexists(self.file):
            return "absent"
        plain = self.file.is_file() and not self.file.is_symlink()
        return "installed" if plain and MARK.encode() in self.file.read_bytes()[:200] else "other"


def places(directory: Path) -> Iterator[HookFile]:
    """Yield the files where git looks for each hook, in every work tree."""
    roots = [
        Path(line.removeprefix("worktree "))
        for line in _git(directory, "worktree", "list", "--porcelain").splitlines()
        if line.startswith("worktree ")
    ]
    yield from dict.fromkeys(
        HookFile(name, _directory_for(name, root) / name)
        for root in roots
        if root.is_dir()
        for name in configured.GIT_SUMMARIES
    )


def _directory_for(name: str, root: Path) -> Path:
    if name in configured.RECEIVING and _git(root, "rev-parse", "--is-bare-repository") == "false":
        named = _git(root, "config", "--type=path", "--default", "", "core.hooksPath")
        if named and not Path(named).is_absolute():
            return (root / _git(root, "rev-parse", "--absolute-git-dir") / named).resolve()
    return (root / _git(root, "rev-parse", "--git-path", "hooks")).resolve()


def _git(directory: Path, *words: str) -> str:
    done = Git(directory=directory).run(*words)
    if done.code != 0:
        raise UsageError(f"git {' '.join(words)}: {done.complaint}")
    return done.text


def install(place: HookFile) -> bool:
    """Install patchq's hook; return False if the same one is there already."""
    text = _script(place.name)
    if place.state == "installed":
        if place.file.read_text(encoding="utf-8") == text:
            return False
    elif place.state == "other":
        _keep(place)
    place.file.parent.mkdir(parents=True, exist_ok=True)
    via = place.file.with_name(f".{place.name}.{os.getpid()}")
    files.replace(place.file, text.encode(), via=via, mode=0o777, flush=True)
    return True


def _keep(place: HookFile) -> None:
    if os.path.lexists(place.before) and not _same(place.file, place.before):
        raise UsageError(
            f"{place.file} was put over patchq's hook, and {place.before.name} is what was there "
            "earlier still",
            "remove the one that you do not need, and install again",
        )
    place.before.unlink(missing_ok=True)
    os.link(place.file, place.before, follow_symlinks=False)


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()


def uninstall(place: HookFile) -> bool:
    """Put back the hook that was there; False if there is nothing of patchq's.

    Raises `UsageError` and leaves both where another hook was put in place of patchq's."""
    kept, state = os.path.lexists(place.before), place.state
    if state != "installed" and not kept:
        return False
    if not kept:
        place.file.unlink()
    elif state != "other":
        os.replace(place.before, place.file)
    elif _same(place.file, place.before):
        place.before.unlink()
    else:
        raise UsageError(
            f"{place.file} is not patchq's any more, and {place.before.name} is what was there "
            "before patchq's",
            "remove the one that you do not need",
        )
    return True


def _script(name: str) -> str:
    judges, takes_input = not name.startswith("post-"), name in _READS
    body = _HANDS_OVER if name == "proc-receive" else _RUNS_BOTH
    return (_TEMPLATE + body).format(
        mark=MARK,
        name=name,
        before=name + SUFFIX,
        python=shlex.quote(sys.executable),
        script=shlex.quote(str(configured.git_script(name))),
        save=_SAVE if takes_input else "",
        input=' <"$input"' if takes_input else "",
        stop='[ "$status" -eq 0 ] || exit "$status"\n' if judges else "",
        gone=int(judges),
    )


# The hooks to which git tells something on standard input, at once.
_READS = ("pre-push", "post-rewrite", "pre-receive")
_SAVE = """\
input=$(mktemp) || exit 1
trap 'rm -f "$input"' EXIT
cat >"$input"
"""

_TEMPLATE = """\
#!/bin/sh
{mark}: runs the hook that was here before, then patchq's own.
# `patchq hooks uninstall` puts back what was here.
here=${{0%/*}}
before=$here/{before}
PATCHQ_PYTHON={python}
PATCHQ_PARENT=$PPID
ours={script}
export PATCHQ_PYTHON PATCHQ_PARENT
"""
_HANDS_OVER = """
# Git talks with one of them only, and patchq's knows which.
PATCHQ_BEFORE=$before
export PATCHQ_BEFORE
if [ -f "$ours" ]; then
    exec sh "$ours" "$@"
fi
echo "patchq: $ours is gone; install or uninstall again: patchq hooks" >&2
exit 1
"""
_RUNS_BOTH = """
run_before() {{
    [ -x "$before" ] || return 0
    IFS= read -r first <"$before" || :
    case $first in
    '#!'*/sh | '#!'*/bash | '#!'*/dash | '#!'*/ksh | '#!'*'/sh -'* | '#!'*'/bash -'* | \\
        '#!'*'env sh' | '#!'*'env bash' | '#!'*'env dash' | '#!'*'env ksh')
        # Under its old name: some hooks find their other parts by it.
        ${{first#??}} -c '. "$0{suffix}"' "$here/{name}" "$@" ;;
    *) "$before" "$@" ;;
    esac
}}

{save}run_before "$@"{input}
status=$?
{stop}if [ -f "$ours" ]; then
    sh "$ours" "$@"{input} || {{ code=$?; [ "$status" -ne 0 ] || status=$code; }}
else
    echo "patchq: $ours is gone; install or uninstall again: patchq hooks" >&2
    [ "$status" -ne 0 ] || status={gone}
fi
exit "$status"
""".replace("{suffix}", SUFFIX)
