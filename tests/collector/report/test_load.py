"""What the report says of the load, whatever a generator reports or leaves out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.judge.verdict import Verdict
from soakwatch.record.model import SeriesKey
from soakwatch.record.source import ReportSource
from soakwatch.report.html import render_html
from soakwatch.report.load import (
    answered_share,
    failed_share,
    failures_in,
    figure_of,
    generators,
    load_lines,
)
from soakwatch_model.metric import BY_NAME
from soakwatch_model.series import Series, Trait
from soakwatch_model.window import Window

Night = tuple[ReportSource, Verdict]
SECOND = 10**9
ALL = Window(0, 100 * SECOND)


class Loads:
    """A record that holds nothing but series of generators."""

    def __init__(self, *data: Series) -> None:
        self._data = data

    def keys(self, _metrics: object = None) -> tuple[SeriesKey, ...]:
        return tuple(SeriesKey(s.target, s.metric, s.object) for s in self._data)

    def series(self, key: SeriesKey) -> Series:
        return next(s for s in self._data if SeriesKey(s.target, s.metric, s.object) == key)


def series_of(metric: str, values: list[float] | NDArray[np.float64], obj: str = "", target: str = "tg") -> Series:
    """Readings once a second of one metric of the catalogue."""
    entry = BY_NAME[metric]
    trait = Trait(entry.unit, entry.kind)  # type: ignore[arg-type]
    value = np.asarray(values, dtype=np.float64)
    return Series(target, metric, obj, trait, np.arange(value.size, dtype=np.int64) * SECOND, value, 1.0)


def source(*data: Series) -> ReportSource:
    """The series as a record."""
    return Loads(*data)  # type: ignore[return-value]


def test_rates_come_from_counters_where_there_is_nothing_better() -> None:
    """A generator that only counts has rates, a failed share and a sum of failures."""
    (generator,) = generators(source(series_of("load.requests", [0, 90, 180]), series_of("load.failures", [0, 10, 20])))
    assert generator.answered is not None
    assert figure_of(generator.answered, ALL).mean == 90.0
    assert failures_in(generator, ALL) == 20.0
    assert failed_share(generator, ALL) == pytest.approx(0.1)
    assert answered_share(generator, ALL) is None


def test_what_a_generator_does_not_report_is_not_known_and_never_zero() -> None:
    """Without failures and offered rate there is no share; in a silent window there is no mean."""
    (generator,) = generators(source(series_of("load.request.rate", [5, 5, 5])))
    assert (failures_in(generator, ALL), failed_share(generator, ALL), answered_share(generator, ALL)) == (
        None,
        None,
        None,
    )
    assert generator.answered is not None
    assert figure_of(generator.answered, Window(50 * SECOND, 60 * SECOND)).mean is None
    (line,) = load_lines((generator,), ALL)
    assert line.missing == ("failures", "latency")


def test_a_counter_that_began_anew_takes_nothing_back() -> None:
    """The step across a restart of the generator is not known; the others are summed."""
    (generator,) = generators(source(series_of("load.failures", [7, 9, 1, 4])))
    assert failures_in(generator, ALL) == 5.0


def test_quantiles_rise_and_p99_represents_them() -> None:
    """Latencies are sorted from low to high with the maximum last; the line in a finding takes p99."""
    data = [series_of("load.latency", [n, n], f"quantile={q}") for n, q in enumerate(("max", "p99.9", "p50", "p99"), 1)]
    (generator,) = generators(source(*data))
    assert [trace.word for trace in generator.latencies] == [f"latency {q}" for q in ("p50", "p99", "p99.9", "max")]
    assert generator.latency is not None
    assert generator.latency.word == "latency p99"


def test_streams_and_targets_are_kept_apart() -> None:
    """Two generators and two streams of one have accounts of their own; quantiles do not part a stream."""
    data = (
        series_of("load.request.rate", [1.0], "port=0"),
        series_of("load.latency", [1.0], "port=0,quantile=p99"),
        series_of("load.request.rate", [2.0], "port=1"),
        series_of("load.request.rate", [3.0], target="tg2"),
    )
    streams = generators(source(*data))
    assert [generator.name for generator in streams] == ["tg port=0", "tg port=1", "tg2"]
    assert [len(generator.latencies) for generator in streams] == [1, 0, 0]


def test_a_packet_generator_is_shown_by_what_it_sent_and_what_came_back() -> None:
    """Rates come from counters where it tells none; ports and flows are parts of it, and no generators of their own."""
    data = (
        series_of("load.tx.packets", [0, 100, 200]),
        series_of("load.rx.packet.rate", [90, 90]),
        series_of("load.loss", [0.1, 0.1]),
        series_of("load.offered.packet.rate", [100, 100, 100]),
        series_of("load.lines.unread", [0, 0, 0]),
        series_of("load.tx.bit.rate", [8e5, 8e5]),
        series_of("load.port.tx.packets", [0, 50], "port=0"),
    )
    (generator,) = generators(source(*data))
    assert [trace.word for trace in generator.packets] == ["offered packets", "sent packets", "received packets"]
    assert ([trace.word for trace in generator.bits], generator.others) == (["sent bits"], ())
    assert generator.rate is not None
    assert (generator.rate.word, figure_of(generator.rate, ALL).mean) == ("sent packets", 100.0)
    (line,) = load_lines((generator,), ALL)
    assert ([figure.word for figure in line.figures][-2:], line.missing) == (["received packets", "lost"], ())


def test_unreadable_lines_are_reported_where_there_were_any() -> None:
    """And they are never the load."""
    (generator,) = generators(source(series_of("load.lines.unread", [0, 3]), series_of("load.sending", [1, 1])))
    assert "lines.unread" in [trace.word for trace in generator.others]
    assert generator.rate is None


@pytest.mark.parametrize("values", [[], [np.nan, np.nan]])
def test_a_generator_without_a_reading_is_none(values: list[float]) -> None:
    """A series without a single number makes no generator."""
    assert generators(source(series_of("load.request.rate", values), series_of("load.latency", values))) == ()


def test_the_section_tells_each_phase(page_of_night: str) -> None:
    """The table has a column a phase with the spike's rate, and the failures where they happened."""
    section = page_of_night.split('<section id="load">', 1)[1].split("</section>", 1)[0]
    for word in ("baseline", "soak", "spike", "recovery"):
        assert f'<th class="num">{word}</th>' in section
    assert "2,400 requests/s" in section or "2400 requests/s" in section
    assert "100 (0.000413 %)" in section or "under 0.01 %" in section
    assert section.count('class="plot"') == 3


def test_a_run_without_a_generator_says_so(plain: Night) -> None:
    """Cards and section state that the one in the plan reported nothing, and not that there is none."""
    page = render_html(*plain)
    assert "recorded none." in page
    assert "has the role generator, but recorded no load" in page
    assert "No traffic generator was recorded" not in page
