"""`docs/architecture.md` shows the rooms as they are, and who owns what on disk."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from pkgutil import resolve_name

import pytest

from patchq.core.api import parse
from patchq.gate.git import records
from patchq.gate.queue.spool import PUBLIC
from tests.gate.pipeline.test_correct import FILE, RESPONSE, RIGHT
from tests.helpers import rooms
from tests.helpers.chat_server import serving
from tests.helpers.command import block, drop, fresh, patchq
from tests.helpers.gitrepo import git, make_repo, write_config
from tests.helpers.pages import ARCHITECTURE, ROOT, names, part, table

GLOSSARY = ROOT / "docs/glossary.md"
FILES = table(ARCHITECTURE, "below `.patchq/`")
REPOSITORY = table(ARCHITECTURE, "in the repository")
CONFIG = """version: 1
mode: review
hooks:
  - {id: look, stage: pre-commit, unconfined: true, run: "true"}
  - {id: hear, stage: post-commit, run: "true"}
"""
TRANSIENT = {
    "`active/TOKEN.NAME`", "`mcp.key`", "`feeder`", "`worker.lock`",
}  # fmt: skip
"""What stands only while a response is decided, and what only tools that are called make."""


@pytest.mark.parametrize("name", rooms.PARTS)
def test_what_is_made_from_the_code_is_as_it_is(name: str) -> None:
    assert part(ARCHITECTURE, name) == rooms.PARTS[name](), "run: python -m tests.helpers.rooms"


def test_the_functions_on_the_way_of_a_response_are_there() -> None:
    stations = re.findall(r"^\*\*`(gate|core)`: `([\w.]+)`", ARCHITECTURE.read_text("utf-8"), re.M)
    assert len(stations) == 9
    for tier, name in stations:
        assert callable(resolve_name(f"patchq.{tier}.{name}"))


def test_the_response_on_the_way_is_the_one_that_the_values_are_of() -> None:
    page = ARCHITECTURE.read_text("utf-8")
    (text,) = re.findall(r"`inbox/round.md` arrives:\n\n```text\n(.*?)```\n", page, re.S)
    assert f"sha256='{sha256(text.encode()).hexdigest()}'" in page
    assert len(parse(text, {"shop/cart.py": b""}).edits) == 1


def test_the_glossary_has_every_word_once_and_the_code_has_it() -> None:
    rows = re.findall(r"^\| ([a-z]+) \|", GLOSSARY.read_text("utf-8"), re.M)
    words = [word for word in rows if word != "word"]
    assert len(words) == len(set(words)) <= 40
    code = "\n".join(path.read_text("utf-8") for path in rooms.MODULES.values()).lower()
    assert [word for word in words if not re.search(rf"(\b|_){word}s?(\b|_)", code)] == []


def _expression(name: str) -> re.Pattern[str]:
    """Words in capitals stand for any; what ends in a slash, for all that is below it."""
    words = re.sub(r"[A-Z]{2,}", "[^/]+", re.escape(name))
    return re.compile(words + (".*" if name.endswith("/") else ""))


def _owned(rows: list[list[str]], name: str) -> bool:
    return any(_expression(known).fullmatch(name) for row in rows for known in names(row[0]))


@pytest.mark.parametrize("row", FILES + REPOSITORY, ids=lambda row: row[0])
def test_every_owner_names_what_it_owns(row: list[str]) -> None:
    (owner,) = names(row[1])
    text = (ROOT / owner).read_text(encoding="utf-8")
    for name in names(row[0]):
        fixed = [word for word in re.split(r"[A-Z]{2,}|/", name) if word]
        assert not fixed or any(word.rstrip("s") in text for word in fixed), f"{owner}: {name}"


def test_every_name_in_the_code_has_an_owner() -> None:
    for name in PUBLIC:
        assert any(known.startswith(f"{name}/") for row in FILES for known in names(row[0])), name
    for prefix in (*records.BY_ID, records.NOTES):
        assert _owned(REPOSITORY, prefix + "ID" if prefix.endswith("/") else prefix), prefix


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One where of everything something happened: it landed, waits, was refused and discarded,
    was judged by a hook, corrected by a model, found damaged, and served by a daemon."""
    monkeypatch.setenv("TEST_KEY", "sk-none")
    repo = make_repo(tmp_path / "project", {"a.py": FILE, "b.py": "x = 1\n", "c.py": "x = 1\n"})
    queue = repo / ".patchq"
    write_config(repo, CONFIG)
    patchq("init", cwd=repo)
    two, refused = block("c.py", "x = 1\n", "x = 3\n"), block("b.py", "y\n", "z\n")
    one = block("b.py", "x = 1\n", "x = 2\n")
    drop(queue, {"one.md": one, "two.md": two, "bad.md": refused})
    patchq("run", cwd=repo, code=None)
    patchq("accept", "one", cwd=repo)
    with serving(RIGHT) as server:
        model = f"llm: {{base_url: '{server.base_url}', model: m, api_key_env: TEST_KEY}}\n"
        write_config(repo, CONFIG + model)
        drop(queue, {"four.md": RESPONSE})
        patchq("run", cwd=repo, code=None)
    patchq("discard", "four", cwd=repo)
    (queue / "store.db").write_bytes(b"no database")
    patchq("fsck", "--repair", cwd=repo, code=None)
    held = "---\ndepends_on: [nobody]\n---\n" + block("c.py", "x = 3\n", "x = 4\n")
    drop(queue, {"three.md": held})
    patchq("run", cwd=repo, code=None)
    fresh("watch", "--detach", cwd=repo)
    fresh("stop", cwd=repo)
    (queue / "inbox/late.md").write_text("nobody is there to take it")
    return repo


def test_whatever_a_run_leaves_has_an_owner(repo: Path) -> None:
    queue = repo / ".patchq"
    found = {str(path.relative_to(queue)): path for path in sorted(queue.rglob("*"))}
    there = [name for name, path in found.items() if path.is_symlink() or not path.is_dir()]
    # The store of a process that is about to end may still be open.
    there = [name.removesuffix("-wal").removesuffix("-shm") for name in there]
    refs = git("for-each-ref", "--format=%(refname)", cwd=repo).split("\n")
    assert [name for name in there if not _owned(FILES, name)] == []
    assert [name for name in refs if not _owned(REPOSITORY, name)] == []
    unseen = {row[0] for row in FILES if not any(_owned([row], name) for name in found)}
    assert unseen <= TRANSIENT
    unseen = {row[0] for row in REPOSITORY[:5] if not any(_owned([row], ref) for ref in refs)}
    assert unseen == set()


PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("*.md")),
    ROOT / "bench/README.md",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_files_that_there_are(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    made = set(re.findall(r"^New file `([^`]+)`", text, re.M))
    files = r"`((?:patchq|bench|tests/[a-z]+)/[\w/]+\.(?:py|md|yaml))`"
    named = set(re.findall(files, text)) - made
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
