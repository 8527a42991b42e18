"""One agent, asked for as long as a run lasts: batches, retries within a deadline, resynchronisation, bounded walks.

What is missing on the agent is missing in the answer; what the agent refuses with an error is in ``refusals`` as well.
A session is safe for concurrent use: requests take turns. Only while a device is surveyed (``abreast``) the columns of
large tables are walked at the same time, each over a connection of its own: an answer of a busy agent takes ten
milliseconds, and 20,000 interfaces are 5,000 answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from soakwatch.sources.transport.snmp.agent_link import AgentLink, SessionOptions
from soakwatch.sources.transport.snmp.diagnosis import Diagnosis
from soakwatch.sources.transport.snmp.request_limits import AnsweredSizes, Limits, limits_at_first
from soakwatch.sources.transport.snmp.round_trips import RoundTrips
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_connection import Connection, Counters, Value, Walk, get
from soakwatch.sources.transport.snmp.snmp_errors import NO_SUCH_NAME, FailureKind, SnmpPollError, status_name

MAX_ROWS = 200_000  # of one column
MAX_VALUES = 1_000_000  # of one walk
MOST_ABREAST = 4
"""Requests to one agent that are under way at once in a survey."""
LARGE_ROWS = 1000
"""A column of so many rows is a reason for it."""
SURE_S = 600.0
_FAST_S = 0.1  # an answer within this could have been longer
_MAX_ENDINGS = 1000
_ENOUGH_S = 0.005
_SHOWN = 100  # characters of an object identifier
_ROUNDS = 3  # of a request and its repeats, where others are answered meanwhile

_AGAIN = frozenset({FailureKind.NO_ANSWER, FailureKind.TIME_WINDOW, FailureKind.ENGINE_ID, FailureKind.MALFORMED})
_OF_ONE_TABLE = {
    FailureKind.LOOP: "its table never ends",
    FailureKind.MALFORMED: "its table holds values that cannot be read",
    FailureKind.TOO_LARGE: "its table holds a value that is too large",
}
_NO_ROWS: Mapping[str, Value] = {}
_T = TypeVar("_T")


@dataclass(slots=True)
class Session:
    """The requests to one agent, whose connection is opened when it is needed and again when it is lost. Close it.

    A ``deadline`` is a time of ``clock``: no request goes on after it.
    """

    access: Access  # its address may be a name
    options: SessionOptions
    clock: Callable[[], float] = time.monotonic
    trips: RoundTrips = field(default_factory=RoundTrips)
    link: AgentLink = field(init=False)
    _limits: Limits = field(init=False)
    _sizes: AnsweredSizes = field(default_factory=AnsweredSizes)
    _diagnosis: Diagnosis = field(init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _endings: dict[str, tuple[float, SnmpPollError | None]] = field(default_factory=dict)
    _beside: list[Session] | None = None  # sessions to the same agent for its large tables; None while none may be

    def __post_init__(self) -> None:
        options = self.options
        self.link = AgentLink(self.access, options)
        self._limits = limits_at_first(options.objects, options.repetitions, switches=options.engine == "gufo")
        self._diagnosis = Diagnosis(options.share_s)

    @property
    def counters(self) -> Counters:
        """What was sent and what became of it."""
        return self.link.counters

    @property
    def refusals(self) -> Mapping[str, str]:
        """The objects and columns that are not to be had, each with the reason."""
        return self._limits.refused

    async def get(self, oids: Sequence[str], deadline: float) -> dict[str, Value]:
        """Values of these objects; what the agent does not have is absent. Raises SnmpPollError."""
        values: dict[str, Value] = {}
        self._limits, left = self._limits.batches(oids, self.clock())
        while left:
            batch = left.pop(0)
            second = len(batch) == 1 and batch[0] in self._limits.beyond
            try:
                answer, sure = await self._exchange(partial(get, batch), deadline, second=second)
            except SnmpPollError as failure:
                now = self.clock()
                alive = self.link.answered_at is not None and now < deadline
                if failure.kind is FailureKind.NO_ANSWER and self._sizes.by_chance(batch[0], len(batch)):
                    if not alive:
                        raise
                    left.insert(0, batch)
                    continue
                self._limits, again = self._limits.failed(batch, failure, now, alive=alive)
                left = again + left
                continue
            if sure:
                self._sizes.answered(batch[0], len(batch))
                self._limits = self._limits.answered(batch, answer)
                values.update(answer)
            else:
                self._limits, again = self._limits.hidden(batch, self.clock())
                left = again + left
        return values

    async def walk(self, columns: Sequence[str], deadline: float) -> dict[str, Value]:
        """All instances below these objects. Raises SnmpPollError, also for a table without end."""
        values: dict[str, Value] = {}
        for oid in dict.fromkeys(columns):
            values.update(await self._column(oid, min(MAX_ROWS, MAX_VALUES - len(values)), deadline))
        return values

    def refuse(self, column: str, failure: SnmpPollError) -> bool:
        """Refuses a column if its walk failed for a reason of its own; False if other requests would fail as well."""
        why = status_name(failure.status) if failure.status else _OF_ONE_TABLE.get(failure.kind)
        if why is None or failure.kind is FailureKind.DENIED:
            return False
        self._limits = self._limits.with_refusals({column: why})
        return True

    def allow(self, column: str) -> None:
        """A column that was refused is answered again."""
        if column in self._limits.refused:
            self._limits = self._limits.with_refusals({}, (column,))

    @asynccontextmanager
    async def abreast(self) -> AsyncIterator[None]:
        """While this lasts there may be sessions ``beside`` this one; they are closed at its end."""
        self._beside = []
        try:
            yield
        finally:
            await self.alone()

    def beside(self) -> Sequence[Session]:
        """More sessions to the same agent; none on a path that loses requests."""
        if self._beside is None or self.options.engine != "gufo" or self.lossy:
            return ()
        while len(self._beside) < MOST_ABREAST - 1:
            other = Session(self.access, self.options, self.clock, self.trips)
            other.link.counters = self.counters
            self._beside.append(other)
        return tuple(self._beside)

    def learn(self, other: Session) -> None:
        """Ask for as much at once as another session to the same agent has learnt to."""
        self._limits = other._limits

    async def alone(self) -> None:
        """From now on there is no session beside this one."""
        beside, self._beside = self._beside or (), None
        for other in beside:
            await other.close()

    async def explain(self, failure: SnmpPollError, deadline: float) -> SnmpPollError:
        """The cause of a failure, else the failure: the agent is asked for it once per streak, beside the polls."""
        if failure.kind is FailureKind.NO_ANSWER and self.lossy:
            return self.lost()
        if failure.kind not in _AGAIN:
            return failure
        if self._diagnosis.due(now := self.clock()):
            self._diagnosis.begin(await self.link.numeric(self.options.share_s), now)
        return await self._diagnosis.explain(failure, deadline - self.clock(), well=self.link.answered_at is not None)

    async def cause(self) -> SnmpPollError | None:
        """What the agent answers when it is given more time than a poll has; None where nothing was wrong."""
        return await self._diagnosis.cause()

    def lost(self) -> SnmpPollError:
        """The failure of a request that was lost on a path that loses requests, with their share in tens of percent:
        one sentence for all polls that fail alike."""
        share = max(1, round(10 * self.trips.losses(self.clock()).share))
        return SnmpPollError(FailureKind.LOST, self.access.where, detail=f"{10 * share} %")

    @property
    def lossy(self) -> bool:
        """Whether requests get lost between others that are answered."""
        return self.trips.lossy(self.clock())

    async def close(self) -> None:
        """End it: nothing of it is under way any more."""
        await self._diagnosis.close()
        self.link.drop()

    # --- requests -----------------------------------------------------------------------------------------

    async def _exchange(
        self, use: Callable[[Connection, float], Awaitable[_T]], deadline: float, *, second: bool = False
    ) -> _T:
        """Sends one request and its repeats, each with a share of the time left. ``second``: pysnmp beside gufo-snmp.

        On a path that loses requests, this is done up to ``_ROUNDS`` times: a loss then costs one request, not the
        whole walk that it belongs to.
        """
        failure = SnmpPollError(FailureKind.TOO_SLOW, self.access.where)
        for _ in range(_ROUNDS):
            waits = list(self.trips.waits(self.options.share_s, self.options.retries))
            for number, wait_s in enumerate(waits):
                share_s = min(wait_s, (deadline - self.clock()) / (len(waits) - number))
                if share_s < _ENOUGH_S:
                    raise failure
                async with self._lock:
                    try:
                        return await self._attempt(use, share_s, second=second)
                    except SnmpPollError as error:
                        failure = error
                        if error.kind not in _AGAIN:
                            raise
            if failure.kind is not FailureKind.NO_ANSWER or not self.trips.lossy(self.clock(), least=1):
                break
        if failure.kind is FailureKind.NO_ANSWER and self.link.streak > 1 and not self.lossy:
            self.link.drop()
        raise failure

    async def _attempt(self, use: Callable[[Connection, float], Awaitable[_T]], share_s: float, *, second: bool) -> _T:
        """Sends one request, and notes for later ones whether and how fast it was answered."""
        began = self.clock()
        try:
            connection = await self.link.ready(share_s, began, second=second)
            began = self.clock()
            result = await use(connection, share_s)
        except SnmpPollError as error:
            if error.kind is FailureKind.NO_ANSWER:
                self.trips.lost(self.clock())
            elif error.status:
                self.trips.answered(self.clock(), self.clock() - began)
            self.link.failed(error)
            raise
        else:
            now = self.clock()
            self.trips.answered(now, now - began)
            self.link.answered(now)
            self._diagnosis.answered()
            return result
        finally:
            self.trips.late(self.counters.late, self.clock())

    async def _column(self, oid: str, most: int, deadline: float) -> dict[str, Value]:
        """All rows of one column, begun anew whenever it has to be read in smaller parts or by pysnmp."""
        walk = Walk(oid, self._limits.rows(oid))
        while not walk.over:
            began = self.clock()
            try:
                more = await self._exchange(walk.step, deadline, second=oid in self._limits.beyond)
            except SnmpPollError as failure:
                if failure.status == NO_SUCH_NAME and self.access.version == "1":
                    break  # nothing stands behind the column: so v1 says that (RFC 1157 section 4.1.3)
                now = self.clock()
                if now > deadline:
                    raise
                alive = self.link.answered_at is not None
                if failure.kind is FailureKind.NO_ANSWER and self._sizes.by_chance(oid, walk.repetitions):
                    continue
                self._limits = self._limits.lighter(oid, walk.repetitions, failure, now, alive=alive)
                walk = Walk(oid, self._limits.rows(oid))
                continue
            if (twice := walk.take(more)) is not None:
                raise SnmpPollError(
                    FailureKind.LOOP, self.access.where, detail=twice if len(twice) < _SHOWN else f"{twice[:_SHOWN]}..."
                )
            if len(walk.rows) > most:
                raise SnmpPollError(FailureKind.TOO_MANY, self.access.where, detail=f"{most:,}")
            now = self.clock()
            self._sizes.answered(oid, walk.repetitions)
            if len(more) >= self._limits.repetitions.now and now - began < _FAST_S:
                self._limits = self._limits.quick(now)
                if len(walk.rows) == len(more) and self._limits.rows(oid) > walk.repetitions and not walk.over:
                    walk = Walk(oid, self._limits.rows(oid))  # which is fixed: one answer is lost, and many are saved
                    continue
            if walk.inconclusive and not await self._ended(walk, deadline):
                walk = Walk(oid, self._limits.rows(oid))
        return walk.rows

    async def _ended(self, walk: Walk, deadline: float) -> bool:
        """Whether a walk has ended that brought no row in its last answer. Raises the failure where it failed instead.

        Under encryption gufo-snmp cannot tell an end from an error, so pysnmp asks for the row after the last one, at
        most once in ``SURE_S``. False if there is one, which is then too large for gufo-snmp: pysnmp reads the column.
        """
        oid, now = walk.oid, self.clock()
        ended_s, failure = self._endings.get(oid, (-SURE_S, None))
        if now - ended_s >= SURE_S:
            share_s = min(self.options.share_s, max(_ENOUGH_S, deadline - now))
            try:
                async with self._lock:
                    connection = await self.link.second(share_s)
                    rows = await connection.following(walk.last, 1, share_s)
            except SnmpPollError as error:
                failure = error if error.status else None
            else:
                failure = None
                if any(value is not None and name.startswith(oid + ".") for name, value in rows):
                    if (switched := self._limits.switched(oid)) is None:
                        raise SnmpPollError(FailureKind.TOO_LARGE, self.access.where, detail="more than 2,048")
                    self._limits = switched
                    return False
            if len(self._endings) < _MAX_ENDINGS:
                self._endings[oid] = (now, failure)
        if failure is not None:
            raise failure
        return True


@dataclass(frozen=True, slots=True)
class SessionAsker:
    """A session as profiles use it: with the deadline of a poll, and without a table that spoils all others.

    A table whose walk fails for a reason of its own is left out, and is in the session's ``refusals``. Not at its first
    failure, though, if the device has answered it before: then the poll fails, for an agent that is busy for a moment
    has not lost its table. ``answered`` are the columns that were answered the last time.
    """

    session: Session
    answered: set[str] = field(default_factory=set)
    deadline_s: float = 0.0

    def until(self, deadline_s: float) -> SessionAsker:
        """The asker of one poll, or of one survey in the background."""
        return SessionAsker(self.session, self.answered, deadline_s)

    async def get(self, oids: Sequence[str]) -> Mapping[str, Value]:
        """The values of whole objects; those that the agent does not have are absent."""
        return await self.session.get(oids, self.deadline_s)

    async def walk(self, columns: Sequence[str]) -> Mapping[str, Value]:
        """All values below some objects."""
        left = list(dict.fromkeys(columns))
        found = dict.fromkeys(left, _NO_ROWS)
        while left:
            column = left.pop(0)
            found[column] = await self._column(column)
            self._bounded(found)
            if left and len(found[column]) >= LARGE_ROWS and (others := self.session.beside()):
                left += await self._abreast(left, found, others)
        values: dict[str, Value] = {}
        for rows in found.values():
            values |= rows
        return values

    async def _column(self, column: str) -> Mapping[str, Value]:
        """All values below one object; none where it is refused."""
        try:
            rows = await self.session.walk((column,), self.deadline_s)
        except SnmpPollError as failure:
            if column in self.answered or not self.session.refuse(column, failure):
                self.answered.discard(column)
                raise
            return _NO_ROWS
        self.answered.add(column)
        self.session.allow(column)
        return rows

    async def _abreast(
        self, left: list[str], found: dict[str, Mapping[str, Value]], others: Sequence[Session]
    ) -> list[str]:
        """Walks what is left, each session one column after the other. Returns the columns at which another session
        failed: there is none beside this one from then on, and this one finds out why."""
        failed: list[str] = []

        async def take() -> None:
            while left:
                column = left.pop(0)
                found[column] = await self._column(column)
                self._bounded(found)

        async def help_with(other: Session) -> None:
            while left and not failed:
                column = left.pop(0)
                other.learn(self.session)
                try:
                    found[column] = await other.walk((column,), self.deadline_s)
                except SnmpPollError:
                    failed.append(column)
                else:
                    self.answered.add(column)
                    self.session.allow(column)

        helping = [asyncio.create_task(help_with(other)) for other in others]
        try:
            await take()
            await asyncio.gather(*helping)
        finally:
            for task in helping:
                task.cancel()
            await asyncio.gather(*helping, return_exceptions=True)
        self._bounded(found)
        if failed:
            await self.session.alone()
        return failed

    def _bounded(self, found: Mapping[str, Mapping[str, Value]]) -> None:
        if sum(map(len, found.values())) > MAX_VALUES:
            raise SnmpPollError(FailureKind.TOO_MANY, self.session.access.where, detail=f"{MAX_VALUES:,}")
