"""Signs files and checks signatures with SSH keys, by ``ssh-keygen -Y``; there is no cryptography of our own here.

Nothing prompts: a key with a passphrase must be in an agent, and its public key is named.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.stderr_tail import reason_in

NAMESPACE = "soakwatch@record"
"""Namespace of a record's signature: it is not valid for anything else."""
_TIMEOUT_S = 60.0  # a hardware key may wait for a touch
_MAGIC = b"SSHSIG"


class SignatureError(SoakwatchError):
    """Signing failed, or a signature is not valid."""


def sign(text: str, key: Path) -> str:
    """The signature of a text by a private key, or by the agent's key if its public key is named.

    Raises SignatureError if that needs a prompt, or fails.
    """
    if not key.is_file():
        raise SignatureError(f"--sign-with {key}: there is no such file: name an SSH key (ssh-keygen -t ed25519)")
    with tempfile.TemporaryDirectory(prefix="soakwatch-sign-") as folder:
        file = Path(folder) / "seal"
        file.write_text(text, encoding="utf-8", errors="surrogateescape")
        done = _run(["-Y", "sign", "-n", NAMESPACE, "-f", str(key.absolute()), str(file)])
        if done.returncode:
            hint = "a key with a passphrase must be in an agent: ssh-add it, and name its public key"
            raise SignatureError(f"--sign-with {key}: ssh-keygen cannot sign ({reason_in(done.stderr)}); {hint}")
        return (Path(folder) / "seal.sig").read_text(encoding="utf-8")


def signer(text: str, signature: str, allowed: Path) -> str:
    """Who signed a text, by a file of allowed signers (``man ssh-keygen``, ALLOWED SIGNERS).

    Raises SignatureError if the signer is not in it, or the text is another.
    """
    if not allowed.is_file():
        raise SignatureError(f"--allowed-signers {allowed}: there is no such file")
    data = text.encode("utf-8", "surrogateescape")
    with tempfile.TemporaryDirectory(prefix="soakwatch-sign-") as folder:
        file = Path(folder) / "seal.sig"
        file.write_text(signature, encoding="utf-8", errors="surrogateescape")
        where = ["-s", str(file), "-f", str(allowed.absolute())]
        found = _run(["-Y", "find-principals", *where])
        names = found.stdout.split("\n")[0].split(",") if found.returncode == 0 else []
        for name in filter(None, (name.strip() for name in names)):
            done = _run(["-Y", "verify", "-n", NAMESPACE, "-I", name, *where], data)
            if done.returncode == 0:
                return name
            why = reason_in(done.stdout if done.stdout.strip() else done.stderr)
            raise SignatureError(f"the signature of {name} ({key_of(signature)}) is not good for this seal: {why}")
    raise SignatureError(f"it was signed with {key_of(signature)}, which is of nobody in {allowed}")


def key_of(signature: str) -> str:
    """Type and fingerprint of the key that a signature claims, as ``ssh-keygen -l`` shows them; not verified. "" if it
    cannot be read."""
    try:
        body = base64.b64decode("".join(line for line in signature.splitlines() if not line.startswith("-----")))
        if not body.startswith(_MAGIC):
            return ""
        blob = _field(body, len(_MAGIC) + 4)
        kind = _field(blob, 0).decode("ascii")
    except (ValueError, binascii.Error):
        return ""
    return f"{kind} SHA256:{base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip('=')}"


def _field(body: bytes, at: int) -> bytes:
    size = int.from_bytes(body[at : at + 4], "big")
    if at + 4 + size > len(body):
        raise ValueError("cut short")
    return body[at + 4 : at + 4 + size]


def _run(words: Sequence[str], data: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Runs ``ssh-keygen`` without a terminal, so that it cannot prompt. Raises SignatureError."""
    try:
        done = subprocess.run(
            ["ssh-keygen", *words],
            input=data,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            start_new_session=True,
            env=_without_questions(os.environ),
        )
    except FileNotFoundError:
        raise SignatureError("there is no ssh-keygen: install OpenSSH's client to sign or check signatures") from None
    except subprocess.TimeoutExpired:
        raise SignatureError(f"ssh-keygen did not answer within {_TIMEOUT_S:g} s") from None
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )


def _without_questions(environment: Mapping[str, str]) -> dict[str, str]:
    asking = {"DISPLAY", "WAYLAND_DISPLAY", "SSH_ASKPASS"}
    return {**{k: v for k, v in environment.items() if k not in asking}, "SSH_ASKPASS_REQUIRE": "never"}
