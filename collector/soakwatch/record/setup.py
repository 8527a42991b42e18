"""The set-up that a record tells of: software, hardware and configuration of each target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from soakwatch.core.event_kinds import IDENTITY
from soakwatch.record.source import ReportSource

EARLIER = "earlier"
"""The meta of a record that holds the set-up of a run that was named when it began: JSON with the keys of ``SETUP``,
``run`` (its folder) and ``identities`` (by target, key and text)."""
SETUP = ("versions", "fingerprint", "plan")


def setup_of(source: ReportSource, run: str = "") -> Mapping[str, object]:
    """The set-up of a run as another record keeps it under ``EARLIER``."""
    told: dict[str, object] = {key: source.meta(key) or "" for key in SETUP}
    return {**told, "run": run or source.meta("run") or "", "identities": _identities(source)}


def _identities(source: ReportSource) -> dict[str, str]:
    """The last that each device said of itself."""
    found: dict[str, str] = {}
    events: Iterable[tuple[int, str, Mapping[str, str]]] = sorted(
        (
            (one.event.begin_ns, one.event.target, one.event.detail)
            for one in source.events()
            if one.event.kind == IDENTITY
        ),
        key=lambda one: one[:2],
    )
    for _, target, detail in events:
        found |= {f"{target} {key}": value for key, value in detail.items() if key != "changed"}
    return found
