"""What ``soakwatch check`` and ``soakwatch probe`` print about two polls of one source."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from soakwatch.core.formatting import quantity
from soakwatch.core.tables import harmless, say, show_table
from soakwatch.core.units import show_seconds
from soakwatch.engine.plan_check import SourceCheck, by_metric, live_values
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Fault

_MAX_FAULTS = 12
_TIMES = {"system.boot.time", "process.start_time"}
_MAX_SHARE_OF_INTERVAL = 0.5  # a poll that takes more leaves no time for a retry


def show_source_check(
    check: SourceCheck, duration_s: float | None = None, *, who: str = "", series: bool = False
) -> None:
    """Print what the source is, what a poll takes and costs, each metric with live values, what is missing and why.

    ``duration_s`` is the length of the planned run, None where there is no plan; ``who`` names the targets where it
    stands for several; ``series`` shows every object. Why it cannot be polled is left to who asked.
    """
    cadence = show_seconds(check.interval_s)
    click.echo(f"\n{who or check.target.name} ({check.target.role}): {check.source.poller}, every {cadence}")
    if check.error:
        say("cannot be polled", indent=2)
        return
    for key, value in (check.facts.identity if check.facts else {}).items():
        say(f"{harmless(key)}: {harmless(value)}", indent=2)
    planned = "" if duration_s is None else f", {check.polls(duration_s)} polls planned"
    share = check.seconds / check.interval_s
    say(
        f"{check.per_poll} samples per poll{planned}; a poll took {show_seconds(check.seconds)}, "
        f"{percent(share)} of its interval" + ("" if share <= _MAX_SHARE_OF_INTERVAL else ": raise the interval"),
        indent=2,
    )
    if check.device_cpu_s is not None:
        busy = percent(check.device_cpu_s / check.interval_s)
        say(f"cost on the device: {show_seconds(check.device_cpu_s)} of CPU per poll, {busy} of one core", indent=2)
    _show_metrics(check, series=series)
    _show_faults(check.faults)
    for name, seconds in check.slow.items():
        say(f"no value yet: {harmless(name)}: the device updates it every {show_seconds(seconds)}", indent=2)
    if check.lacking:
        names = ", ".join(check.lacking)
        say(f"in the profile, but not on this device: {names}", indent=2)
    for note in check.facts.notes if check.facts else ():
        say(f"note: {harmless(note)}", indent=2)


def percent(share: float) -> str:
    """A share in percent, with two digits, or as many as it has.

    >>> percent(0.00123), percent(0.5), percent(1.029)
    ('0.12 %', '50 %', '103 %')
    """
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def shown_value(value: float, unit: str) -> str:
    """A value as a person reads it: bytes and seconds with their unit, other numbers without.

    >>> shown_value(0.125, "1"), shown_value(2**20, "By"), shown_value(0.0, "s"), shown_value(4.0, "{packet}")
    ('0.125', '1 MiB', '0 s', '4')
    """
    if unit in {"By", "s"}:
        return quantity(value, unit)
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def _show_metrics(check: SourceCheck, *, series: bool) -> None:
    rows = []
    values = live_values(check)
    for name, objects in by_metric(check).items():
        metric = BY_NAME.get(name)
        unit, kind = (metric.unit, metric.kind) if metric else ("-", "not in the catalogue: rejected")
        low, high = (_time_text(value) if name in _TIMES else shown_value(value, unit) for value in values[name])
        rows.append((f"  {name}", str(objects), low if low == high else f"{low} to {high}", unit, kind))
        if series and objects > 1:
            each = [sample for sample in check.samples if sample.metric == name]
            rows += [(f"    {harmless(s.object)}", "", shown_value(s.value, unit), "", "") for s in each]
    if rows:
        show_table(("  metric", "objects", "now", "unit", "kind"), rows)


def _time_text(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%SZ}" if 0 <= seconds < 2**33 else f"{seconds:.0f} s"


def _show_faults(faults: tuple[Fault, ...]) -> None:
    for fault in faults[:_MAX_FAULTS]:
        subject = " ".join(part for part in (fault.metric, fault.object) if part)
        text = harmless(fault.text)
        say(f"not read: {harmless(subject)}: {text}" if subject else f"not read: {text}", indent=2)
    if len(faults) > _MAX_FAULTS:
        say(f"not read: {len(faults) - _MAX_FAULTS} more", indent=2)
