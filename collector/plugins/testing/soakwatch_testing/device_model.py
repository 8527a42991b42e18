"""A simulated device from a sheet: capacity by kind, size, variant or cores, and the CPU, memory and watts it costs.

A sheet is a YAML file beside a plan (``deploy/examples/campaigns/*/device.yaml``)::

    generator: trex                 # how the generator speaks: trex, astf or pktgen
    line: 10e9                      # bit/s of each port, preamble and gap of each frame included
    cells:                          # each entry whose words fit adds to those before it
      - {frame: 64, noise: 0.5%}    # noise: coefficient of variation of the capacity from run to run
      - {when: {variant: kernel}, packets: 1.1e6, watts: [38, 47]}
      - {when: {config: ips}, times: 80%}

Nothing is forwarded: the figures are the sheet's, with seeded noise, so that a campaign has a known truth. Effects of
real devices (warm-up, reordering, packets lost to an interrupt) are not simulated.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from soakwatch.core.errors import SoakwatchError

Generator = Literal["trex", "astf", "pktgen"]
_BETWEEN_FRAMES = 20  # bytes of preamble and gap
_OVERSHOT = 1.35


class BadSheetError(SoakwatchError):
    """An invalid sheet; the reason is one sentence."""


def _number(value: object) -> object:
    """Parse ``80%`` and ``1.1e6`` as numbers; YAML reads the latter as a text."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)


Number = Annotated[float, BeforeValidator(_number), Field(ge=0)]


class Traits(BaseModel):
    """One entry of a sheet; keys that it leaves out come from earlier entries."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    when: dict[str, str | list[str]] = Field(default_factory=dict)
    noise: Number = 0  # coefficient of variation from run to run
    frame: Number = 64  # bytes of a frame, the mean of a mix
    overhead: Number = 0  # bytes that the device adds to each frame, or (a tunnel) removes
    packets: Number | None = None  # total packets/s; None: no limit
    bits: Number | None = None  # total bit/s of frames with overhead (a bus)
    out: Number | None = None  # bit/s of its port on the line, with overhead, preamble and gap
    times: Number = 1  # factor on packets and bits; entries multiply
    loss: dict[str, Number] | None = None  # loss ratio by offered share of the line, instead of a capacity
    ceiling: Number | None = None  # total packets/s that the generator reaches
    overshoots: Number = 0  # share of the starts of the generator (trex) that send 35 % more than they should
    connections: Number | None = None  # opened per second
    established: Number = 0  # connections that are open
    empty: Number = 0  # seconds from the first question to the generator in which no connection is open yet
    cores: Number = 4
    busy: Number = 0  # cores busy at capacity
    polls: bool = False  # they are always busy (poll mode)
    memory: Number = 2e9
    per_connection: Number = 0  # bytes
    watts: tuple[Number, Number] | None = None  # idle, and with all ``busy`` cores at work

    def fits(self, words: Mapping[str, str]) -> bool:
        """Whether the entry applies to a cell."""
        return all(
            words.get(name) in (wanted if isinstance(wanted, list) else [wanted]) for name, wanted in self.when.items()
        )


class Sheet(BaseModel):
    """A whole sheet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    generator: Generator
    line: Number = 10e9
    cells: list[Traits]

    def cell(self, words: Mapping[str, str]) -> Traits:
        """The traits of a cell such as ``{"kind": "L4", "size": "64"}``. Raises BadSheetError for an unknown word or
        value, so that a misspelt cell has no figures."""
        known: dict[str, set[str]] = {}
        for entry in self.cells:
            for name, wanted in entry.when.items():
                known.setdefault(name, set()).update(wanted if isinstance(wanted, list) else [wanted])
        for name, value in words.items():
            if value not in known.get(name, ()):
                values = ", ".join(sorted(known.get(name, ()))) or "nothing"
                raise BadSheetError(f"{name}={value}: the sheet knows {values} of {name}")
        merged: dict[str, object] = {}
        times = 1.0
        for entry in self.cells:
            if entry.fits(words):
                merged |= {name: getattr(entry, name) for name in entry.model_fields_set - {"when"}}
                times *= entry.times if "times" in entry.model_fields_set else 1.0
        return Traits.model_validate({**merged, "times": times})


def read_sheet(path: Path) -> Sheet:
    """Read a sheet. Raises BadSheetError."""
    try:
        return Sheet.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise BadSheetError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, ValidationError) as error:
        first = str(error).splitlines()
        raise BadSheetError(f"{path}: {' '.join(line.strip() for line in first[1:3] or first)}") from None


class DeviceModel:
    """A device in one cell for one run; ``seed`` draws the run's deviation."""

    def __init__(self, sheet: Sheet, words: Mapping[str, str], seed: str = "") -> None:
        self.traits = sheet.cell(words)
        self.line_bps = sheet.line
        self._draws = np.random.default_rng(zlib.crc32(f"{seed} {sorted(words.items())}".encode()))
        # deviation of the capacity in this run
        self.factor = 1 + self.traits.noise * float(np.clip(self._draws.normal(), -3, 3))

    @property
    def line_packets(self) -> float:
        """Frames per second that one port can send."""
        return self.line_bps / (8 * (self.traits.frame + _BETWEEN_FRAMES))

    @property
    def capacity(self) -> float | None:
        """Total packets per second in this run; None: no limit, or a table of losses."""
        traits = self.traits
        limits = [] if traits.packets is None else [traits.packets]
        limits += [] if traits.bits is None else [traits.bits / (8 * (traits.frame + traits.overhead))]
        limits = [limit * traits.times * self.factor for limit in limits]
        limits += [] if traits.out is None else [traits.out / (8 * (traits.frame + traits.overhead + _BETWEEN_FRAMES))]
        return min(limits) if limits else None

    def lost(self, offered: float) -> float:
        """The loss ratio at a total rate in packets per second.

        >>> sheet = Sheet(generator="trex", cells=[Traits(packets=1e6), Traits(when={"config": "ips"}, times=0.8)])
        >>> DeviceModel(sheet, {}).lost(2e6), DeviceModel(sheet, {"config": "ips"}).lost(1e6)
        (0.5, 0.19999999999999996)
        """
        if offered <= 0:
            return 0.0
        if self.traits.loss is not None:
            return min(1.0, max(0.0, self._table(offered / self.line_packets) * self.factor))
        capacity = self.capacity
        if capacity is None or capacity >= offered:
            return 0.0
        return 1 - capacity / offered

    def busy(self, offered: float) -> float:
        """The number of busy cores."""
        traits, capacity = self.traits, self.capacity
        if traits.polls:
            return min(traits.busy, traits.cores)
        share = 1.0 if capacity is None and offered else offered / capacity if capacity else 0.0
        return min(1.0, share) * min(traits.busy, traits.cores)

    def busy_cores(self, offered: float) -> list[float]:
        """The busy share of each core; polling cores are always busy, the others share the work."""
        cores, busy = max(1, round(self.traits.cores)), self.busy(offered)
        if self.traits.polls:
            return [min(1.0, max(0.0, busy - core)) for core in range(cores)]
        return [busy / cores] * cores

    def watts(self, offered: float) -> float | None:
        """Watts now, with sensor noise; None if the sheet has none."""
        traits = self.traits
        if traits.watts is None:
            return None
        idle, full = traits.watts
        share = self.busy(offered) / traits.busy if traits.busy else 0.0
        return (idle + (full - idle) * share) * float(self._draws.normal(1, 0.004))

    def memory(self, connections: float) -> float:
        """Bytes in use with so many open connections."""
        return (self.traits.memory + self.traits.per_connection * connections) * float(self._draws.normal(1, 5e-4))

    def excess(self) -> float:
        """What one start of the generator sends of what it was asked for."""
        return _OVERSHOT if float(self._draws.random()) < self.traits.overshoots else 1.0

    def connection_rate(self) -> float:
        """Connections opened per second now, with the run's deviation and noise."""
        return (self.traits.connections or 0.0) * self.factor * float(self._draws.normal(1, 0.002))

    def _table(self, share: float) -> float:
        """Interpolate the table of losses, which starts at no loss."""
        points = sorted((float(_number(at)), lost) for at, lost in (self.traits.loss or {}).items())  # type: ignore[arg-type]
        if share <= points[0][0] or len(points) == 1:
            return points[0][1]
        for (low, lost_low), (high, lost_high) in pairwise(points):
            if share <= high:
                return lost_low + (lost_high - lost_low) * (share - low) / (high - low)
        return points[-1][1]
