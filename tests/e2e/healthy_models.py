"""Healthy models of the sources that a plan names: each answers with the metrics that its device has by profile,
probe or command, with values that go nowhere."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from soakwatch.plan import SourcePlan
from soakwatch.sources.abc import Facts, SourceContext
from soakwatch.sources.profiles.loading import load_profiles, platform
from soakwatch_agent.host import probe_names, source
from soakwatch_model.metric import BY_NAME, CATALOGUE, COUNTER, STATE, Metric
from soakwatch_model.sample import Answer, Sample, object_text

RARELY_S = 60.0
"""Between readings of what a poll each second need not bring again for a verdict: a night is sixty times quicker."""
OFTEN = frozenset({"system.cpu.utilization", "reach.up", "reach.round_trip", "reach.sent", "reach.lost"})
GENERATORS = {"command": ("load.request.rate", "load.failure.rate", "load.latency")}
LISTENERS = frozenset({"traps", "syslog"})
CONSTANT = {
    "process.state": 83.0,
    "process.pid": 4711.0,
    "process.child": 0.0,
    "process.start_time": 1_700_000_000.0,
    "system.boot.time": 1_700_000_000.0,
    "system.boot.id": 4711.0,
    "system.agent.boots": 3.0,
    "system.cpu.logical.count": 4.0,
    "network.session.role": 2.0,
    "reach.status": 200.0,
    "system.core.files": 0.0,
    "system.memory.swap.usage": 0.0,
    "source.spool.usage": 0.0,
    "system.memory.commit_limit": 1e9,
    "load.failure.rate": 0.0,
    "queue.depth": 0.0,
    "queue.usage": 0.0,
    "system.network.changed": 0.0,
    "system.network.counters_since": 0.0,
}
LEVELS = {"1": 0.3, "s": 0.004, "Cel": 45.0, "By": 1e8, "V": 12.0, "dBm": -3.0, "A": 0.01}
QUIET = ("errors", "dropped", "drops", "lost", "kills", "alarms", "failures", "restarts", "flaps", "changes", "denied")
LABELS = {
    "direction": ("receive", "transmit"),
    "interface": ("eth0",),
    "quantile": ("p50", "p99", "max"),
    "mode": ("user", "idle"),
    "window": ("1m",),
    "mountpoint": ("/",),
    "folder": ("/var/core",),
    "minutes": ("5",),
    "cast": ("unicast",),
    "version": ("4",),
}
CEILINGS = frozenset(metric.ceiling for metric in CATALOGUE if metric.ceiling)
"""What a device says that there is at most of something: far above what it uses."""
BEGIN_S = 1_699_000_000.0


def metrics_of(planned: SourcePlan, *, watched: bool) -> tuple[str, ...]:
    """What a source of a plan is there for."""
    config, poller = planned.config, planned.poller
    system = getattr(config, "os", None)
    if poller in GENERATORS:
        return GENERATORS[poller]
    if poller in LISTENERS:
        return ()
    if poller == "icmp":
        return tuple(name for name in BY_NAME if name.startswith("reach.") and name != "reach.status")
    if poller == "gnmi":
        return tuple(dict.fromkeys(path.metric for path in load_profiles(None)[config.profile].gnmi))  # type: ignore[attr-defined]
    if poller == "snmp":
        name = getattr(config, "profile", "auto")
        return load_profiles(None)["linux" if name in {"auto", None} else name].promised
    if system not in {None, "auto", "linux"}:
        return tuple(dict.fromkeys(metric for command in platform(system).commands for metric in command.metrics))
    probes = getattr(config, "probes", None) or probe_names()
    metrics = dict.fromkeys(metric for name in probes for metric in source(name).metrics)
    return tuple(metric for metric in metrics if watched or not metric.startswith("process."))


@dataclass(frozen=True, slots=True)
class _Series:
    """One series of a model, and how its values come."""

    metric: Metric
    object: str
    often: bool

    def value(self, seconds: float, noise: random.Random) -> float:
        """The reading after so many seconds."""
        name = self.metric.name
        if name in CONSTANT:
            return CONSTANT[name]
        if name in CEILINGS:
            return 10 * self.level
        if name.endswith("uptime"):
            return 86_400.0 + seconds
        if self.metric.kind == COUNTER:
            return 0.0 if any(word in name for word in QUIET) else math.floor(100.0 * (seconds + 1000.0))
        if self.metric.kind == STATE:
            side = name.rpartition(".")[2]
            return {"high": 10 * abs(self.level), "low": min(0.0, 10 * self.level), "limit": 1e9}.get(side, 1.0)
        # what may not grow is memory and the like, which does not scatter as a load does
        return self.level * (1 + (0.0005 if self.metric.growth else 0.01) * noise.gauss(0.0, 1.0))

    @property
    def level(self) -> float:
        """About what a gauge of its unit shows; the limits that a device states lie far from it."""
        return LEVELS.get(self.metric.unit, 400.0)


class HealthyModel:
    """A device that does nothing but answer; ``sends_s`` are the seconds in which a generator has figures."""

    def __init__(
        self, planned: SourcePlan, site: SourceContext, sends_s: tuple[float, float] = (0.0, math.inf)
    ) -> None:
        self._start_ns, self._sends_s = site.now_ns(), sends_s
        self._noise = random.Random(zlib.crc32(f"{site.target} {planned.poller}".encode()))
        metrics = metrics_of(planned, watched=bool(site.processes))
        self._series = [
            _Series(BY_NAME[name], labels, name in OFTEN or name.startswith("load."))
            for name in metrics
            for labels in _objects(BY_NAME[name], site)
        ]
        self._rare_s = -math.inf
        slow = {each.metric.name: RARELY_S for each in self._series if not each.often}
        self._facts = Facts({"model": planned.poller}, metrics, (), slow if site.interval_s < RARELY_S else {})

    def facts(self) -> Facts:
        """What it has, and how rarely it brings the most of it."""
        return self._facts

    async def poll(self, now_ns: int) -> Answer:
        """Everything, or, asked again within a minute, what moves quickest."""
        seconds = (now_ns - self._start_ns) * 1e-9
        if not self._sends_s[0] <= seconds < self._sends_s[1]:
            return Answer((), (), ())
        rare = seconds - self._rare_s >= RARELY_S - 0.5
        if rare:
            self._rare_s = seconds
        return Answer(
            tuple(
                Sample(each.metric.name, each.object, each.value(seconds, self._noise), now_ns)
                for each in self._series
                if rare or each.often
            ),
            (),
            (),
        )


def _objects(metric: Metric, site: SourceContext) -> Iterator[str]:
    """The objects that a model has of a metric: one of each, two directions of an interface, each watched process."""
    if metric.labels[:1] == ("process",):
        for process in site.processes:
            rest = {label: "0" if label == "instance" else LABELS.get(label, ("0",))[0] for label in metric.labels[1:]}
            yield object_text(process=process.name, **rest)
        return
    several = next((label for label in metric.labels if len(LABELS.get(label, ())) > 1), None)
    for word in LABELS[several] if several else ("",):
        values = {label: LABELS.get(label, (f"{label} 1",))[0] for label in metric.labels}
        yield object_text(**(values | ({several: word} if several else {})))


class LimitedModel:
    """A driven generator with a device behind it that forwards so many packets a second, and no more."""

    def __init__(self, site: SourceContext, full: float, forwards: float) -> None:
        self._now_ns, self._full, self._forwards = site.now_ns, full, forwards
        self._level, self._sent, self._back, self._last_ns = 0.0, 0.0, 0.0, site.now_ns()

    async def drive(self, level: float) -> None:
        """Another level from now on."""
        self._count()
        self._level = level

    async def poll(self, now_ns: int) -> Answer:
        """What it sent and what came back so far."""
        self._count()
        counted = {"load.tx.packets": self._sent, "load.rx.packets": self._back, "load.sending": self._level > 0}
        return Answer(tuple(Sample(name, "", math.floor(value), now_ns) for name, value in counted.items()), (), ())

    def _count(self) -> None:
        now_ns, rate = self._now_ns(), self._level * self._full
        seconds, self._last_ns = (now_ns - self._last_ns) * 1e-9, now_ns
        self._sent, self._back = self._sent + rate * seconds, self._back + min(rate, self._forwards) * seconds
