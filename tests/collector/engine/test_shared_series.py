"""Several sources of one target that see the same thing: one of them brings a series, another only while it is away."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pytest

from soakwatch.judge.live.run_follower import RunFollower
from soakwatch.judge.planned import PLANNED_KEY, planned_text
from soakwatch.judge.record_verdict import judge_record
from soakwatch.plan.rule_plan import planned_rules
from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch.record._owners import Owners
from soakwatch.record._packer import PollPacker
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample
from soakwatch_model.series import Series
from soakwatch_testing.records import SECOND, T0

IDLE = ("system.cpu.time", "mode=idle")
MEMORY = ("system.memory.usage", "")
SWITCHES = ("system.context_switches", "")
LOST = ("system.udp.receive_errors", "reason=full")
PROCESSES = ("system.processes", "")
KILLS = ("system.memory.oom_kills", "")
KEPT = "dut/snmp brings it already: kept from there"

Names = tuple[str, str]


def at_s(seconds: float) -> int:
    """The time so many seconds after T0."""
    return T0 + round(seconds * SECOND)


def poll_of(source: int, due_s: float, values: Mapping[Names, float], late_s: float = 0.01) -> Poll:
    """A poll that was answered; it began a little late, as all do."""
    start = at_s(due_s + late_s)
    samples = tuple(Sample(metric, name, value, start) for (metric, name), value in values.items())
    return Poll(source, at_s(due_s), start, 5_000_000, PollOutcome.OK, None, Answer(samples, (), ()))


def lost(source: int, due_s: float) -> Poll:
    """A poll that brought nothing."""
    return Poll(source, at_s(due_s), at_s(due_s), 0, PollOutcome.TIMEOUT, "no answer", NOTHING)


def cached(seconds: float) -> float:
    """A counter as SNMP shows it: of the last whole 15 s."""
    return float(seconds // 15 * 15)


def new(folder: Path, **intervals_s: float) -> tuple[Record, list[int]]:
    """A record of one device with these sources, in its soak phase."""
    record = Record.create(folder)
    record.target("dut", "dut")
    record.begin_span(T0)
    ids = [record.source("dut", name, name, round(s * SECOND), required=True).id for name, s in intervals_s.items()]
    record.begin_phase("soak", T0)
    return record, ids


class Batches:
    """Polls on their way into a record, written some at a time, as a monitor writes those of a second: each writing is
    a transaction, which costs more than the polls in it."""

    def __init__(self, record: Record, size: int = 25) -> None:
        self._record, self._size = record, size
        self._waiting = list[Poll]()

    def put(self, polls: Sequence[Poll]) -> None:
        """Polls to be written with those that wait."""
        self._waiting += polls
        if len(self._waiting) >= self._size:
            self.write()

    def write(self) -> None:
        """Write those that wait now."""
        if self._waiting:
            self._record.put(self._waiting)
            self._waiting = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.write()


def of(folder: Path, names: Names = SWITCHES) -> Series:
    """A series of the device."""
    with RecordView.open(folder) as view:
        return view.series(SeriesKey("dut", *names))


def seconds(folder: Path, names: Names = SWITCHES) -> list[int]:
    """When it was read, in whole seconds after T0."""
    return [int(time_ns - T0) // SECOND for time_ns in of(folder, names).time_ns]


def account(folder: Path) -> list[tuple[int, str, str, int]]:
    """The faults: source, metric, text, how often."""
    with RecordView.open(folder) as view:
        return [(fault.source, fault.metric, fault.text, fault.count) for fault in view.faults()]


@pytest.mark.parametrize("compacted", [False, True])
def test_a_counter_that_two_sources_see_never_falls(tmp_path: Path, *, compacted: bool) -> None:
    """SNMP shows a counter of some seconds ago, SSH that of now: mixed it would fall; the first one's is kept."""
    record, (snmp, ssh) = new(tmp_path, snmp=10, ssh=1)
    with record, Batches(record) as batches:
        for now in range(600):
            if now % 10 == 0:
                batches.put([poll_of(snmp, now, {IDLE: cached(now), MEMORY: 5000})])
            batches.put([poll_of(ssh, now, {IDLE: float(now), MEMORY: 9000, PROCESSES: now % 7}, late_s=0.05)])
            if compacted and now % 100 == 99:
                batches.write()
                record.compact(final=True)
    idle = of(tmp_path, IDLE)
    assert idle.value.tolist() == [cached(now) for now in range(0, 600, 10)]
    assert idle.cadence_s == 10
    assert set(of(tmp_path, MEMORY).value.tolist()) == {5000}
    assert len(of(tmp_path, PROCESSES)) == 600  # what only SSH brings stays
    assert account(tmp_path) == [(ssh, "system.cpu.time", KEPT, 1), (ssh, "system.memory.usage", KEPT, 1)]


def test_findings_count_the_samples_that_were_expected(tmp_path: Path) -> None:
    """Two sources with one series: a finding tells of as many samples as its owner should bring, without caveats."""
    record, (snmp, ssh) = new(tmp_path, snmp=10, ssh=3)
    rng = random.Random(5)
    with record, Batches(record) as batches:
        record.set_meta(PLANNED_KEY, planned_text(3600, ["soak"]))
        for now in range(3600):
            memory = 8e9 + 1e7 * rng.random()
            if now % 10 == 0:
                batches.put([poll_of(snmp, now, {MEMORY: memory - 5e7, IDLE: cached(now), KILLS: 0.0})])
            if now % 3 == 0:
                batches.put([poll_of(ssh, now, {MEMORY: memory, IDLE: float(now), KILLS: 0.0}, late_s=0.3)])
        batches.write()
        record.finish()
    with RecordView.open(tmp_path) as view:
        assert KEPT in {fault.text for fault in view.faults() if fault.metric == KILLS[0]}
        findings = [finding for finding in judge_record(view).findings if finding.expected]
    assert [finding.doubts for finding in findings if finding.rule == "oom_kill"] == [()]
    of_memory = [finding for finding in findings if finding.metric == MEMORY[0]]
    assert of_memory
    assert all(
        0.97 * finding.expected <= finding.samples <= finding.expected + 1 for finding in of_memory if finding.expected
    )


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize(("interval_s", "silence_s"), [(1, 60), (10, 60), (30, 150)])
def test_another_source_stands_in_until_the_owner_is_back(
    tmp_path: Path, interval_s: int, silence_s: int, *, compacted: bool
) -> None:
    """SNMP is away from 300 s to 900 s: SSH fills in 60 s or five intervals later, and not once SNMP is back."""
    record, (snmp, ssh) = new(tmp_path, snmp=interval_s, ssh=5)
    with record, Batches(record) as batches:
        for now in range(1200):
            if now % interval_s == 0:
                away = 300 <= now < 900
                batches.put([lost(snmp, now) if away else poll_of(snmp, now, {SWITCHES: 1000 + now})])
            if now % 5 == 0:
                batches.put([poll_of(ssh, now, {SWITCHES: 1000 + now}, late_s=0.5)])
            if compacted and now % 50 == 0:
                batches.write()
                record.compact(final=True)
    last = (299 // interval_s) * interval_s
    first = -(-(last + silence_s) // 5) * 5
    assert seconds(tmp_path) == [
        *range(0, 300, interval_s),
        *range(first, 900, 5),
        *range(900, 1200, interval_s),
    ]
    assert bool((np.diff(of(tmp_path).value) >= 0).all())
    assert account(tmp_path) == [(ssh, SWITCHES[0], KEPT, 1)]


def test_the_series_that_the_owner_stops_bringing_comes_from_the_other(tmp_path: Path) -> None:
    """An owner that answers, but no longer brings one of its series, keeps the others."""
    record, (snmp, ssh) = new(tmp_path, snmp=1, ssh=1)
    with record, Batches(record) as batches:
        for now in range(200):
            brought: dict[Names, float] = {SWITCHES: now, PROCESSES: 1}
            batches.put([poll_of(snmp, now, brought if now < 50 else {PROCESSES: 1})])
            batches.put([poll_of(ssh, now, {SWITCHES: now, PROCESSES: 2}, late_s=0.5)])
    assert seconds(tmp_path) == [*range(50), *range(109, 200)]
    assert of(tmp_path, PROCESSES).value.tolist() == [1] * 200


def test_an_owner_that_brings_a_metric_seldom_is_waited_for_longer(tmp_path: Path) -> None:
    """A metric that its owner brings every 100 s by its own account is not taken over after 60 s."""
    record, (snmp, ssh) = new(tmp_path, snmp=1, ssh=10)
    with record, Batches(record) as batches:
        batches.put([poll_of(snmp, 0, {SWITCHES: 0}), poll_of(ssh, 0, {SWITCHES: 0}, late_s=0.5)])
        batches.write()
        record.cadences(snmp, {SWITCHES[0]: 100})
        for now in range(1, 1000):
            batches.put([poll_of(snmp, now, {SWITCHES: now} if now % 100 == 0 else {PROCESSES: 1})])
            if now % 10 == 0:
                batches.put([poll_of(ssh, now, {SWITCHES: now}, late_s=0.5)])
    assert seconds(tmp_path) == list(range(0, 1000, 100))


def test_two_stand_ins_do_not_mix_either(tmp_path: Path) -> None:
    """Of two other sources the one that stands in goes on alone, and the second takes over once it is away too."""
    record, (snmp, ssh, agent) = new(tmp_path, snmp=10, ssh=10, agent=10)
    with record, Batches(record) as batches:
        for now in range(0, 600, 10):
            batches.put([poll_of(snmp, now, {SWITCHES: now}) if now < 100 else lost(snmp, now)])
            batches.put([poll_of(ssh, now, {SWITCHES: now}, late_s=1) if now < 300 else lost(ssh, now)])
            batches.put([poll_of(agent, now, {SWITCHES: now}, late_s=2)])
    assert [int(t - T0) / SECOND for t in of(tmp_path).time_ns] == pytest.approx(
        [
            *(now + 0.01 for now in range(0, 100, 10)),
            *(now + 1 for now in range(150, 300, 10)),
            *(now + 2 for now in range(350, 600, 10)),
        ]
    )


@pytest.mark.parametrize("compacted", [False, True])
def test_late_polls_of_the_owner_take_the_place_of_the_stand_in(tmp_path: Path, *, compacted: bool) -> None:
    """An agent that was cut off brings what it saw: all of it is read, and nothing of the one that stood in."""
    record, (agent, snmp) = new(tmp_path, agent=1, snmp=10)
    with record, Batches(record) as batches:
        for now in range(600):
            cut = 100 <= now < 400
            if now == 400:
                if compacted:
                    batches.write()
                    record.compact(final=True)
                batches.put([poll_of(agent, missed, {SWITCHES: 10 * missed}) for missed in range(100, 400)])
            batches.put([lost(agent, now) if cut else poll_of(agent, now, {SWITCHES: 10 * now})])
            if now % 10 == 0:
                batches.put([poll_of(snmp, now, {SWITCHES: 10 * (now // 30 * 30)}, late_s=0.5)])
            if now == 399:
                batches.write()
                record.put([])
                assert seconds(tmp_path) == [*range(100), *range(160, 399, 10)]
    assert seconds(tmp_path) == list(range(600))
    assert of(tmp_path).value.tolist() == [10 * now for now in range(600)]
    part = of(tmp_path)
    with RecordView.open(tmp_path) as view:
        some = view.series(SeriesKey("dut", *SWITCHES), at_s(170), at_s(380))
    assert some.value.tolist() == part.between(at_s(170), at_s(380)).value.tolist()


def test_late_polls_of_another_source_fill_the_gap_of_the_owner(tmp_path: Path) -> None:
    """The network is cut for SNMP and the agent alike: what the agent kept stands for what SNMP never saw."""
    record, (snmp, agent) = new(tmp_path, snmp=10, agent=1)
    with record, Batches(record) as batches:
        for now in range(600):
            cut = 100 <= now < 400
            if now % 10 == 0:
                batches.put([lost(snmp, now) if cut else poll_of(snmp, now, {SWITCHES: now})])
            if now == 401:
                batches.put([poll_of(agent, missed, {SWITCHES: missed}, late_s=0.5) for missed in range(100, 400)])
            batches.put([lost(agent, now) if cut else poll_of(agent, now, {SWITCHES: now}, late_s=0.5)])
    assert seconds(tmp_path) == [*range(0, 100, 10), *range(150, 400), *range(400, 600, 10)]


def away_and_back(folder: Path, again_s: int | None = None, *, compacted: bool = False) -> None:
    """A record of an owner that is away from 100 s to 400 s; it is closed and opened ``again_s`` after its begin."""
    record, (snmp, ssh) = new(folder, snmp=5, ssh=5)
    batches = Batches(record)
    for now in range(0, 600, 5):
        if now == again_s:
            batches.write()
            if compacted:
                record.compact(final=True)
            record.close()
            record = Record.open(folder)
            batches = Batches(record)
            assert [snmp, ssh] == [record.source("dut", n, n, 5 * SECOND, required=True).id for n in ("snmp", "ssh")]
        batches.put([lost(snmp, now) if 100 <= now < 400 else poll_of(snmp, now, {SWITCHES: now, MEMORY: 1})])
        batches.put([poll_of(ssh, now, {SWITCHES: now, MEMORY: 2}, late_s=0.5)])
    batches.write()
    record.close()


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That record without a break."""
    folder = tmp_path_factory.mktemp("once")
    away_and_back(folder)
    assert seconds(folder) == [*range(0, 100, 5), *range(155, 400, 5), *range(400, 600, 5)]
    return folder


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("again_s", [50, 130, 250, 450])
def test_a_resumed_run_goes_on_as_it_was(tmp_path: Path, once: Path, again_s: int, *, compacted: bool) -> None:
    """The record is closed and opened before the owner is away, while it is missed, stood in for, and back."""
    away_and_back(tmp_path, again_s, compacted=compacted)
    for names in (SWITCHES, MEMORY):
        whole, resumed = of(once, names), of(tmp_path, names)
        assert resumed.time_ns.tolist() == whole.time_ns.tolist()
        assert resumed.value.tolist() == whole.value.tolist()
    assert account(tmp_path) == account(once)


def schedule(seed: int, sources: Sequence[int]) -> Iterable[Poll]:
    """Polls of some sources that are away now and then; the first brings what it missed when it is back."""
    rng = random.Random(seed)
    away_until = dict.fromkeys(sources, 0.0)
    missed: dict[int, list[float]] = {source: [] for source in sources}
    for now in range(0, 1500, 5):
        for nth, source in enumerate(sources):
            if rng.random() < 0.01:
                away_until[source] = now + rng.uniform(5, 300)
            values: dict[Names, float] = {SWITCHES: now, MEMORY: nth, PROCESSES: now % 3}
            if nth and rng.random() < 0.1:
                del values[MEMORY]
            late_s = 0.1 * nth + 0.05 * rng.random()
            if now < away_until[source]:
                missed[source].append(now)
                yield lost(source, now)
                continue
            if missed[source] and nth != 1:
                yield from (poll_of(source, then, values | {SWITCHES: then}, late_s) for then in missed[source])
            missed[source] = []
            yield poll_of(source, now, values, late_s)


@pytest.mark.parametrize("seed", range(6))
def test_an_owner_is_never_mixed_with_others(tmp_path: Path, seed: int) -> None:
    """Whatever fails and comes late: every reading of the owner is there, and none of others soon after one.

    What is remembered of polls changes nothing, and a live follower sees what the record says in the end.
    """
    folders = tmp_path / "plain", tmp_path / "forgetful"
    following: RunFollower | None = None
    for folder in folders:
        record, sources = new(folder, snmp=5, ssh=5, agent=5)
        forgetful = folder is folders[1]
        with record, Batches(record, 1 if forgetful else 15) as batches:
            for count, poll in enumerate(schedule(seed, sources)):
                batches.put([poll])
                if forgetful:
                    record._state.packer.forget_layouts()
                elif count % 90 == 89:
                    batches.write()
                    following = following or RunFollower(folder, planned_rules(()), {})
                    following.read()
                    record.compact(final=count % 180 == 179)
    assert following is not None
    following.read()
    recent = following.through("recent")
    for names in (SWITCHES, PROCESSES, MEMORY):
        series, slow = of(folders[0], names), of(folders[1], names)
        assert series.time_ns.tolist() == slow.time_ns.tolist()
        assert series.value.tolist() == slow.value.tolist()
        if names == MEMORY:
            live = recent.series(SeriesKey("dut", *names))
            assert live.time_ns.tolist() == series.time_ns.tolist()
            assert live.value.tolist() == series.value.tolist()
    memory = of(folders[0], MEMORY)
    own = memory.time_ns[memory.value == 0]
    brought = [poll for poll in schedule(seed, [1, 2, 3]) if poll.source == 1 and poll.answer.samples]
    assert own.tolist() == sorted(poll.start_ns for poll in brought)
    others = memory.time_ns[memory.value != 0]
    before = own[np.maximum(np.searchsorted(own, others) - 1, 0)]
    assert bool((others - before > 60 * SECOND).all())
    assert len(account(folders[0])) == 6  # two other sources, three metrics


@pytest.mark.parametrize("minutes", [1, 7])
def test_a_live_view_of_an_outage_equals_the_record(tmp_path: Path, minutes: int) -> None:
    """A follower that polls every so many minutes sees stand-in, hand-back and late polls as the record has them."""
    record, (agent, snmp) = new(tmp_path, agent=1, snmp=5)
    following: RunFollower | None = None
    with record, Batches(record) as batches:
        for now in range(1800):
            cut = 300 <= now < 700 or 1000 <= now < 1300
            if now == 1300:  # of the first outage nothing was kept
                batches.put([poll_of(agent, missed, {LOST: missed, MEMORY: 1}) for missed in range(1000, 1300)])
            batches.put([lost(agent, now) if cut else poll_of(agent, now, {LOST: now, MEMORY: 1})])
            if now % 5 == 0:
                batches.put([poll_of(snmp, now, {LOST: round(cached(now)), MEMORY: 2}, late_s=0.5)])
            if now % (60 * minutes) == 60 * minutes - 1:
                batches.write()
                following = following or RunFollower(tmp_path, planned_rules(()), {})
                following.read()
    assert following is not None
    following.read()
    for names in (LOST, MEMORY):
        live, kept = following.through("recent").series(SeriesKey("dut", *names)), of(tmp_path, names)
        assert live.time_ns.tolist() == kept.time_ns.tolist()
        assert live.value.tolist() == kept.value.tolist()
    assert (
        np.flatnonzero(np.diff(of(tmp_path, LOST).value) < 0).size <= 1
    )  # where the agent is back and nothing is late
    assert seconds(tmp_path, MEMORY) == [*range(300), *range(360, 700, 5), *range(700, 1800)]


def test_what_is_left_out_costs_no_second_thought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls of which a part is left out, or stands in, are worked out once for each way of choosing."""
    slow: list[int] = []
    worked_out = PollPacker._pack_new

    def counted(*args: object, **named: object) -> object:
        slow.append(1)
        return worked_out(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(PollPacker, "_pack_new", counted)
    record, (snmp, ssh) = new(tmp_path, snmp=1, ssh=1)
    with record, Batches(record) as batches:
        for now in range(2000):
            away = 500 <= now < 1000
            batches.put([lost(snmp, now) if away else poll_of(snmp, now, {SWITCHES: now, MEMORY: 1})])
            batches.put([poll_of(ssh, now, {SWITCHES: now, MEMORY: 2, PROCESSES: 3}, late_s=0.5)])
    assert len(slow) <= 3  # SNMP; SSH with its own alone; SSH with everything


def test_an_owner_that_is_back_with_an_earlier_poll_is_taken(tmp_path: Path) -> None:
    """A slow answer of the owner that began before the newest poll of its stand-in is the owner's, and is no fault."""
    record, (snmp, ssh) = new(tmp_path, snmp=10, ssh=1)
    with record:
        record.put([poll_of(snmp, 0, {MEMORY: 1})])
        record.put([poll_of(ssh, now, {MEMORY: 2}) for now in range(1, 105)])
        record.put([poll_of(snmp, 100, {MEMORY: 1}), poll_of(snmp, 110, {MEMORY: 1})])
    assert seconds(tmp_path, MEMORY) == [0, *range(61, 100), 100, 110]
    assert of(tmp_path, MEMORY).value.tolist() == [1, *[2] * 39, 1, 1]
    assert account(tmp_path) == [(ssh, MEMORY[0], KEPT, 1)]


def test_a_record_that_took_everything_reads_without_the_zigzag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record in which two sources brought one series is read as if the series had had its owner."""
    record, (snmp, ssh) = new(tmp_path, snmp=10, ssh=1)
    with record, Batches(record) as batches, monkeypatch.context() as before:
        before.setattr(Owners, "takes", lambda _, __, series, *___, **____: np.ones(series.shape, np.bool_))
        for now in range(300):
            if now % 10 == 0:
                batches.put([poll_of(snmp, now, {IDLE: cached(now)})])
            batches.put([poll_of(ssh, now, {IDLE: float(now)}, late_s=0.5)])
        batches.write()
        record.finish()
    with RecordView.open(tmp_path) as view:
        assert view.counts().samples == 330
    assert of(tmp_path, IDLE).value.tolist() == [cached(now) for now in range(0, 300, 10)]
