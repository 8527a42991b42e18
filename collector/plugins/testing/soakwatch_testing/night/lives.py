"""All lives of the monitor in one night, in one process and one virtual time: begun, killed, resumed, ended.

A kill is a copy: at its moment (between two turns of the event loop, or between two statements of the record) the run's
files are copied as they are, perhaps with only a part of the last write. What the dying monitor still does affects
files that nobody reads; the next life opens the copy.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from soakwatch.core.clock import Clock, RunClock
from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.redaction import Redaction
from soakwatch.core.run_command import MAX_OUTPUT, CommandResult
from soakwatch.engine.baseline_freeze import compute_baseline
from soakwatch.engine.context import RunContext
from soakwatch.engine.finish import Ending
from soakwatch.engine.hooks.setup import hooks_of
from soakwatch.engine.machine import Machine
from soakwatch.engine.notify.setup import notifying_of
from soakwatch.engine.promises import Promises, is_complete
from soakwatch.engine.self_monitor import ClockSteps, Outcomes, own_readings
from soakwatch.engine.soak import Soak
from soakwatch.engine.start import begin, resume
from soakwatch.judge.live.answers import answer, evaluator_of
from soakwatch.judge.live.evaluator import LiveEvaluator
from soakwatch.judge.record_verdict import judge_record
from soakwatch.judge.verdict import Verdict
from soakwatch.plan import Plan, plan_from_text
from soakwatch.record import Record, RecordView
from soakwatch.record.findings import identity_of
from soakwatch.record.queue import Committer, Notes
from soakwatch.report.files import write_reports
from soakwatch.report.json import render_json
from soakwatch.report.rendering import Rendering
from soakwatch.sources.abc import Poller
from soakwatch.transfer.sinks.supervisor import SinkProcesses
from soakwatch_model.finding import Outcome
from soakwatch_model.sample import Answer, Sample
from soakwatch_testing.night.faults import GENERATOR, Fault, Kind, Night
from soakwatch_testing.night.models import WORLD, World
from soakwatch_testing.virtual import VirtualTime

START_NS = 1_800_000_000 * 10**9
NAME = "night"
_PLUGIN = "soakwatch_night-0.dist-info"
_MOST_LIVES = 100


def plan_text(night: Night) -> str:
    """The plan of a night, as a user would write it."""
    base, recovery = round(night.seconds * 0.1), round(night.seconds * 0.1)
    soak = round(night.seconds) - base - recovery
    phases, stop = f"{{baseline: {base}s}}, {{soak: {soak}s}}, {{recovery: {recovery}s}}", ""
    if night.decided:
        phases, stop = (
            f"{{soak: {round(night.seconds)}s}}",
            f"stop_when: {{decided: {{not_before: {round(night.seconds / 5)}s}}}}\n",
        )
    model = f"sources: [{{model: {{interval: {night.interval_s:g}s}}}}]"
    targets = "".join(f"  {name}: {{role: dut, {model}}}\n" for name in night.devices)
    return (
        f"name: {NAME}\n"
        f"phases: [{phases}]\n"
        f"targets:\n{targets}  {GENERATOR}: {{role: generator, {model}}}\n"
        "watch: {processes: [fw]}\n"
        "hooks:\n"
        '  - {on: [start, end], run: ["true"]}\n'
        '  - {on: fail, run: ["true"], limit: 5 per 10m}\n'
        f"{stop}"
        "web: false\n"
    )


class Killed(BaseException):
    """The monitor is dead: its process does nothing more."""


@dataclass(slots=True)
class NightResult:
    """The result of a night. ``broken`` are violations found while it went on."""

    folder: Path
    verdict: Verdict
    record_digest: str
    verdict_digest: str
    lives: int
    deeds: Counter[str]
    saved: list[Mapping[int, frozenset[int]]]  # at each kill: the due times of the committed polls
    broken: list[str]
    judge_bytes: list[tuple[float, int]]  # second, bytes of readings in the live judge
    looks: int


class Lives:
    """One night: ``live`` runs all lives of its monitor."""

    def __init__(self, night: Night, place: Path, *, contradictions: int = 2, reports: bool = True) -> None:
        self._night, self._place, self._reports = night, place, reports
        self.time = VirtualTime(START_NS, self._turned, self._raised)
        self._wall_ns = 0  # total steps of the wall clock
        self._world = World(night, START_NS)
        self._world.now = self.time.seconds
        self._monitor_faults = sorted(night.of(Kind.CLOCK, Kind.DISK))
        self._kills = sorted(night.of(Kind.KILL))
        self._armed: Fault | None = None
        self._left = 0  # steps until the kill
        self._dead = self._ending = False
        self._record: Record | None = None
        self._full: Fault | None = None
        self._wal: int | None = None  # bytes of the WAL before the write in which the monitor dies
        self._life = 0
        self._deeds: Counter[str] = Counter()
        self._saved: list[Mapping[int, frozenset[int]]] = []
        self._broken: list[str] = []
        self._bytes: list[tuple[float, int]] = []
        self._looks = 0
        self._found: frozenset[str] = frozenset()  # identities of the live judge's findings at its last look
        # As if a look takes so long that the judge, which rests ten times as long, looks 60 times a night.
        self._look_s = max(0.0, night.seconds / 60 - 60) / 10
        self._beat_s = 1.0 if night.hours <= 2 else 5.0 if night.hours <= 12 else 10.0
        looks = night.seconds / max(60, 10 * self._look_s)
        self._checked = {round(n * looks / (contradictions + 1)) for n in range(1, contradictions + 1)}

    @property
    def folder(self) -> Path:
        """The run's folder in this life."""
        return self._place / f"life-{self._life}" / NAME

    def live(self) -> NightResult:
        """Begin the run, resume it after each kill, and end it."""
        with _plugged_in(self._place), _quiet(), _in(self._world):
            plan = plan_from_text(plan_text(self._night), "night.yaml")
            while True:
                if self._life > _MOST_LIVES:
                    raise RecordError("the night does not end: each resumed monitor dies again")
                try:
                    verdict = self._one_life(plan)
                except Killed:
                    verdict = None
                if verdict is not None and not self._dead:
                    break
                self._next_life()
        assert verdict.checked is not None
        assert verdict.checked.seal is not None
        text = render_json(verdict)
        return NightResult(
            self.folder,
            verdict,
            verdict.checked.seal.digest,
            hashlib.sha256(text.encode()).hexdigest(),
            self._life + 1,
            self._deeds,
            self._saved,
            self._broken,
            self._bytes,
            self._looks,
        )

    # --- one life --------------------------------------------------------------------------------------------------

    def _one_life(self, plan: Plan) -> Verdict | None:
        """From begin or resume to the verdict; None if only the disk was full, or all was done before."""
        clock: RunClock = _Steady(self.time, self._wall_now)
        if (self.folder / "record.sqlite").exists():
            with RecordView.open(self.folder) as view:
                if is_complete(view.metas()):
                    return judge_record(view)
            context, record, clock = resume(
                self.folder, stop_on_fail=False, steady=lambda *when: _Steady(self.time, self._wall_now, *when)
            )
        else:
            context, record = begin(plan, self.folder, clock, ["soakwatch", "run", "night.yaml"], stop_on_fail=False)
        self._record = record
        self._troubled()
        try:
            return self._to_the_end(context, record, clock)
        except RecordError as error:
            if self._full is None and not self._dead:
                self._broken.append(f"the monitor broke though its disk was well: {error}")
            return None
        finally:
            self._record = None
            with suppress(RecordError):
                record.troubled()
            record.close()

    def _to_the_end(self, context: RunContext, record: Record, clock: Clock) -> Verdict:
        promises = Promises.recorded(context.folder, record)
        machine = Machine(
            own=self._own,
            judge=self._judge_of,
            baseline=baseline_here,
            command=self._command,
            stopwatch=self._stopwatch,
            threaded=False,
            beat_s=self._beat_s,
        )
        if context.polled_ns is not None:
            notes = Notes(record, Committer(record, clock.now_ns, threaded=False))
            hooks = hooks_of(
                context.plan, context.folder, notes, clock.now_ns, context.live_findings, promises, self._command
            )
            notifying = notifying_of(
                context.plan, context.folder, context.start_ns, clock.now_ns, resumed=True, promises=promises
            )
            end_ns = context.polled_ns
        else:
            soak = Soak(context, record, clock, machine=machine, promises=promises)
            end_ns = self.time.run(soak.watch())
            if soak.trouble is not None:
                raise RecordError(soak.trouble)
            hooks, notifying = soak.hooks, soak.notifying
        sinks = SinkProcesses({}, context.folder, record, clock.now_ns, _unheard)
        ending = Ending(
            record,
            promises,
            hooks,
            notifying,
            sinks,
            _unheard,
            _unheard,
            lambda _view, _verdict: None,
            run=self.time.run,
            time_ns=clock.wall_ns,
            write=write_reports if self._reports else _no_reports,
        )
        return ending.make(end_ns)

    def _stopwatch(self) -> float:
        return self.time.seconds() + self._looks * self._look_s

    def _wall_now(self) -> int:
        return self.time.now_ns() + self._wall_ns

    async def _own(
        self, clock: Clock, folder: Path, outcomes: Outcomes, stack: AsyncExitStack, *, tells: bool
    ) -> Poller:
        del folder, stack, tells
        return OwnModel(clock, outcomes, self.time)

    def _judge_of(self, folder: Path) -> _JudgeHere:
        return _JudgeHere(folder, self._looked)

    async def _command(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        timeout_s: float,
        over: asyncio.Event,
        redaction: Redaction,
        max_output: int = MAX_OUTPUT,
    ) -> CommandResult:
        """A user's command: count it when it starts, take a moment, and print a word."""
        del words, timeout_s, over, redaction, max_output
        if not self._dead:
            self._deeds[environment.get("SOAKWATCH_ON", "") or environment.get("SOAKWATCH_OUTCOME", "?")] += 1
        await asyncio.sleep(0.2)
        return CommandResult("", b"done\n", 0.2)

    # --- what befalls the monitor ----------------------------------------------------------------------------------

    def _turned(self) -> None:
        """At a turn of the event loop: set clocks, fill disks, arm and trigger kills."""
        second = self.time.seconds()
        if self._monitor_faults and self._monitor_faults[0].begin_s <= second:
            self._befalls(self._monitor_faults.pop(0))
        if self._full is not None and second >= self._full.end_s:
            self._full = None
            self._troubled()
        self._step(second)
        if self._dead and not self._ending:
            self._ending = True  # do not interrupt the dying loop's clean-up again
            raise Killed

    def _raised(self, error: BaseException) -> None:
        """An unexpected exception of one of the monitor's jobs."""
        if not self._dead:
            self._broken.append(f"a job of the monitor raised {type(error).__name__}: {error}")

    def _befalls(self, fault: Fault) -> None:
        if fault.kind is Kind.CLOCK:
            self._wall_ns += round(fault.size * 1e9)
        elif fault.kind is Kind.DISK:
            self._full = fault
            self._troubled()

    def _troubled(self) -> None:
        """Apply the disk's current state to the record."""
        if self._record is None or self._dead:
            return
        with suppress(RecordError):
            self._record.troubled(
                self._heard if self._kills or self._armed else None, None if self._full is None else 0
            )

    def _heard(self, statement: str) -> None:
        """The record is about to execute a statement."""
        self._step(self.time.seconds())
        if self._armed is not None and self._armed.torn < 1 and self._left <= 0 and statement.startswith("COMMIT"):
            self._wal = _size(self.folder)  # only a part of this write is there when the monitor dies

    def _step(self, second: float) -> None:
        if self._dead:
            return
        if self._armed is None and self._kills and self._kills[0].begin_s <= second:
            self._armed = self._kills.pop(0)
            self._left = self._armed.steps
        if self._armed is not None:
            if self._left <= 0 and (self._armed.torn >= 1 or self._wal is not None):
                self._kill(self._armed)
            self._left -= 1

    def _kill(self, fault: Fault) -> None:
        """Keep the files as they are for the next life."""
        self._dead = True
        if not (self.folder / "record.sqlite").exists():
            return
        after = self._place / f"life-{self._life + 1}" / NAME
        shutil.copytree(self.folder, after, ignore=shutil.ignore_patterns("*-shm", "*.lock", "*.part"))
        log = after / "record.sqlite-wal"
        if self._wal is not None and log.exists() and (size := log.stat().st_size) > self._wal:
            with log.open("r+b") as file:
                file.truncate(self._wal + int(fault.torn * (size - self._wal)))

    def _next_life(self) -> None:
        """Let time pass, then resume the run."""
        killed = self._dead
        self.time.stall(max(0.001, self._armed.size) if self._armed is not None else 30.0)
        second = self.time.seconds()
        while self._monitor_faults and self._monitor_faults[0].begin_s <= second:
            self._befalls(self._monitor_faults.pop(0))
        if self._full is not None and second >= self._full.end_s:
            self._full = None
        if killed:
            old = self._life
            self._life += 1
            shutil.rmtree(self._place / f"life-{old}", ignore_errors=True)
        self._armed, self._wal, self._dead, self._ending = None, None, False, False
        self._found = frozenset()
        if (self.folder / "record.sqlite").exists():
            with RecordView.open(self.folder) as view:
                self._saved.append({s.id: frozenset(int(t) for t in view.answered_ns(s.id)) for s in view.sources()})
        else:
            self.folder.mkdir(parents=True, exist_ok=True)

    # --- what the live judge says ----------------------------------------------------------------------------------

    def _looked(self, evaluator: LiveEvaluator, folder: Path) -> None:
        """After each look of the live judge: check how much it holds, sometimes compare it with a full judging, and
        check that the record has the findings of the previous look."""
        self._looks += 1
        before, self._found = self._found, frozenset(map(identity_of, evaluator.findings))
        if self._looks % 30 == 0:
            self._bytes.append((self.time.seconds(), evaluator.nbytes))
        if self._dead or self._looks not in self._checked:
            return
        with RecordView.open(folder) as view:
            whole = {f.name: f for f in judge_record(view).findings}
            recorded = frozenset(map(identity_of, view.findings(live=True)))
        if not self._night.of(Kind.DISK) and (missing := before - recorded):
            self._broken.append(
                f"at {self.time.seconds():.0f} s the record lacks what the live judge found at its look before:"
                f" {min(missing)}"
            )
        for finding in evaluator.findings:
            if finding.outcome is not Outcome.FAIL:
                continue
            other = whole.get(finding.name)
            if other is None or other.outcome is Outcome.PASS:
                said = "nothing" if other is None else other.outcome.value
                self._broken.append(
                    f"at {self.time.seconds():.0f} s the live judge fails {finding.rule} of {finding.target}"
                    f" {finding.metric} {finding.object}, and the whole judge says {said} of the same data:"
                    f" {finding.sentence}"
                )


class _JudgeHere:
    """The live judge in this process, with simulated CPU time."""

    def __init__(self, folder: Path, looked: Callable[[LiveEvaluator, Path], None]) -> None:
        self._folder, self._looked = folder, looked
        self._evaluator: LiveEvaluator | None = None

    async def look(self) -> list[str] | str:
        """See ``AsksJudge``."""
        fresh = self._evaluator is None
        try:
            if self._evaluator is None:
                # Each reading of the stopwatch costs 2 ms, so that judging takes the same time on every machine.
                ticks = count()
                self._evaluator = evaluator_of(self._folder, lambda: next(ticks) * 0.002)
            lines = answer(self._evaluator)
        except SoakwatchError as error:
            return str(error)
        self._looked(self._evaluator, self._folder)
        return ["new", *lines] if fresh else lines

    async def close(self) -> None:
        """See ``AsksJudge``."""
        self._evaluator = None


class OwnModel:
    """The monitor's self-monitoring: what depends on the machine is simulated, its counts are real."""

    def __init__(self, clock: Clock, outcomes: Outcomes, time: VirtualTime) -> None:
        self._clock, self._outcomes, self._time = clock, outcomes, time
        self._steps = ClockSteps()

    async def poll(self, now_ns: int) -> Answer:
        """One poll."""
        offset_s = (self._clock.wall_ns() - self._clock.now_ns()) * 1e-9
        readings = [
            ("monitor.cpu.time", "", round(self._time.seconds() * 0.01, 3)),
            ("monitor.memory.usage", "", 80 * 2.0**20),
            ("monitor.loop.lag", "", 0.001),
            *own_readings(self._outcomes, offset_s),
        ]
        samples = tuple(Sample(metric, name, value, now_ns) for metric, name, value in readings)
        return Answer(samples, self._steps.events(now_ns, offset_s), ())


class _Steady:
    """The steady clock of one life: starts at the wall clock, but not before what is recorded."""

    def __init__(
        self, time: VirtualTime, wall: Callable[[], int], not_before_ns: int = 0, offset_ns: int = 0, mark: str = ""
    ) -> None:
        self._time, self._wall = time, wall
        now_ns = int(mark) + time.now_ns() if mark else wall() - offset_ns
        self._ahead_ns = max(now_ns, not_before_ns) - time.now_ns()

    @property
    def mark(self) -> str:
        """How far it is ahead of the night's time."""
        return str(self._ahead_ns)

    def now_ns(self) -> int:
        """Steady time."""
        return self._time.now_ns() + self._ahead_ns

    def wall_ns(self) -> int:
        """The wall clock."""
        return self._wall()


async def baseline_here(folder: Path) -> str:
    """The baseline to store, computed in this process; "" if there is none."""
    return compute_baseline(folder) or ""


@contextmanager
def _plugged_in(place: Path) -> Iterator[None]:
    """Make the source ``model`` available to plans, like that of a plug-in."""
    folder = place / "plugin"
    (folder / _PLUGIN).mkdir(parents=True, exist_ok=True)
    (folder / _PLUGIN / "METADATA").write_text("Metadata-Version: 2.1\nName: soakwatch-night\nVersion: 0\n")
    (folder / _PLUGIN / "entry_points.txt").write_text("[soakwatch.pollers]\nmodel = soakwatch_testing.night.models\n")
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@contextmanager
def _in(world: World) -> Iterator[None]:
    token = WORLD.set(world)
    try:
        yield
    finally:
        WORLD.reset(token)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the monitor's log."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def _size(folder: Path) -> int:
    try:
        return (folder / "record.sqlite-wal").stat().st_size
    except FileNotFoundError:
        return 0


def _no_reports(_rendering: Rendering, _folder: Path) -> tuple[str, ...]:
    """Write no reports, for one of many nights."""
    return ()


def _unheard(_: str) -> None:
    """Discard terminal output."""
