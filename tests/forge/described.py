"""Published descriptions of APIs, which route requests to a fake and judge what goes over it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx2
import yaml
from openapi_core import OpenAPI
from openapi_core.testing import MockRequest, MockResponse

HERE = Path(__file__).parent
_OPTIONAL = "optional "


class Api:
    """A description; a fake has a method for each operation, `fixed` are parts of all paths."""

    def __init__(self, document: dict[str, Any], **fixed: str) -> None:
        self._document = document
        self._operations: dict[str, tuple[str, dict[str, Any]]] = {}
        for path, methods in document["paths"].items():
            pattern = re.sub(r"\{(\w+)\}", lambda found: fixed.get(found[1], "([^/]+)"), path)
            for method, operation in methods.items():
                name = re.sub(r"\W", "_", operation["operationId"])
                self._operations[name] = f"{method.upper()} {pattern}", operation

    @cached_property
    def _judge(self) -> OpenAPI:
        return OpenAPI.from_dict(self._document)

    def answer(self, fake: Any, request: httpx2.Request, path: str) -> httpx2.Response:
        """Have a fake answer; what is asked and answered otherwise than published is an error."""
        method, server = request.method, self._document["servers"][0]["url"]
        tried = [
            (name, match, operation)
            for name, (pattern, operation) in self._operations.items()
            if (match := re.fullmatch(pattern, f"{method} {path}"))
        ]
        if not tried:
            return httpx2.Response(404, json={"message": "Not Found"})
        ((name, match, told),) = tried
        args, known = dict(request.url.params), set(self._parameters(told))
        asked = MockRequest(server, method.lower(), path, args=args, data=request.content or None)
        if fake.judged:
            self._judge.validate_request(asked)
            assert args.keys() <= known, (name, args)
        what = args if method == "GET" else json.loads(request.content)
        code, values = getattr(fake, name)(*map(unquote, match.groups()), what)
        if code >= 400:
            refused = [one for one in told["responses"] if one >= "4"]
            assert not refused or str(code) in refused, (name, code)
            return httpx2.Response(code, json={"message": values})
        headers = dict(fake.headers)
        if isinstance(values, list) and "page" in known:
            size = min(int(args.get("per_page", 20)), fake.page_size)
            page = int(args.get("page", 1))
            if len(values) > page * size:
                following = request.url.copy_set_param("page", page + 1)
                headers["link"] = f'<{request.url}>; rel="first", <{following}>; rel="next"'
            values = values[(page - 1) * size : page * size]
        schema = told["responses"][str(code)]["content"]["application/json"]["schema"]
        found = self._over(schema, values)
        text = json.dumps(found)
        headers["etag"] = f'"{hash(text)}"'
        if request.headers.get("if-none-match") == headers["etag"]:
            return httpx2.Response(304, headers=headers)
        if fake.judged:
            self._judge.validate_response(asked, MockResponse(text.encode(), status_code=code))
        return httpx2.Response(code, headers=headers, json=found)

    def _parameters(self, operation: Any) -> Iterator[str]:
        for one in operation.get("parameters", ()):
            yield self._resolved(one)["name"]

    def _resolved(self, part: Any) -> Any:
        if reference := part.get("$ref"):
            part = self._document
            for name in reference.removeprefix("#/").split("/"):
                part = part[name]
        return part

    def _over(self, schema: Any, values: Any) -> Any:
        """Return the values on top of the least answer: what is not promised is not in it."""
        if isinstance(values, list):
            least = self.minimal(self._resolved(schema)["items"])
            return [_merged(least, one) for one in values]
        return _merged(self.minimal(schema), values)

    def minimal(self, schema: dict[str, Any]) -> Any:
        """Return the least value that fits a schema."""
        schema = self._resolved(schema)
        if schema.get("nullable") and "oneOf" not in schema:
            return None
        for several in ("oneOf", "anyOf"):
            if several in schema:
                return self.minimal(schema[several][0])
        if "allOf" in schema:
            made: dict[str, Any] = {}
            for one in schema["allOf"]:
                made |= self.minimal(one)
            return made
        if "enum" in schema:
            return schema["enum"][0]
        if schema.get("type") == "object" or "properties" in schema:
            known = schema.get("properties", {})
            return {name: self.minimal(known[name]) for name in schema.get("required", ())}
        texts = {"date-time": "2026-01-01T00:00:00Z", "uri": "https://example.org/"}
        plain = {"array": [], "integer": 1, "number": 1, "boolean": False}
        kind = schema.get("type", "string")
        return plain.get(kind, texts.get(schema.get("format", ""), "x"))

    def part(self, name: str, /, **values: Any) -> Any:
        """Return the least value of a part of the description, with these values."""
        return _merged(self.minimal({"$ref": f"#/components/schemas/{name}"}), values)


def _merged(base: Any, values: Any) -> Any:
    if isinstance(base, dict) and isinstance(values, dict):
        return {**base, **{key: _merged(base.get(key), one) for key, one in values.items()}}
    return values


@cache
def github() -> Api:
    document = json.loads((HERE / "github.json").read_text())
    return Api(document, owner="acme", repo="demo", org="acme", team_slug="core")


@cache
def gitlab() -> Api:
    facts = yaml.safe_load((HERE / "gitlab.yaml").read_text())
    return Api(_document(facts), project="acme%2Ftools%2Fdemo")


def _document(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts as a document of OpenAPI."""
    shapes = facts["shapes"]

    def typed(text: str) -> dict[str, Any]:
        text = text.removeprefix(_OPTIONAL)
        if text.endswith("~"):
            return {**typed(text[:-1]), "nullable": True}
        if text.endswith("*"):
            return {"type": "array", "items": typed(text[:-1])}
        if "/" in text:
            return {"anyOf": [typed(one) for one in text.split("/")]}
        if "|" in text:
            return {"type": "string", "enum": text.split("|")}
        if text in shapes:
            return shaped(shapes[text])
        return {"type": "string", "format": "date-time"} if text == "time" else {"type": text}

    def shaped(fields: Mapping[str, str]) -> dict[str, Any]:
        fields = {**shapes.get(fields.get("is"), {}), **fields}
        fields.pop("is", None)
        schema = {"type": "object", "additionalProperties": False}
        schema["properties"] = {name: typed(kind) for name, kind in fields.items()}
        firm = [name for name, kind in fields.items() if not kind.startswith(_OPTIONAL)]
        return {**schema, "required": firm} if firm else schema

    paths: dict[str, dict[str, Any]] = {}
    for key, facts_of in facts["operations"].items():
        method, path = key.split(" ")
        operation: dict[str, Any] = {"responses": {}, "parameters": []}
        operation["operationId"] = facts_of["called"]
        for code in facts_of.get("refused", [400, 404]):
            operation["responses"][str(code)] = {"description": ""}
        for code in {200, 201} & facts_of.keys():
            content = {"application/json": {"schema": typed(facts_of[code])}}
            operation["responses"][str(code)] = {"description": "", "content": content}
        for name in re.findall(r"\{(\w+)\}", path):
            kind = "integer" if name in ("iid", "user") else "string"
            place = {"in": "path", "required": True, "schema": {"type": kind}}
            operation["parameters"].append({"name": name, **place})
        for name, kind in facts_of.get("query", {}).items():
            operation["parameters"].append({"name": name, "in": "query", "schema": typed(kind)})
        if body := facts_of.get("body"):
            content = {"application/json": {"schema": shaped(body)}}
            operation["requestBody"] = {"required": True, "content": content}
        paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.0.3",
        "info": {"title": "GitLab", "version": facts["version"]},
        "servers": [{"url": "https://gitlab.example.org"}],
        "paths": paths,
    }
