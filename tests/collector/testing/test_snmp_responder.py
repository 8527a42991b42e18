"""The responder of soakwatch_testing against net-snmp's own commands, which know nothing of it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from soakwatch_testing.snmp_cells import (
    Cell,
    counter32,
    counter64,
    gauge32,
    integer,
    ip_address,
    oid,
    text,
    timeticks,
)
from soakwatch_testing.snmp_faults import Faults
from soakwatch_testing.snmp_mib import interfaces, mib_of, system
from soakwatch_testing.snmp_responder import Responder, responder
from soakwatch_testing.snmp_usm import User

UPTIME = "1.3.6.1.2.1.1.3.0"
DESCRIPTION = "1.3.6.1.2.1.1.1.0"
USERS = (
    User("nobody"),
    User("md5", "MD5", "authpass12"),
    User("sha", "SHA", "authpass12", "AES", "privpass12"),
    User("sha256", "SHA256", "authpass12", "AES", "privpass12"),
    User("sha512", "SHA512", "authpass12", "AES", "privpass12"),
)
V1 = ("-v1", "-cpublic")
V2C = ("-v2c", "-cpublic")
SHA = ("-v3", "-usha", "-lauthPriv", "-aSHA", "-Aauthpass12", "-xAES", "-Xprivpass12")
WAYS = {
    "v1": V1,
    "v2c": V2C,
    "v3 noAuthNoPriv": ("-v3", "-unobody", "-lnoAuthNoPriv"),
    "v3 MD5": ("-v3", "-umd5", "-lauthNoPriv", "-aMD5", "-Aauthpass12"),
    "v3 SHA AES": SHA,
    "v3 SHA-256 AES": ("-v3", "-usha256", "-lauthPriv", "-aSHA-256", "-Aauthpass12", "-xAES", "-Xprivpass12"),
    "v3 SHA-512 AES": ("-v3", "-usha512", "-lauthPriv", "-aSHA-512", "-Aauthpass12", "-xAES", "-Xprivpass12"),
}


class Hour:
    """A clock that stops until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def agent() -> Iterator[Responder]:
    """A simulated device of ten interfaces whose time does not move."""
    with responder({**system(), **interfaces(10)}, users=USERS, now=Hour()) as running:
        yield running


def ask(command: str, access: tuple[str, ...], agent: Responder, *rest: str) -> tuple[list[str], str]:
    """Lines of a net-snmp command (``OID = TYPE: value``), and its complaints."""
    target = f"{agent.address[0]}:{agent.address[1]}"
    # Without MIBs, configuration and a folder to keep state: what is read is what is on the wire.
    environment = {**os.environ, "MIBS": "", "SNMPCONFPATH": "/nonexistent", "SNMP_PERSISTENT_DIR": "/nonexistent"}
    options = ["-On", "-Oe", "-OU", "-Ot", "-r0", "-t2"]
    done = subprocess.run(
        [command, *options, *access, target, *rest],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=environment,
    )
    return [line for line in done.stdout.splitlines() if "No more variables" not in line], done.stderr


def values(lines: list[str]) -> dict[str, str]:
    """The lines by OID."""
    return {name.removeprefix("."): value for name, _, value in (line.partition(" = ") for line in lines)}


@pytest.mark.parametrize("options", WAYS.values(), ids=list(WAYS))
def test_every_version_and_protocol_gets_and_walks(agent: Responder, options: tuple[str, ...]) -> None:
    lines, errors = ask("snmpget", options, agent, DESCRIPTION, UPTIME, "1.3.6.1.2.1.1.2.0")
    assert values(lines) == {
        DESCRIPTION: 'STRING: "a made device"',
        UPTIME: "100000",
        "1.3.6.1.2.1.1.2.0": "OID: .1.3.6.1.4.1.8072.3.2.10",
    }, errors
    command = "snmpwalk" if options == V1 else "snmpbulkwalk"
    walked = values(ask(command, options, agent, "1.3.6.1.2.1.31.1.1.1")[0])
    names = [value for name, value in walked.items() if name.startswith("1.3.6.1.2.1.31.1.1.1.1.")]
    assert names == [f'STRING: "eth{number}"' for number in range(10)]
    # Counter64 is not of SNMPv1 (RFC 3584 section 4.2.2.1).
    assert ("1.3.6.1.2.1.31.1.1.1.6.3" in walked) == (options != V1)


def test_every_type_arrives_as_it_is() -> None:
    cells = {
        "1.3.1.1": integer(-5),
        "1.3.1.2": text(b"\x00\xff"),
        "1.3.1.3": oid("2.999.4294967295"),
        "1.3.1.4": ip_address("10.0.0.1"),
        "1.3.1.5": counter32(2**32 - 1),
        "1.3.1.6": gauge32(2**32 - 1),
        "1.3.1.7": timeticks(1.5, ticking=False),
        "1.3.1.8": counter64(2**64 - 1),
        "1.3.1.9": Cell(5, None),
        "1.3.1.10": Cell(68, b"\x9f\x78\x04\x3f\x80\x00\x00"),
    }
    with responder(mib_of(cells)) as agent:
        printed = values(ask("snmpwalk", V2C, agent, "1.3.1")[0])
        missing, _ = ask("snmpget", V2C, agent, "1.3.1.11", "1.3.2.1")
    assert printed == {
        "1.3.1.1": "INTEGER: -5",
        "1.3.1.2": "Hex-STRING: 00 FF ",
        "1.3.1.3": "OID: .2.999.4294967295",
        "1.3.1.4": "IpAddress: 10.0.0.1",
        "1.3.1.5": "Counter32: 4294967295",
        "1.3.1.6": "Gauge32: 4294967295",
        "1.3.1.7": "150",
        "1.3.1.8": "Counter64: 18446744073709551615",
        "1.3.1.9": "NULL",
        "1.3.1.10": "Opaque: Float: 1.000000",
    }
    assert "No Such Instance" in missing[0]
    assert "No Such Object" in missing[1]


def test_counters_move_and_wrap_on_the_virtual_clock() -> None:
    clock = Hour()
    rows = mib_of(
        {"1.3.1.1": counter32(2**32 - 100, 10), "1.3.1.2": counter64(2**64 - 100, 10), "1.3.1.3": timeticks(5)}
    )
    with responder(rows, now=clock) as agent:

        def read() -> list[int]:
            return [int(value.split(": ")[-1]) for value in values(ask("snmpwalk", V2C, agent, "1.3.1")[0]).values()]

        assert read() == [2**32 - 100, 2**64 - 100, 500]
        clock.seconds += 9
        assert read() == [2**32 - 10, 2**64 - 10, 1400]
        agent.advance(2)
        assert read() == [10, 10, 1600]
        agent.set("1.3.1.1", integer(lambda seconds: int(seconds * 2)))
        assert read()[0] == 22


@pytest.mark.parametrize("options", [V2C, SHA], ids=["v2c", "v3"])
def test_reboot_and_restart_of_the_agent_look_as_they_do_on_devices(agent: Responder, options: tuple[str, ...]) -> None:
    def life() -> list[int]:
        names = (UPTIME, "1.3.6.1.2.1.25.1.1.0", "1.3.6.1.6.3.10.2.1.2.0", "1.3.6.1.2.1.2.2.1.10.4")
        lines, errors = ask("snmpget", options, agent, *names)
        assert len(lines) == 4, errors
        return [int(value.split(": ")[-1]) for value in values(lines).values()]

    agent.advance(10)
    uptime, host, boots, octets = life()
    assert (uptime, host, boots) == (101000, 201000, 3)
    agent.restart_agent()
    assert life() == [0, 201000, 4, octets]
    agent.advance(1)
    assert life() == [100, 201100, 4, octets + 1000]
    agent.reboot(renumber=True)
    assert life() == [0, 0, 5, 0]
    names = values(ask("snmpbulkwalk", options, agent, "1.3.6.1.2.1.31.1.1.1.1")[0])
    assert names["1.3.6.1.2.1.31.1.1.1.1.1"] == 'STRING: "eth9"'
    assert names["1.3.6.1.2.1.31.1.1.1.1.2"] == 'STRING: "eth0"'
    indices = values(ask("snmpbulkwalk", options, agent, "1.3.6.1.2.1.2.2.1.1")[0])
    assert list(indices.values()) == [f"INTEGER: {number}" for number in range(1, 11)]


def test_a_new_engine_is_a_new_engine(agent: Responder) -> None:
    def engine() -> bytes:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(5)
            # An SNMPv3 discovery (RFC 3414 section 4): empty engine ID, user and context, reportable.
            discovery = bytes.fromhex(
                "303a020103300f02024a690203010000040104020103041030"
                "0e0400020100020100040004000400301204000400a00c020237f00201000201003000"
            )
            sock.sendto(discovery, agent.address)
            report = sock.recv(2000)
        start = report.index(b"\x80\x00\x1f\x88\x04")
        return report[start : start + 13]

    first = engine()
    assert engine() == first
    agent.renew_engine(same_id=True, boots=1)
    assert engine() == first
    assert ask("snmpget", SHA, agent, UPTIME)[0]
    agent.renew_engine()
    assert engine() != first
    assert ask("snmpget", SHA, agent, UPTIME)[0]


@pytest.mark.parametrize("options", [V2C, SHA], ids=["v2c", "v3"])
@pytest.mark.parametrize(
    ("faults", "complaint"),
    [
        (Faults(drop=1), "imeout"),
        (Faults(garbage=True), "imeout"),
        (Faults(truncate=30), "imeout"),
        (Faults(wrong_id=True), "imeout"),
        (Faults(gen_err=("1.3.6.1.2.1.1",)), "genError"),
        (Faults(most_bindings=1), "tooBig"),
        (Faults(most_octets=90), "tooBig"),
    ],
    ids=["drop", "garbage", "truncate", "wrong id", "genErr", "bindings", "octets"],
)
def test_faults_look_as_they_do_on_devices(
    agent: Responder, options: tuple[str, ...], faults: Faults, complaint: str
) -> None:
    agent.misbehave(faults)
    lines, errors = ask("snmpget", (*options, "-t0.5"), agent, DESCRIPTION, UPTIME)
    assert not lines
    assert complaint in errors
    agent.misbehave(Faults())
    assert len(ask("snmpget", options, agent, DESCRIPTION, UPTIME)[0]) == 2


@pytest.mark.parametrize("options", [V2C, SHA], ids=["v2c", "v3"])
def test_loops_are_found_by_a_client_that_checks(agent: Responder, options: tuple[str, ...]) -> None:
    agent.misbehave(Faults(loop=("1.3.6.1.2.1.2.2.1.2",)))
    assert "OID not increasing" in ask("snmpbulkwalk", options, agent, "1.3.6.1.2.1.2")[1]
    agent.misbehave(Faults(backwards=("1.3.6.1.2.1.2.2.1.2.5",)))
    # net-snmp's snmpwalk shows the object that leads out of the tree, and stops there.
    lines, _ = ask("snmpwalk", options, agent, "1.3.6.1.2.1.2.2.1.2")
    assert [line.split()[0] for line in lines[-2:]] == [".1.3.6.1.2.1.2.2.1.2.4", f".{DESCRIPTION}"]


def test_a_getbulk_is_cut_to_what_fits(agent: Responder) -> None:
    agent.misbehave(Faults(most_bindings=3))
    lines, _ = ask("snmpbulkget", (*V2C, "-Cn0", "-Cr10"), agent, "1.3.6.1.2.1.2.2.1.2")
    assert len(lines) == 3
    assert len(ask("snmpbulkwalk", (*V2C, "-Cr10"), agent, "1.3.6.1.2.1.2.2.1.2")[0]) == 10


def test_faults_are_narrowed_to_objects_and_to_a_number_of_requests(agent: Responder) -> None:
    agent.misbehave(Faults(drop=1, below=("1.3.6.1.2.1.2",)))
    assert ask("snmpget", V2C, agent, UPTIME)[0]
    assert not ask("snmpget", (*V2C, "-t0.3"), agent, "1.3.6.1.2.1.2.2.1.10.1")[0]
    agent.drop(requests=2)
    assert "imeout" in ask("snmpget", (*V2C, "-t0.3", "-r1"), agent, UPTIME)[1]
    assert ask("snmpget", V2C, agent, UPTIME)[0]


def test_a_late_answer_delays_nobody_else() -> None:
    with responder({"slow": mib_of({UPTIME: timeticks()}), "quick": mib_of({UPTIME: timeticks()})}) as agent:
        agent.misbehave(Faults(delay_s=1.0, requests=1))
        target = f"{agent.address[0]}:{agent.address[1]}"
        slow = subprocess.Popen(
            ["snmpget", "-v2c", "-cslow", "-t5", "-On", target, UPTIME], stdout=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 120
        while agent.requests < 1 and time.monotonic() < deadline:
            time.sleep(0.001)
        began = time.monotonic()
        assert ask("snmpget", ("-v2c", "-cquick"), agent, UPTIME)[0]
        quick_s = time.monotonic() - began
        assert slow.poll() is None or quick_s > 1, "the slow one was answered first"
        out, _ = slow.communicate(timeout=240)
    assert "1.3.6.1.2.1.1.3.0" in out


def test_a_value_of_the_wrong_type_is_reported_as_such(agent: Responder) -> None:
    agent.set("1.3.6.1.2.1.2.2.1.10.1", text("many"))
    assert values(ask("snmpget", V2C, agent, "1.3.6.1.2.1.2.2.1.10.1")[0]).popitem()[1] == 'STRING: "many"'
    agent.remove("1.3.6.1.2.1.2.2.1.10")
    assert "1.3.6.1.2.1.2.2.1.11.1" in ask("snmpgetnext", V2C, agent, "1.3.6.1.2.1.2.2.1.10")[0][0]


def test_devices_are_told_apart_by_community_and_by_context() -> None:
    devices = {name: mib_of({DESCRIPTION: name}) for name in ("one", "two")}
    with responder(devices, users=USERS, trace=True) as agent:
        assert '"two"' in ask("snmpget", ("-v2c", "-ctwo"), agent, DESCRIPTION)[0][0]
        assert '"two"' in ask("snmpget", (*SHA, "-n", "two"), agent, DESCRIPTION)[0][0]
        assert '"one"' in ask("snmpget", SHA, agent, DESCRIPTION)[0][0]
        assert not ask("snmpget", ("-v2c", "-cthree", "-t0.3"), agent, DESCRIPTION)[0]
        assert agent.answered_names() == {DESCRIPTION}
        with pytest.raises(KeyError, match="three"):
            agent.set(UPTIME, 1, community="three")


def test_wrong_keys_are_refused_by_the_security_model(agent: Responder) -> None:
    wrong = ("-v3", "-usha", "-lauthPriv", "-aSHA", "-Anotthekey", "-xAES", "-Xprivpass12")
    assert "Authentication failure" in ask("snmpget", wrong, agent, UPTIME)[1]
    assert "Unknown user" in ask("snmpget", ("-v3", "-ueve", "-lnoAuthNoPriv"), agent, UPTIME)[1]


def test_ten_thousand_interfaces_are_walked_in_order() -> None:
    with responder({**system(), **interfaces(10_000)}) as agent:
        lines, errors = ask("snmpbulkwalk", (*V2C, "-Cr100"), agent, "1.3.6.1.2.1.31.1.1.1.6")
    assert len(lines) == 10_000, errors


def test_garbage_from_outside_ends_nothing(agent: Responder) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for junk in (
            b"",
            b"\x30",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x03\x02\x01\x03",
            b"\x00" * 1400,
            b"\x30" * 60000,
        ):
            sock.sendto(junk, agent.address)
        good = bytes.fromhex("302602010104067075626c6963a019020101020100020100300e300c06082b060102010103000500")
        for cut in range(len(good)):
            sock.sendto(good[:cut], agent.address)
    assert ask("snmpget", V2C, agent, UPTIME)[0]
