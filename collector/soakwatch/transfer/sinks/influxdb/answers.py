"""Bounds on a database's answers: size, time, and encoding.

influxdb-client reads an answer to its end however long it is, and raises UnicodeDecodeError if it is not UTF-8.
"""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from influxdb_client.client.influxdb_client import InfluxDBClient
    from urllib3 import BaseHTTPResponse, HTTPResponse, PoolManager
    from urllib3._base_connection import BaseHTTPConnection

MOST = 256 * 1024
"""Bytes of an answer that are read; a refusal may name two points with keys of up to 64 KiB each."""


class TooSlowError(Exception):
    """An answer began but did not end in time."""


class Bounded:
    """Wraps the client's connection pool; each answer is read up to ``MOST`` bytes and for ``longest_s`` seconds.

    Raises TooSlowError, and what urllib3 raises.
    """

    def __init__(self, pool: PoolManager, url: str, longest_s: float) -> None:
        self._pool, self._longest_s = pool, longest_s
        self.connections = 0  # connections made so far
        connections = pool.connection_from_url(url)
        connections.ConnectionCls = self._counting(connections.ConnectionCls)

    def _counting(self, kind: type[BaseHTTPConnection]) -> type[BaseHTTPConnection]:
        """A subclass that counts connections, since urllib3 silently reconnects."""
        bounded = self

        class Counting(kind):  # type: ignore[misc, valid-type]  # its kind depends on the address
            def connect(self) -> None:
                bounded.connections += 1
                super().connect()

        return Counting

    def request(self, method: str, url: str, **more: object) -> HTTPResponse:
        """As urllib3's, but an answer is cut off at ``MOST`` bytes."""
        from urllib3 import HTTPResponse

        more["preload_content"] = False
        answer = self._pool.request(method, url, **more)  # type: ignore[arg-type]  # the caller's own keywords
        try:
            body = _read(answer, time.monotonic() + self._longest_s)
        except BaseException:
            answer.close()
            raise
        text = body.decode(errors="replace").encode()
        headers = {name: value for name, value in answer.headers.items() if name.lower() != "content-encoding"}
        return HTTPResponse(body=io.BytesIO(text), headers=headers, status=answer.status, reason=answer.reason)

    def clear(self) -> None:
        """Close all connections."""
        self._pool.clear()


def bound(client: InfluxDBClient, longest_s: float) -> Bounded:
    """Make this client read answers within bounds."""
    rest = client.api_client.rest_client
    bounded = Bounded(rest.pool_manager, client.url, longest_s)
    rest.pool_manager = bounded  # type: ignore[assignment]  # it asks for no more
    return bounded


def _read(answer: BaseHTTPResponse, deadline: float) -> bytes:
    body = b""
    while len(body) < MOST:
        part = answer.read1(4096)
        if not part:
            answer.release_conn()
            return body
        body += part
        if time.monotonic() > deadline:
            raise TooSlowError
    answer.close()  # the unread rest makes this connection unusable
    return body
