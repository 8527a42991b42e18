"""What is asked of a comparison, and which target of a run stands for which of another: by name, role, or as asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.formatting import natural
from soakwatch.core.suggest import hint


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """How runs are to be compared. ``by_phase`` aligns runs by their phases, otherwise by their begins. ``targets``
    says for a run (by the name of its folder) which of its targets stands for which of the reference's."""

    by_phase: bool = True
    targets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal questions."""
        pairs = sorted((run, own, theirs) for run, names in self.targets.items() for own, theirs in names.items())
        return self.by_phase, tuple(pairs)


def match_of(text: str) -> tuple[str, str, str] | None:
    """Reads ``RUN:ITS_TARGET=TARGET``: a run, its target, and the target of the reference that it stands for. None
    where the last is empty (then the roles decide). Raises SoakwatchError.

    >>> match_of("new:fw-b=fw-a"), match_of("new:fw-b=")
    (('new', 'fw-b', 'fw-a'), None)
    """
    run, colon, pair = text.partition(":")
    own, equals, theirs = pair.partition("=")
    if not (run and colon and own and equals):
        raise SoakwatchError(f"{text[:100]!r} matches no targets: write RUN:ITS_TARGET=TARGET")
    return (run, own, theirs) if theirs else None


@dataclass(frozen=True, slots=True)
class TargetMap:
    """The targets of a run beside those of a reference run. ``shown`` is the name of each target in the comparison,
    ``paired`` are those with a counterpart of another name (theirs, the reference's), ``alone`` those without one."""

    shown: Mapping[str, str]
    paired: tuple[tuple[str, str], ...] = ()
    alone: tuple[str, ...] = ()

    def own(self, name: str) -> str:
        """The run's own name of the target that is shown under ``name``."""
        return next((own for own, shown in self.shown.items() if shown == name), "")


def target_map(
    roles: Mapping[str, str], reference: Mapping[str, str], wanted: Mapping[str, str] | None = None
) -> TargetMap:
    """The targets of a run (name and role) beside those of the reference.

    ``wanted`` (own name: name in the reference) comes first; then equal names; then, role by role, as many targets
    as are left on both sides, in the order of their names. Raises SoakwatchError for a wanted name that is not there.

    >>> target_map({"fw-b": "dut", "tg": "generator"}, {"fw-a": "dut", "tg": "generator"}).paired
    (('fw-b', 'fw-a'),)
    >>> target_map({"a": "dut", "b": "dut"}, {"c": "dut"}).alone
    ('a', 'b')
    """
    shown: dict[str, str] = {}
    for own, theirs in (wanted or {}).items():
        for name, names, whose in ((own, roles, "the run"), (theirs, reference, "the run it is compared with")):
            if name not in names:
                raise SoakwatchError(f"{name!r} is no target of {whose}{hint(name, names)}")
        if theirs in shown.values():
            raise SoakwatchError(f"two targets stand for {theirs!r}: each stands for one")
        shown[own] = theirs
    taken = set(shown.values())
    for name in roles:
        if name in reference and name not in shown and name not in taken:
            shown[name] = name
            taken.add(name)
    for role in dict.fromkeys(roles.values()):
        left = sorted((n for n, r in roles.items() if r == role and n not in shown), key=natural)
        free = sorted((n for n, r in reference.items() if r == role and n not in taken), key=natural)
        if left and len(left) == len(free):
            shown.update(zip(left, free, strict=True))
            taken.update(free)
    paired = tuple((own, theirs) for own, theirs in shown.items() if own != theirs)
    alone = tuple(sorted((name for name in roles if name not in shown), key=natural))
    return TargetMap(shown | {name: f"{name} (alone)" if name in taken else name for name in alone}, paired, alone)
