"""The output of ``soakwatch check`` and ``soakwatch probe`` about one source that was polled twice."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from soakwatch.core.formatting import extent, number
from soakwatch.core.plotted import START_TIMES
from soakwatch.core.tables import harmless, say, show_table
from soakwatch.core.units import show_seconds
from soakwatch.engine.plan_check import SourceCheck, by_metric, live_values
from soakwatch_model.metric import BY_NAME, GAUGE
from soakwatch_model.sample import Fault
from soakwatch_rules.wording.quantities import counted, percent

_MAX_FAULTS = 12
_FEW_MORE = 3  # show so few rather than count them
_MAX_SHARE_OF_INTERVAL = 0.5  # a slower poll leaves no time for a retry


def show_source_check(
    check: SourceCheck,
    duration_s: float | None = None,
    *,
    who: str = "",
    series: bool = False,
    most: int | None = None,
) -> None:
    """Print what the source is, what a poll costs, each metric with live values, and what is missing and why.

    ``duration_s`` is the length of the planned run (None without a plan); ``who`` names the targets if the check stands
    for several; ``series`` shows every object; ``most`` limits the metrics shown (None: all). The caller reports why a
    source cannot be polled.
    """
    cadence = show_seconds(check.interval_s)
    click.echo(f"\n{who or check.target.name} ({check.target.role}): {check.source.poller}, every {cadence}")
    if check.error:
        say("cannot be polled", indent=2)
        return
    for key, value in (check.facts.identity if check.facts else {}).items():
        say(f"{harmless(key)}: {harmless(value)}", indent=2)
    planned = "" if duration_s is None else f", {counted(check.polls(duration_s), 'poll')} planned"
    share = check.seconds / check.interval_s
    say(
        f"{counted(check.per_poll, 'sample')} per poll{planned}; a poll took {show_seconds(check.seconds)}, "
        f"{percent(share)} of its interval" + ("" if share <= _MAX_SHARE_OF_INTERVAL else ": raise the interval"),
        indent=2,
    )
    if check.device_cpu_s is not None:
        busy = percent(check.device_cpu_s / check.interval_s)
        say(f"cost on the device: {show_seconds(check.device_cpu_s)} of CPU per poll, {busy} of one core", indent=2)
    _show_metrics(check, series=series, most=most)
    _show_faults(check.faults)
    for name, seconds in check.slow.items():
        say(f"no value yet: {harmless(name)}: the device updates it every {show_seconds(seconds)}", indent=2)
    if check.lacking:
        names = ", ".join(check.lacking)
        say(f"in the profile, but not on this device: {names}", indent=2)
    for note in check.facts.notes if check.facts else ():
        say(f"note: {harmless(note)}", indent=2)


def shown_value(metric: str, low: float, high: float) -> str:
    """The range of a metric's values for people, with its unit once; without a unit for states and unknown metrics.

    >>> shown_value("system.cpu.utilization", 0.125, 0.5), shown_value("system.memory.usage", 2**20, 2**20)
    ('12.5 to 50 %', '1 MiB')
    >>> shown_value("process.up", 1.0, 1.0), shown_value("my.metric", 0.5, 4.0)
    ('1', '0.5 to 4')
    """
    known = BY_NAME.get(metric)
    if known is not None and metric.endswith(START_TIMES):
        return " to ".join(dict.fromkeys((_time_text(low), _time_text(high))))
    if known is None or (known.unit == "1" and known.kind != GAUGE):
        return " to ".join(dict.fromkeys((number(low), number(high))))
    return extent(low, high, known.unit)


def _show_metrics(check: SourceCheck, *, series: bool, most: int | None) -> None:
    rows = []
    values = live_values(check)
    metrics = by_metric(check)
    left = 0 if most is None or len(metrics) <= most + _FEW_MORE else len(metrics) - most
    for name, objects in list(metrics.items())[: len(metrics) - left]:
        metric = BY_NAME.get(name)
        kind = metric.kind if metric else "not in the catalogue: rejected"
        rows.append((f"  {name}", str(objects), shown_value(name, *values[name]), kind))
        if series and objects > 1:
            each = [sample for sample in check.samples if sample.metric == name]
            rows += [(f"    {harmless(s.object)}", "", shown_value(name, s.value, s.value), "") for s in each]
    if rows:
        show_table(("  metric", "objects", "now", "kind"), rows)
    if left:
        say(f"and {left} more metrics: --verbose lists them", indent=2)


def _time_text(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%SZ}" if 0 <= seconds < 2**33 else f"{seconds:.0f} s"


def _show_faults(faults: tuple[Fault, ...]) -> None:
    for fault in faults[:_MAX_FAULTS]:
        subject = " ".join(part for part in (fault.metric, fault.object) if part)
        text = harmless(fault.text)
        say(f"not read: {harmless(subject)}: {text}" if subject else f"not read: {text}", indent=2)
    if len(faults) > _MAX_FAULTS:
        say(f"not read: {len(faults) - _MAX_FAULTS} more", indent=2)
