"""What two looks at the same process have between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from soakwatch.diagnose.look import Basis, Counted, Look, SiteKind, Sites

MAX_ROWS: Final = 10
_CERTAIN: Final = 3.0
"""Standard deviations by which sampled bytes must have grown."""


@dataclass(frozen=True, slots=True)
class Change:
    """A name with its amount in the first and in the last look: bytes of mappings, or a number of files or threads."""

    name: str
    before: int
    after: int

    @property
    def by(self) -> int:
        """By how much it grew; negative if it fell."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Grown:
    """A site that grew, by bytes and by number; ``share`` of all that grew by that program's account (0 to 1)."""

    program: str
    kind: SiteKind
    name: str
    bytes: int
    count: int
    share: float
    own: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """The last look of a process less the first; amounts in bytes, None where a look has none."""

    seconds: float
    resident: int | None
    in_use: int | None
    held: int | None
    mapped: tuple[Change, ...]
    files: tuple[Change, ...]
    threads: tuple[Change, ...]
    grown: tuple[Grown, ...]


def of_one_life(looks: Iterable[Look]) -> tuple[Look, ...]:
    """The looks at the process as it was at the last of them, in order of time: a process that was restarted is
    another one."""
    alive = sorted((look for look in looks if look.alive and not look.of_cpu), key=lambda look: look.time_ns)
    return tuple(look for look in alive if (look.pid, look.start) == (alive[-1].pid, alive[-1].start))


def difference(first: Look, last: Look) -> Difference:
    """What lies between two looks of one life."""
    heaps = first.heap, last.heap
    both = heaps if heaps[0] is not None and heaps[1] is not None and heaps[0].collected == heaps[1].collected else None
    residents = first.resident, last.resident
    return Difference(
        seconds=(last.time_ns - first.time_ns) * 1e-9,
        resident=None if residents[0] is None or residents[1] is None else residents[1] - residents[0],
        in_use=None if both is None or both[0] is None or both[1] is None else both[1].in_use - both[0].in_use,
        held=None if both is None or both[0] is None or both[1] is None else both[1].held - both[0].held,
        mapped=_changes(
            {row.kind: row.resident for row in first.mapped}, {row.kind: row.resident for row in last.mapped}
        ),
        files=_changes(_counts(first.files), _counts(last.files)),
        threads=_changes(_counts(first.threads), _counts(last.threads)),
        grown=grown(first.sites, last.sites),
    )


def grown(before: Sequence[Sites], after: Sequence[Sites]) -> tuple[Grown, ...]:
    """The sites that grew, of each program's account the one that grew most first, lines before types.

    Traced bytes are compared only with traced ones of the same begin: a look that began tracing has none, and a cache
    that renews itself would look like growth.
    """
    known = {(each.program, each.since_ns): each for each in before}
    rows: list[Grown] = []
    for each in after:
        earlier = known.get((each.program, each.since_ns))
        if earlier is None or each.basis is Basis.SAMPLED or (each.basis is Basis.TRACED and each.since_ns is None):
            continue
        rows += _grown(earlier, each)
    order = {SiteKind.LINE: 0, SiteKind.TYPE: 1}
    return tuple(sorted(rows, key=lambda row: (order[row.kind], row.program, -row.bytes, -row.count)))


def _grown(before: Sites, after: Sites) -> list[Grown]:
    old = {(site.kind, site.name): site for site in before.sites}
    changes = []
    for site in after.sites:
        past = old.get((site.kind, site.name))
        held, count = (past.bytes, past.count) if past is not None else (0, 0)
        doubt = _CERTAIN * math.sqrt((held + site.bytes) * after.grain)
        if site.bytes - held > doubt:
            changes.append((site, site.bytes - held, site.count - count))
    total = sum(size for _, size, _ in changes)
    most = sorted(changes, key=lambda change: (-change[1], change[0].name))
    # of a library's types (byte[]) many things are made: the program's own that grew with them stand beside them
    chosen = most[:MAX_ROWS] + [change for change in most[MAX_ROWS:] if change[0].own][:MAX_ROWS]
    return [Grown(after.program, s.kind, s.name, size, count, size / total, s.own) for s, size, count in chosen]


def _counts(rows: Sequence[Counted]) -> dict[str, int]:
    return {row.name: row.count for row in rows}


def _changes(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[Change, ...]:
    rows = [Change(name, before.get(name, 0), after.get(name, 0)) for name in before.keys() | after.keys()]
    moved = [row for row in rows if row.by]
    return tuple(sorted(moved, key=lambda row: (-abs(row.by), row.name))[:MAX_ROWS])
