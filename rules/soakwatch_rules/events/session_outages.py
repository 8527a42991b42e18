"""Sessions with peers: when one was down, by state, uptime, count of changes, and by not being listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from soakwatch_model.case import Case, Silence
from soakwatch_model.event import Event
from soakwatch_model.label import label
from soakwatch_model.series import Ints, Mask, Series
from soakwatch_model.window import Window
from soakwatch_rules.sampling import spacing
from soakwatch_rules.spans import joined, overlap_s
from soakwatch_rules.stats.hysteresis import true_runs
from soakwatch_rules.stats.medians import median
from soakwatch_rules.wording.quantities import counted

UNLISTED = "no longer listed"
_MISSED = 3.5  # distances of readings: a session not read for longer is not listed, or the device was not asked
_ONCE_S = 120.0  # for a session read once: its list may be polled less often than its source
_ROUNDED_S = 2.0
_KEPT_S = 60.0  # agents may cache their answers for this long
_WORDS = {"bgp": "BGP", "ospf": "OSPF", "ospf3": "OSPFv3", "isis": "IS-IS", "bfd": "BFD"}


@dataclass(frozen=True, slots=True)
class TimeDown:
    """One time down: last known up, first known down, up again (None: not before the end).

    ``how`` is the evidence; ``number`` how often it went down in this stretch by the device's count.
    """

    after_ns: int
    begin_ns: int
    end_ns: int | None
    how: str
    number: int = 1

    @property
    def hidden(self) -> bool:
        """Whether both neighbouring readings found the session up."""
        return self.end_ns is not None and self.how.startswith("between")


def session_name(text: str) -> str:
    """The name of a session in a sentence, from the labels of its object.

    >>> session_name("protocol=bgp,peer=10.0.0.2,context=default"), session_name("protocol=lacp,peer=e1,context=Po1")
    ('BGP session with 10.0.0.2', 'LACP member e1 of Po1')
    """
    protocol, peer = label(text, "protocol") or "", label(text, "peer") or text
    context = label(text, "context")
    place = f" ({context})" if context not in {None, "", "default"} else ""
    if protocol == "lacp":
        return f"LACP member {peer}{f' of {context}' if place else ''}"
    if protocol == "tunnel":
        return f"tunnel {peer}{place}"
    if protocol in {"vrrp", "hsrp"}:
        return f"{protocol.upper()} group {peer}{place}"
    if protocol == "stp":
        return f"spanning tree port {peer}{place}"
    return f"{_WORDS.get(protocol, protocol)} session with {peer}{place}".lstrip()


def times_down(
    up: Series, uptime: Series | None, flaps: Series | None, case: Case, others: Ints
) -> tuple[TimeDown, ...]:
    """Every time that a session went down after it had been up, in time order.

    ``others`` are times at which any session of the target was read; in a record without poll statistics they prove
    that the device was asked.
    """
    if not len(up):
        return ()
    seen = [*_by_state(up), *_unlisted(up, case, others)]
    seen = _merged(seen)
    hidden = [*_by_uptime(up, uptime), *_by_count(up, flaps)]
    hidden = _merged([h for h in hidden if not any(_touch(h, s) for s in seen)])
    return tuple(sorted((*seen, *hidden), key=lambda d: d.begin_ns))


def _by_state(up: Series) -> Iterator[TimeDown]:
    time_ns, stands = up.time_ns, up.values > 0
    falls = np.flatnonzero(stands[:-1] & ~stands[1:]) + 1
    rises = np.flatnonzero(~stands[:-1] & stands[1:]) + 1
    for i in falls.tolist():
        after = rises[rises > i]
        end_ns = int(time_ns[after[0]]) if after.size else None
        yield TimeDown(int(time_ns[i - 1]), int(time_ns[i]), end_ns, "down")


def _unlisted(up: Series, case: Case, others: Ints) -> Iterator[TimeDown]:
    """Stretches in which a session that was up was not listed, although the device was asked and answered."""
    time_ns, stands = up.time_ns, up.values > 0
    apart_s = _apart_s(up) or 0.0
    for i, stretch in _without(up, case):
        last_ns, next_ns = stretch.begin_ns, stretch.end_ns
        if not answered(case, stretch, others) or _fault(up, case, stretch):
            continue
        comes = i + 1 < time_ns.size and bool(stands[i + 1])
        end_ns = next_ns if comes else None
        if i + 1 < time_ns.size and not comes:  # listed again, but down: its state says until when
            rises = np.flatnonzero(stands[i + 1 :])
            end_ns = int(time_ns[i + 1 + rises[0]]) if rises.size else None
        yield TimeDown(last_ns, last_ns + round(apart_s * 1e9), end_ns, UNLISTED)


def _apart_s(up: Series) -> float | None:
    return spacing(up) or (max(up.cadence_s, _ONCE_S) if up.cadence_s else None)


def _without(up: Series, case: Case) -> Iterator[tuple[int, Window]]:
    """The stretches without a reading of a session that was up, and the index of the reading before each."""
    apart_s = _apart_s(up)
    if not apart_s:
        return
    time_ns, stands = up.time_ns, up.values > 0
    ends = np.append(time_ns[1:], case.window.end_ns)
    for i in np.flatnonzero(stands & (ends - time_ns > round(_MISSED * apart_s * 1e9))).tolist():
        yield i, Window(int(time_ns[i]), int(ends[i]))


def _fault(up: Series, case: Case, stretch: Window) -> str:
    """Why the session's list could not be read in a stretch; "" if no fault says so."""
    return next(
        (
            unread.text
            for unread in case.unread
            if unread.metric == up.metric
            and (not unread.object or up.object.startswith(f"{unread.object},"))
            and unread.begin_ns <= stretch.end_ns
            and unread.end_ns >= stretch.begin_ns
        ),
        "",
    )


def unread_list(up: Series, case: Case, others: Ints) -> tuple[Window, str] | None:
    """The first stretch in which a session was not read because its list could not be, and the fault; None if none.

    A device may answer everything but one command; the session is then neither up nor down. If it answers nothing,
    the poll statistics say so.
    """
    gaps = (stretch for _, stretch in _without(up, case) if answered(case, stretch, others))
    found = ((stretch, _fault(up, case, stretch)) for stretch in gaps)
    return next(((stretch, why) for stretch, why in found if why), None)


def answered(case: Case, stretch: Window, others: Ints) -> bool:
    """Whether the device was asked in a stretch and answered: its sources were silent for less than half of it; without
    poll statistics, whether other sessions were read twice in it."""
    asked = [ledger for ledger in case.ledgers if ledger.due]
    if asked:
        silences: list[Silence] = [s for ledger in asked for s in ledger.silences]
        return 2 * overlap_s(stretch, joined(s.window for s in silences)) < stretch.seconds
    inside = others[(others > stretch.begin_ns) & (others < stretch.end_ns)]
    return inside.size >= 2


def _stood(up: Series, time_ns: Ints) -> Mask:
    """Whether the session was up at the last reading at or before each time."""
    index = np.searchsorted(up.time_ns, time_ns, side="right") - 1
    known: Mask = (index >= 0) & (up.values[np.maximum(index, 0)] > 0)
    return known


def _by_uptime(up: Series, uptime: Series | None) -> Iterator[TimeDown]:
    """Times down shown by an uptime that fell below the time since the previous reading."""
    if uptime is None or len(uptime) < 2:
        return
    time_ns, value = uptime.time_ns, uptime.values
    apart_s = np.diff(time_ns) * 1e-9
    anew = (value[1:] >= 0) & (value[1:] < value[:-1] - _ROUNDED_S) & (value[1:] <= apart_s + _KEPT_S)
    both = _stood(up, time_ns)
    for i in np.flatnonzero(anew & both[:-1] & both[1:]).tolist():
        began_ns = int(time_ns[i + 1]) - round(float(value[i + 1]) * 1e9)
        back_ns = min(max(began_ns, int(time_ns[i])), int(time_ns[i + 1]))
        yield TimeDown(int(time_ns[i]), back_ns, int(time_ns[i + 1]), "between two polls: its uptime began anew")


def _by_count(up: Series, flaps: Series | None) -> Iterator[TimeDown]:
    """Times down shown by a count of changes that rose while both readings found the session up."""
    if flaps is None or len(flaps) < 2:
        return
    with np.errstate(over="ignore"):
        rise = np.nan_to_num(flaps.increments().values)
    time_ns = flaps.time_ns
    both = _stood(up, time_ns)
    for i in np.flatnonzero((rise >= 1) & both[:-1] & both[1:]).tolist():
        number = int(min(rise[i], 1e6))
        how = f"between two polls: the device counted {counted(number, 'change')}"
        yield TimeDown(int(time_ns[i]), int(time_ns[i + 1]), int(time_ns[i + 1]), how)


def _touch(one: TimeDown, two: TimeDown) -> bool:
    last = 2**62
    return one.after_ns <= (two.end_ns or last) and two.after_ns <= (one.end_ns or last)


def _merged(downs: Iterable[TimeDown]) -> list[TimeDown]:
    """Overlapping stretches joined, with their evidence."""
    result: list[TimeDown] = []
    for down in sorted(downs, key=lambda d: (d.after_ns, d.begin_ns)):
        if result and (result[-1].end_ns is None or down.after_ns < result[-1].end_ns):
            last = result[-1]
            ends = None if last.end_ns is None or down.end_ns is None else max(last.end_ns, down.end_ns)
            how = last.how if down.how in last.how else f"{last.how}; {down.how}"
            result[-1] = replace(last, begin_ns=min(last.begin_ns, down.begin_ns), end_ns=ends, how=how)
        else:
            result.append(down)
    return result


def sharpened_by_events(downs: Sequence[TimeDown], reports: Sequence[Event]) -> tuple[TimeDown, ...]:
    """The times down, beginning at the first log line or trap between the readings around their begin."""
    result = []
    for down in downs:
        inside = [e.begin_ns for e in reports if down.after_ns <= e.begin_ns <= down.begin_ns]
        result.append(replace(down, begin_ns=inside[0]) if inside and not down.hidden else down)
    return tuple(result)


def prefix_collapse(
    series: Series, downs: Sequence[TimeDown], share: float, settle_s: float
) -> tuple[int, int | None, float, float] | None:
    """When prefixes fell below a share of their usual number and stayed there although the session was up.

    Returns begin, end (None: to the end), the usual number (the median of the first tenth of the readings) and the
    lowest; None if nothing lasted ``settle_s``. Readings while the session is down and ``settle_s`` after do not count.
    """
    good = series.finite()
    keep = np.ones(len(good), dtype=bool)
    for down in downs:
        until_ns = 2**62 if down.end_ns is None else down.end_ns + round(settle_s * 1e9)
        keep &= (good.time_ns < down.after_ns) | (good.time_ns > until_ns)
    time_ns, value = good.time_ns[keep], good.values[keep]
    if value.size < 4:
        return None
    usual = median(value[: max(3, value.size // 10)])
    if usual < 1:
        return None
    low = value < share * usual
    for first, stop in true_runs(low).tolist():
        last_ns = int(time_ns[min(stop, value.size - 1)])
        if first and (last_ns - int(time_ns[first])) * 1e-9 >= settle_s:
            end_ns = int(time_ns[stop]) if stop < value.size else None
            return int(time_ns[first]), end_ns, usual, float(value[first:stop].min())
    return None


@dataclass(frozen=True, slots=True)
class RoleChange:
    """One change of role: 2 is active, 1 standby, 0 neither."""

    after_ns: int
    time_ns: int
    text: str


_ROLE = {2.0: "master", 1.0: "backup", 0.0: "neither"}
_PORT = {2.0: "forwarding", 1.0: "blocking"}


def state_changes(role: Series) -> tuple[RoleChange, ...]:
    """Every change to or from active. For a spanning tree port only between forwarding and blocking, and not while it
    comes up (listening, learning, forwarding)."""
    stp = label(role.object, "protocol") == "stp"
    value, found = role.values, []
    for i in np.flatnonzero((value[1:] == 2) != (value[:-1] == 2)).tolist():
        before, after = float(value[i]), float(value[i + 1])
        if stp and (0 in {before, after} or (before == 1 and bool(np.any(value[:i] != 1)))):
            continue
        words = _PORT if stp else _ROLE
        text = f"{words.get(before, before)} to {words.get(after, after)}"
        found.append(RoleChange(int(role.time_ns[i]), int(role.time_ns[i + 1]), text))
    return tuple(found)
