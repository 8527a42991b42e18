"""The event API: what is asked over HTTP, and what is answered. Every answer is JSON, every error one sentence."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from soakwatch.errors import SoakwatchError
from soakwatch.marking import MarkConflict, MarkRefused, moment_text, tell
from soakwatch.record import RecordFull
from soakwatch.web.access import Token
from soakwatch.web.reading import events_data, findings_data
from soakwatch.web.wire import ask_of, event_data

LARGEST = 64 * 1024
"""Bytes of a body that are read at most."""
_BODY_S = 10.0
_JSON = "application/json"
_MOST_EVENTS = 1000

P = ParamSpec("P")
T = TypeVar("T")
Ask = Callable[[Request], Awaitable[Response]]


class Shown(Protocol):
    """The runs that a server tells of."""

    def folder(self, name: str) -> Path | None:
        """The folder of a run by its name, or by ``last``; None for a run that is not shown."""
        ...

    def listed(self) -> list[Mapping[str, object]]:
        """Every run: its name and how it stands, oldest first."""
        ...

    def now_ns(self) -> int:
        """The clock by which events are kept, UTC ns."""
        ...


class Api:
    """The answers for some runs, to those who hold the token.

    Records are read and written in threads of ``pool``: however long a disk takes, the loop goes on.
    """

    def __init__(self, runs: Shown, token: Token, pool: Executor) -> None:
        self._runs, self._token, self._pool = runs, token, pool

    def application(self) -> Starlette:
        """What a server runs."""
        routes = [
            Route("/api/health", self._health, methods=["GET"]),
            Route("/api/runs", self._guarded(self._list), methods=["GET"]),
            Route("/api/runs/{run}/events", self._guarded(self._events), methods=["GET", "POST"]),
            Route("/api/runs/{run}/findings", self._guarded(self._findings), methods=["GET"]),
        ]
        return Starlette(
            routes=routes,
            exception_handlers={HTTPException: _refused, SoakwatchError: _refused, Exception: _refused},
        )

    def _guarded(self, answer: Ask) -> Ask:
        @functools.wraps(answer)
        async def guarded(request: Request) -> Response:
            if not self._token.fits(request.headers.get("authorization", "")):
                why = "send the header 'Authorization: Bearer TOKEN' with the token of this server"
                return _error(401, why, {"www-authenticate": "Bearer"})
            return await answer(request)

        return guarded

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _list(self, _: Request) -> Response:
        return JSONResponse({"runs": await self._aside(self._runs.listed)})

    async def _events(self, request: Request) -> Response:
        folder = await self._folder(request)
        if request.method == "POST":
            return await self._tell(request, folder)
        after = request.query_params.get("after", "0")
        if not (after.isascii() and after.isdecimal() and len(after) < 19):
            raise MarkRefused("after is the number of an event: the id of the last one that is known")
        told = await self._aside(events_data, folder, int(after), _MOST_EVENTS)
        return JSONResponse({"run": folder.name, "now": moment_text(self._runs.now_ns()), **told})

    async def _findings(self, request: Request) -> Response:
        folder = await self._folder(request)
        return JSONResponse({"run": folder.name, **await self._aside(findings_data, folder)})

    async def _tell(self, request: Request, folder: Path) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _JSON:
            raise HTTPException(415, f"send the event as {_JSON}")
        ask = ask_of(await _body(request))
        stored = await self._aside(tell, folder, ask, self._runs.now_ns())
        return JSONResponse(event_data(stored), 200 if ask.deed == "end" else 201)

    async def _folder(self, request: Request) -> Path:
        name = str(request.path_params["run"])
        folder = await self._aside(self._runs.folder, name)
        if folder is None:
            shown = name if len(name) <= 100 and name.isprintable() else "this"
            raise HTTPException(404, f"{shown} is no run here: GET /api/runs lists them")
        return folder

    async def _aside(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        work = functools.partial(call, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


async def _body(request: Request) -> bytes:
    """The body, or a refusal as soon as it is clear that it is too large or does not come."""
    told = request.headers.get("content-length", "0")
    too_large = HTTPException(413, f"an event has {LARGEST // 1024} KiB at most")
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


async def _refused(_: Request, error: Exception) -> Response:
    """Whatever went wrong as one sentence. What nobody foresaw may hold anything: only its kind is told."""
    if isinstance(error, HTTPException):
        words = {404: "nothing is here: the API is /api/runs/RUN/events", 405: "this is not done here"}
        own = error.detail if error.detail not in _PHRASES else words.get(error.status_code, error.detail)
        return _error(error.status_code, own, error.headers)
    if isinstance(error, MarkConflict):
        return _error(409, str(error))
    if isinstance(error, MarkRefused):
        return _error(400, str(error))
    if isinstance(error, RecordFull):
        return _error(507, str(error))
    if isinstance(error, SoakwatchError):
        return _error(503, str(error))
    if not isinstance(error, ClientDisconnect):
        logging.getLogger(__name__).warning("the event API met a defect: %s", type(error).__name__)
    return _error(500, f"a defect of Soakwatch: {type(error).__name__}")


_PHRASES = frozenset({"Not Found", "Method Not Allowed"})


def _error(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    # What is refused is not read to its end: the connection is of no further use.
    return JSONResponse({"error": sentence}, status, {**(headers or {}), "connection": "close"})
