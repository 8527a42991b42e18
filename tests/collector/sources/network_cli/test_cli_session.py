"""The session on a device's command line, through the poller ssh, on a real SSH server of the loopback."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.collector.sources.network_cli.conftest import Clock, output, with_poller

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import (
    CPU_METRICS,
    Identifies,
    LoginRefusedError,
    Poller,
    ReadsCpuAlone,
    SourceError,
    WatchedProcess,
)
from soakwatch.sources.platforms.guard import refusal
from soakwatch.sources.profiles import loading as platforms
from soakwatch_model.sample import Answer
from soakwatch_testing.cli_device import ERASURES, CliDevice

TEXTS = {
    "cisco-asa": {
        "show cpu usage": "show_cpu",
        "show memory": "show_memory",
        "show processes cpu-usage": "show_processes_cpu",
        "show processes memory": "show_processes_memory",
        "show asp drop": "show_asp_drop",
        "show version": "show_version",
        "show conn count": "show_conn_count",
        "show failover": "show_failover",
    },
    "cisco-ios": {
        "show processes cpu": "show_processes_cpu",
        "show processes memory": "show_processes_memory",
        "show interfaces": "show_interfaces",
        "show version": "show_version",
    },
}


def asa(**more: Any) -> CliDevice:
    answers = {text: output("cisco-asa", name) for text, name in TEXTS["cisco-asa"].items()}
    return CliDevice(answers=answers, unpage=("terminal pager 0",), **more)


def ios(**more: Any) -> CliDevice:
    answers = {text: output("cisco-ios", name) for text, name in TEXTS["cisco-ios"].items()}
    base: dict[str, Any] = {
        "prompt": "edge1{mark}",
        "unpage": ("terminal length 0", "terminal width 511"),
        "refusal": "             ^\n% Invalid input detected at '^' marker.\n",
        "exec_refusal": 'Line has invalid autocommand "exec sh"',
        "version": "Cisco-1.25",
    }
    return CliDevice(answers=answers, **(base | more))


def values(answer: Answer) -> dict[tuple[str, str], float]:
    return {(sample.metric, sample.object): sample.value for sample in answer.samples}


def one_poll(device: CliDevice, folder: Path, *processes: WatchedProcess, **keys: Any) -> tuple[Answer, Poller]:
    got: list[tuple[Answer, Poller]] = []

    async def poll_once(poller: Poller, clock: Clock) -> None:
        got.append((await poller.poll(clock.now), poller))

    asyncio.run(with_poller(device, folder, poll_once, *processes, **keys))
    return got[0]


def test_an_asa_is_asked_and_only_asked(tmp_path: Path) -> None:
    device = asa()
    answer, poller = one_poll(device, tmp_path, WatchedProcess("dp", "name", "Dispatch Unit"), os="cisco-asa")
    readings = values(answer)
    assert readings["system.cpu.utilization", ""] == pytest.approx(0.077)
    assert readings["system.memory.usage", ""] == 2010205958
    assert readings["system.forwarding.dropped", "place=frame,reason=brand-new-reason"] == 3
    assert readings["system.forwarding.denied", "place=frame,reason=acl-drop"] == 98765
    assert readings["system.forwarding.denied", "place=flow,reason=acl-drop"] == 482
    assert readings["process.up", "process=dp,instance=0"] == 1
    assert readings["process.cpu.utilization", "process=dp,instance=0"] == pytest.approx(0.012)
    assert readings["system.uptime", ""] == 12 * 86400 + 3 * 3600
    assert isinstance(poller, Identifies)
    facts = poller.facts()
    assert facts.identity["version"] == "9.16(4)14"
    assert facts.identity["serial"] == "JAD00000AAA"
    assert "known_hosts" in facts.identity["host key"]
    setup = platforms.platform("cisco-asa").dialect.setup
    assert device.typed
    assert [line for line in device.typed if refusal(line, setup)] == []


def test_a_device_that_is_left_alone_is_asked_for_its_cpu_and_nothing_else(tmp_path: Path) -> None:
    device = asa()
    answers: list[Answer] = []

    async def poll_cpu(poller: Poller, clock: Clock) -> None:
        assert isinstance(poller, ReadsCpuAlone)
        await poller.poll(clock.now)
        before = len(device.typed)
        clock.sleep(1)
        answers.append(await poller.poll_cpu(clock.now))
        assert device.typed[before:] == ["show cpu usage"]

    asyncio.run(with_poller(device, tmp_path, poll_cpu, os="cisco-asa"))
    assert ("system.cpu.utilization", "") in values(answers[0])
    assert {metric for metric, _ in values(answers[0])} <= CPU_METRICS | {"system.cpu.module.average"}


def test_auto_recognises_ios_after_its_refusal_of_a_shell_and_needs_one_session_a_connection(tmp_path: Path) -> None:
    answer, poller = one_poll(ios(), tmp_path)
    readings = values(answer)
    assert isinstance(poller, Identifies)
    assert poller.facts().identity["driver"] == "cisco-ios"
    assert readings["system.cpu.utilization", ""] == 0.05
    assert readings["queue.dropped", "queue=GigabitEthernet0/0/0 input"] == 12


def test_a_system_that_says_nothing_of_itself_is_asked_what_it_is(tmp_path: Path) -> None:
    device = asa(exec_refusal="ERROR: % Invalid input detected", version="Cisco-1.25")
    _, poller = one_poll(device, tmp_path)
    assert isinstance(poller, Identifies)
    assert poller.facts().identity["driver"] == "cisco-asa"


@pytest.mark.parametrize(
    ("pager", "erase"),
    [
        *(("<--- More --->", erase) for erase in ERASURES),
        (" --More-- ", "backspace"),
        ("---(more 25%)---", "clear"),
        ("  ---- More ----", "ansi"),
        ("Press any key to continue (Q to quit)", "return"),
        ("-- MORE --, next page: Space, next line: Enter, quit: Control-C", "none"),
        ("lines 1-23", "clear"),
    ],
)
def test_pages_are_turned_whatever_the_pager_looks_like(tmp_path: Path, pager: str, erase: str) -> None:
    device = asa(rows=5, pager=pager, erase=erase)
    device.unpage = ()
    answer, poller = one_poll(device, tmp_path, os="cisco-asa", commands=("show_asp_drop",))
    assert len(values(answer)) == 10
    assert isinstance(poller, Identifies)
    assert any("pages are turned" in note for note in poller.facts().notes)
    assert not any("not known" in note for note in poller.facts().notes)


def test_privileges_are_raised_with_the_secret_and_the_secret_is_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENABLE", "s3cr3t!")
    device = ios(enable_password="s3cr3t!")
    answer, poller = one_poll(device, tmp_path, os="cisco-ios", enable="env:ENABLE")
    assert values(answer)["system.cpu.utilization", ""] == 0.05
    assert isinstance(poller, Identifies)
    assert "s3cr3t!" not in repr(poller.facts()) + repr(answer)


def test_a_wrong_enable_password_is_sent_once_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE", "wr0ng-one")
    device = ios(enable_password="right")
    with pytest.raises(LoginRefusedError, match="refused the enable password: check enable") as failed:
        one_poll(device, tmp_path, os="cisco-ios", enable="env:ENABLE")
    assert "wr0ng-one" not in str(failed.value)
    assert "wr0ng-one" not in device.typed


def test_without_the_enable_password_refusals_are_faults_and_a_note(tmp_path: Path) -> None:
    device = ios(enable_password="right")
    del device.answers["show processes memory"]
    answer, poller = one_poll(device, tmp_path, os="cisco-ios")
    assert values(answer)["system.cpu.utilization", ""] == 0.05
    fault = next(fault for fault in answer.faults if fault.metric == "system.memory.usage")
    assert "refuses 'show processes memory'" in fault.text
    assert isinstance(poller, Identifies)
    assert any("no enable password" in note for note in poller.facts().notes)


def test_a_prompt_that_never_comes_is_reported_with_the_last_line(tmp_path: Path) -> None:
    device = ios(greeting="Welcome to nothing\n\x1b[2Jchoose 1 or 2: ", silent={""})
    begun = time.monotonic()
    with pytest.raises(SourceError) as failed:
        one_poll(device, tmp_path, os="cisco-ios")
    assert re.search(r"no prompt like NAME# or NAME> within [\d.]+ ?s; last line 'choose 1 or 2:'", str(failed.value))
    assert time.monotonic() - begun < 20


def test_a_command_that_hangs_costs_its_own_metrics_only_and_the_session_is_opened_again(tmp_path: Path) -> None:
    device = ios(silent={"show interfaces"})

    async def work(poller: Poller, clock: Clock) -> None:
        answer = await poller.poll(clock.now)
        assert values(answer)["system.cpu.utilization", ""] == 0.05
        fault = next(fault for fault in answer.faults if fault.metric == "queue.depth")
        assert "no prompt like NAME# or NAME> after 'show interfaces'" in fault.text
        assert "'nothing:'" in fault.text
        device.silent.clear()
        clock.sleep(20)
        answer = await poller.poll(clock.now)
        assert values(answer)["queue.depth", "queue=GigabitEthernet0/0/0 input"] == 3
        assert values(answer)["system.cpu.utilization", ""] == 0.05

    asyncio.run(with_poller(device, tmp_path, work, os="cisco-ios"))


def test_log_lines_before_the_echo_and_in_the_answer_do_no_harm(tmp_path: Path) -> None:
    line = "%ASA-4-106023: Deny tcp src outside:192.0.2.9/1 dst inside:192.0.2.1/22"
    device = asa(logs=[line, line, line, line])
    answer, poller = one_poll(device, tmp_path, os="cisco-asa", commands=("show_asp_drop", "show_memory"))
    readings = values(answer)
    assert readings["system.forwarding.dropped", "place=frame,reason=no-route"] == 35
    assert readings["system.memory.limit", ""] == 5218306208
    assert isinstance(poller, Identifies)
    assert any("unknown, such as '%ASA-4-106023" in note for note in poller.facts().notes)


def test_a_prompt_that_changes_is_followed(tmp_path: Path) -> None:
    device = asa(rename={"show memory": "fw2/sec/act{mark} "})
    answer, poller = one_poll(device, tmp_path, os="cisco-asa", commands=("show_memory", "show_asp_drop"))
    assert len(values(answer)) == 13
    assert isinstance(poller, Identifies)
    assert poller.facts().identity["name in the prompt"] == "fw2"


def test_a_config_prompt_is_a_prompt(tmp_path: Path) -> None:
    answer, _ = one_poll(ios(prompt="edge1(config-if){mark}"), tmp_path, os="cisco-ios")
    assert values(answer)["system.cpu.utilization", ""] == 0.05


def test_no_echo_and_dribbling_output(tmp_path: Path) -> None:
    answer, _ = one_poll(ios(echo=False), tmp_path, os="cisco-ios", commands=("show_processes_cpu",))
    assert values(answer)["system.cpu.utilization", ""] == 0.05
    device = ios(piece=23, pause_s=0.002)
    answer, _ = one_poll(device, tmp_path, os="cisco-ios", commands=("show_processes_cpu", "show_version"))
    assert values(answer)["system.cpu.utilization", ""] == 0.05
    assert values(answer)["system.uptime", ""] == 1472700


def test_a_device_that_hangs_up_in_the_middle_is_asked_again_at_the_next_poll(tmp_path: Path) -> None:
    device = ios(cut={"show processes cpu"})

    async def work(poller: Poller, clock: Clock) -> None:
        with pytest.raises(SourceError, match=r"(ended the session in the middle|lost the connection)"):
            await poller.poll(clock.now)
        device.cut.clear()
        clock.sleep(1)
        assert values(await poller.poll(clock.now))["system.cpu.utilization", ""] == 0.05

    asyncio.run(with_poller(device, tmp_path, work, os="cisco-ios"))


def test_a_poll_that_is_given_up_leaves_nothing_out_of_step(tmp_path: Path) -> None:
    device = ios(silent={"show processes cpu"})

    async def work(poller: Poller, clock: Clock) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await poller.poll(clock.now)
        device.silent.clear()
        clock.sleep(1)
        assert values(await poller.poll(clock.now))["system.cpu.utilization", ""] == 0.05

    asyncio.run(with_poller(device, tmp_path, work, os="cisco-ios"))


def test_a_reboot_is_reported_with_its_reason_and_a_crash_as_such(tmp_path: Path) -> None:
    device = ios()

    async def work(poller: Poller, clock: Clock) -> None:
        first = await poller.poll(clock.now)
        assert [event.kind for event in first.events] == []
        clock.sleep(600)
        text = output("cisco-ios", "show_version")
        device.answers["show version"] = text.replace(
            "uptime is 2 weeks, 3 days, 1 hour, 5 minutes", "uptime is 3 minutes"
        )
        device.cut_all()
        clock.sleep(1)
        answer = await _until_answered(poller, clock)
        assert [event.kind for event in answer.events] == ["reboot", "device.crash"]
        reboot, crash = answer.events
        assert reboot.detail["reboot_reason"].startswith("Critical software exception")
        assert crash.detail["reason"].startswith("Critical software exception")
        clock.sleep(600)
        device.answers["show version"] = text.replace(
            "uptime is 2 weeks, 3 days, 1 hour, 5 minutes", "uptime is 13 minutes"
        )
        assert [event.kind for event in (await poller.poll(clock.now)).events] == []

    asyncio.run(with_poller(device, tmp_path, work, os="cisco-ios"))


async def _until_answered(poller: Poller, clock: Clock) -> Answer:
    for _ in range(3):
        try:
            return await poller.poll(clock.now)
        except SourceError:
            clock.sleep(1)
    raise AssertionError("no look succeeded")


def test_a_crash_file_from_before_is_a_note_and_a_new_one_an_event_once(tmp_path: Path) -> None:
    crash = output("cisco-asa", "show_crashinfo")
    device = asa()
    device.answers["show crashinfo"] = crash

    async def work(poller: Poller, clock: Clock) -> None:
        answer = await poller.poll(clock.now)
        assert [event.kind for event in answer.events] == []
        assert isinstance(poller, Identifies)
        assert any("device.crash from before the run" in note for note in poller.facts().notes)
        device.answers["show crashinfo"] = crash.replace("03:04:05", "04:05:06")
        kinds = []
        for _ in range(3):
            clock.sleep(400)
            kinds += [event.kind for event in (await poller.poll(clock.now)).events if event.kind != "reboot"]
        assert kinds == ["device.crash"]

    asyncio.run(with_poller(device, tmp_path, work, os="cisco-asa", commands=("show_crashinfo", "show_cpu")))


def test_slow_commands_are_asked_at_their_own_pace(tmp_path: Path) -> None:
    device = ios()

    async def work(poller: Poller, clock: Clock) -> None:
        for _ in range(21):
            await poller.poll(clock.now)
            clock.sleep(1)
        assert device.typed.count("show processes cpu") == 21
        assert device.typed.count("show interfaces") == 3
        assert device.typed.count("show version") == 1
        assert device.sessions == 1
        assert isinstance(poller, Identifies)
        paces = poller.facts().cadences
        assert "system.cpu.utilization" not in paces
        assert paces["queue.depth"] == 10
        assert paces["system.uptime"] == 60

    asyncio.run(with_poller(device, tmp_path, work, os="cisco-ios"))


def test_routeros_is_asked_one_exec_a_command(tmp_path: Path) -> None:
    device = CliDevice(version="ROSSSH", exec_refusal="bad command name exec (line 1 column 1)")
    device.answers["/system resource print"] = output("mikrotik-routeros", "system_resource_print")
    device.answers["/system routerboard print"] = output("mikrotik-routeros", "system_routerboard_print")
    answer, poller = one_poll(device, tmp_path)
    assert values(answer)["system.cpu.utilization", ""] == 0.12
    assert isinstance(poller, Identifies)
    assert poller.facts().identity["driver"] == "mikrotik-routeros"


def test_a_top_that_does_not_end_is_ended(tmp_path: Path) -> None:
    device = CliDevice(
        prompt="fgt1 # ",
        greeting="Pre-login notice\n(Press 'a' to accept): ",
        greeting_key="a",
        refusal="command parse error before 'top'\nCommand fail. Return code -61",
        rows=4,
        pager="--More-- ",
        erase="return",
    )
    device.answers["get system performance status"] = output("fortinet-fortigate", "get_system_performance_status")
    device.answers["diagnose sys top 1 99"] = output("fortinet-fortigate", "diagnose_sys_top") + "\n--More-- "
    answer, _ = one_poll(device, tmp_path, WatchedProcess("ips", "name", "ipsengine"), os="fortinet-fortigate")
    readings = values(answer)
    assert readings["system.uptime", ""] == 12 * 86400 + 3 * 3600 + 4 * 60
    assert readings["process.cpu.utilization", "process=ips,instance=0"] == pytest.approx(0.12)


def test_a_device_that_refuses_everything_is_a_failed_poll(tmp_path: Path) -> None:
    device = ios()
    device.answers.clear()
    with pytest.raises(SourceError, match="refuses every command"):
        one_poll(device, tmp_path, os="cisco-ios")


def test_endless_output_is_cut_off(tmp_path: Path) -> None:
    device = ios()
    device.answers["show processes cpu"] = "x" * 79 + "\n"
    device.answers["show processes cpu"] *= 80_000
    with pytest.raises(SourceError, match="sent more than 4 MiB for 'show processes cpu': it was cut off"):
        one_poll(device, tmp_path, os="cisco-ios", interval="14s")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"os": "cisco_aso"}, "did you mean 'cisco-asa'"),
        ({"os": "cisco-asa", "commands": ("show_asp_drops",)}, "did you mean 'show_asp_drop'"),
    ],
)
def test_wrong_names_are_reported_with_the_nearest(tmp_path: Path, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        one_poll(asa(), tmp_path, **keys)


def test_an_unknown_system_is_reported_with_what_it_printed(tmp_path: Path) -> None:
    device = CliDevice(prompt="toaster> ", refusal="% Unknown command: bread only", exec_refusal="% No")
    with pytest.raises(SourceError, match=r"not a known network system \(it answered '% Unknown command: bread"):
        one_poll(device, tmp_path)


def test_the_session_ends_with_the_run(tmp_path: Path) -> None:
    device = ios()

    async def work(poller: Poller, clock: Clock) -> None:
        await poller.poll(clock.now)

    async def whole() -> None:
        async with AsyncExitStack():
            await with_poller(device, tmp_path, work, os="cisco-ios")

    asyncio.run(whole())
    assert not device._open
