"""Tables that labs published come out of campaigns with those figures, in their form."""

from __future__ import annotations

import pytest
from tests.collector.campaign.tables.made import Values, result, rows_of, sheets, titles_of

from soakwatch.campaign.tables.result import CampaignResult
from soakwatch.report.blocks import Table
from soakwatch_model.finding import Outcome

M, G = 1e6, 1e9
OVERLOAD = (
    ("L4", "64", "20%", 5.96, 3.04, 0.0),
    ("L4", "64", "25%", 7.44, 3.80, 0.149),
    ("L4", "64", "30%", 8.92, 4.58, 0.216),
    ("L4", "512", "64%", 3.00, 12.32, 0.0),
    ("L4", "512", "70%", 3.28, 13.48, 0.114),
    ("L4", "512", "80%", 3.76, 15.40, 0.223),
    ("L3", "64", "24%", 7.14, 3.64, 0.0),
    ("L3", "64", "27%", 8.04, 4.12, 0.082),
    ("L3", "64", "30%", 8.92, 4.58, 0.179),
    ("L3", "512", "64%", 3.00, 12.32, 0.0),
    ("L3", "512", "70%", 3.28, 13.48, 0.105),
    ("L3", "512", "80%", 3.76, 15.40, 0.216),
)
CORES = {
    "load.connection.rate": {
        "1": (221.6, 223.5, 226.7),
        "2": (367.7, 371.1, 375.9),
        "4": (701.7, 708.7, 723.6),
        "8": (1325.0, 1341.0, 1376.0),
        "16": (2304.0, 2383.0, 2417.0),
    },
    "load.rx.packet.rate": {
        "1": (413.9, 414.9, 416.1),
        "2": (740.6, 742.3, 746.9),
        "4": (1373.0, 1379.0, 1395.0),
        "8": (2311.0, 2336.0, 2361.0),
        "16": (4436.0, 4557.0, 4627.0),
    },
}


def texts(sheet: Table) -> dict[tuple[str, ...], list[str]]:
    """The numbers of a table by the heads of its rows, those that stand above filled in."""
    rows: dict[tuple[str, ...], list[str]] = {}
    last: tuple[str, ...] = ()
    for heads, cells in rows_of(sheet):
        last = tuple(head or before for head, before in zip(heads, last or heads, strict=True))
        rows[last] = [cell.text for cell in cells]
    return rows


def only(made: CampaignResult) -> Table:
    """The only table there is."""
    assert len(made.tables) == 1
    (sheet,) = sheets(made)
    return sheet


def ten(low: float, middle: float, high: float) -> list[float]:
    """Ten experiments with this median, minimum and maximum, in thousands."""
    below = [low + (middle - low) * part for part in (0.0, 0.3, 0.6, 0.8)]
    above = [middle + (high - middle) * part for part in (0.2, 0.4, 0.7, 1.0)]
    return [1e3 * value for value in (*below, middle, middle, *above)]


@pytest.fixture(scope="module")
def overload() -> CampaignResult:
    """Two kinds, two sizes, three loads each, with the loss that is expected above the capacity."""
    figures: dict[str, Values] = {
        "load.tx.packet.rate": {row[:3]: [row[3] * M] for row in OVERLOAD},
        "load.tx.bit.rate": {row[:3]: [row[4] * G] for row in OVERLOAD},
        "load.loss": {row[:3]: [row[5]] for row in OVERLOAD},
        "load.rx.packet.rate": {row[:3]: [row[3] * M * (1 - row[5])] for row in OVERLOAD},
    }
    loads = ["20%", "24%", "25%", "27%", "30%", "64%", "70%", "80%"]
    return result(
        {"kind": ["L4", "L3"], "size": ["64", "512"], "load": loads},
        figures,
        """
figures:
  - {figure: load.tx.packet.rate, name: packets}
  - {figure: load.tx.bit.rate, name: bits}
  - {figure: load.loss, name: lost}
  - {expected_loss: lost, along: load, offered: packets}
tables: [{rows: [kind, size, load], columns: figures}]
limits: [{expected_loss: lost, along: load, offered: packets, excess: 1%}]
""",
    )


def test_overload_is_a_list_of_twelve_cells(overload: CampaignResult) -> None:
    """Packets, bits and loss as published, expected loss and what is above it beside them."""
    sheet = only(overload)
    assert titles_of(sheet, "figure") == (
        "packets (M packets/s)",
        "bits (G bit/s)",
        "lost (%)",
        "expected loss (%)",
        "excess loss (%)",
    )
    assert titles_of(sheet, "head") == ("kind", "size", "load")
    rows = texts(sheet)
    assert list(rows) == [row[:3] for row in OVERLOAD]
    assert rows["L4", "64", "25%"][:3] == ["7.44", "3.80", "14.9"]
    assert rows["L4", "512", "64%"][:3] == ["3.00", "12.32", "0"]
    assert rows["L4", "512", "70%"][3:] == ["8.537", "2.863"]
    assert rows["L4", "64", "20%"][3:] == ["0", "0"]
    heads = [heads for heads, _ in rows_of(sheet)]
    assert heads[:4] == [("L4", "64", "20%"), ("", "", "25%"), ("", "", "30%"), ("", "512", "64%")]


def test_loss_within_the_expected_range_is_a_finding(overload: CampaignResult) -> None:
    """Of each size and kind: pass or fail with the capacity and the numbers; the excess is marked in the table."""
    found = {finding.subject: finding for finding in overload.findings}
    assert {subject: finding.outcome for subject, finding in found.items()} == {
        "kind L4, size 64": Outcome.PASS,
        "kind L4, size 512": Outcome.FAIL,
        "kind L3, size 64": Outcome.PASS,
        "kind L3, size 512": Outcome.FAIL,
    }
    assert found["kind L4, size 64"].reason == (
        "loss was within the expected range (capacity at least 5.96 M packets/s, without loss at load 20%): "
        "load 25%: 14.9 % lost, 19.9 % expected; load 30%: 21.6 % lost, 33.2 % expected"
    )
    assert "above the expected range" in found["kind L4, size 512"].reason
    marked = {heads: cells[4].note for heads, cells in rows_of(only(overload)) if cells[4].note}
    assert marked == dict.fromkeys([("", "", "70%"), ("", "", "80%")], "above expected")
    assert overload.outcome is Outcome.FAIL
    assert overload.exit_code == 1


def test_a_group_that_always_lost_has_no_capacity() -> None:
    """It is said, and is no zero and no pass."""
    figures: dict[str, Values] = {
        "load.tx.packet.rate": {("50%",): [5.0], ("70%",): [7.0]},
        "load.rx.packet.rate": {("50%",): [4.9], ("70%",): [5.0]},
        "load.loss": {("50%",): [0.02], ("70%",): [0.29]},
    }
    made = result(
        {"load": ["50%", "70%"]},
        figures,
        "limits: [{expected_loss: load.loss, along: load, excess: 1%}]\n"
        "tables: [{rows: load, columns: figures, figures: [load.loss, excess loss]}]",
    )
    (finding,) = made.findings
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert finding.reason == "no capacity: each load of these lost packets; add one below the capacity"
    assert texts(only(made))["50%",] == ["2", "no capacity"]


def test_releases_of_one_number_each_prove_nothing() -> None:
    """v2.3 is 7.65 % below v2.2 and like v2.1: the finding says how many runs would prove either."""
    rates: Values = {("v2.1",): [7383070.0], ("v2.2",): [8029181.0], ("v2.3",): [7414833.0]}
    made = result(
        {"release": ["v2.1", "v2.2", "v2.3"]},
        {"load.rx.packet.rate": rates},
        "figures: [{figure: load.rx.packet.rate, name: rate}]\n"
        "compare: [{axis: release, to: v2.2}, {axis: release, to: v2.1, where: {release: [v2.1, v2.3]}}]",
    )
    assert made.outcome is Outcome.INCONCLUSIVE
    assert made.exit_code == 3
    of = {finding.subject: finding.reason for finding in made.findings}
    assert of["v2.3 against v2.2"] == (
        "rate: v2.3 has 7.65 % less than v2.2; one run each proves neither: 5 each prove it if the coefficient of"
        " variation of runs is at most 3.4 %"
    )
    assert "v2.3 has 0.43 % more than v2.1; one run each proves neither" in of["v2.3 against v2.1"]
    assert texts(only(made)) == {
        ("v2.1",): ["pass", "7.383"],
        ("v2.2",): ["pass", "8.029"],
        ("v2.3",): ["pass", "7.415"],
    }
    assert any("one run a cell" in doubt for doubt in made.doubts)


def test_releases_with_six_runs_each_show_the_regression() -> None:
    """With runs that differ by 0.5 % it is found, and v2.3 is as v2.1."""
    spread = (0.995, 0.998, 0.999, 1.001, 1.003, 1.005)
    levels = {"v2.1": 7383070.0, "v2.2": 8029181.0, "v2.3": 7414833.0}
    rates: Values = {(name,): [level * part for part in spread] for name, level in levels.items()}
    made = result(
        {"release": list(levels)},
        {"load.rx.packet.rate": rates},
        "figures: [load.rx.packet.rate]\n"
        "compare: [{axis: release, to: v2.2, where: {release: [v2.2, v2.3]}},"
        " {axis: release, to: v2.1, where: {release: [v2.1, v2.3]}}]",
    )
    outcomes = {finding.subject: finding.outcome for finding in made.findings}
    assert outcomes == {"v2.3 against v2.2": Outcome.FAIL, "v2.3 against v2.1": Outcome.PASS}
    assert "v2.3 has 7.65 % less than v2.2 (interval -8.11 to -7.19 %)" in made.findings[0].reason
    assert "equivalent" in made.findings[1].reason
    marks = [cells[1].mark for _, cells in rows_of(only(made))]
    assert marks == ["", "best", ""]  # the two others cannot be told apart


@pytest.fixture(scope="module")
def cube() -> CampaignResult:
    """Devices, profiles, configurations, one device a patch cable; large packets are at the generator's limit."""
    rates: dict[tuple[str, ...], list[float]] = {}
    levels = {"imix": 2.0, "small": 9.0, "large": 0.8}
    shares = {"bridge": 0.9, "passthrough": 0.8, "ips": 0.6}
    for profile, most in levels.items():
        for config, share in shares.items():
            rates["cable", profile, config] = [most * M] * 3
            for device, part in (("fw-a", 1.0), ("fw-b", 0.9)):
                limited = 1.0 if profile == "large" else share * part
                rates[device, profile, config] = [most * M * limited * step for step in (0.999, 1.0, 1.001)]
    return result(
        {"device": ["cable", "fw-a", "fw-b"], "profile": list(levels), "config": list(shares)},
        {"load.rx.packet.rate": rates},
        """
figures:
  - {figure: load.rx.packet.rate, name: received, ceiling: {axis: device, of: cable, within: 2%}}
  - {name: cost, share_of: received, along: config, to: bridge, cost: true}
tables:
  - {rows: device, columns: config, figures: received, rivals: [device, config]}
  - {rows: profile, columns: config, figures: cost, where: {device: fw-a}}
""",
    )


def test_a_cube_is_three_views_of_two_axes(cube: CampaignResult) -> None:
    """A view for each profile; cells at the generator's limit are marked, and nobody is best there."""
    views = sheets(cube)
    assert [sheet.caption for sheet in views] == [
        "received (k packets/s): profile imix",
        "received (k packets/s): profile small",
        "received (k packets/s): profile large",
    ]
    large = dict(rows_of(views[2]))
    assert {cell.note for cell in large["fw-a",]} == {"at the generator's limit"}
    assert not any(cell.mark for cells in large.values() for cell in cells)
    imix = dict(rows_of(views[0]))
    assert {cell.note for cells in imix.values() for cell in cells} == {""}
    assert [cell.mark for cell in imix["fw-a",]] == ["best", "", ""]
    assert [cell.mark for cell in imix["fw-b",]] == ["", "", "worst"]
    assert not any(cell.mark for cell in imix["cable",])


def test_each_layer_of_software_has_its_cost(cube: CampaignResult) -> None:
    """Shares of what a bridge forwards."""
    (sheet,) = sheets(cube, 1)
    assert texts(sheet)["imix",] == ["0", "11.11", "33.33"]


def test_sizes_directions_variants_with_watts_that_are_missing() -> None:
    """Sizes by variants, a view for each direction; packets per joule where watts were read, else the reason."""
    sizes, ways, variants = ["64", "1518"], ["encap", "both"], ["linux", "one core"]
    cells = [(size, way, variant) for size in sizes for way in ways for variant in variants]
    rates: Values = {cell: [1000.0 * (index + 1)] * 2 for index, cell in enumerate(cells)}
    watts: Values = {cell: [50.0, 50.0 if cell[2] == "linux" else None] for cell in cells if cell[0] == "64"}
    made = result(
        {"size": sizes, "direction": ways, "variant": variants},
        {"load.rx.packet.rate": rates, "imported.power": watts},
        """
figures:
  - {figure: load.rx.packet.rate, name: rate}
  - {figure: imported.power, name: power}
  - {figure: rate, per: power, name: packets per joule}
tables:
  - {rows: size, columns: variant, figures: [rate, packets per joule]}
""",
    )
    titles = [sheet.caption for sheet in sheets(made)]
    assert titles == [
        "rate (packets/s): direction encap",
        "rate (packets/s): direction both",
        "packets per joule (packets/J): direction encap",
        "packets per joule (packets/J): direction both",
    ]
    joule = dict(rows_of(sheets(made)[2]))
    assert [cell.text for cell in joule["64",]] == ["20", "40"]
    assert joule["64",][1].note == "1 of 2 runs"
    assert any("1 of 2 runs: the run has no imported.power" in note for note in sheets(made)[2].footnotes)
    assert [cell.text for cell in joule["1518",]] == ["no reading"] * 2
    assert all(cell.tone == "absent" for cell in joule["1518",])


@pytest.fixture(scope="module")
def cores() -> CampaignResult:
    """Ten experiments for each number of cores."""
    figures: dict[str, Values] = {
        metric: {(n,): ten(*values) for n, values in by_cores.items()} for metric, by_cores in CORES.items()
    }
    return result(
        {"cores": ["1", "2", "4", "8", "16"]},
        figures,
        """
figures:
  - {figure: load.connection.rate, name: connections}
  - {name: scale-up of connections, scale_up: connections, along: cores}
  - {figure: load.rx.packet.rate, name: throughput}
  - {name: scale-up of throughput, scale_up: throughput, along: cores}
tables: [{rows: figures, columns: cores, show: [range]}]
claims:
  - {figure: connections, value: 2400k, tolerance: 15%, where: {cores: 16}, source: data sheet}
  - {figure: connections, value: 2400k, tolerance: 2%, where: {cores: 16}}
  - {figure: connections, value: 3M, tolerance: 5%, where: {cores: 16}}
""",
    )


def test_cores_scale_as_published(cores: CampaignResult) -> None:
    """Medians, ranges and relative scale-up of both figures."""
    sheet = only(cores)
    assert titles_of(sheet, "figure") == ("1", "2", "4", "8", "16")
    rows = texts(sheet)
    assert rows["connections (k connections/s)",] == ["223.5", "371.1", "708.7", "1,341", "2,383"]
    assert rows["throughput (k packets/s)",] == ["414.9", "742.3", "1,379", "2,336", "4,557"]
    assert [f"{float(text):.3f}" for text in rows["scale-up of connections",]] == [
        "1.000",
        "0.830",
        "0.793",
        "0.750",
        "0.666",
    ]
    assert [float(text) for text in rows["scale-up of throughput",]] == pytest.approx(
        [1, 0.895, 0.831, 0.704, 0.686], abs=0.001
    )
    ranges = [cell.beside for cell in rows_of(sheet)[0][1]]
    assert ranges == ["221.6–226.7", "367.7–375.9", "701.7–723.6", "1,325–1,376", "2,304–2,417"]


def test_scale_up_has_an_interval(cores: CampaignResult) -> None:
    """Of ten runs a cell; it holds the ratio of the medians and is not narrower than either interval says."""
    by_cores = {data.cell.values["cores"]: data.figures["scale-up of connections"] for data in cores.cells}
    low, high = by_cores["16"].low, by_cores["16"].high
    assert low is not None
    assert high is not None
    assert low < 0.6664 < high
    assert high - low > 0.01


def test_a_vendors_tolerance_is_proven_refuted_or_open(cores: CampaignResult) -> None:
    """± 15 % is proven by ten runs, another figure refuted, and ± 2 % is open with the runs that would decide it."""
    fail, still_open, proven = cores.findings
    assert (fail.outcome, still_open.outcome, proven.outcome) == (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
    assert proven.asked == "connections is 2.4 M connections/s ± 15 % (data sheet)"
    assert proven.reason.startswith("proven: the median of 10 runs is 2.38 M connections/s, its interval ")
    assert fail.reason.startswith("refuted: ")
    assert "more run" in still_open.reason


def test_memory_per_connection_is_less_the_empty_device() -> None:
    """4 M connections of 370 bytes beside 1.2 GB that the device takes without any: 370 B, not 670 B, in each run."""
    empty = 'system.memory.usage{phase="baseline"}'
    full = [1.2e9 + 370 * 4e6 + noise for noise in (-1e6, 0.0, 1e6)]
    figures: dict[str, Values] = {
        "system.memory.usage": {("16",): full, ("1",): [2e9, None, 2e9]},
        empty: {("16",): [1.2e9 - 1e6, 1.2e9, 1.2e9 + 1e6], ("1",): [None, 1.2e9, 1.2e9]},
        "load.connections": {("16",): [4e6] * 3, ("1",): [4e6] * 3},
    }
    made = result(
        {"cores": ["1", "16"]},
        figures,
        f"""
figures:
  - {{figure: system.memory.usage, name: memory}}
  - {{figure: memory, less: '{empty}', per: load.connections, name: each}}
  - {{figure: memory, less: load.connections, per: load.connections, name: wrong}}
tables: [{{rows: cores, columns: figures, figures: [each, wrong]}}]
""",
    )
    one, sixteen = (data.figures["each"] for data in made.cells)
    assert (sixteen.unit, sixteen.n) == ("By/{connection}", 3)
    assert sixteen.values == pytest.approx((370, 370, 370))
    assert one.values == pytest.approx((200,))  # only a run that has all three numbers counts
    wrong = made.cells[1].figures["wrong"]
    assert wrong.median is None
    assert wrong.reason == "load.connections is in {connection}, and memory in By"
