"""What a hook can read of the machine: as an attacker sees it whose code a hook runs."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.hooks import mounts
from patchq.gate.hooks.sandbox import NO_SANDBOX, can_sandbox
from tests.helpers.command import block, drop, fresh, patchq, report
from tests.helpers.gitrepo import commit_files, git, make_repo, write_config, write_files

FOUND = "tOpSeCrEt-of-the-operato[r]\\|LEA[K]"
SECRET = "tOpSeCrEt-of-the-operator"


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with keys, a repository in it, another one beside, with a virtual environment."""
    if not can_sandbox(tmp_path / "probe"):
        pytest.skip("there are no user namespaces here")
    home = tmp_path / "home/me"
    write_files(
        home,
        {
            ".ssh/id_ed25519": SECRET, ".aws/credentials": SECRET, ".netrc": SECRET,
            ".config/gh/hosts.yml": SECRET, ".git-credentials": SECRET, ".bash_history": SECRET,
            "other/notes.txt": SECRET, "tools/bin/tool": "#!/bin/sh\ncat $(dirname $0)/../lib/x\n",
            "tools/lib/x": "made of this", "tools/.npmrc": SECRET, "tools/lib/.env": SECRET,
            "tools/.ssh/id_rsa": SECRET, "extra/data": "shown", "extra/server.pem": f"""\
-----BEGIN PRIVATE KEY-----
{SECRET}
""", ".gitconfig": f"[user]\nname=A\nemail=a@example.org\n[http]\nextraHeader={SECRET}\n",
        },
    )  # fmt: skip
    (home / "tools/bin/tool").chmod(0o755)
    os.link(home / ".netrc", home / "tools/lib/credentials")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("PATCHQ_SECRET", SECRET)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    make_repo(tmp_path / "other", {"secret.txt": SECRET})
    repo = make_repo(home / "work/repo", {"a.txt": "one\n", "link": "x"})
    git("config", "remote.origin.url", f"https://me:{SECRET}@example.org/x", cwd=repo)
    git("config", "credential.helper", f"!echo password={SECRET}", cwd=repo)
    (repo / "link").unlink()
    (repo / "link").symlink_to(home / ".ssh/id_ed25519")
    commit_files(repo, {".gitignore": "/.env\n"})
    write_files(repo, {".env": SECRET, ".patchq.yaml": "", ".git/info/exclude": "/.patchq*\n"})
    configure(repo, {"run": "true"})
    patchq("init", cwd=repo)
    return repo


def configure(repo: Path, *hooks: dict[str, Any]) -> None:
    entries = [{"id": f"h{n}", "stage": "pre-commit", **hook} for n, hook in enumerate(hooks)]
    write_config(repo, json.dumps({"version": 1, "hooks": entries}))


def told(repo: Path, name: str, code: int | None = 0) -> dict[str, Any]:
    """The report on a batch under the configured hooks."""
    drop(repo / ".patchq", {f"{name}.md": block(f"{name}.txt", "", f"{name}\n")})
    patchq("run", cwd=repo, code=code)
    return report(repo / ".patchq", name)


# ---------------------------------------------------------------- the attacker

ATTACKS = {
    "a file in the home": "cat {home}/.netrc",
    "a key": "cat {home}/.ssh/id_ed25519",
    "whatever is in the home": "grep -rsI . {home} --exclude-dir=work",
    "the home by its user": "cat ~root/.ssh/* ~root/.bash_history; ls -A /root | grep -v -e '^[.]'",
    "another file of the home": "cat {home}/other/notes.txt",
    "a link of the batch's own": "cat link",
    "a link made now": "ln -s {home}/.netrc mine && cat mine",
    "a hard link": "ln {home}/.netrc hard && cat hard",
    "the way up": "cat ../../../../../../../.netrc ../../../../../.netrc",
    "another repository": "cat {other}/secret.txt; git -C {other} show HEAD:secret.txt",
    "the untracked files": "cat {repo}/.env ../../../../.env",
    "the repository's configuration": "cat {repo}/.git/config",
    "git's configuration": "git config --list --show-origin",
    "a helper of git's": "printf 'host=example.org\\nprotocol=https\\n\\n' | git credential fill",
    "the remotes": "git --git-dir={repo}/.git remote -v; git ls-remote {repo}",
    "the queue": "grep -rs . {repo}/.patchq/done {repo}/.patchq/rejected {repo}/.patchq/active",
    "the environment": "env; cat /proc/self/environ",
    "the environments of others": "cat /proc/[0-9]*/environ /proc/[0-9]*/task/*/environ",
    "the first process's root": "cat /proc/1/root{home}/.netrc /proc/*/root{home}/.netrc",
    "directories of others": "cat /proc/*/cwd/.env; ls -l /proc/1/fd/ | grep -e '{home}' && "
    "cat /proc/1/fd/*",
    "open files": "for n in 3 4 5 6 7 8 9 10 11 12; do cat <&$n; done",
    "a way back by an open file": "cat /proc/self/fd/0/../../.netrc; for f in /proc/self/fd/*; do "
    "cat $f{home}/.netrc $f/.netrc; done",
    "mounts": "for p in $(cut -d' ' -f5 /proc/self/mountinfo); do cat $p/.netrc "
    "$p/.machine{home}/.netrc; done; umount -l {home} {home}/tools/.npmrc; "
    "cat {home}/.netrc {home}/tools/.npmrc",
    "namespaces of its own": "unshare -Urm sh -c 'umount -l {home}/tools/.npmrc; umount -l /; "
    "cat {home}/tools/.npmrc {home}/.netrc'; nsenter -t 1 -m -U cat {home}/.netrc",
    "the memory of others": "cat /proc/1/mem /proc/1/maps | strings | grep tOpSeCrE[t]",
    "a debugger": 'python3 -c "import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))" '
    "| grep -v -e -1 && echo LEA''K",
    "kernel keys": "cat /proc/keys | grep patchq-test && echo LEA''K",
    "sockets": "ls -l /run /var/run /tmp /run/user 2>&1 | grep '^s' && echo LEA''K",
    "an agent's socket": 'python3 -c "import socket; s = socket.socket(socket.AF_UNIX); '
    "s.connect('{agent}'); print(s.recv(99))\"",
    "an abstract socket": 'python3 -c "import socket; s = socket.socket(socket.AF_UNIX); '
    "s.connect('\\0patchq-test-agent'); print(s.recv(99))\"",
    "temporary files": "cat {scratch}; ls /tmp /var/tmp /dev/shm | grep patchq-test && echo LEA''K",
    "shared memory": "cat /dev/shm/*; ipcs -m | grep -c 0x && echo LEA''K",
    "mail and crontabs": "cat /var/spool/cron/crontabs/* /var/mail/* /var/log/* | grep . && echo "
    "{secret}",
    "the system's secrets": "cat /etc/shadow /etc/ssh/ssh_host_* /etc/sudoers /etc/gitconfig | "
    "grep . && echo LEA''K",
    "disks": "ls /dev | grep -e '^[svx]d' -e '^dm' -e mem && echo LEA''K",
    "keys beside programs": "cat {home}/tools/.npmrc {home}/tools/lib/.env "
    "{home}/tools/lib/credentials {home}/tools/.ssh/id_rsa {home}/extra/server.pem",
    "a core dump": "ulimit -c unlimited && echo LEA''K; ulimit -c | grep -v '^0$' && echo LEA''K",
    "the checkout's own git": "cat .git/config; git log -p --all -- .env; git remote -v",
}


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[None]:
    """Sockets as agents have them, which answer whoever asks."""
    sockets = []
    for name in (str(tmp_path / "agent"), "\0patchq-test-agent"):
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(name)
        listening.listen()
        sockets.append(listening)
    yield
    for listening in sockets:
        listening.close()


def test_h13_a_batchs_code_reads_nothing_of_the_operators(
    there: Path, agents: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All attacks in one hook; what each printed, and whether the secret is in it."""
    home = there.parents[1]
    other, scratch = home.parents[1] / "other", home.parents[1] / "patchq-test-scratch"
    scratch.write_text(SECRET)
    told(there, "earlier")
    words = {
        "home": home, "repo": there, "other": other, "scratch": scratch,
        "agent": home.parents[1] / "agent",
    }  # fmt: skip
    lines = []
    for number, attack in enumerate(ATTACKS.values()):
        for key, value in words.items():
            attack = attack.replace("{" + key + "}", str(value))
        lines.append(
            f"({attack}) </dev/null >out 2>/dev/null; grep -q '{FOUND}' out && echo {number}"
        )
    write_files(home, {"tools/lib/attack.sh": "\n".join([*lines, "true"])})
    tool = {"run": f"sh {home}/tools/lib/attack.sh; tool", "visible": ["~/extra"]}
    configure(there, tool)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{home}/tools/bin")
    output = told(there, "attack")["hooks"][0]["output"]
    *leaks, last = output.split("\n")
    assert [list(ATTACKS)[int(leak)] for leak in leaks] == []
    assert last == "made of this"


def test_h13_what_a_batchs_code_read_is_not_shown_encoded(there: Path) -> None:
    """Where an operator showed too much, it is not repeated."""
    encode = "import base64; print(base64.b64encode(open('/etc/passwd', 'rb').read()).decode())"
    configure(there, {"run": f'python3 -c "{encode}"; exit 1'})
    verdict = told(there, "r", code=1)
    (output,) = [run["output"] for run in verdict["hooks"]]
    assert output.startswith("(left out: ")
    assert base64.b64encode(b"root:x")[:8].decode() not in json.dumps(verdict)


def test_h13_a_work_tree_that_was_moved_leads_nobody_astray(there: Path) -> None:
    """What a fixing hook made is read from outside, where a link would lead somewhere else."""
    own = next((d for d in ("/tmp", "/var/tmp", "/dev/shm") if there.is_relative_to(d)), None)
    if own is None:
        pytest.skip("nothing above the work tree is the hook's")
    top = "/".join(str(there).split("/")[: own.count("/") + 2])
    configure(there, {"run": f"mv {top} {top}-2 && ln -s {top}-2 {top}", "fixes": True})
    (problem,) = told(there, "r", code=1)["problems"]
    assert problem["code"] == "hook.refused"
    assert "moved its own work tree" in problem["message"]


# ---------------------------------------------------------------- what it does see


def test_a_virtual_environment_below_home_works_read_only(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = there.parents[1] / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    location = next(venv.glob("lib/python3*/site-packages"))
    write_files(location, {"shown.py": "print('imported')\n"})
    monkeypatch.setenv("PATH", f"{venv}/bin:{os.environ['PATH']}")
    look = f"python -c 'import shown'; touch {location}/x || echo read-only; cat {venv}/../.netrc"
    configure(there, {"run": f"{look}; true"})
    assert ": ok\n" in patchq("config", "check", cwd=there).out
    said = told(there, "r")["hooks"][0]["output"].split("\n")
    assert said[0] == "imported"
    assert said[-2] == "read-only"


def test_visible_shows_what_it_names(there: Path) -> None:
    write_files(there, {"node_modules/m/index.js": "found\n", "node_modules/.npmrc": SECRET})
    look = "cat ../../../../node_modules/m/index.js ../../../../node_modules/.npmrc"
    configure(
        there,
        {"run": f"{look}; cat ~+/../../../../../../extra/data", "visible": ["node_modules"]},
        {"run": look, "visible": ["~/extra"]},
    )
    runs = {run["id"]: run["output"] for run in told(there, "r", code=1)["hooks"]}
    assert runs["h0"].startswith("found\ncat: ")
    assert "found" not in runs["h1"]
    assert SECRET not in str(runs)


UNFIT = [
    ("~", "a whole home"),
    ("/", "a whole home"),
    ("~/.ssh", "keys"),
    ("~/.aws/credentials", "keys"),
    ("~/extra/server.pem", "keys"),
    (".git", "the repository's git directory"),
    ("..", "the repository's git directory"),
    (".patchq/done", "the queue"),
    ("/proc/1", "running programs"),
]


def test_nobody_shows_keys_homes_or_the_queue(there: Path) -> None:
    configure(there, *({"run": "true", "visible": [place]} for place, _ in UNFIT))
    said = patchq("config", "check", cwd=there, code=2).err.split("\n")
    for line, (_, why) in zip(said, UNFIT, strict=False):
        assert ".visible: expected what programs need, got `" in line
        assert why in line
    assert "in its `visible`, holds" in told_nothing(there)


def told_nothing(repo: Path) -> str:
    """What is said by a run that stops before it decides."""
    drop(repo / ".patchq", {"n.md": block("n.txt", "", "n\n")})
    return patchq("run", cwd=repo, code=3).err


def test_config_check_starts_programs_where_hooks_run(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = there.parents[1]
    write_files(home, {"mine/bin/needy": f"#!/bin/sh\ncat {home}/extra/data\n"})
    (home / "mine/bin/needy").chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{home}/mine/bin")
    configure(
        there,
        {"run": "needy --all"},
        {"run": "needy --all", "visible": ["~/extra"]},
        {"run": f"{home}/tools/bin/tool x"},
        {"run": "cd d && make"},
    )
    said = patchq("config", "check", cwd=there, code=2).err
    assert "hooks[0].run: expected a program that starts in the jail" in said
    assert f"{home}/extra/data: No such file" in said
    assert f"hooks[2].run: expected a program that hooks see, which `{home}/tools/bin/tool`" in said
    assert "hooks[1]" not in said
    assert "hooks[3]" not in said


def test_without_a_jail_no_hook_runs_a_batchs_code_unless_it_may(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NO_SANDBOX, "1")
    configure(there, {"run": "true"})
    why = f"hooks cannot be jailed here: {NO_SANDBOX} is set"
    assert (
        "hooks[0].unconfined: expected true for a hook"
        in patchq("config", "check", cwd=there, code=2).err
    )
    found = fresh("--json", "doctor", cwd=there, code=1).json()["findings"]
    assert [f["level"] for f in found if why in f["message"]] == ["fatal"]
    assert "runs what batches hold" in told_nothing(there)
    configure(there, {"run": "true", "unconfined": True}, {"run": "true", "stage": "pre-apply"})
    patchq("config", "check", cwd=there)
    patchq("run", cwd=there)
    assert report(there / ".patchq", "n")["state"] == "proposed"


def test_links_of_the_path_are_followed_and_homes_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    write_files(home, {
        "bin/x": "", "share/pipx/tool/bin/tool": "", "share/pipx/tool/pyvenv.cfg": "",
        "sdk/bin/go": "", "sdk/go.env": "", "venv/bin/w": "", "venv/lib/w": "", "venv/notes": "",
    })  # fmt: skip
    (home / "bin/tool").symlink_to(home / "share/pipx/tool/bin/tool")
    monkeypatch.setenv("HOME", str(home))
    seen = mounts.seen(f"{home}/bin:{home}/sdk/bin:{home}/venv/bin:{home}:relative")
    own = {word[1:].removeprefix(f"{home}/") for word in seen if str(home) in word}
    there = {name for name in own if (home / name).exists()}
    assert there == {
        "bin", "share/pipx/tool/bin", "share/pipx/tool", "sdk/bin", "sdk", "venv/bin", "venv/lib",
    }  # fmt: skip
