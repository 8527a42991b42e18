"""A real request generator for loopback: a fixed offered rate a phase, latency from when a request was due.

Prints one JSON line a second in the catalogue's names, for the source ``command``. A request that could not be sent
on time is sent late and its wait counts (so an overloaded service cannot hide behind a generator that waits for
it: "coordinated omission"). Bounded: it refuses every address but loopback, and stops at the end of its profile.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import json
import sys
import time
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from soakwatch.core.units import seconds

_TIMEOUT_S = 5.0
RATE_BOUND = 5_000.0  # requests/s over all addresses


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the profile: its length, and the requests per second to each address."""

    seconds: float
    rate: float


@dataclass(slots=True)
class Tally:
    """What happened since the last line."""

    sent: int = 0
    failed: int = 0
    open: int = 0
    total: int = 0
    total_failed: int = 0
    latencies: list[float] = field(default_factory=list)

    def line(self, span_s: float, offered: float) -> str:
        """The JSON line; resets the counts of the interval."""
        done = sorted(self.latencies)
        self.total += len(done)
        self.total_failed += self.failed
        figures: dict[str, float] = {
            "load.offered.rate": offered,
            "load.request.rate": round(len(done) / span_s, 3),
            "load.failure.rate": round(self.failed / span_s, 3),
            "load.requests": self.total,
            "load.failures": self.total_failed,
            "load.connections": self.open,
        }
        if done:
            for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
                figures[f"load.latency{{quantile={name}}}"] = round(done[min(len(done) - 1, int(share * len(done)))], 6)
        self.sent = self.failed = 0
        self.latencies = []
        return json.dumps(figures)


def profile(text: str) -> tuple[Step, ...]:
    """Parse ``30s@20,2m@100``: steps of a length and a rate in requests per second to each address.

    >>> profile("30s@20,2m@100")
    (Step(seconds=30.0, rate=20.0), Step(seconds=120.0, rate=100.0))
    """
    steps = []
    for part in text.split(","):
        length, _, rate = part.partition("@")
        steps.append(Step(seconds(length), float(rate)))
    return tuple(steps)


def loopback(text: str) -> SplitResult:
    """Parse a URL on loopback. Raises ValueError for any other."""
    url = urlsplit(text)
    host = url.hostname or ""
    if url.scheme != "http" or not (host == "localhost" or ipaddress.ip_address(host).is_loopback):
        raise ValueError(f"{text} is not an http address on loopback: this generator loads nothing else")
    return url


async def _worker(url: SplitResult, first: float, gap_of: list[float], end: float, tally: Tally) -> None:
    due = first
    request = f"GET {url.path or '/'} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode()
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    while due < end:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                if streams is None:
                    streams = await asyncio.open_connection(url.hostname, url.port)
                    tally.open += 1
                await _exchange(*streams, request)
            tally.latencies.append(time.monotonic() - due)
        except (OSError, EOFError, ValueError, TimeoutError):
            tally.failed += 1
            if streams is not None:
                streams[1].close()
                tally.open -= 1
            streams = None
        due += gap_of[0]
    if streams is not None:
        streams[1].close()


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    writer.write(request)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise ValueError("not a 200")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            await reader.readexactly(int(value))


async def _load(urls: list[SplitResult], steps: tuple[Step, ...], connections: int) -> None:
    tally = Tally()
    start = time.monotonic()
    end = start + sum(step.seconds for step in steps)
    gap = [connections / steps[0].rate]
    async with asyncio.TaskGroup() as group:
        for url in urls:
            for index in range(connections):
                group.create_task(_worker(url, start + index / steps[0].rate, gap, end, tally))
        before = tick = start
        for step, step_end in zip(steps, _ends(start, steps), strict=True):
            gap[0] = connections / step.rate
            while tick + 1.0 <= step_end + 1e-6:
                tick += 1.0
                await asyncio.sleep(max(0.0, tick - time.monotonic()))
                now = time.monotonic()
                print(tally.line(now - before, step.rate * len(urls)), flush=True)
                before = now


def _ends(start: float, steps: tuple[Step, ...]) -> list[float]:
    ends = []
    for step in steps:
        start += step.seconds
        ends.append(start)
    return ends


def main(argv: list[str] | None = None) -> int:
    """Run the profile; exit code 2 if an address is not on loopback."""
    parser = argparse.ArgumentParser(prog="demo_load", description=__doc__)
    parser.add_argument("urls", nargs="+", metavar="URL", help="http://127.0.0.1:PORT/")
    parser.add_argument("--profile", required=True, help="steps LENGTH@RATE, such as 30s@20,2m@100")
    parser.add_argument("--connections", type=int, default=4, help="connections to each address")
    options = parser.parse_args(argv)
    try:
        urls = [loopback(text) for text in options.urls]
        steps = profile(options.profile)
    except ValueError as error:
        parser.error(str(error))
    if max(step.rate for step in steps) * len(urls) > RATE_BOUND or min(step.rate for step in steps) <= 0:
        parser.error(f"a rate lies above 0 and, over all addresses, not above {RATE_BOUND:g} a second")
    try:
        asyncio.run(_load(urls, steps, options.connections))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
