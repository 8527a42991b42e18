"""Silences of sources: who caused them, and when all management of a target was silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from soakwatch_model.case import Ledger, Silence
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.spans import common, joined, overlap_s

_OWN = frozenset({"missed", "gap"})  # the monitor was late or did not run: the source was not asked
_QUICK = 3.0  # intervals of the fastest source: a source with a longer one is slow
_MIN_INTERVALS = 3.0  # intervals: shorter silences are not recorded
_LISTENING = frozenset({"syslog", "traps"})
_TRYING = frozenset({"icmp", "tcp", "http"})
_EVER = 2**62
_POLLS = 5  # unanswered polls that a silence to the end needs
_ENDS = 2.5  # intervals before the end of the run at which the poll statistics may end


def monitor_did_not_poll(lost: Mapping[str, int]) -> bool:
    """Whether at least half of the lost polls were not sent by the monitor."""
    total = sum(lost.values())
    return total > 0 and 2 * sum(lost.get(how, 0) for how in _OWN) >= total


def unanswered(silence: Silence) -> bool:
    """Whether the source was polled and did not answer."""
    return sum(silence.lost.values()) > 0 and not monitor_did_not_poll(silence.lost)


def silent_all(ledgers: Sequence[Ledger], up: Sequence[Series] = ()) -> tuple[Window, ...]:
    """The times in which no source of a target answered although they were polled; () without sources.

    A slow source (polled less than a third as often as the fastest) proves the target alive if one of its answers falls
    inside the silence; a silence shorter than three of its intervals it cannot contradict. Sources that only listen
    (syslog, traps) prove nothing. Sources that probe a peer (icmp, tcp, http) count by their readings ``up``
    (``reach.up``), because a completed poll only shows that they could ask; without readings by their polls.
    """
    polled = [ledger for ledger in ledgers if ledger.due and _kind(ledger) not in _LISTENING]
    tried = [ledger for ledger in polled if _kind(ledger) in _TRYING] if up else []
    polled = [ledger for ledger in polled if ledger not in tried]
    unprobed = reduce(common, [_silent(ledger) for ledger in tried]) if tried else ()
    if not polled:
        return reduce(common, [joined([*peer_down(series), *unprobed]) for series in up]) if tried else ()
    quickest = min(ledger.interval_s for ledger in polled)
    quick = [_silent(ledger) for ledger in polled if ledger.interval_s <= _QUICK * quickest]
    spans = reduce(common, quick)
    for ledger in polled:
        if ledger.interval_s > _QUICK * quickest:
            spans = tuple(left for span in spans for left in _not_taken_back(ledger, span))
    if tried:
        spans = reduce(common, [joined([*peer_down(series), *unprobed]) for series in up], spans)
    return spans


def silence_to_end(
    ledgers: Sequence[Ledger], silent: Sequence[Window], window: Window, least_s: float
) -> Window | None:
    """The silence of all sources (from ``silent_all``) that lasts to the end of a window in which they had answered
    before; None if there is none of at least ``least_s`` and five polls of the fastest source."""
    polled = [ledger.interval_s for ledger in ledgers if ledger.due and _kind(ledger) not in _LISTENING]
    if not polled or not silent:
        return None
    last = Window(silent[-1].begin_ns, min(silent[-1].end_ns, window.end_ns))
    slack_ns = round(_ENDS * max(polled) * 1e9)
    if last.begin_ns <= window.begin_ns or last.end_ns + slack_ns < window.end_ns:
        return None
    return last if last.seconds >= max(least_s, _POLLS * min(polled)) else None


def only_probed(ledgers: Sequence[Ledger]) -> bool:
    """Whether a target is only probed from outside (icmp, tcp, http)."""
    polled = [ledger for ledger in ledgers if ledger.due and _kind(ledger) not in _LISTENING]
    return bool(polled) and all(_kind(ledger) in _TRYING for ledger in polled)


def not_heard_times(ledger: Ledger, up: Sequence[Series]) -> tuple[Window, ...]:
    """The times in which a source heard nothing of its device: its silences, and, for one that probes peers (icmp, tcp,
    http), also when none of its peers answered by the readings ``up`` (``reach.up``)."""
    spans = joined(silence.window for silence in ledger.silences)
    mine = f"protocol={_kind(ledger)}"  # also matches https and tcp:443
    peers = [peer_down(series) for series in up if any(part.startswith(mine) for part in series.object.split(","))]
    return joined([*spans, *reduce(common, peers)]) if peers and _kind(ledger) in _TRYING else spans


def _kind(ledger: Ledger) -> str:
    """The poller of a source, which is named ``target/poller`` or ``target/poller label``."""
    return ledger.source.rpartition("/")[2].partition(" ")[0]


def _silent(ledger: Ledger) -> tuple[Window, ...]:
    return joined(silence.window for silence in ledger.silences if unanswered(silence))


def _not_taken_back(ledger: Ledger, span: Window) -> tuple[Window, ...]:
    """The part of a silence of the fast sources that a slow source does not contradict."""
    if ledger.longest_gap is not None and ledger.longest_gap.seconds < span.seconds:
        return ()  # it never went so long without an answer
    return common([span], _silent(ledger)) if _MIN_INTERVALS * ledger.interval_s <= span.seconds else (span,)


def peer_down(series: Series) -> tuple[Window, ...]:
    """The times in which a peer did not answer, from the last reading with an answer to the next."""
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


def answered_during(ledger: Ledger, silent: Sequence[Window], window: Window) -> bool:
    """Whether a source was polled often enough to answer in a stretch, and did: it was silent in less than half of it.

    ``silent`` are its silences, joined. Sources that only listen never count.
    """
    if not ledger.got or _kind(ledger) in _LISTENING or _MIN_INTERVALS * ledger.interval_s > window.seconds:
        return False
    return 2 * overlap_s(window, silent) < window.seconds
