"""One agent, asked for as long as a run lasts: batches, retries within a deadline, resynchronisation, bounded walks.

What is missing on the agent is missing in the answer; what the agent refuses with an error is in ``refusals`` as well.
A session is safe for concurrent use: requests take turns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from soakwatch.sources.transport.snmp.abc import Connection, Counters, Value
from soakwatch.sources.transport.snmp.access import Access, resolve
from soakwatch.sources.transport.snmp.batches import Batch, batches, halves, without
from soakwatch.sources.transport.snmp.diagnosis import diagnose, discover
from soakwatch.sources.transport.snmp.errors import NO_SUCH_NAME, TOO_BIG, Kind, SnmpPollError, status_name
from soakwatch.sources.transport.snmp.gufo_session import open_gufo
from soakwatch.sources.transport.snmp.requests import Get, Walk
from soakwatch.sources.transport.snmp.round_trips import RoundTrips
from soakwatch.sources.transport.snmp.sizes import Amount, Columns

if TYPE_CHECKING:
    from soakwatch.sources.transport.snmp.pysnmp_session import PysnmpConnection

MAX_ROWS = 200_000  # of one column
MAX_VALUES = 1_000_000  # of one walk
STALE_S = 120.0  # the time window is 150 s (RFC 3414 section 2.2.3)
DIAGNOSE_AGAIN_S = 60.0
DIAGNOSIS_S = 5.0
_FAST_S = 0.1  # an answer within this could have been longer
_MAX_REPETITIONS = 50
SURE_S = 600.0
_MAX_ENDINGS = 1000
_SMALL = 8  # a request of so few objects was not lost for its size
_ENOUGH_S = 0.005
_MAX_OVERSIZED = 1000
_MAX_REFUSALS = 10_000
_MAX_LATE = 10  # answers that came while one request waited for its own
_SHOWN = 100  # characters of an object identifier
_ROUNDS = 3  # of a request and its repeats, where others are answered meanwhile
_LONG = 1500  # bytes of a value that may be too much for an answer of SNMPv3 (gufo-snmp takes 2048)

_AGAIN = frozenset({Kind.NO_ANSWER, Kind.TIME_WINDOW, Kind.ENGINE_ID, Kind.MALFORMED})
_RESYNC = frozenset({Kind.TIME_WINDOW, Kind.ENGINE_ID, Kind.AUTH_KEY})
_UNCLEAR = frozenset({Kind.NO_ANSWER, Kind.TIME_WINDOW, Kind.ENGINE_ID, Kind.MALFORMED})
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How to ask: ``share_s`` is the longest wait for one answer.

    A request takes ``retries`` + 1 times that at most; where answers are known to come sooner it is repeated sooner and
    more often within that time.
    """

    engine: Literal["gufo", "pysnmp"] = "gufo"
    share_s: float = 1.0
    retries: int = 1
    repetitions: int = 20
    objects: int = 40


@dataclass(slots=True)
class Session:
    """The connection to one agent, opened when it is needed and again when it is lost. Close it.

    A ``deadline`` is a time of ``clock``: no request goes on after it.
    """

    access: Access  # its address may be a name
    manner: SessionOptions
    clock: Callable[[], float] = time.monotonic
    counters: Counters = field(default_factory=Counters)
    refusals: dict[str, str] = field(default_factory=dict)  # object -> error-status
    engine_changes: list[tuple[bytes, bytes]] = field(default_factory=list)
    engine_id: bytes = b""
    _connection: Connection | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _objects: Amount = field(init=False)
    _repetitions: Amount = field(init=False)
    _columns: Columns = field(default_factory=Columns)
    _huge: set[str] = field(default_factory=set)  # what gufo-snmp cannot read, and pysnmp is asked for
    _second: PysnmpConnection | None = None
    trips: RoundTrips = field(default_factory=RoundTrips)
    _answered_at: float | None = None
    _streak: int = 0
    _late: int = 0  # answers after their time that the round trips know of
    _replaced: bool = False  # the agent's engine ID is not the first any more
    _diagnosis: asyncio.Task[SnmpPollError] | None = None
    _diagnosed_at: float = 0.0
    _diagnoses: int = 0
    _numeric: Access | None = None
    _endings: dict[str, tuple[float, SnmpPollError | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._objects = Amount(self.manner.objects, self.manner.objects)
        self._repetitions = Amount(max(_MAX_REPETITIONS, self.manner.repetitions), self.manner.repetitions)

    async def get(self, oids: Sequence[str], deadline: float) -> dict[str, Value]:
        """Values of these objects; what the agent does not have is absent. Raises SnmpPollError."""
        values: dict[str, Value] = {}
        if len(self.refusals) > _MAX_REFUSALS:
            self.refusals.clear()  # what is still refused is soon known again
        left = batches(oids, self._objects.whole(self.clock()), {*self.refusals, *self._huge})
        while left:
            batch = left.pop(0)
            second = len(batch) == 1 and batch[0] in self._huge
            try:
                answer, sure = await self._exchange(Get(batch), deadline, second=second)
            except SnmpPollError as failure:
                left = self._parts(batch, failure, deadline) + left
                continue
            if not sure:
                if len(batch) > 1:
                    self._objects.less(len(batch), self.clock())  # it may have been tooBig
                left = (halves(batch) or self._lone(batch, "an error that encryption hides")) + left
                continue
            if second and not _long(answer.get(batch[0])):
                self._huge.discard(batch[0])
            for oid in batch if self.refusals else ():
                self.refusals.pop(oid, None)
            values.update(answer)
        return values

    async def walk(self, columns: Sequence[str], deadline: float) -> dict[str, Value]:
        """All instances below these objects. Raises SnmpPollError, also for a table without end."""
        values: dict[str, Value] = {}
        for oid in dict.fromkeys(columns):
            values.update(await self._column(oid, min(MAX_ROWS, MAX_VALUES - len(values)), deadline))
        return values

    async def explain(self, failure: SnmpPollError, deadline: float) -> SnmpPollError:
        """The failure with its cause, if that can be told: the agent is asked once a streak, beside the polls."""
        if failure.kind not in _UNCLEAR:
            return failure
        if failure.kind is Kind.NO_ANSWER and self.lossy:
            return self.lost()
        now = self.clock()
        if self._diagnosis is None or (self._diagnosis.done() and now - self._diagnosed_at > DIAGNOSE_AGAIN_S):
            self._diagnosed_at = now
            self._diagnoses += 1
            access = await self._resolved(self.manner.share_s)
            self._diagnosis = asyncio.create_task(diagnose(access, DIAGNOSIS_S, self.manner.share_s))
        await asyncio.wait((self._diagnosis,), timeout=max(0.0, deadline - self.clock()))
        if not self._diagnosis.done():
            return failure
        cause = self._diagnosis.result()
        if cause.kind is Kind.PRIV_KEY and self._answered_at is not None and self._diagnoses < 2:
            return SnmpPollError(Kind.FLAKY, cause.where)  # the key was right until now: a lost datagram is likelier
        return cause

    async def cause(self) -> SnmpPollError | None:
        """What the agent answers when it is given more time than a poll has; None where nothing was wrong."""
        if self._diagnosis is None:
            return None
        await asyncio.wait((self._diagnosis,), timeout=DIAGNOSIS_S + 1)
        return self._diagnosis.result() if self._diagnosis.done() else None

    def lost(self) -> SnmpPollError:
        """The failure of a request that was lost on a path that loses requests, with their share in tens of percent:
        one sentence for all polls that fail alike."""
        share = max(1, round(10 * self.trips.losses(self.clock()).share))
        return SnmpPollError(Kind.LOST, self.access.where, detail=f"{10 * share} %")

    async def close(self) -> None:
        """End it: nothing of it is under way any more."""
        if self._diagnosis is not None:
            self._diagnosis.cancel()
            await asyncio.gather(self._diagnosis, return_exceptions=True)
        self._drop()

    # --- requests -----------------------------------------------------------------------------------------

    async def _exchange(
        self, use: Callable[[Connection, float], Awaitable[_T]], deadline: float, *, second: bool = False
    ) -> _T:
        """One request with its repeats: each gets its share of what is left. ``second`` asks the other library.

        Where requests get lost between others that are answered, all that is tried some times more: what a loss costs
        is one request, and not the walk that it belongs to.
        """
        failure = SnmpPollError(Kind.TOO_SLOW, self.access.where)
        for _ in range(_ROUNDS):
            waits = list(self.trips.waits(self.manner.share_s, self.manner.retries))
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
            if failure.kind is not Kind.NO_ANSWER or not self.trips.lossy(self.clock(), least=1):
                break
        if failure.kind is Kind.NO_ANSWER and self._streak > 1 and not self.lossy:
            self._drop()
        raise failure

    async def _attempt(self, use: Callable[[Connection, float], Awaitable[_T]], share_s: float, *, second: bool) -> _T:
        """One request; what becomes of it is remembered."""
        began, before = self.clock(), self.counters.requests
        try:
            connection = await (self._second_connection(share_s) if second else self._ready(share_s))
            began, before = self.clock(), self.counters.requests
            result = await use(connection, share_s)
        except SnmpPollError as error:
            if error.kind is Kind.NO_ANSWER:
                self.trips.lost(self.clock())
            elif error.status:
                self.trips.answered(self.clock(), self.clock() - began)
            self._learn(error)
            raise
        else:
            if self.counters.requests > before:  # the end of a walk is known without asking
                self.trips.answered(self.clock(), self.clock() - began)
            self._well()
            return result
        finally:
            for _ in range(min(_MAX_LATE, self.counters.late - self._late)):
                self.trips.late(self.clock())
            self._late = self.counters.late

    @property
    def lossy(self) -> bool:
        """Whether requests get lost between others that are answered."""
        return self.trips.lossy(self.clock())

    async def _ready(self, share_s: float) -> Connection:
        """The line, with what it knows of the agent's clock fresh enough (RFC 3414 section 2.2.3)."""
        if self._connection is None:
            self._connection = await self._open(share_s)
            now_id = self._connection.engine_id
            if self.engine_id and now_id and now_id != self.engine_id:
                self.engine_changes.append((self.engine_id, now_id))
                self._replaced = True
                del self.engine_changes[:-8]
            self.engine_id = now_id or self.engine_id
        elif self._stale():
            await self._connection.refresh(share_s)
        return self._connection

    def _stale(self) -> bool:
        if self.access.version != "3" or self._answered_at is None:
            return False
        return self.clock() - self._answered_at > STALE_S

    async def _open(self, share_s: float) -> Connection:
        access = await self._resolved(share_s)
        self.counters.rebuilt += 1
        if self.manner.engine == "gufo":
            return await open_gufo(access, share_s, self.counters)
        from soakwatch.sources.transport.snmp.pysnmp_session import open_pysnmp

        engine_id = b""
        if access.version == "3":
            engine = await discover(access, share_s)
            if engine is None:
                raise SnmpPollError(Kind.NO_ANSWER, self.access.where, seconds=share_s)
            engine_id = engine.engine_id
            self._replaced |= bool(self.engine_id and engine_id != self.engine_id)
        return await open_pysnmp(access, self.manner.share_s, self.counters, engine_id, changed=self._replaced)

    async def _second_connection(self, share_s: float) -> PysnmpConnection:
        """A line of pysnmp beside that of gufo-snmp, for what only pysnmp can read."""
        if self._second is None:
            from soakwatch.sources.transport.snmp.pysnmp_session import open_pysnmp

            access = await self._resolved(share_s)
            self._second = await open_pysnmp(
                access, self.manner.share_s, self.counters, self.engine_id, changed=self._replaced
            )
        return self._second

    async def _resolved(self, timeout_s: float) -> Access:
        """The access with a numeric address; a name is looked up again whenever the line is opened after a failure."""
        if self._numeric is None:
            self._numeric = replace(self.access, address=await resolve(self.access, timeout_s))
        return self._numeric

    def _learn(self, failure: SnmpPollError) -> None:
        if failure.kind in {Kind.NO_ANSWER, Kind.REFUSED, Kind.ADDRESS}:
            self._streak += 1
        if failure.kind in _RESYNC or (failure.kind is not Kind.NO_ANSWER and self._streak and self._streak % 2 == 0):
            self._drop()

    def _well(self) -> None:
        self._answered_at = self.clock()
        self._streak = self._diagnoses = 0
        if self._diagnosis is not None and self._diagnosis.done():
            self._diagnosis = None

    def _drop(self) -> None:
        for connection in (self._connection, self._second):
            if connection is not None:
                connection.close()
        self._connection = self._second = None
        self._numeric = None

    # --- sizes --------------------------------------------------------------------------------------------

    def _parts(self, batch: Batch, failure: SnmpPollError, deadline: float) -> list[Batch]:
        """What of a batch is to be asked again after a failure. Raises it if there is nothing to be gained."""
        now = self.clock()
        if failure.status == TOO_BIG or failure.kind is Kind.TOO_LARGE:
            if len(batch) == 1:
                return self._lone(batch, "its value is too large for an answer", there=not failure.status)
            self._objects.less(len(batch), now)
            return halves(batch)
        if failure.status:
            rest, culprit = without(batch, failure)
            if culprit is not None:
                self.refusals[culprit] = status_name(failure.status)
                self._huge.discard(culprit)  # an error, and nothing large: the fast library sees it as well
            return rest
        if self._answered_at is None or now >= deadline:
            raise failure
        if failure.kind is Kind.NO_ANSWER and len(batch) > _SMALL:
            self._objects.less(len(batch), now, least=_SMALL)
            return halves(batch)
        if failure.kind is Kind.NO_ANSWER and batch[0] in self._huge:
            self.refusals[batch[0]] = "its answer is so large that it is lost on the way"
            return []
        if failure.kind is Kind.MALFORMED:  # one value that cannot be read spoils the whole answer
            if len(batch) == 1:
                self.refusals[batch[0]] = "its value cannot be read"
            return halves(batch)
        raise failure

    def _lone(self, batch: Batch, why: str, *, there: bool = False) -> list[Batch]:
        """One object that cannot be had: by the other library, perhaps, or it is refused.

        The other one is asked once, or whenever a value is known to be ``there``.
        """
        (oid,) = batch
        if oid not in self.refusals:
            self._objects.forgive()
        if (there or oid not in self.refusals) and self._give_over(oid):
            return [batch]
        self.refusals.setdefault(oid, why)
        return []

    def _give_over(self, oid: str) -> bool:
        """Leave an object or a column to pysnmp; False if that was tried or cannot be."""
        if self.manner.engine == "pysnmp" or oid in self._huge or len(self._huge) >= _MAX_OVERSIZED:
            return False
        self._huge.add(oid)
        self._columns.fit.pop(oid, None)
        return True

    async def _column(self, oid: str, most: int, deadline: float) -> dict[str, Value]:
        walk = self._walk_of(oid)
        while True:
            began = self.clock()
            try:
                more = await self._exchange(walk.step, deadline, second=oid in self._huge)
            except SnmpPollError as failure:
                if failure.status == NO_SUCH_NAME and self.access.version == "1":
                    return walk.rows  # nothing stands behind the column: so v1 says that (RFC 1157 section 4.1.3)
                self._lighter(walk, failure, deadline)
                walk = self._walk_of(oid)
                continue
            if more is None:
                if not walk.inconclusive or await self._ended(oid, walk, deadline):
                    return walk.rows
                walk = self._walk_of(oid)
                continue
            if (twice := walk.take(more)) is not None:
                raise SnmpPollError(
                    Kind.LOOP, self.access.where, detail=twice if len(twice) < _SHOWN else f"{twice[:_SHOWN]}..."
                )
            if len(walk.rows) > most:
                raise SnmpPollError(Kind.TOO_MANY, self.access.where, detail=f"{most:,}")
            now = self.clock()
            if len(more) >= self._repetitions.now and now - began < _FAST_S:
                self._repetitions.more(now)

    def _walk_of(self, oid: str) -> Walk:
        return Walk(oid, self._columns.rows(oid, self._repetitions.now))

    def _lighter(self, walk: Walk, failure: SnmpPollError, deadline: float) -> None:
        """A walk failed: the next attempt shall ask for less. Raises the failure if it would not help."""
        now = self.clock()
        if now > deadline:
            raise failure
        if failure.status == TOO_BIG or failure.kind is Kind.TOO_LARGE:
            if walk.repetitions > 1:
                self._columns.less(walk.oid, walk.repetitions)
            elif not self._give_over(walk.oid):
                raise failure
        elif failure.kind is Kind.NO_ANSWER and self._answered_at is not None and walk.repetitions > 1:
            self._repetitions.less(walk.repetitions, now)
        else:
            raise failure

    async def _ended(self, oid: str, walk: Walk, deadline: float) -> bool:
        """Did a walk end, or fail? Where encryption hides it from the library, pysnmp is asked, seldom.

        False if it goes on with what is too large for gufo-snmp. Raises the failure.
        """
        now = self.clock()
        ended_s, failure = self._endings.get(oid, (-SURE_S, None))
        if now - ended_s >= SURE_S:
            last = next(reversed(walk.rows), oid)
            share_s = min(self.manner.share_s, max(_ENOUGH_S, deadline - now))
            try:
                async with self._lock:
                    connection = await self._second_connection(share_s)
                    rows = await connection.following(last, 1, share_s)
            except SnmpPollError as error:
                failure = error if error.status else None
            else:
                failure = None
                if any(value is not None and name.startswith(oid + ".") for name, value in rows):
                    if not self._give_over(oid):
                        raise SnmpPollError(Kind.TOO_LARGE, self.access.where, detail="more than 2,048")
                    return False
            if len(self._endings) < _MAX_ENDINGS:
                self._endings[oid] = (now, failure)
        if failure is not None:
            raise failure
        return True


def _long(value: Value | None) -> bool:
    return isinstance(value, bytes | str) and len(value) > _LONG
