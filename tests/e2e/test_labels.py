"""Labels through the commands: given in the plan and on the command line, and wherever a run is shown."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from tests.commands import command_in

from soakwatch.cli.main import run as command_line
from soakwatch.record import RecordView
from soakwatch.report.json import verdict_schema

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]
Started = Callable[..., "subprocess.Popen[str]"]
Until = Callable[[Callable[[], bool], str], None]

PLAN = """
name: night
duration: 2s
labels:
  testbed: rack-3
  build: 1841
  release: {command: [sh, -c, "echo IOS; echo Version 7.2, x"], pattern: 'Version (\\S+),'}
  board: {command: [ls, /no/such/board]}
targets: {dut: {role: dut, sources: [{local: {interval: 200ms}}]}}
"""
LABELS = {"testbed": "rack <3>", "build": "1841", "release": "7.2", "owner": "x y"}


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """One run with labels of the plan, of a command, and of the command line; one of them cannot be read."""
    folder = tmp_path_factory.mktemp("labelled")
    (folder / "plan.yaml").write_text(PLAN)
    done = command_in(folder)("run", "plan.yaml", "--label", "owner=x y", "testbed=rack <3>", "--no-web")
    assert done.returncode == 3, done.stdout + done.stderr
    return folder, done


@pytest.fixture
def run(once: tuple[Path, Done], tmp_path: Path) -> Path:
    """A copy of that run below the test's own folder."""
    shutil.copytree(once[0], tmp_path, dirs_exist_ok=True)
    (run,) = [path.parent for path in tmp_path.glob("runs/*/record.sqlite")]
    return run


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command prints, run in this process: it starts no other."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def answer(*words: str) -> str:
        assert command_line([*words]) in {0, 3}, capsys.readouterr().err
        return capsys.readouterr().out

    return answer


def test_the_record_and_every_report_have_them(once: tuple[Path, Done], run: Path) -> None:
    """The command line replaces the plan's; what could not be read is a sentence and no label."""
    with RecordView.open(run) as view:
        assert dict(view.labels) == LABELS
        (unread,) = [stored.event for stored in view.events() if stored.event.kind == "label.unread"]
    assert unread.detail["label"] == "board"
    assert unread.detail["reason"].startswith("ls /no/such/board: exit code 2: ls: cannot access '/no/such/board'")
    verdict = json.loads((run / "verdict.json").read_text())
    jsonschema.validate(verdict, json.loads(verdict_schema()))
    assert verdict["labels"] == LABELS
    for suite in ET.parse(run / "junit.xml").iter("testsuite"):
        properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
        assert str(properties.pop("seal")).startswith("sealed ")
        assert properties == LABELS
    page = (run / "report.html").read_text()
    assert "<dt>label testbed</dt><dd>rack &lt;3&gt;</dd>" in page
    assert "<dt>label board</dt><dd>not read: ls /no/such/board: exit code 2" in page
    summary = (run / "report.md").read_text()
    assert "; testbed=rack &lt;3&gt;, build=1841, release=7.2, owner=x y; label board not read: ls" in summary
    printed = once[1].stdout
    assert "testbed=rack <3>, build=1841, release=7.2, owner=x y\n" in printed
    assert "label board not read: ls /no/such/board: exit code 2" in printed


def test_they_survive_another_judging(run: Path, answers: Callable[..., str]) -> None:
    """Of the same record, bit for bit, and by another plan, whose labels are those of no run."""
    assert answers("judge", "last", "--json", "-") == (run / "verdict.json").read_text()
    Path(run.parents[1] / "other.yaml").write_text(PLAN.replace("rack-3", "rack-9"))
    judged = answers("judge", "last", "--plan", "other.yaml", "--rule", "coverage", "--json", "-")
    assert json.loads(judged)["labels"] == LABELS
    assert "owner=x y" in answers("report", "last")


@pytest.mark.slow
def test_runs_are_listed_for_programs_and_found_by_labels(run: Path, answers: Callable[..., str]) -> None:
    """The keys are those of the documentation; a beginning with * finds, too, and what is not there is said."""
    (row,) = json.loads(answers("runs", "--json"))
    assert list(row) == [
        "run", "folder", "name", "labels", "release", "state", "verdict", "reason", "worst", "findings", "start", "end",
        "seconds", "planned_seconds", "coverage", "uncovered", "targets", "samples", "bytes", "seal",
        "note", "trouble",
    ]  # fmt: skip
    assert (row["run"], row["folder"], row["name"]) == (run.name, str(run), "night")
    assert (row["labels"], row["release"], row["state"], row["verdict"]) == (LABELS, "7.2", "ended", "inconclusive")
    assert row["worst"]["outcome"] == "inconclusive"
    assert set(row["worst"]) == {"outcome", "rule", "target", "metric", "object", "reason"}
    assert (row["targets"]["dut"], row["planned_seconds"]) == ("dut", 2.0)
    assert row["start"] < row["end"]
    assert 0 <= row["coverage"] <= 1
    table = answers("runs")
    assert "testbed=rack <3>, build=1841, release=7.2, owner=x y" in table
    for wanted, found in ((("release=7.2",), 1), (("release=7*", "owner=X Y"), 1), (("release=7.3",), 0)):
        assert len(json.loads(answers("runs", "--json", "--label", *wanted))) == found
    none = answers("runs", "--label", "release=7.3", "--label", "site=a")
    assert none == "none of 1 run in runs/ has release=7.3, site=a: release is 7.2; no run has site\n"
    assert json.loads(answers("runs", "nowhere", "--json")) == []


def test_tables_are_imported_with_labels(answers: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "memory.csv").write_text("time,rss\n" + "".join(f"{n},{5 * 10**8}\n" for n in range(100)))
    answers("import", "memory.csv", "--label", "release=7.2", "build=9", "--rule", "growth")
    (row,) = json.loads(answers("runs", "--json"))
    assert (row["labels"], row["release"]) == ({"release": "7.2", "build": "9"}, "7.2")
    assert json.loads(answers("judge", "last", "--json", "-"))["labels"] == {"release": "7.2", "build": "9"}
    answers("import", "memory.csv", "--name", "bare")
    assert json.loads(answers("judge", "bare", "--json", "-"))["labels"] == {}


@pytest.mark.slow
def test_a_run_that_goes_on_after_a_kill_keeps_them(
    started: Started, until: Until, soakwatch: Command, tmp_path: Path
) -> None:
    """Those of the command line too; one whose command had not ended is read by the next monitor."""
    done_file = tmp_path / "done"
    plan = PLAN.replace("duration: 2s", "duration: 6s").replace(
        "board: {command: [ls, /no/such/board]}",
        f"board: {{command: [sh, -c, 'test -e {done_file} && echo B2 || exec sleep 250'], timeout: 300s}}",
    )
    (tmp_path / "plan.yaml").write_text(plan)
    process = started("run", "plan.yaml", "--label", "owner=me", "--into", "run", "--no-web")

    def polled() -> bool:
        if not (tmp_path / "run" / "record.sqlite").is_file():
            return False
        with RecordView.open(tmp_path / "run") as view:
            return view.counts().polls > 5

    until(polled, "some polls")
    process.send_signal(signal.SIGKILL)
    process.wait()
    with RecordView.open(tmp_path / "run") as view:
        assert dict(view.labels) == {"testbed": "rack-3", "build": "1841", "owner": "me"}
    done_file.touch()
    resumed = soakwatch("resume", "run", "--no-web")
    assert resumed.returncode in {0, 3}, resumed.stdout + resumed.stderr  # inconclusive where many polls were lost
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    expected = {"testbed": "rack-3", "build": "1841", "release": "7.2", "board": "B2", "owner": "me"}
    assert verdict["labels"] == expected
    assert list(verdict["labels"]) == list(expected)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--label", "release"), "--label: 'release' is not a label: write NAME=VALUE, such as release=7.2"),
        (("--label", "Release=7"), "--label: 'Release' cannot name a label: write a lower-case word such as release"),
        (("--label", "a=1", "B=2"), "--label: 'B' cannot name a label"),
        (("--label", "=7"), "--label: '' cannot name a label"),
        (("--label", "release="), "--label: the label release has no value: write one, or leave the label out"),
        (("--label", "r=1", "--label", "r=2"), "--label: the label r is given twice, as '1' and as '2': keep one"),
        (("--label=r=1", "r=2"), "--label: the label r is given twice, as '1' and as '2': keep one"),
        (("--label", "r=a\nb"), "--label: the label r is not one line of printable text"),
        (("--label", "r=" + "x" * 201), "--label: the label r has 201 characters: 200 at most"),
        (("--label", "r=env:TOKEN"), "--label: the label r refers to a secret (env:TOKEN)"),
        (tuple(f"--label=a{n}=1" for n in range(33)), "--label: 33 labels are too many: 32 at most"),
    ],
)
def test_a_label_that_is_none_is_one_sentence(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same for every command that takes labels."""
    for command in (["run", "no-plan.yaml"], ["import", "no.csv"], ["calibrate", "no-plan.yaml"], ["runs", "nowhere"]):
        assert command_line([*command, *words]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"soakwatch: {sentence}"), error
        assert error.count("\n") == 1


def test_a_program_that_is_not_there_is_refused_before_the_run(tmp_path: Path, soakwatch: Command) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN.replace("[ls, /no/such/board]", "[/no/such/tool]"))
    refused = soakwatch("run", "plan.yaml")
    assert refused.returncode == 2
    assert (
        "labels, board: command: program '/no/such/tool' not found: install it, or write its full path"
        in refused.stderr
    )
    assert not (tmp_path / "runs").exists()


def test_check_reads_them(tmp_path: Path, soakwatch: Command) -> None:
    """So that a wrong pattern is found before the run."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    checked = soakwatch("check", "plan.yaml")
    assert checked.returncode == 1
    assert "label: testbed=rack-3\n" in checked.stdout
    assert "label: release=7.2, as read now\n" in checked.stdout
    assert "plan.yaml:8:3: the label board cannot be read: ls /no/such/board: exit code 2" in checked.stderr
