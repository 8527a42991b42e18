"""Loads the sink modules that a plan names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, Registry
from soakwatch.plan.sink_plan import SinkConfig, SinkPlan
from soakwatch.record import RecordView
from soakwatch.transfer.sinks.abc import Destination


def destination(sink: SinkPlan, registry: Registry = INSTALLED) -> Destination:
    """Where a sink of a plan writes. Raises PlanError for a module without the interface of abc.py."""
    module = registry.sinks.module(sink.kind)
    function: object = getattr(module, "destination", None)
    if not callable(function):
        raise PlanError(f"the sink {sink.kind!r} has no function 'destination': correct {module.__name__}")
    return cast("Callable[[SinkConfig], Destination]", function)(sink.config)


def destinations(sinks: Sequence[SinkPlan], registry: Registry = INSTALLED) -> Mapping[str, Destination]:
    """Where the sinks of a plan write, in its order, by name: ``influxdb-1``, ``influxdb-2``.

    Raises PlanError.
    """
    return {f"{sink.kind}-{number}": destination(sink, registry) for number, sink in enumerate(sinks, 1)}


def planned_sink(record: Path, name: str) -> Destination:
    """The sink of this name in the plan of a recorded run; names are those of ``destinations``.

    Raises PlanError if the plan has no such sink, RecordError for an unreadable record.
    """
    from soakwatch.judge.record_verdict import recorded_plan  # imports the rules, which a check need not have

    with RecordView.open(record) as view:
        named = destinations(recorded_plan(view).sinks)
    if name not in named:
        known = f"its sinks are {', '.join(named)}" if named else "it names none"
        raise PlanError(f"--to: the plan of this run has no sink {name!r} ({known}); write influxdb://HOST:8086?…")
    return named[name]
