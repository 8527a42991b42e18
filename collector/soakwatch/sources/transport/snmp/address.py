"""From a host's name to its address, without blocking anybody."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from soakwatch.sources.transport.snmp.access import Access
from soakwatch.sources.transport.snmp.trouble import Kind, SnmpPollError


async def resolve(access: Access, timeout_s: float) -> str:
    """The numeric address of a host, IPv4 or IPv6. Raises SnmpPollError."""
    try:
        return str(ipaddress.ip_address(access.address))
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            found = await loop.getaddrinfo(access.address, access.port, type=socket.SOCK_DGRAM)
    except TimeoutError:
        raise SnmpPollError(Kind.ADDRESS, access.where, detail="the name is not resolved in time") from None
    except OSError as error:
        raise SnmpPollError(Kind.ADDRESS, access.where, detail=error.strerror or "the name is not known") from None
    return str(found[0][4][0])
