"""Records that released versions wrote: each opens, is whole, has the verdict that it had, and can be exported."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.in_process import command_here
from tests.kept_records import KeptRecord, kept_records

from soakwatch.record._schema import SCHEMA_VERSION

EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 3}


def test_there_is_a_record_of_the_schema_of_today_with_each_verdict() -> None:
    """A new schema needs new files: changes/README.md says how they are made."""
    of_today = {record.verdict for record in kept_records() if record.schema == SCHEMA_VERSION}
    assert of_today == set(EXIT_CODES), f"schema {SCHEMA_VERSION}: run python -m tests.kept_records"


@pytest.mark.parametrize("kept", kept_records(), ids=lambda kept: f"{kept.version}-{kept.name}")
def test_a_record_of_an_earlier_version_has_the_verdict_that_it_had(kept: KeptRecord, tmp_path: Path) -> None:
    """By its commands: verify, judge, report, figures, export, list, and nothing is left to be resumed."""
    soakwatch, run = command_here(tmp_path), kept.unpack(tmp_path / "runs")
    code = EXIT_CODES[kept.verdict]
    whole = soakwatch("verify", run)
    assert (whole.returncode, kept.digest in whole.stdout) == (0, True), whole.stdout
    before = (run / "record.sqlite").read_bytes()
    judged = soakwatch("judge", run, "--json", "judged.json")
    assert judged.returncode == code, judged.stderr
    verdict = json.loads((tmp_path / "judged.json").read_text("utf-8"))
    assert verdict["verdict"] == kept.verdict
    failed = [finding for finding in verdict["findings"] if finding["outcome"] == "fail"]
    lines = sorted(" ".join(f[key] for key in ("rule", "target", "metric", "object")).strip() for f in failed)
    assert tuple(lines) == kept.failing
    reported = soakwatch("report", run, "--html", "report.html", "--md", "report.md", "--junit", "junit.xml")
    assert reported.returncode == 0, reported.stderr
    assert kept.verdict in (tmp_path / "report.md").read_text("utf-8").lower()
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert soakwatch("figures", run).returncode == 0
    assert soakwatch("export", run, "--output", "all.csv").returncode == 0
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        assert sum(1 for _ in csv.reader(file)) > 1000
    assert kept.verdict in soakwatch("runs", tmp_path / "runs").stdout.lower()
    assert soakwatch("resume", run, "--check").returncode == 2
    assert (run / "record.sqlite").read_bytes() == before, "what is only read is not written"
