"""Records whose answers are known: one process that leaks for 13 minutes, a calm one, an unread one, and a fleet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from soakwatch.record import Record
from soakwatch_model.event import Event
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample, object_text

BEGIN = 1_795_200_000 * 10**9
SECOND = 10**9
MIB = 2.0**20
LENGTH_S, BASELINE_S, RECOVERY_S = 780, 60, 720
PLAN = """\
name: web
phases: [{baseline: 1m}, {soak: 11m}, {recovery: 1m}]
targets:
  web-1: {role: dut, sources: [{local: {interval: 1s}}]}
  tg: {role: generator, sources: [{command: {interval: 1s, run: [load]}}]}
"""
FLEET, FLEET_LENGTH_S, FLEET_STEP_S = 20, 2400, 5
FLEET_PLAN = """\
name: fleet
phases: [{soak: 40m}]
targets:
"""
LEAKING, REBOOTING, DROPPING = "fw-07", "fw-12", "fw-15"
SERVICE = object_text(process="svc.py", instance=0)
Samples = Callable[[int, int], tuple[Sample, ...]]


def process_record(
    folder: Path, *, leak_mib_h: float = 52.0, unread: bool = False, begin_ns: int = BEGIN, release: str = "7.2"
) -> Path:
    """Thirteen minutes of one service under load; an ``unread`` one answers no poll in the middle of its soak."""
    noise = np.random.default_rng(3)
    wobble, busy = noise.normal(0, 0.06, LENGTH_S), noise.uniform(0.2, 0.4, LENGTH_S)

    def device(second: int, now: int) -> tuple[Sample, ...]:
        process = (22.0 + leak_mib_h * second / 3600 + float(wobble[second])) * MIB
        return (
            Sample("process.memory.usage", SERVICE, process, now),
            Sample("process.start_time", SERVICE, begin_ns * 1e-9 - 60, now),
            Sample("process.up", SERVICE, 1, now),
            Sample("process.open_files", SERVICE, 12.0, now),
            Sample("system.cpu.utilization", "", float(busy[second]), now),
            Sample("system.memory.usage", "", 3.0 * 2**30 + (second % 7) * MIB, now),
            Sample("system.memory.limit", "", 16.0 * 2**30, now),
            *(
                Sample(f"system.network.packet.{what}", object_text(interface="eth0", direction=way), 0.0, now)
                for what in ("dropped", "errors")
                for way in ("receive", "transmit")
            ),
        )

    def load(second: int, now: int) -> tuple[Sample, ...]:
        running = BASELINE_S <= second < RECOVERY_S
        return (
            Sample("load.request.rate", "", 940.0 + second % 7 if running else 0.0, now),
            Sample("load.offered.rate", "", 940.0 + second % 7 if running else 0.0, now),
            Sample("load.failures", "", 0.0, now),
            Sample("load.latency", "quantile=p99", 0.004 + 0.0001 * (second % 5), now),
        )

    silent = range(150, 700) if unread else range(0)
    with Record.create(folder) as record:
        _told(record, "web", PLAN, begin_ns, LENGTH_S, release)
        for name, start in (("baseline", 0), ("soak", BASELINE_S), ("recovery", RECOVERY_S)):
            record.begin_phase(name, begin_ns + start * SECOND)
        record.target("web-1", "dut")
        record.target("tg", "generator")
        sources = [
            (record.source("web-1", "local", "local", SECOND, required=True).id, device, silent),
            (record.source("tg", "command", "command", SECOND, required=True).id, load, range(0)),
        ]
        polls = []
        for second in range(LENGTH_S):
            now = begin_ns + second * SECOND
            polls += [_poll(source, now, second, take, second in lost) for source, take, lost in sources]
        record.put(polls)
        _over(record, begin_ns, LENGTH_S)
    return folder


CRASHED, FAILOVER_S = range(400, 403), 300
INCIDENT_PLAN = """\
name: incident
phases: [{baseline: 1m}, {soak: 11m}, {recovery: 1m}]
targets:
  gw: {role: dut, sources: [{local: {interval: 1s}}]}
  tg: {role: generator, sources: [{command: {interval: 1s, run: [load]}}]}
"""
AUTHD = object_text(process="authd", instance=0)


def incident_record(folder: Path, *, crash: bool = True, failover: bool = False, long: bool = False) -> Path:
    """A gateway with two processes of which authd dies for three seconds (``CRASHED``), and a failover that was
    announced and costs no request (at ``FAILOVER_S``); of a ``long`` run the steps are 4 min: 52 hours."""
    noise = np.random.default_rng(11)
    wobble, step = noise.uniform(0, 0.2, LENGTH_S), 240 * SECOND if long else SECOND
    with Record.create(folder) as record:
        _told(record, "incident", INCIDENT_PLAN, BEGIN, LENGTH_S, "7.2", step)
        for name, start in (("baseline", 0), ("soak", BASELINE_S), ("recovery", RECOVERY_S)):
            record.begin_phase(name, BEGIN + start * step)
        record.target("gw", "dut")
        record.target("tg", "generator")
        device = record.source("gw", "local", "local", step, required=True).id
        load = record.source("tg", "command", "command", step, required=True).id
        polls, answered, failed = [], 0.0, 0.0
        for number in range(LENGTH_S):
            now, dead = BEGIN + number * step, crash and number in CRASHED
            reborn = crash and number >= CRASHED.stop
            processes = [("aaa", 20 + float(wobble[number]), True), ("authd", 40 - 15.0 * reborn, not dead)]
            samples = [Sample("system.cpu.utilization", "", 0.2 + float(wobble[number]), now)]
            for name, size, up in processes:
                of = object_text(process=name, instance=0)
                born = BEGIN * 1e-9 - 60 if name == "aaa" or not reborn else (BEGIN + CRASHED.stop * step) * 1e-9
                samples.append(Sample("process.up", of, float(up), now))
                if up:
                    samples.append(Sample("process.memory.usage", of, size * MIB, now))
                    samples.append(Sample("process.start_time", of, born, now))
            polls.append(Poll(device, now, now, SECOND, PollOutcome.OK, None, Answer(tuple(samples), (), ())))
            rate = 80.0 if BASELINE_S <= number < RECOVERY_S else 10.0
            answered, failed = answered + rate * (not dead) * step / SECOND, failed + rate * dead * step / SECOND
            traffic = (
                Sample("load.offered.rate", "", rate, now),
                Sample("load.requests", "", answered, now),
                Sample("load.failures", "", failed, now),
            )
            polls.append(Poll(load, now, now, SECOND, PollOutcome.OK, None, Answer(traffic, (), ())))
        record.put(polls)
        if failover:
            begin_ns = BEGIN + FAILOVER_S * step
            event = Event("failover", "gw", "", begin_ns, begin_ns + SECOND, {}, {}, begin_ns + 10 * SECOND)
            record.add_event("gw", event, "user")
        _over(record, BEGIN, LENGTH_S, step)
    return folder


def fleet_record(folder: Path, devices: int = FLEET) -> Path:
    """Forty minutes of many devices: one leaks, one reboots, one drops packets, the others are well and tell little."""
    noise = np.random.default_rng(5)
    with Record.create(folder) as record:
        names = [f"fw-{number:02d}" for number in range(1, devices + 1)]
        plan = FLEET_PLAN + "".join(
            f"  {name}: {{role: dut, sources: [{{local: {{interval: 5s}}}}]}}\n" for name in names
        )
        _told(record, "fleet", plan, BEGIN, FLEET_LENGTH_S, "7.2")
        record.begin_phase("soak", BEGIN)
        sources = []
        for name in names:
            record.target(name, "dut")
            sources.append((record.source(name, "snmp", "snmp", FLEET_STEP_S * SECOND, required=True).id, name))
        polls = []
        for second in range(0, FLEET_LENGTH_S, FLEET_STEP_S):
            now = BEGIN + second * SECOND
            for source, name in sources:
                wobble = noise.uniform(0, 1, 4)
                booting = name == REBOOTING and 1500 <= second < 1620
                if booting:
                    polls.append(Poll(source, now, now, SECOND, PollOutcome.TIMEOUT, "no answer in 1 s", NOTHING))
                    continue
                answer = Answer(_device(name, second, now, wobble.tolist()), (), ())
                polls.append(Poll(source, now, now, 1000, PollOutcome.OK, None, answer))
        record.put(polls)
        _over(record, BEGIN, FLEET_LENGTH_S)
    return folder


def _device(name: str, second: int, now: int, wobble: list[float]) -> tuple[Sample, ...]:
    grown = second / 3600 * 200 * MIB if name == LEAKING else 0.0
    dropped = max(0, second - 1200) * 3.0 if name == DROPPING else 0.0
    booted = second if name != REBOOTING or second < 1500 else second - 1560
    calm = (
        Sample("system.uptime", "", 86_400.0 + booted if booted == second else float(booted), now),
        Sample("system.cpu.utilization", "", 0.3 + 0.1 * wobble[2], now),
    )
    if name not in {LEAKING, REBOOTING, DROPPING}:
        return calm
    link = {"interface": "ge-0/0/0"}
    processes = [
        Sample("process.memory.usage", object_text(process=process, instance=0), size, now)
        for process, size in (("routed", 180 * MIB + grown + wobble[0] * MIB), ("snmpd", 20 * MIB + wobble[1] * MIB))
    ]
    return (
        *processes,
        *calm,
        Sample("system.memory.usage", "", 2 * 2.0**30 + grown + wobble[3] * MIB, now),
        Sample("system.memory.limit", "", 4 * 2.0**30, now),
        *(
            Sample("system.network.packet.dropped", object_text(**link, direction=way), dropped, now)
            for way in ("receive", "transmit")
        ),
        *(
            Sample("system.network.io", object_text(**link, direction=way), second * 1e6, now)
            for way in ("receive", "transmit")
        ),
    )


def _poll(source: int, now: int, second: int, take: Samples, lost: bool) -> Poll:
    if lost:
        return Poll(source, now, now, SECOND, PollOutcome.TIMEOUT, "timed out after 1 s", NOTHING)
    return Poll(source, now, now, 1000, PollOutcome.OK, None, Answer(take(second, now), (), ()))


def _told(
    record: Record, run: str, plan: str, begin_ns: int, length_s: int, release: str, step_ns: int = SECOND
) -> None:
    host = {"kernel": "6.1.0", "os": "Debian GNU/Linux 12", "cores": 8}
    sysctls = {f"net.core.setting_{number}": number for number in range(80)}
    metas = {
        "run": run,
        "plan": plan,
        "start_ns": str(begin_ns),
        "ended_ns": str(begin_ns + length_s * step_ns),
        "labels": json.dumps({"release": release}),
        "fingerprint": json.dumps({"web-1": {"host": host, "sysctls": sysctls}}) if run == "web" else "{}",
    }
    for key, text in metas.items():
        record.set_meta(key, text)


def _over(record: Record, begin_ns: int, length_s: int, step_ns: int = SECOND) -> None:
    record.end_phase(begin_ns + length_s * step_ns)
    record.finish()
