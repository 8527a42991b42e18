"""How an agent is spoken to: address, version, credentials. Secrets are in memory only and never shown."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass, field

from soakwatch.core.errors import PlanError
from soakwatch.sources.transport.snmp.errors import Kind, SnmpPollError

AUTH_PROTOCOLS = ("MD5", "SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512")
PRIV_PROTOCOLS = ("DES", "AES", "AES-192", "AES-256", "AES-192-C", "AES-256-C")
"""``-C`` is the key extension of Cisco (Reeder), where the digest is too short for the key."""
MIN_KEY_LENGTH = 8  # RFC 3414 section 11.2


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
        raise SnmpPollError(Kind.ADDRESS, access.where, detail="the name is not resolved in time") from None
    except OSError as error:
        raise SnmpPollError(Kind.ADDRESS, access.where, detail=error.strerror or "the name is not known") from None
    return str(addresses[0][4][0])
