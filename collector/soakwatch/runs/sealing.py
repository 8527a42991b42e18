"""Sealing a record that is open for writing: signed by an SSH key, and stamped by a time-stamp authority (RFC 3161),
which says that it saw the digest, and when.

``openssl ts`` makes the request and checks the answer; nothing here is cryptography of its own.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.ssh_signature import SignatureError, sign
from soakwatch.core.stderr_tail import reason_in
from soakwatch.record import Record, RecordView
from soakwatch.record.seal import Checked

_TIMEOUT_S = 20.0
_MOST_BYTES = 1 << 20
_TIME = re.compile(r"^Time stamp: (.+)$", re.MULTILINE)


class TimeStampError(SoakwatchError):
    """There is no time stamp, or it is not one of this seal."""


@dataclass(frozen=True, slots=True)
class Sealing:
    """By what a seal is signed: an SSH key, or nothing; and the address of who stamps its time, or ""."""

    key: Path | None = None
    timestamp: str = ""

    def try_out(self) -> None:
        """Sign something, so that a key that cannot be used is found out before a run. Raises SignatureError."""
        if self.key is not None:
            sign("a trial\n", self.key)


def seal(record: Record, how: Sealing, time_ns: int | None = None) -> tuple[Checked, str]:
    """Seal all that the record holds, at a time (UTC ns; default: now), sign the seal and let it be stamped; what came
    of it, and why it could not be signed or stamped, or "".

    Raises RecordError.
    """
    made = record.put_seal(time.time_ns() if time_ns is None else time_ns)
    doubts: list[str] = []
    if how.key is not None and not made.signature:
        try:
            record.sign_seal(made.number, sign(made.document, how.key))
        except SignatureError as error:
            doubts.append(str(error))
    if how.timestamp and not made.stamp:
        try:
            record.sign_seal(made.number, "", time_stamp(made.document, how.timestamp))
        except TimeStampError as error:
            doubts.append(str(error))
    with RecordView.open(record.path) as view:
        return view.check(), "; ".join(doubts)


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
