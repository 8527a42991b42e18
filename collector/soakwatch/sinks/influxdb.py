"""InfluxDB 2: bytes of line protocol through the client's synchronous write API, with our own patience.

What passes (no connection, a wrong token, a deleted bucket, a full disk, a slow server) is tried again for ever; what
the database refuses for good is narrowed down to its lines, which are named and set aside, and the others are written.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from soakwatch.errors import PlanError
from soakwatch.secret import secret

if TYPE_CHECKING:
    from influxdb_client.client.influxdb_client import InfluxDBClient
    from influxdb_client.client.write_api import WriteApi

LINES = 5_000
_FEWEST = 100
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_REMEMBERED = 10_000
_NARROWING = 80  # requests that may be spent on naming the bad lines of a batch of which the good are stored


@dataclass(frozen=True, slots=True)
class Influxdb:
    """Where to write. ``token`` is a reference (``env:NAME``, ``file:PATH``); ``ca`` a file of certificates."""

    url: str
    org: str
    bucket: str
    token: str
    timeout_s: float = 30.0
    ca: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that the database will never take, and why."""

    line: bytes
    why: str


class Passing(Exception):  # noqa: N818 - a state, not a defect
    """It did not work now and may work later; ``after_s`` is what the server asks for, if it does."""

    def __init__(self, why: str, after_s: float | None = None, *, slow: bool = False) -> None:
        super().__init__(why)
        self.after_s, self.slow = after_s, slow


class _Bad(Exception):  # noqa: N818
    def __init__(self, why: str, *, partial: bool) -> None:
        super().__init__(why)
        self.partial = partial


class _Large(Exception):  # noqa: N818
    pass


class Writer:
    """Writes lines to one bucket; not for two threads at once. ``written`` and ``refused`` count lines.

    Raises PlanError if the token cannot be had.
    """

    def __init__(self, to: Influxdb, refused: Callable[[Refused], None]) -> None:
        from influxdb_client.client.influxdb_client import InfluxDBClient
        from influxdb_client.client.write_api import SYNCHRONOUS

        self.to = to
        self.written = self.refused = 0
        self._refuse = refused
        self._size = LINES
        self._seen: set[bytes] = set()
        self._client: InfluxDBClient = InfluxDBClient(
            url=to.url, token=secret(to.token).reveal(), org=to.org, timeout=round(to.timeout_s * 1000), retries=False,
            ssl_ca_cert=to.ca,
        )  # fmt: skip
        self._api: WriteApi = self._client.write_api(write_options=SYNCHRONOUS)

    def close(self) -> None:
        """Let the connection go."""
        self._api.close()  # type: ignore[no-untyped-call]  # the library's
        self._client.close()  # type: ignore[no-untyped-call]

    @property
    def size(self) -> int:
        """Lines of a batch; fewer where the server was slow or found a batch too large."""
        return self._size

    def write(self, lines: Sequence[bytes]) -> None:
        """Write all lines, or raise Passing; to write the same again changes nothing."""
        if not lines:
            return
        bad = self._write(lines)
        self.written += len(lines) - bad
        self.refused += bad
        self._size = min(LINES, self._size + max(1, self._size // 10))

    def _write(self, lines: Sequence[bytes]) -> int:
        """The number of lines that were refused for good."""
        try:
            self._post(lines)
        except Passing as passing:
            if passing.slow:
                self._size = max(_FEWEST, self._size // 2)
            raise
        except _Large:
            self._size = max(1, len(lines) // 2)
            return self._parts(lines, "the database finds this line too large")
        except _Bad as bad:
            return self._name(lines, str(bad)) if bad.partial else self._parts(lines, str(bad))
        return 0

    def _parts(self, lines: Sequence[bytes], why: str) -> int:
        """A batch of which nothing was stored: each half by itself, down to the lines."""
        if len(lines) == 1:
            self._set_aside(lines[0], why)
            return 1
        middle = len(lines) // 2
        return self._write(lines[:middle]) + self._write(lines[middle:])

    def _name(self, lines: Sequence[bytes], why: str) -> int:
        """A batch of which the good lines are stored: find the bad ones, with a bound on the requests."""
        left, bad = _NARROWING, 0
        stretches = [(lines, why)]
        while stretches:
            stretch, reason = stretches.pop()
            if len(stretch) == 1 or left < 2:
                named = stretch if len(stretch) == 1 else _suspects(stretch, reason)
                bad += len(named)
                for one in named:
                    self._set_aside(one, reason)
                continue
            middle = len(stretch) // 2
            left -= 2
            for half in (stretch[middle:], stretch[:middle]):
                try:
                    self._post(half)
                except _Bad as refusal:
                    stretches.append((half, str(refusal)))
        return bad

    def _set_aside(self, line: bytes, why: str) -> None:
        if line not in self._seen:  # a batch that is tried again is not named again
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen.add(line)
            self._refuse(Refused(line, why))

    def _post(self, lines: Sequence[bytes]) -> None:
        from influxdb_client.rest import ApiException
        from urllib3.exceptions import HTTPError, ReadTimeoutError, SSLError

        try:
            self._api.write(self.to.bucket, self.to.org, b"\n".join(lines))  # in ns, unless it is told otherwise
        except ApiException as error:
            raise _judged(error.status, _said(error), self.to, _after(error)) from None
        except ReadTimeoutError:
            raise Passing(f"{self.to.url} did not answer within {self.to.timeout_s:g} s", slow=True) from None
        except SSLError:
            raise Passing(f"{self.to.url} shows a certificate that is not trusted, or speaks no TLS: give ca") from None
        except (HTTPError, OSError):
            raise Passing(f"{self.to.url} cannot be reached: is InfluxDB running there?") from None


def _judged(status: int | None, said: str, to: Influxdb, after_s: float | None) -> Exception:
    if status in {400, 422}:
        return _Bad(said or "refused without a word", partial=status == 422)
    if status == 413:
        return _Large()
    if status in {401, 403}:
        return Passing(f"{to.url} does not let this token write into {to.org}/{to.bucket}: mend token, org or bucket")
    if status == 404:
        return Passing(f"{to.url} has no bucket {to.bucket} in {to.org}: make it, or mend org and bucket")
    return Passing(f"{to.url} answers {status}{': ' + said if said else ''}", after_s)


def _said(error: object) -> str:
    """The server's own sentence."""
    import json

    body = getattr(error, "body", None)
    found = body.decode(errors="replace") if isinstance(body, bytes) else str(body or "")
    try:
        told = json.loads(found)
        found = str(told.get("message") or told.get("error") or found) if isinstance(told, dict) else found
    except ValueError:
        pass
    return " ".join(found.split())[:500]


def _after(error: object) -> float | None:
    headers = getattr(error, "headers", None) or {}
    asked = str(headers.get("Retry-After") or "")
    return min(float(asked), _LONGEST_PAUSE_S) if asked.isdecimal() else None


def _suspects(lines: Sequence[bytes], why: str) -> Sequence[bytes]:
    """The lines that a refusal may mean: those of the measurement that it names, else the first of all."""
    named = why.partition('on measurement "')[2].partition('"')[0].encode()
    suspects = [one for one in lines if named and one.replace(b"\\", b"").startswith(named)]
    return suspects or lines[:1]


class Pauses:
    """How long to wait before the next try: doubling, with jitter, up to half a minute."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - so that many collectors do not come back at once
        self._next_s = _FIRST_PAUSE_S

    def next_s(self, passing: Passing) -> float:
        """Seconds until the next try."""
        pause_s = self._next_s * self._random.uniform(0.5, 1.0)
        self._next_s = min(_LONGEST_PAUSE_S, self._next_s * 2)
        return max(pause_s, passing.after_s or 0.0)

    def well(self) -> None:
        """It worked."""
        self._next_s = _FIRST_PAUSE_S


def influxdb_of(url: str, org: str | None, bucket: str | None, token: str | None, ca: str | None = None) -> Influxdb:
    """Where ``influxdb://HOST[:8086]?org=O&bucket=B&token=env:NAME`` leads (``influxdbs://`` over TLS, and http:// as
    it is); options win over what the address says. Raises PlanError for what is missing.

    >>> influxdb_of("influxdb://h?org=o&bucket=b&token=env:T", None, None, None).url
    'http://h:8086'
    """
    from urllib.parse import parse_qs, urlsplit

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise PlanError(f"--to: this is no address: {error}") from None
    schemes = {"influxdb": "http", "influxdbs": "https", "http": "http", "https": "https"}
    if parts.scheme not in schemes or not parts.hostname:
        raise PlanError("--to: write influxdb://HOST:8086?org=ORG&bucket=BUCKET&token=env:NAME")
    if parts.password is not None:
        raise PlanError("--to: a password stands in this address: give --token env:NAME or file:PATH instead")
    told = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    found = {"org": org or told.get("org"), "bucket": bucket or told.get("bucket"),
             "token": token or told.get("token")}  # fmt: skip
    for name, value in found.items():
        if not value:
            raise PlanError(f"--to: no {name} is given: add ?{name}=… to the address, or --{name}")
    from soakwatch.secret import reference

    try:
        held = reference(found["token"])
    except ValueError as error:
        raise PlanError(f"--to: token: {error}") from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = "" if parts.scheme.startswith("http") else ":8086"
    place = f"{schemes[parts.scheme]}://{host}{f':{port}' if port else default}{parts.path.rstrip('/')}"
    return Influxdb(place, str(found["org"]), str(found["bucket"]), held, ca=ca)
