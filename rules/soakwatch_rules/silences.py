"""Silences of sources: whose fault, and where all of a target's management was silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch_rules.rule import Ledger, Silence, Window
from soakwatch_rules.spans import common, joined, overlap_s

_OWN = frozenset({"missed", "gap"})  # the monitor was late, or did not run: the source was not asked
_QUICK = 3.0  # a source asked this much more seldom than the quickest cannot contradict a short silence
_LEAST = 3.0  # intervals: shorter silences are not kept


def of_monitor(lost: Mapping[str, int]) -> bool:
    """Whether the monitor itself is why at least half of the polls brought nothing."""
    total = sum(lost.values())
    return total > 0 and 2 * sum(lost.get(how, 0) for how in _OWN) >= total


def unanswered(silence: Silence) -> bool:
    """Whether the source was asked and did not answer."""
    return sum(silence.lost.values()) > 0 and not of_monitor(silence.lost)


def silent_all(ledgers: Sequence[Ledger]) -> tuple[Window, ...]:
    """Where no source of a target answered although they were asked; () without sources.

    A source that is asked over three times as seldom as the quickest one is left out: it would have had nothing to
    say.
    """
    asked = [ledger for ledger in ledgers if ledger.due]
    if not asked:
        return ()
    quickest = min(ledger.interval_s for ledger in asked)
    spans: Sequence[Window] | None = None
    for ledger in asked:
        if ledger.interval_s <= _QUICK * quickest:
            own = joined(s.window for s in ledger.silences if unanswered(s))
            spans = own if spans is None else common(spans, own)
    return tuple(spans or ())


def speaks_of(ledger: Ledger, silent: Sequence[Window], window: Window) -> bool:
    """Whether a source was asked often enough to have answered in a stretch, and did: not silent in half of it.

    ``silent`` are its silences, joined.
    """
    if not ledger.got or _LEAST * ledger.interval_s > window.seconds:
        return False
    return 2 * overlap_s(window, silent) < window.seconds
