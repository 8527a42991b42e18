"""The OpenAPI text of everything under /api, made from the endpoints themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version

from starlette.responses import JSONResponse, Response

from soakwatch.web.endpoint import JSON, Endpoint, May, Question, Schema

_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_KINDS = {"text": "string", "whole": "integer", "number": "number"}
_SECURITY: dict[May, list[dict[str, list[str]]]] = {
    May.NOTHING: [],
    May.VIEW: [{"token": []}, {"cookie": []}],
    May.ACT: [{"token": []}, {"cookie": []}],
}

_IN_PATHS = {"run": "the name of a run's folder, or last"}
_REFUSALS = {
    "400": "What was sent makes no sense.",
    "401": "No token, or a wrong one.",
    "403": "Who is here by the link for looking cannot act.",
    "404": "There is no such thing here.",
    "408": "The body did not come.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "default": "It cannot be done; one sentence says why.",
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, object]:
    """OpenAPI 3.1 of the endpoints that are not pages."""
    paths: dict[str, dict[str, object]] = {}
    schemas: dict[str, object] = {"Error": _ERROR}
    for one in endpoints:
        if one.path.startswith("/api/") or one.path == "/metrics":
            paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Soakwatch",
            "version": version("soakwatch"),
            "description": "What runs say of themselves. The token is in web.token; every error is one sentence.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "soakwatch-PORT"},
            },
        },
    }


def _operation(one: Endpoint, schemas: dict[str, object]) -> dict[str, object]:
    parameters: list[dict[str, object]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _IN_PATHS.get(name, ""),
            "schema": {"type": "string"},
        }
        for name in re.findall(r"\{(\w+)\}", one.path)
    ]
    for param in one.params:
        kind: dict[str, object] = {"type": _KINDS[param.kind]}
        schema = {"type": "array", "items": kind} if param.many else kind
        parameters.append(
            {"name": param.name, "in": "query", "required": param.required, "description": param.says, "schema": schema}
        )
    content = {one.media.partition(";")[0]: {"schema": _lifted(one.gives or {}, schemas)}}
    made: dict[str, object] = {
        "summary": one.says.partition(". ")[0].rstrip("."),
        "description": one.says,
        "operationId": re.sub(r"\W+", "_", f"{one.method.lower()} {one.path}").strip("_"),
        "parameters": parameters,
        "responses": {str(one.status): {"description": one.says, "content": content}, **_errors(one)},
        "security": _SECURITY[one.may],
    }
    if one.sends is not None:
        made["requestBody"] = {"required": True, "content": {JSON: {"schema": one.sends}}}
    return made


def _errors(one: Endpoint) -> dict[str, object]:
    """How it may be refused; each refusal is one sentence."""
    statuses = {"default"}
    if one.may is not May.NOTHING:
        statuses.add("401")
    if one.may is May.ACT:
        statuses.add("403")
    if "{run}" in one.path:
        statuses.add("404")
    if one.params or one.sends is not None:
        statuses.add("400")
    if one.method == "POST":
        statuses |= {"408", "413", "415"}
    return {
        status: {
            "description": _REFUSALS[status],
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status in sorted(statuses)
    }


def _lifted(schema: Schema, schemas: dict[str, object]) -> object:
    """A schema that is published by itself, with its parts, as a component of the document."""
    defined = schema.get("$defs")
    if not isinstance(defined, dict):
        return schema
    name = re.sub(r"\W+", "", str(schema.get("title", "schema")).title())
    whole = {key: value for key, value in schema.items() if key not in {"$defs", "$id", "$schema"}}
    for part, what in {**defined, "": whole}.items():
        schemas[f"{name}.{part}".rstrip(".")] = _referring(what, f"#/components/schemas/{name}.")
    return {"$ref": f"#/components/schemas/{name}"}


def _referring(what: object, prefix: str) -> object:
    if isinstance(what, dict):
        return {
            key: prefix + value.rpartition("/")[2] if key == "$ref" else _referring(value, prefix)
            for key, value in what.items()
        }
    return [_referring(one, prefix) for one in what] if isinstance(what, list) else what


def _openapi(_: Question) -> Response:
    from soakwatch.web.routes import endpoints

    return JSONResponse(document(endpoints()))


ENDPOINTS = (Endpoint("GET", "/api/openapi.json", May.VIEW, "This document.", _openapi, gives={"type": "object"}),)
