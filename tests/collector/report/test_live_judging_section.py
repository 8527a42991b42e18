"""The section "live_judging" of a report: what judging forgot while the run went on, and silence where it did not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from soakwatch.core.event_kinds import LIVE_FORGOT
from soakwatch.record import StoredEvent
from soakwatch.report.page import Page
from soakwatch.report.sections import live_judging
from soakwatch_model.event import Event


def page_with(*sentences: str) -> Page:
    """A page of a record whose live judge told so."""
    events = [StoredEvent(n, "monitor", Event(LIVE_FORGOT, "", "", n, n, {"text": s})) for n, s in enumerate(sentences)]
    return cast("Page", SimpleNamespace(source=SimpleNamespace(events=lambda: events)))


def test_what_was_forgotten_is_one_sentence_and_nothing_is_none() -> None:
    """The newest sentence stands for all: it counts from the start of the judge."""
    assert live_judging.blocks(page_with()) is None
    told = repr(live_judging.blocks(page_with("forgot 1", "forgot 2 events")))
    assert "Forgot 2 events." in told
    assert "forgot 1" not in told
