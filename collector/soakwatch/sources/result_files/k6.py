"""Reads what k6 writes with ``--out json=FILE`` or ``--out csv=FILE``: a line per measurement of each request.

Lines of other metrics are not parsed. Sources: the k6 documentation on both outputs, and files of k6 0.57. k6 counts
failed requests in ``http_reqs`` too; ``load.requests`` are those that did not fail.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from soakwatch.sources.abc import SourceError
from soakwatch.sources.result_files.lines import epoch_ns, positive
from soakwatch.sources.result_files.result_file import Moment, ParsedLines
from soakwatch.sources.result_files.ticks import ANSWERED, FAILED, Ticks
from soakwatch_model.sample import Sample

_BLOCKED = "load.queue_full"
_MARK = '"metric":"'
_CSV_HEAD = "metric_name,timestamp,metric_value"


@dataclass(frozen=True, slots=True)
class K6Names:
    """The k6 metrics of requests, their failures and their duration (ms)."""

    requests: str = "http_reqs"
    failed: str = "http_req_failed"
    duration: str = "http_req_duration"


class K6Reader:
    """Reads either format; the first line shows which it is."""

    def __init__(self, ticks_of_ns: int, begin_ns: int, names: K6Names) -> None:
        self._width, self._begin_ns, self._names = ticks_of_ns, begin_ns, names
        self._counters = {
            "data_sent": "load.tx.bytes",
            "data_received": "load.rx.bytes",
            "dropped_iterations": _BLOCKED,
        }
        self._wanted = {names.requests, names.failed, names.duration, "vus", *self._counters}
        self.begin()

    def begin(self) -> None:
        """A new run of k6, which counts from zero."""
        self._ticks = Ticks(self._width, self._begin_ns, (ANSWERED, _BLOCKED))
        self.go_on()

    def go_on(self) -> None:
        """See ``result_file.Continues``."""
        self._table: bool | None = None

    def rest(self, now_ns: int) -> list[Sample]:
        """See ``result_file.Continues``."""
        return self._ticks.rested(now_ns)

    def take(self, lines: Sequence[str], moment: Moment) -> ParsedLines:
        """See ``result_file.Reader``."""
        taken = ParsedLines()
        for line in lines:
            if self._table is None:
                self._table = self._is_table(line)
            if self._unwanted(line) or not line or (moment.old and moment.arrival):
                continue
            try:
                point = self._cells(line) if self._table else self._point(line)
                if point is not None:
                    self._note(*point, moment, taken)
            except (ValueError, TypeError, KeyError, RecursionError):
                taken.cannot(f"{line[:80]!r} is not a line of k6")
        return taken

    def ended(self, moment: Moment) -> list[Sample]:
        """See ``result_file.Reader``."""
        return self._ticks.arrived(moment.now_ns) if moment.arrival else self._ticks.ended(moment.now_ns)

    def notes(self) -> tuple[str, ...]:
        """See ``result_file.Reader``."""
        return self._ticks.notes()

    def _is_table(self, line: str) -> bool:
        if line.startswith(_CSV_HEAD):
            return True
        if not line.startswith("{"):
            raise SourceError(f"not an output of k6, which starts with {{ or {_CSV_HEAD}: {line[:40]!r}")
        return False

    def _unwanted(self, line: str) -> bool:
        if self._table:
            return line.partition(",")[0] not in self._wanted and line.count(",") > 1
        first, last = line.find(_MARK), line.rfind(_MARK)  # old versions have it last; a tag may have the same name
        if first < 0:
            return False
        names = {line[index + len(_MARK) :].partition('"')[0] for index in (first, last)}
        return names.isdisjoint(self._wanted)

    @staticmethod
    def _cells(line: str) -> tuple[str, str, float] | None:
        name, stamp, value, *_ = line.split(",", 3)
        return name, stamp, positive(value)

    @staticmethod
    def _point(line: str) -> tuple[str, str, float] | None:
        read = json.loads(line)
        if read["type"] != "Point":
            return None
        data = read["data"]
        return read["metric"], data["time"], positive(data["value"])

    def _note(self, name: str, stamp: str, value: float, moment: Moment, taken: ParsedLines) -> None:
        time_ns = epoch_ns(stamp)
        taken.newest_ns = time_ns
        if moment.arrival:
            time_ns = moment.now_ns
        elif time_ns > moment.limit_ns:
            taken.cannot(f"its time {stamp} is ahead of now")
            return
        if name == self._names.requests:
            self._ticks.count(time_ns, ANSWERED, round(value))
            taken.active = True
        elif name == self._names.failed:
            failed = round(value)
            self._ticks.count(time_ns, ANSWERED, -failed)
            self._ticks.count(time_ns, FAILED, failed)
        elif name == self._names.duration:
            self._ticks.took(time_ns, value * 1e-3)
        elif name == "vus":
            self._ticks.level(time_ns, "load.users", value)
            taken.active = taken.active or value > 0
        elif name in self._counters:
            self._ticks.count(time_ns, self._counters[name], round(value))
