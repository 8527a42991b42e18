"""A proxy that logs people in: it says in headers who asks and in which role, and is believed at its address only."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from soakwatch.core.errors import SoakwatchError
from soakwatch.web.named_tokens import ROLES

_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_MAX_NAME = 64
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class TrustedProxy:
    """Whom to believe: requests from these networks, which name the user and the role in these headers."""

    networks: tuple[Network, ...]
    user_header: str
    role_header: str

    def trusts(self, address: str) -> bool:
        """Whether a request from this address comes from the proxy.

        >>> proxy = trusted_proxy(["192.0.2.7"], "X-Remote-User", "X-Remote-Role")
        >>> proxy.trusts("192.0.2.7"), proxy.trusts("192.0.2.8"), proxy.trusts("")
        (True, False, False)
        """
        try:
            asked = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return any(asked in network for network in self.networks)

    def user(self, users: Sequence[str], roles: Sequence[str]) -> tuple[str, str] | None:
        """User and role of the values of both headers; None unless each is given once and makes sense.

        >>> proxy = trusted_proxy(["::1"], "X-User", "X-Role")
        >>> proxy.user(["anna"], ["operator"]), proxy.user(["anna", "root"], ["admin"]), proxy.user(["anna"], ["boss"])
        (('anna', 'operator'), None, None)
        """
        if len(users) != 1 or len(roles) != 1:
            return None
        name, role = users[0].strip(), roles[0].strip().lower()
        if not 0 < len(name) <= _MAX_NAME or not name.isprintable() or role not in ROLES:
            return None
        return name, role


def trusted_proxy(addresses: Sequence[str], user_header: str, role_header: str) -> TrustedProxy:
    """The proxy at addresses or networks (``192.0.2.0/28``). Raises SoakwatchError for what is none."""
    networks = []
    for address in addresses:
        try:
            networks.append(ipaddress.ip_network(address))
        except ValueError:
            raise SoakwatchError(
                f"--trust-proxy: {address[:60]!r} is not an address: write the proxy's own, such as 127.0.0.1"
            ) from None
    if any(network.prefixlen == 0 for network in networks):
        raise SoakwatchError("--trust-proxy: every address would be believed: write that of the proxy alone")
    for header in (user_header, role_header):
        if _HEADER.fullmatch(header) is None:
            raise SoakwatchError(f"{header[:60]!r} cannot name a header: write one such as X-Remote-User")
    return TrustedProxy(tuple(networks), user_header, role_header)
