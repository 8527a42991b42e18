"""The API for notebooks: arrays of any make are judged, and bad ones are inconclusive or one clear ValueError."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soakwatch import api
from soakwatch.api import Event, Outcome, Phase, Window, judge_csv, judge_series, open_record
from soakwatch_rules.detectors.memory_growth import MemoryGrowth

T0 = 1_767_225_600
SECONDS = [10.0 * n for n in range(720)]
LEAK = [5e8 + 1e5 * n for n in range(720)]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Column:
    """As much of a pandas Series as is used."""

    def __init__(self, index: object, values: object) -> None:
        self.index, self.values = index, values

    def to_numpy(self) -> object:
        """What pandas gives."""
        return self.values

    def __iter__(self) -> object:
        return iter(self.values)  # type: ignore[call-overload]


TIMES = (
    SECONDS,
    np.array(SECONDS),
    [T0 + s for s in SECONDS],
    np.array([(T0 + int(s)) * 10**9 for s in SECONDS]),
    np.datetime64("2026-01-01", "s") + np.arange(720) * np.timedelta64(10, "s"),
    np.arange(720) * np.timedelta64(10, "s"),
    [BEGIN + timedelta(seconds=s) for s in SECONDS],
    [(BEGIN + timedelta(seconds=s)).replace(tzinfo=None) for s in SECONDS],
    [(BEGIN + timedelta(seconds=s)).astimezone(timezone(timedelta(hours=2))) for s in SECONDS],
    [(BEGIN + timedelta(seconds=s)).isoformat() for s in SECONDS],
    (s for s in SECONDS),
)


@pytest.mark.parametrize("times", TIMES, ids=range(len(TIMES)))
def test_times_of_any_make(times: list[object]) -> None:
    """Seconds, epochs, datetimes, datetime64 and texts give the same finding."""
    (finding,) = judge_series(times, LEAK, "memory_growth", unit="By")
    assert (finding.outcome, finding.samples, finding.unit) == (Outcome.FAIL, 720, "By")
    assert finding.window.seconds == pytest.approx(7190, abs=1e-6)


def test_a_column_of_pandas_is_enough() -> None:
    """Whatever has an index and turns into an array is a series with its times."""
    index = np.datetime64("2026-01-01", "s") + np.arange(720) * np.timedelta64(10, "s")
    (finding,) = judge_series(None, Column(index, np.array(LEAK)), "memory_growth", unit="By")  # type: ignore[arg-type]
    assert finding.outcome is Outcome.FAIL


def test_what_the_series_is() -> None:
    """A metric of the catalogue brings unit and direction, a unit its factor, growth its direction."""
    (finding,) = judge_series(
        SECONDS, [v / 1e6 for v in LEAK], "memory_growth", metric="process.memory.usage", unit="MB"
    )
    assert (finding.outcome, finding.metric, finding.unit) == (Outcome.FAIL, "process.memory.usage", "By")
    (finding,) = judge_series(SECONDS, LEAK, "memory_growth", growth="down")
    assert finding.outcome is Outcome.PASS
    assert finding.metric == "imported.value"


def test_rules_and_parameters() -> None:
    """A rule by name with parameters as a plan writes them, or a rule that was made."""
    for parameters in ({"tolerance": "50%"}, {"tolerance": 0.5}):
        (finding,) = judge_series(SECONDS, LEAK, "memory_growth", parameters=parameters)
        assert finding.outcome is Outcome.PASS
    (finding,) = judge_series(SECONDS, LEAK, MemoryGrowth(tolerance=0.5))
    assert finding.outcome is Outcome.PASS


def test_events_and_phases() -> None:
    """A reboot parts the series in lives, a soak phase bounds the window."""
    reboot = Event("reboot", "series", "", 3600 * 10**9, 3600 * 10**9)
    (finding,) = judge_series(SECONDS, LEAK, "memory_growth", events=[reboot])
    assert finding.numbers["lives"] == 2
    soak = Phase("soak", Window(0, 1000 * 10**9))
    (finding,) = judge_series(SECONDS, LEAK, "memory_growth", phases=[soak])
    assert (finding.window, finding.samples) == (soak.window, 100)


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([], Outcome.INCONCLUSIVE),
        ([1.0], Outcome.INCONCLUSIVE),
        ([float("nan")] * 100, Outcome.INCONCLUSIVE),
        ([float("inf")] * 100, Outcome.INCONCLUSIVE),
        ([None] * 100, Outcome.INCONCLUSIVE),
        ([5.0] * 100, Outcome.PASS),
    ],
)
def test_what_cannot_be_judged_is_inconclusive(values: list[object], outcome: Outcome) -> None:
    """Nothing, one value, no number at all: inconclusive with a reason; a constant passes."""
    (finding,) = judge_series(SECONDS[: len(values)], values, "memory_growth")
    assert finding.outcome is outcome
    assert finding.sentence


@pytest.mark.parametrize(
    ("times", "values", "sentence"),
    [
        ([0, 1], [1.0], "2 times for 1 values"),
        ([0, 2, 1], [1, 2, 3], "times fall at position 2: sort them"),
        ([0, 1, 1], [1, 2, 3], "two samples have the same time, at positions 1 and 2"),
        ([0, float("nan")], [1, 2], "a time is missing or infinite"),
        ([np.datetime64("NaT", "ns"), np.datetime64("2026-01-01")], [1, 2], "a time is missing"),
        (["noon"], [1], "'noon' is not a time"),
        ([[0, 1]], [1, 2], "times have the shape"),
        ([0, 1], [[1], [2]], "values have the shape"),
        ([0, 1], ["a", "b"], "values are not numbers"),
        ([0, 1], [object(), object()], "values are not numbers"),
        ([object()], [1], "not understood"),
        ([np.datetime64("1850-01-01")], [1], "between 1970 and 2262"),
        (None, [1.0], "the values have no index"),
    ],
)
def test_bad_input_is_one_value_error(times: list[object] | None, values: list[object], sentence: str) -> None:
    """Lengths, order, types: each names itself and the remedy."""
    with pytest.raises(ValueError, match=r"(?s).") as error:
        judge_series(times, values, "memory_growth")
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"rule": "memory_grow"}, "unknown rule 'memory_grow'; did you mean 'memory_growth'?"),
        ({"rule": "reboot"}, "say which with metric="),
        ({"rule": "reboot", "metric": "process.threads"}, "reboot does not read process.threads"),
        ({"metric": "process.thread"}, "did you mean 'process.threads'?"),
        ({"metric": "process.threads", "unit": "MB"}, "the unit MB does not fit {thread}"),
        ({"growth": "sideways"}, "is not a direction"),
        ({"parameters": {"tolerence": 1}}, "unknown parameter 'tolerence' of memory_growth; did you mean 'tolerance'?"),
        ({"parameters": {"tolerance": "much"}}, "write 5%"),
        ({"parameters": {"tolerance": -1}}, "use 0 or more"),
    ],
)
def test_what_does_not_exist_is_a_value_error(arguments: dict[str, object], sentence: str) -> None:
    """Rules, metrics, units and parameters that do not exist are refused with the nearest."""
    with pytest.raises(ValueError, match=r"(?s).") as error:
        judge_series(SECONDS, LEAK, **{"rule": "memory_growth", **arguments})  # type: ignore[arg-type]
    assert sentence in str(error.value)


FLOATS = st.floats(allow_nan=True, allow_infinity=True)


@given(st.lists(st.tuples(FLOATS, FLOATS), max_size=30))
def test_no_arrays_break_it(pairs: list[tuple[float, float]]) -> None:
    """Whatever the arrays hold, it is findings or a ValueError, and they are not changed."""
    times, values = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    before = times.copy(), values.copy()
    try:
        findings = judge_series(times, values, "memory_growth")
    except ValueError:
        findings = ()
    assert all(finding.sentence for finding in findings)
    assert np.array_equal(times, before[0], equal_nan=True)
    assert np.array_equal(values, before[1], equal_nan=True)


def table(folder: Path) -> Path:
    """A leak beside a CPU in percent."""
    file = folder / "fw.csv"
    lines = "".join(f"{T0 + 10 * n},{100 + n / 10},{5 + n % 3}\n" for n in range(720))
    file.write_text(f"time,heap (MB),cpu\n{lines}", encoding="utf-8")
    return file


def test_a_table_is_judged(tmp_path: Path) -> None:
    """The verdict is that of the command; what was guessed is a warning, or passed to the callback."""
    notes: list[str] = []
    verdict = judge_csv(table(tmp_path), "memory_growth", on_note=notes.append)
    assert (verdict.outcome, verdict.run) == (Outcome.FAIL, "fw")
    assert [f.metric for f in verdict.findings] == ["imported.heap"]
    assert any("cpu" in note and "percent" in note for note in notes)
    with pytest.warns(UserWarning, match="percent"):
        judge_csv(table(tmp_path), "memory_growth")
    verdict = judge_csv(
        table(tmp_path),
        ["memory_growth"],
        growth="down",
        units={"cpu": "%"},
        tz="UTC",
        target="box",
        parameters={"memory_growth": {"tolerance": "1%"}},
    )
    assert verdict.outcome is Outcome.PASS
    assert [target.target for target in verdict.targets] == ["box"]
    verdict = judge_csv(
        table(tmp_path),
        "memory_growth",
        columns={"heap (MB)": "process.memory.usage"},
        units={"cpu": "%"},
        skip=["cpu"],
    )
    assert [f.metric for f in verdict.findings] == ["process.memory.usage"]


def test_a_bad_table_is_a_value_error(tmp_path: Path) -> None:
    """Files, options and rules that are wrong."""
    with pytest.raises(ValueError, match="no such file"):
        judge_csv(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="did you mean"):
        judge_csv(table(tmp_path), "memory_grow")
    with pytest.raises(ValueError, match="write up or down"):
        judge_csv(table(tmp_path), growth={"heap": "sideways"})


def test_a_record_is_opened(tmp_path: Path) -> None:
    """By folder; its series are arrays."""
    from soakwatch.transfer.importing.files import import_files
    from soakwatch.transfer.importing.timeline import ImportOptions

    import_files([str(table(tmp_path))], tmp_path / "runs" / "a", "a", ImportOptions())
    for name in (str(tmp_path / "runs" / "a"), "a", "last"):
        with open_record(name, tmp_path / "runs") as view:
            assert len(view.series(view.keys()[0])) == 720


def test_the_api_is_what_it_says_and_light() -> None:
    """Everything in __all__ is there; importing it loads no plots, no page and no scheduler."""
    assert all(hasattr(api, name) for name in api.__all__)
    heavy = {"jinja2", "apscheduler", "tsdownsample", "pandas"}
    code = f"import sys, soakwatch.api; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_baseline_phase_gives_the_level() -> None:
    """A soak that is busy from its first reading on is held against the baseline phase before it."""
    values = [0.2 + 0.01 * (n % 3) for n in range(120)] + [0.98] * 600
    phases = [
        Phase("baseline", Window(0, 1200 * 10**9)),
        Phase("soak", Window(1200 * 10**9, 7200 * 10**9)),
    ]
    (finding,) = judge_series(SECONDS, values, "cpu_spike", metric="system.cpu.utilization", phases=phases)
    assert finding.outcome is Outcome.FAIL
    assert finding.numbers["level"] == pytest.approx(0.21)


def test_a_utilisation_a_little_over_its_range_is_its_end() -> None:
    """101.2 % is 100 %, as in a table; 1.2 is no share, and the sentence says which unit may be meant."""
    values = [30.0] * 400 + [101.2] * 60 + [30.0] * 260
    (finding,) = judge_series(SECONDS, values, "cpu_spike", metric="system.cpu.utilization", unit="%")
    assert (finding.outcome, finding.numbers["highest"]) == (Outcome.FAIL, 1.0)
    wrong = "cannot be 1.2: the catalogue allows 0.0 to 1.0, at position 2: say its unit"
    with pytest.raises(ValueError, match=wrong):
        judge_series(SECONDS[:3], [0.2, 0.3, 1.2], "cpu_spike", metric="system.cpu.utilization")
