"""Cut GitHub's descriptions of its API down to what patchq asks for.

    npm pack @octokit/openapi@23.0.2 && npm pack @octokit/graphql-schema@15.26.1
    python -m tests.forge.cut DIRECTORY

reads both archives there, and writes `github.json` and `github.graphql` beside this file: test
data, from https://github.com/octokit under the MIT licence.
"""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

from graphql import GraphQLObjectType, build_schema, get_named_type

HERE = Path(__file__).parent
_PROJECT = "/repos/{owner}/{repo}"
OPERATIONS = {
    "/user": ("get",),
    _PROJECT: ("get",),
    f"{_PROJECT}/branches/{{branch}}": ("get",),
    f"{_PROJECT}/rules/branches/{{branch}}": ("get",),
    f"{_PROJECT}/pulls": ("get", "post"),
    f"{_PROJECT}/pulls/{{pull_number}}": ("patch",),
    f"{_PROJECT}/pulls/{{pull_number}}/merge": ("put",),
    f"{_PROJECT}/pulls/{{pull_number}}/reviews": ("get",),
    f"{_PROJECT}/pulls/{{pull_number}}/comments": ("get",),
    f"{_PROJECT}/pulls/{{pull_number}}/comments/{{comment_id}}/replies": ("post",),
    f"{_PROJECT}/issues/{{issue_number}}": ("get",),
    f"{_PROJECT}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{_PROJECT}/statuses/{{sha}}": ("post",),
    f"{_PROJECT}/commits/{{ref}}/status": ("get",),
    f"{_PROJECT}/commits/{{ref}}/check-runs": ("get",),
    f"{_PROJECT}/collaborators/{{username}}/permission": ("get",),
    "/orgs/{org}/teams/{team_slug}/memberships/{username}": ("get",),
}
_WORDS = ("description", "summary", "examples", "example", "externalDocs", "x-github", "tags")
_FIELDS = {
    "Query": ("repository",),
    "Mutation": ("resolveReviewThread",),
    "Repository": ("pullRequest",),
    "PullRequest": ("mergeable", "reviewThreads"),
    "PullRequestReviewThreadConnection": ("nodes", "pageInfo"),
    "PageInfo": ("endCursor", "hasNextPage"),
    "PullRequestReviewThread": ("id", "isResolved", "comments"),
    "PullRequestReviewCommentConnection": ("nodes",),
    "PullRequestReviewComment": ("id", "fullDatabaseId"),
    "ResolveReviewThreadPayload": ("thread",),
}


def rest(whole: dict[str, Any]) -> dict[str, Any]:
    """Return the description with these operations, their good answers, and what they refer to."""
    paths: dict[str, Any] = {}
    for path, methods in OPERATIONS.items():
        paths[path] = {method: whole["paths"][path][method] for method in methods}
        for operation in paths[path].values():
            answers = operation["responses"]
            operation["responses"] = {code: one for code, one in answers.items() if code < "3"}
    cut = _plain({"openapi": whole["openapi"], "info": whole["info"], "paths": paths})
    cut["servers"] = whole["servers"]
    cut["components"] = {}
    while missing := _references(cut) - _parts(cut):
        for kind, name in missing:
            cut["components"].setdefault(kind, {})[name] = _plain(whole["components"][kind][name])
    return dict(cut)


def _plain(value: Any, named: bool = False) -> Any:
    """Return a description without its words; `named`: keys are names of properties."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: one for key, one in value.items() if named or key not in _WORDS}
    plain = {key: _plain(one, key == "properties") for key, one in kept.items()}
    if plain.get("nullable") and "enum" in plain:  # GitHub leaves out what it says by `nullable`
        plain["enum"] = [*plain["enum"], None]
    if "content" in value and "description" in value:  # an answer, which has to have one
        plain["description"] = ""
    return plain


def _references(value: Any) -> set[tuple[str, str]]:
    if isinstance(value, list):
        return set().union(*map(_references, value))
    if not isinstance(value, dict):
        return set()
    found = set().union(*map(_references, value.values()))
    if isinstance(reference := value.get("$ref"), str):
        _, _, kind, name = reference.split("/")
        found.add((kind, name))
    return found


def _parts(cut: dict[str, Any]) -> set[tuple[str, str]]:
    return {(kind, name) for kind, all in cut["components"].items() for name in all}


def graphql(sdl: str) -> str:
    """Return the schema with these types and fields, and what their arguments take."""
    whole, lines, others = build_schema(sdl, assume_valid_sdl=True), [], dict[str, None]()
    for name, fields in _FIELDS.items():
        kind = whole.type_map[name]
        assert isinstance(kind, GraphQLObjectType)
        rows = []
        for field in fields:
            arguments = kind.fields[field].args
            row = ", ".join(f"{key}: {one.type}" for key, one in arguments.items())
            rows.append(f"  {field}{f'({row})' if row else ''}: {kind.fields[field].type}")
            others |= {str(get_named_type(one.type)): None for one in arguments.values()}
            others |= {str(get_named_type(kind.fields[field].type)): None}
        lines += [f"type {name} {{", *rows, "}"]
    for name in others:
        found = whole.type_map[name]
        if name in _FIELDS or name in ("String", "Int", "Boolean", "ID"):
            continue
        if enum := getattr(found, "values", None):
            lines += [f"enum {name} {{", *(f"  {value}" for value in enum), "}"]
        elif inputs := getattr(found, "fields", None):
            rows = [f"  {key}: {one.type}" for key, one in inputs.items()]
            lines += [f"input {name} {{", *rows, "}"]
        else:
            lines.append(f"scalar {name}")
    return "\n".join(lines) + "\n"


def _member(directory: Path, archive: str, name: str) -> str:
    (found,) = directory.glob(archive)
    with tarfile.open(found) as tar:
        file = tar.extractfile(name)
        assert file
        return file.read().decode()


if __name__ == "__main__":
    where = Path(sys.argv[1])
    whole = json.loads(
        _member(where, "octokit-openapi-*.tgz", "package/generated/api.github.com.json")
    )
    (HERE / "github.json").write_text(json.dumps(rest(whole), separators=(",", ":")) + "\n")
    sdl = _member(where, "octokit-graphql-schema-*.tgz", "package/schema.graphql")
    (HERE / "github.graphql").write_text(graphql(sdl))
