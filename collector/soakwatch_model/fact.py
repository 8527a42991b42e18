"""Facts: what a finding tells code, in typed fields; its sentence tells people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


@dataclass(frozen=True, slots=True)
class PartOfRun:
    """The subject existed for only ``lived_s`` seconds of the window."""

    lived_s: float


@dataclass(frozen=True, slots=True)
class Certainty:
    """The ``probability`` (0 to 1) that the measured value exceeds its limit.

    ``contradicted``: a straight line detects growth although no shape does, so a low probability does not clear it.
    """

    probability: float
    contradicted: bool = False


CERTAIN: Final = 0.999
"""From this probability on a rule counts as certain of what it measured."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth between the first and the last third of a process's life.

    ``per_hour`` is in the series' unit, negative if it falls; ``change`` is the last third relative to the first as a
    share, ``tolerance`` the allowed share. ``levelled``: it hardly rises within the last third. ``cut_by_restarts``:
    the life is one part of a run cut by restarts.
    """

    per_hour: float
    change: float | None = None
    tolerance: float | None = None
    levelled: bool = False
    cut_by_restarts: bool = False


@dataclass(frozen=True, slots=True)
class FullIn:
    """When something finite is used up, in seconds after the window: not before ``not_before_s`` with 95 %, and after
    ``after_s`` at the measured pace (None if that cannot be told from zero, or slows down)."""

    not_before_s: float
    after_s: float | None = None


class Stage(StrEnum):
    """Where packets were lost. ``BEFORE`` and ``BEHIND``: the generator's own ports are not polled."""

    SENDER = "sender"
    WAY_IN = "way in"
    BEFORE = "before the device"
    DEVICE = "device"
    WAY_OUT = "way out"
    RECEIVER = "receiver"
    BEHIND = "behind the device"


@dataclass(frozen=True, slots=True)
class Lost:
    """What did not come back: in each of ``stops`` standstills nothing at all.

    ``by_ports``: compared with the counters of the device's interfaces; ``stage`` is where most was lost then, None if
    no stage has half of it. ``count`` of ``what`` ("requests") were lost, None if what was sent is unknown.
    """

    stops: int = 0
    by_ports: bool = False
    stage: Stage | None = None
    count: float | None = None
    what: str = ""


@dataclass(frozen=True, slots=True)
class Repeated:
    """It fails because it happened ``times`` times; once would not fail."""

    times: int


@dataclass(frozen=True, slots=True)
class Onset:
    """What was found began at ``begin_ns``: before, the series was flat. With ``from_first`` it was so from the first
    reading on, and the real begin is unknown."""

    begin_ns: int
    from_first: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The process exited at ``time_ns`` and had not returned by the end."""

    time_ns: int


@dataclass(frozen=True, slots=True)
class Happened:
    """What happened, as two parts of a sentence: the ``thing`` ("ge0"; empty for the target) and the ``verb`` with its
    rest ("went down 3 times"). ``broke``: the thing itself failed, so losses at that time followed from it.
    """

    thing: str
    verb: str
    broke: bool = False


@dataclass(frozen=True, slots=True)
class PathCut:
    """The management did not answer exactly while the load went through: its path was cut."""


@dataclass(frozen=True, slots=True)
class PollCost:
    """The cost of the monitor's own polls was assessed, or at least how long answers took."""


@dataclass(frozen=True, slots=True)
class Aside:
    """Impossible readings of its series were set aside: ``text`` says which and why in one sentence, ``undecided`` why
    the rest cannot pass; empty if it can."""

    text: str
    undecided: str


@dataclass(frozen=True, slots=True)
class Sparse:
    """The samples are too far apart for the rule; they only exclude what lasts ``seconds`` or longer."""

    seconds: float


@dataclass(frozen=True, slots=True)
class OwnerGrew:
    """Of the growth of a host's memory in use (``total`` bytes), ``grew`` bytes are of this ``owner``: a name of
    ``memory_owners``, with its ``part`` (a slab cache, a process; empty: of no single one).

    ``share`` is of the total. A finding has one for each owner that matters, the largest first. Of a process ``owner``
    is empty, ``part`` is a kind of its mappings, and the total is the growth of all of them.
    """

    owner: str
    part: str
    grew: float
    share: float
    total: float


Fact = (
    PartOfRun
    | Aside
    | Certainty
    | FullIn
    | Gone
    | Growth
    | Happened
    | Lost
    | Onset
    | OwnerGrew
    | PathCut
    | PollCost
    | Repeated
    | Sparse
)
KINDS: Final[tuple[type[Fact], ...]] = (
    PartOfRun,
    Aside,
    Certainty,
    FullIn,
    Gone,
    Growth,
    Happened,
    Lost,
    Onset,
    OwnerGrew,
    PathCut,
    PollCost,
    Repeated,
    Sparse,
)
"""All kinds of facts; a record stores facts by the names of these classes."""
