"""Secrets where names are made of them (H07): what holds one in its front matter, in a path or in
its file's name is refused, and nothing repeats it."""

from __future__ import annotations

import json
import logging
import os
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from patchq.gate.report import logs, secrecy
from tests.helpers.command import block, call, drop, patchq
from tests.helpers.gitrepo import git
from tests.helpers.stores import sql
from tests.hostile import automatic

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
PART = TOKEN[:14]
KEYS = ("id", "target", "message", "author", "agent", "file")


def header(key: str, value: str) -> str:
    return f"---\n{key}: {value}\n---\n" + block(f"new/{key}.txt", "", "x\n")


REFUSED = {
    **{f"{key}.md": header(key, TOKEN) for key in KEYS if key != "author"},
    "author.md": header("author", f"{TOKEN} <a@x>"),
    "within.md": header("id", f"fix-{TOKEN}-2"),
    "depends.md": header("depends_on", f"[{TOKEN}]"),
    f"{TOKEN}.md": block("new/stem.txt", "", "x\n"),
    "path.md": block(f"{TOKEN}.txt", "", "x\n"),
    "directory.md": call(f"d/{TOKEN}/x.txt"),
    "rename.md": f"b.txt\n<<<<<<< RENAME\n{TOKEN}.txt\n>>>>>>> RENAME\n",
}
UNREAD = {
    "cut.md": f"<<<<<<< SEARCH {TOKEN}\n",
    "key.md": f"---\n{TOKEN}: x\n---\nx\n",
    "yaml.md": f"---\nid: *{TOKEN}\n---\nx\n",
    "outside.md": call(f"../{TOKEN}"),
    "denied.md": call(f"{TOKEN}.pem"),
    "nowhere.md": block(f"{TOKEN}.txt", "a\n", "b\n"),
    "hook.md": block("hooked.txt", "", "x\n"),
}
"""What is refused for another reason than the secret, which it repeats."""
CONFIG = f"""\
mode: auto
commit: {{author_from_response: true, prose: false}}
stats: {{prometheus: .patchq/x.prom}}
hooks:
- id: says
  stage: pre-commit
  unconfined: true
  files: [hooked.txt]
  run: 'echo {TOKEN}; echo {TOKEN} >&2; exit 1'
- {{id: told, stage: post-reject, run: 'echo {TOKEN}; exit 1'}}
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return automatic(tmp_path, {"b.txt": "b\n"}, CONFIG)


def reports(repo: Path) -> list[dict[str, Any]]:
    return [json.loads(p.read_bytes()) for p in (repo / ".patchq").glob("*/*.report.json")]


def test_h07_a_secret_in_a_name_is_refused_under_a_name_of_patchqs_own(repo: Path) -> None:
    drop(repo / ".patchq", REFUSED)
    patchq("run", cwd=repo, code=1)
    found = reports(repo)
    assert len(found) == len(REFUSED), "two verdicts went by one name"
    for told in found:
        assert {problem["code"] for problem in told["problems"]} == {"edit.secret"}, told
    kept = {
        p.read_text() for p in (repo / ".patchq/rejected").iterdir() if ".report." not in p.name
    }
    assert kept == set(REFUSED.values())
    assert git("rev-parse", "main", cwd=repo) == git("rev-parse", "trunk", cwd=repo)


def test_h07_no_name_ref_report_or_log_repeats_it(repo: Path) -> None:
    texts = {**REFUSED, **UNREAD}
    texts = {name if name not in REFUSED else f"r-{name}": text for name, text in texts.items()}
    drop(repo / ".patchq", texts)
    said = [patchq("-v", "run", cwd=repo, code=1)]
    assert len(reports(repo)) == len(texts)
    for words in ("log", "status", "--json log", "--json status", "stats", "fsck"):
        said.append(patchq(*words.split(), cwd=repo, code=None))
    said += [patchq("show", told["id"], cwd=repo) for told in reports(repo)]
    said += [patchq("check", "-", cwd=repo, stdin=text, code=None) for text in texts.values()]
    said.append(patchq("submit", "-", cwd=repo, stdin=header("id", TOKEN)))
    assert not [done for done in said if PART in done.out + done.err]
    assert PART not in git("for-each-ref", cwd=repo) + git("log", "--all", cwd=repo)
    texts_kept = "select data from papers where kind <> 'body' union all select facts from events"
    assert not [row for row in sql(repo / ".patchq", texts_kept) if PART in str(row)]
    assert (repo / ".patchq/store.db").stat().st_mode & 0o777 == 0o600
    for directory, below, files in os.walk(repo / ".patchq"):
        place = Path(directory)
        for name in (*below, *files):
            assert PART not in name
            assert not (place / name).is_symlink() or PART not in os.readlink(place / name)
        for name in files if place.name not in ("rejected", "inbox") else ():
            path = place / name
            if name.startswith("store.db"):
                continue  # who may not read the response may not read that
            assert path.is_symlink() or PART.encode() not in path.read_bytes(), path
        for name in files if place.name == "rejected" else ():
            assert ".report." not in name or PART.encode() not in (place / name).read_bytes()


def test_h07_a_file_name_that_is_no_id_is_left_out_and_its_suffix_kept(repo: Path) -> None:
    text = "---\nid: fine\n---\n" + block("new.txt", "", "x\n")
    drop(repo / ".patchq", {f"{TOKEN}.md": text})
    patchq("run", cwd=repo)
    (told,) = reports(repo)
    assert told["state"] == "applied"
    assert told["source"]["name"] == "(left out: it looks like a GitHub token).md"
    assert (repo / ".patchq/done/fine.md").read_text() == text
    assert patchq("fsck", cwd=repo).code == 0


@pytest.mark.parametrize(
    "text",
    ["npm_package_version", "sk-learn", "hf_hub_download", "the eyJ of JWTs", "ghp_xxxxxxxxxx"],
)
def test_h07_what_only_begins_like_a_token_is_shown(text: str) -> None:
    assert secrecy.without({"text": text}) == {"text": text}


def test_h07_the_end_of_a_key_is_left_out_where_its_beginning_is_not_shown() -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj"
    text = f"some code\n 8 | {body}\n+{body[::-1]}\n-----END RSA PRIVATE KEY-----\nx = 1"
    shown = secrecy.without(text)
    assert shown == "some code\n(left out)\n(left out)\n-----END RSA PRIVATE KEY-----\nx = 1"


def test_h07_a_librarys_handler_of_the_log_repeats_none(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[logging.LogRecord] = []
    handler, log = logging.Handler(), logging.getLogger("patchq")
    monkeypatch.setattr(handler, "emit", seen.append)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    for name in ("handlers", "propagate", "level"):
        monkeypatch.setattr(log, name, copy(getattr(log, name)))
    logs.setup("warning", "text")
    log.warning(TOKEN)
    assert not seen
