"""How unanswered polls ended, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from soakwatch_model.sample import PollOutcome

_ENDED: Final = {
    PollOutcome.FAILED: "failed",
    PollOutcome.LOSSY: "lost requests on the way",
    PollOutcome.TIMEOUT: "timed out",
    PollOutcome.OVERRUN: "skipped while the one before went on",
    PollOutcome.MISSED: "missed by the monitor",
    PollOutcome.HELD_BACK: "skipped while it was down",
    PollOutcome.GAP: "due while the monitor was not running",
}


def lost_polls(lost: Mapping[str, int]) -> str:
    """How many polls ended how; ``lost`` counts by values of ``PollOutcome``, unknown ones keep their name.

    >>> lost_polls({"held back": 25, "timeout": 1_234, "failed": 0}), lost_polls({})
    ('1,234 timed out, 25 skipped while it was down', '')
    """
    words = {outcome.value: text for outcome, text in _ENDED.items()}
    order = {name: place for place, name in enumerate(words)}
    found = sorted((how for how, number in lost.items() if number), key=lambda how: (order.get(how, len(order)), how))
    return ", ".join(f"{lost[how]:,} {words.get(how, how)}" for how in found)
