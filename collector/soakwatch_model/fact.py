"""Facts: what a finding says to code, each of one kind with named fields; what it says to people is its sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


@dataclass(frozen=True, slots=True)
class PartOfRun:
    """What is judged was there for a part of the stretch only: ``lived_s`` seconds."""

    lived_s: float


@dataclass(frozen=True, slots=True)
class Certainty:
    """With which ``probability`` (0 to 1) what was measured is beyond its limit.

    ``contradicted``: a straight line detects growth that no shape does, so a low probability does not clear it.
    """

    probability: float
    contradicted: bool = False


CERTAIN: Final = 0.999
"""The probability from which a rule that leaves something open is not in doubt about what it measured."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How much grew between the first and the last third of a life.

    ``per_hour`` is in the unit of the series, below zero where it falls; ``change`` is the last third against the first
    as a share, ``tolerance`` the share that is allowed. ``levelled``: within the last third it hardly rises any more.
    ``cut_by_restarts``: the life is a part that restarts cut out of a longer run.
    """

    per_hour: float
    change: float | None = None
    tolerance: float | None = None
    levelled: bool = False
    cut_by_restarts: bool = False


class Stage(StrEnum):
    """Where on its way a packet was lost. ``BEFORE`` and ``BEHIND``: the generator's own ports are not polled."""

    SENDER = "sender"
    WAY_IN = "way in"
    BEFORE = "before the device"
    DEVICE = "device"
    WAY_OUT = "way out"
    RECEIVER = "receiver"
    BEHIND = "behind the device"


@dataclass(frozen=True, slots=True)
class Lost:
    """What did not come back: in each of ``stops`` standstills nothing at all, whatever was sent.

    ``by_ports``: it was held against what the device's own interfaces counted; ``stage`` is where most of it was lost
    then, None where no stage has half of it. ``count`` of ``what`` ("requests") were lost, None where what was sent is
    not known.
    """

    stops: int = 0
    by_ports: bool = False
    stage: Stage | None = None
    count: float | None = None
    what: str = ""


@dataclass(frozen=True, slots=True)
class Repeated:
    """It fails because it happened ``times`` again and again, where each time by itself would not fail."""

    times: int


@dataclass(frozen=True, slots=True)
class Onset:
    """What is found of a whole stretch began at ``begin_ns`` within it: it was flat before. With ``from_first`` it
    was so from the first reading on, at ``begin_ns``, and no moment is known."""

    begin_ns: int
    from_first: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The process exited at ``time_ns`` and was not there again by the end."""

    time_ns: int


@dataclass(frozen=True, slots=True)
class Happened:
    """What happened in two parts of a sentence: the ``thing`` ("ge0"; empty: the target itself), and a ``verb`` with
    all that belongs to it ("went down 3 times"). ``broke``: the thing itself failed, so what was lost then followed.
    """

    thing: str
    verb: str
    broke: bool = False


@dataclass(frozen=True, slots=True)
class PathCut:
    """The management did not answer while the load went through, and at no other time: its path was cut."""


@dataclass(frozen=True, slots=True)
class PollCost:
    """What the monitor's own polls cost was weighed, or at least how long the answers took."""


@dataclass(frozen=True, slots=True)
class Aside:
    """Readings of a series of it were set aside, for they cannot be: ``text`` says which and why in one sentence,
    ``undecided`` why nothing passes by what is left; empty where it may."""

    text: str
    undecided: str


@dataclass(frozen=True, slots=True)
class Sparse:
    """The samples lie too far apart for the rule; what they do show is that nothing lasted ``seconds`` or longer."""

    seconds: float


Fact = PartOfRun | Aside | Certainty | Gone | Growth | Happened | Lost | Onset | PathCut | PollCost | Repeated | Sparse
KINDS: Final[tuple[type[Fact], ...]] = (
    PartOfRun,
    Aside,
    Certainty,
    Gone,
    Growth,
    Happened,
    Lost,
    Onset,
    PathCut,
    PollCost,
    Repeated,
    Sparse,
)
"""All of them; a record keeps facts by the names of their kinds."""
