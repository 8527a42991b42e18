"""Reads what wrk and wrk2 print at their end; before that they print nothing, and never a time.

Sources: the output of wrk 4.1, and the README of wrk2 (whose percentiles have decimals, and with ``-U`` a second,
uncorrected table, which is ignored). wrk counts answers of status 4xx or 5xx as requests, and missing ones as socket
errors; ``load.requests`` are answers that are neither.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from soakwatch.sources.generator_tree import told_command
from soakwatch.sources.result_files.lines import positive
from soakwatch.sources.result_files.result_file import Moment, ParsedLines
from soakwatch.sources.result_files.ticks import ANSWERED, FAILED
from soakwatch_model.sample import Sample
from soakwatch_model.tree import Tree

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = r"(\d+(?:\.\d+)?)(us|ms|s|m|h)"
_BEGIN = re.compile(r"Running (\S+) test @ (\S*)")
_CONNECTIONS = re.compile(r"\s*(\d+) threads? and (\d+) connections?\s*")
_LATENCY = re.compile(rf"\s*Latency\s+{_TIME}\s+{_TIME}\s+{_TIME}\s.*")
_QUANTILE = re.compile(rf"\s*(\d+(?:\.\d+)?)%\s+{_TIME}\s*")
_DONE = re.compile(rf"\s*(\d+) requests in {_TIME}, .* read\s*")
_SOCKET = re.compile(r"\s*Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)\s*")
_STATUS = re.compile(r"\s*Non-2xx or 3xx responses: (\d+)\s*")
_END = re.compile(r"Transfer/sec:\s.*")
_UNABLE = re.compile(r"unable to (?:connect|resolve|create)\b.*")


class WrkReader:
    """Reads outputs of wrk in sequence and keeps counting over them."""

    def __init__(self) -> None:
        self._totals = {ANSWERED: 0, FAILED: 0, "load.connections.failed": 0}
        self._settings: dict[str, Tree] = {}
        self.begin()

    def begin(self) -> None:
        """A new file: the totals stay, since each run of wrk counts from zero."""
        self._forget()

    def go_on(self) -> None:
        """See ``result_file.Continues``."""
        self._forget()

    def rest(self, now_ns: int) -> list[Sample]:
        """See ``result_file.Continues``."""
        rates = [Sample(name, "", 0.0, now_ns) for name in ("load.request.rate", "load.failure.rate")]
        return [*(Sample(metric, "", total, now_ns) for metric, total in self._totals.items()), *rates]

    def _forget(self) -> None:
        self._requests: int | None = None
        self._seconds = 0.0
        self._levels: dict[tuple[str, str], float] = {}
        self._socket, self._refused, self._status = 0, 0, 0
        self._corrected = True

    def take(self, lines: Sequence[str], moment: Moment) -> ParsedLines:
        """See ``result_file.Reader``."""
        taken = ParsedLines()
        for line in lines:
            if _UNABLE.fullmatch(line):
                taken.cannot(line)
            elif _BEGIN.match(line):
                if self._requests is not None:
                    taken.cannot("an output of wrk without its end")
                self._forget()
                self._called(line)
            elif _END.fullmatch(line):
                if self._requests is None:
                    taken.cannot("the end of an output of wrk without its start")
                elif not moment.old:
                    taken.samples += self._samples(moment.now_ns)
                self._forget()
            else:
                self._called(line)
                self._note(line)
        return taken

    def _called(self, line: str) -> None:
        if match := _BEGIN.match(line):
            self._settings = {"duration": match[1], "url": told_command([match[2]])}
        elif match := _CONNECTIONS.fullmatch(line):
            self._settings |= {"threads": int(match[1]), "connections": int(match[2])}

    def settings(self) -> Mapping[str, Tree]:
        """See ``TellsSettings``: the head of the last output."""
        return dict(self._settings)

    def ended(self, moment: Moment) -> list[Sample]:  # noqa: ARG002 - an output is complete or not there
        """See ``result_file.Reader``."""
        return []

    def notes(self) -> tuple[str, ...]:
        """See ``result_file.Reader``."""
        return ()

    def _note(self, line: str) -> None:
        if match := _DONE.fullmatch(line):
            self._requests, self._seconds = int(match[1]), _seconds(match[2], match[3])
        elif match := _CONNECTIONS.fullmatch(line):
            self._levels["load.connections", ""] = int(match[2])
        elif match := _LATENCY.fullmatch(line):
            self._levels["load.latency", "quantile=mean"] = _seconds(match[1], match[2])
            self._levels["load.latency", "quantile=max"] = _seconds(match[5], match[6])
        elif "Uncorrected" in line:
            self._corrected = False
        elif (match := _QUANTILE.fullmatch(line)) and self._corrected and positive(match[1]) <= 100:
            share = positive(match[1])
            name = "max" if share == 100 else f"p{share:g}"
            self._levels["load.latency", f"quantile={name}"] = _seconds(match[2], match[3])
        elif match := _SOCKET.fullmatch(line):
            self._refused = int(match[1])
            self._socket = sum(map(int, match.groups()))
        elif match := _STATUS.fullmatch(line):
            self._status = int(match[1])

    def _samples(self, now_ns: int) -> list[Sample]:
        assert self._requests is not None
        counts = {
            ANSWERED: max(0, self._requests - self._status),
            FAILED: self._status + self._socket,
            "load.connections.failed": self._refused,
        }
        for metric, many in counts.items():
            self._totals[metric] += many
        samples = [Sample(metric, "", total, now_ns) for metric, total in self._totals.items()]
        if self._seconds > 0:
            samples.append(Sample("load.request.rate", "", counts[ANSWERED] / self._seconds, now_ns))
            samples.append(Sample("load.failure.rate", "", counts[FAILED] / self._seconds, now_ns))
        if self._requests == 0:  # then the times are meaningless zeros
            self._levels = {key: value for key, value in self._levels.items() if key[0] != "load.latency"}
        return samples + [Sample(metric, name, value, now_ns) for (metric, name), value in self._levels.items()]


def _seconds(number: str, unit: str) -> float:
    return positive(number) * _SECONDS[unit]
