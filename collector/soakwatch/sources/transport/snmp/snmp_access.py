"""How an agent is spoken to: address, version, credentials, and all spellings of the algorithms of SNMPv3.

Secrets are in memory only and never shown.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BeforeValidator

from soakwatch.core.errors import PlanError
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError

MIN_KEY_LENGTH = 8  # RFC 3414 section 11.2
_MAX_LENGTH = 64  # characters of a word
_SHA2 = re.compile(r"(?:HMAC(?:128|192|256|384)?)?SHA2?(224|256|384|512)")
_OLD = re.compile(r"(?:HMAC(?:96)?)?(MD5|SHA)(?:(?<=SHA)1)?(?:96)?")
_DES = re.compile(r"(?:CBC(?:56)?)?DES(?:56|CBC)?")
_AES = re.compile(r"(?:CFB(?:128)?)?AES(?:CFB)?(128|192|256)?(C|CISCO|REEDER)?")
_AROUND = re.compile(r"^USM|(?:AUTH|PRIV)?(?:PROTOCOL)?$")


def auth_protocol(value: object) -> object:
    """The authentication protocol; anything else is returned as it is.

    >>> [auth_protocol(word) for word in ("sha256", "SHA2-256", "hmac-sha-256", "sha1", "usmHMACMD5AuthProtocol")]
    ['SHA-256', 'SHA-256', 'SHA-256', 'SHA', 'MD5']
    """
    word = _bare(value)
    if match := _SHA2.fullmatch(word):
        return f"SHA-{match[1]}"
    if match := _OLD.fullmatch(word):
        return match[1]
    return value


def priv_protocol(value: object) -> object:
    """The privacy protocol; anything else is returned as it is.

    >>> [priv_protocol(word) for word in ("aes", "AES128", "aes-256", "aes256c", "AES256-Cisco", "cbc-des")]
    ['AES', 'AES', 'AES-256', 'AES-256-C', 'AES-256-C', 'DES']
    """
    word = _bare(value)
    if _DES.fullmatch(word):
        return "DES"
    match = _AES.fullmatch(word)
    if match is None or (match[2] and match[1] not in {"192", "256"}):
        return value
    bits = "" if match[1] in {None, "128"} else f"-{match[1]}"
    return f"AES{bits}{'-C' if match[2] else ''}"


def _bare(value: object) -> str:
    """Letters and digits only, without what the MIBs put around them (``usm...AuthProtocol``)."""
    word = re.sub(r"[^0-9A-Z]", "", value[:_MAX_LENGTH].upper()) if isinstance(value, str) else ""
    return _AROUND.sub("", word)


AuthName = Literal["MD5", "SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512"]
PrivName = Literal["DES", "AES", "AES-192", "AES-256", "AES-192-C", "AES-256-C"]
"""``-C`` is the key extension of Cisco (Reeder), where the digest is too short for the key."""
AuthProtocol = Annotated[AuthName, BeforeValidator(auth_protocol)]
PrivProtocol = Annotated[PrivName, BeforeValidator(priv_protocol)]


@dataclass(frozen=True, slots=True)
class Access:
    """One agent; ``address`` is numeric. ``community`` counts for v1 and v2c, the rest for v3."""

    address: str
    port: int
    version: str  # 1, 2c, 3
    community: str = field(default="", repr=False)
    user: str = ""
    auth: str = field(default="", repr=False)
    auth_protocol: str = "SHA"
    priv: str = field(default="", repr=False)
    priv_protocol: str = "AES"
    context: str = ""

    @property
    def where(self) -> str:
        """The address as people write it.

        >>> Access("::1", 161, "2c").where
        '[::1]:161'
        """
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def check(target: str, access: Access) -> None:
    """Raises PlanError for credentials that cannot work, before anything is sent."""
    if access.version != "3":
        if access.user or access.auth or access.priv:
            raise PlanError(f"{target}: user, auth and priv belong to SNMPv3: write version: 3, or remove them")
        if not access.community:
            raise PlanError(f"{target}: the community is empty: give it, such as community: env:COMMUNITY")
        return
    if not access.user:
        raise PlanError(f"{target}: SNMPv3 needs a user: write user: NAME")
    if len(access.user.encode()) > 32:
        raise PlanError(f"{target}: the user is longer than the 32 bytes that SNMPv3 allows: write a shorter one")
    if access.priv and not access.auth:
        raise PlanError(f"{target}: priv without auth is not a security level of SNMPv3: give auth as well")
    for word, key in (("auth", access.auth), ("priv", access.priv)):
        if key and len(key) < MIN_KEY_LENGTH:
            raise PlanError(
                f"{target}: the key of {word} is shorter than the {MIN_KEY_LENGTH} characters that SNMPv3 requires: "
                "use the pass phrase that the device was given"
            )


async def resolve(access: Access, timeout_s: float) -> str:
    """The numeric address of a host, IPv4 or IPv6. Raises SnmpPollError."""
    try:
        return str(ipaddress.ip_address(access.address))
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            addresses = await loop.getaddrinfo(access.address, access.port, type=socket.SOCK_DGRAM)
    except TimeoutError:
        raise SnmpPollError(FailureKind.ADDRESS, access.where, detail="the name is not resolved in time") from None
    except OSError as error:
        raise SnmpPollError(
            FailureKind.ADDRESS, access.where, detail=error.strerror or "the name is not known"
        ) from None
    return str(addresses[0][4][0])
