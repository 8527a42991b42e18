"""The handshake: TRex's version, mode and interface version, and the requests that it supports."""

from __future__ import annotations

import re
from dataclasses import dataclass

from soakwatch.core.text import one_line
from soakwatch.sources.abc import SourceError
from soakwatch_trex.json_values import count, listing, mapping, word
from soakwatch_trex.rpc import UNKNOWN_METHOD, RefusedError, Rpc

KNOWN = {"STL": (5, 1), "ASTF": (2, 3)}
"""The newest interface known to this reader, by mode."""
_MAJORS = (5, 4, 3, 2, 1)  # minor number 0 suits every server of the same major number
_MAX_PORTS = 32
_THEIRS = re.compile(r"server: '(\d{1,3})\.(\d{1,3})'")
_MODE = re.compile(r"server RPC configuration: '(\w{1,20})'")


@dataclass(frozen=True, slots=True)
class Server:
    """One TRex process. ``handle`` is drawn anew at each start, so another handle means another process."""

    mode: str
    version: str
    api: str
    handle: str
    host: str
    ports: tuple[int, ...]
    drivers: tuple[str, ...]
    methods: frozenset[str]
    newer: bool  # its interface is newer than ``KNOWN``

    @property
    def asked(self) -> bool:
        """Whether totals can be requested; an older TRex only publishes them."""
        return "get_global_stats" in self.methods


async def greet(rpc: Rpc) -> Server:
    """Shake hands; ``rpc`` then carries the handle. Raises SourceError."""
    rpc.handle = ""
    try:
        about = mapping(await rpc.ask("get_version"))
        mode, api, handle = await _agreed(rpc, word(about.get("mode")))
        rpc.handle = handle
        methods = frozenset(word(name) for name in listing(await rpc.ask("get_supported_cmds")))
        system = mapping(await rpc.ask("get_system_info"))
    except RefusedError as refused:
        raise SourceError(f"TRex at {rpc.where} refuses the handshake: {refused}") from None
    described = [mapping(port) for port in listing(system.get("ports"))][:_MAX_PORTS]
    numbers = [count(port.get("index")) for port in described]
    ports = tuple(number for number in numbers if number is not None and number < 256)
    if not ports:
        ports = tuple(range(min(count(system.get("port_count")) or 0, _MAX_PORTS)))
    if not ports:
        raise SourceError(f"TRex at {rpc.where} reports no ports: check its configuration file")
    drivers = tuple(dict.fromkeys(one_line(word(port.get("driver")), 40) for port in described))
    version, host = (one_line(word(text), 60) for text in (about.get("version"), system.get("hostname")))
    return Server(mode, version, _shown(api), handle, host, ports, drivers, methods, api > KNOWN[mode])


def _shown(api: tuple[int, int]) -> str:
    return ".".join(map(str, api))


async def _agreed(rpc: Rpc, reported_mode: str) -> tuple[str, tuple[int, int], str]:
    """Mode, interface and handle. A refusal names what the server would accept, which is tried next."""
    mode = reported_mode if reported_mode in KNOWN else "STL"
    api = KNOWN[mode]
    tried: set[tuple[str, tuple[int, int]]] = set()
    why = "it accepts no version of its interface"
    for _ in range(2 + len(_MAJORS)):
        tried.add((mode, api))
        try:
            answer = mapping(await rpc.ask("api_sync_v2", name=mode, major=api[0], minor=api[1]))
        except RefusedError as refused:
            if refused.refusal.code == UNKNOWN_METHOD:
                return await _agreed_before_v2(rpc)
            why = refused.refusal.text
            if (other := _MODE.search(why)) is not None:
                mode = other[1]
                if mode not in KNOWN:
                    raise SourceError(
                        f"TRex at {rpc.where} runs in mode {mode}: only STL and ASTF in interactive mode can be read"
                    ) from None
                api = KNOWN[mode]
            elif (theirs := _THEIRS.search(why)) is not None:
                api = int(theirs[1]), int(theirs[2])
            if (mode, api) in tried:
                left = [(major, 0) for major in _MAJORS if (mode, (major, 0)) not in tried]
                if not left:
                    break
                api = left[0]
            continue
        return mode, api, _handle(rpc, answer.get("api_h"))
    raise SourceError(f"TRex at {rpc.where} refuses the handshake: {why}")


async def _agreed_before_v2(rpc: Rpc) -> tuple[str, tuple[int, int], str]:
    """The same for releases up to 2.30, which know one interface, called core, and only the stateless mode."""
    why = "it accepts no version of its interface"
    for major in _MAJORS:
        try:
            answer = mapping(await rpc.ask("api_sync", api_vers=[{"type": "core", "major": major, "minor": 0}]))
        except RefusedError as refused:
            why = refused.refusal.text
            continue
        first = mapping(next(iter(listing(answer.get("api_vers"))), None))
        return "STL", (major, 0), _handle(rpc, first.get("api_h"))
    raise SourceError(f"TRex at {rpc.where} refuses the handshake: {why}")


def _handle(rpc: Rpc, value: object) -> str:
    if not word(value):
        raise SourceError(f"TRex at {rpc.where} ends the handshake without a handle")
    return word(value)
