"""Interfaces of the generator's host as the load: what they sent and received, on this machine or over SSH.

For a generator without figures of its own. Counters are the kernel's (``/proc/net/dev``): packets and bytes with
their Ethernet headers, of everything on the port, not of the generator alone. Each port's are raw
(``load.port.*``); those of the whole (``load.tx.packets`` ...) are sums that continue where a port's counters restart
or the port disappears, so that one port's restart does not lower the sum. A 32-bit kernel's counters wrap: a port's
series shows that; the sum takes it for a restart (event ``generator.restart``) and loses up to 2**32 there.

What ``load.queue_full`` (transmit drops and FIFO errors) does not count: drops of a queueing discipline, which the
kernel keeps apart (``tc -s qdisc``), and what a generator that bypasses the kernel (DPDK) does.
"""

from __future__ import annotations

import asyncio
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import psutil
from pydantic import Field

from soakwatch.sources.abc import Facts, Poller, SourceConfig, SourceContext, SourceError, timing
from soakwatch.sources.transport.ssh.ssh_access import Access
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Sample, object_text

if TYPE_CHECKING:
    from soakwatch.sources.transport.ssh.shell import Shell
    from soakwatch.sources.transport.ssh.ssh_connection import SshConnection

_MAX_PORTS = 512
_COLUMNS = 16
_MAX_COUNT = 1 << 64
_COUNT = re.compile(r"[0-9]{1,20}")
_UP = {"up": 1, "down": 0, "lowerlayerdown": 0, "notpresent": 0, "dormant": 0, "testing": 0}
_STATES = 'for f in /sys/class/net/*/operstate; do read -r s < "$f" && echo "$f $s"; done 2>/dev/null'


class Config(SourceConfig):
    """Keys of the source ``interface``."""

    ports: Annotated[
        tuple[str, ...],
        Field(min_length=1, max_length=64, strict=False, description="the generator's interfaces: names or globs"),
    ]
    ssh: Annotated[
        Access | None,
        Field(default=None, description="the generator's host, with the keys of the source ssh; default: this machine"),
    ]
    sends_above: Annotated[
        float | None,
        Field(default=None, ge=0, description="packet rate above which it counts as sending (load.sending), 1/s"),
    ]


@dataclass(frozen=True, slots=True)
class Counters:
    """The kernel's counters of one interface; ``up`` is None if unknown."""

    rx_bytes: int
    rx_packets: int
    rx_errors: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    queue_full: int
    up: bool | None = None


Interfaces = Mapping[str, Counters]

_SUMS = (
    ("load.tx.packets", "tx_packets"),
    ("load.rx.packets", "rx_packets"),
    ("load.tx.bytes", "tx_bytes"),
    ("load.rx.bytes", "rx_bytes"),
    ("load.queue_full", "queue_full"),
)
_PORTS = tuple((f"load.port.{metric.removeprefix('load.')}", name) for metric, name in _SUMS[:4])


def parse(dev: str, states: Mapping[str, str]) -> dict[str, Counters]:
    """Parses ``/proc/net/dev``; other lines are ignored.

    >>> line = " eth0: 900 9 0 0 0 0 0 0 1800 18 1 2 3 0 0 0"
    >>> parse(line, {"eth0": "up"})["eth0"].queue_full
    5
    """
    interfaces: dict[str, Counters] = {}
    for line in dev.splitlines():
        name, colon, rest = line.rpartition(":")
        words = rest.split()
        if not colon or len(words) < _COLUMNS or not all(_COUNT.fullmatch(word) for word in words):
            continue
        rx_bytes, rx_packets, rx_errors = map(int, words[:3])
        tx_bytes, tx_packets, tx_errors, dropped, fifo = map(int, words[8:13])
        state = _UP.get(states.get(name.strip(), ""))
        up = None if state is None else bool(state)
        interfaces[name.strip()] = Counters(
            rx_bytes, rx_packets, rx_errors, tx_bytes, tx_packets, tx_errors, dropped + fifo, up
        )
    return interfaces


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Reads once, over SSH or locally. Raises SourceError if no interface matches, or a login is refused."""
    if config.ssh is None:
        return await _checked(config, _LocalHost())
    # Imported here: asyncssh takes megabytes that a local source does not need.
    from soakwatch.sources.transport.ssh.shell import Shell
    from soakwatch.sources.transport.ssh.ssh_connection import SshConnection

    timeout_s = max(timing(0, site.interval_s, config.timeout).timeout_s * 0.9, 0.5)
    line = await stack.enter_async_context(SshConnection(config.ssh, site.folder, timeout_s))
    await line.connection()
    shell = Shell(line)
    stack.callback(shell.close)
    return await _checked(config, _RemoteHost(line, shell, timeout_s))


async def _checked(config: Config, host: Host) -> Poller:
    ports = Ports(config, host)
    if not ports.chosen(await host.read()):
        raise SourceError(
            f"{host.name} has no interface {' or '.join(config.ports)}: name its sending interfaces in ports"
        )
    return ports


class Host(Protocol):
    """The host of the interfaces."""

    @property
    def name(self) -> str:
        """Its name in errors."""
        ...

    async def read(self) -> Interfaces:
        """All its interfaces. Raises SourceError."""
        ...

    def facts(self) -> Facts:
        """Its identity."""
        ...


class _LocalHost:
    """This machine; by psutil if it is not Linux."""

    name = "this machine"

    async def read(self) -> Interfaces:
        return await asyncio.to_thread(_read_local)

    def facts(self) -> Facts:
        return Facts({"host": platform.node() or "this machine"})


class _RemoteHost:
    """A machine over SSH: one shell kept open, one script a poll."""

    def __init__(self, line: SshConnection, shell: Shell, timeout_s: float) -> None:
        self._line, self._shell, self._timeout_s = line, shell, timeout_s

    @property
    def name(self) -> str:
        return self._line.name

    async def read(self) -> Interfaces:
        from soakwatch.sources.transport.ssh.shell import part

        script = part("dev", "cat /proc/net/dev") + "\n" + part("states", _STATES)
        parts = (await self._shell.run(script, self._timeout_s)).parts
        outputs = {name: part.decode("utf-8", "replace") for name, part in parts.items()}
        interfaces = parse(outputs.get("dev", ""), _states(outputs.get("states", "")))
        if not interfaces:
            raise SourceError(f"{self.name} has no readable /proc/net/dev: use Linux, and an account that may read it")
        return interfaces

    def facts(self) -> Facts:
        return Facts({"host": self._line.name, **self._line.identity()}, (), self._line.notes())


class Ports:
    """The chosen interfaces, and their sums, kept across restarts of their counters."""

    def __init__(self, config: Config, host: Host) -> None:
        self._config, self._host = config, host
        self._last: dict[str, Counters] = {}
        self._gone: set[str] = set()
        self._carried = dict.fromkeys((name for _, name in _SUMS), 0)
        self._sent: tuple[int, int] | None = None  # steady time and packets of the previous poll

    def facts(self) -> Facts:
        """The host and the chosen interfaces."""
        known = self._host.facts()
        ports = {"ports": ", ".join(sorted(self._last))} if self._last else {}
        return Facts({**known.identity, **ports}, (), known.notes)

    def chosen(self, interfaces: Interfaces) -> dict[str, Counters]:
        """The interfaces that match the plan's, ``_MAX_PORTS`` at most."""
        names = [name for name in sorted(interfaces) if any(fnmatchcase(name, glob) for glob in self._config.ports)]
        return {name: interfaces[name] for name in names[:_MAX_PORTS]}

    async def poll(self, now_ns: int) -> Answer:
        """One poll. Raises SourceError if the host cannot be read, or no longer has any of the interfaces."""
        chosen = self.chosen(await self._host.read())
        if not chosen:
            raise SourceError(f"{self._host.name} no longer has an interface {' or '.join(self._config.ports)}")
        events = tuple(self._carry(chosen, now_ns))
        samples = [
            Sample(metric, object_text(port=port), getattr(counters, name), now_ns)
            for port, counters in chosen.items()
            for metric, name in _PORTS
        ]
        for port, counters in chosen.items():
            for direction, count in (("receive", counters.rx_errors), ("transmit", counters.tx_errors)):
                samples.append(Sample("load.port.errors", object_text(port=port, direction=direction), count, now_ns))
            if counters.up is not None:
                samples.append(Sample("load.port.up", object_text(port=port), int(counters.up), now_ns))
        sums = {
            name: sum(getattr(each, name) for each in self._last.values()) + self._carried[name] for _, name in _SUMS
        }
        samples += [Sample(metric, "", sums[name], now_ns) for metric, name in _SUMS if sums[name] < _MAX_COUNT]
        samples += self._sending(sums["tx_packets"], now_ns)
        faults = tuple(
            Fault("load.port.tx.packets", object_text(port=port), f"{port} disappeared from {self._host.name}")
            for port in sorted(self._gone)
        )
        return Answer(tuple(samples), events, faults)

    def _carry(self, chosen: Mapping[str, Counters], now_ns: int) -> Iterator[Event]:
        """Adds a restarted port's last values to the sums; yields an event for each. A vanished port keeps its
        values."""
        self._gone = self._last.keys() - chosen.keys()
        for port, now in chosen.items():
            before = self._last.get(port)
            if before is not None:
                fell = [name for _, name in _SUMS if getattr(now, name) < getattr(before, name)]
                for name in fell:
                    self._carried[name] += getattr(before, name)
                if fell:
                    shown = ", ".join(
                        f"{name.replace('_', ' ')} from {getattr(before, name)} to {getattr(now, name)}"
                        for name in fell
                    )
                    yield Event("generator.restart", "", object_text(port=port), now_ns, None, {"fell": shown})
            self._last[port] = now

    def _sending(self, packets: int, now_ns: int) -> list[Sample]:
        before, self._sent = self._sent, (now_ns, packets)
        if self._config.sends_above is None or before is None or now_ns <= before[0]:
            return []
        rate = (packets - before[1]) / ((now_ns - before[0]) * 1e-9)
        return [Sample("load.sending", "", int(rate > self._config.sends_above), now_ns)]


def _read_local() -> Interfaces:
    if sys.platform != "linux":
        stats = psutil.net_if_stats()
        return {
            name: Counters(
                io.bytes_recv,
                io.packets_recv,
                io.errin,
                io.bytes_sent,
                io.packets_sent,
                io.errout,
                io.dropout,
                stats[name].isup if name in stats else None,
            )
            for name, io in psutil.net_io_counters(pernic=True, nowrap=False).items()
        }
    try:
        dev = Path("/proc/net/dev").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SourceError(
            f"cannot read /proc/net/dev on this machine: {(error.strerror or 'no reason given').lower()}"
        ) from None
    states: dict[str, str] = {}
    for file in Path("/sys/class/net").glob("*/operstate"):
        with suppress(OSError):  # an interface may go at any time
            states[file.parent.name] = file.read_text(encoding="ascii", errors="replace").strip()
    return parse(dev, states)


def _states(text: str) -> dict[str, str]:
    """The state of each interface, from lines of an ``operstate`` path and its content."""
    words = [line.split() for line in text.splitlines()]
    return {pair[0].split("/")[-2]: pair[1] for pair in words if len(pair) == 2 and pair[0].count("/") >= 2}
