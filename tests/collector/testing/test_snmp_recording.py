"""Recordings as files, the responder as a command, and the parts of the responder that need no socket."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from soakwatch_testing.snmp_ber import UndecodableError, read_message, read_name, write_name
from soakwatch_testing.snmp_cells import Cell, Moving, integer, name_of
from soakwatch_testing.snmp_mib import Mib
from soakwatch_testing.snmp_recording import BadRecordingError, load_recording, parse_recording
from soakwatch_testing.snmp_responder import responder

DESCRIPTION = "1.3.6.1.2.1.1.1.0"


def test_a_recording_may_be_disordered_repeated_packed_and_partly_broken(tmp_path: Path) -> None:
    lines = [
        "1.3.6.1.2.1.1.5.0|4x|6e616d65",
        "1.3.6.1.2.1.1.3.0|67|4242",
        "1.3.6.1.2.1.1.1.0|4|a | b",
        "1.3.6.1.2.1.1.3.0|67|1",
        "no oid|4|x",
        "1.3.6.1.9|2|forty",
        "1.3.6.1.10|70|18446744073709551616",
        "1.3.6.1.4.1.1|64x|0a000001",
        "1.3.6.1.4.1.2|70|18446744073709551615",
        "1.3.6.1.4.1.3|65:numeric|rate=1",
        "",
    ]
    packed = tmp_path / "odd.snmprec.gz"
    packed.write_bytes(gzip.compress("\r\n".join(lines).encode()))
    recording = load_recording(packed)
    assert (len(recording.rows), recording.skipped, recording.repeated) == (5, 4, 1)
    assert f"{packed}:5: 'no oid' is not an OID" in recording.complaints
    with responder(recording.rows) as agent:
        command = ["snmpwalk", "-v2c", "-cpublic", "-On", "-Ot", "-OU", f"127.0.0.1:{agent.address[1]}", "1.3.6.1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "MIBS": ""})
    pairs = (line.partition(" = ") for line in done.stdout.splitlines() if "No more variables" not in line)
    values = {name.removeprefix("."): value for name, _, value in pairs}
    assert values == {
        "1.3.6.1.2.1.1.1.0": 'STRING: "a | b"',
        "1.3.6.1.2.1.1.3.0": "4242",
        "1.3.6.1.2.1.1.5.0": 'STRING: "name"',
        "1.3.6.1.4.1.1": "IpAddress: 10.0.0.1",
        "1.3.6.1.4.1.2": "Counter64: 18446744073709551615",
    }
    with pytest.raises(BadRecordingError, match=r"lines:1: 'no oid' is not an OID"):
        parse_recording(["no oid|4|x"], "lines", strict=True)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(BadRecordingError, match="cut off"):
        load_recording(packed)


def test_it_serves_a_recording_as_a_command(tmp_path: Path) -> None:
    file = tmp_path / "box.snmprec"
    file.write_text("1.3.6.1.2.1.1.1.0|4|a box\nbroken\n")
    command = [sys.executable, "-m", "soakwatch_testing.snmp_responder", str(file), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        line = served.stdout.readline()
        address = line.split()[0]
        got = subprocess.run(
            ["snmpget", "-v2c", "-cpublic", "-On", address, DESCRIPTION], capture_output=True, text=True, check=False
        )
        served.send_signal(signal.SIGTERM)
        _, errors = served.communicate(timeout=240)
    assert "public (1 objects)" in line
    assert '"a box"' in got.stdout
    assert f"skipped {file}:2: a line is OID|TAG|VALUE" in errors
    assert served.returncode == 0
    refused = subprocess.run([*command[:-3], "/nonexistent.snmprec"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.startswith("snmp_responder: /nonexistent.snmprec: cannot be read")


def test_names_survive_the_wire_and_broken_ones_are_refused() -> None:
    for name in ("1.3.6.1", "0.0", "2.39.1", "2.999.128.16383.16384.4294967295"):
        assert read_name(write_name(name_of(name))) == name_of(name)
    for broken in ("", "1", "1.3.x", "3.1", "1.40", "1.3.-1", "1.3.4294967296"):
        with pytest.raises(ValueError, match=r"."):
            name_of(broken)
    with pytest.raises(UndecodableError):
        read_name(b"\x2b\x80")
    with pytest.raises(UndecodableError):
        read_message(b"\x30\x80")


def test_the_next_name_is_found_between_names_that_exist() -> None:
    mib = Mib({(1, 3, 1): integer(1), (1, 3, 3): Cell(70, Moving(0, 1, 64)), (1, 3, 5): integer(5)})
    assert mib.after((1, 3, 2)) == (1, 3, 3)
    assert mib.after((1, 3, 2), without=70) == (1, 3, 5)
    assert mib.after((1, 3, 5)) is None
