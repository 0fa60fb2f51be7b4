"""Hostile aims (H05-H09): no batch changes what judges it, or unseen what runs or instructs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import call, given, patchq
from tests.helpers.gitrepo import commit_files, git, make_repo, operators_file, write_config

REVIEWED = {
    "h05": (
        "tests/conftest.py", "package.json", "Makefile", ".husky/pre-commit", "hooks/pre-apply",
        "tools/gate.sh",
    ),
    "h06": (".GitHub/Workflows/x.yml", ".gitlab-ci.yml", "Jenkinsfile", "sub/.travis.yml"),
    "h08": ("requirements.txt", "pyproject.toml", "setup.py", "Cargo.lock", ".npmrc", "pip.conf"),
    "h09": ("AGENTS.md", "sub/CLAUDE.md", ".vscode/tasks.json", ".envrc", ".gitattributes"),
}  # fmt: skip
DENIED = {
    "h05": (".patchq.yaml", "patchq.yaml", ".PATCHQ.YAML", ".patchq/hooks/x", "sub/.patchq.yaml"),
    "h07": (".env", "deploy/.env.production", "server.pem", "KEY.PEM", "id_rsa", ".ssh/id_ed25519",
        "vault.kdbx", ".netrc", ".pypirc", "credentials.json"),
}  # fmt: skip
PROGRAMS = ("src/run.py", "docs/build.md", "docs/taken-out.md")
KINDS = {
    "app.py": "applied",
    "new.py": "proposed",
    "gulpfile.js": "proposed",
    "src/core.py": "applied",
    "src/new.py": "applied",
    "src/.hidden.py": "proposed",
    "lib/CMakeLists.txt": "proposed",
    "lib/rows.csv": "applied",
    "lib/rows.json": "proposed",
    "lib/Makefile": "proposed",
    "CHANGELOG.md": "applied",
    "docs/new.rst": "applied",
    "src/run.py": "applied",
    "docs/build.md": "proposed",
    "docs/taken-out.md": "applied",
    "lib/taken-out.json": "applied",
}  # fmt: skip
"""What becomes in auto mode of a batch that writes the file; `PROGRAMS` are executable."""
ASKS = "path.review"
TEXT = {".json": "{}\n", ".py": "x = 1\n", ".toml": "x = 1\n", ".yml": "x: 1\n", ".yaml": "x: 1\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    there = ("app.py", "gulpfile.js", "lib/CMakeLists.txt", "src/core.py", *PROGRAMS)
    repo = make_repo(tmp_path / "repo", dict.fromkeys(there, "y\n"))
    for path in PROGRAMS:
        (repo / path).chmod(0o755)
    commit_files(repo, {"a.txt": "one\n", "tools/check": "exit 0\n"})
    git("branch", "trunk", cwd=repo)
    patchq("init", cwd=repo)
    hook = "{id: gate, stage: pre-apply, run: 'sh tools/gate.sh || true'}"
    write_config(repo, f"version: 1\nmode: auto\ntarget: trunk\nhooks: [{hook}]\n")
    return repo


def write(path: str) -> str:
    return call(path, TEXT.get(Path(path).suffix, "x\n"))


def reports_on(repo: Path, paths: list[str], before: str = "") -> dict[str, dict[str, Any]]:
    texts = {str(number): before + write(path) for number, path in enumerate(paths)}
    return {paths[int(number)]: told for number, told in given(repo, texts).items()}


def test_h05_h06_h08_h09_what_runs_or_instructs_waits_for_a_person(repo: Path) -> None:
    paths = [path for group in REVIEWED.values() for path in group]
    reports = reports_on(repo, paths)
    assert len(reports) == len(paths)
    wrong = {
        path: (told["state"], [problem["code"] for problem in told["problems"]])
        for path, told in reports.items()
        if told["state"] != "proposed"
        or "path.review" not in [problem["code"] for problem in told["problems"]]
    }
    assert wrong == {}
    assert git("rev-parse", "main", cwd=repo) == git("rev-parse", "trunk", cwd=repo)


def test_h05_what_lands_unseen_is_source_prose_or_an_asset(repo: Path) -> None:
    write_config(repo, "version: 1\nmode: auto\ntarget: trunk\npaths: {review: ['!taken-out.*']}\n")
    reports = reports_on(repo, [*KINDS], f"---\nbase: {git('rev-parse', 'trunk', cwd=repo)}\n---\n")
    assert {path: told["state"] for path, told in reports.items()} == KINDS
    asking = {path for path, told in reports.items() for p in told["problems"] if p["code"] == ASKS}
    assert asking == {path for path, state in KINDS.items() if state == "proposed"}


def test_h05_h07_the_gate_itself_and_secrets_by_name_are_denied(repo: Path) -> None:
    paths = [path for group in DENIED.values() for path in group]
    reports = reports_on(repo, paths)
    codes = {path: [p["code"] for p in told["problems"]] for path, told in reports.items()}
    assert codes == {path: ["path.denied"] for path in paths}


def test_h05_no_pattern_takes_the_gate_out(repo: Path) -> None:
    with operators_file(repo).open("a") as config:
        config.write("paths: {deny: ['!*', '!.patchq.yaml', '!/.patchq'], review: ['!*']}\n")
    reports = reports_on(repo, [".patchq.yaml", ".patchq/inbox/x.md", ".git/hooks/pre-commit"])
    assert {told["state"] for told in reports.values()} == {"rejected"}


def test_h05_hooks_are_the_configurations_and_not_the_batchs(repo: Path) -> None:
    """What a batch brings as a hook, or as the configuration of one, is not run."""
    with operators_file(repo).open("a") as added:
        added.write("paths: {review: ['!*.yml', '!*.yaml']}\n")
    config = "hooks:\n- {id: evil, stage: pre-commit, run: 'touch ../../evil; exit 1'}\n"
    paths = ["sub/patchq.yml", "x/.patchq.yml", "hooks.yaml"]
    found = given(repo, {f"x{n}": call(path, config) for n, path in enumerate(paths)}).values()
    assert {told["state"] for told in found} == {"applied"}
    assert {hook["id"] for told in found for hook in told["hooks"]} == {"gate"}
    assert not [*repo.parent.rglob("evil")]
