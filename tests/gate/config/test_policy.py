"""Paths that are denied, and those that ask for review, by default and by a configuration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from patchq.gate.config.policy import Policy, matcher, pattern_error

DEFAULT = Policy()
TABLE = (Path(__file__).parent / "run_by_tools.txt").read_text(encoding="utf-8")
RUN_BY_TOOLS = [line.split(" | ")[0] for line in TABLE.splitlines() if not line.startswith("#")]
ORDINARY = (
    *(f"src/core/part.{suffix}" for suffix in (
        "py", "pyi", "c", "hpp", "rs", "go", "java", "kt", "cs", "swift", "js", "mjs", "jsx", "ts",
        "tsx", "vue", "rb", "php", "lua", "hs", "ex", "sql", "proto", "css", "html",
    )),
    *(f"docs/guide.{suffix}" for suffix in ("md", "rst", "txt", "adoc", "tex", "org")),
    *(f"web/img/logo.{suffix}" for suffix in ("svg", "png", "webp", "ico", "woff2", "mp4", "pdf")),
    "tests/test_app.py", "tests/__snapshots__/a.snap", "tests/data/rows.csv",
    "locale/de/messages.po", "app/tasks.py", "src/file.ts", "lib/config.rb", "src/hooks/part.py",
    "src/setup/index.ts", "docs/tools.md", "docs/bin/usage.md", "pkg/ci/report.go",
    "src/agents/planner.py", "src/prompts/system.txt", "tests/conf/test_conf.py", "README.md",
    "LICENSE", "notes.txt", "Docs/Guide.MD", "src/ui/Button.stories.tsx",
)  # fmt: skip
"""Plain source, prose and assets, nearly all below the root."""


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (".env", ".env"),
        ("tls/SERVER.KEY", "*.key"),
        (".ssh/id_ed25519.pub", "id_ed25519*"),
        # the same files to a more lenient file system
        (".e\u200bnv", ".env"),
        ("．env", ".env"),
        (".env::$DATA", ".env"),
    ],
)
def test_secrets_are_denied(path: str, pattern: str) -> None:
    says = f"`{pattern}` names secrets, unless `paths.deny` has `!{pattern}`"
    assert DEFAULT.denied(path) == says
    own = Policy(deny=[pattern]).denied(path)
    assert own == f"`paths.deny` has the pattern `{pattern}`"


def unreviewed(paths: Iterable[str], *, existed: bool) -> list[str]:
    return [path for path in paths if not DEFAULT.review(path, existed=existed)]


@pytest.mark.parametrize("existed", [True, False], ids=["changed", "new"])
def test_nearly_all_that_tools_run_by_themselves_asks_for_review(existed: bool) -> None:
    assert len(RUN_BY_TOOLS) == len(set(RUN_BY_TOOLS)) >= 350
    landing = unreviewed(RUN_BY_TOOLS, existed=existed)
    assert len(landing) <= 12, landing
    upper = unreviewed([path.upper() for path in RUN_BY_TOOLS], existed=existed)
    assert upper == [path.upper() for path in landing]


def test_plain_sources_and_documents_land() -> None:
    assert unreviewed(ORDINARY, existed=False) == [*ORDINARY]


@pytest.mark.parametrize(
    ("path", "existed", "reason"),
    [
        ("app.py", True, None),
        ("app.py", False, "source that is new at the root"),
        ("taskfile.js", True, "its name is like `*file.*`"),
        ("readme.sh", True, "not plain source or prose, at the root"),
        ("lib/chart.js/Build", True, "not plain source, prose or an asset"),
        ("docs/.hidden/page.md", True, "it is hidden"),
        ("SCRIPTS/Build.PY", True, "it is in a directory of programs"),
        ("lib/cmakelists.TXT", True, "forges, installers or builds look for it"),
        ("sub/ＣonfTest.py", True, "tests, tasks or interpreters load it first"),
        ("docs/agents.md", False, "agents may take it for instructions"),
    ],
)
def test_a_kind_asks_for_a_reason(path: str, existed: bool, reason: str | None) -> None:
    asked = DEFAULT.review(path, existed=existed)
    assert (asked and asked.removeprefix("a tool may run it by itself: ")) == reason


@pytest.mark.parametrize(
    "path", [".patchq.yaml", ".patchq/inbox/x.md", "git~1/config", ".g\u200cit/x"]
)
def test_structural_rules_cannot_be_taken_out(path: str) -> None:
    patterns = ["!*", "!.patchq.yaml", "!patchq.yaml", "!/.patchq", "!.patchq/**", "!.git"]
    reason = Policy(patterns, patterns).denied(path)
    assert reason
    assert reason.startswith("patchq never touches ")


@pytest.mark.parametrize(
    ("deny", "path", "expected"),
    [
        (["secret/"], "secret", False),
        (["*.sql", "!fixtures/*.sql"], "fixtures/a.sql", False),
        (["*.sql", "!fixtures/*.sql"], "a.sql", True),
        (["secret/", "!secret/public.txt"], "secret/public.txt", False),
        (["!test/*.pem"], "test/a.pem", False),
    ],
    ids=str,
)
def test_own_patterns_extend_what_is_denied(deny: list[str], path: str, expected: bool) -> None:
    assert (Policy(deny).denied(path) is not None) == expected


@pytest.mark.parametrize(
    ("review", "path", "expected"),
    [
        (["!package.json"], "package.json", False),
        (["!.github/workflows/docs.yml"], ".github/workflows/ci.yml", True),
        (["!*.json", "package.json"], "package.json", True),
        (["!.gitmodules"], "gitmod~1", True),
        (["!.gitmodules", "!gitmod~1"], "gitmod~1", False),
    ],
    ids=str,
)
def test_own_patterns_extend_what_asks(review: list[str], path: str, expected: bool) -> None:
    policy = Policy(review=review)
    assert (policy.review(path, existed=True) is not None) == expected
    assert policy.taken_out(path) or expected


@pytest.mark.parametrize("pattern", ["", "  ", "# words", "/", "!", "[z-a]"])
def test_pattern_that_cannot(pattern: str) -> None:
    assert pattern_error(pattern) is not None


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
