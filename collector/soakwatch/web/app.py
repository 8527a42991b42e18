"""The HTTP side of the server: authentication, limits, routing; every error is one sentence."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from soakwatch.core.errors import SoakwatchError
from soakwatch.lab.lab_model import ConflictError, LabError, NotAllowedError, StoreError, UnknownError
from soakwatch.record import RecordFullError
from soakwatch.runs.mark_event import EventConflictError, EventRefusedError
from soakwatch.web.auth import GUARDS, HOLDER, LOGIN_PAGE, ROLES, VIEWER, Authenticator, Client
from soakwatch.web.endpoint import JSON, PROVED, Endpoint, EndpointRequest, May, ServedRuns
from soakwatch.web.hosts import Guarded, Names

MAX_BODY_BYTES = 64 * 1024
"""Maximum bytes of a request body."""
_BODY_S = 10.0
_GUARDS: Mapping[str, str] = {**GUARDS, "cache-control": "no-store"}
_NO_TOKEN = "send the header 'Authorization: Bearer TOKEN' with the token of this server"  # noqa: S105 - its name


class Answers:
    """Answers requests about some runs from authorised clients.

    Records are read and written in threads of ``pool``, so a slow disk does not block the event loop.
    """

    def __init__(self, runs: ServedRuns, auth: Authenticator, pool: Executor) -> None:
        self._runs, self._auth, self._pool = runs, auth, pool

    def application(self, endpoints: Iterable[Endpoint], names: Names) -> ASGIApp:
        """The ASGI application of these endpoints, for a server with these names."""
        by_path: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        routes = [
            Route("/enter/{code}", self._enter_once, methods=["GET"]),
            Route("/enter", self._enter, methods=["POST"]),
            Route("/view/{word}", self._enter_to_view, methods=["GET"]),
        ]
        for path, methods in by_path.items():
            routes.append(Route(path, functools.partial(self._answer, methods), methods=[*methods]))
        app = Starlette(
            routes=routes,
            exception_handlers={HTTPException: _refused, SoakwatchError: _refused, Exception: _refused},
        )
        app.router.redirect_slashes = False  # a path that does not exist is not found, whatever it ends in
        return Guarded(app, names, _GUARDS)

    async def _answer(self, methods: Mapping[str, Endpoint], request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        client = await self._client(request)
        if client.may < endpoint.may:
            await _drain(request)
            return _forbidden(request, client, endpoint.may)
        body = b""
        if request.method == "POST":
            body = await _body(request, JSON)
        else:
            await _drain(request)  # of a GET or DELETE that has one
        run = await self._folder(request) if "run" in request.path_params else None
        known = {param.name for param in endpoint.params}
        words = {name: tuple(request.query_params.getlist(name)) for name in request.query_params if name in known}
        for param in endpoint.params:
            if param.required and not words.get(param.name, ("",))[0]:
                raise HTTPException(400, f"{param.name} is missing: {param.says}")
        path = {name: str(value) for name, value in request.path_params.items()}
        checked = EndpointRequest(
            self._runs,
            client.may,
            client.user,
            run,
            path,
            words,
            body,
            request.headers.get("if-none-match", ""),
            request.url.scheme == "https",
        )
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._answered, endpoint, checked)

    def _answered(self, endpoint: Endpoint, request: EndpointRequest) -> Response:
        response = endpoint.answer(request)
        if endpoint.audited and response.status_code < 400 and request.run is not None:
            self._runs.audit(request.user, endpoint.audited, request.run.name)
        return response

    async def _client(self, request: Request) -> Client:
        address = request.client.host if request.client else ""
        client = self._auth.client(request.headers, request.cookies, address)
        proved: object = request.scope.get("state", {}).get(PROVED)
        if client.may > May.NOTHING and callable(proved):
            proved()
        if _is_cross_site(request, any_scheme=client.by_proxy):
            return replace(client, may=min(client.may, May.VIEW))
        return client

    async def _enter_once(self, request: Request) -> Response:
        if request.method == "HEAD":  # a link preview must not use up the code
            return Response(status_code=204)
        if self._auth.enter(str(request.path_params["code"])):
            return self._auth.let_in(HOLDER, secure=request.url.scheme == "https")
        if (await self._client(request)).may >= May.ACT:  # already logged in
            return RedirectResponse("/", 303)
        return _login_page("This link was used already or has expired.", 401)

    async def _enter(self, request: Request) -> Response:
        if _is_cross_site(request):
            raise HTTPException(403, "logging in from another site's page is not allowed")
        fields = parse_qs((await _body(request, "application/x-www-form-urlencoded")).decode("ascii", "replace"))
        token = fields.get("token", [""])[0].strip()
        client = self._auth.bearer(f"Bearer {token}")
        if client.may > May.NOTHING:
            return self._auth.let_in(client, secure=request.url.scheme == "https")
        return _login_page("Wrong token.", 401)

    async def _enter_to_view(self, request: Request) -> Response:
        if self._auth.is_view_word(str(request.path_params["word"])):
            return self._auth.let_in(VIEWER, secure=request.url.scheme == "https")
        return _login_page("This link does not belong to this server.", 401)

    async def _folder(self, request: Request) -> Path:
        name = str(request.path_params["run"])
        folder = await asyncio.get_running_loop().run_in_executor(self._pool, self._runs.folder, name)
        if folder is None:
            shown = name if len(name) <= 100 and name.isprintable() else "this"
            raise HTTPException(404, f"no run {shown} on this server; GET /api/runs lists them")
        return folder


def _is_cross_site(request: Request, *, any_scheme: bool = False) -> bool:
    """Whether a page of another site made the browser send this request.

    ``any_scheme``: behind a proxy the page may be HTTPS though this server is not.
    """
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    schemes = ("http", "https") if any_scheme else (request.url.scheme,)
    return origin is not None and origin not in {f"{scheme}://{host}" for scheme in schemes}


def _for_people(request: Request) -> bool:
    return not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")


def _forbidden(request: Request, client: Client, needed: May) -> Response:
    if client.may == May.VIEW and client.user in {HOLDER.user, VIEWER.user}:
        return _error(403, "view-only access: this action needs the token")
    if client.may >= May.VIEW:
        role = next(name for name, may in ROLES.items() if may == needed)
        return _error(403, f"{client.user.name} has the role {client.user.role}: this action needs the role {role}")
    if _for_people(request):
        return _login_page("", 401)
    return _error(401, _NO_TOKEN, {"www-authenticate": "Bearer"})


def _login_page(sentence: str, status: int) -> Response:
    return HTMLResponse(LOGIN_PAGE.replace("{sentence}", sentence), status)


async def _body(request: Request, kind: str) -> bytes:
    """The body. Raises HTTPException as soon as it is too large or late."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        await _drain(request)
        raise HTTPException(415, f"send the body as {kind}")
    return await _read(request)


async def _drain(request: Request) -> None:
    """Read and discard a body: otherwise a client that is still sending might lose the response."""
    with suppress(HTTPException, ClientDisconnect):
        await _read(request)


async def _read(request: Request) -> bytes:
    declared = request.headers.get("content-length", "0")
    too_large = HTTPException(413, f"the body is too large: {MAX_BODY_BYTES // 1024} KiB at most")
    if not (declared.isascii() and declared.isdecimal() and len(declared) < 19) or int(declared) > MAX_BODY_BYTES:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(_BODY_S):
            async for part in request.stream():
                size += len(part)
                if size > MAX_BODY_BYTES:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {_BODY_S:g} s") from None
    return b"".join(parts)


async def _refused(request: Request, error: Exception) -> Response:
    """Turn any error into one sentence. An unforeseen exception may contain anything: only its type is shown."""
    if isinstance(error, HTTPException):
        if error.detail in _PHRASES:  # from the router: no endpoint was called, and the body is unread
            await _drain(request)
        methods = (error.headers or {}).get("Allow", "").split(", ")
        allowed = ", ".join(sorted(method for method in methods if method != "HEAD"))
        words = {
            404: "not found: GET /api/openapi.json lists the endpoints",
            405: f"method not allowed; allowed here: {allowed}",
        }
        sentence = error.detail if error.detail not in _PHRASES else words.get(error.status_code, error.detail)
        return _error(error.status_code, sentence, error.headers)
    if isinstance(error, EventConflictError):
        return _error(409, str(error))
    if isinstance(error, EventRefusedError):
        return _error(400, str(error))
    if isinstance(error, RecordFullError):
        return _error(507, str(error))
    if isinstance(error, LabError):
        kinds = ((UnknownError, 404), (ConflictError, 409), (NotAllowedError, 403), (StoreError, 507))
        return _error(next((status for kind, status in kinds if isinstance(error, kind)), 400), str(error))
    if isinstance(error, SoakwatchError):
        return _error(503, str(error))
    if not isinstance(error, ClientDisconnect):
        logging.getLogger(__name__).warning("internal error of the web server: %s", type(error).__name__)
    return _error(500, f"internal error: {type(error).__name__}")


_PHRASES = frozenset({"Not Found", "Method Not Allowed"})


def _error(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    # The body of a rejected request may be unread, so the connection cannot be reused.
    return JSONResponse({"error": sentence}, status, {**(headers or {}), "connection": "close"})
