"""Where series are read: ``influxdb://HOST:8086/BUCKET?run=NAME&token=env:INFLUX_TOKEN``, and what of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from soakwatch.core.secrets import reference
from soakwatch.core.suggest import hint
from soakwatch.sinks.addresses import SCHEMES
from soakwatch.sources.tables.errors import DataError

PORT = 8086
_KEYS = ("run", "org", "bucket", "token", "from", "to", "host", "tls", "ca", "timeout")
_EXAMPLE = "write influxdb://HOST:8086/BUCKET?run=NAME&token=env:INFLUX_TOKEN"
_TRUE = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket and what is wanted of it: a run of Soakwatch by its name, else anybody's series.

    ``token`` is a reference (``env:NAME``, ``file:PATH``) or None for a server that asks for none; times are UTC ns,
    from_ns <= time < to_ns. ``host`` is the value of the tag host (agent_host, source) that is wanted alone.
    """

    url: str
    bucket: str
    run: str | None = None
    org: str | None = None
    token: str | None = None
    ca: str | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    host: str | None = None
    timeout_s: float = 60.0

    @property
    def shown(self) -> str:
        """How sentences name it."""
        return f"{self.url}/{self.bucket}"


def place_of(text: str) -> Place:
    """What an address means. Raises DataError, in a sentence that never holds a secret.

    >>> place_of("influxdb://h/soak?run=fw").url, place_of("influxdbs://h:443/soak").url
    ('http://h:8086', 'https://h:443')
    """
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise DataError(f"the address of the database cannot be: its host or port is none: {_EXAMPLE}") from None
    if not host:
        raise DataError(f"the address {parts.scheme}:// names no host: {_EXAMPLE}")
    where = f"{parts.scheme}://{host}"
    if parts.password is not None or parts.username is not None:
        raise DataError(f"{where}: a user or password stands in this address: remove it, and give ?token=env:NAME")
    told: dict[str, str] = {}
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key not in _KEYS:
            raise DataError(f"{where}: there is no key {key[:40]!r} in an address{hint(key, _KEYS)}")
        if key in told:
            raise DataError(f"{where}: the key {key} stands there twice: write it once")
        if not value:
            raise DataError(f"{where}: the key {key} has no value: write {key}=… or leave it out")
        told[key] = value
    return _place(where, host, port, parts.scheme.lower(), unquote(parts.path).strip("/"), told)


def _place(where: str, host: str, port: int | None, scheme: str, path: str, told: Mapping[str, str]) -> Place:
    bucket = told.get("bucket", path)
    if path and "bucket" in told and path != bucket:
        raise DataError(f"{where}: the buckets {path!r} and {bucket!r} are both named: name one")
    if not bucket:
        raise DataError(f"{where}: no bucket is named: {_EXAMPLE}")
    held = told.get("token")
    if held is not None:
        try:
            reference(held)
        except ValueError:
            raise DataError(
                f"{where}: a token is never written into an address, which stays in the shell's history: write "
                "token=env:NAME or token=file:PATH"
            ) from None
    tls = told.get("tls", "no").lower()
    if tls not in _TRUE:
        raise DataError(f"{where}: tls={tls[:20]} says neither yes nor no: write tls=1 or leave it out")
    web = "https" if _TRUE[tls] else SCHEMES[scheme]
    shown = f"[{host}]" if ":" in host else host
    begin, end = (_moment(where, key, told.get(key)) for key in ("from", "to"))
    if begin is not None and end is not None and end <= begin:
        raise DataError(f"{where}: to={told['to']} is not after from={told['from']}: swap them")
    if told.get("run") and (begin is not None or end is not None or told.get("host")):
        raise DataError(f"{where}: run=… is read whole: leave out from, to and host")
    url = f"{web}://{shown}:{PORT if port is None else port}"
    return Place(
        url,
        bucket,
        told.get("run"),
        told.get("org"),
        held,
        told.get("ca"),
        begin,
        end,
        told.get("host"),
        _seconds(where, told.get("timeout")),
    )


def _seconds(where: str, text: str | None) -> float:
    from soakwatch.core.units import seconds

    try:
        found = seconds(text or "60s")
    except ValueError as error:
        raise DataError(f"{where}: timeout: {error}") from None
    return min(max(found, 1.0), 3600.0)


def _moment(where: str, key: str, text: str | None) -> int | None:
    """A time in UTC ns, as tables have it."""
    if text is None:
        return None
    from soakwatch.sources.tables.times import TimeOptions, time_reading

    wrong = f"{where}: {key}={text[:40]} is no time: write one such as 2026-11-21T20:00:00Z"
    try:
        moments = time_reading([text], TimeOptions(), key).read([text])
    except DataError:
        raise DataError(wrong) from None
    if bool(moments.bad[0]):
        raise DataError(wrong)
    return int(moments.time_ns[0])
