"""How often a cell is run: until its figure is known well enough, or at most; and a run that was killed goes on."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tests.collector.campaign.conftest import PLAN, Entries, Write
from tests.collector.conftest import Until
from tests.commands import Command, Started

from soakwatch.campaign.campaign_keys import Repeat
from soakwatch.campaign.campaign_keys import Until as Known
from soakwatch.campaign.repeat import precision
from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView
from soakwatch_testing.records import small_record

GENERATOR = """\
  gen:
    role: generator
    sources:
      - command:
          interval: 200ms
          stop_signal: TERM
          run: [sh, -c, 'while :; do echo "load.request.rate $(cat $0.value)"; sleep 0.1; done', left]
"""
UNTIL = """\
name: until
plan: plan.yaml
matrix:
  kind: [steady, moving]
before: [sh, -c, 'if [ {kind} = steady ]; then echo 100; else echo {repetition}00; fi > {testbed}.value']
repeat: {until: {half_width: 2%, of: load.request.rate}, at_most: 7}
testbeds:
  left: {}
  right: {set: {targets.gen.sources.0.command.run.3: right}}
"""


@pytest.mark.slow
def test_a_cell_is_repeated_until_its_median_is_known_or_at_most(
    soakwatch: Command, write: Write, ledger_of: Entries, tmp_path: Path
) -> None:
    """Runs that agree end after the six that an interval takes; runs that do not end at the limit, and it is said."""
    write(
        UNTIL,
        PLAN.replace("[{baseline: 500ms}, {soak: 700ms}]", "[{soak: 1s}]").replace("rules:", GENERATOR + "rules:"),
    )
    done = soakwatch("campaign", "run", "campaign.yaml")
    assert done.returncode in {0, 3}, done.stdout + done.stderr
    folder = tmp_path / "campaigns" / "until"
    entries = ledger_of(folder)
    made: dict[object, list[object]] = {"kind=steady": [], "kind=moving": []}
    for entry in entries:
        if entry["kind"] == "end":
            made[entry["cell"]].append(entry["repetition"])
    assert sorted(map(str, made["kind=steady"])) == list("123456")
    assert sorted(map(str, made["kind=moving"])) == list("1234567")
    enough = {entry["cell"]: entry for entry in entries if entry["kind"] == "enough"}
    assert (enough["kind=steady"]["repetition"], enough["kind=steady"]["half_width"]) == (6, 0.0)
    assert enough["kind=moving"]["repetition"] == 7
    assert float(str(enough["kind=moving"]["half_width"])) > 0.02
    assert "kind=steady: the median of load.request.rate is ±0 % after 6 runs" in done.stdout
    assert "13 of 13 runs done" in done.stdout
    said = json.loads(soakwatch("campaign", "status", folder, "--json").stdout)
    assert (said["runs"], said["done"], said["complete"], said["next"]) == (13, 13, True, [])
    again = soakwatch("campaign", "resume", folder)
    assert "13 of 13 runs done" in again.stdout
    assert len([entry for entry in ledger_of(folder) if entry["kind"] == "begin"]) == 13


def test_a_run_that_cannot_tell_the_figure_is_named_and_not_counted(tmp_path: Path) -> None:
    """Two runs, one without a record and one without such a figure: the median is not known, and both are named."""
    small_record(tmp_path / "kept", 5).close()
    known = precision(
        Repeat(until=Known(half_width=0.02, of="load.request.rate"), at_least=2, at_most=7),
        [tmp_path / "gone", tmp_path / "kept"],
    )
    assert known.half_width is None
    assert [sentence.split(":")[0] for sentence in known.without] == ["gone", "kept"]
    assert known.without[1] == "kept: the run has no load.request.rate"


def groups_of(place: Path) -> set[int]:
    """The process groups that work on the run in a folder: that of the attempt, and that of the run."""
    groups = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if any(word.startswith(os.fsencode(place)) for word in words):
                groups.add(os.getpgid(int(process.name)))
    return groups - {os.getpgid(0)}


def polled_ns(place: Path) -> list[int]:
    """When a run polled; empty before it has a record."""
    with suppress(RecordError), RecordView.open(place) as view:
        return [int(time_ns) for source in view.sources() for time_ns in view.answered_ns(source.id)]
    return []


@pytest.mark.slow
def test_a_run_that_was_killed_in_the_middle_goes_on(
    started: Started, write: Write, ledger_of: Entries, tmp_path: Path, until: Until
) -> None:
    """``interrupted: resume``: the same attempt in the same folder goes on, and its record holds both parts."""
    write(
        "name: one\nplan: plan.yaml\nmatrix: {n: {set: phases.soak, values: [15s]}}\ninterrupted: resume\n"
        "before: [sh, -c, 'echo once >> before.txt']\n"
    )
    folder = tmp_path / "campaigns" / "one"
    place = folder / "runs" / "15s-r1"
    process = started("campaign", "run", "campaign.yaml")
    until(lambda: len(polled_ns(place)) > 2, "the run has polled")
    for group in groups_of(place):
        os.killpg(group, signal.SIGKILL)
    printed, _ = process.communicate(timeout=240)
    assert process.returncode in {0, 3}, printed
    entries = ledger_of(folder)
    assert [entry["kind"] for entry in entries] == ["campaign", "begin", "lost", "resume", "end", "complete"], printed
    assert {entry["attempt"] for entry in entries[1:-1]} == {1}
    assert "n=15s run 1 is resumed" in printed
    assert "1 of 1 runs done" in printed
    assert [path.name for path in (folder / "runs").iterdir()] == ["15s-r1"]
    assert (tmp_path / "before.txt").read_text(encoding="utf-8") == "once\n", "what comes before a run is not repeated"
    lost_ns = int(str(entries[2]["time_ns"]))
    times = polled_ns(place)
    assert min(times) < lost_ns < max(times)
    with RecordView.open(place) as view:
        verdict = view.meta("verdict")
    assert entries[4]["verdict"] == verdict
