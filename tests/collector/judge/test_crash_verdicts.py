"""Verdicts of whole records of a device that crashed, by the command `judge`: what fails, what warns, what leads."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from soakwatch.cli.main import run
from soakwatch.record import Record
from soakwatch_agent.kernlog import KINDS
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

S = 10**9
T0 = 1_790_000_000 * S
MAIN, SESSION = "process=swboomd,instance=0", "process=swboomd,instance=1"
Names = tuple[str, str]
Change = Callable[[dict[Names, float], float], None]


def command(*words: str) -> tuple[int, str]:
    """Exit code and output of a command."""
    with redirect_stdout(io.StringIO()) as printed:
        return run(list(words)), printed.getvalue()


@dataclass
class Night:
    """A healthy device, polled for some hours; ``changes`` are applied to each poll, with its second."""

    hours: float = 2.0
    apart_s: int = 10
    changes: list[Change] = field(default_factory=list)
    events: list[tuple[float, str, str, dict[str, str]]] = field(default_factory=list)  # second, kind, object, detail
    planned: list[Event] = field(default_factory=list)
    watched: bool = True

    def reports(self, at_s: float, kind: str, name: str = "", **detail: str) -> None:
        """Something that a source tells of."""
        self.events.append((at_s, kind, name, detail))

    def plan(self, at_s: float, within_s: float, **expect: int) -> None:
        """Something that was announced."""
        names = {name.replace("__", "."): number for name, number in expect.items()}
        begin = T0 + round(at_s * S)
        self.planned.append(Event("upgrade", "dut", "", begin, begin, {}, names, begin + round(within_s * S)))

    def counts(self, metric: str, name: str, at_s: float) -> None:
        """A counter counts one more from this second on."""
        self.changes.append(lambda values, now: values.update({(metric, name): values[metric, name] + (now >= at_s)}))

    def restarts(self, at_s: float, pid: int, name: str = MAIN) -> None:
        """A process has another pid and start from this second on, and its source tells of it."""
        values = {("process.pid", name): float(pid), ("process.start_time", name): T0 / S + at_s}
        self.changes.append(lambda now_values, now: now_values.update(values) if now >= at_s else None)
        seen_s = -(-at_s // self.apart_s) * self.apart_s
        self.reports(seen_s, "process.exit", name, pid=str(pid - 1))
        self.reports(seen_s, "process.restart", name, old_pid=str(pid - 1), new_pid=str(pid))

    def judged(self, folder: Path, *words: str) -> tuple[int, Mapping[str, object]]:
        """Exit code and verdict."""
        self.write(folder)
        code, _ = command("judge", str(folder), "--json", str(folder / "verdict.json"), *words)
        return code, json.loads((folder / "verdict.json").read_text())

    def write(self, folder: Path) -> None:
        """The record."""
        rng = np.random.default_rng(len(self.events))
        with Record.create(folder) as record:
            record.target("dut", "dut")
            record.begin_span(T0)
            source = record.source("dut", "agent", "dut/agent", self.apart_s * S, required=True).id
            record.begin_phase("soak", T0)
            waiting = sorted(self.events)
            polls = []
            for now in range(0, round(self.hours * 3600), self.apart_s):
                time_ns, values = T0 + now * S, self._calm(now, rng)
                for change in self.changes:
                    change(values, now)
                due = [event for event in waiting if event[0] <= now]
                waiting = waiting[len(due) :]
                events = tuple(Event(k, "", name, T0 + round(s * S), None, detail) for s, k, name, detail in due)
                samples = tuple(Sample(metric, name, value, time_ns) for (metric, name), value in values.items())
                polls.append(
                    Poll(source, time_ns, time_ns, S // 100, PollOutcome.OK, None, Answer(samples, events, ()))
                )
            record.put(polls)
            for event in self.planned:
                record.add_event("dut", event, "plan")
            record.finish()

    def _calm(self, now: float, rng: np.random.Generator) -> dict[Names, float]:
        values = {
            ("system.boot.id", ""): 42.0,
            ("system.uptime", ""): 90_000.0 + now,
            ("system.memory.oom_kills", ""): 3.0,
            ("system.core.files", "folder=/var/crash"): 1.0,
            ("system.cpu.utilization", ""): float(np.clip(rng.normal(0.3, 0.02), 0, 1)),
            ("system.memory.usage", ""): 4e9 + float(rng.normal(0, 2e6)),
            **{("system.kernel.alarms", f"kind={kind}"): 0.0 for kind in KINDS},
        }
        if self.watched:
            values |= {
                ("process.up", MAIN): 1.0,
                ("process.pid", MAIN): 100.0,
                ("process.start_time", MAIN): T0 / S - 5000,
            }
        return values


def rules(verdict: Mapping[str, object], outcome: str = "fail") -> set[str]:
    """The rules that say so."""
    findings = verdict["findings"]
    assert isinstance(findings, list)
    return {finding["rule"] for finding in findings if finding["outcome"] == outcome}


def reason(verdict: Mapping[str, object], rule: str) -> str:
    """What a rule says."""
    findings = verdict["findings"]
    assert isinstance(findings, list)
    return str(next(finding["reason"] for finding in findings if finding["rule"] == rule))


def leading(verdict: Mapping[str, object]) -> list[str]:
    """The rule that leads each failing cause, in the order in which they are reported."""
    causes, findings = verdict["causes"], verdict["findings"]
    assert isinstance(causes, list)
    assert isinstance(findings, list)
    return [findings[cause["findings"][0]]["rule"] for cause in causes if cause["outcome"] == "fail"]


def test_a_healthy_device_passes(tmp_path: Path) -> None:
    """Two hours without anything."""
    code, verdict = Night().judged(tmp_path / "night")
    assert (code, rules(verdict)) == (0, set())
    assert reason(verdict, "kernel_fault") == "no fault in the kernel log"


SEGFAULT = {
    "process": "swboomd",
    "pid": "100",
    "line": "swboomd[100]: segfault at 0 ip 0 sp 0 error 4",
    "uptime_s": "9",
}


def test_a_segfault_of_what_is_watched_fails_without_a_core(tmp_path: Path) -> None:
    """By its name, or by its pid where the watch has another name; in every output."""
    for n, detail in enumerate((SEGFAULT, {**SEGFAULT, "process": "worker-3"})):
        night = Night()
        night.reports(3000, "kernel.segfault", **detail)
        night.counts("system.kernel.alarms", "kind=segfault", 3000)
        code, verdict = night.judged(tmp_path / str(n))
        assert (code, rules(verdict)) == (1, {"kernel_fault"})
        assert reason(verdict, "kernel_fault").startswith(f"1 segfault of {detail['process']}: ")
    assert "segfault of swboomd" in command("judge", str(tmp_path / "0"))[1]
    files = {kind: tmp_path / f"report.{kind}" for kind in ("html", "md", "junit", "json")}
    command("report", str(tmp_path / "0"), *(word for kind, path in files.items() for word in (f"--{kind}", str(path))))
    assert [kind for kind, path in files.items() if "segfault of swboomd" not in path.read_text()] == []


def test_a_segfault_of_another_tenant_warns(tmp_path: Path) -> None:
    """Also where nothing is watched at all; a device whose own log tells of it is the device, though."""
    tenant = {**SEGFAULT, "process": "chrome", "pid": "999"}
    for n, (watched, detail, code) in enumerate(
        [(True, tenant, 0), (False, tenant, 0), (False, {**tenant, "address": "192.0.2.1"}, 1)]
    ):
        night = Night(watched=watched)
        night.reports(3000, "kernel.segfault", **detail)
        night.counts("system.kernel.alarms", "kind=segfault", 3000)
        ended, verdict = night.judged(tmp_path / str(n))
        assert (ended, "kernel_fault" in rules(verdict, "warn")) == (code, code == 0)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("panic", "fail"),
        ("lockup", "fail"),
        ("hung_task", "fail"),
        ("hardware", "fail"),
        ("segfault", "warn"),
        ("hardware_corrected", "warn"),
        ("thermal", "warn"),
    ],
)
def test_every_kind_is_judged_by_event_and_by_the_counter_alone(tmp_path: Path, kind: str, outcome: str) -> None:
    """The two agree; both together are one."""
    for n, (by_event, by_counter) in enumerate([(True, False), (False, True), (True, True)]):
        night = Night()
        if by_event:
            night.reports(3000, f"kernel.{kind}", line="...", uptime_s="9", process="kworker", pid="7")
        if by_counter:
            night.counts("system.kernel.alarms", f"kind={kind}", 3000)
        code, verdict = night.judged(tmp_path / str(n))
        assert (code, rules(verdict, outcome)) == (int(outcome == "fail"), {"kernel_fault"})
        assert reason(verdict, "kernel_fault").startswith("1 ")


def test_what_was_announced_passes(tmp_path: Path) -> None:
    """A lockup that a test provokes, and a crash that it announces as a core dump; another one fails."""
    night = Night()
    night.plan(2900, 300, kernel__lockup=1, core__dump=1)
    night.reports(3000, "kernel.lockup", line="...", uptime_s="9")
    night.reports(3000, "core.dump", "folder=/var/crash", file="core.swboomd.100")
    night.reports(3000, "kernel.segfault", **SEGFAULT)
    code, verdict = night.judged(tmp_path / "one")
    assert (code, rules(verdict)) == (0, set()), [reason(verdict, rule) for rule in rules(verdict)]
    night.reports(5000, "kernel.lockup", line="...", uptime_s="2009")
    code, verdict = night.judged(tmp_path / "two")
    assert (code, rules(verdict)) == (1, {"kernel_fault"})


def test_one_oom_kill_has_one_time(tmp_path: Path) -> None:
    """The line's own, though the poll that read it and the counter are later, and two sources tell of it."""
    night = Night()
    for late in (0, 4):
        night.reports(3003 + late, "kernel.oom", line="Out of memory: Killed process 7 (leaker)", uptime_s="9", pid="7")
    night.counts("system.memory.oom_kills", "", 3003)
    night.counts("system.kernel.alarms", "kind=oom", 3003)
    code, verdict = night.judged(tmp_path / "night")
    assert code == 1
    assert reason(verdict, "oom_kill") == (
        "1 OOM kill: 2026-09-21 15:03:23 UTC (Out of memory: Killed process 7 (leaker))"
    )


def test_a_restart_without_a_core_fails_and_an_announced_one_passes(tmp_path: Path) -> None:
    """A new pid and start time is enough."""
    night = Night()
    night.restarts(3003, 101)
    assert night.judged(tmp_path / "one")[0] == 1
    night.plan(2990, 120, process__restart=1)
    code, verdict = night.judged(tmp_path / "two")
    assert (code, rules(verdict)) == (0, set())


def test_sessions_of_a_watched_daemon_fail_nothing(tmp_path: Path) -> None:
    """One is there at the begin, others come and go in its slot; the daemon itself stays."""
    night = Night()
    night.changes.append(
        lambda values, now: values.update(
            {("process.up", SESSION): float(now % 1000 < 700)}
            if now % 1000 >= 700
            else {
                ("process.up", SESSION): 1.0,
                ("process.child", SESSION): 1.0,
                ("process.pid", SESSION): 200 + now // 1000,
                ("process.start_time", SESSION): T0 / S + now // 1000 * 1000,
            }
        )
    )
    for turn in range(7):
        night.reports(turn * 1000 + 700, "process.exit", SESSION, pid=str(200 + turn))
        night.reports(turn * 1000 + 1000, "process.start", SESSION, pid=str(201 + turn), parent="100")
    code, verdict = night.judged(tmp_path / "night")
    assert (code, rules(verdict)) == (0, set()), reason(verdict, "process_restart")


@pytest.mark.parametrize("metrics", [("system.boot.id", "system.uptime"), ("system.uptime",)])
def test_a_reboot_that_nobody_announced_fails(tmp_path: Path, metrics: Sequence[str]) -> None:
    """With and without a boot id."""
    night = Night()
    night.changes.append(
        lambda values, now: values.update(
            {("system.boot.id", ""): 43.0, ("system.uptime", ""): now - 3000.0} if now >= 3000 else {}
        )
    )
    gone = {"system.boot.id", "system.uptime"} - set(metrics)

    def forget(values: dict[Names, float], _now: float) -> None:
        for metric in gone:
            del values[metric, ""]

    night.changes.append(forget)
    code, verdict = night.judged(tmp_path / "night")
    assert code == 1
    assert "reboot" in rules(verdict)


def test_a_reboot_in_a_table_fails(tmp_path: Path) -> None:
    """An uptime that falls, in anybody's series."""
    rows = "".join(f"{T0 // S + 10 * n},{(10 * n) % 3600 + 500}\n" for n in range(720))
    (tmp_path / "up.csv").write_text(f"time,uptime_s\n{rows}", encoding="utf-8")
    code, printed = command("judge", str(tmp_path / "up.csv"), "--map", "uptime_s=system.uptime")
    assert (code, "reboot" in printed) == (1, True)
