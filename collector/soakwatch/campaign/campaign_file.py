"""Reads a campaign's file: makes and checks the plan of every cell, and tells all that is wrong in one error.

Problems name the campaign's file where it is at fault, and the plan's where that is; the same problem of many cells is
told once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from soakwatch.campaign.axes_and_cells import TESTBED, Matrix, changes_of, read_matrix, written
from soakwatch.campaign.campaign_keys import MAX_RUNS, Campaign, CampaignKeys, Outline
from soakwatch.campaign.campaign_model import Axis
from soakwatch.campaign.command_placeholders import RUN_FACTS, placeholders
from soakwatch.campaign.ledger import LEDGER, read_ledger
from soakwatch.campaign.tables.parse import tables_and_problems
from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.labels import label_name, label_text
from soakwatch.core.suggest import hint
from soakwatch.core.validation import problems as problems_of
from soakwatch.core.yaml import Document, Problem, parse, plan_error, read_text
from soakwatch.core.yaml import Path as Place
from soakwatch.judge.calibration import reference_path
from soakwatch.plan import Plan, plan_of
from soakwatch.plan.patch import PlanChange, found, overwrites, patched
from soakwatch.runs.key_figures import parse_figure

CAMPAIGN_COPY, PLAN_COPY, REFERENCE_COPY = "campaign.yaml", "plan.yaml", "plan.reference.yaml"
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._]+")
_MAX_SHOWN = 20


def load_campaign(path: Path, *, begun: bool = False) -> Campaign:
    """The campaign in a file; of one in a campaign's folder, the base plan is the copy beside it.

    Raises PlanError: its ``problems`` are all sentences, each with file, line and column. A profile, an os or a probe
    that is not installed is one, but for a campaign that was ``begun``: its runs may be from another machine.
    """
    outline, document, matrix = _read(path)
    base = _base(document, outline)
    _check_values(document, base, matrix)
    plans = _plans(document, base, outline, plan_of if begun else _installed)
    texts = {key: plan.text for key, plan in plans.items()}
    meaning = {
        "plans": {f"{cell}\0{testbed}": text for (cell, testbed), text in texts.items()},
        "labels": outline.labels,
        "cell labels": {cell.id: dict(cell.labels) for cell in outline.cells},
        "seed": outline.seed,
        "before": outline.before.words if outline.before else (),
        "after": outline.after.words if outline.after else (),
    }
    more = {
        "plans": texts,
        "seconds": {cell: plan.duration_s for (cell, _), plan in plans.items()},
        "digest": hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest(),
        "base_text": read_text(_plan_file(outline.plan, path)) if isinstance(outline.plan, str) else "",
        "reference": _reference(next(iter(plans.values())), path),
    }
    return Campaign.model_construct(**{**dict(outline), **more})


def load_outline(path: Path) -> Outline:
    """What a campaign's file says, without its plans: of one that was begun, whose plans were checked then.

    Raises PlanError as ``load_campaign``, but for what is wrong with the plan.
    """
    return _read(path)[0]


def _read(path: Path) -> tuple[Outline, Document, Matrix]:
    """A campaign's file, checked by itself."""
    document = parse(read_text(path), str(path))
    if not isinstance(document.data, dict):
        message = "a campaign is keys and values: plan, matrix, repeat; see docs/campaigns.md"
        raise plan_error(document.origin, [document.problem((), message)])
    data = {key: value for key, value in document.data.items() if value is not None or key in {"plan", "matrix"}}
    if "name" not in data:
        data = {"name": _default_name(path), **data}
    try:
        keys = CampaignKeys.model_validate_json(json.dumps(data), by_name=False)
    except ValidationError as error:
        raise plan_error(document.origin, problems_of(document, (), CampaignKeys, error)) from None
    problems = _label_problems(document, keys)
    commands = [command for command in (keys.before, keys.after) if command]
    used = {TESTBED, *(name for command in commands for name in placeholders(command.words))}
    matrix = read_matrix(document, keys, used)
    problems += matrix.problems
    problems += _command_problems(document, keys, matrix)
    if keys.repeat.until is not None:
        try:
            parse_figure(keys.repeat.of)
        except SoakwatchError as error:
            problems.append(document.problem(("repeat", "until", "of"), f"of: {error}"))
    problems += _testbed_problems(document, keys, matrix)
    problems += tables_and_problems(document, matrix.axes)[1]
    if problems:
        raise plan_error(document.origin, problems)
    cells = matrix.cells
    if len(cells) * keys.repeat.at_most > MAX_RUNS:
        message = f"{len(cells)} cells, {keys.repeat.at_most} times each, are more than {MAX_RUNS} runs: repeat less"
        raise plan_error(document.origin, [document.problem(("repeat",), message)])
    more = {
        "file": path,
        "axes": matrix.axes,
        "cells": cells,
        "labels": {name: written(document, ("labels", name), text) for name, text in keys.labels.items()},
        "pinned": {cell.id: cell.values[TESTBED] for cell in cells if TESTBED in cell.values},
    }
    return Outline.model_construct(**{**dict(keys), **more}), document, matrix


def _default_name(path: Path) -> str:
    """The name of a campaign whose file gives none: the file's, also where only its copy is left."""
    if (path.parent / LEDGER).is_file() and (entries := read_ledger(path.parent)) and entries[0].text("name"):
        return entries[0].text("name")
    return _NOT_IN_NAME.sub("-", path.stem).strip("-._")[:60].strip("-._") or "campaign"


def _label_problems(document: Document, keys: CampaignKeys) -> list[Problem]:
    problems = []
    for name, text in keys.labels.items():
        if name in RUN_FACTS or name in keys.matrix:
            message = f"labels: {name!r} is the campaign's own: leave it out"
            problems.append(document.problem(("labels", name), message, key=True))
            continue
        try:
            label_text(label_name(name), text)
        except ValueError as error:
            problems.append(document.problem(("labels", name), f"labels: {error}", key=True))
    return problems


def _command_problems(document: Document, keys: CampaignKeys, matrix: Matrix) -> list[Problem]:
    """Words of commands such as ``{size}`` that name no axis and no label."""
    labels = {name for cell in matrix.cells for name in cell.labels}
    of_runs = {*RUN_FACTS, *keys.labels, *labels, *(axis.name for axis in matrix.axes)}
    of_all = {"campaign", *keys.labels}
    problems = []
    for key, command, known in (
        ("before", keys.before, of_runs),
        ("after", keys.after, of_runs),
        ("before_all", keys.before_all, of_all),
        ("after_all", keys.after_all, of_all),
    ):
        for name in placeholders(command.words if command else ()):
            if name not in known:
                message = f"{key}: {{{name}}} is no axis and no label{hint(name, known)}; {{{{ and }}}} are braces"
                problems.append(document.problem((key,), message))
    return problems


def _testbed_problems(document: Document, keys: CampaignKeys, matrix: Matrix) -> list[Problem]:
    """Testbeds that are named and not listed under ``testbeds``."""
    problems = []
    if keys.testbed is not None and keys.testbed not in keys.beds:
        known = hint(keys.testbed, keys.beds)
        problems.append(document.problem(("testbed",), f"testbed: there is no testbed {keys.testbed!r}{known}"))
    usable = [keys.testbed] if keys.testbed in keys.beds else list(keys.beds)
    for value in (value for axis in matrix.axes if axis.name == TESTBED for value in axis.values):
        if value.name not in usable:
            known = hint(value.name, usable) if usable else "; list it under testbeds"
            problems.append(document.problem(value.place, f"testbed: there is no testbed {value.name!r}{known}"))
    return problems


def _plan_file(given: str, campaign: Path) -> Path:
    if (campaign.parent / LEDGER).is_file():
        return campaign.parent / PLAN_COPY
    return campaign.parent / given


def _base(document: Document, outline: Outline) -> Document:
    """The base plan with the places of its file; of an inline plan, with those of the campaign's file."""
    if isinstance(outline.plan, str):
        file = _plan_file(outline.plan, outline.file)
        try:
            base = parse(read_text(file), str(file))
        except PlanError as error:
            if file.is_file():
                raise
            raise plan_error(document.origin, [document.problem(("plan",), f"plan: {error}")]) from None
    else:
        assert isinstance(document.data, dict)
        cut = len(("plan",))
        values = {place[cut:]: at for place, at in document.values.items() if place[:cut] == ("plan",)}
        keys = {place[cut:]: at for place, at in document.keys.items() if place[:cut] == ("plan",) and place[cut:]}
        changed = {place[cut:]: text for place, text in document.changed.items() if place[:cut] == ("plan",)}
        base = Document(document.origin, document.data["plan"], values, keys, changed)
    if not isinstance(base.data, dict):
        raise plan_error(base.origin, [base.problem((), "a plan is keys and values, such as 'targets:'")])
    if base.data.get("start") is not None:
        message = "start: a run of a campaign starts when its turn comes: remove start from the plan"
        raise plan_error(base.origin, [base.problem(("start",), message, key=True)])
    if "name" not in base.data:
        name = Path(outline.plan).stem if isinstance(outline.plan, str) else outline.name
        return Document(base.origin, {"name": name, **base.data}, base.values, base.keys, base.changed)
    return base


def _check_values(document: Document, base: Document, matrix: Matrix) -> None:
    """Raises PlanError for values that patch nothing, that make the plan of another value, and for axes that overwrite
    each other."""
    problems: list[Problem] = []
    earlier: list[tuple[Axis, Place]] = []
    for axis in matrix.axes:
        plans = {}
        for value in axis.values:
            try:
                plans[value.name] = patched(base, value.changes, document).data
            except PlanError as error:
                raise PlanError(*dict.fromkeys(_value_errors(document, base, matrix) or error.problems)) from None
        paths = {value.name: {found(base.data, change.path) for change in value.changes} for value in axis.values}
        seen: list[str] = []
        for value in axis.values:
            if not value.changes:
                seen += [value.name] if value.plain else []
                continue
            moved = [name for name, plan in plans.items() if plan != base.data and paths[name] & paths[value.name]]
            if plans[value.name] == base.data and not moved:
                text = f"{axis.name}: {value.name!r} patches nothing: the plan has these values already"
                problems.append(document.problem(value.place, text))
                continue
            twin = next((name for name in seen if plans[name] == plans[value.name]), None)
            if twin is not None:
                text = f"{axis.name}: {value.name!r} makes the same plan as {twin!r}: one of them patches nothing"
                problems.append(document.problem(value.place, text))
            seen.append(value.name)
        mine = [place for value in axis.values for change in value.changes if (place := found(base.data, change.path))]
        for other, place in earlier:
            if any(overwrites(later, place) for later in mine):
                text = f"{axis.name}: changes {'.'.join(map(str, place))}, which {other.name} changes too: separate"
                problems.append(document.problem(("matrix", axis.name), text, key=True))
                break
        earlier += [(axis, place) for place in mine]
    if problems:
        raise plan_error(document.origin, problems)


def _value_errors(document: Document, base: Document, matrix: Matrix) -> list[str]:
    """What is wrong with the paths of all values."""
    sentences: list[str] = []
    for axis in matrix.axes:
        for value in axis.values:
            try:
                patched(base, value.changes, document)
            except PlanError as error:
                sentences += error.problems
    return sentences


def _plans(
    document: Document,
    base: Document,
    outline: Outline,
    read: Callable[[Document], Plan],
) -> dict[tuple[str, str], Plan]:
    """The plan of every cell on every testbed that may run it. Raises PlanError with what is wrong with any."""
    plans: dict[tuple[str, str], Plan] = {}
    cells: dict[str, str] = {}
    try:
        read(base)
        own: tuple[str, ...] = ()
    except PlanError as error:
        own = error.problems
    for cell in outline.cells:
        for bed in outline.testbeds:
            if outline.pinned.get(cell.id, bed.name) != bed.name:
                continue
            steps = (*cell.changes, *changes_of(bed.patch, ("testbeds", bed.name, "set"), f"testbed {bed.name}"))
            try:
                plans[cell.id, bed.name] = read(patched(base, steps, document))
            except PlanError as error:
                where = f"the cell {cell.id}" + (f" on {bed.name}" if bed.name else "")
                for sentence in error.problems:
                    placed = sentence if sentence in own else _placed(document, base, steps, sentence, read)
                    cells.setdefault(placed, where)
    if cells:
        lines = [f"{sentence} (in {where})" for sentence, where in cells.items()]
        more = [f"{document.origin}: {len(lines) - _MAX_SHOWN} more"] if len(lines) > _MAX_SHOWN else []
        raise PlanError(*lines[:_MAX_SHOWN], *more)
    return plans


def _installed(document: Document) -> Plan:
    """The plan. Raises PlanError as well for what it names and is not installed here."""
    plan = plan_of(document)
    if unknown := plan.unknown_names():
        raise PlanError(*unknown)
    return plan


def _placed(
    document: Document,
    base: Document,
    steps: Sequence[PlanChange],
    sentence: str,
    read: Callable[[Document], Plan],
) -> str:
    """A sentence about a patched plan, with the place in the campaign's file of the change that brought it about."""
    if sentence.startswith(f"{document.origin}:") or base.origin == document.origin:
        return sentence
    for count, step in enumerate(steps, 1):
        try:
            read(patched(base, steps[:count], document))
        except PlanError as error:
            if sentence in error.problems:
                return f"{document.where(step.place)}: {sentence}"
    return sentence


def _reference(plan: Plan, campaign: Path) -> Path | None:
    """The calibration that the base plan names, or that lies beside it; in a campaign's folder, its copy there."""
    if (campaign.parent / LEDGER).is_file():
        copy = (campaign.parent / REFERENCE_COPY).absolute()
        return copy if copy.is_file() else None
    origin = Path(plan.origin)
    if plan.reference:
        return (origin.parent / plan.reference).absolute()
    beside = reference_path(origin)
    return beside.absolute() if beside.is_file() else None
