"""What ``soakwatch check`` and ``soakwatch probe`` print of two looks at one source."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from soakwatch.core.prefix import without
from soakwatch.core.tables import harmless, show_table
from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.engine.plan_check import SourceLook, by_metric, live_values
from soakwatch_agent.metric import BY_NAME
from soakwatch_agent.sample import Fault

_MOST_FAULTS = 12
_MOMENTS = {"system.boot.time", "process.start_time"}
_SHARE_OF_INTERVAL = 0.5  # a look that takes more leaves no room for a retry


def show_look(look: SourceLook, duration_s: float | None = None, *, series: bool = False) -> None:
    """What the source is, what a look takes and costs, each metric with live values, what is missing and why.

    ``duration_s`` is the length of the planned run, None where there is no plan; ``series`` shows every object.
    """
    cadence = show_seconds(look.interval_s)
    click.echo(f"\n{look.target.name} ({look.target.role}): {look.source.poller}, every {cadence}")
    if look.error:
        click.echo(f"  cannot be polled: {harmless(without(look.target.name, look.error))}")
        return
    for key, value in (look.facts.identity if look.facts else {}).items():
        click.echo(f"  {harmless(key)}: {harmless(value)}")
    planned = "" if duration_s is None else f", {look.polls(duration_s)} polls planned"
    share = look.seconds / look.interval_s
    click.echo(
        f"  {look.per_poll} samples a poll{planned}; a look took {look.seconds * 1000:.1f} ms, "
        f"{percent(share)} of its interval" + ("" if share <= _SHARE_OF_INTERVAL else ": raise the interval")
    )
    if look.device_cpu_s is not None:
        busy = percent(look.device_cpu_s / look.interval_s)
        click.echo(f"  cost on the device: {1000 * look.device_cpu_s:.1f} ms of CPU a look, {busy} of one core")
    _show_metrics(look, series=series)
    _show_faults(look.faults)
    for name, seconds in look.slow.items():
        click.echo(f"  not seen yet: {harmless(name)}: the device renews it every {show_seconds(seconds)}")
    if look.lacking:
        names = ", ".join(look.lacking)
        click.echo(f"  promised by the profile, and not on this device: {names}")
    for note in look.facts.notes if look.facts else ():
        click.echo(f"  note: {harmless(note)}")


def percent(share: float) -> str:
    """A share in percent, with two digits, or as many as it has.

    >>> percent(0.00123), percent(0.5), percent(1.029)
    ('0.12 %', '50 %', '103 %')
    """
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def shown_value(value: float, unit: str) -> str:
    """A reading as a person reads it: bytes and seconds with their unit, other numbers without.

    >>> shown_value(0.125, "1"), shown_value(2**20, "By"), shown_value(0.0, "s"), shown_value(4.0, "{packet}")
    ('0.125', '1.0 MiB', '0 s', '4')
    """
    if unit == "By":
        return show_bytes(value)
    if unit == "s":
        return "0 s" if value == 0 else show_seconds(value) if value >= 0.001 else f"{value * 1e6:.0f} us"
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def _show_metrics(look: SourceLook, *, series: bool) -> None:
    rows = []
    values = live_values(look)
    for name, objects in by_metric(look).items():
        metric = BY_NAME.get(name)
        unit, kind = (metric.unit, metric.kind) if metric else ("-", "not in the catalogue: refused")
        low, high = (_moment(value) if name in _MOMENTS else shown_value(value, unit) for value in values[name])
        rows.append((f"  {name}", str(objects), low if low == high else f"{low} to {high}", unit, kind))
        if series and objects > 1:
            each = [sample for sample in look.samples if sample.metric == name]
            rows += [(f"    {harmless(s.object)}", "", shown_value(s.value, unit), "", "") for s in each]
    if rows:
        show_table(("  metric", "objects", "now", "unit", "kind"), rows)


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%SZ}" if 0 <= seconds < 2**33 else f"{seconds:.0f} s"


def _show_faults(faults: tuple[Fault, ...]) -> None:
    for fault in faults[:_MOST_FAULTS]:
        what = " ".join(part for part in (fault.metric, fault.object) if part)
        told = harmless(fault.text)
        click.echo(f"  not read: {harmless(what)}: {told}" if what else f"  not read: {told}")
    if len(faults) > _MOST_FAULTS:
        click.echo(f"  not read: {len(faults) - _MOST_FAULTS} more")
