"""Which tenant a series belongs to: by the plan, by a label ``tenant``, or by the device's virtual system."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from soakwatch.judge.judged_record import JudgeableRecord
from soakwatch.plan.tenant_plan import TenantPlan
from soakwatch.record import SeriesKey
from soakwatch_model.case import Tenant
from soakwatch_model.label import label
from soakwatch_model.roles import DUT
from soakwatch_model.window import Window
from soakwatch_rules.load.tenant_load import METRICS

LABEL: Final = "tenant"
_BY_DEVICE: Final = ("context", "vdom", "vsys", "vrf", "table", "pool", "module")
_VIRTUAL: Final = re.compile(r"(?:VDOM|vsys|context|vrf) (?P<name>.+)")


def tenant_of(name: str) -> tuple[str, bool] | None:
    """The tenant that an object's labels name, and whether by the label ``tenant`` itself; None if no label names one.

    >>> tenant_of("tenant=red,flow=1"), tenant_of("table=VDOM customer-1"), tenant_of("table=sessions")
    (('red', True), ('customer-1', False), None)
    """
    if own := label(name, LABEL):
        return own, True
    for key in _BY_DEVICE:
        value = label(name, key)
        if value is None:
            continue
        if key in {"context", "vdom", "vsys", "vrf"}:
            return value, False
        if match := _VIRTUAL.fullmatch(value):
            return match["name"], False
    return None


def tenants_in(
    record: JudgeableRecord,
    planned: Sequence[TenantPlan],
    target: str,
    roles: Mapping[str, str],
    window: Window,
) -> tuple[Tenant, ...]:
    """The tenants of a device with their series, both its own and the generators', the plan's tenants first in its
    order.

    The plan decides; labels decide the rest. If the plan has tenants, only the label ``tenant`` adds to them.
    """
    own: dict[str, list[SeriesKey]] = {tenant.name: [] for tenant in planned}
    named = dict.fromkeys(own, True)
    for key in sorted(record.keys(METRICS), key=lambda k: (k.target, k.metric, k.object)):
        if key.target != target and roles.get(key.target, DUT) == DUT:
            continue
        owner = next((tenant.name for tenant in planned if tenant.has(key.target, key.object)), None)
        if owner is None and (by_label := tenant_of(key.object)) is not None and (by_label[1] or not planned):
            owner = by_label[0]
            named[owner] = named.get(owner, False) or by_label[1]
        if owner is not None:
            own.setdefault(owner, []).append(key)
    return tuple(
        Tenant(name, tuple(record.series(key, window.begin_ns, window.end_ns) for key in keys), named[name])
        for name, keys in own.items()
    )
