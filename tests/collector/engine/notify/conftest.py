"""Messages that are sent by this process: one of its own, which imports Apprise, costs seconds of CPU each time."""

from __future__ import annotations

import warnings

import pytest
from tests.collector.engine.notify.notify_kit import SenderHere


@pytest.fixture
def sent_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be a process that sends is a call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Apprise imports
        from soakwatch.engine.notify import service

        service._schemas()
    monkeypatch.setattr("soakwatch.engine.notify.sending.Child", SenderHere)
