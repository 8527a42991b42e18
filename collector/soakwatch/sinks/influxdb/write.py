"""InfluxDB 2: bytes of line protocol through the client's synchronous write API, with our own patience.

What passes (no connection, a wrong token, a deleted bucket, a full disk, a slow server) is tried again for ever; what
the database refuses for good is narrowed down to its lines, which are named and set aside, and the others are written.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import secret
from soakwatch.core.tables import harmless
from soakwatch.plan.sink import GRAINS_NS, Influxdb
from soakwatch.sinks.answers import TooSlowError, bound
from soakwatch.sinks.block import Block

if TYPE_CHECKING:
    from influxdb_client.client.influxdb_client import InfluxDBClient
    from influxdb_client.client.write_api import WriteApi
    from influxdb_client.rest import ApiException

LINES = 20_000  # of a request; with 10,000 it takes a fifth more CPU
_FEWEST = 100
_FIRST_PAUSE_S, LONGEST_PAUSE_S, _LONGEST_ASKED_S = 0.5, 30.0, 300.0
_TOO_LARGE = "the database finds this line too large"
_REMEMBERED = 10_000
_NARROWING = 80  # requests that may be spent on naming the bad lines of a batch of which the good are stored


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that the database will never take, and why."""

    line: bytes
    why: str


class Passing(Exception):  # noqa: N818 - a state, not a defect
    """It did not work now and may work later; ``after_s`` is what the server asks for, if it does, and ``wrong`` says
    that it will not work before somebody mends something."""

    def __init__(self, why: str, after_s: float | None = None, *, slow: bool = False, wrong: bool = False) -> None:
        super().__init__(why)
        self.after_s, self.slow, self.wrong = after_s, slow, wrong


class _BadError(Exception):
    def __init__(self, why: str, *, partial: bool) -> None:
        super().__init__(why)
        self.partial = partial


class _LargeError(Exception):
    pass


class Writer:
    """Writes lines to one bucket; not for two threads at once. ``written`` and ``refused`` count lines.

    Raises PlanError if the token cannot be had.
    """

    def __init__(self, to: Influxdb, refused: Callable[[Refused], None]) -> None:
        from influxdb_client.client.influxdb_client import InfluxDBClient
        from influxdb_client.client.write_api import SYNCHRONOUS

        if to.ca is not None and not os.access(to.ca, os.R_OK):
            raise PlanError(f"the certificates {to.ca} of the sink {to.url} cannot be read: name a file in PEM as ca")
        self.to = to
        self.written = self.refused = 0
        self._refuse = refused
        self._size = LINES
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
        """Let the connection go."""
        self._api.close()  # type: ignore[no-untyped-call]  # the library's
        self._client.close()  # type: ignore[no-untyped-call]

    @property
    def connections(self) -> int:
        """How many connections were made until now: another one may mean that the server was started again."""
        return self._bounded.connections

    @property
    def size(self) -> int:
        """Lines of a batch; fewer where the server was slow or found a batch too large."""
        return self._size

    def write(self, lines: Block | Sequence[bytes]) -> None:
        """Write all lines, or raise Passing; to write the same again changes nothing."""
        block = lines if isinstance(lines, Block) else Block.of(lines)
        if not block.count:
            return
        bad = self._write(block)
        self.written += block.count - bad
        self.refused += bad
        self._size = min(LINES, self._size + max(1, self._size // 10))

    def try_out(self) -> None:
        """Whether lines would be taken, without writing one. Raises Passing."""
        self._post(Block(b"# soakwatch", 0))  # a comment: address, token and bucket are looked at all the same

    def _write(self, block: Block) -> int:
        """The number of lines that were refused for good."""
        try:
            bad = self._bad(block)
        except Passing as passing:
            if passing.slow:
                self._size = max(_FEWEST, self._size // 2)
            raise
        for one in bad:
            self._set_aside(one)
        return len(bad)

    def _bad(self, block: Block) -> list[Refused]:
        """Write these lines; what was refused of them. Raises Passing if each is refused by itself: it is not they
        who are wrong, then, but whoever answers there."""
        try:
            self._post(block)
        except _LargeError:
            self._size = max(1, block.count // 2)
            bad = self._parts(block.lines(), _TOO_LARGE)
        except _BadError as refusal:
            if refusal.partial:
                return self._named(block.lines(), str(refusal))
            bad = self._parts(block.lines(), str(refusal))
        else:
            return []
        if len(bad) == block.count > 1:
            raise Passing(f"{self.to.url} refuses every line ({bad[0].why}): is it InfluxDB, and this its address?")
        return bad

    def _half(self, lines: Sequence[bytes]) -> list[Refused]:
        try:
            self._post(Block.of(lines))
        except _LargeError:
            return self._parts(lines, _TOO_LARGE)
        except _BadError as refusal:
            return (self._named if refusal.partial else self._parts)(lines, str(refusal))
        return []

    def _parts(self, lines: Sequence[bytes], why: str) -> list[Refused]:
        """A batch of which nothing was stored: each half by itself, down to the lines."""
        if len(lines) == 1:
            return [Refused(lines[0], why)]
        middle = len(lines) // 2
        return self._half(lines[:middle]) + self._half(lines[middle:])

    def _named(self, lines: Sequence[bytes], why: str) -> list[Refused]:
        """A batch of which the good lines are stored: find the bad ones, with a bound on the requests."""
        left, bad = _NARROWING, list[Refused]()
        stretches = [(lines, why)]
        while stretches:
            stretch, reason = stretches.pop()
            dropped = _dropped(reason)
            if len(stretch) == 1 or (dropped is not None and dropped >= len(stretch)):
                bad += [Refused(one, reason) for one in stretch]
                continue
            if left < 2:
                bad += [Refused(one, f"one of several: {reason}") for one in _suspects(stretch, reason, dropped)]
                continue
            middle = len(stretch) // 2
            left -= 2
            for half in (stretch[middle:], stretch[:middle]):
                try:
                    self._post(Block.of(half))
                except _LargeError:
                    bad += self._parts(half, _TOO_LARGE)
                except _BadError as refusal:
                    stretches.append((half, str(refusal)))
        return bad

    def _set_aside(self, one: Refused) -> None:
        if one.line not in self._seen:  # a batch that is tried again is not named again
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen.add(one.line)
            self._refuse(one)

    def _renew(self) -> None:
        """The token may have been mended where it is kept."""
        with suppress(PlanError):
            self._client.api_client.default_headers["Authorization"] = f"Token {secret(self.to.token).reveal()}"

    def _post(self, block: Block) -> None:
        from influxdb_client.rest import ApiException
        from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError

        try:
            self._api.write(self.to.bucket, self.to.org, block.text)  # in ns, unless it is told otherwise
        except ApiException as error:
            if error.status in {400, 401, 403}:
                self._renew()
            raise _judged(error.status, _said(error), self.to, error.headers or {}) from None
        except (ReadTimeoutError, TooSlowError):
            raise Passing(f"{self.to.url} did not answer within {self.to.timeout_s:g} s", slow=True) from None
        except ProtocolError:
            raise Passing(f"{self.to.url} broke off before it had answered") from None
        except (HTTPError, OSError):
            raise Passing(f"{self.to.url} cannot be reached: is InfluxDB running there?") from None


def _judged(status: int | None, said: str, to: Influxdb, headers: Mapping[str, str]) -> Exception:
    """What an answer that is no success means; ``said`` is the server's sentence, or "" if it gave none in JSON."""
    if not status:
        return _wrong(f"{to.url} shows a certificate that is not trusted, or speaks no TLS: give ca, or mend the url")
    if status in {400, 422} and said:
        return _BadError(said, partial=status == 422)
    if status == 400:  # of vmauth, for a token that it does not know
        return _wrong(f"{to.url} answers 400, and not as InfluxDB does: mend url, or the token of what is before it")
    if status == 413:
        return _LargeError()
    if status in {401, 403}:
        return _wrong(f"{to.url} does not let this token write into {to.org}/{to.bucket}: mend token, org or bucket")
    if status == 404:
        return _wrong(f"{to.url} has no bucket {to.bucket} in {to.org}: make it, or mend org and bucket")
    if 300 <= status < 400:
        return _wrong(f"{to.url} sends writers elsewhere{_elsewhere(headers)}: write that address into the plan")
    if "no space left" in said:  # what could not be opened meanwhile, InfluxDB tries again only when it starts
        return Passing(f"{to.url} has no room on its disk: make room there, and restart InfluxDB if that is not enough")
    asked = headers.get("Retry-After") or ""
    after_s = min(float(asked), _LONGEST_ASKED_S) if asked.isdecimal() else None
    return Passing(f"{to.url} answers {status}{f': {said}' if said else ''}", after_s)


def _wrong(why: str) -> Passing:
    return Passing(why, wrong=True)


def _said(error: ApiException) -> str:
    """The server's own sentence, if it answers as InfluxDB does: in JSON."""
    import json

    try:
        told = json.loads(error.body or "")
    except (ValueError, RecursionError):
        return ""
    found = (told.get("message") or told.get("error") or "") if isinstance(told, dict) else ""
    return harmless(" ".join(str(found).split())[:500])


def _elsewhere(headers: Mapping[str, str]) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(headers.get("Location") or "")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return harmless(f", to {parts.scheme}://{parts.hostname}{port}") if parts.hostname else ""


def _dropped(why: str) -> int | None:
    """How many lines of a partial write were dropped, if the server says so."""
    found = re.search(r"\bdropped=(\d{1,9})\b", why)
    return int(found[1]) if found else None


def _suspects(lines: Sequence[bytes], why: str, dropped: int | None) -> Sequence[bytes]:
    """As many lines as a refusal means, of the measurement that it names if it names one."""
    named = why.partition('on measurement "')[2].partition('"')[0].encode()
    suspects = [one for one in lines if named and one.replace(b"\\", b"").startswith(named)] or lines
    return suspects[: 1 if dropped is None else dropped]


class Pauses:
    """How long to wait before the next try: doubling, with jitter, up to half a minute."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - so that many collectors do not come back at once
        self._next_s = _FIRST_PAUSE_S

    def next_s(self, passing: Passing) -> float:
        """Seconds until the next try."""
        pause_s = self._next_s * self._random.uniform(0.5, 1.0)
        self._next_s = min(LONGEST_PAUSE_S, self._next_s * 2)
        return max(pause_s, passing.after_s or 0.0)

    def well(self) -> None:
        """It worked."""
        self._next_s = _FIRST_PAUSE_S


def influxdb_of(url: str, org: str | None, bucket: str | None, token: str | None, ca: str | None = None) -> Influxdb:
    """Where ``influxdb://HOST[:8086]?org=O&bucket=B&token=env:NAME`` leads (``influxdbs://`` over TLS, and http:// as
    it is); options win over what the address says, and ``&precision=ms`` cuts the times of samples. Raises PlanError
    for what is missing.

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
    found = {"org": org or told.get("org"), "bucket": bucket or told.get("bucket"), "token": token or told.get("token")}
    for name, value in found.items():
        if not value:
            raise PlanError(f"--to: no {name} is given: add ?{name}=… to the address, or --{name}")
    from soakwatch.core.secrets import reference

    try:
        held = reference(found["token"])
    except ValueError as error:
        raise PlanError(f"--to: token: {error}") from None
    if told.get("precision", "ns") not in GRAINS_NS:
        raise PlanError(f"--to: precision: write {', '.join(GRAINS_NS)}")
    grain_ns = GRAINS_NS[told.get("precision", "ns")]
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = "" if parts.scheme.startswith("http") else ":8086"
    place = f"{schemes[parts.scheme]}://{host}{f':{port}' if port else default}{parts.path.rstrip('/')}"
    return Influxdb(place, str(found["org"]), str(found["bucket"]), held, ca=ca, grain_ns=grain_ns)
