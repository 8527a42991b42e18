"""The token, secrets derived from it, and the listening socket of a server.

The token is in a file that only its owner can read; links and cookies are derived from it and never stored. The address
is loopback or protected by TLS.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import socket
import ssl
import stat
from contextlib import suppress
from pathlib import Path

from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.secrets import Secret, secret
from soakwatch.plan.web import WebPlan, address
from soakwatch.runs.catalog import ADDRESS_FILE, TOKEN_FILE

_MIN_TOKEN_LENGTH, _MAX_TOKEN_LENGTH = 16, 1024
_BACKLOG = 64
MAX_USED_CODES = 1000
"""So many one-time codes are remembered as used."""
UNUSED = 75
"""The exit code of a run's server that nobody has asked for long: it is started again for whoever asks next."""


class Token:
    """The secret that a client must present; its representation does not contain it."""

    __slots__ = ("_bytes", "file")

    def __init__(self, text: str, file: Path | None = None) -> None:
        self._bytes = text.encode()
        self.file = file

    def fits(self, header: str) -> bool:
        """Whether an Authorization header contains it, compared in constant time."""
        return hmac.compare_digest(header.encode("utf-8", "replace"), b"Bearer " + self._bytes)

    def key(self) -> bytes:
        """The HMAC key for derived secrets."""
        return self._bytes

    def __repr__(self) -> str:
        return "Token()"


def derived(token: Token, purpose: str) -> str:
    """A secret for one purpose that only the holder of the token can compute (HMAC-SHA256, RFC 2104)."""
    digest = hmac.new(token.key(), f"soakwatch {purpose}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def one_time_code(token: Token, until_s: float) -> str:
    """A code that logs a browser in once, until a time (seconds since 1970)."""
    head = f"{int(until_s):x}.{secrets.token_urlsafe(9)}"
    return f"{head}.{derived(token, f'enter {head}')}"


def is_valid_code(token: Token, code: str, now_s: float) -> bool:
    """Whether a code was made with this token and has not expired. The caller must ensure that it is used once."""
    head, _, signed = code.rpartition(".")
    if not equal_in_constant_time(signed, derived(token, f"enter {head}")):
        return False
    return now_s <= int(head.partition(".")[0], 16)


def equal_in_constant_time(word: str, other: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(word.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def open_listener(plan: WebPlan) -> socket.socket:
    """A socket that listens where the plan says. Raises PlanError as ``address`` does, SoakwatchError if the address is
    taken."""
    host, port = address(plan)
    try:
        return _open_socket(host, port)
    except OSError as error:
        if not plan.listen:
            with suppress(OSError):
                return _open_socket(host, 0)
        why = (error.strerror or "no reason given").lower()
        raise SoakwatchError(f"cannot listen on {host}:{port}: {why}") from None


def tls_context(plan: WebPlan) -> ssl.SSLContext | None:
    """The server's TLS context; None without a certificate in the plan. Raises PlanError."""
    if not plan.cert or not plan.key:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(plan.cert, plan.key, password=lambda: "")
    except (OSError, ssl.SSLError, ValueError):
        raise PlanError(
            f"the certificate {plan.cert} and the key {plan.key} cannot be used: name PEM files that match,"
            " the key without a passphrase"
        ) from None
    return context


def token_for(plan: WebPlan, folder: Path) -> Token:
    """The token that the plan refers to, else the one in the folder's ``web.token``, which is created if missing.

    Raises PlanError for a missing or short secret, SoakwatchError if the file cannot be written.
    """
    if plan.token is not None:
        given = secret(plan.token)
        return Token(_checked(given))
    file = folder / TOKEN_FILE
    stored = _stored_token(file)
    if stored is None:
        stored = secrets.token_urlsafe(32)
        try:
            _write(file, stored)
        except OSError as error:
            raise SoakwatchError(f"the token file {file} cannot be written: {error.strerror}") from None
    return Token(stored, file)


def served_at(folder: Path) -> tuple[str, Token] | None:
    """The URL and token of a served folder, from its files; None if it is not served.

    Raises SoakwatchError if the token is not in a file.
    """
    try:
        url = (folder / ADDRESS_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    stored = _stored_token(folder / TOKEN_FILE)
    if stored is None:
        raise SoakwatchError(f"{folder} is served at {url} with a token of its own: open that page and enter the token")
    return url, Token(stored, folder / TOKEN_FILE)


def write_address(folder: Path, url: str) -> Path:
    """Write the server's URL to a file in the folder. Raises OSError."""
    file = folder / ADDRESS_FILE
    _write(file, url)
    return file


def _checked(given: Secret) -> str:
    text = given.reveal()
    if (
        not _MIN_TOKEN_LENGTH <= len(text) <= _MAX_TOKEN_LENGTH
        or not text.isascii()
        or not text.isprintable()
        or " " in text
    ):
        raise PlanError(
            f"the token of {given.reference} must have {_MIN_TOKEN_LENGTH} to {_MAX_TOKEN_LENGTH} printable"
            " ASCII characters without blanks"
        )
    return text


def _stored_token(file: Path) -> str | None:
    """A stored token, if nobody else could read or write its file."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
        text = os.read(descriptor, _MAX_TOKEN_LENGTH + 2).decode("ascii", "replace").strip() if own else ""
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return text if len(text) >= 2 * _MIN_TOKEN_LENGTH and text.isprintable() else None


def _write(file: Path, text: str) -> None:
    """Write a file atomically that others can never read."""
    new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as out:
            out.write(f"{text}\n")
        new.replace(file)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise


def _open_socket(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.settimeout(0)
    except OSError:
        listener.close()
        raise
    return listener
