"""Many records judged again under other rules: which verdicts change, and by which finding."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.workers.executor import ClusterError, Executor, completed
from soakwatch.judge.record_verdict import judge_record
from soakwatch.judge.verdict import Verdict
from soakwatch.plan import Plan, plan_from_text
from soakwatch.plan.rule_plan import RulePlan
from soakwatch.record import RECORD_NAME, SIDE_SUFFIXES, RecordView, record_file
from soakwatch.record.writer_lock import is_written
from soakwatch.runs.catalog import find_run
from soakwatch_model.finding import Finding, FindingName, Outcome

_VERDICTS = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)


@dataclass(frozen=True, slots=True)
class RecordName:
    """A record to be judged again: its place among them, its name as it is shown, its file."""

    place: int
    name: str
    file: Path


@dataclass(frozen=True, slots=True)
class Rules:
    """What records are judged by: ``plan`` is the text of a plan, None for each record's own, ``origin`` its name in
    errors; ``only`` are names of rules, () for all; ``given`` are parameters that go before those of the plan."""

    plan: str | None = None
    origin: str = ""
    only: tuple[str, ...] = ()
    given: tuple[RulePlan, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeAgain:
    """The job: a record's file in a folder, and the rules."""

    file: str
    rules: Rules


@dataclass(frozen=True, slots=True)
class Decisive:
    """The finding by which a verdict changed. ``before`` and ``now`` are its outcomes, None where the rule said nothing
    of it then; ``others`` counts further findings that speak for the change."""

    rule: str
    target: str
    metric: str
    object: str
    before: Outcome | None
    now: Outcome | None
    reason: str
    others: int = 0


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """What came of one record. ``before`` is the verdict that it holds, None where it was never judged; ``now`` is None
    where it could not be judged, and ``trouble`` says why. ``findings`` counts those of now by outcome."""

    run: str = ""
    before: Outcome | None = None
    now: Outcome | None = None
    reason_before: str = ""
    reason: str = ""
    because: Decisive | None = None
    findings: Mapping[str, int] = field(default_factory=dict)
    trouble: str = ""

    @property
    def changed(self) -> bool:
        """Whether there was a verdict, and there is another one."""
        return None not in {self.before, self.now} and self.before is not self.now


def records_in(texts: Sequence[str], runs: Path) -> tuple[RecordName, ...]:
    """The records that words name, each once: runs (see ``find_run``), files, and folders, which stand for every record
    below them. What exists and holds no record is among them, to be named as such.

    Raises RecordError for a word that names nothing, and where there is no record at all.
    """
    found: dict[Path, str] = {}
    for text in texts:
        for name, file in _named(text, runs):
            found.setdefault(file.resolve(), name)
    if not any(file.is_file() for file in found):
        raise RecordError(f"{', '.join(texts)}: there is no record: name runs, their records, or a folder of them")
    return tuple(RecordName(place, name, file) for place, (file, name) in enumerate(found.items()))


def folder_of_records(text: str) -> bool:
    """Whether a word names a folder that is no run itself and has records below it."""
    path = Path(text)
    return path.is_dir() and not (path / RECORD_NAME).is_file() and any(_below(path))


def judged_again(
    executor: Executor, names: Iterable[RecordName], rules: Rules
) -> Iterator[tuple[RecordName, JudgedAgain]]:
    """Judges each record where the executor does its jobs, and yields what came of it as it comes; nothing in a record
    is changed. A record that cannot be judged has its trouble. Raises ClusterError where nothing can be judged any
    longer."""

    def submit(name: RecordName) -> Future[JudgedAgain]:
        if not name.file.is_file():
            return _answered(JudgedAgain(trouble="it holds no record"))
        if not executor.same_machine and is_written(name.file):
            return _answered(JudgedAgain(trouble="a run is writing it: wait for its end, or judge it without --on"))
        sides = [side for suffix in SIDE_SUFFIXES if (side := name.file.with_name(name.file.name + suffix)).is_file()]
        return executor.submit_files(
            judge_again, JudgeAgain(name.file.name, rules), [name.file, *sides], label=f"judging {name.name}"
        )

    for name, future in completed(submit, names, lambda: executor.slots):
        try:
            yield name, future.result()
        except ClusterError:
            raise
        except (SoakwatchError, OSError) as error:
            yield name, JudgedAgain(trouble=str(error))


def judge_again(job: JudgeAgain, folder: Path) -> JudgedAgain:
    """The job itself, where the record is. Never raises for a record: what is wrong with one is its trouble."""
    try:
        with RecordView.open(folder / job.file) as view:
            before = _verdict_in(view)
            verdict = judge_record(view, _plan(job.rules), job.rules.only, given=job.rules.given)
            same = before in {None, verdict.outcome}
            return JudgedAgain(
                run=verdict.run,
                before=before,
                now=verdict.outcome,
                reason_before=view.meta("reason") or "",
                reason=verdict.reason,
                because=None if same else decisive(view.findings(live=False), before, verdict),
                findings=dict(Counter(finding.outcome.value for finding in verdict.findings)),
            )
    except (SoakwatchError, OSError) as error:
        return JudgedAgain(trouble=str(error).replace(f"{folder}{os.sep}", ""))
    except Exception as error:  # noqa: BLE001 - a defect that one record meets must not cost the others their verdict
        return JudgedAgain(trouble=f"internal error: {type(error).__name__}; judge it alone with --debug")


def decisive(before: Sequence[Finding], was: Outcome | None, verdict: Verdict) -> Decisive | None:
    """The finding by which a verdict that ``was`` another changed: where it is worse now, the first that brings it
    down and did not before; where it is better, the first that had brought it down and does no longer. None where no
    finding did (a run that ended early, or of which nothing was judged)."""
    held, found = _worst_by_key(before), _worst_by_key(verdict.findings)
    if was is None or verdict.outcome.rank < was.rank:
        order = [index for cause in verdict.causes for index in cause.findings if index not in verdict.waived]
        bad = [f for index in order if (f := verdict.findings[index]).outcome is verdict.outcome]
        other = held
    else:
        holding = _worst_by_key(f for index, f in enumerate(verdict.findings) if index not in verdict.waived)
        bad = [f for f in before if f.outcome is was and _outcome(holding.get(f.name)) is not was]
        other = found
    # One that was there and weighed nothing (inconclusive, not required) decides only where no other does.
    bad = [f for f in bad if _outcome(other.get(f.name)) is not f.outcome] or bad
    if not bad:
        return None
    key = bad[0].name
    reason = found.get(key, bad[0]).sentence
    others = len({finding.name for finding in bad}) - 1
    return Decisive(*key, _outcome(held.get(key)), _outcome(found.get(key)), reason, others)


def _named(text: str, runs: Path) -> Iterator[tuple[str, Path]]:
    path = Path(text)
    if folder_of_records(text):
        yield from ((str(file.parent if file.name == RECORD_NAME else file), file) for file in _below(path))
        return
    yield text, path / RECORD_NAME if path.is_dir() else record_file(find_run(text, runs))


def _below(folder: Path) -> Iterator[Path]:
    """The records below a folder in the order of their names: runs at any depth, and record files in itself."""
    yield from sorted(file for file in folder.glob("*.sqlite") if file.is_file())
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if Path(where) != folder and RECORD_NAME in files:
            yield Path(where) / RECORD_NAME


def _verdict_in(view: RecordView) -> Outcome | None:
    text = view.meta("verdict")
    return next((outcome for outcome in _VERDICTS if outcome.value == text), None)


@lru_cache(maxsize=4)
def _parsed(text: str, origin: str) -> Plan:
    return plan_from_text(text, origin)


def _plan(rules: Rules) -> Plan | None:
    return None if rules.plan is None else _parsed(rules.plan, rules.origin)


def _outcome(finding: Finding | None) -> Outcome | None:
    return None if finding is None else finding.outcome


def _worst_by_key(findings: Iterable[Finding]) -> dict[FindingName, Finding]:
    worst: dict[FindingName, Finding] = {}
    for finding in findings:
        known = worst.get(finding.name)
        if known is None or finding.outcome.rank < known.outcome.rank:
            worst[finding.name] = finding
    return worst


def _answered(result: JudgedAgain) -> Future[JudgedAgain]:
    future: Future[JudgedAgain] = Future()
    future.set_result(result)
    return future
