"""Which cores of a target are in poll mode, and by what evidence: plan, system, packet driver, or samples.

A core on which a driver polls (DPDK, VPP) is at 100 % with and without load, as a saturated one is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from soakwatch_model.core_list import cores_of
from soakwatch_model.sample import object_text
from soakwatch_rules import poll_mode_cores
from soakwatch_rules.stats.medians import median

if TYPE_CHECKING:
    from soakwatch.judge.judged_record import JudgeableRecord
    from soakwatch.plan import TargetPlan

META: Final = "poll_mode"
"""Record meta: the plan's cores by target; an empty list means all of them."""
TOTAL: Final = "system.cpu.utilization"
_BUSY: Final = 0.9
_DRIVERS: Final = {"dpdk": "DPDK", "vpp": "VPP"}
_DRIVEN: Final = ("system.forwarding.dropped", "exporter.gauge")


def planned_text(targets: Iterable[TargetPlan]) -> str:
    """The plan's cores in poll mode, as JSON for the record."""
    return json.dumps({target.name: list(target.poll_mode) for target in targets if target.poll_mode is not None})


def poll_modes(record: JudgeableRecord, target: str) -> Mapping[str, str]:
    """What is in poll mode on a target and why, by object; "" is the total, ``poll_mode_cores.EVERY`` everything."""
    planned = json.loads(record.meta(META) or "{}").get(target)
    if planned == []:
        return {poll_mode_cores.EVERY: "the plan says so"}
    if driver := _driver(record, target):
        return {poll_mode_cores.EVERY: f"{driver} forwards there"}
    known = {object_text(core=core): "the plan says so" for core in planned or ()}
    for core in _apart(record, target):
        known.setdefault(object_text(core=core), "the system keeps it for one program (isolated, nohz_full)")
    return {**known, **_of_the_total(record, target, known)}


def _of_the_total(record: JudgeableRecord, target: str, known: Mapping[str, str]) -> dict[str, str]:
    """The total, if it is only busy because of polling cores while the others have room."""
    keys = [key for key in record.keys([TOTAL, poll_mode_cores.CORE]) if key.target == target]
    total = next((record.series(key).finite().values for key in keys if key.metric == TOTAL), np.empty(0))
    if not total.size or median(total) < _BUSY:
        return {}
    others, polls = [], 0
    for key in keys:
        if key.metric == poll_mode_cores.CORE:
            value = record.series(key).finite().values
            busy = value.size > 0 and median(value) >= _BUSY
            if busy and (key.object in known or poll_mode_cores.constant(key.metric, value)):
                polls += 1
            elif value.size:
                others.append(float(np.mean(value)))
    if not polls or not others or float(np.mean(others)) >= _BUSY:
        return {}
    return {"": f"{polls} of its {polls + len(others)} cores poll, and the others have room"}


def _driver(record: JudgeableRecord, target: str) -> str:
    """The packet driver that answered on a target, recognised by the objects that its exporter makes."""
    for key in record.keys(_DRIVEN):
        word = key.object.partition("=")[2]
        for start, name in _DRIVERS.items():
            if key.target == target and word.startswith((f"{start} ", f"{start}.")):
                return name
    return ""


def _apart(record: JudgeableRecord, target: str) -> list[int]:
    """The cores that the system isolates (``2-3,6``), from the fingerprint of the machine."""
    facts = json.loads(record.meta("fingerprint") or "{}").get(target, {}).get("cpu", {})
    cores: set[int] = set()
    for key in ("isolated", "nohz_full"):
        cores.update(cores_of(str(facts.get(key) or "")))
    return sorted(cores)
