"""Runs the server in a thread: a run's polls, judge and signals never wait for it, and stopping it takes bounded
time."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from soakwatch.lab.lab_model import User
from soakwatch.plan.web import WebPlan
from soakwatch.web.access import Token, open_listener, tls_context
from soakwatch.web.app import Answers
from soakwatch.web.auth import Authenticator, UsedCodes
from soakwatch.web.connections import MAX_HEAD_BYTES, Connection, Loop
from soakwatch.web.endpoint import ServedRuns
from soakwatch.web.hosts import names_of
from soakwatch.web.listener import url_of
from soakwatch.web.named_tokens import NamedTokens
from soakwatch.web.routes import endpoints
from soakwatch.web.trusted_proxy import TrustedProxy

_START_S, _END_S = 10.0, 5.0
_THREADS = 4


class Served:
    """A running server at ``url``. Close it, or use ``with``."""

    def __init__(self, server: uvicorn.Server, thread: threading.Thread, pool: ThreadPoolExecutor, url: str) -> None:
        self.url = url
        self._server, self._thread, self._pool = server, thread, pool

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether it still serves."""
        return self._thread.is_alive()

    @property
    def answers(self) -> int:
        """Number of requests answered."""
        return self._server.server_state.total_requests

    @property
    def busy(self) -> bool:
        """Whether it is answering a request."""
        return bool(self._server.server_state.tasks)

    @property
    def connected(self) -> bool:
        """Whether anybody is connected."""
        return bool(self._server.server_state.connections)

    def close(self) -> None:
        """Stop the server: pending requests are answered within a second or two."""
        self._server.should_exit = True
        self._thread.join(_END_S)
        if self._thread.is_alive():
            self._server.force_exit = True
            self._thread.join(_END_S)
        self._pool.shutdown(wait=False, cancel_futures=True)


def serve(
    plan: WebPlan,
    token: Token,
    runs: ServedRuns,
    listener: socket.socket | None = None,
    *,
    people: NamedTokens | None = None,
    proxy: TrustedProxy | None = None,
    used: UsedCodes | None = None,
) -> Served:
    """Start serving runs, on ``listener`` if given, also to ``people`` with tokens of their own, and to those whom a
    trusted ``proxy`` has logged in. One-time codes in ``used`` log nobody in. Raises as ``open_listener`` does."""
    context = tls_context(plan)
    listener = listener or open_listener(plan)
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="web")
    auth = Authenticator(token, listener.getsockname()[1], people, proxy, used)
    names = names_of(listener, plan.names, plan.cert)
    server = uvicorn.Server(_config(Answers(runs, auth, pool).application(endpoints(), names), context))
    # Keep what strangers send off the run's terminal, and lines that could contain a token.
    for name in ("uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    thread = threading.Thread(target=_run, args=(server, listener), name="web", daemon=True)
    served = Served(server, thread, pool, url_of(listener, tls=context is not None))
    thread.start()
    return served


class OneRun:
    """A running run, under the name of its folder, ``last`` and ``current``."""

    def __init__(self, folder: Path, now_ns: Callable[[], int]) -> None:
        self._folder, self._now_ns = folder.absolute(), now_ns

    def folder(self, name: str) -> Path | None:
        """The folder of the run; None for another name."""
        return self._folder if name in {self._folder.name, "last", "current"} else None

    def listed(self) -> list[Mapping[str, object]]:
        """The summary of this run."""
        from soakwatch.runs.catalog import run_line
        from soakwatch.web.json_record import line_data

        return [line_data(run_line(self._folder))]

    def now_ns(self) -> int:
        """The run's clock."""
        return self._now_ns()

    def audit(self, user: User, action: str, run: str) -> None:
        """Nothing: the run's own record has what is done to it."""

    @property
    def single(self) -> bool:
        """Always true: there is only this run."""
        return True


def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    try:
        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(server.serve(sockets=[listener]))
    except (Exception, SystemExit):  # noqa: BLE001 - the run goes on without the server
        logging.getLogger(__name__).warning("the web server ended early; the run goes on without it")
    finally:
        listener.close()


def _config(app: ASGIApp, context: ssl.SSLContext | None) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )
    config.load()
    config.ssl = context
    return config
