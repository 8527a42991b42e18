"""Large tables: the rows of an answer are learnt in the first column, and a survey walks columns abreast."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import pytest

from soakwatch.sources.transport.snmp.agent_link import SessionOptions
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_connection import Value
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError
from soakwatch.sources.transport.snmp.snmp_session import LARGE_ROWS, MOST_ABREAST, Session, SessionAsker
from soakwatch_testing.snmp_mib import interfaces, system
from soakwatch_testing.snmp_responder import responder
from soakwatch_testing.snmp_usm import User

ROWS = 2 * LARGE_ROWS
X_TABLE = "1.3.6.1.2.1.31.1.1.1"
COLUMNS = [f"{X_TABLE}.{column}" for column in (1, 6, 10, 7, 11, 8, 15, 18)]
MOST_ROWS = 150  # of an answer
USER = User("soak", "SHA", "auth pass phrase", "AES", "priv pass phrase")


def _walked(use: Callable[[Session], object], version: str = "2c", rows: int = ROWS) -> None:
    """Uses a session with a device of so many interfaces."""

    async def main(port: int) -> None:
        v3 = Access("127.0.0.1", port, "3", user=USER.name, auth=USER.auth_key, priv=USER.priv_key)
        access = Access("127.0.0.1", port, "2c", community="public") if version == "2c" else v3
        session = Session(access, SessionOptions(share_s=30.0))
        try:
            async with asyncio.timeout(300):
                await use(session)  # type: ignore[misc]
        finally:
            await session.close()

    with responder(system() | interfaces(rows), users=[USER]) as device:
        asyncio.run(main(device.address[1]))


def _asker(session: Session) -> SessionAsker:
    return SessionAsker(session).until(time.monotonic() + 300)


class _Watched:
    """Watches the walks of all sessions: how many go on at once, and makes those of others than ``own`` fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, own: Session | None = None) -> None:
        self.now = self.most = self.failed = 0
        walk = Session.walk

        async def watched(session: Session, columns: Sequence[str], deadline: float) -> Mapping[str, Value]:
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                if own is not None and session is not own:
                    self.failed += 1
                    raise SnmpPollError(FailureKind.NO_ANSWER, "the device")
                return await walk(session, columns, deadline)
            finally:
                self.now -= 1

        monkeypatch.setattr(Session, "walk", watched)


def test_the_rows_of_an_answer_are_learnt_in_the_first_column() -> None:
    """Twenty at first, half as many more after each answer that comes soon: six answers, not six columns."""

    async def use(session: Session) -> None:
        assert len(await session.walk(COLUMNS[:1], time.monotonic() + 300)) == ROWS
        first = session.counters.requests
        assert len(await session.walk(COLUMNS[1:2], time.monotonic() + 300)) == ROWS
        if session.counters.requests - first <= ROWS // MOST_ROWS + 1:  # no answer was late on a busy machine
            assert first <= ROWS // MOST_ROWS + 8

    _walked(use)


@pytest.mark.parametrize("version", ["2c", pytest.param("3", marks=pytest.mark.slow)])
def test_a_survey_walks_at_most_four_columns_at_once(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds what a walk of one column after the other finds, in the same order; afterwards they take turns again."""

    async def use(session: Session) -> None:
        alone = dict(await _asker(session).walk(COLUMNS))
        watched = _Watched(monkeypatch)
        async with session.abreast():
            values = await _asker(session).walk(COLUMNS)
        assert list(values) == list(alone)
        assert watched.most == MOST_ABREAST
        watched.most = 0
        await _asker(session).walk(COLUMNS)
        assert watched.most == 1

    _walked(use, version)


def test_small_tables_are_walked_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most devices never see a second connection."""

    async def use(session: Session) -> None:
        watched = _Watched(monkeypatch)
        async with session.abreast():
            assert len(await _asker(session).walk(COLUMNS)) == 50 * len(COLUMNS)
        assert watched.most == 1

    _walked(use, rows=50)


def test_what_the_other_sessions_cannot_have_the_first_one_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that answers one client only: nothing is missing, and the others are not tried again."""

    async def use(session: Session) -> None:
        watched = _Watched(monkeypatch, own=session)
        async with session.abreast():
            assert len(await _asker(session).walk(COLUMNS)) == ROWS * len(COLUMNS)
            assert 1 <= watched.failed < MOST_ABREAST
            assert session.beside() == ()

    _walked(use)
