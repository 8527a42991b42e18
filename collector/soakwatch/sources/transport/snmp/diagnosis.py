"""Why does an agent not answer? A few requests on sockets of their own, made once when polls begin to fail.

SNMP agents drop what they do not accept without a word (RFC 1157 section 4.1, RFC 3414 section 3.2), so a lost poll
says nothing. A closed port, an SNMPv3 discovery and a request without privacy tell the causes apart. They do not tell
a community that is wrong from one that may not read from this address.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_connection import SYS_UPTIME, Counters
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError

_AGAIN_S = 60.0
_TIME_S = 5.0  # for an answer: more than a poll gives
_AFTER_DISCOVERY_S = 0.15  # an agent that answered a discovery needs no longer than this for a GET, beside its way


@dataclass(slots=True)
class Diagnosis:
    """The diagnosis of one agent, made beside the polls once a streak of failures, and again once a minute.

    ``limit_s`` is how long a request of a poll waits: an answer that takes longer is late.
    """

    limit_s: float
    _task: asyncio.Task[SnmpPollError] | None = None
    _begun_s: float = 0.0
    _count: int = 0  # in this streak

    def due(self, now_s: float) -> bool:
        """Whether it is to be made, or made again."""
        return self._task is None or (self._task.done() and now_s - self._begun_s > _AGAIN_S)

    def begin(self, access: Access, now_s: float) -> None:
        """Makes it in the background."""
        self._begun_s, self._count = now_s, self._count + 1
        self._task = asyncio.create_task(diagnose(access, self.limit_s))

    async def explain(self, failure: SnmpPollError, timeout_s: float, *, well: bool) -> SnmpPollError:
        """The cause of a failure if it is known by then, else the failure. ``well``: the agent has answered before."""
        assert self._task is not None
        await asyncio.wait((self._task,), timeout=max(0.0, timeout_s))
        if not self._task.done():
            return failure
        cause = self._task.result()
        if cause.kind is FailureKind.PRIV_KEY and well and self._count < 2:
            return SnmpPollError(
                FailureKind.FLAKY, cause.where
            )  # the key was right until now: a lost datagram is likelier
        return cause

    async def cause(self) -> SnmpPollError | None:
        """What it found; None where nothing was wrong."""
        if self._task is None:
            return None
        await asyncio.wait((self._task,), timeout=_TIME_S + 1)
        return self._task.result() if self._task.done() else None

    def answered(self) -> None:
        """The agent answers again: what was found is of the past."""
        self._count = 0
        if self._task is not None and self._task.done():
            self._task = None

    async def close(self) -> None:
        """Ends it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def diagnose(access: Access, limit_s: float) -> SnmpPollError:
    """What is wrong with this access. ``limit_s`` is how long a poll's request waits: later is too late."""
    if access.version != "3":
        return await _diagnose_community(access, limit_s)
    if (failure := await _discovered(access)) is not None:
        return failure
    said = await _asked(replace(access, priv=""), limit_s)
    answered = said.status or said.kind in {FailureKind.LATE, FailureKind.FLAKY}
    # An agent that answers the user without privacy, but not with it, does not know the privacy key.
    return SnmpPollError(FailureKind.PRIV_KEY, access.where) if access.priv and answered else said


async def _diagnose_community(access: Access, limit_s: float) -> SnmpPollError:
    """An agent that says nothing to the community but answers a discovery does not know the community."""
    began = time.monotonic()
    asked = asyncio.create_task(_asked(access, limit_s))
    seen = asyncio.create_task(_discovered(access))
    try:
        await asyncio.wait((asked, seen), return_when=asyncio.FIRST_COMPLETED)
        if not asked.done() and seen.result() is None:
            await asyncio.wait((asked,), timeout=_AFTER_DISCOVERY_S + 2 * (time.monotonic() - began))
        if (asked.done() or seen.result() is not None) and (await asked).kind is not FailureKind.NO_ANSWER:
            return asked.result()
        return await seen or SnmpPollError(FailureKind.COMMUNITY, access.where)
    finally:
        for task in (asked, seen):
            task.cancel()
        await asyncio.gather(asked, seen, return_exceptions=True)


async def _asked(access: Access, limit_s: float) -> SnmpPollError:
    """What comes of a request for the agent's uptime."""
    from soakwatch.sources.transport.snmp.gufo_connection import open_gufo

    try:
        connection = await open_gufo(access, _TIME_S, Counters())
        try:
            began = time.monotonic()
            await connection.get((SYS_UPTIME,), _TIME_S)
        finally:
            connection.close()
    except SnmpPollError as failure:
        return failure
    took_s = time.monotonic() - began
    if took_s > limit_s:
        return SnmpPollError(FailureKind.LATE, access.where, detail=f"{took_s:.2g} s")
    return SnmpPollError(FailureKind.FLAKY, access.where)


async def _discovered(access: Access) -> SnmpPollError | None:
    """Why a discovery of SNMPv3 was not answered; None if it was."""
    from soakwatch.sources.transport.snmp.gufo_connection import discover

    try:
        await discover(access, _TIME_S)
    except SnmpPollError as failure:
        return SnmpPollError(FailureKind.SILENT, access.where) if failure.kind is FailureKind.NO_ANSWER else failure
    return None
