"""Records for pages to show: a device with faults that are known to the second, and one with names that attack."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from soakwatch.record import Record
from soakwatch_model.event import Event
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample, object_text

BEGIN = 1_795_200_000 * 10**9
SECOND = 10**9
LENGTH = 3600
"""More seconds than a line has points."""
CORES = 16
BASELINE_S, RECOVERY_S = 300, 3300
RESTART, SPIKE, DROPS, SILENT = 2000, 1777, range(2400, 2403), range(2700, 2760)
"""Seconds of the run: a process restarts, one reading of a core is 100 %, packets are dropped, nothing is answered."""
DUT, GENERATOR = "fw-7", "tg"
LEAKING, CALM = object_text(process="httpd", instance=0), object_text(process="bgpd", instance=0)
SPIKING = object_text(core=3)
PLAN = """\
name: device
phases: [{baseline: 5m}, {soak: 50m}, {recovery: 5m}]
targets:
  fw-7: {role: dut, sources: [{local: {interval: 1s}}]}
  tg: {role: generator, sources: [{command: {interval: 1s, run: [load]}}]}
"""
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script><script>document.title='owned'</script>",
    "</textarea></style><svg onload=alert(3)>",
    "javascript:alert(4)",
    "{{7*7}} ${alert(5)} @{value} $$x^2$$ \\(y\\)",
    "🔥👩‍👩‍👧 emoji",
    "خدمة \u202eevil\u202c",
    "n" * 500,
)
"""Names of processes and interfaces that try to be more than text."""


def device_record(folder: Path, *, small: bool = False) -> Path:
    """An hour, each second: a leak with a restart, one spike of a core, drops, a silence, and a load.

    A ``small`` one has two cores, drops and a load, and so the few plots that the looks of a page need.
    """
    noise = np.random.default_rng(7)
    calm = 0.2 + noise.uniform(0, 0.1, (LENGTH, CORES))
    calm[SPIKE, 3] = 1.0
    latency = 0.002 + noise.uniform(0, 0.001, LENGTH)
    with Record.create(folder) as record:
        record.set_meta("run", "device")
        record.set_meta("plan", PLAN)
        record.target(DUT, "dut")
        record.target(GENERATOR, "generator")
        device = record.source(DUT, "local", "local", SECOND, required=True).id
        load = record.source(GENERATOR, "command", "command", SECOND, required=True).id
        _phases(record)
        polls = []
        for second in range(LENGTH):
            now = BEGIN + second * SECOND
            samples = _device_samples(second, now, [float(share) for share in calm[second][: 2 if small else CORES]])
            if small:
                samples = tuple(sample for sample in samples if not sample.metric.startswith(("process.", "queue.")))
            event = Event("process.restart", "", LEAKING, now, None, {"pid": "4711"})
            answer = Answer(samples, (event,) if second == RESTART and not small else (), ())
            polls.append(
                Poll(device, now, now, SECOND, PollOutcome.TIMEOUT, "timed out after 1 s", NOTHING)
                if second in SILENT
                else Poll(device, now, now, 1000, PollOutcome.OK, None, answer)
            )
            samples_of_load = [Sample("load.request.rate", "", 400.0 + second % 7, now)]
            if not small:
                samples_of_load.append(Sample("load.latency", "quantile=p99", float(latency[second]), now))
            polls.append(Poll(load, now, now, 1000, PollOutcome.OK, None, Answer(tuple(samples_of_load), (), ())))
        for start in range(0, len(polls), 600):
            record.put(polls[start : start + 600])
        record.end_phase(BEGIN + LENGTH * SECOND)
        record.set_meta("start_ns", str(BEGIN))
        record.set_meta("ended_ns", str(BEGIN + LENGTH * SECOND))
        record.finish()
    return folder


def hostile_record(folder: Path, interfaces: int = 0, length: int = 300, *, dropping: bool = False) -> Path:
    """Some minutes of processes and interfaces with attacking names, and as many plain interfaces more.

    With ``dropping`` each of these drops packets.
    """
    with Record.create(folder) as record:
        record.set_meta("run", HOSTILE[0])
        record.set_meta("plan", f"name: run\n# {HOSTILE[2]}\n")
        record.target(HOSTILE[1], "dut")
        record.begin_phase("soak", BEGIN)
        source = record.source(HOSTILE[1], "local", "local", SECOND, required=True).id
        wide = record.source(HOSTILE[1], "snmp", "snmp", 60 * SECOND, required=False).id
        polls = []
        for second in range(length):
            now = BEGIN + second * SECOND
            samples = []
            for index, name in enumerate(HOSTILE):
                process, grown = object_text(process=name, instance=0), index * 2**20 + second * 2**16
                samples.append(Sample("process.memory.usage", process, 50 * 2**20 + grown, now))
                link = object_text(interface=name, direction="receive")
                samples.append(Sample("system.network.packet.dropped", link, float(second * index), now))
            event = Event(
                "process.restart", "", object_text(process=HOSTILE[0], instance=0), now, None, {"why": HOSTILE[1]}
            )
            answer = Answer(tuple(samples), (event,) if second == 100 else (), ())
            failed = Poll(source, now, now, SECOND, PollOutcome.TIMEOUT, HOSTILE[2], NOTHING)
            polls.append(
                failed if second in range(200, 210) else Poll(source, now, now, 9, PollOutcome.OK, None, answer)
            )
            if interfaces and second % 60 == 0:
                everywhere = Answer(_wide(interfaces, second * dropping, now), (), ())
                polls.append(Poll(wide, now, now, 9, PollOutcome.OK, None, everywhere))
        record.put(polls)
        record.end_phase(BEGIN + length * SECOND)
        record.set_meta("start_ns", str(BEGIN))
        record.set_meta("ended_ns", str(BEGIN + length * SECOND))
        record.finish()
    return folder


def _phases(record: Record) -> None:
    for name, begin, end in (
        ("baseline", 0, BASELINE_S),
        ("soak", BASELINE_S, RECOVERY_S),
        ("recovery", RECOVERY_S, None),
    ):
        record.begin_phase(name, BEGIN + begin * SECOND)
        if end is not None:
            record.end_phase(BEGIN + end * SECOND)


def _device_samples(second: int, now: int, cores: Iterable[float]) -> tuple[Sample, ...]:
    life = second - RESTART if second >= RESTART else second
    born = BEGIN * 1e-9 + (RESTART if second >= RESTART else -60)
    dropped = sum(second >= dropped_s for dropped_s in DROPS) * 40.0
    return (
        *(Sample("system.cpu.core.utilization", object_text(core=n), share, now) for n, share in enumerate(cores)),
        Sample("process.memory.usage", LEAKING, 40.0 * 2**20 + 2**15 * life, now),
        Sample("process.memory.usage", CALM, 50.0 * 2**20 + 4096 * (second % 9), now),
        Sample("process.start_time", LEAKING, born, now),
        Sample("process.up", LEAKING, 1, now),
        Sample("system.network.packet.dropped", object_text(interface="eth0", direction="receive"), dropped, now),
        Sample("queue.depth", object_text(queue="tx0"), float(second % 40), now),
    )


def _wide(interfaces: int, second: int, now: int) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            "system.network.packet.dropped",
            object_text(interface=f"ge-{n // 48}/{n % 48}", direction="receive"),
            float(n * (second // 60)),
            now,
        )
        for n in range(interfaces)
    )
