"""What those say that do not become the new version when Soakwatch is replaced beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.in_process import command_here

PLAN = "duration: 1s\ntargets: {me: {sources: [{local: {interval: 200ms, probes: [load]}}]}}\n"


def replaced() -> Callable[[], str]:
    """What stamps of the code are if it is replaced after the first one was taken."""
    stamps = iter(["before"])
    return lambda: next(stamps, "after")


def test_a_run_that_cannot_hand_over_makes_its_end_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As calibrate and demo are, and a run that another program called; with the command that makes the end later."""
    monkeypatch.setattr("soakwatch.cli.foreground.code_stamp", replaced())
    (tmp_path / "p.yaml").write_text(PLAN)
    done = command_here(tmp_path, merged=True)("run", "p.yaml", "--into", "run", "--no-web")
    assert done.returncode in {0, 3}, done.stdout
    assert "Soakwatch was replaced on this machine while the run goes on: this process" in done.stdout
    assert "soakwatch resume run makes the end" in " ".join(done.stdout.split())
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.slow
def test_a_campaign_goes_on_and_has_its_reports_written_by_the_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says once what the replacement means, and the exit code is that of the reports."""
    monkeypatch.setattr("soakwatch.cli.campaign_run.code_stamp", replaced())
    (tmp_path / "p.yaml").write_text(PLAN)
    (tmp_path / "c.yaml").write_text(
        "name: c\nplan: p.yaml\nmatrix: {length: {set: duration, values: [1s, 2s]}}\n"
        "limits: [{figure: max(system.cpu.load), at_most: 0.0001}]\n"
    )
    done = command_here(tmp_path, merged=True)("campaign", "run", "c.yaml", "--junit", "junit.xml")
    assert done.stdout.count("Soakwatch was replaced while this campaign goes on") == 1
    assert "the new version writes the reports" in done.stdout
    assert (tmp_path / "junit.xml").is_file(), done.stdout
    again = command_here(tmp_path)("campaign", "report", "campaigns/c", "--junit", "again.xml")
    assert done.returncode == again.returncode
