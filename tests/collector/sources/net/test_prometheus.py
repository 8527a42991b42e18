"""Exporters: pages read, mapped and kept; the page of the client library itself, and Debian's node_exporter if here."""

from __future__ import annotations

import asyncio
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import SourceError
from soakwatch.sources.pollers.prometheus.exposition_page import read_page
from soakwatch.sources.pollers.prometheus.map_file import MapEntry, installed_maps
from soakwatch.sources.pollers.prometheus.sample_mapping import Mapper
from soakwatch_model.sample import Answer, object_text

Polls = Callable[..., list[Answer]]
Serve = Callable[..., AbstractContextManager[int]]


def by_series(answer: Answer) -> dict[tuple[str, str], float]:
    """Readings by metric and object."""
    return {(sample.metric, sample.object): sample.value for sample in answer.samples}


@pytest.mark.parametrize("open_metrics", [False, True])
def test_what_the_client_library_exposes(polls: Polls, page_server: Serve, open_metrics: bool) -> None:
    """``prometheus``: both formats, with awkward labels; unmapped names are kept when a glob asks for them."""
    registry = CollectorRegistry()
    Gauge("vpp_buffers", "Buffers\nused", ["pool"], registry=registry).labels(pool='a "b"\\c,d=e').set(-2.5)
    Counter("vpp_drops", "Drops", registry=registry).inc(2**53 + 2)
    Histogram("vpp_lat", "Latency", registry=registry).observe(0.1)
    Gauge("node_nf_conntrack_entries", "Connections", registry=registry).set(77)
    page = generate_openmetrics(registry) if open_metrics else generate_latest(registry)  # type: ignore[no-untyped-call]
    kind = "application/openmetrics-text; version=1.0.0" if open_metrics else "text/plain; version=0.0.4"
    with page_server(lambda *_: (200, {"Content-Type": kind}, page)) as port:
        (answer,) = polls(
            "prometheus", {"url": f"http://127.0.0.1:{port}/metrics", "keep": ["vpp_b*", "vpp_drops_total"]}
        )
    assert answer.faults == ()
    assert by_series(answer) == {
        ("system.conntrack.count", ""): 77,
        ("exporter.gauge", object_text(name="vpp_buffers", labels='pool=a "b"\\c,d=e')): -2.5,
        ("exporter.counter", object_text(name="vpp_drops_total", labels="")): 2**53 + 2,
    }


def test_a_share_is_of_the_increase_between_two_polls(polls: Polls, page_server: Serve) -> None:
    """The busy share needs two polls, and a counter that started again gives none."""
    times = iter([(100.0, 50.0), (160.0, 90.0), (10.0, 5.0), (20.0, 5.0)])

    def page(*_: object) -> tuple[int, dict[str, str], bytes]:
        idle, user = next(times)
        lines = [f'node_cpu_seconds_total{{cpu="0",mode="{m}"}} {v}' for m, v in (("idle", idle), ("user", user))]
        return 200, {}, "\n".join(lines).encode() + b"\n"

    with page_server(page) as port:
        answers = polls("prometheus", {"url": f"http://127.0.0.1:{port}/"}, 4)
    busy = [by_series(answer).get(("system.cpu.utilization", "")) for answer in answers]
    assert busy == [None, pytest.approx(0.4), None, 0.0]
    assert by_series(answers[1])["system.cpu.time", "mode=user"] == 90


def test_own_mappings_come_first(polls: Polls, page_server: Serve) -> None:
    """A mapping of the plan wins over an installed one; totals add up, differences subtract."""
    body = b"""node_nf_conntrack_entries 5
drops{reason="a",core="0"} 3
drops{reason="a",core="1"} 4
drops{reason="b",core="1"} NaN
size{t="x"} 10
free{t="x"} 4
"""
    metrics = [
        {"from": "size", "metric": "system.conntrack.count", "less": "free"},
        {
            "from": "drops",
            "metric": "system.forwarding.dropped",
            "labels": {"place": "vpp", "reason": "{reason}"},
            "total": True,
        },
    ]
    with page_server(lambda *_: (200, {}, body)) as port:
        (answer,) = polls("prometheus", {"url": f"http://127.0.0.1:{port}/", "metrics": metrics})
    assert by_series(answer) == {
        ("system.conntrack.count", ""): 6,
        ("system.forwarding.dropped", "place=vpp,reason=a"): 7,
    }
    assert [fault.text for fault in answer.faults] == ["drops is nan, which is not a valid sample"]


def test_what_node_exporter_tells_of_waiting_sockets_and_inodes(polls: Polls, page_server: Serve) -> None:
    """Stalls in seconds, what is closing, inodes in use as a difference; a filesystem without a table of them is left
    out, and so are the sockets of IPv4 alone."""
    body = b"""node_pressure_io_waiting_seconds_total 280.5
node_pressure_memory_stalled_seconds_total 1.25
node_sockstat_sockets_used 97
node_sockstat_TCP_inuse 34
node_sockstat_TCP_orphan 3
node_sockstat_TCP_mem_bytes 49152
node_forks_total 777
node_network_receive_frame_total{device="eth0"} 4
node_filesystem_files{device="/dev/vda",fstype="ext4",mountpoint="/"} 65536
node_filesystem_files_free{device="/dev/vda",fstype="ext4",mountpoint="/"} 65000
node_filesystem_files{device="/dev/vdb",fstype="btrfs",mountpoint="/data"} 0
node_filesystem_files_free{device="/dev/vdb",fstype="btrfs",mountpoint="/data"} 0
"""
    with page_server(lambda *_: (200, {}, body)) as port:
        (answer,) = polls("prometheus", {"url": f"http://127.0.0.1:{port}/"})
    assert answer.faults == ()
    assert by_series(answer) == {
        ("system.pressure.time", "resource=io,extent=some"): 280.5,
        ("system.pressure.time", "resource=memory,extent=full"): 1.25,
        ("system.sockets.allocated", ""): 97,
        ("system.sockets.memory", "protocol=tcp"): 49152,
        ("system.tcp.orphans", ""): 3,
        ("system.processes.created", ""): 777,
        ("system.network.errors.by_kind", "interface=eth0,direction=receive,kind=frame"): 4,
        ("system.filesystem.inodes.limit", "mountpoint=/"): 65536,
        ("system.filesystem.inodes.usage", "mountpoint=/"): 536,
    }


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((401, {}, b""), "answers with status 401: give token, or user and password"),
        ((200, {}, b"<html>no</html>"), "the page is not a metrics page: "),
        ((200, {}, b"a{b=\n"), "the page is not a metrics page: "),
        ((200, {"Content-Type": "application/openmetrics-text"}, b"a 1\n"), "the page is not a metrics page: "),
    ],
)
def test_a_page_that_is_not_metrics(
    answer: tuple[int, dict[str, str], bytes], sentence: str, polls: Polls, page_server: Serve
) -> None:
    """It is a failed poll with one sentence."""
    with page_server(lambda *_: answer) as port, pytest.raises(SourceError) as caught:
        polls("prometheus", {"url": f"http://127.0.0.1:{port}/"})
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"from": "a", "metric": "system.memory.usge"}, "did you mean 'system.memory.usage'"),
        ({"from": "a", "metric": "system.cpu.load"}, "system.cpu.load has the labels minutes: give just these"),
        ({"from": "a", "metric": "system.context_switches", "less": "b"}, "is a counter, which is kept raw"),
        ({"from": "a", "metric": "system.uptime", "scale": 0}, "scale is a number other than 0"),
        ({"from": "a", "metric": "system.uptime", "where": {"x": "("}}, "'(' is not a regular expression"),
    ],
)
def test_an_invalid_mapping(entry: dict[str, object], sentence: str) -> None:
    """It is refused with the remedy."""
    with pytest.raises(ValueError, match="1 validation error") as caught:
        MapEntry.model_validate(entry)
    assert sentence in str(caught.value)


def test_an_unknown_map(polls: Polls) -> None:
    """It names the nearest."""
    with pytest.raises(PlanError, match="unknown map 'nod'; did you mean 'node'"):
        polls("prometheus", {"url": "http://127.0.0.1:1/", "maps": ["nod"]})


def test_random_pages_raise_nothing_else() -> None:
    """Mutated pages give samples or one sentence, and mapping them never raises."""
    rng = random.Random(11)
    registry = CollectorRegistry()
    gauge = Gauge("node_load1", "Load", ["x"], registry=registry)
    for number in range(20):
        gauge.labels(x=str(number)).set(number)
    good = generate_latest(registry)
    mapper = Mapper([entry for each in installed_maps().values() for entry in each.metrics], ["*"])
    read = 0
    for _ in range(400):
        page = bytearray(good)
        for _ in range(rng.randrange(1, 6)):
            page[rng.randrange(len(page))] = rng.randrange(256)
        try:
            shown = read_page(
                page.decode("utf-8", "replace"), rng.choice(["text/plain", "application/openmetrics-text"])
            )
        except SourceError:
            continue
        mapper.map(shown, 0)
        read += 1
    assert read > 20


@pytest.fixture
def node_exporter() -> Iterator[int]:
    """The port of Debian's node_exporter, started for this test."""
    program = shutil.which("prometheus-node-exporter")
    if program is None:
        pytest.skip("prometheus-node-exporter is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [program, f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "node_exporter does not listen"
                time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


def test_node_exporter_agrees_with_the_probes(polls: Polls, node_exporter: int) -> None:
    """node_exporter and the local source report the same of this machine."""
    _, far = polls("prometheus", {"url": f"http://127.0.0.1:{node_exporter}/metrics"}, 2)
    (near,) = polls("local", {})
    exported, own = by_series(far), by_series(near)
    assert exported["system.memory.limit", ""] == own["system.memory.limit", ""]
    assert exported["system.memory.usage", ""] == pytest.approx(own["system.memory.usage", ""], rel=0.2)
    assert exported["system.cpu.time", "mode=user"] == pytest.approx(own["system.cpu.time", "mode=user"], rel=0.05)
    interfaces = [key for key in own if key[0] == "system.network.io" and key in exported]
    assert len(interfaces) >= 2
    assert all(exported[key] == pytest.approx(own[key], rel=0.05, abs=5e6) for key in interfaces)
    assert 0 <= exported["system.cpu.utilization", ""] <= 1
    stalls = {key: value for key, value in exported.items() if key[0] == "system.pressure.time"}
    assert stalls == {key: pytest.approx(own[key], rel=0.05, abs=30) for key in stalls}
    assert {key for key in own if key[0] == "system.pressure.time"} - stalls.keys() <= {
        ("system.pressure.time", "resource=irq,extent=full")  # Debian's does not know it yet
    }
    sizes = [key for key in exported if key[0] == "system.filesystem.inodes.limit" and key in own]
    assert all(exported[key] == own[key] for key in sizes)
    kinds = [key for key in exported if key[0] == "system.network.errors.by_kind"]
    assert len(kinds) >= 3
    assert set(kinds) <= own.keys()
    assert {"system.processes.created", "system.tcp.orphans", "system.sockets.memory"} <= {key[0] for key in exported}
    assert far.faults == ()


def test_a_page_is_read_beside_the_loop(polls: Polls, page_server: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of some megabytes takes a second, which every other source would be late by."""
    read = []

    def reading(text: str, kind: str) -> object:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        read.append(text)
        return read_page(text, kind)

    monkeypatch.setattr("soakwatch.sources.pollers.prometheus.read_page", reading)
    with page_server(lambda *_: (200, {"Content-Type": "text/plain"}, b"node_nf_conntrack_entries 3\n")) as port:
        (answer,) = polls("prometheus", {"url": f"http://127.0.0.1:{port}/metrics"})
    assert by_series(answer) == {("system.conntrack.count", ""): 3}
    assert len(read) == 1
