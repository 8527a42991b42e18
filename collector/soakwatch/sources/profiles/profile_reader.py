"""Reads a device by its survey, poll after poll, and finds out anew what it has when it changed."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from soakwatch.sources.abc import WatchedProcess
from soakwatch.sources.profiles.device_survey import (
    FoldedSeries,
    PollReading,
    Survey,
    SurveyedTable,
    WantedSeries,
)
from soakwatch.sources.profiles.discovery import discover, run_in_thread_if_large
from soakwatch.sources.profiles.evaluate import FaultError, Raw, change, level, lost, possible, raw
from soakwatch.sources.profiles.expression import MissingError, UndefinedError
from soakwatch.sources.profiles.profile_model import MetricGroup, Profile
from soakwatch.sources.profiles.snmp_processes import poll_processes, watch_state, without_table
from soakwatch.sources.profiles.value import Askable, Asker, Number, Value
from soakwatch_model.sample import Fault, Sample

SECOND = 1_000_000_000
EARLY = 0.95  # a poll that comes a little early still counts as due
REDISCOVER_NS = 600 * SECOND
SETTLE_NS = 30 * SECOND  # rows that come and go all the time are looked for at most this often
MAX_FAULTS = 200
ANEW = "the device restarted"
GONE = "the device does not answer it any more"


@dataclass(frozen=True, slots=True)
class Questions:
    """What is asked of a device while the same tables are due: columns, objects, and those that may be missing.

    ``single`` are objects without rows, ``expected`` is how many values the columns have.
    """

    due: tuple[SurveyedTable, ...]
    walks: tuple[str, ...]
    gets: tuple[str, ...]
    away: frozenset[str]
    single: frozenset[str]
    expected: int


def questions(survey: Survey, due: tuple[SurveyedTable, ...]) -> Questions:
    """What some tables of a survey ask for."""
    return Questions(
        due,
        tuple(dict.fromkeys(base for table in due for base in table.walks)),
        tuple(dict.fromkeys(oid for table in due for oid in table.gets)),
        frozenset(oid for table in due for oid in table.away),
        frozenset(oid for table in due if not table.group.columns for oid in table.gets),
        survey.expected(due),
    )


@dataclass(slots=True)
class ReaderState:
    """What a reader remembers from poll to poll. ``asked`` are the questions of the last poll, and of which survey."""

    asked: tuple[Survey, Questions] | None = None
    due_ns: dict[str, int] = field(default_factory=dict)  # group -> not before
    before: dict[tuple[str, str, str], tuple[int, Raw]] = field(default_factory=dict)  # the last is a row of a fold
    reported: dict[tuple[str, str], str] = field(default_factory=dict)
    last: dict[tuple[str, str], Number] = field(default_factory=dict)  # of series that may be lost

    def due(self, group: MetricGroup, now_ns: int) -> bool:
        """Whether a group is to be read."""
        return self.due_ns.get(group.name, now_ns) <= now_ns

    def seen(self, group: MetricGroup, now_ns: int) -> None:
        """A group was read."""
        if group.every_s is not None:
            self.due_ns[group.name] = now_ns + int(group.every_s * EARLY * SECOND)

    def keep(self, series: Collection[tuple[str, str]]) -> None:
        """Forgets everything about other series."""
        self.before = {key: value for key, value in self.before.items() if key[:2] in series}
        self.reported = {key: value for key, value in self.reported.items() if key in series}
        self.last = {key: value for key, value in self.last.items() if key in series}

    def forget_changes(self) -> None:
        """After a restart of the device: counters began anew, and everything is due."""
        self.before.clear()
        self.due_ns.clear()


@dataclass(frozen=True, slots=True)
class Answers:
    """What a device answered to the questions of the tables that were due.

    ``stale`` says why the survey does not fit the device any more, empty if it does; ``absent`` names an object without
    rows that is missing: if it is there at the next poll nothing else has changed.
    """

    tables: tuple[SurveyedTable, ...]
    values: Mapping[str, Value]
    stale: str
    absent: str = ""


async def ask(asker: Asker, survey: Survey, state: ReaderState, now_ns: int) -> Answers:
    """Asks everything that is due. Raises what the asker raises."""
    due = tuple(table for table in survey.tables if state.due(table.group, now_ns))
    if state.asked is None or state.asked[0] is not survey or state.asked[1].due != due:
        state.asked = survey, questions(survey, due)
    asked = state.asked[1]
    walked = await asker.walk(asked.walks) if asked.walks else {}
    got = await asker.get(asked.gets) if asked.gets else {}
    missing = [oid for oid in asked.gets if oid not in got and oid not in asked.away]
    stale = _stale(asked, len(walked), next((oid for oid in missing if oid not in asked.single), None), got)
    absent = _unanswered(next((oid for oid in missing if oid in asked.single), None))
    return Answers(due, {**walked, **got}, stale, absent)


def _stale(asked: Questions, walked: int, missing: str | None, got: Mapping[str, Value]) -> str:
    for table in asked.due:
        scalar = table.group.changed
        if scalar is not None and table.changed is not None and got.get(scalar) != table.changed:
            return f"the device reports that rows of {table.group.name} came or went"
    if walked != asked.expected:
        return f"tables that had {asked.expected} values have {walked}"
    return _unanswered(missing)


def _unanswered(oid: str | None) -> str:
    return f"{oid} is not answered any more" if oid is not None else ""


def evaluate(answers: Answers, state: ReaderState, now_ns: int) -> PollReading:
    """Samples and faults of what a device answered."""
    poll = _Evaluation(answers.values, state, now_ns)
    for table in answers.tables:
        state.seen(table.group, now_ns)
        poll.table(table)
    return PollReading(tuple(poll.samples), tuple(poll.parts), tuple(poll.faults), stale=answers.stale)


async def read(asker: Asker, survey: Survey, state: ReaderState, now_ns: int) -> PollReading:
    """One look at everything that is due. Raises what the asker raises; then nothing is remembered of it."""
    answers = await ask(asker, survey, state, now_ns)
    return await run_in_thread_if_large(len(answers.values), evaluate, answers, state, now_ns)


class _Evaluation:
    """One look under way."""

    def __init__(self, values: Mapping[str, Value], state: ReaderState, now_ns: int) -> None:
        self._values, self._state, self._now_ns = values, state, now_ns
        self.samples: list[Sample] = []
        self.parts: list[WantedSeries | FoldedSeries | None] = []
        self.faults: list[Fault] = []

    def table(self, table: SurveyedTable) -> None:
        """Every series of a group."""
        values = self._values
        for want in table.wants:
            plain = None if want.lone is None else values.get(want.lone)
            if type(plain) is int and possible(want.line.metric, plain):  # most of the counters, by far
                self._sample(want, plain)
                continue
            try:
                value = self._value(want)
            except FaultError as error:
                self._fault(want, str(error))
            except UndefinedError as error:
                if not want.line.change:
                    self._fault(want, str(error))
            except MissingError:
                self._fault(want, GONE)
            else:
                if value is not None:
                    self._sample(want, value)
        for fold in table.folds:
            self._fold(fold)

    def _value(self, want: WantedSeries, row: str = "") -> Number | None:
        """The value of a series, or of one row of a fold; None where it takes another poll to tell."""
        if want.line.lost is not None:
            return self._losable(want)
        if not want.line.change:
            return level(want, self._values)
        key, now = (want.line.metric, want.object, row), raw(want, self._values)
        if None in now.values():
            raise MissingError(want.line.value.text)
        before_ns, before = self._state.before.get(key, (self._now_ns, None))
        if before is None or self._now_ns <= before_ns:
            self._state.before[key] = (self._now_ns, now)
            return None
        try:
            value = change(want, before, now, (self._now_ns - before_ns) / SECOND)
        except MissingError:  # a counter began anew
            self._state.before[key] = (self._now_ns, now)
            return None
        # Where nothing moved (UndefinedError) the older readings stay: the device has not renewed its values yet.
        self._state.before[key] = (self._now_ns, now)
        return value

    def _losable(self, want: WantedSeries) -> Number:
        """The reading, which is kept; of one that the device calls off what that means."""
        key = (want.line.metric, want.object)
        try:
            value = level(want, self._values)
        except MissingError:
            return lost(want, self._values, self._state.last.get(key))
        self._state.last[key] = value
        return value

    def _fold(self, fold: FoldedSeries) -> None:
        operands: list[Number | None] = []
        for want in fold.rows:
            try:
                operands.append(self._value(want, row=want.oids[0]))
            except FaultError as error:
                self._fault(fold, str(error))
                return
            except UndefinedError as error:
                if not fold.line.change:
                    self._fault(fold, str(error))
                return
            except MissingError:
                self._fault(fold, f"a row of {len(fold.rows)} has no value ({', '.join(want.oids)})")
                return
        values = [value for value in operands if value is not None]
        if len(values) < len(operands):
            return
        built = {"sum": sum(values), "max": max(values), "min": min(values), "mean": sum(values) / len(values)}
        self._sample(fold, built[fold.line.over or "mean"])

    def _sample(self, part: WantedSeries | FoldedSeries, value: Number) -> None:
        self.samples.append(Sample(part.line.metric, part.object, value, self._now_ns))
        self.parts.append(part)
        if self._state.reported:
            self._state.reported.pop((part.line.metric, part.object), None)

    def _fault(self, part: WantedSeries | FoldedSeries, words: str) -> None:
        key = (part.line.metric, part.object)
        if self._state.reported.get(key) != words and len(self.faults) < MAX_FAULTS:  # the others: at the next polls
            self._state.reported[key] = words
            self.faults.append(Fault(*key, words))


class ProfileReader:
    """A device, a profile, and what is watched: discovers when needed, reads at each poll.

    ``interfaces`` are globs, None for all; ``without`` names groups that are not asked.
    """

    def __init__(
        self,
        asker: Askable,
        profile: Profile,
        interfaces: tuple[str, ...] | None = None,
        processes: tuple[WatchedProcess, ...] = (),
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._asker, self._profile, self._interfaces, self._without = asker, profile, interfaces, without
        self._state, self._watched = ReaderState(), watch_state(processes)
        self._gone: tuple[Fault, ...] = ()
        self._found_ns = 0
        self._patience_ns = SETTLE_NS
        self._new = False  # the state may know series that the survey does not have
        self._stale = self._absent = ""
        self.survey: Survey | None = None

    def restarted(self) -> None:
        """The device or its agent began anew: everything is found out again, and no counter is taken for a wrap."""
        self._state.forget_changes()
        self._stale, self._patience_ns = ANEW, 0

    def forget_changes(self) -> None:
        """Increases are counted from the next look on."""
        self._state.forget_changes()

    async def discover(self, now_ns: int, deadline_s: float = math.inf, *, settled: bool = False) -> Survey:
        """Finds out what the device has. ``settled``: it restarted so long ago that what is still missing is given up.
        ``deadline_s`` is a time of the monotonic clock by which the requests end."""
        before = self.survey.settled() if self.survey is not None and settled else self.survey
        survey = await discover(
            self._asker.until(deadline_s),
            self._profile,
            self._interfaces,
            processes=bool(self._watched.watches),
            without=self._without,
            before=before,
            now_ns=now_ns,
            renumbered=self._stale == ANEW,
        )
        self.survey, self._found_ns, self._new = survey, now_ns, True
        # Series that are gone may come back while their agent is overworked: look again, but ever more seldom.
        self._stale = "series are gone" if survey.faults else ""
        self._gone += survey.faults
        return survey

    async def poll(self, now_ns: int, deadline_s: float = math.inf) -> PollReading:
        """One poll, with the deadline of ``discover``. Where rows came or went, the device is surveyed again before
        anything is reported of them."""
        asker = self._asker.until(deadline_s)
        if self.survey is None or self._due(now_ns):
            await self._again(now_ns, deadline_s)
        assert self.survey is not None
        answers = self._twice(await ask(asker, self.survey, self._state, now_ns))
        if answers.stale and now_ns - self._found_ns >= self._patience_ns:
            await self._again(now_ns, deadline_s)
            answers = await ask(asker, self.survey, self._state, now_ns)
        running = await self._read_processes(asker, self.survey, now_ns)
        if self._new and (self._state.before or self._state.reported or self._state.last):
            self._state.keep({(part.line.metric, part.object) for table in self.survey.tables for part in table.parts})
        self._new = False
        reading = await run_in_thread_if_large(len(answers.values), evaluate, answers, self._state, now_ns)
        self._stale = self._stale or reading.stale
        gone, self._gone = self._gone, ()
        return PollReading(
            (*reading.samples, *running.samples),
            (*reading.parts, *running.parts),
            (*gone, *reading.faults, *running.faults),
            running.events,
            reading.stale,
        )

    async def poll_only(self, metrics: Collection[str], now_ns: int, deadline_s: float = math.inf) -> PollReading:
        """One poll of some metrics alone, of what was found so far, with the deadline of ``discover``."""
        if self.survey is None:
            return PollReading((), (), ())
        narrowed = [table.only(metrics) for table in self.survey.tables]
        survey = replace(self.survey, tables=tuple(table for table in narrowed if table.parts))
        return await read(self._asker.until(deadline_s), survey, self._state, now_ns)

    def _twice(self, answers: Answers) -> Answers:
        """Asks for a new survey where a value without rows (a scalar) is missing at two polls in a row."""
        absent, self._absent = self._absent, answers.absent
        return replace(answers, stale=answers.stale or answers.absent) if absent else answers

    async def _read_processes(self, asker: Asker, survey: Survey, now_ns: int) -> PollReading:
        if not self._watched.watches:
            return PollReading((), (), ())
        if not survey.processes:
            return PollReading((), (), without_table(self._watched))
        group = survey.processes[0]
        if not self._state.due(group, now_ns):
            return PollReading((), (), ())
        reading = await poll_processes(asker, group, self._watched, now_ns)
        self._state.seen(group, now_ns)
        return reading

    async def _again(self, now_ns: int, deadline_s: float) -> Survey:
        eager = bool(self._stale) and now_ns - self._found_ns < REDISCOVER_NS
        survey = await self.discover(now_ns, deadline_s)
        self._patience_ns = min(max(self._patience_ns, SETTLE_NS // 2) * 2, REDISCOVER_NS) if eager else SETTLE_NS
        return survey

    def _due(self, now_ns: int) -> bool:
        age_ns = now_ns - self._found_ns
        return age_ns >= REDISCOVER_NS or (bool(self._stale) and age_ns >= self._patience_ns)
