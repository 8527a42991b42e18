"""Calibration and baselines as commands: a generator by itself, then runs that are held against what it could do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from tests.in_process import command_here

from soakwatch.record import RecordView, SeriesKey

Done = subprocess.CompletedProcess[str]
GENERATOR = """
import json, sys, time
rate, begun = float(sys.argv[1]), time.monotonic()
while True:
    sent = int(min(rate, 900) * (time.monotonic() - begun))
    print(json.dumps({"load.offered.packet.rate": rate, "load.tx.packets": sent, "load.rx.packets": sent,
                      "load.tx.bytes": 64 * sent, "load.cpu.utilization": min(rate, 900) / 1000}), flush=True)
    time.sleep(0.1)
"""
DEVICE = """
import json, time
at = 0
while True:
    print(json.dumps({"system.cpu.utilization": 0.2 + 0.01 * (at % 3)}), flush=True)
    at += 1
    time.sleep(0.1)
"""
PLAN = """
name: fw
labels: {testbed: a, generator: "3", device: {package: bash}}
phases: [{ramp: {for: 3s, load: 20%}}, {soak: {for: 7s, load: LEVEL}}]
targets:
  dut: {sources: [{command: {interval: 200ms, run: [PYTHON, device.py]}}]}
  tg:
    role: generator
    sources: [{command: {drive: true, full: 1000, interval: 500ms, run: [PYTHON, generator.py, "{rate}"]}}]
rules: {generator_health: {required: true}, cpu_spike: {required: true, seconds: 1s}}
"""


def soakwatch(folder: Path, *words: object) -> Done:
    """A command in a folder, on wide lines."""
    return command_here(folder)(*words, COLUMNS="200")


def put(folder: Path, name: str, text: str) -> Path:
    """A plan in a file, with the scripts beside it."""
    (folder / "generator.py").write_text(GENERATOR, encoding="utf-8")
    (folder / "device.py").write_text(DEVICE, encoding="utf-8")
    file = folder / name
    file.write_text(text.replace("PYTHON", sys.executable), encoding="utf-8")
    return file


def run_of(folder: Path, plan: str, *words: object) -> tuple[Path, Done]:
    """A run of a plan into a folder called like it."""
    into = folder / "runs" / Path(plan).stem
    return into, soakwatch(folder, "run", plan, *words, "--into", into)


def findings(run: Path, rule: str) -> list[Mapping[str, object]]:
    """What the verdict says by one rule."""
    output = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    return [finding for finding in output["findings"] if finding["rule"] == rule]


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done, Done]:
    """A folder with two plans that were calibrated, and what the command said of each; one generator never sends, of
    which a level of two seconds tells as much as one that is held."""
    folder = tmp_path_factory.mktemp("calibrated")
    put(folder, "fw.yaml", PLAN.replace("LEVEL", "50%"))
    undriven = PLAN.replace("drive: true, full: 1000, ", "").replace("{for: 3s, load: 20%}", "3s")
    undriven = undriven.replace("{for: 7s, load: LEVEL}", "7s")
    put(folder, "idle.yaml", undriven.replace('"{rate}"', '"0"').replace("name: fw", "name: idle"))
    entry = soakwatch(folder, "calibrate", "fw.yaml", "--for", "30s", "--levels", "125%", "--label", "testbed=b")
    other = soakwatch(folder, "calibrate", "idle.yaml", "--for", "15s")
    return folder, entry, other


@pytest.mark.slow
def test_calibrate_keeps_the_ceiling_beside_the_plan(calibrated: tuple[Path, Done, Done]) -> None:
    """The generator is set to 1250 packets/s and manages 900: that is its ceiling; its record is an ordinary one."""
    folder, done, _ = calibrated
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("calibrating tg, driven through the levels, for 30 s: the ports must be connected")
    output = yaml.safe_load((folder / "fw.reference.yaml").read_text(encoding="utf-8"))
    ceilings = output["generators"]["tg"]
    assert ceilings["packets"]["rate"] == pytest.approx(900, rel=0.05)
    assert ceilings["bits"]["rate"] == pytest.approx(900 * 512, rel=0.05)
    assert ceilings["packets"]["loss"] == 0
    assert ceilings["packets"]["cpu"] == pytest.approx(0.9)
    assert ceilings["packets"]["level"] == pytest.approx(1.25)
    with RecordView.open(folder / "runs" / output["record"]) as view:
        assert view.roles() == {"tg": "generator", "monitor": "monitor"}
        assert view.labels == {"testbed": "b", "generator": "3"}, "the device, and its package, are not there"
    assert soakwatch(folder, "report", output["record"], "--html", "r.html").returncode == 0
    checked = soakwatch(folder, "check", "fw.yaml", "--no-connect")
    assert "reference: fw.reference.yaml, " in checked.stdout
    assert " old, for tg" in checked.stdout


@pytest.mark.slow
def test_a_run_states_its_headroom_and_is_inconclusive_without(
    calibrated: tuple[Path, Done, Done], tmp_path: Path
) -> None:
    """At 500 of 900 it has a reserve; at 880 it has none, and nothing that depends on the load is decided."""
    shutil.copytree(calibrated[0], tmp_path, dirs_exist_ok=True)
    put(tmp_path, "high.yaml", PLAN.replace("LEVEL", "88%"))
    run, done = run_of(tmp_path, "fw.yaml")
    high, exceeded = run_of(tmp_path, "high.yaml", "--reference", "fw.reference.yaml")
    assert (done.stderr, exceeded.stderr) == ("", "")
    (well,) = findings(run, "generator_health")
    assert well["outcome"] == "pass", well["reason"]
    assert "headroom" in str(well["reason"])
    assert "its counters never fell" in str(well["reason"])  # but when the run gave it another level
    with RecordView.open(run) as view:
        key = SeriesKey("tg", "load.ceiling.packet.rate", "")
        assert view.series(key).values.tolist() == [pytest.approx(900, rel=0.05)]
        frozen = json.loads(view.meta("reference") or "")
    assert frozen["used"] == ["tg"]
    assert "tg/reference" not in done.stdout  # it is recorded once, and not polled
    assert "Generator capacity" in (run / "report.html").read_text(encoding="utf-8")
    assert exceeded.returncode == 3, exceeded.stdout
    (short,) = findings(high, "generator_health")
    assert short["outcome"] == "inconclusive"
    assert "of its calibrated ceiling" in str(short["reason"])


@pytest.mark.slow
def test_a_reference_of_another_generator_is_left_out_with_a_warning(
    calibrated: tuple[Path, Done, Done], tmp_path: Path
) -> None:
    """One line, and the run is not held against it."""
    shutil.copytree(calibrated[0], tmp_path, dirs_exist_ok=True)
    put(tmp_path, "fw.yaml", PLAN.replace("LEVEL", "50%").replace("full: 1000", "full: 500").replace("7s", "2s"))
    run, done = run_of(tmp_path, "fw.yaml")
    (warning,) = done.stderr.splitlines()
    assert warning == (
        "soakwatch: warning: fw.reference.yaml: was made with other sources of tg, and is not used for it: calibrate "
        "the plan again"
    )
    with RecordView.open(run) as view:
        assert view.meta("reference") is None
        assert not view.keys(["load.ceiling.packet.rate"])


def test_a_generator_that_sends_nothing_has_no_ceiling(calibrated: tuple[Path, Done, Done]) -> None:
    """It is not driven, so it just sends what it sends. Inconclusive, and nothing is written."""
    folder, _, done = calibrated
    assert "calibrating tg, observed without being driven, for 15 s" in done.stdout
    assert done.returncode == 3
    # On a busy machine its readings come late, and what was not read is not called nothing.
    assert re.search(r"tg: (it sent no packets|its packets were never read for 10 s without a gap)", done.stdout)
    assert done.stderr == "soakwatch: inconclusive: no ceiling measured for tg; nothing is written\n"
    assert not (folder / "idle.reference.yaml").exists()


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["none.yaml"], "cannot be read"),
        (["dut.yaml"], "no target has the role generator"),
        (["fw.yaml", "--for", "5s"], "--for: '5s' is not valid for a level"),
        (["fw.yaml", "--levels", "100%,50%"], "--levels: '100%,50%' is not a rising list"),
    ],
)
def test_what_cannot_be_calibrated_is_refused_in_one_sentence(tmp_path: Path, words: list[str], output: str) -> None:
    """Exit code 2 before anything is recorded."""
    put(tmp_path, "fw.yaml", PLAN.replace("LEVEL", "50%"))
    put(tmp_path, "dut.yaml", "{duration: 1m, targets: {dut: {sources: [local]}}}")
    done = soakwatch(tmp_path, "calibrate", *words)
    assert done.returncode == 2
    assert output in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_an_imported_baseline_is_kept_in_the_record_and_judged_alike_without_the_other(tmp_path: Path) -> None:
    """The second run has no baseline phase; mailed alone, it is judged again bit for bit."""
    device = "{sources: [{command: {interval: 200ms, run: [PYTHON, device.py]}}]}"
    rest = f"targets: {{dut: {device}}}\nrules: {{cpu_spike: {{required: true, seconds: 1s}}}}\n"
    put(tmp_path, "first.yaml", f"phases: [{{baseline: 4s}}, {{soak: 1s}}]\n{rest}")
    put(tmp_path, "second.yaml", f"phases: [{{soak: 3s}}]\n{rest}")
    first, done = run_of(tmp_path, "first.yaml")
    assert (first / "verdict.json").exists(), done.stdout + done.stderr
    with RecordView.open(first) as view:
        own = json.loads(view.meta("baseline") or "{}")
    assert [(entry["metric"], entry["count"] > 10) for entry in own["series"]] == [("system.cpu.utilization", True)]
    second, done = run_of(tmp_path, "second.yaml", "--baseline", "first")
    assert done.stderr == ""
    (spike,) = findings(second, "cpu_spike")
    assert spike["doubts"] == ["compared with the baseline of an earlier run"]
    page = (second / "report.html").read_text(encoding="utf-8")
    assert "The baseline of an earlier run" in page
    assert "Changed since the earlier run" in page
    output = soakwatch(tmp_path, "report", second, "--html", "against.html", "--against", first)
    assert (output.returncode, output.stderr) == (0, "")
    assert "Changed since the earlier run" in (tmp_path / "against.html").read_text(encoding="utf-8")
    mailed = tmp_path / "mailed"
    mailed.mkdir()
    shutil.copy(second / "record.sqlite", mailed)
    shutil.rmtree(first)
    again = soakwatch(tmp_path, "judge", mailed, "--json", "again.json")
    assert again.returncode == done.returncode, again.stderr
    assert (tmp_path / "again.json").read_bytes() == (second / "verdict.json").read_bytes()
    missing = soakwatch(tmp_path, "run", "second.yaml", "--baseline", "first")
    assert missing.returncode == 2
    assert "first is not a run" in missing.stderr
