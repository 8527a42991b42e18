"""Events and findings of a record, and one run of the list, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from soakwatch.record import RecordView, finding_to_json
from soakwatch.record.lifecycle import lifecycle_of
from soakwatch.runs.catalog import RunLine
from soakwatch.runs.mark_event import moment_text
from soakwatch.web.json_events import event_data


def events_data(folder: Path, after: int, limit: int) -> Mapping[str, object]:
    """Events with ids above ``after``, in the order of recording; ``more`` if there are further ones."""
    with RecordView.open(folder) as view:
        events = sorted((stored for stored in view.events() if stored.id > after), key=lambda stored: stored.id)
    return {"events": [event_data(stored) for stored in events[:limit]], "more": len(events) > limit}


def findings_data(folder: Path) -> Mapping[str, object]:
    """The findings of the latest evaluation: the final one, or the live one while the run goes on.

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
        "labels": dict(line.labels),
        "state": line.state,
        "begin": None if line.begin_ns is None else moment_text(line.begin_ns),
        "seconds": line.seconds,
        "verdict": line.verdict,
        "trouble": line.trouble,
    }
