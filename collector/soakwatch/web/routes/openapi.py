"""The OpenAPI document, generated from the endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version

from starlette.responses import JSONResponse, Response

from soakwatch.web.endpoint import JSON, Endpoint, EndpointRequest, May, Schema

_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_KINDS = {"text": "string", "whole": "integer", "number": "number"}
_SECURITY: dict[May, list[dict[str, list[str]]]] = {
    May.NOTHING: [],
    May.VIEW: [{"token": []}, {"cookie": []}],
    May.ACT: [{"token": []}, {"cookie": []}],
    May.ADMIN: [{"token": []}, {"cookie": []}],
}

_IN_PATHS = {
    "run": "the name of a run's folder, or last",
    "campaign": "the name of a campaign's folder",
    "job": "the number of a job",
    "schedule": "the number of a schedule, such as s3",
}
_REFUSALS = {
    "400": "The request is invalid.",
    "401": "The token is missing or wrong.",
    "403": "The role of the token does not allow this action.",
    "404": "Not found.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "default": "The request failed; error states why.",
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, object]:
    """OpenAPI 3.1 of the endpoints that are not pages."""
    paths: dict[str, dict[str, object]] = {}
    schemas: dict[str, object] = {"Error": _ERROR}
    for endpoint in endpoints:
        if endpoint.path.startswith("/api/") or endpoint.path == "/metrics":
            paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Soakwatch",
            "version": version("soakwatch"),
            "description": "State, findings and series of runs. The token is in web.token; errors are one sentence.",
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


def _operation(endpoint: Endpoint, schemas: dict[str, object]) -> dict[str, object]:
    parameters: list[dict[str, object]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _IN_PATHS.get(name, ""),
            "schema": {"type": "string"},
        }
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]
    for param in endpoint.params:
        kind: dict[str, object] = {"type": _KINDS[param.kind]}
        schema = {"type": "array", "items": kind} if param.many else kind
        parameters.append(
            {"name": param.name, "in": "query", "required": param.required, "description": param.says, "schema": schema}
        )
    content = {endpoint.media.partition(";")[0]: {"schema": _lifted(endpoint.gives or {}, schemas)}}
    operation: dict[str, object] = {
        "summary": endpoint.says.partition(". ")[0].rstrip("."),
        "description": endpoint.says,
        "operationId": re.sub(r"\W+", "_", f"{endpoint.method.lower()} {endpoint.path}").strip("_"),
        "parameters": parameters,
        "responses": {str(endpoint.status): {"description": endpoint.says, "content": content}, **_errors(endpoint)},
        "security": _SECURITY[endpoint.may],
    }
    if endpoint.sends is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": endpoint.sends}}}
    return operation


def _errors(endpoint: Endpoint) -> dict[str, object]:
    """The error responses of an endpoint."""
    statuses = {"default"}
    if endpoint.may is not May.NOTHING:
        statuses.add("401")
    if endpoint.may >= May.ACT:
        statuses.add("403")
    if "{" in endpoint.path or endpoint.path.startswith("/api/lab"):
        statuses.add("404")
    if endpoint.params or endpoint.sends is not None:
        statuses.add("400")
    if endpoint.method == "POST":
        statuses |= {"408", "413", "415"}
    return {
        status: {
            "description": _REFUSALS[status],
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status in sorted(statuses)
    }


def _lifted(schema: Schema, schemas: dict[str, object]) -> object:
    """Move a schema with ``$defs`` into the document's components; others stay inline."""
    defined = schema.get("$defs")
    if not isinstance(defined, dict):
        return schema
    name = re.sub(r"\W+", "", str(schema.get("title", "schema")).title())
    whole = {key: value for key, value in schema.items() if key not in {"$defs", "$id", "$schema"}}
    for part, what in {**defined, "": whole}.items():
        schemas[f"{name}.{part}".rstrip(".")] = _referring(what, f"#/components/schemas/{name}.")
    return {"$ref": f"#/components/schemas/{name}"}


def _referring(schema: object, prefix: str) -> object:
    if isinstance(schema, dict):
        return {
            key: prefix + value.rpartition("/")[2] if key == "$ref" else _referring(value, prefix)
            for key, value in schema.items()
        }
    return [_referring(item, prefix) for item in schema] if isinstance(schema, list) else schema


def _openapi(_: EndpointRequest) -> Response:
    from soakwatch.web.routes import endpoints

    return JSONResponse(document(endpoints()))


ENDPOINTS = (Endpoint("GET", "/api/openapi.json", May.VIEW, "This document.", _openapi, gives={"type": "object"}),)
