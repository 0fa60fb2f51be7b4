"""Words of what people read: a change is a change, a quote is found or not, a stack is on top."""

from __future__ import annotations

import re
from pathlib import Path

from tests.helpers.command import block, patchq, work
from tests.helpers.gitrepo import operators_file

NEVER = re.compile(r"\b(?:batch(?:es)?|rungs?|gate|stands?)\b", re.IGNORECASE)
RESPONSES = {
    "good": "---\nagent: codex\n---\n" + block("a.txt", "two\n", "2\n"),
    "same": block("a.txt", "two\n", "zwei\n"),
    "top": "---\ndepends_on: [good]\n---\n" + block("lib/b.txt", "b\n", "B\n"),
    "wait": "---\ndepends_on: [nothing]\n---\n" + block("lib/b.txt", "b\n", "c\n"),
    "bad": block("a.txt", "nowhere\n", "2\n"),
    "twice": block("a.txt", "o", "0"),
    "ci": block(".github/x.yml", "", "a: 1\n"),
}
COMMANDS = [
    *("", "--help", "status -h", "log -h", "show -h", "accept -h"),
    *("status", "status --ahead", "log", "log --state rejected", "show good --diff"),
    *(f"{verb} {id}" for verb in ("status", "show") for id in RESPONSES),
    *("send-back same -m Say-two", "show same", "status"),
    *(f"accept {id}" for id in ("top", "nothing", "bad", "same", "good", "same")),
    *("show good", "log"),
]


def test_words_of_another_trade_are_in_no_output(repo: Path) -> None:
    operators_file(repo).unlink()
    for id, response in RESPONSES.items():
        work(repo, **{id: response})
    assert len(COMMANDS) >= 30
    for line in COMMANDS:
        done = patchq(*line.split(), cwd=repo, code=None)
        assert done.out + done.err
        assert not NEVER.search(done.out + done.err), (line, done)
