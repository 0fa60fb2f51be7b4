"""Which paths a batch may change: never, not, or only after a person has looked.

Patterns are gitignore's, compared without case, and the last one that matches decides.  So the
patterns of a configuration extend the defaults, and `!pattern` takes paths out of them again.
The structural rules come first and cannot be taken out: a batch must not edit the gate that
judges it.  Every path is judged twice, as written and under the names that a lenient file system
would give it; the stricter verdict counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pathspec import GitIgnoreSpec

from patchq.model.names import name_key, spells_git

STRUCTURAL = (".patchq.yaml", "patchq.yaml", "/.patchq")

DENY = (
    # secrets, by their names
    ".env", ".env.*", "!.env.example", "*.pem", "*.key", "*.p12", "*.pfx", "*.kdbx",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".pypirc", "credentials*.json",
)  # fmt: skip

REVIEW = (
    # what continuous integration runs
    "**/.github/workflows/", "**/.github/actions/", ".gitlab-ci.yml",
    ".gitlab-ci/", ".gitlab/ci/", "Jenkinsfile", ".circleci/", "azure-pipelines*.yml",
    "bitbucket-pipelines.yml", ".travis.yml", "appveyor.yml", ".appveyor.yml", ".drone.yml",
    ".woodpecker.yml", ".woodpecker/", ".buildkite/", ".ci/", ".forgejo/", ".gitea/",
    # what hooks, tests and builds run
    "/hooks/", ".githooks/", ".husky/", ".pre-commit-config.yaml", "lefthook*.yml", ".lefthook/",
    "conftest.py", "Makefile", "GNUmakefile", "justfile", "noxfile.py", "tox.ini",
    # what is installed, and from where
    "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml",
    "pnpm-workspace.yaml", "bun.lock", "bun.lockb", ".npmrc", ".yarnrc", ".yarnrc.yml",
    "requirements*.txt", "constraints*.txt", "requirements/*.txt", "pyproject.toml", "setup.py",
    "setup.cfg", "Pipfile", "Pipfile.lock", "poetry.lock", "uv.lock", "pdm.lock", "pip.conf",
    "go.mod", "go.sum", "go.work", "Cargo.toml", "Cargo.lock", ".cargo/", "Gemfile",
    "Gemfile.lock", "*.gemspec", "composer.json", "composer.lock", "pom.xml", "build.gradle",
    "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.lockfile",
    "**/gradle/wrapper/", "mix.exs", "mix.lock", "Package.swift", "Package.resolved",
    "packages.lock.json", "flake.nix", "flake.lock",
    # what instructs agents and editors
    "AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursor/", ".cursorrules", ".claude/", ".codex/",
    ".gemini/", ".windsurfrules", "**/.github/copilot-instructions.md", "**/.vscode/tasks.json",
    ".envrc", ".devcontainer/", ".devcontainer.json",
    # what git and its hosts read
    ".gitattributes", ".gitmodules", "CODEOWNERS",
)  # fmt: skip

RulingCode = Literal["path.denied", "path.review"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """A path that is denied, or that asks for review, with the pattern that says so."""

    code: RulingCode
    pattern: str
    structural: bool = False


class Policy:
    """The compiled patterns; `judge` costs some tens of microseconds a path.

    `deny` and `review` are the configuration's own patterns, behind the defaults.  `protected`
    are structural patterns of this installation (a queue or a configuration elsewhere).
    """

    def __init__(
        self,
        deny: Sequence[str] = (),
        review: Sequence[str] = (),
        *,
        protected: Sequence[str] = (),
    ) -> None:
        self._rules: tuple[tuple[_Patterns, RulingCode, bool], ...] = (
            (_Patterns((*STRUCTURAL, *protected)), "path.denied", True),
            (_Patterns((*DENY, *deny)), "path.denied", False),
            (_Patterns((*REVIEW, *review)), "path.review", False),
        )

    def judge(self, path: str) -> Ruling | None:
        """The ruling on a path of the repository; None lets it pass."""
        if spells_git(path):
            return Ruling("path.denied", ".git", structural=True)
        lenient = "/".join(map(name_key, path.split("/")))
        names = list(dict.fromkeys((path.casefold(), lenient)))
        for patterns, code, structural in self._rules:
            if pattern := patterns.match(names):
                return Ruling(code, pattern, structural)
        return None


def pattern_error(pattern: str) -> str | None:
    """Why the pattern cannot be used, or None."""
    if not pattern.strip() or pattern.lstrip().startswith("#"):
        return "holds no pattern"
    try:
        compiled = GitIgnoreSpec.from_lines([pattern.casefold()]).patterns
    except (ValueError, re.error):
        return "is not a gitignore pattern"
    return None if any(p.include is not None for p in compiled) else "matches nothing"


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path matches gitignore patterns."""
    compiled = _Patterns(patterns)
    return lambda path: compiled.match([path.casefold()]) is not None


def ignored_by(lines: Sequence[str], path: str) -> bool:
    """Whether the lines of a `.gitignore` match a path below its directory."""
    return bool(lines) and matcher([line for line in lines if not pattern_error(line)])(path)


class _Patterns:
    """Patterns that `pattern_error` has nothing against."""

    def __init__(self, patterns: Sequence[str]) -> None:
        compiled = GitIgnoreSpec.from_lines([p.casefold() for p in patterns]).patterns
        self._patterns = list(zip(patterns, compiled, strict=True))[::-1]

    def match(self, names: Sequence[str]) -> str | None:
        """The pattern that includes any of the names, each decided by its last match."""
        for name in names:
            for text, pattern in self._patterns:
                if pattern.include is not None and pattern.match_file(name) is not None:
                    if pattern.include:
                        return text
                    break
        return None
