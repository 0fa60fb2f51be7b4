"""`patchq hooks`, and git's own ways in behind the same gate: real git, real pushes, real mails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchq.gate.hooks import configured, install
from tests.helpers.command import block, drop, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, write_config, write_files
from tests.helpers.stores import edit_report

NAMES = list(configured.GIT_SUMMARIES)
RANDOM = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fH3jL5"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "one\ntwo\n", "b.txt": "x\n"})


def tried(*args: str, cwd: Path, stdin: bytes = b"") -> tuple[int, str]:
    """A git command that may fail; its exit code and what it said."""
    done = subprocess.run(["git", *args], cwd=cwd, input=stdin, capture_output=True, timeout=120)
    said = (done.stdout + done.stderr).decode()
    assert "Traceback" not in said, said
    return done.returncode, said


def hook(path: Path, text: str) -> Path:
    write_files(path.parent, {path.name: text})
    path.chmod(0o755)
    return path


def snapshot(*roots: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every file of the directories: mode, and content or target."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in (path for root in roots for path in [root, *sorted(root.rglob("*"))]):
        mode = path.lstat().st_mode
        if path.is_symlink():
            found[str(path)] = (mode, os.readlink(path))
        elif path.is_file():
            found[str(path)] = (mode, path.read_bytes())
    return found


def test_install_is_repeatable_and_uninstall_restores_everything(repo: Path) -> None:
    hooks = repo / ".git/hooks"
    hook(hooks / "pre-push", "#!/bin/sh\nexit 0\n")
    (hooks / "post-merge").symlink_to("pre-push")
    hook(hooks / "update", "not for git\n").chmod(0o644)
    before = snapshot(repo)
    told = patchq("--json", "hooks", "install", "--git", cwd=repo).json()
    assert [Path(name).name for name in told["installed"]] == NAMES
    assert sorted(Path(name).name for name in told["kept"]) == [
        "post-merge.before-patchq", "pre-push.before-patchq", "update.before-patchq",
    ]  # fmt: skip
    wired = snapshot(repo)
    assert patchq("--json", "hooks", "install", "--git", cwd=repo).json()["installed"] == []
    assert snapshot(repo) == wired
    assert len(patchq("--json", "hooks", "uninstall", cwd=repo).json()["restored"]) == len(NAMES)
    assert snapshot(repo) == before
    assert patchq("hooks", "uninstall", cwd=repo).out == "nothing to restore\n"


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_a_record_that_cannot_be_read_is_named(repo: Path, verb: str) -> None:
    (repo / ".git/patchq-hooks.json").write_text("{broken")
    before = snapshot(repo)
    words = ["install", "--git"] if verb == "install" else [verb]
    done = patchq("hooks", *words, cwd=repo, code=2)
    assert "patchq-hooks.json cannot be read" in done.err
    assert "remove it" in done.err
    assert snapshot(repo) == before


@pytest.mark.parametrize("code", [0, 3])
def test_the_hook_that_was_there_runs_first_with_input_and_name(
    code: int, repo: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    outer = f'#!/usr/bin/env bash\necho "before $0 $*" >>{log}\ncat >>{log}\nexit {code}\n'
    hook(repo / ".git/hooks/pre-push", outer)
    patchq("hooks", "install", "--git", cwd=repo)
    git("init", "-q", "--bare", str(tmp_path / "remote.git"), cwd=tmp_path)
    git("remote", "add", "origin", str(tmp_path / "remote.git"), cwd=repo)
    status, _ = tried("push", "origin", "main", cwd=repo)
    assert status == (1 if code else 0)
    head, zeros = git("rev-parse", "HEAD", cwd=repo), "0" * 40
    called, given = log.read_text().splitlines()
    assert called.endswith(f"/pre-push origin {tmp_path / 'remote.git'}")
    assert given == f"refs/heads/main {head} refs/heads/main {zeros}"


@pytest.mark.parametrize("setting", [".githooks", "absolute"])
def test_core_hookspath_is_respected_in_every_work_tree(
    setting: str, repo: Path, tmp_path: Path
) -> None:
    value = setting if setting == ".githooks" else str(tmp_path / "shared")
    git("config", "core.hooksPath", value, cwd=repo)
    linked = tmp_path / "linked"
    git("worktree", "add", "-q", "-b", "side", str(linked), cwd=repo)
    before = snapshot(repo, linked)
    (linked / "sub").mkdir()
    told = patchq("--json", "hooks", "install", "--git", cwd=linked / "sub").json()["installed"]
    (linked / "sub").rmdir()
    places = {Path(name).parent for name in told}
    if setting == ".githooks":
        # git starts the hooks of a push to this repository in the git directory of the work tree.
        gitdirs = [repo / ".git", repo / ".git/worktrees/linked"]
        assert places == {it / ".githooks" for it in (repo, linked, *gitdirs)}
        assert str(repo / ".git/.githooks/update") in told
    else:
        assert places == {tmp_path / "shared"}
    patchq("hooks", "uninstall", cwd=repo)
    assert snapshot(repo, linked) == before


def test_a_hook_put_over_patchqs_is_never_lost(repo: Path) -> None:
    hooks = repo / ".git/hooks"
    hook(hooks / "pre-push", "#!/bin/sh\n# mine\n")
    patchq("hooks", "install", "--git", cwd=repo)
    hook(hooks / "pre-push", "#!/bin/sh\n# a manager's\n")
    for words in (("install", "--git"), ("uninstall",)):
        assert "remove the one" in patchq("hooks", *words, cwd=repo, code=2).err
        assert "a manager's" in (hooks / "pre-push").read_text()
        assert "mine" in (hooks / "pre-push.before-patchq").read_text()
    hook(hooks / "pre-push", "#!/bin/sh\n# mine\n")
    patchq("hooks", "install", "--git", cwd=repo)
    patchq("hooks", "uninstall", cwd=repo)
    assert (hooks / "pre-push").read_text() == "#!/bin/sh\n# mine\n"
    assert not (hooks / "pre-push.before-patchq").exists()


GATE = "hooks:\n" + install.GATE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# mine\nhooks: []\nmode: auto # x\n", f"# mine\n{GATE}mode: auto # x\n"),
        ("hooks:\n#  - id: x\nmode: auto\n", f"{GATE}#  - id: x\nmode: auto\n"),
        ("mode: auto\r\nhooks: []\r\n", None),
        ("", f"\n{GATE}"),
        ("hooks:\n- {id: t, stage: pre-commit, run: x}\n", None),
        ("log:\n  level: info\n'hooks': []\n", None),
    ],
)
def test_the_gate_is_put_in_and_nothing_else_changes(before: str, after: str | None) -> None:
    made = install.enable(before.encode())
    assert made == (after.encode() if after is not None else None)


def test_a_configuration_of_ones_own_is_left_alone(repo: Path) -> None:
    path = repo / ".patchq.yaml"
    path.write_text("hooks:\n- {id: t, stage: pre-commit, run: make}\n")
    said = patchq("hooks", "install", cwd=repo).out
    assert install.GATE.rstrip() in said
    assert path.read_text() == "hooks:\n- {id: t, stage: pre-commit, run: make}\n"
    path.write_text("mode: review\n")
    patchq("hooks", "install", cwd=repo)
    path.write_text(path.read_text() + "# more\n")
    assert "was changed since" in patchq("hooks", "uninstall", cwd=repo).out
    assert path.read_text().endswith("# more\n")


def mail(repo: Path, files: dict[str, str], message: str = "A change") -> bytes:
    """The commit of the files as a mail; the repository stays as it was."""
    commit_files(repo, files, message)
    text = git("format-patch", "-1", "--stdout", cwd=repo)
    git("reset", "-q", "--hard", "HEAD^", cwd=repo)
    return text.encode() + b"\n"


@pytest.fixture
def gated(repo: Path) -> Path:
    """A repository with git's hooks wired, the gate, and a hook that sees the tree."""
    write_config(
        repo,
        f"{GATE}  - {{id: no-bad, stage: pre-commit, unconfined: true, files: ['*.txt'], "
        'run: "! grep -l BAD $(git ls-files)"}\n',
    )
    (repo / ".git/info/exclude").write_text(".patchq.yaml\n")
    patchq("hooks", "install", "--git", cwd=repo)
    return repo


def test_git_am_passes_the_configured_hooks(gated: Path) -> None:
    for files, message, said in (
        ({"c.txt": "BAD\n"}, "x", "the hook no-bad (pre-commit) refused the change"),
        ({"c.txt": "ok\n"}, f"x\n\nghp_{RANDOM}", "the commit message, line 3: looks like"),
    ):
        tip, text = git("rev-parse", "HEAD", cwd=gated), mail(gated, files, message)
        status, told = tried("am", cwd=gated, stdin=text)
        assert status != 0
        assert said in told
        assert RANDOM not in told
        assert git("rev-parse", "HEAD", cwd=gated) == tip
        git("am", "--abort", cwd=gated)
    assert tried("am", cwd=gated, stdin=mail(gated, {"c.txt": "ok\n"}))[0] == 0
    assert git("rev-parse", "HEAD^", cwd=gated) == tip


GATE_CASES: list[tuple[dict[str, str], str, str | None]] = [
    ({"c.txt": "fine\n", "d.py": "x = 1\n"}, "Good", None),
    ({".env": "A=1\n"}, "x", "path.denied: .env may not be changed"),
    ({"c.txt": f"ghp_{RANDOM}\n"}, "x", "edit.secret: c.txt:1: looks like a GitHub token"),
    ({"c.txt": "x\n"}, f"x\n\nghp_{RANDOM}", "edit.secret: the commit message, line 3"),
    ({"d.py": "x = (\n"}, "x", "result.syntax: the new file d.py does not parse"),
    ({"big.txt": "x" * (4 << 20) + "x"}, "x", "response.too_large: big.txt would have"),
    ({"link": "-> a.txt"}, "x", None),
    ({"link": "-> /etc/passwd"}, "x", "path.outside: link would be a symbolic link"),
]
"""What the queue's own checks say of a commit: its files, its message, and what is told of it."""


@pytest.mark.parametrize(("files", "message", "said"), GATE_CASES)
def test_what_no_batch_may_do_nobody_does_by_git_with_any_hooks_or_none(
    files: dict[str, str], message: str, said: str | None, repo: Path, tmp_path: Path
) -> None:
    before = git("rev-parse", "HEAD", cwd=repo)
    for name, text in files.items():
        if text.startswith("-> "):
            (repo / name).symlink_to(text[3:])
        else:
            (repo / name).write_text(text)
    git("add", "-f", "--all", cwd=repo)
    place = tmp_path / "message"
    place.write_text(message)
    asked = [["--message", str(place)], []]
    told = [patchq("hooks", "check", *words, cwd=repo, code=None) for words in asked]
    git("commit", "-q", "-m", message, cwd=repo)
    now = git("rev-parse", "HEAD", cwd=repo)
    pushed = patchq("hooks", "check", "--push", "main", before, now, cwd=repo, code=None)
    for answers in (told, [pushed]):
        out = "".join(each.out for each in answers)
        assert sum(each.code for each in answers) == (said is not None), out
        assert (said or "") in out
        assert RANDOM not in out


def test_a_bare_repository_has_the_gate(repo: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git("clone", "-q", "--bare", str(repo), str(bare), cwd=tmp_path)
    patchq("hooks", "install", "--git", cwd=bare)
    commit_files(repo, {".env": "A=1\n"})
    status, told = tried("push", str(bare), "main", cwd=repo)
    assert status != 0
    assert "path.denied: .env may not be changed" in told
    assert git("rev-parse", "main", cwd=bare) == git("rev-parse", "HEAD^", cwd=repo)


@pytest.mark.parametrize("has_main", [False, True], ids=["new remote", "remote with main"])
def test_a_push_brings_the_rules_that_init_had_a_person_commit(
    has_main: bool, repo: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.git"
    git("init", "-q", "--bare", str(bare), cwd=tmp_path)
    git("remote", "add", "up", str(bare), cwd=repo)
    commit_files(repo, {".env": "A=1\n"})
    if has_main:
        git("push", "-q", "up", "main", cwd=repo)
    patchq("init", cwd=repo)
    git("add", ".patchq.yaml", cwd=repo)
    git("commit", "-q", "-m", "Rules", cwd=repo)
    patchq("hooks", "install", "--git", cwd=repo)
    git("push", "-q", "up", "main", cwd=repo)
    git("checkout", "-q", "-b", "side", cwd=repo)
    commit_files(repo, {".patchq.yaml": "version: 1\n"})
    status, told = tried("push", "up", "side:main", cwd=repo)
    assert status != 0
    assert "path.denied: .patchq.yaml may not be changed" in told


def test_hooks_that_others_share_do_nothing_where_nothing_was_installed(
    repo: Path, tmp_path: Path
) -> None:
    other = make_repo(tmp_path / "other", {"a.txt": "one\n"})
    for each in (repo, other):
        git("config", "core.hooksPath", str(tmp_path / "shared"), cwd=each)
    patchq("hooks", "install", "--git", cwd=repo)
    text = mail(other, {"c.txt": f"ghp_{RANDOM}\n"})
    assert tried("am", cwd=other, stdin=text)[0] == 0
    assert tried("am", cwd=repo, stdin=text)[0] != 0


def propose(repo: Path) -> None:
    patchq("init", cwd=repo)
    drop(repo / ".patchq", {"fix.md": block("a.txt", "two\n", "fix\n")})
    patchq("run", cwd=repo)


@pytest.fixture
def pushing(repo: Path, tmp_path: Path) -> Path:
    """A proposal, and a bare repository that has the target without it."""
    remote = tmp_path / "remote.git"
    git("clone", "-q", "--bare", str(repo), str(remote), cwd=tmp_path)
    (repo / ".git/info/exclude").write_text(".patchq.yaml\n")
    propose(repo)
    git("remote", "add", "origin", str(remote), cwd=repo)
    git("fetch", "-q", "origin", cwd=repo)
    patchq("hooks", "install", "--git", cwd=repo)
    return repo


def test_pre_push_keeps_a_proposal_from_the_target(pushing: Path) -> None:
    status, said = tried("push", "origin", "patchq/fix:main", cwd=pushing)
    assert status == 1
    assert "main would get proposals that nobody has accepted:\n  fix " in said
    git("checkout", "-q", "-b", "side", cwd=pushing)
    git("merge", "-q", "--no-ff", "patchq/fix", cwd=pushing)
    assert tried("push", "origin", "side:main", cwd=pushing)[0] == 1
    # As its own branch it may go anywhere: that is how it is published.
    git("push", "-q", "origin", "patchq/fix", "side", cwd=pushing)
    # What a person put on the local branch goes, though nothing has noticed it yet.
    git("checkout", "-q", "main", cwd=pushing)
    git("reset", "-q", "--hard", "patchq/fix", cwd=pushing)
    assert git("for-each-ref", "refs/patchq/waiting", cwd=pushing) != ""
    git("push", "-q", "origin", "main", cwd=pushing)


def test_the_protected_branches_are_the_targets_or_those_that_git_names(pushing: Path) -> None:
    git("config", "patchq.protectedBranch", "release/*", cwd=pushing)
    assert tried("push", "origin", "patchq/fix:release/1", cwd=pushing)[0] == 1
    git("config", "--unset", "patchq.protectedBranch", cwd=pushing)
    write_config(pushing, 'target: "trunk"  # ours\n')
    assert tried("push", "origin", "patchq/fix:trunk", cwd=pushing)[0] == 1
    git("push", "-q", "origin", "patchq/fix:main", cwd=pushing)


@pytest.mark.parametrize("relative", [False, True], ids=["usual place", "relative hooksPath"])
def test_update_keeps_what_waits_here_from_the_target(
    relative: bool, repo: Path, tmp_path: Path
) -> None:
    propose(repo)
    if relative:
        git("config", "core.hooksPath", ".githooks", cwd=repo)
    patchq("hooks", "install", "--git", cwd=repo)
    git("config", "receive.denyCurrentBranch", "ignore", cwd=repo)
    git("clone", "-q", str(repo), str(tmp_path / "clone"), cwd=tmp_path)
    clone = tmp_path / "clone"
    git("merge", "-q", "--no-ff", "-m", "Merge", "origin/patchq/fix", cwd=clone)
    status, said = tried("push", "origin", "main", cwd=clone)
    assert status == 1
    assert "main would get proposals that nobody has accepted:" in said
    status, said = tried("push", "origin", "main:refs/patchq/waiting/mine", cwd=clone)
    assert "refs/patchq/waiting/mine is patchq's own" in said
    git("reset", "-q", "--hard", "HEAD^", cwd=clone)
    commit_files(clone, {"c.txt": "x\n"})
    git("push", "-q", "origin", "main", cwd=clone)


def test_a_merge_and_a_rebase_by_hand_are_noticed_at_once(pushing: Path) -> None:
    queue = pushing / ".patchq"
    git("checkout", "-q", "-b", "work", "patchq/fix", cwd=pushing)
    git("checkout", "-q", "main", cwd=pushing)
    drop(queue, {"other.md": block("b.txt", "x\n", "other\n")})
    patchq("run", cwd=pushing)
    commit_files(pushing, {"c.txt": "y\n"})
    git("merge", "-q", "--no-edit", "patchq/other", cwd=pushing)
    assert report(queue, "other")["state"] == "accepted"
    git("push", "-q", "origin", "main", cwd=pushing)
    git("checkout", "-q", "work", cwd=pushing)
    git("branch", "-f", "main", cwd=pushing)
    assert report(queue, "fix")["state"] == "proposed"
    git("commit", "-q", "--amend", "-m", "Anything", cwd=pushing)
    assert report(queue, "fix")["state"] == "accepted"
    assert git("for-each-ref", "refs/patchq/waiting", "refs/heads/patchq", cwd=pushing) == ""


def test_a_push_passes_the_configured_hooks_and_each_of_its_commits_the_gate(gated: Path) -> None:
    repo, start = gated, git("rev-parse", "HEAD", cwd=gated)

    def judged(*commits: dict[str, str], old: str = start, merge: str = "") -> str:
        git("reset", "-q", "--hard", start, cwd=repo)
        for number, files in enumerate(commits):
            commit_files(repo, files, f"Change {number}")
        if merge:
            git("merge", "-q", "--no-ff", merge, cwd=repo)
        now = git("rev-parse", "HEAD", cwd=repo)
        done = patchq("hooks", "check", "--push", "main", old, now, cwd=repo, code=None)
        assert done.code == bool(done.out), done.err
        return done.out

    told = judged({"c.txt": f"ghp_{RANDOM}\n"}, {"c.txt": "gone\n"})
    assert f"commit {git('rev-parse', 'HEAD^', cwd=repo)[:12]}: edit.secret: c.txt:1" in told
    assert "LICENSE: is protected" in judged({"LICENSE": "mine\n"})
    assert "the hook no-bad (pre-commit) refused" in judged({"c.txt": "BAD\n"})
    assert judged({"c.txt": "BAD\n"}, {"c.txt": "good\n"}) == ""
    git("branch", "bad", commit_files(repo, {".env": "x\n"}), cwd=repo)
    git("branch", "good", start, cwd=repo)
    assert "path.denied: .env" in judged({"d.txt": "x\n"}, merge="bad")
    assert judged({"d.txt": "x\n"}, merge="bad", old=git("rev-parse", "bad", cwd=repo)) == ""
    patchq("init", cwd=repo)
    drop(repo / ".patchq", {"b.md": block("new/b.txt", "", "new\n")})
    patchq("run", cwd=repo)
    landed = commit_files(repo, {".env": "y\n"}, "Land\n\nPatchq-Batch: b")
    git("branch", "-f", "landed", landed, cwd=repo)
    before = git("rev-parse", "landed^", cwd=repo)
    assert "path.denied" in judged(old=before, merge="landed"), "trailers alone prove nothing"
    known = {"state": "applied", "commit": landed}
    edit_report(repo / ".patchq", "b", lambda report: report.update(known))
    assert "path.denied" not in judged(old=before, merge="landed")
