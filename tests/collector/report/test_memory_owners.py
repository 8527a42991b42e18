"""Growth of a host's memory is shown with the owners that grew, in the verdict and in every form of the report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.collector.judge.live_device import Device, evaluator_of

from soakwatch.api import judge_csv
from soakwatch.cli.main import run as command
from soakwatch.core.errors import EXIT_PASS
from soakwatch.judge.verdict import Verdict
from soakwatch.record import Record
from soakwatch_agent.context import HostContext
from soakwatch_agent.host import Host
from soakwatch_model.fact import OwnerGrew
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.sample import Poll, PollOutcome
from soakwatch_rules.detectors.growth import Growth
from soakwatch_testing.records import SECOND, T0

Floats = NDArray[np.float64]
MIB = 2.0**20
CADENCE_S = 300
TOTAL = 16384


def owned_night(seed: int, **grows: Floats | float) -> dict[str, Floats]:
    """A night of a device with a ledger, in MiB; ``grows`` are what owners gain until its end (page cache fills)."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(24 * 3600 / CADENCE_S), dtype=np.float64) / (24 * 3600 / CADENCE_S)

    def around(level: float, name: str) -> Floats:
        values: Floats = level * (1 + rng.normal(0, 0.004, t.size)) + grows.get(name, 0.0) * t
        return values

    part = {
        "owner=slab,part=kmalloc-512": around(60, "kmalloc"),
        "owner=slab,part=filp": around(20, "filp"),
        "owner=processes,part=nginx": around(900, "nginx"),
        "owner=processes,part=bgpd": around(300, "bgpd"),
    }
    owned = {
        "processes": part["owner=processes,part=nginx"] + part["owner=processes,part=bgpd"] + around(40, "others"),
        "slab": part["owner=slab,part=kmalloc-512"] + part["owner=slab,part=filp"] + around(50, "caches"),
        "kernel_stacks": around(8, "stacks"),
        "page_cache": around(2000, "page_cache") + 4000 * t,
    }
    unowned = around(70, "driver")
    used = sum(owned.values(), unowned) - owned["page_cache"]
    owned["free"] = TOTAL - used - owned["page_cache"]
    columns = {f"system.memory.owned{{{f'owner={name}'}}}": value for name, value in owned.items()}
    columns |= {f"system.memory.owned.part{{{name}}}": value for name, value in part.items()}
    columns |= {"system.memory.unowned": unowned, "system.memory.usage": used, "system.memory.available": TOTAL - used}
    return {name: value * MIB for name, value in columns.items()}


def written(folder: Path, columns: Mapping[str, Floats]) -> Path:
    """The table of a run."""
    path = folder / "night.csv"
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(["time", *(f'"{name}"' for name in columns)])]
    lines += [
        ",".join([str(1_700_000_000 + CADENCE_S * i), *("" if np.isnan(x) else f"{x:.0f}" for x in row)])
        for i, row in enumerate(rows)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def judged(folder: Path, **grows: Floats | float) -> Verdict:
    """The verdict of a night."""
    return judge_csv(written(folder, owned_night(1, **grows)), "growth", on_note=lambda _: None)


def growth_of(verdict: Verdict, metric: str = "system.memory.usage") -> Finding:
    """The finding of the rule growth of one series."""
    return next(f for f in verdict.findings if (f.rule, f.metric) == ("growth", metric))


@pytest.mark.parametrize(
    ("name", "owner", "part", "words"),
    [
        ("kmalloc", "slab", "kmalloc-512", "slab kmalloc-512 +"),
        ("driver", "none", "", "no owner: driver pages +"),
        ("nginx", "processes", "nginx", "process nginx +"),
        ("stacks", "kernel_stacks", "", "kernel stacks +"),
        ("caches", "slab", "", "slab +"),
    ],
)
def test_growth_names_its_owner(tmp_path: Path, name: str, owner: str, part: str, words: str) -> None:
    """One owner that grows by 1.1 GiB is named, with at least 95 % of the growth."""
    finding = growth_of(judged(tmp_path, **{name: 1126.0}))
    assert finding.outcome is Outcome.FAIL
    first = finding.fact(OwnerGrew)
    assert first is not None
    assert (first.owner, first.part) == (owner, part)
    assert first.share >= 0.95
    assert first.grew == pytest.approx(1126 * MIB * 15 / 16, rel=0.05)
    assert words in finding.sentence


def test_two_owners_share_a_growth(tmp_path: Path) -> None:
    """Both are named, the larger first, and their shares are those of the whole growth."""
    facts = [f for f in growth_of(judged(tmp_path, kmalloc=900.0, nginx=300.0)).facts if isinstance(f, OwnerGrew)]
    assert [(fact.owner, fact.part) for fact in facts] == [("slab", "kmalloc-512"), ("processes", "nginx")]
    assert [fact.share for fact in facts] == [pytest.approx(0.75, abs=0.03), pytest.approx(0.25, abs=0.03)]


def test_a_page_cache_that_fills_is_healthy(tmp_path: Path) -> None:
    """4 GiB of page cache in a night are no growth: the command passes, and no owner is blamed."""
    path = written(tmp_path, owned_night(1))
    assert command(["judge", str(path)]) == EXIT_PASS
    verdict = judge_csv(path, "growth", on_note=lambda _: None)
    assert not [fact for finding in verdict.findings for fact in finding.facts if isinstance(fact, OwnerGrew)]


def test_a_record_without_a_ledger_is_judged_as_before(tmp_path: Path) -> None:
    """The same growth without a ledger names no owner."""
    columns = {name: value for name, value in owned_night(1, kmalloc=1126.0).items() if ".owned" not in name}
    del columns["system.memory.unowned"]
    finding = growth_of(judge_csv(written(tmp_path, columns), "growth", on_note=lambda _: None))
    assert finding.outcome is Outcome.FAIL
    assert finding.fact(OwnerGrew) is None
    assert "% of the growth" not in finding.sentence


def test_the_owner_stands_in_every_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Terminal, page and verdict.json have it; the section has the drawing and a row for each owner."""
    path = written(tmp_path, owned_night(1, kmalloc=1126.0))
    command(["judge", str(path), "--html", str(tmp_path / "report.html"), "--json", str(tmp_path / "verdict.json")])
    printed = " ".join(capsys.readouterr().out.split())
    assert "slab kmalloc-512 +" in printed
    assert "Find what allocates kmalloc-512" in printed
    document = json.loads((tmp_path / "verdict.json").read_text())
    facts = [fact for finding in document["findings"] for fact in finding["facts"] if fact["fact"] == "OwnerGrew"]
    assert {(fact["owner"], fact["part"]) for fact in facts} == {("slab", "kmalloc-512")}
    page = (tmp_path / "report.html").read_text()
    section = page.partition('<section id="memory_owners">')[2].partition("</section>")[0]
    assert "kmalloc-512" in section
    assert section.count('<path class="own') >= 5


def test_a_part_that_was_named_late_counts_from_nothing(tmp_path: Path) -> None:
    """Its row has no first value, and its growth is what it holds: it was too small to have a series before."""
    columns = owned_night(1, kmalloc=1126.0)
    name = "system.memory.owned.part{owner=slab,part=kmalloc-512}"
    columns[name][: columns[name].size // 5] = np.nan
    path = written(tmp_path, columns)
    first = growth_of(judge_csv(path, "growth", on_note=lambda _: None)).fact(OwnerGrew)
    assert first is not None
    assert first.part == "kmalloc-512"
    command(["judge", str(path), "--md", str(tmp_path / "report.md")])
    row = next(line for line in (tmp_path / "report.md").read_text().splitlines() if "· kmalloc-512" in line)
    first_cell, last, growth = (cell.strip() for cell in row.split("|")[2:5])
    assert (first_cell, growth) == ("–", f"+{last}")


def test_growth_of_a_process_names_its_kind_of_mapping(tmp_path: Path) -> None:
    """Of a process whose heap grows the heap is named, and the owner of the host's growth is named once."""
    columns = owned_night(1, nginx=1126.0)
    part = columns["system.memory.owned.part{owner=processes,part=nginx}"]
    columns["process.memory.usage{process=nginx,instance=0}"] = part + 30 * MIB
    heap = columns["process.memory.mapping{process=nginx,instance=0,mapping=heap}"] = part * 0.98
    columns["process.memory.mapping{process=nginx,instance=0,mapping=anonymous}"] = part - heap
    columns["process.memory.mapping{process=nginx,instance=0,mapping=file}"] = np.full(part.size, 30 * MIB)
    verdict = judge_csv(written(tmp_path, columns), "growth", on_note=lambda _: None)
    process = growth_of(verdict, "process.memory.usage")
    assert "; heap +" in process.sentence
    assert process.fact(OwnerGrew) == next(f for f in process.facts if isinstance(f, OwnerGrew))
    host = next(cause for cause in verdict.causes if "process nginx +" in cause.headline or "heap +" in cause.headline)
    assert "accounts for" not in host.headline


def test_parts_that_are_read_rarely_do_not_count_from_nothing(tmp_path: Path) -> None:
    """Of the slab nothing was read in the first fifth of the run: its caches are as large as they are all the same."""
    columns = owned_night(1, nginx=1126.0)
    for part in ("kmalloc-512", "filp"):
        values = columns[f"system.memory.owned.part{{owner=slab,part={part}}}"]
        values[: values.size // 5] = np.nan
    facts = growth_of(judge_csv(written(tmp_path, columns), "growth", on_note=lambda _: None)).facts
    assert [(fact.owner, fact.part) for fact in facts if isinstance(fact, OwnerGrew)] == [("processes", "nginx")]


def test_a_running_run_names_the_owner_too(tmp_path: Path) -> None:
    """The warning about a trend so far has the owner that grew so far."""
    device = Device(tmp_path / "run", interval_s=60)
    leaked = MIB / 60
    for metric, name, level, rate in (
        ("system.memory.usage", "", 3000 * MIB, leaked),
        ("system.memory.owned", "owner=slab", 200 * MIB, leaked),
        ("system.memory.owned.part", "owner=slab,part=kmalloc-512", 90 * MIB, leaked),
        ("system.memory.owned", "owner=processes", 2700 * MIB, 0.0),
        ("system.memory.unowned", "", 100 * MIB, 0.0),
    ):
        device.levels[metric, name] = lambda second, level=level, rate=rate: level + rate * second  # type: ignore[misc]
    evaluator = evaluator_of(device, Growth())
    for seconds in (9000, 600, 600, 600):
        device.run(seconds)
        evaluator.evaluate()
    device.record.close()
    (finding,) = evaluator.findings
    assert finding.outcome is Outcome.WARN
    assert "slab kmalloc-512 +" in finding.sentence
    assert finding.fact(OwnerGrew) is not None


def test_from_the_kernels_files_to_the_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A machine whose slab leaks 60 MiB an hour, as its files in /proc say it, polled by the probes for 4 h."""
    root = tmp_path / "machine/proc"
    (root / "self").mkdir(parents=True)
    host = Host(HostContext(str(root.parent)), ["memory", "ledger"])
    with Record.create(tmp_path / "run") as record:
        record.set_meta("run", "leak")
        record.target("fw", "dut")
        source = record.source("fw", "local", "fw/local", 60 * SECOND, required=True).id
        record.begin_phase("soak", T0)
        polls = []
        for minute in range(0, 240, 3):
            caches = 2000 + 120 * minute  # of 8 KiB each: 937 KiB a minute
            slab = caches * 8 + 40_000
            (root / "meminfo").write_text(
                f"MemTotal: 4000000 kB\nMemFree: {1_000_000 - slab} kB\nMemAvailable: {2_500_000 - slab} kB\n"
                f"Buffers: 1000 kB\nCached: 1500000 kB\nActive: 1 kB\nInactive: 1 kB\nAnonPages: 1400000 kB\n"
                f"Shmem: 2000 kB\nSlab: {slab + 60_000} kB\nSReclaimable: 60000 kB\nSUnreclaim: {slab} kB\n"
            )
            (root / "slabinfo").write_text(
                "slabinfo - version: 2.1\n# name\n"
                f"kmalloc-512 1 1 512 16 2 : tunables 0 0 0 : slabdata {caches} {caches} 0\n"
                "filp 1 1 256 16 1 : tunables 0 0 0 : slabdata 9000 9000 0\n"
            )
            due = T0 + minute * 60 * SECOND
            polls.append(Poll(source, due, due, 1, PollOutcome.OK, None, host.poll(due)))
        record.put(polls)
        record.end_phase(due)
        record.finish()
    command(["judge", str(tmp_path / "run"), "--rule", "growth"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "slab kmalloc-512 +2" in printed  # 120 slabs of 8 KiB a minute, by the medians of the ends
    assert "(all of the growth)" in printed
