"""Writes line protocol to InfluxDB 2 through the client's synchronous write API, with retries and bisection of our own.

Transient errors (no connection, wrong token, deleted bucket, full disk, slow server) are retried for ever. If the
database refuses a batch for good, it is bisected: the bad lines are named and set aside, the others are written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from soakwatch.core.errors import PlanError
from soakwatch.core.installation import to_add_package
from soakwatch.core.secrets import secret
from soakwatch.core.tables import harmless
from soakwatch.transfer.sinks.abc import RefusedLine, SinkUnavailableError
from soakwatch.transfer.sinks.block import Block
from soakwatch.transfer.sinks.influxdb import GRAINS_NS, Influxdb
from soakwatch.transfer.sinks.influxdb.answers import TooSlowError, bound

if TYPE_CHECKING:
    from influxdb_client.client.influxdb_client import InfluxDBClient
    from influxdb_client.client.write_api import WriteApi
    from influxdb_client.rest import ApiException

MAX_LINES = 20_000  # of a request; 10,000 cost a fifth more CPU
_MIN_LINES = 100
_MAX_ASKED_S = 300.0
_TOO_OLD = "older than the bucket's retention"
_TOO_LARGE = "too large for the database"
_MAX_REMEMBERED = 10_000
_MAX_REASON = 500  # characters
_MAX_NARROWING = 80  # requests to spend on finding the bad lines of a batch whose good lines are stored


class _BadError(Exception):
    """A refusal with the database's whole message: with long keys, the telling part lies beyond what is shown."""

    def __init__(self, message: str, *, partial: bool) -> None:
        super().__init__(_reason(message))
        self.partial, self.dropped = partial, _dropped(message)
        self.too_old = str(self).startswith(_TOO_OLD)
        self.measurement = message.partition('on measurement "')[2].partition('"')[0]


class _LargeError(Exception):
    pass


class Writer:
    """Writes lines to one bucket; not thread-safe. ``written`` and ``refused`` count lines.

    Raises PlanError if the token cannot be read, or influxdb-client is not installed.
    """

    def __init__(self, to: Influxdb, refused: Callable[[RefusedLine], None]) -> None:
        try:
            from influxdb_client.client.influxdb_client import InfluxDBClient
            from influxdb_client.client.write_api import SYNCHRONOUS
        except ModuleNotFoundError:
            raise PlanError(
                f"the sink influxdb needs the package influxdb-client: {to_add_package('influxdb-client')}"
            ) from None
        if to.ca is not None and not os.access(to.ca, os.R_OK):
            raise PlanError(f"the CA bundle {to.ca} of the sink {to.url} cannot be read: set ca to a PEM file")
        self.to = to
        self.written = self.refused = 0
        self._refuse = refused
        self._size = MAX_LINES
        self._seen: set[bytes] = set()
        self._client: InfluxDBClient = InfluxDBClient(
            url=to.url,
            token=secret(to.token).reveal(),
            org=to.org,
            timeout=round(to.timeout_s * 1000),
            retries=False,
            ssl_ca_cert=to.ca,
        )
        self._bounded = bound(self._client, to.timeout_s)
        self._api: WriteApi = self._client.write_api(write_options=SYNCHRONOUS)

    def close(self) -> None:
        self._api.close()  # type: ignore[no-untyped-call]  # the library's
        self._client.close()  # type: ignore[no-untyped-call]

    @property
    def connections(self) -> int:
        """Connections made so far; a new one may mean that the server restarted."""
        return self._bounded.connections

    @property
    def size(self) -> int:
        """Lines of a batch; smaller after the server was slow or found a batch too large."""
        return self._size

    def write(self, lines: Block | Sequence[bytes]) -> None:
        """Write all lines, or raise SinkUnavailableError; writing the same lines again changes nothing."""
        block = lines if isinstance(lines, Block) else Block.of(lines)
        if not block.count:
            return
        self.written += block.count - self._write(block)
        self._size = min(MAX_LINES, self._size + max(1, self._size // 10))

    def try_out(self) -> None:
        """Check whether lines would be accepted, without writing any. Raises SinkUnavailableError."""
        self._post(Block(b"# soakwatch", 0))  # a comment still checks address, token and bucket

    def _write(self, block: Block) -> int:
        """Write a block; returns how many of its lines were refused for good."""
        try:
            bad = self._refused(block)
        except SinkUnavailableError as error:
            if error.slow:
                self._size = max(_MIN_LINES, self._size // 2)
            raise
        for line in bad:
            self._set_aside(line)
        return len(bad)

    def _refused(self, block: Block) -> list[RefusedLine]:
        """Write these lines; returns those that were refused.

        Raises SinkUnavailableError if every one is refused: then the server is wrong, not the lines.
        """
        try:
            self._post(block)
        except _LargeError:
            self._size = max(1, block.count // 2)
            bad = self._parts(block.lines(), _TOO_LARGE)
        except _BadError as refusal:
            if refusal.partial:
                return self._named(block.lines(), refusal)
            bad = self._parts(block.lines(), str(refusal))
        else:
            return []
        if len(bad) == block.count > 1:
            raise SinkUnavailableError(
                f"{self.to.url} refuses every line ({bad[0].reason}): is it InfluxDB, and this its address?"
            )
        return bad

    def _half(self, lines: Sequence[bytes]) -> list[RefusedLine]:
        try:
            self._post(Block.of(lines))
        except _LargeError:
            return self._parts(lines, _TOO_LARGE)
        except _BadError as refusal:
            return self._named(lines, refusal) if refusal.partial else self._parts(lines, str(refusal))
        return []

    def _parts(self, lines: Sequence[bytes], reason: str) -> list[RefusedLine]:
        """Bisect a batch of which nothing was stored, down to single lines."""
        if len(lines) == 1:
            return [RefusedLine(lines[0], reason)]
        middle = len(lines) // 2
        return self._half(lines[:middle]) + self._half(lines[middle:])

    def _named(self, lines: Sequence[bytes], refused_for: _BadError) -> list[RefusedLine]:
        """Find the bad lines of a batch whose good lines are stored, with at most ``_MAX_NARROWING`` requests."""
        left, bad = _MAX_NARROWING, list[RefusedLine]()
        stretches = [(lines, refused_for)]
        while stretches:
            stretch, refusal = stretches.pop()
            if refusal.too_old and refusal.dropped is not None:
                bad += [RefusedLine(line, str(refusal)) for line in _oldest(stretch, refusal.dropped)]
                continue
            if len(stretch) == 1 or (refusal.dropped is not None and refusal.dropped >= len(stretch)):
                bad += [RefusedLine(line, str(refusal)) for line in stretch]
                continue
            if left < 2:
                reason = f"one of several: {refusal}"
                bad += [RefusedLine(line, reason) for line in _suspects(stretch, refusal)]
                continue
            middle = len(stretch) // 2
            left -= 2
            for half in (stretch[middle:], stretch[:middle]):
                try:
                    self._post(Block.of(half))
                except _LargeError:
                    bad += self._parts(half, _TOO_LARGE)
                except _BadError as again:
                    stretches.append((half, again))
        return bad

    def _set_aside(self, refused: RefusedLine) -> None:
        if refused.line not in self._seen:  # count a line that is sent again only once
            if len(self._seen) >= _MAX_REMEMBERED:
                self._seen.clear()
            self._seen.add(refused.line)
            self.refused += 1
            self._refuse(refused)

    def _renew(self) -> None:
        """Read the token again: it may have been replaced."""
        with suppress(PlanError):
            self._client.api_client.default_headers["Authorization"] = f"Token {secret(self.to.token).reveal()}"

    def _post(self, block: Block) -> None:
        from influxdb_client.rest import ApiException
        from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError

        try:
            self._api.write(self.to.bucket, self.to.org, block.text)  # in ns, the default precision
        except ApiException as error:
            if error.status in {400, 401, 403}:
                self._renew()
            raise _error_of(error.status, _message(error), self.to, error.headers or {}) from None
        except (ReadTimeoutError, TooSlowError):
            raise SinkUnavailableError(
                f"{self.to.url} did not answer within {self.to.timeout_s:g} s", slow=True
            ) from None
        except ProtocolError:
            raise SinkUnavailableError(f"{self.to.url} closed the connection before it had answered") from None
        except (HTTPError, OSError):
            raise SinkUnavailableError(f"{self.to.url} cannot be reached: is InfluxDB running there?") from None


def _error_of(status: int | None, message: str, to: Influxdb, headers: Mapping[str, str]) -> Exception:
    """The exception for an HTTP error; ``message`` is the server's, or "" if it sent no JSON."""
    if not status:
        return _wrong(f"{to.url} has an untrusted certificate or does not speak TLS: set ca, or correct url")
    if status in {400, 422} and message:
        return _BadError(message, partial=status == 422)
    if status == 400:  # vmauth, for an unknown token
        return _wrong(f"{to.url} answers 400, but not as InfluxDB does: check url, or the token of its proxy")
    if status == 413:
        return _LargeError()
    if status in {401, 403}:
        return _wrong(f"{to.url} does not authorise this token for {to.org}/{to.bucket}: check token, org and bucket")
    if status == 404:
        return _wrong(f"{to.url} has no bucket {to.bucket} in {to.org}: create it, or correct org and bucket")
    if 300 <= status < 400:
        return _wrong(f"{to.url} redirects writes{_elsewhere(headers)}: put that address into the plan")
    if "no space left" in message:  # InfluxDB only retries to open what it could not when it restarts
        return SinkUnavailableError(
            f"{to.url} has no space left on its disk: free some there, and restart InfluxDB if that is not enough"
        )
    asked = headers.get("Retry-After") or ""
    after_s = min(float(asked), _MAX_ASKED_S) if asked.isdecimal() else None
    return SinkUnavailableError(f"{to.url} answers {status}{f': {_short(message)}' if message else ''}", after_s)


def _wrong(reason: str) -> SinkUnavailableError:
    return SinkUnavailableError(reason, wrong=True)


def _message(error: ApiException) -> str:
    """The server's message if it answers in JSON, as InfluxDB does."""
    import json

    try:
        answer = json.loads(error.body or "")
    except (ValueError, RecursionError):
        return ""
    message = (answer.get("message") or answer.get("error") or "") if isinstance(answer, dict) else ""
    return harmless(" ".join(str(message).split()))


def _elsewhere(headers: Mapping[str, str]) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(headers.get("Location") or "")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return harmless(f" to {parts.scheme}://{parts.hostname}{port}") if parts.hostname else ""


def _dropped(message: str) -> int | None:
    """How many lines of a partial write were dropped, or None. The server says so at the end, behind keys of lines,
    which may contain the same words."""
    numbers = re.findall(r"\bdropped=(\d{1,9})\b", message)
    return int(numbers[-1]) if numbers else None


def _reason(message: str) -> str:
    """Why lines were refused, in a few words.

    >>> _reason("partial write: dropped 5 points outside retention policy of duration 1h0m0s - oldest point m at …")
    "older than the bucket's retention of 1h0m0s"
    """
    retention = re.search(r"(?:outside|beyond) retention policy(?: of duration (\S+))?", message)
    if retention is None:
        return _short(message)
    return f"{_TOO_OLD} of {retention[1]}" if retention[1] else _TOO_OLD


def _short(message: str) -> str:
    return message if len(message) <= _MAX_REASON else message[:_MAX_REASON] + " …"


def _oldest(lines: Sequence[bytes], count: int) -> Sequence[bytes]:
    """The ``count`` oldest lines, which a bucket no longer retains. Bisecting would drop more: the start of the oldest
    shard is kept only together with newer lines.

    >>> _oldest([b"a x=1 30", b"a x=1 4", b"b x=1 200"], 2)
    [b'a x=1 4', b'a x=1 30']
    """
    return sorted(lines, key=lambda line: int(line.rpartition(b" ")[2]))[:count]


def _suspects(lines: Sequence[bytes], refusal: _BadError) -> Sequence[bytes]:
    """As many lines as the refusal says were dropped, of the measurement that it names, if any."""
    named = refusal.measurement.encode()
    suspects = [line for line in lines if named and line.replace(b"\\", b"").startswith(named)] or lines
    return suspects[: 1 if refusal.dropped is None else refusal.dropped]


def influxdb_of(url: str, org: str | None, bucket: str | None, token: str | None, ca: str | None = None) -> Influxdb:
    """Parse ``influxdb://HOST[:8086]?org=O&bucket=B&token=env:NAME`` (``influxdbs://`` for TLS; http:// also works).
    Options override the address; ``&precision=ms`` rounds sample times down. Raises PlanError for what is missing.

    >>> influxdb_of("influxdb://h?org=o&bucket=b&token=env:T", None, None, None).url
    'http://h:8086'
    """
    from urllib.parse import parse_qs, urlsplit

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise PlanError(f"--to: invalid address: {error}") from None
    schemes = {"influxdb": "http", "influxdbs": "https", "http": "http", "https": "https"}
    if parts.scheme not in schemes or not parts.hostname:
        raise PlanError("--to: write influxdb://HOST:8086?org=ORG&bucket=BUCKET&token=env:NAME")
    if parts.password is not None:
        raise PlanError("--to: this address contains a password: use --token env:NAME or file:PATH instead")
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    needed = {
        "org": org or options.get("org"),
        "bucket": bucket or options.get("bucket"),
        "token": token or options.get("token"),
    }
    for name, value in needed.items():
        if not value:
            raise PlanError(f"--to: {name} is missing: add ?{name}=… to the address, or --{name}")
    from soakwatch.core.secrets import reference

    try:
        token_reference = reference(needed["token"])
    except ValueError as error:
        raise PlanError(f"--to: token: {error}") from None
    if options.get("precision", "ns") not in GRAINS_NS:
        raise PlanError(f"--to: precision: write {', '.join(GRAINS_NS)}")
    grain_ns = GRAINS_NS[options.get("precision", "ns")]
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = "" if parts.scheme.startswith("http") else ":8086"
    address = f"{schemes[parts.scheme]}://{host}{f':{port}' if port else default}{parts.path.rstrip('/')}"
    return Influxdb(address, str(needed["org"]), str(needed["bucket"]), token_reference, ca=ca, grain_ns=grain_ns)
