"""Pauses of polls in virtual time: when they are, what is asked in them, and what the rule finds in the record."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.collector.engine.poll_list import PollList

from soakwatch.engine.observer_probe import ObserverProbe, rests
from soakwatch.engine.phases import PhaseTimeline
from soakwatch.engine.polling import PolledSource, SourceSpec
from soakwatch.engine.run_record import run_record
from soakwatch.engine.scheduler import PlannedTimers, Timers
from soakwatch.judge.cases import CaseBuilder
from soakwatch.plan.observer_plan import ObserverPlan
from soakwatch.plan.phase import PhasePlan
from soakwatch.record import Record, RecordView
from soakwatch.record.queue import Committer
from soakwatch.sources.abc import Poller, SourceError, timing
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_rules.detectors.observer_cost import ObserverCost
from soakwatch_testing.virtual import VirtualTime

SECOND = 10**9
PLAN = ObserverPlan(probe_s=60.0, pairs=5, settle_s=20.0, phase="soak", targets=("r1",))
CPU = "system.cpu.utilization"


class Router:
    """Its CPU is busy by a tenth, and by ``cost`` more for the second after each whole poll."""

    def __init__(self, time: VirtualTime, cost: float) -> None:
        self._time, self._cost = time, cost
        self._before_ns = self._spent = 0
        self.silent = False
        self.asked: list[tuple[int, str]] = []

    async def poll(self, now_ns: int) -> Answer:
        """All that it has."""
        return self._answer(now_ns, "all", Sample("system.memory.usage", "", 2**30, now_ns))

    async def poll_cpu(self, now_ns: int) -> Answer:
        """Its CPU alone."""
        return self._answer(now_ns, "cpu")

    def _answer(self, now_ns: int, what: str, *more: Sample) -> Answer:
        if self.silent:
            raise SourceError("no answer")
        self.asked.append((now_ns, what))
        since_s = (now_ns - self._before_ns) / SECOND
        busy = 0.1 + self._spent * self._cost / since_s
        self._before_ns, self._spent = now_ns, int(what == "all")
        return Answer((Sample(CPU, "", busy, now_ns), *more), (), ())


class Queue(PollList):
    """Hands polls over to the record as well."""

    def __init__(self, committer: Committer) -> None:
        super().__init__()
        self._committer = committer

    def take(self, poll: Poll) -> None:
        """Keep it."""
        super().take(poll)
        self._committer.take(poll)


def run(folder: Path, cost: float, *, falls_silent_s: float | None = None, seconds: int = 700) -> tuple[Router, Queue]:
    """A run of 700 s with five pairs of windows."""
    time = VirtualTime()
    router = Router(time, cost)
    phases = PhaseTimeline([PhasePlan(name="soak", seconds=float(seconds))], time.now_ns())

    async def connect(_: AsyncExitStack) -> Poller:
        return router

    async def main() -> Queue:
        with Record.create(folder) as record:
            out = run_record(record, time.now_ns, threaded=False)
            start_ns = time.now_ns()
            record.target("r1", "dut")
            source = record.source("r1", "snmp", "snmp", SECOND, required=True)
            record.begin_phase("soak", start_ns)
            phases.begun()
            queue = Queue(out.queue)
            probe = ObserverProbe(PLAN, 1, phases, out, time.now_ns)
            spec = SourceSpec(source.id, "r1/snmp", timing(start_ns, 1.0), timed=True)
            async with PolledSource(spec, connect, time, queue) as polled, Timers(time) as timers:
                timers.poll(polled)

                async def begin() -> None:
                    await probe.begin_due([polled])

                planned = PlannedTimers(time, begin)
                planned.start(timers, probe.due_ns())
                timers.every(60, out.queue.commit)
                if falls_silent_s is not None:
                    await asyncio.sleep(falls_silent_s)
                    router.silent = True
                await asyncio.sleep(seconds - (falls_silent_s or 0))
                planned.stop()
                polled.close_account(start_ns + seconds * SECOND)
            await out.queue.commit()
            record.end_phase(start_ns + seconds * SECOND)
            record.finish()
            return queue

    return router, time.run(main())


def judged(folder: Path) -> Finding:
    """What the rule says of the record."""
    with RecordView.open(folder) as view:
        case_builder = CaseBuilder(view)
        about = next(case_builder.subject_matters(ObserverCost()))
        return ObserverCost().judge(case_builder.case(ObserverCost(), about.target, about.keys, about.window))[0]


def test_pauses_lie_beside_what_they_are_compared_with() -> None:
    """One of each pair, behind a window with polls; by lot, half of them first; the same seed, the same pauses."""
    for seed in range(20):
        planned = rests(PLAN, 0, seed)
        for pair, rest in enumerate(planned):
            begin_s = 60 + 120 * pair + (0 if rest.behind else 60)
            assert (rest.begin_ns, rest.end_ns) == (begin_s * SECOND, (begin_s + 60) * SECOND)
        assert sum(rest.behind for rest in planned) == 3
        assert rests(PLAN, 0, seed) == planned
    assert len({tuple(rest.behind for rest in rests(PLAN, 0, seed)) for seed in range(20)}) > 3


@pytest.mark.parametrize(("cost", "outcome"), [(0.03, Outcome.WARN), (0.002, Outcome.PASS)])
def test_the_cost_of_polls_is_found_and_no_poll_is_lost(tmp_path: Path, cost: float, outcome: Outcome) -> None:
    """3 % of the CPU warns, 0.2 % passes; in a pause only the CPU is read, and every due poll is answered."""
    router, queue = run(tmp_path / "run", cost)
    finding = judged(tmp_path / "run")
    assert finding.outcome is outcome
    assert finding.measured == pytest.approx(cost, rel=0.05)
    assert finding.sentence.endswith("in 5 pairs of 1 min" + ("; allowed 1 %" if outcome is Outcome.WARN else ""))
    with RecordView.open(tmp_path / "run") as view:
        events = [stored.event for stored in view.events() if stored.event.kind == "observer.rest"]
        (ledger,) = view.ledgers(view.window())
    assert [event.detail["pair"] for event in events] == [f"{pair} of 5" for pair in range(1, 6)]
    for event in events:
        assert event.end_ns is not None
        asked = [what for time_ns, what in router.asked if event.begin_ns + SECOND // 2 < time_ns < event.end_ns]
        assert set(asked) == {"cpu"}
        assert 12 <= len(asked) <= 16
        begin_ns = event.begin_ns + SECOND // 2
        polls = [poll for poll in queue.polls if begin_ns < poll.due_ns < event.end_ns]
        timed = [sample for poll in polls for sample in poll.answer.samples]
        assert {sample.metric for sample in timed} == {CPU}
    assert (ledger.coverage, ledger.lost, ledger.silences) == (1.0, {}, ())


def test_a_device_that_falls_silent_in_a_pause_is_not_taken_for_one_that_rests(tmp_path: Path) -> None:
    """It fails at the next look at its CPU, and from then on as ever; the rule has too few pairs."""
    _, queue = run(tmp_path / "run", 0.03, falls_silent_s=rests(PLAN, 0, 1)[1].begin_ns / SECOND + 5)
    lost = [poll.outcome for poll in queue.polls if poll.outcome is not PollOutcome.OK]
    assert len(lost) > 300
    finding = judged(tmp_path / "run")
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "too few of them have readings" in finding.sentence
