"""Which profile a device is asked by: the surest of those whose selectors hold."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from soakwatch.sources.profiles.loading import FALLBACK
from soakwatch.sources.profiles.profile_model import Clause, ProfileHead
from soakwatch.sources.profiles.show import clause_line

Present = Callable[[str], Awaitable[str | None]]
"""The text of one OID, None where the device does not have it."""


@dataclass(frozen=True, slots=True)
class Match:
    """A profile's name and, in a sentence, what it was chosen by."""

    name: str
    why: str


async def match(object_id: str, description: str, present: Present, heads: Iterable[ProfileHead]) -> Match:
    """The profile of a device with this sysObjectID and sysDescr (RFC 3418).

    The higher rank wins, then the longest object id, then the clause that asks for more, then the name. ``present`` is
    asked only where everything else of a clause holds, and for each OID once. Nothing that holds gives ``generic``.
    """
    candidates: list[tuple[tuple[int, int, int], str, str]] = []
    asked: dict[str, str | None] = {}
    for head in heads:
        for clause in head.select:
            under = _under(clause, object_id, description)
            if under is None:
                continue
            if clause.present is not None:
                if clause.present not in asked:
                    asked[clause.present] = await present(clause.present)
                answer = asked[clause.present]
                if answer is None or (clause.text is not None and clause.text.search(answer) is None):
                    continue
            candidates.append(
                ((head.rank, under.count(".") + 1 if under else 0, clause.parts), head.name, _why(clause, under))
            )
    if not candidates:
        return Match(FALLBACK, f"no profile knows the sysObjectID {object_id or 'that the device does not report'}")
    _, name, why = min(candidates, key=lambda each: (*(-part for part in each[0]), each[1]))
    return Match(name, why)


def _under(clause: Clause, object_id: str, description: str) -> str | None:
    """The object id by which a clause holds, empty if it names none; None if the clause does not hold."""
    if clause.parts == 0:
        return None
    if clause.description is not None and clause.description.search(description) is None:
        return None
    if clause.not_description is not None and clause.not_description.search(description) is not None:
        return None
    if not clause.object_ids:
        return ""
    return max((oid for oid in clause.object_ids if f"{object_id}.".startswith(f"{oid}.")), key=len, default=None)


def _why(clause: Clause, under: str) -> str:
    return clause_line(replace(clause, object_ids=(under,) if under else ()))
