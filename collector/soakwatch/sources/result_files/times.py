"""Converts times in a column of a growing file to the run's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from soakwatch.sources.result_files.result_file import Moment
from soakwatch.sources.result_files.zone import second_of, zone_of
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.times import Moments, TimeOptions, time_reading

_DAY_NS = 86_400 * 10**9
_HALF_HOUR_NS = 1_800 * 10**9
_OTHER_ZONE = "Etc/GMT+5"


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """The plan's keys on times: their format, and the zone of those without one."""

    form: str | None = None
    zone: str | None = None


class ColumnTimes:
    """Reads the times of one column, in order.

    Times since the start of a test count from when the first new line was seen, so the generator's clock does not
    matter. In the hour that a clock repeats in autumn, the second one is taken if times would go back otherwise. Raises
    DataError for times that cannot be read or lack a zone.
    """

    def __init__(self, sample: Sequence[str], time_format: TimeFormat, decimal: str, who: str) -> None:
        options = TimeOptions(time_format.form, time_format.zone, 0, decimal)
        self._elapsed = _differs(sample, options, replace(options, start_ns=_DAY_NS), who)
        naive = _differs(sample, replace(options, zone="UTC"), replace(options, zone=_OTHER_ZONE), who)
        if naive and time_format.zone is None and not self._elapsed:
            raise DataError(f"{who}: its times have no time zone: set it (tz: Europe/Berlin), or use time: arrival")
        self._zone = zone_of(time_format.zone) if naive else None
        self._reading = time_reading(sample, options, who)
        self._start_ns: int | None = None
        self.newest_ns: int | None = None

    def read(self, cells: Sequence[str], moment: Moment) -> tuple[list[bool], list[int]]:
        """Which cells are possible times, and the times (ns)."""
        read = self._reading.read(cells)
        good, time_ns = ~read.bad, read.time_ns
        if self._elapsed:
            time_ns = self._since_start(read, moment)
        else:
            if self._zone is not None:
                time_ns = np.array([self._meant(moment_ns, moment) for moment_ns in time_ns.tolist()], dtype=np.int64)
            if bool(good.any()):
                self.newest_ns = int(time_ns[np.flatnonzero(good)[-1]])
        return (good & (time_ns <= moment.limit_ns)).tolist(), time_ns.tolist()

    def _since_start(self, read: Moments, moment: Moment) -> NDArray[np.int64]:
        """Absolute times; those of old lines are 0 (1970), since the start of their test is unknown."""
        good = ~read.bad
        if self._start_ns is None and not moment.old and bool(good.any()):
            self._start_ns = moment.now_ns - int(read.time_ns[np.flatnonzero(good)[-1]])
        if self._start_ns is None:
            return read.time_ns * 0
        return read.time_ns + self._start_ns

    def _meant(self, time_ns: int, moment: Moment) -> int:
        assert self._zone is not None
        later_ns = second_of(time_ns, self._zone)
        before, first = self.newest_ns, time_ns
        if later_ns != time_ns:
            if before is None:
                first = min(time_ns, later_ns, key=lambda candidate_ns: abs(candidate_ns - moment.now_ns))
            elif time_ns < before - _HALF_HOUR_NS:
                first = later_ns
        self.newest_ns = first
        return first


def _differs(sample: Sequence[str], first_options: TimeOptions, second_options: TimeOptions, who: str) -> bool:
    """True if the two options yield different times for the same cells."""
    first, second = (time_reading(sample, options, who).read(sample) for options in (first_options, second_options))
    return bool((first.time_ns != second.time_ns)[~first.bad & ~second.bad].any())
