"""The ceiling of a generator, the file that holds it, and when it is used."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.core.errors import PlanError, RecordError
from soakwatch.engine.calibrate import calibration_of, driven_of, generators_of, length_of, levels_of
from soakwatch.engine.references import choose_references
from soakwatch.judge.calibration import choose_reference, fingerprint, read_reference, reference_path, write_reference
from soakwatch.judge.ceiling import METRICS, Ceiling, NoCeiling, ceilings
from soakwatch.plan import Plan, load_plan
from soakwatch_model.metric import BY_NAME
from soakwatch_model.series import Kind, Series, Trait

NOW_S = 1_800_000_000.0
PLAN = """
name: fw
phases: [{soak: 10m}]
targets:
  dut: {sources: [local]}
  tg:
    role: generator
    sources: [{command: {drive: true, full: 1000, run: [./load, "{rate}"]}}]
  host: {role: monitor, sources: [local]}
rules: {level: {cpu: 90%}}
"""


def sampled(metric: str, value: NDArray[np.float64], at_s: NDArray[np.float64] | None = None) -> Series:
    """A series of the whole generator, one reading a second."""
    kind: Kind = "counter" if BY_NAME[metric].kind == "counter" else "gauge"
    at_second = np.arange(value.size, dtype=np.float64) if at_s is None else at_s
    time_ns = ((NOW_S + at_second) * 1e9).astype(np.int64)
    kept = np.round(value).astype(np.int64) if kind == "counter" else value
    return Series("tg", metric, "", Trait(BY_NAME[metric].unit, kind), time_ns, kept, 1.0)


def counted(metric: str, rate: NDArray[np.float64]) -> Series:
    """A counter that rises by these every second."""
    return sampled(metric, np.append(0.0, np.cumsum(rate)))


def only(*series: Series) -> Ceiling | NoCeiling:
    """The one thing that is found."""
    (findings,) = ceilings(series)
    return findings


def steps(*levels: float, each: int = 20) -> NDArray[np.float64]:
    """Levels in turn."""
    return np.repeat(levels, each)


def test_the_ceiling_is_the_highest_rate_held_for_ten_seconds() -> None:
    """A burst of five seconds is none; where it was, and what the CPU did meanwhile, is reported."""
    rate = np.concatenate([steps(500.0), steps(900.0), steps(5000.0, each=5), steps(100.0)])
    busy = sampled("load.cpu.utilization", np.append(0.1, rate / 10_000))
    level = sampled("load.level", np.append(0.5, np.where(rate > 600, 1.0, 0.5)))
    ceiling = only(counted("load.tx.packets", rate), busy, level)
    assert isinstance(ceiling, Ceiling)
    assert ceiling.rate == pytest.approx((5 * 5000 + 5 * 900) / 10)
    assert ceiling.cpu == pytest.approx(ceiling.rate / 10_000)
    assert ceiling.level == pytest.approx(1.0)
    assert ceiling.window.seconds == pytest.approx(10)
    assert (ceiling.loss, ceiling.queue_full) == (None, None)


@pytest.mark.parametrize(
    ("lost", "of"),
    [
        ("load.lost.packets", "load.tx.packets"),
        ("load.rx.packets", "load.tx.packets"),
        ("load.loss", "load.tx.packets"),
        ("load.failures", "load.requests"),
        ("load.failure.rate", "load.request.rate"),
    ],
)
def test_a_rate_at_which_it_loses_is_no_ceiling(lost: str, of: str) -> None:
    """Above 900 a second it loses 2 %: the ceiling is 900, and at that rate it lost 0.05 %."""
    rate, share = steps(500.0, 900.0, 1400.0), steps(0.0, 0.0005, 0.02)
    gone = rate * share
    figures = {
        "load.lost.packets": gone,
        "load.rx.packets": rate - gone,
        "load.loss": share,
        "load.failures": gone,
        "load.failure.rate": gone,
    }[lost]

    def series(metric: str, value: NDArray[np.float64]) -> Series:
        return (
            counted(metric, 100 * value) if BY_NAME[metric].kind == "counter" else sampled(metric, np.append(0, value))
        )

    ceiling = only(series(of, rate), series(lost, figures))
    assert isinstance(ceiling, Ceiling)
    assert ceiling.rate / (100 if BY_NAME[of].kind == "counter" else 1) == pytest.approx(900)
    assert ceiling.loss == pytest.approx(0.0005, rel=0.01)


def test_one_that_always_loses_or_never_sends_has_none_and_says_why() -> None:
    """One sentence each."""
    rate = steps(1000.0, 2000.0)
    lossy = only(counted("load.tx.packets", rate), counted("load.lost.packets", rate / 50))
    idle = only(sampled("load.request.rate", np.zeros(60)))
    brief = only(counted("load.tx.packets", np.full(6, 100.0)))
    sentences = [result.reason for result in (lossy, idle, brief) if isinstance(result, NoCeiling)]
    assert sentences == [
        "no 10 s had a loss of at most 0.1 % of its packets: it was 2 % at least",
        "it sent no requests",
        "its packets were never read for 10 s without a gap",
    ]
    assert ceilings([sampled("load.cpu.utilization", np.full(60, 0.5))]) == ()


def test_a_generator_to_which_nothing_comes_back_loses_nothing_that_it_knows_of() -> None:
    """A counter of what came back that never counts is no loss of everything."""
    ceiling = only(counted("load.tx.packets", np.full(30, 100.0)), counted("load.rx.packets", np.zeros(30)))
    assert isinstance(ceiling, Ceiling)
    assert ceiling.loss is None


def test_no_rate_is_sustained_across_a_restart_or_a_gap() -> None:
    """A counter that fell, and readings that were missing, would show rates that nobody saw."""
    fell = np.concatenate([np.arange(8) * 1000.0, np.arange(30) * 10.0])
    restarted = only(sampled("load.tx.packets", fell))
    second = np.concatenate([np.arange(8.0), 40 + np.arange(8.0)])
    blind = only(sampled("load.tx.packets", second * 1000, second))
    assert isinstance(restarted, Ceiling)
    assert restarted.rate == pytest.approx(10)
    assert isinstance(blind, NoCeiling)


def test_bytes_count_as_bits_and_every_figure_is_its_own() -> None:
    """Packets, bits and requests of one generator; the parts (with labels) are not the whole."""
    rate = np.full(40, 1000.0)
    part = sampled("load.port.tx.packets", np.cumsum(rate))
    results = ceilings(
        [
            counted("load.tx.packets", rate),
            counted("load.tx.bytes", 64 * rate),
            sampled("load.request.rate", rate),
            counted("load.queue_full", np.full(40, 2.0)),
            Series("tg", part.metric, "port=0", part.trait, part.time_ns, part.value),
        ]
    )
    rates = {ceiling.kind.metric: ceiling.rate for ceiling in results if isinstance(ceiling, Ceiling)}
    assert rates == {
        "load.ceiling.packet.rate": pytest.approx(1000),
        "load.ceiling.bit.rate": pytest.approx(512_000),
        "load.ceiling.rate": pytest.approx(1000),
    }
    assert [ceiling.queue_full for ceiling in results if isinstance(ceiling, Ceiling)] == [pytest.approx(20)] * 3


def test_any_figures_at_all_give_an_answer() -> None:
    """NaN, infinities, jumps, wraps, single readings: no exception, and no ceiling that is not a number."""
    chance = random.Random(7)
    metrics = METRICS
    odd = [0.0, 1.0, -1.0, 1e300, float("nan"), float("inf"), 2.0**63, 5e-324]
    for _ in range(300):
        series = []
        for metric in chance.sample(metrics, chance.randint(1, 6)):
            size = chance.choice([0, 1, 2, 3, 40])
            value = np.array([chance.choice([*odd, chance.uniform(0, 1e6)]) for _ in range(size)])
            time_ns = NOW_S * 1e9 + np.cumsum([chance.choice([10**4, 10**6, 10**9, 10**11]) for _ in range(size)])
            kind: Kind = "counter" if BY_NAME[metric].kind == "counter" else "gauge"
            series.append(Series("tg", metric, "", Trait("1", kind), time_ns.astype(np.int64), value))
        with np.errstate(all="ignore"):
            results = ceilings(series)
        assert all(
            np.isfinite(ceiling.rate) and ceiling.rate > 0 for ceiling in results if isinstance(ceiling, Ceiling)
        )


def plan_in(folder: Path, text: str = PLAN) -> Plan:
    """A plan in a file."""
    file = folder / "fw.yaml"
    file.write_text(text, encoding="utf-8")
    return load_plan(file)


def test_a_calibration_is_the_generators_of_the_plan_and_nothing_else(tmp_path: Path) -> None:
    """The device is left out, and so are its rules; the levels are phases, the last of them one of stress."""
    calibration = calibration_of(plan_in(tmp_path), 20, (0.5, 1.0, 1.25))
    assert [target.name for target in calibration.targets] == ["tg", "host"]
    assert [(p.name, p.seconds, p.load) for p in calibration.phases] == [
        ("ramp", 20, 0.5),
        ("ramp", 20, 1.0),
        ("stress", 20, 1.25),
    ]
    assert calibration.rules == ()
    assert driven_of(calibration)
    undriven = calibration_of(plan_in(tmp_path, PLAN.replace("drive: true, ", "")), 20, (0.5, 1.0))
    assert [(p.name, p.seconds, p.load) for p in undriven.phases] == [("soak", 20, None)]


def test_a_plan_without_a_generator_has_nothing_to_calibrate(tmp_path: Path) -> None:
    """One sentence with the remedy."""
    with pytest.raises(PlanError, match=r"fw\.yaml: no target has the role generator: give what loads"):
        generators_of(plan_in(tmp_path, "{duration: 1m, targets: {dut: {sources: [local]}}}"))


@pytest.mark.parametrize("text", ["", "x", "0%,50%", "100%,50%", "50%,50%", "-1", "1e9%", "50%,", "nan"])
def test_levels_that_mean_nothing_are_refused(text: str) -> None:
    """ValueError, which the command makes a usage error of."""
    with pytest.raises(ValueError, match=r"."):
        levels_of(text)


@pytest.mark.parametrize("text", ["", "60", "5s", "25h", "x"])
def test_times_that_mean_nothing_are_refused(text: str) -> None:
    """Shorter than the ten seconds for which a rate is held, say."""
    with pytest.raises(ValueError, match=r"."):
        length_of(text)


def reference_of(plan: Plan, file: Path, made_s: float = NOW_S) -> None:
    """Write a reference that fits a plan."""
    results = ceilings([counted("load.tx.packets", np.full(40, 1000.0))])
    kept = [ceiling for ceiling in results if isinstance(ceiling, Ceiling)]
    (generator,) = generators_of(plan)
    write_reference(file, datetime.fromtimestamp(made_s, UTC), "run", "0.1.0", {"tg": (fingerprint(generator), kept)})


def test_a_reference_beside_the_plan_is_found_and_read_back(tmp_path: Path) -> None:
    """What was written is what is used."""
    plan = plan_in(tmp_path)
    assert choose_reference(plan, None, NOW_S).reference is None
    reference_of(plan, reference_path(tmp_path / "fw.yaml"))
    choice = choose_reference(plan, None, NOW_S + 3600)
    assert choice.ceilings == {"tg": {"load.ceiling.packet.rate": 1000.0}}
    assert choice.warnings == ()
    assert choice.reference is not None
    assert choice.reference.age(NOW_S + 3600) == "1 h"
    (old,) = choose_reference(plan, None, NOW_S + 40 * 86400).warnings
    assert old.endswith("fw.reference.yaml: is 40 d old: calibrate again if a generator has changed")


def test_a_reference_of_other_sources_is_not_used(tmp_path: Path) -> None:
    """Another rate, command or name: a warning, and nothing is held against it. Another interval: used."""
    plan = plan_in(tmp_path)
    reference_of(plan, reference_path(tmp_path / "fw.yaml"))
    for before, after in (("1000", "2000"), ("./load", "./other")):
        other = choose_reference(plan_in(tmp_path, PLAN.replace(before, after)), None, NOW_S)
        assert (other.reference, dict(other.ceilings)) == (None, {})
        assert "was made with other sources of tg" in other.warnings[0]
    renamed = choose_reference(plan_in(tmp_path, PLAN.replace("tg:", "trex:")), None, NOW_S)
    assert "has no ceiling of generator trex" in renamed.warnings[0]
    slower = choose_reference(plan_in(tmp_path, PLAN.replace("drive: true", "interval: 5s, timeout: 2s")), None, NOW_S)
    assert slower.ceilings["tg"]


def test_a_reference_that_was_named_must_be_there_and_one_that_lies_there_need_not(tmp_path: Path) -> None:
    """By option or key it is refused in one sentence; beside the plan it is left out with a warning."""
    plan = plan_in(tmp_path)
    with pytest.raises(PlanError, match="cannot be read"):
        choose_reference(plan, tmp_path / "none.yaml", NOW_S)
    with pytest.raises(PlanError, match="cannot be read"):
        choose_reference(plan_in(tmp_path, PLAN + "reference: lab/none.yaml\n"), None, NOW_S)
    reference_path(tmp_path / "fw.yaml").write_text("generators: {}", encoding="utf-8")
    choice = choose_reference(plan, None, NOW_S)
    assert choice.reference is None
    assert choice.warnings[0].endswith("make it with soakwatch calibrate PLAN; it is not used")
    (tmp_path / "lab").mkdir()
    reference_of(plan, tmp_path / "lab" / "tg.yaml")
    assert choose_reference(plan_in(tmp_path, PLAN + "reference: lab/tg.yaml\n"), None, NOW_S).ceilings["tg"]


def test_a_file_that_is_no_reference_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """Every truncation and many a change of a good file: read alike, or one PlanError; never anything else."""
    file, chance = tmp_path / "fw.reference.yaml", random.Random(3)
    reference_of(plan_in(tmp_path), file)
    good = file.read_text(encoding="utf-8")
    refused = []
    for _ in range(300):
        text = list(good)
        for _ in range(chance.randint(1, 3)):
            text[chance.randrange(len(text))] = chance.choice("{}[]:-'\"\n 9eé&*!%\tx")
        file.write_text("".join(text)[: chance.choice([len(text), chance.randrange(len(text))])], encoding="utf-8")
        try:
            read_reference(file)
        except PlanError as error:
            refused.append(str(error))
    assert len(refused) > 150
    assert not [sentence for sentence in refused if "\n" in sentence]
    for wrong in (
        "version: 2",
        "[]",
        "",
        "version: 1",
        good.replace("rate: 1000.0", "rate: .inf"),
        good + "more: 1\n",
        good.replace("rate: 1000.0", "rate: -5.0"),
        good.replace("sha256:", "md5:"),
    ):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(PlanError):
            read_reference(file)


def test_secrets_are_no_part_of_a_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan only names them; the same name with another secret behind it is the same generator."""
    text = PLAN.replace(
        '{command: {drive: true, full: 1000, run: [./load, "{rate}"]}}',
        "{prometheus: {url: 'http://127.0.0.1:1/m', token: 'env:TOKEN'}}",
    )
    prints = []
    for secret in ("hunter2", "swordfish"):
        monkeypatch.setenv("TOKEN", secret)
        prints += [fingerprint(target) for target in generators_of(plan_in(tmp_path, text))]
    assert prints[0] == prints[1]


def test_a_baseline_of_a_run_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Before anything is polled."""
    with pytest.raises(RecordError, match="none is not a run"):
        choose_references(plan_in(tmp_path), None, "none", tmp_path, NOW_S)


def test_the_schema_knows_the_keys(tmp_path: Path) -> None:
    """The plan's two keys are in the published schema, and must be texts."""
    from soakwatch.plan.plan_schema import plan_schema

    assert {"reference", "baseline"} <= set(json.loads(json.dumps(plan_schema()))["properties"])
    with pytest.raises(PlanError):
        plan_in(tmp_path, PLAN + "baseline: 7\n")
