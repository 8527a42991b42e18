"""The OpenAPI text of everything under /api, made from the endpoints themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version

from starlette.responses import JSONResponse, Response

from soakwatch.web.endpoint import JSON, Endpoint, May, Question

_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_KINDS = {"text": "string", "whole": "integer", "number": "number"}
_SECURITY: dict[May, list[dict[str, list[str]]]] = {
    May.NOTHING: [], May.VIEW: [{"token": []}, {"cookie": []}], May.ACT: [{"token": []}, {"cookie": []}],
}  # fmt: skip


def document(endpoints: Iterable[Endpoint]) -> dict[str, object]:
    """OpenAPI 3.1 of the endpoints that are not pages."""
    paths: dict[str, dict[str, object]] = {}
    for one in endpoints:
        if one.path.startswith("/api/") or one.path == "/metrics":
            paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Soakwatch", "version": version("soakwatch"),
            "description": "What runs say of themselves. The token is in web.token; every error is one sentence.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "soakwatch-PORT"},
            },
        },
    }  # fmt: skip


def _operation(one: Endpoint) -> dict[str, object]:
    parameters: list[dict[str, object]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)(?::\w+)?\}", one.path)
    ]
    for param in one.params:
        kind: dict[str, object] = {"type": _KINDS[param.kind]}
        schema = {"type": "array", "items": kind} if param.many else kind
        parameters.append({"name": param.name, "in": "query", "required": param.required, "description": param.says,
                           "schema": schema})  # fmt: skip
    content = {one.media: {"schema": one.gives or {}}}
    error = {"description": "one sentence", "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}}
    made: dict[str, object] = {
        "summary": one.says,
        "operationId": re.sub(r"\W+", "_", f"{one.method.lower()} {one.path}").strip("_"),
        "parameters": parameters,
        "responses": {str(one.status): {"description": one.says, "content": content}, "default": error},
        "security": _SECURITY[one.may],
    }
    if one.sends is not None:
        made["requestBody"] = {"required": True, "content": {JSON: {"schema": one.sends}}}
    return made


def _openapi(_: Question) -> Response:
    from soakwatch.web.routes import endpoints

    return JSONResponse(document(endpoints()))


ENDPOINTS = (
    Endpoint("GET", "/api/openapi.json", May.VIEW, "This document.", _openapi, gives={"type": "object"}),
)  # fmt: skip
