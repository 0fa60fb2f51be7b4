"""An agent that knows only what `patchq setup` installed gets its tasks landed.

It fills in what is written in capitals, and copies everything else: commands, forms, exit codes,
and what to do after a refusal.  What is installed and not true fails here.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.command import Done, fresh, patchq
from tests.helpers.gitrepo import GITCONFIG, git, make_repo, tip, write_config

LOGIN = """\
class Login:
    def check(self, name, password):
        user = self.find(name)
        return user.password == password
"""
WHO = {"AGENT": "pupil"}
FILES = {
    "src/login.py": LOGIN,
    "src/old.py": "old = 1\n",
    "src/gone.py": "gone = 1\n",
    **{f"src/f{number}.py": f"a = {number}\nb = {number}\n" for number in range(9)},
}


class Pupil:
    """What the instructions say, as far as a program can take them at their word."""

    def __init__(self, repo: Path, file: str, desk: Path) -> None:
        self.repo, self.desk = repo, desk
        text = (repo / file).read_text()
        self.flat = " ".join(text.split())
        fences = re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.M | re.S)
        self.lines = [line.strip() for fence in fences for line in fence.splitlines()]
        (self.block,) = re.findall(
            r"^ {4}path/to/file\.py\n.*?^ {4}>>>>>>> \w+\n", text, re.M | re.S
        )
        self.block = re.sub("^ {4}", "", self.block, flags=re.M)
        (self.waits,) = re.findall(r"^ +(---\n +depends_on: .*?\n +---\n)", text, re.M | re.S)
        self.waits = re.sub("^ +", "", self.waits, flags=re.M)
        rows = re.findall(r"^\| ([\d, ]+) \|([^|]*)\| (.*) \|$", text, re.M)
        self.means = {int(c): names(states) for cell, states, _ in rows for c in cell.split(",")}
        self.later = {int(c): names(do) for cell, _, do in rows for c in cell.split(",")}

    def says(self, pattern: str) -> re.Match[str]:
        found = re.search(pattern, self.flat)
        assert found, pattern
        return found

    def edit(self, path: str, old: str, new: str) -> str:
        lines = self.block.splitlines(keepends=True)
        assert len(lines) == 6, "a path, three marks, and the halves between them"
        lines[0], lines[2], lines[4] = f"{path}\n", old, new
        return "".join(lines)

    def create(self, path: str, text: str) -> str:
        self.says("An empty SEARCH part creates the file")
        return self.edit(path, "", text)

    def rename(self, path: str, new: str) -> str:
        marks = self.says("rename a file, put `(.*?)`, the new path and `(.*?)`")
        return f"{path}\n{marks[1]}\n{new}\n{marks[2]}\n"

    def delete(self, path: str) -> str:
        marks = self.says("to delete one, `(.*?)` and `(.*?)` under its path")
        return f"{path}\n{marks[1]}\n{marks[2]}\n"

    def whole(self, path: str, text: str) -> str:
        info = self.says("fence whose info names it behind a colon, like `(.*?)`")
        return f"```{info[1].replace('path/to/file.py', path)}\n{text}```\n"

    def call(self, *words: str, stdin: str = "", **values: str) -> Done:
        """The one command line that has the words, with the values in it."""
        (line,) = (line for line in self.lines if {*words} <= {*line.split()})
        said = [values.get(word, word) for word in shlex.split(line)[1:]]
        assert not [word for word in said if word.isupper()], f"nobody said what is meant: {said}"
        return patchq(*said, cwd=self.repo, stdin=stdin, code=None)

    def response(self, name: str, text: str) -> str:
        place = self.desk / f"{name}.md"
        assert not place.exists(), "a name that no other response has"
        place.write_text(text)
        return str(place)

    def submit(self, name: str, text: str) -> Done:
        self.says(r"\(`git rev-parse HEAD`\)")
        base = git("rev-parse", "HEAD", cwd=self.repo)
        file = self.response(name, text)
        assert self.call("check", FILE=file).code in (0, 1)
        return self.call("FILE", "submit", FILE=file, COMMIT=base, SUBJECT=f"Do {name}", **WHO)

    def landed(self, done: Done) -> str:
        """The ID of what landed; the words and the code say the same."""
        state, id = done.out.split()[:2]
        assert state in self.means[done.code], done
        assert state == "applied", done.out
        return id

    def page(self, done: Done) -> str:
        state, id = done.out.split()[:2]
        assert (done.code, self.means[1]) == (1, [state])
        again = self.says("`([^`]*)` prints the page once more")
        words = shlex.split(again[1].replace("ID", id))[1:]
        assert patchq(*words, cwd=self.repo).out in done.out
        return done.out

    def again(self, name: str, page: str, edits: str) -> Done:
        """Send all edits under the lines that the page gives."""
        told = self.says("under the lines from `(.*?)` to `(.*?)` that the page gives")
        found = re.search(f"^{told[1]}\nretries: .*?\n{told[2]}\n", page, re.M | re.S)
        assert found
        return self.call("ANEW", **WHO, ANEW=self.response(name, found[0] + edits))


def names(text: str) -> list[str]:
    return re.findall("`([^`]+)`", text)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A repository of which a daemon takes care, in auto mode; agents were taught in it."""
    place = tmp_path_factory.mktemp("taught")
    (place / ".gitconfig").write_text(GITCONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(place))
        patch.setenv("GIT_CONFIG_GLOBAL", str(place / ".gitconfig"))
        repo = make_repo(place / "repo", FILES)
        patchq("setup", "claude", "--yes", cwd=repo)
        write_config(repo, "version: 1\nmode: auto\n")
        git("add", "--all", cwd=repo)
        git("commit", "-q", "-m", "Teach agents", cwd=repo)
        fresh("watch", "--detach", cwd=repo)
    yield repo
    patchq("stop", cwd=repo)


@pytest.fixture
def pupil(served: Path, tmp_path: Path) -> Pupil:
    return Pupil(served, ".claude/skills/patchq/SKILL.md", tmp_path)


def now(repo: Path, path: str) -> str:
    return git("show", f"main:{path}", cwd=repo) + "\n"


def test_one_file_and_several(pupil: Pupil) -> None:
    tasks = {
        "edit": pupil.edit("src/f0.py", "a = 0\n", "a = 10\n"),
        "create": pupil.create("src/new.py", "new = 1\n"),
        "delete": pupil.delete("src/gone.py"),
        "rename": pupil.rename("src/old.py", "src/young.py"),
        "whole": pupil.whole("src/f1.py", "a = 11\nb = 1\n"),
        "several": pupil.edit("src/f2.py", "a = 2\n", "a = 12\n")
        + pupil.edit("src/f3.py", "a = 3\n", "a = 13\n")
        + pupil.create("src/more.py", "more = 1\n"),
    }
    for name, text in tasks.items():
        assert pupil.landed(pupil.submit(name, text)) == name
    listed = git("ls-tree", "--name-only", "main", "src/", cwd=pupil.repo).split("\n")
    assert {"src/new.py", "src/young.py", "src/more.py"} < {*listed}
    assert not {"src/gone.py", "src/old.py"} & {*listed}
    assert [now(pupil.repo, f"src/f{number}.py")[:6] for number in range(4)] == [
        "a = 10", "a = 11", "a = 12", "a = 13",
    ]  # fmt: skip
    said = git("log", "-1", "--format=%s%n%(trailers)", cwd=pupil.repo)
    assert said.startswith("Do several\n")
    assert "Assisted-by: pupil" in said


def test_a_work_tree_and_branches(pupil: Pupil, tmp_path: Path) -> None:
    section = " ".join((pupil.repo / "AGENTS.md").read_text().split())
    (line,) = re.findall("`patchq (submit [^`]*)`", section)
    words = line.replace("BRANCH", "agent/f8").replace("NAME", "pupil").split()
    ways: dict[str, Callable[[], Done]] = {
        "f5": lambda: pupil.call("--worktree", DIR=str(tmp_path / "f5"), **WHO),
        "f6": lambda: pupil.call("--branch", BRANCH="agent/f6", **WHO),
        "f8": lambda: patchq(*words, cwd=tmp_path / "f8", code=None),
    }
    for name, send in ways.items():
        tree = tmp_path / name
        git("worktree", "add", "-q", "-b", f"agent/{name}", str(tree), cwd=pupil.repo)
        (tree / f"src/{name}.py").write_text("a = 15\n")
        if name != "f5":
            git("commit", "-qam", "Say 15", cwd=tree)
        pupil.landed(send())
        assert now(pupil.repo, f"src/{name}.py") == "a = 15\n"
        assert "Assisted-by: pupil" in git("log", "-1", "--format=%B", "main", cwd=pupil.repo)


def test_what_builds_on_another(pupil: Pupil) -> None:
    text = pupil.waits.replace("ID", "api") + pupil.edit("src/f7.py", "a = 7\n", "a = 17\n")
    (line,) = (line for line in pupil.lines if "FILE" in line and "submit" in line)
    assert "hand it in without `--wait`" in pupil.flat
    words = shlex.split(line.partition("--wait")[0].replace("FILE", pupil.response("user", text)))
    values = {"COMMIT": tip(pupil.repo), "SUBJECT": "Use the API", **WHO}
    said = [values.get(word, word) for word in words]
    id = patchq(*said[1:], cwd=pupil.repo).out.strip()
    assert pupil.landed(pupil.submit("api", pupil.create("src/api.py", "api = 1\n"))) == "api"
    (later,) = pupil.later[124]
    pupil.landed(patchq(*shlex.split(later.replace("ID", id))[1:], cwd=pupil.repo, code=None))
    assert now(pupil.repo, "src/f7.py") == "a = 17\nb = 7\n"
    assert git("log", "-2", "--format=%s", cwd=pupil.repo).split("\n") == ["Use the API", "Do api"]


def test_mending_a_quote_that_is_nowhere(pupil: Pupil) -> None:
    good = pupil.create("src/beside.py", "beside = 1\n")
    wrong = pupil.edit("src/login.py", "    def check(self, user, word):\n", "    pass\n")
    page = pupil.page(pupil.submit("stale", wrong + good))
    line = re.search(r"nearest place is line (\d+)", page)
    assert line
    real = re.search(rf"^ *{line[1]} \| (.*\n)", page, re.M)
    assert real
    right = pupil.edit("src/login.py", real[1], real[1].replace("password", "secret"))
    pupil.landed(pupil.again("mended", page, right + good))
    assert "def check(self, name, secret):" in now(pupil.repo, "src/login.py")
    assert now(pupil.repo, "src/beside.py") == "beside = 1\n"


@pytest.mark.skipif(not find_spec("mcp"), reason="the extra `mcp` is not installed")
def test_the_tools(pupil: Pupil) -> None:
    """The server is started as `.mcp.json` says, from an almost empty environment; what is refused
    is mended by the answer's lines."""
    import anyio

    from tests.mcp.clients import connected, said

    entry = json.loads((pupil.repo / ".mcp.json").read_text())["mcpServers"]["patchq"]
    bare = {"HOME": str(pupil.repo.parent), "PATH": "/usr/bin:/bin"}
    section = " ".join((pupil.repo / "AGENTS.md").read_text().split())

    async def use(client: Any) -> None:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        first, check, submit = names(section.partition("MCP server `patchq`: ")[2])[:3]
        assert {first, check, submit} <= tools
        given = (await client.call_tool(first, {"files": ["src/login.py"]})).structured_content
        edit = {"path": "src/login.py", "old": "return user.pass == password\n", "new": "pass\n"}
        change: dict[str, Any] = {"edits": [edit], "base": given["base"]}
        for name in (check, submit):
            refused = await client.call_tool(name, change)
            assert (refused.is_error, refused.structured_content["state"]) == (True, "rejected")
        assert "`submit` again with `retries`" in section
        (edit["old"],) = re.findall(r"^ *\d+ \| +(return .*\n)", said(refused), re.M)
        change["retries"] = refused.structured_content["id"]
        done = await client.call_tool(submit, change)
        assert done.structured_content["state"] == "applied"

    server = {**entry, "env": bare, "cwd": pupil.repo}
    anyio.run(connected, server, use, "legacy")
    assert "        pass\n" in now(pupil.repo, "src/login.py")
