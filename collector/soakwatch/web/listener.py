"""The socket of a run's server, its token, and the files that announce both, without HTTP."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.plan.web import WebPlan
from soakwatch.runs.catalog import ADDRESS_FILE, TOKEN_FILE
from soakwatch.web.access import Token, open_listener, tls_context, token_for, write_address


@dataclass(frozen=True, slots=True)
class ServerSocket:
    """The listening socket of a run. Until a server answers, clients that connect wait and are not refused."""

    listener: socket.socket
    token: Token
    url: str

    @property
    def description(self) -> str:
        """The URL and where its token is, for a log."""
        return f"{self.url} (token in {self.token.file})" if self.token.file else self.url


@contextmanager
def open_server_socket(plan: WebPlan, folder: Path) -> Iterator[ServerSocket]:
    """Listen for a run; within the block its folder has files with address and token.

    Raises PlanError and SoakwatchError in one sentence; the run can go on without a server.
    """
    try:
        tls_context(plan)
        token = token_for(plan, folder)
        with open_listener(plan) as listener:
            served = ServerSocket(listener, token, url_of(listener, tls=bool(plan.cert)))
            try:
                write_address(folder, served.url)
            except OSError as error:
                raise SoakwatchError(f"the server's address cannot be written to {folder}: {error.strerror}") from None
            yield served
    finally:
        remove_files(folder)


def remove_files(folder: Path) -> None:
    """Remove address and token of a server that has ended: the token must not be mailed with the record."""
    remove_address(folder)
    with suppress(OSError):
        (folder / TOKEN_FILE).unlink()


def remove_address(folder: Path) -> None:
    """Remove the address of a server that has ended."""
    with suppress(OSError):
        (folder / ADDRESS_FILE).unlink()


def url_of(listener: socket.socket, *, tls: bool) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
