"""The report and the verdict of a run that goes on: preliminary, and never a run that ended early."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from soakwatch.cli.main import soakwatch
from soakwatch.record import Record
from soakwatch.report.json import verdict_schema
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.records import SECOND, T0

PLAN = "name: night\nduration: 2h\ntargets: {dut: {sources: [local]}}\n"


def going_on(folder: Path, *, spike: bool) -> Record:
    """Half an hour of a run of two hours, whose writer is at work."""
    record = Record.create(folder)
    for key, text in {"plan": PLAN, "run": "night", "planned": '{"duration_s": 7200, "phases": ["soak"]}'}.items():
        record.set_meta(key, text)
    record.target("dut", "dut")
    record.begin_span(T0)
    source = record.source("dut", "local", "local", 5 * SECOND, required=True).id
    record.begin_phase("soak", T0)
    polls = []
    for second in range(0, 1800, 5):
        due = T0 + second * SECOND
        cpu = 1.0 if spike and 900 <= second < 960 else 0.3 + 0.01 * (second % 3)
        answer = Answer((Sample("system.cpu.utilization", "", cpu, due),), (), ())
        polls.append(Poll(source, due, due, 1, PollOutcome.OK, None, answer))
    record.put(polls)
    return record


@pytest.mark.parametrize(("spike", "words", "code"), [(True, "fails so far", 1), (False, "no failure so far", 3)])
def test_a_run_that_goes_on_has_a_preliminary_verdict(tmp_path: Path, spike: bool, words: str, code: int) -> None:
    """In every output and with the exit code of what is judged so far; once nobody writes any more it ended early."""
    run, out = str(tmp_path / "run"), tmp_path / "out"
    out.mkdir()
    with going_on(tmp_path / "run", spike=spike):
        judged = CliRunner().invoke(soakwatch, ["judge", run], standalone_mode=False)
        assert f"preliminary: {words}  night" in judged.output
        assert ("Let it go on: it is judged at its planned end" in judged.output) is not spike
        assert "Give the plan a target of role dut" not in judged.output
        assert "till running, 29 min 55 s of 2 h" in judged.output
        assert "ended early" not in judged.output
        assert judged.return_value == code
        files = [out / f"night.{kind}" for kind in ("html", "json", "md")]
        options = [word for file in files for word in (f"--{file.suffix[1:]}", str(file))]
        CliRunner().invoke(soakwatch, ["report", run, *options], catch_exceptions=False)
        page, text, markdown = (file.read_text() for file in files)
        assert f"<title>preliminary: {words}: night" in page
        assert f"</span> preliminary: {words}</span>" in page
        assert f"Soakwatch: preliminary: {words} – night" in markdown
        document = json.loads(text)
        assert document["preliminary"] is True
        assert document["verdict"] == ("fail" if spike else "inconclusive")
        jsonschema.validate(document, json.loads(verdict_schema()))
    over = CliRunner().invoke(soakwatch, ["judge", run], standalone_mode=False)
    assert "nded early, 29 min 55 s of 2 h: " in over.output
    assert "preliminary" not in over.output
    assert over.return_value == code
