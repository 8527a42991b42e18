"""Reads what JMeter writes with ``-l FILE`` (a JTL): a CSV row or XML element per sample.

Sources: the JMeter manual, chapter "Listeners" (fields of CSV and attributes of XML). A sample is written when it ends,
so its time is ``timeStamp + elapsed``. Sums of transaction controllers and nested samples are left out: they would
count twice. CSV needs its header (``jmeter.save.saveservice.print_field_names``, on since 3.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from html import unescape

from soakwatch.sources.abc import SourceError
from soakwatch.sources.result_files.lines import Rows, cells_of, epoch_ns, lines_in, positive
from soakwatch.sources.result_files.result_file import Moment, ParsedLines
from soakwatch.sources.result_files.ticks import ANSWERED, FAILED, Ticks
from soakwatch_model.sample import Sample

_NEEDED = ("timeStamp", "elapsed", "success")
_TRANSACTION = "Number of samples in transaction"
_OPENS = re.compile(r"<(httpSample|sample)\s([^>]*?)(/?)>")
_CLOSES = re.compile(r"</(?:httpSample|sample)>")
_ATTRIBUTE = re.compile(r"""(\w+)=(?:"([^"]*)"|'([^']*)')""")
_OF_XML = {
    "ts": "timeStamp",
    "t": "elapsed",
    "s": "success",
    "by": "bytes",
    "sby": "sentBytes",
    "na": "allThreads",
    "rm": "responseMessage",
    "sc": "SampleCount",
    "ec": "ErrorCount",
}
_BYTES = {"bytes": "load.rx.bytes", "sentBytes": "load.tx.bytes"}
_DATES = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S")


class JmeterReader:
    """Reads the samples of a JTL; ``zone`` is for times written as dates."""

    def __init__(self, ticks_of_ns: int, begin_ns: int, zone: tzinfo | None) -> None:
        self._width, self._begin_ns, self._zone = ticks_of_ns, begin_ns, zone
        self.begin()

    def begin(self) -> None:
        """A new run of JMeter."""
        self._ticks = Ticks(self._width, self._begin_ns, (ANSWERED, FAILED))
        self.go_on()

    def go_on(self) -> None:
        """See ``result_file.Continues``."""
        self._header: list[str] | None = None
        self._sign = ","
        self._xml = False
        self._rows = Rows()
        self._depth = 0  # of nested elements

    def rest(self, now_ns: int) -> list[Sample]:
        """See ``result_file.Continues``."""
        return self._ticks.rested(now_ns)

    def take(self, lines: Sequence[str], moment: Moment) -> ParsedLines:
        """See ``result_file.Reader``."""
        taken = ParsedLines()
        if self._header is None and not self._xml:
            lines = self._head(lines)
        if moment.old and moment.arrival:
            return taken
        if self._xml:
            self._take_xml(lines, moment, taken)
            return taken
        rows, torn = self._rows.whole(lines)
        if torn:
            taken.cannot(f"{torn[0][:80]!r} has an unclosed quote", len(torn))
        for row in rows:
            cells = cells_of(row, self._sign)
            if cells == self._header:
                continue  # a new run of JMeter appends to the same file
            if self._header is None or len(cells) != len(self._header):
                taken.cannot(f"{row[:80]!r} has {len(cells)} cells instead of {len(self._header or ())}", lines_in(row))
                continue
            self._note(dict(zip(self._header, cells, strict=True)), moment, taken)
        return taken

    def ended(self, moment: Moment) -> list[Sample]:
        """See ``result_file.Reader``."""
        return self._ticks.arrived(moment.now_ns) if moment.arrival else self._ticks.ended(moment.now_ns)

    def notes(self) -> tuple[str, ...]:
        """See ``result_file.Reader``."""
        return self._ticks.notes()

    def _head(self, lines: Sequence[str]) -> Sequence[str]:
        first, *rest = [line for line in lines if line.strip()] or [""]
        if not first:
            return ()
        if first.lstrip().startswith("<"):
            self._xml = True
            return lines
        sign = max(",;\t|", key=first.count)
        header = cells_of(first, sign)
        missing = [name for name in _NEEDED if name not in header]
        if missing:
            raise SourceError(f"not a JTL with a header: {missing[0]} is missing in {first[:60]!r}")
        self._header, self._sign = header, sign
        return rest

    def _take_xml(self, lines: Sequence[str], moment: Moment, taken: ParsedLines) -> None:
        for line in lines:
            opened = _OPENS.search(line)
            if opened is not None:
                if self._depth == 0:
                    attributes = {
                        key: unescape(double_quoted or single_quoted)
                        for key, double_quoted, single_quoted in _ATTRIBUTE.findall(opened[2])
                    }
                    self._note({_OF_XML.get(key, key): text for key, text in attributes.items()}, moment, taken)
                self._depth += not opened[3]
            elif "<httpSample" in line or "<sample " in line:
                taken.cannot(f"{line[:80]!r} is cut off")
            self._depth = max(0, self._depth - len(_CLOSES.findall(line)))

    def _note(self, cells: Mapping[str, str], moment: Moment, taken: ParsedLines) -> None:
        if cells.get("responseMessage", "").startswith(_TRANSACTION):
            return
        try:
            took_s = positive(cells["elapsed"]) * 1e-3
            time_ns = moment.now_ns if moment.arrival else self._begun_ns(cells["timeStamp"]) + round(took_s * 1e9)
            many = round(positive(cells.get("SampleCount") or 1))
            failed = round(positive(cells.get("ErrorCount") or not _truth(cells["success"])))
            sizes = {metric: round(positive(cells[name])) for name, metric in _BYTES.items() if cells.get(name)}
            users = positive(cells["allThreads"]) if cells.get("allThreads") else None
        except (ValueError, KeyError, OverflowError):
            taken.cannot(f"{','.join(cells.values())[:80]!r} is not a sample of JMeter")
            return
        taken.newest_ns = time_ns
        if time_ns > moment.limit_ns:
            taken.cannot(f"its time {cells['timeStamp']} is ahead of now")
            return
        self._ticks.count(time_ns, ANSWERED, max(0, many - failed))
        self._ticks.count(time_ns, FAILED, failed)
        self._ticks.took(time_ns, took_s)
        for metric, size in sizes.items():
            self._ticks.count(time_ns, metric, size)
        if users is not None:
            self._ticks.level(time_ns, "load.users", users)
        taken.active = True

    def _begun_ns(self, text: str) -> int:
        if text.isdecimal():
            return epoch_ns(text)
        for form in _DATES:
            try:
                moment = datetime.strptime(text, form)  # noqa: DTZ007 - the zone follows
            except ValueError:
                continue
            if self._zone is None:
                raise SourceError(f"the time {text} has no time zone: set it (tz: Europe/Berlin), or use time: arrival")
            return round(moment.replace(tzinfo=self._zone).timestamp() * 1000) * 10**6
        return epoch_ns(text)


def _truth(text: str) -> bool:
    """Parses true or false. Raises ValueError."""
    return ("false", "true").index(text.lower()) == 1
