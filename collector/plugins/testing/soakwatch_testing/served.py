"""Serves a run from this process, for tests of its clients."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from soakwatch.plan.web import WebPlan
from soakwatch.web.listener import open_server_socket
from soakwatch.web.server import OneRun, serve


class ServedRun:
    """A server of one run at ``url``; ``token_file`` contains the token (None if it is the caller's own)."""

    def __init__(self, url: str, token_file: Path | None, stack: ExitStack) -> None:
        self.url, self.token_file, self._stack = url, token_file, stack

    def close(self) -> None:
        """Stop it, and remove its files."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def serve_run(plan: WebPlan, folder: Path, now_ns: Callable[[], int]) -> ServedRun:
    """Serve one run until closed. Raises SoakwatchError in one sentence."""
    with ExitStack() as stack:
        address = stack.enter_context(open_server_socket(plan, folder))
        # The server closes its socket, so it gets a duplicate.
        stack.enter_context(serve(plan, address.token, OneRun(folder, now_ns), address.listener.dup()))
        return ServedRun(address.url, address.token.file, stack.pop_all())
