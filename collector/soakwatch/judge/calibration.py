"""The reference of a plan: what its generators could send when looped back without the device, and its file.

``soakwatch calibrate`` writes it next to the plan. Each generator in it has a fingerprint of the keys of its sources;
one whose fingerprint no longer matches is not used.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from soakwatch.core.errors import PlanError, RecordError
from soakwatch.core.units import show_seconds
from soakwatch.core.yaml import parse, read_text
from soakwatch.judge.ceiling import KINDS, Ceiling
from soakwatch.judge.judged_record import JudgeableRecord
from soakwatch.plan import Plan, TargetPlan
from soakwatch.record import Record
from soakwatch.sources.abc import SourceConfig
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

VERSION = 1
SUFFIX = ".reference.yaml"
META = "reference"
"""Record meta: the reference that the run was compared with, as JSON with its hash."""
SOURCE = "reference"
"""The record's source of the ceilings."""
OWN_LOSS = "load.ceiling.loss"
STALE_S = 30 * 86400.0
"""An older reference is used, with a warning about its age."""
# keys that change how often a source is polled and who drives it, not what it can send
_PACE = frozenset(SourceConfig.model_fields) | {"drive"}
_HEAD = """\
# Written by soakwatch calibrate: what the generators of a plan could send without the device.
# A run of the plan beside this file is compared with it. Calibrate again whenever a generator changes.
"""

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CeilingShape(_Shape):
    """One ceiling: ``rate`` per second, held for ``held_s``; a field is missing if the generator did not report it."""

    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    held_s: Amount
    loss: Share | None = None
    cpu: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    queue_full: Amount | None = None
    level: Amount | None = None


class GeneratorShape(_Shape):
    """The ceilings of one generator; ``sources`` is the fingerprint of its sources."""

    sources: Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]
    packets: CeilingShape | None = None
    bits: CeilingShape | None = None
    requests: CeilingShape | None = None


class ReferenceShape(_Shape):
    """The content of a reference file."""

    version: Literal[1]
    made: AwareDatetime
    record: Annotated[str, Field(min_length=1, max_length=255)]
    soakwatch: Annotated[str, Field(min_length=1, max_length=100)]
    generators: Annotated[dict[str, GeneratorShape], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference with the file that it was read from."""

    file: Path
    shape: ReferenceShape

    def age(self, now_s: float) -> str:
        """The age in words; zero if the clock was set back."""
        age_s = max(0.0, now_s - self.shape.made.timestamp())
        return show_seconds(age_s // 60 * 60 or age_s // 1)


@dataclass(frozen=True, slots=True)
class ReferenceChoice:
    """The ceilings by target and metric that a plan is compared with, and warnings about what is not used."""

    reference: Reference | None
    ceilings: Mapping[str, Mapping[str, float]]
    warnings: tuple[str, ...] = ()


NONE = ReferenceChoice(None, {})


def fingerprint(target: TargetPlan) -> str:
    """Hash over the keys of a target's sources without their polling; secrets enter by name only."""
    lines = sorted(
        json.dumps([source.poller, source.config.model_dump(mode="json", exclude=set(_PACE))], sort_keys=True)
        for source in target.sources
    )
    return f"sha256:{hashlib.sha256(json.dumps(lines).encode()).hexdigest()}"


def reference_path(plan: Path) -> Path:
    """The default file for the reference of a plan.

    >>> reference_path(Path("lab/fw.yaml")).name
    'fw.reference.yaml'
    """
    return plan.with_name(f"{plan.stem}{SUFFIX}")


def read_reference(file: Path) -> Reference:
    """Read a reference file. Raises PlanError, one sentence with the remedy, if it cannot be used."""
    document = parse(read_text(file), str(file))
    data = document.data
    if isinstance(data, dict) and data.get("version") != VERSION:
        raise PlanError(f"{file}: is not a reference of version {VERSION}: make it with soakwatch calibrate PLAN")
    try:
        return Reference(file, ReferenceShape.model_validate_json(json.dumps(data)))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise PlanError(
            f"{file}: is not a reference of a generator ({where}: {first['msg']}): run soakwatch calibrate PLAN"
        ) from None


def choose_reference(plan: Plan, named: Path | None, now_s: float) -> ReferenceChoice:
    """The reference that a plan is compared with: ``named`` on the command line, else the plan's key ``reference``,
    else the file next to the plan.

    A named one must exist and be valid (PlanError); an invalid one next to the plan is left out with a warning, as is a
    generator whose sources have changed.
    """
    origin = Path(plan.origin)
    file = named or (origin.parent / plan.reference if plan.reference else None)
    try:
        if file is None:
            if not plan.origin or not reference_path(origin).is_file():
                return NONE
            reference = read_reference(reference_path(origin))
        else:
            reference = read_reference(file)
    except PlanError as error:
        if file is not None:
            raise
        return ReferenceChoice(None, {}, (f"{error}; it is not used",))
    return _fitting(plan, reference, now_s)


def _fitting(plan: Plan, reference: Reference, now_s: float) -> ReferenceChoice:
    used: dict[str, Mapping[str, float]] = {}
    warnings = []
    for target in plan.targets:
        if target.role != GENERATOR:
            continue
        shape = reference.shape.generators.get(target.name)
        if shape is None:
            warnings.append(f"{reference.file}: has no ceiling of generator {target.name}: calibrate the plan again")
        elif shape.sources != fingerprint(target):
            warnings.append(
                f"{reference.file}: was made with other sources of {target.name}, and is not used for it: calibrate "
                "the plan again"
            )
        else:
            used[target.name] = _ceilings(shape)
    if used and now_s - reference.shape.made.timestamp() > STALE_S:
        warnings.append(f"{reference.file}: is {reference.age(now_s)} old: calibrate again if a generator has changed")
    return ReferenceChoice(reference if used else None, used, tuple(warnings))


def _ceilings(shape: GeneratorShape) -> Mapping[str, float]:
    """Rates by metric, plus the worst share that the generator lost by itself at any of them, where it reports it."""
    shapes = {kind.metric: getattr(shape, kind.name) for kind in KINDS}
    known = {metric: ceiling for metric, ceiling in shapes.items() if isinstance(ceiling, CeilingShape)}
    losses = [ceiling.loss for ceiling in known.values() if ceiling.loss is not None]
    own = {OWN_LOSS: max(losses)} if losses else {}
    return {**{metric: ceiling.rate for metric, ceiling in known.items()}, **own}


def keep(record: Record, choice: ReferenceChoice, plan: Plan, start_ns: int) -> None:
    """Freeze a reference in the record of a starting run: its content with its hash, and the ceilings as samples of
    each generator at the start. Raises RecordError."""
    if choice.reference is None:
        return
    shape = choice.reference.shape.model_dump(mode="json", exclude_none=True)
    frozen = json.dumps(shape, sort_keys=True)
    document = {
        "file": choice.reference.file.name,
        "sha256": hashlib.sha256(frozen.encode()).hexdigest(),
        "used": sorted(choice.ceilings),
        "reference": shape,
    }
    record.set_meta(META, json.dumps(document, sort_keys=True))
    for target in plan.targets:
        ceilings = choice.ceilings.get(target.name, {})
        if not ceilings:
            continue
        record.target(target.name, target.role)
        # Polled once: the next poll would be due after the end.
        source = record.source(target.name, SOURCE, SOURCE, max(10**9, round(plan.duration_s * 1e9)), required=False)
        samples = tuple(Sample(metric, "", rate, start_ns) for metric, rate in sorted(ceilings.items()))
        record.put([Poll(source.id, start_ns, start_ns, 0, PollOutcome.OK, None, Answer(samples, (), ()))])


def recorded_ceilings(record: JudgeableRecord) -> Mapping[str, Mapping[str, float]]:
    """The ceilings that a record holds, by target and metric."""
    ceilings: dict[str, dict[str, float]] = {}
    for key in record.keys([kind.metric for kind in KINDS]):
        series = record.series(key).finite()
        if len(series):
            ceilings.setdefault(key.target, {})[key.metric] = float(series.value[-1])
    return ceilings


def combined_ceilings(plan: Plan, ceilings: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    """What all driven generators of a plan can send together, by metric; only metrics known of each of them."""
    driven = [
        target.name
        for target in plan.targets
        if target.role == GENERATOR and any(getattr(source.config, "drive", False) for source in target.sources)
    ]
    parts = [ceilings.get(name, {}) for name in driven]
    return {
        kind.metric: sum(part[kind.metric] for part in parts)
        for kind in KINDS
        if parts and all(kind.metric in part for part in parts)
    }


def write_reference(
    file: Path,
    made_at: datetime,
    record: str,
    version: str,
    ceilings_by_target: Mapping[str, tuple[str, Iterable[Ceiling]]],
) -> None:
    """Write a reference file: per generator its fingerprint and ceilings. Raises RecordError."""
    generators = {
        name: {"sources": sources, **{ceiling.kind.name: _shape_of(ceiling) for ceiling in ceilings}}
        for name, (sources, ceilings) in ceilings_by_target.items()
    }
    data = {
        "version": VERSION,
        "made": made_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "record": record,
        "soakwatch": version,
        "generators": generators,
    }
    text = _HEAD + yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    draft = file.with_name(f".{file.name}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise RecordError(f"{file} cannot be written: {error.strerror or type(error).__name__}") from None


def _shape_of(ceiling: Ceiling) -> Mapping[str, float]:
    values = {
        "rate": ceiling.rate,
        "held_s": ceiling.window.seconds,
        "loss": ceiling.loss,
        "cpu": ceiling.cpu,
        "queue_full": ceiling.queue_full,
        "level": ceiling.level,
    }
    return {key: _rounded(value) for key, value in values.items() if value is not None}


def _rounded(value: float) -> float:
    """Round to six significant digits, which is what a calibration can know.

    >>> _rounded(1234567.89), _rounded(0.00012345678)
    (1234570.0, 0.000123457)
    """
    return round(value, 5 - math.floor(math.log10(abs(value)))) if value else 0.0
