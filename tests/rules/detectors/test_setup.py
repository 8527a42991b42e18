"""setup: what a fingerprint says that limits results, and what it does not say."""

from __future__ import annotations

import pytest

from soakwatch_model.case import Case, TargetFacts
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.tree import Tree
from soakwatch_model.window import Window
from soakwatch_rules.detectors.setup import Setup
from soakwatch_rules.machine.description import cores_in, described
from soakwatch_testing.scenarios.families import cuts, named
from soakwatch_testing.scenarios.setup import SOUND, VIRTUAL, card, host, link

S = 10**9


def judge(machine: dict[str, Tree], rule: Setup | None = None, role: str = "dut") -> tuple[Finding, ...]:
    """What is said of a machine that is not watched otherwise."""
    return (rule or Setup()).judge(
        Case("dut", "", Window(0, 3600 * S), role=role, facts=TargetFacts(fingerprint=machine))
    )


def said(name: str) -> Finding:
    """The first finding of a scenario."""
    (case,) = cuts(Setup(), named("setup", name).signal(0).case)
    return Setup().judge(case)[0]


@pytest.mark.parametrize(
    ("scenario", "part", "words"),
    [
        (
            "x4 of x8",
            "interface=eth0,check=pcie",
            "which carries 31.5 Gbit/s each way (its port: 25 Gbit/s)",
        ),
        (
            "5 of 8 GT/s, the slot's most",
            "interface=eth0,check=pcie",
            "each way (its port: 25 Gbit/s); the card could do x8 at 8 GT/s, its slot 5 GT/s: put it into a slot",
        ),
        (
            "x8 of x16, bound to vfio-pci",
            "card=0000:3b:00.0,check=pcie",
            "could do x16 at 8 GT/s: put it into",
        ),
        ("half duplex", "interface=eth0,check=duplex", "half duplex at 100 Mbit/s"),
        ("firmware differs", "model=0x8086 0x159b,of=firmware,check=firmware", "4.20 on eth1, 4.40 on eth0"),
        ("modules differ", "model=LC-36,of=firmware,check=firmware", "1.1 on slot 2, 1.2 on slot 1"),
        ("interrupts on the other node", "interface=eth0,check=numa", "set their affinity to cores of node 1"),
        ("powersave where cores poll", "part=cpu,check=governor", "`cpupower frequency-set -g performance`"),
        ("powersave on a generator", "part=cpu,check=governor", "schedutil and not performance although it is a gen"),
        ("governors differ", "part=cpu,check=governor", "performance for 12 cores, powersave for 4 cores"),
        ("turbo differs", "part=cpu,check=turbo", "on for 8 cores, off for 8 cores"),
        ("deep idle states where cores poll", "part=cpu,check=cstates", "enabled (C6 133 µs)"),
        ("one core of eight receives", "part=cpu,check=spread", "is on 1 of 8 cores (0), which spend 85"),
        ("RSS table of one queue", "interface=eth0,check=spread", "`ethtool -X eth0 equal 8`"),
        ("interrupts on one core", "interface=eth0,check=spread", "the 8 interrupts of eth0 go to 1 core of 16"),
        ("governor changed", "check=change", "cpu governor: performance -> powersave"),
    ],
)
def test_each_warning_names_its_part_and_the_remedy(scenario: str, part: str, words: str) -> None:
    """What is amiss, of what, and what to do."""
    finding = said(scenario)
    assert (finding.outcome, finding.object) == (Outcome.WARN, part)
    assert words in finding.reason


def test_what_was_not_told_is_no_pass() -> None:
    """A virtual machine has nothing that can be judged; the finding says what it does not know."""
    (finding,) = judge(VIRTUAL, role="generator")
    assert finding.outcome is Outcome.NOT_APPLICABLE
    assert "frequency governor (not reported)" in finding.reason
    bound: dict[str, Tree] = {"pci_network": {"0000:3b:00.0": {"driver": "vfio-pci"}}}
    assert "PCIe link of 0000:3b:00.0 (not reported)" in judge(bound)[0].reason
    (sound,) = judge(SOUND)
    assert sound.outcome is Outcome.PASS
    assert "idle states (no core polls)" in sound.reason


def test_a_speed_that_may_be_that_of_rest_is_not_called_slow() -> None:
    """Cards and GPUs lower it to save power, also in a slot that gives all of it; fewer lanes are fewer at rest too."""
    slow = link(8, 8, 2.5)
    for pcie in (slow, {**slow, "slot_max_link_speed": 16.0}):
        (finding,) = judge(host({"eth0": card(pcie=pcie)}))
        assert finding.outcome is Outcome.PASS
        assert "PCIe link of eth0 (x8 at 2.5 GT/s of 8 GT/s when read, which may be rest)" in finding.reason
    (narrow,) = judge(host({"eth0": card(pcie=link(4, 8, 2.5))}))
    assert (narrow.outcome, narrow.measured, narrow.limit, narrow.unit) == (Outcome.WARN, 4, 8, "{lane}")


def test_records_from_before_are_not_applicable() -> None:
    """A tree as earlier releases wrote it is judged as far as it goes; without any nothing is."""
    early: dict[str, Tree] = {"cpu": {"governor": "powersave"}, "nics": {"eth0": {"driver": "igb", "mtu": 1500}}}
    (finding,) = judge(early)
    assert (finding.outcome, finding.samples) == (Outcome.NOT_APPLICABLE, 0)
    assert "powersave" in finding.reason
    assert judge({})[0].reason == "this target reported nothing of how it is set up"


def test_several_things_are_several_findings() -> None:
    """Each has a finding of its own, and they differ in their object."""
    findings = judge(
        host({"eth0": card(pcie=link(4, 8), duplex="half", numa_node=1)}, governor="x (1 cores), y (2 cores)")
    )
    assert [f.object for f in findings] == [
        "interface=eth0,check=pcie",
        "interface=eth0,check=duplex",
        "interface=eth0,check=numa",
        "part=cpu,check=governor",
    ]


def test_a_plan_chooses_what_each_thing_means() -> None:
    """0 is ignore, 1 warn, 2 fail: a plan writes the words."""
    slow = host({"eth0": card(pcie=link(4, 8))})
    assert judge(slow, Setup(pcie=2))[0].outcome is Outcome.FAIL
    assert judge(slow, Setup(pcie=0))[0].outcome is Outcome.PASS
    with pytest.raises(ValueError, match="setup: numa is 3"):
        Setup(numa=3)


def test_the_machine_of_the_monitor_is_not_judged() -> None:
    """It is neither the device nor what loads it."""
    assert judge(host({"eth0": card(pcie=link(4, 8))}), role="monitor")[0].outcome is Outcome.NOT_APPLICABLE


def test_a_card_that_a_program_drives_belongs_to_the_cores_that_poll() -> None:
    """By the cores that are kept apart; the port of the kernel on the same node is left to its interrupts."""
    cards: dict[str, Tree] = {"0000:d8:00.0": {"driver": "vfio-pci", "numa_node": 1, "pcie": link(16, 16)}}
    findings = judge({**host({"eth0": card()}, isolated="2-7"), "pci_network": cards})
    assert [f.object for f in findings] == ["card=0000:d8:00.0,check=numa"]
    assert "give the program cores of node 1" in findings[0].reason


@pytest.mark.parametrize("odd", [{"cpu": 3}, {"nics": "none"}, {"nics": {"a": {"pcie": []}}}, {"modules_hw": [1, {}]}])
def test_a_tree_of_another_form_is_not_told(odd: dict[str, Tree]) -> None:
    """What is not as expected counts as absent and raises nothing."""
    assert judge(odd)[0].outcome is Outcome.NOT_APPLICABLE
    assert described({"cpu": {"turbo": True}}).turbo == {"on": 0}
    assert cores_in(["0-1", "x", None]) == {0, 1}


OUTCOMES = """
setup                               | setup
virtual machine                     | N
virtual machine that generates      | N
virtual machine, one queue busy     | P
two cores, one receives             | N
sound host                          | P
sound host that polls               | P
sound host, even load               | P
sound host, light load on one core  | P
chassis, modules alike              | P
kernel router with powersave        | P
deep idle states, nothing polls     | P
a port at rest that is slow         | P
reported nothing                    | N
x4 of x8                            | W
2.5 of 8 GT/s, perhaps at rest      | P
5 of 8 GT/s, the slot's most        | W
x8 of x16, bound to vfio-pci        | W
half duplex                         | W
firmware differs                    | W
modules differ                      | W
interrupts on the other node        | W
powersave where cores poll          | W
powersave on a generator            | W
governors differ                    | W
turbo differs                       | W
deep idle states where cores poll   | W
deep idle states where others poll  | P
one core of eight receives          | W
RSS table of one queue              | W
interrupts on one core              | W
governor changed                    | W
"""
