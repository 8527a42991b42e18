"""Queries InfluxDB in InfluxQL over ``/query``, which 1.8 and every bucket of 2.x have, with chunked answers.

With chunks (``chunked``) memory does not grow with the answer. An answer cut in the middle, or that the server
truncated, is an error, never less data.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx
from pydantic_core import from_json

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import secret
from soakwatch.core.suggest import hint
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.transport.http_client import REQUEST_ERRORS, Cause, failure_of, sync_client, tls_context
from soakwatch.transfer.sinks.influxdb.read.address import Database

MAX_ROWS = 10_000  # of a chunk
_MAX_CHUNK = 64 * 2**20  # bytes of a chunk: texts may be long
_MAX_MESSAGE = 300
_REMEDIES = {
    Cause.TIMEOUT: "try a longer timeout=, or read less with from= and to=",
    Cause.REFUSED: "is InfluxDB running there?",
    Cause.UNREACHABLE: "is InfluxDB running there?",
    Cause.CERTIFICATE: "give ca=FILE",
    Cause.NOT_TLS: "write influxdb:// without tls=",
}

Cell = float | int | str | bool | None


@dataclass(frozen=True, slots=True)
class SeriesChunk:
    """A chunk of one series: its measurement, the tags grouped by, and the columns; times in ns."""

    name: str
    tags: Mapping[str, str]
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]


class Influx:
    """A connection to a database; a context manager. Every method raises DataError with one sentence."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._stack = ExitStack()
        self._client: httpx.Client | None = None

    def __enter__(self) -> Self:
        headers = {"accept": "application/json"}
        try:
            if self.database.token is not None:
                headers["authorization"] = f"Token {secret(self.database.token).reveal()}"
            context = tls_context(self.database.url, self.database.ca)
            owner = f"the token of {self.database.token}"
            client = sync_client(headers, self.database.timeout_s, owner=owner, context=context)
        except PlanError as error:
            raise DataError(f"{self.database.shown}: {error}") from None
        self._client = self._stack.enter_context(client)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def check(self) -> None:
        """Check server, token, organisation and bucket."""
        if self.database.org is not None:
            self._check_org(self.database.org)
        for _ in self.chunks("SHOW MEASUREMENTS LIMIT 1"):
            return

    def chunks(self, query: str) -> Iterator[SeriesChunk]:
        """The rows of one statement, times in ns."""
        more = True
        with self._answer({"q": query}) as answer:
            for text in self._lines(answer):
                if text.strip():
                    chunks, more = self._read(text)
                    yield from chunks
        if more:
            raise DataError(self._cut())

    def names(self, query: str, column: str) -> list[str]:
        """The distinct texts of one column of a ``SHOW`` statement."""
        names: dict[str, None] = {}
        for chunk in self.chunks(query):
            index = chunk.columns.index(column) if column in chunk.columns else 0
            names.update(dict.fromkeys(str(row[index]) for row in chunk.rows))
        return list(names)

    # --- inside ------------------------------------------------------------------------------------------------

    def _check_org(self, org: str) -> None:
        """Check the organisation, which ``/query`` ignores in favour of the token's; 1.8 has none and answers 404 to
        everything."""
        assert self._client is not None
        try:
            answer = self._client.get(f"{self.database.url}/api/v2/buckets", params={"org": org, "limit": "1"})
        except httpx.HTTPError:
            return  # the first query reports the reason
        if answer.status_code == 404 and "organization" in answer.text[:1000].lower():
            raise DataError(
                f"{self.database.url} has no organisation {org!r} visible to this token: check org and token"
            )

    @contextmanager
    def _answer(self, query: Mapping[str, str]) -> Iterator[httpx.Response]:
        database = self.database
        assert self._client is not None
        form = {"db": database.bucket, "epoch": "ns", "chunked": "true", "chunk_size": str(MAX_ROWS), **query}
        try:
            with self._client.stream("POST", f"{database.url}/query", data=form) as answer:
                if answer.status_code != 200:
                    raise DataError(self._refused(answer.status_code, _message(b"".join(_beginning(answer)))))
                yield answer
        except REQUEST_ERRORS as error:
            failure = failure_of(error, database.url, database.timeout_s, _REMEDIES)
            raise DataError(self._cut() if failure.cause is Cause.BROKEN else failure.text) from None

    def _lines(self, answer: httpx.Response) -> Iterator[str]:
        """The chunks of an answer."""
        pending = bytearray()
        for part in answer.iter_bytes():
            pending += part
            while (end := pending.find(b"\n")) >= 0:
                yield pending[:end].decode(errors="replace")
                del pending[: end + 1]
            if len(pending) > _MAX_CHUNK:
                raise DataError(
                    f"{self.database.url} answers with a line of more than {_MAX_CHUNK >> 20} MiB, which "
                    "is not an answer of InfluxDB"
                )
        if pending.strip():
            yield pending.decode(errors="replace")

    def _read(self, text: str) -> tuple[list[SeriesChunk], bool]:
        """The rows of one chunk, and whether another one must follow."""
        try:
            answer = from_json(text)
            results = answer.get("results", ())
            for error in (answer.get("error"), *(result.get("error") for result in results)):
                if error is not None:
                    raise DataError(self._server_error(str(error)))
            more = any(result.get("partial") for result in results)
            return [_chunk(series) for result in results for series in result.get("series", ())], more
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{self.database.url} does not answer like InfluxDB, or only with half an answer: check the port"
            ) from None

    def _cut(self) -> str:
        return f"{self.database.url} cut its answer short: try again"

    def _refused(self, status: int, message: str) -> str:
        database = self.database
        if status in {401, 403}:
            give = "give token=env:NAME" if database.token is None else f"check {database.token}"
            return f"{database.url} does not authorise this token to read {database.bucket}: {give}, org and bucket"
        if status == 404:
            return f"{database.url} has no bucket {database.bucket!r}, or is not InfluxDB: correct the address"
        return f"{database.url} answers {status}{': ' + message if message else ''}"

    def _server_error(self, error: str) -> str:
        database = self.database
        word = " ".join(error.split())[:_MAX_MESSAGE]
        if "database not found" in word or "could not find bucket" in word or "retention policy not found" in word:
            return f"{database.url} has no bucket {database.bucket!r}{self._near()}"
        if "unauthorized" in word or "organization" in word:
            return f"{database.url} does not authorise this token to read {database.bucket}: check it and org ({word})"
        return f"{database.url} says: {word}"

    def _near(self) -> str:
        try:
            return hint(
                self.database.bucket, [name for name in self.names("SHOW DATABASES", "name") if name[:1] != "_"]
            )
        except DataError:
            return ": correct the address"


def _chunk(series: Mapping[str, Any]) -> SeriesChunk:
    tags = {str(name): str(value) for name, value in series.get("tags", {}).items() if value}
    return SeriesChunk(str(series.get("name", "")), tags, tuple(map(str, series["columns"])), series.get("values", []))


def quoted(name: str) -> str:
    r"""Quote the name of a measurement, field or tag for InfluxQL.

    >>> quoted('a "b" \\')
    '"a \\"b\\" \\\\"'
    """
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def text(value: str) -> str:
    r"""Quote a tag's value for InfluxQL.

    >>> text("it's")
    "'it\\'s'"
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _beginning(answer: httpx.Response) -> Iterator[bytes]:
    size = 0
    for part in answer.iter_bytes():
        yield part
        size += len(part)
        if size > 10_000:
            return


def _message(body: bytes) -> str:
    """The server's error message."""
    message = body.decode(errors="replace")
    try:
        answer = json.loads(message)
        message = str(answer.get("message") or answer.get("error") or message) if isinstance(answer, dict) else message
    except ValueError:
        pass
    return " ".join(message.split())[:_MAX_MESSAGE]
