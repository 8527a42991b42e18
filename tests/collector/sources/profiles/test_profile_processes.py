"""Watched processes over SNMP: by name, glob, command line and pid; restarts, a pid that is given again, and limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.collector.sources.profiles.kit import PERF, SW, Device, poll, process, profile, table

from soakwatch.sources.abc import SourceError, WatchedProcess
from soakwatch.sources.profiles import Value, load_profiles
from soakwatch.sources.profiles.profile_reader import ProfileReader

UP, COUNT, PID = "process.up", "process.count", "process.pid"


def reader(device: Device, *watches: WatchedProcess) -> ProfileReader:
    return ProfileReader(device, load_profiles()["generic"], None, watches)


def named(name: str) -> WatchedProcess:
    return WatchedProcess(name, "name", name)


def test_watches_by_name_glob_command_line_and_pid() -> None:
    device = Device(
        process(1, "init")
        | process(50, "bgpd", "/usr/lib/frr/bgpd", "-d -F datacenter", cpu=1000)
        | process(60, "nginx", "nginx: master process /usr/sbin/nginx")
        | process(61, "nginx", "nginx: worker process")
        | process(70, "systemd-resolve", "")
        | process(80, "python3", "/usr/bin/python3", "/opt/app/main.py --port 80")
    )
    values = table(
        poll(
            reader(
                device,
                named("bgpd"),
                named("ngin*"),
                WatchedProcess("app", "cmdline", r"main\.py .*80"),
                WatchedProcess("first", "pid", "1"),
                named("systemd-resolved"),
                named("absent"),
            ),
            1,
        )
    )
    assert values[PID, "process=bgpd,instance=0"] == 50
    assert values["process.cpu.time", "process=bgpd,instance=0,mode=total"] == 10
    assert values["process.memory.usage", "process=bgpd,instance=0"] == 1000 * 1024
    assert values[COUNT, "process=ngin*"] == 2
    assert [values[PID, f"process=ngin*,instance={n}"] for n in (0, 1)] == [60, 61]
    assert values[PID, "process=app,instance=0"] == 80
    assert values[PID, "process=first,instance=0"] == 1
    assert values[UP, "process=systemd-resolved,instance=0"] == 1, "the kernel cuts names at 15 characters"
    assert values[UP, "process=absent,instance=0"] == 0
    assert values[COUNT, "process=absent"] == 0
    assert (PID, "process=absent,instance=0") not in values


def test_a_process_that_restarts_keeps_its_series_and_is_reported() -> None:
    device = Device(process(50, "bgpd", cpu=5000))
    watcher = reader(device, named("bgpd"))
    poll(watcher, 0)
    device.values = process(90, "bgpd", cpu=10)
    reading = poll(watcher, 30)
    assert [(event.kind, event.object, dict(event.detail)) for event in reading.events] == [
        ("process.exit", "process=bgpd,instance=0", {"pid": "50"}),
        ("process.restart", "process=bgpd,instance=0", {"old_pid": "50", "new_pid": "90"}),
    ]
    values = table(reading)
    assert values[PID, "process=bgpd,instance=0"] == 90
    assert ("process.cpu.utilization", "process=bgpd,instance=0") not in values, "the new one has no poll before"
    device.values = process(90, "bgpd", cpu=10 + 150)
    assert table(poll(watcher, 60))["process.cpu.utilization", "process=bgpd,instance=0"] == 0.05


def test_a_process_that_goes_is_down_until_another_comes() -> None:
    device = Device(process(50, "bgpd") | process(2, "other"))
    watcher = reader(device, named("bgpd"))
    poll(watcher, 0)
    del device.values[f"{SW}.2.50"]
    values = table(poll(watcher, 30))
    assert values[UP, "process=bgpd,instance=0"] == 0
    assert values[COUNT, "process=bgpd"] == 0
    device.values |= process(51, "bgpd")
    assert table(poll(watcher, 60))[UP, "process=bgpd,instance=0"] == 1


def test_a_pid_that_is_given_again_is_another_process() -> None:
    device = Device(process(50, "bgpd", cpu=900))
    watcher = reader(device, named("bgpd"))
    poll(watcher, 0)
    device.values = process(50, "bash", cpu=1)
    assert table(poll(watcher, 30))[UP, "process=bgpd,instance=0"] == 0
    device.values = process(50, "bgpd", cpu=5)
    poll(watcher, 60)
    device.values = process(50, "bgpd", cpu=2)  # the same pid and name, but its counter fell
    reading = poll(watcher, 90)
    assert [event.kind for event in reading.events] == ["process.restart"]
    assert ("process.cpu.utilization", "process=bgpd,instance=0") not in table(reading)


def test_instances_keep_their_numbers() -> None:
    device = Device(process(10, "w") | process(20, "w") | process(30, "w"))
    watcher = reader(device, named("w"))
    poll(watcher, 0)
    device.values = process(10, "w") | process(30, "w") | process(40, "w") | process(5, "w")
    values = table(poll(watcher, 30))
    assert {name: value for (metric, name), value in values.items() if metric == PID} == {
        "process=w,instance=0": 10,
        "process=w,instance=1": 5,
        "process=w,instance=2": 30,
        "process=w,instance=3": 40,
    }


def test_what_cannot_be_watched_over_snmp_is_reported_once() -> None:
    device = Device(process(1, "init"))
    watcher = reader(device, WatchedProcess("x", "pidfile", "/run/x.pid"))
    assert "a pidfile cannot be read over SNMP" in poll(watcher, 0).faults[0].text
    assert poll(watcher, 30).faults == ()
    none = reader(Device({}), named("bgpd"))
    assert "does not list its processes over SNMP" in poll(none, 0).faults[0].text
    assert poll(none, 1).faults == ()


def test_a_glob_that_means_everything_is_bounded() -> None:
    values: dict[str, Value] = {}
    for pid in range(1, 301):
        values |= process(pid, f"p{pid}")
    device = Device(values)
    reading = poll(reader(device, named("*")), 0)
    assert table(reading)[COUNT, "process=*"] == 300
    assert len([s for s in reading.samples if s.metric == UP]) == 64
    assert [fault.text for fault in reading.faults] == ["300 processes match: only 64 are watched"]
    assert max(len(oids) for oids in device.gets) < 400


def test_the_table_is_walked_only_for_those_who_watch_and_only_when_it_is_renewed() -> None:
    device = Device(process(50, "bgpd"))
    poll(ProfileReader(device, load_profiles()["generic"]), 0)
    assert not [columns for columns in device.walks if f"{SW}.2" in columns]
    watcher = reader(device, named("bgpd"))
    poll(watcher, 0)
    device.walks.clear()
    for second in range(1, 61):
        poll(watcher, second)
    assert len([columns for columns in device.walks if f"{SW}.2" in columns]) == 2


def test_a_move_is_reported_even_if_the_poll_that_saw_it_failed() -> None:
    class Faint(Device):
        async def get(self, oids: Sequence[str]) -> dict[str, Value]:
            if any(oid.startswith(PERF) for oid in oids):
                raise SourceError("no answer")
            return dict(await super().get(oids))

    device = Device(process(50, "bgpd"))
    watcher = reader(device, named("bgpd"))
    poll(watcher, 0)
    watcher._asker = Faint(process(51, "bgpd"))
    with pytest.raises(SourceError):
        poll(watcher, 30)
    watcher._asker = Device(process(51, "bgpd"))
    assert [event.kind for event in poll(watcher, 31).events] == ["process.exit", "process.restart"]


def test_a_vendors_table_of_processes_names_them_its_own_way(tmp_path: Path) -> None:
    base = "1.3.6.1.4.1.99.5"
    vendor = profile(
        tmp_path,
        "title: x\nextends: [generic]\nsnmp:\n  groups:\n    host_processes: null\n    own:\n      watch: process\n"
        f"      columns: {{process: {base}.1, used: {base}.2, freed: {base}.3}}\n      metrics:\n"
        "        - {metric: process.memory.usage, value: used - freed, labels: {process: '{process}'}}\n",
    )
    device = Device(
        {f"{base}.1.1.77": b"IP Input", f"{base}.2.1.77": 900, f"{base}.3.1.77": 200, f"{base}.1.1.78": b"Exec"}
    )
    values = table(poll(ProfileReader(device, vendor, None, (named("IP Input"), named("Exec"))), 0))
    assert values["process.memory.usage", "process=IP Input,instance=0"] == 700
    assert values[PID, "process=IP Input,instance=0"] == 77
    assert values[UP, "process=Exec,instance=0"] == 1


def test_a_table_whose_index_is_no_pid_has_the_pid_in_a_column(tmp_path: Path) -> None:
    """Some tables are indexed by name: the column ``pid`` is the pid then, and a restart shows by it."""
    vendor = profile(
        tmp_path,
        """
        title: x
        snmp:
          groups:
            processes:
              watch: process
              columns: {name: 1.3.6.1.4.1.9999.1.1, pid: 1.3.6.1.4.1.9999.1.2, cpu: 1.3.6.1.4.1.9999.1.3}
              metrics: [{metric: process.cpu.utilization, value: cpu, scale: 0.01, labels: {process: "{name}"}}]
        """,
    )
    device = Device(
        {
            "1.3.6.1.4.1.9999.1.1.3.98.103.112": b"bgp",
            "1.3.6.1.4.1.9999.1.2.3.98.103.112": 4711,
            "1.3.6.1.4.1.9999.1.3.3.98.103.112": 50,
        }
    )
    values = table(poll(ProfileReader(device, vendor, None, (named("bgp"),)), 1))
    assert values[PID, "process=bgp,instance=0"] == 4711
    assert values["process.cpu.utilization", "process=bgp,instance=0"] == 0.5
