"""TLS towards a server: verified by the system's authorities, by a file, or by the pinned digest of its certificate."""

from __future__ import annotations

import asyncio
import hashlib
import re
import socket
import ssl
from typing import Annotated

from pydantic import AfterValidator

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import SourceError

_PIN = re.compile(r"(?:sha256[:=])?((?:[0-9a-f]{2}:?){31}[0-9a-f]{2})", re.IGNORECASE)


def pin_of(text: str) -> str:
    """The digest of a pin such as ``sha256:9f…`` (colons between bytes are allowed); ValueError if it is none."""
    match = _PIN.fullmatch(text.strip())
    if match is None:
        raise ValueError("a pin is the SHA-256 of the server's certificate in hex: openssl x509 -fingerprint -sha256")
    return match[1].replace(":", "").lower()


Pin = Annotated[str, AfterValidator(pin_of)]
"""A key of a source: the digest of the one certificate that is trusted."""


def verifying(ca: str | None) -> ssl.SSLContext:
    """A context that verifies certificate and name, by a CA bundle where one is given. Raises PlanError."""
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        why = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise PlanError(f"the CA bundle {ca} cannot be used: {why}") from None


def unverified() -> ssl.SSLContext:
    """A context that verifies nothing; only for looking whether a server answers at all, never with a secret."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def certificate_of(host: str, port: int, pin: str, patience_s: float) -> bytes:
    """The certificate (DER) that a server shows, if it is the pinned one.

    Raises SourceError with the digest that was seen, or if nothing answers. Nothing is sent before.
    """
    try:
        seen = await asyncio.to_thread(_certificate, host, port, patience_s)
    except TimeoutError:
        raise SourceError(f"{host}:{port} did not show its certificate within {patience_s:g} s") from None
    except (OSError, ssl.SSLError) as error:
        raise SourceError(f"{host}:{port} shows no certificate: {_why(error)}") from None
    digest = hashlib.sha256(seen).hexdigest()
    if digest != pin_of(pin):
        raise SourceError(
            f"{host}:{port} shows another certificate than the pinned one, refused: sha256:{digest}; if the server got "
            "a new certificate, pin that"
        )
    return seen


async def pinned(host: str, port: int, pin: str, patience_s: float) -> ssl.SSLContext:
    """A context that trusts the one certificate with this digest, whatever names it holds.

    The certificate is fetched first and compared, so that no secret is sent to a server that has another one. Raises
    SourceError as ``certificate_of`` does.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the pin says more than a name
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=await certificate_of(host, port, pin, patience_s))
    return context


def _certificate(host: str, port: int, patience_s: float) -> bytes:
    with (
        socket.create_connection((host, port), timeout=patience_s) as plain,
        unverified().wrap_socket(plain, server_hostname=host) as secured,
    ):
        return secured.getpeercert(binary_form=True) or b""


def _why(error: OSError) -> str:
    return (getattr(error, "reason", None) or error.strerror or type(error).__name__).lower().replace("_", " ")
