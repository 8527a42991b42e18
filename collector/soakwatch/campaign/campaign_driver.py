"""Runs a campaign: one run at a time on each testbed, in planned order, every step first in the ledger.

The driver holds nothing that its folder does not hold: killed at any moment, the next one goes on from the ledger and
the folders. A run that was begun is never begun again before it is known what became of it: as long as a process works
on it (its lock is held) the driver waits for it, then takes its verdict or notes why it has none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from soakwatch.campaign import ledger as kinds
from soakwatch.campaign.attempt import (
    ABORT,
    DONE,
    STOP,
    STOP_FILE,
    RunJob,
    RunResult,
    ask_to_stop,
    fence,
    perform,
    perform_again,
    read_result,
    worked_on,
)
from soakwatch.campaign.campaign_keys import Campaign, Command
from soakwatch.campaign.campaign_model import ENDED, LOST, RUNNING, CampaignError, CampaignState, Cell, CellRun
from soakwatch.campaign.campaign_state import ON_CLUSTER, History, as_it_stands, history_of, state_of, unfinished
from soakwatch.campaign.command_placeholders import RUN_FACTS, environment_of, filled
from soakwatch.campaign.folder import folder_names, run_folder
from soakwatch.campaign.ledger import Ledger
from soakwatch.campaign.planned_runs import block
from soakwatch.campaign.repeat import enough, precision
from soakwatch.core.errors import EXIT_BROKEN, RecordError, SoakwatchError
from soakwatch.core.labels import MAX_TEXT
from soakwatch.core.private_files import mode_in, share, sharing_group, write_private
from soakwatch.core.redaction import redaction_of
from soakwatch.core.run_command import run_command
from soakwatch.core.workers.executor import ClusterError, Executor
from soakwatch.core.workers.testbeds import testbed_resource
from soakwatch.core.yaml import Plain
from soakwatch.record import RECORD_NAME, RecordView
from soakwatch_rules.wording.quantities import percent

POLL_S = 0.2
MAX_BROKEN = 3
"""So often in a row a run may be broken off before the driver gives it up until the next ``resume``."""
RUNS = "runs"

Key = tuple[str, int]


class Listener(Protocol):
    """Who is told what happens."""

    def tell(self, text: str) -> None:
        """A line for people."""
        ...

    def show(self, state: CampaignState, history: History) -> None:
        """How the campaign stands, several times a second."""
        ...


@dataclass(slots=True)
class Stopping:
    """How often the user asked to stop: once is orderly, twice at once."""

    asked: int = 0


@dataclass(slots=True)
class _Active:
    """A run that goes on. ``future`` is None where a driver before this one began it."""

    run: CellRun
    bed: str
    future: Future[RunResult] | None
    asked: int = 0


@dataclass(slots=True)
class Driver:
    """Runs what is left of a campaign. Runs on this machine outlive this process."""

    campaign: Campaign
    folder: Path
    ledger: Ledger
    executor: Executor
    listener: Listener
    stopping: Stopping
    history: History = field(init=False)
    _names: Mapping[str, str] = field(init=False)
    _cells: Mapping[str, Cell] = field(init=False)
    _active: list[_Active] = field(default_factory=list)
    _rested_ns: dict[str, int] = field(default_factory=dict)
    _given_up: set[Key] = field(default_factory=set)
    _broken: dict[Key, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = folder_names(self.campaign.cells)
        self._cells = {cell.id: cell for cell in self.campaign.cells}
        self.history = History()

    @property
    def detached(self) -> bool:
        """Whether a run outlives this process; one on another machine ends with it."""
        return self.executor.same_machine

    def run(self) -> CampaignState:
        """Run until nothing is left that this driver can do, or it was asked to stop. Raises CampaignError where the
        command before all fails, OSError where the ledger cannot be written."""
        self._take_over()
        if self._active or self._left():
            self._all(self.campaign.before_all, "before_all")
        begun = len(self.ledger.entries)
        while self._step():
            self._wait()
        if len(self.ledger.entries) > begun:
            self._end_all()
        if self.stopping.asked:
            self.ledger.add(time.time_ns(), kinds.STOPPED)
        else:
            self.ledger.add(time.time_ns(), kinds.COMPLETE)
            self.history.complete = True
        return self._state()

    def _end_all(self) -> None:
        try:
            self._all(self.campaign.after_all, "after_all")
        except CampaignError as error:
            self.listener.tell(f"warning: {error}")

    # What an earlier driver left

    def _take_over(self) -> None:
        """Runs that were begun and have no end in the ledger: waited for, or their ends are written now."""
        open_runs = unfinished(self.ledger.entries)
        self.history = history_of(self.campaign, self.folder, self.ledger.entries)
        for attempts in self.history.attempts.values():
            for index, run in enumerate(attempts):
                key = (run.cell.id, run.repetition, run.attempt)
                if key not in open_runs:
                    continue
                assert run.folder is not None
                if run.state == RUNNING or not fence(run.folder):
                    self._active.append(_Active(run, run.testbed, None))
                    self.listener.tell(
                        f"{_title(run)} is still running since the campaign's process ended: waiting for it"
                    )
                    continue
                attempts[index] = replace(run, state=RUNNING)
                self._note_end(attempts[index], read_result(run.folder), as_it_stands(attempts[index]))
        for entry in self.ledger.entries:
            if entry.kind in {kinds.END, kinds.LOST}:
                self._rested_ns[entry.text("testbed")] = entry.time_ns

    # One step: start what can be started, take what has ended

    def _step(self) -> bool:
        """Whether there is something to wait for."""
        for active in list(self._active):
            self._look(active)
        if not self.stopping.asked:
            for bed in self._free():
                self._start(bed)
        self.listener.show(self._state(), self.history)
        return bool(self._active) or (not self.stopping.asked and self._left())

    def _left(self) -> bool:
        return next(self._todo(), None) is not None

    def _wait(self) -> None:
        futures = [active.future for active in self._active if active.future is not None]
        if futures:
            wait(futures, timeout=POLL_S, return_when=FIRST_COMPLETED)
        else:
            time.sleep(POLL_S)

    def _look(self, active: _Active) -> None:
        run, place = active.run, active.run.folder
        assert place is not None
        if self.stopping.asked > active.asked:
            active.asked = self.stopping.asked
            how = "is being aborted" if active.asked > 1 else "is being stopped and judged (Ctrl-C again aborts it)"
            self.listener.tell(f"{_title(run)} {how}")
            if self.detached:
                ask_to_stop(place, ABORT if active.asked > 1 else STOP)
            elif active.future is not None:
                self.executor.end(active.future, at_once=active.asked > 1)
        found: CellRun | None = None
        if active.future is None:
            if worked_on(place):
                return
            result = read_result(place)
        else:
            if not active.future.done():
                return
            failure = _failure(active.future)
            if isinstance(failure, ClusterError):
                raise failure  # no run can be made any longer; resume takes up what is open
            if failure is not None and not isinstance(failure, SoakwatchError | OSError):
                raise failure
            if failure is not None and worked_on(place):
                active.future = None
                return
            result = active.future.result() if failure is None else read_result(place)
            if not self.detached:
                trouble = _trouble_of(place, result) if failure is None else str(failure)
                found = replace(run, state=LOST, reason=trouble) if trouble else None
            if failure is not None and (result is None or result.stage != DONE):
                self.listener.tell(f"{_title(run)}: {failure}")
        self._active.remove(active)
        self._note_end(run, result, found)

    def _note_end(self, run: CellRun, result: RunResult | None, found: CellRun | None) -> None:
        """Write how a run ended into ledger and history, and decide what follows from it."""
        if (group := sharing_group(self.folder)) and run.folder is not None:
            with suppress(SoakwatchError):
                share(run.folder, group)
        stands = found or as_it_stands(run)
        key = (run.cell.id, run.repetition)
        attempts = self.history.attempts[key]
        now_ns = time.time_ns()
        done = result is not None and result.stage == DONE
        fault = result.fault if result is not None and done else ""
        stopped = result is not None and result.stopped
        notes = list(result.notes) if result is not None else []
        over = replace(stands, state=ENDED if stands.state == ENDED else LOST, end_ns=stands.end_ns or now_ns)
        attempts[-1] = over
        if result is not None and result.exit_code == EXIT_BROKEN:
            self.history.monitor_failed.add(key)
        details: dict[str, Plain] = {"fault": fault} if fault else {}
        details |= {"stopped": True} if stopped else {}
        details |= {"notes": [*notes]} if notes else {}
        self.ledger.add(
            now_ns,
            kinds.END if over.state == ENDED else kinds.LOST,
            cell=run.cell.id,
            repetition=run.repetition,
            attempt=run.attempt,
            testbed=run.testbed,
            verdict=over.verdict,
            exit_code=result.exit_code if result is not None and done else None,
            reason=over.reason,
            begin_ns=over.begin_ns,
            end_ns=over.end_ns,
            **details,
        )
        self._rested_ns[run.testbed] = now_ns
        if over.state == ENDED:
            self.history.lengths_s.setdefault(run.cell.id, []).append(_seconds(over))
            self._broken.pop(key, None)
            self.listener.tell(f"{_title(run)}: {(over.verdict or '').upper()}: {over.reason}")
        elif stopped:
            self.listener.tell(f"{_title(run)} was stopped; resume runs it again")
        else:
            self.listener.tell(f"{_title(run)} has no verdict: {over.reason}")
        for note in notes:
            self.listener.tell(f"{_title(run)}: warning: {note}")
        if fault:
            self.history.faults[run.cell.id, run.repetition, run.attempt] = fault
            again = len(attempts) <= self.campaign.retry_inconclusive
            self.listener.tell(
                f"{_title(run)}: not the device's fault{', it will be run again' if again else ''}: {fault}"
            )
            if over.state != ENDED and not again:
                self._given_up.add(key)
        elif over.state != ENDED and not stopped:
            broken = result is None or not done or (result.exit_code is not None and result.exit_code < 0)
            self._broken[key] = self._broken.get(key, 0) + 1
            if (not broken and found is None) or self._broken[key] >= MAX_BROKEN:
                self._given_up.add(key)  # it would fail again in the same way: the next resume tries it anew
        if over.state == ENDED:
            self._decide(run)

    def _decide(self, run: CellRun) -> None:
        """Whether the cell of a run that ended was repeated often enough."""
        repeat, cell = self.campaign.repeat, run.cell.id
        if repeat.half_width is None or cell in self.history.enough:
            return
        done = [n for n in range(1, repeat.at_most + 1) if self._is_done((cell, n))]
        if done != list(range(1, len(done) + 1)) or len(done) < repeat.at_least:
            return
        last = [self.history.attempts[cell, n][-1] for n in done]
        known = precision(repeat, [one.folder for one in last if one.folder is not None])
        width = known.half_width
        if enough(repeat, len(done), width):
            self.ledger.add(time.time_ns(), kinds.ENOUGH, cell=cell, repetition=len(done), half_width=width)
            self.history.enough[cell] = len(done)
        shown = "not known yet" if width is None else f"±{percent(width)}"
        self.listener.tell(f"{cell}: the median of {repeat.of} is {shown} after {len(done)} runs")
        for sentence in known.without:
            self.listener.tell(f"{cell}: warning: a run without the figure does not count: {sentence}")

    # What comes next

    def _todo(self) -> Iterator[tuple[Cell, int, int]]:
        """Cell, repetition and attempt of what can be begun now, in planned order."""
        repeat = self.campaign.repeat
        busy = {(active.run.cell.id, active.run.repetition) for active in self._active}
        for repetition in range(1, repeat.at_most + 1):
            for cell in block(self.campaign.cells, self.campaign.seed, repetition):
                key = (cell.id, repetition)
                if key in busy or key in self._given_up or self._is_done(key):
                    continue
                if repetition > repeat.at_least and not self._wanted(cell.id, repetition):
                    continue
                yield cell, repetition, len(self.history.attempts.get(key, ())) + 1

    def _wanted(self, cell: str, repetition: int) -> bool:
        """Whether a repetition beyond the least number is needed: those before it are done and were not enough."""
        last = self.history.enough.get(cell)
        if last is not None:
            return False
        return all(self._is_done((cell, earlier)) for earlier in range(1, repetition))

    def _is_done(self, key: Key) -> bool:
        attempts = self.history.attempts.get(key)
        if not attempts or attempts[-1].state != ENDED:
            return False
        fault = (key[0], key[1], attempts[-1].attempt) in self.history.faults
        return not fault or len(attempts) > self.campaign.retry_inconclusive

    def _free(self) -> Iterator[str]:
        now_ns = time.time_ns()
        for bed in self._beds():
            taken = sum(active.bed == bed for active in self._active)
            room = 1 if bed or self.detached else max(1, self.executor.slots)
            rested_ns = self._rested_ns.get(bed, 0) + round(self.campaign.rest_s * 1e9)
            if taken < room and now_ns >= rested_ns:
                yield bed

    def _beds(self) -> Sequence[str]:
        return [bed.name for bed in self.campaign.testbeds]

    def _start(self, bed: str) -> None:
        for cell, repetition, attempt in self._todo():
            if self.campaign.pinned.get(cell.id, bed) != bed:
                continue
            earlier = self.history.attempts.get((cell.id, repetition), [])
            if earlier and self._can_resume(earlier[-1], bed):
                self._resume(earlier[-1], bed)
            else:
                self._begin(cell, repetition, attempt, bed)
            return

    def _begin(self, cell: Cell, repetition: int, attempt: int, bed: str) -> None:
        name = run_folder(self._names[cell.id], repetition, attempt)
        place = self.folder / RUNS / name
        where = "" if self.detached else ON_CLUSTER
        run = CellRun(cell, repetition, attempt, RUNNING, None, where, place, bed, time.time_ns())
        self._record(kinds.BEGIN, run)
        self.history.attempts.setdefault((cell.id, repetition), []).append(run)
        job = self._job(run)
        future = self.executor.submit_into(perform, job, place, resource=testbed_resource(bed), label=_title(run))
        self._active.append(_Active(run, bed, future))
        self.listener.tell(f"{_title(run)} begins" + (f" on {bed}" if bed else ""))

    def _can_resume(self, run: CellRun, bed: str) -> bool:
        if self.campaign.interrupted != "resume" or not self.detached or run.testbed != bed or run.state != LOST:
            return False
        return run.folder is not None and run.verdict is None and (run.folder / RECORD_NAME).is_file()

    def _resume(self, lost: CellRun, bed: str) -> None:
        run = replace(lost, state=RUNNING, reason="", end_ns=None)
        assert run.folder is not None
        self._record(kinds.RESUME, run)
        self.history.attempts[run.cell.id, run.repetition][-1] = run
        (run.folder / STOP_FILE).unlink(missing_ok=True)  # before it is submitted: a new request is not lost
        job = replace(self._job(run), resumed=True)
        future = self.executor.submit(
            perform_again, (job, str(run.folder)), resource=testbed_resource(bed), label=_title(run)
        )
        self._active.append(_Active(run, bed, future))
        self.listener.tell(f"{_title(run)} is resumed" + (f" on {bed}" if bed else ""))

    def _record(self, kind: str, run: CellRun) -> None:
        assert run.folder is not None
        away: dict[str, Plain] = {} if self.detached else {"on": ON_CLUSTER}
        self.ledger.add(
            time.time_ns(),
            kind,
            cell=run.cell.id,
            repetition=run.repetition,
            attempt=run.attempt,
            testbed=run.testbed,
            folder=f"{RUNS}/{run.folder.name}",
            **away,
        )

    def _job(self, run: CellRun) -> RunJob:
        campaign, cell, bed = self.campaign, run.cell, run.testbed
        assert run.folder is not None
        labels = {
            **campaign.labels,
            **cell.labels,
            **cell.values,
            "campaign": campaign.name,
            "cell": cell.id if len(cell.id) <= MAX_TEXT else self._names[cell.id],
            "repetition": str(run.repetition),
            **({"testbed": bed} if bed else {}),
        }
        facts = {**dict.fromkeys(RUN_FACTS, ""), **labels, "attempt": str(run.attempt)}
        return RunJob(
            plan=campaign.plans[cell.id, bed],
            labels=labels,
            testbed=bed,
            planned_s=campaign.seconds[cell.id],
            holder=f"campaign {campaign.name}, {_title(run)}",
            before=campaign.before,
            after=campaign.after,
            facts=facts,
            folder=_working_folder(self.ledger),
            reference=_text(campaign.reference),
            web=campaign.web,
            group=sharing_group(self.folder) if self.detached else "",  # a worker need not know the group
            detached=self.detached,
        )

    def _all(self, command: Command | None, name: str) -> None:
        """Run a command of the whole campaign; its output is kept in the folder. Raises CampaignError if it fails."""
        if command is None:
            return
        self.listener.tell(f"{name}: {' '.join(command.words)}")
        facts = {"campaign": self.campaign.name, **self.campaign.labels}
        words = filled(command.words, facts)
        environment = environment_of(facts)
        redaction = redaction_of(next(iter(self.campaign.plans.values())))

        async def run() -> tuple[str, bytes]:
            done = await run_command(words, environment, command.timeout_s, asyncio.Event(), redaction)
            return done.failure, done.output

        failure, output = asyncio.run(run())
        write_private(self.folder / f"{name}.log", output, mode_in(self.folder))
        if failure:
            raise CampaignError(f"{name} ({words[0]}): {failure}")

    def _state(self) -> CampaignState:
        return state_of(self.campaign, self.folder, self.history)


def _trouble_of(place: Path, result: RunResult | None) -> str:
    """What is wrong with a record that came from another machine, "" if it says what the run said."""
    if result is None or result.verdict is None:
        return ""
    try:
        with RecordView.open(place) as view:
            verdict = view.meta("verdict")
    except RecordError as error:
        return str(error)
    return "" if verdict == result.verdict else f"its record came with the verdict {verdict}, not {result.verdict}"


def _failure(future: Future[RunResult]) -> BaseException | None:
    """Why a job has no result; None if it has one."""
    return CampaignError("it was not begun: the campaign was stopped") if future.cancelled() else future.exception()


def _working_folder(ledger: Ledger) -> str:
    """The folder in which the campaign was begun: commands of its plans may be relative to it."""
    return next((entry.text("cwd") for entry in ledger.entries if entry.kind == kinds.CAMPAIGN), "")


def _text(file: Path | None) -> str:
    try:
        return "" if file is None else file.read_text(encoding="utf-8")
    except OSError as error:
        raise CampaignError(f"{file}: cannot be read: {error.strerror}") from None


def _title(run: CellRun) -> str:
    attempt = f", attempt {run.attempt}" if run.attempt > 1 else ""
    return f"{run.cell.id} run {run.repetition}{attempt}"


def _seconds(run: CellRun) -> float:
    return 0.0 if run.begin_ns is None or run.end_ns is None else (run.end_ns - run.begin_ns) * 1e-9
