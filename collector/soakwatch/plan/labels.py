"""The labels of a plan: texts, and those that are read when the run starts (from a command or a package)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from soakwatch.core.labels import MAX_LABELS, MAX_TEXT, label_name, label_text
from soakwatch.core.regex import user_regex
from soakwatch.core.suggest import hint
from soakwatch.core.validation import problems, shown
from soakwatch.core.yaml import Document, Path, Plain, Problem
from soakwatch.plan.parts import Duration, Shape, Text, Words

_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_~:-]{0,199}")
_EXAMPLE = '"7.2", {command: [ssh, dut, show version], pattern: "Version (\\S+)"} or {package: nginx}'


class LabelSource(Shape):
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
            user_regex(self.pattern, "pattern")
        return self


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """A label: its text, or where it is read; ``location`` is where the plan names it (``plan.yaml:3:11``)."""

    name: str
    text: str = ""
    source: LabelSource | None = None
    location: str = field(default="", compare=False)


def labels_of(document: Document, targets: Sequence[str]) -> tuple[tuple[LabelPlan, ...], list[Problem]]:
    """The labels of a plan in its order, and what is wrong with them."""
    given = document.data.get("labels") if isinstance(document.data, dict) else None
    if given is None:
        return (), []
    if not isinstance(given, dict):
        sentence = f'labels: expected names with their values, such as {{release: "7.2"}}, found {shown(given)}'
        return (), [document.problem(("labels",), sentence)]
    labels: list[LabelPlan] = []
    wrong: list[Problem] = []
    if len(given) > MAX_LABELS:
        wrong.append(document.problem(("labels",), f"labels: {len(given)} are too many: {MAX_LABELS} at most"))
    for name, value in given.items():
        path: Path = ("labels", name)
        try:
            label_name(name)
        except ValueError as error:
            wrong.append(document.problem(path, f"labels: {error}", key=True))
            continue
        if isinstance(value, dict):
            source, problems_ = _source(document, path, value, targets)
            wrong += problems_
            if source is not None:
                labels.append(LabelPlan(name, source=source, location=document.where(path, key=True)))
            continue
        try:
            text = label_text(name, _text(document, path, value))
        except ValueError as error:
            wrong.append(document.problem(path, f"labels: {error}"))
        else:
            labels.append(LabelPlan(name, text, location=document.where(path, key=True)))
    return tuple(labels), wrong


def _text(document: Document, path: Path, value: Plain) -> str:
    """The text of a value as it was written. Raises ValueError where YAML reads it as something else."""
    name, written = str(path[-1]), document.changed.get(path, str(value))
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        what = "nothing" if value is None else str(value).lower()
        raise ValueError(f"the label {name} is {what}: write a text in quotes")
    if isinstance(value, list):
        raise ValueError(f"the label {name} is a list: write {_EXAMPLE}")
    if isinstance(value, float) or path in document.changed:
        raise ValueError(
            f'the label {name} is read as the number {value} without quotes: put it in quotes, "{written}"'
        )
    return written


def _source(
    document: Document, path: Path, value: Plain, targets: Sequence[str]
) -> tuple[LabelSource | None, list[Problem]]:
    try:
        source = LabelSource.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        found = problems(document, path, LabelSource, error)
        about = f"the label {path[-1]}"
        return None, [
            Problem(p.line, p.column, f"labels: {about}: {p.text.removeprefix(f'{path[-1]}: ')}") for p in found
        ]
    if source.target is not None and source.target not in targets:
        near = hint(source.target, targets)
        sentence = f"labels: the label {path[-1]}: there is no target {source.target!r}{near}"
        return None, [document.problem((*path, "target"), sentence)]
    return source, []


LABELS_SCHEMA: dict[str, Plain] = {
    "type": "object",
    "propertyNames": {"pattern": "^[a-z][a-z0-9_-]{0,39}$"},
    "maxProperties": MAX_LABELS,
    "additionalProperties": {
        "anyOf": [
            {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
            {"type": "integer"},
            {"$ref": "#/$defs/LabelSource"},
        ]
    },
    "examples": [{"release": "7.2", "testbed": "rack-3"}],
    "description": "by what runs are found and compared: a text, or where it is read at the start",
}
