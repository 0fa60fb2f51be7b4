"""What a hook's line calls, as far as its text tells, and what is said of it before it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchq.gate.hooks.shell_line import Called, read
from tests.helpers.command import patchq
from tests.helpers.gitrepo import make_repo, write_config

CALLS = {
    "pytest -q": "pytest",
    "cd sub && ruff .": "cd ruff",
    "a; b\nc # here; d": "a b c",
    "a 2>&1 | b >out 2>> err < in": "a b",
    'echo "a && b"; c': "echo c",
    "'my prog' x": "my prog",
    "X=1 Y='2 3' a": "a",
    "exec a": "a",
    "! a": "a",
    "a \\\n  b": "a",
    "a & b": "a b",
    "test -x a && a": "test a?",
    "command -v a >/dev/null && a": "command a?",
    "[ -f x ] && a; b": "[ a? b",
    "a || b; c": "a b? c",
    "if a; then b; fi": "a? b?",
    "for f in x y; do a $f; done": "a?",
    "PATH=bin:$PATH; a": "a?",
    "PATH=bin:$PATH a": "a?",
    ". ./env.sh; a": ". a?",
    "eval x; a": "eval a?",
    "exit 1; a": "",
    "exit": "",
    "": "",
}
NOT_PLAIN = ("$(a) b", "a `b`", "(a; b)", "a() { b; }; a", "cat <<x\na\nx", "a <(b)", "$A b")
ENDS = {
    "exit 127": 127,
    "true; exit 126": 126,
    "exit 3": None,
    "exit": None,
    "a || exit 127": None,
    "a && exit 127": None,
    "if a; then exit 127; fi": None,
    "true; exit 1; exit 127": None,
}


@pytest.mark.parametrize(("line", "calls"), CALLS.items(), ids=CALLS)
def test_what_a_line_calls(line: str, calls: str) -> None:
    """`?` stands behind what it may never come to."""
    words = [calls] if calls == "my prog" else calls.split()
    found = read(line)
    assert found.called == tuple(Called(w.removesuffix("?"), not w.endswith("?")) for w in words)
    assert found.plain


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_what_is_not_plain(line: str) -> None:
    assert not read(line).plain


@pytest.mark.parametrize(("line", "code"), ENDS.items(), ids=ENDS)
def test_a_line_that_never_starts(line: str, code: int | None) -> None:
    assert read(line).ends == code


REFUSED = {
    "exit 127": "it always ends with 127",
    "cd . && no-such-a": "there is no `no-such-a` on the PATH",
    "true | no-such-a": "there is no `no-such-a` on the PATH",
}
TOLD = {
    "test -x a && no-such-a": "`no-such-a`, which is not on the PATH, if the line comes to it",
    "./check; git status": "`./check`, in the tree of each batch; `git`, beyond being there",
    "echo $(no-such-a)": "what the shell puts together only when it runs the line",
    "git status": None,
    "patchq:no-secrets": None,
}


def test_config_check_says_what_it_knows_and_what_it_did_not_try(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")

    def configure(*lines: str) -> None:
        hooks = (f"  - {{id: h{n}, stage: pre-apply, run: '{s}'}}\n" for n, s in enumerate(lines))
        write_config(repo, "version: 1\nhooks:\n" + "".join(hooks))

    configure(*REFUSED)
    said = patchq("config", "check", cwd=repo, code=2).err
    for number, why in enumerate(REFUSED.values()):
        assert f"hooks[{number}].run: expected" in said
        assert why in said
    configure(*TOLD)
    notes = patchq("--json", "config", "check", cwd=repo).json()["not_tried"]
    told = {note.partition("hooks[")[2][0]: note.partition(".run: ")[2] for note in notes}
    assert told == {str(n): why for n, why in enumerate(TOLD.values()) if why}
    assert f"not tried: {notes[0]}\n" in patchq("config", "check", cwd=repo).out


def test_a_file_of_the_tree_is_no_program_for_a_hook_that_is_told(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"notify.sh": "exit 0\n"})
    hook = "{id: hear, stage: post-commit, run: ./notify.sh}"
    write_config(repo, f"version: 1\nhooks: [{hook}]\n")
    said = patchq("config", "check", cwd=repo, code=2).err
    assert "expected a full path or a program on the PATH, got `./notify.sh`" in said
