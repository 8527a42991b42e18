"""Tables with phases, events and roles on the command line: what a run says of itself, said of a table."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from soakwatch.cli.main import run
from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import RecordView
from soakwatch.web.json_state import state_data
from soakwatch.web.state_cache import StateCache

T0 = 1_763_200_000
NS = 10**9
HOUR = 3600


def night(hours: int = 12) -> str:
    """A long table of a device, its generator and the monitor, a reading a minute."""
    chance = random.Random(1)
    lines = ["time,target,metric,object,value,unit"]
    for time_s in range(T0, T0 + hours * HOUR, 60):
        lines += [
            f"{time_s},fw,system.cpu.utilization,,{30 + chance.gauss(0, 2):.3f},%",
            f"{time_s},gen,system.cpu.utilization,,{20 + chance.gauss(0, 2):.3f},%",
            f'{time_s},fw,process.start_time,"process=bgpd,instance=0",{T0 - 99},s',
            f"{time_s},watcher,system.cpu.utilization,,{5 + chance.gauss(0, 1):.3f},%",
        ]
    return "\n".join(lines) + "\n"


def imported(tmp_path: Path, *words: str) -> Path:
    """The record that an import of the night makes."""
    (tmp_path / "night.csv").write_text(night(), encoding="utf-8")
    assert run(["import", str(tmp_path / "night.csv"), "--runs", str(tmp_path / "runs"), *words]) == 0
    return next((tmp_path / "runs").iterdir())


def test_phases_and_roles_are_those_of_the_record(tmp_path: Path) -> None:
    roles = ["--role", "gen=generator", "--role", "watcher=monitor"]
    phases = [
        "--phase",
        "baseline=..1h",
        "--phase",
        f"soak={T0 + HOUR}..2025-11-15T20:46:40",
        "--phase",
        "recovery=11h..",
    ]
    with RecordView.open(imported(tmp_path, *roles, *phases)) as view:
        assert dict(view.roles()) == {"fw": "dut", "gen": "generator", "watcher": "monitor"}
        phase_hours = [
            (p.name, (p.window.begin_ns / NS - T0) / HOUR, (p.window.end_ns / NS - T0) / HOUR) for p in view.phases()
        ]
        assert phase_hours == [
            ("baseline", 0.0, 1.0),
            ("soak", 1.0, 11.0),
            ("recovery", 11.0, pytest.approx(12 - 1 / 60)),
        ]
        verdict = judge_record(view)
        assert (verdict.outcome.value, verdict.phases) == ("pass", view.phases())


@pytest.mark.parametrize("kind", ["csv", "yaml"])
def test_events_are_recorded_and_their_intent_is_judged(tmp_path: Path, kind: str) -> None:
    """A restart that was announced is excused; the same restart without a word fails the device."""
    restart = {
        "csv": 'kind,begin,target,object,ticket\nprocess.restart,2h3m,fw,"process=bgpd,instance=0",4711\n',
        "yaml": "- {kind: process.restart, begin: 2h3m, target: fw, object: 'process=bgpd,instance=0', ticket: 4711}\n",
    }
    upgrade = {
        "csv": "kind;begin;end;target;object;expect;within;ticket\n"
        "upgrade;2h;2h5m;fw;;process.restart=1;10m;\n"
        'process.restart;2h3m;;fw;"process=bgpd,instance=0";;;4711\n',
        "yaml": "events:\n"
        "- {kind: upgrade, begin: 2h, end: 2h5m, target: fw, expect: {process.restart: 1}, within: 10m}\n"
        "- {kind: process.restart, begin: 2h3m, target: fw, object: 'process=bgpd,instance=0', ticket: 4711}\n",
    }
    outcomes = []
    for files in (restart, upgrade):
        (tmp_path / f"events.{kind}").write_text(files[kind], encoding="utf-8")
        (tmp_path / "night.csv").write_text(night(), encoding="utf-8")
        outcomes.append(
            run(
                [
                    "judge",
                    str(tmp_path / "night.csv"),
                    "--events",
                    str(tmp_path / f"events.{kind}"),
                    "--json",
                    str(tmp_path / "verdict.json"),
                ]
            )
        )
    assert outcomes == [1, 0]
    record = imported(tmp_path, "--events", str(tmp_path / f"events.{kind}"))
    with RecordView.open(record) as view:
        events = {stored.event.kind: stored.event for stored in view.events()}
    assert (events["upgrade"].begin_ns, events["upgrade"].end_ns) == ((T0 + 7200) * NS, (T0 + 7500) * NS)
    assert events["upgrade"].deadline_ns == (T0 + 7800) * NS
    assert dict(events["upgrade"].expect) == {"process.restart": 1}
    assert dict(events["process.restart"].detail) == {"ticket": "4711"}


def test_a_phase_beyond_the_readings_lacks_them(tmp_path: Path) -> None:
    """A soak of 24 h of which the table holds 12 h does not pass: its readings were due."""
    (tmp_path / "night.csv").write_text(night(), encoding="utf-8")
    words = ["judge", str(tmp_path / "night.csv"), "--phase", "soak=..24h", "--json", str(tmp_path / "verdict.json")]
    assert run(words) == 3
    verdict = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    assert "coverage" in verdict["reason"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--phase", "soak"], "--phase soak: write NAME=BEGIN..END, such as --phase soak=30m..23h30m"),
        (["--phase", "soka=1h..2h"], "unknown phase 'soka'; did you mean 'soak'?"),
        (["--phase", "soak=2h..1h"], "--phase soak: its end is not after its start"),
        (["--phase", "soak=noon..1h"], "--phase soak=noon..1h: 'noon' is not a time: write 2026-11-21T20:00:00Z"),
        (["--phase", "soak=2020-01-01T00:00:00Z..2020-01-02T00:00:00Z"], "no phase has any sample: is the"),
        (["--phase", "soak=1h..3h", "--phase", "stress=2h..4h"], "--phase stress starts before soak ends"),
        (["--role", "gem=generator"], "there is no target 'gem'; did you mean 'gen'?"),
        (["--role", "generatr"], "--role generatr: unknown role 'generatr'; did you mean 'generator'?"),
        (["--events", "none.csv"], "--events none.csv: cannot be read"),
        (["--events", "EVENTS"], "events.csv:3: the run has no target 'gem'; did you mean 'gen'?"),
    ],
)
def test_errors_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    (tmp_path / "night.csv").write_text(night(), encoding="utf-8")
    (tmp_path / "events.csv").write_text("kind,begin,target\nflap,1h,fw\nflap,2h,gem\n", encoding="utf-8")
    given = [str(tmp_path / "events.csv") if word == "EVENTS" else word for word in words]
    assert run(["judge", str(tmp_path / "night.csv"), *given]) == 2
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("kind,end\nflap,2h\n", "events.csv:1: the header needs the columns kind and begin; it has kind, end"),
        ("kind,begin\nFlap,2h\n", "events.csv:2: 'Flap' is not a kind of event"),
        ("kind,begin,expect\nupgrade,2h,reboot\n", "events.csv:2: expect: reboot needs a number of times"),
        ("kind,begin\nflap,99h\n", "events.csv:2: the flap is outside the samples"),
        ("kind,begin,within\nflap,2h,10\n", "events.csv:2: '10' is not a duration"),
        ("", "events.csv is empty"),
    ],
)
def test_a_file_of_events_is_refused_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    (tmp_path / "night.csv").write_text(night(), encoding="utf-8")
    (tmp_path / "events.csv").write_text(text, encoding="utf-8")
    assert run(["judge", str(tmp_path / "night.csv"), "--events", str(tmp_path / "events.csv")]) == 2
    assert sentence in capsys.readouterr().err


def test_an_imported_run_is_judged_and_reported(tmp_path: Path) -> None:
    """Its page shows the verdict and has a report to link to; nobody is told that it is being judged."""
    folder = imported(tmp_path)
    data = state_data(StateCache().read(folder, time.time_ns()), report=(folder / "report.html").is_file())
    assert data["report"] is True
    assert data["verdict"] == json.loads((folder / "verdict.json").read_text(encoding="utf-8"))["verdict"]
    assert data["line"]
