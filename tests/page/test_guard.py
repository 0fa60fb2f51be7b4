"""Who is let in: by the printed address, from this page, to this host, with a bounded body."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from patchq.page.server import MOST_BYTES
from tests.page.people import Person, state

COMMIT = [("commit", "0" * 40)]


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        ("/", {"cookie": ""}, 403),
        ("/?token=guess", {"cookie": ""}, 403),
        ("/", {"host": "example.org"}, 421),
        ("/", {"host": ""}, 400),
        ("/static/page.css", {"cookie": ""}, 403),
        ("/changes", {"cookie": ""}, 403),
        ("/batch/..%2F..%2Fetc%2Fpasswd", {}, 404),
        ("/static/..%2fapp.py", {}, 404),
        ("/batch/fix/accept", {}, 405),
    ],
)
def test_what_is_not_shown(person: Person, path: str, headers: dict[str, str], code: int) -> None:
    assert person.ask("GET", path, **headers).code == code


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"cookie": ""}, 403),
        ({"origin": ""}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://example.org"}, 403),
        ({"origin": "https://{own}"}, 403),
        ({"host": "127.0.0.1:{port}", "origin": "http://127.0.0.1:{port}"}, 421),
        ({"host": "example.org", "origin": "http://example.org"}, 421),
        ({"content_length": str(MOST_BYTES + 1)}, 413),
    ],
)
def test_decisions_from_elsewhere(
    person: Person, repo: Path, headers: dict[str, str], code: int
) -> None:
    own = {"port": person.port, "own": person.host}
    headers = {name: value.format(**own) for name, value in headers.items()}
    assert person.send("/batch/other/discard", COMMIT, **headers).code == code
    assert state(repo, "other") == "proposed"


def test_the_key_is_exchanged_for_a_cookie(person: Person) -> None:
    answer = person.ask("GET", f"/batch/fix{person.key[1:]}&line=3", cookie="")
    kept = answer.headers["set-cookie"]
    assert answer.headers["location"] == f"http://{person.host}/batch/fix?line=3"
    assert "HttpOnly" in kept
    assert "SameSite=lax" in kept
    assert "domain" not in kept.lower()
    away = person.ask("GET", f"//example.org{person.key}", cookie="").headers["location"]
    assert away == f"http://{person.host}//example.org/"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_another_name_of_the_machine_shows_a_link_alone(person: Person, name: str) -> None:
    for path, cookie in ((person.key, ""), ("/", person.cookie)):
        answer = person.ask("GET", path, cookie=cookie, host=f"{name}:{person.port}")
        assert answer.text.count(f'href="http://{person.host}/"') == 1
        assert "for you" not in answer.text
        assert "set-cookie" not in answer.headers
    assert re.fullmatch(r"[0-9a-f]{16}\.localhost:\d+", person.host)


def test_every_answer_forbids_scripts_of_others(person: Person) -> None:
    for path in ("/", "/batch/fix", "/nowhere", "/static/page.js"):
        headers = person.ask("GET", path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"
