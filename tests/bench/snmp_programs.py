"""The programs that the bench of SNMP sets beside each other: each one's configuration, and the command that runs it.

Every function takes an agent, a version of SNMP (2c or 3) and a folder of its own, and gives the command. All ask for
the same counters each second, by GETBULK of 25 rows where they walk; what they bring is thrown away where that can be.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.bench import snmp_stage as stage
from tests.collector.sources.snmp.snmpd import AUTH, PRIV, Snmpd

from soakwatch_testing.ports import free_port

BENCH = Path(__file__).with_name("snmp_rivals.py")


def poller(agent: Snmpd, version: str, folder: Path) -> list[str]:
    """The module ``pollers/snmp.py`` in a process that does nothing else."""
    return part("poller", folder, {**stage.keys(agent, version, stage.profile(folder / "profiles")), "interval": "1s"})


def whole(agent: Snmpd, version: str, folder: Path) -> list[str]:
    """``soakwatch run``: the record, its own watch and the live judging included."""
    keys = {**stage.keys(agent, version, stage.profile(folder / "profiles")), "interval": "1s"}
    plan = {
        "name": "bench",
        "phases": [{"soak": "1h"}],
        "targets": {"dut": {"role": "dut", "sources": [{"snmp": keys}]}},
    }
    (folder / "plan.yaml").write_text(json.dumps(plan))
    soakwatch = Path(sys.executable).with_name("soakwatch")
    return [str(soakwatch), "run", str(folder / "plan.yaml"), "--into", str(folder / "run")]


def commanded(agent: Snmpd, version: str, folder: Path) -> list[str]:
    """net-snmp's own client, one process for 100 objects."""
    oids = [f"{column}.{index}" for index in stage.indexes(agent) for column in stage.COLUMNS.values()]
    how = ["snmpget", "-Onq", "-m", "", *credentials(version), agent.host_and_port]
    return part("commands", folder, [[*how, *oids[:100]], [*how, *oids[100:200]]])


def walked(agent: Snmpd, version: str, folder: Path) -> list[str]:
    """net-snmp's own client, one process a column."""
    how = ["snmpbulkwalk", "-Onq", "-m", "", "-Cr25", *credentials(version), agent.host_and_port]
    return part("commands", folder, [[*how, column] for column in stage.COLUMNS.values()])


def telegraf(program: str, agent: Snmpd, version: str, folder: Path) -> list[str]:
    """A table of eight columns; what it brings is thrown away."""
    lines = ['[agent]\ninterval = "1s"\nsnmp_translator = "gosmi"\nomit_hostname = true\n[[outputs.discard]]']
    lines += [f'[[inputs.snmp]]\nagents = ["udp://{agent.host_and_port}"]\nmax_repetitions = 25\npath = []']
    if version == "3":
        lines += [
            f'version = 3\nsec_name = "{stage.USER}"\nsec_level = "authPriv"\nauth_protocol = "SHA"',
            f'auth_password = "{AUTH}"\npriv_protocol = "AES"\npriv_password = "{PRIV}"',
        ]
    else:
        lines += ['version = 2\ncommunity = "public"']
    lines += ['[[inputs.snmp.table]]\nname = "interfaces"\nindex_as_tag = true']
    for name, oid in stage.COLUMNS.items():
        lines += [f'[[inputs.snmp.table.field]]\nname = "{name}"\noid = ".{oid}"']
    (folder / "telegraf.conf").write_text("\n".join(lines) + "\n")
    return [program, "--config", str(folder / "telegraf.conf")]


def collectd(agent: Snmpd, version: str, folder: Path) -> list[str]:
    """Four tables of two columns; nothing is written."""
    how = 'Version 2\nCommunity "public"'
    if version == "3":
        how = f'Version 3\nSecurityLevel "authPriv"\nUsername "{stage.USER}"\nAuthProtocol "SHA"\n'
        how += f'AuthPassphrase "{AUTH}"\nPrivacyProtocol "AES"\nPrivacyPassphrase "{PRIV}"'
    oids = list(stage.COLUMNS.values())
    kinds = ("if_octets", "if_packets", "if_dropped", "if_errors")
    data = "\n".join(
        f'<Data "{kind}">\nTable true\nType "{kind}"\nValues "{oids[2 * index]}" "{oids[2 * index + 1]}"\n</Data>'
        for index, kind in enumerate(kinds)
    )
    names = " ".join(f'"{kind}"' for kind in kinds)
    (folder / "collectd.conf").write_text(
        f'BaseDir "{folder}"\nPIDFile "{folder}/pid"\nInterval 1\nReadThreads 1\nFQDNLookup false\nHostname "bench"\n'
        f'LoadPlugin logfile\n<Plugin logfile>\nFile "{folder}/collectd.log"\n</Plugin>\n'
        f'LoadPlugin snmp\n<Plugin snmp>\n{data}\n<Host "dut">\nAddress "{agent.host_and_port}"\n'
        f"{how}\nBulkSize 25\nInterval 1\n"
        f"Collect {names}\n</Host>\n</Plugin>\n"
    )
    return ["collectd", "-f", "-C", str(folder / "collectd.conf")]


def exporter(agent: Snmpd, version: str, folder: Path) -> list[str]:
    """The exporter of Prometheus; its last word is where to scrape."""
    metrics = [
        {"name": f"bench_{name}", "oid": oid, "type": "counter", "indexes": [{"labelname": "ifIndex", "type": "gauge"}]}
        for name, oid in stage.COLUMNS.items()
    ]
    auth: dict[str, object] = {"community": "public"}
    if version == "3":
        auth = {
            "security_level": "authPriv",
            "username": stage.USER,
            "password": AUTH,
            "auth_protocol": "SHA",
            "priv_protocol": "AES",
            "priv_password": PRIV,
        }
    module = {
        "walk": list(stage.COLUMNS.values()),
        "metrics": metrics,
        "version": 3 if version == "3" else 2,
        "max_repetitions": 25,
        "auth": auth,
    }
    (folder / "snmp.yml").write_text(json.dumps({"bench": module}))
    port = free_port()
    where = f"http://127.0.0.1:{port}/snmp?module=bench&target={agent.host_and_port}"
    program = ["prometheus-snmp-exporter", f"--config.file={folder}/snmp.yml", f"--web.listen-address=127.0.0.1:{port}"]
    (folder / "exporter").write_text(f"#!/bin/sh\nexec {' '.join(program)}\n")
    return ["sh", str(folder / "exporter"), where]


def credentials(version: str) -> list[str]:
    """The options of net-snmp's commands."""
    if version == "2c":
        return ["-v2c", "-c", "public"]
    return ["-v3", "-u", stage.USER, "-l", "authPriv", "-a", "SHA", "-A", AUTH, "-x", "AES", "-X", PRIV]


def part(what: str, folder: Path, given: object) -> list[str]:
    """A part of this program in a process of its own."""
    (folder / "part.json").write_text(json.dumps(given))
    return [sys.executable, str(BENCH), "--part", what, str(folder / "part.json")]
