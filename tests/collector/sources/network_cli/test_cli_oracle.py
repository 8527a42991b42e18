"""The parsers against ntc-templates: an independent reading of the same outputs, and never the judge.

Where a template is known to be wrong, that is said here: its ``show asp drop`` raises on a reason that it does not
list, and gives ``security-failed`` the value of ``sp-security-failed`` where both are there.
"""

from __future__ import annotations

from typing import Any

import pytest
from ntc_templates.parse import parse_output
from tests.collector.sources.network_cli.conftest import output
from tests.collector.sources.network_cli.test_cli_parsers import parse, results_of


def theirs(platform: str, command: str, text: str) -> list[dict[str, Any]]:
    """What the template makes of a text; its names in lower case."""
    rows = parse_output(platform=platform, command=command, data=text)
    return [{key.lower(): value for key, value in row.items()} for row in rows]


def test_asp_drop_agrees_but_for_the_known_errors() -> None:
    text = output("cisco-asa", "show_asp_drop")
    with pytest.raises(Exception, match=r"LINE NOT FOUND"):
        theirs("cisco_asa", "show asp drop", text)
    known = "\n".join(line for line in text.split("\n") if "brand-new" not in line)
    row = theirs("cisco_asa", "show asp drop", known)[0]
    results = results_of(parse("cisco-asa", "show_asp_drop"))
    prefix = "place=frame,reason="
    assert results[f"system.forwarding.denied {prefix}rpf-violated"] == int(row["rpf_violated"]) == 12
    assert results[f"system.forwarding.dropped {prefix}no-route"] == int(row["no_route"]) == 35
    assert results[f"system.forwarding.dropped {prefix}tcp-buffer-full"] == int(row["tcp_buffer_full"]) == 9
    assert row["security_failed"] != "277057"  # the error that is known: should this fail, it was mended there
    assert results[f"system.forwarding.denied {prefix}security-failed"] == 277057


def test_cpu_of_the_cisco_systems_agrees() -> None:
    results = results_of(parse("cisco-asa", "show_cpu"))
    rows = theirs("cisco_asa", "show cpu usage detailed", output("cisco-asa", "show_cpu"))
    assert [float(row["cpu_5_sec"]) for row in rows] == [12.5, 3.0]
    for row in rows:
        module = f"module={row['core'].lower()}"
        assert results[f"system.cpu.module.utilization {module}"] == float(row["cpu_5_sec"]) / 100
        assert results[f"system.cpu.module.average {module},window=5m"] == float(row["cpu_5_min"]) / 100
    results = results_of(parse("cisco-ios", "show_processes_cpu"))
    rows = theirs("cisco_ios", "show processes cpu", output("cisco-ios", "show_processes_cpu"))
    named = {row["process_name"].strip(): row for row in rows if row.get("process_name")}
    assert named
    for name, row in named.items():
        assert results[f"cpu {name}"] == pytest.approx(float(row["process_cpu_usage_5_sec"]) / 100)
    results = results_of(parse("cisco-iosxr", "show_processes_cpu"))
    rows = theirs("cisco_xr", "show processes cpu", output("cisco-iosxr", "show_processes_cpu"))
    assert results["system.cpu.utilization"] == int(rows[0]["cpu_1_min"]) / 100


def test_resource_usage_and_drops_of_network_processors_agree() -> None:
    results = results_of(parse("cisco-asa", "show_resource_usage"))
    for row in theirs("cisco_asa", "show resource usage", output("cisco-asa", "show_resource_usage")):
        if "[rate]" not in row["resource"] and row["context"] == "System":
            assert results[f"system.sessions table={row['resource']}"] == int(row["current"])
    results = results_of(parse("cisco-iosxr", "show_drops_np_all"))
    rows = theirs("cisco_xr", "show drops np all", output("cisco-iosxr", "show_drops_np_all"))
    assert rows
    counts = sorted(str(value) for key, value in results.items() if key.startswith("system.forwarding"))
    flat = [
        str(each) for row in rows for value in row.values() for each in (value if isinstance(value, list) else [value])
    ]
    assert [count for count in counts if count not in flat] == []


def test_versions_and_uptimes_agree() -> None:
    results = results_of(parse("cisco-asa", "show_version"))
    row = theirs("cisco_asa", "show version", output("cisco-asa", "show_version"))[0]
    assert results["fact version"] == row["version"]
    assert row["serial"] in ([results["fact serial"]], results["fact serial"])
    results = results_of(parse("cisco-nxos", "show_version"))
    row = theirs("cisco_nxos", "show version", output("cisco-nxos", "show_version"))[0]
    assert results["fact reboot_reason"] == row["last_reboot_reason"]
    assert results["fact version"] == row["os"]
    results = results_of(parse("mikrotik-routeros", "system_resource_print"))
    text = output("mikrotik-routeros", "system_resource_print")
    row = theirs("mikrotik_routeros", "system resource print", text)[0]
    weeks, days, hours = int(row["uptime_weeks"]), int(row["uptime_days"]), int(row["uptime_hours"])
    minutes, seconds = int(row["uptime_minutes"]), int(row["uptime_seconds"])
    assert results["uptime"] == ((weeks * 7 + days) * 24 + hours) * 3600 + minutes * 60 + seconds


def test_processes_of_top_agree() -> None:
    rows = theirs("arista_eos", "show processes top once", output("arista-eos", "show_processes_top.text"))
    results = results_of(parse("arista-eos", "show_processes_top"))
    assert [row["command"] for row in rows] == ["Sysdb", "Bgp-main"]
    for row in rows:
        assert results[f"cpu {row['command']}"] == pytest.approx(float(row["percent_cpu"]) / 100)
    rows = theirs("alcatel_sros", "show system cpu", output("nokia-timos", "show_system_cpu"))
    assert rows
    rows = theirs("fortinet", "diagnose sys top", output("fortinet-fortigate", "diagnose_sys_top"))
    results = results_of(parse("fortinet-fortigate", "diagnose_sys_top"))
    assert results["cpu ipsengine"] == pytest.approx(0.12)
    assert any("ipsengine" in str(row) for row in rows)
