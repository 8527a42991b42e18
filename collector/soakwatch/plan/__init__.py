"""The plan: what a run polls, for how long, in which phases, judged by which rules. Parsed once, refused early.

``load_plan`` reads a file, ``quick_plan`` builds one from command-line words; both give a ``Plan``, or one PlanError
that holds every problem with its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path as FilePath

from pydantic import ValidationError

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, Registry
from soakwatch.core.registry import rules as rule_names
from soakwatch.core.units import plan_seconds, seconds
from soakwatch.core.validation import problems as problems_of
from soakwatch.core.yaml import Document, Path, Plain, Problem, dump, parse, placeless, plan_error, read_text
from soakwatch.plan.address import LOCAL, targets_of
from soakwatch.plan.capacity import CapacityShare, loss_words
from soakwatch.plan.drill import DrillPlan, drill_of
from soakwatch.plan.event import EventPlan, events_of
from soakwatch.plan.fleet import unfolded
from soakwatch.plan.hook import HookPlan, hook_problems, stop_problems
from soakwatch.plan.labels import LabelPlan, labels_of
from soakwatch.plan.model import (
    INTERFACES_ALL,
    PlanShape,
    ProcessShape,
    TargetShape,
    WatchShape,
    one_key,
    process_data,
)
from soakwatch.plan.notify import NotifyPlan
from soakwatch.plan.observer import ObserverPlan, observer_of
from soakwatch.plan.patch import with_values
from soakwatch.plan.phase import UNTIL_LOAD, PhasePlan, phase_data
from soakwatch.plan.rules import RulePlan, read_rules
from soakwatch.plan.sink import SinkPlan, sinks_of
from soakwatch.plan.tenants import TenantPlan, tenants_of
from soakwatch.plan.web import DEFAULT_WEB, WebPlan, web_of
from soakwatch.sources.abc import SourceConfig, WatchedProcess
from soakwatch.sources.registry import poller_module
from soakwatch_model.roles import DUT, GENERATOR

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

WHOLE_RUN = "soak"
"""The one phase of a plan that names none."""
_OF_THE_RUN = frozenset(
    ("phases", "events", "start", "hooks", "notify", "stop_on_fail", "reference", "baseline", "sinks")
)
_PASSWORD_IN_URL = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._]+")


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """One source of a target: the poller or load, its keys, and where the plan names it (``plan.yaml:14:7``)."""

    poller: str
    config: SourceConfig
    location: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """One target with its sources and what is watched there; ``interfaces`` are globs, None = all."""

    name: str
    role: str
    sources: tuple[SourcePlan, ...]
    processes: tuple[WatchedProcess, ...] = ()
    interfaces: tuple[str, ...] | None = None
    shared: bool = False  # other programs run there too: growth of the machine as a whole only warns
    poll_mode: tuple[int, ...] | None = None  # cores that a driver polls with; (): all that are always busy
    drill: DrillPlan | None = None  # what soakwatch drill may break there


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that can be run. ``phases`` fill ``duration_s`` exactly; ``rules`` holds only what the plan says of them
    (``plan.rules.planned_rules`` gives all that apply); a live failure of a rule in ``stop_on_fail`` ends the run;
    ``reference`` and ``baseline`` are what it is compared with, "" where the plan does not say; ``text`` is the plan as
    it goes into the record."""

    name: str
    duration_s: float
    phases: tuple[PhasePlan, ...]
    targets: tuple[TargetPlan, ...]
    rules: tuple[RulePlan, ...] = ()
    start: datetime | None = None  # UTC
    events: tuple[EventPlan, ...] = ()
    hooks: tuple[HookPlan, ...] = ()
    stop_on_fail: frozenset[str] = frozenset()  # rules
    reference: str = ""  # a file
    baseline: str = ""  # an earlier run
    origin: str = field(default="", compare=False)
    text: str = field(default="", compare=False)
    web: WebPlan | None = DEFAULT_WEB  # None: nothing is served
    sinks: tuple[SinkPlan, ...] = ()  # databases that the record is copied to
    notify: tuple[NotifyPlan, ...] = ()  # who is notified of the run
    labels: tuple[LabelPlan, ...] = ()  # by what the run is found and compared
    tenants: tuple[TenantPlan, ...] = ()  # those who share the device
    observer: ObserverPlan | None = None  # devices are left alone now and then, to weigh the monitor itself

    def lasting(self, duration: str | float, registry: Registry = INSTALLED) -> Plan:
        """The same plan with another length: its last soak (without one, its longest phase) is cut or stretched.

        Raises PlanError if nothing of that phase would be left, or a planned event would lie after the end.
        """
        try:
            wanted = seconds(_seconds_text(duration))
        except ValueError as error:
            raise PlanError(f"--duration: {error}") from None
        soaks = [index for index, phase in enumerate(self.phases) if phase.name == WHOLE_RUN]
        lengths = [phase.seconds for phase in self.phases]
        chosen = soaks[-1] if soaks else lengths.index(max(lengths))
        phase = self.phases[chosen]
        left = phase.seconds + wanted - self.duration_s
        if left <= 0:
            others = plan_seconds(self.duration_s - phase.seconds)
            raise PlanError(f"--duration: {duration} leaves no time for {phase.name}: the other phases take {others}")
        data = parse(self.text, self.origin).data
        assert isinstance(data, dict)
        if "phases" in data:
            lengths[chosen] = left
            data["phases"] = [
                phase_data(planned, _seconds_text(length)) for planned, length in zip(self.phases, lengths, strict=True)
            ]
        data["duration"] = _seconds_text(wanted)
        stretched = _plan(placeless(data, self.origin), registry)
        return replace(self, duration_s=stretched.duration_s, phases=stretched.phases, text=stretched.text)

    def bare(self, duration_s: float, registry: Registry = INSTALLED) -> Plan:
        """The same targets and rules in one phase of this length, which starts at once: without events, hooks,
        notifications, references and what else belongs to the planned run."""
        data = parse(self.text, self.origin).data
        assert isinstance(data, dict)
        kept = {key: value for key, value in data.items() if key not in _OF_THE_RUN}
        kept |= {"name": f"{self.name}-drill", "duration": _seconds_text(duration_s)}
        return _plan(placeless(kept, self.origin), registry)

    def labelled(self, given: Mapping[str, str], registry: Registry = INSTALLED) -> Plan:
        """The same plan with these labels, which replace those of the same name. Raises PlanError for too many."""
        if not given:
            return self
        data = parse(self.text, self.origin).data
        assert isinstance(data, dict)
        before = data.get("labels")
        data["labels"] = {**(before if isinstance(before, dict) else {}), **given}
        labelled = _plan(placeless(data, self.origin), registry)
        return replace(self, labels=labelled.labels, text=labelled.text)


def load_plan(
    path: FilePath | str, registry: Registry = INSTALLED, *, device: bool = True, values: Sequence[str] = ()
) -> Plan:
    """The plan in a file; without a ``name`` it is called after the file. ``values`` replace some of it
    (``PATH=VALUE``, see ``plan.patch``). Raises PlanError, also for a plan without a device to judge, unless ``device``
    says that there need be none."""
    document = parse(read_text(FilePath(path)), str(path))
    return plan_of(with_values(document, values) if values else document, registry, device=device)


def plan_of(document: Document, registry: Registry = INSTALLED, *, device: bool = True) -> Plan:
    """The plan in a document, such as a file's with some values replaced; as ``load_plan`` otherwise."""
    plan = _plan(document, registry)
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
    return _plan(with_values(document, values) if values else document, registry)


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
    listed = targets_of(targets or (LOCAL,), None if interval is None else _seconds_text(interval), registry)
    if LOCAL in listed:
        listed[LOCAL]["shared"] = True
    names = [text.partition(":")[2] or text for text in processes]
    data: dict[str, Plain] = {
        "name": name or _name_of([*listed, *names]),
        "duration": _seconds_text(duration),
        "targets": dict(listed),
    }
    if processes:
        data["watch"] = {"processes": [process_data(text) for text in processes]}
    return _plan(placeless(data, "command line"), registry)


def plan_text(plan: Plan) -> str:
    """The plan as it goes into the record: YAML that reads back to an equal plan. Comments are left out, and secrets
    are the references that the plan holds."""
    return plan.text


def _name_of(words: Sequence[str]) -> str:
    return _NOT_IN_NAME.sub("-", "-".join(words)).strip("-._")[:60].strip("-._") or "run"


def _seconds_text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6f}".rstrip("0").rstrip(".") + "s"


def _plan(document: Document, registry: Registry) -> Plan:
    document = unfolded(document, registry)
    if not isinstance(document.data, dict):
        message = "a plan is keys and values, such as 'targets:'; 'soakwatch init' writes one to start from"
        raise plan_error(document.origin, [document.problem((), message)])
    # A key with nothing behind it (all of it commented out, say) is a key that is not there.
    data = {key: value for key, value in document.data.items() if value is not None or key == "targets"}
    if "name" not in data:
        data = {"name": _name_of([FilePath(document.origin).stem]), **data}
    problems: list[Problem] = _passwords(document, (), document.data)
    shape: PlanShape | None = None
    try:
        shape = PlanShape.model_validate_json(json.dumps(data))
    except ValidationError as error:
        problems += problems_of(document, (), PlanShape, error)
    sources, wrong = _all_sources(document, registry)
    problems += wrong
    sinks, wrong = sinks_of(document, registry)
    problems += wrong
    rules, wrong = read_rules(document, registry)
    problems += wrong
    if shape is None:
        raise plan_error(document.origin, problems)
    duration, phases, wrong = _stretches(document, shape)
    problems += wrong
    targets = []
    for name, target in shape.targets.items():
        planned, wrong = _target(document, shape.watch, name, target, sources.get(name, ()))
        targets.append(planned)
        problems += wrong
    problems += _unloaded(document, phases, targets)
    events, wrong = events_of(document, shape.events, duration, phases, tuple(shape.targets))
    problems += wrong
    problems += hook_problems(document, shape.hooks, rule_names(registry), tuple(shape.targets))
    problems += stop_problems(document, shape.stop_on_fail, rule_names(registry))
    web, wrong = web_of(document, shape.web)
    problems += wrong
    labels, wrong = labels_of(document, tuple(shape.targets))
    problems += wrong
    tenants, wrong = tenants_of(document, tuple(shape.targets))
    problems += wrong
    devices = {t.name: [source.config for source in t.sources] for t in targets if t.role == DUT}
    observer, wrong = observer_of(document, shape.observer, phases, devices)
    problems += wrong
    if problems:
        raise plan_error(document.origin, problems)
    stop = shape.stop_on_fail if isinstance(shape.stop_on_fail, list) else rule_names(registry)
    return Plan(
        shape.name,
        duration,
        phases,
        tuple(targets),
        rules,
        shape.start,
        events,
        tuple(shape.hooks),
        frozenset(stop if shape.stop_on_fail else ()),
        shape.reference or "",
        shape.baseline or "",
        document.origin,
        dump(data),
        web,
        sinks,
        tuple(shape.notify),
        labels,
        tenants,
        observer,
    )


def _passwords(document: Document, path: Path, value: Plain) -> list[Problem]:
    if isinstance(value, str):
        if _PASSWORD_IN_URL.search(value) is None:
            return []
        message = "this address contains a password: remove it, and give it by a key that takes env:NAME or file:PATH"
        return [document.problem(path, message)]
    items: list[tuple[str | int, Plain]] = []
    if isinstance(value, dict):
        items.extend(value.items())
    elif isinstance(value, list):
        items.extend(enumerate(value))
    return [problem for key, inner in items for problem in _passwords(document, (*path, key), inner)]


def _all_sources(document: Document, registry: Registry) -> tuple[dict[str, tuple[SourcePlan, ...]], list[Problem]]:
    """The sources of every target, from plain data, so that one plan's problems are all found at once."""
    targets = document.data.get("targets") if isinstance(document.data, dict) else None
    sources: dict[str, tuple[SourcePlan, ...]] = {}
    problems: list[Problem] = []
    for name, target in targets.items() if isinstance(targets, dict) else ():
        listed = target.get("sources") if isinstance(target, dict) else None
        plans: list[SourcePlan] = []
        for index, item in enumerate(listed if isinstance(listed, list) else ()):
            path: Path = ("targets", name, "sources", index)
            try:
                plan = _source(document, path, item, registry)
                if any(_same_question(plan, other) for other in plans):
                    message = f"{plan.poller}: this source is listed twice with the same keys: remove one"
                    problems.append(document.problem(path, message))
                plans.append(plan)
            except PlanError as error:
                problems.append(document.problem(path, str(error)))
            except _RefusedError as error:
                problems += error.problems
        sources[name] = tuple(plans)
    return sources, problems


def _same_question(first: SourcePlan, other: SourcePlan) -> bool:
    # The same question asked at two intervals would put two answers into one series.
    pace = set(SourceConfig.model_fields)
    asked = [plan.config.model_dump(exclude=pace) for plan in (first, other)]
    return first.poller == other.poller and asked[0] == asked[1]


class _RefusedError(Exception):
    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("refused")
        self.problems = problems


def _source(document: Document, path: Path, item: Plain, registry: Registry) -> SourcePlan:
    try:
        name, keys = one_key(item, "a source", "{local: {interval: 1s}}")
    except ValueError as error:
        raise PlanError(str(error)) from None
    module = poller_module(name, registry)
    inner = (*path, name) if isinstance(item, dict) else path
    try:
        config = module.config.model_validate_json(json.dumps({} if keys is None else keys), strict=True)
    except ValidationError as error:
        raise _RefusedError(problems_of(document, inner, module.config, error)) from None
    return SourcePlan(name, config, document.where(inner, key=True))


def _stretches(document: Document, shape: PlanShape) -> tuple[float, tuple[PhasePlan, ...], list[Problem]]:
    phases = tuple(shape.phases or ())
    total = sum(phase.seconds for phase in phases)
    if not phases:
        if shape.duration is None:
            return 0.0, (), [document.problem((), "the plan has no duration: add duration: 24h, or phases")]
        return shape.duration, (PhasePlan(WHOLE_RUN, shape.duration),), []
    if shape.duration is not None and abs(shape.duration - total) > 1e-6:
        sums = f"is {plan_seconds(shape.duration)}, but the phases add up to {plan_seconds(total)}"
        message = f"duration: {sums}: correct one, or leave duration out"
        return total, phases, [document.problem(("duration",), message)]
    return total, phases, []


def _unloaded(document: Document, phases: Sequence[PhasePlan], targets: Sequence[TargetPlan]) -> list[Problem]:
    """Phases that ask for a load, or wait for one, where no generator is driven, or none is polled."""
    generators = [target for target in targets if target.role == GENERATOR]
    driven = any(getattr(source.config, "drive", False) for target in generators for source in target.sources)
    problems = []
    for index, phase in enumerate(phases):
        problems += [document.problem(("phases", index), message) for message in _searched(phases, index, targets)]
        if phase.load is not None and not driven:
            message = "load: no generator is driven: add drive: true to a source of a target with role: generator"
            problems.append(document.problem(("phases", index), message))
        if phase.until == UNTIL_LOAD and not generators:
            message = "until: load waits for a generator, but no target has role: generator: add one"
            problems.append(document.problem(("phases", index), message))
    return problems


def _searched(phases: Sequence[PhasePlan], index: int, targets: Sequence[TargetPlan]) -> list[str]:
    """What is wrong with a search for the capacity, or with a load that is a share of it."""
    phase = phases[index]
    if phase.search is not None:
        generators = [target for target in targets if target.role == GENERATOR]
        sources = [s for target in generators for s in target.sources if getattr(s.config, "drive", False)]
        if not sources:
            return ["capacity: no generator is driven: add drive: true to a source of a target with role: generator"]
        return list(dict.fromkeys(f"capacity: {why}" for s in sources if (why := s.config.lossless)))
    if not isinstance(phase.load, CapacityShare):
        return []
    before = [earlier.search for earlier in phases[:index] if earlier.search is not None]
    if not before:
        return [f"load: {phase.load} needs a capacity phase before it: add capacity: {{loss: 0, at_most: 20m}}"]
    if phase.load.loss is not None and phase.load.loss not in before[-1].loss:
        known = " and ".join(loss_words(loss) for loss in before[-1].loss)
        return [f"load: {phase.load}: that loss is not searched for: add it to loss of the capacity phase ({known})"]
    return []


def _target(
    document: Document, common: WatchShape, name: str, shape: TargetShape, sources: tuple[SourcePlan, ...]
) -> tuple[TargetPlan, list[Problem]]:
    own = shape.watch or WatchShape()
    watch_path: Path = ("watch",) if own.processes is None else ("targets", name, "watch")
    listed = common.processes if own.processes is None else own.processes
    interfaces = common.interfaces if own.interfaces is None else own.interfaces
    watched: dict[str, WatchedProcess] = {}
    problems = []
    for index, process in enumerate(listed or ()):
        watch = _watched(process)
        if watch.name in watched:
            message = f"two watched processes are called {watch.name!r}: rename one of them"
            problems.append(document.problem((*watch_path, "processes", index), message))
        watched[watch.name] = watch
    everything = interfaces is None or INTERFACES_ALL in interfaces
    target = TargetPlan(
        name,
        shape.role,
        sources,
        tuple(watched.values()),
        None if everything else tuple(interfaces or ()),
        shape.shared,
        _polling(shape.poll_mode),
        drill_of(shape.drill),
    )
    return target, problems


def _polling(cores: list[int] | bool) -> tuple[int, ...] | None:  # noqa: FBT001
    if isinstance(cores, list):
        return tuple(cores) or None
    return () if cores else None


def _watched(shape: ProcessShape) -> WatchedProcess:
    if shape.pid is not None:
        return WatchedProcess(shape.name or f"pid:{shape.pid}", "pid", str(shape.pid))
    if shape.pidfile is not None:
        return WatchedProcess(shape.name or FilePath(shape.pidfile).stem, "pidfile", shape.pidfile)
    if shape.cmdline is not None:
        return WatchedProcess(shape.name or shape.cmdline, "cmdline", shape.cmdline)
    return WatchedProcess(shape.name or "", "name", shape.name or "")
