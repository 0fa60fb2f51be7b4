"""Where patchq's hooks are wired in: the default gate in `.patchq.yaml`, and beside git's own; and
the configured hooks before a commit that `git am` is about to make.

The configuration file is its owner's: comments, order and spelling stay.  Lines are put in only
where no hook is configured yet, and only if the file then says what it said before, and the gate.

In the place of a hook of git's goes a small script that runs the one which was there before, and
then patchq's.  The old one is kept beside it under another name; if it is a shell script, it still
sees its old name as `$0`, by which some find their other parts.  Each step is one rename over the
hook: there is no moment without one.  `core.hooksPath` decides where: a relative one is another
directory for each work tree, and one in the git directory for the hooks of a push to this
repository, which git starts there.

Before a commit of `git am` the index takes the place of a batch: its difference from HEAD is the
plan, its tree the candidate.  What a hook that fixes files would change is not taken over, as git
commits the index as it is: it is a refusal that says so.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Literal

from patchq.config import config_file
from patchq.config.config_file import ConfigError
from patchq.config.schema import Config
from patchq.git import files
from patchq.git.command import Git, complaint
from patchq.git.repository import Repository
from patchq.hooks import shipped
from patchq.hooks.engine import Engine, HookInput, Verdict
from patchq.hooks.steps import Step, steps
from patchq.model.errors import UsageError
from patchq.model.report import EditSummary
from patchq.report import document, secrecy

GATE = """\
  - id: gate
    stage: pre-apply
    run: patchq:pre-apply
"""
"""An entry of `hooks`."""

_NO_HOOKS = re.compile(r"(?m)^hooks:[ \t]*(?:\[[ \t]*\]|~|null)?(?P<comment>[ \t]+#.*)?$")


def is_enabled(config: Config, name: str = shipped.GATE) -> bool:
    """Whether the configuration runs the shipped hook of that name."""
    return any(hook.run == shipped.PREFIX + name for hook in config.hooks)


def enable(data: bytes) -> bytes | None:
    """The configuration file with the gate; None if its own hooks, or its form, leave no room for
    lines that are surely right.  It raises `ConfigError` for a file that cannot be read."""
    before = config_file.parse(data)
    if before.hooks:
        return None
    text = data.decode()
    end = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    found = _NO_HOOKS.search(text)
    if found:
        rest = text[found.end() :].removeprefix("\n")
        text = f"{text[: found.start()]}hooks:{found['comment'] or ''}\n{GATE}{rest}"
    else:
        gap = "" if not text or text.endswith("\n") else "\n"
        text = f"{text}{gap}\nhooks:\n{GATE}"
    updated = text.replace("\n", end).encode()
    try:
        after = config_file.parse(updated)
    except ConfigError:
        return None
    unchanged = after.model_copy(update={"hooks": ()}) == before
    return updated if unchanged and is_enabled(after) else None


SUFFIX = ".before-patchq"
MARK = "# Made by `patchq hooks install --git`"


@dataclass(frozen=True, slots=True)
class HookFile:
    """One hook's file, which need not exist."""

    name: str
    file: Path

    @property
    def before(self) -> Path:
        """Where the hook that was there is kept."""
        return self.file.with_name(self.file.name + SUFFIX)

    @property
    def state(self) -> Literal["installed", "absent", "other"]:
        """Whether patchq's hook is there, none, or somebody else's."""
        if not os.path.lexists(self.file):
            return "absent"
        plain = self.file.is_file() and not self.file.is_symlink()
        return "installed" if plain and MARK.encode() in self.file.read_bytes()[:200] else "other"


def places(directory: Path) -> Iterator[HookFile]:
    """Where git looks for each of the hooks, in every work tree of the repository."""
    roots = [
        Path(line.removeprefix("worktree "))
        for line in _git(directory, "worktree", "list", "--porcelain").splitlines()
        if line.startswith("worktree ")
    ]
    yield from dict.fromkeys(
        HookFile(name, _directory_for(name, root) / name)
        for root in roots
        if root.is_dir()
        for name in shipped.GIT_SUMMARIES
    )


def _directory_for(name: str, root: Path) -> Path:
    if name == "update" and _git(root, "rev-parse", "--is-bare-repository") == "false":
        configured = _git(root, "config", "--type=path", "--default", "", "core.hooksPath")
        if configured and not Path(configured).is_absolute():
            return (root / _git(root, "rev-parse", "--git-common-dir") / configured).resolve()
    return (root / _git(root, "rev-parse", "--git-path", "hooks")).resolve()


def _git(directory: Path, *words: str) -> str:
    done = Git(directory=directory).run(*words)
    if done.returncode:
        raise UsageError(f"git {' '.join(words)}: {complaint(done)}")
    return os.fsdecode(done.stdout).removesuffix("\n")


def install(place: HookFile) -> bool:
    """Put patchq's hook there; False if it is there already, as it would be now."""
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
    if place.file.is_symlink() and _is_sibling(target := os.readlink(place.file)):
        # What it leads to moves aside as well.
        os.symlink(target + SUFFIX, place.before)
    else:
        os.link(place.file, place.before, follow_symlinks=False)


def _is_sibling(target: str) -> bool:
    return target.removeprefix("./") in shipped.GIT_SUMMARIES


def _restore(place: HookFile) -> None:
    target = os.readlink(place.before) if place.before.is_symlink() else ""
    if _is_sibling(target.removesuffix(SUFFIX)):
        place.before.unlink()
        place.before.symlink_to(target.removesuffix(SUFFIX))
    os.replace(place.before, place.file)


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()


def uninstall(place: HookFile) -> bool:
    """Put back what was there; False if there is nothing of patchq's.

    A hook that somebody put in place of patchq's stays, and so does what was there before, if it is
    another one: `UsageError`.
    """
    kept, state = os.path.lexists(place.before), place.state
    if state != "installed" and not kept:
        return False
    if not kept:
        place.file.unlink()
    elif state != "other":
        _restore(place)
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
    judges, takes_input = not name.startswith("post-"), name in ("pre-push", "post-rewrite")
    return _TEMPLATE.format(
        mark=MARK,
        name=name,
        before=name + SUFFIX,
        python=shlex.quote(sys.executable),
        script=shlex.quote(str(shipped.git_path(name))),
        save=_SAVE if takes_input else "",
        input=' <"$input"' if takes_input else "",
        stop='[ "$status" -eq 0 ] || exit "$status"\n' if judges else "",
        gone=int(judges),
    )


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
ours={script}
export PATCHQ_PYTHON

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


_SECRETS = (shipped.PREFIX + "pre-apply", shipped.PREFIX + "no-secrets")
_OPS = {"A": "create", "D": "delete_file"}
_DIFF = (
    "-c", "core.quotePath=true", "diff", "--cached", "--no-color", "--no-ext-diff",
    "--no-textconv", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "--unified=3",
)  # fmt: skip
_ID = "git-am"


def judge_message(config: Config, message: str) -> list[str]:
    """Why a commit message must not be: it holds a secret, and a configured hook looks for them."""
    if not any(hook.run in _SECRETS for hook in config.hooks):
        return []
    look = secrecy.gate().secret_kind
    kinds = [(number, look(line)) for number, line in enumerate(message.split("\n"), 1)]
    return [f"the message, line {number}: looks like {kind}" for number, kind in kinds if kind]


def judge_staged(config: Config, repo: Repository) -> list[str]:
    """Why what is staged in the repository's work tree must not be committed; empty if it may.

    Raises `HookFault` for a hook that cannot be started.
    """
    assert repo.workdir is not None
    known = steps(config, None)
    if not known.before:
        return []
    candidate = _candidate(config, repo, repo.workdir)
    with TemporaryDirectory(prefix="patchq-am-") as scratch:
        root = Path(os.path.realpath(scratch), "hooks")
        store, git_hooks = repo.commondir / "objects", repo.commondir / "hooks"
        engine = Engine(root, store, git_hooks, repo.workdir)
        for stage in (known.plan, (*known.fixing, *known.checking)):
            wanted = [step for step in stage if step.wants(candidate.paths)]
            verdicts = [(step, engine.ask(step, candidate, Event())) for step in wanted]
            if lines := [line for step, verdict in verdicts for line in _lines(step, verdict)]:
                return lines
    return []


def _lines(step: Step, verdict: Verdict) -> Iterator[str]:
    yield from (problem.message for problem in verdict.problems)
    if verdict.fixed:
        yield f"the hook {step.id} would change {', '.join(verdict.fixed)}"


def _candidate(config: Config, repo: Repository, workdir: Path) -> HookInput:
    """What is staged, as a batch whose commit is on no branch."""

    def git(*words: str) -> str:
        return Git(directory=workdir).output(*words).decode("utf-8", "surrogateescape")

    head, tree = git("rev-parse", "-q", "--verify", "HEAD").strip(), git("write-tree").strip()
    status = git(*_DIFF, "--name-status", "-z", head).split("\0")[:-1]
    touched = dict(zip(status[1::2], status[::2], strict=True))
    edits: list[EditSummary] = [
        {"id": str(number), "path": path, "op": _OPS.get(letter, "write"), "state": "applied"}
        for number, (path, letter) in enumerate(touched.items(), 1)
    ]
    return HookInput(
        id=_ID,
        target=repo.head_branch() or "",
        base=head,
        parent=head,
        parent_tree=repo.tree(head).root,
        commit=git("commit-tree", tree, "-p", head, "-m", _ID).strip(),
        tree=tree,
        paths=tuple(touched),
        message=_ID,
        plan={
            "schema": document.PLAN,
            "id": _ID,
            "agent": None,
            "model": None,
            "mode": config.mode,
            "target": repo.head_branch(),
            "base": {"commit": head, "how": "tip"},
            "edits": edits,
            "diff": git(*_DIFF, head),
        },
    )
