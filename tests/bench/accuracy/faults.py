"""How often a false root cause is named: devices with several faults that have nothing to do with each other.

    python tests/bench/accuracy/faults.py --seeds 500

Each run has one to three faults, from 20 s to some hours apart: a process that crashes (with a segfault line, or a
core, or neither, once or in a loop), another one that the kernel kills for want of memory (watched, or a tenant), a
lockup that ends in a reboot, a reboot, a CPU at 100 %, a tenant's segfault. A cause is false where its leading finding
comes from none of the faults that another of its findings comes from; a headline is, where it does not name what broke
first.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))
from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.window import Phase, Window
from soakwatch_rules.causes import Cause, causes
from soakwatch_rules.detectors.core_dump import CoreDump
from soakwatch_rules.detectors.cpu_spike import CpuSpike
from soakwatch_rules.detectors.kernel_fault import KernelFault
from soakwatch_rules.detectors.oom_kill import OomKill
from soakwatch_rules.detectors.process_restart import ProcessRestart
from soakwatch_rules.detectors.reboot import Reboot
from soakwatch_rules.rule import Rule
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.families import findings_of

S: Final = 10**9
EPOCH_S: Final = 1_790_000_000
RULES: Final[tuple[Rule, ...]] = (KernelFault(), ProcessRestart(), OomKill(), CoreDump(), Reboot(), CpuSpike())
WATCHED: Final = ("routed", "swboomd")
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass
class Night:
    """A device in the making; ``faults`` have their second and the words by which their findings are known."""

    t: Floats
    rng: np.random.Generator
    values: dict[tuple[str, str], Floats] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    faults: list[tuple[float, float, frozenset[str]]] = field(default_factory=list)  # begin, end, words
    silent: list[tuple[float, float]] = field(default_factory=list)
    pid: int = 1000

    @property
    def apart(self) -> float:
        """Seconds between two polls."""
        return float(self.t[1] - self.t[0])

    def seen(self, time_s: float) -> float:
        """The poll that sees what happened then."""
        return float(self.t[min(int(np.searchsorted(self.t, time_s)), self.t.size - 1)])

    def report(self, kind: str, time_s: float, object_: str = "", **detail: str | int) -> None:
        """An event."""
        begin = round(time_s * S)
        self.events.append(Event(kind, "dut", object_, begin, None, {k: str(v) for k, v in detail.items()}))

    def count(self, metric: str, object_: str, time_s: float) -> None:
        """One more from then on."""
        self.values[metric, object_][self.t >= time_s] += 1

    def alarm(self, kind: str, time_s: float, **detail: str | int) -> None:
        """A line of the kernel's log, read by the next poll; now and then the counter alone tells of it."""
        self.count("system.kernel.alarms", f"kind={kind}", time_s)
        if self.rng.random() < 0.8:
            self.report(f"kernel.{kind}", time_s, "", uptime_s=f"{time_s:.6f}", **detail)

    def restart(self, name: str, time_s: float) -> int:
        """A process that is started again; its old pid."""
        object_, old = f"process={name},instance=0", self.pid
        late, self.pid = self.t >= time_s, self.pid + 2
        self.values["process.start_time", object_][late] = EPOCH_S + time_s
        former = float(self.values["process.pid", object_][~late][-1]) if (~late).any() else old
        self.values["process.pid", object_][late] = self.pid
        self.report("process.exit", self.seen(time_s), object_, pid=int(former))
        self.report("process.restart", self.seen(time_s), object_, old_pid=int(former), new_pid=self.pid)
        return int(former)


def _crash(night: Night, time_s: float, name: str = "swboomd") -> None:
    times = time_s + np.sort(night.rng.uniform(0, 90, 2)) if night.rng.random() < 0.3 else np.empty(0)
    how = night.rng.choice(["line", "core", "both", "neither"])
    for when in (time_s, *times.tolist()):
        pid = night.restart(name, when)
        if how in {"line", "both"}:
            night.alarm("segfault", when, process=name, pid=pid, line=f"{name}[{pid}]: segfault at 0")
        if how in {"core", "both"}:
            folder, late = "folder=/var/crash", night.rng.uniform(0, 5)
            night.count("system.core.files", folder, when + late)
            night.report("core.dump", night.seen(when + late), folder, file=f"/var/crash/core.{name}.{pid}")
    night.faults.append(
        (time_s, 5 + (float(times[-1]) if times.size else time_s), frozenset({name}))
    )  # a core takes its time


def _kill(night: Night, time_s: float) -> None:
    watched = bool(night.rng.random() < 0.5)
    name = "routed" if watched else "leaker"
    pid = night.restart(name, time_s) if watched else 77
    night.count("system.memory.oom_kills", "", time_s)
    night.alarm("oom", time_s, process=name, pid=pid, line=f"Out of memory: Killed process {pid} ({name}) total-vm:1kB")
    night.faults.append((time_s, time_s, frozenset({"oom_kill", "routed"} if watched else {"oom_kill"})))


def _reboot(night: Night, time_s: float, *words: str) -> None:
    down = float(night.rng.uniform(20, 90))
    back = time_s + down
    night.silent.append((time_s, back))
    night.values["system.boot.id", ""][night.t >= back] += 1
    night.values["system.uptime", ""][night.t >= back] = night.t[night.t >= back] - back
    for name in WATCHED:
        object_ = f"process={name},instance=0"
        night.values["process.start_time", object_][night.t >= back] = EPOCH_S + back
        night.report("process.restart", night.seen(back), object_, new_pid=night.pid)
        night.pid += 1
    night.faults.append((time_s, back, frozenset({"reboot", *WATCHED, *words})))


def _lockup(night: Night, time_s: float) -> None:
    night.alarm("lockup", time_s, line="watchdog: BUG: soft lockup - CPU#1 stuck for 26s!")
    _reboot(night, time_s + float(night.rng.uniform(5, 60)), "lockup")
    begin, end, words = night.faults.pop()
    night.faults.append((min(time_s, begin), end, words))


def _busy(night: Night, time_s: float) -> None:
    lasts = float(night.rng.uniform(40, 300))
    inside = (night.t >= time_s) & (night.t < time_s + lasts)
    night.values["system.cpu.utilization", ""][inside] = 1.0
    night.faults.append((time_s, time_s + lasts, frozenset({"cpu_spike"})))


def _tenant(night: Night, time_s: float) -> None:
    night.alarm("segfault", time_s, process="tenant", pid=9, line="tenant[9]: segfault at 0")
    night.faults.append((time_s, time_s, frozenset({"tenant"})))


FAULTS: Final[tuple[Callable[[Night, float], None], ...]] = (_crash, _kill, _reboot, _lockup, _busy, _tenant)


def night(seed: int) -> tuple[Night, Case]:
    """A run with one to three faults of different kinds."""
    rng = np.random.default_rng(seed)
    hours, apart = ((24.0, 10.0), (6.0, 10.0), (0.1, 1.0), (24.0, 60.0))[int(rng.integers(4))]
    result = Night(np.arange(0, hours * 3600, apart), rng)
    n, ones = result.t.size, np.ones(result.t.size)
    result.values = {
        ("system.boot.id", ""): 42 * ones,
        ("system.uptime", ""): 90_000 + result.t,
        ("system.memory.oom_kills", ""): 3 * ones,
        ("system.core.files", "folder=/var/crash"): ones.copy(),
        ("system.cpu.utilization", ""): np.clip(rng.normal(0.3, 0.03, n), 0, 1),
        **{("system.kernel.alarms", f"kind={kind}"): 0 * ones for kind in ("oom", "segfault", "lockup")},
    }
    for number, name in enumerate(WATCHED):
        object_ = f"process={name},instance=0"
        result.values |= {
            ("process.up", object_): ones.copy(),
            ("process.pid", object_): (100 + number) * ones,
            ("process.start_time", object_): (EPOCH_S - 5000) * ones,
        }
    time_s, length = 0.0, hours * 3600
    time_s = float(rng.uniform(0.1, 0.5)) * length
    for blow in rng.permutation(len(FAULTS))[: int(rng.integers(1, 4))].tolist():
        if time_s > 0.9 * length:
            break
        FAULTS[blow](result, time_s)
        end = max(last for _, last, _ in result.faults)
        time_s = end + float(np.exp(rng.uniform(np.log(20), np.log(max(60.0, 0.3 * length)))))
    return result, _case(result, length)


def _case(night: Night, length: float) -> Case:
    window = Window(EPOCH_S * S, round((EPOCH_S + length) * S))
    here = np.ones(night.t.size, dtype=bool)
    for begin, end in night.silent:
        here &= ~((night.t >= begin) & (night.t < end))
    series = []
    for (metric, object_), value in night.values.items():
        line = readings(metric, value, night.apart, object=object_, begin_ns=window.begin_ns)
        series.append(replace(line, time_ns=line.time_ns[here], value=line.value[here]))
    events = tuple(replace(e, begin_ns=e.begin_ns + window.begin_ns) for e in night.events)
    return Case("dut", "", window, tuple(series), phases=(Phase("soak", window),), events=events)


def judged(case: Case) -> tuple[list[Finding], tuple[Cause, ...]]:
    """What the rules say, and the causes of it."""
    findings = [finding for rule in RULES for finding in findings_of(rule, case)]
    return findings, causes(findings, case.events, case.phases)


def _sources(night: Night, finding: Finding, of: Sequence[Mark] = ()) -> set[int]:
    """The faults that a finding comes from."""
    text = f"{finding.rule} {finding.object}"
    numbers = set()
    for mark in of or finding.marks:
        begin, end = (x / S - EPOCH_S for x in (mark.begin_ns, mark.begin_ns if mark.end_ns is None else mark.end_ns))
        near = [
            (max(0.0, first - end, begin - last), number)
            for number, (first, last, words) in enumerate(night.faults)
            if any(word in f"{text} {mark.text}" for word in words)
            or (finding.rule == "kernel_fault" and " of " not in mark.text)
        ]
        numbers |= {number for away, number in near if away <= 2 * night.apart + 1}
    return numbers


@dataclass(frozen=True)
class Score:
    """What was wrong with the causes that were named for one run."""

    fused: tuple[str, ...]
    headline: str  # empty where it is right
    led: bool  # whether there was one


def score(seed: int) -> Score:
    """One run."""
    broken, case = night(seed)
    findings, root_causes = judged(case)
    fused = []
    for cause in root_causes:
        own = [findings[index] for index in cause.findings if findings[index].marks]
        if len(own) > 1 and (cause.confidence is None or cause.confidence > 0.5):
            lead = _sources(broken, own[0])
            fused += [f"{own[0].rule} told as the cause of {f.rule}" for f in own[1:] if not lead & _sources(broken, f)]
    failed = [
        (min(_sources(broken, f), key=lambda n: broken.faults[n][0]), f)
        for f in findings
        if f.outcome is Outcome.FAIL and _sources(broken, f)
    ]
    if not failed:
        return Score(tuple(fused), "", led=False)
    first = min(broken.faults[number][0] for number, _ in failed)
    leading = findings[root_causes[0].leading]
    named = {broken.faults[number][0] for number in _sources(broken, leading)}
    wrong = "" if first in named else f"{leading.rule} where {sorted(min(broken.faults)[2])} was first"
    return Score(tuple(fused), wrong, led=True)


def scores(seeds: int, begin: int = 0) -> Iterator[Score]:
    """So many runs."""
    for seed in range(begin, begin + seeds):
        yield score(seed)


def main() -> None:
    """Prints how often a false cause was reported."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--begin", type=int, default=0)
    asked = parser.parse_args()
    runs = list(scores(asked.seeds, asked.begin))
    led = sum(run.led for run in runs)
    fused, wrong = sum(bool(run.fused) for run in runs), sum(bool(run.headline) for run in runs)
    print(f"{len(runs)} runs; a false cause in {fused} ({100 * fused / len(runs):.1f} %)")
    print(f"{led} that failed; a headline that does not name what broke first in {wrong} ({100 * wrong / led:.1f} %)")
    for words, number in Counter(word for run in runs for word in {*run.fused, run.headline} - {""}).most_common(12):
        print(f"  {number:4d}  {words}")


if __name__ == "__main__":
    main()
