"""Runs held against one of them: outcomes, figures and how they changed, targets, phases, set-up; and the command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.collector.runs.compared_runs import SECOND, MakeRun, finding, written_run
from tests.commands import Command

from soakwatch.core.errors import SoakwatchError
from soakwatch.record import RecordView
from soakwatch.runs.compare.compared_runs import differences, matrix, setup_of
from soakwatch.runs.compare.figure_rows import FigureRow, FigureSide, figures
from soakwatch.runs.compare.phase_slots import parts_of, slots_of
from soakwatch.runs.compare.targets import target_map
from soakwatch_model.fact import Growth
from soakwatch_model.finding import Outcome
from soakwatch_model.window import Phase, Window


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Writes runs to compare."""
    return partial(written_run, tmp_path / "runs")


def test_the_matrix_puts_what_differs_first() -> None:
    """A rule and a target a line, each with the worst outcome of a run; where nobody asked, nothing was said."""
    first = [
        finding("drops", Outcome.PASS),
        finding("drops", Outcome.FAIL),
        finding("gap", Outcome.FAIL),
        finding("hang", Outcome.PASS),
        finding("growth", Outcome.INCONCLUSIVE),
    ]
    other = [finding("drops", Outcome.PASS), finding("gap", Outcome.FAIL), finding("hang", Outcome.PASS)]
    rows = matrix([first, other])
    assert [(row.rule, row.differs) for row in rows] == [
        ("drops", True),
        ("gap", False),
        ("growth", False),
        ("hang", False),
    ]
    drops = rows[0].cells
    assert [(cell.outcome, cell.count, cell.findings) for cell in drops] == [(Outcome.FAIL, 1, 2), (Outcome.PASS, 1, 1)]
    assert drops[0].reason == "drops says fail"
    alone = matrix([[finding("reboot", Outcome.FAIL)], []])
    assert [(row.differs, row.cells[1].outcome) for row in alone] == [(True, None)]


def test_only_what_differs_of_the_set_up_is_shown(make_run: MakeRun) -> None:
    """Machine, plan and software, by the way to each value; what all runs have comes before what some have."""
    plan = (
        "name: n\nphases:\n- soak: {}\ntargets:\n  fw:\n    sources:\n    - snmp: {{host: 198.18.0.1, interval: {}}}\n"
    )
    machine = '{{"tg": {{"host": {{"kernel": "{}", "os": "same"}}{}}}}}'
    old = make_run("old", plan=plan.format("2m", "10s"), machine=machine.format("6.1", ""), version="7.2")
    new = make_run("new", plan=plan.format("2m", "1s"), machine=machine.format("6.6", ', "smt": true'), version="7.4")
    with RecordView.open(old) as first, RecordView.open(new) as second:
        lines = differences([setup_of(first), setup_of(second)])
    assert [(line.of, line.head, line.cells, line.differs) for line in lines] == [
        ("device", "fw/snmp version", ("7.2", "7.4"), True),
        ("machine", "tg host kernel", ("6.1", "6.6"), True),
        ("plan", "targets fw sources 1 snmp interval", ("10s", "1s"), True),
        ("machine", "tg smt", ("–", "yes"), False),
    ]
    assert differences([{"plan": "a"}, {"plan": "a"}]) == ()
    (line,) = differences([{"plan": "a" * 500}, {"plan": "a" * 499 + "b"}])
    assert (line.cells[0], line.differs) == ("a" * 300, True)


def test_a_set_up_that_is_not_json_or_yaml_is_shown_as_it_is(make_run: MakeRun) -> None:
    """A record that someone's tool wrote does not break the page."""
    with RecordView.open(make_run("odd", plan="a: [", machine="no JSON")) as view:
        assert {"plan": "cannot be read", "machine": "no JSON"}.items() <= setup_of(view).items()


def figures_of(*views: RecordView) -> Mapping[str, FigureRow]:
    """The figures of runs by their heads, the first is the reference."""
    roles = [view.roles() for view in views]
    sides = [
        FigureSide(view, view.findings(live=False), target_map(own, roles[0]))
        for view, own in zip(views, roles, strict=True)
    ]
    return {row.head: row for row in figures(sides, slots_of([(view.window(), view.phases()) for view in views]))}


def test_figures_are_of_the_whole_run_and_of_what_two_runs_have(make_run: MakeRun) -> None:
    """Means, highest values, counts and slopes, with what was never dropped left out."""
    slope = finding("memory_growth", Outcome.PASS, metric="system.memory.usage", unit="By", facts=(Growth(1048576.0),))
    old, new = make_run("old", slope, level=20.0), make_run("new", slope, level=30.0, dropping=True)
    quiet = make_run("quiet")
    with RecordView.open(old) as first, RecordView.open(new) as second, RecordView.open(quiet) as third:
        rows = figures_of(first, second)
        none = set(figures_of(first, third))
    cells = {head: row.cells for head, row in rows.items()}
    assert cells["CPU, mean"] == ("20.7 %", "30.6 %")
    assert cells["CPU, highest"] == ("99 %", "99 %")
    assert cells["dropped packets"] == ("0", "119")
    assert cells["memory slope"] == ("1 MiB/h", "1 MiB/h")
    assert none == {"CPU, mean", "CPU, highest"}


def test_a_change_is_told_with_its_interval_and_whether_it_is_proven(make_run: MakeRun) -> None:
    """By phase time: half as much CPU again is worse, the same is the same, drops from none are worse."""
    folders = [make_run("old"), make_run("new", level=30.0, dropping=True), make_run("same", begin_s=7200)]
    with ExitStack() as stack:
        rows = figures_of(*(stack.enter_context(RecordView.open(folder)) for folder in folders))
    _, new, same = rows["CPU, mean"].changes
    assert new is not None
    assert same is not None
    assert (new.result, new.words) == ("worse", "+50 %")
    assert (same.result, same.relative) == ("the same", 0.0)
    _, dropping, _ = rows["dropped packets"].changes
    assert dropping is not None
    assert (dropping.result, dropping.words) == ("worse", "from 0")
    assert [change and change.result for change in rows["CPU, highest"].changes] == [None, "", ""]


@pytest.mark.parametrize("pairs", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_runs_of_which_each_wanders_are_not_called_different(make_run: MakeRun, pairs: int) -> None:
    """Equal runs whose readings scatter: few pairs may be called different, and those by chance only."""
    rng = np.random.default_rng(20)
    told = 0
    for pair in range(pairs):
        folders = [make_run(f"r{pair}-{side}", level=20.0, noise=rng.normal(0, 3, 240), seconds=240) for side in (0, 1)]
        with RecordView.open(folders[0]) as first, RecordView.open(folders[1]) as second:
            change = figures_of(first, second)["CPU, mean"].changes[1]
        assert change is not None
        told += change.result in {"better", "worse", "different"}
    assert told <= 1


def test_phases_lie_over_one_another_and_targets_of_one_role_stand_for_each_other() -> None:
    """The second soak over the second soak; a phase of one run alone has a place of its own; what is longer in one run
    is shown as far as another has it."""

    def phases(*parts: tuple[str, int]) -> tuple[Window, list[Phase]]:
        edge, made = 0, []
        for name, seconds in parts:
            made.append(Phase(name, Window(edge, edge + seconds * SECOND)))
            edge += seconds * SECOND
        return Window(0, edge), made

    old = phases(("baseline", 60), ("soak", 600), ("soak", 60))
    new = phases(("baseline", 60), ("spike", 10), ("soak", 36_000), ("soak", 60))
    slots = slots_of([old, new])
    assert [(slot.name, round(slot.seconds)) for slot in slots] == [
        ("baseline", 60),
        ("spike", 10),
        ("soak", 600),
        ("soak", 60),
    ]
    parts, names = parts_of(slots, 0, 1)
    assert names == "soak"
    assert len(parts) == 24
    assert parts[0][0].begin_ns == 60 * SECOND
    assert all(a.end_ns - a.begin_ns == b.end_ns - b.begin_ns for a, b in parts)
    assert parts[0][1].begin_ns == 70 * SECOND
    assert [slot.name for slot in slots_of([old, phases(("calibrate", 5))])] == [""]
    mapped = target_map({"fw-b": "dut", "tg": "generator"}, {"fw-a": "dut", "tg": "generator"})
    assert (mapped.own("fw-a"), mapped.own("tg"), mapped.alone) == ("fw-b", "tg", ())
    with pytest.raises(SoakwatchError, match="'fw-c' is no target of the run it is compared with"):
        target_map({"fw-b": "dut"}, {"fw-a": "dut"}, {"fw-b": "fw-c"})


def test_the_command_says_what_changed(make_run: MakeRun, soakwatch: Command) -> None:
    """Outcomes that differ, figures with their changes, the set-up; the target of another name is the reference's."""
    make_run("old", finding("drops", Outcome.PASS), level=20.0, version="7.1")
    make_run("new", finding("drops", Outcome.FAIL, "gw"), level=30.0, target="gw")
    done = soakwatch("compare", "new", "--against", "old")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[1].startswith("1 reference old pass")
    assert "gw of run 2 stands for fw" in lines
    assert "drops fw ✓ pass ✗ fail" in lines
    assert "CPU, mean fw 20.7 % 30.6 % +50 % worse" in lines
    assert "device fw/snmp version 7.1 7.2" in lines
    output = json.loads(soakwatch("compare", "old", "new", "--json").stdout)
    (cpu,) = [row for row in output["figures"] if row["figure"] == "CPU, mean"]
    assert cpu["changes"][1] == {
        "relative": pytest.approx(0.5),
        "low": pytest.approx(0.5),
        "high": pytest.approx(0.5),
        "result": "worse",
    }
    assert output["runs"][1]["targets"] == {"gw": "fw"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["old"], "name 2 to 6 runs (1 given)"),
        (["old", "none"], "none"),
        (["old", "new", "--match", "fw"], "'fw' matches no targets: write RUN:ITS_TARGET=TARGET"),
        (
            ["old", "new", "--match", "new:fw=fx"],
            "'fx' is no target of the run it is compared with; known here: fw",
        ),
        (
            ["old", "new", "--match", "old:fw=fw"],
            "targets are matched of 'old', which is not compared",
        ),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    make_run: MakeRun, soakwatch: Command, words: list[str], sentence: str
) -> None:
    """Exit code 2, and no table."""
    make_run("old", seconds=5)
    make_run("new", seconds=5)
    done = soakwatch("compare", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
