"""What a column becomes: names, units and directions, guessed only where it shows and always reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Options, checked, meaning
from soakwatch.transfer.importing.build_series import ImportedSeries, read_table

T0 = 1_767_225_600
MIB = 2**20


def column(folder: Path, name: str, cells: list[float], options: Options | None = None) -> tuple[ImportedSeries, str]:
    """The series that a column of this name becomes, and all that is reported."""
    file = folder / "fw.csv"
    lines = "".join(f"{T0 + second},{cell!r}\n" for second, cell in enumerate(cells))
    file.write_text(f'time,"{name}"\n{lines}', encoding="utf-8")
    imported = read_table(str(file), "fw", options or Options())
    (series,) = imported.series
    return series, "\n".join(imported.notes)


@pytest.mark.parametrize(
    ("name", "cell", "metric", "value"),
    [
        ("rss_kb", 5.0, "process.memory.usage", 5e3),
        ("VmRSSBytes", 5.0, "process.memory.usage", 5.0),
        ("VmRSS", 5.0, "process.memory.usage", 5120.0),
        ("rss (MiB)", 5.0, "process.memory.usage", 5.0 * MIB),
        ("usedMemory", 2.0 * MIB, "system.memory.usage", 2.0 * MIB),
        ("availableMemory[GB]", 2.0, "system.memory.available", 2e9),
        ("cpu", 0.5, "system.cpu.utilization", 0.5),
        ("cpu", 50.0, "system.cpu.utilization", 0.5),
        ("totalCpuUsage(%)", 0.5, "system.cpu.utilization", 0.005),
        ("threads", 7.0, "process.threads", 7.0),
        ("FD", 7.0, "process.open_files", 7.0),
        ("qdepth", 7.0, "queue.depth", 7.0),
        ("tps", 7.0, "load.request.rate", 7.0),
        ("latency_ms", 7.0, "load.latency", 0.007),
        ("p99 latency (ms)", 7.0, "load.latency", 0.007),
        ("process.memory.usage", 7.0, "process.memory.usage", 7.0),
        ("load.latency{quantile=p99}", 7.0, "load.latency", 7.0),
        ("usedMemory", 7.0, "imported.usedMemory", 7.0),
        ("latency", 7.0, "imported.latency", 7.0),
        ("cpu (millicores)", 7.0, "imported.cpu", 7.0),
        ("Sessions / core", 7.0, "imported.Sessions_core", 7.0),
        ("size_kb", 7.0, "imported.size", 7e3),
    ],
)
def test_names_and_units(tmp_path: Path, name: str, cell: float, metric: str, value: float) -> None:
    """Common names become metrics of the catalogue if their unit is known; everything else keeps its own name."""
    series, _ = column(tmp_path, name, [cell, cell])
    assert series.metric == metric
    assert series.value.tolist() == pytest.approx([value, value])


def test_what_was_guessed_is_reported(tmp_path: Path) -> None:
    """Percent, bytes and a missing unit are said, with the option that says otherwise."""
    assert (
        "read in percent, because it exceeds 1 (override with --unit COLUMN=…): cpu"
        in column(tmp_path, "cpu", [5.0])[1]
    )
    assert "read as a share of 1" in column(tmp_path, "cpu", [0.5])[1]
    assert "read in bytes" in column(tmp_path, "usedMemory", [1e9])[1]
    assert "without a unit, so not read as load.latency" in column(tmp_path, "latency", [5.0])[1]
    assert column(tmp_path, "cpu", [5.0], Options(units={"cpu": "%"}))[1] == ""


def test_a_mapping_says_it_all(tmp_path: Path) -> None:
    """Metric, labels and unit of a column as the user says; without a unit it is the metric's own."""
    options = Options(meanings=dict([meaning("m=process.memory.usage,process=nginx:KiB")]))
    series, notes = column(tmp_path, "m", [2.0], options)
    assert (series.metric, series.object, series.value.tolist()) == (
        "process.memory.usage",
        "process=nginx,instance=0",
        [2048.0],
    )
    assert notes == ""
    options = Options(meanings=dict([meaning("m=imported.heap:MB")]), growth="down")
    series, _ = column(tmp_path, "m", [2.0], options)
    assert (series.metric, series.unit, series.value.tolist(), series.growth) == ("imported.heap", "By", [2e6], "down")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("m=process.memory.usag", "there is no metric 'process.memory.usag'; did you mean 'process.memory.usage'?"),
        ("m=process.memory.usage:%", "column m: the unit % does not fit By: write one such as MB"),
        ("m=process.memory.usage,pid=7", "process.memory.usage has no label 'pid'; its labels: process, instance"),
        (
            "m=system.cpu.utilization",
            "more than half of its samples are impossible for system.cpu.utilization in 1 (line 2: 50)",
        ),
        ("m=process.memory.usage:", "--map m=process.memory.usage:"),
    ],
)
def test_wrong_mappings_are_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """A metric, label or unit that cannot be is refused, with the nearest that can."""
    with pytest.raises(DataError) as error:
        column(tmp_path, "m", [50.0], checked(Options(meanings=dict([meaning(text)]))))
    assert sentence in str(error.value)


def test_readings_that_cannot_be_are_left_out_and_reported(tmp_path: Path) -> None:
    """A negative size is no size: it is named by its line, and the others stay."""
    series, notes = column(tmp_path, "rss_kb", [5.0, -5.0, 6.0])
    assert series.value.tolist() == [5e3, 6e3]
    assert "1 reading out of range: dropped (line 3: -5000)" in notes


def test_two_columns_of_one_metric(tmp_path: Path) -> None:
    """The first is it, the other stays separate and this is reported; mapped twice it is an error."""
    file = tmp_path / "fw.csv"
    file.write_text(f"time,rss_kb,vmrss_kb\n{T0},1,2\n", encoding="utf-8")
    imported = read_table(str(file), "fw", Options())
    assert [series.metric for series in imported.series] == ["process.memory.usage", "imported.vmrss"]
    assert any("vmrss_kb stays separate" in note for note in imported.notes)
    options = Options(meanings=dict([meaning("vmrss_kb=process.memory.usage")]))
    imported = read_table(str(file), "fw", options)
    assert {series.column: series.metric for series in imported.series}["vmrss_kb"] == "process.memory.usage"
    twice = Options(meanings=dict([meaning("rss_kb=process.memory.uss"), meaning("vmrss_kb=process.memory.uss")]))
    with pytest.raises(DataError, match=r"columns rss_kb and vmrss_kb would both be process\.memory\.uss"):
        read_table(str(file), "fw", twice)


def test_the_load_is_a_generators(tmp_path: Path) -> None:
    """Throughput beside the figures of a device belongs to a target of its own, with its latency quantiles."""
    file = tmp_path / "fw.csv"
    file.write_text(f"time,rss_kb,tps,p99_latency_ms\n{T0},1,2,3\n", encoding="utf-8")
    imported = {series.metric: series for series in read_table(str(file), "fw", Options()).series}
    assert (imported["process.memory.usage"].target, imported["process.memory.usage"].role) == ("fw", "dut")
    assert imported["process.memory.usage"].object == "process=fw,instance=0"
    assert (imported["load.request.rate"].target, imported["load.request.rate"].role) == ("fw-load", "generator")
    assert imported["load.latency"].object == "quantile=p99"


def test_kinds_and_directions(tmp_path: Path) -> None:
    """A counter stays exact beyond 2**53 and has no direction; a gauge has the one that is given for it."""
    file = tmp_path / "fw.csv"
    file.write_text(f"time,octets,heap,free\n{T0},{2**63 + 1},1,2\n{T0 + 1},{2**63 + 3},1,2\n", encoding="utf-8")
    options = Options(kinds={"octets": "counter"}, growth="up", growths={"free": "down"})
    columns = {series.column: series for series in read_table(str(file), "fw", options).series}
    assert columns["octets"].value.tolist() == [2**63 + 1, 2**63 + 3]
    assert {name: (s.kind, s.growth) for name, s in columns.items()} == {
        "octets": ("counter", None),
        "heap": ("gauge", "up"),
        "free": ("gauge", "down"),
    }
    with pytest.raises(DataError, match=r"is a gauge; map the column to imported\.NAME"):
        read_table(
            str(file), "fw", Options(meanings=dict([meaning("heap=process.threads")]), kinds={"heap": "counter"})
        )
