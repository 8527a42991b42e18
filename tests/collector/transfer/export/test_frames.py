"""Data frames of a record: what notebooks get from ``open_record(…).to_pandas()``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from soakwatch.api import open_record
from soakwatch.core.errors import RecordError

Recorded = Callable[..., Path]


def test_a_long_frame_has_a_row_a_reading(recorded: Recorded) -> None:
    """All series with units, phases and labels, times in UTC."""
    with open_record(recorded()) as view:
        frame = view.to_pandas()
        assert list(frame.columns) == [
            *("time", "target", "metric", "object", "value", "unit", "phase"),
            *("label_release", "label_build"),
        ]
        assert str(frame["time"].dtype) == "datetime64[ns, UTC]"
        for key in sorted(view.keys()):
            series = view.series(key)
            own = frame[(frame.target == key.target) & (frame.metric == key.metric) & (frame.object == key.object)]
            assert own.time.astype("int64").tolist() == series.time_ns.tolist()
            assert own.value.tolist() == series.value.astype(np.float64).tolist()
            assert set(own.unit) == {series.trait.unit}
        assert frame.phase.value_counts().to_dict() == {"baseline": 96, "soak": 96, "": 0}
        assert set(frame.label_release) == {"7.2"}


def test_a_wide_frame_has_a_column_a_series_and_gaps_stay_gaps(recorded: Recorded) -> None:
    """The times are the index; polls that were lost have no row, what was not read then is NaN."""
    with open_record(recorded()) as view:
        frame = view.to_pandas("system.*", target="dut", phase="soak", wide=True)
    assert isinstance(frame.index, pd.DatetimeIndex)
    assert frame.columns.names == ["target", "metric", "object"]
    assert frame.shape == (27, 2)
    assert not frame.isna().to_numpy().any()
    with open_record(recorded("other")) as view:
        both = view.to_pandas(["load.*", "system.cpu.utilization"], wide=True)
    assert both["gen"].isna().to_numpy().sum() == len(both) - 30


def test_nothing_is_a_frame_without_rows(recorded: Recorded) -> None:
    """A record whose series were chosen by a phase without readings has columns; a wrong name is an error."""
    with open_record(recorded()) as view:
        with pytest.raises(RecordError, match=r"no metric 'process.memory.usag'; did you mean"):
            view.to_pandas("process.memory.usag")
        with pytest.raises(RecordError, match="no phase 'spike'"):
            view.to_pandas(phase="spike")


def test_an_empty_record_is_an_empty_frame(tmp_path: Path) -> None:
    """Long and wide."""
    from soakwatch.record import Record

    Record.create(tmp_path / "runs" / "none").close()
    with open_record(tmp_path / "runs" / "none") as view:
        assert len(view.to_pandas()) == 0
        assert view.to_pandas(wide=True).shape == (0, 0)
