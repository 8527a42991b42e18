"""Incidents of known truth, told as a person reads them: is the first line right, its moment, and the load then?

    python tests/bench/accuracy/incidents.py --seeds 6 --jobs 2
    python tests/bench/accuracy/incidents.py --only crash --each
    python tests/bench/accuracy/incidents.py --only crash --seed 3 --keep DIR     keeps record, pages and verdict.json

Each run is a device with processes, tables, CPU and a load of four phases (``lives.py``), to which one of ten things
happens. It is judged and told by ``soakwatch report``; what is read is the first screen of report.html, the answer of
report.md, and ``first`` of verdict.json: all three have to say the same. Asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np  # noqa: E402
from tests.bench.accuracy import lives, sick  # noqa: E402
from tests.bench.accuracy.night import BEGIN_NS, DUT, TG, Floats, Night, floats, write_run  # noqa: E402
from tests.bench.accuracy.runs import called, folder_for  # noqa: E402
from tests.bench.accuracy.telemetry import states  # noqa: E402

from soakwatch_model.event import Event  # noqa: E402

LENGTHS = ((1800.0, 1.0), (4 * 3600.0, 5.0), (12 * 3600.0, 10.0), (24 * 3600.0, 60.0))
SHARES = {"baseline": 0.4, "soak": 1.0, "stress": 1.4, "recovery": 0.5}
ENDS = (("baseline", 0.1), ("soak", 0.75), ("stress", 0.85), ("recovery", 1.0))


@dataclass(frozen=True, slots=True)
class Happened:
    """What happened: the verdict that is due, ``who`` has it, which ``rules`` may say it first and of which ``objects``
    (empty: any). It began between ``since_s`` and ``until_s`` of the run (None: no moment), when the load was ``load``
    (of what the generator counts, per second) in ``phase``. ``others`` are rules that may be named beside it."""

    kind: str
    verdict: tuple[str, ...]
    who: str = ""
    rules: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    since_s: float | None = None
    until_s: float | None = None
    load: float | None = None
    phase: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What one surface says first."""

    who: str = ""
    rule: str = ""
    object: str = ""
    since_s: float | None = None
    load: float | None = None
    phase: str = ""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One incident, and what is wrong with what was told of it."""

    seed: int
    truth: Happened
    verdict: str
    told: Told
    wrong: tuple[str, ...]
    sentence: str


@dataclass(slots=True)
class Scene:
    """A night with what its load is made of: ``rate`` at the full load, ``shape`` of it at each poll."""

    night: Night
    rate: float
    shape: Floats
    losses: list[str] = field(default_factory=list)

    def load_at(self, since_s: float) -> float:
        """The load at a moment."""
        return self.rate * float(self.shape[min(int(np.searchsorted(self.night.at_s, since_s)), self.shape.size - 1)])

    def phase_at(self, since_s: float) -> str:
        """The phase at a moment."""
        return next(name for name, begin, end in self.night.phases if begin <= since_s < end)


def scene(seed: int) -> Scene:
    """A healthy run of four phases, of half an hour to a day."""
    rng = np.random.default_rng([33, seed])
    length_s, cadence_s = LENGTHS[seed % len(LENGTHS)]
    at_s = floats(np.arange(0, round(length_s / cadence_s)) * cadence_s + 0.01 * cadence_s)
    night = Night(rng, seed, length_s, cadence_s, at_s, lives.SOURCES)
    night.answered = {source.name: np.ones(at_s.size, np.bool_) for source in lives.SOURCES}
    begin = 0.0
    for name, end in ENDS:
        night.phases.append((name, begin * length_s, end * length_s))
        begin = end
    shape = np.ones(at_s.size)
    for name, since, until in night.phases:
        shape[(at_s >= since) & (at_s < until)] = SHARES[name]
    rate = _load(night, shape)
    parts = []
    for number in range(int(rng.integers(3, 9))):
        name = f"process={('bgpd', 'snort', 'authd', 'sshd', 'sessiond')[number % 5]}{number // 5 or ''},instance=0"
        life = str(rng.choice(["flat", "wander", "flat"]))
        level = math.exp(rng.uniform(math.log(30), math.log(900))) * lives.MIB
        course = {"flat": lives.flat, "wander": lives.wander}[life](night)
        used = np.round(level * course * (1 + lives.noise(night, 0.001)) / 4096) * 4096
        lives.watched(night, number, name, used, life)
        parts.append(used)
    own = rng.uniform(0.4, 2.0) * 1024 * lives.MIB * (1 + lives.noise(night, 0.001))
    lives.host_memory(night, sum(parts, np.zeros(at_s.size)) + own)
    night.put("system.memory.committed", 1.4 * sum(parts, np.zeros(at_s.size)))
    busy = rng.uniform(0.15, 0.45) * shape + lives.noise(night, 0.015)
    night.put("system.cpu.utilization", np.clip(busy, 0.005, 0.9))
    for core in range(4):
        night.put(
            "system.cpu.core.utilization",
            np.clip(busy * rng.uniform(0.7, 1.2) + lives.noise(night, 0.03), 0.0, 0.92),
            f"core={core}",
        )
    _tables(night)
    states(night, rng)
    night.events = [event for event in night.events if event.kind != "failover"]
    for name in night.objects("system.network.up"):
        night.of("system.network.up", name)[:] = night.of("system.network.up", name)[-1]
    for name in night.objects("system.service.restarts"):
        night.of("system.service.restarts", name)[:] = 0.0
    night.sources = tuple(source for source in night.sources if any(source.brings(key) for key in night.value))
    return Scene(night, rate, shape)


def _load(night: Night, shape: Floats) -> float:
    """A generator of packets or of requests that does what it was told; returns its rate at the full load."""
    rng = night.rng
    each = shape * night.cadence_s
    latency = math.exp(rng.uniform(math.log(0.0008), math.log(0.02)))
    night.put("load.latency", latency * np.exp(lives.noise(night, 0.05)), "quantile=0.5")
    night.put("load.latency", 2.5 * latency * np.exp(lives.noise(night, 0.1)), "quantile=0.99")
    if night.seed // len(LENGTHS) % 2:
        rate = float(np.round(math.exp(rng.uniform(math.log(2e4), math.log(2e6))), -3))
        sent = lives.counter(night, rate * each)
        night.put("load.tx.packets", sent)
        night.put("load.rx.packets", sent.copy())
        night.put("load.offered.packet.rate", rate * shape)
    else:
        rate = float(np.round(math.exp(rng.uniform(math.log(100), math.log(4000)))))
        asked = lives.counter(night, rate * each)
        night.put("load.requests", asked)
        night.put("load.request.rate", np.diff(asked, prepend=0.0) / night.cadence_s)
        night.put("load.failures", np.zeros(shape.size))
        night.put("load.offered.rate", rate * shape)
    return rate


def _tables(night: Night) -> None:
    n = night.at_s.size
    size = 40 * 1024 * lives.MIB
    night.put("system.filesystem.usage", np.round(np.full(n, 0.35 * size) / 4096) * 4096, "mountpoint=/var/log")
    night.put("system.filesystem.limit", np.full(n, size), "mountpoint=/var/log")
    night.put("queue.depth", night.rng.poisson(12, n).astype(float), "queue=0")
    night.put("queue.limit", np.full(n, 4096.0), "queue=0")
    night.put("queue.dropped", np.zeros(n), "queue=0")
    lives.uneventful(night)


def _fails(at: Scene, begin_s: float, lasts_s: float, share: float = 1.0) -> None:
    """So much of the load fails in this time, as the counters of each poll show it."""
    night = at.night
    edges = np.concatenate(([night.at_s[0] - night.cadence_s], night.at_s))
    low, high = np.maximum(edges[:-1], begin_s), np.minimum(edges[1:], begin_s + lasts_s)
    part = share * np.clip(high - low, 0.0, None) / night.cadence_s
    if night.has("load.rx.packets"):
        back = np.diff(night.of("load.rx.packets"), prepend=0.0)
        night.of("load.rx.packets")[:] -= np.cumsum(np.round(part * back))
        return
    asked = np.diff(night.of("load.requests"), prepend=0.0)
    failed = np.round(part * asked)
    night.of("load.requests")[:] -= np.cumsum(failed)
    night.of("load.failures")[:] += np.cumsum(failed)
    night.of("load.request.rate")[:] -= failed / night.cadence_s


def _moment(at: Scene, low: float = 0.2, high: float = 0.7) -> float:
    """When it happens, s into the run: on a poll's grid or not."""
    return float(at.night.rng.uniform(low, high)) * at.night.length_s


def _next_poll(at: Scene, since_s: float) -> int:
    return min(int(np.searchsorted(at.night.at_s, since_s)), at.night.at_s.size - 1)


def _dies(at: Scene, name: str, since_s: float, down_s: float) -> None:
    """A process dies and is back ``down_s`` later, another one; inf: it is not."""
    night = at.night
    index = _next_poll(at, since_s)
    back = _next_poll(at, since_s + down_s) if math.isfinite(down_s) else night.at_s.size
    for metric in (
        "process.memory.usage",
        "process.pid",
        "process.start_time",
        "process.threads",
        "process.open_files",
    ):
        night.of(metric, name)[index:back] = np.nan
    night.of("process.up", name)[index:back] = 0.0
    if back < night.at_s.size:
        night.of("process.pid", name)[back:] += 7000
        night.of("process.start_time", name)[back:] = round(BEGIN_NS * 1e-9 + since_s + down_s, 2)


def _truth(at: Scene, kind: str, since_s: float, rules: tuple[str, ...], **more: object) -> Happened:
    objects = more.pop("objects", ())
    others = more.pop("others", ())
    until_s = more.pop("until_s", since_s)
    assert not more
    assert isinstance(objects, tuple)
    assert isinstance(others, tuple)
    assert isinstance(until_s, float)
    return Happened(
        kind,
        ("fail",),
        DUT,
        rules,
        objects,
        since_s,
        until_s,
        at.load_at(since_s),
        at.phase_at(since_s),
        others,
    )


def _process(at: Scene) -> str:
    return str(at.night.rng.choice(at.night.objects("process.pid")))


def crash(at: Scene) -> Happened:
    """A process crashes, and is back after some seconds; what it served fails meanwhile."""
    name, since_s = _process(at), _moment(at)
    down_s = float(at.night.rng.uniform(2, 8)) if at.night.cadence_s < 60 else 70.0
    _dies(at, name, since_s, down_s)
    if at.night.seed % 3:
        _fails(at, since_s, down_s, float(at.night.rng.uniform(0.3, 1.0)))
    return _truth(at, "crash", since_s, ("process_restart", "core_dump"), objects=(name,))


def gone(at: Scene) -> Happened:
    """A process exits and does not come back."""
    name, since_s = _process(at), _moment(at)
    _dies(at, name, since_s, math.inf)
    if at.night.seed % 2:
        _fails(at, since_s, at.night.length_s, 0.3)
    return _truth(at, "exit", since_s, ("process_restart",), objects=(name,))


def out_of_memory(at: Scene) -> Happened:
    """The kernel kills a process for want of memory; it is started again."""
    name, since_s = _process(at), _moment(at)
    _dies(at, name, since_s, max(3.0, 1.2 * at.night.cadence_s))
    at.night.of("system.memory.oom_kills")[_next_poll(at, since_s) :] += 1
    _fails(at, since_s, 3.0)
    return _truth(at, "OOM", since_s, ("oom_kill", "process_restart"))


def leak(at: Scene, onset: float | None = None) -> tuple[str, float]:
    """A process leaks from some time on; its name and when."""
    name, night = _process(at), at.night
    since_s = (night.rng.choice([0.0, 0.3, 0.45]) if onset is None else onset) * night.length_s
    level = float(np.median(night.of("process.memory.usage", name)))
    more = level * night.rng.uniform(0.8, 2.0) * np.maximum(night.at_s - since_s, 0) / (night.length_s - since_s)
    sick.grown(night, name, floats(more))
    return name, float(since_s)


def leaks(at: Scene) -> Happened:
    """A process leaks, and nothing else happens."""
    name, since_s = leak(at)
    room_s = 0.12 * at.night.length_s
    truth = _truth(at, "leak", max(since_s - room_s, 0.0), ("growth", "memory_growth"), objects=(name,))
    return Happened(
        "leak",
        truth.verdict if at.night.hours > 2 else ("fail", "inconclusive"),
        DUT,
        truth.rules,
        truth.objects,
        truth.since_s,
        since_s + room_s,
        None,
    )


def leak_to_kill(at: Scene) -> Happened:
    """A process leaks until the kernel kills it: the leak broke it, and it is what has to be mended."""
    name, _ = leak(at, 0.0)
    killed_s = _moment(at, 0.6, 0.7)
    index = _next_poll(at, killed_s)
    night = at.night
    used = night.of("process.memory.usage", name)
    freed = used[index] - used[0]
    _dies(at, name, killed_s, max(3.0, 1.2 * night.cadence_s))
    used[index:] -= freed
    night.of("system.memory.usage")[index:] -= freed
    night.of("system.memory.available")[index:] += freed
    night.of("system.memory.oom_kills")[index:] += 1
    _fails(at, killed_s, 3.0)
    rules = ("oom_kill", "process_restart", "growth", "memory_growth")
    return _truth(at, "leak to OOM", killed_s, rules, until_s=killed_s)


def link_flap(at: Scene) -> Happened:
    """A link goes down and comes up three times in a minute and a half; what went over it is lost."""
    night = at.night
    name, since_s = "interface=ge0", _moment(at)
    if name not in night.objects("system.network.up"):
        night.put("system.network.up", np.ones(night.at_s.size), name)
    up = night.of("system.network.up", name)
    up[:] = 1.0
    apart_s, down_s = max(30.0, 4 * night.cadence_s), max(8.0, 1.5 * night.cadence_s)
    for number in range(3):
        begin_s = since_s + number * apart_s
        up[_next_poll(at, begin_s) : _next_poll(at, begin_s + down_s)] = 0.0
        _fails(at, begin_s, down_s, 0.5)
    return _truth(at, "link flap", since_s, ("change", "session_flap", "hardware_limit"), objects=(name,))


def generator_dies(at: Scene) -> Happened:
    """The generator ends: it sends nothing, and reports nothing any more."""
    night, since_s = at.night, _moment(at, 0.3, 0.6)
    index = _next_poll(at, since_s)
    for key, value in night.value.items():
        if key.target == TG:
            value[index:] = np.nan
    rules = ("generator_health", "loss", "periodic_pause", "hang")
    return Happened("generator dies", ("inconclusive",), TG, rules, (), since_s, since_s, None, at.phase_at(since_s))


def failover(at: Scene) -> Happened:
    """A failover was to take 5 s at most; nothing came back for a half to two minutes."""
    night, since_s = at.night, _moment(at, 0.3, 0.6)
    since_s = night.at_s[_next_poll(at, since_s)] + 0.3 * night.cadence_s
    begin = BEGIN_NS + round(since_s * 1e9)
    night.events.append(Event("failover", DUT, "", begin, begin + 10**9, {}, {}, begin + 5 * 10**9))
    _fails(at, since_s, float(night.rng.uniform(30, 120)) + night.cadence_s)
    return _truth(at, "failover", since_s, ("event_impact", "loss", "hang"))


def free_failover(at: Scene) -> Happened:
    """A failover was to take 10 s at most, and cost nothing; the load is so slow that its readings jump about."""
    night, since_s = at.night, _moment(at, 0.3, 0.6)
    begin = BEGIN_NS + round(night.at_s[_next_poll(at, since_s)] * 1e9)
    night.events.append(Event("failover", DUT, "", begin, begin + 10**9, {}, {}, begin + 10 * 10**9))
    if night.has("load.requests"):
        asked = np.cumsum(night.rng.poisson(10.0 * at.shape * night.cadence_s)).astype(float)
        night.of("load.requests")[:] = asked
        night.of("load.request.rate")[:] = np.diff(asked, prepend=0.0) / night.cadence_s
        night.of("load.offered.rate")[:] = 10.0 * at.shape
    return Happened("failover that costs nothing", ("pass", "inconclusive"))


def cpu_hog(at: Scene) -> Happened:
    """Something takes all of the CPU for a fifteenth of the run, and requests fail or packets are dropped."""
    night, since_s = at.night, _moment(at, 0.3, 0.6)
    lasts_s = max(night.length_s / 15, 300.0)
    inside = (night.at_s >= since_s) & (night.at_s < since_s + lasts_s)
    night.of("system.cpu.utilization")[inside] = 1.0 - 0.002 * night.rng.random(int(inside.sum()))
    for name in night.objects("system.cpu.core.utilization"):
        night.of("system.cpu.core.utilization", name)[inside] = 1.0
    _fails(at, since_s + night.cadence_s, lasts_s - night.cadence_s, 0.05)
    return _truth(at, "CPU hog", since_s, ("cpu_spike", "cpu_saturation"), others=("loss",))


def disk_full(at: Scene) -> Happened:
    """A file system fills up within a tenth of the run, and stays full."""
    night, since_s = at.night, _moment(at, 0.3, 0.5)
    name = "mountpoint=/var/log"
    full_s = since_s + 0.1 * night.length_s
    limit = night.of("system.filesystem.limit", name)[0]
    used = night.of("system.filesystem.usage", name)
    share = np.clip((night.at_s - since_s) / (full_s - since_s), 0.0, 1.0)
    used[:] = np.round((used + share * (limit - used)) / 4096) * 4096
    return Happened(
        "disk full",
        ("fail",),
        DUT,
        ("saturation", "growth", "step_change"),
        (name,),
        since_s + 0.9 * (full_s - since_s),
        full_s,
        at.load_at(full_s),
        at.phase_at(full_s),
    )


def two_at_once(at: Scene) -> Happened:
    """A process crashes while another leaks: the crash has a moment, the leak a process."""
    leaking, _ = leak(at, 0.0)
    others = [name for name in at.night.objects("process.pid") if name != leaking]
    name, since_s = str(at.night.rng.choice(others)), _moment(at)
    _dies(at, name, since_s, max(3.0, 1.2 * at.night.cadence_s))
    _fails(at, since_s, 3.0)
    return _truth(at, "crash and leak", since_s, ("process_restart", "core_dump"), objects=(name,))


def nothing(at: Scene) -> Happened:
    """Nothing happens."""
    del at
    return Happened("none", ("pass", "inconclusive"))


KINDS: dict[str, Callable[[Scene], Happened]] = {
    "crash": crash,
    "exit": gone,
    "OOM": out_of_memory,
    "leak": leaks,
    "leak to OOM": leak_to_kill,
    "link flap": link_flap,
    "generator dies": generator_dies,
    "failover": failover,
    "failover that costs nothing": free_failover,
    "CPU hog": cpu_hog,
    "disk full": disk_full,
    "crash and leak": two_at_once,
    "none": nothing,
}


def try_one(kind: str, seed: int, keep: Path | None = None) -> Row:
    """One incident, judged and told by the commands."""
    at = scene(seed)
    truth = KINDS[kind](at)
    with folder_for(keep) as folder:
        write_run(at.night, folder / "record")
        words = [str(folder / name) for name in ("report.html", "report.md", "verdict.json")]
        called(["report", str(folder / "record"), "--html", words[0], "--md", words[1], "--json", words[2]])
        document = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
        told = told_by(document)
        page = (folder / "report.html").read_text(encoding="utf-8")
        brief = page[page.index('<dl class="brief">') :].partition("</dl>")[0]
        shown = {
            "report.html": [unescape(re.sub(r"<[^>]*>", "", part)) for part in brief.split("</dd>")],
            "report.md": (folder / "report.md").read_text(encoding="utf-8").splitlines(),
        }
        wrong = [*_wrong(truth, told, str(document["verdict"]), at.night.cadence_s)]
        wrong += [f"{name} says otherwise" for name, lines in shown.items() if not _same(document, lines)]
        if not _heads(document):
            wrong.append("report: the first of the findings is another one, and the list of runs shows that")
        return Row(seed, truth, str(document["verdict"]), told, tuple(wrong), str(document["first"]["sentence"]))


def told_by(document: dict[str, object]) -> Told:
    """What verdict.json says first."""
    first = document["first"]
    assert isinstance(first, dict)
    since = first["since"]
    since_s = None if since is None else datetime.fromisoformat(since).astimezone(UTC).timestamp() - BEGIN_NS * 1e-9
    load = first["load"] or {}
    return Told(
        first["target"] or "",
        first["rule"] or "",
        first["object"] or "",
        since_s,
        load.get("rate"),
        first["phase"] or "",
        first["next"],
    )


def _heads(document: dict[str, object]) -> bool:
    """Whether the first finding is the one that is told first: lists, dashboards and hooks show that."""
    first, findings = document["first"], document["findings"]
    assert isinstance(first, dict)
    assert isinstance(findings, list)
    if document["verdict"] != "fail":
        return True
    return [first[key] for key in ("target", "rule", "object")] == [
        findings[0][key] for key in ("target", "rule", "object")
    ]


def _same(document: dict[str, object], lines: list[str]) -> bool:
    """Whether a surface has the facts of verdict.json."""
    first = document["first"]
    assert isinstance(first, dict)
    text = re.sub(r"[*`\\]", "", "\n".join(lines))
    return all(str(fact) in text for fact in first["facts"].values())


def _wrong(truth: Happened, told: Told, verdict: str, cadence_s: float) -> Iterator[str]:
    if verdict not in truth.verdict:
        yield f"verdict {verdict}"
    if truth.verdict[0] != "fail" or verdict != "fail":
        return
    if told.who != truth.who and truth.who == DUT:
        yield f"who {told.who}"
    if told.rule not in truth.rules or (truth.objects and told.object not in truth.objects):
        yield f"what {told.rule} {told.object}"
    if truth.since_s is not None and truth.until_s is not None:
        room_s = max(2 * cadence_s, 2.0)
        if told.since_s is None:
            if truth.kind != "leak" or truth.since_s > 0:
                yield "no moment"
        elif not truth.since_s - room_s <= told.since_s <= truth.until_s + room_s:
            yield f"since {told.since_s - truth.since_s:+.0f} s"
    if truth.load is not None:
        if told.load is None:
            yield "no load"
        elif abs(told.load - truth.load) > 0.05 * truth.load:
            yield f"load {told.load:g} for {truth.load:g}"
        if told.phase != truth.phase:
            yield f"phase {told.phase} for {truth.phase}"


def _job(kind: str, seed: int, keep: str) -> Row | str:
    try:
        return try_one(kind, seed, Path(keep) if keep else None)
    except Exception as error:  # noqa: BLE001 - one run that breaks is a result, not the end of the bench
        return f"{kind} {seed}: {type(error).__name__}: {error}"


def main() -> None:
    """Prints the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=5, help="incidents of each kind (default: 5, 60 in all)")
    options.add_argument("--seed", type=int, help="this one only")
    options.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    options.add_argument("--only", default="", help="the kinds whose name holds this")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--each", action="store_true", help="name each that was told wrongly")
    options.add_argument("--keep", default="", help="keep record and pages of one")
    asked = options.parse_args()
    seeds = [asked.seed] if asked.seed is not None else range(asked.first, asked.first + asked.seeds)
    jobs = [(kind, seed) for kind in KINDS if asked.only in kind for seed in seeds]
    kinds, numbers = [kind for kind, _ in jobs], [seed for _, seed in jobs]
    keeps = [asked.keep] * len(jobs)
    if asked.jobs > 1:
        with ProcessPoolExecutor(asked.jobs) as pool:
            rows = list(pool.map(_job, kinds, numbers, keeps))
    else:
        rows = list(map(_job, kinds, numbers, keeps))
    good = [row for row in rows if isinstance(row, Row)]
    print("| | runs | right | verdict | who | what | since | load | surfaces |\n|---|---|---|---|---|---|---|---|---|")
    for kind in [*dict.fromkeys(kinds), ""]:
        own = [row for row in good if row.truth.kind == kind or not kind]
        counts = [
            sum(any(word.startswith(start) for word in row.wrong for start in starts) for row in own)
            for starts in (
                ("verdict",),
                ("who",),
                ("what",),
                ("since", "no moment"),
                ("load", "no load", "phase"),
                ("report",),
            )
        ]
        print(f"| {kind or 'all'} | {len(own)} | {sum(not r.wrong for r in own)} | {' | '.join(map(str, counts))} |")
    for row in rows:
        if isinstance(row, str):
            print(f"broke: {row}")
        elif row.wrong and asked.each:
            print(f"{row.truth.kind} {row.seed}: {'; '.join(row.wrong)}: {row.sentence}")
    print("\nThe columns count the runs that were told wrongly.")


if __name__ == "__main__":
    main()
