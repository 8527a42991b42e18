"""A phase as a plan writes it: ``soak: 22h``, or with the load that it asks for and the condition that ends it.

``{baseline: {for: 30m, until: load}}`` ends when the generator begins to send, ``{ramp: {for: 10m, until: settled}}``
when the device's levels stay where they are, ``{soak: {for: 4h, until: event failover}}`` when that event is reported;
each after ``for`` at the latest, so that every run has an end. ``{capacity: {loss: 0, at_most: 20m}}`` ends when the
capacity is found (see ``capacity_plan.py``); ``load: 85% of capacity`` is of what it found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import Field, JsonValue, PlainValidator, ValidationError, ValidationInfo, WithJsonSchema

from soakwatch.core.suggest import hint, nearest
from soakwatch.core.units import plan_seconds, share
from soakwatch.core.validation import Wrong, every, read_part, refused, shown, wrongs
from soakwatch.core.yaml import Plain
from soakwatch.plan.capacity_plan import NAME as CAPACITY
from soakwatch.plan.capacity_plan import CapacityPlan, CapacityShare, capacity_data, capacity_share, loss_words
from soakwatch.plan.parts import EVENT_KIND, Duration, PlanModel, PlanReading, keys_of, one_key, reading, said
from soakwatch_model.roles import GENERATOR

if TYPE_CHECKING:
    from soakwatch.plan.target import TargetPlan

M = TypeVar("M", bound=PlanModel)
PHASES = ("baseline", "ramp", "soak", "stress", "spike", "recovery", "cooldown", CAPACITY)
"""The stretches of a run that rules know, and the search for the capacity, which most of them leave out."""
WHOLE_RUN = "soak"
"""The one phase of a plan that names none."""
NO_DURATION = "the plan has no duration: add duration: 24h, or phases"
MAX_LOAD = 100.0

UNTIL_LOAD, UNTIL_SETTLED, UNTIL_EVENT, UNTIL_FOUND = "load", "settled", "event ", "found"
Load = float | CapacityShare
"""A load of the plan: times the full rate, or a share of the capacity."""


def _load(value: object) -> Load | None:
    if value is None or isinstance(value, CapacityShare):
        return value
    try:
        relative = capacity_share(value)
        level = share(value) if relative is None else relative.share
    except ValueError:
        raise ValueError(f"{value!r} is not a load: write 80%, or 85% of capacity behind a capacity phase") from None
    if not 0 <= level <= MAX_LOAD:
        raise ValueError(f"{value!r} is not a share of the full load: write 80%, 120%, or 0 for no load")
    return level if relative is None else relative


def _until(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    kind = text.removeprefix(UNTIL_EVENT)
    if value is None or text in {UNTIL_LOAD, UNTIL_SETTLED} or (kind != text and EVENT_KIND.fullmatch(kind)):
        return text
    raise ValueError(
        f"{value!r} cannot end a phase: write load, settled, or event and its kind, such as event failover"
    )


_LOAD_SCHEMA = {"type": ["string", "number"], "examples": ["80%", "85% of capacity"]}
_UNTIL_SCHEMA = {"type": "string", "pattern": rf"^(load|settled|event {EVENT_KIND.pattern})$"}


class PhaseKeys(PlanModel):
    """A stretch of the run.

    ``load`` is what driven generators are set to at its begin (1 = full, None = as before); ``until`` ends it early:
    ``load``, ``settled``, ``event KIND``; "" where only the time ends it.
    """

    seconds: Annotated[Duration, Field(alias="for", description="how long it lasts, at most")]
    load: Annotated[
        Load | None,
        PlainValidator(_load),
        WithJsonSchema(_LOAD_SCHEMA),
        Field(description="what driven generators send from its start, of their full rate or of the capacity found"),
    ] = None
    until: Annotated[
        str,
        PlainValidator(_until),
        WithJsonSchema(_UNTIL_SCHEMA),
        Field(description="ends it early: load, settled, or event and its kind"),
    ] = ""


class PhasePlan(PhaseKeys):
    """A stretch of the run and its name. A search for the capacity has its goals in ``search``, and ends (``until``)
    when it has ``found`` it."""

    name: str
    search: CapacityPlan | None = None

    @property
    def event(self) -> str:
        """The kind of event that ends it, or ""."""
        return self.until.removeprefix(UNTIL_EVENT) if self.until.startswith(UNTIL_EVENT) else ""


def _phase(value: object) -> PhasePlan:
    name, given = one_key(value, "a phase", "{soak: 22h}")
    if name not in PHASES:
        raise ValueError(f"unknown phase {name!r}{hint(name, PHASES)}")
    if given is None:
        raise ValueError(f"the phase {name!r} has no duration: write {name}: 30m")
    (phase,) = every([(name, given)], _search if name == CAPACITY else _stretch)
    return phase


def _stretch(name: str, given: JsonValue) -> PhasePlan:
    keys = _keys(PhaseKeys, name, given, "for", f"duration: write {name}: {{for: 30m}}")
    return PhasePlan.model_construct(name=name, **dict(keys))


def _search(name: str, given: JsonValue) -> PhasePlan:
    lacks = "longest time: write capacity: {loss: [0, 0.5%], at_most: 20m}"
    goal = _keys(CapacityPlan, name, given, "at_most", lacks)
    return PhasePlan.model_construct(name=name, seconds=goal.at_most_s, until=UNTIL_FOUND, search=goal)


def _keys(model: type[M], name: str, given: JsonValue, length: str, lacks: str) -> M:
    """The keys of a phase; of one that is a duration alone, that key (``length``). ``lacks`` says what to write."""
    keys = said(model, given if isinstance(given, dict) else {length: given})
    if isinstance(keys, dict) and length not in keys and keys.keys() <= keys_of(model):
        raise ValueError(f"the phase {name!r} has no {lacks}")
    try:
        return read_part(model, keys, name)
    except ValidationError as error:
        if isinstance(given, dict):
            raise
        sentences = (wrong.text.removeprefix(f"{length}: ") for wrong in wrongs(error))
        raise refused(*(Wrong((), f"{name}: {sentence}") for sentence in sentences)) from None


def _phases(given: object, info: ValidationInfo) -> tuple[PhasePlan, ...]:
    """The phases of a plan, checked against its duration and generators; without any, the whole run is one."""
    duration = info.data.get("duration")
    if given is None or given == ():
        if "duration" in info.data and duration is None and not _is_misspelt(reading(info)):
            raise refused(Wrong((), NO_DURATION, top=True))
        return () if duration is None else (PhasePlan.model_construct(name=WHOLE_RUN, seconds=duration),)
    if not isinstance(given, list):
        raise ValueError(f"expected a list, found {shown(given)}")
    if not given:
        raise ValueError("is empty: at least one is needed")
    phases = tuple(every(enumerate(given), lambda _, phase: _phase(phase)))
    total = sum(phase.seconds for phase in phases)
    wrong = []
    if duration is not None and abs(duration - total) > 1e-6:
        sums = f"is {plan_seconds(duration)}, but the phases add up to {plan_seconds(total)}"
        wrong.append(Wrong(("duration",), f"duration: {sums}: correct one, or leave duration out", top=True))
    targets = info.data.get("targets")
    if targets is not None:
        wrong += [
            Wrong((index,), sentence)
            for index in range(len(phases))
            for sentence in _unloaded(phases, index, [target for target in targets if target.role == GENERATOR])
        ]
    if wrong:
        raise refused(*wrong)
    return phases


def _is_misspelt(context: PlanReading) -> bool:
    """Whether one of the plan's keys is meant to be ``duration`` or ``phases``: that is told as an unknown key."""
    return any(nearest(key, ("duration", "phases")) for key in context.keys)


def _unloaded(phases: Sequence[PhasePlan], index: int, generators: Sequence[TargetPlan]) -> Iterator[str]:
    """What is wrong with a phase that asks for a load, waits for one, or searches for the capacity."""
    phase = phases[index]
    driven = [s.config for target in generators for s in target.sources if getattr(s.config, "drive", False)]
    remedy = "no generator is driven: add drive: true to a source of a target with role: generator"
    if phase.search is not None:
        unfit = dict.fromkeys(f"capacity: {why}" for config in driven if (why := config.lossless))
        yield from unfit if driven else [f"capacity: {remedy}"]
    if isinstance(phase.load, CapacityShare):
        before = [earlier.search for earlier in phases[:index] if earlier.search is not None]
        if not before:
            yield f"load: {phase.load} needs a capacity phase before it: add capacity: {{loss: 0, at_most: 20m}}"
        elif phase.load.loss is not None and phase.load.loss not in before[-1].loss:
            known = " and ".join(loss_words(loss) for loss in before[-1].loss)
            yield f"load: {phase.load}: that loss is not searched for: add it to loss of the capacity phase ({known})"
    if phase.load is not None and not driven:
        yield f"load: {remedy}"
    if phase.until == UNTIL_LOAD and not generators:
        yield "until: load waits for a generator, but no target has role: generator: add one"


Phases = Annotated[
    tuple[PhasePlan, ...],
    PlainValidator(
        _phases,
        json_schema_input_type=Annotated[list[dict[str, Duration | PhaseKeys | CapacityPlan]], Field(min_length=1)]
        | None,
    ),
]


def phase_data(phase: PhasePlan, length: str) -> Plain:
    """How a plan writes a phase, with another length."""
    if phase.search is not None:
        return {phase.name: capacity_data(phase.search, length)}
    if phase.load is None and not phase.until:
        return {phase.name: length}
    settings: dict[str, Plain] = {"for": length}
    if phase.load is not None:
        settings["load"] = str(phase.load) if isinstance(phase.load, CapacityShare) else phase.load
    if phase.until:
        settings["until"] = phase.until
    return {phase.name: settings}
