"""A profile in words: what each group asks and what it brings."""

from __future__ import annotations

from collections.abc import Iterator

from soakwatch.core.units import show_seconds
from soakwatch.sources.profiles.profile_model import Clause, MetricGroup, MetricLine, TableColumn
from soakwatch_model.metric import BY_NAME


def group_lines(group: MetricGroup) -> Iterator[str]:
    """Lines of text about a group."""
    parts = [f"watch {group.watch}"] if group.watch else []
    parts += ["optional"] if group.optional else []
    parts += [f"every {show_seconds(group.every_s)}"] if group.every_s else []
    parts += [f"the device renews it each {show_seconds(group.refresh_s)}"] if group.refresh_s else []
    parts += [f"unless {', '.join(group.unless)}"] if group.unless else []
    yield group.name + (f" ({'; '.join(parts)})" if parts else "")
    for line in group.lines:
        yield f"  {_line(line)}"
    for column in group.columns:
        yield f"    {column.name}: {_oids(column)}"
    for scalar in group.scalars:
        yield f"    {scalar.name}: {_oids(scalar)}"
    for join in group.joins:
        yield f"    {join.column.name}: {_oids(join.column)} at {join.index.text}"


def _line(line: MetricLine) -> str:
    labels = ", ".join(f"{label}={template.text}" for label, template in line.labels)
    value = line.value.text + (f" x {line.scale:g}" if line.scale is not None else "")
    value = f"change of {value}" if line.change else value
    over = f" ({line.over} of all rows)" if line.over else ""
    return f"{line.metric}{{{labels}}} = {value}{over} [{BY_NAME[line.metric].unit}]" + (
        " optional" if line.optional else ""
    )


def _oids(column: TableColumn) -> str:
    return " or ".join(column.oids)


def clause_line(clause: Clause) -> str:
    """What a clause asks for."""
    parts = [f"sysObjectID lies under {' or '.join(clause.object_ids)}"] if clause.object_ids else []
    if clause.description is not None:
        parts.append(f"sysDescr has {clause.description.pattern!r}")
    if clause.not_description is not None:
        parts.append(f"sysDescr lacks {clause.not_description.pattern!r}")
    if clause.present is not None:
        parts.append(f"{clause.present} answers" + (f" {clause.text.pattern!r}" if clause.text is not None else ""))
    return " and ".join(parts)
