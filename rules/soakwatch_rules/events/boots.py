"""Boots of a device, from boot id, uptime and boot time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from soakwatch_model.metric_entry import BOOT
from soakwatch_model.metric_queries import telling
from soakwatch_model.series import Series
from soakwatch_rules.events.incidents import Witness
from soakwatch_rules.wording.quantities import duration, moment

BOOT_METRICS = telling(BOOT)
"""Metrics that tell one boot from the next: boot id, boot time, uptime."""
MOVED_S = 60.0
"""A boot time that moved by less belongs to a clock that is slewed, or was computed anew."""
_WRAP_S = 2**32 / 100  # TimeTicks: hundredths of a second in 32 bits, 497 days


def reboots_in(best: Mapping[str, Series | None]) -> list[Witness]:
    """The reboots in the best series of each of ``BOOT_METRICS``."""
    witnesses, _, _ = reboots(best["system.boot.id"], best["system.boot.time"], best["system.uptime"])
    return witnesses


def reboots(
    boot_id: Series | None, boot_time: Series | None, uptime: Series | None
) -> tuple[list[Witness], list[str], str]:
    """The reboots in the best of these series, doubts, and why it is undecided (empty if it is decided)."""
    moved = _moves(boot_time)
    if boot_id is not None and len(boot_id) > 1:
        positions = np.flatnonzero(boot_id.values[1:] != boot_id.values[:-1]).tolist()
        witnesses = [
            Witness("id", int(boot_id.time_ns[i]), int(boot_id.time_ns[i + 1]), "new boot id") for i in positions
        ]
        tail = [w for w in _restarts(uptime, boot_time, []) if w.begin_ns >= boot_id.time_ns[-1]]
        return [*witnesses, *tail], _steps(moved, witnesses), ""
    doubts: list[str] = []
    if uptime is not None and len(uptime) > 1:
        witnesses = list(_restarts(uptime, boot_time, doubts))
        return witnesses, doubts + _steps(moved, witnesses), ""
    if moved:
        begin, end, booted_ns = moved[0]
        slack = round(MOVED_S * 1e9)
        if begin - slack <= booted_ns <= end + slack:
            return [Witness("time", b, e, "new boot time") for b, e, _ in moved], doubts, ""
        return [], doubts, f"the boot time changed at {moment(end)}: a reboot or a clock step"
    return [], doubts, ""


def _moves(boot_time: Series | None) -> list[tuple[int, int, int]]:
    """Where the boot time moved: time before, time after (ns), and the new boot time (ns)."""
    if boot_time is None or len(boot_time) < 2:
        return []
    with np.errstate(over="ignore"):
        positions = np.flatnonzero(np.abs(np.diff(boot_time.values)) > MOVED_S)
    after = np.clip(boot_time.values[positions + 1], -9e9, 9e9)
    return [
        (int(boot_time.time_ns[i]), int(boot_time.time_ns[i + 1]), round(b * 1e9))
        for i, b in zip(positions, after, strict=True)
    ]


def _steps(moved: list[tuple[int, int, int]], witnesses: list[Witness]) -> list[str]:
    lone = [end for begin, end, _ in moved if not any(w.begin_ns <= end and begin <= w.end_ns for w in witnesses)]
    return [f"the boot time changed at {moment(lone[0])} without a reboot: a clock step"] if lone else []


def _restarts(uptime: Series | None, boot_time: Series | None, doubts: list[str]) -> Iterator[Witness]:
    if uptime is None or len(uptime) < 2:
        return
    up, passed = uptime.values, np.diff(uptime.time_ns) * 1e-9
    with np.errstate(over="ignore"):
        lost = up[:-1] + passed - up[1:]  # how far the time of boot moved
    again = (lost > MOVED_S) & ((up[1:] < up[:-1]) | (up[1:] < passed))
    for i in np.flatnonzero(again).tolist():
        begin, end = int(uptime.time_ns[i]), int(uptime.time_ns[i + 1])
        if abs(lost[i] - _WRAP_S) <= MOVED_S:
            doubts.append(f"the uptime counter wrapped at {moment(end)} after 497 days: not a reboot")
        elif _stayed(boot_time, begin, end):
            doubts.append(
                f"the uptime restarted at {moment(end)} but the boot time stayed the same: the agent restarted"
            )
        else:
            yield Witness("uptime", begin, end, f"uptime {duration(max(0.0, float(up[i + 1])))}")


def _stayed(boot_time: Series | None, begin: int, end: int) -> bool:
    """Whether the boot time was the same before and after."""
    if boot_time is None:
        return False
    last, first = (
        int(np.searchsorted(boot_time.time_ns, begin, side="right")) - 1,
        int(np.searchsorted(boot_time.time_ns, end)),
    )
    if last < 0 or first == len(boot_time):
        return False
    before, after = float(boot_time.value[last]), float(boot_time.value[first])
    return before - MOVED_S <= after <= before + MOVED_S
