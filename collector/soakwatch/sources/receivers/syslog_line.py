"""Parses one syslog line leniently: RFC 5424, RFC 3164, and the variants of Cisco and others.

A line of no known form is kept as text. Its time is the time of arrival, since the device's clock may be wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_MESSAGE_BYTES = 8192  # RFC 5424 section 6.1 asks for 2048 at least

SEVERITIES = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
_BOM = "\ufeff"
_PRI = re.compile(r"<([0-9]{1,3})>")
_HEAD_5424 = re.compile(r"[0-9]{1,2} (\S{1,64}) (\S{1,255}) (\S{1,128}) (\S{1,128}) (\S{1,64})(?: |$)")
_SEQUENCE = re.compile(r"[0-9]{1,12}: ")  # Cisco numbers its lines
_STAMP = re.compile(
    r"[*.]?(?:[A-Z][a-z]{2} {1,2}[0-9]{1,2}(?: [0-9]{4})? [0-9:]{5,8}(?:\.[0-9]{1,9})?(?: [A-Z]{2,5})?"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,20}(?:Z|[+-][0-9:]{4,6})?)(?: ?: |: ?| )"
)
_HOST = re.compile(r"([A-Za-z0-9][\w.:-]{0,254})(?<!:)(?: : | )(?=\S)")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A parsed line. ``severity`` is 0 (worst) to 7, None without a valid priority.

    ``text`` is ``tag[pid]: message`` as in a log file, whatever its form was.
    """

    severity: int | None
    host: str
    text: str


def log_line(data: bytes) -> LogLine | None:
    """Parses one message; None if it is blank.

    >>> log_line(b"<34>1 2026-01-02T03:04:05Z fw sshd 712 ID47 [a@1 b=\\"c]\\"] refused")
    LogLine(severity=2, host='fw', text='sshd[712]: refused')
    >>> log_line(b"<13>Jan  2 03:04:05 leaf1 bgpd[9]: down")
    LogLine(severity=5, host='leaf1', text='bgpd[9]: down')
    >>> log_line(b"<189>77: *Mar  1 18:46:11.123 UTC: %SYS-5-CONFIG_I: Configured")
    LogLine(severity=5, host='', text='%SYS-5-CONFIG_I: Configured')
    """
    text = data[:MAX_MESSAGE_BYTES].decode("utf-8", "replace").removeprefix(_BOM).strip("\0\r\n\t ")
    if not text:
        return None
    severity, rest = _priority(text)
    head = _HEAD_5424.match(rest)
    if severity is not None and head is not None:
        return _of_5424(severity, head, rest[head.end() :])
    return _of_3164(severity, rest)


def _priority(text: str) -> tuple[int | None, str]:
    match = _PRI.match(text)
    if match is None or int(match[1]) > 191:
        return None, text
    return int(match[1]) % 8, text[match.end() :]


def _of_5424(severity: int, head: re.Match[str], rest: str) -> LogLine:
    _, host, app, process, _ = head.groups()
    message = _after_data(rest).lstrip(" ").removeprefix(_BOM).strip()
    tag = "" if app == "-" else app if process == "-" else f"{app}[{process}]"
    return LogLine(severity, "" if host == "-" else host, f"{tag}: {message}" if tag else message)


def _after_data(rest: str) -> str:
    """The text after the structured data; all of it if that is malformed."""
    if rest.startswith("-"):
        return rest[1:]
    index, quoted = 0, False
    if not rest.startswith("["):
        return rest
    while index < len(rest):
        char = rest[index]
        if quoted and char == "\\":
            index += 1
        elif char == '"':
            quoted = not quoted
        elif char == "]" and not quoted and rest[index + 1 : index + 2] != "[":
            return rest[index + 1 :]
        index += 1
    return rest


def _of_3164(severity: int | None, rest: str) -> LogLine:
    sequence = _SEQUENCE.match(rest)
    if sequence is not None:
        rest = rest[sequence.end() :]
    stamp = _STAMP.match(rest)
    if stamp is None:
        return LogLine(severity, "", rest.strip())
    rest = rest[stamp.end() :].lstrip()
    host = _HOST.match(rest)
    if host is None:
        return LogLine(severity, "", rest)
    return LogLine(severity, host[1], rest[host.end() :])
