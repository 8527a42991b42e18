"""Parses ``influxdb://HOST:8086/BUCKET?run=NAME&token=env:INFLUX_TOKEN``: where to read, and what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from soakwatch.core.secrets import reference
from soakwatch.core.suggest import hint
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.sinks.addresses import SCHEMES

PORT = 8086
_KEYS = ("run", "org", "bucket", "token", "from", "to", "host", "tls", "ca", "timeout")
_EXAMPLE = "write influxdb://HOST:8086/BUCKET?run=NAME&token=env:INFLUX_TOKEN"
_TRUE = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Database:
    """A bucket and what to read of it: a run of Soakwatch by name, else series that others collected.

    ``token`` is a reference (``env:NAME``, ``file:PATH``) or None if the server needs none; times are UTC ns, from_ns
    <= time < to_ns. ``host`` selects by the tag host (agent_host, source).
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
        """Its name in messages."""
        return f"{self.url}/{self.bucket}"


def database_of(text: str) -> Database:
    """Parse an address. Raises DataError, whose text never holds a secret.

    >>> database_of("influxdb://h/soak?run=fw").url, database_of("influxdbs://h:443/soak").url
    ('http://h:8086', 'https://h:443')
    """
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise DataError(f"invalid address of a database: wrong host or port: {_EXAMPLE}") from None
    if not host:
        raise DataError(f"the address {parts.scheme}:// has no host: {_EXAMPLE}")
    where = f"{parts.scheme}://{host}"
    if parts.password is not None or parts.username is not None:
        raise DataError(f"{where}: this address holds a user or password: remove it and add ?token=env:NAME")
    options: dict[str, str] = {}
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key not in _KEYS:
            raise DataError(f"{where}: unknown key {key[:40]!r}{hint(key, _KEYS)}")
        if key in options:
            raise DataError(f"{where}: the key {key} is given twice: write it once")
        if not value:
            raise DataError(f"{where}: the key {key} has no value: write {key}=… or leave it out")
        options[key] = value
    return _database(where, host, port, parts.scheme.lower(), unquote(parts.path).strip("/"), options)


def _database(where: str, host: str, port: int | None, scheme: str, path: str, options: Mapping[str, str]) -> Database:
    bucket = options.get("bucket", path)
    if path and "bucket" in options and path != bucket:
        raise DataError(f"{where}: the buckets {path!r} and {bucket!r} are both named: name one")
    if not bucket:
        raise DataError(f"{where}: the bucket is missing: {_EXAMPLE}")
    token = options.get("token")
    if token is not None:
        try:
            reference(token)
        except ValueError:
            raise DataError(
                f"{where}: a token is never written into an address, which stays in the shell's history: write "
                "token=env:NAME or token=file:PATH"
            ) from None
    tls = options.get("tls", "no").lower()
    if tls not in _TRUE:
        raise DataError(f"{where}: tls={tls[:20]} is not a yes or no: write tls=1 or leave it out")
    web = "https" if _TRUE[tls] else SCHEMES[scheme]
    shown = f"[{host}]" if ":" in host else host
    begin, end = (_moment(where, key, options.get(key)) for key in ("from", "to"))
    if begin is not None and end is not None and end <= begin:
        raise DataError(f"{where}: to={options['to']} is not after from={options['from']}: swap them")
    if options.get("run") and (begin is not None or end is not None or options.get("host")):
        raise DataError(f"{where}: run=… reads the whole run: leave out from, to and host")
    url = f"{web}://{shown}:{PORT if port is None else port}"
    return Database(
        url,
        bucket,
        options.get("run"),
        options.get("org"),
        token,
        options.get("ca"),
        begin,
        end,
        options.get("host"),
        _seconds(where, options.get("timeout")),
    )


def _seconds(where: str, text: str | None) -> float:
    from soakwatch.core.units import seconds

    try:
        timeout_s = seconds(text or "60s")
    except ValueError as error:
        raise DataError(f"{where}: timeout: {error}") from None
    return min(max(timeout_s, 1.0), 3600.0)


def _moment(where: str, key: str, text: str | None) -> int | None:
    """A time in UTC ns, in any format that tables may have."""
    if text is None:
        return None
    from soakwatch.sources.tables.times import TimeOptions, time_reading

    wrong = f"{where}: {key}={text[:40]} is not a time: write one such as 2026-11-21T20:00:00Z"
    try:
        moments = time_reading([text], TimeOptions(), key).read([text])
    except DataError:
        raise DataError(wrong) from None
    if bool(moments.bad[0]):
        raise DataError(wrong)
    return int(moments.time_ns[0])
