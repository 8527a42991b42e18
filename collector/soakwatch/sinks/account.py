"""A run's account as lines: everything a verdict rests on besides readings and polls, and how many of them there are.

Readings and polls are points of their own. What else a record holds (its plan without secrets, targets, sources, what
each series is, phases, events, faults) goes as one JSON text in parts into the measurement ``soakwatch_record``:
``soakwatch judge influxdb://…?run=`` then gives the verdict that the record gives, and finds out what is missing.
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
from soakwatch.sinks.lines import Value, key, line

MEASUREMENT: Final = "soakwatch_record"
VERSION: Final = 1
PART: Final = 7_000  # characters of one text; a line holds each quote and backslash twice
LEFT_OUT: Final = frozenset({"verdict", "reason", SO_FAR})
"""What a record says of itself that is judged anew from the copy."""


def account_lines(path: Path, run: str, grain_ns: int = 1) -> Iterator[bytes]:
    """The lines of a record, without line ends; none for a record without a poll. Raises RecordError.

    ``grain_ns`` is what the times of the samples were cut to: the account says so, for the copy then differs.

    The same record gives the same lines, so that writing them again changes nothing.
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
    """The account as plain JSON data. Raises RecordError."""
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
    """When another source stood in for the owner of a series, whose own polls came late: the record leaves these
    readings out, and in the database it is no longer known whose they are."""
    if series.shared_ns is None:
        return []
    left: list[int] = np.setdiff1d(series.shared_ns, view.series(series.key).time_ns).tolist()
    return left
