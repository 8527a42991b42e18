"""Power: watts and joules of each device in the run and its phases, and the energy of a packet that came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from soakwatch.core.formatting import quantity
from soakwatch.report.blocks import Block, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch.runs.key_figures import FigureSpec, figure_over, keys_of, parse_figure
from soakwatch_model.roles import DUT
from soakwatch_model.sample import object_labels
from soakwatch_model.window import Window
from soakwatch_rules.wording.quantities import first_few

ORDER = 35
TITLE = "Power"
_POWER = parse_figure("system.power")
_HIGHEST = parse_figure("max(system.power)")
_PER_PACKET = (parse_figure("system.power / load.rx.packet.rate"), parse_figure("system.power / load.rx.packets"))
_BRIEF = 6


def blocks(page: Page) -> Sequence[Block] | None:
    """A row for each device and stretch; which sensors were added up; None where no power was read."""
    roles = page.source.roles()
    keys = page.source.keys({_POWER.metric})
    targets = sorted({key.target for key in keys if roles.get(key.target) == DUT})
    if not targets:
        return None
    phases = page.verdict.phases or page.source.phases()
    # The first poll is due up to a second after the run began: no phase may be longer than the run.
    begin_ns = min([page.verdict.window.begin_ns, *(phase.window.begin_ns for phase in phases)])
    end_ns = max([page.verdict.window.end_ns, *(phase.window.end_ns for phase in phases)])
    stretches = [("the run", Window(begin_ns, end_ns)), *((phase.name, phase.window) for phase in phases)]
    rows = [row for target in targets for name, window in stretches if (row := _row(page, target, name, window))]
    if not rows:
        return None
    columns = (
        ReportColumn("device", "name"),
        ReportColumn("stretch"),
        ReportColumn("power, mean", "number"),
        ReportColumn("highest", "number"),
        ReportColumn("energy", "number"),
        ReportColumn("per packet received", "number"),
    )
    table = Table("Power and energy of the devices", columns, rows, brief=_BRIEF)
    return (table, *(Text(_sensors(page, target), label=target, tone="soft") for target in targets))


def _row(page: Page, target: str, name: str, window: Window) -> list[str] | None:
    watts = _figure(page, _POWER, target, window)
    if watts is None:
        return None
    highest = _figure(page, _HIGHEST, target, window)
    each = next((e for spec in _PER_PACKET if (e := _figure(page, spec, target, window)) is not None), None)
    return [
        target,
        name,
        quantity(watts, "W"),
        "–" if highest is None else quantity(highest, "W"),
        quantity(watts * window.seconds, "J"),
        "–" if each is None else quantity(each, "J/{packet}"),
    ]


def _figure(page: Page, spec: FigureSpec, target: str, window: Window) -> float | None:
    return figure_over(page.source, replace(spec, labels={**spec.labels, "target": target}), window)


def _sensors(page: Page, target: str) -> str:
    """Which sensors are the power of a device."""
    keys = keys_of(page.source, replace(_POWER, labels={"target": target}))
    names = [object_labels(key.object).get("sensor", key.object) if "=" in key.object else key.object for key in keys]
    return f"power as measured by {first_few(names, 4)}"
