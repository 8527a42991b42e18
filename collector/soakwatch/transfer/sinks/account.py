"""A run's account as lines: all that a verdict rests on besides readings and polls, and how many of those there are.

What a record holds besides readings and polls (its plan without secrets, targets, sources, the series, phases, events,
faults) is one JSON text, written in parts into the measurement ``soakwatch_record``. From it ``soakwatch judge
influxdb://…?run=`` gives the same verdict as the record, and detects missing data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from soakwatch.judge.rates import META as SO_FAR
from soakwatch.record import RecordView
from soakwatch.record.inventory import Inventory, SeriesInventory, inventory_of
from soakwatch.transfer.sinks.lines import Value, key, line

MEASUREMENT: Final = "soakwatch_record"
VERSION: Final = 1
PART: Final = 7_000  # characters of a part; a line doubles each quote and backslash
LEFT_OUT: Final = frozenset({"verdict", "reason", SO_FAR})
"""Metas that judging the copy computes anew."""


def account_lines(path: Path, run: str, grain_ns: int = 1) -> Iterator[bytes]:
    """The lines of a record, without line ends; none for a record without a poll. Raises RecordError.

    ``grain_ns`` is the precision to which sample times were rounded down, which the account states. The same record
    gives the same lines, so that writing them again changes nothing.
    """
    with RecordView.open(path) as view:
        inventory = inventory_of(path)
        if not any(inventory.polls.values()):
            return
        begin_ns = view.window().begin_ns
        account = account_of(view, inventory) | ({} if grain_ns == 1 else {"grain_ns": grain_ns})
        text = json.dumps(account, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    parts = [text[low : low + PART] for low in range(0, len(text), PART)]
    head = key(MEASUREMENT, {"run": run}, {})
    for number, part in enumerate(parts):
        fields: dict[str, Value] = {"text": part, "part": float(number), "parts": float(len(parts)), "digest": digest}
        yield line(head, fields, begin_ns + number)


def account_of(view: RecordView, inventory: Inventory) -> dict[str, object]:
    """The account as JSON data. Raises RecordError."""
    events = [(stored.id, stored.origin, stored.event) for stored in view.events()]
    return {
        "version": VERSION,
        "meta": {name: value for name, value in view.metas().items() if name not in LEFT_OUT},
        "targets": dict(view.roles()),
        "sources": [
            [s.id, s.target, s.name, s.label, s.interval_ns, s.required, inventory.polls.get(s.id, 0)]
            for s in view.sources()
        ],
        "series": [
            [s.key.target, s.key.metric, s.key.object, s.source, s.unit, s.kind, s.whole, s.readings]
            for s in inventory.series
        ],
        "left_out": [
            [number, times] for number, stored in enumerate(inventory.series) if (times := _left_out(view, stored))
        ],
        "phases": [list(phase) for phase in inventory.phases],
        "spans": [[span.begin_ns, span.end_ns] for span in view.spans()],
        "events": [
            [
                number,
                origin,
                e.target,
                e.kind,
                e.object,
                e.begin_ns,
                e.end_ns,
                dict(e.detail),
                dict(e.expect),
                e.deadline_ns,
            ]
            for number, origin, e in events
        ],
        "faults": [[f.source, f.metric, f.object, f.text, f.first_ns, f.last_ns, f.count] for f in view.faults()],
        "errors": list(inventory.errors),
    }


def _left_out(view: RecordView, series: SeriesInventory) -> list[int]:
    """The times of readings that the record leaves out because another source stood in for the series' owner, whose
    polls came late. The database does not tell them apart."""
    if series.shared_ns is None:
        return []
    left: list[int] = np.setdiff1d(series.shared_ns, view.series(series.key).time_ns).tolist()
    return left
