"""Series that others wrote into a real InfluxDB: Telegraf's own lines, and everything that can be wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from soakwatch.cli.main import run
from soakwatch.record import RecordView, SeriesKey
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.importing.cadence import polls_of
from soakwatch.transfer.importing.files import ImportedRun
from soakwatch.transfer.sinks.influxdb.read.address import database_of
from soakwatch.transfer.sinks.influxdb.read.foreign import Wanted, import_series
from soakwatch.transfer.sinks.influxdb.read.mapping import mapping_of
from soakwatch_testing.influxd import Influxd

AddressOf = Callable[..., str]
LINES = Path(__file__).with_name("telegraf") / "host.lp"
S = 10**9
T0 = 1_760_000_000 * S


def imported(address: str, folder: Path, *mappings: str) -> ImportedRun:
    """What is made of a bucket."""
    return import_series(database_of(address), folder, "t", Wanted(mapping_of(mappings)), (), lambda _: None)


def write(influxd: Influxd, bucket: str, *lines: str) -> None:
    """Points of another writer."""
    influxd.write("\n".join(lines).encode(), bucket).raise_for_status()


@pytest.fixture
def telegraf(influxd: Influxd, address_of: AddressOf) -> str:
    """A bucket with what Telegraf collected."""
    address = address_of("telegraf")
    write(influxd, "telegraf", LINES.read_text(encoding="utf-8"))
    return address


def test_telegrafs_measurements_are_the_catalogues_metrics(telegraf: str, tmp_path: Path) -> None:
    result = imported(telegraf, tmp_path / "run")
    assert result.notes == ()
    assert {series.metric for series in result.series} >= {
        "system.cpu.utilization",
        "system.cpu.core.utilization",
        "system.memory.usage",
        "system.memory.limit",
        "process.memory.usage",
        "process.cpu.utilization",
        "process.start_time",
        "system.network.io",
        "system.network.packet.dropped",
        "system.network.errors",
        "system.network.up",
        "system.agent.uptime",
        "system.uptime",
        "system.processes",
        "system.disk.io",
        "system.filesystem.usage",
        "system.memory.swap.usage",
    }
    with RecordView.open(tmp_path / "run") as view:
        busy = view.series(SeriesKey("fw1", "system.cpu.utilization", "")).value
        assert 0.5 < float(busy.mean()) <= 1.0  # two cores under load: a share, not percent
        usage, limit, available = (
            view.series(SeriesKey("fw1", f"system.memory.{name}", "")).value for name in ("usage", "limit", "available")
        )
        assert np.array_equal(usage, limit - available)
        received = view.series(SeriesKey("fw1", "system.network.io", "interface=lo,direction=receive"))
        assert (received.value.dtype.kind, received.trait.kind, received.trait.unit) == ("i", "counter", "By")
        by_snmp = view.series(SeriesKey("127.0.0.1", "system.network.io", "interface=lo,direction=receive"))
        assert abs(int(by_snmp.value[-1]) - int(received.value[-1])) < 10**8
        rss, pss = (
            view.series(SeriesKey("fw1", f"process.memory.{name}", "process=snmpd,instance=0")).value
            for name in ("usage", "pss")
        )
        assert bool((pss < rss).all())
        assert bool((pss * 10 > rss).all())
        uptime = view.series(SeriesKey("127.0.0.1", "system.agent.uptime", ""))
        assert float(uptime.value[-1] - uptime.value[0]) == pytest.approx(145, abs=2)
        (up,) = set(view.series(SeriesKey("127.0.0.1", "system.network.up", "interface=eth0")).value.tolist())
        assert up == 1
        assert {source.label for source in view.sources()} >= {"mem every 5s", "procstat every 5s", "net every 5s"}
        assert {ledger.due for ledger in view.ledgers(view.window())} == {29, 30}


def test_the_command_judges_and_imports_what_telegraf_collected(
    telegraf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["judge", f"{telegraf}&host=fw1", "--json", "one.json"]) == 3  # its CPU was at 100 % throughout
    assert list(tmp_path.iterdir()) == [tmp_path / "one.json"]
    assert run(["import", f"{telegraf}&host=fw1", "--name", "night"]) == 0
    assert "process.memory.usage process=snmpd" in capsys.readouterr().out
    assert [path.name[17:] for path in Path("runs").iterdir()] == ["night"]
    assert run(["judge", "last", "--json", "two.json"]) == 3
    first, two = (json.loads(Path(name).read_text(encoding="utf-8")) for name in ("one.json", "two.json"))
    assert first["findings"] == two["findings"]
    assert "cpu_spike" in first["reason"]
    assert {finding["rule"] for finding in first["findings"]} >= {"coverage", "memory_growth", "drops", "reboot"}


def test_only_what_is_asked_for_is_read(influxd: Influxd, address_of: AddressOf, tmp_path: Path) -> None:
    lines = [
        f"mem,host=h{host} available={second}i,total=99i {T0 + second * S}" for second in range(60) for host in (1, 2)
    ]
    address = address_of("asked")
    write(influxd, "asked", *lines)
    result = imported(f"{address}&host=h2&from={T0 // S + 10}&to={T0 // S + 30}", tmp_path / "run")
    assert {series.target for series in result.series} == {"h2"}
    assert {series.time_ns.size for series in result.series} == {20}
    write(influxd, "asked", f"snmp,host=h1,agent_host=fw uptime=5i {T0}", f"snmp,host=h1,agent_host=gw uptime=5i {T0}")
    of_device = imported(f"{address}&host=fw", tmp_path / "device")
    assert [(series.target, series.metric) for series in of_device.series] == [("fw", "system.agent.uptime")]
    assert {series.target for series in imported(f"{address}&host=h1", tmp_path / "collector").series} == {"h1"}
    with pytest.raises(DataError, match="holds 4 hosts"):
        import_series(
            database_of(address), tmp_path / "x", "t", Wanted(mapping_of([]), target="fw"), (), lambda _: None
        )
    with pytest.raises(DataError, match=r"has no sample of mem, snmp that is asked for: widen from=, to= and host="):
        imported(f"{address}&host=h3", tmp_path / "none")


def test_what_is_missing_between_readings_and_at_the_edges_counts(
    influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    """A host that fell silent an hour before the end is no host that was fine for as long as it talked."""
    address = address_of("gaps")
    write(
        influxd,
        "gaps",
        *(f"mem,host=a available=5i {T0 + second * 10 * S}" for second in range(100) if not 40 <= second < 50),
    )
    write(influxd, "gaps", *(f"mem,host=b available=5i {T0 + second * 10 * S}" for second in range(60)))

    def account(folder: Path, **keys: str) -> dict[str, tuple[int, int]]:
        query = "".join(f"&{name}={value}" for name, value in keys.items())
        imported(address + query, folder)
        with RecordView.open(folder) as view:
            return {ledger.target: (ledger.got, ledger.due) for ledger in view.ledgers(view.window())}

    assert account(tmp_path / "all") == {"a": (90, 100), "b": (60, 99)}
    edges = {"from": str(T0 // S - 200), "to": str(T0 // S + 1100)}
    assert account(tmp_path / "told", **edges) == {"a": (90, 129), "b": (60, 129)}
    with RecordView.open(tmp_path / "told") as view:
        assert view.ledgers(view.window())[0].errors == (
            "the database has no sample for this time",
            "no reading of it for this time, while others go on",
        )


def test_polls_are_due_at_the_edges_that_are_given() -> None:
    axis = T0 + 10 * S * np.arange(5)
    polls = polls_of([axis], T0 - 25 * S, T0 + 70 * S)
    assert ((polls.time_ns - T0) // S).tolist() == [-20, -10, 0, 10, 20, 30, 40, 50, 60]
    assert polls.answered.tolist() == [False] * 2 + [True] * 5 + [False] * 2
    assert polls_of([axis], int(axis[0]), int(axis[-1])).time_ns.size == 5


def test_unknown_measurements_are_reported_and_do_no_harm(
    influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    address = address_of("odd")
    write(
        influxd,
        "odd",
        *(f"mem,host=a available={second + 5}i,total=99i {T0 + second * S}" for second in range(20)),
        f'my\\ app,host=a,t\\ ag="q" v=1i,w="text",x=true {T0}',
        f"näme,host=it's v=1.5 {T0}",
        f'processes,host=a total="many" {T0}',  # a text where a number should be
        f"system,host=a uptime=5 {T0 - 400 * 86400 * S}",  # a float in one shard and an integer in another
        *(f"system,host=a uptime={second}i {T0 + second * S}" for second in range(20)),
        *(f"swap,host=a used=-1i {T0 + second * S}" for second in range(20)),  # cannot be
        *(f"cpu,host=a,cpu=cpu-total usage_active={100.00001 - second} {T0 + second * S}" for second in range(20)),
        *(
            f"conntrack,host=a nf_conntrack_count={-1 if second == 3 else second}i {T0 + second * S}"
            for second in range(20)
        ),
        *(f"soakwatch_poll,run=r ok=1.0 {T0 + second * S}" for second in range(20)),
    )
    result = imported(address, tmp_path / "run")
    shown = {(series.metric, series.time_ns.size) for series in result.series}
    assert shown == {
        ("system.memory.limit", 20),
        ("system.memory.usage", 20),
        ("system.memory.available", 20),
        ("system.uptime", 21),
        ("system.cpu.utilization", 20),
        ("system.conntrack.count", 19),
    }
    assert result.notes[0].startswith("3 measurements were not recognised: my app, näme, processes; --map FILE.yaml")
    few = "conntrack.nf_conntrack_count: 1 of 20 samples cannot be system.conntrack.count in {connection}"
    assert result.notes[1] == f"{few} (such as -1): left out"
    all_of_them = "swap.used: 20 of 20 samples cannot be system.memory.swap.usage in By"
    assert result.notes[2] == f"{all_of_them} (such as -1): all of this series are left out"
    busy = next(series for series in result.series if series.metric == "system.cpu.utilization")
    assert float(busy.value.max()) == 1.0


def test_sets_of_tags_of_one_object_continue_each_other_or_are_distinguished(
    influxd: Influxd, address_of: AddressOf, tmp_path: Path
) -> None:
    address = address_of("twins")
    process = "procstat,host=a,process_name=p"
    write(
        influxd,
        "twins",
        *(
            f"{process},site={'old' if second < 5 else 'new'} memory_rss={second}i {T0 + second * S}"
            for second in range(10)
        ),
        *(f"{process},user={user} num_fds={second}i {T0 + second * S}" for second in range(10) for user in ("x", "y")),
    )
    result = imported(address, tmp_path / "run")
    assert {(series.metric, series.object, series.time_ns.size) for series in result.series} == {
        ("process.memory.usage", "process=p,instance=0", 10),
        ("process.open_files", "process=p,instance=0", 10),
        ("process.open_files", "process=p,instance=0,user=y", 10),
    }
    assert "distinguished by user" in result.notes[0]


MAP = """\
app:
  - fields: [heap_used]
    metric: process.memory.usage
    unit: MB
    labels: {process: "{service}", instance: "{pid|=0}"}
    where: {env: "prod*"}
  - {fields: [total, -idle], metric: imported.busy_workers, unit: workers, growth: up}
  - {fields: [state], metric: system.network.up, labels: {interface: uplink}, one: [UP]}
"""


def test_a_file_maps_measurements_of_ones_own(
    influxd: Influxd, address_of: AddressOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = address_of("mapped")
    write(
        influxd,
        "mapped",
        *(
            f"app,host=a,service=api,env={env} heap_used={second + 1},total=9i,idle={second % 3}i,"
            f'state="{"UP" if second else "DOWN"}" {T0 + second * S}'
            for second in range(20)
            for env in ("prod-1", "test")
        ),
    )
    file = tmp_path / "ours.yaml"
    file.write_text(MAP, encoding="utf-8")
    result = imported(address, tmp_path / "run", str(file))
    by_name = {(series.metric, series.object): series for series in result.series}
    heap = by_name["process.memory.usage", "process=api,instance=0"]
    assert heap.value.tolist() == [float(second + 1) * 1e6 for second in range(20)]
    workers = next(series for series in result.series if series.metric == "imported.busy_workers")
    assert (workers.unit, workers.growth, workers.value.tolist()[:3]) == ("{workers}", "up", [9.0, 8.0, 7.0])
    assert by_name["system.network.up", "interface=uplink"].value.tolist()[:3] == [0.0, 1.0, 1.0]
    assert run(["judge", address]) == 2
    assert "none of its 1 measurements is recognised (app): map them with --map FILE.yaml" in capsys.readouterr().err
    mapping = "app.heap_used=process.memory.usage,process={service}:MB"
    assert run(["judge", address, "--map", mapping, "--rule", "memory_growth"]) == 3
    assert "memory_growth" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "app: [{fields: [a], metric: process.memory.usag}]",
            "unknown metric 'process.memory.usag'; did you mean",
        ),
        ("app: [{fields: [a], metric: process.memory.usage, unit: ms}]", "the unit ms does not fit By"),
        ("app: [{fields: [a], metric: system.uptime, labels: {core: x}}]", "system.uptime has no label 'core'"),
        ("app: [{fields: [a], metric: system.uptime, kind: gauge}]", "is in the catalogue, which knows its kind"),
        ("app: [{fields: [], metric: system.uptime}]", "is empty: at least one is needed"),
        ("app: [{field: [a], metric: system.uptime}]", "the key 'fields' is missing"),
        ("app: [{fields: [a], metric: system.uptime, unti: s}]", "unknown key 'unti'; did you mean 'unit'?"),
        ("app: [{fields: [a], metric: system.uptime, scale: 0}]", "scale is a number other than 0"),
        ("app: 5", "app: expected a list of entries"),
        ("- a", "expected measurements, each with a list of entries"),
        ("a: [", "ours.yaml:1:"),
    ],
)
def test_an_invalid_mapping_is_reported_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        mapping_of([str(file)])
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ("nothing", "write MEASUREMENT.FIELD=METRIC, or name a file that ends in .yaml"),
        ("missing.yaml", "missing.yaml: cannot be read"),
        ("heap=process.memory.usage", "write MEASUREMENT.FIELD=METRIC, such as"),
        ("app.heap=process.memory.usag", "unknown metric 'process.memory.usag'; did you mean 'process.memory.usage'?"),
    ],
)
def test_an_option_that_maps_nothing_is_one_sentence(mapping: str, why: str) -> None:
    with pytest.raises(DataError) as caught:
        mapping_of([mapping])
    assert why in str(caught.value)


def test_a_bucket_of_runs_or_of_nothing_says_so(
    influxd: Influxd, address_of: AddressOf, capsys: pytest.CaptureFixture[str]
) -> None:
    address = address_of("bare")
    assert run(["judge", address]) == 2
    assert "/bare is empty" in capsys.readouterr().err
    write(influxd, "bare", f'soakwatch_verdict,run=night verdict="pass" {T0}')
    assert run(["import", address]) == 2
    assert "holds runs of Soakwatch: say which with run=NAME; known here: night" in capsys.readouterr().err


def test_options_of_tables_are_refused(address_of: AddressOf, capsys: pytest.CaptureFixture[str]) -> None:
    address = address_of("options")
    assert run(["judge", address, "--time", "ts", "--by", "pod"]) == 2
    assert "--by, --time: only for tables" in capsys.readouterr().err
    assert run(["judge", f"{address}&run=x", "--map", "a=b"]) == 2
    assert "--map: a run of Soakwatch is read as it is" in capsys.readouterr().err
    assert run(["import", address, "more.csv"]) == 2
    assert "imported alone" in capsys.readouterr().err
