"""A session as profiles use it: with the deadline of each poll, and without a table that spoils all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soakwatch.sources.profiles.value import Value
from soakwatch.sources.transport.snmp.errors import Kind, SnmpPollError, status_name
from soakwatch.sources.transport.snmp.session import MAX_VALUES, Session

_OF_ONE_TABLE = {
    Kind.LOOP: "its table never ends",
    Kind.MALFORMED: "its table holds values that cannot be read",
    Kind.TOO_LARGE: "its table holds a value that is too large",
}


class ProfileAdapter:
    """One session. A table whose walk fails for a reason of its own is left out, and is in the session's ``refusals``.

    Not at its first failure, though, if the device has answered it before: then the poll fails, for an agent that is
    busy for a moment has not lost its table.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._answered: set[str] = set()  # columns that were answered the last time

    def until(self, deadline_s: float) -> SessionAsker:
        """The asker of one poll, or of one survey in the background."""
        return SessionAsker(self._session, self._answered, deadline_s)


@dataclass(frozen=True, slots=True)
class SessionAsker:
    """A session with a deadline; ``answered`` is shared by all askers of an adapter."""

    session: Session
    answered: set[str]
    deadline_s: float

    async def get(self, oids: Sequence[str]) -> Mapping[str, Value]:
        """The values of whole objects; those that the agent does not have are absent."""
        return await self.session.get(oids, self.deadline_s)

    async def walk(self, columns: Sequence[str]) -> Mapping[str, Value]:
        """All values below some objects."""
        values: dict[str, Value] = {}
        for column in dict.fromkeys(columns):
            try:
                rows = await self.session.walk((column,), self.deadline_s)
            except SnmpPollError as failure:
                why = status_name(failure.status) if failure.status else _OF_ONE_TABLE.get(failure.kind)
                if why is None or failure.kind is Kind.DENIED or column in self.answered:
                    self.answered.discard(column)
                    raise
                self.session.refusals[column] = why
                continue
            self.answered.add(column)
            self.session.refusals.pop(column, None)
            values |= rows
            if len(values) > MAX_VALUES:
                raise SnmpPollError(Kind.TOO_MANY, self.session.access.where, detail=f"{MAX_VALUES:,}")
        return values
