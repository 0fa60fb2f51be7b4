"""The repository, its branches, its queue and the rules in force.

The rules come from the operator: from the file that the command line names, else from `patchq.yaml`
in the git directory, else from `.patchq.yaml` in the tree of the home branch's tip.  The home
branch is the one that `patchq.target` in git's configuration names.  Anybody may have a branch with
other rules, and look at it, so the file of a work tree never counts by itself.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from patchq.core.model.values import RulesOrigin
from patchq.gate.config import config_file
from patchq.gate.config.config_file import FILE, OPERATORS_FILE, ConfigError
from patchq.gate.config.schema import Config
from patchq.gate.errors import Fault
from patchq.gate.git.branches import Branches
from patchq.gate.git.branches.home import Home, HomeGone
from patchq.gate.git.objects import BLOB, is_regular, object_id
from patchq.gate.git.repository import Repository
from patchq.gate.queue.ledger import QueueEngine

Source = Literal["file", "git directory", "home branch", "defaults"]
_MOST_BYTES = 1 << 20
_NO_FILE = b"?"  # marks a link, a directory, or what cannot be read
_LOG = logging.getLogger("patchq")
# Keys that are read at start and at SIGHUP alone.
_RELOAD_ONLY_KEYS = frozenset({"queue", "cluster", "review", "log"})


class GateRules(Struct, frozen=True):
    """A configuration, its source, and the home branch if it is known.

    `fault` is the reason that the home branch has no rules now, so that nothing may be decided;
    `refused_file` the file at its tip that is not valid, so that these rules stay in force.
    """

    config: Config = Config()
    source: Source = "defaults"
    name: str = "the defaults"
    data: bytes | None = None
    home: Home | None = None
    fault: Fault | None = None
    refused_file: bytes | None = None

    @property
    def target(self) -> str:
        """The branch of what names none; empty where the home branch is not known."""
        return self.config.target or (self.home.branch if self.home else "")

    def origin(self) -> RulesOrigin:
        """Return the source of the rules and the object id of their file."""
        data = self.data
        return RulesOrigin(self.source, None if data is None else object_id(BLOB, data))

    def place(self, *steps: int | str) -> str:
        """Return the place of a key in the file, as messages name it."""
        return config_file.place(self.data or b"", self.name, *steps)


DEFAULTS = GateRules()


def of_operator(repo: Repository, file: Path | None) -> GateRules | None:
    """Return the rules in the operator's own file, if there is one; raises `ConfigError`."""
    path = file or repo.commondir / OPERATORS_FILE
    data = config_file.content(path)
    if data is None and file:
        raise ConfigError([f"{path}: expected a file, got nothing"])
    if data is None:
        return None
    config = config_file.parse(data, path.name)
    return GateRules(config, "file" if file else "git directory", str(path), data)


def of_home(repo: Repository, home: Home | None) -> GateRules:
    """Return the rules at the home branch's tip; raises `HomeGone` and `ConfigError`."""
    if home is None or not (repo.has_ref(home.ref) or repo.refs("refs/heads/")):
        return GateRules(home=home)  # before the first commit
    tip = repo.ref_target(home.ref)
    if tip is None:
        raise HomeGone(home)
    data = _committed(repo, tip)
    if data is None:
        return GateRules(home=home, name=f"the defaults ({home} has no {FILE})")
    name = f"{home}:{FILE}"
    if data == _NO_FILE:
        raise ConfigError([f"{name}: expected a file, got a link or a directory"])
    return GateRules(config_file.parse(data, name), "home branch", name, data, home)


def checked(rules: GateRules) -> GateRules:
    """Return the rules completed from the cluster, the forge and the home branch.

    Raises `ConfigError` where these contradict each other.
    """
    config, landing = rules.config, rules.config.landing
    if config.has_cluster:
        shared = config.cluster
        landing = replace(
            landing, remote=shared.remote, push_timeout_seconds=shared.push_timeout_seconds
        )
    forge = config.forge.remote if config.has_forge else None
    landing = replace(landing, remote=landing.remote or forge)
    home = rules.home.remote if rules.home else None
    for wanted, who in (
        (forge, "`forge.remote`"),
        (home, "`patchq.remote` in git's configuration"),
    ):
        if wanted and landing.remote != wanted:
            where, got = rules.place("landing", "remote"), landing.remote or "nothing"
            raise ConfigError([f"{where}: expected `{wanted}`, as {who} says, got `{got}`"])
    if config.merges_there and config.mode == "auto":
        message = f"{rules.place('mode')}: expected `review` beside `forge.land: merge`, got `auto`"
        raise ConfigError([message])
    return replace(rules, config=replace(config, landing=landing))


def renewed(repo: Repository, old: GateRules) -> GateRules:
    """Return the rules for the next group: those at the home branch's tip, if they can be read.

    The same ones, where nothing has changed.  Without a home branch they have a `fault`.
    """
    if old.home is None:
        return old
    tip = repo.ref_target(old.home.ref)
    if tip is None:
        return old if old.fault else replace(old, fault=HomeGone(old.home))
    here = replace(old, fault=None) if old.fault else old
    if old.source in ("file", "git directory"):
        return here
    data: bytes | None = _NO_FILE
    try:
        data = _committed(repo, tip)
        if data in (old.data, old.refused_file or old.data):
            return here
        new = of_home(repo, old.home)
        kept = {key: getattr(old.config, key) for key in _RELOAD_ONLY_KEYS}
        return checked(replace(new, config=replace(new.config, **kept)))
    except Fault as error:
        if old.refused_file == data:
            return here
        _LOG.error("the configuration is kept as it was: %s", error)
        return replace(here, refused_file=data)


def difference(repo: Repository, rules: GateRules) -> tuple[str, str] | None:
    """Return the difference between a work tree's file and the rules, with its cure.

    There is no cure for the file of another branch, which is as it was committed.
    """
    home, workdir = rules.home, repo.workdir
    if home is None or workdir is None or rules.source in ("file", "git directory"):
        return None
    here = _meaning(_of_work_tree(workdir))
    if here == _meaning(rules.data):
        return None
    head = repo.head_commit(repo.gitdir)
    edited = here != _meaning(_committed(repo, head) if head else None)
    if not edited and repo.head_branch() != home.branch:
        return f"this branch has other rules; those of {home} count", ""
    first = "make a first commit with it" if head is None else f"commit it to {home.branch}"
    push = f" and push that to {home.remote}" if home.remote else ""
    return (
        f"{FILE} in the work tree does not count: the rules are {rules.name}",
        f"{first}{push}, or copy it to {repo.commondir / OPERATORS_FILE}",
    )


def _of_work_tree(workdir: Path) -> bytes | None:
    path = workdir / FILE
    with suppress(OSError):  # whatever a branch has put there
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return _NO_FILE if os.path.lexists(path) else None
        return path.read_bytes()
    return _NO_FILE


def _committed(repo: Repository, commit: str) -> bytes | None:
    leaf = repo.leaf(repo.tree(commit).root, FILE)
    if leaf and not is_regular(leaf[0]):
        return _NO_FILE
    return repo.raw(leaf[1]) if leaf else None


def _meaning(data: bytes | None) -> Config | bytes:
    try:
        return config_file.parse(data or b"")
    except ConfigError:
        return data or b""


class RepoContext(Struct, frozen=True, dict=True):
    """One repository with its queue, under one configuration.

    `target` is the default branch, and `judged_by` has the configuration's source.
    """

    repo: Repository
    queue: QueueEngine
    queue_root: Path
    config: Config
    target: str
    branches: Branches
    judged_by: GateRules = DEFAULTS


def branches_of(
    repo: Repository, queue_root: Path, config: Config, target: str, home: Home | None = None
) -> Branches:
    """Return the branches of the configuration's `landing`.

    What keeps a remote from being used is noted beside the queue.
    """
    landing = config.landing
    if landing.remote is None:
        return Branches(repo)
    # Who has no remote has no need of these.
    from patchq.gate.git.branches.remote import RemoteBranches
    from patchq.gate.git.branches.shown import ShownBranches
    from patchq.gate.queue.shelf import Troubles

    troubles = Troubles(queue_root)

    def note(fault: Fault | None) -> None:
        if not queue_root.is_dir():
            return
        if fault is None:
            troubles.over(_TROUBLE)
        else:
            troubles.note(_TROUBLE, fault.message, fault.hint or "")

    own = [home.branch] if home and home.remote else []
    lanes = [*([target] if target else []), *own, *config.targets]
    branches = ShownBranches if config.has_forge else RemoteBranches
    return branches(repo, landing.remote, lanes, landing.push_timeout_seconds, note)


_TROUBLE = "landing.remote"


def flush(context: RepoContext) -> None:
    """Write what is in memory, with one barrier for objects, refs and the queue.

    With two where the queue is on another file system, or in a database.
    """
    context.repo.write_objects(lambda: context.queue.sync(context.repo.commondir))
