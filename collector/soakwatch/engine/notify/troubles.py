"""Why a service did not accept a message, in our own sentences: those of Apprise and libraries may hold a password.

Apprise returns only success or failure and logs the reason. Its log lines are matched against known texts; nothing of a
line is passed on but the three digits of a status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trouble:
    """A sentence, and whether a retry may succeed. A higher ``rank`` is more specific."""

    sentence: str
    again: bool
    rank: int


UNKNOWN = Trouble("it did not accept the message", again=True, rank=0)
_HTTP = re.compile(r"error=(\d{3})\b")
_SMTP = re.compile(r"\((\d{3}), b?['\"]")
_LOGIN = frozenset({"530", "534", "535", "538"})
_HTTP_LOGIN = frozenset({"401", "403", "407"})
_RETRIED_STATUS = frozenset({"408", "425", "429"})
_KNOWN = (
    (
        re.compile(r"starttls extension not supported", re.IGNORECASE),
        Trouble("it offers no STARTTLS, and its address asks for it", again=False, rank=3),
    ),
    (
        re.compile(r"auth extension not supported|no suitable authentication", re.IGNORECASE),
        Trouble("it offers no login, and its address has one", again=False, rank=3),
    ),
    (
        re.compile(r"certificate[ _]verify[ _]failed|certificateerror", re.IGNORECASE),
        Trouble("it shows a certificate that is not trusted", again=False, rank=3),
    ),
    (
        re.compile(r"wrong[ _]version[ _]number|unknown protocol|record layer failure", re.IGNORECASE),
        Trouble("it does not speak TLS on that port", again=False, rank=3),
    ),
    (
        re.compile(r"connection refused|errno 111", re.IGNORECASE),
        Trouble("the connection was refused", again=True, rank=3),
    ),
    (
        re.compile(
            r"name or service not known|name resolution|no address associated|getaddrinfo|nameresolution", re.IGNORECASE
        ),
        Trouble("its host name is not in the DNS", again=True, rank=3),
    ),
    (
        re.compile(r"no route to host|network is unreachable", re.IGNORECASE),
        Trouble("its host is unreachable", again=True, rank=3),
    ),
    (re.compile(r"timed out|timeout", re.IGNORECASE), Trouble("it did not answer in time", again=True, rank=2)),
    (
        re.compile(
            r"unexpectedly closed|connection reset|remotedisconnected|broken pipe|connection aborted", re.IGNORECASE
        ),
        Trouble("the connection broke off", again=True, rank=2),
    ),
    (re.compile(r"connection error", re.IGNORECASE), Trouble("it cannot be reached", again=True, rank=1)),
)


def trouble_of(line: str) -> Trouble:
    """The trouble that a log line reports; ``UNKNOWN`` if none.

    >>> trouble_of("Failed to send JSON POST notification: error=500.").sentence
    'it answers with the status 500'
    >>> trouble_of("Socket Exception: (535, b'5.7.8 bad login of soak:hunter2')").sentence
    'it refuses the login (SMTP 535)'
    """
    if (match := _HTTP.search(line)) and match[1] != "000":
        code = match[1]
        if code[0] == "2":
            return Trouble(f"it did not accept the message (status {code} with an error)", again=True, rank=4)
        if code in _HTTP_LOGIN:
            return Trouble(f"it refuses the token or login of its address (status {code})", again=False, rank=4)
        return Trouble(f"it answers with the status {code}", again=code[0] == "5" or code in _RETRIED_STATUS, rank=4)
    if "Exception" in line and (match := _SMTP.search(line)):
        code = match[1]
        if code in _LOGIN:
            return Trouble(f"it refuses the login (SMTP {code})", again=False, rank=4)
        return Trouble(f"it refuses the message (SMTP {code})", again=code[0] == "4", rank=4)
    return next((trouble for pattern, trouble in _KNOWN if pattern.search(line)), UNKNOWN)
