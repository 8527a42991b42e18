"""What of a record is told over the web: its events and its findings, as JSON can hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from soakwatch.record import RecordView, finding_to_json
from soakwatch.record.lifecycle import lifecycle_of
from soakwatch.runs.catalog import RunLine
from soakwatch.runs.mark_event import moment_text
from soakwatch.web.wire import event_data


def events_data(folder: Path, after: int, most: int) -> Mapping[str, object]:
    """Events with higher numbers than ``after``, in the order in which they were told; ``more`` if there are others."""
    with RecordView.open(folder) as view:
        told = sorted((stored for stored in view.events() if stored.id > after), key=lambda stored: stored.id)
    return {"events": [event_data(stored) for stored in told[:most]], "more": len(told) > most}


def findings_data(folder: Path) -> Mapping[str, object]:
    """The findings of the latest judging: the final one, or the live one while the run goes on.

    ``until`` is the time up to which the record reaches, null if it is empty.
    """
    with RecordView.open(folder) as view:
        ended = view.meta("verdict") is not None
        findings = view.findings(live=not ended)
        last_ns = view.last_ns
        return {
            "state": lifecycle_of(view.metas(), folder),
            "verdict": view.meta("verdict"),
            "reason": view.meta("reason"),
            "until": None if last_ns is None else moment_text(last_ns),
            "findings": [json.loads(finding_to_json(finding)) for finding in findings],
        }


def line_data(line: RunLine) -> Mapping[str, object]:
    """One run of a list."""
    return {
        "run": line.folder.name,
        "name": line.name,
        "state": line.state,
        "begin": None if line.begin_ns is None else moment_text(line.begin_ns),
        "seconds": line.seconds,
        "verdict": line.verdict,
        "trouble": line.trouble,
    }
