"""One agent, asked for as long as a run lasts: batches, retries within a deadline, resynchronisation, bounded walks.

What is missing on the agent is missing in the answer; what the agent refuses with an error is in ``refusals`` as well.
A session is safe for concurrent use: requests take turns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from soakwatch.snmp.access import Access
from soakwatch.snmp.address import resolve
from soakwatch.snmp.batches import Batch, batches, halves, without
from soakwatch.snmp.diagnosis import SYS_UPTIME, diagnose, discover
from soakwatch.snmp.gufo_session import open_gufo
from soakwatch.snmp.line import Column, Counters, Line, Row, Value
from soakwatch.snmp.trouble import TOO_BIG, Kind, SnmpFailed, status_name

MOST_ROWS = 200_000  # of one column
MOST_VALUES = 1_000_000  # of one walk
STALE_S = 120.0  # the time window is 150 s (RFC 3414 section 2.2.3)
DIAGNOSE_AGAIN_S = 60.0
DIAGNOSIS_S = 5.0
_FAST_S = 0.1  # an answer within this could have been longer
_MOST_REPETITIONS = 50
SURE_S = 600.0
_MOST_ENDINGS = 1000
_SMALL = 8  # a request of so few objects was not lost for its size
_ENOUGH_S = 0.005

_AGAIN = frozenset({Kind.NO_ANSWER, Kind.TIME_WINDOW, Kind.ENGINE_ID, Kind.MALFORMED})
_RESYNC = frozenset({Kind.TIME_WINDOW, Kind.ENGINE_ID, Kind.AUTH_KEY})
_UNCLEAR = frozenset({Kind.NO_ANSWER, Kind.TIME_WINDOW, Kind.ENGINE_ID, Kind.MALFORMED})
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Manner:
    """How to ask: ``share_s`` is the longest wait for one answer."""

    engine: Literal["gufo", "pysnmp"] = "gufo"
    share_s: float = 1.0
    retries: int = 1
    repetitions: int = 20
    objects: int = 40


@dataclass(slots=True)
class Session:
    """The line to one agent, opened when it is needed and opened anew when it is lost. Close it.

    A ``deadline`` is a time of ``clock``: no request goes on after it.
    """

    access: Access  # its address may be a name
    manner: Manner
    clock: Callable[[], float] = time.monotonic
    counters: Counters = field(default_factory=Counters)
    refusals: dict[str, str] = field(default_factory=dict)  # object -> error-status
    engine_changes: list[tuple[bytes, bytes]] = field(default_factory=list)
    engine_id: bytes = b""
    _line: Line | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _objects: int = 0
    _repetitions: int = 0
    _answered_at: float | None = None
    _streak: int = 0
    _replaced: bool = False  # the agent's engine ID is not the first any more
    _diagnosis: asyncio.Task[SnmpFailed] | None = None
    _diagnosed_at: float = 0.0
    _diagnoses: int = 0
    _numeric: Access | None = None
    _endings: dict[str, tuple[float, SnmpFailed | None]] = field(default_factory=dict)

    async def get(self, oids: Sequence[str], deadline: float) -> dict[str, Value]:
        """Values of these objects; what the agent does not have is absent. Raises SnmpFailed."""
        found: dict[str, Value] = {}
        self._objects = self._objects or self.manner.objects
        left = batches(oids, self._objects, self.refusals)
        while left:
            batch = left.pop(0)
            try:
                answer, sure = await self._exchange(_Get(batch), deadline)
            except SnmpFailed as failure:
                left = self._parts(batch, failure, deadline) + left
                continue
            if not sure:
                if len(batch) == 1:
                    self.refusals[batch[0]] = "an error that its encryption hides"
                left = halves(batch) + left
                continue
            for oid in batch if self.refusals else ():
                self.refusals.pop(oid, None)
            found.update(answer)
        return found

    async def walk(self, columns: Sequence[str], deadline: float) -> dict[str, Value]:
        """All instances below these objects. Raises SnmpFailed, also for a table without end."""
        found: dict[str, Value] = {}
        for oid in dict.fromkeys(columns):
            found.update(await self._column(oid, min(MOST_ROWS, MOST_VALUES - len(found)), deadline))
        return found

    async def explain(self, failure: SnmpFailed, deadline: float) -> SnmpFailed:
        """The failure with its cause, if that can be told: the agent is asked once a streak, beside the polls."""
        if failure.kind not in _UNCLEAR:
            return failure
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
            return SnmpFailed(Kind.FLAKY, cause.where)  # the key was right until now: a lost datagram is likelier
        return cause

    async def close(self) -> None:
        """End it: nothing of it is under way any more."""
        if self._diagnosis is not None:
            self._diagnosis.cancel()
            await asyncio.gather(self._diagnosis, return_exceptions=True)
        self._drop()

    # --- requests -----------------------------------------------------------------------------------------

    async def _exchange(self, use: Callable[[Line, float], Awaitable[_T]], deadline: float) -> _T:
        """One request with its retries: each gets its share of what is left."""
        failure = SnmpFailed(Kind.TOO_SLOW, self.access.where)
        for left in range(self.manner.retries + 1, 0, -1):
            share_s = min(self.manner.share_s, (deadline - self.clock()) / left)
            if share_s < _ENOUGH_S:
                break
            async with self._lock:
                try:
                    result = await use(await self._ready(share_s), share_s)
                except SnmpFailed as error:
                    failure = error
                    self._learn(error)
                    if error.kind not in _AGAIN:
                        raise
                else:
                    self._well()
                    return result
        raise failure

    async def _ready(self, share_s: float) -> Line:
        """The line, with what it knows of the agent's clock fresh enough (RFC 3414 section 2.2.3)."""
        if self._line is None:
            self._line = await self._open(share_s)
            now_id = self._line.engine_id
            if self.engine_id and now_id and now_id != self.engine_id:
                self.engine_changes.append((self.engine_id, now_id))
                del self.engine_changes[:-8]
            self.engine_id = now_id or self.engine_id
        elif self._stale():
            await self._line.refresh(share_s)
        return self._line

    def _stale(self) -> bool:
        if self.access.version != "3" or self._answered_at is None:
            return False
        return self.clock() - self._answered_at > STALE_S

    async def _open(self, share_s: float) -> Line:
        access = await self._resolved(share_s)
        self.counters.rebuilt += 1
        if self.manner.engine == "gufo":
            return await open_gufo(access, share_s, self.counters)
        from soakwatch.snmp.pysnmp_session import open_pysnmp

        engine_id = b""
        if access.version == "3":
            engine = await discover(access, share_s)
            if engine is None:
                raise SnmpFailed(Kind.NO_ANSWER, self.access.where, seconds=share_s)
            engine_id = engine.engine_id
            self._replaced |= bool(self.engine_id and engine_id != self.engine_id)
        return await open_pysnmp(access, share_s, self.counters, engine_id, changed=self._replaced)

    async def _resolved(self, timeout_s: float) -> Access:
        """The access with a numeric address; a name is looked up again whenever the line is opened after a failure."""
        if self._numeric is None:
            self._numeric = replace(self.access, address=await resolve(self.access, timeout_s))
        return self._numeric

    def _learn(self, failure: SnmpFailed) -> None:
        if failure.kind in {Kind.NO_ANSWER, Kind.REFUSED, Kind.ADDRESS}:
            self._streak += 1
        if failure.kind in _RESYNC or (self._streak and self._streak % 2 == 0):
            self._drop()

    def _well(self) -> None:
        self._answered_at = self.clock()
        self._streak = self._diagnoses = 0
        if self._diagnosis is not None and self._diagnosis.done():
            self._diagnosis = None

    def _drop(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line = None
        self._numeric = None

    # --- sizes --------------------------------------------------------------------------------------------

    def _parts(self, batch: Batch, failure: SnmpFailed, deadline: float) -> list[Batch]:
        """What of a batch is to be asked again after a failure. Raises it if there is nothing to be gained."""
        if failure.status == TOO_BIG:
            if len(batch) == 1:
                self.refusals[batch[0]] = status_name(TOO_BIG)
            self._objects = max(1, len(batch) // 2)
            return halves(batch)
        if failure.status:
            rest, culprit = without(batch, failure)
            if culprit is not None:
                self.refusals[culprit] = status_name(failure.status)
            return rest
        if self._answered_at is None or self.clock() >= deadline:
            raise failure
        if failure.kind is Kind.NO_ANSWER and len(batch) > _SMALL:
            self._objects = max(_SMALL, len(batch) // 2)
            return halves(batch)
        if failure.kind is Kind.MALFORMED:  # one value that cannot be read spoils the whole answer
            if len(batch) == 1:
                self.refusals[batch[0]] = "a value that cannot be read"
            return halves(batch)
        raise failure

    async def _column(self, oid: str, most: int, deadline: float) -> dict[str, Value]:
        self._repetitions = self._repetitions or self.manner.repetitions
        walk = _Walk(oid, self._repetitions)
        while True:
            began = self.clock()
            try:
                more = await self._exchange(walk.step, deadline)
            except SnmpFailed as failure:
                heavy = failure.status == TOO_BIG or (failure.kind is Kind.NO_ANSWER and self._answered_at is not None)
                if not heavy or walk.repetitions == 1 or self.clock() > deadline:
                    raise
                self._repetitions = max(1, walk.repetitions // 2)
                walk = _Walk(oid, self._repetitions)
                continue
            if more is None:
                if walk.doubtful:
                    await self._make_sure(oid, walk, deadline)
                return walk.rows
            if (twice := walk.take(more)) is not None:
                raise SnmpFailed(Kind.LOOP, self.access.where, detail=twice)
            if len(walk.rows) > most:
                raise SnmpFailed(Kind.TOO_MANY, self.access.where, detail=f"{most:,}")
            if len(more) >= self._repetitions and self.clock() - began < _FAST_S:
                self._repetitions = min(_MOST_REPETITIONS, self._repetitions + self._repetitions // 2 + 1)

    async def _make_sure(self, oid: str, walk: _Walk, deadline: float) -> None:
        """Did a walk end, or fail? Where encryption hides it from the library, pysnmp is asked, seldom."""
        now = self.clock()
        at, failure = self._endings.get(oid, (-SURE_S, None))
        if now - at >= SURE_S:
            failure = await self._second_opinion(next(reversed(walk.rows), oid), deadline)
            if len(self._endings) < _MOST_ENDINGS:
                self._endings[oid] = (now, failure)
        if failure is not None:
            raise failure

    async def _second_opinion(self, oid: str, deadline: float) -> SnmpFailed | None:
        from soakwatch.snmp.pysnmp_session import open_pysnmp

        share_s = min(self.manner.share_s, max(_ENOUGH_S, deadline - self.clock()))
        async with self._lock:
            line = await open_pysnmp(
                await self._resolved(share_s), share_s, self.counters, self.engine_id, changed=False
            )
            try:
                await line.column(oid, 1).more(share_s)
            except SnmpFailed as failure:
                return failure if failure.status else None
            finally:
                line.close()
        return None


@dataclass(slots=True)
class _Walk:
    """One column being read; it begins anew if the line was opened anew."""

    oid: str
    repetitions: int
    rows: dict[str, Value] = field(default_factory=dict)
    _line: Line | None = None
    _place: Column | None = None

    async def step(self, line: Line, share_s: float) -> list[Row] | None:
        """The next rows."""
        if self._place is None or self._line is not line:
            self._line, self._place = line, line.column(self.oid, self.repetitions)
            self.rows.clear()
        return await self._place.more(share_s)

    @property
    def doubtful(self) -> bool:
        """Whether its end may have been an error."""
        return self._place is not None and self._place.doubtful

    def take(self, more: list[Row]) -> str | None:
        """Keep some rows; an object that came before is given back."""
        for oid, value in more:
            if oid in self.rows:
                return oid
            self.rows[oid] = value
        return None


@dataclass(frozen=True, slots=True)
class _Get:
    """One GET; brings the values, and whether an empty answer is sure to mean that nothing is there.

    Where the error-status is hidden, an empty answer is asked for again together with an object that every agent has.
    """

    batch: Batch

    async def __call__(self, line: Line, share_s: float) -> tuple[dict[str, Value], bool]:
        answer = await line.get(self.batch, share_s)
        if answer or not line.opaque:
            return answer, True
        return answer, SYS_UPTIME in await line.get([*self.batch, SYS_UPTIME], share_s)
