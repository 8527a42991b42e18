"""Devices as they are in racks: a table that is broken, an agent that shows nothing, a survey that takes its time."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.collector.sources.snmp.test_snmp_poller import config, site

from soakwatch.core.errors import PlanError
from soakwatch.engine.plan_check import SourceCheck, check_sources
from soakwatch.engine.sensitivity import sensitivity
from soakwatch.plan import plan_from_text, quick_plan
from soakwatch.sources.abc import SourceError
from soakwatch.sources.pollers.snmp import start
from soakwatch.sources.profiles.loading import load_profiles
from soakwatch.sources.transport.snmp.agent_link import SessionOptions
from soakwatch.sources.transport.snmp.config import Config
from soakwatch.sources.transport.snmp.snmp_access import Access
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError
from soakwatch.sources.transport.snmp.snmp_session import Session, SessionAsker
from soakwatch_testing.snmp_cells import Cell, name_of
from soakwatch_testing.snmp_faults import Faults
from soakwatch_testing.snmp_mib import interfaces, system
from soakwatch_testing.snmp_responder import Responder, responder

IF_DESCR, IF_TABLE, IF_X_TABLE = "1.3.6.1.2.1.2.2.1.2", "1.3.6.1.2.1.2.2", "1.3.6.1.2.1.31.1.1"
PROCESSOR_LOAD = "1.3.6.1.2.1.25.3.3.1.2.1"
PLAN = """\
phases: [{{soak: 1h}}]
targets:
  dut:
    role: dut
    sources: [{{snmp: {{host: 127.0.0.1, port: {port}, version: 2c, interval: 1s, timeout: 60s, {keys}}}}}]
"""
IN_OCTETS = "1.3.6.1.2.1.31.1.1.1.6"


def checked(device: Responder, keys: str = "version=2c", interval: str = "10s") -> SourceCheck:
    """What ``soakwatch probe`` finds."""
    plan = quick_plan([f"snmp://127.0.0.1:{device.address[1]}?{keys}"], (), interval, "24h", "probe")
    (check,) = asyncio.run(check_sources(plan, Path()))
    return check


@pytest.mark.parametrize("version", ["1", "2c"])
@pytest.mark.parametrize(
    ("faults", "why"),
    [
        (Faults(gen_err=(IF_TABLE,)), "genErr"),
        (Faults(loop=(IF_DESCR,)), "its table never ends"),
    ],
    ids=["genErr", "loop"],
)
def test_a_broken_table_does_not_take_the_others_with_it(faults: Faults, why: str, version: str) -> None:
    """The rest of the device is read, and what the agent refuses is reported."""
    with responder(system() | interfaces(3)) as device:
        device.misbehave(faults)
        check = checked(device, f"version={version}&profile=generic")
    assert check.error is None
    rest = {"system.uptime"} if version == "1" else {"system.uptime", "system.network.cast.packets"}
    assert rest <= {sample.metric for sample in check.samples}
    assert check.facts is not None
    assert [note for note in check.facts.notes if why in note]


def test_an_agent_that_is_busy_for_a_moment_has_not_lost_its_table() -> None:
    """A table that was there makes the poll fail once; only if it keeps failing is it left out."""

    async def use(session: Session) -> list[str]:
        adapter, seen = SessionAsker(session), []
        for faults in (Faults(), broken, broken, Faults()):
            device.misbehave(faults)
            asker = adapter.until(time.monotonic() + 20)
            try:
                seen.append(f"{len(await asker.walk([IN_OCTETS, IF_DESCR]))}, refused {[*session.refusals]}")
            except SnmpPollError as failure:
                seen.append(failure.kind.name)
        await session.close()
        return seen

    broken = Faults(gen_err=(IF_X_TABLE,))
    with responder(system() | interfaces(3)) as device:
        access = Access("127.0.0.1", device.address[1], "2c", "public", "", "", "SHA", "", "AES", "")
        seen = asyncio.run(use(Session(access, SessionOptions())))
    assert seen == ["6, refused []", FailureKind.STATUS.name, f"3, refused ['{IN_OCTETS}']", "6, refused []"]


def test_each_asker_keeps_its_own_deadline() -> None:
    """One of a survey and one of a poll in the same task: the second does not shorten the first."""

    async def use(session: Session) -> list[str]:
        adapter = SessionAsker(session)
        survey, poll = adapter.until(time.monotonic() + 5), adapter.until(time.monotonic() - 1)
        seen = []
        for asker in (survey, poll, survey):
            try:
                seen.append(f"{len(await asker.walk([IF_DESCR]))}")
            except SnmpPollError as failure:
                seen.append(failure.kind.name)
        await session.close()
        return seen

    with responder(system() | interfaces(3)) as device:
        access = Access("127.0.0.1", device.address[1], "2c", "public", "", "", "SHA", "", "AES", "")
        assert asyncio.run(use(Session(access, SessionOptions()))) == ["3", FailureKind.TOO_SLOW.name, "3"]


def test_an_answer_without_a_value_is_no_answered_poll() -> None:
    """A community that may read nothing must not look like a device that is well."""

    async def main(port: int) -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(200):
            poller = await start(config(port), site(), stack)
            for _ in range(2):
                with pytest.raises(SourceError, match="returns none of the requested objects: check"):
                    await poller.poll(time.time_ns())

    with responder({name_of("1.3.6.1.4.1.99999.1.0"): Cell(2, 1)}) as device:
        asyncio.run(main(device.address[1]))


def test_a_survey_that_takes_longer_than_a_poll_does_not_make_a_check_fail() -> None:
    """A run would get through, so the check before the run does as well, and says what it means."""
    with responder(system() | interfaces(3)) as device:
        device.misbehave(Faults(delay_s=0.5))  # some forty requests
        hurries = threading.Timer(7, device.misbehave, [Faults()])
        hurries.start()
        check = checked(device, interval="6s")
        hurries.join()
    assert check.error is None
    assert check.per_poll > 30
    assert check.facts is not None
    assert [note for note in check.facts.notes if note.startswith("the first survey took")]


def test_a_device_behind_a_slow_path_is_not_called_down() -> None:
    """Its answers come after 1.2 s, on a busy machine later, more than an interval of a second allows: that is said,
    with the remedy."""
    with responder(system() | interfaces(1)) as device:
        device.misbehave(Faults(delay_s=1.2))
        check = checked(device, interval="1s")
    assert check.error is not None
    said = re.search(
        r"the agent answers, but only after ([\d.]+) s: raise timeout and interval above that", check.error
    )
    assert said is not None, check.error
    assert float(said[1]) >= 1.2


def test_a_device_that_goes_away_during_its_survey_is_reported_as_gone() -> None:
    """And not as one that is being surveyed."""
    with responder(system() | interfaces(3)) as device:
        device.misbehave(Faults(drop=1.0, below=(IF_TABLE,)))
        check = checked(device, interval="3s")
    assert check.error is not None
    assert "surveyed" not in check.error


@pytest.mark.parametrize(("profile", "noted"), [("cisco-asa", True), ("linux", False)])
def test_a_profile_that_does_not_fit_is_reported_by_the_check_before_the_run(profile: str, noted: bool) -> None:
    """A wrong name in the plan would else be found out in the morning."""
    with responder(system() | interfaces(1)) as device:
        check = checked(device, f"version=2c&profile={profile}")
    assert check.error is None
    assert check.facts is not None
    assert any("auto would choose linux" in note for note in check.facts.notes) == noted


def test_a_value_that_does_not_parse_is_reported_by_the_check_before_the_run() -> None:
    """Faults are reported once, with the first answer; the check must not forget them with the second."""
    with responder(system() | interfaces(2)) as device:
        device.set("1.3.6.1.2.1.2.2.1.14.1", b"abc")  # ifInErrors
        check = checked(device, "version=2c&profile=generic")
    assert check.error is None
    assert [fault.metric for fault in check.faults] == ["system.network.errors"]
    assert "'abc' is not a number" in check.faults[0].text


def test_what_the_plan_leaves_out_is_not_called_missing() -> None:
    """A device does not lack what it is not asked for."""
    assert "system.network.io" in load_profiles()["linux"].promised
    with responder(system() | {name_of(PROCESSOR_LOAD): Cell(2, 7)}) as device:
        plan = plan_from_text(PLAN.format(port=device.address[1], keys="groups: [host_processors]"), "p.yaml")
        (check,) = asyncio.run(check_sources(plan, Path()))
    assert check.error is None
    assert "system.cpu.utilization" in {sample.metric for sample in check.samples}
    assert check.lacking == ()


def test_a_cpu_that_the_device_averages_over_a_minute_shows_no_short_spikes() -> None:
    """hrProcessorLoad changes once a minute: asked every second, it is the same reading sixty times."""
    with responder(system() | {name_of(PROCESSOR_LOAD): Cell(2, 7)}) as device:
        plan = plan_from_text(PLAN.format(port=device.address[1], keys="profile: linux"), "p.yaml")
        checks = asyncio.run(check_sources(plan, Path()))
    (warning,) = (sentence for _, sentence in sensitivity(plan, checks) if "cpu_spike" in sentence)
    assert "every 1 min" in warning
    assert "11s" not in warning


def test_a_wrong_profile_of_your_own_is_reported_before_the_device_is_asked(tmp_path: Path) -> None:
    """Also where auto chooses: the device may be off, and the wrong one may be the one that it would get."""
    (tmp_path / "mine.yaml").write_text("title: [\n")

    async def main() -> None:
        async with AsyncExitStack() as stack:
            keys = {"host": "127.0.0.1", "port": 9, "interval": "1s", "profiles": str(tmp_path)}
            await start(Config.model_validate(keys), site(), stack)

    with pytest.raises(PlanError, match=r"mine\.yaml:2:1"):
        asyncio.run(main())
