"""Repeated failovers, each outage measured four ways: from loss and from time stamps, by soakwatch's ticks and by the
log of single packets."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from swlab import life, topology
from swlab.places import ROUTERS, STATE
from swlab.running import HERE, findings, new_folder, observe, soakwatch, verdict_of
from swlab.scenarios import Action, plug_all
from swlab.table import columns
from swlab.trouble import LabError, call

FIRST_S, APART_S = 20.0, 12.0
RATE = 200.0
"""Packets per second, as in the plan."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that came back: its number, and the monotonic times when it was sent and returned."""

    number: int
    sent_ns: int
    back_ns: int


@dataclass(frozen=True, slots=True)
class Outage:
    """An outage according to single packets, in seconds."""

    lost: int
    loss_s: float
    time_s: float

    @property
    def apart(self) -> float:
        """How far the two methods differ, in intervals between packets."""
        return abs(self.loss_s - self.time_s) * RATE


def outage_of(packets: Sequence[Packet], begin_ns: int, end_ns: int, rate: float = RATE) -> Outage:
    """The outage among packets sent in a stretch: lost packets over the rate (RFC 6201, section 4.3.1), and the time
    between the last packet returned before a gap and the first one after it, minus one interval (section 4.3.2).
    Several gaps are added up.

    >>> back = [Packet(n, n * 10**7, n * 10**7 + 5) for n in (0, 1, 2, 13, 14)]
    >>> outage_of(back, 0, 10**9, rate=100.0)
    Outage(lost=10, loss_s=0.1, time_s=0.1)
    """
    here = sorted((p for p in packets if begin_ns <= p.sent_ns < end_ns), key=lambda p: p.number)
    lost, time_s = 0, 0.0
    for before, after in itertools.pairwise(here):
        missing = after.number - before.number - 1
        if missing > 0:
            lost += missing
            time_s += (after.back_ns - before.back_ns) * 1e-9 - 1 / rate
    return Outage(lost, lost / rate, time_s)


def scatter_of(packets: Sequence[Packet], rate: float = RATE) -> float:
    """The largest deviation of the time between two consecutive packets, in intervals: the error of a time stamp on a
    busy machine.

    >>> scatter_of([Packet(n, n * 10**7, n * 10**7 + late) for n, late in enumerate((5, 5, 10**7 + 5, 5))], rate=100.0)
    1.0
    """
    ordered = sorted(packets, key=lambda p: p.number)
    pairs = [(a, b) for a, b in itertools.pairwise(ordered) if b.number == a.number + 1]
    return max((abs((b.back_ns - a.back_ns) * 1e-9 * rate - 1) for a, b in pairs), default=0.0)


def packets_of(log: Path) -> list[Packet]:
    """Parse the log of the probe, without an incomplete last line."""
    packets = []
    for line in log.read_text().rpartition("\n")[0].splitlines():
        words = line.split()
        if len(words) == 3:
            packets.append(Packet(*map(int, words)))
    return packets


class Failovers:
    """Pulls and plugs cables, and remembers when."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pulled: list[tuple[str, int]] = []

    def pull(self) -> None:
        """Pull the cable of the forwarding router, and mark the event in soakwatch."""
        node = life.master()
        self.pulled.append((node.name, time.monotonic_ns()))
        topology.plug(node, "north", up=False)
        call(
            soakwatch(),
            "event",
            str(self._folder),
            "failover",
            "--within",
            "8s",
            "--expect",
            "outage=1",
            "--label",
            f"pulled={node.name}",
        )

    def plug(self) -> None:
        """Plug all cables in; this causes no failover."""
        for each in ROUTERS:
            topology.plug(each, "north", up=True)


def failovers(repeat: int, runs: Path) -> int:
    """Run them and print the table; returns 0 if all agree. Raises LabError."""
    if life.settled():
        life.up()
    folder = new_folder(runs, "failovers")
    pulls = Failovers(folder)
    script = []
    for number in range(repeat):
        at_s = FIRST_S + number * APART_S
        script += [
            Action(at_s, f"failover {number + 1} of {repeat}", pulls.pull),
            Action(at_s + 6, "plugged in", pulls.plug),
        ]
    length = FIRST_S + repeat * APART_S
    plan = HERE / "plans" / "failovers.yaml"
    try:
        observe(plan, folder, script, "--duration", f"{length:g}s", longest_s=length + 60)
    finally:
        plug_all()
    packets = packets_of(STATE / "probe.log")
    ends = [pulled_ns for _, pulled_ns in pulls.pulled[1:]] + [packets[-1].sent_ns if packets else 0]
    single = [
        outage_of(packets, pulled_ns - 10**9, end - 10**9)
        for (_, pulled_ns), end in zip(pulls.pulled, ends, strict=True)
    ]
    numbers = _numbers(verdict_of(folder))
    scatter = scatter_of(packets)
    print(_table([name for name, _ in pulls.pulled], single, numbers))
    print(f"single packets came back up to {scatter / RATE * 1e3:.1f} ms out of step: each time stamp is as uncertain")
    print(f"run: {folder}", file=sys.stderr)
    agree = numbers.get("agree", 0.0) == repeat and all(outage.apart <= 1 + 2 * scatter for outage in single)
    return 0 if agree else 1


def _numbers(data: Mapping[str, object]) -> Mapping[str, float]:
    for finding in findings(data):
        if finding["rule"] == "event_impact" and finding["object"] == "event=failover":
            numbers = finding["numbers"]
            assert isinstance(numbers, dict)
            return numbers
    raise LabError("the run has no finding on its failovers: see its report")


def _table(names: Sequence[str], single: Sequence[Outage], numbers: Mapping[str, float]) -> str:
    head = ("#", "pulled", "by loss", "by time stamps", "packets lost", "by loss", "by time stamps", "apart")
    rows: list[tuple[str, ...]] = [("", "", "soakwatch", "(50 ms ticks)", "each packet", "", "", "(of 5 ms)"), head]
    for number, (name, outage) in enumerate(zip(names, single, strict=True), 1):
        key = f"outage_{number}_"
        loss, span = numbers.get(f"{key}loss_s"), numbers.get(f"{key}time_s")
        error = numbers.get(f"{key}time_error_s", 0.0)
        rows.append(
            (
                str(number),
                name,
                "-" if loss is None else f"{loss * 1e3:.0f} ms",
                "-" if span is None else f"{span * 1e3:.0f} ± {error * 1e3:.0f} ms",
                str(outage.lost),
                f"{outage.loss_s * 1e3:.1f} ms",
                f"{outage.time_s * 1e3:.1f} ms",
                f"{outage.apart:.2f}",
            )
        )
    if single:
        lost = [outage.loss_s for outage in single]
        rows.append(
            (
                "",
                "median",
                f"{numbers.get('outage_median_s', 0) * 1e3:.0f} ms",
                "",
                "",
                f"{median(lost) * 1e3:.1f} ms",
                "",
                "",
            )
        )
        rows.append(
            (
                "",
                "worst",
                f"{numbers.get('outage_worst_s', 0) * 1e3:.0f} ms",
                "",
                "",
                f"{max(lost) * 1e3:.1f} ms",
                "",
                f"{max(outage.apart for outage in single):.2f}",
            )
        )
    return columns(rows)
