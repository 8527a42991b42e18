"""What judging could not remember while the run went on; silence where it remembered all."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.event_kinds import LIVE_FORGOT
from soakwatch.report.blocks import Block, Text
from soakwatch.report.page import Page

ORDER = 47
TITLE = "Judging while the run went on"


def blocks(page: Page) -> Sequence[Block] | None:
    """A sentence on what was forgotten, and that the verdict does not depend on it; None where nothing was."""
    forgotten = [stored.event for stored in page.source.events() if stored.event.kind == LIVE_FORGOT]
    if not forgotten:
        return None
    text = forgotten[-1].detail.get("text", "")
    return (Text(f"{text[:1].upper()}{text[1:]}."),)
