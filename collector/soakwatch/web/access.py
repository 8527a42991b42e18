"""Who may ask: a token in a file that only its owner reads, and an address that is loopback or speaks TLS."""

from __future__ import annotations

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

_SHORTEST, _LONGEST = 16, 1024
_BACKLOG = 64


class Token:
    """What a client has to show; it never shows itself."""

    __slots__ = ("_bytes", "file")

    def __init__(self, text: str, file: Path | None = None) -> None:
        self._bytes = text.encode()
        self.file = file

    def fits(self, header: str) -> bool:
        """Whether an Authorization header holds it; takes as long for a wrong one as for the right one."""
        return hmac.compare_digest(header.encode("utf-8", "replace"), b"Bearer " + self._bytes)

    def key(self) -> bytes:
        """The key of what is derived from it."""
        return self._bytes

    def __repr__(self) -> str:
        return "Token()"


def bound(plan: WebPlan) -> socket.socket:
    """A socket that listens where the plan says. Raises PlanError as ``address``, SoakwatchError if it is taken."""
    host, port = address(plan)
    try:
        return _listening(host, port)
    except OSError as error:
        if not plan.listen:
            with suppress(OSError):
                return _listening(host, 0)
        why = (error.strerror or "no reason given").lower()
        raise SoakwatchError(f"nothing can be served on {host}:{port}: {why}") from None


def certified(plan: WebPlan) -> ssl.SSLContext | None:
    """The server's side of TLS; None where the plan names no certificate. Raises PlanError."""
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
    """The token that the plan refers to; else the one in the folder's ``web.token``, which is made if need be.

    Raises PlanError for a secret that is missing or short, SoakwatchError if the file cannot be written.
    """
    if plan.token is not None:
        found = secret(plan.token)
        return Token(_long_enough(found))
    file = folder / TOKEN_FILE
    kept = _kept(file)
    if kept is None:
        kept = secrets.token_urlsafe(32)
        try:
            _write(file, kept)
        except OSError as error:
            raise SoakwatchError(f"the token's file {file} cannot be written: {error.strerror}") from None
    return Token(kept, file)


def served_at(folder: Path) -> tuple[str, Token] | None:
    """Where a folder is served and the token of it, as its files say; None where there are none.

    Raises SoakwatchError if the token is not among them.
    """
    try:
        url = (folder / ADDRESS_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    kept = _kept(folder / TOKEN_FILE)
    if kept is None:
        raise SoakwatchError(f"{folder} is served at {url} with a token of its own: enter it on that page")
    return url, Token(kept, folder / TOKEN_FILE)


def write_address(folder: Path, url: str) -> Path:
    """Tell in a file of the folder where it is served. Raises OSError."""
    file = folder / ADDRESS_FILE
    _write(file, url)
    return file


def _long_enough(found: Secret) -> str:
    text = found.reveal()
    if not _SHORTEST <= len(text) <= _LONGEST or not text.isascii() or not text.isprintable() or " " in text:
        raise PlanError(f"the token of {found.reference} is not {_SHORTEST} to {_LONGEST} letters, digits and signs")
    return text


def _kept(file: Path) -> str | None:
    """A token of an earlier life, if nobody else could have read or written it."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
        text = os.read(descriptor, _LONGEST + 2).decode("ascii", "replace").strip() if own else ""
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return text if len(text) >= 2 * _SHORTEST and text.isprintable() else None


def _write(file: Path, text: str) -> None:
    """A file that was never readable for others, not even for a moment, and is never half a file."""
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


def _listening(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
        made.settimeout(0)
    except OSError:
        made.close()
        raise
    return made
