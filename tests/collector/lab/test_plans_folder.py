"""Plans come from their folder and from nowhere else; what a testbed is, and what an operator may change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.collector.lab.conftest import plan_text

from soakwatch.core.errors import PlanError
from soakwatch.lab.lab_model import LabError, NotAllowedError, Order, UnknownError
from soakwatch.lab.plans_folder import Planned, PlansFolder, require_open


@pytest.fixture
def folder(plans: Path) -> PlansFolder:
    """The folder, with what does not belong there beside it."""
    outside = plans.parent / "secret"
    outside.mkdir()
    (outside / "evil.yaml").write_text(plan_text("192.0.2.66"))
    (plans / "fw").mkdir()
    (plans / "fw" / "night.yml").write_text(plan_text("FW1.lab"))
    (plans / "link.yaml").symlink_to("a.yaml")
    (plans / "out.yaml").symlink_to(outside / "evil.yaml")
    (plans / "away").symlink_to(outside)
    (plans / "loop.yaml").symlink_to("loop.yaml")
    (plans / ".hidden.yaml").write_text(plan_text("192.0.2.1"))
    (plans / "a.reference.yaml").write_text("ceilings: {}")
    (plans / "notes.txt").write_text("not a plan")
    (plans / "folder.yaml").mkdir()
    os.mkfifo(plans / "pipe.yaml")
    (plans / "large.yaml").write_text("#" * (3 << 20))
    return PlansFolder(plans)


@pytest.mark.parametrize(
    "name",
    [
        "../secret/evil.yaml",
        "fw/../../secret/evil.yaml",
        "out.yaml",
        "away/evil.yaml",
        "loop.yaml",
        ".hidden.yaml",
        "notes.txt",
        "folder.yaml",
        "pipe.yaml",
        "large.yaml",
        "",
        ".",
        "..",
        "a.yaml\x00",
        "a.yaml/b.yaml",
        "fw\\night.yml",
        "~/a.yaml",
        "$HOME/a.yaml",
        "a" * 5000 + ".yaml",
    ],
)
def test_nothing_but_a_plan_of_the_folder_is_read(folder: PlansFolder, name: str) -> None:
    with pytest.raises(UnknownError) as refused:
        folder.read(Order(name))
    assert "192.0.2.66" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_an_absolute_path_is_no_plan_even_of_the_folder(folder: PlansFolder) -> None:
    with pytest.raises(UnknownError, match=r"write its path in the plans folder, such as fw/night\.yaml"):
        folder.read(Order(str(folder.path / "a.yaml")))


def test_a_link_within_the_folder_is_a_plan(folder: PlansFolder) -> None:
    assert folder.read(Order("link.yaml")).file == folder.path / "a.yaml"
    assert folder.read(Order("fw/night.yml")).testbed.hosts == ("fw1.lab",)


def test_the_list_has_the_plans_with_what_is_wrong(folder: PlansFolder) -> None:
    """Neither references nor hidden files nor what is below a link to elsewhere."""
    listed = {one.plan: one for one in folder.listed()}
    assert set(listed) == {
        "a.yaml",
        "b.yaml",
        "rack.yaml",
        "fw/night.yml",
        "link.yaml",
        "out.yaml",
        "pipe.yaml",
        "large.yaml",
    }
    assert (listed["rack.yaml"].testbed, listed["rack.yaml"].planned_s, listed["rack.yaml"].trouble) == (
        "rack-3",
        3600,
        "",
    )
    assert "leads out of the plans folder" in listed["out.yaml"].trouble
    (folder.path / "rack.yaml").write_text(plan_text("192.0.2.3", more="labels: {testbed: rack-4}\n"))
    assert {one.plan: one.testbed for one in folder.listed()}["rack.yaml"] == "rack-4"


@pytest.mark.parametrize(
    ("text", "labels", "names", "hosts"),
    [
        (plan_text("FW1"), {}, (), ("fw1",)),
        (plan_text("fw1", more="labels: {testbed: rack-3}\n"), {}, ("rack-3",), ("fw1",)),
        (plan_text("fw1", more="labels: {testbed: rack-3}\n"), {"testbed": "rack-4"}, ("rack-4",), ("fw1",)),
        (plan_text("127.0.0.1"), {}, (), ("this machine",)),
        (
            plan_text("fw1") + "  tg: {role: generator, sources: [{prometheus: {url: 'http://TG1:9100/metrics'}}]}\n",
            {},
            (),
            ("fw1", "tg1"),
        ),
        (plan_text("fw1") + "  me: {role: monitor, sources: [{local: {}}]}\n", {}, (), ("fw1",)),
        (
            plan_text("fw1")
            + "  tg: {role: generator, sources: [{prometheus: {url: 'http://prom:9090', query: up, step: 15s}}]}\n",
            {},
            (),
            ("fw1",),
        ),
        (plan_text("fw1") + "  tg: {role: generator, sources: [{k6: {file: k6.csv}}]}\n", {}, (), ("fw1",)),
        ("name: x\nduration: 1h\ntargets:\n  me: {role: dut, sources: [local]}\n", {}, (), ("this machine",)),
    ],
)
def test_what_a_run_occupies(
    folder: PlansFolder, text: str, labels: dict[str, str], names: tuple[str, ...], hosts: tuple[str, ...]
) -> None:
    """The label testbed of submission or plan; the hosts of what is judged and of what loads it."""
    (folder.path / "x.yaml").write_text(text)
    planned = folder.read(Order("x.yaml", labels))
    assert (planned.testbed.names, planned.testbed.hosts) == (names, hosts)


def test_a_campaign_is_one_job_on_all_its_testbeds(folder: PlansFolder) -> None:
    """It takes no values and no labels, for its cells have their own."""
    (folder.path / "sweep.yaml").write_text(
        "plan: a.yaml\nmatrix: {pace: {set: targets.dut.sources.snmp.interval, values: [1s, 2s]}}\nrepeat: 3\n"
        "testbeds: {rack-1: , rack-2: }\n"
    )
    planned: Planned = folder.read(Order("sweep.yaml"))
    assert (planned.kind, planned.name, planned.testbed.names) == ("campaign", "sweep", ("rack-1", "rack-2"))
    assert planned.planned_s == 2 * 3 * 3600 / 2
    with pytest.raises(LabError, match="takes no --set and no --label"):
        folder.read(Order("sweep.yaml", {"release": "7"}))


@pytest.mark.parametrize(
    ("value", "open_to_operators"),
    [
        ("duration=2h", True),
        ("phases.soak.load=80%", True),
        ("rules.loss.limit=1%", True),
        ("targets.dut.sources.snmp.interval=5s", True),
        ("targets.dut.sources.snmp.host=192.0.2.66", False),
        ("targets.dut.sources={command: {run: [sh, -c, id]}}", False),
        ("targets={}", False),
        ("targets.interval={role: dut, sources: [{command: {run: [id]}}]}", False),
        ("targets.dut.sources.snmp.interval={a: 1}", False),
        ("targets.dut.drill.timeout=5s", False),
        ("targets.dut.sources.command.run=[id]", False),
        ("hooks=[{on: fail, run: [id]}]", False),
        ("events.0.run=[id]", False),
        ("labels.build={command: [id]}", False),
        ("sinks={}", False),
        ("notify=[]", False),
        ("web.listen=0.0.0.0:1", False),
        ("reference=/etc/passwd", False),
        ("baseline=/etc", False),
    ],
)
def test_what_an_operator_may_change(value: str, *, open_to_operators: bool) -> None:
    """Nothing that names a command, a file, or a host that would get a secret."""
    if open_to_operators:
        require_open((value,))
        return
    with pytest.raises(NotAllowedError, match="needs the role admin"):
        require_open(("duration=1h", value))


def test_a_plan_with_an_unknown_profile_is_refused_when_it_is_submitted(folder: PlansFolder) -> None:
    """With the place below the folder, the nearest name, and the command that lists them."""
    (folder.path / "fw" / "typo.yaml").write_text(
        "duration: 1s\ntargets: {fw: {sources: [{snmp: {host: 192.0.2.1, profile: arista-eoss}}]}}\n"
    )
    sentence = (
        "fw/typo.yaml:2:27: fw snmp: unknown profile 'arista-eoss'; did you mean 'arista-eos'?"
        " (all: soakwatch profiles)"
    )
    with pytest.raises(PlanError) as refused:
        folder.read(Order("fw/typo.yaml"))
    assert str(refused.value) == sentence
    assert {each.plan: each.trouble for each in folder.listed()}["fw/typo.yaml"] == sentence
