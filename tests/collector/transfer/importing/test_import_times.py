"""Times of tables: every form that is known, read right or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.options import Options
from soakwatch.sources.tables.times import TimeOptions, looks_like_time, time_reading
from soakwatch.transfer.importing.build_series import read_table

T0 = 1_767_225_600 * 10**9  # 2026-01-01 00:00:00 UTC
SECOND = 10**9
HOUR = 3600 * SECOND


def read(texts: list[str], options: TimeOptions | None = None) -> list[int | None]:
    """The times of some cells; None for what is none."""
    moments = time_reading(texts, options or TimeOptions(), "data.csv: column time").read(texts)
    return [None if bad else time for time, bad in zip(moments.time_ns.tolist(), moments.bad.tolist(), strict=True)]


@pytest.mark.parametrize(
    "texts",
    [
        ["1767225600", "1767225601"],
        ["1767225600.0", "1767225601.000"],
        ["1767225600000", "1767225601000"],
        ["1767225600000000", "1767225601000000"],
        ["1767225600000000000", "1767225601000000000"],
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"],
        ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z"],
        ["2026-01-01 00:00:00", "2026-01-01 00:00:01"],
        ["2026-01-01 00:00:00,000", "2026-01-01 00:00:01,000"],
        ["2026-01-01T01:00:00+01:00", "2026-01-01T01:00:01+01:00"],
        ["2025-12-31T23:30:00-00:30", "2025-12-31 23:30:01-0030"],
        ["2026-01-01 01:00:00+01", "2026-01-01T00:00:01 UTC"],
        ["2026/01/01 00:00:00", "2026/01/01 00:00:01"],
        ["01.01.2026 00:00:00", "01.01.2026 00:00:01"],
        ["1.1.2026, 0:00:00", "1.1.2026, 0:00:01"],
    ],
)
def test_every_form_tells_the_same_moment(texts: list[str]) -> None:
    """Epoch numbers of any size, ISO 8601 with and without zone, and dates with points mean the same two seconds."""
    assert read(texts) == [T0, T0 + SECOND]


def test_fractions_are_kept() -> None:
    """Microseconds survive in every form; nanoseconds where they are written as integers."""
    assert read(["1767225600.123456", "1767225600.5"]) == [T0 + 123_456_000, T0 + 500_000_000]
    assert read(["2026-01-01 00:00:00.123456", "2026-01-01 00:00:01"]) == [T0 + 123_456_000, T0 + SECOND]
    assert read(["1767225600123456789", "1767225600123456790"]) == [T0 + 123_456_789, T0 + 123_456_790]


def test_small_numbers_are_seconds_from_the_start() -> None:
    """0, 10, 20 … counts from 1970, or from the start that is given, and this is reported."""
    assert read(["0", "10", "20.5"]) == [0, 10 * SECOND, 20_500_000_000]
    assert read(["0", "10"], TimeOptions(start_ns=T0)) == [T0, T0 + 10 * SECOND]
    (note,) = time_reading(["0", "10"], TimeOptions(), "x").notes
    assert "--start" in note
    assert time_reading(["0", "10"], TimeOptions(start_ns=T0), "x").notes == ()


def test_a_clock_goes_past_midnight() -> None:
    """hh:mm:ss counts on where it falls back at midnight, also from one chunk to the next; hours may exceed a day."""
    assert read(["23:59:50", "00:00:10", "00:00:30.5"]) == [
        86390 * SECOND,
        86410 * SECOND,
        86430 * SECOND + 500_000_000,
    ]
    reading = time_reading(["23:59:50"], TimeOptions(), "x")
    reading.read(["23:59:50"])
    assert reading.read(["00:00:10"]).time_ns.tolist() == [86410 * SECOND]
    assert read(["00:00:00", "25:00:00", "49:00:00"]) == [0, 25 * HOUR, 49 * HOUR]


def test_zones_by_name() -> None:
    """A time without a zone is taken in the given zone, summer time included; one with a zone is not touched."""
    berlin = TimeOptions(zone="Europe/Berlin")
    assert read(["2026-01-01 01:00:00", "2026-01-01 01:00:01"], berlin) == [T0, T0 + SECOND]
    summer = read(["2026-07-01 02:00:00", "2026-07-01T00:00:00Z"], berlin)
    assert summer[0] == summer[1]
    assert time_reading(["2026-01-01 01:00:00"], berlin, "x").notes == ()
    assert "--tz" in time_reading(["2026-01-01 01:00:00"], TimeOptions(), "x").notes[0]


def test_slashes_are_read_where_they_show_their_order() -> None:
    """A number above 12 tells day from month; else someone must."""
    assert read(["13/01/2026 00:00:00", "01/01/2026 00:00:00"])[1] == T0
    assert read(["01/13/2026 00:00:00", "01/01/2026 00:00:00"])[1] == T0
    with pytest.raises(DataError, match="day or month first"):
        read(["01/02/2026 00:00:00"])


def test_named_formats_are_read() -> None:
    """--time-format takes units and strptime; what is not known is refused with what is."""
    assert read(["1767225600"], TimeOptions(form="s")) == [T0]
    assert read(["1500"], TimeOptions(form="ms")) == [1_500_000_000]
    assert read(["1500"], TimeOptions(form="elapsed-ms", start_ns=T0)) == [T0 + 1_500_000_000]
    assert read(["Jan 01 2026 00.00.01", "x"], TimeOptions(form="%b %d %Y %H.%M.%S")) == [T0 + SECOND, None]
    assert read(["01.01.2026 01:00"], TimeOptions(form="%d.%m.%Y %H:%M", zone="Europe/Berlin")) == [T0]
    for form in ("seconds", "elapsed-h"):
        with pytest.raises(DataError, match="--time-format"):
            read(["1"], TimeOptions(form=form))


@pytest.mark.parametrize(
    ("texts", "bad"),
    [
        (["1767225600", "", "x"], [1, 2]),
        (["2026-01-01", "2026-13-01", "now"], [1, 2]),
        (["2026-01-01 00:00:00", "1850-01-01 00:00:00", "9999-01-01 00:00:00"], [1, 2]),
        (["01.01.2026", "32.01.2026", "."], [1, 2]),
        (["1767225600", "1e300", "nan"], [1, 2]),
        (["1767225600", "-5", "99999999999999"], [1, 2]),
        (["00:00:01", "00:00", ""], [1, 2]),
    ],
)
def test_what_is_not_a_time_is_read_as_none(texts: list[str], bad: list[int]) -> None:
    """Cells that cannot be a time, or lie outside of 1970 to 2262, are bad; the others stay."""
    many = [texts[0]] * 3 + texts
    assert [index - 3 for index, time in enumerate(read(many)) if time is None] == bad


def test_unknown_forms_and_zones_are_refused() -> None:
    """One sentence names the column, the cell, and what can be said."""
    with pytest.raises(
        DataError, match=r"data.csv: column time: 'noon' is not in a known time format: .* --time-format"
    ):
        read(["noon", "midnight"])
    with pytest.raises(DataError, match="--tz Mars is not a time zone"):
        read(["2026-01-01"], TimeOptions(zone="Mars"))
    with pytest.raises(DataError, match="no times: name the column"):
        read(["", "nan"])


@given(st.lists(st.text(max_size=30) | st.from_regex(r"[0-9T:Z+. /-]{1,25}"), min_size=1, max_size=6))
def test_no_cells_break_it(texts: list[str]) -> None:
    """Whatever the cells hold, they are times, bad, or refused in a sentence."""
    for text in texts:
        looks_like_time(text)
    try:
        times = read(texts)
    except DataError:
        return
    assert all(time is None or 0 <= time < 2**63 for time in times)


@pytest.mark.parametrize(
    ("stray", "told"),
    [
        ("1e-400", "the time in line 7, 1970-01-01 00:00Z, is 55.9 years from 10 other lines at 2025-12-07 14:13Z"),
        ("0", "the time in line 7, 1970-01-01 00:00Z, is 55.9 years"),
        ("4000000000", "the time in line 7, 2096-10-02 07:06Z, is 70.8 years"),
    ],
)
def test_a_time_that_is_years_from_the_rest_is_refused_with_its_line(tmp_path: Path, stray: str, told: str) -> None:
    """One bad row made a window of decades, and polls that were due all through it."""
    times = [str(1_765_116_800 + second) for second in range(5)]
    rows = [*times, stray, *(str(1_765_116_900 + second) for second in range(5))]
    file = tmp_path / "night.csv"
    file.write_text("time,cpu\n" + "".join(f"{time},0.5\n" for time in rows), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_table(str(file), "fw", Options())
    assert f"{file}: column time: {told}" in str(caught.value)
    assert "correct or remove such lines" in str(caught.value)
