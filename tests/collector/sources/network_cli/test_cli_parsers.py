"""What each command of each platform brings, from outputs of its shape."""

from __future__ import annotations

from typing import Any

import pytest
from tests.collector.sources.network_cli.conftest import OUTPUTS, expected, output

from soakwatch.sources.platforms.guard import refusal
from soakwatch.sources.platforms.parsed import Parsed
from soakwatch.sources.profiles import loading as platforms
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import object_labels

CPU, MEMORY = "system.cpu.utilization", "system.memory.usage"
EXPECTED = {platform: expected(platform) for platform in platforms.platform_names()}
CASES = [(platform, command) for platform, known in EXPECTED.items() for command in (*known.brings, *known.lists)]


def results_of(parsed: Parsed) -> dict[str, Any]:
    """Everything that was found under short names."""
    results: dict[str, Any] = {f"{value.metric} {value.object}".strip(): value.value for value in parsed.values}
    results |= {f"cpu {process.name}": process.cpu for process in parsed.processes}
    results |= {f"memory {process.name}": process.memory for process in parsed.processes}
    results |= {f"fact {name}": text for name, text in parsed.facts.items()}
    results |= {f"event {notable.kind}": notable.key for notable in reversed(parsed.notables)}
    return results | ({"uptime": parsed.uptime.seconds} if parsed.uptime else {})


def parse(platform: str, name: str) -> Parsed:
    return read(platform, name, output(platform, name))


def read(platform: str, name: str, text: str) -> Parsed:
    command = platforms.platform(platform).command(name)
    assert command is not None, f"{platform} has no command {name}"
    return command.parse(text)


@pytest.mark.parametrize(("platform", "name"), CASES)
def test_a_command_brings_what_its_output_says(platform: str, name: str) -> None:
    parsed = parse(platform, name)
    results = results_of(parsed)
    known = EXPECTED[platform]
    for key, value in (known.brings | known.lists)[name].items():
        assert key in results
        assert results[key] == (pytest.approx(value) if isinstance(value, float) else value), key
    assert parsed.unknown == ()
    assert parsed.faults == ()


def test_values_have_the_labels_of_the_catalogue() -> None:
    for platform, name in CASES:
        for value in parse(platform, name).values:
            assert tuple(object_labels(value.object)) == BY_NAME[value.metric].labels, f"{platform} {name}"


def test_every_platform_and_every_command_is_tried_here() -> None:
    here = {
        (platform, command.name)
        for platform in platforms.platform_names()
        for command in platforms.platform(platform).commands
    }
    assert here == set(CASES), "expected.yaml in the folder of outputs says what each command of a platform brings"
    assert {folder.name for folder in OUTPUTS.iterdir()} == set(platforms.platform_names()), (
        "a platform has a folder of outputs"
    )


@pytest.mark.parametrize("platform", list(EXPECTED))
def test_every_text_of_every_command_is_a_question(platform: str) -> None:
    driver = platforms.platform(platform)
    for command in driver.commands:
        assert [text for text in command.texts if refusal(text)] == []
        assert set(command.metrics) <= set(BY_NAME)


@pytest.mark.parametrize(
    "harmful",
    [
        "reload",
        "clear counters",
        "show run\nreload",
        "configure terminal",
        "show version | redirect flash:x",
        "show version | tee flash:x",
        "show version > flash:x",
        "write memory",
        "debug all",
        "show x; reload",
        "display version | reset saved",
        "diagnose sys kill 11 1",
        "diagnose debug crashlog clear",
        "get x && reboot",
        "/system reboot",
        "/user set admin print",
        "show crashinfo | include x | append y",
        "",
        "set cli pager off",
    ],
)
def test_nothing_but_questions_is_sent(harmful: str) -> None:
    assert refusal(harmful) is not None


def test_eos_gives_the_same_as_text_and_as_json() -> None:
    text = read("arista-eos", "show_processes_top", output("arista-eos", "show_processes_top.text"))
    results = results_of(text)
    assert results["memory Sysdb"] == 201780 * 1024
    assert results["memory Bgp-main"] == int(1.1 * 2**30)
    assert results[CPU] == pytest.approx(0.073)
    assert text.unknown == ()


def test_an_invalid_value_is_a_fault_and_not_a_number() -> None:
    faults = [
        read("cisco-nxos", "show_system_resources", "CPU states  :   busy").faults,
        read("hpe-comware", "display_cpu_usage", "Slot 1 CPU 0 CPU usage:\n  250% in last 5 seconds").faults,
        read("paloalto-panos", "show_session_info", "Number of allocated sessions:   many").faults,
        read("huawei-vrp", "display_memory_usage", "System Total Memory Is: plenty").faults,
        read(
            "cisco-ios", "show_processes_memory", "Processor Pool Total: 99999999999999999999999 Used: 1 Free: 1"
        ).faults,
        read("cisco-asa", "show_memory", "Used memory: 2000 bytes (39%)\nTotal memory: 1000 bytes (100%)").faults,
    ]
    assert [len(each) for each in faults] == [1, 2, 1, 1, 0, 1]
    assert "is not a number" in faults[2][0].text
    assert "the catalogue allows" in faults[1][0].text


def test_unknown_lines_are_kept_and_counted() -> None:
    text = output("cisco-asa", "show_asp_drop").replace("Flow drop:", "%ASA-6-302013: Built\nFlow drop:")
    parsed = read("cisco-asa", "show_asp_drop", text)
    assert parsed.strange == 1
    assert parsed.unknown == ("%ASA-6-302013: Built",)
    assert len(parsed.values) == 10


def test_older_shapes_are_read_too() -> None:
    old = "CPU utilization for 5 seconds = 12%; 1 minute: 11%; 5 minutes: 10%"
    assert results_of(read("cisco-asa", "show_cpu", old))[CPU] == 0.12
    assert (
        results_of(read("fortinet-fortigate", "get_system_performance_status", "Memory states: 40% used"))[
            "system.memory.utilization"
        ]
        == 0.4
    )
    assert results_of(read("huawei-vrp", "display_cpu_usage", "System CPU Using Percentage :   8%"))[CPU] == 0.08
    assert (
        results_of(
            read("hpe-comware", "display_memory", "System Total Memory(bytes): 400\nTotal Used Memory(bytes): 100")
        )[MEMORY]
        == 100
    )
    single = (
        "Routing Engine status:\n  CPU utilization:\n    User   3 percent\n    Idle   90 percent\n    Uptime   3 days"
    )
    assert results_of(read("juniper-junos", "show_chassis_routing_engine", single))[CPU] == 0.1
    assert (
        results_of(read("nokia-timos", "show_uptime", "System Up Time : 0 days, 00:01:02.03 (hr:min:sec)"))["uptime"]
        == 62
    )
