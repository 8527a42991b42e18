"""The server's side of HTTP: who asks, how much, what for; every error is one sentence."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from soakwatch.core.errors import SoakwatchError
from soakwatch.record import RecordFullError
from soakwatch.runs.mark_event import EventConflictError, EventRefusedError
from soakwatch.web.door import Authenticator
from soakwatch.web.endpoint import JSON, Endpoint, May, Question, Shown
from soakwatch.web.entrance import ENTRANCE, GUARDS

LARGEST = 64 * 1024
"""Bytes of a body that are read at most."""
_BODY_S = 10.0
_GUARDS: Mapping[str, str] = {**GUARDS, "cache-control": "no-store"}
_NO_TOKEN = "send the header 'Authorization: Bearer TOKEN' with the token of this server"  # noqa: S105 - its name


class Answers:
    """What a server says for some runs, to those whom the door lets in.

    Records are read and written in threads of ``pool``: however long a disk takes, the loop goes on.
    """

    def __init__(self, runs: Shown, door: Authenticator, pool: Executor) -> None:
        self._runs, self._door, self._pool = runs, door, pool

    def application(self, endpoints: Iterable[Endpoint]) -> Starlette:
        """What a server runs."""
        by_path: dict[str, dict[str, Endpoint]] = {}
        for one in endpoints:
            by_path.setdefault(one.path, {})[one.method] = one
        routes = [
            Route("/enter/{code}", self._enter_once, methods=["GET"]),
            Route("/enter", self._enter, methods=["POST"]),
            Route("/view/{word}", self._look, methods=["GET"]),
        ]
        for path, methods in by_path.items():
            routes.append(Route(path, functools.partial(self._answer, methods), methods=[*methods]))
        return Starlette(
            routes=routes,
            exception_handlers={HTTPException: _refused, SoakwatchError: _refused, Exception: _refused},
        )

    async def _answer(self, methods: Mapping[str, Endpoint], request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        may = self._may(request)
        if may < endpoint.may:
            await _drain(request)
            return _closed(request, may)
        body = await _body(request, JSON) if request.method == "POST" else b""
        run = await self._folder(request) if "run" in request.path_params else None
        known = {param.name for param in endpoint.params}
        words = {name: tuple(request.query_params.getlist(name)) for name in request.query_params if name in known}
        for param in endpoint.params:
            if param.required and not words.get(param.name, ("",))[0]:
                raise HTTPException(400, f"{param.name} is missing: {param.says}")
        path = {name: str(value) for name, value in request.path_params.items()}
        question = Question(
            self._runs,
            may,
            run,
            path,
            words,
            body,
            request.headers.get("if-none-match", ""),
            request.url.scheme == "https",
        )
        answer = await asyncio.get_running_loop().run_in_executor(self._pool, endpoint.answer, question)
        for name, value in _GUARDS.items():
            answer.headers.setdefault(name, value)
        return answer

    def _may(self, request: Request) -> May:
        may = self._door.may(request.headers.get("authorization", ""), request.cookies)
        return min(may, May.VIEW) if _foreign(request) else may

    async def _enter_once(self, request: Request) -> Response:
        if request.method == "HEAD":  # what looks at links before people do uses none up
            return Response(status_code=204, headers=_GUARDS)
        if self._door.enter(str(request.path_params["code"])):
            return self._door.let_in(May.ACT, secure=request.url.scheme == "https")
        if self._may(request) >= May.ACT:  # the link of somebody who is in already
            return RedirectResponse("/", 303)
        return _entrance("This link has been used, or is too old.", 401)

    async def _enter(self, request: Request) -> Response:
        if _foreign(request):
            raise HTTPException(403, "another site's page cannot enter here")
        fields = parse_qs((await _body(request, "application/x-www-form-urlencoded")).decode("ascii", "replace"))
        token = fields.get("token", [""])[0].strip()
        if self._door.may(f"Bearer {token}", {}) >= May.ACT:
            return self._door.let_in(May.ACT, secure=request.url.scheme == "https")
        return _entrance("That is not the token of this server.", 401)

    async def _look(self, request: Request) -> Response:
        if self._door.looks(str(request.path_params["word"])):
            return self._door.let_in(May.VIEW, secure=request.url.scheme == "https")
        return _entrance("This link is not of this server.", 401)

    async def _folder(self, request: Request) -> Path:
        name = str(request.path_params["run"])
        folder = await asyncio.get_running_loop().run_in_executor(self._pool, self._runs.folder, name)
        if folder is None:
            shown = name if len(name) <= 100 and name.isprintable() else "this"
            raise HTTPException(404, f"{shown} is no run here: GET /api/runs lists them")
        return folder


def _foreign(request: Request) -> bool:
    """Whether a page of another site makes the browser ask: what it asks for is not what the person wants."""
    origin = request.headers.get("origin")
    return origin is not None and origin != f"{request.url.scheme}://{request.headers.get('host', '')}"


def _for_people(request: Request) -> bool:
    return not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")


def _closed(request: Request, may: May) -> Response:
    if may >= May.VIEW:
        return _error(403, "this is a link for looking only: acting needs the token")
    if _for_people(request):
        return _entrance("", 401)
    return _error(401, _NO_TOKEN, {"www-authenticate": "Bearer"})


def _entrance(sentence: str, status: int) -> Response:
    return HTMLResponse(ENTRANCE.replace("{sentence}", sentence), status, _GUARDS)


async def _body(request: Request, kind: str) -> bytes:
    """The body, or a refusal as soon as it is clear that it is too large or does not come."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        await _drain(request)
        raise HTTPException(415, f"send it as {kind}")
    return await _read(request)


async def _drain(request: Request) -> None:
    """Read a body that nobody wants: whoever still sends would lose the refusal with the connection."""
    with suppress(HTTPException, ClientDisconnect):
        await _read(request)


async def _read(request: Request) -> bytes:
    told = request.headers.get("content-length", "0")
    too_large = HTTPException(413, f"a body has {LARGEST // 1024} KiB at most")
    if not (told.isascii() and told.isdecimal() and len(told) < 19) or int(told) > LARGEST:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(_BODY_S):
            async for part in request.stream():
                size += len(part)
                if size > LARGEST:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise HTTPException(408, f"the body did not come within {_BODY_S:g} s") from None
    return b"".join(parts)


async def _refused(request: Request, error: Exception) -> Response:
    """Whatever went wrong as one sentence. What nobody foresaw may hold anything: only its kind is told."""
    if isinstance(error, HTTPException):
        if error.detail in _PHRASES:  # nobody was asked yet, and nothing read
            await _drain(request)
        words = {404: "nothing is here: GET /api/openapi.json tells what there is", 405: "this is not done here"}
        own = error.detail if error.detail not in _PHRASES else words.get(error.status_code, error.detail)
        return _error(error.status_code, own, error.headers)
    if isinstance(error, EventConflictError):
        return _error(409, str(error))
    if isinstance(error, EventRefusedError):
        return _error(400, str(error))
    if isinstance(error, RecordFullError):
        return _error(507, str(error))
    if isinstance(error, SoakwatchError):
        return _error(503, str(error))
    if not isinstance(error, ClientDisconnect):
        logging.getLogger(__name__).warning("the web server met a defect: %s", type(error).__name__)
    return _error(500, f"internal error: {type(error).__name__}")


_PHRASES = frozenset({"Not Found", "Method Not Allowed"})


def _error(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    # What is refused is not read to its end: the connection is of no further use.
    return JSONResponse({"error": sentence}, status, {**_GUARDS, **(headers or {}), "connection": "close"})
