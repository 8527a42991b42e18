"""Time stamps of seals by RFC 3161: an authority says that it saw the digest, and when.

``openssl ts`` makes the request and checks the answer; nothing here is cryptography of its own.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.stderr_tail import reason_in

_TIMEOUT_S = 20.0
_MOST_BYTES = 1 << 20
_TIME = re.compile(r"^Time stamp: (.+)$", re.MULTILINE)


class TimeStampError(SoakwatchError):
    """There is no time stamp, or it is not one of this seal."""


def time_stamp(text: str, url: str) -> bytes:
    """The answer of the authority at ``url`` about a text. Raises TimeStampError."""
    # A collector that runs for days needs no HTTP client for a stamp at its end.
    from soakwatch.sources.transport.http_client import REQUEST_ERRORS, failure_of, sync_client
    from soakwatch.sources.transport.tls import verifying

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise TimeStampError("--timestamp is not an address such as https://tsa.example.com/tsr")
    where = f"the time-stamp authority {parts.hostname}"
    with tempfile.TemporaryDirectory(prefix="soakwatch-stamp-") as folder:
        data, query = _written(folder, text), Path(folder) / "query.tsq"
        asked = _openssl(["-query", "-data", str(data), "-sha256", "-cert", "-out", str(query)])
        if asked.returncode:
            raise TimeStampError(f"openssl cannot make a request ({reason_in(asked.stderr)})")
        headers = {"content-type": "application/timestamp-query", "user-agent": "soakwatch"}
        try:
            context = verifying(None) if parts.scheme == "https" else None
            with (
                sync_client(headers, _TIMEOUT_S, owner=where, context=context) as client,
                client.stream("POST", url, content=query.read_bytes()) as response,
            ):
                status, answer = response.status_code, b""
                for piece in response.iter_bytes():
                    answer += piece
                    if len(answer) > _MOST_BYTES:
                        raise TimeStampError(f"{where} answers with more than {_MOST_BYTES} bytes")
        except (PlanError, ValueError, *REQUEST_ERRORS) as error:
            raise TimeStampError(failure_of(error, where, _TIMEOUT_S).text) from None
    if status != 200:
        raise TimeStampError(f"{where} answers with the status {status}")
    if not stamped_time(answer):
        raise TimeStampError(f"{where} does not grant a time stamp")
    return answer


def stamped_time(stamp: bytes) -> str:
    """The time that a time stamp says, as openssl shows it; nothing is checked by that. "" where it says none."""
    with tempfile.TemporaryDirectory(prefix="soakwatch-stamp-") as folder:
        file = Path(folder) / "seal.tsr"
        file.write_bytes(stamp)
        shown = _openssl(["-reply", "-in", str(file), "-text"])
    found = _TIME.search(shown.stdout) if shown.returncode == 0 else None
    return found[1].strip() if found else ""


def check_stamp(text: str, stamp: bytes, authority: Path) -> str:
    """The time of a time stamp of this text by an authority whose root certificate is in a file (PEM).

    Raises TimeStampError if it is not of the text, or not by that authority.
    """
    if not authority.is_file():
        raise TimeStampError(f"--tsa-ca {authority}: there is no such file")
    with tempfile.TemporaryDirectory(prefix="soakwatch-stamp-") as folder:
        data, file = _written(folder, text), Path(folder) / "seal.tsr"
        file.write_bytes(stamp)
        words = ["-verify", "-data", str(data), "-in", str(file), "-CAfile", str(authority.absolute())]
        done = _openssl(words)
    if done.returncode:
        raise TimeStampError(f"its time stamp is not one of this seal by {authority} ({reason_in(done.stderr)})")
    return stamped_time(stamp)


def _written(folder: str, text: str) -> Path:
    file = Path(folder) / "seal"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    return file


def _openssl(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["openssl", "ts", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise TimeStampError("there is no openssl: install it for time stamps") from None
    except subprocess.TimeoutExpired:
        raise TimeStampError(f"openssl did not answer within {_TIMEOUT_S:g} s") from None
