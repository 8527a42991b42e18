"""A laptop without SNMP library, flock, users and groups reads, judges and reports what a lab machine recorded."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.commands import Command, command_in
from tests.in_process import command_here

from soakwatch_testing.snmp_responder import responder

LACKING = Path(__file__).with_name("as_on_windows")


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a plan of an SNMP device and one finished run of it."""
    folder = tmp_path_factory.mktemp("lab")
    with responder({}) as agent:
        host, port = agent.address
        source = {"snmp": {"host": host, "port": port, "community": "env:COMMUNITY", "interval": "500ms"}}
        plan = {"name": "night", "duration": "1s", "targets": {"fw": {"role": "dut", "sources": [source]}}}
        (folder / "plan.yaml").write_text(json.dumps(plan))
        done = command_in(folder, COMMUNITY="public")("run", "plan.yaml")
    assert done.returncode in {0, 1, 3}, done.stderr
    return folder


@pytest.fixture
def laptop(night: Path) -> Command:
    """Commands in that folder, in a Python that lacks what Windows lacks."""
    return command_in(night, PYTHONPATH=os.fspath(LACKING), AS_ON_WINDOWS="1", COMMUNITY="public")


def test_a_record_is_judged_reported_and_checked_on_a_laptop(laptop: Command, night: Path) -> None:
    """Verdict and words are those of the lab, and the report has the device."""
    verdict = command_here(night)("judge", "last")
    judged = laptop("judge", "last")
    assert (judged.returncode, judged.stdout) == (verdict.returncode, verdict.stdout), judged.stderr
    reported = laptop("report", "last", "--html", "report.html", "--json", "report.json", "--junit", "junit.xml")
    assert reported.returncode in {0, 1, 3}, reported.stderr
    assert "fw" in (night / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("verify", "last"), ("export", "last", "--output", "tables"), ("drill", "last"), ("trend",)], ids=" ".join
)
def test_what_else_reads_a_record_does_so_on_a_laptop(laptop: Command, words: tuple[str, ...]) -> None:
    """No command that only reads needs more than a laptop has."""
    done = laptop(*words)
    assert "internal error" not in done.stderr, done.stderr
    assert done.returncode in {0, 1, 3}, done.stderr


def test_what_needs_unix_is_refused_in_one_sentence(laptop: Command) -> None:
    """A run there says what it lacks."""
    refused = laptop("run", "plan.yaml")
    assert refused.returncode == 2
    assert "this command needs Linux or another Unix" in refused.stderr


@pytest.mark.slow
def test_a_plan_is_checked_without_the_snmp_library_and_not_run(laptop: Command, night: Path) -> None:
    """The sentence says where there are packages of it."""
    assert laptop("check", "--no-connect", "plan.yaml").returncode == 0
    (night / "nosnmp" / "gufo").mkdir(parents=True)
    (night / "nosnmp" / "gufo" / "__init__.py").write_text("raise ModuleNotFoundError('not installed', name='gufo')\n")
    lacks = command_in(night, PYTHONPATH=os.fspath(night / "nosnmp"), COMMUNITY="public")("run", "plan.yaml")
    assert lacks.returncode == 2
    assert "SNMP polls need gufo-snmp, which has packages for Linux only" in lacks.stderr
    assert "Traceback" not in lacks.stderr
