"""Sessions before a real net-snmpd: both libraries read what net-snmp's own client reads, in every version of SNMP."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Literal, TypeVar

import pytest
from tests.collector.sources.snmp.doubles import relay
from tests.collector.sources.snmp.snmpd import USERS, Snmpd

from soakwatch.sources.transport.snmp.agent_link import SessionOptions
from soakwatch.sources.transport.snmp.pysnmp_connection import PysnmpConnection
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError
from soakwatch.sources.transport.snmp.snmp_session import Session

SYSTEM = [f"1.3.6.1.2.1.1.{number}.0" for number in (1, 2, 4, 5, 6)]
TIMEOUTS = "1.3.6.1.6.3.15.1.1.2.0"  # usmStatsNotInTimeWindows
Engine = Literal["gufo", "pysnmp"]
both = pytest.mark.parametrize("engine", ["gufo", "pysnmp"])
T = TypeVar("T")


def with_session(
    access: Access, use: Callable[[Session], Awaitable[T]], engine: Engine = "gufo", share_s: float = 8.0
) -> T:
    """What a session brings."""

    async def main() -> T:
        session = Session(access, SessionOptions(engine, share_s))
        try:
            async with asyncio.timeout(200):
                return await use(session)
        finally:
            await session.close()

    return asyncio.run(main())


async def everything(session: Session) -> dict[str, object]:
    """Values that do not change from poll to poll, of all types that net-snmp has. Of links and addresses only those of
    loopback: others come and go with other tests."""
    deadline = time.monotonic() + 120
    values: dict[str, object] = {**await session.get([*SYSTEM, "1.3.6.1.2.1.1.99.0"], deadline)}
    columns = [
        "1.3.6.1.2.1.2.2.1.2",
        "1.3.6.1.2.1.2.2.1.6",
        "1.3.6.1.2.1.4.20.1.1",
        "1.3.6.1.2.1.1.9.1.2",
        "1.3.6.1.2.1.25.2.3.1.2",
        "1.3.6.1.4.1.99999",
    ]
    links, stay = tuple(f"{column}." for column in columns[:3]), (".1.2.1", ".1.6.1", ".127.0.0.1")
    walked = dict(await session.walk(columns, deadline))
    return values | {oid: value for oid, value in walked.items() if not oid.startswith(links) or oid.endswith(stay)}


async def why(access: Access, engine: Engine) -> FailureKind:
    """The error of a session whose access does not work."""
    session = Session(access, SessionOptions(engine, 1.5))
    try:
        with pytest.raises(SnmpPollError) as failure:
            await session.get(SYSTEM, time.monotonic() + 60)
        return (await session.explain(failure.value, time.monotonic() + 20)).kind
    finally:
        await session.close()


def test_both_libraries_read_the_same_in_every_version_and_with_every_key(snmpd: Snmpd) -> None:
    """v1, v2c, and v3 with every digest and cipher, and the same as net-snmp's own client."""
    expected = with_session(snmpd.access("2c"), everything)
    assert len(expected) > 20
    assert {type(value) for value in expected.values()} == {bytes, str}
    assert bytes(expected["1.3.6.1.2.1.1.5.0"]).decode() == (snmpd.get("1.3.6.1.2.1.1.5.0") or "").strip('"')  # type: ignore[call-overload]
    assert f".{expected['1.3.6.1.2.1.1.2.0']}" == snmpd.get("1.3.6.1.2.1.1.2.0")
    accesses = [snmpd.access("1"), snmpd.access("2c"), *(snmpd.access("3", user) for user in USERS)]
    engines: tuple[Engine, ...] = ("gufo", "pysnmp")
    for access in accesses:
        for engine in engines:
            assert (access.user, engine, with_session(access, everything, engine)) == (access.user, engine, expected)


@both
def test_names_and_ipv6_addresses_are_hosts(snmpd: Snmpd, engine: Engine) -> None:
    """``localhost`` and ``::1``."""
    for host in ("localhost", "::1"):
        values = with_session(snmpd.access("2c", address=host), lambda s: s.get(SYSTEM, time.monotonic() + 20), engine)
        assert values["1.3.6.1.2.1.1.5.0"] == b"soakbox"


@both
def test_wrong_credentials_are_distinguished(snmpd: Snmpd, engine: Engine) -> None:
    """Community, user, keys, protocols, levels, port: each its own sentence."""
    good = snmpd.access("3")
    wrong = "quite another phrase"
    cases = [
        (replace(snmpd.access("2c"), community=wrong), FailureKind.COMMUNITY),
        (replace(snmpd.access("1"), community=wrong), FailureKind.COMMUNITY),
        (replace(good, user="nobody"), FailureKind.USER),
        (replace(good, auth=wrong), FailureKind.AUTH_KEY),
        (replace(good, auth_protocol="SHA-256"), FailureKind.AUTH_KEY),
        (replace(good, priv=wrong), FailureKind.PRIV_KEY),
        (replace(good, priv_protocol="DES"), FailureKind.PRIV_KEY),
        (replace(good, user="plain"), FailureKind.LEVEL),
        (replace(good, priv=""), FailureKind.DENIED),
        (replace(good, port=1), FailureKind.REFUSED),
    ]

    async def all_of_them() -> list[FailureKind]:
        async with asyncio.timeout(200):
            return await asyncio.gather(*(why(access, engine) for access, _ in cases))

    assert asyncio.run(all_of_them()) == [kind for _, kind in cases]


def test_a_wrong_community_is_reported_within_the_first_second(snmpd: Snmpd) -> None:
    """A poll of a second has its cause in its own error; on a busy machine one of many has."""

    async def use(session: Session) -> FailureKind:
        deadline = time.monotonic() + 0.92
        with pytest.raises(SnmpPollError) as failure:
            await session.get(SYSTEM, deadline)
        return (await session.explain(failure.value, deadline)).kind

    access = replace(snmpd.access("2c"), community="wrong")
    assert any(with_session(access, use, share_s=0.92 * 0.75 / 2) is FailureKind.COMMUNITY for _ in range(30))


@pytest.mark.parametrize(("engine", "version"), [("gufo", "2c"), ("gufo", "3"), ("pysnmp", "3")])
def test_lost_packets_cost_retries_and_nothing_else(snmpd: Snmpd, engine: Engine, version: str) -> None:
    """One in seven is lost each way: 15 polls, all of them answered."""
    dice = random.Random(5)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            port = await relay(stack, snmpd.port, lambda data, _: data if dice.random() > 1 / 7 else None)
            session = Session(replace(snmpd.access(version), port=port), SessionOptions(engine, 0.4, retries=9))
            stack.push_async_callback(session.close)
            for _ in range(15):
                assert len(await session.get(SYSTEM, time.monotonic() + 20)) == 5
            assert session.counters.unanswered > 2

    asyncio.run(main())


@both
def test_broken_v3_datagrams_make_no_traceback_and_no_hang(
    snmpd: Snmpd, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each third answer of a real agent has bytes turned, seeded; the session goes on and ends well."""
    dice = random.Random(9)
    broken = [True]

    def fate(data: bytes, asked: bool) -> bytes | None:
        if asked or not broken[0] or dice.random() > 1 / 3:
            return data
        cut = bytearray(data)
        for _ in range(dice.randrange(1, 4)):
            cut[dice.randrange(len(cut))] = dice.randrange(256)
        return bytes(cut[: dice.randrange(len(cut) + 1)] if dice.random() < 0.3 else cut)

    async def main() -> None:
        async with AsyncExitStack() as stack:
            port = await relay(stack, snmpd.port, fate)
            for user in ("common", "signed", "plain"):
                broken[0] = True
                session = Session(replace(snmpd.access("3", user), port=port), SessionOptions(engine, 0.05, retries=1))
                stack.push_async_callback(session.close)
                for _ in range(10):
                    began = time.monotonic()
                    try:
                        await session.get(SYSTEM, time.monotonic() + 0.3)
                    except SnmpPollError:
                        assert time.monotonic() - began < 10  # the test is for hangs
                broken[0] = False
                session.options = replace(session.options, share_s=3.0, retries=3)
                assert len(await session.get(SYSTEM, time.monotonic() + 20)) == 5

    asyncio.run(main())
    shown = capfd.readouterr().err
    assert "Traceback" not in shown
    assert "panicked" not in shown


def test_pysnmp_does_not_forget_the_agents_clock(snmpd: Snmpd) -> None:
    """As many ticks of its timer as pysnmp makes in an hour: no request is out of the agent's time window."""

    async def use(session: Session) -> None:
        first = await session.get([TIMEOUTS], time.monotonic() + 20)
        assert isinstance(session.link._first, PysnmpConnection)
        engine = session.link._first._engine
        for _ in range(7200):
            for model in engine.security_models.values():
                model.receive_timer_tick(engine, 0.0)
        for _ in range(5):
            assert await session.get([TIMEOUTS], time.monotonic() + 20) == first

    with_session(snmpd.access("3"), use, "pysnmp")


@pytest.mark.slow
@both
def test_v3_for_longer_than_the_time_window(snmpd: Snmpd, engine: Engine) -> None:
    """330 s of polls a second: every one is answered, and the agent counts no request outside its time window."""

    async def use(session: Session) -> tuple[int, object, object]:
        first = (await session.get([TIMEOUTS], time.monotonic() + 20))[TIMEOUTS]
        answered, until = 0, time.monotonic() + 330
        due = time.monotonic()
        while time.monotonic() < until:
            answered += len(await session.get(SYSTEM, time.monotonic() + 3)) == 5
            due += 1.0
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        last = (await session.get([TIMEOUTS], time.monotonic() + 20))[TIMEOUTS]
        return answered, first, last

    async def main() -> tuple[int, object, object]:
        session = Session(snmpd.access("3"), SessionOptions(engine))
        try:
            return await use(session)
        finally:
            await session.close()

    answered, first, last = asyncio.run(main())
    assert answered >= 329
    assert last == first


@pytest.mark.slow
@both
def test_v3_with_pauses_of_175_seconds(snmpd: Snmpd, engine: Engine) -> None:
    """Longer than the time window of 150 s: the first request after each pause is answered."""

    async def main() -> None:
        session = Session(snmpd.access("3"), SessionOptions(engine, retries=0))
        try:
            for pause_s in (0, 175, 175):
                await asyncio.sleep(pause_s)
                assert len(await session.get(SYSTEM, time.monotonic() + 3)) == 5
            assert session.counters.unanswered == 0
        finally:
            await session.close()

    asyncio.run(main())
