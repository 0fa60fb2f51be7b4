"""Paths that a batch may not change, or only with a person's consent.

Patterns are gitignore's, compared without case, and the last one that matches decides.  So the
patterns of a configuration extend the defaults, and `!pattern` takes paths out of them again.
The structural rules come first and cannot be taken out: a batch must not edit the gate that
judges it.  Every path is judged twice, as written and under the names that a lenient file system
would give it; the stricter verdict counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from patchq.core.model.names import SECRET_NAMES, name_key, spells_git
from patchq.core.text.languages import SOURCE, suffix

if TYPE_CHECKING:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

STRUCTURAL = (".patchq.yaml", "patchq.yaml", "/.patchq")

# Kinds of files that land unseen in auto mode; a change of any other file asks for review.
# Tools run files by themselves, and agents obey them: a person opens the folder, a package is
# installed, a push reaches a forge.  No list has all their names, so the rest is listed: source,
# prose and assets below the root, prose at the root, and source that was at the root before.
_PROSE = "adoc asciidoc md org rst tex txt"
_ASSETS = """
aac ambr avif bmp csv eot eps flac ftl gif glb gltf golden icns ico jpeg jpg mo mp3 mp4 ogg otf
parquet pdf png po pot psd snap svg tga tif tiff tsv ttf wav webm webp woff woff2 xlf xliff
"""
_UNSEEN = SOURCE.union(_PROSE.split(), _ASSETS.split())

_BY_ITSELF = "a tool may run it by itself"
# Patterns of gitignore for what asks whatever the suffix, under the reason.
NAMED: dict[str, tuple[str, ...]] = {
    f"{_BY_ITSELF}: it is hidden": (".*",),
    f"{_BY_ITSELF}: it is in a directory of programs": (
        "/bin/", "/ci/", "/hooks/", "/script/", "/scripts/", "/tools/",
    ),
    "agents may take it for instructions": (
        "AGENT.md", "AGENTS.md", "AGENTS.*.md", "CLAUDE.md", "*.local.md", "CONVENTIONS.md",
        "CRUSH.md", "GEMINI.md", "QWEN.md", "SKILL.md", "WARP.md", "codex.md",
        "llms*.txt", "replit.md", "*.agent.md", "*.chatmode.md", "*instructions.md",
        "*.prompt.md", "/agents/*.md", "/commands/*.md",
    ),
    f"{_BY_ITSELF}: forges, installers or builds look for it": (
        "CMakeLists.txt", "*.config.*", "*.conf.*", "*requirements*.txt",
        "**/requirements/*.txt", "constraints*.txt", "**/vendor/modules.txt",
        "meson_options.txt", "conanfile.*", "/apt.txt", "/runtime.txt", "setup.py",
        "hatch_build.py", "build.rs", "build.zig", "/build.*", "**/deps/build.jl", "extconf.rb",
        "gems.rb", "mix.exs", "Package.swift", "Setup.hs", "Makefile.PL",
        "Build.PL", "project.clj", "premake*.lua", "xmake.lua", "ember-cli-build.js",
        "gatsby-*.*", "serverless.*",
    ),
    f"{_BY_ITSELF}: tests, tasks or interpreters load it first": (
        "conftest.py", "conf.py", "manage.py", "noxfile.py", "dodo.py", "fabfile.py",
        "pavement.py", "/tasks.py", "magefile.go", "sitecustomize.py", "usercustomize.py",
        "*-gdb.py", "jupyter_*_config.py", "ipython_config.py", "celeryconfig.py", "startup.m",
        "spec_helper.rb", "rails_helper.rb", "test_helper.*", "*.setup.*", "*.workspace.*",
        "setupTests.*", "global-setup.*", "/features/support/", "/features/environment.py",
        "/cypress/support/", "/alembic/env.py", "**/config/initializers/",
    ),
}  # fmt: skip

_ROOT_PROSE = re.compile(r"(?:readme|changelog|license)[^.]*(?:\.adoc)?|.*\.(?:md|rst|txt)")


class Policy:
    """The compiled patterns; a path costs some tens of microseconds.

    `deny` and `review` are the configuration's own patterns, behind the defaults.
    """

    def __init__(self, deny: Sequence[str] = (), review: Sequence[str] = ()) -> None:
        self._structural = _compiled(STRUCTURAL)
        self._own_deny = tuple(deny)
        self._deny = _compiled((*SECRET_NAMES, *deny))
        self._review = _compiled(tuple(review))

    def denied(self, path: str) -> str | None:
        """Return the reason why a path may not change, as a clause, or None."""
        if spells_git(path):
            return "patchq never touches `.git`"
        for name in _names(path):
            if pattern := self._structural.match(name):
                return f"patchq never touches `{pattern}`"
        pattern = next(filter(None, map(self._deny.match, _names(path))), None)
        if pattern is None or pattern in self._own_deny:
            return pattern and f"`paths.deny` has the pattern `{pattern}`"
        return f"`{pattern}` names secrets, unless `paths.deny` has `!{pattern}`"

    def taken_out(self, path: str) -> bool:
        """Return True if the configuration says that the path asks for no review."""
        return all(self._review.last(name).startswith("!") for name in _names(path))

    def review(self, path: str, *, existed: bool) -> str | None:
        """Return the reason why a file needs review, as a clause, or None.

        `existed`: the path had a file before.
        """
        for name in _names(path):
            own = self._review.last(name)
            if own and not own.startswith("!"):
                return f"`paths.review` has the pattern `{own}`"
            if own:
                continue
            for reason, patterns in NAMED.items():
                if _compiled(patterns).match(name):
                    return reason
            if why := doubt(name, existed=existed):
                return why
        return None


def _names(path: str) -> list[str]:
    """Return the path as written and as a lenient file system has it.

    Both are without case.
    """
    lenient = "/".join(map(name_key, path.split("/")))
    return list(dict.fromkeys((path.casefold(), lenient)))


def pattern_error(pattern: str) -> str | None:
    """Return the reason why a pattern cannot be used, or None."""
    if not pattern.strip() or pattern.lstrip().startswith("#"):
        return "holds no pattern"
    try:
        compiled = _read(pattern.casefold())
    except (ValueError, re.error):
        return "is not a gitignore pattern"
    return None if any(p.include is not None for p in compiled) else "matches nothing"


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate: true for paths that match gitignore patterns."""
    compiled = _compiled(tuple(patterns))
    return lambda path: compiled.match(path.casefold()) is not None


def _read(pattern: str) -> Sequence[GitIgnoreSpecPattern]:
    from pathspec import GitIgnoreSpec  # takes long to load, and simple patterns do without

    return GitIgnoreSpec.from_lines([pattern]).patterns


# Below any directory (1), or at the root (2), components (3), of a directory (4) alone.
_SIMPLE = re.compile(
    r"!?(\*\*/)?(/?)"
    r"((?:[^/*?\[\]\\!#\s]|\*(?!\*)|\?)+(?:/(?:[^/*?\[\]\\!#\s]|\*(?!\*)|\?)+)*)(/?)"
)


class _Patterns:
    def __init__(self, patterns: Sequence[str]) -> None:
        rules = [(text, _expression(text.casefold())) for text in reversed(patterns)]
        self._rules = [(text, expression) for text, expression in rules if expression]

    def match(self, name: str) -> str | None:
        """Return the pattern that includes a path, by the last one that matches it."""
        last = self.last(name)
        return None if last.startswith("!") else last or None

    def last(self, name: str) -> str:
        """Return the last pattern that matches a path in lower case, "" for none."""
        return next((text for text, expression in self._rules if expression.search(name)), "")


def _expression(pattern: str) -> re.Pattern[str] | None:
    """Return the expression of a pattern, None for one that matches nothing."""
    simple = _SIMPLE.fullmatch(pattern)
    if simple is None:
        return _read(pattern)[0].regex
    anywhere, rooted, name, directory = simple.groups()
    expression = re.escape(name).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    if anywhere or not (rooted or "/" in name):
        expression = f"(?:.*/)?{expression}"
    return re.compile(rf"\A{expression}{'/.*' if directory else '(?:/.*)?'}\Z", re.DOTALL)


# The same patterns serve every command of a process, and compiling them costs milliseconds.
_compiled = lru_cache(maxsize=64)(_Patterns)


def doubt(path: str, *, existed: bool) -> str | None:
    """Return the reason why a file's kind asks for review, or None.

    It is a clause.  `existed`: the path had a file before.  The path is in lower case; `NAMED` is
    not looked at.
    """
    ending = suffix(path.rpartition("/")[2])
    if "/" in path:
        lands, why = ending in _UNSEEN, "not plain source, prose or an asset"
    elif ending in SOURCE:
        lands = existed and "file." not in path
        why = "its name is like `*file.*`" if existed else "source that is new at the root"
    else:
        lands, why = bool(_ROOT_PROSE.fullmatch(path)), "not plain source or prose, at the root"
    return None if lands else f"{_BY_ITSELF}: {why}"
