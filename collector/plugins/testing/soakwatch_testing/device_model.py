"""What a device of testing carries, as a sheet says: capacity by kind, size, variant or cores, and what that costs it.

A sheet is a YAML file beside a plan (``deploy/examples/campaigns/*/device.yaml``)::

    generator: trex                 # how the generator speaks: trex, astf or pktgen
    line: 10e9                      # bit/s of each port, preamble and gap of each frame included
    cells:                          # each entry whose words fit adds to those before it
      - {frame: 64, noise: 0.5%}    # noise: coefficient of variation of the capacity from run to run
      - {when: {variant: kernel}, packets: 1.1e6, watts: [38, 47]}
      - {when: {config: ips}, times: 80%}

Nothing is forwarded: the figures are the sheet's own, with noise of a seed, so that a campaign over it has a known
truth. What a real device does besides (warm up, reorder, lose a packet to an interrupt) is not in it.
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


class BadSheetError(SoakwatchError):
    """A sheet that cannot be used, in one sentence."""


def _number(value: object) -> object:
    """``80%`` and ``1.1e6`` as numbers; YAML takes the latter for a text."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)


Number = Annotated[float, BeforeValidator(_number), Field(ge=0)]


class Traits(BaseModel):
    """What one entry of a sheet says; keys that it leaves out are those of the entries before it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    when: dict[str, str | list[str]] = Field(default_factory=dict)
    noise: Number = 0  # coefficient of variation from run to run
    frame: Number = 64  # bytes of a frame, the mean of a mix
    overhead: Number = 0  # bytes that the device adds to each, or takes away (a tunnel)
    packets: Number | None = None  # per second that it carries in all; None = as many as come
    bits: Number | None = None  # bit/s of frames with overhead that it carries in all (a bus)
    out: Number | None = None  # bit/s of its port on the line, with overhead, preamble and gap
    times: Number = 1  # share of packets and bits that is left; entries multiply
    loss: dict[str, Number] | None = None  # lost share by offered share of the line, instead of these
    ceiling: Number | None = None  # packets/s that the generator itself reaches in all
    connections: Number | None = None  # opened per second
    established: Number = 0  # connections that are open
    cores: Number = 4
    busy: Number = 0  # cores that work at the capacity
    polls: bool = False  # they work always (poll mode)
    memory: Number = 2e9
    per_connection: Number = 0  # bytes
    watts: tuple[Number, Number] | None = None  # idle, and with all cores of `busy` at work

    def fits(self, words: Mapping[str, str]) -> bool:
        """Whether the entry is about a cell with these words."""
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
        """What holds for a cell with these words, such as ``{"kind": "L4", "size": "64"}``. Raises BadSheetError for a
        word that no entry asks for or a value that none knows: a cell that is misspelt has no figures."""
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
    """A sheet from its file. Raises BadSheetError."""
    try:
        return Sheet.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise BadSheetError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, ValidationError) as error:
        first = str(error).splitlines()
        raise BadSheetError(f"{path}: {' '.join(line.strip() for line in first[1:3] or first)}") from None


class DeviceModel:
    """A device in one cell, for one run: ``seed`` draws how good a run this is."""

    def __init__(self, sheet: Sheet, words: Mapping[str, str], seed: str = "") -> None:
        self.traits = sheet.cell(words)
        self.line_bps = sheet.line
        self._draws = np.random.default_rng(zlib.crc32(f"{seed} {sorted(words.items())}".encode()))
        self.factor = 1 + self.traits.noise * float(np.clip(self._draws.normal(), -3, 3))  # of the capacity in this run

    @property
    def line_packets(self) -> float:
        """Frames per second that one port can send."""
        return self.line_bps / (8 * (self.traits.frame + _BETWEEN_FRAMES))

    @property
    def capacity(self) -> float | None:
        """Packets per second that it carries in all in this run; None: as many as come, or a table of losses."""
        traits = self.traits
        limits = [] if traits.packets is None else [traits.packets]
        limits += [] if traits.bits is None else [traits.bits / (8 * (traits.frame + traits.overhead))]
        limits = [limit * traits.times * self.factor for limit in limits]
        limits += [] if traits.out is None else [traits.out / (8 * (traits.frame + traits.overhead + _BETWEEN_FRAMES))]
        return min(limits) if limits else None

    def lost(self, offered: float) -> float:
        """The share that is lost of so many packets per second in all.

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
        """Cores at work, as a number."""
        traits, capacity = self.traits, self.capacity
        if traits.polls:
            return min(traits.busy, traits.cores)
        share = 1.0 if capacity is None and offered else offered / capacity if capacity else 0.0
        return min(1.0, share) * min(traits.busy, traits.cores)

    def busy_cores(self, offered: float) -> list[float]:
        """The busy share of each core: those that poll are at work for themselves, else all share the work."""
        cores, busy = max(1, round(self.traits.cores)), self.busy(offered)
        if self.traits.polls:
            return [min(1.0, max(0.0, busy - core)) for core in range(cores)]
        return [busy / cores] * cores

    def watts(self, offered: float) -> float | None:
        """Electric power now, with the noise of a sensor; None where the sheet does not say."""
        traits = self.traits
        if traits.watts is None:
            return None
        idle, full = traits.watts
        share = self.busy(offered) / traits.busy if traits.busy else 0.0
        return (idle + (full - idle) * share) * float(self._draws.normal(1, 0.004))

    def memory(self) -> float:
        """Bytes in use."""
        return (self.traits.memory + self.traits.per_connection * self.traits.established) * float(
            self._draws.normal(1, 5e-4)
        )

    def connection_rate(self) -> float:
        """Connections opened per second now: that of the run, and what one second differs from the next."""
        return (self.traits.connections or 0.0) * self.factor * float(self._draws.normal(1, 0.002))

    def _table(self, share: float) -> float:
        """The table of losses, straight between its points; it begins where nothing is lost."""
        points = sorted((float(_number(at)), lost) for at, lost in (self.traits.loss or {}).items())  # type: ignore[arg-type]
        if share <= points[0][0] or len(points) == 1:
            return points[0][1]
        for (low, lost_low), (high, lost_high) in pairwise(points):
            if share <= high:
                return lost_low + (lost_high - lost_low) * (share - low) / (high - low)
        return points[-1][1]
