"""Protocols of SNMPv3 as people, vendors and other programs spell them, and the one spelling that is used here."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator

_MAX_LENGTH = 64
_SHA2 = re.compile(r"(?:HMAC(?:128|192|256|384)?)?SHA2?(224|256|384|512)")
_OLD = re.compile(r"(?:HMAC(?:96)?)?(MD5|SHA)(?:(?<=SHA)1)?(?:96)?")
_DES = re.compile(r"(?:CBC(?:56)?)?DES(?:56|CBC)?")
_AES = re.compile(r"(?:CFB(?:128)?)?AES(?:CFB)?(128|192|256)?(C|CISCO|REEDER)?")
_AROUND = re.compile(r"^USM|(?:AUTH|PRIV)?(?:PROTOCOL)?$")


def auth_protocol(value: object) -> object:
    """The authentication protocol; what is none is given back as it is.

    >>> [auth_protocol(word) for word in ("sha256", "SHA2-256", "hmac-sha-256", "sha1", "usmHMACMD5AuthProtocol")]
    ['SHA-256', 'SHA-256', 'SHA-256', 'SHA', 'MD5']
    """
    word = _bare(value)
    if found := _SHA2.fullmatch(word):
        return f"SHA-{found[1]}"
    if found := _OLD.fullmatch(word):
        return found[1]
    return value


def priv_protocol(value: object) -> object:
    """The privacy protocol; what is none is given back as it is.

    >>> [priv_protocol(word) for word in ("aes", "AES128", "aes-256", "aes256c", "AES256-Cisco", "cbc-des")]
    ['AES', 'AES', 'AES-256', 'AES-256-C', 'AES-256-C', 'DES']
    """
    word = _bare(value)
    if _DES.fullmatch(word):
        return "DES"
    found = _AES.fullmatch(word)
    if found is None or (found[2] and found[1] not in {"192", "256"}):
        return value
    bits = "" if found[1] in {None, "128"} else f"-{found[1]}"
    return f"AES{bits}{'-C' if found[2] else ''}"


def _bare(value: object) -> str:
    """Letters and digits only, without what the MIBs put around them (``usm...AuthProtocol``)."""
    word = re.sub(r"[^0-9A-Z]", "", value[:_MAX_LENGTH].upper()) if isinstance(value, str) else ""
    return _AROUND.sub("", word)


AuthProtocol = Annotated[
    Literal["MD5", "SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512"], BeforeValidator(auth_protocol)
]
PrivProtocol = Annotated[
    Literal["DES", "AES", "AES-192", "AES-256", "AES-192-C", "AES-256-C"], BeforeValidator(priv_protocol)
]
"""``-C`` is Cisco's key extension (Reeder)."""
