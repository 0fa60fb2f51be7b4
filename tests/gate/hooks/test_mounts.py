"""What a hook can read of the machine: as an attacker sees it whose code a hook runs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pygit2
import pytest
from pygit2.enums import ConfigLevel

from patchq.cli import main
from patchq.gate.hooks import mounts
from patchq.gate.hooks.sandbox import NO_SANDBOX
from tests.gate.hooks.test_engine import running
from tests.helpers.command import block, drop, fresh, give, patchq, report
from tests.helpers.ending import in_child
from tests.helpers.gitrepo import commit_files, git, make_repo, write_config, write_files

FOUND = "tOpSeCrEt-of-the-operato[r]\\|LEA[K]"
SECRET = "tOpSeCrEt-of-the-operator"


pytestmark = pytest.mark.sandbox
MARK = "patchq-test-mark"
"""A file that no hook may leave anywhere."""
STRANGER = 54321
USERS = [os.getuid(), *([] if os.getuid() else [STRANGER])]


@pytest.fixture
def base() -> Iterator[Path]:
    """A directory that every user may enter."""
    base = Path(tempfile.mkdtemp(prefix="patchq-probes-"))
    base.chmod(0o755)
    yield base
    subprocess.run(["rm", "-rf", base], check=True, timeout=60)


@pytest.fixture
def there(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with keys, a repository in it, another one beside, with a virtual environment."""
    home = base / "home/me"
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
    monkeypatch.setenv("SSH_AUTH_SOCK", str(base / "agent"))
    make_repo(base / "other", {"secret.txt": SECRET})
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


def write(repo: Path, name: str) -> None:
    drop(repo / ".patchq", {f"{name}.md": block(f"{name}.txt", "", f"{name}\n")})


def told(repo: Path, code: int = 0) -> dict[str, Any]:
    return give(repo, "r", block("r.txt", "", "r\n"), code)


PROBES = {
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
    "$p/oldroot{home}/.netrc $p/newroot{home}/.netrc; done; umount -l {home} {home}/tools/.npmrc; "
    "cat {home}/.netrc {home}/tools/.npmrc",
    "namespaces of its own": "unshare -Urm sh -c 'umount -l {home}/tools/.npmrc; umount -l /; "
    "cat {home}/tools/.npmrc {home}/.netrc'; nsenter -t 1 -m -U cat {home}/.netrc",
    "the memory of others": "cat /proc/1/mem /proc/1/maps | strings | grep tOpSeCrE[t]",
    "sockets": "ls -l /run /var/run /tmp /run/user 2>&1 | grep '^s' && echo LEA''K",
    "an agent's socket": 'python3 -c "import socket; s = socket.socket(socket.AF_UNIX); '
    "s.connect('{agent}'); print('LEA' 'K')\"",
    "an abstract socket": 'python3 -c "import socket; s = socket.socket(socket.AF_UNIX); '
    "s.connect('\\0patchq-test-{pid}'); print('LEA' 'K')\"",
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
    "processes outside": "kill -0 {pid} && echo LEA''K; ls /proc | grep -c '^[0-9]' | "
    "grep ... && echo LEA''K",
    "a debugger": 'python3 -c "import ctypes; print(ctypes.CDLL(None).ptrace(16, {pid}, 0, 0))" '
    "| grep -v -e -1 && echo LEA''K",
    "capabilities": "grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | grep -v 000000 "
    "&& echo LEA''K; grep -x 'NoNewPrivs:.1' /proc/self/status || echo LEA''K",
    "setuid": "cp $(command -v id) .; chmod 6755 id; ./id -u | grep -v -x {user} && echo LEA''K; "
    "for p in su sudo passwd; do timeout 5 $p -c true && echo LEA''K; done",
    "more namespaces": "for f in U m n p u i C; do unshare -$f true && echo LEA''K; done; "
    "chroot / true && echo LEA''K",
    "mounting": "mount -t tmpfs x /usr && echo LEA''K; mount -t proc x /proc && echo LEA''K; "
    "mount --bind /tmp /usr && echo LEA''K; mount -o remount,rw,bind /usr && echo LEA''K; "
    "for p in /proc/sys /proc/irq /usr / /dev; do umount $p && echo LEA''K; done",
    "devices": "mknod d b 8 0 && echo LEA''K; mknod d c 1 1 && echo LEA''K; "
    "for d in mem kmem port kmsg kvm fuse vda sda loop-control console mapper/control; do "
    "test -e /dev/$d && echo LEA''K; done; true </dev/tty && echo LEA''K",
    "the kernel's core pattern": "cat /proc/sys/kernel/core_pattern >v; "
    "cat v >/proc/sys/kernel/core_pattern && echo LEA''K",
    "the kernel's settings": "for f in $(find /proc/sys /proc/irq -type f); do "
    "true >>$f && echo LEA''K; done",
    "the kernel's keyboard": "true >>/proc/sysrq-trigger && echo LEA''K",
    "the machine's devices": "for f in $(find /sys -type f); do true >>$f && echo LEA''K; done",
    "control groups": "ls -A /sys/fs/cgroup | grep . && echo LEA''K",
    "the machine's name": "hostname $(hostname) && echo LEA''K",
    "the network": "grep : /proc/net/dev | grep -v lo: && echo LEA''K; "
    "ip link add patchq0 type dummy && ip link del patchq0 && echo LEA''K",
    "a port of the machine": 'python3 -c "import socket; '
    "socket.create_connection(('127.0.0.1', {port}), 5); print('LEA' 'K')\"",
    "writing to the system": "for d in / /usr /usr/bin /etc /dev /sys /proc /var; do "
    "touch $d/{mark} && echo LEA''K; done",
    "writing to the home": "for d in {home} {home}/tools/bin {other} {base}; do mkdir -p $d; "
    "echo x >$d/{mark}; done",
    "writing to the repository": "for d in {repo} {repo}/.git {repo}/.git/hooks {repo}/.patchq "
    "{repo}/.patchq/inbox ../../../inbox; do mkdir -p $d; echo x >$d/{mark}.md; done",
    "writing to its objects": "for d in $(cat .git/objects/info/alternates); do "
    "touch $d/{mark} && echo LEA''K; chmod 777 $d && echo LEA''K; done",
    "writing by a link": "ln -s {home} way; ln -s / up; mkdir -p way; echo x >way/{mark}; "
    "echo x >up{home}/{mark}; echo x >../../../../../../{mark}",
    "writing to shared directories": "for d in /tmp /var/tmp /dev/shm /run; do "
    "echo x >$d/{mark}; done",
    "a process that stays": "(setsid nohup sleep {seconds} >/dev/null 2>&1 &)",
}


@pytest.fixture
def port(base: Path) -> Iterator[int]:
    """A port of the machine; and sockets as agents have them, which take whoever asks."""
    names = (str(base / "agent"), f"\0patchq-test-{os.getpid()}", ("127.0.0.1", 0))
    with ExitStack() as open_sockets:
        for name in names:
            kind = socket.AF_INET if isinstance(name, tuple) else socket.AF_UNIX
            listening = open_sockets.enter_context(socket.socket(kind))
            listening.bind(name)
            listening.listen()
        yield listening.getsockname()[1]


def run_as(user: int, base: Path, repo: Path) -> int:
    """Decide as this user, who then owns everything, and need not be able to read Python."""
    os.chdir(repo)
    write(repo, "earlier")
    main(["run"])  # loads what there is to be loaded
    if user != os.getuid():
        subprocess.run(["chown", "-R", f"{user}:{user}", base], check=True, timeout=60)
        pygit2.settings.search_path[ConfigLevel.GLOBAL] = str(base)
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    write(repo, "probe")
    return main(["run"])


@pytest.mark.parametrize("user", USERS, ids=lambda user: "stranger" if user == STRANGER else "self")
def test_h13_a_batchs_code_reaches_nothing_of_the_operators(
    there: Path, base: Path, port: int, user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = there.parents[1]
    (base / "patchq-test-scratch").write_text(SECRET)
    seconds = f"1000.{os.getpid()}"
    words = {
        "home": home, "repo": there, "other": base / "other", "agent": base / "agent", "base": base,
        "scratch": base / "patchq-test-scratch", "pid": os.getpid(), "user": user, "port": port,
        "mark": MARK, "seconds": seconds,
    }  # fmt: skip
    lines = []
    for number, probe in enumerate(PROBES.values()):
        for key, value in words.items():
            probe = probe.replace("{" + key + "}", str(value))
        lines.append(
            f"({probe}) </dev/null >out 2>/dev/null; grep -q '{FOUND}' out && echo {number}"
        )
    write_files(home, {"tools/lib/probes.sh": "\n".join([*lines, "true"])})
    tool = {
        "run": f"sh {home}/tools/lib/probes.sh; tool",
        "visible": ["~/extra"],
        "timeout_seconds": 60,
    }
    configure(there, tool)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{home}/tools/bin")
    assert in_child(lambda: run_as(user, base, there)) == 0
    output = report(there / ".patchq", "probe")["hooks"][0]["output"]
    *found, last = output.split("\n")
    assert [list(PROBES)[int(number)] for number in found] == []
    assert last == "made of this"
    assert not running(seconds)
    for place in (base, "/tmp", "/var/tmp", "/dev/shm", "/run", "/etc", "/usr/bin"):
        depth = () if place == base else ("-maxdepth", "1")
        command = ["find", place, *depth, "-name", f"{MARK}*"]
        assert not subprocess.run(command, capture_output=True, timeout=60).stdout


def test_h13_a_work_tree_that_was_moved_leads_nobody_astray(there: Path) -> None:
    own = next(place for place in ("/tmp", "/var/tmp", "/dev/shm") if there.is_relative_to(place))
    top = "/".join(str(there).split("/")[: own.count("/") + 2])
    false = "mkdir -p $OLDPWD && echo false >$OLDPWD/r.txt"
    move = f"echo fixed >r.txt && cd / && mv {top} {top}-2 && {false}"
    configure(there, {"run": f"{move} && ln -s {top} {top}-3", "fixes": True})
    assert told(there)["state"] == "proposed"
    assert git("show", "patchq/r:r.txt", cwd=there) == "fixed"


def test_a_virtual_environment_below_home_works_read_only(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = there.parents[1] / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=120)
    location = next(venv.glob("lib/python3*/site-packages"))
    write_files(location, {"shown.py": "print('imported')\n"})
    monkeypatch.setenv("PATH", f"{venv}/bin:{os.environ['PATH']}")
    look = f"python -c 'import shown'; touch {location}/x || echo read-only; cat {venv}/../.netrc"
    configure(there, {"run": f"{look}; true"})
    assert ": ok\n" in patchq("config", "check", cwd=there).out
    said = told(there)["hooks"][0]["output"].split("\n")
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
    runs = {run["id"]: run["output"] for run in told(there, code=1)["hooks"]}
    assert runs["h0"].startswith("found\ncat: ")
    assert "found" not in runs["h1"]
    assert SECRET not in str(runs)


def test_config_check_looks_for_programs_where_hooks_run(there: Path) -> None:
    tool = f"{there.parents[1]}/tools/bin/tool"
    shown, nowhere = {"run": f"{tool} x", "visible": ["~/tools"]}, {"visible": ["nowhere"]}
    configure(there, {"run": f"{tool} x"}, shown, {"run": "true", **nowhere})
    said = patchq("config", "check", cwd=there, code=2).err
    assert f"hooks[0].run: expected a program that hooks see, got `{tool}`" in said
    assert "hooks[2].visible: expected a path that is there" in said
    assert "hooks[1]" not in said


def test_without_a_sandbox_no_hook_runs_a_batchs_code_unless_it_may(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NO_SANDBOX, "1")
    configure(there, {"run": "true"})
    said = patchq("config", "check", cwd=there, code=2).err
    assert "hooks[0].unconfined: expected true for a hook" in said
    found = fresh("--json", "doctor", cwd=there, code=1).json()["findings"]
    why = f"there is no sandbox: {NO_SANDBOX} is set"
    assert [f["level"] for f in found if why in f["message"]] == ["fatal"]
    write(there, "n")
    assert "runs what changes hold" in patchq("run", cwd=there, code=3).err
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
