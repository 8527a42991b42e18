"""The poller "snmp" at a real net-snmpd: the readings, the facts of the device, and restarts."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.collector.sources.snmp.snmpd import Snmpd

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import Identifies, SourceContext, SourceError
from soakwatch.sources.pollers.snmp import SnmpPoller, start
from soakwatch.sources.source_modules import poller_module
from soakwatch.sources.transport.snmp.config import Config
from soakwatch_model.event import Event
from soakwatch_model.metric import fault_of
from soakwatch_model.sample import Answer
from soakwatch_testing.ports import free_port

V3: dict[str, object] = {"version": 3, "user": "common", "auth": "env:SOAK_AUTH", "priv": "env:SOAK_PRIV"}


def site(interval_s: float = 1.0, interfaces: tuple[str, ...] | None = None) -> SourceContext:
    """The context of the source."""
    return SourceContext("fw1", "dut", (), interfaces, Path(), time.time_ns, interval_s)


def seconds_up() -> float:
    """How long this machine has been up."""
    return float(Path("/proc/uptime").read_text().split()[0])


def config(port: int, **more: object) -> Config:
    """The keys as a plan has them."""
    return Config.model_validate({"host": "127.0.0.1", "port": port, "interval": "1s", "profile": "linux", **more})


def polled(keys: Config, use: Callable[[SnmpPoller], Awaitable[None]], where: SourceContext | None = None) -> None:
    """A started poller."""

    async def main() -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(200):
            await use(await start(keys, where or site(), stack))

    asyncio.run(main())


async def until(poller: SnmpPoller, held: Callable[[Answer], bool], seconds: float = 60) -> tuple[Answer, list[str]]:
    """Polls of every 200 ms until one answers as wanted; that one, and the errors before it."""
    deadline, errors = time.monotonic() + seconds, []
    while time.monotonic() < deadline:
        try:
            answer = await poller.poll(time.time_ns())
        except SourceError as failure:
            errors.append(str(failure))
        else:
            if held(answer):
                return answer, errors
        await asyncio.sleep(0.2)
    raise AssertionError(f"not within {seconds} s: {errors[-3:]}")


def kinds(events: tuple[Event, ...]) -> list[str]:
    """What happened."""
    return [event.kind for event in events]


def test_the_poller_is_on_its_shelf() -> None:
    """``snmp`` in a plan is this module."""
    assert poller_module("snmp").config is Config


@pytest.mark.parametrize(
    "more", [{}, {"version": 1}, V3, {**V3, "engine": "pysnmp"}], ids=["v2c", "v1", "v3", "pysnmp"]
)
@pytest.mark.usefixtures("keys")
def test_a_poll_brings_clocks_and_what_the_profile_knows(snmpd: Snmpd, more: dict[str, object]) -> None:
    """The clocks are those of net-snmp's own client, and every value is possible."""

    async def use(poller: SnmpPoller) -> None:
        assert isinstance(poller, Identifies)
        begun_s = seconds_up()
        answer, errors = await until(poller, lambda a: len(a.samples) > 20)
        assert errors == []  # a poll of a minute has time enough for the first survey
        assert [fault_of(s.metric, s.value) for s in answer.samples if fault_of(s.metric, s.value)] == []
        value = {s.metric: s.value for s in answer.samples}
        ticks = int(snmpd.get("1.3.6.1.2.1.1.3.0") or 0)
        meanwhile_s = seconds_up() - begun_s
        assert ticks / 100 - meanwhile_s - 5 <= value["system.agent.uptime"] <= ticks / 100 + 5
        assert begun_s - 5 <= value["system.uptime"] <= begun_s + meanwhile_s + 5
        assert value["system.agent.boots"] == int(snmpd.get("1.3.6.1.6.3.10.2.1.2.0") or 0)
        facts = poller.facts()
        assert facts.identity["name"] == "soakbox"
        assert facts.identity["profile"] == "linux"
        assert facts.identity["object id"] == "1.3.6.1.4.1.8072.3.2.10"
        assert "system.network.io" in facts.promised
        assert "phrase" not in repr(facts)
        per = Counter((s.metric, s.object) for s in answer.samples)
        assert per.most_common(1)[0][1] == 1

    polled(config(snmpd.port, **{"interval": "1m", **more}), use, site(60.0))


def test_the_profile_is_found(snmpd: Snmpd) -> None:
    """And said how."""

    async def use(poller: SnmpPoller) -> None:
        await until(poller, lambda a: bool(a.samples))
        assert poller.facts().identity["profile"] == "linux"
        assert "sysObjectID" in poller.facts().identity["profile chosen by"]

    polled(config(snmpd.port, profile="auto"), use)


def test_only_watched_interfaces_and_wanted_groups_are_read(snmpd: Snmpd) -> None:
    """Globs of the plan's watch, and the keys ``groups`` and ``without``."""

    async def use(poller: SnmpPoller) -> None:
        answer, _ = await until(poller, lambda a: bool(a.samples))
        objects = {s.object for s in answer.samples if s.metric == "system.network.io"}
        assert objects == {"interface=lo,direction=receive", "interface=lo,direction=transmit"}

    polled(config(snmpd.port), use, site(interfaces=("lo",)))

    async def refuse(poller: SnmpPoller) -> None:
        with pytest.raises(PlanError, match="fw1: the profile linux has no group 'interface'"):
            await poller.poll(time.time_ns())

    polled(config(snmpd.port, without=["interface"]), refuse)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        ({**V3, "auth": "env:SOAK_SHORT"}, "shorter than the 8 characters"),
        ({**V3, "priv": "env:SOAK_NOT_THERE"}, "SOAK_NOT_THERE is not set"),
        ({**V3, "context": "vdom"}, "engine: pysnmp"),
        ({"version": 3}, "user: NAME"),
        ({"profile": "lynux"}, "did you mean 'linux'"),
        ({"profiles": "/nowhere/at/all"}, "no such folder"),
    ],
)
def test_a_plan_that_cannot_work_is_refused_at_the_start(more: dict[str, object], remedy: str) -> None:
    """With the remedy, before anything is sent."""

    async def use(_: SnmpPoller) -> None:
        raise AssertionError("it started")

    with pytest.raises(PlanError, match=remedy):
        polled(config(1, **more), use)


@pytest.mark.usefixtures("keys")
def test_a_dead_device_is_one_sentence_and_comes_back_by_itself(fragile: Snmpd) -> None:
    """Off when the run begins, on later."""
    fragile.port = free_port()

    async def use(poller: SnmpPoller) -> None:
        with pytest.raises(SourceError, match="the port is closed"):
            await poller.poll(time.time_ns())
        await asyncio.to_thread(fragile.start)
        await until(poller, lambda a: len(a.samples) > 20)

    polled(config(fragile.port, **V3), use)


@dataclass(frozen=True)
class Life:
    """How an agent comes back: what it kept, how it is asked, and what is reported of it."""

    name: str
    persistent: bool
    lines: tuple[str, ...]
    more: dict[str, object]
    expected: tuple[str, ...]


RESTART, CHANGED = "snmp.agent.restart", "snmp.engine.changed"
LIVES = (
    Life("v2c", persistent=True, lines=(), more={}, expected=(RESTART,)),
    Life("boots go on", persistent=True, lines=(), more=V3, expected=(RESTART,)),
    Life("boots begin again", persistent=False, lines=("engineID soakbox",), more=V3, expected=(RESTART,)),
    Life("a new engine", persistent=False, lines=(), more=V3, expected=(RESTART, CHANGED)),
    Life("a new engine, pysnmp", False, (), {**V3, "engine": "pysnmp"}, (RESTART, CHANGED)),
)


def agent_uptime(answer: Answer) -> float:
    """Seconds for which the agent says that it runs."""
    return max((sample.value for sample in answer.samples if sample.metric == "system.agent.uptime"), default=0.0)


async def killed(life: Life, folder: Path) -> tuple[str, list[str]]:
    """Polls an agent, kills it by SIGKILL, starts it again: what the first good answer reports, and what went wrong."""
    agent = Snmpd(folder, persistent=life.persistent, lines=life.lines)
    async with AsyncExitStack() as stack:
        stack.callback(agent.kill)
        await asyncio.to_thread(agent.start)
        poller = await start(config(agent.port, **life.more), site(), stack)
        # old enough for its clock to fall, however long a busy machine takes to start it again
        await until(poller, lambda a: len(a.samples) > 20 and agent_uptime(a) > 10)
        await asyncio.to_thread(agent.kill)
        with pytest.raises(SourceError):
            await poller.poll(time.time_ns())
        await asyncio.to_thread(agent.start)
        answer, errors = await until(poller, lambda a: bool(a.events))
        assert len(errors) <= 1  # of polls after it is back
        uptime = {s.metric: s.value for s in answer.samples}
        if len(answer.samples) <= 20:  # of a slow machine the rest comes with the next polls
            await until(poller, lambda a: len(a.samples) > 20)
        assert uptime["system.uptime"] > 60 > uptime["system.agent.uptime"]
        assert "phrase" not in repr(answer.events)
        return life.name, [kind for kind in kinds(answer.events) if kind != "snmp.engine.rollback"]


@pytest.mark.slow
@pytest.mark.usefixtures("keys")
def test_an_agent_that_was_killed_is_polled_again_at_once_and_is_no_reboot(tmp_path: Path) -> None:
    """Killed in the middle of the polls, with its memory or without: an event says what it was."""

    async def main() -> list[tuple[str, list[str]]]:
        async with asyncio.timeout(200):
            return await asyncio.gather(*(killed(life, tmp_path / str(n)) for n, life in enumerate(LIVES)))

    assert asyncio.run(main()) == [(life.name, list(life.expected)) for life in LIVES]


@pytest.mark.usefixtures("keys")
def test_a_wrong_key_is_reported_with_its_remedy_and_without_the_key(snmpd: Snmpd) -> None:
    """The error of the poll names the key."""

    async def use(poller: SnmpPoller) -> None:
        with pytest.raises(SourceError, match="check auth and auth_protocol") as failure:
            await poller.poll(time.time_ns())
        assert "phrase" not in str(failure.value)

    polled(config(snmpd.port, **{**V3, "auth": "env:SOAK_WRONG"}), use)
