"""A database in memory: points as InfluxDB keeps them, the same key and time once, its fields merged."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from soakwatch.transfer.sinks.abc import RefusedLine, Sink
from soakwatch.transfer.sinks.block import Block
from soakwatch.transfer.sinks.feed import Feed

_SPLIT = re.compile(r"(?<!\\) ")
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^,]+)')
Fields = dict[str, float | str]


@dataclass(frozen=True)
class Anywhere:
    """Where it writes."""

    where: str = "memory"
    secrets: tuple[str, ...] = ()
    replay_s: float = 0.0
    grain_ns: int = 1

    def open(self, refuse: Callable[[RefusedLine], None], timeout_s: float | None = None) -> Sink:
        """It is open already."""
        raise NotImplementedError


@dataclass
class MemorySink:
    """Keeps the points; ``refuses`` is the begin of lines that it never takes."""

    to: Anywhere = Anywhere()
    refuses: bytes = b"#"
    written: int = 0
    refused: int = 0
    connections: int = 1
    size: int = 20_000
    points: dict[tuple[str, int], Fields] = field(default_factory=dict)

    def write(self, lines: Block) -> None:
        """Take them."""
        for line in lines.lines():
            if line.startswith(self.refuses):
                self.refused += 1
                continue
            self.written += 1
            head, rest = _SPLIT.split(line.decode(), maxsplit=1)
            fields, _, time_ns = rest.rpartition(" ")
            point = self.points.setdefault((head, int(time_ns)), {})
            point.update(
                {name: value.strip('"') if value[0] == '"' else float(value) for name, value in _FIELD.findall(fields)}
            )

    def try_out(self) -> None:
        """Always."""

    def close(self) -> None:
        """Nothing is open."""

    def of(self, measurement: str, **tags: str) -> list[tuple[int, Fields]]:
        """The points of a measurement that have these tags, in order of time."""
        wanted = {f"{name}={value}" for name, value in tags.items()}
        return sorted(
            (
                (time_ns, fields)
                for (head, time_ns), fields in self.points.items()
                if self._is(head, measurement, wanted)
            ),
            key=lambda point: point[0],
        )

    @staticmethod
    def _is(head: str, measurement: str, wanted: set[str]) -> bool:
        name, *tags = head.replace("\\ ", " ").split(",")
        return name == measurement and wanted <= set(tags)

    def states(self, row: str, begin_ns: int) -> list[tuple[float, str]]:
        """A strip: when its state changed, in seconds after ``begin_ns``, and to what."""
        changes: list[tuple[float, str]] = []
        for time_ns, fields in self.of("soakwatch_timeline", row=row):
            if not changes or changes[-1][1] != fields["state"]:
                changes.append(((time_ns - begin_ns) / 1e9, str(fields["state"])))
        return changes

    def verdict(self) -> Mapping[str, float | str]:
        """The one point of the run."""
        ((_, fields),) = self.of("soakwatch_verdict")
        return fields


def feed_of(folder: Path, sink: MemorySink, cursor: str = "", *, beside_run: bool = False) -> Feed:
    """A feed of a record into it."""
    return Feed(folder, "run", sink, Event(), lambda _: None, cursor, beside_run=beside_run)
