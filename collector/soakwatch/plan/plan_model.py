"""A plan: its keys with their types and bounds, of which the JSON Schema is made, and what is read from them.

A class called ``…Keys`` has the keys that a file gives; ``…Plan`` is made of it, and adds what follows from its place
in the file, such as a name. A part that is checked against another (events against phases) is declared after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Annotated

from pydantic import Field, ValidationError

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, Registry
from soakwatch.core.text import prefixed
from soakwatch.core.units import plan_seconds, seconds
from soakwatch.core.validation import problems
from soakwatch.core.yaml import Document, Path, Plain, Problem, dump, parse, placeless, plan_error
from soakwatch.plan.diagnose_plan import Diagnose
from soakwatch.plan.event_plan import Events
from soakwatch.plan.fleet_plan import unfolded
from soakwatch.plan.hook import Hooks, StopOnFail
from soakwatch.plan.label_plan import Labels
from soakwatch.plan.notify_plan import Notify
from soakwatch.plan.observer_plan import Observer
from soakwatch.plan.parts import NO, YES, Duration, Name, PlanModel, PlanReading, Text
from soakwatch.plan.phase import NO_DURATION, WHOLE_RUN, Phases, phase_data
from soakwatch.plan.rule_plan import Rules
from soakwatch.plan.sink_plan import Sinks
from soakwatch.plan.source_plan import labelled
from soakwatch.plan.start_plan import PlannedStart
from soakwatch.plan.stop_plan import StopWhen
from soakwatch.plan.target import Targets, WatchPlan
from soakwatch.plan.tenant_plan import Tenants
from soakwatch.plan.web import DEFAULT_WEB, Web

_OF_THE_RUN = frozenset(
    {"phases", "events", "start", "hooks", "notify", "stop_on_fail", "stop_when"}
    | {"reference", "baseline", "sinks", "diagnose"}
)
_PASSWORD_IN_URL = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._]+")


class PlanKeys(PlanModel):
    """The keys of a plan. ``duration`` is in seconds; None is the sum of the phases."""

    name: Annotated[Name, Field(description="name of the run; default: the file's name")]
    duration: Annotated[Duration | None, Field(description="length of the run; default: the sum of the phases")] = None
    watch: Annotated[WatchPlan, Field(description="what is watched on every target")] = WatchPlan()
    targets: Annotated[Targets, Field(description="what is polled")]
    phases: Annotated[Phases, Field(description="stretches of the run in order", validate_default=True)] = ()
    rules: Annotated[Rules, Field(description="only what differs from the rules' defaults")] = ()
    start: Annotated[
        PlannedStart | None, Field(description="time with zone, or the next of cron; default: at once")
    ] = None
    events: Annotated[Events, Field(description="planned events")] = ()
    reference: Annotated[
        Text | None, Field(description="file of soakwatch calibrate; default: PLAN.reference.yaml beside the plan")
    ] = None
    baseline: Annotated[Text | None, Field(description="earlier run whose baseline is used")] = None
    hooks: Annotated[Hooks, Field(description="what findings set off")] = ()
    notify: Annotated[
        tuple[Notify, ...], Field(max_length=8, description="who is notified of start, first failure and end")
    ] = ()
    stop_on_fail: Annotated[
        StopOnFail, Field(description="rules whose live failure ends the run; true: every rule", json_schema_extra=NO)
    ] = frozenset()
    stop_when: Annotated[
        StopWhen | None, Field(description="what ends the run early: decided, once every required rule is certain")
    ] = None
    web: Annotated[
        Web, Field(description="page and API of the run while it is running; false: none", json_schema_extra=YES)
    ] = DEFAULT_WEB
    sinks: Annotated[Sinks, Field(description="databases that the record is copied to")] = ()
    tenants: Annotated[
        Tenants, Field(description="those who share the device: by name what is theirs, by target and labels")
    ] = ()
    observer: Annotated[
        Observer, Field(description="pauses of polls, by which is found what they cost the devices")
    ] = None
    diagnose: Annotated[Diagnose, Field(description="what is taken of a process under suspicion; default: nothing")] = (
        None
    )
    labels: Annotated[
        Labels, Field(description="by what runs are found and compared: a text, or where it is read at the start")
    ] = ()


class Plan(PlanKeys):
    """A plan that can be run. Its phases fill its duration exactly; ``rules`` holds only what the plan says of them
    (``plan.rules.planned_rules`` gives all that apply).

    ``origin`` is the file that it was read from, ``text`` the plan as it goes into the record; neither makes two plans
    different.
    """

    origin: str
    text: Annotated[str, Field(repr=False)]  # it has what somebody wrote in clear text

    def __eq__(self, other: object) -> bool:
        """Whether both plan the same run."""
        keys = PlanKeys.model_fields
        return isinstance(other, Plan) and all(getattr(self, key) == getattr(other, key) for key in keys)

    __hash__ = None  # type: ignore[assignment]

    @property
    def duration_s(self) -> float:
        """How long it lasts, at most."""
        return sum(phase.seconds for phase in self.phases)

    def _data(self) -> dict[str, Plain]:
        data = parse(self.text, self.origin).data
        assert isinstance(data, dict)
        return data

    def lasting(self, duration: str | float, registry: Registry = INSTALLED) -> Plan:
        """The same plan with another length: its last soak (without one, its longest phase) is cut or stretched.

        Raises PlanError if nothing of that phase would be left, or a planned event would lie after the end.
        """
        try:
            wanted = seconds(seconds_text(duration))
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
        data = self._data()
        if "phases" in data:
            lengths[chosen] = left
            data["phases"] = [
                phase_data(planned, seconds_text(length)) for planned, length in zip(self.phases, lengths, strict=True)
            ]
        data["duration"] = seconds_text(wanted)
        stretched = read_plan(placeless(data, self.origin), registry)
        changed = {key: getattr(stretched, key) for key in ("duration", "phases", "text")}
        return self.model_copy(update=changed)

    def bare(self, duration_s: float, registry: Registry = INSTALLED) -> Plan:
        """The same targets and rules in one phase of this length, which starts at once: without events, hooks,
        notifications, references and what else belongs to the planned run."""
        data = self._data()
        kept = {key: value for key, value in data.items() if key not in _OF_THE_RUN}
        kept |= {"name": f"{self.name}-drill", "duration": seconds_text(duration_s)}
        return read_plan(placeless(kept, self.origin), registry)

    def unknown_names(self) -> tuple[str, ...]:
        """A sentence for each source that names what is not installed here (a profile, an os, a probe), with its place
        and the nearest name. Asks no device."""
        found = []
        for target in self.targets:
            for label, source in labelled(target.sources):
                try:
                    source.config.require_known()
                except PlanError as error:
                    where = f"{source.location}: " if source.location else ""
                    found += [f"{where}{prefixed(target.name, label, problem)}" for problem in error.problems]
        return tuple(dict.fromkeys(found))

    def labelled(self, given: Mapping[str, str], registry: Registry = INSTALLED) -> Plan:
        """The same plan with these labels, which replace those of the same name. Raises PlanError for too many."""
        if not given:
            return self
        data = self._data()
        before = data.get("labels")
        data["labels"] = {**(before if isinstance(before, dict) else {}), **given}
        labelled = read_plan(placeless(data, self.origin), registry)
        return self.model_copy(update={"labels": labelled.labels, "text": labelled.text})


def read_plan(document: Document, registry: Registry) -> Plan:
    """The plan in a document. Raises PlanError with everything that is wrong with it."""
    document = unfolded(document, registry)
    if not isinstance(document.data, dict):
        message = "a plan is keys and values, such as 'targets:'; 'soakwatch init' writes one to start from"
        raise plan_error(document.origin, [document.problem((), message)])
    # A key with nothing behind it (all of it commented out, say) is a key that is not there.
    data = {key: value for key, value in document.data.items() if value is not None or key == "targets"}
    if "name" not in data:
        data = {"name": name_of([FilePath(document.origin).stem]), **data}
    wrong = _passwords(document, (), document.data)
    context = PlanReading(document, registry)
    try:
        keys = PlanKeys.model_validate_json(json.dumps(data), context=context, by_name=False)
    except ValidationError as error:
        raise plan_error(document.origin, [*wrong, *problems(document, (), PlanKeys, error)]) from None
    if not keys.phases:
        wrong.append(document.problem((), NO_DURATION))
    if wrong:
        raise plan_error(document.origin, wrong)
    return Plan.model_construct(keys.model_fields_set, **dict(keys), origin=document.origin, text=dump(data))


def name_of(words: Sequence[str]) -> str:
    """The name of a run that was given none, made of words."""
    return _NOT_IN_NAME.sub("-", "-".join(words)).strip("-._")[:60].strip("-._") or "run"


def seconds_text(value: str | float) -> str:
    """A duration as a plan writes it; a number is seconds."""
    return value if isinstance(value, str) else f"{value:.6f}".rstrip("0").rstrip(".") + "s"


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
