"""Where the samples of an exporter go is found once for each of its series, and stays true when these come and go."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from soakwatch.sources.pollers.prometheus import sample_mapping
from soakwatch.sources.pollers.prometheus.exposition_page import PageSample
from soakwatch.sources.pollers.prometheus.map_file import MapEntry
from soakwatch.sources.pollers.prometheus.sample_mapping import Mapped, Mapper

S = 10**9
ENTRIES = [
    MapEntry.model_validate(
        {
            "from": "node_cpu_seconds_total",
            "metric": "system.cpu.core.utilization",
            "labels": {"core": "{cpu}"},
            "idle": {"mode": "idle"},
        }
    ),
    MapEntry.model_validate({"from": "forks_total", "metric": "system.processes.created", "where": {"os": "linux"}}),
]


def page(second: int, cores: Sequence[int], system: str = "linux") -> list[PageSample]:
    """What an exporter shows: cores that are busy for a quarter of the time, and a counter."""
    cpu = [
        PageSample("node_cpu_seconds_total", {"cpu": str(core), "mode": mode}, 1000 + share * second, "counter")
        for core in cores
        for mode, share in (("idle", 0.75), ("user", 0.25))
    ]
    return [*cpu, PageSample("forks_total", {"os": system}, 7.0 * second, "counter")]


def values(mapped: Mapped) -> dict[tuple[str, str], float]:
    """The samples by metric and object."""
    return {(sample.metric, sample.object): sample.value for sample in mapped.samples}


def test_the_object_of_a_series_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll of an exporter, and each scrape of an import, takes a third of the CPU."""
    made = 0
    made_before = sample_mapping._object

    def counted(entry: MapEntry, labels: object) -> str:
        nonlocal made
        made += 1
        return made_before(entry, labels)

    monkeypatch.setattr(sample_mapping, "_object", counted)
    mapper = Mapper(ENTRIES)
    for second in range(100):
        mapped = mapper.map(page(second, range(4)), second * S)
    assert made == 4 * 2 + 1
    assert values(mapped) == {
        **{("system.cpu.core.utilization", f"core={core}"): pytest.approx(0.25) for core in range(4)},
        ("system.processes.created", ""): 693.0,
    }


def test_series_that_come_and_go_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered has a bound; what is forgotten is found again."""
    monkeypatch.setattr(sample_mapping, "_MAX_PLACES", 8)
    mapper = Mapper(ENTRIES)
    mapper.map(page(0, range(40)), 0)
    for second in range(1, 20):
        found = values(mapper.map(page(second, range(40), "linux" if second % 2 else "other"), second * S))
        assert len(mapper._places) <= 8
        assert len(found) == 40 + second % 2
