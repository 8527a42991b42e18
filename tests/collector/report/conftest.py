# ruff: noqa: E501 - a table of findings reads better with long lines
"""A record in memory with synthetic series, and verdicts over it: a leaker that was restarted, and its twin."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.judge.verdict import Verdict, fold
from soakwatch.record.model import (
    Artifact,
    ArtifactEntry,
    Counts,
    PollOutcomes,
    SeriesKey,
    Source,
    StoredEvent,
    StoredFault,
)
from soakwatch.report.html import render_html
from soakwatch_model.case import Ledger
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Forecast, InconclusiveReason, Mark, Outcome
from soakwatch_model.metric import BY_NAME
from soakwatch_model.series import Series, Trait
from soakwatch_model.window import Phase, Window

BEGIN = 1_795_200_000 * 10**9
LENGTH = 8 * 3600
HOUR = 3600 * 10**9
ROLES = {"leaker": "dut", "twin": "dut", "tg": "generator", "monitor": "monitor"}
PLAN = """\
name: demo-overnight
duration: 8h
phases: [{baseline: 30m}, {soak: 6h30m}, {spike: 10m}, {recovery: 50m}]
targets:
  leaker: {role: dut, sources: [{local: {interval: 1s}}]}
"""
FINGERPRINT = {
    "leaker": {
        "host": {"hostname": "fw-7", "kernel": "6.1.0-30-amd64", "os": "Debian GNU/Linux 12"},
        "cpu": {"model": "Xeon Silver 4314", "logical_cores": 32, "governor": "powersave", "smt": "on"},
        "nics": {
            "eth0": {
                "driver": "ice",
                "speed_mbps": 100000,
                "rx_queues": 16,
                "tx_queues": 16,
                "mtu": 1500,
                "pcie": {
                    "current_link_width": 8,
                    "max_link_width": 16,
                    "current_link_speed": 16.0,
                    "max_link_speed": 16.0,
                    "below_capability": True,
                },
            },
            "eth1": {"driver": "igb", "speed_mbps": 1000, "rx_queues": 4, "tx_queues": 4, "mtu": 1500},
        },
        "sysctls": {f"net.core.setting_{n}": n for n in range(40)},
        "processes": {"nginx": 5, "sshd": 2},
        "notes": ["there is no frequency governor"],
    }
}


@dataclass
class MemoryRecord:
    """A finished record in memory."""

    data: list[Series] = field(default_factory=list)
    metas: dict[str, str] = field(default_factory=dict)
    stored: list[StoredEvent] = field(default_factory=list)
    troubles: list[StoredFault] = field(default_factory=list)
    gone: list[tuple[int, Finding]] = field(default_factory=list)
    files: list[Artifact] = field(default_factory=list)
    stretch: tuple[Phase, ...] = ()
    names: dict[str, str] = field(default_factory=lambda: dict(ROLES))
    length: int = LENGTH

    @property
    def path(self) -> Path:
        return Path("/nowhere/run/record.sqlite")

    def meta(self, key: str) -> str | None:
        return self.metas.get(key)

    def roles(self) -> Mapping[str, str]:
        return self.names

    def sources(self) -> tuple[Source, ...]:
        return tuple(Source(n, name, "local", "local", 10**9, True) for n, name in enumerate(self.names, 1))

    def poll_outcomes(self, source: int) -> PollOutcomes:
        """Ten minutes of timeouts and one lone failure; nothing from the source of the monitor."""
        second = np.arange(self.length if source < 4 else 0, dtype=np.int64)
        outcome = np.where((second > 14_000) & (second <= 14_600), 2, 0)
        outcome[20_000:20_001] = 1
        return PollOutcomes(BEGIN + second * 10**9, outcome.astype(np.int64), ("ok", "failed", "timeout"))

    def phases(self) -> tuple[Phase, ...]:
        return self.stretch

    def window(self) -> Window:
        return Window(BEGIN, BEGIN + self.length * 10**9)

    def keys(self, metrics: Collection[str] | None = None) -> tuple[SeriesKey, ...]:
        return tuple(
            SeriesKey(s.target, s.metric, s.object) for s in self.data if metrics is None or s.metric in metrics
        )

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        series = next(s for s in self.data if SeriesKey(s.target, s.metric, s.object) == key)
        return series.between(begin_ns or 0, end_ns or 2**62)

    def source_of(self, key: SeriesKey) -> Source | None:
        return next((source for source in self.sources() if source.target == key.target), None)

    def events(self) -> tuple[StoredEvent, ...]:
        return tuple(self.stored)

    def faults(self) -> tuple[StoredFault, ...]:
        return tuple(self.troubles)

    def spans(self) -> tuple[Window, ...]:
        return (Window(BEGIN, BEGIN + self.length * 10**9),)

    def withdrawn(self) -> tuple[tuple[int, Finding], ...]:
        return tuple(self.gone)

    def artifact_entries(self) -> tuple[ArtifactEntry, ...]:
        return tuple(ArtifactEntry(a.name, a.media, len(a.data), a.time_ns, a.kind, a.about) for a in self.files)

    def artifact(self, name: str) -> Artifact:
        return next(artifact for artifact in self.files if artifact.name == name)

    def counts(self) -> Counts:
        return Counts(sum(len(s) for s in self.data), self.length * 4, 7_340_032)


def series_of(target: str, metric: str, obj: str, seconds: NDArray[np.float64], values: NDArray[np.float64]) -> Series:
    """A series of the catalogue."""
    entry = BY_NAME[metric]
    kind = entry.kind
    trait = Trait(entry.unit, kind, entry.growth, entry.low, entry.high, entry.quantum)  # type: ignore[arg-type]
    return Series(target, metric, obj, trait, BEGIN + (seconds * 1e9).astype(np.int64), values, 1.0)


def finding(outcome: Outcome, target: str, rule: str, metric: str, obj: str = "", **more: object) -> Finding:
    """A finding with everything that a rule must fill in."""
    fields: dict[str, object] = {
        "rule": rule,
        "version": 1,
        "outcome": outcome,
        "target": target,
        "metric": metric,
        "object": obj,
        "window": Window(BEGIN + HOUR // 2, BEGIN + 7 * HOUR),
        "samples": 23_340,
        "expected": 23_400,
        "definition": "Growth where mean ± sd of the first and the last third do not cross and the last is over 5 % higher.",
        "reason": "stayed within its limit",
    }
    return Finding(**{**fields, **more})  # type: ignore[arg-type]


def overnight(extra: int = 0) -> tuple[MemoryRecord, Verdict]:
    """Eight hours of a leaking service that is restarted once, its twin, and a generator; ``extra`` more processes."""
    noise = np.random.default_rng(7)
    t = np.arange(0.0, LENGTH, 1.0)
    t = t[(t < 14_000) | (t > 14_600)]  # ten minutes without an answer
    rate = np.where((t > 7 * 3600) & (t < 7 * 3600 + 600), 2400.0, 800.0) + noise.normal(0, 12, t.size)
    level = np.where(t < 18_000, 48 + t * 0.0045, 48 + (t - 18_000) * 0.0045) * 2**20
    leak = np.round((level + noise.normal(0, 2e5, t.size)) / 4096) * 4096
    flat = np.round((50 * 2**20 + noise.normal(0, 3e5, t.size)) / 4096) * 4096
    cpu = np.clip(rate / 4000 + noise.normal(0, 0.01, t.size), 0, 1)
    cpu[20_000] = 0.99
    start = np.where(t < 18_000, BEGIN * 1e-9 - 60, BEGIN * 1e-9 + 18_000)
    record = MemoryRecord()
    process = "process=httpd,instance=0"
    for name, memory in (("leaker", leak), ("twin", flat)):
        record.data += [
            series_of(name, "process.memory.usage", process, t, memory),
            series_of(name, "system.cpu.utilization", "", t, cpu),
            series_of(
                name, "system.network.packets", "interface=eth0,direction=receive", t, np.cumsum(rate * 11).round()
            ),
            series_of(
                name, "process.start_time", process, t, start if name == "leaker" else start * 0 + BEGIN * 1e-9 - 60
            ),
        ]
    lost = np.where((t > 18_000) & (t <= 18_004), 25.0, 0.0)
    record.data += [
        series_of("tg", "load.request.rate", "", t, rate),
        series_of("tg", "load.offered.rate", "", t, np.where(rate > 1600, 2400.0, 800.0)),
        series_of("tg", "load.failure.rate", "", t, lost),
        series_of("tg", "load.failures", "", t, np.cumsum(lost)),
        series_of("tg", "load.latency", "quantile=p99", t, 0.004 + lost / 100),
        series_of("tg", "load.latency", "quantile=max", t, 0.006 + lost / 50),
    ]
    for n in range(extra):
        walk = (20 + n % 13) * 2**20 + np.cumsum(noise.normal(0, 900, t.size))
        record.data.append(series_of("twin", "process.memory.usage", f"process=worker,instance={n}", t, walk))
    record.metas = {
        "run": "demo-overnight",
        "plan": PLAN,
        "command": "soakwatch run plan.yaml",
        "fingerprint": json.dumps(FINGERPRINT),
        "versions": json.dumps({"soakwatch": "0.1.0", "python": "3.11.7"}),
    }
    ends = [("baseline", 0, 1800), ("soak", 1800, 25_200), ("spike", 25_200, 25_800), ("recovery", 25_800, LENGTH)]
    record.stretch = tuple(Phase(n, Window(BEGIN + a * 10**9, BEGIN + b * 10**9)) for n, a, b in ends)
    restart = BEGIN + 18_000 * 10**9
    record.stored = [
        StoredEvent(
            1, "probe", Event("process.restart", "leaker", process, restart, restart + 4 * 10**9, {"pid": "4711"})
        ),
        StoredEvent(
            2, "monitor", Event("gap", "", "", BEGIN + 14_000 * 10**9, BEGIN + 14_600 * 10**9, {"why": "no route"})
        ),
    ]
    record.troubles = [
        StoredFault(
            1,
            "leaker",
            "process.memory.pss",
            process,
            "PSS of httpd may not be read: be root",
            BEGIN,
            BEGIN + HOUR,
            3600,
        )
    ]
    usage = "process.memory.usage"
    findings = [
        finding(
            Outcome.FAIL,
            "leaker",
            "memory_growth",
            usage,
            process,
            measured=48.1 * 2**20,
            limit=55 * 2**20,
            interval=(47.9 * 2**20, 48.3 * 2**20),
            unit="By",
            smallest_detectable=2.5 * 2**20,
            detectable_unit="By",
            reason="resident memory of httpd rose by 49 % from the first to the last third of its first life (16.2 MiB/h)",
            doubts=("the second life (2h) was judged apart and rises at the same pace",),
            numbers={"mean_first": 55.1e6, "sd_first": 4.2e6, "mean_last": 131.4e6, "change": 0.49, "n_first": 7800.0},
        ),
        finding(
            Outcome.FAIL,
            "leaker",
            "process_restart",
            "process.start_time",
            process,
            measured=1,
            limit=0,
            unit="{restart}",
            reason="httpd restarted once, at 2026-11-21 05:00:00 UTC",
            marks=(Mark(restart, restart + 4 * 10**9, "restart, pid 4711 to 5120"),),
            definition="Any change of the start time of a watched process fails; 0 restarts are allowed.",
        ),
        finding(Outcome.PASS, "leaker", "cpu_spike", "system.cpu.utilization", unit="1", measured=0.62, limit=0.95),
        finding(
            Outcome.PASS,
            "twin",
            "memory_growth",
            usage,
            process,
            measured=0.001,
            limit=0.05,
            unit="1",
            smallest_detectable=0.05,
            detectable_unit="1",
        ),
        finding(
            Outcome.PASS,
            "twin",
            "process_restart",
            "process.start_time",
            process,
            measured=0,
            limit=0,
            unit="{restart}",
        ),
        finding(
            Outcome.WARN,
            "twin",
            "cpu_spike",
            "system.cpu.utilization",
            unit="1",
            measured=0.99,
            limit=0.95,
            reason="one brief peak of 99 %",
        ),
        finding(
            Outcome.NOT_APPLICABLE,
            "twin",
            "core_dump",
            "system.core.files",
            reason="no core folder is watched",
            samples=0,
            expected=None,
        ),
        finding(
            Outcome.INCONCLUSIVE,
            "monitor",
            "oom_kill",
            "system.memory.oom_kills",
            reason="the kernel log may not be read",
            samples=0,
            settle="run as root or in the group adm",
        ),
        *(finding(Outcome.PASS, "twin", "memory_growth", usage, f"process=worker,instance={n}") for n in range(extra)),
    ]
    gap = Window(BEGIN + 14_000 * 10**9, BEGIN + 14_600 * 10**9)
    ledgers = [
        Ledger(
            "leaker",
            "leaker/local",
            1.0,
            LENGTH,
            LENGTH - 600,
            {"timeout": 590, "missed": 10},
            gap,
            ("timed out after 1 s",),
        ),
        Ledger("twin", "twin/local", 1.0, LENGTH, LENGTH - 600, {"timeout": 600}, gap),
        Ledger("monitor", "monitor/snmp", 10.0, 2880, 0, {"failed": 2880}, None, ("no answer from 198.18.0.1",)),
    ]
    verdict = fold("demo-overnight", record.window(), ROLES, findings, ledgers, record.stretch)
    return record, verdict


def short() -> tuple[MemoryRecord, Verdict]:
    """The device that leaks and a load of it, alone: a page with few plots."""
    record, verdict = overnight()
    kept = {"process.memory.usage", "load.request.rate"}
    return replace(record, data=[s for s in record.data if s.metric in kept and s.target != "twin"]), verdict


def mark(first_s: int, last_s: int, text: str) -> tuple[Mark, ...]:
    """One mark between these seconds of the run."""
    return (Mark(BEGIN + first_s * 10**9, BEGIN + last_s * 10**9, text),)


@pytest.fixture(scope="session")
def eventful() -> tuple[MemoryRecord, Verdict]:
    """A night with a reboot and its witnesses, a leak with an owner, inconclusive findings, an explained step, a withdrawal."""
    record, before = overnight()
    limits = {"unit": "By/h", "limit": 2e6, "smallest_detectable": 5e5, "detectable_unit": "By/h"}
    forecast = Forecast("system.memory.limit (3.80 GiB)", 31 * 3600, 25 * 3600, 37 * 3600)
    cpu, httpd = "system.cpu.utilization", "process=httpd,instance=0"
    more = [
        finding(
            Outcome.FAIL,
            "twin",
            "reboot",
            "system.boot.id",
            reason="1 reboot",
            marks=mark(20_000, 20_090, "new boot id"),
        ),
        finding(
            Outcome.WARN, "twin", "gap", "", "local", reason="97 s of silence", marks=mark(20_002, 20_095, "silent")
        ),
        finding(Outcome.FAIL, "twin", "cpu_spike", cpu, marks=mark(19_940, 19_990, "100 % for 50 s")),
        finding(
            Outcome.FAIL,
            "leaker",
            "growth",
            "system.memory.usage",
            "",
            measured=18e6,
            forecast=forecast,
            reason="memory leaks",
            **limits,
        ),
        finding(Outcome.FAIL, "leaker", "growth", "process.memory.pss", httpd, measured=16.5e6, **limits),
        finding(
            Outcome.WARN,
            "leaker",
            "step_change",
            "system.conntrack.count",
            reason="it rose",
            marks=mark(12_010, 12_020, "up"),
        ),
        *(
            finding(
                Outcome.INCONCLUSIVE,
                "leaker",
                "growth",
                "process.threads",
                f"process=w,instance={n}",
                why=InconclusiveReason.TOO_SHORT,
                settle="needs 2 more hours",
            )
            for n in range(14)
        ),
    ]
    events = [Event("failover", "leaker", "", BEGIN + 12_000 * 10**9, None)]
    findings = [*before.findings, *more]
    early = finding(Outcome.WARN, "twin", "growth", "system.memory.usage", reason="so far: it may be a warm-up")
    record.gone.append((BEGIN + 9000 * 10**9, early))
    return record, fold(before.run, before.window, ROLES, findings, before.ledgers, before.phases, events=events)


@pytest.fixture(scope="session")
def night() -> tuple[MemoryRecord, Verdict]:
    """The sample record and its verdict."""
    return overnight()


@pytest.fixture(scope="session")
def plain(night: tuple[MemoryRecord, Verdict]) -> tuple[MemoryRecord, Verdict]:
    """The same without its series: a page of it has no plots, which cost nine tenths of the time of a page."""
    return without_series(*night)


def without_series(record: MemoryRecord, verdict: Verdict) -> tuple[MemoryRecord, Verdict]:
    """A record that holds everything else, with its verdict."""
    return replace(record, data=[]), verdict


@pytest.fixture(scope="session")
def page_of_night(night: tuple[MemoryRecord, Verdict]) -> str:
    """The page of the sample, with all plots."""
    return render_html(*night)


@pytest.fixture(scope="session")
def page_of_eventful(eventful: tuple[MemoryRecord, Verdict]) -> str:
    """The page of the eventful night, with all plots."""
    return render_html(*eventful)


@pytest.fixture(scope="session")
def make_night() -> Callable[[int], tuple[MemoryRecord, Verdict]]:
    """Makes the sample with more series."""
    return overnight
