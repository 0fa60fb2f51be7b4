"""The hooks that come with patchq, each as the program that it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from patchq.core.model.values import FileChange
from patchq.core.text.unified import unified
from patchq.gate.hooks import configured
from patchq.gate.report import secrecy
from tests.helpers.chat_server import Reply, serving
from tests.helpers.command import block, drop, patchq
from tests.helpers.gitrepo import commit_files, git, make_repo, write_config, write_files

RANDOM = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fH3jL5"
GATES = ("pre-apply", "no-secrets", "protected-paths", "size-limits")


def plan(
    files: Mapping[str, str], before: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    """A plan that makes `files` of `before`."""
    old = before or {}
    changes = [
        FileChange(path, old[path].encode() if path in old else None, text.encode())
        for path, text in files.items()
    ]
    edits = [{"path": path, "state": "applied"} for path in files]
    return {"schema": "patchq.plan/1", "edits": edits, "diff": unified(changes), **more}


def run(
    name: str, cwd: Path, given: object = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Start the script as patchq does, with a scrubbed environment."""
    script = configured.script(name)
    assert script
    command = [sys.executable, str(script)]
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **environ}
    env["GIT_CONFIG_NOSYSTEM"] = "1"
    stdin = b"" if given is None else json.dumps(given).encode()
    done = subprocess.run(command, cwd=cwd, input=stdin, env=env, capture_output=True, timeout=120)
    err = done.stderr.decode()
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), err)


def refusals(name: str, given: dict[str, Any], **environ: str) -> list[str]:
    judge = configured.judge(name, environ)
    assert judge
    return judge(given)


def test_the_wheel_carries_them() -> None:
    root = Path(__file__).parents[3]
    wheel = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    carried = wheel["build"]["targets"]["wheel"]["force-include"]
    assert carried == {"hooks": "patchq/gate/hooks/scripts"}
    assert secrecy.directory() in (root / "hooks", root / carried["hooks"])


@pytest.mark.parametrize("name", GATES)
def test_a_gate_says_the_same_as_a_program(name: str, tmp_path: Path) -> None:
    bad = plan({"LICENSE": "mine\n", "a.py": f'x = "ghp_{RANDOM}"\n'}, {"LICENSE": "theirs\n"})
    expected = refusals(name, bad, PATCHQ_MAX_FILES="1")
    done = run(name, tmp_path, bad, PATCHQ_MAX_FILES="1")
    assert (done.returncode, done.stderr.splitlines()) == (1, expected)
    assert run(name, tmp_path, plan({"a.py": "x = 1\n"})).returncode == 0


KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj"
SECRETS = {
    "pem": ("key.txt", f"-----BEGIN PRIVATE KEY-----\n{KEY}\n"),
    "rsa": ("key.txt", f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{KEY}\n"),
    "aws id": ("a.py", "ID = 'AKIA2E0A8F3B244C9986'\n"),
    "aws key": ("a", f"aws_secret_access_key = {RANDOM}AbCd\n"),
    "github": ("a.py", f"t('ghp_{RANDOM}')\n"),
    "gitlab": ("a.yml", f"token: glpat-{RANDOM[:20]}\n"),
    "slack": ("a.py", "t('xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx')\n"),
    "google": ("a.js", f"k('AIza{RANDOM[:35]}')\n"),
    "npmrc": (".npmrc", f"//registry.example.org/:_authToken={RANDOM}\n"),
    "pypi": ("a", f"pypi-AgEIcHlwaS5vcmc{RANDOM}{RANDOM}\n"),
    "password": ("a.py", 'password = "k8Jz!q2Lw9#xV4mT7pRb"\n'),
    "json": ("a.json", '{"client_secret": "9f86d081884c7d659a2feaa0c55ad015"}\n'),
    "env": (".env.local", f"API_KEY={RANDOM[:24]}\n"),
    "address": ("a.py", 'URL = "postgres://app:Xk9fj2LmQ8zR@db/app"\n'),
}


@pytest.mark.parametrize(("path", "text"), SECRETS.values(), ids=SECRETS.keys())
def test_a_secret_is_refused_with_its_place_and_not_repeated(path: str, text: str) -> None:
    said = refusals("no-secrets", plan({path: f"first\n{text}"}))
    assert len(said) == 2
    assert re.match(rf"edit\.secret: {re.escape(path)}:[23]: looks like an? \w", said[0])
    for word in re.findall(r"[\w!#+/-]{12,}", text):
        if not re.fullmatch(r"[A-Za-z_-]+", word):
            assert word not in "\n".join(said)


INNOCENT = {
    "fillers": f"ghp_{'x' * 36} glpat-{'0' * 20} sk_live_{'X' * 24}\n",
    "yours": "token: ghp_yourtokenyourtokenyourtokenyourtoken1\n",
    "words": 'password = "changeme123456"; token = "test_password_1"; secret = "my-secret-value"\n',
    "code": 'password = os.environ["DB_PASSWORD_1"]; token = getToken(a1, b2, C3d4E5)\n',
    "template": 'password = "${DB_PASSWORD_42a}"; secret = "{{ s3cr3tV4lu3x }}"\n',
    "a key's name": 'if text.startswith("-----BEGIN PRIVATE KEY-----"):\n    return\n',
    "public": f"-----BEGIN PUBLIC KEY-----\n{KEY}\n",
    "hash": f'sha256 = "{"9f86d081884c7d65" * 4}"\nmonkey = "{RANDOM}"\n',
}


@pytest.mark.parametrize("text", INNOCENT.values(), ids=INNOCENT.keys())
def test_placeholders_and_code_pass(text: str) -> None:
    assert refusals("no-secrets", plan({"a.py": text})) == []


def test_all_added_lines_are_looked_at_and_no_others() -> None:
    old = {"a.py": f't = "ghp_{RANDOM}"\nx = 1\n'}
    assert refusals("no-secrets", plan({"a.py": old["a.py"].replace("= 1", "= 2")}, old)) == []
    assert refusals("no-secrets", plan({"a.py": "x = 1\n"}, old)) == []
    given = plan({"a": "x\n" * 9})
    given["diff"] += "… 4711 more characters are left out here\n"
    assert "too large to be searched" in refusals("no-secrets", given)[0]


@pytest.mark.parametrize(
    ("path", "own", "pattern"),
    [
        ("LICENSE", "", "/LICENSE*"),
        ("LICENSE", "!/LICENSE", None),
        ("web/node_modules/x/y.js", "", "node_modules/"),
        ("db/migrations/1.sql", "migrations/", "migrations/"),
        ("vendor/x", "vendor/**  !vendor/x", None),
    ],
)
def test_protected_paths(path: str, own: str, pattern: str | None) -> None:
    said = refusals("protected-paths", plan({path: "x\n"}), PATCHQ_PROTECTED=own)
    assert said[:1] == ([f"{path}: is protected by the pattern {pattern}"] if pattern else [])


@pytest.mark.parametrize(
    ("name", "most", "said"),
    [
        ("PATCHQ_MAX_FILES", "1", "2 files touched, more than 1 (PATCHQ_MAX_FILES)"),
        ("PATCHQ_MAX_LINES", "2", "3 lines added, more than 2 (PATCHQ_MAX_LINES)"),
        ("PATCHQ_MAX_BYTES", "9", "10 bytes added, more than 9 (PATCHQ_MAX_BYTES)"),
    ],
)
def test_size_limits(name: str, most: str, said: str, tmp_path: Path) -> None:
    given = plan({"a": "aaa\nbb\n", "b": "ä\n"})
    assert refusals("size-limits", given, **{name: most})[:1] == [said]
    assert refusals("size-limits", given, **{name: "0"}) == []
    assert run("size-limits", tmp_path, given, **{name: "many"}).returncode == 126


@pytest.fixture
def candidate(tmp_path: Path) -> Callable[..., Path]:
    """A work tree on a candidate commit, which makes the files of those before."""

    def make(files: Mapping[str, str], before: Mapping[str, str] | None = None) -> Path:
        root = make_repo(tmp_path / "tree", before or {"README": "x\n"})
        commit_files(root, files)
        (tmp_path / "files").write_bytes(b"\0".join(map(os.fsencode, files)))
        return root

    return make


def on_tree(name: str, root: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return run(name, root, None, PATCHQ_FILES=str(root.parent / "files"), **environ)


def tool(directory: Path, name: str, text: str) -> dict[str, str]:
    """A program of that name, first on PATH."""
    write_files(directory, {f"bin/{name}": text})
    (directory / "bin" / name).chmod(0o755)
    return {"PATH": f"{directory}/bin:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("path", "bad"),
    [
        ("a.py", "def f(:\n"),
        ("a.sh", "if true; then\n"),
        ("run", "#!/bin/bash\nfor x in; do\n"),
        pytest.param(
            "a.js",
            "let = = 1;\n",
            marks=pytest.mark.skipif(not shutil.which("node"), reason="needs node"),
        ),
    ],
)
def test_syntax_refuses_what_does_not_parse(
    path: str, bad: str, candidate: Callable[..., Path]
) -> None:
    done = on_tree("syntax", candidate({path: bad, "good.py": "x = 1\n"}))
    assert done.returncode == 1
    assert done.stderr.startswith(f"{path}: ")
    assert "good.py" not in done.stderr


@pytest.mark.parametrize(
    ("files", "line", "said", "code"),
    [
        ({"package.json": '{"scripts": {"test": "x"}}', "pytest.ini": ""}, "", "ran pytest\n", 0),
        ({"Cargo.toml": ""}, "", "ran cargo\n", 0),
        ({"Makefile": "all:\n\ntest: all\n"}, "", "ran make\n", 0),
        ({"Makefile": "test := 1\n"}, "", "", 1),
        ({"Makefile": "test:\n"}, "exit 3", "", 3),
        ({"Makefile": "test:\n"}, "nosuchtool", "", 127),
    ],
)
def test_run_tests_runs_what_the_tree_shows_or_a_command(
    files: dict[str, str], line: str, said: str, code: int, candidate: Callable[..., Path]
) -> None:
    root = candidate(files)
    for name in ("pytest", "npm", "cargo", "make"):
        path = tool(root.parent, name, f"#!/bin/sh\necho ran {name}\n")
    done = on_tree("run-tests", root, PATCHQ_TEST_COMMAND=line, **path)
    assert (done.returncode, done.stdout) == (code, said)


@pytest.mark.parametrize("name", ["ruff", "run-tests", "pre-commit-framework"])
def test_a_missing_program_is_a_fault(
    name: str, candidate: Callable[..., Path], tmp_path: Path
) -> None:
    before = {".pre-commit-config.yaml": "repos: []\n", "go.mod": ""}
    (tmp_path / "bin").mkdir()
    done = on_tree(name, candidate({"a.py": "x = 1\n"}, before), PATH=str(tmp_path / "bin"))
    assert done.returncode == 127
    assert "not found on PATH" in done.stderr


RUFF = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.skipif(not shutil.which("ruff", path=RUFF["PATH"]), reason="needs ruff")
def test_ruff_checks_the_batchs_files(candidate: Callable[..., Path]) -> None:
    root = candidate({"a.py": "import os\n", "b.txt": "x\n"}, {"old.py": "import os\n"})
    done = on_tree("ruff", root, **RUFF)
    assert done.returncode == 1
    assert "a.py:1:8: F401" in done.stdout
    assert "old.py" not in done.stdout


LOCAL = """\
repos:
- repo: local
  hooks:
  - {id: no-tabs, name: no tabs, language: system, entry: sh -c '! grep -l X "$@"' --}
"""
FAKE = """\
#!/bin/sh
# As both frameworks are called: run --config FILE --color never --files PATH...
shift; config=$2; shift 4; shift
grep -q 'id: no-tabs' "$config" || exit 0
! grep -l X "$@"
"""


@pytest.mark.parametrize("name", ["prek", "pre-commit"])
def test_the_framework_runs_on_the_batchs_files(
    name: str, candidate: Callable[..., Path], tmp_path: Path
) -> None:
    path = tool(tmp_path, name, FAKE)
    loose = {"a": "ok\n", ".pre-commit-config.yaml": "repos: []\n"}
    root = candidate(loose, {".pre-commit-config.yaml": LOCAL, "old": "X\n"})
    assert on_tree("pre-commit-framework", root, **path).returncode == 0
    git("reset", "-q", "--hard", "HEAD^", cwd=root)
    commit_files(root, {**loose, "a": "X\n"})
    assert on_tree("pre-commit-framework", root, **path).returncode == 1, "as it was before"


def report(place: Path, **fields: Any) -> Path:
    told = {
        "id": "fix", "state": "proposed", "mode": "review", "target": "main",
        "branch": "patchq/fix", "commit": None, "agent": "bot", "model": None,
        "duplicate_of": None, "edits": [], "problems": [], **fields,
    }  # fmt: skip
    place.write_text(json.dumps(told))
    return place


@pytest.fixture
def published(tmp_path: Path) -> tuple[Path, Path]:
    """A repository, and the bare one that is its `origin`."""
    repo, remote = make_repo(tmp_path / "repo", {"a": "1\n"}), tmp_path / "remote.git"
    git("init", "-q", "--bare", str(remote), cwd=tmp_path)
    git("remote", "add", "origin", str(remote), cwd=repo)
    return repo, remote


def test_publish_keeps_the_remote_in_step(published: tuple[Path, Path]) -> None:
    repo, remote = published
    place = repo / "r.json"
    first, second, third = (
        git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", text, cwd=repo) for text in "123"
    )
    for commit in (first, second):
        run("publish", repo, PATCHQ_REPORT=str(report(place, commit=commit)))
        assert git("rev-parse", "patchq/fix", cwd=remote) == commit
    # What was about to be pushed when the process died is no one else's.
    git("update-ref", "refs/patchq/published/origin/fix", first, cwd=repo)
    done = run("publish", repo, PATCHQ_REPORT=str(report(place, commit=third)))
    assert done.stdout == "updated patchq/fix on origin\n"
    assert git("rev-parse", "patchq/fix", cwd=remote) == third
    report(place, state="discarded")
    for said in ("deleted patchq/fix on origin\n", ""):
        done = run("publish", repo, PATCHQ_REPORT=str(place))
        assert (done.returncode, done.stdout) == (0, said)
    for of in (repo, remote):
        assert git("for-each-ref", "refs/patchq", "refs/heads/patchq", cwd=of) == ""


def test_publish_leaves_what_others_pushed(published: tuple[Path, Path]) -> None:
    repo, remote = published
    base, theirs = git("rev-parse", "HEAD", cwd=repo), commit_files(repo, {"a": "theirs\n"})
    git("push", "-q", "origin", f"{theirs}:refs/heads/patchq/fix", cwd=repo)
    git("reset", "-q", "--hard", base, cwd=repo)
    place = report(repo / "r.json", commit=commit_files(repo, {"a": "3\n"}))
    for pushed in (False, True):
        if pushed:
            git("push", "-q", "origin", ":patchq/fix", cwd=repo)
            assert run("publish", repo, PATCHQ_REPORT=str(place)).returncode == 0
            git("push", "-qf", "origin", f"{theirs}:refs/heads/patchq/fix", cwd=repo)
            report(place, commit=base, state="discarded")
        done = run("publish", repo, PATCHQ_REPORT=str(place))
        assert done.returncode == 1
        assert "not pushed from here" in done.stderr
        assert git("rev-parse", "patchq/fix", cwd=remote) == theirs


ASKS = {
    "https://x:secret@github.com/a/b": "https://github.com/a/b/compare/main...patchq/fix?expand=1",
    "ssh://git@gitlab.example.org:2222/a/b/c.git": "https://gitlab.example.org/a/b/c/-/"
    "merge_requests/new?merge_request%5Bsource_branch%5D=patchq/fix"
    "&merge_request%5Btarget_branch%5D=main",
    "git@forge.example.org:a/b.git": "",
}


def test_publish_knows_where_forges_ask_for_a_review(published: tuple[Path, Path]) -> None:
    repo, remote = published
    place = report(repo / "r.json", commit=commit_files(repo, {"a": "2\n"}))
    told = {}
    for url in ASKS:
        git("config", "remote.origin.url", url, cwd=repo)
        git("config", f"url.{remote}.insteadOf", url, cwd=repo)
        said = run("publish", repo, PATCHQ_REPORT=str(place)).stdout
        assert "patchq/fix" in said
        told[url] = said.partition("review it at ")[2].strip()
    assert told == ASKS
    away = f"https://x:secret@127.0.0.1:1{remote}"
    done = run("publish", repo, PATCHQ_REPORT=str(place), PATCHQ_REMOTE=away)
    assert done.returncode == 1
    assert "127.0.0.1" in done.stderr
    assert "secret" not in done.stderr


def notify(place: Path, **environ: str) -> tuple[int, str]:
    done = run("notify", place.parent, None, PATCHQ_REPORT=str(place), no_proxy="*", **environ)
    return done.returncode, done.stderr


def test_notify_posts_the_essentials(tmp_path: Path) -> None:
    problem = {"code": "match.none", "severity": "error", "message": "no", "path": "a.py"}
    fields = {"state": "rejected", "branch": None, "edits": [{"path": "a.py"}] * 2}
    place = report(tmp_path / "r.json", **fields, problems=[{**problem, "line": 3}])
    moved = Reply(status=302, headers={"location": "/v1"}, body=b"")
    with serving([Reply(status=204, body=b""), moved]) as server:
        for url, answer in (
            (server.base_url, (0, "")),
            (server.base_url, (1, "127.0.0.1 answered 302\n")),
            ("file:///etc/passwd", (1, "PATCHQ_NOTIFY_URL is not an http(s) address\n")),
            ("http://127.0.0.1:1/secret", (1, "127.0.0.1: [Errno 111] Connection refused\n")),
        ):
            assert notify(place, PATCHQ_NOTIFY_URL=url) == answer
    told = server.requests[0].body
    assert told["text"] == "rejected fix main: match.none: no"
    assert (told["paths"], told["problems"][0]["line"]) == (["a.py"], 3)


def test_notify_calls_a_command(tmp_path: Path) -> None:
    place = report(tmp_path / "r.json")
    assert notify(place, PATCHQ_NOTIFY_COMMAND="cat > told; exit 0") == (0, "")
    assert json.loads((tmp_path / "told").read_text())["text"] == "proposed fix patchq/fix"
    failed = notify(place, PATCHQ_NOTIFY_COMMAND="cat >/dev/null; exit 4")
    assert failed == (1, "PATCHQ_NOTIFY_COMMAND exited 4\n")
    assert notify(place)[0] == 1


def test_a_proposal_is_published(published: tuple[Path, Path]) -> None:
    repo, remote = published
    write_config(repo, "hooks:\n- {id: publish, stage: post-commit, run: patchq:publish}\n")
    patchq("init", cwd=repo)
    drop(repo / ".patchq", {"fix.md": block("a", "1\n", "2\n")})
    patchq("run", cwd=repo)
    assert git("rev-parse", "patchq/fix", cwd=remote) == git("rev-parse", "patchq/fix", cwd=repo)
    patchq("discard", "fix", cwd=repo)
    assert git("for-each-ref", cwd=remote) == ""
