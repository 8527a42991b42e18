"""Silences of sources: whose fault, and where all of a target's management was silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from soakwatch_model.case import Ledger, Silence
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.spans import common, joined, overlap_s

_OWN = frozenset({"missed", "gap"})  # the monitor was late, or did not run: the source was not asked
_QUICK = 3.0  # a source asked this much more seldom than the quickest cannot contradict a short silence
_MIN_INTERVALS = 3.0  # intervals: shorter silences are not kept
_LISTENING = frozenset({"syslog", "traps"})
_TRYING = frozenset({"icmp", "tcp", "http"})
_EVER = 2**62
_POLLS = 5  # that brought nothing, for a silence to the end
_ENDS = 2.5  # intervals before the end of the run that the account may end


def of_monitor(lost: Mapping[str, int]) -> bool:
    """Whether the monitor itself is why at least half of the polls brought nothing."""
    total = sum(lost.values())
    return total > 0 and 2 * sum(lost.get(how, 0) for how in _OWN) >= total


def unanswered(silence: Silence) -> bool:
    """Whether the source was asked and did not answer."""
    return sum(silence.lost.values()) > 0 and not of_monitor(silence.lost)


def silent_all(ledgers: Sequence[Ledger], up: Sequence[Series] = ()) -> tuple[Window, ...]:
    """Where no source of a target answered although they were asked; () without sources.

    A source that is asked over three times as seldom as the quickest one takes a silence back if it must have answered
    in it; of one that is too short for that it has nothing to say. What only listens (syslog, traps) says nothing of
    a silence at all. A source that tries whether a peer answers (icmp, tcp, http) counts by its readings ``up``
    (``reach.up``), for its account says only that it could ask; without readings by its account.
    """
    asked = [ledger for ledger in ledgers if ledger.due and _kind(ledger) not in _LISTENING]
    tried = [ledger for ledger in asked if _kind(ledger) in _TRYING] if up else []
    asked = [ledger for ledger in asked if ledger not in tried]
    unasked = reduce(common, [_silent(ledger) for ledger in tried]) if tried else ()
    if not asked:
        return reduce(common, [joined([*down(series), *unasked]) for series in up]) if tried else ()
    quickest = min(ledger.interval_s for ledger in asked)
    quick = [_silent(ledger) for ledger in asked if ledger.interval_s <= _QUICK * quickest]
    spans = reduce(common, quick)
    for ledger in asked:
        if ledger.interval_s > _QUICK * quickest:
            spans = tuple(left for span in spans for left in _not_taken_back(ledger, span))
    if tried:
        spans = reduce(common, [joined([*down(series), *unasked]) for series in up], spans)
    return spans


def to_the_end(ledgers: Sequence[Ledger], silent: Sequence[Window], window: Window, least_s: float) -> Window | None:
    """The silence of all (of ``silent_all``) that lasts to the end of a window, after they had answered in it.

    It lasts ``least_s`` and five polls of the quickest at least; None without one.
    """
    asked = [ledger.interval_s for ledger in ledgers if ledger.due and _kind(ledger) not in _LISTENING]
    if not asked or not silent:
        return None
    last = Window(silent[-1].begin_ns, min(silent[-1].end_ns, window.end_ns))
    slack_ns = round(_ENDS * max(asked) * 1e9)
    if last.begin_ns <= window.begin_ns or last.end_ns + slack_ns < window.end_ns:
        return None
    return last if last.seconds >= max(least_s, _POLLS * min(asked)) else None


def only_tried(ledgers: Sequence[Ledger]) -> bool:
    """Whether a target is watched from outside only: by what tries whether it answers (icmp, tcp, http)."""
    asked = [ledger for ledger in ledgers if ledger.due and _kind(ledger) not in _LISTENING]
    return bool(asked) and all(_kind(ledger) in _TRYING for ledger in asked)


def unheard(ledger: Ledger, up: Sequence[Series]) -> tuple[Window, ...]:
    """When a source heard nothing of its device: its silences, and of one that tries whether peers answer (icmp, tcp,
    http) also where none of its peers did, by the readings ``up`` (``reach.up``)."""
    spans = joined(silence.window for silence in ledger.silences)
    mine = f"protocol={_kind(ledger)}"  # of which https and tcp:443 are kinds
    peers = [down(series) for series in up if any(part.startswith(mine) for part in series.object.split(","))]
    return joined([*spans, *reduce(common, peers)]) if peers and _kind(ledger) in _TRYING else spans


def _kind(ledger: Ledger) -> str:
    """The poller of a source, which is shown as ``target/poller`` or ``target/poller label``."""
    return ledger.source.rpartition("/")[2].partition(" ")[0]


def _silent(ledger: Ledger) -> tuple[Window, ...]:
    return joined(silence.window for silence in ledger.silences if unanswered(silence))


def _not_taken_back(ledger: Ledger, span: Window) -> tuple[Window, ...]:
    """What is left of a silence of the others after a source that is asked seldom."""
    if ledger.longest_gap is not None and ledger.longest_gap.seconds < span.seconds:
        return ()  # it never went so long without an answer
    return common([span], _silent(ledger)) if _MIN_INTERVALS * ledger.interval_s <= span.seconds else (span,)


def down(series: Series) -> tuple[Window, ...]:
    """Where a peer answered nothing: from the last reading with an answer to the next one."""
    seen = series.finite()
    windows: list[Window] = []
    begin_ns: int | None = None
    last_ns = -_EVER
    for time_ns, value in zip(seen.time_ns.tolist(), seen.value.tolist(), strict=True):
        if value > 0:
            if begin_ns is not None:
                windows.append(Window(begin_ns, time_ns))
            begin_ns, last_ns = None, time_ns
        elif begin_ns is None:
            begin_ns = last_ns
    return (*windows, Window(begin_ns, _EVER)) if begin_ns is not None else tuple(windows)


def speaks_of(ledger: Ledger, silent: Sequence[Window], window: Window) -> bool:
    """Whether a source was asked often enough to have answered in a stretch, and did: not silent in half of it.

    ``silent`` are its silences, joined. What only listens never did.
    """
    if not ledger.got or _kind(ledger) in _LISTENING or _MIN_INTERVALS * ledger.interval_s > window.seconds:
        return False
    return 2 * overlap_s(window, silent) < window.seconds
