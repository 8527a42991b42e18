"""CPU of SNMP polls beside pysnmp and net-snmp's own client, memory over many requests, and 100 devices on one loop.

    python tests/bench/snmp.py [--rounds 5] [--requests 100000] [--devices 100] [--seconds 120]

A real net-snmpd on the loopback answers; what it costs itself is not counted. Prints tables, asserts nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.collector.sources.snmp.snmpd import AUTH, PRIV, Snmpd

from soakwatch.sources.transport.snmp.agent_link import SessionOptions
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_session import Session

TEN = [f"1.3.6.1.2.1.{rest}.0" for rest in ("1.3", "1.5", "1.6", "1.4", "4.3", "4.9", "4.10", "6.10", "6.11", "7.1")]
TABLE = "1.3.6.1.2.1.31.1.1.1"
DEVICE_OIDS = 200


def cpu_us(who: int = resource.RUSAGE_SELF) -> float:
    """CPU time so far, of this process or of its ended children."""
    used = resource.getrusage(who)
    return (used.ru_utime + used.ru_stime) * 1e6


async def cost(session: Session, use: Callable[[Session], Awaitable[object]], times: int) -> float:
    """CPU µs of one use."""
    await use(session)
    before = cpu_us()
    for _ in range(times):
        await use(session)
    return (cpu_us() - before) / times


async def get(session: Session) -> object:
    """One GET of 10 objects."""
    return await session.get(TEN, time.monotonic() + 10)


async def walk(session: Session) -> object:
    """One walk of ifXTable."""
    return await session.walk([TABLE], time.monotonic() + 10)


def command(words: Sequence[str], times: int) -> float:
    """CPU µs of one command of net-snmp, its start included."""
    before = cpu_us(resource.RUSAGE_CHILDREN)
    for _ in range(times):
        subprocess.run(words, check=True, capture_output=True)
    return (cpu_us(resource.RUSAGE_CHILDREN) - before) / times


async def side_by_side(agent: Snmpd, rounds: int) -> None:
    """All clients in turns; medians over the rounds."""
    v3 = ["-v3", "-u", "common", "-l", "authPriv", "-a", "SHA", "-A", AUTH, "-x", "AES", "-X", PRIV]
    seen: dict[tuple[str, str, str], list[float]] = {}
    rows = 0
    for _ in range(rounds):
        for version, how in (("2c", ["-v2c", "-c", "public"]), ("3", v3)):
            for engine, times in (("gufo", 400), ("pysnmp", 40)):
                session = Session(agent.access(version), SessionOptions("gufo" if engine == "gufo" else "pysnmp"))
                seen.setdefault((version, "GET of 10", engine), []).append(await cost(session, get, times))
                seen.setdefault((version, "walk", engine), []).append(await cost(session, walk, times // 4))
                rows = len(await session.walk([TABLE], time.monotonic() + 10))
                await session.close()
            plain = ["-Onq", "-m", "", *how, agent.host_and_port]
            seen.setdefault((version, "GET of 10", "net-snmp"), []).append(command(["snmpget", *plain, *TEN], 5))
            seen.setdefault((version, "walk", "net-snmp"), []).append(command(["snmpbulkwalk", *plain, TABLE], 5))
    print(f"CPU µs of the client for each, median of {rounds} rounds in turns; a walk is ifXTable, {rows} rows;")
    print("net-snmp is snmpget or snmpbulkwalk, a process each time\n")
    print(f"{'':14}{'gufo':>9}{'pysnmp':>9}{'net-snmp':>10}{'pysnmp/gufo':>13}{'net-snmp/gufo':>15}")
    for version in ("2c", "3"):
        for what in ("GET of 10", "walk"):
            gufo, pysnmp, other = (
                statistics.median(seen[version, what, client]) for client in ("gufo", "pysnmp", "net-snmp")
            )
            line = f"{gufo:9.0f}{pysnmp:9.0f}{other:10.0f}{pysnmp / gufo:13.1f}{other / gufo:15.1f}"
            print(f"v{version} {what:11}{line}")


async def growth(agent: Snmpd, requests: int) -> None:
    """Resident memory before and after many requests."""
    process = psutil.Process()
    print(f"\nmemory (RSS, kB) before, in the middle of, and after {requests:,} requests of 10 objects\n")
    for version in ("2c", "3"):
        session = Session(agent.access(version), SessionOptions())
        for _ in range(500):
            await get(session)
        marks = [process.memory_info().rss // 1024]
        for _ in range(2):
            for _ in range(requests // 2):
                await get(session)
            marks.append(process.memory_info().rss // 1024)
        await session.close()
        print(f"v{version:3} gufo {marks[0]:9,}{marks[1]:9,}{marks[2]:9,}")


@dataclass
class Device:
    """One of many: its polls and how late they began and ended."""

    session: Session
    begin: float
    late: list[float]
    lost: int = 0

    async def run(self, oids: Sequence[str], interval_s: float, until: float) -> None:
        """Polls on a fixed grid."""
        due = self.begin
        while due < until:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            try:
                answers = await self.session.get(oids, due + interval_s)
            except Exception:  # noqa: BLE001 - a lost poll is counted, whatever lost it
                self.lost += 1
            else:
                self.lost += len(answers) != len(oids)
                self.late.append(time.monotonic() - due)
            due += interval_s


async def fleet(agents: Sequence[Snmpd], devices: int, interval_s: float, seconds: float) -> None:
    """Many devices at once, as many sessions and sockets, spread over a few agents."""
    async with AsyncExitStack() as stack:
        first = Session(agents[0].access("3"), SessionOptions())
        stack.push_async_callback(first.close)
        under = await first.walk(["1.3.6.1.2.1"], time.monotonic() + 30)
        oids = [oid for oid in under if not oid.startswith("1.3.6.1.2.1.25")][:DEVICE_OIDS]
        now = time.monotonic()
        every = []
        for number in range(devices):
            access: Access = agents[number % len(agents)].access("3")
            session = Session(access, SessionOptions(share_s=min(interval_s / 3, 5.0)))
            stack.push_async_callback(session.close)
            await session.get(oids[:1], time.monotonic() + 10)
            every.append(Device(session, now + 5 + interval_s * number / devices, []))
        await asyncio.sleep(max(0.0, now + 5 - time.monotonic()))
        before, began = cpu_us(), time.monotonic()
        await asyncio.gather(*(device.run(oids, interval_s, now + 5 + seconds) for device in every))
        used, took = cpu_us() - before, time.monotonic() - began
    late = sorted(lateness for device in every for lateness in device.late)
    lost = sum(device.lost for device in every)
    within = sum(lateness <= 1.0 for lateness in late) / max(len(late) + lost, 1)
    print(
        f"{devices:4} devices x {len(oids)} objects x {interval_s:g} s (v3): {len(late)} polls, {lost} lost, "
        f"{100 * within:.2f} % ended within 1 s of their due time; median {1000 * late[len(late) // 2]:.1f} ms, "
        f"worst {1000 * late[-1]:.0f} ms; {used / max(len(late), 1):.0f} µs CPU a poll, "
        f"{used / 1e4 / took:.1f} % of a core"
    )


async def measure(agents: Sequence[Snmpd], options: argparse.Namespace) -> None:
    """All of it."""
    await side_by_side(agents[0], options.rounds)
    await growth(agents[0], options.requests)
    print()
    await fleet(agents, 1, 1.0, min(30, options.seconds))
    await fleet(agents, options.devices, 10.0, options.seconds)


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="of the comparison of clients")
    parser.add_argument("--requests", type=int, default=100_000, help="of the look at memory")
    parser.add_argument("--devices", type=int, default=100, help="polled at once")
    parser.add_argument("--seconds", type=int, default=120, help="for which they are polled")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work, ExitStack() as stack:
        agents = []
        for number in range(4):
            agent = Snmpd(Path(work, str(number)))
            stack.callback(agent.kill)
            agent.start()
            agents.append(agent)
        print(f"{psutil.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {net_snmp()}\n")
        asyncio.run(measure(agents, options))
    return 0


def net_snmp() -> str:
    """Which net-snmp."""
    done = subprocess.run(["snmpget", "-V"], capture_output=True, text=True, check=False)
    return (done.stderr or done.stdout).strip()


if __name__ == "__main__":
    sys.exit(main())
