"""Profiles from text and devices from values, for the tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from soakwatch.sources.profiles import PollReading, Profile, Profiles, Value
from soakwatch.sources.profiles.loading import shipped
from soakwatch.sources.profiles.profile_reader import ProfileReader
from soakwatch.sources.profiles.recording import recording

SECOND = 1_000_000_000
IF, IFX = "1.3.6.1.2.1.2.2.1", "1.3.6.1.2.1.31.1.1.1"
SW, PERF = "1.3.6.1.2.1.25.4.2.1", "1.3.6.1.2.1.25.5.1.1"


def profile(folder: Path, text: str, name: str = "box") -> Profile:
    """A profile from its text; its parents are in the same folder or shipped."""
    (folder / f"{name}.yaml").write_text(text)
    return Profiles((folder, shipped()))[name]


def problems(folder: Path, text: str) -> tuple[str, ...]:
    """What is wrong with a profile."""
    from soakwatch.core.errors import PlanError

    try:
        profile(folder, text)
    except PlanError as error:
        return error.problems
    return ()


def group(text: str, name: str = "g") -> str:
    """A profile with one group, whose text is indented by 6."""
    return f"title: box\nsnmp:\n  groups:\n    {name}:\n{text}\n"


@dataclass
class Device:
    """A device whose values the test changes; counts what it is asked."""

    values: dict[str, Value]
    gets: list[Sequence[str]] = field(default_factory=list)
    walks: list[Sequence[str]] = field(default_factory=list)

    def until(self, _deadline_s: float) -> Self:
        """Itself: nothing takes time."""
        return self

    async def get(self, oids: Sequence[str]) -> Mapping[str, Value]:
        """The values of whole OIDs."""
        self.gets.append(oids)
        return {oid: self.values[oid] for oid in oids if oid in self.values}

    async def walk(self, columns: Sequence[str]) -> Mapping[str, Value]:
        """Every value under the OIDs."""
        self.walks.append(columns)
        return await recording(self.values).walk(columns)


def interfaces(names: Mapping[int, str]) -> dict[str, Value]:
    """IF-MIB rows; the counters are multiples of the index, so that a mixed-up row shows."""
    values: dict[str, Value] = {}
    for index, name in names.items():
        values |= {
            f"{IFX}.1.{index}": name.encode(),
            f"{IF}.2.{index}": name.encode(),
            f"{IF}.7.{index}": 1,
            f"{IF}.8.{index}": 1,
            f"{IFX}.6.{index}": index * 1000,
            f"{IFX}.10.{index}": index * 2000,
            f"{IF}.13.{index}": 0,
            f"{IF}.14.{index}": 0,
        }
    return values


def process(pid: int, name: str, path: str = "", parameters: str = "", cpu: int = 0) -> dict[str, Value]:
    """A row of hrSWRunTable and hrSWRunPerfTable."""
    return {
        f"{SW}.2.{pid}": name.encode(),
        f"{SW}.4.{pid}": path.encode(),
        f"{SW}.5.{pid}": parameters.encode(),
        f"{PERF}.1.{pid}": cpu,
        f"{PERF}.2.{pid}": 1000,
    }


def poll(reader: ProfileReader, second: float) -> PollReading:
    """One poll at a second of the steady clock."""
    return asyncio.run(reader.poll(int(second * SECOND)))


def table(reading: PollReading) -> dict[tuple[str, str], float]:
    """The values by metric and object."""
    values = {(sample.metric, sample.object): sample.value for sample in reading.samples}
    assert len(values) == len(reading.samples), "a series has two samples in one poll"
    return values
