"""Traffic of iperf3: a client driven by the run, a server, a command, or a file that iperf3 writes.

One of four modes: ``file`` follows the output of an iperf3 run elsewhere (``--json-stream`` of 3.17 and later, text
of ``-i 1 --forceflush -f k``, or the document of ``-J``, which comes at the end of each test); ``run`` starts a command
with the run; ``serve`` runs a server, which alone knows loss and jitter of UDP; ``drive: true`` runs a client against
``server``, at ``rate`` times the level of the phase, and restarts it when it fails.

Counters are of one process from 0 on; a server counts on over its tests, and a driven client over its levels. Another
process is a restart (``generator.restart``). All bits and bytes are of the payload. The latency is TCP's own smoothed
round-trip time, as the sender's kernel has it: not a one-way delay, and not that of any packet. Versions before 3.17
report bytes of TCP only as a rate with four digits, and no round-trip time.

From one level to the next nothing is sent for some tenths of a second, nor while the server is still busy with the
test before (asked again at once for 3 s, then after ever longer pauses). ``drain`` must be longer than the queues on
the way hold datagrams when they overflow (bits in the queue / rate of the link): a server takes one that comes late
for one of the next test and counts a loss that did not happen, and the client, which gets no answer, is restarted
after 5 s.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from soakwatch.core.units import Seconds, show_seconds
from soakwatch.sources.abc import Facts, HostName, Poller, SourceConfig, SourceContext, SourceError, timing
from soakwatch.sources.generator_tree import generator, told_command
from soakwatch.sources.loads.iperf3.account import Account, offered
from soakwatch.sources.loads.iperf3.output_file import FollowedOutput
from soakwatch.sources.loads.iperf3.program import THREADS_SINCE, Program, find
from soakwatch.sources.loads.iperf3.reports import Began
from soakwatch.sources.loads.iperf3.supervisor import Supervisor
from soakwatch_model.sample import Answer, Sample
from soakwatch_model.tree import Tree

_OURS = re.compile(
    r"-[cstniJfkDub1PRlpVv]|--(?:client|server|time|bytes|interval|json.*|format|blockcount|daemon|udp|bitrate|"
    r"bandwidth|one-off|parallel|reverse|bidir|length|port|verbose|version|logfile|forceflush|help)(?:=.*)?"
)
_PATIENCE = 0.7  # share of a poll's timeout in which a client must connect
_BINDING_S = 0.5
_MAX_LEVEL = 100.0
_CLIENT_KEYS = ("server", "rate", "udp", "streams", "reverse", "bidir", "length", "drain")


_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)(?:bit/s|bits/s|bps)?")
_FACTORS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def bits_per_second(value: object) -> float:
    """Parses a rate to bits per second; prefixes are decimal, as iperf3's. Raises ValueError with an example.

    >>> bits_per_second("20M"), bits_per_second("1.5 Gbit/s"), bits_per_second(64000)
    (20000000.0, 1500000000.0, 64000.0)
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _RATE.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"{value!r} is not a rate: write bits per second, such as 20M, 1.5Gbit/s or 64000")
    return float(match[1]) * _FACTORS[match[2]]


BitRate = Annotated[
    float,
    BeforeValidator(bits_per_second),
    WithJsonSchema({"type": ["string", "number"], "examples": ["20M", "1.5Gbit/s"]}),
]
"""A rate in a plan, in bits per second once parsed."""


class Config(SourceConfig):
    """Keys of the source ``iperf3``."""

    file: Annotated[
        Path | None, Field(default=None, strict=False, description="output file of an iperf3 that runs elsewhere")
    ]
    run: Annotated[
        tuple[str, ...] | None,
        Field(
            default=None,
            min_length=1,
            strict=False,
            description="a command that prints iperf3's output (a list, no shell)",
        ),
    ]
    serve: Annotated[bool, Field(default=False, description="run a server (iperf3 -s)")]
    drive: Annotated[bool, Field(default=False, description="run a client against `server`, and vary its rate")]
    program: Annotated[str, Field(default="iperf3", min_length=1, description="the program, or its path")]
    server: Annotated[HostName | None, Field(default=None, description="where the driven client connects to")]
    port: Annotated[int, Field(default=5201, ge=1, le=65535, description="port of the server")]
    bind: Annotated[
        HostName | None,
        Field(default=None, description="local address (default of a server: 127.0.0.1)"),
    ]
    rate: Annotated[
        BitRate | None,
        Field(default=None, gt=0, le=1e13, description="bits of payload per second at level 1, all streams together"),
    ]
    udp: Annotated[bool, Field(default=False, description="UDP instead of TCP")]
    streams: Annotated[int, Field(default=1, ge=1, le=128, description="parallel streams")]
    reverse: Annotated[bool, Field(default=False, description="the server sends")]
    bidir: Annotated[bool, Field(default=False, description="both send")]
    length: Annotated[
        int | None, Field(default=None, ge=16, le=1 << 20, description="bytes of a datagram, or of a write")
    ]
    drain: Annotated[
        Seconds,
        Field(default=0.2, ge=0, le=3, description="pause between two levels of UDP, until the queues are empty"),
    ]
    options: Annotated[
        tuple[str, ...],
        Field(default=(), max_length=32, strict=False, description="more arguments of the client, such as [-C, cubic]"),
    ]
    wait: Annotated[Seconds, Field(default=60.0, ge=0, description="how long the file may be missing after the start")]
    silence: Annotated[
        Seconds, Field(default=10.0, gt=0, description="a test that writes nothing for this long has failed")
    ]

    @model_validator(mode="after")
    def _one_way(self) -> Config:
        ways = [name for name in ("file", "run", "serve", "drive") if getattr(self, name)]
        if len(ways) != 1:
            raise ValueError(
                "iperf3 needs one of file (follow an output), run (a command), serve: true (a server) and "
                f"drive: true (a client){': keep one of ' + ', '.join(ways) if ways else ''}"
            )
        if self.drive and self.server is None:
            raise ValueError("drive: true needs server: the host where `iperf3 -s` runs")
        idle = [key for key in _CLIENT_KEYS if key in self.model_fields_set and not self.drive]
        if idle:
            raise ValueError(f"{', '.join(idle)}: these keys need drive: true")
        if self.udp and self.rate is None:
            raise ValueError("udp: true needs rate: without one, iperf3 sends 1 Mbit/s")
        if "drain" in self.model_fields_set and (self.reverse or not self.udp):
            raise ValueError("drain needs udp: true without reverse: it is for datagrams that the client sends")
        if self.reverse and self.bidir:
            raise ValueError("reverse and bidir exclude each other: keep one of them")
        taken = [word for word in self.options if _OURS.fullmatch(word)]
        if taken:
            raise ValueError(f"options may not contain {', '.join(taken)}: use the keys of the source for them")
        return self

    @property
    def lossless(self) -> str:
        """Why it cannot lose packets: TCP retransmits and slows down; "" for UDP."""
        return "" if self.udp else "iperf3 over TCP slows down instead of losing: add udp: true, and rate"


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Opens the file, or finds the program. Raises SourceError. A client rests until it is driven."""
    when = timing(0, site.interval_s, config.timeout)
    if config.file is not None:
        followed = FollowedOutput(config.file, config.wait, config.silence, when.timeout_s / 2, site.now_ns())
        stack.push_async_callback(followed.close)
        await asyncio.to_thread(followed.begin)
        return followed
    drain_s = config.drain if config.udp and not config.reverse else 0.0
    account = Account(site.now_ns(), own=config.run is None)
    kept = Supervisor(account, site.now_ns, once=config.run is not None, client=config.drive, drain_s=drain_s)
    stack.push_async_callback(kept.close)
    if config.run is not None:
        if shutil.which(config.run[0]) is None:
            raise SourceError(f"program {config.run[0]} not found: install it here, or give its path")
        kept.begin()
        kept.want(None if site.trial else config.run)
        return Listener(kept, Facts({"command": config.run[0]}), config.run, 1, config.silence)
    program = await find(config.program)
    kept.begin()
    if config.drive:
        return DrivenClient(config, program, kept, when.timeout_s * _PATIENCE)
    command = _server(config, program)
    if not site.trial:
        kept.want(command)
        await _listening(kept)
    return Listener(kept, _facts(program, command), command, _threads(program, 1 << 10), config.silence)


async def _listening(kept: Supervisor) -> None:
    """Raises SourceError if the server ends at once, such as for a port in use; a listening one may print nothing."""
    try:
        await kept.settled(_BINDING_S)
    except SourceError:
        if kept.error is not None:
            raise


def _server(config: Config, program: Program) -> tuple[str, ...]:
    words = (program.name, "-s", "-p", str(config.port), "-B", config.bind or "127.0.0.1")
    return (*words, *_every(config), *program.output, *config.options)


def client(config: Config, program: Program, level: float) -> tuple[str, ...]:
    """The command line for a share of the full rate; ``-b`` is per stream.

    >>> config = Config(drive=True, server="198.18.0.9", rate="20M", udp=True, streams=2, length=1000)
    >>> " ".join(client(config, Program("iperf3", (3, 17)), 0.5))
    'iperf3 -c 198.18.0.9 -p 5201 -t 0 -u -P 2 -b 5000000 -l 1000 -i 1 --forceflush --json-stream'
    """
    words = [program.name, "-c", str(config.server), "-p", str(config.port), "-t", "0"]
    words += ["-u"] if config.udp else []
    words += ["-P", str(config.streams)] if config.streams > 1 else []
    words += ["-b", str(max(1, round(config.rate * level / config.streams)))] if config.rate else []
    words += ["-R"] if config.reverse else ["--bidir"] if config.bidir else []
    words += ["-l", str(config.length)] if config.length else []
    words += ["-B", config.bind] if config.bind else []
    return (*words, *_every(config), *program.output, *config.options)


def _every(config: Config) -> tuple[str, ...]:
    return ("-i", f"{min(max(config.interval, 0.2), 1.0):g}", "--forceflush")


def _facts(program: Program, command: tuple[str, ...]) -> Facts:
    note = "load.latency is TCP's smoothed round-trip time"
    if not program.streams:
        note = (
            f"iperf3 {program.shown} writes no JSON while it runs (3.17 and later do): its text is read, and bytes of "
            "TCP are counted from a rate with four digits or more"
        )
    return Facts({"iperf3": program.shown, "command": " ".join(command)}, (), (note,))


def _threads(program: Program, streams: int) -> int:
    """Threads it can use: one before 3.16, then one per stream."""
    return streams if program.version >= THREADS_SINCE else 1


class Listener:
    """A server, or any command, whose output is read."""

    def __init__(self, kept: Supervisor, facts: Facts, command: Sequence[str], threads: int, silence_s: float) -> None:
        self._kept, self._facts, self._threads, self._silence_s = kept, facts, threads, silence_s
        self._command = tuple(command)

    def facts(self) -> Facts:
        """Version and command."""
        version = self._kept.account.began.version
        if "iperf3" in self._facts.identity or not version:
            return self._facts
        return Facts({"version": version, **self._facts.identity}, (), self._facts.notes)

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints."""
        version = self._facts.identity.get("iperf3") or self._kept.account.began.version
        return generator("iperf3", version, {"command": told_command(self._command)})

    async def poll(self, now_ns: int) -> Answer:
        """The output since the last poll. Raises SourceError if it should run and does not."""
        kept = self._kept
        if not kept.running and kept.error is not None and kept.exit_code != 0:
            raise SourceError(kept.error)
        _check_silence(kept, self._silence_s, now_ns)
        streams = min(self._threads, kept.account.began.streams or 1)
        return kept.account.answer(now_ns, *kept.account.offered(now_ns), *_busy(kept, streams, now_ns))


class DrivenClient:
    """A client that sends at the phase's level."""

    def __init__(self, config: Config, program: Program, kept: Supervisor, patience_s: float) -> None:
        self._config, self._program, self._kept, self._patience_s = config, program, kept, patience_s
        self._level = 0.0

    def facts(self) -> Facts:
        """Version and command at full level."""
        return _facts(self._program, client(self._config, self._program, 1.0))

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See Fingerprints: the command at full level."""
        command = client(self._config, self._program, 1.0)
        return generator("iperf3", self._program.shown, {"command": told_command(command)})

    async def drive(self, level: float) -> None:
        """See ``Drivable``; the client is restarted, which takes some tenths of a second."""
        if not 0 <= level <= _MAX_LEVEL:
            raise SourceError(f"invalid level {level:g}: expected 0 to {_MAX_LEVEL:g}")
        if self._config.rate is None and level not in (0, 1):
            raise SourceError(
                "a client without `rate` sends as fast as TCP allows: only the levels 0 and 1 are possible"
            )
        self._level = level
        self._kept.want(client(self._config, self._program, level) if level else None)
        await self._kept.settled(self._patience_s)

    async def poll(self, now_ns: int) -> Answer:
        """The client's output since the last poll. Raises SourceError if it should send and cannot."""
        kept, config = self._kept, self._config
        if self._level and not kept.connected:
            raise SourceError(kept.error or f"iperf3 has not connected to {config.server}:{config.port} yet")
        _check_silence(kept, config.silence, now_ns)
        test = Began(config.udp, config.streams, config.length or kept.account.began.length)
        both = 2 if config.bidir else 1
        bits = config.rate * self._level * both if config.rate else None
        wanted = offered(bits, test, now_ns) if self._level else _zero_offered(config, now_ns)
        busy = _busy(kept, _threads(self._program, config.streams * both), now_ns)
        return kept.account.answer(now_ns, *wanted, *busy)


def _check_silence(kept: Supervisor, silence_s: float, now_ns: int) -> None:
    silent_s = kept.silent_s(now_ns)
    if silent_s > silence_s:
        raise SourceError(
            f"iperf3 is running but has printed nothing for {show_seconds(round(silent_s))}: is it stopped or stuck?"
        )


def _zero_offered(config: Config, now_ns: int) -> tuple[Sample, ...]:
    samples = [Sample("load.offered.bit.rate", "", 0, now_ns)]
    if config.udp:
        samples.append(Sample("load.offered.packet.rate", "", 0, now_ns))
    return tuple(samples)


def _busy(kept: Supervisor, threads: int, now_ns: int) -> tuple[Sample, ...]:
    share = kept.busy(threads)
    return () if share is None else (Sample("load.cpu.utilization", "", share, now_ns),)
