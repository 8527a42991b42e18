"""The labels of a plan: texts, and those that are read when the run starts (from a command or a package)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field, JsonValue, ValidationError, model_validator

from soakwatch.core.labels import LABEL_NAME, MAX_LABELS, MAX_TEXT, label_name, label_text
from soakwatch.core.regex import user_regex
from soakwatch.core.suggest import hint
from soakwatch.core.validation import Wrong, every, read_part, refused, shown, wrongs
from soakwatch.plan.parts import Duration, PlanModel, PlanReading, Text, Words, made_of

_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_~:-]{0,199}")
_EXAMPLE = '"7.2", {command: [ssh, dut, show version], pattern: "Version (\\S+)"} or {package: nginx}'


class LabelSource(PlanModel):
    """Where the text of a label is read when the run starts: a command of this machine, or a package of a target."""

    command: Annotated[
        Words | None, Field(description="command of this machine that prints it; run without a shell")
    ] = None
    pattern: Annotated[
        Text | None,
        Field(description="regular expression searched in the output; its first group, or all of it, is the label"),
    ] = None
    package: Annotated[
        Text | None, Field(description="package (dpkg or rpm) whose installed version it is", examples=["nginx"])
    ] = None
    target: Annotated[Text | None, Field(description="target that has the package; default: the first of role dut")] = (
        None
    )
    timeout: Annotated[Duration, Field(ge=0.1, le=300, description="it is given up after this")] = 10.0

    @model_validator(mode="after")
    def _one_way(self) -> LabelSource:
        if (self.command is None) == (self.package is None):
            raise ValueError("is read in one way: give command, or package")
        if self.package is not None and _PACKAGE.fullmatch(self.package) is None:
            raise ValueError(f"{shown(self.package)} is not the name of a package: write one such as nginx")
        if self.command is not None and self.target is not None:
            raise ValueError("target belongs to a package: a command is run on this machine")
        if self.pattern is not None:
            if self.command is None:
                raise ValueError("pattern belongs to a command: a package has one version")
            user_regex(self.pattern, "pattern", "m")
        return self


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """A label: its text, or where it is read; ``location`` is where the plan names it (``plan.yaml:3:11``)."""

    name: str
    text: str = ""
    source: LabelSource | None = None
    location: str = field(default="", compare=False)


def _labels(given: JsonValue, context: PlanReading) -> tuple[LabelPlan, ...]:
    if given is None:
        return ()
    if not isinstance(given, dict):
        raise ValueError(f'expected names with their values, such as {{release: "7.2"}}, found {shown(given)}')
    many = [Wrong((), f"labels: {len(given)} are too many: {MAX_LABELS} at most")] if len(given) > MAX_LABELS else []
    return tuple(every(given.items(), lambda name, value: _label(name, value, context.inside("labels", name)), *many))


def _label(name: str, value: JsonValue, context: PlanReading) -> LabelPlan:
    try:
        label_name(name)
    except ValueError as error:
        raise refused(Wrong((), f"labels: {error}", key=True)) from None
    if isinstance(value, dict):
        return LabelPlan(name, source=_source(name, value, context), location=context.where)
    try:
        return LabelPlan(name, label_text(name, _text(name, value, context)), location=context.where)
    except ValueError as error:
        raise ValueError(f"labels: {error}") from None


def _text(name: str, value: JsonValue, context: PlanReading) -> str:
    """The text of a value as it was written. Raises ValueError where YAML reads it as something else."""
    changed = context.document.changed.get(context.at)
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        what = "nothing" if value is None else str(value).lower()
        raise ValueError(f"the label {name} is {what}: write a text in quotes")
    if isinstance(value, list):
        raise ValueError(f"the label {name} is a list: write {_EXAMPLE}")
    written = str(value) if changed is None else changed
    if isinstance(value, float) or changed is not None:
        raise ValueError(
            f'the label {name} is read as the number {value} without quotes: put it in quotes, "{written}"'
        )
    return written


def _source(name: str, value: JsonValue, context: PlanReading) -> LabelSource:
    try:
        source = read_part(LabelSource, value, name)
    except ValidationError as error:
        about = f"labels: the label {name}: "
        raise refused(
            *(each._replace(text=about + each.text.removeprefix(f"{name}: ")) for each in wrongs(error))
        ) from None
    if source.target is not None and source.target not in context.targets:
        near = hint(source.target, context.targets)
        sentence = f"labels: the label {name}: there is no target {source.target!r}{near}"
        raise refused(Wrong(("target",), sentence))
    return source


_NAMED = Annotated[
    dict[
        Annotated[str, Field(pattern=f"^{LABEL_NAME.pattern}$")],
        Annotated[str, Field(min_length=1, max_length=MAX_TEXT)] | int | LabelSource,
    ],
    Field(
        max_length=MAX_LABELS,
        examples=[{"release": "7.2", "testbed": "rack-3"}],
        json_schema_extra={"additionalProperties": False},
    ),
]
Labels = Annotated[tuple[LabelPlan, ...], made_of(_labels, _NAMED)]
