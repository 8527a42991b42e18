"""Cause: a group of findings that is reported as one incident."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from soakwatch_model.finding import Mark, Outcome


class CauseKind(StrEnum):
    """What joins the findings of a cause."""

    INCIDENT = "incident"  # they point at the same moments
    EVENT = "event"  # what was done to the device at these moments
    LOAD = "load"  # the load was changed on purpose at these moments
    GROWTH = "growth"  # one process, or one memory, grows by several measures
    GENERATOR = "generator"  # they rest on a load that was not as it should be
    UNSETTLED = "unsettled"  # they are inconclusive for the same reason
    FINDING = "finding"  # one that stands alone


@dataclass(frozen=True, slots=True)
class Cause:
    """Findings that have one cause; ``findings`` are indexes into all findings, the leading one first.

    ``target`` is empty if several targets are affected. ``begin_ns`` and ``end_ns`` span the ``timeline`` (in time
    order), or the judged windows if there is none. ``outcome`` is the worst of the findings. ``confidence`` is 1 - the
    probability that findings of so many rules would coincide by chance; None if that is no question (one finding, the
    same series). ``owner`` is the process that holds ``share`` of a host's growth. ``waived``: inconclusive and not
    required, so it does not keep the run from passing. ``since_ns`` is the moment that every surface shows, the first
    of the deciding finding (None: unknown); ``until_ns`` its last (None: it went on to the end).
    """

    kind: CauseKind
    target: str
    begin_ns: int
    end_ns: int
    headline: str
    outcome: Outcome
    findings: tuple[int, ...]
    confidence: float | None = None
    timeline: tuple[Mark, ...] = ()
    owner: str = ""
    share: float | None = None
    waived: bool = False
    since_ns: int | None = None
    until_ns: int | None = None

    @property
    def leading(self) -> int:
        """The index of the finding that the others follow from."""
        return self.findings[0]
