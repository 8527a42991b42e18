"""One run of a campaign, wherever it is made: holds its testbed, runs the command before it, the run, the one after it.

``RunJob`` says everything and can be pickled; ``perform`` does it in a folder and returns a ``RunResult``. On this
machine the work is done by a process of its own session (``python -m soakwatch.campaign.attempt FOLDER``), which
outlives the driver: a campaign whose driver was killed loses no run, and the next driver finds it running, or ended,
by the files of its folder:

``attempt.lock``  locked as long as somebody works on it, the run's own process included
``attempt.json``  what is being done, and then the result
``stop``          asks it to end: ``stop`` with a verdict on what there is, ``abort`` at once
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from soakwatch.campaign.campaign_keys import Command
from soakwatch.campaign.command_placeholders import environment_of, filled
from soakwatch.campaign.locks import held, locked, testbed_lock
from soakwatch.campaign.run_setup import RunSetup
from soakwatch.core.errors import EXIT_BROKEN, EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS, RecordError, SoakwatchError
from soakwatch.core.private_files import make_private_folder, mode_in, open_private, write_private
from soakwatch.core.redaction import redaction_of
from soakwatch.core.run_command import run_command
from soakwatch.core.units import show_seconds
from soakwatch.core.workers.executor import still_wanted
from soakwatch.core.workers.leash import leashed
from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_model.roles import GENERATOR, MONITOR

if TYPE_CHECKING:  # a process of each run imports this
    from soakwatch.record import RecordView

LOCK_FILE, STATUS_FILE, STOP_FILE = "attempt.lock", "attempt.json", "stop"
JOB_FILE, PLAN_FILE, REFERENCE_FILE, LOG_FILE = "attempt.job.json", "plan.yaml", "plan.reference.yaml", "run.log"
SETUP_FILE = "plan.setup.json"
STOP, ABORT = "stop", "abort"
WAITING, BEFORE, RUNNING, AFTER, DONE = "waiting for the testbed", "before", "run", "after", "done"

_POLL_S = 0.1
_GRACE_S = 20.0  # after which a run that does not end at a request is interrupted as by Ctrl-C
_LATE_S = 900.0  # how much longer than planned a run with its judging may take
_VERDICT_CODES = {EXIT_PASS, EXIT_FAIL, EXIT_INCONCLUSIVE}
_LAST_WORD = 300


@dataclass(frozen=True, slots=True)
class RunJob:
    """A run to be made. ``facts`` are what words of commands may name; ``reference`` is the text of a calibration.

    ``detached``: it goes on when whoever submitted it is killed. ``resumed``: the folder holds a run that was broken
    off, which goes on.
    """

    plan: str
    labels: Mapping[str, str]
    testbed: str
    planned_s: float
    holder: str
    before: Command | None = None
    after: Command | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    reference: str = ""
    web: bool = False
    group: str = ""
    detached: bool = True
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    """What became of a run. ``stage`` is "done", or how far it came; ``verdict`` is None without one, ``exit_code`` is
    that of the run, None where it did not begin or end.

    ``fault`` says why it was inconclusive for the monitor's or the generator's fault, "" otherwise; ``stopped`` that it
    was asked to end; ``notes`` what else is to be known. Times are UTC ns, with the commands before and after.
    """

    stage: str
    begin_ns: int
    end_ns: int = 0
    verdict: str | None = None
    exit_code: int | None = None
    reason: str = ""
    fault: str = ""
    stopped: bool = False
    notes: tuple[str, ...] = ()


def perform(job: RunJob, place: Path) -> RunResult:
    """Make the run in ``place``, which need not exist; for an executor. Raises SoakwatchError if nobody waits for it
    any more, or if the process that made it was killed."""
    if not job.detached:
        return carry_out(job, place, still_wanted)
    make_private_folder(place)
    _write(place / JOB_FILE, json.dumps(asdict(job), default=Command.model_dump))
    with open_private(place / "attempt.log", append=True) as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "soakwatch.campaign.attempt", str(place)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    while process.poll() is None:
        if not still_wanted():
            raise SoakwatchError("the campaign's process ended; the run goes on")
        time.sleep(_POLL_S)
    result = read_result(place)
    if result is None or result.stage != DONE:
        raise SoakwatchError(f"the process of this run ended with code {process.returncode}: see {place}/attempt.log")
    return result


def perform_again(argument: tuple[RunJob, str]) -> RunResult:
    """``perform`` in a folder in which the run was broken off before; what asked it to stop then is gone already."""
    job, place = argument
    return perform(job, Path(place))


def read_result(place: Path) -> RunResult | None:
    """How far a run in a folder is, or its result; None where nothing was begun."""
    try:
        data = json.loads((place / STATUS_FILE).read_text(encoding="utf-8"))
        known = {item.name for item in fields(RunResult)}
        data = {name: value for name, value in data.items() if name in known}
        return RunResult(**{**data, "notes": tuple(data.get("notes", ()))})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def worked_on(place: Path) -> bool:
    """Whether a process of this machine works on the run in a folder."""
    return held(place / LOCK_FILE)


def ask_to_stop(place: Path, how: str = STOP) -> None:
    """Ask the run in a folder to end: ``STOP`` with a verdict, ``ABORT`` at once; also one that only just begins, with
    no folder yet."""
    with suppress(OSError):
        make_private_folder(place)
        _write(place / STOP_FILE, how)


def fence(place: Path) -> bool:
    """Make sure that nobody works on the run in a folder from now on, not even a process that is only just starting;
    False if one works on it already."""
    make_private_folder(place)
    with locked(place / LOCK_FILE, "the driver of the campaign") as own:
        if own is None:
            return False
        ask_to_stop(place, ABORT)
        return True


def carry_out(job: RunJob, place: Path, wanted: Callable[[], bool]) -> RunResult:
    """Make the run in this process's charge, and end it when it is not wanted any more. Raises SoakwatchError if
    another process works in this folder."""
    make_private_folder(place)
    with locked(place / LOCK_FILE, job.holder) as own:
        if own is None:
            raise SoakwatchError(f"another process works on the run in {place}")
        return _Attempt(job, place, wanted, own).done()


class _Attempt:
    def __init__(self, job: RunJob, place: Path, wanted: Callable[[], bool], lock: int) -> None:
        self._job, self._place, self._wanted, self._lock = job, place, wanted, lock
        before = read_result(place) if job.resumed else None
        self._result = RunResult(WAITING, time.time_ns() if before is None else before.begin_ns)

    def done(self) -> RunResult:
        job, place = self._job, self._place
        self._note()
        for name, text in ((PLAN_FILE, job.plan), (REFERENCE_FILE, job.reference), (SETUP_FILE, _setup(job))):
            if text and not job.resumed:
                _write(place / name, text)
        with testbed_lock(job.testbed, job.holder, self._asked) as bed:
            if bed is None:
                return self._over("stopped before it began", stopped=True)
            if self._asked():
                return self._over("stopped before it began", stopped=True)
            if not job.resumed:
                self._result = replace(self._result, begin_ns=time.time_ns())
            failure = "" if job.resumed else self._command(job.before, BEFORE)
            if failure:
                stopped = self._asked() != ""
                return self._over(failure, stopped=stopped)
            self._stage(RUNNING)
            self._run(bed)
            failure = self._command(job.after, AFTER)
            if failure:
                self._result = replace(self._result, notes=(*self._result.notes, failure))
        self._result = replace(self._result, stage=DONE, end_ns=time.time_ns())
        self._note()
        return self._result

    def _asked(self) -> str:
        """How it was asked to end, "" if it was not."""
        if not self._wanted():
            return STOP
        try:
            return (self._place / STOP_FILE).read_text(encoding="utf-8").strip() or STOP
        except OSError:
            return ""

    def _over(self, reason: str, *, stopped: bool) -> RunResult:
        self._result = replace(
            self._result, stage=DONE, end_ns=time.time_ns(), reason=reason, stopped=stopped or self._result.stopped
        )
        self._note()
        return self._result

    def _stage(self, stage: str) -> None:
        self._result = replace(self._result, stage=stage)
        self._note()

    def _note(self) -> None:
        _write(self._place / STATUS_FILE, json.dumps(asdict(self._result), ensure_ascii=False))

    def _command(self, command: Command | None, stage: str) -> str:
        """Run a command; its output is kept. Why it failed, "" if it did not."""
        if command is None:
            return ""
        self._stage(stage)
        facts = {**self._job.facts, "folder": str(self._place)}
        words = filled(command.words, facts)
        environment = environment_of(facts)
        if self._result.verdict is not None:
            environment["SOAKWATCH_VERDICT"] = self._result.verdict
        redaction = redaction_of(self._job.plan)

        async def run() -> tuple[str, bytes]:
            over = asyncio.Event()

            loop = asyncio.get_running_loop()

            def look() -> None:
                asked = self._asked()
                if asked == ABORT or (asked and stage == BEFORE):
                    over.set()
                loop.call_later(_POLL_S, look)

            look()
            done = await run_command(words, environment, command.timeout_s, over, redaction)
            return done.failure, done.output

        failure, output = asyncio.run(run())
        write_private(self._place / f"{stage}.log", output, mode_in(self._place))
        return f"the command {stage} it ({words[0]}): {failure}" if failure else ""

    def _run(self, bed: int) -> None:
        """The run itself, in a process of its own, which holds both locks too."""
        job, place = self._job, self._place
        command = [sys.executable, "-m", "soakwatch.cli"]
        if job.resumed:
            command += ["resume", str(place)]
        else:
            command += ["run", str(place / PLAN_FILE), "--into", str(place)]
            command += [word for name, text in job.labels.items() for word in ("--label", f"{name}={text}")]
            command += ["--reference", str(place / REFERENCE_FILE)] if job.reference else []
            command += ["--setup", str(place / SETUP_FILE)] if job.before or job.after else []
            command += ["--group", job.group] if job.group else []
        command += [] if job.web else ["--no-web"]
        command = command if job.detached else leashed(command)
        cwd = job.folder if job.folder and Path(job.folder).is_dir() else None
        with open_private(place / LOG_FILE, mode_in(place), append=True) as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if job.detached else subprocess.PIPE,  # which ends with this process
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                start_new_session=True,
                pass_fds=tuple(number for number in (self._lock, bed) if number >= 0),
            )
        begun = time.monotonic()
        stopped_at: float | None = None
        while process.poll() is None:
            passed = time.monotonic() - begun
            asked = self._asked()
            if asked == ABORT or passed > 2 * job.planned_s + _LATE_S:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                why = "" if asked else f"it did not end within {show_seconds(passed)}"
                self._result = replace(self._result, notes=(*self._result.notes, why) if why else ())
                break
            if asked and stopped_at is None and self._ended():
                stopped_at = passed + 1e9  # it is over and being judged: that is waited for
            elif asked and stopped_at is None:
                stopped_at = passed
                self._result = replace(self._result, stopped=True)
                self._note()
                if not self._stop_request():
                    process.send_signal(signal.SIGINT)
            elif stopped_at is not None and passed > stopped_at + _GRACE_S and not self._ended():
                process.send_signal(signal.SIGINT)
                stopped_at = passed + 1e9
            time.sleep(_POLL_S)
        if process.stdin is not None:
            process.stdin.close()
        self._result = replace(self._judged(process.returncode), stopped=self._result.stopped or self._asked() == ABORT)

    def _stop_request(self) -> bool:
        """As ``soakwatch stop`` asks; False where the run cannot be asked yet."""
        from soakwatch.runs.mark_event import EventConflictError, EventRefusedError
        from soakwatch.runs.run_state import StateReader
        from soakwatch.runs.stop_run import stop_run

        try:
            state = StateReader(self._place).read(time.time_ns())
            stop_run(self._place, state, "the campaign was stopped", "campaign")
        except (RecordError, EventConflictError, EventRefusedError, OSError):
            return False
        return True

    def _ended(self) -> bool:
        from soakwatch.record import RecordView

        with suppress(RecordError), RecordView.open(self._place) as view:
            return view.meta("ended_ns") is not None
        return False

    def _judged(self, code: int) -> RunResult:
        """The result of a run that is over, from its record."""
        return judged(self._place, self._result, code)


def _setup(job: RunJob) -> str:
    """The commands around the run, for its record; "" where there are none."""
    before, after = (() if each is None else tuple(each.words) for each in (job.before, job.after))
    return RunSetup(before, after, job.facts).text(redaction_of(job.plan)) if before or after else ""


def judged(place: Path, so_far: RunResult, code: int | None) -> RunResult:
    """What a run's record says of its end; ``code`` is the exit code of its process, None where nobody knows."""
    from soakwatch.record import RecordView

    verdict = reason = fault = ""
    try:
        with RecordView.open(place) as view:
            metas = view.metas()
            if metas.get("ended_ns") and (code is None or code in _VERDICT_CODES):
                verdict, reason = metas.get("verdict", ""), metas.get("reason", "")
                fault = _fault_in(view) if verdict == "inconclusive" else ""
    except RecordError as error:
        reason = str(error)
    if verdict:
        return replace(so_far, verdict=verdict, reason=reason, fault=fault, exit_code=code)
    word = _last_word(place / LOG_FILE)
    if code == EXIT_BROKEN:
        fault = f"the monitor itself failed: {word}"
    how = (
        "it was broken off"
        if code is None
        else f"it was killed by {signal.Signals(-code).name}"
        if code < 0
        else f"it ended with exit code {code}: {word}"
    )
    return replace(so_far, verdict=None, reason=reason or how, fault=fault, exit_code=code)


def _fault_in(view: RecordView) -> str:
    """The first reason for which an inconclusive run that has ended is not the device's fault; "" if there is none.

    Those are inconclusive findings that blame the generator, and those about a target or a source whose role is
    generator or monitor; findings that keep no run from passing do not count. The rules are asked again, for a record
    does not hold which findings those are. Raises RecordError, PlanError.
    """
    from soakwatch.judge.record_verdict import judge_record  # the rules: not while the run goes on

    verdict = judge_record(view, ended=True)
    roles = {**view.roles(), MONITOR: MONITOR}
    others = {name for name, role in roles.items() if role in {GENERATOR, MONITOR}}
    others |= {source.target for source in view.sources() if source.role in {GENERATOR, MONITOR}}
    for index, finding in enumerate(verdict.findings):
        if finding.outcome is not Outcome.INCONCLUSIVE or index in verdict.waived:
            continue
        if finding.why is InconclusiveReason.GENERATOR or finding.target in others:
            return f"{finding.rule} on {finding.target}: {finding.sentence}"
    return ""


def _last_word(log: Path) -> str:
    with suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        said = [line for line in lines if line.startswith("soakwatch: ")] or lines
        if said:
            return said[-1].removeprefix("soakwatch: ")[:_LAST_WORD]
    return f"see {log.name}"


def _write(file: Path, text: str) -> None:
    """Write a file so that readers see the old text or all of the new one."""
    part = file.with_name(f"{file.name}.part")
    write_private(part, text, mode_in(file.parent))
    part.replace(file)


def job_in(place: Path) -> RunJob:
    """The job of a folder. Raises OSError, ValueError, TypeError and KeyError if there is none."""
    data = json.loads((place / JOB_FILE).read_text(encoding="utf-8"))
    for name in ("before", "after"):
        if data[name] is not None:
            data[name] = Command(**data[name])
    return RunJob(**data)


def main() -> None:
    """Make the run whose job is in the folder that the command line names."""
    place = Path(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal's signals are for the driver, which asks in its own way
    carry_out(job_in(place), place, lambda: True)


if __name__ == "__main__":
    main()
