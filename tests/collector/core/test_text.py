"""Who says a sentence is said once, by check and probe, whatever the source's own sentence begins with."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from soakwatch.cli import main as cli
from soakwatch.core.text import prefixed, without_target
from soakwatch_testing.ports import free_port


@pytest.mark.parametrize(
    ("target", "source", "sentence", "shown"),
    [
        ("fw", "snmp", "the port is closed", "fw snmp: the port is closed"),
        ("fw", "snmp", "fw:161: the port is closed", "fw:161 snmp: the port is closed"),
        ("fw2", "traps", "fw2: port 162 is taken", "fw2 traps: port 162 is taken"),
        ("fw2", "gnmi", "fw2: gnmi: ca x cannot be read", "fw2 gnmi: ca x cannot be read"),
        ("fw2", "gnmi", "fw2: gnmi needs grpc", "fw2 gnmi needs grpc"),
        ("fw", "tcp", "fw:there: is no port", "fw tcp: fw:there: is no port"),
        ("fw", "tcp", "fw2: does not answer", "fw tcp: fw2: does not answer"),
        ("fw", "tcp", "fw: ", "fw tcp: fw: "),
    ],
)
def test_target_and_source_are_named_once(target: str, source: str, sentence: str, shown: str) -> None:
    """Another device's name, or one that only begins alike, is part of the sentence."""
    assert prefixed(target, source, sentence) == shown


def test_where_the_target_is_named_already_the_sentence_goes_without() -> None:
    """A port is news, the name is none."""
    assert without_target("fw", "fw: no answer") == "no answer"
    assert without_target("fw", "fw:161: no answer") == "fw:161: no answer"


def test_check_and_probe_name_the_target_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A port that is taken, a port that is closed: one line each, with the place in the plan where there is one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMUNITY", "c0mmunity-of-the-lab")
    closed = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        Path("plan.yaml").write_text(
            f"duration: 1h\ntargets: {{fw2: {{sources: [{{traps: {{listen: '127.0.0.1:{port}'}}}}]}}}}\n"
        )
        assert cli.run(["check", "plan.yaml"]) == 1
    checked = capsys.readouterr()
    (line,) = checked.err.splitlines()
    assert line.startswith("soakwatch: plan.yaml:2:28: fw2 traps: ")
    assert (line.count("fw2"), str(port) in line) == (1, True)
    assert checked.out.startswith("not ready: 0 of 1 source can be polled, 1 problem\n")
    assert str(port) not in checked.out  # the reason is said once
    keys = "version=2c&community=env:COMMUNITY&timeout=30s"
    assert cli.run(["probe", f"snmp://127.0.0.1:{closed}?{keys}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"soakwatch: 127.0.0.1:{closed} snmp: the port is closed")
    assert line.count("127.0.0.1") == 1
