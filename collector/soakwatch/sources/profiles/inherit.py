"""What a profile has of its parents: groups, clocks and facts by name; logs and paths after its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.core.yaml import Document, Problem, plan_error
from soakwatch.sources.platforms.platform import Platform
from soakwatch.sources.profiles.profile_keys import ClocksShape, FactShape, ProfileShape, TickerShape
from soakwatch.sources.profiles.profile_model import (
    Clause,
    Clocks,
    Fact,
    GnmiPath,
    GnmiWhen,
    LogPattern,
    MetricGroup,
    Profile,
    Ticker,
    TrapPattern,
)

MAX_ANCESTORS = 20
_TICK_S = {"cs": 0.01, "ms": 0.001, "s": 1.0}


@dataclass(frozen=True, slots=True)
class File:
    """One file, read; its groups are checked, None removes a parent's."""

    name: str
    document: Document
    shape: ProfileShape
    groups: Mapping[str, MetricGroup | None]
    clauses: tuple[Clause, ...]
    platform: Platform | None


SEE_PROFILES = " (all: soakwatch profiles)"
"""The end of an error about a name of a profile: where the list is."""


class UnknownProfileError(PlanError):
    """There is no such profile; ``tail`` is its name and the nearest one."""

    def __init__(self, tail: str) -> None:
        super().__init__(f"unknown profile {tail}{SEE_PROFILES}")
        self.tail = tail


Read = Callable[[str], File]


def assemble(name: str, read: Read) -> Profile:
    """The profile with all that it has of its parents. Raises PlanError, with the place, if they cannot be had."""
    line = _line(name, read)
    own = line[0]
    _check(line)
    groups: dict[str, MetricGroup | None] = {}
    facts: dict[str, FactShape | None] = {}
    clocks: ClocksShape | None = None
    for file in line:
        for key, group in file.groups.items():
            groups.setdefault(key, group)
        for key, fact in file.shape.snmp.facts.items():
            facts.setdefault(key, fact)
        if file.shape.snmp.clocks is not None:
            clocks = file.shape.snmp.clocks if clocks is None else file.shape.snmp.clocks.behind(clocks)
    return Profile(
        name=name,
        title=own.shape.title or name,
        extends=tuple(own.shape.extends),
        select=own.clauses,
        rank=own.shape.rank,
        facts=tuple(_fact(key, fact) for key, fact in facts.items() if fact is not None),
        clocks=_clocks(clocks) if clocks is not None else Clocks(),
        groups=tuple(group for group in groups.values() if group is not None),
        logs=_logs(line),
        traps=_traps(line),
        gnmi=_gnmi(line),
        cli=next((file.shape.cli.like or file.name for file in line if file.shape.cli is not None), None),
    )


def _line(name: str, read: Read) -> list[File]:
    """The file and its ancestors, each once and before its own parents; of two parents the later one is nearer."""
    files: dict[str, File] = {}  # in the order in which they are done: ancestors first

    def visit(wanted: str, above: tuple[str, ...], child: File | None, index: int) -> None:
        if wanted in above:
            raise _problem(child, index, f"{wanted} extends itself by way of {', '.join(above)}: remove one 'extends'")
        if wanted in files:
            return
        try:
            file = read(wanted)
        except UnknownProfileError as error:
            raise error if child is None else _problem(child, index, f"unknown parent {error.tail}") from None
        if len(files) + len(above) >= MAX_ANCESTORS:
            raise _problem(child, index, f"has more than {MAX_ANCESTORS} ancestors")
        for position, parent in enumerate(file.shape.extends):
            visit(parent, (*above, wanted), file, position)
        files[wanted] = file

    visit(name, (), None, 0)
    return list(reversed(files.values()))


def _problem(child: File | None, index: int, text: str) -> PlanError:
    if child is None:
        return PlanError(text)
    return plan_error(child.document.origin, [child.document.problem(("extends", index), text)])


def _check(line: list[File]) -> None:
    """Names that reach into a parent: groups in ``unless``, and keys that remove what is not there."""
    names = {key for file in line for key, group in file.groups.items() if group is not None}
    for depth, file in enumerate(line):
        wrong: list[Problem] = []
        for key, group in file.groups.items():
            path = ("snmp", "groups", key)
            if group is None:
                if not any(key in parent.groups for parent in line[depth + 1 :]):
                    text = f"there is no group {key!r} of a parent to remove{hint(key, names)}"
                    wrong.append(file.document.problem(path, text, key=True))
                continue
            wrong += [
                file.document.problem((*path, "unless"), f"unknown group {other!r}{hint(other, names - {key})}")
                for other in group.unless
                if other not in names and not any(other in f.groups for f in line)
            ]
        if depth == 0 and not file.name.startswith("_") and file.shape.title is None:
            wrong.append(file.document.problem((), "the key 'title' is missing"))
        if wrong:
            raise plan_error(file.document.origin, wrong)


def _fact(name: str, shape: FactShape) -> Fact:
    column = shape.column is not None
    return Fact(
        name,
        tuple(shape.column or shape.oid or ()),
        column,
        shape.joined,
        shape.match,
        shape.values,
        shape.form,
    )


def _clocks(shape: ClocksShape) -> Clocks:
    return Clocks(_tickers(shape.host), _tickers(shape.agent), tuple(shape.boots or ()), _tickers(shape.engine))


def _tickers(shapes: list[TickerShape] | None) -> tuple[Ticker, ...]:
    return tuple(Ticker(shape.oid, _TICK_S[shape.unit], shape.bits) for shape in shapes or ())


def _logs(line: list[File]) -> tuple[LogPattern, ...]:
    return tuple(LogPattern(log.kind, log.match, log.severity) for file in line for log in file.shape.logs or ())


def _traps(line: list[File]) -> tuple[TrapPattern, ...]:
    traps: dict[str, TrapPattern | None] = {}
    for file in line:
        for oid, trap in (file.shape.traps or {}).items():
            traps.setdefault(oid, TrapPattern(oid, trap.kind, trap.detail) if trap is not None else None)
    return tuple(trap for trap in traps.values() if trap is not None)


def _gnmi(line: list[File]) -> tuple[GnmiPath, ...]:
    built: dict[tuple[str, str], GnmiPath] = {}
    for file in line:
        for path in file.shape.gnmi.paths if file.shape.gnmi else ():
            labels = {key: str(value) for key, value in path.labels.items()}
            when = path.when
            gate = GnmiWhen(when.leaf, tuple(when.is_ or when.is_not), not when.is_) if when else None
            built.setdefault(
                (path.path, path.metric),
                GnmiPath(path.path, path.metric, path.scale, labels, path.mode, path.values, gate, path.ago),
            )
    return tuple(built.values())
