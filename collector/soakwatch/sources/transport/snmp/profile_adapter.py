"""A session as profiles ask it: with the deadline of the task that asks, and without a table that spoils all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar

from soakwatch.sources.profiles.value import Value
from soakwatch.sources.transport.snmp.errors import Kind, SnmpPollError, status_name
from soakwatch.sources.transport.snmp.session import MAX_VALUES, Session

DEADLINE: ContextVar[float] = ContextVar("deadline")
"""Of the requests of one poll, or of one survey beside it."""

_OF_ONE_TABLE = {
    Kind.LOOP: "its table never ends",
    Kind.MALFORMED: "its table holds what cannot be read",
    Kind.TOO_LARGE: "its table holds a value that is too large",
}


class SessionAsker:
    """One session. A table whose walk fails for a reason of its own is left out, and is in the session's ``refusals``.

    Not at its first failure, though, if the device has answered it before: then the look fails, for an agent that is
    busy for a moment has not lost its table.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sound: set[str] = set()  # columns that were answered the last time

    async def get(self, oids: Sequence[str]) -> Mapping[str, Value]:
        """Values of whole objects."""
        return await self._session.get(oids, DEADLINE.get())

    async def walk(self, columns: Sequence[str]) -> Mapping[str, Value]:
        """All values below some objects."""
        found: dict[str, Value] = {}
        for column in dict.fromkeys(columns):
            try:
                rows = await self._session.walk((column,), DEADLINE.get())
            except SnmpPollError as failure:
                why = status_name(failure.status) if failure.status else _OF_ONE_TABLE.get(failure.kind)
                if why is None or failure.kind is Kind.DENIED or column in self._sound:
                    self._sound.discard(column)
                    raise
                self._session.refusals[column] = why
                continue
            self._sound.add(column)
            self._session.refusals.pop(column, None)
            found |= rows
            if len(found) > MAX_VALUES:
                raise SnmpPollError(Kind.TOO_MANY, self._session.access.where, detail=f"{MAX_VALUES:,}")
        return found
