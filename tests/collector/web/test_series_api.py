"""Series over HTTP: the values of the record as they are drawn, at the resolution that is asked for."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import numpy as np
import pytest

from soakwatch.core.formatting import Scale
from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch.report.curves import curve_of
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.records import SECOND

UPTIME = ["dut", "system.uptime", ""]
SWITCHES = ["dut", "system.context_switches", ""]
DATA = "/runs/last/series/data"
AddReadings = Callable[..., int]


@pytest.fixture
def more(run: Path) -> AddReadings:
    """Adds a counter to the record of ``run``, a reading each second from its begin; the begin in ns.

    ``lost`` are seconds that are missing; at ``restart_s`` it begins anew; at ``spike_s`` it counts a million more.
    """

    def add(lost: range = range(0), restart_s: int = -1, spike_s: int = -1) -> int:
        rng, count = random.Random(3), 5_000_000
        with Record.open(run) as record, RecordView.open(run) as view:
            begin_ns = view.window().begin_ns
            source = record.source("dut", "other", "other", SECOND, required=False)
            polls = []
            for second in range(600):
                due = begin_ns + second * SECOND
                count = 0 if second == restart_s else count + rng.randrange(1000) + 1_000_000 * (second == spike_s)
                answer = Answer(() if second in lost else (Sample("system.context_switches", "", count, due),), (), ())
                polls.append(Poll(source.id, due, due, 1, PollOutcome.OK, None, answer))
            record.put(polls)
        return begin_ns

    return add


def asked(client: httpx.Client, **body: object) -> Mapping[str, object]:
    """The one line that was asked for."""
    answer = client.post(DATA, json=body)
    assert answer.status_code == 200, answer.text
    (line,) = answer.json()["series"]
    assert isinstance(line, dict)
    return line


def numbers(line: Mapping[str, object], name: str) -> list[float | None]:
    """A column of a line."""
    column = line[name]
    assert isinstance(column, list)
    return column


def test_the_list_tells_what_there_is(client: httpx.Client, run: Path, more: AddReadings) -> None:
    """Keys in order, unit, kind and planned distance; the readings are counted."""
    more(lost=range(100, 110))
    with RecordView.open(run) as view:
        last_ns = view.last_ns
        assert last_ns is not None
        length = {key: len(view.series(key)) for key in view.keys()}  # noqa: SIM118 - no mapping
    document = client.get("/runs/last/series").json()
    assert document["until"] == last_ns // 10**6
    assert [row["key"] for row in document["series"]] == [SWITCHES, UPTIME]
    assert [(row["unit"], row["kind"]) for row in document["series"]] == [("{switch}", "counter"), ("s", "gauge")]
    assert [row["interval"] for row in document["series"]] == [1.0, 1.0]
    assert [row["readings"] for row in document["series"]] == [
        length[SeriesKey(*row["key"])] for row in document["series"]
    ]


def test_a_gauge_is_what_the_record_has(client: httpx.Client, run: Path) -> None:
    """Every reading, bit for bit, in the unit of the record."""
    with RecordView.open(run) as view:
        series, last_ns = view.series(SeriesKey(*UPTIME)), view.last_ns
    answer = client.post(DATA, json={"series": [UPTIME]}).json()
    assert last_ns is not None
    assert answer["until"] == last_ns // 10**6
    (line,) = answer["series"]
    assert (line["key"], line["unit"], line["rate"], line["whole"], line["readings"]) == (UPTIME, "s", False, True, 601)
    assert line["value"] == series.value.tolist()
    assert line["time"] == (series.time_ns // 10**6).tolist()


def test_a_stretch_has_its_readings_and_one_beyond_either_end(client: httpx.Client, more: AddReadings) -> None:
    """So that a line goes on to the edge; they are not counted. A zoom may have fractions of a ms."""
    begin_ms = more() // 10**6
    for key, count in ((UPTIME, 30), (SWITCHES, 30)):
        line = asked(client, series=[key], begin=begin_ms + 99_500.25, end=begin_ms + 129_500.75)
        assert (line["readings"], line["whole"]) == (count, True)
        time = numbers(line, "time")
        assert [(moment - begin_ms) // 1000 for moment in time if moment is not None] == list(range(99, 131))
    line = asked(client, series=[UPTIME], begin=begin_ms + 10**7, end=begin_ms + 2 * 10**7)
    assert (line["time"], line["value"], line["readings"], line["whole"]) == ([], [], 0, True)


def test_counters_are_rates_and_gaps_are_null(client: httpx.Client, more: AddReadings) -> None:
    """Where nothing was read and where the counter began anew the line breaks; nothing is ever negative."""
    begin_ms = more(lost=range(100, 120), restart_s=300) // 10**6
    line = asked(client, series=[SWITCHES])
    assert (line["unit"], line["rate"]) == ("{switch}/s", True)
    time, value = numbers(line, "time"), numbers(line, "value")
    rates = {
        round((moment - begin_ms) / 1000): reading
        for moment, reading in zip(time, value, strict=True)
        if moment and reading is not None
    }
    assert len(time) == len(value)
    assert [reading for reading in value if reading is None] == [None, None]
    assert all(0 <= reading <= 1000 for reading in rates.values())
    assert 300 not in rates
    assert {299, 301} <= set(rates)


def test_no_spike_is_lost_however_few_points(client: httpx.Client, more: AddReadings) -> None:
    """One second of 600, seen in 100 points and at the same place as in every reading."""
    more(spike_s=417)
    whole = asked(client, series=[SWITCHES])
    few = asked(client, series=[SWITCHES], points=100)
    assert (whole["whole"], few["whole"], few["readings"]) == (True, False, 599)
    assert len(numbers(few, "time")) < 130
    peaks = []
    for line in (whole, few):
        value = [reading or 0.0 for reading in numbers(line, "value")]
        peak = int(np.argmax(value))
        peaks.append((numbers(line, "time")[peak], value[peak]))
    assert peaks[0] == peaks[1]
    assert peaks[0][1] > 1_000_000


def test_it_is_what_the_report_draws(client: httpx.Client, run: Path, more: AddReadings) -> None:
    """The same points as the line of a report of so many points."""
    more(lost=range(200, 230))
    with RecordView.open(run) as view:
        curve = curve_of(view.series(SeriesKey(*SWITCHES)), 120, Scale(1.0, ""))
    line = asked(client, series=[SWITCHES], points=120)
    assert numbers(line, "time") == curve.time_ms.astype(np.int64).tolist()
    value = np.array([np.nan if reading is None else reading for reading in numbers(line, "value")], dtype=np.float32)
    np.testing.assert_array_equal(value, curve.value)


def test_words_ask_for_the_same(client: httpx.Client, more: AddReadings) -> None:
    """By key, by metric or by target; times as ISO 8601 too."""
    more()
    posted = client.post(DATA, json={"series": [SWITCHES], "points": 200}).json()
    keyed = client.get(DATA, params={"series": json.dumps(SWITCHES), "points": 200}).json()
    named = client.get(DATA, params={"metric": SWITCHES[1], "points": 200}).json()
    assert posted == keyed == named
    assert [row["key"] for row in client.get(DATA, params={"target": "dut"}).json()["series"]] == [SWITCHES, UPTIME]
    assert client.get(DATA, params={"end": "2001-01-01T00:00:00Z", "target": "dut"}).json()["series"][0]["time"] == []


def test_csv_has_a_row_for_each_value_and_none_for_gaps(client: httpx.Client, more: AddReadings) -> None:
    """Only what lies in the stretch; as a file to be saved."""
    begin_ms = more(lost=range(100, 120)) // 10**6
    words: dict[str, str | int] = {"metric": SWITCHES[1], "begin": begin_ms + 90_000, "end": begin_ms + 130_000}
    answer = client.get(f"{DATA}.csv", params=words)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="series.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 20
    assert {row["unit"] for row in rows} == {"{switch}/s"}
    assert [round(float(row["time"]) - begin_ms / 1000) for row in rows] == [*range(90, 100), *range(120, 130)]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({}, 400, "series must be a list"),
        ({"series": []}, 400, "series must be a list"),
        ({"series": [UPTIME] * 201}, 400, "1 to 200"),
        ({"series": "system.uptime"}, 400, "series must be a list"),
        ({"series": [["dut", "system.uptime"]]}, 400, "three texts"),
        ({"series": [["dut", "system.uptime", None]]}, 400, "three texts"),
        ({"series": [["dut", "system.uptime", "core=7"]]}, 404, "no series"),
        ({"series": [["\ud800", "\u202e", "\x00"]]}, 404, "no series"),
        ({"series": [UPTIME], "points": 99}, 400, "from 100 to 20000"),
        ({"series": [UPTIME], "points": 20001}, 400, "from 100 to 20000"),
        ({"series": [UPTIME], "points": True}, 400, "from 100 to 20000"),
        ({"series": [UPTIME], "points": 1e3}, 400, "from 100 to 20000"),
        ({"series": [UPTIME], "begin": -1}, 400, "begin must be a time"),
        ({"series": [UPTIME], "end": 1e300}, 400, "end must be a time"),
        ({"series": [UPTIME], "end": "2001"}, 400, "end must be a time"),
        ({"series": [UPTIME], "begin": 5, "end": 5}, 400, "must be before"),
        ({"series": [UPTIME], "start": 5}, 400, "'start' is not a known key"),
    ],
)
def test_invalid_requests_are_refused_with_a_reason(
    asking: httpx.Client, body: object, status: int, sentence: str
) -> None:
    """One sentence, never a traceback."""
    answer = asking.post(DATA, content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


def test_numbers_that_are_none_are_refused(asking: httpx.Client) -> None:
    """NaN and Infinity, which Python would read."""
    for word in ("NaN", "Infinity", "-Infinity"):
        content = f'{{"series": [["dut", "system.uptime", ""]], "begin": {word}}}'
        answer = asking.post(DATA, content=content, headers={"content-type": "application/json"})
        assert answer.status_code == 400


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({}, "0 series match"),
        ({"metric": "nothing"}, "0 series match"),
        ({"series": "dut"}, "series must be JSON"),
        ({"series": "[" * 5000}, "series must be JSON"),
        ({"target": "dut", "begin": "yesterday"}, "begin"),
        ({"target": "dut", "begin": "9" * 19}, "begin must be an integer"),
        ({"target": "dut", "points": "many"}, "points must be an integer"),
    ],
)
def test_invalid_parameters_are_refused_with_a_reason(
    asking: httpx.Client, words: dict[str, str], sentence: str
) -> None:
    """The same for words."""
    answer = asking.get(DATA, params=words)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]
