"""How an agent is spoken to: address, version, credentials. Secrets are in memory only and never shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from soakwatch.core.errors import PlanError

AUTH_PROTOCOLS = ("MD5", "SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512")
PRIV_PROTOCOLS = ("DES", "AES", "AES-192", "AES-256", "AES-192-C", "AES-256-C")
"""``-C`` is the key extension of Cisco (Reeder), where the digest is too short for the key."""
SHORTEST_KEY = 8  # RFC 3414 section 11.2


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
            raise PlanError(f"{target}: user, auth and priv are of SNMPv3: write version: 3, or drop them")
        if not access.community:
            raise PlanError(f"{target}: the community is empty: name where it is, such as community: env:COMMUNITY")
        return
    if not access.user:
        raise PlanError(f"{target}: SNMPv3 needs a user: write user: NAME")
    if len(access.user.encode()) > 32:
        raise PlanError(f"{target}: the user is longer than the 32 bytes that SNMPv3 allows: write a shorter one")
    if access.priv and not access.auth:
        raise PlanError(f"{target}: priv without auth is no security level of SNMPv3: give auth as well")
    for word, key in (("auth", access.auth), ("priv", access.priv)):
        if key and len(key) < SHORTEST_KEY:
            raise PlanError(
                f"{target}: the key of {word} is shorter than the {SHORTEST_KEY} characters that SNMPv3 asks for: "
                "use the pass phrase that the device was given"
            )
