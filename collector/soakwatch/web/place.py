"""Where a run is served: the socket, the token and the files that tell of both, without anything that speaks HTTP."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.plan.web import WebPlan
from soakwatch.runs.catalog import ADDRESS_FILE, TOKEN_FILE
from soakwatch.web.access import Token, bound, certified, token_for, write_address


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run is served, before anybody answers there: whoever asks already waits, and is not refused."""

    listener: socket.socket
    token: Token
    url: str

    @property
    def told(self) -> str:
        """Where it is and what it wants, for people."""
        return f"{self.url} (token in {self.token.file})" if self.token.file else self.url


@contextmanager
def place_of(plan: WebPlan, folder: Path) -> Iterator[Place]:
    """The place of a run with its files: address and token in its folder while the block lasts, gone afterwards.

    Raises PlanError and SoakwatchError in one sentence; the run can go on without.
    """
    try:
        certified(plan)
        token = token_for(plan, folder)
        with bound(plan) as listener:
            made = Place(listener, token, url_of(listener, tls=bool(plan.cert)))
            try:
                write_address(folder, made.url)
            except OSError as error:
                raise SoakwatchError(f"{folder} cannot tell where the run is served: {error.strerror}") from None
            yield made
    finally:
        remove_files(folder)


def remove_files(folder: Path) -> None:
    """What tells of a server that is no more: a token must not be mailed with a record."""
    remove_address(folder)
    with suppress(OSError):
        (folder / TOKEN_FILE).unlink()


def remove_address(folder: Path) -> None:
    """Nobody answers there any more."""
    with suppress(OSError):
        (folder / ADDRESS_FILE).unlink()


def url_of(listener: socket.socket, *, tls: bool) -> str:
    """What is written into a browser."""
    host, port = listener.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
