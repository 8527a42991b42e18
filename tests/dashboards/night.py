"""A night of 12 hours and 400 series with 100 findings, and what goes wrong on such a night: the record, sent by the
sink to an InfluxDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.dashboards.filling import SECOND, send, token_file

from soakwatch.record import Record
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_model.window import Window
from soakwatch_testing.influxd import Influxd

NIGHT, SHORT = "20260201T180000Z-night", "20260203T120000Z-short"
BEGIN_NS, EVERY_S, POLLS = 1_769_968_800 * SECOND, 60, 720
END_NS = BEGIN_NS + POLLS * EVERY_S * SECOND
SHORT_NS, SHORT_S = BEGIN_NS + 2 * 86_400 * SECOND, 300
PROCESSES = tuple(f"worker{number}" for number in range(24))
LEAKING = ("worker3", "worker7", "worker11", "worker20")
DOWN = ("worker5", "worker23")
CORES, PORTS = 32, 80
USED, FLAPPING = range(0, 20, 2), ("eth6", "eth14")
"""The ports that have a link, and those of them that lose it for a while; all others are down all night, unused."""
FLOW_PACKETS, PORT_ERRORS = {"voice": 100, "bulk": 4_000}, 3
"""What each flow sends in a poll, of which the second one loses a tenth; errors a poll on the generator's second port.
Its counters begin anew at half of the night."""
HOST_SWING = 1e9
"""By which the memory of the monitor's own host swings: no device is under test there."""
TICK_PACKETS = 722
"""What the generator counts in one tick of the two that came with one poll, two nanoseconds apart."""
FAILING, WARNING, INCONCLUSIVE = 60, 20, 20


def fill(server: Influxd, folder: Path) -> None:
    """The night, and a run of five minutes two days later."""
    token = token_file(server, folder)
    for run, begin_ns, polls, every_s in ((NIGHT, BEGIN_NS, POLLS, EVERY_S), (SHORT, SHORT_NS, SHORT_S // 10, 10)):
        make_record(folder / run, begin_ns, polls, every_s, findings=run == NIGHT)
        send(folder / run, run, server, token)


def make_record(folder: Path, begin_ns: int, polls: int, every_s: int, *, findings: bool) -> None:
    """The record of a run that failed."""
    end_ns = begin_ns + polls * every_s * SECOND
    with Record.create(folder) as record:
        record.target("firewall", "dut")
        record.target("a-generator", "generator")  # first in the alphabet
        device = record.source("firewall", "local", "firewall/local", every_s * SECOND, required=True).id
        load = record.source("a-generator", "command", "a-generator/command", every_s * SECOND, required=True).id
        record.target("host", "monitor")
        host = record.source("host", "local", "host/local", every_s * SECOND, required=False).id
        record.begin_phase("soak", begin_ns)
        taken = []
        for index in range(polls):
            due_ns = begin_ns + index * every_s * SECOND
            taken += [
                poll_of_device(device, index, polls, due_ns),
                poll_of_load(load, index, due_ns),
                poll_of_host(host, index, due_ns),
            ]
        record.put(taken)
        record.end_phase(end_ns)
        record.add_event("firewall", Event("failover", "firewall", "", begin_ns, begin_ns + 60 * SECOND, {}), "user")
        record.put_findings(list(findings_of(begin_ns, end_ns)) if findings else [], live=False, judged_ns=end_ns)
        record.set_meta("verdict", "fail" if findings else "pass")
        record.set_meta("reason", "worker3 grows")


def poll_of_device(source: int, index: int, polls: int, due_ns: int) -> Poll:
    """400 series; the poll at a third of the run is lost."""
    if index == polls // 3:
        return Poll(source, due_ns, due_ns, SECOND, PollOutcome.TIMEOUT, "no answer", Answer((), (), ()))
    samples: list[Sample] = []

    def add(metric: str, value: float, **labels: str) -> None:
        samples.append(Sample(metric, object_text(**labels), value, due_ns))

    for number, process in enumerate(PROCESSES):
        down = process in DOWN and polls // 2 <= index < polls // 2 + 5
        level = 100e6 + 1e6 * number + (50e3 * index if process in LEAKING else 5e6 * (index % 7 == 3))
        if not down:
            add("process.memory.usage", level, process=process, instance="0")
            add("process.cpu.utilization", 0.2, process=process, instance="0")
        add("process.up", 0.0 if down else 1.0, process=process, instance="0")
    for core in range(CORES):
        add("system.cpu.core.utilization", (0.95 if core == 9 else 0.2) + 0.001 * (index % 5), core=str(core))
    for port in range(PORTS):
        for direction in ("receive", "transmit"):
            add(
                "system.network.packet.dropped",
                406.0 * index * (port == 48),
                interface=f"eth{port}",
                direction=direction,
            )
            add("system.network.io", 1e6 * index, interface=f"eth{port}", direction=direction)
        gone = f"eth{port}" in FLAPPING and polls // 4 <= index < polls // 4 + 10
        add("system.network.up", float(port in USED and not gone), interface=f"eth{port}")
    add(
        "system.memory.usage",
        8e9 + 50e3 * index,
    )
    for peer, flaps in (("192.0.2.1", 0), ("192.0.2.2", 2 * (index >= polls // 2))):
        add("network.session.up", 1.0, protocol="bgp", peer=peer, context="")
        add("network.session.flaps", float(flaps), protocol="bgp", peer=peer, context="")
    return Poll(source, due_ns, due_ns, SECOND // 100, PollOutcome.OK, None, Answer(tuple(samples), (), ()))


def poll_of_load(source: int, index: int, due_ns: int) -> Poll:
    """A generator that reports a rate and counts as well; each tenth poll brings two ticks, two nanoseconds apart."""
    ticks = [(TICK_PACKETS * index, due_ns)]
    if index % 10 == 5:
        ticks.append((TICK_PACKETS * (index + 1), due_ns + 2))
    samples = [
        Sample(metric, "", float(value), time_ns)
        for count, time_ns in ticks
        for metric, value in (
            ("load.lost.packets", count),
            ("load.tx.packets", 1e6 * index),
            ("load.tx.packet.rate", 2e4),
        )
    ]
    since = index % (POLLS // 2)  # the counters of flows and ports begin anew
    for flow, packets in FLOW_PACKETS.items():
        share = 0.9 if flow == "bulk" else 1.0
        for metric, value in (
            ("load.flow.tx.packets", float(packets * since)),
            ("load.flow.rx.packets", share * packets * since),
            ("load.flow.loss", 1 - share),
        ):
            samples.append(Sample(metric, object_text(flow=flow), value, due_ns))
    for port in range(2):
        labels = object_text(port=str(port))
        samples.append(Sample("load.port.up", labels, float(port == 0 or index != 7), due_ns))
        errors = object_text(port=str(port), direction="receive")
        samples.append(Sample("load.port.errors", errors, float(PORT_ERRORS * since * port), due_ns))
    return Poll(source, due_ns, due_ns, SECOND // 100, PollOutcome.OK, None, Answer(tuple(samples), (), ()))


def poll_of_host(source: int, index: int, due_ns: int) -> Poll:
    """The collector's own machine, whose memory swings by more than anything leaks."""
    sample = Sample("system.memory.usage", "", 4e9 + HOST_SWING * (index % 2), due_ns)
    return Poll(source, due_ns, due_ns, SECOND // 100, PollOutcome.OK, None, Answer((sample,), (), ()))


def findings_of(begin_ns: int, end_ns: int) -> Iterator[Finding]:
    """A hundred findings on the whole run, of which some have a moment."""
    counts = ((Outcome.FAIL, FAILING), (Outcome.WARN, WARNING), (Outcome.INCONCLUSIVE, INCONCLUSIVE))
    for outcome, count in counts:
        for number in range(count):
            restart = outcome is Outcome.FAIL and number < 3
            at_ns = begin_ns + (number + 1) * 3_600 * SECOND
            yield Finding(
                "process_restart" if restart else ("memory_growth", "cpu_spike", "latency")[number % 3],
                1,
                outcome,
                "firewall",
                "process.memory.usage",
                f"process={PROCESSES[number % 24]},instance={number}",
                Window(begin_ns, end_ns),
                "restarts" if restart else "grows",
                "it restarted" if restart else "it grows",
                POLLS,
                marks=(Mark(at_ns, None, "restart"),) if restart else (),
            )
