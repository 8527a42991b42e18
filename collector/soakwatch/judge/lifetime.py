"""When an object existed: interfaces, processes and queues come and go during a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from soakwatch.record import StoredFault
from soakwatch_model.case import Ledger
from soakwatch_model.metric import BY_NAME
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.sampling import cadence

_COME_AND_GO = frozenset({"process", "interface", "queue", "mountpoint", "device", "pool", "table", "module", "flow"})
"""First labels of objects that may come and go; a whole device is always there."""
_LATE = 3.0  # readings that may fail at either end without meaning anything
_HEARD = 0.5  # share of a stretch without readings for which a source must answer to show that the object was not there


def lifetime(
    series: Sequence[Series], window: Window, ledgers: Iterable[Ledger], faults: Sequence[StoredFault]
) -> Window:
    """The part of a window in which the object of these series existed.

    From one reading interval before its first reading to one after its last, where the target answered beyond them and
    no fault says that the object could not be read. Otherwise the whole window: then readings are missing, and the
    rules count them.
    """
    there = [each for each in series if len(each)]
    if not there or not all(_comes_and_goes(each.metric) for each in there):
        return window
    apart_s = max((apart for each in there if (apart := cadence(each)) is not None), default=None)
    if apart_s is None:
        return window
    apart_ns = round(apart_s * 1e9)
    first_ns = min(int(each.time_ns[0]) for each in there)
    last_ns = max(int(each.time_ns[-1]) for each in there)
    begin_ns, end_ns = window.begin_ns, window.end_ns
    heard = tuple(ledgers)
    before, behind = Window(begin_ns, max(begin_ns, first_ns)), Window(min(last_ns, end_ns), end_ns)
    late_s = _LATE * apart_s
    if before.seconds > late_s and _answered(heard, before) and not _unread(there, faults, before):
        begin_ns = max(begin_ns, first_ns - apart_ns)
    if behind.seconds > late_s and _answered(heard, behind) and not _unread(there, faults, behind):
        end_ns = min(end_ns, last_ns + apart_ns)
    return Window(begin_ns, end_ns)


def _comes_and_goes(metric: str) -> bool:
    entry = BY_NAME.get(metric)
    return entry is not None and bool(entry.labels) and entry.labels[0] in _COME_AND_GO


def _answered(ledgers: Sequence[Ledger], stretch: Window) -> bool:
    """Whether a source answered in at least half of a stretch."""
    return any(ledger.got and _silent_s(ledger, stretch) <= (1 - _HEARD) * stretch.seconds for ledger in ledgers)


def _silent_s(ledger: Ledger, stretch: Window) -> float:
    overlaps = (
        min(silence.window.end_ns, stretch.end_ns) - max(silence.window.begin_ns, stretch.begin_ns)
        for silence in ledger.silences
    )
    return sum(max(0, overlap) for overlap in overlaps) * 1e-9


def _unread(series: Sequence[Series], faults: Sequence[StoredFault], stretch: Window) -> bool:
    """Whether a fault of one of the series, or of its whole metric, lies in a stretch."""
    metrics, objects = {each.metric for each in series}, {"", *(each.object for each in series)}
    return any(
        fault.metric in metrics
        and fault.object in objects
        and fault.target == series[0].target
        and fault.first_ns < stretch.end_ns
        and fault.last_ns > stretch.begin_ns
        for fault in faults
    )
