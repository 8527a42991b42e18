"""Baselines: what is frozen of them, when, and what an earlier run lends."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import numpy as np
import pytest

from soakwatch.core.errors import RecordError
from soakwatch.engine.baseline_freeze import Freezing, baseline_in_process, compute_baseline, freeze
from soakwatch.engine.phases import PhaseTimeline
from soakwatch.engine.references import choose_references
from soakwatch.judge.baseline import META, BaselineSnapshot, Level, freeze_baseline, levels_of, parse_baseline, period
from soakwatch.judge.cases import CaseBuilder
from soakwatch.judge.imported_baseline import MAX_SAMPLES, import_baseline, packed, unpacked
from soakwatch.judge.planned import planned_text
from soakwatch.plan import Plan, plan_from_text
from soakwatch.plan.rule_plan import planned_rules
from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_model.series import Series, Trait
from soakwatch_model.window import Window
from soakwatch_rules.detectors.cpu_spike import CpuSpike
from soakwatch_testing.records import SECOND, T0

CPU = SeriesKey("dut", "system.cpu.utilization", "")
PLAN = "{name: fw, phases: [{baseline: 10m}, {soak: 10m}], targets: {dut: {sources: [local]}}}"
SOAK = "{name: fw, phases: [{soak: 10m}], targets: {dut: {sources: [local]}}}"


def rules(plan: Plan) -> tuple[CpuSpike, ...]:
    """The rules here: one that uses the baseline is enough."""
    return tuple(rule for rule in planned_rules(plan.rules) if isinstance(rule, CpuSpike))


def run_of(folder: Path, phases: tuple[tuple[str, int], ...], text: str = PLAN, begin_s: int = 0) -> Path:
    """A run with so many readings of the CPU in each phase, one a second, and a counter and a large series beside."""
    chance = random.Random(begin_s)
    with Record.create(folder) as record:
        record.set_meta("plan", text)
        record.set_meta("run", "fw")
        total = sum(length for _, length in phases)
        record.set_meta("planned", planned_text(total, [name for name, _ in phases]))
        record.target("dut", "dut")
        source = record.source("dut", "local", "local", SECOND, required=True)
        second = begin_s
        for name, length in phases:
            record.begin_phase(name, T0 + second * SECOND)
            for _ in range(length):
                due = T0 + second * SECOND
                samples = (
                    Sample(CPU.metric, "", 0.2 + 0.02 * chance.random(), due),
                    Sample("system.memory.usage", "", 10**9 + second, due),
                )
                record.put([Poll(source.id, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ()))])
                second += 1
        record.end_phase(T0 + second * SECOND)
        record.finish()
    return folder


def test_levels_of_gauges_and_of_counters_as_rates() -> None:
    """Median, robust noise, quantiles, period and count; too few readings have no level."""
    time_ns = T0 + np.arange(400, dtype=np.int64) * SECOND
    swing = 10 + np.sin(np.arange(400) * 2 * np.pi / 40) + np.random.default_rng(1).normal(0, 0.1, 400)
    gauge = Series("dut", "queue.depth", "queue=1", Trait("{packet}", "gauge"), time_ns, swing)
    counter = Series("dut", "system.network.packets", "", Trait("{packet}", "counter"), time_ns, np.arange(400) * 7)
    few = Series("dut", "queue.depth", "queue=2", Trait("{packet}", "gauge"), time_ns[:5], swing[:5])
    first, second = levels_of([gauge, counter, few])
    assert (first.count, round(first.median), first.quantiles[0] < first.median < first.quantiles[3]) == (400, 10, True)
    assert first.period_s == pytest.approx(40, rel=0.05)
    assert (second.median, second.sd, second.unit, second.period_s) == (7.0, 0.0, "{packet}/s", None)


def test_noise_has_no_period() -> None:
    """White and strongly tied noise, 400 of each: not one in a hundred swings."""
    for tied in (0.0, 0.9):
        periodic = 0
        for seed in range(400):
            noise = np.random.default_rng(seed).normal(size=300)
            for n in range(1, 300):
                noise[n] += tied * noise[n - 1]
            periodic += period(np.arange(300.0), noise) is not None
        assert periodic <= 4, (tied, periodic)


def test_what_is_frozen_reads_back_and_tells_when_it_was_changed() -> None:
    """One digit that is changed in the file is seen."""
    level = Level("dut", CPU.metric, "", "1", 60, 0.2, 0.01, (0.1, 0.2, 0.2, 0.3), None)
    text = BaselineSnapshot("", Window(T0, T0 + SECOND), (level,), 3).text()
    assert parse_baseline(text) == BaselineSnapshot("", Window(T0, T0 + SECOND), (level,), 3)
    assert parse_baseline(text.replace("0.01", "0.02")) is None
    for wrong in (None, "", "{", "[]", "7", "null", '{"sha256": "x"}', text[:-9], json.dumps({"sha256": text})):
        assert parse_baseline(wrong) is None


def test_the_baseline_is_frozen_when_its_phase_is_over(tmp_path: Path) -> None:
    """Once, in a process of its own, some seconds after its end; while it goes on nothing is."""
    folder = run_of(tmp_path / "run", (("baseline", 60), ("soak", 30)))
    plan, kept = plan_from_text(PLAN, "plan.yaml"), list[str]()
    phasing = PhaseTimeline(plan.phases, T0, (T0,))

    async def keep(text: str) -> None:
        kept.append(text)

    async def main() -> None:
        freezing = Freezing(folder, keep, baseline_in_process)
        freezing.check(phasing, T0 + 700 * SECOND)
        assert freezing._task is None
        phasing.next_change(T0 + 600 * SECOND)
        phasing.begun()
        freezing.check(phasing, T0 + 601 * SECOND)
        assert freezing._task is None
        for _ in range(3):
            freezing.check(phasing, T0 + 606 * SECOND)
        assert freezing._task is not None
        async with asyncio.timeout(200):
            await freezing._task
        freezing.check(phasing, T0 + 660 * SECOND)
        await freezing.close()

    asyncio.run(main())
    (text,) = kept
    frozen = parse_baseline(text)
    assert frozen is not None
    assert frozen.window == Window(T0, T0 + 60 * SECOND)
    (level,) = [level for level in frozen.levels if level.metric == CPU.metric]
    assert level.count == 60
    assert level.median == pytest.approx(0.21, abs=0.01)


def test_a_run_that_ends_with_it_or_in_it_is_frozen_at_its_end(tmp_path: Path) -> None:
    """Once more is nothing; a run without a baseline phase has none."""
    folder = run_of(tmp_path / "run", (("baseline", 60),))
    with Record.open(folder) as record:
        freeze(record, folder)
        freeze(record, folder)
    assert compute_baseline(folder) is None
    with RecordView.open(folder) as view:
        assert parse_baseline(view.meta(META)) == freeze_baseline(view, planned_rules(()))
    other = run_of(tmp_path / "other", (("soak", 30),), SOAK)
    assert compute_baseline(other) is None


def test_an_imported_baseline_is_small_and_reads_back_bit_for_bit(tmp_path: Path) -> None:
    """At most 400 readings of a series, picked and not averaged; only what the rules use."""
    folder, plan = run_of(tmp_path / "run", (("baseline", 900), ("soak", 30))), plan_from_text(SOAK, "plan.yaml")
    imported = import_baseline(folder, plan, rules(plan))
    assert [(series.metric, len(series)) for series in imported.series] == [(CPU.metric, MAX_SAMPLES)]
    with RecordView.open(folder) as view:
        whole = view.series(CPU).value
    assert set(imported.series[0].value.tolist()) <= set(whole.tolist())
    back = unpacked(packed(imported.series))[CPU]
    for read, other in ((back.time_ns, imported.series[0].time_ns), (back.value, imported.series[0].value)):
        assert read.tobytes() == other.tobytes()
    assert back.trait == imported.series[0].trait


def test_the_case_has_the_imported_baseline_where_the_run_has_none(tmp_path: Path) -> None:
    """And its own, where it has one: then the other is not even copied, and a sentence says so."""
    earlier = run_of(tmp_path / "earlier", (("baseline", 60), ("soak", 30)))
    without, having = plan_from_text(SOAK, "plan.yaml"), plan_from_text(PLAN, "plan.yaml")
    held = choose_references(without, None, str(earlier), tmp_path, 0.0)
    folder = run_of(tmp_path / "run", (("soak", 90),), SOAK, begin_s=7200)
    with Record.open(folder) as record:
        held.keep(record, without, T0 + 7200 * SECOND)
    (rule,) = rules(without)
    with RecordView.open(folder) as view:
        case_builder = CaseBuilder(view)
        (about,) = case_builder.subject_matters(rule)
        case = case_builder.case(rule, about.target, about.keys, about.window)
        frozen = parse_baseline(view.meta(META))
    assert [len(series) for series in case.before.baseline] == [60]
    assert frozen is not None
    assert (frozen.run, frozen.levels[0].count) == ("earlier", 60)
    (finding,) = rule.judge(case)
    assert "compared with the baseline of an earlier run" in finding.doubts
    own = choose_references(having, None, str(earlier), tmp_path, 0.0)
    assert own.baseline is None
    assert own.warnings == ("the plan has a baseline phase of its own: that of earlier is not used",)


def test_a_baseline_of_another_device_is_reported(tmp_path: Path) -> None:
    """Target names that the earlier run does not know; and a run without a baseline phase lends none."""
    earlier = run_of(tmp_path / "earlier", (("baseline", 60),))
    other = plan_from_text(SOAK.replace("dut:", "fw2:"), "plan.yaml")
    assert choose_references(other, None, str(earlier), tmp_path, 0.0).warnings == (
        "the baseline of earlier knows no target fw2: it is another device",
        "the baseline of earlier has no samples that the rules of this plan use",
    )
    soaked = run_of(tmp_path / "soaked", (("soak", 30),), SOAK)
    with pytest.raises(RecordError, match="the run soaked has no baseline phase: name one that has"):
        choose_references(other, None, str(soaked), tmp_path, 0.0)


def test_a_damaged_imported_baseline_is_refused(tmp_path: Path) -> None:
    """Whatever was changed in its text: the same series, or one RecordError."""
    plan, chance = plan_from_text(SOAK, "plan.yaml"), random.Random(5)
    text = packed(import_baseline(run_of(tmp_path / "run", (("baseline", 60),)), plan, rules(plan)).series)
    refused = 0
    for _ in range(200):
        position = chance.randrange(len(text))
        changed = text[:position] + chance.choice("Ax=:é\n") + text[position + chance.choice([0, 1, 20]) :]
        try:
            unpacked(changed)
        except RecordError:
            refused += 1
    assert refused > 190
    for wrong in ("", ":", "x:x", text[:70], text.partition(":")[2]):
        with pytest.raises(RecordError, match="is damaged"):
            unpacked(wrong)
