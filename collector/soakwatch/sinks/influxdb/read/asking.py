"""Asking InfluxDB: InfluxQL over ``/query``, which 2.x has for every bucket and 1.8 always had, in pieces.

An answer comes in pieces (``chunked``), so that memory does not grow with it. One that is cut in the middle, and one
that the server made shorter than it is, is an error and never less data.
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
from soakwatch.sinks.influxdb.read.address import Place
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.transport.http_client import REQUEST_ERRORS, Cause, failure_of, sync_client, tls_context

ROWS = 10_000  # of one piece
_LONGEST_PIECE = 64 * 2**20  # bytes of one piece: texts may be long
_LONGEST_WORD = 300
_REMEDIES = {
    Cause.TIMEOUT: "try a longer timeout=, or read less with from= and to=",
    Cause.REFUSED: "is InfluxDB running there?",
    Cause.UNREACHABLE: "is InfluxDB running there?",
    Cause.CERTIFICATE: "give ca=FILE",
    Cause.NOT_TLS: "write influxdb:// without tls=",
}

Cell = float | int | str | bool | None


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of one series: its measurement, the tags it was grouped by, and the columns, times in ns first."""

    name: str
    tags: Mapping[str, str]
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]


class Influx:
    """A connection to the database of a place; a context manager. Every method raises DataError in one sentence."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._stack = ExitStack()
        self._client: httpx.Client | None = None

    def __enter__(self) -> Self:
        headers = {"accept": "application/json"}
        try:
            if self.place.token is not None:
                headers["authorization"] = f"Token {secret(self.place.token).reveal()}"
            context = tls_context(self.place.url, self.place.ca)
            owner = f"the token of {self.place.token}"
            client = sync_client(headers, self.place.timeout_s, owner=owner, context=context)
        except PlanError as error:
            raise DataError(f"{self.place.shown}: {error}") from None
        self._client = self._stack.enter_context(client)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def check(self) -> None:
        """Find out whether server, token, organisation and bucket are right, before anything else."""
        if self.place.org is not None:
            self._check_org(self.place.org)
        for _ in self.pieces("SHOW MEASUREMENTS LIMIT 1"):
            return

    def pieces(self, query: str) -> Iterator[Piece]:
        """The rows of one statement, times in ns; nothing where nothing is found."""
        more = True
        with self._answer({"q": query}) as answer:
            for text in self._lines(answer):
                if text.strip():
                    pieces, more = self._read(text)
                    yield from pieces
        if more:
            raise DataError(self._cut())

    def names(self, query: str, column: str) -> list[str]:
        """The texts of one column of a ``SHOW`` statement, each once."""
        found: dict[str, None] = {}
        for piece in self.pieces(query):
            at = piece.columns.index(column) if column in piece.columns else 0
            found.update(dict.fromkeys(str(row[at]) for row in piece.rows))
        return list(found)

    # --- inside ------------------------------------------------------------------------------------------------

    def _check_org(self, org: str) -> None:
        """``/query`` takes the token's organisation whatever is asked for; 1.8 knows none and says 404 to all."""
        assert self._client is not None
        try:
            answer = self._client.get(f"{self.place.url}/api/v2/buckets", params={"org": org, "limit": "1"})
        except httpx.HTTPError:
            return  # the first question tells
        if answer.status_code == 404 and "organization" in answer.text[:1000].lower():
            raise DataError(f"{self.place.url} has no organisation {org!r} that this token may see: mend org or token")

    @contextmanager
    def _answer(self, asked: Mapping[str, str]) -> Iterator[httpx.Response]:
        place = self.place
        assert self._client is not None
        form = {"db": place.bucket, "epoch": "ns", "chunked": "true", "chunk_size": str(ROWS), **asked}
        try:
            with self._client.stream("POST", f"{place.url}/query", data=form) as answer:
                if answer.status_code != 200:
                    raise DataError(self._refused(answer.status_code, _said(b"".join(_some(answer)))))
                yield answer
        except REQUEST_ERRORS as error:
            failure = failure_of(error, place.url, place.timeout_s, _REMEDIES)
            raise DataError(self._cut() if failure.cause is Cause.BROKEN else failure.text) from None

    def _lines(self, answer: httpx.Response) -> Iterator[str]:
        """The pieces of an answer, one text each."""
        held = bytearray()
        for part in answer.iter_bytes():
            held += part
            while (at := held.find(b"\n")) >= 0:
                yield held[:at].decode(errors="replace")
                del held[: at + 1]
            if len(held) > _LONGEST_PIECE:
                raise DataError(
                    f"{self.place.url} answers with a line of more than {_LONGEST_PIECE >> 20} MiB, which "
                    "is no answer of InfluxDB"
                )
        if held.strip():
            yield held.decode(errors="replace")

    def _read(self, text: str) -> tuple[list[Piece], bool]:
        """The rows of one piece of an answer, and whether another one must follow."""
        try:
            told = from_json(text)
            results = told.get("results", ())
            for error in (told.get("error"), *(result.get("error") for result in results)):
                if error is not None:
                    raise DataError(self._told(str(error)))
            more = any(result.get("partial") for result in results)
            return [_piece(series) for result in results for series in result.get("series", ())], more
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{self.place.url} answers with something that is no answer of InfluxDB, or with half of "
                "one: is the port right?"
            ) from None

    def _cut(self) -> str:
        return f"{self.place.url} broke its answer off: what was read is not all, try again"

    def _refused(self, status: int, said: str) -> str:
        place = self.place
        if status in {401, 403}:
            give = "give token=env:NAME" if place.token is None else f"mend what {place.token} stands for"
            return f"{place.url} does not let this token read {place.bucket}: {give}, or mend org and bucket"
        if status == 404:
            return f"{place.url} has no bucket {place.bucket!r}, or is no InfluxDB: mend the address"
        return f"{place.url} answers {status}{': ' + said if said else ''}"

    def _told(self, error: str) -> str:
        place = self.place
        word = " ".join(error.split())[:_LONGEST_WORD]
        if "database not found" in word or "could not find bucket" in word or "retention policy not found" in word:
            return f"{place.url} has no bucket {place.bucket!r}{self._near()}"
        if "unauthorized" in word or "organization" in word:
            return f"{place.url} does not let this token read {place.bucket}: mend token, org or bucket ({word})"
        return f"{place.url} says: {word}"

    def _near(self) -> str:
        try:
            return hint(self.place.bucket, [one for one in self.names("SHOW DATABASES", "name") if one[:1] != "_"])
        except DataError:
            return ": mend the address"


def _piece(series: Mapping[str, Any]) -> Piece:
    tags = {str(name): str(value) for name, value in series.get("tags", {}).items() if value}
    return Piece(str(series.get("name", "")), tags, tuple(map(str, series["columns"])), series.get("values", []))


def quoted(name: str) -> str:
    r"""A measurement, field or tag in InfluxQL.

    >>> quoted('a "b" \\')
    '"a \\"b\\" \\\\"'
    """
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def text(value: str) -> str:
    r"""A tag's value in InfluxQL.

    >>> text("it's")
    "'it\\'s'"
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _some(answer: httpx.Response) -> Iterator[bytes]:
    size = 0
    for part in answer.iter_bytes():
        yield part
        size += len(part)
        if size > 10_000:
            return


def _said(body: bytes) -> str:
    """The server's own sentence."""
    word = body.decode(errors="replace")
    try:
        told = json.loads(word)
        word = str(told.get("message") or told.get("error") or word) if isinstance(told, dict) else word
    except ValueError:
        pass
    return " ".join(word.split())[:_LONGEST_WORD]
