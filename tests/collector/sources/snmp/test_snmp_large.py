"""Answers that are too large: for the library, for the agent, for the way. Nothing is lost, and it is learnt once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import pytest
from tests.collector.sources.snmp.doubles import agent, answer, relay, v2c

from soakwatch.sources.transport.snmp import ber
from soakwatch.sources.transport.snmp.agent_link import SessionOptions
from soakwatch.sources.transport.snmp.request_limits import RETRY_S, Amount
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError
from soakwatch.sources.transport.snmp.snmp_session import Session
from soakwatch_testing.snmp_cells import Cell, Name, dotted, integer, name_of, text
from soakwatch_testing.snmp_faults import Faults
from soakwatch_testing.snmp_mib import interfaces, system
from soakwatch_testing.snmp_responder import Responder, responder
from soakwatch_testing.snmp_usm import User

USER = User("soak", "SHA", "auth pass phrase", "AES", "priv pass phrase")
SIGNED = User("signed", "SHA", "auth pass phrase")
EMPTY, AFTER = "1.3.6.1.4.1.99.1", "1.3.6.1.4.1.99.2"
SIZES = ((120, 700), (12, 3500), (5, 9000), (2, 60_000))  # rows and bytes of each
Engine = Literal["gufo", "pysnmp"]
both = pytest.mark.parametrize("engine", ["gufo", "pysnmp"])
versions = pytest.mark.parametrize("version", ["2c", pytest.param("3 signed", marks=pytest.mark.slow), "3"])


def column(below: str, count: int, size: int) -> dict[Name, Cell]:
    """Rows of so many bytes, each different."""
    return {name_of(f"{below}.{row}"): text(bytes([row % 256]) * size) for row in range(1, count + 1)}


@contextmanager
def device(*tables: dict[Name, Cell]) -> Iterator[Responder]:
    """A device with interfaces and these tables."""
    rows = system() | interfaces(20)
    for table in tables:
        rows |= table
    with responder(rows, users=[USER, SIGNED]) as agent:
        yield agent


def access_of(agent: Responder, version: str = "2c") -> Access:
    """How to ask it."""
    if version == "2c":
        return Access("127.0.0.1", agent.address[1], "2c", community="public")
    user = SIGNED if version == "3 signed" else USER
    return Access("127.0.0.1", agent.address[1], "3", user=user.name, auth=user.auth_key, priv=user.priv_key)


def with_session(access: Access, use: Callable[[Session], Awaitable[None]], engine: Engine = "gufo") -> None:
    """Use a session."""

    async def main() -> None:
        session = Session(access, SessionOptions(engine, share_s=8.0))
        try:
            async with asyncio.timeout(200):
                await use(session)
        finally:
            await session.close()

    asyncio.run(main())


def soon(seconds: float = 100.0) -> float:
    """A deadline."""
    return time.monotonic() + seconds


async def asked(session: Session, use: Callable[[], Awaitable[object]]) -> int:
    """How many requests it takes."""
    before = session.counters.requests
    await use()
    return session.counters.requests - before


@both
@versions
def test_an_empty_column_before_large_strings_is_empty(engine: Engine, version: str) -> None:
    """A GETBULK past its end brings what lies behind it: strings of 1000 bytes, more than the library has room for."""

    async def use(session: Session) -> None:
        assert await session.walk([EMPTY], soon()) == {}
        assert len(await session.walk(["1.3.6.1.2.1.31.1.1.1.1"], soon())) == 20
        assert session.counters.unanswered == session.counters.malformed == 0

    with device(column(AFTER, 60, 1000)) as agent:
        with_session(access_of(agent, version), use, engine)


@both
@versions
def test_a_column_of_large_values_is_whole_and_asked_well_the_second_time(engine: Engine, version: str) -> None:
    """Of values that fit in with others, alone, or not at all into what the library takes."""
    sizes = {f"{AFTER}.{part}": (part, *size) for part, size in enumerate(SIZES, 1)}
    tables = {below: column(below, count, size) for below, (_, count, size) in sizes.items()}

    async def use(session: Session) -> None:
        for below, (part, count, size) in sizes.items():
            for _ in range(2):
                times = await asked(session, lambda below=below: session.walk([below], soon()))  # type: ignore[misc]
                got = await session.walk([below], soon())
                assert (part, [len(value) for value in got.values()]) == (part, [size] * count)  # type: ignore[arg-type]
                assert list(got.values()) == [cell.value for cell in tables[below].values()]
            assert times <= count + 3
        assert session.counters.unanswered == session.counters.malformed == 0
        before = await asked(session, lambda: session.walk(["1.3.6.1.2.1.31.1.1.1.1"], soon()))
        assert before <= 4  # other columns are asked for in large parts as ever

    with device(*tables.values()) as agent:
        with_session(access_of(agent, version), use, engine)


@versions
def test_names_so_long_that_a_request_is_too_large(version: str) -> None:
    """Rows by name, as load balancers have them: 40 of 120 characters are no request for the fast library."""
    rows: dict[Name, Cell] = {}
    for number in range(1, 41):
        name = f"/Common/{'a-long-name-' * 9}{number:04}"
        rows[name_of(".".join(map(str, (AFTER, len(name), *(ord(letter) + 900 for letter in name)))))] = integer(number)
    oids = [dotted(name) for name in rows]

    async def use(session: Session) -> None:
        for _ in range(2):
            times = await asked(session, lambda: session.get(oids, soon()))
            assert list((await session.get(oids, soon())).values()) == list(range(1, 41))
            assert list((await session.walk([AFTER], soon())).values()) == list(range(1, 41))
        assert times <= 8
        assert session.counters.unanswered == session.counters.malformed == 0
        assert session.refusals == {}

    with device(rows) as agent:
        with_session(access_of(agent, version), use)


@both
@versions
def test_a_large_value_among_others_costs_the_others_nothing(engine: Engine, version: str) -> None:
    """It is asked for alone from then on, and 60 small ones in two requests as before."""
    small = [f"1.3.6.1.2.1.31.1.1.1.{part}.{row}" for part in (1, 6, 10) for row in range(1, 21)]

    async def use(session: Session) -> None:
        wanted = [*small[:30], f"{AFTER}.1", *small[30:], f"{AFTER}.2"]
        for _ in range(2):
            times = await asked(session, lambda: session.get(wanted, soon()))
            got = await session.get(wanted, soon())
            assert set(got) == set(wanted)
            assert got[f"{AFTER}.1"] == b"\1" * 20_000
            assert session.refusals == {}
        assert times == (4 if engine == "gufo" else 2)  # pysnmp has room for all
        assert session.counters.unanswered == session.counters.malformed == 0

    with device(column(AFTER, 2, 20_000)) as agent:
        with_session(access_of(agent, version), use, engine)


@both
def test_what_no_library_can_read_is_refused_and_the_rest_is_there(engine: Engine) -> None:
    """The agent itself has no room for the value: tooBig, whoever asks."""
    small = [f"1.3.6.1.2.1.31.1.1.1.1.{row}" for row in range(1, 21)]

    async def use(session: Session) -> None:
        for _ in range(3):
            got = await session.get([*small, f"{AFTER}.1"], soon())
            assert set(got) == set(small)
            assert session.refusals == {f"{AFTER}.1": "its value is too large for an answer"}
        assert await asked(session, lambda: session.get(small, soon())) == 1
        with pytest.raises(SnmpPollError, match="tooBig"):
            await session.walk([AFTER], soon())

    with device(column(AFTER, 1, 3000)) as agent:
        agent.misbehave(Faults(most_octets=1500))
        with_session(access_of(agent), use, engine)


@pytest.mark.parametrize("size", [4080, 4081])
def test_the_room_of_the_library_is_what_we_think(size: int) -> None:
    """So many bytes are read by the fast library; with one more the other one is asked, and the value is the same."""

    def respond(data: bytes) -> Iterable[tuple[float, bytes]]:
        parse_message = v2c(data)
        oid = parse_message[1].binds[0][0] if parse_message else ""
        room = size - len(answer(data, [(oid, ber.tlv(ber.OCTETS, b""))]))
        for filled in range(room - 10, room + 1):  # lengths of lengths
            whole = answer(data, [(oid, ber.tlv(ber.OCTETS, b"x" * filled))])
            if len(whole) == size:
                yield 0, whole

    async def main() -> None:
        async with AsyncExitStack() as stack:
            double, port = await agent(stack, respond)
            session = Session(Access("127.0.0.1", port, "2c", community="public"), SessionOptions(share_s=2.0))
            stack.push_async_callback(session.close)
            got = await session.get([f"{AFTER}.1"], soon())
            assert 3900 < len(bytes(got[f"{AFTER}.1"])) < size  # type: ignore[arg-type]
            assert double.asked == (1 if size == 4080 else 2)

    asyncio.run(main())


@both
def test_a_network_that_drops_large_datagrams_is_learnt(engine: Engine) -> None:
    """No answer of more than 1400 bytes arrives: the table is whole all the same, and the second time at once."""

    async def main(port: int) -> None:
        async with AsyncExitStack() as stack:
            narrow = await relay(stack, port, lambda data, asks: data if asks or len(data) <= 1400 else None)
            access = Access("127.0.0.1", narrow, "2c", community="public")
            session = Session(access, SessionOptions(engine, share_s=0.5, retries=0))
            stack.push_async_callback(session.close)
            await session.get(["1.3.6.1.2.1.1.3.0"], soon())
            for _ in range(2):
                lost = session.counters.unanswered
                assert len(await session.walk([AFTER], soon())) == 60
                assert len(await session.get([f"{AFTER}.{row}" for row in range(1, 41)], soon())) == 40
            assert lost > 0
            assert session.counters.unanswered == lost

    with device(column(AFTER, 60, 100)) as agent:
        asyncio.run(main(agent.address[1]))


def test_a_value_that_was_large_once_goes_back_to_the_fast_library() -> None:
    """And an error that encryption hides is reported by its name."""

    async def main(agent: Responder) -> None:
        session = Session(access_of(agent, "3"), SessionOptions(share_s=2.0))
        try:
            for size in (5000, 10, 10, 5000):
                agent.set(f"{AFTER}.1", b"x" * size)
                assert await session.get([f"{AFTER}.1"], soon()) == {f"{AFTER}.1": b"x" * size}
            agent.set(f"{AFTER}.1", 7)
            await session.get([f"{AFTER}.1"], soon())
            rebuilt = session.counters.requests
            assert await session.get([f"{AFTER}.1"], soon()) == {f"{AFTER}.1": 7}
            assert session.counters.requests == rebuilt + 1
            agent.misbehave(Faults(gen_err=(AFTER,)))
            assert await session.get([f"{AFTER}.1"], soon()) == {}
            assert session.refusals == {f"{AFTER}.1": "genErr"}
            agent.misbehave(Faults())
            assert await session.get([f"{AFTER}.1"], soon()) == {f"{AFTER}.1": 7}
            assert session.refusals == {}
        finally:
            await session.close()

    with device(column(AFTER, 1, 10)) as agent:
        asyncio.run(main(agent))


def test_a_large_answer_beyond_the_deadline_is_no_hang() -> None:
    """The other library gets what is left of the time, and no more."""

    async def main(agent: Responder) -> None:
        session = Session(replace(access_of(agent), port=agent.address[1]), SessionOptions(share_s=5.0))
        try:
            await session.get(["1.3.6.1.2.1.1.3.0"], soon())
            assert len(await session.get([f"{AFTER}.1"], soon())) == 1
            agent.misbehave(Faults(drop=1.0))
            began = time.monotonic()
            with pytest.raises(SnmpPollError) as failure:
                await session.get(["1.3.6.1.2.1.1.3.0", f"{AFTER}.1"], soon(0.5))
            assert failure.value.kind is FailureKind.NO_ANSWER
            assert time.monotonic() - began < 4.5  # a share alone is 5 s
        finally:
            await session.close()

    with device(column(AFTER, 1, 9000)) as agent:
        asyncio.run(main(agent))


@dataclass
class _Days:
    """A way that swallows requests of more than ``room`` objects, asked every 10 s."""

    room: int
    lost: int = 0

    def soak(self, hours: int, amount: Amount) -> None:
        for second in range(0, hours * 3600, 10):
            amount = amount.whole(float(second))
            if amount.now > self.room:
                self.lost += 1
                amount = amount.less(amount.now, float(second))


def test_an_amount_that_was_too_much_is_tried_again_seldom() -> None:
    """72 hours: a narrow way costs a few polls; after one bad hour the whole amount is asked for again."""
    narrow = _Days(10)
    narrow.soak(72, Amount(40, 40))
    assert 2 <= narrow.lost <= 20
    amount = Amount(40, 40).less(40, 0.0).less(20, 1.0)
    assert amount.now == 10
    assert amount.whole(RETRY_S - 1).now == 10
    assert amount.whole(RETRY_S).now == 40
