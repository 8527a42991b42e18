"""Steps of the monitor's wall clock while the run went on; silence where there was none."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.report.blocks import Block, Text
from soakwatch.report.page import Page
from soakwatch.runs.clock_steps import clock_steps, step_words

ORDER = 33
TITLE = "Clock of the monitor"
ALWAYS = True
_MAX_STEPS = 20


def blocks(page: Page) -> Sequence[Block] | None:
    """A sentence for each step, and what it means for the run; None where there was none."""
    steps = clock_steps(page.source.events())
    if not steps:
        return None
    said = [Text(f"{step_words(stored)} UTC".replace("the", "The", 1) + ".") for stored in steps[:_MAX_STEPS]]
    if len(steps) > _MAX_STEPS:
        said.append(Text(f"{len(steps) - _MAX_STEPS} later steps are in the record."))
    why = (
        "All times of this run follow a clock that does not step, so no sample and no duration is wrong; times in the"
        " device's own logs may differ by this from the run's."
    )
    return (*said, Text(why, tone="soft"))
