"""The plan: what a run polls, for how long, in which phases, judged by which rules. Parsed once, refused early.

``load_plan`` reads a file, ``quick_plan`` builds one from command-line words; both give a ``Plan``, or one PlanError
that holds every problem with its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from soakwatch.core.registry import INSTALLED, Registry
from soakwatch.core.yaml import Document, Plain, parse, placeless, plan_error, read_text
from soakwatch.plan.event_plan import EventPlan
from soakwatch.plan.hook import HookPlan
from soakwatch.plan.label_plan import LabelPlan
from soakwatch.plan.patch import with_values
from soakwatch.plan.plan_model import Plan, name_of, read_plan, seconds_text
from soakwatch.plan.source_plan import SourcePlan
from soakwatch.plan.target import TargetPlan, process_data
from soakwatch.plan.target_address import LOCAL, targets_of
from soakwatch.plan.tenant_plan import TenantPlan
from soakwatch_model.roles import DUT

__all__ = [
    "EventPlan",
    "HookPlan",
    "LabelPlan",
    "Plan",
    "SourcePlan",
    "TargetPlan",
    "TenantPlan",
    "load_plan",
    "plan_from_text",
    "plan_of",
    "plan_text",
    "process_data",
    "quick_plan",
]


def load_plan(
    path: Path | str, registry: Registry = INSTALLED, *, device: bool = True, values: Sequence[str] = ()
) -> Plan:
    """The plan in a file; without a ``name`` it is called after the file. ``values`` replace some of it
    (``PATH=VALUE``, see ``plan.patch``). Raises PlanError, also for a plan without a device to judge, unless ``device``
    says that there need be none."""
    document = parse(read_text(Path(path)), str(path))
    return plan_of(with_values(document, values) if values else document, registry, device=device)


def plan_of(document: Document, registry: Registry = INSTALLED, *, device: bool = True) -> Plan:
    """The plan in a document, such as a file's with some values replaced; as ``load_plan`` otherwise."""
    plan = read_plan(document, registry)
    if device and not any(target.role == DUT for target in plan.targets):
        message = "no target has the role dut, so there is no device to judge: set role: dut on the device under test"
        raise plan_error(document.origin, [document.problem(("targets",), message, key=True)])
    return plan


def plan_from_text(text: str, origin: str, registry: Registry = INSTALLED, *, values: Sequence[str] = ()) -> Plan:
    """The plan in a YAML text; ``origin`` is the file's name as errors show it. ``values`` replace some of it, as
    those of ``load_plan`` do.

    Raises PlanError; its ``problems`` are all sentences, in the order of their places.
    """
    document = parse(text, origin)
    return read_plan(with_values(document, values) if values else document, registry)


def quick_plan(
    targets: Sequence[str],
    processes: Sequence[str] = (),
    interval: str | float | None = None,
    duration: str | float = "30m",
    name: str | None = None,
    registry: Registry = INSTALLED,
) -> Plan:
    """The plan of ``run --target T --process P --interval I --duration D``; numbers are seconds.

    A target is an address (see address.py); a process ``NAME``, a glob, ``pid:N``, ``cmdline:REGEX`` or
    ``pidfile:FILE``. This machine is ``shared``: whoever watches one of its processes runs other programs on it too.
    Raises PlanError.
    """
    listed = targets_of(targets or (LOCAL,), None if interval is None else seconds_text(interval), registry)
    if LOCAL in listed:
        listed[LOCAL]["shared"] = True
    names = [text.partition(":")[2] or text for text in processes]
    data: dict[str, Plain] = {
        "name": name or name_of([*listed, *names]),
        "duration": seconds_text(duration),
        "targets": dict(listed),
    }
    if processes:
        data["watch"] = {"processes": [process_data(text) for text in processes]}
    return read_plan(placeless(data, "command line"), registry)


def plan_text(plan: Plan) -> str:
    """The plan as it goes into the record: YAML that reads back to an equal plan. Comments are left out, and secrets
    are the references that the plan holds."""
    return plan.text
