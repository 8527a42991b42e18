"""Which target a generator's series is judged for: what it receives over the only device is that device's
performance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from soakwatch.record import SeriesKey
from soakwatch_model.metric_load import RETURNED
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_model.sample import object_text
from soakwatch_model.series import Series
from soakwatch_rules.rule import Rule


def judged_target(rule: Rule, key: SeriesKey, roles: Mapping[str, str]) -> str:
    """The target for which a series is judged: its own, but the only device for what a generator received over it.

    With several devices it is unknown which one caused it. Rules that judge whole targets get the load anyway.
    """
    if rule.scope == "target" or key.metric not in RETURNED or roles.get(key.target) != GENERATOR:
        return key.target
    devices = [name for name, role in roles.items() if role == DUT]
    return devices[0] if len(devices) == 1 else key.target


def labelled(series: Series, target: str, roles: Mapping[str, str]) -> Series:
    """A generator's series in the case of a device; with several generators its object is prefixed with the reporting
    one."""
    if series.target == target or sum(role == GENERATOR for role in roles.values()) < 2:
        return series
    name = object_text(generator=series.target)
    return replace(series, object=f"{name},{series.object}" if series.object else name)


def unlabelled(metric: str, name: str, generators: Mapping[str, str]) -> tuple[SeriesKey, ...]:
    """The series of the generators that ``labelled`` would give this object name, for a finding on a device.
    ``generators`` holds the roles of all targets."""
    if metric not in RETURNED:
        return ()
    names = [target for target, role in sorted(generators.items()) if role == GENERATOR]
    if len(names) < 2:
        return tuple(SeriesKey(target, metric, name) for target in names)
    head = {target: object_text(generator=target) for target in names}
    return tuple(
        SeriesKey(target, metric, name.removeprefix(head[target]).removeprefix(","))
        for target in names
        if name == head[target] or name.startswith(f"{head[target]},")
    )
