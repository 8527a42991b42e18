"""A run with much in it, for what is read back from a database: every kind of reading, poll, event and verdict."""

from __future__ import annotations

import random
from pathlib import Path

from soakwatch.record import Record
from soakwatch_model.event import Event
from soakwatch_model.sample import NOTHING, Answer, Fault, Poll, PollOutcome, Sample, object_text

S = 10**9
T0 = 1_760_000_000 * S + 123_456_789
STEP = 10
PLAN = """\
name: everything
duration: 3h
targets:
  dut: {role: dut, sources: [local: {interval: 10s}]}
  tg: {role: generator, sources: [{http: {url: "http://127.0.0.1:9/", interval: 10s}}]}
rules: {memory_growth: {tolerance: 1%}, coverage: {}}
"""
LEAKY, STEADY = (object_text(process=name, instance=0) for name in ("leaky", "steady"))
ODD = ('a b,c="d"\\', "näme\nof two", "x=y", "it's")


def everything(folder: Path, hours: float = 3.0, seed: int = 6) -> Path:
    """A record in which memory grows, a source is half lost, polls come late, and names are hostile."""
    rng = random.Random(seed)
    with Record.create(folder) as record:
        planned = f'{{"duration_s": {hours * 3600}, "phases": ["baseline", "soak"]}}'
        for key, value in {"run": "everything", "plan": PLAN, "start_ns": str(T0), "planned": planned}.items():
            record.set_meta(key, value)
        record.target("dut", "dut")
        record.target("tg", "generator")
        local = record.source("dut", "local", "dut", STEP * S, required=True)
        slow = record.source("dut", "snmp", "198.18.0.1", 60 * S, required=True)
        twin = record.source("dut", "snmp", "198.18.0.2", 60 * S, required=False)
        load = record.source("tg", "http", "tg", STEP * S, required=True)
        record.cadences(local.id, {"system.temperature": 30.0})
        record.begin_span(T0)
        record.begin_phase("baseline", T0)
        many = int(hours * 3600 / STEP)
        polls: list[Poll] = []
        for index in range(many):
            if index == many // 6:
                record.begin_phase("soak", T0 + index * STEP * S)
            due = T0 + index * STEP * S
            start = due + rng.randrange(5_000_000)
            polls += [_local(local.id, index, due, start, rng), _load(load.id, index, due, rng)]
            if index % 6 == 0:
                polls += [_snmp(slow.id, index, due, rng), _snmp(twin.id, index, due, rng)]
        record.put(polls)
        for index in (50, 51):  # kept by an agent and fetched later
            due = T0 + index * STEP * S
            samples = (Sample("system.processes", "", 100.0 + index, due),)
            record.put([Poll(local.id, due, due, S, PollOutcome.OK, None, Answer(samples, (), ()))])
        _events(record)
        record.end_phase(T0 + many * STEP * S)
        record.heartbeat(T0 + many * STEP * S)
        record.set_meta("ended_ns", str(T0 + many * STEP * S))
        record.finish()
    return folder


def _local(source: int, index: int, due: int, start: int, rng: random.Random) -> Poll:
    if index in {50, 51} or 500 <= index < 505:
        lost = PollOutcome.TIMEOUT if index < 500 else PollOutcome.MISSED
        return Poll(source, due, start, 3 * S, lost, f'no answer\nwithin "3 s" ({index % 2})', NOTHING)
    samples = [
        Sample("process.memory.usage", LEAKY, 2**30 + index * 80_000 + rng.randrange(9), start),
        Sample("process.memory.usage", STEADY, 5e8 + rng.random(), start),
        Sample("process.cpu.utilization", STEADY, rng.random() / 3, start + 17),
        Sample("system.cpu.utilization", "", 0.25 + rng.random() / 100, start),
        Sample("system.network.io", object_text(interface="eth0", direction="receive"), 2**40 + index * 12345, start),
        Sample("system.uptime", "", 1000.5 + index * STEP, start),
        Sample("process.memory.usage", object_text(process=ODD[index % 4], instance=index % 3), 7.0e7, start),
    ]
    if index % 3 == 0:
        samples.append(Sample("system.temperature", object_text(sensor="cpu"), 40 + rng.random(), start))
    faults = (Fault("system.memory.slab", "", "there is no\nslab here"),) if index % 100 == 0 else ()
    return Poll(source, due, start, rng.randrange(S), PollOutcome.OK, None, Answer(tuple(samples), (), faults))


def _snmp(source: int, index: int, due: int, rng: random.Random) -> Poll:
    if rng.random() < 0.5:
        return Poll(source, due, due, S, PollOutcome.FAILED, "198.18.0.1 refuses", NOTHING)
    name = object_text(interface=f"ge-0/0/{source}", direction="receive")
    samples = (Sample("system.network.errors", name, index // 100, due + 5),)
    return Poll(source, due, due, 999, PollOutcome.OK, None, Answer(samples, (), ()))


def _load(source: int, index: int, due: int, rng: random.Random) -> Poll:
    samples = (
        Sample("load.request.rate", "", 1000 + rng.random(), due),
        Sample("load.latency", object_text(quantile="p99"), 0.01 + rng.random() / 1e3, due),
    )
    return Poll(source, due, due, 5, PollOutcome.OK, None, Answer(samples, (), ()))


def _events(record: Record) -> None:
    begin_ns = T0 + 2000 * S
    failover = Event("failover", "dut", "a,b", begin_ns, None, {"why": 'a "test"\n…'}, {"reboot": 1}, begin_ns + 60 * S)
    record.add_event("dut", failover, "user")
    record.add_event("dut", Event("process.restart", "dut", STEADY, begin_ns + S, begin_ns + S, {}, {}), "probe")
    record.add_event("", Event("clock.step", "", "", begin_ns + 2 * S, begin_ns + 3 * S, {"seconds": "0.5"}), "monitor")
