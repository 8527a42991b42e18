"""Texts that a run leaves in its record beside what it polled: their keys, and the set-up that they describe.

``encode``, ``decode`` and ``decode_ints`` are the codec of the record's blocks, for readings that such a text holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from soakwatch.core.event_kinds import IDENTITY
from soakwatch.core.labels import LABELS_KEY
from soakwatch.record._blocks import decode, decode_ints, encode
from soakwatch.record.source import ReportSource

__all__ = [
    "EARLIER",
    "GROWTH_KEY",
    "IMPORTED_KEY",
    "LEFT_OUT",
    "RULES_KEY",
    "SETUP",
    "UNPOLLED",
    "UNREAD",
    "decode",
    "decode_ints",
    "encode",
    "setup_of",
]

LEFT_OUT = "left_out"
"""The key of the columns that had readings left out, since their metric cannot have such values."""
UNREAD = "unread"
"""The key below which the record's account of an imported file lists the columns that the catalogue does not know."""

RULES_KEY = "rules"
"""The meta that holds, as JSON, the rules that were named when a table was imported."""
GROWTH_KEY = "growth"
"""The meta that holds, as JSON by metric, the bad direction of series outside of the catalogue."""
IMPORTED_KEY = "imported"
"""The meta that says, as JSON, which files were imported and what their columns became. No source owns an imported
series: the files are what they are."""
UNPOLLED = "table"
"""The name of a source of imported readings that were written when something happened: no poll was ever due."""
EARLIER = "earlier"
"""The meta with the set-up of the earlier run that was named when this one began: JSON with the keys of ``SETUP``,
``run`` (its folder), ``labels`` and ``identities`` (by target, key and text)."""
SETUP = ("versions", "fingerprint", "plan")


def setup_of(source: ReportSource, run: str = "") -> Mapping[str, object]:
    """The set-up of a run as another record keeps it under ``EARLIER``."""
    setup: dict[str, object] = {key: source.meta(key) or "" for key in (*SETUP, LABELS_KEY)}
    return {**setup, "run": run or source.meta("run") or "", "identities": _identities(source)}


def _identities(source: ReportSource) -> dict[str, str]:
    """The last identity that each device reported."""
    identities: dict[str, str] = {}
    events: Iterable[tuple[int, str, Mapping[str, str]]] = sorted(
        (
            (stored.event.begin_ns, stored.event.target, stored.event.detail)
            for stored in source.events()
            if stored.event.kind == IDENTITY
        ),
        key=lambda stored: stored[:2],
    )
    for _, target, detail in events:
        identities |= {f"{target} {key}": value for key, value in detail.items() if key != "changed"}
    return identities
