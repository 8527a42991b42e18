"""The poller "snmp" with a simulated device: reboots, new indexes, tables too long for a poll, hidden errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from soakwatch.sources.abc import SourceContext, SourceError
from soakwatch.sources.pollers.snmp import SnmpPoller, start
from soakwatch.sources.transport.snmp.agent_link import SessionOptions
from soakwatch.sources.transport.snmp.config import Config
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_errors import SnmpPollError
from soakwatch.sources.transport.snmp.snmp_session import Session
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer
from soakwatch_testing.snmp_cells import Cell, Name
from soakwatch_testing.snmp_faults import Faults
from soakwatch_testing.snmp_mib import interfaces, system
from soakwatch_testing.snmp_responder import Responder, responder
from soakwatch_testing.snmp_usm import User

PROFILE = """
title: A made device
extends: [generic]
snmp:
  facts:
    reboot_reason: {oid: 1.3.6.1.4.1.99.1.0}
"""
REASON = "1.3.6.1.4.1.99.1.0"
USER = User("soak", "SHA", "auth pass phrase", "AES", "priv pass phrase")


def polled(
    rows: dict[Name, Cell], folder: Path, use: Callable[[SnmpPoller, Responder], Awaitable[None]], **more: object
) -> None:
    """A poller of a simulated device."""
    (folder / "made.yaml").write_text(PROFILE, encoding="utf-8")
    keys = {"host": "127.0.0.1", "interval": "1s", "profile": "made", "profiles": str(folder), **more}

    async def main(device: Responder) -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(200):
            config = Config.model_validate({**keys, "port": device.address[1]})
            where = SourceContext("sw1", "dut", (), None, folder, lambda: now_ns(device), config.interval)
            await use(await start(config, where, stack), device)

    with responder(rows) as device:
        ahead[device] = 0.0
        asyncio.run(main(device))


ahead: dict[Responder, float] = {}


def now_ns(device: Responder) -> int:
    """The steady time, which goes with the device's."""
    return time.time_ns() + round(ahead[device] * 1e9)


def advance(device: Responder, seconds: float) -> None:
    """Let time pass for the device and for the collector."""
    device.advance(seconds)
    ahead[device] += seconds


async def until(poller: SnmpPoller, device: Responder, held: Callable[[Answer], bool], seconds: float = 20) -> Answer:
    """The first answer as wanted."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            answer = await poller.poll(now_ns(device))
        except SourceError:
            continue
        if held(answer):
            return answer
        await asyncio.sleep(0.05)
    raise AssertionError("never")


def by_object(answer: Answer, metric: str) -> dict[str, float]:
    """The values of one metric."""
    return {sample.object: sample.value for sample in answer.samples if sample.metric == metric}


def test_a_reboot_is_an_event_with_its_reason_and_series_follow_names(tmp_path: Path) -> None:
    """ifIndex is renumbered by the reboot: no value of one interface goes to another, and no reboot is missed."""

    async def use(poller: SnmpPoller, device: Responder) -> None:
        device.set(REASON, "power on")
        await until(poller, device, lambda a: len(by_object(a, "system.network.io")) == 8)
        advance(device, 3600)
        before = await until(poller, device, lambda a: bool(a.samples))
        assert before.events == ()
        assert by_object(before, "system.uptime")[""] > 5000
        device.set(REASON, "watchdog")
        device.reboot(renumber=True)
        advance(device, 30)
        after = await until(poller, device, lambda a: bool(a.events))
        (event,) = after.events
        assert event.kind == "reboot"
        assert event.detail["reboot_reason"] == "watchdog"
        assert (event.end_ns or 0) - event.begin_ns <= 31 * 10**9
        assert by_object(after, "system.uptime")[""] < 60
        assert by_object(after, "system.network.io").keys() == by_object(before, "system.network.io").keys()
        assert after.faults == ()

    polled(system() | interfaces(4), tmp_path, use)


def test_a_restart_of_the_agent_and_a_wrap_are_no_reboots(tmp_path: Path) -> None:
    """The host's uptime runs on; after 497 days both clocks wrap, and the uptime goes on."""
    seen: list[Event] = []

    async def use(poller: SnmpPoller, device: Responder) -> None:
        await until(poller, device, lambda a: bool(a.samples))
        advance(device, 600)
        await until(poller, device, lambda a: bool(a.samples))
        device.restart_agent()
        advance(device, 5)
        answer = await until(poller, device, lambda a: bool(a.events))
        seen.extend(answer.events)
        for _ in range(5):
            advance(device, 100 * 86400)
            answer = await until(poller, device, lambda a: bool(by_object(a, "system.uptime")))
            seen.extend(answer.events)
        assert by_object(answer, "system.uptime")[""] == pytest.approx(500 * 86400 + 2605, abs=60)

    polled(system() | interfaces(1), tmp_path, use)
    assert [event.kind for event in seen] == ["snmp.agent.restart"]


@pytest.mark.parametrize("count", [700, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_survey_that_is_longer_than_a_poll_goes_on_beside_the_polls(tmp_path: Path, count: int) -> None:
    """With thousands of interfaces: each poll ends in time and reports what is under way; long polls bring all."""
    errors: list[str] = []

    async def hurried(poller: SnmpPoller, device: Responder) -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            began = time.monotonic()
            try:
                await poller.poll(now_ns(device))
            except SourceError as failure:
                errors.append(str(failure).partition(": ")[2])
            else:
                break
            assert poller.surveying or time.monotonic() - began < 15
            if "takes longer than a poll: raise" in errors[-1]:
                break

    polled(system() | interfaces(count), tmp_path, hurried, timeout="200ms")
    assert errors[0] == "the device is being surveyed for the first time, which takes longer than a poll"
    assert errors.count(errors[0]) >= len(errors) - 1

    async def patient(poller: SnmpPoller, device: Responder) -> None:
        answer = await until(poller, device, lambda a: bool(a.samples), 60)
        assert len(by_object(answer, "system.network.io")) == 2 * count

    polled(system() | interfaces(count), tmp_path, patient, timeout="60s", interval="60s")


def test_an_error_that_encryption_hides_is_found_all_the_same() -> None:
    """genErr within a v3 answer: the other objects are there, and a table is not cut short in silence."""

    async def main(port: int) -> None:
        access = Access("127.0.0.1", port, "3", user="soak", auth=USER.auth_key, priv=USER.priv_key)
        session = Session(access, SessionOptions())
        try:
            oids = [f"1.3.6.1.2.1.2.2.1.10.{number}" for number in range(1, 21)]
            got = await session.get(oids, time.monotonic() + 10)
            assert set(got) == set(oids) - {oids[6]}
            assert session.refusals == {oids[6]: "genErr"}  # by the library that sees it
            with pytest.raises(SnmpPollError, match="genErr"):
                await session.walk(["1.3.6.1.2.1.2.2.1.16"], time.monotonic() + 10)
            assert len(await session.walk(["1.3.6.1.2.1.31.1.1.1.18"], time.monotonic() + 10)) == 40
        finally:
            await session.close()

    with responder(system() | interfaces(40), users=[USER]) as device:
        device.misbehave(Faults(gen_err=("1.3.6.1.2.1.2.2.1.10.7", "1.3.6.1.2.1.2.2.1.16")))
        asyncio.run(main(device.address[1]))
