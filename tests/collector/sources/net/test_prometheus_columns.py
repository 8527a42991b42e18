"""The pages of an hour that are mapped at once bring what they bring one after the other."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from soakwatch.sources.pollers.prometheus import Config, chosen_entries
from soakwatch.sources.pollers.prometheus.column_mapping import ColumnMapper
from soakwatch.sources.pollers.prometheus.query_api import ShownSeries, scrapes
from soakwatch.sources.pollers.prometheus.sample_mapping import Mapper
from soakwatch_model.sample import Fault

ENTRIES = chosen_entries(Config.model_validate({"url": "http://127.0.0.1:9090", "query": "up", "step": "15s"}))
NAMES = sorted({name for entry in ENTRIES for name in (entry.name, entry.less) if name})
GROUP = ("job", "instance")
Rows = dict[tuple[str, str], list[tuple[int, float]]]


def shown(rng: np.random.Generator, first_s: float, pages: int, *, odd: float) -> list[ShownSeries]:
    """Series of every name that is mapped and of others, of two CPUs and disks, each on most pages; ``odd`` is the
    share of values that are no valid samples."""
    time_s = first_s + 15.0 * np.arange(pages) + 0.123
    series = []
    for name in (*NAMES, "odd_total", "odd_seconds"):
        for number in range(2):
            for mode in ("idle", "user") if "cpu" in name else ("",):
                there = rng.random(pages) < rng.choice([1.0, 0.7])
                if not there.any() or rng.random() < 0.1:
                    continue
                value = rng.choice([0.0, 0.25, 1.0, 7.0, 4096.0, 1e6], pages).cumsum()
                value[rng.random(pages) < odd] = rng.choice([math.nan, math.inf, -5.0, 1e300])
                labels = {"cpu": str(number), "device": f"sd{number}", "mountpoint": f"/{number}", "fstype": "ext4"}
                if mode:
                    labels["mode"] = mode
                kind = "counter" if name.endswith("_total") else "gauge"
                series.append(ShownSeries(name, labels, kind, time_s[there].tolist(), value[there].tolist()))
    return series


def page_after_page(mapper: Mapper, series: Sequence[ShownSeries]) -> tuple[Rows, list[Fault], set[str], set[str]]:
    """What ``map`` makes of the pages."""
    rows: Rows = defaultdict(list)
    faults: list[Fault] = []
    used, unused = set[str](), set[str]()
    for scrape in scrapes({GROUP: series}):
        mapped = mapper.map(scrape.page, round(scrape.time_s * 1e9))
        for sample in mapped.samples:
            rows[sample.metric, sample.object].append((sample.time_ns, float(sample.value)))
        faults += mapped.faults
        used |= mapped.used
        unused |= mapped.unused
    return dict(rows), faults, used, unused


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("keep", [(), ("odd_*",)])
def test_pages_at_once_are_pages_one_by_one(seed: int, keep: Sequence[str]) -> None:
    """Also over three stretches, whose first shares go on from the last sums, and with values that are none."""
    rng = np.random.default_rng(seed)
    columns, pages = ColumnMapper(ENTRIES, keep), Mapper(ENTRIES, keep)
    for stretch in range(3):
        series = shown(rng, 1.79e9 + 3600 * stretch, 1 if seed == 0 else 40, odd=0.002 * (seed % 3))
        at_once = columns.map_columns(series)
        rows, faults, used, unused = page_after_page(pages, series)
        assert at_once is not None
        made = {
            key: list(zip(time_ns.tolist(), value.tolist(), strict=True))
            for key, (time_ns, value) in at_once.rows.items()
        }
        assert list(made) == list(rows)
        assert made == rows
        assert sorted(map(repr, at_once.faults)) == sorted(map(repr, faults))
        assert set(at_once.used) == used
        assert set(at_once.unused) == unused
        assert len(rows) > 20
        assert seed % 3 == 0 or faults


def test_what_only_a_page_tells_is_left_to_it() -> None:
    """A series that is twice on a page, or more faults than a page names: nothing is mapped, and nothing remembered."""
    rng = np.random.default_rng(1)
    series = shown(rng, 1.79e9, 10, odd=0.0)
    mapper, other = ColumnMapper(ENTRIES, ("odd_*",)), ColumnMapper(ENTRIES, ("odd_*",))
    twice = next(one for one in series if one.name == "odd_total")
    assert mapper.map_columns([*series, twice]) is None
    again = ShownSeries(twice.name, twice.labels, twice.kind, [1.0, 1.0], [2.0, 3.0])
    assert mapper.map_columns([*series, again]) is None
    none = [ShownSeries(one.name, one.labels, one.kind, one.time_s, [math.nan] * len(one.value)) for one in series]
    assert mapper.map_columns(none) is None
    first, second = mapper.map_columns(series), other.map_columns(series)
    assert first is not None
    assert second is not None
    assert [value.tolist() for _, value in first.rows.values()] == [value.tolist() for _, value in second.rows.values()]
