"""A certificate, key and token for an agent that serves HTTPS: self-signed, pinned by its fingerprint."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from soakwatch.core.errors import SoakwatchError

_DAYS = 3650  # the date does not matter: the fingerprint is what is verified


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The files that were written, and the certificate's SHA-256 as hex digits."""

    cert: Path
    key: Path
    token: Path
    fingerprint: str


def write_certificate(folder: Path, name: str) -> CertificateFiles:
    """Writes cert.pem, key.pem and token, readable by their owner only. Raises SoakwatchError; nothing is replaced."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    now = dt.datetime.now(dt.UTC)
    cert = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = CertificateFiles(
        folder / "cert.pem",
        folder / "key.pem",
        folder / "token",
        hashlib.sha256(cert.public_bytes(serialization.Encoding.DER)).hexdigest(),
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(files.cert, cert.public_bytes(pem))
        _write(files.key, key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
        _write(files.token, f"{secrets.token_urlsafe(32)}\n".encode())
    except FileExistsError as error:
        raise SoakwatchError(f"{error.filename} already exists: give another folder, or remove it") from None
    except OSError as error:
        raise SoakwatchError(f"{folder} cannot be written: {(error.strerror or 'no reason given').lower()}") from None
    return files


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
