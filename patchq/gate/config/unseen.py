"""Kinds of files that land unseen in auto mode; a change of any other file asks for review.

Tools run files by themselves, and agents obey them: a person opens the folder, a package is
installed, a push reaches a forge.  No list has all their names, so the rest is listed: source,
prose and assets below the root, prose at the root, and source that stood at the root before.
"""

from __future__ import annotations

import re

from patchq.core.text.languages import SOURCE, suffix

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


def doubt(path: str, *, existed: bool) -> str | None:
    """The reason why a file's kind asks for review, as a clause; None where it lands.

    `existed`: a file stood there before.  The path is in lower case; `NAMED` is not looked at.
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
