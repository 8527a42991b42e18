"""A session with misbehaving agents: each error says what is wrong, and none hangs or raises anything else."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Literal

import pytest
from tests.collector.sources.snmp.doubles import Agent, Bind, Respond, agent, answer, v2c

from soakwatch.sources.transport.snmp import ber
from soakwatch.sources.transport.snmp.agent_link import SessionOptions
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError
from soakwatch.sources.transport.snmp.snmp_session import Session
from soakwatch_testing.ports import free_port

NULL, MISSING = ber.tlv(ber.NULL, b""), ber.tlv(0x81, b"")
OIDS = tuple(f"1.3.6.1.4.1.99.1.{number}.0" for number in range(1, 41))
COLUMN = "1.3.6.1.4.1.99.2.1"
Engine = Literal["gufo", "pysnmp"]
ENGINES: tuple[Engine, ...] = ("gufo", "pysnmp")
both = pytest.mark.parametrize("engine", ENGINES)


def values(data: bytes, value: Callable[[str], bytes] = lambda _: ber.integer(7)) -> Iterable[tuple[float, bytes]]:
    """A good answer to a GET."""
    asked = v2c(data)
    if asked is not None:
        yield 0, answer(data, [(bind[0], value(bind[0])) for bind in asked[1].binds])


def run(
    respond: Respond,
    use: Callable[[Session, Agent], Awaitable[None]],
    *,
    engine: Engine = "gufo",
    version: str = "2c",
    share_s: float = 1.0,
    retries: int = 1,
) -> None:
    """A session at an agent."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            double, port = await agent(stack, respond)
            session = Session(
                Access("127.0.0.1", port, version, community="public"),
                SessionOptions(engine, share_s, retries, repetitions=10),
            )
            stack.push_async_callback(session.close)
            async with asyncio.timeout(200):
                await use(session, double)

    asyncio.run(main())


def soon(seconds: float = 60.0) -> float:
    """A deadline."""
    return time.monotonic() + seconds


@both
def test_missing_objects_are_missing_and_no_error(engine: Engine) -> None:
    """Some of them, or all."""

    async def use(session: Session, _: Agent) -> None:
        got = await session.get(OIDS, soon())
        assert set(got) == {oid for oid in OIDS if int(oid.split(".")[-2]) % 2}
        assert await session.get(OIDS[1::2], soon()) == {}
        assert session.refusals == {}

    run(lambda d: values(d, lambda oid: ber.integer(7) if int(oid.split(".")[-2]) % 2 else MISSING), use, engine=engine)


@both
def test_too_big_halves_the_request_and_is_remembered(engine: Engine) -> None:
    """An agent that answers 6 objects at most is asked for 40 all the same, the second time at once in small parts."""

    def respond(data: bytes) -> Iterable[tuple[float, bytes]]:
        asked = v2c(data)
        if asked is not None and len(asked[1].binds) > 6:
            return [(0, answer(data, [], 1, 0))]
        return values(data)

    async def use(session: Session, double: Agent) -> None:
        assert len(await session.get(OIDS, soon())) == 40
        before = len(double.requests)
        assert len(await session.get(OIDS, soon())) == 40
        assert len(double.requests) - before == 8  # of 5 objects each

    run(respond, use, engine=engine)


@both
@pytest.mark.parametrize("index", [3, 0])
def test_one_object_that_is_refused_does_not_take_the_others_with_it(engine: Engine, index: int) -> None:
    """genErr with or without a usable index: 39 values, and the object with its error."""

    def respond(data: bytes) -> Iterable[tuple[float, bytes]]:
        asked = v2c(data)
        names = [bind[0] for bind in asked[1].binds] if asked else []
        if OIDS[2] in names:
            where = names.index(OIDS[2]) + 1 if index else 0
            return [(0, answer(data, [(name, NULL) for name in names], 5, where))]
        return values(data)

    async def use(session: Session, double: Agent) -> None:
        for _ in range(2):
            before = len(double.requests)
            assert set(await session.get(OIDS, soon())) == set(OIDS) - {OIDS[2]}
            assert session.refusals == {OIDS[2]: "genErr"}
        assert len(double.requests) - before == 2  # it is asked alone from now on

    run(respond, use, engine=engine)


@both
def test_v1_finds_what_is_there_although_every_missing_object_is_an_error(engine: Engine) -> None:
    """noSuchName names one object after the other."""

    def respond(data: bytes) -> Iterable[tuple[float, bytes]]:
        asked = v2c(data)
        names = [bind[0] for bind in asked[1].binds] if asked else []
        for index, name in enumerate(names):
            if name in OIDS[:3]:
                return [(0, answer(data, [(name, NULL) for name in names], 2, index + 1))]
        return values(data)

    async def use(session: Session, _: Agent) -> None:
        assert set(await session.get(OIDS[:10], soon())) == set(OIDS[3:10])
        assert session.refusals == {}

    run(respond, use, engine=engine, version="1")


@both
def test_a_table_without_end_is_reported_as_a_loop(engine: Engine) -> None:
    """GETBULK and GETNEXT that lead back."""

    def respond(data: bytes) -> Iterable[tuple[float, bytes]]:
        if v2c(data) is not None:
            yield 0, answer(data, [(f"{COLUMN}.{row}", ber.integer(row)) for row in (5, 6)])

    async def use(session: Session, _: Agent) -> None:
        with pytest.raises(SnmpPollError) as failure:
            await session.walk([COLUMN], soon())
        # A library may notice it by itself, and call it unreadable.
        assert failure.value.kind in {FailureKind.LOOP, FailureKind.MALFORMED}

    run(respond, use, engine=engine)
    run(lambda d: [(0, answer(d, [(f"{COLUMN}.5", ber.integer(1))]))], use, engine=engine, version="1")


@both
def test_an_error_within_a_walk_is_no_end_of_it(engine: Engine) -> None:
    """A table is never cut short in silence."""

    def respond(data: bytes) -> Iterable[tuple[float, bytes]]:
        asked = v2c(data)
        if asked is None:
            return []
        name = asked[1].binds[0][0]
        if name == COLUMN:
            return [(0, answer(data, [(f"{COLUMN}.{row}", ber.integer(row)) for row in range(1, 11)]))]
        return [(0, answer(data, [(name, NULL)], 5, 1))]

    async def use(session: Session, _: Agent) -> None:
        with pytest.raises(SnmpPollError, match="genErr"):
            await session.walk([COLUMN], soon())

    run(respond, use, engine=engine)


@both
def test_a_walk_survives_lost_datagrams(engine: Engine) -> None:
    """Every fifth answer is lost; the table is whole."""
    dice = random.Random(3)

    def respond(data: bytes) -> Iterable[tuple[float, bytes]]:
        asked = v2c(data)
        if asked is None or dice.random() < 0.2:
            return []
        name = asked[1].binds[0][0]
        last = int(name.removeprefix(COLUMN).lstrip(".") or 0)
        rows: list[Bind] = [(f"{COLUMN}.{row}", ber.integer(row)) for row in range(last + 1, min(last + 11, 201))]
        return [(0, answer(data, rows or [("1.3.6.1.4.1.99.3.1", ber.integer(0))]))]

    async def use(session: Session, _: Agent) -> None:
        rows = await session.walk([COLUMN], soon(25))
        assert list(rows.values()) == list(range(1, 201))
        assert session.counters.unanswered > 0

    run(respond, use, engine=engine, share_s=0.3, retries=4)


@both
def test_garbage_is_reported_as_garbage(engine: Engine) -> None:
    """Something answers, but it is no SNMP, or the begin of it."""

    async def use(session: Session, _: Agent) -> None:
        with pytest.raises(SnmpPollError) as failure:
            await session.get(OIDS[:3], soon(1))
        cause = await session.explain(failure.value, soon(8))
        assert cause.kind is FailureKind.MALFORMED

    garbage = [(0, bytes.fromhex("30020201")), (0, b"HTTP/1.1 400 Bad Request\r\n\r\n")]
    run(lambda _: garbage, use, engine=engine, share_s=0.15)


def test_one_unreadable_value_does_not_spoil_the_others() -> None:
    """An IpAddress of 3 bytes breaks the decoder: it is refused, the rest is there."""

    async def use(session: Session, _: Agent) -> None:
        await session.get(OIDS[:1], soon())
        got = await session.get(OIDS[:8], soon(20))
        assert set(got) == set(OIDS[:8]) - {OIDS[4]}
        assert session.refusals == {OIDS[4]: "its value cannot be read"}

    run(
        lambda d: values(d, lambda oid: ber.tlv(0x40, b"\n\0\0") if oid == OIDS[4] else ber.integer(7)),
        use,
        share_s=0.4,
        retries=0,
    )


@both
def test_an_agent_that_is_too_slow_is_reported_as_slow(engine: Engine) -> None:
    """It answers after the time; late answers are no answers to later questions."""

    async def use(session: Session, _: Agent) -> None:
        with pytest.raises(SnmpPollError) as failure:
            await session.get(OIDS[:1], soon(0.5))
        cause = await session.explain(failure.value, soon(8))
        assert cause.kind is FailureKind.LATE
        assert re.search(r"only after [0-9.]+ ", str(cause)), str(cause)

    run(lambda d: [(0.6, datagram) for _, datagram in values(d)], use, engine=engine, share_s=0.2)


def test_late_answers_are_thrown_away() -> None:
    """The first answer comes 250 ms late, while the next question is under way: each question has its own answer."""
    first = [True]

    def respond(data: bytes) -> Iterable[tuple[float, bytes]]:
        number = 1 if first[0] else 2
        late = 0.25 if first[0] else 0.2
        first[0] = False
        return [(late, datagram) for _, datagram in values(data, lambda _: ber.integer(number))]

    async def use(session: Session, _: Agent) -> None:
        with pytest.raises(SnmpPollError):
            await session.get(OIDS[:1], soon(0.12))
        assert await session.get(OIDS[:1], soon(8)) == {OIDS[0]: 2}

    run(respond, use, share_s=6.0, retries=0)


def test_a_port_without_agent_is_reported_at_once() -> None:
    """The kernel says so."""

    async def main() -> None:
        session = Session(Access("127.0.0.1", free_port(), "2c", community="public"), SessionOptions(share_s=20.0))
        began = time.monotonic()
        with pytest.raises(SnmpPollError) as failure:
            await session.get(OIDS, soon(40))
        assert failure.value.kind is FailureKind.REFUSED
        assert time.monotonic() - began < 10  # and not after a share
        await session.close()

    asyncio.run(main())


def test_an_unknown_host_name_is_reported_with_the_name() -> None:
    """No traceback of the resolver."""

    async def main() -> None:
        session = Session(Access("no.such.host.invalid", 161, "2c", community="public"), SessionOptions())
        with pytest.raises(SnmpPollError, match=r"no\.such\.host\.invalid:161: the address cannot be used"):
            await session.get(OIDS, soon())
        await session.close()

    asyncio.run(main())


def test_a_dead_agent_never_takes_longer_than_the_deadline() -> None:
    """Whatever the shares and retries are."""

    async def use(session: Session, _: Agent) -> None:
        began = time.monotonic()
        with pytest.raises(SnmpPollError) as failure:
            await session.get(OIDS, soon(0.5))
        assert failure.value.kind is FailureKind.NO_ANSWER
        assert time.monotonic() - began < 4  # a share alone is 5 s

    run(lambda _: [], use, share_s=5.0, retries=5)


def test_the_engines_clock_is_refreshed_before_it_is_stale() -> None:
    """72 hours of polls in virtual time, every 10 s and every 175 s: a refresh before a poll that is 120 s late."""
    refreshed: list[float] = []
    now = [0.0]

    class Connection:
        engine_id, opaque = b"engine", False

        async def get(self, oids: Iterable[str], timeout_s: float) -> dict[str, int]:
            return dict.fromkeys(oids, 1)

        async def refresh(self, timeout_s: float) -> None:
            refreshed.append(now[0])

        def close(self) -> None:
            """Nothing to give back."""

    async def soak(gap_s: float) -> int:
        refreshed.clear()
        session = Session(Access("127.0.0.1", 161, "3", user="u"), SessionOptions(), clock=lambda: now[0])
        session.link._first = Connection()  # type: ignore[assignment]
        for _ in range(round(72 * 3600 / gap_s)):
            now[0] += gap_s
            assert await session.get(["1.3"], now[0] + 1) == {"1.3": 1}
        return len(refreshed)

    assert asyncio.run(soak(10.0)) == 0
    assert asyncio.run(soak(175.0)) == round(72 * 3600 / 175) - 1  # the first answer tells its time


@both
def test_a_hostile_agent_makes_no_traceback_no_hang_and_no_growth(
    engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    """Mutated answers, seeded, in v1 and v2c: an answer, or a failure in one sentence, each time within its time."""
    dice = random.Random(11)

    def respond(data: bytes) -> Iterable[tuple[float, bytes]]:
        asked = v2c(data)
        if asked is None:
            return
        tags = (0x02, 0x04, 0x05, 0x06, 0x40, 0x41, 0x42, 0x43, 0x44, 0x46, 0x80, 0x81, 0x82, 0x99)
        rows = [
            (f"{bind[0]}.{row}", ber.tlv(dice.choice(tags), dice.randbytes(dice.randrange(9))))
            for bind in asked[1].binds
            for row in range(dice.randrange(1, 4))
        ]
        out = bytearray(answer(data, rows, dice.choice((0, 0, 0, 5, 99)), dice.randrange(-1, 3)))
        for _ in range(dice.randrange(3)):
            out[dice.randrange(len(out))] = dice.randrange(256)
        yield 0, bytes(out[: dice.randrange(len(out) + 1)] if dice.random() < 0.2 else out)
        if dice.random() < 0.3:
            yield 0, dice.randbytes(dice.randrange(300))

    told_as: set[FailureKind] = set()

    async def use(session: Session, _: Agent) -> None:
        for number in range(6):
            began = time.monotonic()
            try:
                if number % 2:
                    await session.walk([COLUMN], soon(0.15))
                else:
                    await session.get(OIDS[:12], soon(0.15))
            except SnmpPollError as failure:
                told_as.add(failure.kind)
            assert time.monotonic() - began < 10  # the test is for hangs
        assert len(session.refusals) <= len(OIDS)

    for version in ("1", "2c"):
        run(respond, use, engine=engine, version=version, share_s=0.04)
    assert told_as
    shown = capfd.readouterr().err
    assert "Traceback" not in shown
    assert "panicked" not in shown
