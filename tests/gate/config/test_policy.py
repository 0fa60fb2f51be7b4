"""Which paths are denied, which ask for review, and what a configuration can change of that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from patchq.core.model.secret_names import SECRET_NAMES
from patchq.gate.config.policy import Policy, matcher, pattern_error
from patchq.gate.config.reviewed import REVIEW, who_runs

DEFAULT = Policy()


def code(policy: Policy, path: str) -> str | None:
    ruling = policy.judge(path)
    return ruling.code if ruling else None


@pytest.mark.parametrize(
    "path",
    [
        "src/app.py",
        "README.md",
        ".env.example",
        "docs/.env.example",
        "env/x",
        "src/hooks/useThing.ts",
        "monkey.py",
        "keys/public.txt",
        ".patchq.yml.md",
        "docs/.patchq/page.md",
        "src/credentials.py",
        "environment.txt",
        "src/build/step.py",
        "app/tasks.py",
        "src/inventory/items.py",
        "docs/values.yaml",
        "src/workspace/index.ts",
        "lib/configure/a.rb",
        "owners.py",
        "module.pod",
    ],
)
def test_ordinary_paths_pass(path: str) -> None:
    assert DEFAULT.judge(path) is None


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (".env", ".env"),
        ("deploy/.env", ".env"),
        (".ENV", ".env"),
        (".env/settings", ".env"),
        (".env.production", ".env.*"),
        ("tls/server.pem", "*.pem"),
        ("tls/SERVER.KEY", "*.key"),
        ("a.p12", "*.p12"),
        ("a.pfx", "*.pfx"),
        ("vault.kdbx", "*.kdbx"),
        ("id_rsa", "id_rsa*"),
        (".ssh/id_ed25519.pub", "id_ed25519*"),
        (".netrc", ".netrc"),
        (".pypirc", ".pypirc"),
        ("credentials-prod.json", "credentials*.json"),
        # the same files to a more lenient file system
        (".e\u200bnv", ".env"),
        ("．env", ".env"),
        (".env.", ".env.*"),
        (".env::$DATA", ".env"),
    ],
)
def test_secrets_are_denied(path: str, pattern: str) -> None:
    ruling = DEFAULT.judge(path)
    assert ruling is not None
    assert (ruling.code, ruling.pattern, ruling.structural) == ("path.denied", pattern, False)


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml",
        "sub/.github/workflows/ci.yml",
        ".gitlab-ci.yml",
        "Jenkinsfile",
        ".circleci/config.yml",
        "azure-pipelines.yml",
        "hooks/pre-apply",
        ".husky/pre-commit",
        ".pre-commit-config.yaml",
        "tests/conftest.py",
        "Makefile",
        "package.json",
        "web/package-lock.json",
        "requirements-dev.txt",
        "pyproject.toml",
        "go.mod",
        "Cargo.toml",
        "uv.lock",
        ".npmrc",
        "AGENTS.md",
        "pkg/CLAUDE.md",
        ".cursor/rules/a.mdc",
        ".claude/settings.json",
        ".vscode/tasks.json",
        ".envrc",
        ".devcontainer/devcontainer.json",
        ".gitattributes",
        "sub/.gitmodules",
        ".github/CODEOWNERS",
        "gitmod~1",
        "gi7d29~1",
        ".GitModules",
        # what a second look found to be missing
        ".mcp.json",
        ".vscode/settings.json",
        "web/.vscode/launch.json",
        "CLAUDE.local.md",
        ".windsurf/rules/a.md",
        ".clinerules",
        ".clinerules/a.md",
        ".roo/rules/x.md",
        ".kiro/steering/a.md",
        ".aider.conf.yml",
        "opencode.json",
        ".github/instructions/a.instructions.md",
        ".github/prompts/x.prompt.md",
        ".github/dependabot.yml",
        "renovate.json",
        ".pnpmfile.cjs",
        ".yarn/releases/yarn-4.1.0.cjs",
        ".yarn/plugins/x.cjs",
        "sitecustomize.py",
        "src/x.pth",
        "pytest.ini",
        ".lfsconfig",
        ".mise.toml",
        ".tool-versions",
        "Dockerfile",
        "deploy/Dockerfile.prod",
        "docker-compose.override.yml",
        "compose.yaml",
        "infra/main.tf",
        "infra/prod.tfvars",
        "Taskfile.yml",
        "justfile",
        "build.rs",
        ".buildkite/pipeline.yml",
        ".woodpecker/a.yaml",
        ".forgejo/workflows/x.yml",
        "cloudbuild.yaml",
        "a/b/Jenkinsfile.release",
        ".idea/workspace.xml",
        ".exrc",
        ".nvim.lua",
        "Vagrantfile",
        "vite.config.ts",
        ".eslintrc.cjs",
    ],
)
def test_what_runs_or_instructs_asks_for_review(path: str) -> None:
    assert code(DEFAULT, path) == "path.review"


STRUCTURAL = [
    ".patchq.yaml",
    "patchq.yaml",
    ".PatchQ.yaml",
    "sub/.patchq.yaml",
    ".patchq",
    ".patchq/inbox/x.md",
    ".PATCHQ/x",
    ".patchq./x",
    ".git/config",
    "a/.GIT/x",
    "git~1/config",
    ".g\u200cit/x",
]


@pytest.mark.parametrize("path", STRUCTURAL)
def test_structural_rules_cannot_be_taken_out(path: str) -> None:
    patterns = ["!*", "!.patchq.yaml", "!patchq.yaml", "!/.patchq", "!.patchq/**", "!.git"]
    ruling = Policy(patterns, patterns).judge(path)
    assert ruling is not None
    assert (ruling.code, ruling.structural) == ("path.denied", True)


@pytest.mark.parametrize(
    ("deny", "review", "path", "expected"),
    [
        (["secret/"], [], "secret/a.py", "path.denied"),
        (["secret/"], [], "secret", None),
        (["SECRET/**"], [], "secret/a.py", "path.denied"),
        (["*.sql", "!fixtures/*.sql"], [], "fixtures/a.sql", None),
        (["*.sql", "!fixtures/*.sql"], [], "a.sql", "path.denied"),
        (["!fixtures/*.sql", "*.sql"], [], "fixtures/a.sql", "path.denied"),
        (["secret/", "!secret/public.txt"], [], "secret/public.txt", None),
        (["!*.pem"], [], "a.pem", None),
        (["!*.pem"], [], "a.key", "path.denied"),
        (["!test/*.pem"], [], "test/a.pem", None),
        ([], ["!package.json"], "package.json", None),
        ([], ["!.github/workflows/docs.yml"], ".github/workflows/docs.yml", None),
        ([], ["!.github/workflows/docs.yml"], ".github/workflows/ci.yml", "path.review"),
        ([], ["/src/core/"], "src/core/a.py", "path.review"),
        ([], ["*.pem"], "a.pem", "path.denied"),
        (["*.md"], ["!AGENTS.md"], "AGENTS.md", "path.denied"),
        (["!.gitmodules"], [], "gitmod~1", "path.review"),
        ([], ["!.gitmodules"], "gitmod~1", None),
    ],
    ids=str,
)
def test_own_patterns_extend_the_defaults(
    deny: list[str], review: list[str], path: str, expected: str | None
) -> None:
    assert code(Policy(deny, review), path) == expected


def test_an_installation_protects_its_own_places() -> None:
    policy = Policy(["!queue/"], protected=["/queue"])
    ruling = policy.judge("queue/inbox/a.md")
    assert ruling is not None
    assert ruling.structural


@pytest.mark.parametrize("pattern", ["*.py", "!x", "/a/b", "a/**", "[a-z]*", "\\#x"])
def test_pattern_that_can_be_used(pattern: str) -> None:
    assert pattern_error(pattern) is None


@pytest.mark.parametrize("pattern", ["", "  ", "# words", "/", "!", "[z-a]"])
def test_pattern_that_cannot(pattern: str) -> None:
    assert pattern_error(pattern) is not None


def test_a_review_says_who_runs_the_file() -> None:
    ruling = DEFAULT.judge("web/.vscode/settings.json")
    assert ruling is not None
    assert who_runs(ruling.pattern) == "editors run it when the folder is opened"
    assert who_runs("/src/core/") is None


PATTERNS = st.lists(
    st.text("ab*?/!. ]\\", min_size=1, max_size=6).filter(lambda p: pattern_error(p) is None),
    max_size=6,
)
PATHS = st.lists(st.text("ab. ]", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)


@given(PATTERNS, PATHS)
def test_patterns_mean_what_they_mean_to_git(patterns: list[str], path: str) -> None:
    expected = None
    for text, pattern in zip(patterns, GitIgnoreSpec.from_lines(patterns).patterns, strict=True):
        if pattern.include is not None and pattern.match_file(path) is not None:
            expected = text if pattern.include else None
    assert matcher(patterns)(path) == (expected is not None)


def test_the_defaults_are_patterns_each_once() -> None:
    for patterns in (SECRET_NAMES, REVIEW):
        assert [p for p in patterns if pattern_error(p)] == []
        assert len(set(patterns)) == len(patterns)
