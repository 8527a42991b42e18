"""Changes in the samples that make the live judge run at once instead of at the next minute.

Events trigger it through the record; this module watches the polls for what no event reports: a restarted process, a
reboot, a new crash, load that no longer comes back, a source that stops answering.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from soakwatch_model.flow import BACK, PACKETS, REQUESTS
from soakwatch_model.metric import BY_NAME, CATALOGUE, COUNTER, flows
from soakwatch_model.sample import Poll, PollOutcome

STANDSTILLS_NS: Final = (11_000_000_000, 31_000_000_000)
"""Standstills of this length trigger a judgement: rules detect standstills from 10 s and hangs from 30 s on."""
_CHANGED: Final = frozenset(metric.name for metric in CATALOGUE if metric.urgent)
_FELL: Final = frozenset({"system.uptime"})
_SENT_BACK: Final[Mapping[str, bool]] = {  # whether it counts
    name: BY_NAME[name].kind == COUNTER for name in flows(BACK, PACKETS, REQUESTS)
}
_READ: Final = _CHANGED | _FELL | _SENT_BACK.keys()
_SLACK_S: Final = 2.0  # start times rest on the kernel's time of boot, which is rounded to the second

_Key = tuple[int, str, str]


class EarlyTriggers:
    """Watches every poll for what should be judged at once; ``take`` says whether one came since the last call."""

    def __init__(self) -> None:
        self._last: dict[_Key, tuple[int, float]] = {}
        self._stands: dict[_Key, tuple[int, int]] = {}  # since when, and how many of ``STANDSTILLS_NS`` are over
        self._wake = False

    def add(self, poll: Poll) -> None:
        """Examine one more poll."""
        answered = poll.outcome is PollOutcome.OK
        self._standing((poll.source, "", ""), poll.due_ns, poll.due_ns, stands=not answered)
        for sample in poll.answer.samples:
            if sample.metric in _READ:
                key = (poll.source, sample.metric, sample.object)
                before = self._last.get(key)
                if before is not None and before[1] == sample.value and sample.metric in _CHANGED:
                    continue  # most of them, at each poll
                self._read(key, sample.time_ns, float(sample.value))

    def take(self) -> bool:
        """Whether there was a trigger since the last call; resets it."""
        wake, self._wake = self._wake, False
        return wake

    def _read(self, key: _Key, time_ns: int, value: float) -> None:
        before = self._last.get(key)
        self._last[key] = time_ns, value
        if before is None:
            return
        metric, (before_ns, was) = key[1], before
        if metric in _SENT_BACK:
            self._standing(key, before_ns, time_ns, stands=value <= was if _SENT_BACK[metric] else value <= 0)
        elif metric in _FELL:
            self._wake |= value < was
        else:
            self._wake |= abs(value - was) > (_SLACK_S if metric == "process.start_time" else 0.0)

    def _standing(self, key: _Key, since_ns: int, now_ns: int, *, stands: bool) -> None:
        """Track a standstill: it triggers when it reaches each of ``STANDSTILLS_NS``, and when it ends after that."""
        since_ns, over = self._stands.get(key, (since_ns, 0))
        if not stands:
            self._wake |= over > 0
            self._stands.pop(key, None)
            return
        now_over = sum(now_ns - since_ns >= length_ns for length_ns in STANDSTILLS_NS)
        self._wake |= now_over > over
        self._stands[key] = since_ns, now_over
